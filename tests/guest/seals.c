/* SPDX-License-Identifier: Apache-2.0 */
/* Seals of a memfd against mappings of it; openat2 and its RESOLVE flags. */
#include "mem.h"

#include <linux/memfd.h>
#include <linux/openat2.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x10
#endif

static int sealable(void)
{
    int fd = memfd_create("sealed", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    need(fd >= 0 && ftruncate(fd, 4 * PAGE) == 0, "memfd_create");
    return fd;
}

static long seal(int fd, int seals)
{
    return fcntl(fd, F_ADD_SEALS, seals);
}

static void test_write_seal(void)
{
    int fd = sealable();
    char *p = sys_mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0);
    char *q = sys_mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 0);
    need(GOOD(p) && GOOD(q), "mmap");
    p[0] = 'p';
    fails(seal(fd, F_SEAL_WRITE), EBUSY, "write: mapped shared");
    is(sys_mprotect(p, 4 * PAGE, PROT_READ), 0, "write: not writable now");
    fails(seal(fd, F_SEAL_WRITE), EBUSY, "write: it may become so");
    is(sys_munmap(p, PAGE), 0, "write: a part unmapped");
    fails(seal(fd, F_SEAL_WRITE), EBUSY, "write: the rest is there");
    is(sys_mremap(p + PAGE, 3 * PAGE, PAGE, 0, NULL), p + PAGE, "write: less");
    fails(seal(fd, F_SEAL_WRITE), EBUSY, "write: a page is there");
    is(sys_munmap(p + PAGE, PAGE), 0, "write: all unmapped");
    is(seal(fd, F_SEAL_WRITE), 0, "write: sealed at once");
    is(q[0], 'p', "write: a private mapping may stay");
    q[0] = 'q';
    ok(q[0] == 'q' && file_byte(fd, 0) == 'p', "write: and be written");
    fails(pwrite(fd, "x", 1, 0), EPERM, "write: no more writing");
    fails(sys_mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0), EPERM,
          "write: no writable mapping");
    char *r = sys_mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    /* Refused by Linux before 6.7. */
    ok(GOOD(r) || errno == EPERM, "write: a readable one");
    ok(!GOOD(r) || sys_mprotect(r, PAGE, RW) == -1, "write: stays so");
    ok(GOOD(sys_mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 0)),
       "write: a private one");
    fails(sys_madvise(q, PAGE, MADV_REMOVE), EACCES, "write: no holes by it");
    fails(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGE),
          EPERM, "write: no holes");
    close(fd);
}

static void test_future_seal(void)
{
    int fd = sealable();
    char *p = sys_mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0);
    need(GOOD(p), "mmap");
    if (seal(fd, F_SEAL_FUTURE_WRITE)) {
        tap_skip("future", "no F_SEAL_FUTURE_WRITE");
        return;
    }
    p[0] = 'f';
    is(file_byte(fd, 0), 'f', "future: the mapping can be written");
    fails(pwrite(fd, "x", 1, 0), EPERM, "future: the file cannot");
    fails(sys_mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0), EPERM,
          "future: nor be mapped so");
    char *r = sys_mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    ok(GOOD(r) && r[0] == 'f', "future: but to read");
    fails(sys_mprotect(r, PAGE, RW), EACCES, "future: which stays so");
    is(sys_mprotect(p, PAGE, PROT_READ), 0, "future: the old one read-only");
    is(sys_mprotect(p, PAGE, RW), 0, "future: and back");
    char *m = sys_mremap(p, 0, PAGE, MREMAP_MAYMOVE, NULL);
    ok(GOOD(m), "future: mapped once more from the old one");
    m[1] = 'm';
    is(p[1], 'm', "future: the same memory");
    is(seal(fd, F_SEAL_SHRINK), 0, "future: more seals");
    is(fcntl(fd, F_GET_SEALS), F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE,
       "future: both");
    close(fd);
}

