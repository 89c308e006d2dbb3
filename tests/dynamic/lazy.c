/* SPDX-License-Identifier: Apache-2.0 */
/* flags: -lundefined -Wl,--unresolved-symbols=ignore-all */
/* A name that nobody has matters when it is called, or at once if the program
 * is bound at once. */
#include "say.h"

int undefined(void);

int main(int argc, char **argv)
{
    (void) argv;
    say("started\n");
    return argc > 1 ? undefined() : 0;
}
