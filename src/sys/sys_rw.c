/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read, write and their vector and positioned forms.
 *
 * A buffer is prepared in steps, so that a read of a gigabyte that returns ten
 * bytes has not materialised a gigabyte: 1 MiB first, then more as long as each
 * step was filled, and from a pipe, a socket or a terminal only while data is
 * there. What must be moved by one call (a datagram, an unknown file) is.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "sys/call.h"

#define STEP_FIRST (1UL << 20)
#define STEP_MAX   (16UL << 20)
/* Buffers prepared at once without a bounce; below SPAN_SLOTS. */
#define RW_SPANS  6
#define RW_PIECES 16

enum rw_kind { RW_WHOLE, RW_FILE, RW_STREAM };

typedef struct rw {
    thread_t *t;
    int fd;
    bool write;
    bool positioned;
    bool flagged; /* preadv2/pwritev2: position may be -1 */
    int64_t pos;
    int flags;
    guest_iovec_t *iov;
    uint64_t nr, at, done; /* cursor in iov */
} rw_t;

static enum rw_kind rw_kind(int fd)
{
    struct stat st;
    int type;
    socklen_t len = sizeof type;

    if (fstat(fd, &st))
        return RW_WHOLE;
    if (S_ISREG(st.st_mode) || S_ISBLK(st.st_mode))
        return RW_FILE;
    if (S_ISCHR(st.st_mode)) /* /dev/zero, null, random: memory devices */
        return major(st.st_rdev) == 1 ? RW_FILE : RW_STREAM;
    if (S_ISFIFO(st.st_mode))
        return RW_STREAM;
    if (S_ISSOCK(st.st_mode) &&
        !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) &&
        type == SOCK_STREAM)
        return RW_STREAM;
    return RW_WHOLE;
}

/* A message goes whole or not at all. */
static bool is_message_socket(int fd)
{
    int type;
    socklen_t len = sizeof type;

    return !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) &&
           type != SOCK_STREAM;
}

static int64_t rw_host(const rw_t *rw, const struct iovec *iov, int nr)
{
    uint64_t call;

    if (rw->flagged)
        call = rw->write ? SYS_pwritev2 : SYS_preadv2;
    else if (rw->positioned)
        call = nr == 1 ? (rw->write ? SYS_pwrite64 : SYS_pread64)
                       : (rw->write ? SYS_pwritev : SYS_preadv);
    else
        call = nr == 1 ? (rw->write ? SYS_write : SYS_read)
                       : (rw->write ? SYS_writev : SYS_readv);
    if (nr == 1 && !rw->flagged)
        return blocking_call(rw->t, call, (uint64_t) rw->fd, P(iov->iov_base),
                             iov->iov_len, (uint64_t) rw->pos, 0, 0);
    return blocking_call(rw->t, call, (uint64_t) rw->fd, P(iov), (uint64_t) nr,
                         (uint64_t) rw->pos, 0, (uint64_t) rw->flags);
}

static void rw_advance(rw_t *rw, uint64_t n)
{
    if (rw->positioned && rw->pos >= 0)
        rw->pos += (int64_t) n;
    while (rw->at < rw->nr) {
        uint64_t left = rw->iov[rw->at].len - rw->done;

        if (n < left) {
            rw->done += n;
            return;
        }
        n -= left;
        rw->at++;
        rw->done = 0;
    }
}

static uint64_t rw_left(const rw_t *rw)
{
    uint64_t left = 0;

    for (uint64_t i = rw->at; i < rw->nr; i++)
        left += rw->iov[i].len;
    return left - rw->done;
}

/* One step straight into the guest's memory, at most `limit` bytes. *wanted is
 * what the host was asked for. */
