/* SPDX-License-Identifier: Apache-2.0 */
/*
 * futex and futex_waitv: the host's, on the host address of the word.
 *
 * The kernel finds a private futex by its address alone, and reads the word
 * only to compare it; a shared one by the page that is there. So a word is
 * looked at here when the kernel would, and in its order: alignment first, then
 * the range, then the page. No span is held while a thread waits, or what it
 * waits on could not be unmapped: the kernel has compared by then. Only where
 * it writes the word when the wait is over, for PI, the span stays.
 */
#include <linux/futex.h>
#include <stdlib.h>
#include <time.h>

#include "sys/call.h"

#define LOCK_PI2       13 /* FUTEX_LOCK_PI2, 5.14 */
#define WAITV_MAX      128U
#define WAITV_PRIVATE  128U
#define WAITV_32       2U
#define NSEC_PER_SEC   1000000000UL
#define NOT_PRIVATE(f) (!((f) &FUTEX_PRIVATE_FLAG))

/* How the kernel looks at a word. */
enum look {
    LOOK_NONE,  /* there is no such argument */
    LOOK_KEY,   /* not at all, if private */
    LOOK_READ,  /* it reads it */
    LOOK_WRITE, /* it changes it */
};

typedef struct command {
    enum look first, second;
    bool timeout; /* the fourth argument is one */
    bool clock;   /* FUTEX_CLOCK_REALTIME is allowed */
    bool hold;    /* it is written after a wait */
} command_t;

static const command_t commands[] = {
    [FUTEX_WAIT] = {.first = LOOK_READ, .timeout = true},
    [FUTEX_WAKE] = {.first = LOOK_KEY},
    [FUTEX_REQUEUE] = {.first = LOOK_KEY, .second = LOOK_KEY},
    [FUTEX_CMP_REQUEUE] = {.first = LOOK_READ, .second = LOOK_KEY},
    [FUTEX_WAKE_OP] = {.first = LOOK_KEY, .second = LOOK_WRITE},
    [FUTEX_LOCK_PI] = {.first = LOOK_WRITE, .timeout = true, .hold = true},
    [FUTEX_UNLOCK_PI] = {.first = LOOK_WRITE, .hold = true},
    [FUTEX_TRYLOCK_PI] = {.first = LOOK_WRITE, .hold = true},
    [FUTEX_WAIT_BITSET] = {.first = LOOK_READ, .timeout = true, .clock = true},
    [FUTEX_WAKE_BITSET] = {.first = LOOK_KEY},
    [FUTEX_WAIT_REQUEUE_PI] = {.first = LOOK_READ,
                               .second = LOOK_WRITE,
                               .timeout = true,
                               .clock = true,
                               .hold = true},
    [FUTEX_CMP_REQUEUE_PI] = {.first = LOOK_READ,
                              .second = LOOK_WRITE,
                              .hold = true},
    [LOCK_PI2] = {.first = LOOK_WRITE,
                  .timeout = true,
                  .clock = true,
                  .hold = true},
};

typedef struct word {
    span_set_t span;
    struct iovec iov;
    uint64_t host;
    bool held;
} word_t;

/* NULL: there is no such command. */
static const command_t *command_of(int op)
{
    unsigned cmd = (unsigned) (op & FUTEX_CMD_MASK);

    if (cmd >= sizeof commands / sizeof *commands ||
        commands[cmd].first == LOOK_NONE)
        return NULL;
    return &commands[cmd];
}

static int64_t address_check(uint64_t guest)
{
    if (guest % sizeof(uint32_t))
        return -EINVAL;
    return user_range(guest, sizeof(uint32_t)) ? 0 : -EFAULT;
}

static int64_t word_span(thread_t *t, uint64_t guest, enum span_access access,
                         word_t *w)
{
    if (span_get(t->proc->mm, &t->cpu, guest, sizeof(uint32_t), access, &w->iov,
                 1, &w->span))
        return -EFAULT;
    w->held = true;
    w->host = P(w->iov.iov_base);
    return 0;
}

static void word_put(thread_t *t, word_t *w)
{
    if (w->held)
        span_put(&t->cpu, &w->span);
    w->held = false;
}

/* The page of a shared word is made writable if it can be; private memory that
 * cannot is no place for a futex. */
static int64_t word_shared(thread_t *t, uint64_t guest, enum look look,
                           word_t *w)
{
    if (word_span(t, guest, SPAN_READ | SPAN_WRITE, w) == 0)
        return 0;
    if (look == LOOK_WRITE || word_span(t, guest, SPAN_READ, w))
        return -EFAULT;
    if (span_is_object(t->proc->mm, w->iov.iov_base))
        return 0;
    word_put(t, w);
    return -EFAULT;
}

static int64_t word_get(thread_t *t, uint64_t guest, enum look look,
                        bool shared, word_t *w)
{
    if (look == LOOK_NONE)
        return 0;
    if (shared)
        return word_shared(t, guest, look, w);
    if (look != LOOK_KEY)
        return word_span(
            t, guest, look == LOOK_WRITE ? SPAN_READ | SPAN_WRITE : SPAN_READ,
            w);
    w->host = span_key(t->proc->mm, &t->cpu, guest);
    return 0;
}

/* Both words as the kernel comes to them: get_futex_key() for the one and the
 * other, which looks at the pages of shared ones only, then the values. */
