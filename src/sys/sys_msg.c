/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sendmsg, recvmsg and their array forms: a header of pointers, an iovec, a
 * control buffer that can carry descriptors.
 */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "sys/call.h"

#define MESSAGE_SPANS  6
#define MESSAGE_PIECES 32
#define MESSAGE_MAX    (16UL << 20)
#define CONTROL_MAX    65536UL

/* struct user_msghdr and mmsghdr as the arm64 guest has them. */
typedef struct guest_msghdr {
    uint64_t name;
    uint32_t namelen, pad1;
    uint64_t iov, iovlen;
    uint64_t control, controllen;
    uint32_t flags, pad2;
} guest_msghdr_t;

typedef struct guest_mmsghdr {
    guest_msghdr_t hdr;
    uint32_t len, pad;
} guest_mmsghdr_t;

/* One message while its call runs. */
typedef struct message {
    thread_t *t;
    guest_msghdr_t guest;
    struct msghdr host;
    struct sockaddr_storage name;
    struct iovec piece[MESSAGE_PIECES];
    span_set_t span[MESSAGE_SPANS];
    int spans;
    guest_iovec_t *iov;
    int64_t nr_iov;
    uint8_t *bounce; /* NULL: straight into the guest */
    uint8_t *control;
} message_t;

static void message_end(message_t *m)
{
    while (m->spans)
        span_put(&m->t->cpu, &m->span[--m->spans]);
    free(m->bounce);
    free(m->control);
    free(m->iov);
}

/* In or out of the flat buffer; as many bytes as were accessible. */
static uint64_t message_copy(message_t *m, uint64_t n, bool send)
{
    uint64_t total = 0;

    for (int64_t i = 0; i < m->nr_iov && total < n; i++) {
        uint64_t len = m->iov[i].len;

        len = len < n - total ? len : n - total;
        if (send ? get_bytes(m->t, m->bounce + total, m->iov[i].base, len)
                 : put_bytes(m->t, m->iov[i].base, m->bounce + total, len))
            break;
        total += len;
    }
    return total;
}

/* Spans over all buffers; false: they are too many, or not all accessible. */
static bool message_spans(message_t *m, bool send)
{
    int nr = 0;

    for (int64_t i = 0; i < m->nr_iov; i++) {
        span_set_t *s = &m->span[m->spans];

        if (!m->iov[i].len)
            continue;
        if (m->spans == MESSAGE_SPANS ||
            span_get(m->t->proc->mm, &m->t->cpu, m->iov[i].base, m->iov[i].len,
                     send ? SPAN_READ : SPAN_WRITE, m->piece + nr,
                     MESSAGE_PIECES - nr, s))
            return false;
        m->spans++;
        nr += s->nr;
        if (s->bytes < m->iov[i].len)
            return false;
    }
    m->host.msg_iov = m->piece;
    m->host.msg_iovlen = (size_t) nr;
    return true;
}

static int64_t message_buffers(message_t *m, bool send)
{
    uint64_t total = 0, n;

    m->iov = malloc(IOV_COUNT_MAX * sizeof *m->iov);
    if (!m->iov)
        return -ENOMEM;
    if (m->guest.iovlen > IOV_COUNT_MAX)
        return -EMSGSIZE;
    m->nr_iov = iovec_import(m->t, m->guest.iov, m->guest.iovlen, m->iov);
    if (m->nr_iov < 0)
        return m->nr_iov;
    for (int64_t i = 0; i < m->nr_iov; i++) {
        if (m->iov[i].len > MESSAGE_MAX - total)
            m->iov[i].len = MESSAGE_MAX - total;
        total += m->iov[i].len;
    }
    if (message_spans(m, send))
        return 0;
    while (m->spans)
        span_put(&m->t->cpu, &m->span[--m->spans]);
    m->bounce = malloc(total ? total : 1);
    if (!m->bounce)
        return -ENOMEM;
    n = send ? message_copy(m, total, true) : total;
    if (n < total)
        return -EFAULT;
    m->piece[0].iov_base = m->bounce;
    m->piece[0].iov_len = n;
    m->host.msg_iov = m->piece;
    m->host.msg_iovlen = 1;
    return 0;
}

