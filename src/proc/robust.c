/* SPDX-License-Identifier: Apache-2.0 */
/* The walk of kernel/futex/core.c: exit_robust_list(), handle_futex_death(). */
#include "proc/robust.h"

#include <linux/futex.h>

#include "sys/call.h"

/* The guest's struct robust_list_head. */
typedef struct robust_head {
    uint64_t next;    /* bit 0: the entry is a PI futex */
    int64_t offset;   /* from an entry to its futex word */
    uint64_t pending; /* being locked or unlocked, likewise */
} robust_head_t;

_Static_assert(sizeof(robust_head_t) == ROBUST_SIZE, "robust list ABI");

enum death { DEATH_LIST, DEATH_PENDING };

/* Shared, as Linux does it: found by any process that maps the page. */
static void wake_one(thread_t *t, uint64_t word)
{
    struct iovec iov;
    span_set_t span;

    if (span_get(t->proc->mm, &t->cpu, word, sizeof(uint32_t), SPAN_READ, &iov,
                 1, &span))
        return;
    host_call(SYS_futex, P(iov.iov_base), FUTEX_WAKE, 1, 0, 0, 0);
    span_put(&t->cpu, &span);
}

/* The dead thread's name off one word. False: not even readable. */
static bool word_release(thread_t *t, uint32_t tid, uint64_t word, bool pi,
                         enum death death)
{
    uint32_t value, found, next;

    if (word % sizeof value || get_struct(t, &value, word))
        return false;
    for (;;) {
        /* Unlocked already, and the waiter may have been woken or not. */
        if (death == DEATH_PENDING && !pi && !(value & FUTEX_TID_MASK)) {
            wake_one(t, word);
            return true;
        }
        if ((value & FUTEX_TID_MASK) != tid)
            return true;
        next = (value & FUTEX_WAITERS) | FUTEX_OWNER_DIED;
        found = value;
        if (cmpxchg_guest(t->proc->mm, &t->cpu, word, &found, next))
            return false;
        if (found == value)
            break;
        value = found;
    }
    /* Who waits for a PI futex is woken by the kernel: it knows the owner. For
     * others the mark that one waits may have been lost, if the exchange was
     * not atomic. */
    if (!pi)
        wake_one(t, word);
    return true;
}

void robust_release(thread_t *t, const thread_t *dead)
{
    const uint64_t head_at = dead->robust;
    const uint32_t tid = (uint32_t) dead->tid;
    robust_head_t head;
    uint64_t link, entry, next = 0;
    bool readable = true;

    if (!head_at || get_struct(t, &head, head_at))
        return;
    link = head.next;
    for (unsigned left = ROBUST_LIST_LIMIT; left; left--, link = next) {
        entry = link & ~1UL;
        if (entry == head_at)
            break;
        /* Before the word is released: its new owner may move the entry. */
        readable = get_struct(t, &next, entry) == 0;
        if (entry != (head.pending & ~1UL) &&
            !word_release(t, tid, entry + (uint64_t) head.offset, link & 1,
                          DEATH_LIST))
            return;
        if (!readable)
            return;
    }
    if (head.pending & ~1UL)
        (void) word_release(t, tid,
                            (head.pending & ~1UL) + (uint64_t) head.offset,
                            head.pending & 1, DEATH_PENDING);
}
