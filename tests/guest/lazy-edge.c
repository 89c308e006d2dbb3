/* SPDX-License-Identifier: Apache-2.0 */
/* Neighbours in one 2 MiB block, and over its borders, stay as they are. */
#include "mem.h"

/* Reserved, aligned to 2 MiB, to be filled with fixed mappings. */
static char *arena(size_t blocks)
{
    char *p = sys_mmap(NULL, (blocks + 2) * BLOCK, PROT_NONE, LAZY, -1, 0);
    need(GOOD(p), "mmap");
    p = (char *) (((uintptr_t) p + BLOCK) & ~(BLOCK - 1));
    need(sys_munmap(p, blocks * BLOCK) == 0, "munmap");
    return p;
}

static char *put(char *at, size_t len, int prot)
{
    char *p = sys_mmap(at, len, prot, ANON | MAP_FIXED_NOREPLACE, -1, 0);
    need(p == at, "mmap");
    return p;
}

static void test_grow_over_border(void)
{
    char *p = arena(4);
    char *low = put(p, MIB, RW), *high = put(p + MIB, MIB, RW);
    memset(low, 1, MIB);
    need(sys_mprotect(low, MIB, PROT_READ) == 0, "mprotect");
    is(sys_mremap(high, MIB, MIB + 4 * PAGE, 0, NULL), high,
       "grow over a border, the neighbour in the block is read-only");
    is_str(access_of(low), "r-", "the neighbour is still read-only");
    is_str(access_of(low + MIB - PAGE), "r-", "up to its last page");
    ok(all_bytes(low, 1, MIB), "and has its content");
    ok(all_bytes(high, 0, MIB + 4 * PAGE), "the grown one is zero");
    is_str(access_of(p + 2 * MIB + 4 * PAGE), "--", "and ends where it ends");

    char *a = put(p + 4 * MIB, 64 * KIB, RW);
    char *b = put(p + 5 * MIB, PAGE, PROT_NONE);
    char *c = put(p + 5 * MIB + PAGE, PAGE, PROT_READ);
    memset(a, 2, PAGE);
    is(sys_mremap(a, 64 * KIB, MIB, 0, NULL), a, "grow up to a neighbour");
    is_str(access_of(b), "--", "PROT_NONE beside it stays");
    is_str(access_of(c), "r-", "read-only beside that stays");
    ok(all_bytes(a, 2, PAGE) && all_bytes(a + PAGE, 0, MIB - PAGE),
       "content, then zero");
    fails(sys_mremap(a, MIB, MIB + PAGE, 0, NULL), ENOMEM, "no further");
    is_str(access_of(b), "--", "nothing changed by the failure");
}

static void test_shrink(void)
{
    char *p = arena(4);
    char *a = put(p, 3 * MIB, RW), *b = put(p + 3 * MIB, MIB, RW);
    memset(a, 3, 3 * MIB);
    memset(b, 4, MIB);
    is(sys_mremap(a, 3 * MIB, MIB, 0, NULL), a, "shrink over a border");
    ok(all_bytes(a, 3, MIB), "what is left has its content");
    ok(all_bytes(b, 4, MIB), "and so has the neighbour");
    is_str(access_of(a + MIB), "--", "the end is gone");
    is_str(access_of(b - PAGE), "--", "up to the neighbour");
}

static void test_lazy_in_dirty(void)
{
    char *p = arena(2);
    put(p, BLOCK, RW);
    memset(p, 5, BLOCK);
    need(sys_munmap(p, BLOCK) == 0, "munmap");
    put(p + 64 * PAGE, PAGE, RW);
    put(p + 128 * PAGE, PAGE, PROT_READ);
    char *c = put(p + 192 * PAGE, PAGE, PROT_NONE);
    is(p[64 * PAGE], 0, "a page in a dirty block is zero");
    is(p[128 * PAGE], 0, "a read-only page in it too");
    is_str(access_of(c), "--", "PROT_NONE in it is closed");
    is_str(access_of(p + 65 * PAGE), "--", "a hole in it is a hole");
    need(sys_mprotect(c, PAGE, RW) == 0, "mprotect");
    ok(all_bytes(c, 0, PAGE), "PROT_NONE opened is zero");
    memset(p + 64 * PAGE, 6, PAGE);
    put(p + 65 * PAGE, 63 * PAGE, RW);
    ok(all_bytes(p + 65 * PAGE, 0, 63 * PAGE), "filling the hole: zero");
    ok(all_bytes(p + 64 * PAGE, 6, PAGE), "the page beside keeps its content");
}

