/* SPDX-License-Identifier: Apache-2.0 */
/* mmap without a hint: the highest hole that fits, as Linux has it. */
#include "mem.h"

/* Shared mappings: they do not merge, and no allocator of private memory
 * comes in between. */
static char *map_any(size_t len)
{
    char *p = sys_mmap(NULL, len, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(GOOD(p), "mmap");
    return p;
}

/* Fills every hole above `floor` that takes `len` bytes. */
static void fill(const char *floor, size_t len)
{
    char *p;
    while ((p = map_any(len)) > floor)
        ;
    sys_munmap(p, len);
}

int main(void)
{
    char *big = sys_mmap(NULL, GIB, PROT_NONE, LAZY, -1, 0);
    need(GOOD(big), "mmap");
    for (size_t len = MIB; len >= PAGE; len /= 2)
        fill(big, len);
    char *a = map_any(MIB), *b = map_any(MIB), *c = map_any(MIB);
    ok(b < a && c < b, "each mapping is below the one before");
    is(b, a - MIB, "with nothing between");
    is(c, b - MIB, "nor here");
    is(sys_munmap(b, MIB), 0, "take the middle one away");
    is(map_any(MIB), b, "one that fits exactly takes its place");
    sys_munmap(b, MIB);
    is(map_any(MIB / 2), b + MIB / 2, "a smaller one takes the hole's top");
    is(map_any(MIB / 2), b, "the next what is left");
    sys_munmap(a, MIB);
    is(map_any(2 * MIB), c - 2 * MIB, "a larger one goes below");
    is(map_any(PAGE), a + MIB - PAGE, "a page goes to the top of the hole");
    return tap_done();
}
