/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets: addresses with value-result lengths, options, datagrams. */
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "sys/call.h"

/* No socket option is larger, but for tables of netfilter. */
#define OPTION_MAX 65536U

typedef struct sockaddr_storage address_t;

/* What the kernel does with a value-result address: min(room, size) bytes back,
 * the full size in *len. */
static int64_t address_put(thread_t *t, const address_t *addr, socklen_t size,
                           uint64_t guest, uint64_t guest_len, int room)
{
    size_t n = size < (socklen_t) room ? size : (socklen_t) room;

    if (n > sizeof *addr)
        n = sizeof *addr;
    if (n && put_bytes(t, guest, addr, n))
        return -EFAULT;
    return put_struct(t, guest_len, &size) ? -EFAULT : 0;
}

static int64_t address_call(thread_t *t, uint64_t nr, const uint64_t *a,
                            uint64_t flags)
{
    address_t addr;
    socklen_t size = sizeof addr;
    int room = 0;
    int64_t ret;

    if (fd_hidden(a[0]))
        return -EBADF;
    if (!a[1] && nr != SYS_getsockname && nr != SYS_getpeername)
        return blocking_call(t, nr, a[0], 0, 0, flags, 0, 0);
    if (get_struct(t, &room, a[2])) {
        ret = blocking_call(t, nr, a[0], P(&addr), bad_pointer(a[2], 4), flags,
                            0, 0);
        return ret;
    }
    if (room < 0) {
        size = (socklen_t) room;
        return blocking_call(t, nr, a[0], P(&addr), P(&size), flags, 0, 0);
    }
    ret = blocking_call(t, nr, a[0], P(&addr), P(&size), flags, 0, 0);
    if (ret >= 0) {
        int64_t err = address_put(t, &addr, size, a[1], a[2], room);

        if (err && ret > 0 && nr != SYS_getsockname && nr != SYS_getpeername)
            host_call(SYS_close, (uint64_t) ret, 0, 0, 0, 0, 0);
        ret = err ? err : ret;
    }
    return ret;
}

int64_t sys_accept(thread_t *t, const uint64_t *a)
{
    return address_call(t, SYS_accept4, a, 0);
}

int64_t sys_accept4(thread_t *t, const uint64_t *a)
{
    return address_call(t, SYS_accept4, a, a[3]);
}

int64_t sys_getsockname(thread_t *t, const uint64_t *a)
{
    return address_call(t, SYS_getsockname, a, 0);
}

int64_t sys_getpeername(thread_t *t, const uint64_t *a)
{
    return address_call(t, SYS_getpeername, a, 0);
}

/* Levels whose options are given memory by address. */
#define LEVEL_RDS   276
#define LEVEL_XDP   283
#define LEVEL_MPTCP 284
#define LEVEL_SCTP  132

/* Options whose value holds addresses of the guest, which the kernel would
 * take for elfuse's. */
static bool option_refused(int level, int name)
{
    switch (level) {
    case LEVEL_RDS:
    case LEVEL_XDP:
    case LEVEL_MPTCP:
        return true;
    case LEVEL_SCTP:
        return name == 111; /* SCTP_SOCKOPT_CONNECTX3 */
    case SOL_PACKET:
        return name == 22; /* PACKET_FANOUT_DATA */
    case IPPROTO_TCP:
        return name == 35; /* TCP_ZEROCOPY_RECEIVE */
    case IPPROTO_IP:
    case IPPROTO_IPV6:
        /* IPT_SO_* and their like: counters are written behind a pointer. */
        return name >= 64 && name < 128;
    default:
        return false;
    }
}

/* Answers whose size the kernel takes from somewhere else than the length. */
static bool answer_unbounded(int level, int name)
{
    return (level == IPPROTO_IP || level == IPPROTO_IPV6) &&
           (name == 41 /* IP_MSFILTER */ || name == MCAST_MSFILTER);
}

static int64_t attach_filter(thread_t *t, const uint64_t *a)
{
    struct {
        uint16_t len, pad[3];
        uint64_t filter;
    } prog;
    struct sock_filter *code;
    struct sock_fprog host;
    int64_t ret;

    if (a[4] < sizeof prog)
        return -EINVAL;
    if (get_struct(t, &prog, a[3]))
        return -EFAULT;
    if (prog.len == 0 || prog.len > BPF_MAXINSNS)
        return -EINVAL;
    code = calloc(prog.len, sizeof *code);
    if (!code)
        return -ENOMEM;
    host.len = prog.len;
    host.filter = code;
    if (get_bytes(t, code, prog.filter, prog.len * sizeof *code))
        ret = -EFAULT;
    else
        ret = blocking_call(t, SYS_setsockopt, a[0], a[1], a[2], P(&host),
                            sizeof host, 0);
    free(code);
    return ret;
}

