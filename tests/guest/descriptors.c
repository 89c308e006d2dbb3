/* SPDX-License-Identifier: Apache-2.0 */
/* Pipes, copies of descriptors, locks, and the descriptors that are no files:
 * eventfd, timerfd, signalfd, inotify, memfd. */
#include "mem.h"

#include <signal.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <termios.h>

static void test_pipe(void)
{
    int p[2], n = -1;
    char c[64];
    fails(pipe2(p, 0x40), EINVAL, "pipe2: unknown flag");
    fails(pipe2(BAD_PTR, 0), EFAULT, "pipe2: to nowhere");
    need(pipe2(p, O_NONBLOCK | O_CLOEXEC) == 0, "pipe2");
    is(fcntl(p[0], F_GETFD), FD_CLOEXEC, "close-on-exec");
    ok(fcntl(p[0], F_GETFL) & O_NONBLOCK, "non-blocking");
    fails(read(p[0], c, 1), EAGAIN, "empty");
    is(write(p[1], "abcdef", 6), 6, "write");
    ok(ioctl(p[0], FIONREAD, &n) == 0 && n == 6, "FIONREAD");
    fails(ioctl(p[0], FIONREAD, BAD_PTR), EFAULT, "FIONREAD to nowhere");
    fails(read(p[1], c, 1), EBADF, "read from the writing end");
    fails(write(p[0], c, 1), EBADF, "write to the reading end");
    is(read(p[0], c, 64), 6, "read what there is");
    long size = fcntl(p[1], F_GETPIPE_SZ);
    ok(size >= 4096, "F_GETPIPE_SZ");
    is(fcntl(p[1], F_SETPIPE_SZ, 8192), 8192, "F_SETPIPE_SZ");
    char *big = map_rw(64 * PAGE);
    is(write(p[1], big, 64 * PAGE), 8192, "write until full");
    fails(write(p[1], big, 1), EAGAIN, "full");
    close(p[1]);
    is(read(p[0], big, 64 * PAGE), 8192, "read it all");
    is(read(p[0], c, 1), 0, "end of file");
    close(p[0]);
}

static void test_dup(void)
{
    int fd = file_make(PAGE);
    int d = dup(fd);
    ok(d > fd, "dup");
    is(lseek(d, 5, SEEK_SET), 5, "dup: seek");
    is(lseek(fd, 0, SEEK_CUR), 5, "dup: shares the offset");
    is(dup2(fd, 100), 100, "dup2");
    is(dup2(fd, fd), fd, "dup2 onto itself");
    fails(dup2(999, 998), EBADF, "dup2 of a bad descriptor");
    fails(dup2(999, 999), EBADF, "dup2 of a bad one onto itself");
    fails(dup2(fd, -1), EBADF, "dup2 onto -1");
    fails(dup3(fd, fd, 0), EINVAL, "dup3 onto itself");
    fails(dup3(fd, 101, 1), EINVAL, "dup3: unknown flag");
    is(dup3(fd, 101, O_CLOEXEC), 101, "dup3 close-on-exec");
    is(fcntl(101, F_GETFD), FD_CLOEXEC, "dup3: it is");
    is(fcntl(fd, F_DUPFD, 200), 200, "F_DUPFD");
    is(fcntl(fd, F_DUPFD_CLOEXEC, 200), 201, "F_DUPFD_CLOEXEC: the next one");
    is(fcntl(201, F_GETFD), FD_CLOEXEC, "F_DUPFD_CLOEXEC: it is");
    fails(fcntl(fd, F_DUPFD, -1), EINVAL, "F_DUPFD from -1");
    is(fcntl(fd, F_SETFD, FD_CLOEXEC), 0, "F_SETFD");
    is(fcntl(100, F_GETFD), 0, "F_SETFD: the copy is not changed");
    fails(fcntl(fd, 9999), EINVAL, "fcntl: unknown command");
    fails(fcntl(999, F_GETFD), EBADF, "fcntl: bad descriptor");
    is(syscall(SYS_close_range, 200, 300, 0), 0, "close_range");
    fails(fcntl(201, F_GETFD), EBADF, "close_range: they are closed");
    is(syscall(SYS_close_range, 100, 101, 4), 0, "close_range close-on-exec");
    is(fcntl(100, F_GETFD), FD_CLOEXEC, "close_range: it is");
    fails(syscall(SYS_close_range, 5, 4, 0), EINVAL, "close_range backwards");
    is(syscall(SYS_close_range, 100, 101, 0), 0, "close_range again");
    close(d), close(fd);

    struct rlimit lim;
    need(getrlimit(RLIMIT_NOFILE, &lim) == 0, "getrlimit");
    limit_set(RLIMIT_NOFILE, 20);
    int n = 0, last = -1;
    while ((fd = dup(1)) >= 0)
        last = fd, n++;
    is(errno, EMFILE, "RLIMIT_NOFILE 20: EMFILE");
    is(last, 19, "the last one was 19");
    fails(dup2(1, 20), EBADF, "dup2 onto 20");
    fails(fcntl(1, F_DUPFD, 20), EINVAL, "F_DUPFD from 20");
    fails(open("/", O_RDONLY), EMFILE, "open");
    fails(eventfd(0, 0), EMFILE, "eventfd");
    limit_set(RLIMIT_NOFILE, lim.rlim_cur);
    for (; n > 0; n--)
        close(20 - n);
}

