/* SPDX-License-Identifier: Apache-2.0 */
/* System calls that read or write memory nobody has touched yet. */
#include "mem.h"

#include <dirent.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/uio.h>
#include <sys/utsname.h>
#include <time.h>

static int pair[2];

/* Two fresh pages; what is asked about lies over their border. */
static char *lazy(void)
{
    return map_rw(2 * PAGE);
}

/* 64 bytes over a 2 MiB border, both blocks untouched. */
static char *lazy_edge(void)
{
    return map_aligned(2 * BLOCK) + BLOCK - 32;
}

static void feed(const char *text)
{
    need(write(pair[1], text, strlen(text)) == (ssize_t) strlen(text), "write");
}

static bool drained_zeros(size_t n)
{
    static char buf[8192];
    memset(buf, 1, sizeof buf);
    return read(pair[0], buf, sizeof buf) == (ssize_t) n &&
           all_bytes(buf, 0, n);
}

static void test_read(void)
{
    char *p = lazy_edge();
    char text[65];
    memset(text, 'r', 64);
    text[64] = 0;
    feed(text);
    is(read(pair[0], p, 64), 64, "read over a 2 MiB border");
    ok(all_bytes(p, 'r', 64), "read: the bytes are there");
    ok(all_bytes(p - 100, 0, 100) && all_bytes(p + 64, 0, 100),
       "read: zero around them");
    feed("vector");
    p = lazy();
    struct iovec v[3] = {{p, 2}, {p + PAGE, 0}, {p + PAGE - 1, 10}};
    is(readv(pair[0], v, 3), 6, "readv");
    ok(memcmp(p, "ve", 2) == 0 && memcmp(p + PAGE - 1, "ctor", 4) == 0,
       "readv: the bytes are there");
    struct iovec *lv = (struct iovec *) lazy();
    is(readv(pair[0], lv, 4), 0, "readv with an untouched vector");
    int fd = file_make(3 * PAGE);
    p = lazy_edge();
    is(pread(fd, p, 64, PAGE - 32), 64, "pread over a 2 MiB border");
    ok(all_bytes(p, 'A', 32) && all_bytes(p + 32, 'B', 32),
       "pread: the bytes are there");
    p = map_rw(64 * PAGE);
    is(read(fd, p, 64 * PAGE), 3 * PAGE, "read of more than the file has");
    ok(all_bytes(p + 2 * PAGE, 'C', PAGE) && p[3 * PAGE] == 0,
       "read: up to the file's end");
    close(fd);
    p = sys_mmap(NULL, GIB, RW, LAZY, -1, 0);
    feed("ten bytes!");
    is(read(pair[0], p, GIB), 10, "read of 1 GiB that brings ten bytes");
    is_str(present(p + GIB / 2, 4), "0000", "and leaves the rest untouched");
}

static void test_write(void)
{
    char *p = lazy_edge();
    is(write(pair[1], p, 64), 64, "write of untouched memory");
    ok(drained_zeros(64), "write: zeros");
    struct iovec v[2] = {{lazy(), 100}, {lazy() + PAGE - 50, 100}};
    is(writev(pair[1], v, 2), 200, "writev of untouched memory");
    ok(drained_zeros(200), "writev: zeros");
    int fd = file_make(4 * PAGE);
    p = lazy();
    is(pwrite(fd, p, 2 * PAGE, PAGE), 2 * PAGE, "pwrite of untouched memory");
    ok(file_byte(fd, 0) == 'A' && file_byte(fd, PAGE) == 0 &&
           file_byte(fd, 3 * PAGE - 1) == 0 && file_byte(fd, 3 * PAGE) == 'D',
       "pwrite: zeros in the file");
    close(fd);
}