static int64_t rw_direct(rw_t *rw, uint64_t limit, uint64_t *wanted)
{
    struct iovec piece[RW_PIECES];
    span_set_t span[RW_SPANS];
    thread_t *t = rw->t;
    uint64_t done = rw->done;
    int nr = 0, spans = 0;
    int64_t ret;

    *wanted = 0;
    for (uint64_t i = rw->at; i < rw->nr && spans < RW_SPANS; i++, done = 0) {
        uint64_t len = rw->iov[i].len - done;
        span_set_t *s = &span[spans];

        if (len > limit - *wanted)
            len = limit - *wanted;
        if (len == 0)
            continue;
        if (span_get(t->proc->mm, &t->cpu, rw->iov[i].base + done, len,
                     rw->write ? SPAN_READ : SPAN_WRITE, piece + nr,
                     RW_PIECES - nr, s))
            break;
        nr += s->nr;
        *wanted += s->bytes;
        spans++;
        if (s->bytes < len || nr == RW_PIECES)
            break;
    }
    if (*wanted == 0) {
        /* The kernel finds the other errors first, or the end of the file. */
        piece[0].iov_base = (void *) (uintptr_t) bad_pointer(
            rw->iov[rw->at].base + rw->done, 1);
        piece[0].iov_len = *wanted = limit;
        nr = 1;
    }
    ret = rw_host(rw, piece, nr);
    while (spans--)
        span_put(&t->cpu, &span[spans]);
    return ret;
}

/* Bytes of the list from the cursor on, in or out of a flat buffer; returns how
 * many were accessible. */
static uint64_t rw_copy(rw_t *rw, uint8_t *buf, uint64_t n)
{
    uint64_t total = 0, done = rw->done;

    for (uint64_t i = rw->at; i < rw->nr && total < n; i++, done = 0) {
        uint64_t base = rw->iov[i].base + done;
        uint64_t len = rw->iov[i].len - done, at = 0;

        if (len > n - total)
            len = n - total;
        while (at < len) {
            uint64_t step = 0x1000 - ((base + at) & 0xfff);
            int err;

            step = step < len - at ? step : len - at;
            err = rw->write ? get_bytes(rw->t, buf + total, base + at, step)
                            : put_bytes(rw->t, base + at, buf + total, step);
            if (err)
                return total;
            at += step;
            total += step;
        }
    }
    return total;
}

/* One step through a buffer of our own: many small pieces, one call. */
static int64_t rw_bounce(rw_t *rw, uint64_t limit, uint64_t *wanted)
{
    uint64_t n = rw_left(rw);
    uint8_t *buf;
    struct iovec iov;
    int64_t ret;

    n = n < limit ? n : limit;
    *wanted = n;
    buf = malloc(n ? n : 1);
    if (!buf)
        return -ENOMEM;
    if (rw->write)
        *wanted = n = rw_copy(rw, buf, n);
    iov.iov_base = buf;
    iov.iov_len = n;
    ret = rw->write && n == 0 ? -EFAULT : rw_host(rw, &iov, 1);
    if (!rw->write && ret > 0) {
        uint64_t got = rw_copy(rw, buf, (uint64_t) ret);

        ret = got ? (int64_t) got : -EFAULT;
    }
    free(buf);
    return ret;
}

static bool rw_data_waits(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}

static int64_t rw_run(rw_t *rw, uint64_t total)
{
    enum rw_kind kind = total > STEP_FIRST ? rw_kind(rw->fd) : RW_WHOLE;
    uint64_t limit = STEP_FIRST, sum = 0, wanted;

    if (kind == RW_WHOLE && total > STEP_FIRST)
        limit = total < STEP_MAX || rw->write ? total : STEP_MAX;
    for (;;) {
        int64_t ret = rw->nr - rw->at > RW_SPANS
                          ? rw_bounce(rw, limit, &wanted)
                          : rw_direct(rw, limit, &wanted);

        if (ret < 0)
            return sum ? (int64_t) sum : ret;
        sum += (uint64_t) ret;
        rw_advance(rw, (uint64_t) ret);
        if (kind == RW_WHOLE || (uint64_t) ret < wanted || sum >= total)
            return (int64_t) sum;
        if (kind == RW_STREAM && !rw->write && !rw_data_waits(rw->fd))
            return (int64_t) sum;
        if (limit < STEP_MAX)
            limit *= 2;
    }
}