static void test_locks(void)
{
    int fd = file_make(PAGE);
    struct flock l = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 100};
    is(fcntl(fd, F_SETLK, &l), 0, "F_SETLK");
    l.l_type = F_RDLCK;
    ok(fcntl(fd, F_GETLK, &l) == 0 && l.l_type == F_UNLCK,
       "F_GETLK: nobody else has it");
    l.l_type = F_UNLCK;
    is(fcntl(fd, F_SETLKW, &l), 0, "F_SETLKW: unlock");
    l.l_type = 99;
    fails(fcntl(fd, F_SETLK, &l), EINVAL, "F_SETLK: absurd type");
    fails(fcntl(fd, F_SETLK, BAD_PTR), EFAULT, "F_SETLK: nowhere");
    fails(fcntl(999, F_SETLK, &l), EBADF, "F_SETLK: bad descriptor");
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    int other = open(name, O_RDWR);
    is(flock(fd, LOCK_EX), 0, "flock");
    fails(flock(other, LOCK_EX | LOCK_NB), EWOULDBLOCK, "flock: taken");
    is(flock(fd, LOCK_UN), 0, "flock: free");
    is(flock(other, LOCK_SH | LOCK_NB), 0, "flock: now it works");
    l = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    is(fcntl(other, F_OFD_SETLK, &l), 0, "open-file lock");
    l = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    fails(fcntl(fd, F_OFD_SETLK, &l), EAGAIN, "open-file lock: taken");
    fails(flock(999, LOCK_EX), EBADF, "flock: bad descriptor");
    close(fd), close(other);
}

static void test_ioctl(void)
{
    int fd = file_make(100);
    struct winsize ws;
    struct termios t;
    int n = -1;
    fails(ioctl(fd, TIOCGWINSZ, &ws), ENOTTY, "TIOCGWINSZ of a file");
    fails(tcgetattr(fd, &t), ENOTTY, "TCGETS of a file");
    fails(ioctl(999, TIOCGWINSZ, &ws), EBADF, "ioctl: bad descriptor");
    ok(ioctl(fd, FIONREAD, &n) == 0 && n == 100, "FIONREAD of a file");
    fails(ioctl(fd, 0xdead), ENOTTY, "ioctl: unknown");
    n = 1;
    is(ioctl(fd, FIONBIO, &n), 0, "FIONBIO");
    ok(fcntl(fd, F_GETFL) & O_NONBLOCK, "FIONBIO: is set");
    fails(ioctl(fd, FIONBIO, BAD_PTR), EFAULT, "FIONBIO: nowhere");
    is(ioctl(fd, FIOCLEX), 0, "FIOCLEX");
    is(fcntl(fd, F_GETFD), FD_CLOEXEC, "FIOCLEX: is set");
    is(ioctl(fd, FIONCLEX), 0, "FIONCLEX");
    is(fcntl(fd, F_GETFD), 0, "FIONCLEX: is not");
    close(fd);
}

static void test_eventfd(void)
{
    uint64_t v = 0;
    int e = eventfd(3, EFD_NONBLOCK);
    ok(e >= 0, "eventfd");
    ok(read(e, &v, 8) == 8 && v == 3, "eventfd: read");
    fails(read(e, &v, 8), EAGAIN, "eventfd: empty");
    v = 5;
    is(write(e, &v, 8), 8, "eventfd: write");
    fails(read(e, &v, 4), EINVAL, "eventfd: too little room");
    fails(read(e, BAD_PTR, 8), EFAULT, "eventfd: nowhere");
    v = -1UL;
    fails(write(e, &v, 8), EINVAL, "eventfd: too much");
    fails(eventfd(0, 0x1000), EINVAL, "eventfd: unknown flag");
    close(e);
    e = eventfd(2, EFD_SEMAPHORE);
    ok(read(e, &v, 8) == 8 && v == 1, "eventfd: semaphore");
    close(e);
}

