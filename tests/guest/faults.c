/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences that broke systems of this kind, as small as they can be. */
#include "mem.h"

#include <signal.h>

#define CHUNK (64 * KIB)

/* A file mapping in a hole between anonymous ones, whoever placed it. */
static void test_file_in_hole(void)
{
    char *m[3];
    for (int i = 0; i < 3; i++) {
        m[i] = map_rw(CHUNK);
        memset(m[i], i + 1, CHUNK);
    }
    int fd = file_make(CHUNK);
    need(sys_munmap(m[1], CHUNK) == 0, "munmap");
    char *p = sys_mmap(NULL, CHUNK, RW, MAP_SHARED, fd, 0);
    ok(GOOD(p) && p[0] == 'A', "a file mapped after a hole was made");
    p[PAGE] = '!';
    is(sys_munmap(p, CHUNK), 0, "and unmapped");
    ok(all_bytes(m[0], 1, CHUNK) && all_bytes(m[2], 3, CHUNK),
       "the anonymous neighbours live");
    ok(file_byte(fd, 0) == 'A' && file_byte(fd, PAGE) == '!' &&
           file_byte(fd, 2 * PAGE) == 'C',
       "the file is whole");
    bool zero = true;
    for (int i = 0; i < 50; i++) {
        char *q = map_rw(CHUNK);
        zero &= all_bytes(q, 0, CHUNK);
        memset(q, 0xff, CHUNK);
        need(sys_munmap(q, CHUNK) == 0, "munmap");
    }
    ok(zero, "50 mappings afterwards are zero");
    ok(file_byte(fd, 0) == 'A' && file_byte(fd, CHUNK - 1) == 'P',
       "and the file is still whole");
    close(fd);
}

/* Touch, unmap part, fault beside it and again in its place. */
static void test_fault_over_retired(void)
{
    char *p = map_aligned(2 * BLOCK);
    bool good = true;
    for (int i = 0; i < 200; i++) {
        char *q = p + (i * 37 % 900) * PAGE;
        memset(q, i | 1, 8 * PAGE);
        need(sys_munmap(q + 2 * PAGE, 4 * PAGE) == 0, "munmap");
        p[(i * 53 % 1000) * PAGE % (2 * BLOCK)] += 0;
        good &= q[PAGE] == (char) (i | 1) && q[6 * PAGE] == (char) (i | 1);
        need(sys_mmap(q + 2 * PAGE, 4 * PAGE, RW, ANON | MAP_FIXED, -1, 0) ==
                 q + 2 * PAGE,
             "mmap");
        good &= all_bytes(q + 2 * PAGE, 0, 4 * PAGE);
        if (i % 10 == 9)
            need(sys_madvise(p, 2 * BLOCK, MADV_DONTNEED) == 0, "madvise");
    }
    ok(good, "faults in blocks with pages just unmapped");
    sys_munmap(p, 2 * BLOCK);
}

/* Buffers of signal calls on pages nobody touched, beside mapping. */
static void test_signal_buffers(void)
{
    bool good = true;
    for (int i = 0; i < 500; i++) {
        char *p = map_rw(4 * PAGE);
        sigset_t *set = (sigset_t *) (p + PAGE);
        need(syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, set, 8) == 0,
             "rt_sigprocmask");
        need(syscall(SYS_rt_sigaction, SIGUSR1, NULL, p + 2 * PAGE, 8) == 0,
             "rt_sigaction");
        need(syscall(SYS_sigaltstack, NULL, p + 3 * PAGE) == 0, "sigaltstack");
        good &= *(uint64_t *) set == 0;
        need(sys_munmap(p, 4 * PAGE) == 0, "munmap");
    }
    ok(good, "500 signal calls on untouched pages");
    fails(syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, BAD_PTR, 8), EFAULT,
          "rt_sigprocmask to nowhere");
    char *ro = sys_mmap(NULL, PAGE, PROT_READ, ANON, -1, 0);
    fails(syscall(SYS_rt_sigprocmask, SIG_SETMASK, NULL, ro, 8), EFAULT,
          "rt_sigprocmask to read-only memory");
    is(syscall(SYS_rt_sigprocmask, SIG_SETMASK, ro, NULL, 8), 0,
       "rt_sigprocmask from it");
}