static void test_results(void)
{
    char *p = lazy_edge();
    ok(syscall(SYS_getcwd, p, 64) > 0 && p[0] == '/', "getcwd");
    p = lazy_edge();
    struct timespec *ts = (struct timespec *) (p + 24);
    is(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, ts), 0, "clock_gettime");
    ok(ts->tv_sec > 0, "clock_gettime: has a time");
    struct utsname *un = (struct utsname *) lazy_edge();
    is(uname(un), 0, "uname");
    is_str(un->machine, "aarch64", "uname: the machine");
    struct stat *st = (struct stat *) lazy_edge();
    is(stat("/", st), 0, "stat");
    ok(S_ISDIR(st->st_mode), "stat: a directory");
    struct statx *sx = (struct statx *) lazy_edge();
    is(statx(AT_FDCWD, "/", 0, STATX_BASIC_STATS, sx), 0, "statx");
    ok(S_ISDIR(sx->stx_mode), "statx: a directory");
    struct statfs *sf = (struct statfs *) lazy_edge();
    ok(statfs("/proc", sf) == 0 && sf->f_type == 0x9fa0, "statfs");
    p = lazy_edge();
    is(getrandom(p, 64, 0), 64, "getrandom");
    ok(!all_bytes(p, 0, 64), "getrandom: not all zero");
    struct rlimit *rl = (struct rlimit *) (lazy_edge() + 24);
    is(syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, rl), 0, "prlimit");
    ok(rl->rlim_max > 0, "prlimit: has a limit");
    struct rusage *ru = (struct rusage *) lazy_edge();
    is(getrusage(RUSAGE_SELF, ru), 0, "getrusage");
    ok(ru->ru_maxrss > 0, "getrusage: has a size");
    struct sysinfo *si = (struct sysinfo *) lazy_edge();
    ok(sysinfo(si) == 0 && si->totalram > 0, "sysinfo");
    ok(times((struct tms *) lazy_edge()) != -1, "times");
    sigset_t *set = (sigset_t *) (lazy_edge() + 28);
    is(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, set, 8), 0,
       "rt_sigprocmask");
    is(syscall(SYS_rt_sigpending, lazy_edge() + 28, 8), 0, "rt_sigpending");
    uid_t *ids = (uid_t *) (lazy_edge() + 28);
    ok(getresuid(ids, ids + 1, ids + 2) == 0 && ids[0] == getuid() &&
           ids[2] == getuid(),
       "getresuid");
    p = lazy_edge();
    ok(readlink("/proc/self/exe", p, 64) > 0 && p[0] == '/', "readlink");
    p = lazy_edge();
    int fd = open("/proc/self", O_RDONLY | O_DIRECTORY);
    ok(syscall(SYS_getdents64, fd, p, 4096) > 0, "getdents64");
    close(fd);
    int *fds = (int *) (lazy_edge() + 28);
    ok(pipe2(fds, O_CLOEXEC) == 0 && fds[0] > 2 && fds[1] > fds[0], "pipe2");
    close(fds[0]), close(fds[1]);
    ok(syscall(SYS_sched_getaffinity, 0, 64, lazy_edge()) > 0,
       "sched_getaffinity");
}

static void test_arguments(void)
{
    fails(open(lazy(), O_RDONLY), ENOENT, "open of an untouched path");
    fails(unlink(lazy()), ENOENT, "unlink of an untouched path");
    char *p = map_aligned(2 * BLOCK) + BLOCK - 4;
    memcpy(p, "/pro", 4);
    memcpy(p + 4, "c/self", 7);
    ok(access(p, F_OK) == 0, "a path over a 2 MiB border");
    is(nanosleep((void *) lazy(), NULL), 0, "nanosleep of an untouched time");
    struct pollfd *pf = (struct pollfd *) lazy();
    is(poll(pf, 1, 0) >= 0, 1, "poll of an untouched set");
    pf = (struct pollfd *) lazy_edge();
    pf[0] = (struct pollfd){pair[0], POLLIN, 0};
    pf[7] = (struct pollfd){pair[1], POLLOUT, 0};
    ok(poll(pf, 8, 0) >= 1 && pf[7].revents == POLLOUT, "poll over a border");
    fd_set *fs = (fd_set *) lazy();
    struct timeval *tv = (struct timeval *) lazy();
    is(select(64, fs, NULL, NULL, tv), 0, "select of an untouched set");
    int ep = epoll_create1(0);
    struct epoll_event *ev = (struct epoll_event *) lazy();
    is(epoll_ctl(ep, EPOLL_CTL_ADD, pair[1], ev), 0,
       "epoll_ctl with an untouched event");
    ev->events = EPOLLOUT;
    ev->data.u64 = 0x1122334455667788;
    is(epoll_ctl(ep, EPOLL_CTL_MOD, pair[1], ev), 0, "epoll_ctl: change it");
    ev = (struct epoll_event *) lazy_edge();
    is(epoll_wait(ep, ev, 4, 0), 1, "epoll_wait into untouched memory");
    ok(ev->data.u64 == 0x1122334455667788, "epoll_wait: the event");
    close(ep);
    int sv[2];
    need(socketpair(AF_UNIX, SOCK_DGRAM, 0, sv) == 0, "socketpair");
    is(sendmsg(sv[0], (void *) lazy(), 0), 0, "sendmsg of an untouched header");
    is(recvmsg(sv[1], (void *) lazy(), 0), 0, "recvmsg to an untouched header");
    struct sockaddr *sa = (struct sockaddr *) lazy();
    socklen_t *len = (socklen_t *) lazy();
    is(getsockname(sv[0], sa, len), 0, "getsockname with a length of 0");
    *len = 16;
    ok(getsockname(sv[0], sa, len) == 0 && sa->sa_family == AF_UNIX,
       "getsockname with room");
    close(sv[0]), close(sv[1]);
}

