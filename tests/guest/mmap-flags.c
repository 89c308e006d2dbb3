/* SPDX-License-Identifier: Apache-2.0 */
/* mmap: every flag that Linux knows on arm64, and what each one promises. */
#include "mem.h"

static bool usable(char *p, size_t len)
{
    if (!GOOD(p) || !all_bytes(p, 0, len))
        return false;
    memset(p, 0x5a, len);
    return all_bytes(p, 0x5a, len);
}

static void test_private(void)
{
    char *p = sys_mmap(NULL, 5 * PAGE, RW, ANON, -1, 0);
    ok(usable(p, 5 * PAGE), "private anonymous: zero, then keeps what is put");
    is((uintptr_t) p % PAGE, 0, "private anonymous: on a page border");
    is(sys_munmap(p, 5 * PAGE), 0, "private anonymous: munmap");
    is_str(access_of(p), "--", "private anonymous: gone after munmap");

    p = sys_mmap(NULL, 1, RW, ANON, -1, 0);
    ok(usable(p, PAGE), "length 1 gives a whole page");
    is_str(layout(p, 1), "rw-p:1", "length 1 is one page in maps");
    is(sys_munmap(p, 1), 0, "length 1: munmap of length 1 takes the page");
    is_str(access_of(p), "--", "length 1: gone");

    p = sys_mmap(NULL, PAGE + 1, RW, ANON, -1, 0);
    ok(usable(p, 2 * PAGE), "length 4097 gives two pages");
    sys_munmap(p, 2 * PAGE);
}

static void test_anonymous_args(void)
{
    char *p = sys_mmap(NULL, PAGE, RW, ANON, 12345, 0);
    ok(usable(p, PAGE), "anonymous: the descriptor is ignored");
    sys_munmap(p, PAGE);
    p = sys_mmap(NULL, PAGE, RW, ANON, -1, 7 * PAGE);
    ok(usable(p, PAGE), "anonymous private: the offset is ignored");
    sys_munmap(p, PAGE);
    p = sys_mmap(NULL, 2 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, PAGE);
    ok(usable(p, 2 * PAGE), "anonymous shared: the offset is ignored");
    sys_munmap(p, 2 * PAGE);
}

