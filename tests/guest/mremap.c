/* SPDX-License-Identifier: Apache-2.0 */
/* mremap: errors, growth, shrinking, moves, and the neighbours' peace. */
#include "mem.h"

#define MOVE  MREMAP_MAYMOVE
#define FIXED (MREMAP_MAYMOVE | MREMAP_FIXED)
#define KEEP  (MREMAP_MAYMOVE | MREMAP_DONTUNMAP)

/* Fills page i with first + i. */
static void fill(char *p, size_t pages, int first)
{
    for (size_t i = 0; i < pages; i++)
        memset(p + i * PAGE, first + (int) i, PAGE);
}

static bool filled(const char *p, size_t pages, int first)
{
    for (size_t i = 0; i < pages; i++)
        if (!all_bytes(p + i * PAGE, first + (int) i, PAGE))
            return false;
    return true;
}

static void test_errors(void)
{
    char *p = map_rw(8 * PAGE), *hole = map_hole(8 * PAGE);
    fill(p, 8, 1);
    fails(sys_mremap(p, PAGE, PAGE, 8, NULL), EINVAL, "unknown flag");
    fails(sys_mremap(p, PAGE, PAGE, MREMAP_FIXED, hole), EINVAL,
          "fixed without maymove");
    fails(sys_mremap(p, PAGE, PAGE, MREMAP_DONTUNMAP, NULL), EINVAL,
          "dontunmap without maymove");
    fails(sys_mremap(p, PAGE, 2 * PAGE, KEEP, NULL), EINVAL,
          "dontunmap with another size");
    fails(sys_mremap(p + 1, PAGE, PAGE, MOVE, NULL), EINVAL, "unaligned");
    fails(sys_mremap(p, PAGE, 0, MOVE, NULL), EINVAL, "new size 0");
    fails(sys_mremap(p, 0, PAGE, MOVE, NULL), EINVAL,
          "old size 0 of private memory");
    fails(sys_mremap(hole, PAGE, 2 * PAGE, MOVE, NULL), EFAULT, "a hole");
    fails(sys_mremap(hole, PAGE, PAGE, 0, NULL), EFAULT, "a hole, sizes equal");
    fails(sys_mremap(hole + 1, PAGE, PAGE, MOVE, NULL), EINVAL,
          "unaligned before a hole");
    fails(sys_mremap(NULL, PAGE, PAGE, MOVE, NULL), EFAULT, "page 0");
    fails(sys_mremap(BAD_PTR, PAGE, PAGE, MOVE, NULL), EFAULT, "at the top");
    fails(sys_mremap(p, PAGE, PAGE, FIXED, hole + 1), EINVAL,
          "unaligned new address");
    fails(sys_mremap(p, 2 * PAGE, 2 * PAGE, FIXED, p + PAGE), EINVAL,
          "old and new overlap");
    fails(sys_mremap(p, 2 * PAGE, 2 * PAGE, FIXED, p), EINVAL,
          "old and new the same");
    fails(sys_mremap(p + 4 * PAGE, PAGE, 5 * PAGE, FIXED, p), EINVAL,
          "the new range reaches into the old one");
    fails(sys_mremap(p, PAGE, PAGE, FIXED, (void *) TOP), EINVAL,
          "new address beyond user space");
    fails(sys_mremap(p, PAGE, TOP, FIXED, hole), EINVAL,
          "new size beyond user space");
    fails(sys_mremap(p, 8 * PAGE, TOP, MOVE, NULL), ENOMEM, "growth to 2^52");
    fails(sys_mremap(p, 8 * PAGE, -PAGE, MOVE, NULL), ENOMEM,
          "growth to nearly 2^64");
    is_str(layout(p, 8), "rw-p:8", "nothing changed");
    ok(filled(p, 8, 1), "no content lost");
    is_str(layout(hole, 8), "hole:8", "the hole is still one");
}

