/* SPDX-License-Identifier: Apache-2.0 */
/* flags: -lorder_a */
/* Constructors, destructors and exit handlers: in which order, and once. */
#include <stdlib.h>

#include "say.h"

int order_a(void);

static void preinit(int argc, char **argv, char **envp)
{
    say(argc == 1 && argv[1] == NULL && envp != NULL ? "preinit\n"
                                                     : "preinit: bad\n");
}

__attribute__((used, section(".preinit_array"))) static void (*const array)(
    int, char **, char **) = preinit;

__attribute__((constructor(200))) static void second(void)
{
    say("main: constructor 200\n");
}

__attribute__((constructor(101))) static void first(void)
{
    say("main: constructor 101\n");
}

__attribute__((destructor(101))) static void last(void)
{
    say("main: destructor 101\n");
}

__attribute__((destructor)) static void fini(void)
{
    say("main: destructor\n");
}

static void handler(void)
{
    say("main: atexit\n");
}

int main(void)
{
    say("main\n");
    if (atexit(handler) != 0)
        return 1;
    return order_a();
}
