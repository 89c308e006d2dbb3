/* SPDX-License-Identifier: Apache-2.0 */
/* flags: -lorder_b */
#include <stdlib.h>

#include "say.h"

int order_a(void);
int order_b(void);

static void handler(void)
{
    say("a: atexit\n");
}

__attribute__((constructor)) static void init(void)
{
    say("a: constructor\n");
    if (atexit(handler) != 0)
        say("a: atexit failed\n");
}

__attribute__((destructor)) static void fini(void)
{
    say("a: destructor\n");
}

int order_a(void)
{
    return order_b() + 1;
}
