/* SPDX-License-Identifier: Apache-2.0 */
/* madvise: every advice on every kind of mapping, then what each promises. */
#include "mem.h"

enum { PRIV, SHARED_ANON, FILE_PRIV, FILE_SHARED, LOCKED, HOLE, NONE, RO_FILE };

static const char *const kind_name[] = {
    "private", "shared", "private file", "shared file",
    "locked",  "a hole", "PROT_NONE",    "read-only shared file",
};

/*
 * One character for each kind above: 0 works, I EINVAL, N ENOMEM, A EACCES,
 * * depends on the kernel's configuration.
 */
static const struct {
    int advice;
    const char *name;
    const char *want;
} advices[] = {
    {0, "NORMAL", "00000N00"},
    {1, "RANDOM", "00000N00"},
    {2, "SEQUENTIAL", "00000N00"},
    {3, "WILLNEED", "00000N00"},
    {4, "DONTNEED", "0000IN00"},
    {5, "5", "IIIIIIII"},
    {6, "6", "IIIIIIII"},
    {7, "7", "IIIIIIII"},
    {8, "FREE", "0IIIIN0I"},
    {9, "REMOVE", "I0A0INIA"},
    {10, "DONTFORK", "00000N00"},
    {11, "DOFORK", "00000N00"},
    {12, "MERGEABLE", "********"},
    {13, "UNMERGEABLE", "********"},
    {14, "HUGEPAGE", "*****N**"},
    {15, "NOHUGEPAGE", "*****N**"},
    {16, "DONTDUMP", "00000N00"},
    {17, "DODUMP", "00000N00"},
    {18, "WIPEONFORK", "0III0N0I"},
    {19, "KEEPONFORK", "00000N00"},
    {20, "COLD", "0000IN00"},
    {21, "PAGEOUT", "0000IN00"},
    {22, "POPULATE_READ", "00000NI0"},
    {23, "POPULATE_WRITE", "00000NII"},
    {24, "DONTNEED_LOCKED", "00000N00"},
    {26, "26", "IIIIIIII"},
    {99, "99", "IIIIIIII"},
    {1000, "1000", "IIIIIIII"},
    {-1, "-1", "IIIIIIII"},
};

static char *make(int kind)
{
    int fd = file_make(4 * PAGE);
    char name[64];
    char *p = MAP_FAILED;
    if (kind == PRIV || kind == LOCKED)
        p = map_rw(4 * PAGE);
    else if (kind == SHARED_ANON)
        p = sys_mmap(NULL, 4 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    else if (kind == FILE_PRIV)
        p = sys_mmap(NULL, 4 * PAGE, RW, MAP_PRIVATE, fd, 0);
    else if (kind == FILE_SHARED)
        p = sys_mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0);
    else if (kind == HOLE)
        p = map_hole(4 * PAGE);
    else if (kind == NONE)
        p = sys_mmap(NULL, 4 * PAGE, PROT_NONE, ANON, -1, 0);
    else {
        snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
        int ro = open(name, O_RDONLY);
        p = sys_mmap(NULL, 4 * PAGE, PROT_READ, MAP_SHARED, ro, 0);
        close(ro);
    }
    need(GOOD(p), "mmap");
    if (kind == LOCKED)
        need(mlock(p, 4 * PAGE) == 0, "mlock");
    close(fd);
    return p;
}

static void test_matrix(void)
{
    char name[80];
    for (size_t i = 0; i < sizeof advices / sizeof *advices; i++) {
        for (int kind = PRIV; kind <= RO_FILE; kind++) {
            char *p = make(kind);
            char want = advices[i].want[kind];
            long r = sys_madvise(p, 4 * PAGE, advices[i].advice);
            char got = r == 0            ? '0'
                       : errno == EINVAL ? 'I'
                       : errno == ENOMEM ? 'N'
                       : errno == EACCES ? 'A'
                                         : '?';
            snprintf(name, sizeof name, "%s on %s", advices[i].name,
                     kind_name[kind]);
            if (want == '*')
                ok(got != '?', name);
            else
                is(got, want, name);
            sys_munmap(p, 4 * PAGE);
        }
    }
}

