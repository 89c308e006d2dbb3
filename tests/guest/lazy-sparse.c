/* SPDX-License-Identifier: Apache-2.0 */
/* Huge reservations of which hardly anything is touched. */
#include "mem.h"

static void test_reservation(size_t len, int prot, const char *what)
{
    char name[96];
    char *p = sys_mmap(NULL, len, prot, LAZY, -1, 0);
    snprintf(name, sizeof name, "%s: reserved", what);
    if (!ok(GOOD(p), name))
        return;
    bool zero = true, kept = true;
    for (size_t i = 0; i < 10; i++) {
        char *q = p + (len / 10 * i & -PAGE);
        if (prot == PROT_NONE)
            need(sys_mprotect(q, PAGE, RW) == 0, "mprotect");
        zero &= *q == 0;
        *q = i + 1;
    }
    for (size_t i = 0; i < 10; i++)
        kept &= p[len / 10 * i & -PAGE] == (char) (i + 1);
    snprintf(name, sizeof name, "%s: ten pages are zero", what);
    ok(zero, name);
    snprintf(name, sizeof name, "%s: ten pages keep what is put", what);
    ok(kept, name);
    char *last = p + len - PAGE;
    if (prot == PROT_NONE)
        need(sys_mprotect(last, PAGE, RW) == 0, "mprotect");
    snprintf(name, sizeof name, "%s: its last byte works", what);
    last[PAGE - 1] = 1;
    is(last[PAGE - 1], 1, name);
    snprintf(name, sizeof name, "%s: neighbours stay absent", what);
    is_str(present(p + (len / 2 & -PAGE) + 512 * PAGE, 4), "0000", name);
    snprintf(name, sizeof name, "%s: munmap", what);
    is(sys_munmap(p, len), 0, name);
    snprintf(name, sizeof name, "%s: gone", what);
    ok(!can_read(p) && !can_read(p + len / 2) && !can_read(last), name);
}

static void test_many_at_once(void)
{
    static char *at[64];
    bool good = true;
    for (int i = 0; i < 64; i++) {
        at[i] = sys_mmap(NULL, 32 * GIB, RW, LAZY, -1, 0);
        need(GOOD(at[i]), "mmap");
        at[i][16 * GIB] = i + 1;
    }
    for (int i = 0; i < 64; i++)
        good &= at[i][16 * GIB] == i + 1 && at[i][16 * GIB + PAGE] == 0;
    ok(good, "64 reservations of 32 GiB at once");
    for (int i = 0; i < 64; i++)
        good &= sys_munmap(at[i], 32 * GIB) == 0;
    ok(good, "and gone");
}

/* One page at a time anywhere in user space: each is another table. */
static void test_scattered(void)
{
    unsigned long seed = 12345;
    int exact = 0;
    bool zero = true, kept = true;
    for (int i = 0; i < 10000; i++) {
        seed = seed * 6364136223846793005UL + 1442695040888963407UL;
        unsigned long hint = (seed >> 18) & ((1UL << 46) - PAGE);
        char *p = sys_mmap((void *) hint, PAGE, RW, LAZY, -1, 0);
        need(GOOD(p), "mmap");
        exact += (unsigned long) p == hint;
        zero &= *p == 0;
        *p = 1;
        kept &= *p == 1;
        need(sys_munmap(p, PAGE) == 0, "munmap");
    }
    ok(exact > 9900, "10,000 pages at random hints land there");
    ok(zero && kept, "each zero, then as written");

    static char *at[64];
    for (int i = 0; i < 64; i++) {
        unsigned long hint =
            (1UL << 40) * (i % 60 + 1) / 2 + (unsigned long) i * 17 * MIB;
        at[i] = sys_mmap((void *) hint, PAGE, RW, LAZY, -1, 0);
        need(GOOD(at[i]), "mmap");
        *at[i] = i + 1;
    }
    for (int i = 0; i < 64; i++)
        kept &= *at[i] == i + 1;
    ok(kept, "64 of them alive at once");
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < 64; i++)
            kept &= ++*at[i] == (char) (i + 2 + round);
    ok(kept, "and in turn, twenty times");
    for (int i = 0; i < 64; i++)
        sys_munmap(at[i], PAGE);
}

int main(void)
{
    probe_open();
    test_reservation(32 * GIB, RW, "32 GiB");
    test_reservation(TIB, RW, "1 TiB");
    test_reservation(32 * TIB, RW, "32 TiB");
    test_reservation(32 * GIB, PROT_NONE, "32 GiB of PROT_NONE");
    test_reservation(32 * TIB, PROT_NONE, "32 TiB of PROT_NONE");
    test_many_at_once();
    test_scattered();
    return tap_done();
}
