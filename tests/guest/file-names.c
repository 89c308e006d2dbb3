/* SPDX-License-Identifier: Apache-2.0 */
/* Names: directories, links, attributes, and where a program stands. */
#include "mem.h"

#include <dirent.h>
#include <sys/statfs.h>
#include <sys/time.h>
#include <sys/xattr.h>

static char dir[256];
static int dfd;

struct linux_dirent64 {
    uint64_t d_ino;
    int64_t d_off;
    unsigned short d_reclen;
    unsigned char d_type;
    char d_name[];
};

static void touch(const char *name)
{
    int fd = openat(dfd, name, O_CREAT | O_WRONLY, 0644);
    need(fd >= 0, "create");
    close(fd);
}

/* How many entries a directory has, and whether `name` is one of them. */
static int entries(int fd, const char *name, bool *found)
{
    char buf[1024];
    int n = 0;
    long got;
    *found = false;
    need(lseek(fd, 0, SEEK_SET) == 0, "lseek");
    while ((got = syscall(SYS_getdents64, fd, buf, sizeof buf)) > 0)
        for (long at = 0; at < got;) {
            struct linux_dirent64 *d = (void *) (buf + at);
            *found |= strcmp(d->d_name, name) == 0;
            at += d->d_reclen;
            n++;
        }
    need(got == 0, "getdents64");
    return n;
}

static void test_dirs(void)
{
    bool found;
    char name[32], buf[1024];
    is(mkdirat(dfd, "sub", 0755), 0, "mkdir");
    fails(mkdirat(dfd, "sub", 0755), EEXIST, "mkdir again");
    fails(mkdirat(dfd, "no/sub", 0755), ENOENT, "mkdir in no directory");
    is(entries(dfd, "sub", &found), 3, "three entries with . and ..");
    ok(found, "sub is one");
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "sub/file%d", i);
        touch(name);
    }
    int fd = openat(dfd, "sub", O_RDONLY | O_DIRECTORY);
    is(entries(fd, "file77", &found), 102, "a directory of 100 files");
    ok(found, "file77 is one");
    need(lseek(fd, 0, SEEK_SET) == 0, "lseek");
    fails(syscall(SYS_getdents64, fd, buf, 4), EINVAL,
          "getdents64: too little room");
    need(lseek(fd, 0, SEEK_SET) == 0, "lseek");
    fails(syscall(SYS_getdents64, fd, BAD_PTR, 1024), EFAULT,
          "getdents64: to nowhere");
    fails(syscall(SYS_getdents64, 999, buf, 1024), EBADF,
          "getdents64: bad descriptor");
    fails(syscall(SYS_getdents64, 0, buf, 1024), ENOTDIR,
          "getdents64: not a directory");
    fails(unlinkat(dfd, "sub", 0), EISDIR, "unlink of a directory");
    fails(unlinkat(dfd, "sub", AT_REMOVEDIR), ENOTEMPTY, "rmdir of a full one");
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "file%d", i);
        need(unlinkat(fd, name, 0) == 0, "unlink");
    }
    is(unlinkat(dfd, "sub", AT_REMOVEDIR), 0, "rmdir");
    fails(syscall(SYS_getdents64, fd, buf, 1024), ENOENT,
          "getdents64: a removed directory");
    fails(unlinkat(dfd, "sub", AT_REMOVEDIR), ENOENT, "rmdir again");
    fails(unlinkat(999, "sub", 0), EBADF, "unlink: bad descriptor");
    fails(unlinkat(dfd, BAD_PTR, 0), EFAULT, "unlink: bad pointer");
    fails(mkdirat(dfd, BAD_PTR, 0), EFAULT, "mkdir: bad pointer");
    close(fd);
}

