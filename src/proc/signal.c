/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's mask, and what its host handler notes. */
#include "proc/signal.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "proc/proc.h"
#include "proc/signal_host.h"
#include "sys/call.h"

/* blocking.S */
extern const char blocking_begin[], blocking_end[], blocking_interrupted[];

static uint64_t kick_bit(void)
{
    return SIGNAL_BIT(hv_kick_signal());
}

/* --- The handler. It runs in the thread whose fields it writes. */

/*
 * A system call of the guest that was about to begin must not: what is pending
 * would wait for its end. The kernel puts the program counter there, too, for a
 * call that it restarts.
 */
static void leave_blocking(ucontext_t *uc)
{
    uintptr_t pc = (uintptr_t) uc->uc_mcontext.pc;

    if (pc < (uintptr_t) blocking_begin || pc >= (uintptr_t) blocking_end)
        return;
    if (uc->uc_mcontext.regs[8] == SYS_restart_syscall) {
        /* Stopped and continued in a call that goes on from where it was: a
         * handler ends that with EINTR. */
        uc->uc_mcontext.regs[0] = (uint64_t) -EINTR;
        pc = (uintptr_t) blocking_end;
    } else {
        pc = (uintptr_t) blocking_interrupted;
    }
    uc->uc_mcontext.pc = pc;
}

/* The thread comes to signal_deliver() before EL0 runs on. */
static void set_pending(thread_t *t, uint32_t bit)
{
    /* Relaxed: only this thread and its handlers; the compiler must keep the
     * order, since blocking.S or the run loop looks. */
    atomic_fetch_or_explicit(&t->signal.pending, bit, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&t->world.state, memory_order_relaxed) ==
        WORLD_GUEST)
        hv_vcpu_kick(t->vcpu);
}

static uint32_t pending_now(const thread_t *t)
{
    return atomic_load_explicit(&t->signal.pending, memory_order_relaxed);
}

/* Of the kick's number, but no kick. As the kernel's queue, one is kept. */
static void note_stray(thread_t *t, const siginfo_t *info, ucontext_t *uc)
{
    signal_thread_t *s = &t->signal;

    if (!atomic_load_explicit(&s->has_stray, memory_order_relaxed)) {
        s->stray = *info;
        atomic_signal_fence(memory_order_seq_cst);
        atomic_store_explicit(&s->has_stray, true, memory_order_relaxed);
    }
    if (!(s->mask & kick_bit()))
        set_pending(t, SIGNAL_STRAY);
    leave_blocking(uc);
}

void signal_host_handler(int sig, siginfo_t *info, void *context)
{
    const uint64_t all = ~kick_bit();
    thread_t *t = thread_self;
    ucontext_t *uc = context;

    if (sig == hv_kick_signal()) {
        if (!hv_kick_arrived(info) && t)
            note_stray(t, info, uc);
        return;
    }
    if (!t)
        return;
    t->signal.noted = *info;
    /* The kernel's sigset_t is the first word. */
    memcpy(&uc->uc_sigmask, &all, sizeof all);
    set_pending(t, SIGNAL_NOTED);
    leave_blocking(uc);
}

/* --- Masks. */

static void host_mask(uint64_t mask)
{
    mask &= ~kick_bit();
    host_call(SYS_rt_sigprocmask, SIG_SETMASK, P(&mask), 0, SIGSET_SIZE, 0, 0);
}

/* The same as one step with the look at what is pending. */
static int64_t host_mask_unless_pending(thread_t *t, uint64_t mask)
{
    return blocking_svc(&t->signal.pending, SYS_rt_sigprocmask, SIG_SETMASK,
                        P(&mask), 0, SIGSET_SIZE, 0, 0);
}

/* A stray one that the mask lets through is pending. */
static void stray_by_mask(thread_t *t)
{
    if (atomic_load_explicit(&t->signal.has_stray, memory_order_relaxed) &&
        !(t->signal.mask & kick_bit()))
        set_pending(t, SIGNAL_STRAY);
}

/* The kick's number too: EL0 does not run meanwhile. */
int64_t signal_block(thread_t *t)
{
    return host_mask_unless_pending(t, ~0UL);
}