static void test_futex(void)
{
    char *p = lazy();
    is(syscall(SYS_futex, p, FUTEX_WAKE, 1, NULL), 0, "futex wake");
    p = lazy();
    fails(syscall(SYS_futex, p, FUTEX_WAIT, 1, NULL), EAGAIN,
          "futex wait for another value");
    p = lazy();
    fails(syscall(SYS_futex, p, FUTEX_WAIT_PRIVATE, 0, lazy()), ETIMEDOUT,
          "futex wait with an untouched time");
    p = lazy();
    fails(syscall(SYS_futex, p + 1, FUTEX_WAKE, 1, NULL), EINVAL,
          "futex wake on an odd address");
    is_str(present(p, 2), "00", "touches nothing");
    fails(syscall(SYS_futex, p + 2, FUTEX_WAIT, 0, NULL), EINVAL,
          "futex wait on an odd address");
    is_str(present(p, 2), "00", "touches nothing");
    fails(syscall(SYS_futex, map_hole(PAGE), FUTEX_WAIT, 0, NULL), EFAULT,
          "futex wait on a hole");
    char *s = sys_mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    is(syscall(SYS_futex, s, FUTEX_WAKE, 1, NULL), 0,
       "futex wake on shared memory");
    fails(syscall(SYS_futex, s, FUTEX_WAIT, 1, NULL), EAGAIN,
          "futex wait on shared memory");
}

static void test_nothing(void)
{
    char *p = map_rw(4 * PAGE);
    int fd = file_make(PAGE);
    is(read(fd, p, 0), 0, "read of nothing");
    is(pread(fd, p, 0, 0), 0, "pread of nothing");
    is(write(fd, p, 0), 0, "write of nothing");
    is(getrandom(p, 0, 0), 0, "getrandom of nothing");
    struct iovec v[2] = {{p, 0}, {p + PAGE, 0}};
    is(readv(fd, v, 2), 0, "readv of nothing");
    is(writev(fd, v, 2), 0, "writev of nothing");
    fails(syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", p, 0), EINVAL,
          "readlink to nothing");
    fails(syscall(SYS_getcwd, p, 0), ERANGE, "getcwd to nothing");
    fails(read(-1, p, PAGE), EBADF, "read of a bad descriptor");
    fails(write(-1, p, PAGE), EBADF, "write of a bad descriptor");
    is(lseek(fd, 0, SEEK_END), PAGE, "at the end of a file");
    is(read(fd, p, PAGE), 0, "read there");
    fails(epoll_wait(-1, (void *) p, 1, 0), EBADF, "epoll_wait, bad one");
    fails(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, p, 7), EINVAL,
          "rt_sigprocmask with a wrong size");
    fails(syscall(SYS_clock_gettime, 99, p), EINVAL, "an unknown clock");
    is_str(present(p, 4), "0000", "nothing of this has touched anything");
    close(fd);
}

static void test_readonly(void)
{
    char *p = sys_mmap(NULL, PAGE, PROT_READ, ANON, -1, 0);
    is(write(pair[1], p, 100), 100, "write of untouched read-only memory");
    ok(drained_zeros(100), "which is zeros");
    feed("x");
    fails(read(pair[0], p, 1), EFAULT, "read into it");
    char c;
    is(read(pair[0], &c, 1), 1, "the byte is still in the pipe");
    p = sys_mmap(NULL, PAGE, PROT_NONE, ANON, -1, 0);
    fails(write(pair[1], p, 1), EFAULT, "write of PROT_NONE");
    feed("y");
    fails(read(pair[0], p, 1), EFAULT, "read into PROT_NONE");
    ok(read(pair[0], &c, 1) == 1 && c == 'y', "the byte is still in the pipe");
    is_str(present(p, 1), "0", "PROT_NONE stays absent");
}

int main(void)
{
    need(pipe(pair) == 0, "pipe");
    test_read();
    test_write();
    test_results();
    test_arguments();
    test_futex();
    test_nothing();
    test_readonly();
    return tap_done();
}
