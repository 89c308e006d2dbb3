/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets: pairs, passed descriptors, loopback, options, errors. */
#include "mem.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

static void test_pair(void)
{
    int s[2];
    char c[64];
    need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s) == 0, "pair");
    is(send(s[0], "hello", 5, 0), 5, "send");
    is(recv(s[1], c, 64, MSG_PEEK), 5, "recv: peek");
    is(recv(s[1], c, 3, 0), 3, "recv: part");
    is(recv(s[1], c, 64, 0), 2, "recv: the rest");
    fails(recv(s[1], c, 64, 0), EAGAIN, "recv: nothing");
    is(shutdown(s[0], SHUT_WR), 0, "shutdown");
    is(recv(s[1], c, 64, 0), 0, "recv: the end");
    fails(send(s[0], "x", 1, MSG_NOSIGNAL), EPIPE, "send after shutdown");
    fails(send(s[1], BAD_PTR, 10, 0), EFAULT, "send: from nowhere");
    is(send(s[1], "abc", 3, 0), 3, "send");
    fails(recv(s[0], BAD_PTR, 10, 0), EFAULT, "recv: to nowhere");
    is(recv(s[0], c, 10, 0), 3, "recv: it is not lost");
    fails(send(999, "x", 1, 0), EBADF, "send: bad descriptor");
    fails(send(0, "x", 1, 0), ENOTSOCK, "send: not a socket");
    fails(socketpair(AF_UNIX, SOCK_STREAM, 0, BAD_PTR), EFAULT,
          "socketpair: nowhere");
    fails(socketpair(AF_INET, SOCK_STREAM, 0, s), EOPNOTSUPP,
          "socketpair: internet");
    close(s[0]), close(s[1]);
    fails(socket(999, SOCK_STREAM, 0), EAFNOSUPPORT, "socket: family");
    fails(socket(AF_UNIX, 99, 0), EINVAL, "socket: type");
}

static void test_rights(void)
{
    int s[2], fd = file_make(PAGE), got = -1;
    need(socketpair(AF_UNIX, SOCK_DGRAM, 0, s) == 0, "socketpair");
    union {
        char buf[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } ctl = {0};
    char part1[4], part2[4];
    struct iovec out = {"message", 7}, in[2] = {{part1, 4}, {part2, 4}};
    struct msghdr m = {.msg_iov = &out,
                       .msg_iovlen = 1,
                       .msg_control = &ctl,
                       .msg_controllen = sizeof ctl};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    is(sendmsg(s[0], &m, 0), 7, "sendmsg with a descriptor");
    memset(&ctl, 0, sizeof ctl);
    m = (struct msghdr){.msg_iov = in,
                        .msg_iovlen = 2,
                        .msg_control = &ctl,
                        .msg_controllen = sizeof ctl};
    is(recvmsg(s[1], &m, MSG_CMSG_CLOEXEC), 7, "recvmsg");
    ok(memcmp(part1, "mess", 4) == 0 && memcmp(part2, "age", 3) == 0,
       "recvmsg: over two vectors");
    c = CMSG_FIRSTHDR(&m);
    ok(c && c->cmsg_type == SCM_RIGHTS, "recvmsg: a descriptor came along");
    need(c, "cmsg");
    memcpy(&got, CMSG_DATA(c), sizeof got);
    ok(got > 2 && got != fd, "a new one");
    is(fcntl(got, F_GETFD), FD_CLOEXEC, "close-on-exec as asked");
    is(file_byte(got, 0), 'A', "of the same file");
    fails(sendmsg(s[0], BAD_PTR, 0), EFAULT, "sendmsg: nowhere");
    fails(recvmsg(s[1], BAD_PTR, 0), EFAULT, "recvmsg: nowhere");
    m = (struct msghdr){.msg_iov = BAD_PTR, .msg_iovlen = 1};
    fails(sendmsg(s[0], &m, 0), EFAULT, "sendmsg: vector nowhere");
    m = (struct msghdr){.msg_iov = &out,
                        .msg_iovlen = 1,
                        .msg_control = BAD_PTR,
                        .msg_controllen = 64};
    fails(sendmsg(s[0], &m, 0), EFAULT, "sendmsg: control nowhere");
    struct mmsghdr mm[2] = {{.msg_hdr = {.msg_iov = &out, .msg_iovlen = 1}},
                            {.msg_hdr = {.msg_iov = &out, .msg_iovlen = 1}}};
    is(sendmmsg(s[0], mm, 2, 0), 2, "sendmmsg");
    ok(mm[0].msg_len == 7 && mm[1].msg_len == 7, "sendmmsg: lengths");
    char one[8], two[8];
    struct iovec v1 = {one, 8}, v2 = {two, 8};
    mm[0].msg_hdr.msg_iov = &v1, mm[1].msg_hdr.msg_iov = &v2;
    is(recvmmsg(s[1], mm, 2, 0, NULL), 2, "recvmmsg");
    ok(memcmp(one, "message", 7) == 0 && memcmp(two, "message", 7) == 0,
       "recvmmsg: content");
    close(s[0]), close(s[1]), close(fd), close(got);
}

static void test_tcp(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr = {htonl(INADDR_LOOPBACK)}},
                       b = {0};
    socklen_t len = sizeof a;
    int l = socket(AF_INET, SOCK_STREAM, 0), one = 1, v = 0;
    ok(l >= 0, "tcp: socket");
    is(setsockopt(l, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one), 0,
       "tcp: SO_REUSEADDR");
    len = sizeof v;
    ok(getsockopt(l, SOL_SOCKET, SO_REUSEADDR, &v, &len) == 0 && v == 1 &&
           len == 4,
       "tcp: it is set");
    is(bind(l, (void *) &a, sizeof a), 0, "tcp: bind");
    is(listen(l, 5), 0, "tcp: listen");
    len = sizeof a;
    ok(getsockname(l, (void *) &a, &len) == 0 && a.sin_port != 0 && len == 16,
       "tcp: getsockname tells the port");
    int c = socket(AF_INET, SOCK_STREAM, 0);
    is(connect(c, (void *) &a, sizeof a), 0, "tcp: connect");
    len = sizeof b;
    int s = accept4(l, (void *) &b, &len, SOCK_CLOEXEC);
    ok(s >= 0 && len == 16 && b.sin_addr.s_addr == htonl(INADDR_LOOPBACK),
       "tcp: accept");
    char buf[64], *big = map_rw(64 * PAGE);
    is(write(c, "to server", 9), 9, "tcp: write");
    is(recv(s, buf, 9, MSG_WAITALL), 9, "tcp: recv");
    memset(big, 'b', 64 * KIB);
    is(send(s, big, 32 * KIB, 0), 32 * KIB, "tcp: send 32 KiB");
    char *in = map_rw(16 * PAGE);
    is(recv(c, in, 32 * KIB, MSG_WAITALL), 32 * KIB, "tcp: receive them");
    ok(all_bytes(in, 'b', 32 * KIB), "tcp: content");
    is(setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, 4), 0, "tcp: NODELAY");
    fails(setsockopt(c, IPPROTO_TCP, 9999, &one, 4), ENOPROTOOPT,
          "tcp: unknown option");
    fails(setsockopt(c, SOL_SOCKET, SO_REUSEADDR, BAD_PTR, 4), EFAULT,
          "tcp: option from nowhere");
    fails(getsockopt(c, SOL_SOCKET, SO_REUSEADDR, BAD_PTR, &len), EFAULT,
          "tcp: option to nowhere");
    fails(getsockname(c, (void *) &b, BAD_PTR), EFAULT, "tcp: name's length");
    fails(getpeername(l, (void *) &b, &len), ENOTCONN, "tcp: no peer");
    fails(connect(c, BAD_PTR, 16), EFAULT, "tcp: connect to nowhere");
    fails(bind(c, (void *) &a, 1), EINVAL, "tcp: bind to too little");
    fails(listen(999, 1), EBADF, "tcp: bad descriptor");
    close(l), close(c), close(s);
    c = socket(AF_INET, SOCK_STREAM, 0);
    fails(connect(c, (void *) &a, sizeof a), ECONNREFUSED, "tcp: refused");
    close(c);
}