static void test_across(void)
{
    char *p = map_hole(12 * PAGE);
    sys_mmap(p, 4 * PAGE, RW, ANON | MAP_FIXED, -1, 0);
    fill(p, 4, 1);
    need(sys_mprotect(p + 2 * PAGE, 2 * PAGE, PROT_READ) == 0, "mprotect");
    fails(sys_mremap(p, 4 * PAGE, 5 * PAGE, MOVE, NULL), EFAULT,
          "growth of a range over two mappings");
    fails(sys_mremap(p, 5 * PAGE, 6 * PAGE, MOVE, NULL), EFAULT,
          "growth of a range with a hole");
    is_str(layout(p, 12), "rw-p:2 r--p:2 hole:8", "nothing changed");
    is(sys_mremap(p, 4 * PAGE, 3 * PAGE, 0, NULL), p,
       "shrinking a range over two mappings");
    is_str(layout(p, 12), "rw-p:2 r--p:1 hole:9", "unmaps its end");
    ok(filled(p, 3, 1), "the rest keeps its content");
    sys_munmap(p, 12 * PAGE);
}

static void test_in_place(void)
{
    char *p = map_hole(16 * PAGE);
    sys_mmap(p, 2 * PAGE, RW, ANON | MAP_FIXED, -1, 0);
    fill(p, 2, 1);
    is(sys_mremap(p, 2 * PAGE, 2 * PAGE, 0, NULL), p, "same size");
    is(sys_mremap(p, 2 * PAGE - 5, 2 * PAGE - 7, 0, NULL), p,
       "sizes are rounded up");
    is(sys_mremap(p, 2 * PAGE, 6 * PAGE, 0, NULL), p, "grow in place");
    is_str(layout(p, 16), "rw-p:6 hole:10", "as one mapping");
    ok(filled(p, 2, 1), "old content stays");
    ok(all_bytes(p + 2 * PAGE, 0, 4 * PAGE), "new memory is zero");
    fill(p, 6, 1);
    is(sys_mremap(p, 6 * PAGE, 3 * PAGE, 0, NULL), p, "shrink");
    is_str(layout(p, 16), "rw-p:3 hole:13", "the end is unmapped");
    is(sys_mremap(p, 3 * PAGE, 6 * PAGE, MOVE, NULL), p,
       "grow again, moving allowed but not needed");
    ok(all_bytes(p + 3 * PAGE, 0, 3 * PAGE), "what comes back is zero");
    ok(filled(p, 3, 1), "what stayed has its content");
    is(sys_mremap(p + 4 * PAGE, 2 * PAGE, 4 * PAGE, 0, NULL), p + 4 * PAGE,
       "grow from the mapping's middle to beyond its end");
    is_str(layout(p, 16), "rw-p:8 hole:8", "still one mapping");

    sys_mmap(p + 8 * PAGE, PAGE, PROT_READ, ANON | MAP_FIXED, -1, 0);
    fails(sys_mremap(p, 8 * PAGE, 9 * PAGE, 0, NULL), ENOMEM,
          "growth into a neighbour");
    fails(sys_mremap(p, 4 * PAGE, 5 * PAGE, 0, NULL), ENOMEM,
          "growth in the middle of a mapping");
    is_str(layout(p, 16), "rw-p:8 r--p:1 hole:7", "nothing changed");
    ok(filled(p, 3, 1), "no content lost");
    sys_munmap(p, 16 * PAGE);
}