/* A failing call has changed nothing. */
static void test_no_change(void)
{
    char *p = map_hole(16 * PAGE), *far = map_rw(4 * PAGE);
    sys_mmap(p, 16 * PAGE, RW, ANON | MAP_FIXED, -1, 0);
    for (int i = 0; i < 16; i++)
        memset(p + i * PAGE, i + 1, PAGE);
    memset(far, 77, 4 * PAGE);
    int fd = file_make(PAGE);
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    int w = open(name, O_WRONLY), pair[2];
    need(pipe(pair) == 0, "pipe");
    int f = MAP_FIXED;
    fails(sys_mmap(p, 4 * PAGE, RW, MAP_SHARED | f, w, 0), EACCES,
          "fixed map of a write-only file");
    fails(sys_mmap(p, 4 * PAGE, RW, MAP_PRIVATE | f, 9999, 0), EBADF,
          "fixed map of a bad descriptor");
    fails(sys_mmap(p, 4 * PAGE, PROT_READ, MAP_PRIVATE | f, pair[0], 0), ENODEV,
          "fixed map of a pipe");
    fails(sys_mmap(p, 1UL << 47, RW, ANON | f, -1, 0) == MAP_FAILED ? -1 : 0,
          ENOMEM, "fixed map of 2^47");
    fails(sys_mmap(p, 4 * PAGE, RW, f | MAP_ANONYMOUS, -1, 0), EINVAL,
          "fixed map of no type");
    fails(sys_mmap(p, BLOCK, RW, ANON | f | MAP_HUGETLB, -1, 0),
          errno == EINVAL ? EINVAL : ENOMEM, "fixed map of huge pages");
    fails(sys_mremap(far, 4 * PAGE, 1UL << 47, MREMAP_MAYMOVE | MREMAP_FIXED,
                     p) == MAP_FAILED
              ? -1
              : 0,
          EINVAL, "fixed move that grows to 2^47");
    fails(sys_mremap(p + 64 * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
                     (void *) 1),
          EINVAL, "fixed move to an odd address");
    bool kept = true;
    for (int i = 0; i < 16; i++)
        kept &= all_bytes(p + i * PAGE, i + 1, PAGE);
    ok(kept, "the memory that was aimed at is as it was");
    ok(all_bytes(far, 77, 4 * PAGE), "and so is what was to move");
    is_str(layout(p, 16), "rw-p:16", "in maps too");
    close(fd), close(w), close(pair[0]), close(pair[1]);
}

/* With all descriptors used up, mappings of files and memory still work. */
static void test_no_descriptors(void)
{
    struct rlimit old;
    need(getrlimit(RLIMIT_NOFILE, &old) == 0, "getrlimit");
    int fd = file_make(4 * PAGE);
    char *p = map_rw(8 * PAGE);
    memset(p, 9, 8 * PAGE);
    limit_set(RLIMIT_NOFILE, 0);
    fails(dup(fd), EMFILE, "no descriptor is left");
    is(sys_mmap(p + PAGE, 2 * PAGE, RW, MAP_SHARED | MAP_FIXED, fd, PAGE),
       p + PAGE, "fixed map of a file over a live mapping");
    ok(p[PAGE] == 'B' && p[2 * PAGE] == 'C' && p[3 * PAGE] == 9,
       "shows the file, and the neighbour stays");
    char *s = sys_mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ok(GOOD(s) && *s == 0, "shared memory");
    is(sys_mremap(p + PAGE, 2 * PAGE, PAGE, 0, NULL), p + PAGE, "mremap");
    is(msync(p + PAGE, PAGE, MS_SYNC), 0, "msync");
    is(sys_madvise(p + PAGE, PAGE, MADV_DONTNEED), 0, "madvise");
    is(p[PAGE], 'B', "the file's page is there");
    limit_set(RLIMIT_NOFILE, old.rlim_cur);
    sys_munmap(p, 8 * PAGE);
    close(fd);
}

int main(void)
{
    probe_open();
    test_file_in_hole();
    test_fault_over_retired();
    test_signal_buffers();
    test_no_change();
    test_no_descriptors();
    return tap_done();
}
