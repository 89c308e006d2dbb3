/* SPDX-License-Identifier: Apache-2.0 */
/* Calls by number for --stats. */
#ifndef ELFUSE_SYS_HISTOGRAM_H
#define ELFUSE_SYS_HISTOGRAM_H

#include <stdint.h>

void histogram_enter(unsigned nr);
void histogram_exit(unsigned nr, int64_t ret);
/* All zero again: a new process. */
void histogram_reset(void);

#endif