static void test_ranges(void)
{
    char *p = map_hole(6 * PAGE);
    sys_mmap(p, 2 * PAGE, RW, ANON | MAP_FIXED, -1, 0);
    sys_mmap(p + 4 * PAGE, 2 * PAGE, RW, ANON | MAP_FIXED, -1, 0);
    memset(p, 1, 2 * PAGE);
    memset(p + 4 * PAGE, 1, 2 * PAGE);
    fails(sys_madvise(p + 1, PAGE, MADV_DONTNEED), EINVAL, "unaligned");
    is(sys_madvise(p, 0, MADV_DONTNEED), 0, "length 0");
    is(sys_madvise(NULL, 0, MADV_DONTNEED), 0, "length 0 at page 0");
    fails(sys_madvise(p, -PAGE, MADV_DONTNEED), EINVAL, "length wraps");
    fails(sys_madvise(p, -1UL, MADV_DONTNEED), EINVAL, "length ~0");
    fails(sys_madvise(BAD_PTR, PAGE, MADV_DONTNEED), EINVAL, "at the top");
    fails(sys_madvise((void *) 0xfffffffffff00000UL, PAGE, MADV_DONTNEED),
          ENOMEM, "in the kernel's half");
    ok(all_bytes(p, 1, 2 * PAGE), "nothing has changed so far");
    fails(sys_madvise(p, 6 * PAGE, MADV_DONTNEED), ENOMEM, "over a hole");
    ok(all_bytes(p, 0, 2 * PAGE) && all_bytes(p + 4 * PAGE, 0, 2 * PAGE),
       "but both sides were done");
    p[0] = p[PAGE] = 1;
    is(sys_madvise(p, 1, MADV_DONTNEED), 0, "length rounds up");
    ok(p[0] == 0 && p[PAGE] == 1, "to one page");
    long r = sys_madvise(p, 0, 100);
    ok(r == 0 || errno == EINVAL || errno == EPERM, "HWPOISON of nothing");
    r = sys_madvise(p, 0, 101);
    ok(r == 0 || errno == EINVAL || errno == EPERM, "SOFT_OFFLINE of nothing");
    fails(sys_madvise(p + 1, PAGE, 5), EINVAL, "unaligned and unknown");
    char *a = map_aligned(BLOCK);
    memset(a, 7, BLOCK);
    r = sys_madvise(a, BLOCK, 25);
    ok(r == 0 || errno == EINVAL || errno == EAGAIN || errno == ENOMEM ||
           errno == EBUSY,
       "COLLAPSE works or gives one of its errors");
    ok(all_bytes(a, 7, BLOCK), "COLLAPSE keeps the content");
}

static void test_dontneed(void)
{
    char *p = map_rw(8 * PAGE);
    memset(p, 5, 8 * PAGE);
    is(sys_madvise(p + 2 * PAGE, 3 * PAGE, MADV_DONTNEED), 0, "DONTNEED");
    is_str(present(p, 8), "11000111", "DONTNEED: pages are gone");
    ok(all_bytes(p + 2 * PAGE, 0, 3 * PAGE), "DONTNEED: zero afterwards");
    ok(all_bytes(p, 5, 2 * PAGE) && all_bytes(p + 5 * PAGE, 5, 3 * PAGE),
       "DONTNEED: the sides stay");
    is_str(layout(p, 8), "rw-p:8", "DONTNEED: no split");
    char *q = map_aligned(4 * BLOCK);
    memset(q, 6, 4 * BLOCK);
    is(sys_madvise(q + PAGE, 3 * BLOCK, MADV_DONTNEED), 0, "DONTNEED of 6 MiB");
    ok(all_bytes(q, 6, PAGE) && all_bytes(q + PAGE, 0, 3 * BLOCK) &&
           all_bytes(q + PAGE + 3 * BLOCK, 6, BLOCK - PAGE),
       "DONTNEED of 6 MiB: exactly that is zero");
    memset(p, 5, PAGE);
    need(sys_mprotect(p, PAGE, PROT_NONE) == 0, "mprotect");
    is(sys_madvise(p, PAGE, MADV_DONTNEED), 0, "DONTNEED of PROT_NONE");
    need(sys_mprotect(p, PAGE, RW) == 0, "mprotect");
    ok(all_bytes(p, 0, PAGE), "DONTNEED of PROT_NONE: zero when opened");
    bool good = true;
    for (int i = 1; i < 300; i++) {
        memset(p, i, 2 * PAGE);
        need(sys_madvise(p, 2 * PAGE, MADV_DONTNEED) == 0, "madvise");
        good &= all_bytes(p, 0, 2 * PAGE);
    }
    ok(good, "DONTNEED 300 times: zero each time");
    p = sys_mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    p[0] = 3;
    is(sys_madvise(p, PAGE, MADV_DONTNEED), 0, "DONTNEED of shared memory");
    is(p[0], 3, "DONTNEED of shared memory keeps it");
    is(sys_madvise(p, PAGE, MADV_REMOVE), 0, "REMOVE of shared memory");
    is(p[0], 0, "REMOVE of shared memory zeroes it");
}

