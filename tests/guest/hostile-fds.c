/* SPDX-License-Identifier: Apache-2.0 */
/* Every descriptor number that the program has not opened is closed, and
 * closing or overwriting all of them harms nobody. */
#include "mem.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>

#define NUMBERS 4096

static bool is_closed(int fd)
{
    struct stat st;
    char c;
    return fstat(fd, &st) == -1 && errno == EBADF && fcntl(fd, F_GETFD) == -1 &&
           errno == EBADF && ioctl(fd, 0xae00, 0) == -1 && errno == EBADF &&
           read(fd, &c, 1) == -1 && errno == EBADF &&
           lseek(fd, 0, SEEK_SET) == -1 && errno == EBADF;
}

/* The program lives: memory, files, clocks. */
static bool alive(void)
{
    struct timespec ts;
    char *p = sys_mmap(NULL, 64 * PAGE, RW, ANON, -1, 0);
    if (!GOOD(p) || p[5 * PAGE] != 0)
        return false;
    memset(p, 1, 64 * PAGE);
    return sys_munmap(p, 64 * PAGE) == 0 && getpid() > 0 &&
           clock_gettime(CLOCK_MONOTONIC, &ts) == 0 && access("/", F_OK) == 0;
}

static void test_numbers(void)
{
    static const int far[] = {5000,    10000,   65535,    65536,   99999,
                              1048575, 1 << 20, 1 << 24,  1 << 30, INT_MAX,
                              -1,      -2,      -1000000, INT_MIN};
    int open_ones = 0, closable = 0;
    for (int fd = 3; fd <= NUMBERS; fd++)
        open_ones += !is_closed(fd);
    is(open_ones, 0, "3 to 4096: every call says EBADF");
    for (size_t i = 0; i < sizeof far / sizeof *far; i++)
        open_ones += !is_closed(far[i]);
    is(open_ones, 0, "numbers far away: the same");
    for (int fd = 3; fd <= NUMBERS; fd++)
        closable += close(fd) == 0 || errno != EBADF;
    for (size_t i = 0; i < sizeof far / sizeof *far; i++)
        closable += close(far[i]) == 0 || errno != EBADF;
    is(closable, 0, "close says EBADF");
    int copied = 0;
    for (int fd = 3; fd <= NUMBERS; fd++)
        copied += dup(fd) != -1 || errno != EBADF;
    is(copied, 0, "dup says EBADF");
    ok(alive(), "and the program lives");
}

static void test_indirect(void)
{
    static struct pollfd p[1000];
    char name[64];
    int found = 0;
    for (int base = 3; base < NUMBERS; base += 1000) {
        for (int i = 0; i < 1000; i++)
            p[i] = (struct pollfd){base + i, POLLIN | POLLOUT, 0};
        need(poll(p, 1000, 0) == 1000, "poll");
        for (int i = 0; i < 1000; i++)
            found += p[i].revents != POLLNVAL;
    }
    is(found, 0, "poll finds none of them");
    static const char *const where[] = {
        "/proc/self/fd/%d", "/proc/thread-self/fd/%d", "/proc/self/fdinfo/%d"};
    for (int w = 0; w < 3; w++)
        for (int fd = 3; fd <= NUMBERS; fd += w ? 37 : 1) {
            snprintf(name, sizeof name, where[w], fd);
            found += access(name, F_OK) == 0;
        }
    is(found, 0, "/proc/self/fd and its like have none of them");
    int s[2];
    need(socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0, "socketpair");
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } ctl;
    struct iovec v = {"x", 1};
    for (int fd = 5; fd <= NUMBERS; fd++) {
        struct msghdr m = {.msg_iov = &v,
                           .msg_iovlen = 1,
                           .msg_control = &ctl,
                           .msg_controllen = sizeof ctl};
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(c), &fd, sizeof fd);
        found += sendmsg(s[0], &m, MSG_DONTWAIT) != -1 || errno != EBADF;
    }
    is(found, 0, "none of them can be sent away");
    close(s[0]), close(s[1]);
    static const int ops[] = {SYS_fchdir, SYS_fsync, SYS_syncfs, SYS_flock};
    for (int i = 0; i < 4; i++)
        for (int fd = 3; fd <= NUMBERS; fd += 7)
            found += syscall(ops[i], fd, 2) != -1 || errno != EBADF;
    is(found, 0, "fchdir, fsync, syncfs, flock find none");
    for (int fd = 3; fd <= NUMBERS; fd += 3) {
        found += GOOD(sys_mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0));
        found += openat(fd, "x", O_RDONLY) != -1 || errno != EBADF;
    }
    is(found, 0, "mmap and openat find none");
}

