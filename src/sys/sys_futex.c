/* SPDX-License-Identifier: Apache-2.0 */
/*
 * futex: the host's, on the host address of the word. Alignment is judged
 * before anything is touched.
 */
#include <linux/futex.h>

#include "sys/call.h"

typedef struct word {
    span_set_t span;
    struct iovec iov;
    uint64_t host;
    bool held;
} word_t;

static int64_t word_get(thread_t *t, uint64_t guest, enum span_access access,
                        word_t *w)
{
    w->held = false;
    if (guest & 3)
        return -EINVAL;
    if (span_get(t->proc->mm, &t->cpu, guest, 4, access, &w->iov, 1, &w->span))
        return -EFAULT;
    w->held = true;
    w->host = P(w->iov.iov_base);
    return 0;
}

static void word_put(thread_t *t, word_t *w)
{
    if (w->held)
        span_put(&t->cpu, &w->span);
}

static bool has_timeout(int cmd)
{
    return cmd == FUTEX_WAIT || cmd == FUTEX_LOCK_PI ||
           cmd == FUTEX_WAIT_BITSET || cmd == FUTEX_WAIT_REQUEUE_PI ||
           cmd == 13 /* FUTEX_LOCK_PI2 */;
}

static bool has_second(int cmd)
{
    return cmd == FUTEX_REQUEUE || cmd == FUTEX_CMP_REQUEUE ||
           cmd == FUTEX_WAKE_OP || cmd == FUTEX_WAIT_REQUEUE_PI ||
           cmd == FUTEX_CMP_REQUEUE_PI;
}

static enum span_access first_access(int cmd)
{
    return cmd == FUTEX_LOCK_PI || cmd == FUTEX_UNLOCK_PI ||
                   cmd == FUTEX_TRYLOCK_PI || cmd == 13
               ? SPAN_READ | SPAN_WRITE
               : SPAN_READ;
}

int64_t sys_futex(thread_t *t, const uint64_t *a)
{
    int op = (int) a[1], cmd = op & FUTEX_CMD_MASK;
    uint64_t ts[2], fourth = a[3];
    word_t first, second = {.held = false, .host = 0};
    int64_t ret;

    if (cmd == FUTEX_FD || cmd < 0 || cmd > 13)
        return -ENOSYS;
    if (has_timeout(cmd) && a[3]) {
        if (get_struct(t, &ts, a[3]))
            return -EFAULT;
        fourth = P(ts);
    }
    ret = word_get(t, a[0], first_access(cmd), &first);
    if (ret == -EFAULT && op & FUTEX_PRIVATE_FLAG &&
        (cmd == FUTEX_WAKE || cmd == FUTEX_WAKE_BITSET))
        return 0; /* nobody can wait there, and Linux does not look */
    if (ret == 0 && has_second(cmd))
        ret = word_get(
            t, a[4], cmd == FUTEX_WAKE_OP ? SPAN_READ | SPAN_WRITE : SPAN_READ,
            &second);
    if (ret == 0)
        ret = blocking_call(t, SYS_futex, first.host, (uint64_t) op, a[2],
                            fourth, second.host, a[5]);
    word_put(t, &second);
    word_put(t, &first);
    return ret;
}
