/* SPDX-License-Identifier: Apache-2.0 */
/* The end of one thread. */
#include <linux/futex.h>
#include <signal.h>

#include "proc/robust.h"
#include "proc/thread.h"
#include "sys/call.h"

/* How long the process's end waits for threads that serve a call. */
#define STOP_MS 1000

/* The word that a joiner waits for. */
typedef struct tid_word {
    struct iovec iov;
    span_set_t span;
    bool held;
} tid_word_t;

/* As mm_release() of Linux: only where somebody is left to see it. */
static void clear_tid(thread_t *t, tid_word_t *word)
{
    const int32_t zero = 0;

    word->held = false;
    if (!t->clear_tid ||
        atomic_load_explicit(&t->proc->world->count, memory_order_relaxed) < 2)
        return;
    if (put_struct(t, t->clear_tid, &zero))
        return;
    /* For the wake-up, which comes when the vCPU is another thread's again. */
    word->held = span_get(t->proc->mm, &t->cpu, t->clear_tid, sizeof zero,
                          SPAN_READ, &word->iov, 1, &word->span) == 0;
}

static void wake_joiner(thread_t *t, tid_word_t *word)
{
    if (!word->held)
        return;
    /* Not private: that is how the C libraries wait. */
    host_call(SYS_futex, P(word->iov.iov_base), FUTEX_WAKE, 1, 0, 0, 0);
    span_put(&t->cpu, &word->span);
}

static void release_vcpu(thread_t *t)
{
    mm_cpu_park(t->proc->mm, &t->cpu);
    hv_vcpu_release(t->vcpu);
    t->vcpu = NULL;
    t->frame = NULL;
    vcpus_give_back(t->proc, t->slot);
    vcpus_end_ending(t->proc);
}

static bool is_leader(const thread_t *t)
{
    return t->tid == t->proc->pid;
}

/* The id of a process's first thread stays taken until the process has ended,
 * and /proc/self is that thread's. */
static _Noreturn void stay(void)
{
    for (;;)
        host_call(SYS_ppoll, 0, 0, 0, 0, 0, 0);
}

/* For others: what Linux does when it kills a thread with its process. */
static void release_other(thread_t *t, thread_t *other)
{
    const int32_t zero = 0;

    robust_release(t, other);
    if (other->clear_tid)
        (void) put_struct(t, other->clear_tid, &zero);
}

void threads_release(thread_t *t)
{
    proc_t *proc = t->proc;
    thread_t *other;

    robust_release(t, t);
    if (!threads_several(proc))
        return;
    /* They are about to die where they are, safe point or not. */
    (void) world_stop_within(t, STOP_MS);
    WORLD_FOREACH(other, proc->world)
    {
        if (other != t && other->proc == proc)
            release_other(t, other);
    }
    (void) world_let_children_go(t);
}

/*
 * The last thread to call exit has the process's status. (Linux from 5.17 on;
 * earlier ones take the first thread's.) That is settled before anybody can
 * know that a thread has ended.
 */
static void note_status(const thread_t *t)
{
    proc_t *proc = t->proc;

    /* Relaxed, and the status too: nr_threads publishes it. */
    if (atomic_fetch_sub_explicit(&proc->nr_running, 1, memory_order_relaxed) ==
        1)
        atomic_store_explicit(&proc->status, t->status, memory_order_relaxed);
}

void thread_end(thread_t *t)
{
    const uint64_t all = ~0UL;
    proc_t *proc = t->proc;
    bool leader = is_leader(t);
    tid_word_t word;

    host_call(SYS_rt_sigprocmask, SIG_SETMASK, P(&all), 0, sizeof all, 0, 0);
    note_status(t);
    /* Its only thread; the parent's does the rest. */
    if (proc->vforked)
        proc_exit(proc,
                  atomic_load_explicit(&proc->status, memory_order_relaxed));
    spares_drop(t);
    thread_reap(t);
    robust_release(t, t);
    vcpus_begin_ending(proc);
    clear_tid(t, &word);
    release_vcpu(t);
    wake_joiner(t, &word);
    mm_cpu_remove(proc->mm, &t->cpu);
    if (leader)
        world_leave(t);
    else
        world_end(t);
    thread_self = NULL;
    /* Acquire and release: the last one ends when the others have ended. */
    if (atomic_fetch_sub_explicit(&proc->nr_threads, 1, memory_order_acq_rel) ==
        1)
        proc_exit(proc,
                  atomic_load_explicit(&proc->status, memory_order_relaxed));
    if (leader)
        stay();
}