static void test_sizes(void)
{
    int fd = sealable();
    char *p = sys_mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0);
    need(GOOD(p), "mmap");
    is(seal(fd, F_SEAL_SHRINK), 0, "sizes: no shrinking");
    fails(ftruncate(fd, PAGE), EPERM, "sizes: is refused");
    is(ftruncate(fd, 8 * PAGE), 0, "sizes: growth is not");
    is(seal(fd, F_SEAL_GROW), 0, "sizes: no growth");
    fails(ftruncate(fd, 9 * PAGE), EPERM, "sizes: is refused");
    fails(pwrite(fd, p, PAGE, 8 * PAGE), EPERM, "sizes: nor by writing");
    is(pwrite(fd, p, PAGE, 7 * PAGE), PAGE, "sizes: inside it may");
    is(seal(fd, F_SEAL_SEAL), 0, "sizes: no more seals");
    fails(seal(fd, F_SEAL_SHRINK), EPERM, "sizes: is refused");
    int plain = memfd_create("plain", 0);
    is(fcntl(plain, F_GET_SEALS), F_SEAL_SEAL, "sizes: not sealable");
    fails(seal(plain, F_SEAL_GROW), EPERM, "sizes: is refused");
    fails(seal(fd, 0x4000), EINVAL, "sizes: no such seal");
    char link[64], path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(path, link, sizeof link - 1);
    link[n > 0 ? n : 0] = 0;
    is_str(link, "/memfd:sealed (deleted)", "sizes: its name");
    int ro = open(path, O_RDONLY);
    ok(ro >= 0, "sizes: opened again");
    fails(seal(ro, F_SEAL_SHRINK), EPERM, "sizes: cannot be sealed by it");
    fails(sys_mmap(NULL, PAGE, RW, MAP_SHARED, ro, 0), EACCES,
          "sizes: nor written by it");
    close(ro), close(fd), close(plain);
}

static long open2(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
    struct open_how how = {.flags = flags, .resolve = resolve};
    long fd = syscall(SYS_openat2, dir, path, &how, sizeof how);
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    return -1;
}

static void test_openat2(void)
{
    struct open_how how[2] = {{.flags = O_RDONLY}};
    int root = open("/", O_PATH | O_DIRECTORY);
    int proc = open("/proc", O_PATH | O_DIRECTORY);
    int self = open("/proc/self", O_PATH | O_DIRECTORY);
    need(root >= 0 && proc >= 0 && self >= 0, "open");
    is(open2(self, "maps", O_RDONLY, RESOLVE_BENEATH), 0, "openat2: maps");
    is(open2(self, "exe", O_RDONLY, 0), 0, "openat2: exe");
    fails(open2(self, "exe", O_RDONLY, RESOLVE_NO_MAGICLINKS), ELOOP,
          "openat2: exe without magic");
    fails(open2(self, "exe", O_RDONLY, RESOLVE_NO_SYMLINKS), ELOOP,
          "openat2: exe without links");
    fails(open2(self, "exe", O_RDONLY, RESOLVE_BENEATH), EXDEV,
          "openat2: exe beneath");
    is(open2(self, "exe", O_PATH | O_NOFOLLOW, RESOLVE_NO_SYMLINKS), 0,
       "openat2: the link exe");
    is(open2(proc, "self/maps", O_RDONLY, RESOLVE_BENEATH), 0,
       "openat2: self beneath");
    fails(open2(proc, "self/maps", O_RDONLY, RESOLVE_NO_SYMLINKS), ELOOP,
          "openat2: self without links");
    is(open2(proc, "/self/maps", O_RDONLY, RESOLVE_IN_ROOT), 0,
       "openat2: self in a root");
    fails(open2(proc, "/self/maps", O_RDONLY, RESOLVE_BENEATH), EXDEV,
          "openat2: absolute beneath");
    fails(open2(proc, "../proc/self/maps", O_RDONLY, RESOLVE_BENEATH), EXDEV,
          "openat2: upwards beneath");
    is(open2(proc, "../../self/maps", O_RDONLY, RESOLVE_IN_ROOT), 0,
       "openat2: upwards in a root");
    fails(open2(root, "proc/self/maps", O_RDONLY, RESOLVE_NO_XDEV), EXDEV,
          "openat2: another file system");
    is(open2(AT_FDCWD, "/proc/thread-self/../../maps", O_RDONLY, 0), 0,
       "openat2: through a thread and up");
    is(open2(self, "maps", O_RDWR, 0), 0, "openat2: maps to write, by root");
    long cached = open2(self, "maps", O_RDONLY, RESOLVE_CACHED);
    ok(cached == 0 || errno == EAGAIN, "openat2: cached");
    fails(open2(self, "maps", O_RDONLY, 0x40), EINVAL, "openat2: bad resolve");
    fails(open2(self, "maps", 1UL << 40, 0), EINVAL, "openat2: bad flags");
    fails(syscall(SYS_openat2, self, "maps", how, 8), EINVAL, "openat2: short");
    fails(syscall(SYS_openat2, self, "maps", how, 1 << 20), E2BIG,
          "openat2: long");
    is(close(syscall(SYS_openat2, self, "maps", how, sizeof how)), 0,
       "openat2: longer, zero");
    how[1].flags = 1;
    fails(syscall(SYS_openat2, self, "maps", how, sizeof how), E2BIG,
          "openat2: longer, not zero");
    fails(syscall(SYS_openat2, self, "maps", BAD_PTR, sizeof *how), EFAULT,
          "openat2: of nowhere");
    fails(syscall(SYS_openat2, 999, "maps", how, sizeof *how), EBADF,
          "openat2: in none");
    how[0].flags = O_RDONLY;
    how[0].mode = 0600;
    fails(syscall(SYS_openat2, self, "maps", how, sizeof *how), EINVAL,
          "openat2: mode without creation");
    close(root), close(proc), close(self);
}

