/* SPDX-License-Identifier: Apache-2.0 */
/* Lines in order, from libraries too: no buffer that each would have. */
#ifndef SAY_H
#define SAY_H

#include <string.h>
#include <unistd.h>

static inline void say(const char *line)
{
    if (write(STDOUT_FILENO, line, strlen(line)) < 0)
        _exit(98);
}

#endif
