/* SPDX-License-Identifier: Apache-2.0 */
/* A function that is chosen when it is bound, by the processor. */
#include <stdint.h>
#include <sys/ifunc.h>

#include <asm/hwcap.h>

int picked(void);

static int with_fp(void)
{
    return 2;
}

static int without_fp(void)
{
    return 1;
}

/* The kernel's word, given as an argument: nothing is relocated yet. */
static int (*choose(uint64_t hwcap, const __ifunc_arg_t *arg))(void)
{
    if ((hwcap & _IFUNC_ARG_HWCAP) && arg->_size >= sizeof *arg &&
        arg->_hwcap == (hwcap & ~_IFUNC_ARG_HWCAP) && (hwcap & HWCAP_FP))
        return with_fp;
    return without_fp;
}

int picked(void) __attribute__((ifunc("choose")));