void signal_unblock(thread_t *t)
{
    host_mask(t->signal.mask);
    stray_by_mask(t);
}

int64_t signal_set_mask(thread_t *t, uint64_t mask)
{
    uint64_t old = t->signal.mask;
    int64_t ret;

    /* First, for note_stray(). */
    t->signal.mask = mask & ~SIGNALS_UNMASKABLE;
    ret = host_mask_unless_pending(t, t->signal.mask & ~kick_bit());
    if (ret)
        t->signal.mask = old;
    else
        stray_by_mask(t);
    return ret;
}

int64_t signal_waiting_call(thread_t *t, uint64_t mask, uint64_t *host_mask,
                            uint64_t nr, const uint64_t a[6])
{
    signal_thread_t *s = &t->signal;
    int64_t ret;

    s->saved_mask = s->mask;
    s->mask = mask & ~SIGNALS_UNMASKABLE;
    *host_mask = s->mask & ~kick_bit();
    atomic_signal_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&s->has_stray, memory_order_relaxed) &&
        !(s->mask & kick_bit()) && !(pending_now(t) & SIGNAL_NOTED)) {
        set_pending(t, SIGNAL_STRAY);
        ret = -EINTR;
    } else {
        ret = blocking_call(t, nr, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
    /* Interrupted by a signal that this mask lets through: it stays until the
     * frame is built. Else what is noted came under the other mask. */
    s->restore_mask = ret == -EINTR && pending_now(t);
    if (!s->restore_mask)
        s->mask = s->saved_mask;
    return ret;
}

/* --- What elfuse keeps of the kick's number. */

uint64_t signal_kept(const thread_t *t)
{
    return atomic_load_explicit(&t->signal.has_stray, memory_order_relaxed)
               ? kick_bit()
               : 0;
}

bool signal_take_kept(thread_t *t, uint64_t set, siginfo_t *info)
{
    if (!(signal_kept(t) & set))
        return false;
    *info = t->signal.stray;
    atomic_fetch_and_explicit(&t->signal.pending, ~SIGNAL_STRAY,
                              memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    /* Last: the handler does not write over one that is kept. */
    atomic_store_explicit(&t->signal.has_stray, false, memory_order_relaxed);
    return true;
}

void signal_before_exec(thread_t *t)
{
    const uint64_t all = ~0UL;
    siginfo_t info;

    host_call(SYS_rt_sigprocmask, SIG_SETMASK, P(&all), 0, SIGSET_SIZE, 0, 0);
    signal_action_hand_over(t->proc, hv_kick_signal(), true);
    if (signal_take_kept(t, ~0UL, &info))
        host_call(SYS_rt_tgsigqueueinfo, (uint64_t) t->proc->pid,
                  (uint64_t) t->tid, (uint64_t) hv_kick_signal(), P(&info), 0,
                  0);
}

void signal_exec_failed(thread_t *t)
{
    signal_action_hand_over(t->proc, hv_kick_signal(), false);
}

/* --- Beginnings. */

void signal_thread_init(thread_t *t, const thread_t *parent, bool keep_stack)
{
    signal_thread_t *s = &t->signal;

    memset(s, 0, sizeof *s);
    if (!parent) {
        host_call(SYS_rt_sigprocmask, SIG_BLOCK, 0, P(&s->mask), SIGSET_SIZE, 0,
                  0);
        return;
    }
    s->mask = parent->signal.mask;
    if (keep_stack)
        s->stack = parent->signal.stack;
    else
        s->stack.flags = SS_DISABLE;
    s->fault_address = parent->signal.fault_address;
    s->fault_esr = parent->signal.fault_esr;
}

void signal_thread_start(thread_t *t)
{
    signal_unblock(t);
}

void signal_after_fork(thread_t *t, bool clear_handlers)
{
    /* No thread holds it: the world was stopped. */
    pthread_mutex_init(&t->proc->signals->lock, NULL);
    atomic_store_explicit(&t->signal.pending, 0, memory_order_relaxed);
    atomic_store_explicit(&t->signal.has_stray, false, memory_order_relaxed);
    if (clear_handlers)
        signal_actions_reset(t->proc);
}
