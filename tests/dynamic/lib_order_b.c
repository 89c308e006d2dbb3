/* SPDX-License-Identifier: Apache-2.0 */
#include "say.h"

int order_b(void);

static int value;

__attribute__((constructor)) static void init(void)
{
    say("b: constructor\n");
    value = 41;
}

__attribute__((destructor)) static void fini(void)
{
    say("b: destructor\n");
}

int order_b(void)
{
    return value;
}