static void test_udp(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr = {htonl(INADDR_LOOPBACK)}},
                       from = {0};
    socklen_t len = sizeof a;
    int r = socket(AF_INET, SOCK_DGRAM, 0), w = socket(AF_INET, SOCK_DGRAM, 0);
    need(r >= 0 && w >= 0, "socket");
    is(bind(r, (void *) &a, sizeof a), 0, "udp: bind");
    need(getsockname(r, (void *) &a, &len) == 0, "getsockname");
    is(sendto(w, "datagram", 8, 0, (void *) &a, sizeof a), 8, "udp: sendto");
    char buf[64];
    len = sizeof from;
    is(recvfrom(r, buf, 4, MSG_TRUNC, (void *) &from, &len), 8,
       "udp: recvfrom, cut short");
    ok(len == 16 && from.sin_family == AF_INET, "udp: the sender");
    is(sendto(w, "", 0, 0, (void *) &a, sizeof a), 0, "udp: an empty one");
    is(recvfrom(r, buf, 64, 0, NULL, NULL), 0, "udp: arrives");
    fails(sendto(w, "x", 1, 0, BAD_PTR, 16), EFAULT, "udp: to nowhere");
    fails(send(w, "x", 1, 0), EDESTADDRREQ, "udp: to nobody");
    close(r), close(w);
}

static void test_unix(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const char *dir = getenv("TMPDIR");
    snprintf(a.sun_path, sizeof a.sun_path, "%s/guest.s.%d", dir ? dir : "/tmp",
             getpid());
    int l = socket(AF_UNIX, SOCK_STREAM, 0),
        c = socket(AF_UNIX, SOCK_STREAM, 0);
    is(bind(l, (void *) &a, sizeof a), 0, "unix: bind");
    fails(bind(c, (void *) &a, sizeof a), EADDRINUSE, "unix: in use");
    is(listen(l, 1), 0, "unix: listen");
    is(connect(c, (void *) &a, sizeof a), 0, "unix: connect");
    int s = accept(l, NULL, NULL);
    ok(s >= 0, "unix: accept");
    struct ucred cred;
    socklen_t len = sizeof cred;
    ok(getsockopt(s, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
           cred.pid == getpid() && cred.uid == getuid(),
       "unix: the peer is this process");
    close(l), close(c), close(s);
    is(unlink(a.sun_path), 0, "unix: unlink");
}

int main(void)
{
    int null = open("/dev/null", O_RDONLY);
    need(null >= 0 && dup2(null, 0) == 0, "dup2");
    close(null);
    test_pair();
    test_rights();
    test_tcp();
    test_udp();
    test_unix();
    return tap_done();
}
