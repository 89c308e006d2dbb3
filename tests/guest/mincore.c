/* SPDX-License-Identifier: Apache-2.0 */
/* mincore is exact for anonymous memory; msync with its flags and errors. */
#include "mem.h"

static void test_mincore_errors(void)
{
    unsigned char vec[16];
    char *p = map_hole(4 * PAGE);
    sys_mmap(p, PAGE, RW, ANON | MAP_FIXED, -1, 0);
    sys_mmap(p + 2 * PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0);
    fails(mincore(p + 1, PAGE, vec), EINVAL, "mincore: unaligned");
    fails(mincore(p, 3 * PAGE, vec), ENOMEM, "mincore: a hole");
    fails(mincore(p + PAGE, PAGE, vec), ENOMEM, "mincore: only a hole");
    fails(mincore(p, -1UL, vec), ENOMEM, "mincore: length ~0");
    fails(mincore(BAD_PTR, PAGE, vec), ENOMEM, "mincore: at the top");
    fails(mincore(p, PAGE, NULL), EFAULT, "mincore: no vector");
    fails(mincore(p, PAGE, BAD_PTR), EFAULT, "mincore: vector at the top");
    fails(mincore(p + 1, PAGE, NULL), EINVAL, "mincore: unaligned first");
    is(mincore(p, 0, vec), 0, "mincore: nothing");
    is(mincore(p, 1, vec), 0, "mincore: length rounds up");
    is(vec[0] & 1, 0, "mincore: absent");
    sys_munmap(p, 4 * PAGE);
}

static void test_mincore(void)
{
    char *p = map_rw(16 * PAGE);
    is_str(present(p, 16), "0000000000000000", "fresh memory is absent");
    p[3 * PAGE] = 1;
    p[9 * PAGE + 5] = 1;
    is_str(present(p, 16), "0001000001000000", "a store makes a page present");
    volatile char c = p[6 * PAGE];
    (void) c;
    is_str(present(p, 16), "0001001001000000", "a load does as well");
    is(sys_madvise(p + 3 * PAGE, PAGE, MADV_DONTNEED), 0, "dontneed");
    is_str(present(p, 16), "0000001001000000", "makes it absent");
    is(sys_munmap(p + 9 * PAGE, PAGE), 0, "unmap a present page");
    sys_mmap(p + 9 * PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0);
    is_str(present(p, 16), "0000001000000000", "and map it: absent");
    need(sys_mprotect(p, 16 * PAGE, PROT_READ) == 0, "mprotect");
    is_str(present(p, 16), "0000001000000000", "mprotect changes nothing");
    need(sys_mprotect(p, 16 * PAGE, PROT_NONE) == 0, "mprotect");
    is_str(present(p, 16), "0000001000000000", "PROT_NONE neither");
    sys_munmap(p, 16 * PAGE);

    unsigned char vec[4] = {9, 9, 9, 9};
    p = map_rw(4 * PAGE);
    need(mincore(p, 2 * PAGE, vec) == 0, "mincore");
    ok(vec[2] == 9 && vec[3] == 9, "only as many bytes as pages are written");
    unsigned char *lazy = (unsigned char *) map_rw(PAGE);
    is(mincore(p, 4 * PAGE, lazy), 0, "the vector itself may be untouched");
    is(mincore(lazy, PAGE, lazy), 0, "or the very page asked about");
    sys_munmap(p, 4 * PAGE);

    p = sys_mmap(NULL, 4 * PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    is_str(present(p, 4), "0000", "shared memory: absent");
    p[PAGE] = 1;
    is_str(present(p, 4), "0100", "shared memory: touched");
    sys_munmap(p, 4 * PAGE);
    int fd = file_make(2 * PAGE);
    p = sys_mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    is_str(present(p, 2), "11", "a file in the page cache is present");
    sys_munmap(p, 2 * PAGE);
    close(fd);
}

static void test_wide(void)
{
    static unsigned char vec[4096];
    char *p = map_rw(4096 * PAGE);
    for (size_t i = 0; i < 4096; i += 512)
        p[i * PAGE + PAGE] = 1;
    is(mincore(p, 4096 * PAGE, vec), 0, "16 MiB in one call");
    bool want = true;
    for (size_t i = 0; i < 4096; i += 512)
        want &= vec[i + 1] & 1;
    ok(want, "all touched pages are present");
    sys_munmap(p, 4096 * PAGE);
}

static void test_msync(void)
{
    int fd = file_make(4 * PAGE);
    char *p = map_hole(6 * PAGE);
    sys_mmap(p, 4 * PAGE, RW, MAP_SHARED | MAP_FIXED, fd, 0);
    p[0] = 'x';
    is(msync(p, 4 * PAGE, MS_SYNC), 0, "msync: sync");
    is(msync(p, 4 * PAGE, MS_ASYNC), 0, "msync: async");
    is(msync(p, 4 * PAGE, MS_INVALIDATE), 0, "msync: invalidate");
    is(msync(p, 4 * PAGE, MS_SYNC | MS_INVALIDATE), 0, "msync: both");
    is(msync(p, 4 * PAGE, 0), 0, "msync: no flag");
    fails(msync(p, 4 * PAGE, MS_SYNC | MS_ASYNC), EINVAL,
          "msync: sync and async");
    fails(msync(p, 4 * PAGE, 8), EINVAL, "msync: unknown flag");
    fails(msync(p + 1, PAGE, MS_SYNC), EINVAL, "msync: unaligned");
    is(msync(p, 0, MS_SYNC), 0, "msync: nothing");
    is(msync(p, 1, MS_SYNC), 0, "msync: one byte");
    fails(msync(p, 6 * PAGE, MS_SYNC), ENOMEM, "msync: over a hole");
    fails(msync(p + 4 * PAGE, PAGE, MS_SYNC), ENOMEM, "msync: a hole");
    fails(msync(p, -PAGE, MS_SYNC), ENOMEM, "msync: wraps");
    is(file_byte(fd, 0), 'x', "msync: the store is in the file");
    mlock(p, PAGE);
    fails(msync(p, PAGE, MS_INVALIDATE), EBUSY, "msync: invalidate of locked");
    is(msync(p, PAGE, MS_SYNC), 0, "msync: sync of locked");
    char *q = map_rw(PAGE);
    is(msync(q, PAGE, MS_SYNC), 0, "msync: anonymous memory");
    is_str(present(q, 1), "0", "msync: leaves it untouched");
    close(fd);
}

int main(void)
{
    test_mincore_errors();
    test_mincore();
    test_wide();
    test_msync();
    return tap_done();
}