/* Descriptors that are handed over must be the guest's. */
static int64_t control_check(const struct msghdr *h)
{
    const struct cmsghdr *c;

    for (c = CMSG_FIRSTHDR(h); c;
         c = CMSG_NXTHDR((struct msghdr *) h, (struct cmsghdr *) c)) {
        size_t left = (size_t) ((uint8_t *) h->msg_control + h->msg_controllen -
                                (uint8_t *) c);
        size_t len = c->cmsg_len < left ? c->cmsg_len : left;

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = CMSG_LEN(0); at + sizeof(int) <= len;
             at += sizeof(int)) {
            int fd;

            memcpy(&fd, (const uint8_t *) c + at, sizeof fd);
            if (fd >= 0 && fd_hidden((uint64_t) fd))
                return -EBADF;
        }
    }
    return 0;
}

static int64_t message_control(message_t *m, bool send)
{
    uint64_t len = m->guest.controllen;

    if (!m->guest.control || !len)
        return 0;
    if (len > CONTROL_MAX) {
        if (send)
            return -ENOBUFS;
        len = CONTROL_MAX;
    }
    m->control = calloc(1, len);
    if (!m->control)
        return -ENOMEM;
    m->host.msg_control = m->control;
    m->host.msg_controllen = len;
    if (!send)
        return 0;
    if (get_bytes(m->t, m->control, m->guest.control, len))
        return -EFAULT;
    return control_check(&m->host);
}

static int64_t message_begin(message_t *m, thread_t *t, uint64_t guest,
                             bool send)
{
    int64_t ret;

    memset(&m->host, 0, sizeof m->host);
    m->t = t;
    m->spans = 0;
    m->iov = NULL;
    m->bounce = m->control = NULL;
    m->nr_iov = 0;
    if (get_struct(t, &m->guest, guest))
        return -EFAULT;
    if ((int32_t) m->guest.namelen < 0)
        return -EINVAL;
    if (m->guest.name && m->guest.namelen) {
        m->host.msg_name = &m->name;
        m->host.msg_namelen = sizeof m->name;
        if (send) {
            if (m->guest.namelen < sizeof m->name)
                m->host.msg_namelen = m->guest.namelen;
            if (get_bytes(t, &m->name, m->guest.name, m->host.msg_namelen))
                return -EFAULT;
        }
    }
    ret = message_buffers(m, send);
    return ret ? ret : message_control(m, send);
}

/* An error of ours, unless the descriptor or the flags are worse: the kernel
 * looks at these first. */
static int64_t message_error(uint64_t nr, uint64_t fd, uint64_t flags,
                             int64_t ours)
{
    int64_t ret = host_call(nr, fd, bad_pointer(0, 1), flags, 0, 0, 0);

    return ret < 0 && ret != -EFAULT ? ret : ours;
}

static int64_t message_send(thread_t *t, uint64_t fd, uint64_t guest,
                            uint64_t flags)
{
    message_t m;
    int64_t ret = message_begin(&m, t, guest, true);

    if (ret == 0)
        ret = blocking_call(t, SYS_sendmsg, fd, P(&m.host), flags, 0, 0, 0);
    else
        ret = message_error(SYS_sendmsg, fd, flags, ret);
    message_end(&m);
    return ret;
}

/* What recvmsg tells the guest beside the data. */
static int64_t message_report(message_t *m, uint64_t guest, int64_t ret)
{
    guest_msghdr_t *g = &m->guest;
    uint32_t name = (uint32_t) m->host.msg_namelen;

    if (m->bounce && ret > 0) {
        uint64_t n = (uint64_t) ret;

        if (n > m->piece[0].iov_len) /* MSG_TRUNC tells the full length */
            n = m->piece[0].iov_len;
        if (message_copy(m, n, false) < n)
            return -EFAULT;
    }
    if (g->name) {
        uint32_t n = name < g->namelen ? name : g->namelen;

        if (n > sizeof m->name)
            n = sizeof m->name;
        if (n && put_bytes(m->t, g->name, &m->name, n))
            return -EFAULT;
        g->namelen = name;
    }
    if (m->control && m->host.msg_controllen &&
        put_bytes(m->t, g->control, m->control, m->host.msg_controllen))
        return -EFAULT;
    g->controllen = m->host.msg_controllen;
    g->flags = (uint32_t) m->host.msg_flags;
    if (put_bytes(m->t, guest + offsetof(guest_msghdr_t, namelen), &g->namelen,
                  4) ||
        put_bytes(m->t, guest + offsetof(guest_msghdr_t, controllen),
                  &g->controllen, 8) ||
        put_bytes(m->t, guest + offsetof(guest_msghdr_t, flags), &g->flags, 4))
        return -EFAULT;
    return ret;
}

