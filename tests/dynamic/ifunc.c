/* SPDX-License-Identifier: Apache-2.0 */
/* flags: -lifunc */
/* Functions that a resolver chooses: IRELATIVE relocations. */
#include "tap.h"

#include <dlfcn.h>

int picked(void);

static int seven(void)
{
    return 7;
}

static int (*choose(void))(void)
{
    return seven;
}

static int own(void) __attribute__((ifunc("choose")));
static int (*volatile pointer)(void) = own;

int main(void)
{
    is(own(), 7, "of the program itself");
    is(pointer(), 7, "by a pointer in its data");
    is(picked(), 2, "of a library, chosen by AT_HWCAP");
    void *found = dlsym(RTLD_DEFAULT, "picked");
    need(found != NULL, "dlsym");
    is(((int (*)(void)) found)(), 2, "and the one that was chosen");
    return tap_done();
}