static void test_move(void)
{
    char *p = map_hole(16 * PAGE);
    sys_mmap(p, 4 * PAGE, RW, ANON | MAP_FIXED, -1, 0);
    sys_mmap(p + 4 * PAGE, PAGE, PROT_READ, ANON | MAP_FIXED, -1, 0);
    fill(p, 4, 1);
    char *q = sys_mremap(p, 4 * PAGE, 8 * PAGE, MOVE, NULL);
    ok(GOOD(q) && q != p, "growth that must move");
    ok(filled(q, 4, 1), "content has moved along");
    ok(all_bytes(q + 4 * PAGE, 0, 4 * PAGE), "the rest is zero");
    is_str(layout(p, 5), "hole:4 r--p:1", "the old place is a hole");
    is_str(layout(q, 8), "rw-p:8", "the new one is one mapping");
    fill(q, 8, 11);

    is(sys_mremap(q + 2 * PAGE, 4 * PAGE, 4 * PAGE, FIXED, p), p,
       "the middle to a fixed place");
    is_str(layout(q, 8), "rw-p:2 hole:4 rw-p:2", "leaves a hole behind");
    ok(filled(p, 4, 13), "content at the fixed place");
    ok(filled(q, 2, 11) && filled(q + 6 * PAGE, 2, 17), "both sides stay");
    char *over = map_rw(6 * PAGE);
    fill(over, 6, 31);
    is(sys_mremap(p, 4 * PAGE, 4 * PAGE, FIXED, over + PAGE), over + PAGE,
       "fixed over a live mapping");
    ok(filled(over, 1, 31) && filled(over + PAGE, 4, 13) &&
           filled(over + 5 * PAGE, 1, 36),
       "replaces exactly that part");
    sys_munmap(over, 6 * PAGE);
    over = map_rw(6 * PAGE);
    fill(over, 6, 41);
    is(sys_mremap(over, 6 * PAGE, 2 * PAGE, FIXED, p), p,
       "fixed and shrinking");
    ok(filled(p, 2, 41), "content of the part");
    is_str(layout(over, 6), "hole:6", "all of the old range is gone");
    is_str(layout(p, 5), "rw-p:2 hole:2 r--p:1", "only two pages arrived");
    sys_munmap(p, 16 * PAGE);
}