static int64_t message_receive(thread_t *t, uint64_t fd, uint64_t guest,
                               uint64_t flags)
{
    message_t m;
    int64_t ret = message_begin(&m, t, guest, false);

    if (ret == 0)
        ret = blocking_call(t, SYS_recvmsg, fd, P(&m.host), flags, 0, 0, 0);
    else
        ret = message_error(SYS_recvmsg, fd, flags, ret);
    if (ret >= 0)
        ret = message_report(&m, guest, ret);
    message_end(&m);
    return ret;
}

int64_t sys_sendmsg(thread_t *t, const uint64_t *a)
{
    return fd_hidden(a[0]) ? -EBADF : message_send(t, a[0], a[1], a[2]);
}

int64_t sys_recvmsg(thread_t *t, const uint64_t *a)
{
    return fd_hidden(a[0]) ? -EBADF : message_receive(t, a[0], a[1], a[2]);
}

#define MESSAGES_MAX 1024U

static int64_t message_length(thread_t *t, uint64_t guest, int64_t ret)
{
    uint32_t len = (uint32_t) ret;

    return put_bytes(t, guest + offsetof(guest_mmsghdr_t, len), &len, 4);
}

int64_t sys_sendmmsg(thread_t *t, const uint64_t *a)
{
    unsigned n = (unsigned) a[2], i;
    int64_t ret = 0;

    if (fd_hidden(a[0]))
        return -EBADF;
    n = n < MESSAGES_MAX ? n : MESSAGES_MAX;
    if (n == 0)
        return message_error(SYS_sendmsg, a[0], a[3], 0);
    for (i = 0; i < n; i++) {
        uint64_t guest = a[1] + i * sizeof(guest_mmsghdr_t);

        ret = message_send(t, a[0], guest, a[3]);
        if (ret >= 0 && message_length(t, guest, ret))
            ret = -EFAULT;
        if (ret < 0)
            break;
    }
    return i ? (int64_t) i : ret;
}

static int64_t now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/*
 * As the kernel does: the timeout is looked at after each message, and
 * MSG_WAITFORONE waits for the first only.
 */
int64_t sys_recvmmsg(thread_t *t, const uint64_t *a)
{
    struct timespec ts;
    unsigned n = (unsigned) a[2], i;
    uint64_t flags = a[3] & ~(uint64_t) MSG_WAITFORONE;
    int64_t ret = 0, end = 0;

    if (fd_hidden(a[0]))
        return -EBADF;
    if (a[3] & 0x80000000UL) /* MSG_CMSG_COMPAT */
        return -EINVAL;
    if (a[4]) {
        if (get_struct(t, &ts, a[4]))
            return -EFAULT;
        if (ts.tv_sec < 0 || ts.tv_nsec < 0 || ts.tv_nsec >= 1000000000)
            return -EINVAL;
        end = ts.tv_sec > 1L << 32
                  ? INT64_MAX
                  : now_ns() + ts.tv_sec * 1000000000 + ts.tv_nsec;
    }
    n = n < MESSAGES_MAX ? n : MESSAGES_MAX;
    if (n == 0)
        return message_error(SYS_recvmsg, a[0], flags, 0);
    for (i = 0; i < n; i++) {
        uint64_t guest = a[1] + i * sizeof(guest_mmsghdr_t);

        ret = message_receive(t, a[0], guest, flags);
        if (ret >= 0 && message_length(t, guest, ret))
            ret = -EFAULT;
        if (ret < 0)
            break;
        if (a[3] & MSG_WAITFORONE)
            flags |= MSG_DONTWAIT;
        if (a[4] && now_ns() >= end) {
            i++;
            break;
        }
    }
    if (a[4] && i) {
        int64_t left = end - now_ns();

        left = left > 0 ? left : 0;
        ts.tv_sec = left / 1000000000;
        ts.tv_nsec = left % 1000000000;
        if (put_struct(t, a[4], &ts))
            return -EFAULT;
    }
    return i ? (int64_t) i : ret;
}