int64_t sys_setsockopt(thread_t *t, const uint64_t *a)
{
    int level = (int) a[1], name = (int) a[2];
    uint32_t len = (uint32_t) a[4];
    uint8_t stack[256], *buf = stack;
    int64_t ret;

    if (fd_hidden(a[0]))
        return -EBADF;
    if (option_refused(level, name))
        return -ENOPROTOOPT;
    if (level == SOL_SOCKET &&
        (name == SO_ATTACH_FILTER || name == SO_ATTACH_REUSEPORT_CBPF))
        return attach_filter(t, a);
    if ((int) len < 0)
        return blocking_call(t, SYS_setsockopt, a[0], a[1], a[2], P(buf), a[4],
                             0);
    if (len > OPTION_MAX)
        len = OPTION_MAX;
    if (!a[3])
        return blocking_call(t, SYS_setsockopt, a[0], a[1], a[2], 0, len, 0);
    if (len > sizeof stack && !(buf = malloc(len)))
        return -ENOMEM;
    if (get_bytes(t, buf, a[3], len))
        ret = blocking_call(t, SYS_setsockopt, a[0], a[1], a[2],
                            bad_pointer(a[3], len), len, 0);
    else if (level == SOL_SOCKET && name == SO_ATTACH_BPF && len >= 4 &&
             fd_hidden(*(uint32_t *) (void *) buf))
        ret = -EBADF;
    else
        ret =
            blocking_call(t, SYS_setsockopt, a[0], a[1], a[2], P(buf), len, 0);
    if (buf != stack)
        free(buf);
    return ret;
}

/* SO_GET_FILTER counts instructions, not bytes. */
static int64_t get_filter(thread_t *t, const uint64_t *a)
{
    struct sock_filter *code;
    socklen_t len;
    int64_t ret;
    int room;

    if (get_struct(t, &room, a[4]))
        return blocking_call(t, SYS_getsockopt, a[0], a[1], a[2], P(&room),
                             bad_pointer(a[4], 4), 0);
    code = calloc(BPF_MAXINSNS, sizeof *code);
    if (!code)
        return -ENOMEM;
    len = (socklen_t) room;
    ret =
        blocking_call(t, SYS_getsockopt, a[0], a[1], a[2], P(code), P(&len), 0);
    if (ret >= 0 && room > 0 && len <= BPF_MAXINSNS && len &&
        put_bytes(t, a[3], code, len * sizeof *code))
        ret = -EFAULT;
    if (ret >= 0 && put_struct(t, a[4], &len))
        ret = -EFAULT;
    free(code);
    return ret;
}

int64_t sys_getsockopt(thread_t *t, const uint64_t *a)
{
    uint8_t stack[256] = {0}, *buf = stack;
    size_t size = sizeof stack;
    int room;
    socklen_t len;
    int64_t ret;

    if (fd_hidden(a[0]))
        return -EBADF;
    if (option_refused((int) a[1], (int) a[2]) ||
        answer_unbounded((int) a[1], (int) a[2]))
        return -ENOPROTOOPT;
    if ((int) a[1] == SOL_SOCKET && (int) a[2] == SO_GET_FILTER)
        return get_filter(t, a);
    if (get_struct(t, &room, a[4]))
        return blocking_call(t, SYS_getsockopt, a[0], a[1], a[2], P(buf),
                             bad_pointer(a[4], 4), 0);
    len = (socklen_t) room;
    if (room > 0 && len > OPTION_MAX)
        len = OPTION_MAX;
    if (room > (int) sizeof stack) {
        size = len;
        if (!(buf = calloc(1, size)))
            return -ENOMEM;
    }
    /* Some options are asked by what is in the buffer (TCP_INFO's kin). */
    if (room > 0 && get_bytes(t, buf, a[3], len))
        ret = blocking_call(t, SYS_getsockopt, a[0], a[1], a[2],
                            bad_pointer(a[3], len), P(&len), 0);
    else
        ret = blocking_call(t, SYS_getsockopt, a[0], a[1], a[2], P(buf),
                            P(&len), 0);
    if (ret >= 0) {
        /* Some options tell a length beyond the room that they were given. */
        size_t n = room <= 0 ? 0 : len < (socklen_t) room ? len : (size_t) room;

        n = n < size ? n : size;
        if ((n && put_bytes(t, a[3], buf, n)) || put_struct(t, a[4], &len))
            ret = -EFAULT;
    }
    if (buf != stack)
        free(buf);
    return ret;
}