static void test_dontunmap(void)
{
    char *p = map_rw(4 * PAGE);
    fill(p, 4, 1);
    char *q = sys_mremap(p, 4 * PAGE, 4 * PAGE, KEEP, NULL);
    ok(GOOD(q) && q != p, "dontunmap: elsewhere");
    ok(filled(q, 4, 1), "dontunmap: content has moved");
    is_str(layout(p, 4), "rw-p:4", "dontunmap: the old mapping stays");
    ok(all_bytes(p, 0, 4 * PAGE), "dontunmap: and reads zero");
    fill(p, 4, 21);
    ok(filled(p, 4, 21) && filled(q, 4, 1), "dontunmap: both are separate");
    char *hole = map_hole(4 * PAGE);
    is(sys_mremap(q, 4 * PAGE, 4 * PAGE, KEEP | MREMAP_FIXED, hole), hole,
       "dontunmap to a fixed place");
    ok(filled(hole, 4, 1) && all_bytes(q, 0, 4 * PAGE),
       "dontunmap: content there, zero here");
    char *s = sys_mmap(NULL, 2 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fill(s, 2, 5);
    q = sys_mremap(s, 2 * PAGE, 2 * PAGE, KEEP, NULL);
    ok(GOOD(q) && filled(q, 2, 5), "dontunmap of shared memory");
    ok(filled(s, 2, 5), "dontunmap of shared memory: the old place sees it");
    q[0] = 66;
    is(s[0], 66, "dontunmap of shared memory: both are the same");
}

static void test_shared(void)
{
    char *s = sys_mmap(NULL, 4 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    fill(s, 4, 1);
    char *d = sys_mremap(s, 0, 2 * PAGE, MOVE, NULL);
    ok(GOOD(d) && d != s, "old size 0 of shared memory duplicates");
    ok(filled(d, 2, 1), "the duplicate has the content");
    d[PAGE] = 55;
    is(s[PAGE], 55, "and is the same memory");
    is(sys_munmap(s, 4 * PAGE), 0, "unmap the original");
    is(d[PAGE], 55, "the duplicate lives on");

    int fd = file_make(6 * PAGE);
    char *p = map_hole(8 * PAGE);
    sys_mmap(p, 2 * PAGE, RW, MAP_SHARED | MAP_FIXED, fd, PAGE);
    is(sys_mremap(p, 2 * PAGE, 4 * PAGE, 0, NULL), p, "a file grows in place");
    ok(p[0] == 'B' && p[2 * PAGE] == 'D' && p[3 * PAGE] == 'E',
       "and shows the file further on");
    char *q = sys_mremap(p + PAGE, 2 * PAGE, 4 * PAGE, MOVE, NULL);
    ok(GOOD(q) && q[0] == 'C' && q[3 * PAGE] == 'F', "a file's middle moves");
    q[3 * PAGE] = '!';
    is(file_byte(fd, 5 * PAGE), '!', "a store there is in the file");
    is_str(layout(p, 4), "rw-s:1 hole:2 rw-s:1", "and leaves a hole");
    close(fd);
}

static void test_limits(void)
{
    struct rlimit old;
    char *p = map_rw(MIB), *hole = map_hole(4 * MIB);
    memset(p, 3, MIB);
    need(getrlimit(RLIMIT_AS, &old) == 0, "getrlimit");
    limit_set(RLIMIT_AS, 4 * MIB);
    fails(sys_mremap(p, MIB, 16 * MIB, MOVE, NULL), ENOMEM,
          "growth against RLIMIT_AS");
    is(sys_mremap(p, MIB, MIB, FIXED, hole), hole,
       "a move of the same size is no growth");
    limit_set(RLIMIT_AS, old.rlim_cur);
    ok(all_bytes(hole, 3, MIB), "content is there");
    is_str(layout(p, 1), "hole:1", "the old place is empty");
}

static void test_big(void)
{
    char *p = map_aligned(4 * BLOCK);
    for (size_t i = 0; i < 4 * BLOCK; i += PAGE)
        p[i] = i / PAGE % 251;
    char *q =
        sys_mremap(p + PAGE, 3 * BLOCK, 3 * BLOCK, FIXED, map_hole(3 * BLOCK));
    bool good = GOOD(q);
    for (size_t i = 0; good && i < 3 * BLOCK; i += PAGE)
        good &= q[i] == (char) ((i / PAGE + 1) % 251);
    ok(good, "6 MiB moved to another place in their blocks");
    is(p[0], 0, "the page below stays");
    is(p[3 * BLOCK + PAGE], (char) ((3 * BLOCK / PAGE + 1) % 251),
       "the page above stays");
    is_str(access_of(p + PAGE), "--", "the first page moved");
    is_str(access_of(p + 3 * BLOCK), "--", "and the last");
    q = sys_mremap(q, 3 * BLOCK, GIB, MOVE, NULL);
    ok(GOOD(q) && q[0] == 1 && q[GIB - 1] == 0, "growth to 1 GiB");
    is(sys_mremap(q, GIB, PAGE, 0, NULL), q, "and shrinking to a page");
    is(q[0], 1, "which keeps its content");
    is_str(access_of(q + PAGE), "--", "the rest is gone");
}

static void test_lazy(void)
{
    char *p = map_rw(8 * PAGE);
    char *q = sys_mremap(p, 8 * PAGE, 64 * PAGE, FIXED, map_hole(64 * PAGE));
    ok(GOOD(q) && all_bytes(q, 0, 64 * PAGE), "untouched memory moves as zero");
    p = sys_mmap(NULL, 4 * PAGE, PROT_NONE, ANON, -1, 0);
    q = sys_mremap(p, 4 * PAGE, 4 * PAGE, FIXED, map_hole(4 * PAGE));
    is_str(access_of(q), "--", "PROT_NONE moves as PROT_NONE");
    is(sys_mprotect(q, 4 * PAGE, RW), 0, "and can be opened");
    ok(all_bytes(q, 0, 4 * PAGE), "to zero");
}

int main(void)
{
    probe_open();
    test_errors();
    test_across();
    test_in_place();
    test_move();
    test_dontunmap();
    test_shared();
    test_limits();
    test_big();
    test_lazy();
    return tap_done();
}
