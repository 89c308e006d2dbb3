/* SPDX-License-Identifier: Apache-2.0 */
/* open, read, write and the like: results, offsets, errors, short counts. */
#include "mem.h"

#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/uio.h>

static char path[256];
static int pair[2];
static void *volatile null; /* which no tool sees through */

/* A buffer whose first `room` bytes are accessible and the next are not. */
static char *cliff(size_t room)
{
    char *p = map_rw(2 * PAGE);
    need(sys_mprotect(p + PAGE, PAGE, PROT_NONE) == 0, "mprotect");
    return p + PAGE - room;
}

static void test_open(void)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0640);
    ok(fd > 2, "create");
    fails(open(path, O_RDWR | O_CREAT | O_EXCL, 0640), EEXIST, "create again");
    struct stat st;
    ok(fstat(fd, &st) == 0 && (st.st_mode & 07777) == 0640, "has the mode");
    is(write(fd, "hello, world", 12), 12, "write");
    int r = open(path, O_RDONLY);
    fails(write(r, "x", 1), EBADF, "write to a read-only descriptor");
    int w = open(path, O_WRONLY);
    char c[16];
    fails(read(w, c, 1), EBADF, "read from a write-only one");
    int a = open(path, O_WRONLY | O_APPEND);
    is(write(a, "!", 1), 1, "append");
    is(lseek(a, 0, SEEK_CUR), 13, "append moves to the end");
    is(pread(r, c, 16, 7), 6, "pread");
    ok(memcmp(c, "world!", 6) == 0, "pread: content");
    is(lseek(r, 0, SEEK_CUR), 0, "pread: does not move");
    is(fcntl(a, F_GETFL) & (O_ACCMODE | O_APPEND), O_WRONLY | O_APPEND,
       "F_GETFL");
    int t = open(path, O_WRONLY | O_TRUNC);
    ok(fstat(t, &st) == 0 && st.st_size == 0, "truncating open");
    fails(open(path, O_RDONLY | O_DIRECTORY), ENOTDIR, "not a directory");
    fails(open("/", O_RDWR), EISDIR, "directory for writing");
    fails(open("/no/such/thing", O_RDONLY), ENOENT, "no such directory");
    fails(open(BAD_PTR, O_RDONLY), EFAULT, "path at a bad pointer");
    fails(open((char *) null, O_RDONLY), EFAULT, "path at NULL");
    fails(open("", O_RDONLY), ENOENT, "empty path");
    fails(openat(999, "x", O_RDONLY), EBADF, "relative to a bad descriptor");
    fails(openat(fd, "x", O_RDONLY), ENOTDIR, "relative to a file");
    int p = open(path, O_PATH);
    ok(p > 2, "O_PATH");
    fails(read(p, c, 1), EBADF, "O_PATH: no read");
    ok(fstat(p, &st) == 0, "O_PATH: but fstat");
    static char longname[5000];
    memset(longname, 'a', sizeof longname - 1);
    fails(open(longname, O_RDONLY), ENAMETOOLONG, "path of 5000 bytes");
    longname[300] = 0;
    fails(open(longname, O_RDONLY), ENAMETOOLONG, "name of 300 bytes");
    char *edge = cliff(4);
    memcpy(edge, "/tmp", 4);
    fails(open(edge, O_RDONLY), EFAULT, "path that runs into no access");
    edge = cliff(5);
    memcpy(edge, "/tmp", 5);
    ok(access(edge, F_OK) == 0, "path that ends just before it");
    fails(close(999), EBADF, "close of a bad descriptor");
    is(close(fd), 0, "close");
    fails(close(fd), EBADF, "close twice");
    close(r), close(w), close(a), close(t), close(p);
}