static int64_t words_get(thread_t *t, const uint64_t *a, const command_t *c,
                         word_t *first, word_t *second)
{
    bool shared = NOT_PRIVATE(a[1]);
    int64_t ret = address_check(a[0]);

    if (ret == 0 && shared)
        ret = word_get(t, a[0], c->first, true, first);
    if (ret == 0 && c->second != LOOK_NONE)
        ret = address_check(a[4]);
    if (ret == 0 && !shared)
        ret = word_get(t, a[0], c->first, false, first);
    return ret ? ret : word_get(t, a[4], c->second, shared, second);
}

/* A timeout: 0, or the kernel's error. */
static int64_t timeout_get(thread_t *t, uint64_t guest, uint64_t ts[2])
{
    if (get_bytes(t, ts, guest, 2 * sizeof ts[0]))
        return -EFAULT;
    return (int64_t) ts[0] < 0 || ts[1] >= NSEC_PER_SEC ? -EINVAL : 0;
}

/* What the kernel finds before it looks at where the words are. */
static int64_t values_check(thread_t *t, const uint64_t *a)
{
    uint32_t word;

    switch ((int) a[1] & FUTEX_CMD_MASK) {
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAKE_BITSET:
        return (uint32_t) a[5] ? 0 : -EINVAL;
    case FUTEX_WAIT_REQUEUE_PI:
        return a[0] == a[4] ? -EINVAL : 0;
    case FUTEX_CMP_REQUEUE_PI:
        if (a[0] == a[4] || (int) a[2] != 1)
            return -EINVAL;
        return (int) a[3] < 0 ? -EINVAL : 0;
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
        return (int) a[2] < 0 || (int) a[3] < 0 ? -EINVAL : 0;
    case FUTEX_UNLOCK_PI:
        if (get_struct(t, &word, a[0]))
            return -EFAULT;
        return (word & FUTEX_TID_MASK) == (uint32_t) t->tid ? 0 : -EPERM;
    default:
        return 0;
    }
}

int64_t sys_futex(thread_t *t, const uint64_t *a)
{
    const command_t *c = command_of((int) a[1]);
    word_t first = {.held = false}, second = {.held = false};
    uint64_t ts[2], fourth = a[3];
    int64_t ret;

    if (!c)
        return -ENOSYS;
    /* Before anything else. */
    if (c->timeout && a[3]) {
        ret = timeout_get(t, a[3], ts);
        if (ret)
            return ret;
        fourth = P(ts);
    }
    if (a[1] & FUTEX_CLOCK_REALTIME && !c->clock)
        return -ENOSYS;
    ret = values_check(t, a);
    if (ret == 0)
        ret = words_get(t, a, c, &first, &second);
    if (ret == 0) {
        if (!c->hold) {
            word_put(t, &first);
            word_put(t, &second);
        }
        ret = blocking_call(t, SYS_futex, first.host, a[1], a[2], fourth,
                            second.host, a[5]);
    }
    word_put(t, &second);
    word_put(t, &first);
    return ret;
}

/* The guest's struct futex_waitv. */
typedef struct waitv {
    uint64_t value, address;
    uint32_t flags, reserved;
} waitv_t;

static int64_t waitv_flags(const waitv_t *v)
{
    if (v->flags & ~(WAITV_PRIVATE | WAITV_32) || v->reserved ||
        !(v->flags & WAITV_32))
        return -EINVAL;
    return 0;
}

/* The words at the guest's addresses become words at the host's. */
static int64_t waitv_words(thread_t *t, waitv_t *v, uint64_t nr)
{
    int64_t ret = 0;

    for (uint64_t i = 0; i < nr && ret == 0; i++) {
        word_t word = {.held = false};

        ret = address_check(v[i].address);
        if (ret == 0)
            ret = word_get(t, v[i].address, LOOK_READ,
                           !(v[i].flags & WAITV_PRIVATE), &word);
        v[i].address = word.host;
        word_put(t, &word);
    }
    return ret;
}

static int64_t waitv_call(thread_t *t, const uint64_t *a, waitv_t *v,
                          uint64_t host_ts)
{
    uint64_t nr = (uint32_t) a[1];
    int64_t ret = 0;

    for (uint64_t i = 0; i < nr && ret == 0; i++) {
        if (get_struct(t, &v[i], a[0] + i * sizeof *v))
            return -EFAULT;
        ret = waitv_flags(&v[i]);
    }
    if (ret == 0)
        ret = waitv_words(t, v, nr);
    if (ret == 0)
        ret = blocking_call(t, SYS_futex_waitv, P(v), nr, 0, host_ts, a[4], 0);
    return ret;
}

int64_t sys_futex_waitv(thread_t *t, const uint64_t *a)
{
    uint64_t ts[2], nr = (uint32_t) a[1];
    waitv_t *v;
    int64_t ret;

    if ((uint32_t) a[2] || !nr || nr > WAITV_MAX || !a[0])
        return -EINVAL;
    if (a[3]) {
        if ((int) a[4] != CLOCK_REALTIME && (int) a[4] != CLOCK_MONOTONIC)
            return -EINVAL;
        ret = timeout_get(t, a[3], ts);
        if (ret)
            return ret;
    }
    v = calloc(nr, sizeof *v);
    if (!v)
        return -ENOMEM;
    ret = waitv_call(t, a, v, a[3] ? P(ts) : 0);
    free(v);
    return ret;
}
