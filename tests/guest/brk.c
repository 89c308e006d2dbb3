/* SPDX-License-Identifier: Apache-2.0 */
/* brk: grows, shrinks, is zero when it comes back, and meets its limits. */
#include "mem.h"

static char *raw_brk(const void *to)
{
    return (char *) syscall(SYS_brk, to);
}

static char *page_up(const char *p)
{
    return (char *) (((uintptr_t) p + PAGE - 1) & -PAGE);
}

static char *base;

static void test_moves(void)
{
    is(raw_brk(NULL), base, "brk(0) tells the break");
    is(raw_brk((void *) 1), base, "a break below the start is refused");
    is(raw_brk(base + 100 * PAGE), base + 100 * PAGE, "grow by 100 pages");
    ok(all_bytes(base, 0, 100 * PAGE), "new memory is zero");
    memset(base, 0x77, 100 * PAGE);
    is(raw_brk(base + 50 * PAGE), base + 50 * PAGE, "shrink by half");
    is_str(access_of(base + 50 * PAGE), "--", "what was given back is gone");
    is_str(access_of(base + 50 * PAGE - 1), "rw", "what was kept is there");
    is(raw_brk(base + 100 * PAGE), base + 100 * PAGE, "grow again");
    ok(all_bytes(base, 0x77, 50 * PAGE), "the kept half has its content");
    ok(all_bytes(base + 50 * PAGE, 0, 50 * PAGE), "the other half is zero");
    is(raw_brk(base), base, "shrink to the start");
    is_str(access_of(base), "--", "nothing left");
}

static void test_unaligned(void)
{
    is(raw_brk(base + 1), base + 1, "one byte");
    is_str(access_of(base + PAGE - 1), "rw", "gives the whole page");
    is_str(access_of(base + PAGE), "--", "and no more");
    base[PAGE - 1] = 9;
    is(raw_brk(base + 100), base + 100, "a hundred bytes");
    is(base[PAGE - 1], 9, "moving within the page keeps it");
    is(raw_brk(base + 1), base + 1, "back to one byte");
    is(base[PAGE - 1], 9, "still the same page");
    is(raw_brk(base + PAGE + 1), base + PAGE + 1, "into a second page");
    is(base[2 * PAGE - 1], 0, "which is zero");
    is(base[PAGE - 1], 9, "the first stays");
    is(raw_brk(base + PAGE), base + PAGE, "exactly one page");
    is_str(access_of(base + PAGE), "--", "the second is gone");
    raw_brk(base);
}

static void test_maps(void)
{
    static vma_t v;
    raw_brk(base + 8 * PAGE);
    ok(vma_named("[heap]", &v), "maps has [heap]");
    is_str(v.perms, "rw-p", "[heap] is private read-write");
    is(v.end, page_up(base + 8 * PAGE), "[heap] ends at the break");
    raw_brk(base + 16 * PAGE);
    ok(vma_named("[heap]", &v) && v.end == (uintptr_t) base + 16 * PAGE,
       "and grows as one mapping");
    raw_brk(base);
}

static void test_big(void)
{
    is(raw_brk(base + GIB), base + GIB, "grow by 1 GiB, lazily");
    base[0] = base[GIB / 2] = base[GIB - 1] = 1;
    ok(base[GIB / 2 + 1] == 0 && base[GIB - PAGE] == 0, "the rest reads zero");
    is(raw_brk(base), base, "and give it back");
    is(raw_brk(base + GIB), base + GIB, "grow by 1 GiB again");
    ok(base[0] == 0 && base[GIB / 2] == 0 && base[GIB - 1] == 0, "it is zero");
    raw_brk(base);
    is(raw_brk((void *) TOP), base, "beyond user space is refused");
    is(raw_brk((void *) -PAGE), base, "near the top is refused");
}

static void test_limits(void)
{
    struct rlimit old;
    need(getrlimit(RLIMIT_DATA, &old) == 0, "getrlimit");
    limit_set(RLIMIT_DATA, 0);
    is(raw_brk(base + PAGE), base, "RLIMIT_DATA 0: no growth");
    limit_set(RLIMIT_DATA, 64 * MIB);
    is(raw_brk(base + 128 * MIB), base, "RLIMIT_DATA 64M: not 128M");
    is(raw_brk(base + 16 * MIB), base + 16 * MIB, "but 16M");
    limit_set(RLIMIT_DATA, 4 * MIB);
    is(raw_brk(base + 8 * MIB), base + 16 * MIB,
       "RLIMIT_DATA 4M: no shrinking to 8M");
    is(raw_brk(base + 2 * MIB), base + 2 * MIB, "but to 2M");
    limit_set(RLIMIT_DATA, old.rlim_cur);
    raw_brk(base);
    need(getrlimit(RLIMIT_AS, &old) == 0, "getrlimit");
    limit_set(RLIMIT_AS, 64 * MIB);
    is(raw_brk(base + 128 * MIB), base, "RLIMIT_AS 64M: not 128M");
    limit_set(RLIMIT_AS, old.rlim_cur);
    is(raw_brk(base + 128 * MIB), base + 128 * MIB, "without limit it works");
    raw_brk(base);
}

static void test_collision(void)
{
    char *p = sys_mmap(base + 16 * PAGE, PAGE, PROT_READ,
                       ANON | MAP_FIXED_NOREPLACE, -1, 0);
    is(p, base + 16 * PAGE, "a mapping in the break's way");
    is(raw_brk(base + 32 * PAGE), base, "growth over it is refused");
    is(raw_brk(base + 16 * PAGE), base, "growth up to it is refused too");
    is(raw_brk(base + 15 * PAGE), base + 15 * PAGE, "with a page between");
    is_str(layout(p, 1), "r--p:1", "the mapping is untouched");
    is_str(layout(base, 17), "rw-p:15 hole:1 r--p:1", "as maps has it");
    is(sys_munmap(p, PAGE), 0, "take it away");
    is(raw_brk(base + 32 * PAGE), base + 32 * PAGE, "now it grows");
    base[20 * PAGE] = 3;
    is(sys_munmap(base + 8 * PAGE, 8 * PAGE), 0, "a hole in the heap");
    is_str(layout(base, 32), "rw-p:8 hole:8 rw-p:16", "as maps has it");
    is(raw_brk(base + 40 * PAGE), base + 40 * PAGE, "grows above the hole");
    is(base[20 * PAGE], 3, "content above the hole");
    is(raw_brk(base), base, "shrinking over the hole");
    is_str(layout(base, 40), "hole:40", "takes everything");
}

int main(void)
{
    probe_open();
    /* Page-align the break first, the C library has used some of it. */
    base = page_up(raw_brk(NULL));
    need(raw_brk(base) == base, "brk");
    test_moves();
    test_unaligned();
    test_maps();
    test_big();
    test_limits();
    test_collision();
    return tap_done();
}