static void test_free(void)
{
    char *p = map_rw(4 * PAGE);
    memset(p, 9, 4 * PAGE);
    is(sys_madvise(p, 2 * PAGE, MADV_FREE), 0, "FREE");
    ok(all_bytes(p, 9, PAGE) || all_bytes(p, 0, PAGE),
       "FREE: a page is as before or zero");
    p[PAGE] = 1;
    is(p[PAGE], 1, "FREE: a store afterwards stays");
    ok(all_bytes(p + 2 * PAGE, 9, 2 * PAGE), "FREE: the rest is kept");
}

static void test_populate(void)
{
    char *p = map_rw(8 * PAGE);
    is(sys_madvise(p, 2 * PAGE, MADV_POPULATE_READ), 0, "POPULATE_READ");
    is(sys_madvise(p + 4 * PAGE, 2 * PAGE, MADV_POPULATE_WRITE), 0,
       "POPULATE_WRITE");
    is_str(present(p, 8), "11001100", "POPULATE: those pages are present");
    ok(all_bytes(p, 0, 8 * PAGE), "POPULATE: all zero");
    memset(p, 4, PAGE);
    is(sys_madvise(p, 8 * PAGE, MADV_POPULATE_WRITE), 0, "POPULATE_WRITE: all");
    ok(all_bytes(p, 4, PAGE), "POPULATE_WRITE keeps content");
    need(sys_mprotect(p, PAGE, PROT_READ) == 0, "mprotect");
    fails(sys_madvise(p, PAGE, MADV_POPULATE_WRITE), EINVAL,
          "POPULATE_WRITE of read-only memory");
    is(sys_madvise(p, PAGE, MADV_POPULATE_READ), 0,
       "POPULATE_READ of read-only memory");
    int fd = file_make(PAGE);
    char *q = sys_mmap(NULL, 2 * PAGE, RW, MAP_SHARED, fd, 0);
    fails(sys_madvise(q, 2 * PAGE, MADV_POPULATE_READ), EFAULT,
          "POPULATE_READ beyond the end of a file");
    close(fd);
    sys_munmap(p + 4 * PAGE, PAGE);
    fails(sys_madvise(p + 3 * PAGE, 3 * PAGE, MADV_POPULATE_READ), ENOMEM,
          "POPULATE_READ over a hole");
}

static void test_splits(void)
{
    static const int on[] = {MADV_DONTFORK, MADV_DONTDUMP, MADV_WIPEONFORK};
    static const int off[] = {MADV_DOFORK, MADV_DODUMP, MADV_KEEPONFORK};
    static const char *const what[] = {"DONTFORK", "DONTDUMP", "WIPEONFORK"};
    char name[80];
    for (int i = 0; i < 3; i++) {
        char *p = map_hole(3 * PAGE);
        sys_mmap(p, 3 * PAGE, RW, ANON | MAP_FIXED, -1, 0);
        memset(p, 8, 3 * PAGE);
        need(sys_madvise(p + PAGE, PAGE, on[i]) == 0, "madvise");
        snprintf(name, sizeof name, "%s splits", what[i]);
        is_str(layout(p, 3), "rw-p:1 rw-p:1 rw-p:1", name);
        need(sys_madvise(p + PAGE, PAGE, off[i]) == 0, "madvise");
        snprintf(name, sizeof name, "%s taken back merges", what[i]);
        is_str(layout(p, 3), "rw-p:3", name);
        snprintf(name, sizeof name, "%s keeps the content", what[i]);
        ok(all_bytes(p, 8, 3 * PAGE), name);
        sys_munmap(p, 3 * PAGE);
    }
}

int main(void)
{
    test_matrix();
    test_ranges();
    test_dontneed();
    test_free();
    test_populate();
    test_splits();
    return tap_done();
}
