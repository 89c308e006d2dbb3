/* SPDX-License-Identifier: Apache-2.0 */
/* A stack that code can run on: from the start, or for a library's sake. */
#include "mem.h"

#include <dlfcn.h>

static bool stack_runs(void)
{
    /* mov w0, #7; ret */
    static const uint32_t code[] = {0x528000e0, 0xd65f03c0};
    uint32_t here[2];

    memcpy(here, code, sizeof here);
    __builtin___clear_cache((char *) here, (char *) (here + 2));
    return ((int (*)(void)) here)() == 7;
}

int main(int argc, char **argv)
{
    static vma_t v;
    bool from_the_start = argc > 1 && strcmp(argv[1], "start") == 0;

    need(vma_find(&argc, &v), "the stack's mapping");
    is_str(v.perms, from_the_start ? "rwxp" : "rw-p", "the stack at the start");
    ok(dlopen("libexecstack.so", RTLD_NOW) != NULL,
       "a library that wants to run code on the stack");
    need(vma_find(&argc, &v), "the stack's mapping");
    is_str(v.perms, "rwxp", "the stack then");
    ok(stack_runs(), "and code runs on it");
    return tap_done();
}