static void test_links(void)
{
    char buf[64];
    struct stat a, b;
    touch("one");
    is(linkat(dfd, "one", dfd, "two", 0), 0, "link");
    ok(fstatat(dfd, "one", &a, 0) == 0 && fstatat(dfd, "two", &b, 0) == 0 &&
           a.st_ino == b.st_ino && a.st_nlink == 2,
       "link: the same file, two names");
    fails(linkat(dfd, "one", dfd, "two", 0), EEXIST, "link: exists");
    is(symlinkat("one", dfd, "sym"), 0, "symlink");
    is(readlinkat(dfd, "sym", buf, sizeof buf), 3, "readlink");
    ok(memcmp(buf, "one", 3) == 0, "readlink: content");
    is(readlinkat(dfd, "sym", buf, 2), 2, "readlink: cut short");
    fails(readlinkat(dfd, "one", buf, 64), EINVAL, "readlink: not a link");
    fails(readlinkat(dfd, "sym", BAD_PTR, 64), EFAULT, "readlink: to nowhere");
    fails(readlinkat(999, "sym", buf, 64), EBADF, "readlink: bad descriptor");
    ok(fstatat(dfd, "sym", &b, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(b.st_mode),
       "lstat");
    ok(fstatat(dfd, "sym", &b, 0) == 0 && b.st_ino == a.st_ino, "stat follows");
    fails(openat(dfd, "sym", O_RDONLY | O_NOFOLLOW), ELOOP, "nofollow");
    need(symlinkat("loop", dfd, "loop") == 0, "symlink");
    fails(openat(dfd, "loop", O_RDONLY), ELOOP, "a link to itself");
    is(renameat(dfd, "two", dfd, "three"), 0, "rename");
    fails(fstatat(dfd, "two", &b, 0), ENOENT, "rename: the old name is gone");
    ok(fstatat(dfd, "three", &b, 0) == 0 && b.st_ino == a.st_ino,
       "rename: the new one is there");
    fails(renameat2(dfd, "one", dfd, "three", 1), EEXIST, "rename: noreplace");
    touch("four");
    is(renameat2(dfd, "four", dfd, "three", 2), 0, "rename: exchange");
    ok(fstatat(dfd, "four", &b, 0) == 0 && b.st_ino == a.st_ino,
       "rename: exchanged");
    fails(renameat(dfd, "nothing", dfd, "x"), ENOENT, "rename: of nothing");
    fails(renameat(dfd, BAD_PTR, dfd, "x"), EFAULT, "rename: bad pointer");
    fails(renameat(999, "one", dfd, "x"), EBADF, "rename: bad descriptor");
    static const char *const all[] = {"one", "three", "four", "sym", "loop"};
    for (int i = 0; i < 5; i++)
        is(unlinkat(dfd, all[i], 0), 0, "unlink");
}

static void test_attributes(void)
{
    struct stat st;
    struct statx sx;
    struct statfs sf;
    touch("attr");
    int fd = openat(dfd, "attr", O_RDWR);
    is(fchmodat(dfd, "attr", 0751, 0), 0, "chmod");
    ok(fstat(fd, &st) == 0 && st.st_mode == (S_IFREG | 0751), "chmod: stat");
    is(fchmod(fd, 04700), 0, "fchmod");
    is(fchownat(dfd, "attr", 12, 34, 0), 0, "chown");
    ok(fstat(fd, &st) == 0 && st.st_uid == 12 && st.st_gid == 34,
       "chown: stat");
    is(fchown(fd, 0, 0), 0, "fchown");
    struct timespec ts[2] = {{1000, 500}, {2000, 700}};
    is(utimensat(dfd, "attr", ts, 0), 0, "utimensat");
    ok(fstat(fd, &st) == 0 && st.st_atim.tv_sec == 1000 &&
           st.st_mtim.tv_sec == 2000 && st.st_mtim.tv_nsec == 700,
       "utimensat: stat");
    ts[0].tv_nsec = UTIME_OMIT;
    ts[1].tv_nsec = UTIME_NOW;
    is(futimens(fd, ts), 0, "futimens: omit and now");
    ok(fstat(fd, &st) == 0 && st.st_atim.tv_sec == 1000 &&
           st.st_mtim.tv_sec > 2000,
       "futimens: stat");
    ts[0].tv_nsec = 2000000000;
    fails(futimens(fd, ts), EINVAL, "futimens: absurd nanoseconds");
    fails(utimensat(dfd, "attr", BAD_PTR, 0), EFAULT, "utimensat: nowhere");
    is(statx(dfd, "attr", 0, STATX_ALL, &sx), 0, "statx");
    ok(sx.stx_mode == st.st_mode && sx.stx_ino == st.st_ino &&
           (sx.stx_mask & STATX_BASIC_STATS) == STATX_BASIC_STATS,
       "statx: as stat");
    is(statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &sx), 0, "statx: empty path");
    fails(statx(dfd, "attr", 0x40000000, 0, &sx), EINVAL, "statx: flags");
    fails(statx(dfd, "attr", 0, STATX_ALL, BAD_PTR), EFAULT, "statx: nowhere");
    fails(fstat(fd, BAD_PTR), EFAULT, "fstat: nowhere");
    fails(fstat(999, &st), EBADF, "fstat: bad descriptor");
    fails(fstatat(dfd, BAD_PTR, &st, 0), EFAULT, "fstatat: bad path");
    ok(fstatfs(fd, &sf) == 0 && sf.f_bsize > 0, "fstatfs");
    fails(fstatfs(fd, BAD_PTR), EFAULT, "fstatfs: nowhere");
    is(faccessat(dfd, "attr", R_OK | W_OK | X_OK, 0), 0, "access");
    fails(faccessat(dfd, "none", F_OK, 0), ENOENT, "access: nothing there");
    fails(faccessat(dfd, "attr", 99, 0), EINVAL, "access: bad mode");
    is(syscall(SYS_faccessat2, dfd, "attr", R_OK, AT_EACCESS), 0, "faccessat2");
    fails(fgetxattr(fd, "user.none", &st, 8) >= 0 ? 0 : -1,
          errno == ENODATA ? ENODATA : EOPNOTSUPP, "fgetxattr of none");
    fails(fgetxattr(fd, BAD_PTR, &st, 8), EFAULT, "fgetxattr: bad name");
    close(fd);
    is(unlinkat(dfd, "attr", 0), 0, "unlink");
}

