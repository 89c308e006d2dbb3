/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths that mean something else: options and requests that give more, or
 * less, than a length says; arguments whose upper half is garbage. */
#include "mem.h"

#include <linux/filter.h>
#include <linux/if_tun.h>
#include <linux/netlink.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/sem.h>
#include <sys/socket.h>

#define LONG_FILTER 300

static bool all_are(const uint8_t *p, size_t n, int byte)
{
    while (n--)
        if (*p++ != byte)
            return false;
    return true;
}

static void test_filter(void)
{
    static struct sock_filter code[LONG_FILTER], back[LONG_FILTER + 8];
    struct sock_fprog prog = {LONG_FILTER, code};
    socklen_t len = 0;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);

    need(fd >= 0, "a socket");
    for (int i = 0; i < LONG_FILTER; i++) {
        code[i].code = BPF_RET | BPF_K;
        code[i].k = (unsigned) i;
    }
    works(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof prog),
          "a long filter");
    memset(back, 0x5a, sizeof back);
    is(getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, back, &len), 0,
       "its length is asked");
    is(len, LONG_FILTER, "it is counted in instructions");
    ok(all_are((uint8_t *) back, sizeof back, 0x5a), "nothing is written");
    len = LONG_FILTER - 1;
    fails(getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, back, &len), EINVAL,
          "too little room");
    len = LONG_FILTER + 4;
    is(getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, back, &len), 0, "room enough");
    is(len, LONG_FILTER, "as many instructions as there are");
    is(memcmp(back, code, sizeof code), 0, "the filter itself");
    ok(all_are((uint8_t *) &back[LONG_FILTER], 8 * sizeof *back, 0x5a),
       "nothing beyond");
    close(fd);
}

static void test_groups(void)
{
    uint8_t buf[64];
    socklen_t len = 4;
    int group = 200, fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC);

    need(fd >= 0, "a netlink socket");
    /* May fail: there are not so many groups. */
    (void) !setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group,
                       sizeof group);
    memset(buf, 0x5a, sizeof buf);
    is(getsockopt(fd, SOL_NETLINK, NETLINK_LIST_MEMBERSHIPS, buf, &len), 0,
       "groups in four bytes");
    ok(all_are(buf + 4, sizeof buf - 4, 0x5a), "nothing beyond four bytes");
    close(fd);
}

/* An int argument is one whatever the register's upper half says. */
static void test_upper_half(void)
{
    unsigned short values[4] = {1, 2, 3, 4};
    const unsigned long junk = 0xabcd000000000000UL;
    int id = semget(IPC_PRIVATE, 4, 0600), fd, cloexec;

    need(id >= 0, "semaphores");
    is(syscall(SYS_semctl, id | junk, 0 | junk, SETALL | junk, values), 0,
       "SETALL");
    memset(values, 0, sizeof values);
    is(syscall(SYS_semctl, id | junk, 0 | junk, GETALL | junk, values), 0,
       "GETALL");
    ok(values[0] == 1 && values[3] == 4, "its values");
    semctl(id, 0, IPC_RMID);
    fd = open("/dev/null", O_RDWR);
    need(fd >= 0, "open");
    is(syscall(SYS_fcntl, fd | junk, F_SETFD | junk, FD_CLOEXEC), 0, "F_SETFD");
    cloexec = (int) syscall(SYS_fcntl, fd | junk, F_GETFD | junk, 0);
    is(cloexec, FD_CLOEXEC, "F_GETFD");
    is(syscall(SYS_write, fd | junk, "x", 1), 1, "write");
    is(syscall(SYS_writev, fd | junk, NULL, junk), 0, "writev of no elements");
    close(fd);
}

/* Tags come into calls only after they are asked for. */
static void test_tags(void)
{
    static char word[16] = "tagged";
    char *tagged = (char *) ((unsigned long) word | 0x5aUL << 56);
    int fd = open("/dev/null", O_RDWR);

    need(fd >= 0, "open");
    fails(syscall(SYS_getrandom, tagged, 6, 0), EFAULT, "a tag before");
    fails(syscall(SYS_fstat, fd, tagged), EFAULT, "a tag in a structure");
    is(syscall(SYS_prctl, 55 /* SET_TAGGED_ADDR_CTRL */, 1, 0, 0, 0), 0,
       "tags are asked for");
    is(syscall(SYS_prctl, 56 /* GET_TAGGED_ADDR_CTRL */, 0, 0, 0, 0), 1,
       "they are on");
    is(syscall(SYS_write, fd, tagged, 6), 6, "a tag after");
    is(syscall(SYS_prctl, 55, 0, 0, 0, 0), 0, "they are given up");
    fails(syscall(SYS_getrandom, tagged, 6, 0), EFAULT, "a tag after that");
    close(fd);
}

/* Nothing may keep a copy of the table of descriptors. */
static void test_unshare(void)
{
    char c;
    int p[2];

    need(pipe(p) == 0, "pipe");
    is(syscall(SYS_close_range, 1000, ~0U, 2 /* UNSHARE */), 0,
       "close_range with UNSHARE");
    is(unshare(CLONE_FILES), 0, "unshare(CLONE_FILES)");
    is(unshare(CLONE_VM | CLONE_SIGHAND | CLONE_THREAD), 0,
       "unshare of what a single thread does not share");
    fails(unshare(1), EINVAL, "unshare of what is none");
    close(p[1]);
    need(fcntl(p[0], F_SETFL, O_NONBLOCK) == 0, "F_SETFL");
    is(read(p[0], &c, 1), 0, "the pipe ends with its last writer");
    close(p[0]);
}

/* Signals by which elsewhere a fault or a kick would be told. */
static void test_signals(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, 32, 33, 64};
    union sigval value = {.sival_int = 1};
    sigset_t all, pending;
    int n = 0;

    sigfillset(&all);
    /* The C library keeps 32 and 33 to itself. */
    ((unsigned long *) &all)[0] = ~0UL;
    is(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8), 0,
       "all are blocked");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        need(sigqueue(getpid(), numbers[i], value) == 0, "sigqueue");
    is(syscall(SYS_rt_sigpending, &pending, 8), 0, "rt_sigpending");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        n += ((unsigned long *) &pending)[0] >> (numbers[i] - 1) & 1;
    is(n, sizeof numbers / sizeof *numbers, "all of them wait");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct {
            void *handler;
            unsigned long flags, restorer, mask;
        } ignore = {SIG_IGN, 0, 0, 0};

        need(syscall(SYS_rt_sigaction, numbers[i], &ignore, NULL, 8) == 0,
             "rt_sigaction");
        need(sigqueue(getpid(), numbers[i], value) == 0, "sigqueue");
    }
    memset(&all, 0, sizeof all);
    is(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, 8), 0,
       "ignored ones do nothing");
}

int main(void)
{
    test_signals();
    test_unshare();
    test_filter();
    test_groups();
    test_upper_half();
    test_tags();
    return tap_done();
}
