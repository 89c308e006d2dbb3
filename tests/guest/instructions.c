/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions that a program may execute and that a hypervisor may trap. */
#include "mem.h"

static void test_waiting(void)
{
    for (int i = 0; i < 3; i++)
        __asm__ volatile("wfi" ::: "memory");
    ok(true, "wfi comes back");
    for (int i = 0; i < 3; i++)
        __asm__ volatile("sevl; wfe; wfe; yield; sev" ::: "memory");
    ok(true, "wfe comes back");
}

static void test_caches(void)
{
    char *p = map_rw(PAGE);
    uint64_t ctr, zva;

    __asm__ volatile("mrs %0, ctr_el0" : "=r"(ctr));
    __asm__ volatile("mrs %0, dczid_el0" : "=r"(zva));
    ok(ctr != 0, "ctr_el0 can be read");
    memset(p, 'x', PAGE);
    if (!(zva & 16)) {
        __asm__ volatile("dc zva, %0" ::"r"(p) : "memory");
        ok(p[0] == 0, "dc zva writes zeros");
    } else {
        tap_skip("dc zva writes zeros", "not allowed here");
    }
    need(sys_mprotect(p, PAGE, PROT_READ) == 0, "mprotect");
    __asm__ volatile("dc cvau, %0; dc civac, %0; ic ivau, %0" ::"r"(p)
                     : "memory");
    ok(true, "maintenance of what is read-only");
    __asm__ volatile("prfm pldl1keep, [%0]; prfm pstl1keep, [%1]" ::"r"(8L),
                     "r"(1L << 63));
    ok(true, "prefetch of nothing");
    sys_munmap(p, PAGE);
}

int main(void)
{
    test_waiting();
    test_caches();
    return tap_done();
}