static void test_ranges(void)
{
    is(syscall(SYS_close_range, 3, ~0U, 0), 0, "close_range(3, ~0)");
    ok(alive(), "the program lives");
    is(syscall(SYS_close_range, 3, ~0U, 4), 0, "the same, close-on-exec");
    is(syscall(SYS_close_range, 3, ~0U, 2), 0, "the same, unshare");
    is(syscall(SYS_close_range, 1000, ~0U, 0), 0, "close_range(1000, ~0)");
    is(syscall(SYS_close_range, ~0U, ~0U, 0), 0, "close_range(~0, ~0)");
    ok(alive(), "the program lives");
}

static void overwrite(rlim_t upto, const char *what)
{
    char name[96];
    int bad = 0, wrong = 0;
    struct stat a, b;
    need(fstat(0, &a) == 0, "fstat");
    for (rlim_t fd = 3; fd < upto; fd++)
        bad += dup2(0, fd) != (int) fd;
    snprintf(name, sizeof name, "dup2 over all numbers up to %s", what);
    is(bad, 0, name);
    ok(alive(), "the program lives");
    for (rlim_t fd = 3; fd < upto; fd++)
        wrong += fstat(fd, &b) != 0 || b.st_ino != a.st_ino;
    snprintf(name, sizeof name, "all of them are copies, up to %s", what);
    is(wrong, 0, name);
    fails(dup2(0, upto), EBADF, "dup2 onto the limit itself");
    fails(open("/", O_RDONLY), EMFILE, "no number is left");
    ok(GOOD(sys_mmap(NULL, PAGE, RW, ANON, -1, 0)), "but memory is");
    is(syscall(SYS_close_range, 3, ~0U, 0), 0, "close them all");
    ok(alive(), "the program lives");
}

static void test_overwrite(void)
{
    struct rlimit lim;
    need(getrlimit(RLIMIT_NOFILE, &lim) == 0, "getrlimit");
    overwrite(lim.rlim_cur, "the soft limit");
    rlim_t hard = lim.rlim_max < NUMBERS ? lim.rlim_max : NUMBERS;
    limit_set(RLIMIT_NOFILE, hard);
    overwrite(hard, "the hard limit, or 4096");
    limit_set(RLIMIT_NOFILE, lim.rlim_max);
    is(dup2(0, lim.rlim_max - 1), lim.rlim_max - 1,
       "dup2 onto the highest number there is");
    fails(dup2(0, lim.rlim_max), EBADF, "and not one more");
    is(close(lim.rlim_max - 1), 0, "close it");
    limit_set(RLIMIT_NOFILE, 3);
    fails(open("/", O_RDONLY), EMFILE, "a limit of 3");
    char *p = sys_mmap(NULL, PAGE, RW, ANON, -1, 0);
    ok(GOOD(p) && *p == 0, "memory works with it");
    limit_set(RLIMIT_NOFILE, 0);
    p = sys_mmap(NULL, BLOCK, RW, ANON, -1, 0);
    ok(GOOD(p) && p[BLOCK - 1] == 0, "and with a limit of 0");
    limit_set(RLIMIT_NOFILE, lim.rlim_cur);
    ok(alive(), "the program lives");
}

static void test_std(void)
{
    int keep = dup(1);
    need(keep == 3, "dup");
    close(0), close(1), close(2);
    int a = open("/dev/null", O_RDWR), b = dup(a), c = dup(a);
    bool low = a == 0 && b == 1 && c == 2;
    need(dup2(keep, 1) == 1, "dup2");
    close(keep);
    ok(low, "0, 1 and 2 closed and opened again");
    ok(alive(), "the program lives");
}

int main(void)
{
    int null = open("/dev/null", O_RDONLY);
    need(null >= 0 && dup2(null, 0) == 0, "dup2");
    close(null);
    test_numbers();
    test_indirect();
    test_ranges();
    test_overwrite();
    test_std();
    return tap_done();
}
