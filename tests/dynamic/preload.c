/* SPDX-License-Identifier: Apache-2.0 */
#include <unistd.h>

#include "say.h"

int main(void)
{
    say(getppid() == 4242 ? "the preloaded one\n" : "the C library's\n");
    return 0;
}