static int64_t rw_steps(rw_t *rw, guest_iovec_t *iov, uint64_t nr,
                        uint64_t total)
{
    int64_t ret;

    rw->iov = iov;
    rw->nr = nr;
    ret = rw_run(rw, total);
    rw->iov = NULL;
    return ret;
}

/* Zero bytes: the host checks the descriptor, nothing is touched. */
static int64_t rw_nothing(rw_t *rw)
{
    struct iovec iov = {.iov_base = NULL, .iov_len = 0};

    return rw_host(rw, &iov, 1);
}

static int64_t rw_plain(rw_t *rw, uint64_t buf, uint64_t len)
{
    guest_iovec_t one = {buf, len};
    struct iovec piece[RW_PIECES];
    span_set_t span;
    int64_t ret;

    if (fd_hidden((uint64_t) rw->fd))
        return -EBADF;
    if (len > RW_COUNT_MAX)
        one.len = RW_COUNT_MAX;
    if (!user_range(buf, len)) {
        piece[0].iov_base = (void *) (uintptr_t) bad_pointer(buf, len);
        piece[0].iov_len = len;
        return rw_host(rw, piece, 1);
    }
    if (len == 0)
        return rw_nothing(rw);
    if (len <= STEP_FIRST) {
        thread_t *t = rw->t;

        if (span_get(t->proc->mm, &t->cpu, buf, len,
                     rw->write ? SPAN_READ : SPAN_WRITE, piece, RW_PIECES,
                     &span)) {
            piece[0].iov_base = (void *) (uintptr_t) bad_pointer(buf, len);
            piece[0].iov_len = len;
            return rw_host(rw, piece, 1);
        }
        if (span.bytes < len && rw->write && is_message_socket(rw->fd))
            ret = -EFAULT;
        else
            ret = rw_host(rw, piece, span.nr);
        span_put(&t->cpu, &span);
        return ret;
    }
    return rw_steps(rw, &one, 1, one.len);
}

int64_t sys_read(thread_t *t, const uint64_t *a)
{
    rw_t rw = {.t = t, .fd = (int) a[0]};

    return rw_plain(&rw, a[1], a[2]);
}

int64_t sys_write(thread_t *t, const uint64_t *a)
{
    rw_t rw = {.t = t, .fd = (int) a[0], .write = true};

    return rw_plain(&rw, a[1], a[2]);
}

int64_t sys_pread64(thread_t *t, const uint64_t *a)
{
    rw_t rw = {
        .t = t, .fd = (int) a[0], .positioned = true, .pos = (int64_t) a[3]};

    return rw_plain(&rw, a[1], a[2]);
}

int64_t sys_pwrite64(thread_t *t, const uint64_t *a)
{
    rw_t rw = {.t = t,
               .fd = (int) a[0],
               .positioned = true,
               .pos = (int64_t) a[3],
               .write = true};

    return rw_plain(&rw, a[1], a[2]);
}

/*
 * The kernel itself is shown a list that is wrong in the same way, and answers
 * in its own order: the descriptor may be worse.
 */
static int64_t rw_bad_vector(rw_t *rw, uint64_t count, int64_t err)
{
    /* Two elements: one alone becomes a plain read. */
    struct iovec bad[2] = {{NULL, 0}, {NULL, 0}};
    int nr = 2;

    if (err == -EFAULT) {
        bad[1].iov_base = (void *) ~0xfffUL;
        bad[1].iov_len = 1;
    } else if ((uint32_t) count > IOV_COUNT_MAX) {
        nr = IOV_COUNT_MAX + 1;
    } else {
        bad[1].iov_len = ~0UL;
    }
    return rw_host(rw, bad, nr);
}