static void test_mprotect_untouched(void)
{
    char *p = arena(4);
    put(p, 4 * BLOCK, RW);
    p[BLOCK - 1] = 7;
    p[3 * BLOCK] = 8;
    need(sys_mprotect(p + BLOCK - PAGE, 2 * BLOCK, PROT_READ) == 0, "mprotect");
    is_str(access_of(p + BLOCK - 2 * PAGE), "rw", "below the range");
    is_str(access_of(p + BLOCK - PAGE), "r-", "its first, touched page");
    is_str(access_of(p + BLOCK), "r-", "an untouched page after the border");
    is_str(access_of(p + 3 * BLOCK - 2 * PAGE), "r-", "its last page");
    is_str(access_of(p + 3 * BLOCK - PAGE), "rw", "above the range");
    is(p[BLOCK - 1], 7, "content of the touched page");
    is(p[3 * BLOCK], 8, "content above");
    need(sys_mprotect(p, 4 * BLOCK, PROT_NONE) == 0, "mprotect");
    need(sys_mprotect(p + 2 * BLOCK - PAGE, 2 * PAGE, RW) == 0, "mprotect");
    is_str(access_of(p + 2 * BLOCK - 2 * PAGE), "--", "closed below");
    ok(all_bytes(p + 2 * BLOCK - PAGE, 0, 2 * PAGE), "opened pages are zero");
    is_str(access_of(p + 2 * BLOCK + PAGE), "--", "closed above");
}

/* Every page of a block in another order and state, then all checked. */
static void test_checkerboard(void)
{
    char *p = arena(3);
    put(p, 3 * BLOCK, RW);
    size_t pages = 3 * BLOCK / PAGE;
    for (size_t i = 0; i < pages; i++) {
        size_t k = i * 701 % pages;
        if (k % 3 != 2)
            memset(p + k * PAGE, (int) (k % 250) + 1, PAGE);
    }
    for (size_t i = 0; i < pages; i += 6)
        need(sys_munmap(p + i * PAGE, PAGE) == 0, "munmap");
    for (size_t i = 1; i < pages; i += 6)
        need(sys_mprotect(p + i * PAGE, PAGE, PROT_READ) == 0, "mprotect");
    bool good = true, zero = true;
    for (size_t i = 0; i < pages; i++) {
        bool gone = i % 6 == 0;
        good &= can_read(p + i * PAGE) == !gone;
        if (gone)
            continue;
        good &= can_write(p + i * PAGE) == (i % 6 != 1);
        if (i % 3 == 2)
            zero &= all_bytes(p + i * PAGE, 0, PAGE);
        else
            good &= all_bytes(p + i * PAGE, (int) (i % 250) + 1, PAGE);
    }
    ok(good, "checkerboard: access and content of every page");
    ok(zero, "checkerboard: untouched pages are zero");
}

static void test_load_then_store(void)
{
    char *p = arena(2);
    put(p, 2 * BLOCK, RW);
    bool zero = true, kept = true;
    for (size_t i = 0; i < 2 * BLOCK; i += 3 * PAGE)
        zero &= p[i + 5] == 0;
    for (size_t i = 0; i < 2 * BLOCK; i += 3 * PAGE)
        p[i + 5] = 1;
    for (size_t i = 0; i < 2 * BLOCK; i += 3 * PAGE)
        kept &= p[i + 5] == 1 && p[i + 6] == 0;
    ok(zero, "a load of fresh memory gives zero");
    ok(kept, "a store after the load stays");
}

int main(void)
{
    probe_open();
    test_grow_over_border();
    test_shrink();
    test_lazy_in_dirty();
    test_mprotect_untouched();
    test_checkerboard();
    test_load_then_store();
    return tap_done();
}