static void test_seek(void)
{
    int fd = file_make(3 * PAGE);
    is(lseek(fd, 100, SEEK_SET), 100, "seek set");
    is(lseek(fd, 10, SEEK_CUR), 110, "seek cur");
    is(lseek(fd, -10, SEEK_END), 3 * PAGE - 10, "seek end");
    fails(lseek(fd, -1, SEEK_SET), EINVAL, "seek before the start");
    fails(lseek(fd, 0, 99), EINVAL, "seek: unknown whence");
    is(lseek(fd, 10 * PAGE, SEEK_SET), 10 * PAGE, "seek beyond the end");
    is(write(fd, "z", 1), 1, "write there");
    is(file_byte(fd, 5 * PAGE), 0, "the gap reads zero");
    is(lseek(fd, 0, SEEK_DATA), 0, "seek data");
    fails(lseek(fd, 20 * PAGE, SEEK_DATA), ENXIO, "seek data beyond the end");
    fails(lseek(pair[0], 0, SEEK_SET), ESPIPE, "seek of a pipe");
    fails(lseek(999, 0, SEEK_SET), EBADF, "seek of a bad descriptor");
    is(ftruncate(fd, 100), 0, "ftruncate");
    is(lseek(fd, 0, SEEK_END), 100, "is the size");
    fails(ftruncate(fd, -1), EINVAL, "ftruncate to -1");
    fails(ftruncate(pair[0], 0), EINVAL, "ftruncate of a pipe");
    fails(ftruncate(999, 0), EBADF, "ftruncate of a bad descriptor");
    is(fallocate(fd, 0, 0, 2 * PAGE), 0, "fallocate");
    is(lseek(fd, 0, SEEK_END), 2 * PAGE, "extends");
    is(fallocate(fd, 1, 0, 9 * PAGE), 0, "fallocate keep-size");
    is(lseek(fd, 0, SEEK_END), 2 * PAGE, "does not");
    fails(fallocate(fd, 0, 0, 0), EINVAL, "fallocate of nothing");
    fails(fallocate(999, 0, 0, 1), EBADF, "fallocate of a bad descriptor");
    is(fsync(fd), 0, "fsync");
    is(fdatasync(fd), 0, "fdatasync");
    fails(fsync(999), EBADF, "fsync of a bad descriptor");
    close(fd);
}

static void test_vectors(void)
{
    int fd = file_make(2 * PAGE);
    char a[8] = "", b[8] = "";
    struct iovec v[2] = {{a, 4}, {b, 4}};
    is(preadv(fd, v, 2, PAGE - 4), 8, "preadv");
    ok(memcmp(a, "AAAA", 4) == 0 && memcmp(b, "BBBB", 4) == 0,
       "preadv: content");
    is(preadv2(fd, v, 2, -1, 0), 8, "preadv2 at the current offset");
    is(lseek(fd, 0, SEEK_CUR), 8, "preadv2: moves");
    fails(preadv2(fd, v, 2, 0, 0x4000), EOPNOTSUPP, "preadv2: unknown flag");
    is(pwritev(fd, v, 2, 100), 8, "pwritev");
    is(pwritev2(fd, v, 2, 200, RWF_SYNC), 8, "pwritev2 sync");
    is(readv(fd, v, 0), 0, "readv of no vectors");
    fails(syscall(SYS_readv, fd, v, 1025), EINVAL, "readv of 1025");
    fails(syscall(SYS_readv, fd, v, -1), EINVAL, "readv of -1");
    fails(readv(fd, BAD_PTR, 1), EFAULT, "readv: bad vector");
    fails(readv(999, v, 2), EBADF, "readv: bad descriptor");
    fails(preadv(pair[0], v, 2, 0), ESPIPE, "preadv of a pipe");
    fails(preadv(fd, v, 2, -5), EINVAL, "preadv at -5");
    v[1].iov_len = -1UL;
    fails(readv(fd, v, 2), EINVAL, "readv: absurd length");
    v[1] = (struct iovec){NO_PAGE, 0};
    is(preadv(fd, v, 2, 0), 4, "readv: bad pointer with length 0");
    v[1] = (struct iovec){BAD_PTR, 0};
    fails(preadv(fd, v, 2, 0), EFAULT, "readv: beyond user space");
    close(fd);
}