static void test_where(void)
{
    char buf[256], old[256];
    need(getcwd(old, sizeof old), "getcwd");
    is(chdir(dir), 0, "chdir");
    ok(getcwd(buf, sizeof buf) && strcmp(buf, dir) == 0, "getcwd");
    is(syscall(SYS_getcwd, buf, 256), strlen(dir) + 1, "getcwd: its length");
    fails(syscall(SYS_getcwd, buf, 3), ERANGE, "getcwd: too little room");
    fails(syscall(SYS_getcwd, BAD_PTR, 256), EFAULT, "getcwd: nowhere");
    is(mkdir("in", 0700), 0, "mkdir relative");
    is(chdir("in"), 0, "chdir relative");
    is(fchdir(dfd), 0, "fchdir");
    ok(getcwd(buf, sizeof buf) && strcmp(buf, dir) == 0, "getcwd after it");
    is(rmdir("in"), 0, "rmdir relative");
    fails(chdir("in"), ENOENT, "chdir to what is gone");
    fails(chdir(BAD_PTR), EFAULT, "chdir: bad pointer");
    fails(fchdir(999), EBADF, "fchdir: bad descriptor");
    fails(fchdir(0), ENOTDIR, "fchdir: not a directory");
    is(chdir(old), 0, "chdir back");
    is(umask(027), 022, "umask tells the old one");
    int fd = openat(dfd, "masked", O_CREAT | O_WRONLY, 0666);
    struct stat st;
    ok(fstat(fd, &st) == 0 && (st.st_mode & 0777) == 0640, "umask works");
    is(umask(022), 027, "umask back");
    close(fd);
    is(unlinkat(dfd, "masked", 0), 0, "unlink");
    is(mknodat(dfd, "fifo", S_IFIFO | 0600, 0), 0, "mkfifo");
    ok(fstatat(dfd, "fifo", &st, 0) == 0 && S_ISFIFO(st.st_mode), "is a fifo");
    fails(openat(dfd, "fifo", O_WRONLY | O_NONBLOCK), ENXIO, "no reader");
    is(unlinkat(dfd, "fifo", 0), 0, "unlink");
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/guest.names.%d", tmp ? tmp : "/tmp",
             getpid());
    umask(022);
    need(mkdir(dir, 0700) == 0, "mkdir");
    dfd = open(dir, O_RDONLY | O_DIRECTORY);
    need(dfd >= 0, "open");
    int zero = open("/dev/null", O_RDONLY);
    need(zero >= 0 && dup2(zero, 0) == 0, "dup2");
    close(zero);
    test_dirs();
    test_links();
    test_attributes();
    test_where();
    is(rmdir(dir), 0, "nothing is left behind");
    return tap_done();
}
