/* SPDX-License-Identifier: Apache-2.0 */
/* Control messages: credentials, descriptors at limits, what is cut off. */
#include "mem.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#ifndef SCM_PIDFD
#define SCM_PIDFD    4
#define SO_PASSPIDFD 76
#define SO_PEERPIDFD 77
#endif

#define MANY 20

static union {
    char buf[1024];
    struct cmsghdr align;
} control;

static long send_fds(int s, const int *fds, int n)
{
    struct iovec v = {"f", 1};
    memset(&control, 0, sizeof control);
    struct msghdr m = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = CMSG_SPACE(n * sizeof(int))};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(n * sizeof(int));
    memcpy(CMSG_DATA(c), fds, n * sizeof(int));
    return sendmsg(s, &m, 0);
}

/* Receives into `room` bytes of control; how many descriptors, or -1. */
static int receive(int s, size_t room, int *fds, int *flags)
{
    char buf[8];
    struct iovec v = {buf, sizeof buf};
    memset(&control, 0, sizeof control);
    struct msghdr m = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = room};
    if (recvmsg(s, &m, MSG_CMSG_CLOEXEC) < 0)
        return -1;
    *flags = m.msg_flags;
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    if (!c || c->cmsg_type != SCM_RIGHTS)
        return 0;
    int n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(fds, CMSG_DATA(c), n * sizeof(int));
    return n;
}

static void test_many(int *s)
{
    int fds[MANY], got[MANY], flags = 0, file = file_make(PAGE);
    for (int i = 0; i < MANY; i++)
        fds[i] = file;
    is(send_fds(s[0], fds, MANY), 1, "many: sent");
    is(receive(s[1], sizeof control, got, &flags), MANY, "many: received");
    bool good = true;
    for (int i = 0; i < MANY; i++)
        good &= file_byte(got[i], 0) == 'A' && close(got[i]) == 0;
    ok(good && flags == MSG_CMSG_CLOEXEC, "many: each is the file");
    need(send_fds(s[0], fds, 3) == 1, "sendmsg");
    is(receive(s[1], CMSG_LEN(2 * sizeof(int)), got, &flags), 2,
       "many: room for two");
    ok(flags & MSG_CTRUNC, "many: says so");
    close(got[0]), close(got[1]);
    need(send_fds(s[0], fds, 2) == 1, "sendmsg");
    is(receive(s[1], 0, got, &flags), 0, "many: room for none");
    ok(flags & MSG_CTRUNC, "many: says so");
    fds[1] = 999;
    fails(send_fds(s[0], fds, 2), EBADF, "many: one is none");
    fds[1] = -1;
    fails(send_fds(s[0], fds, 2), EBADF, "many: one is negative");
    close(file);
}

/* The limit of descriptors: what is received stays below it. */
static void test_limit(int *s)
{
    struct rlimit old, low;
    int file = file_make(PAGE), fds[4] = {file, file, file, file}, got[4] = {0};
    int flags = 0, top = dup(file);
    need(getrlimit(RLIMIT_NOFILE, &old) == 0, "getrlimit");
    close(top);
    low = old;
    low.rlim_cur = top + 2;
    need(setrlimit(RLIMIT_NOFILE, &low) == 0, "setrlimit");
    need(send_fds(s[0], fds, 4) == 1, "sendmsg");
    int n = receive(s[1], sizeof control, got, &flags);
    need(setrlimit(RLIMIT_NOFILE, &old) == 0, "setrlimit");
    is(n, 2, "limit: two fit");
    ok(flags & MSG_CTRUNC, "limit: says so");
    ok(got[0] == top && got[1] == top + 1, "limit: the lowest");
    fails(fcntl(top + 2, F_GETFD), EBADF, "limit: nothing above");
    close(got[0]), close(got[1]), close(file);
}