/* Beyond this no datagram goes, and a stream takes it in pieces. */
#define MESSAGE_MAX (16UL << 20)
/* MSG_CMSG_COMPAT: an error to sendmsg and recvmsg, nothing to these. */
#define MSG_COMPAT 0x80000000UL

int64_t sys_sendto(thread_t *t, const uint64_t *a)
{
    struct iovec iov[16];
    struct msghdr msg = {.msg_iov = iov};
    address_t addr;
    span_set_t span;
    uint64_t len = a[2] < MESSAGE_MAX ? a[2] : MESSAGE_MAX;
    uint64_t flags = a[3] & ~MSG_COMPAT;
    int64_t ret;

    if (fd_hidden(a[0]))
        return -EBADF;
    /* The kernel judges in its own order, and sends nothing. */
    if (!user_range(a[1], a[2]))
        return blocking_call(t, SYS_sendto, a[0], ~0xfffUL, a[2], flags, 0, 0);
    if (a[4]) {
        socklen_t n = (socklen_t) a[5];

        if (n > sizeof addr)
            return blocking_call(t, SYS_sendto, a[0], 0, 0, flags, P(&addr), n);
        if (n && get_bytes(t, &addr, a[4], n))
            return blocking_call(t, SYS_sendto, a[0], 0, 0, flags,
                                 bad_pointer(a[4], 4), n);
        msg.msg_name = &addr;
        msg.msg_namelen = n;
    }
    if (len == 0 ||
        span_get(t->proc->mm, &t->cpu, a[1], len, SPAN_READ, iov, 16, &span))
        return blocking_call(t, SYS_sendto, a[0],
                             len ? bad_pointer(a[1], len) : 0, len, flags,
                             P(msg.msg_name), msg.msg_namelen);
    msg.msg_iovlen = (size_t) span.nr;
    /* A message goes whole or not at all; of a stream the kernel would send
     * what it can reach, and so do we. */
    if (span.bytes < len) {
        int type = 0;
        socklen_t n = sizeof type;

        if (!getsockopt((int) a[0], SOL_SOCKET, SO_TYPE, &type, &n) &&
            type != SOCK_STREAM) {
            span_put(&t->cpu, &span);
            return -EFAULT;
        }
    }
    ret = blocking_call(t, SYS_sendmsg, a[0], P(&msg), flags, 0, 0, 0);
    span_put(&t->cpu, &span);
    return ret;
}

int64_t sys_recvfrom(thread_t *t, const uint64_t *a)
{
    struct iovec iov[16];
    struct msghdr msg = {.msg_iov = iov};
    address_t addr;
    span_set_t span = {.slot = -1};
    uint64_t len = a[2], limit = 1UL << 20;
    int room = 0, type = SOCK_STREAM;
    socklen_t n = sizeof type;
    int64_t ret;

    if (fd_hidden(a[0]))
        return -EBADF;
    if (!user_range(a[1], len))
        return blocking_call(t, SYS_recvfrom, a[0], ~0xfffUL, len, a[3], 0, 0);
    if (len > limit) {
        getsockopt((int) a[0], SOL_SOCKET, SO_TYPE, &type, &n);
        if (type != SOCK_STREAM || a[3] & MSG_WAITALL)
            limit = MESSAGE_MAX;
        len = len < limit ? len : limit;
    }
    if (a[4]) {
        msg.msg_name = &addr;
        msg.msg_namelen = sizeof addr;
    }
    if (len == 0 ||
        span_get(t->proc->mm, &t->cpu, a[1], len, SPAN_WRITE, iov, 16, &span)) {
        iov[0].iov_base =
            (void *) (uintptr_t) (len ? bad_pointer(a[1], len) : 0);
        iov[0].iov_len = len;
        msg.msg_iovlen = 1;
    } else {
        msg.msg_iovlen = (size_t) span.nr;
    }
    ret = blocking_call(t, SYS_recvmsg, a[0], P(&msg), a[3] & ~MSG_COMPAT, 0, 0,
                        0);
    if (span.slot >= 0)
        span_put(&t->cpu, &span);
    if (ret >= 0 && a[4]) {
        if (get_struct(t, &room, a[5]))
            return -EFAULT;
        if (room < 0)
            return -EINVAL;
        if (address_put(t, &addr, msg.msg_namelen, a[4], a[5], room))
            return -EFAULT;
    }
    return ret;
}