static void test_timerfd(void)
{
    int t = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct itimerspec it = {.it_value = {0, 1000000}}, got;
    uint64_t v;
    ok(t >= 0, "timerfd");
    fails(timerfd_create(99, 0), EINVAL, "timerfd: unknown clock");
    fails(read(t, &v, 8), EAGAIN, "timerfd: not armed");
    is(timerfd_settime(t, 0, &it, &got), 0, "timerfd: arm");
    ok(got.it_value.tv_sec == 0 && got.it_value.tv_nsec == 0,
       "timerfd: was not armed");
    fcntl(t, F_SETFL, 0);
    ok(read(t, &v, 8) == 8 && v == 1, "timerfd: goes off once");
    it.it_value.tv_sec = 1000;
    is(timerfd_settime(t, 0, &it, NULL), 0, "timerfd: arm far ahead");
    ok(timerfd_gettime(t, &got) == 0 && got.it_value.tv_sec >= 990,
       "timerfd: time left");
    fails(timerfd_settime(t, 0, BAD_PTR, NULL), EFAULT, "timerfd: nowhere");
    fails(timerfd_gettime(t, BAD_PTR), EFAULT, "timerfd: gettime to nowhere");
    fails(timerfd_gettime(999, &got), EBADF, "timerfd: bad descriptor");
    it.it_value.tv_nsec = -1;
    fails(timerfd_settime(t, 0, &it, NULL), EINVAL, "timerfd: absurd time");
    close(t);
}

static void test_signalfd(void)
{
    sigset_t set;
    struct signalfd_siginfo info;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    need(sigprocmask(SIG_BLOCK, &set, NULL) == 0, "sigprocmask");
    int s = signalfd(-1, &set, SFD_NONBLOCK);
    ok(s >= 0, "signalfd");
    fails(read(s, &info, sizeof info), EAGAIN, "signalfd: nothing pending");
    need(kill(getpid(), SIGUSR1) == 0, "kill");
    is(read(s, &info, sizeof info), sizeof info, "signalfd: one pending");
    ok(info.ssi_signo == SIGUSR1 && (pid_t) info.ssi_pid == getpid(),
       "signalfd: from us");
    fails(syscall(SYS_signalfd4, -1, &set, 7, 0), EINVAL, "signalfd: size");
    fails(syscall(SYS_signalfd4, -1, BAD_PTR, 8, 0), EFAULT,
          "signalfd: nowhere");
    fails(signalfd(999, &set, 0), EBADF, "signalfd: bad descriptor");
    close(s);
}

static void test_inotify(void)
{
    char dir[256], name[300], buf[512];
    const char *tmp = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/guest.ino.%d", tmp ? tmp : "/tmp", getpid());
    snprintf(name, sizeof name, "%s/file", dir);
    need(mkdir(dir, 0700) == 0, "mkdir");
    int i = inotify_init1(IN_NONBLOCK);
    ok(i >= 0, "inotify");
    is(inotify_add_watch(i, dir, IN_CREATE), 1, "inotify: watch");
    fails(read(i, buf, sizeof buf), EAGAIN, "inotify: nothing yet");
    close(open(name, O_CREAT | O_WRONLY, 0600));
    ok(read(i, buf, sizeof buf) >= 32, "inotify: an event");
    struct inotify_event *ev = (struct inotify_event *) buf;
    ok(ev->mask == IN_CREATE && strcmp(ev->name, "file") == 0,
       "inotify: the file's creation");
    fails(inotify_add_watch(i, BAD_PTR, IN_CREATE), EFAULT, "inotify: path");
    fails(inotify_add_watch(999, dir, IN_CREATE), EBADF, "inotify: bad one");
    is(inotify_rm_watch(i, 1), 0, "inotify: end of the watch");
    fails(inotify_rm_watch(i, 1), EINVAL, "inotify: twice");
    close(i);
    unlink(name), rmdir(dir);
}

static void test_memfd(void)
{
    int m = memfd_create("name", MFD_ALLOW_SEALING);
    ok(m >= 0, "memfd");
    fails(memfd_create("name", 0x800000), EINVAL, "memfd: unknown flag");
    fails(memfd_create(BAD_PTR, 0), EFAULT, "memfd: nowhere");
    is(write(m, "0123456789", 10), 10, "memfd: write");
    is(fcntl(m, F_GET_SEALS), 0, "memfd: no seal");
    is(fcntl(m, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0, "memfd: seal");
    fails(ftruncate(m, 5), EPERM, "memfd: no shrinking");
    fails(ftruncate(m, 50), EPERM, "memfd: no growth");
    is(pwrite(m, "x", 1, 0), 1, "memfd: but writing");
    is(fcntl(m, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL), 0, "memfd: more");
    fails(pwrite(m, "x", 1, 0), EPERM, "memfd: no writing");
    fails(fcntl(m, F_ADD_SEALS, F_SEAL_GROW), EPERM, "memfd: no more seals");
    int fd = file_make(1);
    long r = fcntl(fd, F_GET_SEALS);
    ok(r == -1 || r == 1, "a file has no seals, or is sealed for good");
    close(fd), close(m);
}

int main(void)
{
    test_pipe();
    test_dup();
    test_locks();
    test_ioctl();
    test_eventfd();
    test_timerfd();
    test_signalfd();
    test_inotify();
    test_memfd();
    return tap_done();
}
