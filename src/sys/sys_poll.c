/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for several descriptors: elfuse's own count as closed. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sys/call.h"

typedef struct wait_args {
    struct timespec ts;
    uint64_t host_ts; /* a pointer, or 0 */
    bool has_mask;
    uint64_t mask;      /* the guest's */
    uint64_t host_mask; /* where the host reads it */
} wait_args_t;

/* The pointer that the host gets. */
static uint64_t mask_pointer(wait_args_t *w)
{
    return w->has_mask ? P(&w->host_mask) : 0;
}

static int64_t wait_call(thread_t *t, wait_args_t *w, uint64_t nr,
                         const uint64_t a[6])
{
    if (w->has_mask)
        return signal_waiting_call(t, w->mask, &w->host_mask, nr, a);
    return blocking_call(t, nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static int64_t wait_timeout(thread_t *t, wait_args_t *w, uint64_t ts)
{
    w->host_ts = 0;
    if (!ts)
        return 0;
    if (get_struct(t, &w->ts, ts))
        return -EFAULT;
    w->host_ts = P(&w->ts);
    return 0;
}

static int64_t wait_mask(thread_t *t, wait_args_t *w, uint64_t mask,
                         uint64_t size)
{
    w->has_mask = mask != 0;
    if (!mask)
        return 0;
    if (size != SIGSET_SIZE)
        return -EINVAL;
    if (get_struct(t, &w->mask, mask))
        return -EFAULT;
    return 0;
}

/* Hidden descriptors out of the set; how many there were. They report at
 * once, so the call must not wait. */
static unsigned poll_hide(struct pollfd *fds, size_t n, wait_args_t *w)
{
    unsigned hidden = 0;

    for (size_t i = 0; i < n; i++) {
        if (!fd_hidden((uint64_t) fds[i].fd))
            continue;
        fds[i].fd = -2 - fds[i].fd;
        hidden++;
    }
    if (hidden) {
        memset(&w->ts, 0, sizeof w->ts);
        w->host_ts = P(&w->ts);
    }
    return hidden;
}

static void poll_show(struct pollfd *fds, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (fds[i].fd < -1 && fd_hidden((uint64_t) (-2 - fds[i].fd))) {
            fds[i].fd = -2 - fds[i].fd;
            fds[i].revents = POLLNVAL;
        }
    }
}

/* Only revents goes back, as the kernel does. */
static int64_t poll_put(thread_t *t, uint64_t guest, const struct pollfd *fds,
                        size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (put_struct(
                t, guest + i * sizeof *fds + offsetof(struct pollfd, revents),
                &fds[i].revents))
            return -EFAULT;
    return 0;
}

int64_t sys_ppoll(thread_t *t, const uint64_t *a)
{
    struct pollfd stack[64], *fds = stack;
    uint64_t n = (uint32_t) a[1];
    struct rlimit limit;
    wait_args_t w;
    unsigned hidden;
    int64_t ret = wait_timeout(t, &w, a[2]);

    if (ret == 0)
        ret = wait_mask(t, &w, a[3], a[4]);
    if (ret)
        return ret;
    fdspace_set_limit(t->proc, NULL, &limit);
    if (n > limit.rlim_cur)
        return -EINVAL;
    if (n > 64 && !(fds = malloc(n * sizeof *fds)))
        return -ENOMEM;
    if (n && get_bytes(t, fds, a[0], n * sizeof *fds)) {
        ret = -EFAULT;
        goto out;
    }
    hidden = poll_hide(fds, n, &w);
    ret = wait_call(
        t, &w, SYS_ppoll,
        (uint64_t[6]){P(fds), n, w.host_ts, mask_pointer(&w), SIGSET_SIZE});
    if (hidden)
        poll_show(fds, n);
    if (ret >= 0) {
        ret += hidden;
        if (poll_put(t, a[0], fds, n))
            ret = -EFAULT;
    }
    /* The time that is left; Linux ignores a failure to store it. */
    if (a[2] && !hidden && ret != CALL_RESTART)
        put_struct(t, a[2], &w.ts);
out:
    if (fds != stack)
        free(fds);
    return ret;
}

#define SELECT_MAX 1048576U

static bool select_hidden(const uint64_t *set, unsigned n)
{
    unsigned low, end;

    fdspace_range(&low, &end);
    for (unsigned fd = low; fd < end && fd < n; fd++)
        if (set[fd / 64] >> fd % 64 & 1 && fd_hidden(fd))
            return true;
    return false;
}

/* The second half of pselect6's sixth argument is the size of the mask. */
static int64_t select_mask(thread_t *t, wait_args_t *w, uint64_t arg)
{
    uint64_t pair[2] = {0, 0};

    if (arg && get_struct(t, &pair, arg))
        return -EFAULT;
    return wait_mask(t, w, pair[0], pair[1]);
}

int64_t sys_pselect6(thread_t *t, const uint64_t *a)
{
    uint64_t stack[3 * 16], *sets = stack, host[3];
    unsigned n = (unsigned) a[0];
    uint64_t pair[2] = {0, SIGSET_SIZE};
    size_t words;
    wait_args_t w;
    int64_t ret = wait_timeout(t, &w, a[4]);

    if (ret == 0)
        ret = select_mask(t, &w, a[5]);
    if (ret)
        return ret;
    pair[0] = mask_pointer(&w);
    if ((int) n < 0)
        return -EINVAL;
    n = n < SELECT_MAX ? n : SELECT_MAX;
    words = (n + 63) / 64;
    if (words > 16 && !(sets = malloc(words * 3 * sizeof *sets)))
        return -ENOMEM;
    for (int i = 0; i < 3 && ret == 0; i++) {
        host[i] = a[1 + i] ? P(sets + (size_t) i * words) : 0;
        if (!host[i] || !words)
            continue;
        if (get_bytes(t, sets + (size_t) i * words, a[1 + i], 8 * words))
            ret = -EFAULT;
        else if (select_hidden(sets + (size_t) i * words, n))
            ret = -EBADF;
    }
    if (ret == 0)
        ret = wait_call(t, &w, SYS_pselect6,
                        (uint64_t[6]){n, host[0], host[1], host[2], w.host_ts,
                                      w.has_mask ? P(pair) : 0});
    for (int i = 0; i < 3 && ret >= 0; i++)
        if (host[i] && words &&
            put_bytes(t, a[1 + i], sets + (size_t) i * words, 8 * words))
            ret = -EFAULT;
    if (a[4] && ret != CALL_RESTART)
        put_struct(t, a[4], &w.ts);
    if (sets != stack)
        free(sets);
    return ret;
}

#define EVENT_SIZE 16U /* struct epoll_event is not packed on arm64 */
#define EVENTS_MAX 256

static int64_t epoll_wait_call(thread_t *t, const uint64_t *a, uint64_t nr,
                               uint64_t timeout, wait_args_t *w)
{
    uint8_t events[EVENTS_MAX * EVENT_SIZE];
    int max = (int) a[2];
    int64_t ret;

    if (max > 0 && !user_range(a[1], (uint64_t) max * EVENT_SIZE))
        return wait_call(t, w, nr,
                         (uint64_t[6]){a[0], bad_pointer(a[1], ~0UL),
                                       (uint64_t) max, timeout, mask_pointer(w),
                                       SIGSET_SIZE});
    if (fd_hidden(a[0]))
        return -EBADF;
    if (max > EVENTS_MAX)
        max = EVENTS_MAX;
    ret = wait_call(t, w, nr,
                    (uint64_t[6]){a[0], P(events), (uint64_t) max, timeout,
                                  mask_pointer(w), SIGSET_SIZE});
    if (ret > 0 && put_bytes(t, a[1], events, (size_t) ret * EVENT_SIZE))
        return -EFAULT;
    return ret;
}

int64_t sys_epoll_pwait(thread_t *t, const uint64_t *a)
{
    wait_args_t w;
    int64_t ret = wait_mask(t, &w, a[4], a[5]);

    return ret ? ret : epoll_wait_call(t, a, SYS_epoll_pwait, a[3], &w);
}

int64_t sys_epoll_pwait2(thread_t *t, const uint64_t *a)
{
    wait_args_t w;
    int64_t ret = wait_timeout(t, &w, a[3]);

    if (ret == 0)
        ret = wait_mask(t, &w, a[4], a[5]);
    return ret ? ret : epoll_wait_call(t, a, SYS_epoll_pwait2, w.host_ts, &w);
}
