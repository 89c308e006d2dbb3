/* SPDX-License-Identifier: Apache-2.0 */
/* File mappings: content, sharing, ends of files, truncation, neighbours. */
#include "mem.h"

static void test_private(void)
{
    int fd = file_make(4 * PAGE);
    char *p = sys_mmap(NULL, 4 * PAGE, RW, MAP_PRIVATE, fd, 0);
    ok(all_bytes(p, 'A', PAGE) && all_bytes(p + 3 * PAGE, 'D', PAGE),
       "private: shows the file");
    p[PAGE] = 'x';
    is(p[PAGE], 'x', "private: a store is seen here");
    is(file_byte(fd, PAGE), 'B', "private: not in the file");
    is(p[PAGE + 1], 'B', "private: the rest of the page is the file's");
    need(pwrite(fd, "y", 1, 2 * PAGE) == 1, "pwrite");
    is(p[2 * PAGE], 'y', "private: a write is seen in an unwritten page");
    need(pwrite(fd, "z", 1, PAGE + 1) == 1, "pwrite");
    is(p[PAGE + 1], 'B', "private: not in a written one");
    is(sys_madvise(p, 4 * PAGE, MADV_DONTNEED), 0, "private: DONTNEED");
    ok(p[PAGE] == 'B' && p[PAGE + 1] == 'z', "private: the file is back");
    close(fd);
    p[0] = 'q';
    ok(p[0] == 'q' && p[3 * PAGE] == 'D', "private: outlives the descriptor");
    sys_munmap(p, 4 * PAGE);
}

static void test_shared(void)
{
    int fd = file_make(4 * PAGE);
    char *p = sys_mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0), c[4];
    p[PAGE] = 'x';
    is(file_byte(fd, PAGE), 'x', "shared: a store is seen by pread");
    need(pwrite(fd, "y", 1, 2 * PAGE) == 1, "pwrite");
    is(p[2 * PAGE], 'y', "shared: a write is seen in the mapping");
    need(lseek(fd, 3 * PAGE, SEEK_SET) == (off_t) (3 * PAGE), "lseek");
    p[3 * PAGE + 1] = 'w';
    need(read(fd, c, 2) == 2, "read");
    ok(c[0] == 'D' && c[1] == 'w', "shared: a store is seen by read");
    is(sys_madvise(p, 4 * PAGE, MADV_DONTNEED), 0, "shared: DONTNEED");
    ok(p[PAGE] == 'x' && p[2 * PAGE] == 'y', "shared: keeps everything");
    p[0] = 'm';
    is(sys_munmap(p, 4 * PAGE), 0, "shared: munmap");
    is(file_byte(fd, 0), 'm', "shared: the store is in the file");
    p = sys_mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0);
    close(fd);
    p[1] = 'n';
    ok(p[0] == 'm' && p[1] == 'n', "shared: outlives the descriptor");
    sys_munmap(p, PAGE);
}

static void test_two(void)
{
    int fd = file_make(4 * PAGE);
    char *a = sys_mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0);
    char *b = sys_mmap(NULL, 2 * PAGE, RW, MAP_SHARED, fd, 2 * PAGE);
    char *r = sys_mmap(NULL, 4 * PAGE, PROT_READ, MAP_SHARED, fd, 0);
    char *v = sys_mmap(NULL, 4 * PAGE, RW, MAP_PRIVATE, fd, 0);
    is(b[0], 'C', "two: an offset of two pages");
    a[2 * PAGE] = '1';
    is(b[0], '1', "two: a store is seen in the other");
    b[PAGE] = '2';
    is(a[3 * PAGE], '2', "two: and the other way");
    is(r[3 * PAGE], '2', "two: in a read-only one");
    is(v[3 * PAGE], '2', "two: in a private one");
    v[3 * PAGE] = '3';
    ok(a[3 * PAGE] == '2' && r[3 * PAGE] == '2', "two: not from a private one");
    bool good = true;
    for (int i = 0; i < 1000; i++) {
        a[2 * PAGE + 8] = i;
        good &= b[8] == (char) i;
        b[9] = i;
        good &= r[2 * PAGE + 9] == (char) i;
    }
    ok(good, "two: 1000 stores back and forth");
    sys_munmap(a, 4 * PAGE);
    b[1] = '4';
    ok(r[2 * PAGE + 1] == '4' && file_byte(fd, 2 * PAGE + 1) == '4',
       "two: after munmap of the first the others go on");
    close(fd);
}