/* Through pipes and files, with and without offsets. */
static void test_pipes(void)
{
    int a[2], b[2], f = file_make(3 * PAGE), out = file_make(0);
    char buf[64];
    loff_t off = 2 * PAGE - 2, none = 0;
    need(pipe(a) == 0 && pipe(b) == 0, "pipe");
    is(splice(f, &off, a[1], NULL, 4, SPLICE_F_MOVE), 4, "pipes: splice");
    is(off, 2 * PAGE + 2, "pipes: moves the offset");
    is(tee(a[0], b[1], 3, 0), 3, "pipes: tee");
    is(read(b[0], buf, sizeof buf), 3, "pipes: copied");
    ok(memcmp(buf, "BBC", 3) == 0, "pipes: what it was");
    is(splice(a[0], NULL, out, NULL, 100, 0), 4, "pipes: splice to a file");
    is(lseek(out, 0, SEEK_CUR), 4, "pipes: moves its position");
    fails(splice(a[0], &none, out, NULL, 4, 0), ESPIPE,
          "pipes: offset of a pipe");
    fails(splice(f, BAD_PTR, a[1], NULL, 4, 0), EFAULT, "pipes: bad offset");
    fails(splice(f, NULL, a[1], NULL, 4, 0x80), EINVAL, "pipes: flags");
    fails(splice(a[0], NULL, b[1], NULL, 4, SPLICE_F_NONBLOCK), EAGAIN,
          "pipes: empty");
    fails(tee(f, b[1], 4, 0), EINVAL, "pipes: tee of a file");
    is(tee(a[0], b[1], 0, 0), 0, "pipes: tee of nothing");
    struct iovec v[3] = {{"ab", 2}, {"", 0}, {"cde", 3}};
    is(vmsplice(a[1], v, 3, SPLICE_F_GIFT), 5, "pipes: vmsplice");
    char x[2], y[8];
    struct iovec w[2] = {{x, 2}, {y, 8}};
    is(vmsplice(a[0], w, 2, 0), 5, "pipes: vmsplice out");
    ok(memcmp(x, "ab", 2) == 0 && memcmp(y, "cde", 3) == 0,
       "pipes: what it was");
    v[0].iov_base = BAD_PTR;
    fails(vmsplice(a[1], v, 1, 0), EFAULT, "pipes: vmsplice of nowhere");
    off = 0;
    is(sendfile(a[1], f, &off, 10), 10, "pipes: sendfile to a pipe");
    is(read(a[0], buf, sizeof buf), 10, "pipes: is there");
    loff_t to = PAGE;
    off = PAGE;
    is(copy_file_range(f, &off, out, &to, PAGE, 0), PAGE, "pipes: a range");
    ok(off == 2 * PAGE && to == 2 * PAGE && file_byte(out, PAGE + 9) == 'B',
       "pipes: moves both offsets");
    fails(copy_file_range(a[0], NULL, out, NULL, 4, 0), EINVAL,
          "pipes: a range of a pipe");
    /* Part of a page that is written after it was lent. */
    char *p = map_rw(PAGE);
    memcpy(p, "before", 6);
    struct iovec page = {p, 6};
    is(vmsplice(a[1], &page, 1, 0), 6, "pipes: a page lent");
    need(sys_munmap(p, PAGE) == 0, "munmap");
    memset(map_rw(PAGE), 'z', PAGE);
    ok(read(a[0], buf, 6) == 6 && memcmp(buf, "before", 6) == 0,
       "pipes: is as it was");
    close(a[0]), close(a[1]), close(b[0]), close(b[1]), close(f), close(out);
}

int main(void)
{
    test_write_seal();
    test_future_seal();
    test_sizes();
    test_openat2();
    test_pipes();
    return tap_done();
}