static void test_shared(void)
{
    char *p = sys_mmap(NULL, 3 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ok(usable(p, 3 * PAGE), "shared anonymous: zero, then keeps what is put");
    is_str(layout(p, 3), "rw-s:3", "shared anonymous: 's' in maps");
    is(sys_munmap(p + PAGE, PAGE), 0, "shared anonymous: hole in the middle");
    is_str(layout(p, 3), "rw-s:1 hole:1 rw-s:1", "shared anonymous: split");
    ok(p[0] == 0x5a && p[2 * PAGE] == 0x5a, "shared anonymous: sides live");
    sys_munmap(p, 3 * PAGE);

    p = sys_mmap(NULL, PAGE, RW, MAP_SHARED_VALIDATE | MAP_ANONYMOUS, -1, 0);
    fails(GOOD(p) ? 0 : -1, EINVAL, "shared-validate needs a file");
    int fd = file_make(2 * PAGE);
    p = sys_mmap(NULL, PAGE, RW, MAP_SHARED_VALIDATE, fd, 0);
    ok(GOOD(p) && p[0] == 'A', "shared-validate of a file");
    is_str(layout(p, 1), "rw-s:1", "shared-validate is shared");
    sys_munmap(p, PAGE);
    p = sys_mmap(NULL, PAGE, RW, MAP_SHARED_VALIDATE | MAP_NORESERVE, fd, 0);
    ok(GOOD(p), "shared-validate with an old flag");
    sys_munmap(p, PAGE);
    fails(sys_mmap(NULL, PAGE, RW, MAP_SHARED_VALIDATE | 0x200000, fd, 0),
          EOPNOTSUPP, "shared-validate with an unknown flag");
    fails(sys_mmap(NULL, PAGE, RW, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0),
          EOPNOTSUPP, "shared-validate with MAP_SYNC on a plain file");
    p = sys_mmap(NULL, PAGE, RW, MAP_SHARED | 0x200000, fd, 0);
    ok(GOOD(p), "shared ignores an unknown flag");
    sys_munmap(p, PAGE);
    p = sys_mmap(NULL, PAGE, RW, ANON | 0x200000, -1, 0);
    ok(usable(p, PAGE), "private anonymous ignores an unknown flag");
    sys_munmap(p, PAGE);
    p = sys_mmap(NULL, PAGE, RW, ANON | MAP_SYNC, -1, 0);
    ok(usable(p, PAGE), "private anonymous ignores MAP_SYNC");
    sys_munmap(p, PAGE);
    close(fd);
}

static void test_fixed(void)
{
    char *p = map_rw(8 * PAGE);
    memset(p, 1, 8 * PAGE);
    char *q = sys_mmap(p + 2 * PAGE, 2 * PAGE, RW, ANON | MAP_FIXED, -1, 0);
    is(q, p + 2 * PAGE, "fixed over a live mapping lands there");
    ok(all_bytes(q, 0, 2 * PAGE), "fixed: what it replaces is zero");
    ok(all_bytes(p, 1, 2 * PAGE) && all_bytes(p + 4 * PAGE, 1, 4 * PAGE),
       "fixed: the sides keep their content");
    q = sys_mmap(p + 7 * PAGE, PAGE, PROT_READ, ANON | MAP_FIXED, -1, 0);
    is(q, p + 7 * PAGE, "fixed over the last page");
    is_str(access_of(q), "r-", "fixed: has its own protection");
    is_str(access_of(p + 6 * PAGE), "rw", "fixed: the page below keeps its");

    is(sys_munmap(p, 8 * PAGE), 0, "fixed: everything goes at once");
    p = map_hole(64 * PAGE);
    q = sys_mmap(p + 8 * PAGE, 16 * PAGE, RW, ANON | MAP_FIXED, -1, 0);
    is(q, p + 8 * PAGE, "fixed into a hole");
    q = sys_mmap(p, 64 * PAGE, RW, ANON | MAP_FIXED, -1, 0);
    is(q, p, "fixed larger than what it replaces");
    ok(usable(p, 64 * PAGE), "fixed larger: all of it is usable");
    bool same = true;
    for (int i = 0; i < 200; i++) {
        q = sys_mmap(p + PAGE, 3 * PAGE, RW, ANON | MAP_FIXED, -1, 0);
        same &= q == p + PAGE && all_bytes(q, 0, 3 * PAGE);
        memset(q, i | 1, 3 * PAGE);
    }
    ok(same, "fixed 200 times over one range: zero each time");
    sys_munmap(p, 64 * PAGE);
}

static void test_noreplace(void)
{
    int flags = ANON | MAP_FIXED_NOREPLACE;
    char *p = map_hole(8 * PAGE);
    is(sys_mmap(p + PAGE, 2 * PAGE, RW, flags, -1, 0), p + PAGE,
       "noreplace into a hole");
    p[PAGE] = 7;
    fails(sys_mmap(p + PAGE, PAGE, RW, flags, -1, 0), EEXIST,
          "noreplace over the first page");
    fails(sys_mmap(p + 2 * PAGE, 4 * PAGE, RW, flags, -1, 0), EEXIST,
          "noreplace overlapping the end");
    fails(sys_mmap(p, 2 * PAGE, RW, flags, -1, 0), EEXIST,
          "noreplace overlapping the start");
    fails(sys_mmap(p, 8 * PAGE, RW, flags, -1, 0), EEXIST, "noreplace around");
    is(p[PAGE], 7, "noreplace: the old mapping keeps its content");
    is_str(layout(p, 8), "hole:1 rw-p:2 hole:5", "noreplace: nothing changed");
    is(sys_mmap(p, PAGE, RW, flags, -1, 0), p, "noreplace just below");
    is(sys_mmap(p + 3 * PAGE, PAGE, RW, flags, -1, 0), p + 3 * PAGE,
       "noreplace just above");
    fails(sys_mmap(p + 4 * PAGE + 1, PAGE, RW, flags, -1, 0), EINVAL,
          "noreplace with an unaligned address");
    is(sys_mmap(p + PAGE, PAGE, RW, flags | MAP_FIXED, -1, 0) == p + PAGE
           ? 0
           : errno,
       EEXIST, "noreplace wins over fixed");
    sys_munmap(p, 8 * PAGE);
}

static void test_extras(void)
{
    static const struct {
        int flag;
        const char *name;
    } extra[] = {
        {MAP_NORESERVE, "MAP_NORESERVE"},
        {MAP_STACK, "MAP_STACK"},
        {MAP_POPULATE, "MAP_POPULATE"},
        {MAP_LOCKED, "MAP_LOCKED"},
        {MAP_NONBLOCK, "MAP_NONBLOCK"},
        {MAP_DENYWRITE, "MAP_DENYWRITE"},
        {MAP_EXECUTABLE, "MAP_EXECUTABLE"},
        {MAP_POPULATE | MAP_NONBLOCK, "MAP_POPULATE|MAP_NONBLOCK"},
    };
    char name[80];
    for (size_t i = 0; i < sizeof extra / sizeof *extra; i++) {
        char *p = sys_mmap(NULL, 4 * PAGE, RW, ANON | extra[i].flag, -1, 0);
        snprintf(name, sizeof name, "%s: usable", extra[i].name);
        ok(usable(p, 4 * PAGE), name);
        sys_munmap(p, 4 * PAGE);
        p = sys_mmap(NULL, 4 * PAGE, RW, ANON | extra[i].flag, -1, 0);
        bool want = extra[i].flag & (MAP_LOCKED | MAP_POPULATE) &&
                    !(extra[i].flag & MAP_NONBLOCK);
        snprintf(name, sizeof name, "%s: present before touch", extra[i].name);
        is_str(present(p, 4), want ? "1111" : "0000", name);
        sys_munmap(p, 4 * PAGE);
    }
    char *p = sys_mmap(NULL, 4 * PAGE, PROT_READ, ANON | MAP_POPULATE, -1, 0);
    ok(all_bytes(p, 0, 4 * PAGE), "populate of read-only memory");
    sys_munmap(p, 4 * PAGE);
    p = sys_mmap(NULL, 4 * PAGE, PROT_NONE, ANON | MAP_POPULATE, -1, 0);
    ok(GOOD(p), "populate of PROT_NONE is no error");
    is_str(present(p, 4), "0000", "populate of PROT_NONE does nothing");
    sys_munmap(p, 4 * PAGE);
}

static void test_growsdown(void)
{
    char *p = map_hole(512 * PAGE);
    char *q = sys_mmap(p + 500 * PAGE, 4 * PAGE, RW,
                       ANON | MAP_FIXED | MAP_GROWSDOWN, -1, 0);
    is(q, p + 500 * PAGE, "growsdown: placed");
    ok(usable(q, 4 * PAGE), "growsdown: usable");
    q[-1] = 1;
    is(q[-1], 1, "growsdown: a store just below grows it");
    is_str(layout(q - 2 * PAGE, 7), "hole:1 rw-p:5 hole:1",
           "growsdown: by one page");
    q[-100 * (long) PAGE] = 1;
    is_str(layout(q - 101 * PAGE, 106), "hole:1 rw-p:104 hole:1",
           "growsdown: far below grows it too");
    ok(can_write(q - 120 * PAGE), "growsdown: a system call's access grows");
    is_str(layout(q - 121 * PAGE, 126), "hole:1 rw-p:124 hole:1",
           "growsdown: to where it wrote");
    sys_munmap(p, 512 * PAGE);

    fails(sys_mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS | MAP_GROWSDOWN,
                   -1, 0),
          EINVAL, "growsdown and shared");
    int fd = file_make(PAGE);
    fails(sys_mmap(NULL, PAGE, RW, MAP_PRIVATE | MAP_GROWSDOWN, fd, 0), EINVAL,
          "growsdown of a file");
    close(fd);
}

static void test_hugetlb(void)
{
    fails(sys_mmap(NULL, BLOCK, RW, ANON | MAP_HUGETLB, -1, 0), ENOMEM,
          "hugetlb without a pool");
    fails(sys_mmap(NULL, BLOCK, RW, ANON | MAP_HUGETLB | (21 << 26), -1, 0),
          ENOMEM, "hugetlb of 2 MiB without a pool");
    fails(sys_mmap(NULL, BLOCK, RW, ANON | MAP_HUGETLB | (22 << 26), -1, 0),
          EINVAL, "hugetlb of a size that does not exist");
    fails(sys_mmap(NULL, BLOCK, RW, MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB,
                   -1, 0),
          ENOMEM, "hugetlb shared without a pool");
    int fd = file_make(PAGE);
    fails(sys_mmap(NULL, BLOCK, RW, MAP_PRIVATE | MAP_HUGETLB, fd, 0), EINVAL,
          "hugetlb of a file which is not on hugetlbfs");
    close(fd);
}

int main(void)
{
    probe_open();
    test_private();
    test_anonymous_args();
    test_shared();
    test_fixed();
    test_noreplace();
    test_extras();
    test_growsdown();
    test_hugetlb();
    return tap_done();
}