static void test_offsets(void)
{
    int fd = file_make(40 * PAGE);
    bool good = true;
    for (size_t i = 0; i < 40; i++) {
        char *p = sys_mmap(NULL, PAGE, RW, i % 2 ? MAP_SHARED : MAP_PRIVATE, fd,
                           i * PAGE);
        good &= GOOD(p) && all_bytes(p, 'A' + i % 26, PAGE);
        p[0] = '#';
        sys_munmap(p, PAGE);
    }
    ok(good, "offsets: each of 40 pages alone");
    for (size_t i = 0; i < 40; i++)
        good &= file_byte(fd, i * PAGE) == (i % 2 ? '#' : (int) ('A' + i % 26));
    ok(good, "offsets: stores reach the file where shared");
    char *p = map_hole(40 * PAGE);
    for (size_t i = 0; i < 40; i++)
        need(GOOD(sys_mmap(p + i * PAGE, PAGE, PROT_READ,
                           MAP_PRIVATE | MAP_FIXED, fd, (39 - i) * PAGE)),
             "mmap");
    for (size_t i = 0; i < 40; i++)
        good &= p[i * PAGE + 1] == (char) ('A' + (39 - i) % 26);
    ok(good, "offsets: 40 pages side by side in reverse");
    close(fd);
    sys_munmap(p, 40 * PAGE);
    fd = file_make(0);
    need(ftruncate(fd, 5 * GIB) == 0, "ftruncate");
    need(pwrite(fd, "far", 3, 4 * GIB + 3 * PAGE) == 3, "pwrite");
    p = sys_mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 4 * GIB + PAGE);
    ok(GOOD(p) && memcmp(p + 2 * PAGE, "far", 3) == 0, "offsets: beyond 4 GiB");
    is(p[0], 0, "offsets: a hole in the file reads zero");
    sys_munmap(p, 4 * PAGE);
    close(fd);
}

static void test_ends(void)
{
    int fd = file_make(PAGE + 100);
    char *p = sys_mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0);
    ok(all_bytes(p + PAGE, 'B', 100) &&
           all_bytes(p + PAGE + 100, 0, PAGE - 100),
       "end: the last page's tail is zero");
    p[PAGE + 200] = 't';
    struct stat st;
    need(fstat(fd, &st) == 0, "fstat");
    is(st.st_size, PAGE + 100, "end: a store in the tail does not extend");
    is_str(access_of(p + 2 * PAGE), "--", "end: no access to pages beyond");
    is_str(layout(p, 4), "rw-s:4", "end: though they are mapped");
    need(ftruncate(fd, 3 * PAGE) == 0, "ftruncate");
    is_str(access_of(p + 2 * PAGE), "rw", "end: access once the file grows");
    ok(all_bytes(p + 2 * PAGE, 0, PAGE), "end: zero there");
    p[2 * PAGE] = 'g';
    is(file_byte(fd, 2 * PAGE), 'g', "end: and shared");
    need(pwrite(fd, "end", 3, 3 * PAGE) == 3, "pwrite");
    ok(memcmp(p + 3 * PAGE, "end", 3) == 0, "end: write extends it further");
    sys_munmap(p, 4 * PAGE);
    p = sys_mmap(NULL, 2 * PAGE, RW, MAP_PRIVATE, fd, 3 * PAGE);
    ok(memcmp(p, "end", 3) == 0 && all_bytes(p + 3, 0, PAGE - 3),
       "end: private tail is zero");
    memset(p, 'k', PAGE);
    ok(all_bytes(p, 'k', PAGE), "end: and can be written");
    is_str(access_of(p + PAGE), "--", "end: but not the page beyond");
    close(fd);
}