static int64_t rw_vector(rw_t *rw, const uint64_t *a)
{
    guest_iovec_t iov[IOV_COUNT_MAX];
    uint64_t total = 0;
    int64_t n;

    rw->fd = (int) a[0];
    if (fd_hidden(a[0]))
        return -EBADF;
    n = iovec_import(rw->t, a[1], a[2], iov);
    if (n < 0)
        return rw_bad_vector(rw, a[2], n);
    for (int64_t i = 0; i < n; i++)
        total += iov[i].len;
    if (total == 0)
        return rw_nothing(rw);
    return rw_steps(rw, iov, (uint64_t) n, total);
}

int64_t sys_readv(thread_t *t, const uint64_t *a)
{
    rw_t rw = {.t = t};

    return rw_vector(&rw, a);
}

int64_t sys_writev(thread_t *t, const uint64_t *a)
{
    rw_t rw = {.t = t, .write = true};

    return rw_vector(&rw, a);
}

int64_t sys_preadv(thread_t *t, const uint64_t *a)
{
    rw_t rw = {.t = t, .positioned = true, .pos = (int64_t) a[3]};

    return rw_vector(&rw, a);
}

int64_t sys_pwritev(thread_t *t, const uint64_t *a)
{
    rw_t rw = {
        .t = t, .positioned = true, .pos = (int64_t) a[3], .write = true};

    return rw_vector(&rw, a);
}

int64_t sys_preadv2(thread_t *t, const uint64_t *a)
{
    rw_t rw = {.t = t,
               .positioned = true,
               .flagged = true,
               .pos = (int64_t) a[3],
               .flags = (int) a[5]};

    return rw_vector(&rw, a);
}

int64_t sys_pwritev2(thread_t *t, const uint64_t *a)
{
    rw_t rw = {.t = t,
               .positioned = true,
               .flagged = true,
               .write = true,
               .pos = (int64_t) a[3],
               .flags = (int) a[5]};

    return rw_vector(&rw, a);
}

/*
 * Into a pipe, as a copy: pages lent to a pipe could be reused by mm while they
 * are still to be read. Out of one it is a readv.
 */
int64_t sys_vmsplice(thread_t *t, const uint64_t *a)
{
    struct stat st;
    int mode;
    rw_t rw = {.t = t};

    if ((uint32_t) a[3] & ~0xfU)
        return -EINVAL;
    if (fd_hidden(a[0]))
        return -EBADF;
    mode = (int) host_call(SYS_fcntl, a[0], 3 /* F_GETFL */, 0, 0, 0, 0);
    if (mode < 0 || fstat((int) a[0], &st) || !S_ISFIFO(st.st_mode))
        return -EBADF;
    rw.write = (mode & 3) != 0;
    return rw_vector(&rw, a);
}

int64_t sys_getrandom(thread_t *t, const uint64_t *a)
{
    uint64_t len = a[1] > 0x7fffffff ? 0x7fffffff : a[1], sum = 0;

    if (len == 0)
        return blocking_call(t, SYS_getrandom, 0, 0, a[2], 0, 0, 0);
    while (sum < len) {
        uint64_t n = len - sum < STEP_FIRST ? len - sum : STEP_FIRST;
        struct iovec iov[1];
        span_set_t span;
        int64_t ret;

        if (span_get(t->proc->mm, &t->cpu, a[0] + sum, n, SPAN_WRITE, iov, 1,
                     &span)) {
            if (sum)
                break;
            return blocking_call(t, SYS_getrandom, bad_pointer(a[0], len), n,
                                 a[2], 0, 0, 0);
        }
        ret = blocking_call(t, SYS_getrandom, P(iov[0].iov_base), span.bytes,
                            a[2], 0, 0, 0);
        n = span.bytes;
        span_put(&t->cpu, &span);
        if (ret < 0)
            return sum ? (int64_t) sum : ret;
        sum += (uint64_t) ret;
        if ((uint64_t) ret < n)
            break;
    }
    return (int64_t) sum;
}