static void test_credentials(void)
{
    struct ucred cred = {0};
    socklen_t len = sizeof cred;
    int s[2], one = 1, flags;
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0, "socketpair");
    ok(getsockopt(s[0], SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
           cred.pid == getpid() && cred.uid == getuid() && len == sizeof cred,
       "credentials: of the peer");
    need(setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &one, sizeof one) == 0,
         "SO_PASSCRED");
    is(write(s[0], "x", 1), 1, "credentials: written");
    int fd;
    is(receive(s[1], sizeof control, &fd, &flags), 0, "credentials: came");
    struct cmsghdr *c = &control.align;
    struct ucred *got = (struct ucred *) CMSG_DATA(c);
    ok(c->cmsg_type == SCM_CREDENTIALS && got->pid == getpid() &&
           got->uid == getuid(),
       "credentials: mine");
    memset(&control, 0, sizeof control);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_CREDENTIALS;
    c->cmsg_len = CMSG_LEN(sizeof cred);
    struct ucred mine = {getpid(), 12, 34};
    memcpy(CMSG_DATA(c), &mine, sizeof mine);
    struct iovec v = {"y", 1};
    struct msghdr m = {.msg_iov = &v,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = CMSG_SPACE(sizeof mine)};
    is(sendmsg(s[0], &m, 0), 1, "credentials: as another");
    receive(s[1], sizeof control, &fd, &flags);
    ok(got->uid == 12 && got->gid == 34, "credentials: as said");
    memset(&control, 0, sizeof control);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_CREDENTIALS;
    c->cmsg_len = CMSG_LEN(sizeof cred) - 1;
    fails(sendmsg(s[0], &m, 0), EINVAL, "credentials: short");
    c->cmsg_len = 1;
    fails(sendmsg(s[0], &m, 0), EINVAL, "credentials: no header");
    c->cmsg_len = CMSG_LEN(sizeof cred) + 100;
    fails(sendmsg(s[0], &m, 0), EINVAL, "credentials: beyond the end");
    c->cmsg_len = CMSG_LEN(sizeof cred);
    c->cmsg_type = 99;
    fails(sendmsg(s[0], &m, 0), EINVAL, "credentials: no type");
    if (setsockopt(s[1], SOL_SOCKET, SO_PASSPIDFD, &one, sizeof one)) {
        tap_skip("credentials: pidfd", "a kernel without SO_PASSPIDFD");
    } else {
        int zero = 0;
        setsockopt(s[1], SOL_SOCKET, SO_PASSCRED, &zero, sizeof zero);
        need(write(s[0], "z", 1) == 1, "write");
        receive(s[1], sizeof control, &fd, &flags);
        int pidfd = *(int *) CMSG_DATA(c);
        ok(c->cmsg_type == SCM_PIDFD && fcntl(pidfd, F_GETFD) >= 0,
           "credentials: pidfd");
        close(pidfd);
    }
    close(s[0]), close(s[1]);
}

static void test_ip(void)
{
    int s = socket(AF_INET, SOCK_DGRAM, 0), one = 1, ttl = 7;
    char addr[128];
    socklen_t len = sizeof addr;
    struct sockaddr bind_to = {.sa_family = AF_INET};
    need(s >= 0 && bind(s, &bind_to, 16) == 0, "bind");
    need(getsockname(s, (void *) addr, &len) == 0, "getsockname");
    memcpy(addr + 4, "\x7f\0\0\1", 4);
    need(setsockopt(s, IPPROTO_IP, 12 /* IP_RECVTTL */, &one, 4) == 0,
         "IP_RECVTTL");
    is(setsockopt(s, IPPROTO_IP, 2 /* IP_TTL */, &ttl, 4), 0, "ip: ttl");
    is(sendto(s, "t", 1, 0, (void *) addr, 16), 1, "ip: sent");
    int fd, flags;
    receive(s, sizeof control, &fd, &flags);
    ok(control.align.cmsg_level == IPPROTO_IP &&
           *(int *) CMSG_DATA(&control.align) == 7,
       "ip: ttl received");
    close(s);
}

int main(void)
{
    int s[2];
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, s) == 0, "socketpair");
    test_many(s);
    test_limit(s);
    test_credentials();
    test_ip();
    return tap_done();
}