static void test_truncate(void)
{
    int fd = file_make(4 * PAGE);
    char *p = sys_mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0);
    char *v = sys_mmap(NULL, 4 * PAGE, RW, MAP_PRIVATE, fd, 0);
    memset(p, 's', 4 * PAGE);
    memset(v + 2 * PAGE, 'v', PAGE);
    need(ftruncate(fd, PAGE + 10) == 0, "ftruncate");
    is_str(access_of(p), "rw", "truncate: the first page stays");
    ok(all_bytes(p + PAGE, 's', 10) && all_bytes(p + PAGE + 10, 0, PAGE - 10),
       "truncate: the cut page's tail is zero");
    is_str(access_of(p + 2 * PAGE), "--", "truncate: shared page gone");
    is_str(access_of(v + 2 * PAGE), "--", "truncate: private copy gone too");
    need(ftruncate(fd, 4 * PAGE) == 0, "ftruncate");
    ok(all_bytes(p + 2 * PAGE, 0, 2 * PAGE), "truncate: back as zero");
    is(v[2 * PAGE], 0, "truncate: the private page is back as zero");
    need(ftruncate(fd, 0) == 0, "ftruncate");
    fails(open(p, O_RDONLY), EFAULT, "truncate: a path there is EFAULT");
    fails(syscall(SYS_futex, p, 1, 1, NULL), EFAULT,
          "truncate: a futex there is EFAULT");
    fails(syscall(SYS_clock_gettime, 1, p), EFAULT,
          "truncate: a result there is EFAULT");
    fails(stat("/", (void *) p), EFAULT, "truncate: stat there is EFAULT");
    is(sys_munmap(p, 4 * PAGE), 0, "truncate: munmap");
    close(fd);
}

/* An anonymous mapping on either side, the file in the hole between. */
static void test_in_hole(void)
{
    char *a = map_rw(192 * KIB);
    memset(a, 1, 192 * KIB);
    int fd = file_make(64 * KIB);
    need(sys_munmap(a + 64 * KIB, 64 * KIB) == 0, "munmap");
    char *p = sys_mmap(a + 64 * KIB, 64 * KIB, RW, MAP_SHARED, fd, 0);
    is(p, a + 64 * KIB, "hole: the file lands in it");
    p[PAGE] = 'h';
    is(sys_munmap(p, 64 * KIB), 0, "hole: munmap of the file");
    ok(all_bytes(a, 1, 64 * KIB) && all_bytes(a + 128 * KIB, 1, 64 * KIB),
       "hole: the neighbours live");
    ok(file_byte(fd, PAGE) == 'h' && file_byte(fd, 0) == 'A',
       "hole: the file lives");
    char *q = sys_mmap(a + 64 * KIB, 64 * KIB, RW, ANON, -1, 0);
    ok(q == a + 64 * KIB && all_bytes(q, 0, 64 * KIB),
       "hole: memory there is zero");
    memset(q, 2, 64 * KIB);
    is(file_byte(fd, 0), 'A', "hole: and not the file");
    p = sys_mmap(q, 64 * KIB, RW, MAP_PRIVATE | MAP_FIXED, fd, 0);
    ok(p == q && p[PAGE] == 'h', "hole: the file fixed over it");
    sys_munmap(a, 192 * KIB);
    close(fd);
}

int main(void)
{
    probe_open();
    test_private();
    test_shared();
    test_two();
    test_offsets();
    test_ends();
    test_truncate();
    test_in_hole();
    return tap_done();
}