static void test_faults(void)
{
    int fd = file_make(2 * PAGE);
    fails(read(fd, BAD_PTR, 1), EFAULT, "read to a bad pointer");
    fails(read(fd, NULL, 1), EFAULT, "read to NULL");
    fails(write(fd, BAD_PTR, 1), EFAULT, "write from a bad pointer");
    is(lseek(fd, 0, SEEK_CUR), 0, "the offset has not moved");
    char *p = cliff(100);
    is(read(fd, p, 200), 100, "read: what fits before no access");
    ok(all_bytes(p, 'A', 100), "read: is there");
    is(lseek(fd, 0, SEEK_CUR), 100, "read: the offset has moved by that");
    memset(p, 'w', 100);
    is(pwrite(fd, p, 200, PAGE), 100, "pwrite: what there is before it");
    ok(file_byte(fd, PAGE + 99) == 'w' && file_byte(fd, PAGE + 100) == 'B',
       "pwrite: is written");
    struct iovec v[2] = {{p, 100}, {NO_PAGE, 100}};
    is(preadv(fd, v, 2, 0), 100, "preadv: up to the bad vector");
    v[1].iov_base = BAD_PTR;
    fails(preadv(fd, v, 2, 0), EFAULT, "preadv: one is beyond user space");
    v[0].iov_base = NO_PAGE;
    fails(preadv(fd, v, 2, 0), EFAULT, "preadv: the first is bad");
    fails(pread(fd, cliff(0), 10, 0), EFAULT, "pread: nothing fits");
    close(fd);

    /* A pipe may give all that fits or refuse: kernels differ in where one
     * of a pipe's buffers is cut. */
    char buf[256];
    memset(buf, 'p', sizeof buf);
    need(write(pair[1], buf, 200) == 200, "write");
    p = cliff(100);
    long n = read(pair[0], p, 200);
    ok(n == 100 || (n == -1 && errno == EFAULT), "pipe read before no access");
    n = read(pair[0], buf, sizeof buf);
    ok(n == 100 || n == 200, "pipe read: what was not taken is still there");
    fails(read(pair[0], NO_PAGE, 1), EAGAIN, "empty pipe comes before fault");
    fails(read(pair[0], BAD_PTR, 1), EFAULT, "but not beyond user space");
    fails(write(pair[1], BAD_PTR, 10), EFAULT, "pipe write from nowhere");
    memset(p, 'q', 100);
    n = write(pair[1], p, 200);
    ok(n == 100 || (n == -1 && errno == EFAULT), "pipe write before no access");
    while (read(pair[0], buf, sizeof buf) > 0)
        ;
    fails(getrandom(BAD_PTR, 16, 0), EFAULT, "getrandom to nowhere");
    fails(getrandom(buf, 16, 0x80), EINVAL, "getrandom: unknown flag");
    n = getrandom(cliff(100), 200, 0);
    ok((n > 0 && n <= 100) || (n == -1 && errno == EFAULT),
       "getrandom before no access");
}

static void test_copies(void)
{
    int a = file_make(2 * PAGE), b = file_make(0);
    off_t off = PAGE - 4;
    char c[16];
    is(sendfile(b, a, &off, 8), 8, "sendfile");
    is(off, PAGE + 4, "sendfile: moves the offset");
    ok(pread(b, c, 16, 0) == 8 && memcmp(c, "AAAABBBB", 8) == 0,
       "sendfile: content");
    fails(sendfile(b, a, BAD_PTR, 8), EFAULT, "sendfile: bad offset");
    fails(sendfile(b, 999, NULL, 8), EBADF, "sendfile: bad descriptor");
    loff_t in = 0, out = 100;
    is(copy_file_range(a, &in, b, &out, 50, 0), 50, "copy_file_range");
    ok(in == 50 && out == 150, "copy_file_range: offsets");
    fails(copy_file_range(a, &in, b, &out, 50, 1), EINVAL,
          "copy_file_range: flags");
    fails(copy_file_range(a, BAD_PTR, b, NULL, 50, 0), EFAULT,
          "copy_file_range: bad offset");
    in = 0;
    is(splice(a, &in, pair[1], NULL, 20, 0), 20, "splice into a pipe");
    is(tee(pair[0], pair[1], 20, 0) == -1 ? errno : 0, EINVAL,
       "tee of a pipe onto itself");
    is(read(pair[0], c, 16), 16, "read what was spliced");
    ok(memcmp(c, "AAAAAAAAAAAAAAAA", 16) == 0, "splice: content");
    out = 0;
    is(splice(pair[0], NULL, b, &out, 20, 0), 4, "splice out of a pipe");
    fails(splice(a, NULL, b, NULL, 20, 0), EINVAL, "splice without a pipe");
    struct iovec v = {"vmsplice", 8};
    is(vmsplice(pair[1], &v, 1, 0), 8, "vmsplice");
    ok(read(pair[0], c, 16) == 8 && memcmp(c, "vmsplice", 8) == 0,
       "vmsplice: content");
    fails(vmsplice(pair[1], BAD_PTR, 1, 0), EFAULT, "vmsplice: bad vector");
    is(readahead(a, 0, PAGE), 0, "readahead");
    is(posix_fadvise(a, 0, 0, POSIX_FADV_WILLNEED), 0, "fadvise");
    is(sync_file_range(a, 0, 0, 2), 0, "sync_file_range");
    close(a), close(b);
}

int main(void)
{
    const char *dir = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/guest.io.%d", dir ? dir : "/tmp", getpid());
    need(pipe2(pair, O_NONBLOCK) == 0, "pipe2");
    umask(0);
    test_open();
    unlink(path);
    test_seek();
    test_vectors();
    test_faults();
    test_copies();
    return tap_done();
}
