/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what has been noted to the first instruction of the guest's handler, and
 * back. Everything is blocked in the host from the note on, so that frames are
 * built one after the other, each with the mask that the one before has left.
 */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>

#include "proc/proc.h"
#include "proc/run.h"
#include "proc/sigframe.h"
#include "sys/call.h"
#include "sys/sys.h"

#define PSTATE_BTYPE (3UL << 10)
#define PSTATE_TCO   (1UL << 25)

static uint32_t pending(const thread_t *t)
{
    /* Relaxed: only this thread's own handlers write it. */
    return atomic_load_explicit(&t->signal.pending, memory_order_relaxed);
}

static void clear_pending(thread_t *t, uint32_t bit)
{
    atomic_fetch_and_explicit(&t->signal.pending, ~bit, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
}

/* --- The alternate stack. */

bool signal_on_stack(const thread_t *t, uint64_t sp)
{
    const signal_stack_t *s = &t->signal.stack;

    return !((uint32_t) s->flags & SIGNAL_AUTODISARM) && sp > s->sp &&
           sp - s->sp <= s->size;
}

int signal_set_stack(thread_t *t, const signal_stack_t *stack, uint64_t sp)
{
    signal_stack_t *now = &t->signal.stack, next = *stack;
    int mode = (int) ((uint32_t) next.flags & ~SIGNAL_AUTODISARM);

    if (signal_on_stack(t, sp))
        return -EPERM;
    if (mode != SS_DISABLE && mode != SS_ONSTACK && mode != 0)
        return -EINVAL;
    if (next.sp == now->sp && next.size == now->size &&
        next.flags == now->flags)
        return 0;
    if (mode == SS_DISABLE)
        next.sp = next.size = 0;
    else if (next.size < SIGNAL_STACK_MIN)
        return -ENOMEM;
    next.pad = 0;
    *now = next;
    return 0;
}

/* Where the frame's record goes: below it is the frame. */
static uint64_t frame_top(const thread_t *t, const signal_action_t *act)
{
    const signal_stack_t *s = &t->signal.stack;
    uint64_t sp = t->frame->sp_el0;

    if (act->flags & SA_ONSTACK && s->size && !signal_on_stack(t, sp))
        sp = s->sp + s->size;
    return (sp - 16) & ~15UL;
}

/* --- Entering a handler. */

/*
 * frame->fp is what EL0 has, or is to get. True when the Z registers are worth
 * keeping: a system call does not preserve them.
 */
static bool save_fp(thread_t *t)
{
    vcpu_frame_t *f = t->frame;
    bool in_call = f->exit == FRAME_EXIT_SYNC && thread_in_syscall(t);

    if (f->fp_op == FP_LOAD)
        return true;
    thread_run_op(t, FP_SAVE, FRAME_EXIT_FP_SAVED);
    mm_after_exit(t->proc->mm, &t->cpu);
    return !in_call;
}

/* Put the frame on the guest's stack; 0 or -EFAULT. */
static int frame_write(thread_t *t, const siginfo_t *info,
                       const signal_action_t *act, uint64_t record)
{
    signal_thread_t *s = &t->signal;
    uint64_t link[2] = {t->frame->x[29], t->frame->x[30]};
    uint64_t at = record - sizeof(sigframe_t);
    sigframe_t frame;
    sigframe_in_t in = {
        .regs = t->frame,
        .signal = s,
        .mask = s->restore_mask ? s->saved_mask : s->mask,
        .sve = save_fp(t),
    };
    size_t size = sigframe_build(&frame, &in), from = SIGFRAME_UC;

    if (act->flags & SA_SIGINFO) {
        memcpy(frame.info, info, sizeof frame.info);
        from = 0;
    }
    if (put_struct(t, record, &link) ||
        put_bytes(t, at + from, (uint8_t *) &frame + from, size - from))
        return -EFAULT;
    return 0;
}

static void enter_handler(thread_t *t, int sig, const signal_action_t *act,
                          uint64_t record)
{
    vcpu_frame_t *f = t->frame;
    uint64_t at = record - sizeof(sigframe_t);

    f->x[0] = (uint64_t) sig;
    if (act->flags & SA_SIGINFO) {
        f->x[1] = at;
        f->x[2] = at + SIGFRAME_UC;
    }
    f->x[29] = record;
    f->x[30] =
        act->flags & SIGNAL_RESTORER ? act->restorer : t->proc->sigreturn;
    f->sp_el0 = at;
    f->elr = act->handler;
    /* Linux lets it look like an indirect call where there are guarded pages;
     * elfuse has none. */
    f->spsr &= ~(PSTATE_BTYPE | PSTATE_TCO);
}

/* signal_delivered() */
static void mask_for_handler(thread_t *t, int sig, const signal_action_t *act)
{
    signal_thread_t *s = &t->signal;

    s->restore_mask = false;
    s->mask |= act->mask;
    if (!(act->flags & SA_NODEFER))
        s->mask |= SIGNAL_BIT(sig);
    s->mask &= ~SIGNALS_UNMASKABLE;
    if ((uint32_t) s->stack.flags & SIGNAL_AUTODISARM)
        s->stack = (signal_stack_t){.flags = SS_DISABLE};
}

static void force(thread_t *t, siginfo_t *info);

static void handle(thread_t *t, const siginfo_t *info,
                   const signal_action_t *act)
{
    int sig = info->si_signo;
    uint64_t record = frame_top(t, act);
    siginfo_t segv;

    if (frame_write(t, info, act, record) == 0) {
        enter_handler(t, sig, act, record);
        mask_for_handler(t, sig, act);
        return;
    }
    if (sig == SIGSEGV)
        proc_die(t->proc, SIGSEGV);
    memset(&segv, 0, sizeof segv);
    segv.si_signo = SIGSEGV;
    segv.si_code = SI_KERNEL;
    force(t, &segv);
}

/* The action has changed since the signal came: as if it came now. */
static void default_action(thread_t *t, siginfo_t *info)
{
    int sig = info->si_signo;

    if (signal_fatal_by_default(sig))
        proc_die(t->proc, sig);
    /* To ignore or to stop: that is the host's. */
    host_call(SYS_rt_tgsigqueueinfo, (uint64_t) t->proc->pid, (uint64_t) t->tid,
              (uint64_t) sig, P(info), 0, 0);
}

static void deliver(thread_t *t, siginfo_t *info)
{
    signal_action_t act = signal_action_take(t->proc, info->si_signo);

    strace_signal(t->proc, info);
    if (act.handler > 1)
        handle(t, info, &act);
    else if (act.handler == 0)
        default_action(t, info);
}

/* `noted` to a frame. Everything is blocked in the host. */
static void deliver_noted(thread_t *t)
{
    siginfo_t info = t->signal.noted;

    clear_pending(t, SIGNAL_NOTED);
    deliver(t, &info);
    signal_unblock(t);
}

static void deliver_stray(thread_t *t)
{
    siginfo_t info;

    clear_pending(t, SIGNAL_STRAY);
    /* Another was noted just now: it comes first. */
    if (signal_block(t))
        return;
    if (signal_take_kept(t, ~t->signal.mask, &info))
        deliver(t, &info);
    signal_unblock(t);
}

void signal_deliver(thread_t *t)
{
    signal_thread_t *s = &t->signal;

    for (;;) {
        if (pending(t) & SIGNAL_NOTED) {
            deliver_noted(t);
        } else if (pending(t)) {
            deliver_stray(t);
        } else if (s->restore_mask) {
            s->restore_mask = false;
            s->mask = s->saved_mask;
            signal_unblock(t);
        } else {
            return;
        }
    }
}

/* --- What the guest's own instructions cause. */

/* Linux hides the tag, but for breakpoints. */
static void hide_tag(siginfo_t *info)
{
    uint64_t addr = P(info->si_addr);

    if (info->si_signo == SIGTRAP && info->si_code == TRAP_BRKPT)
        return;
    if (!(addr >> 55 & 1))
        info->si_addr = (void *) (addr & ~(0xffUL << 56));
}

/* force_sig_info() and what follows: everything is blocked in the host. */
static void force(thread_t *t, siginfo_t *info)
{
    int sig = info->si_signo;
    signal_action_t act = signal_action_take(t->proc, sig);

    if (!(act.flags & SIGNAL_EXPOSE_TAGBITS) && info->si_code != SI_KERNEL)
        hide_tag(info);
    strace_signal(t->proc, info);
    if (act.handler < 2 || t->signal.mask & SIGNAL_BIT(sig))
        proc_die(t->proc, sig);
    handle(t, info, &act);
}

void signal_force(thread_t *t, const signal_fault_t *fault)
{
    siginfo_t info;

    if (signal_block(t))
        return;
    if (!fault->keep) {
        t->signal.fault_address = fault->fault_address;
        t->signal.fault_esr = fault->esr;
    }
    memset(&info, 0, sizeof info);
    info.si_signo = fault->signo;
    info.si_code = fault->code;
    info.si_addr = (void *) fault->addr;
    force(t, &info);
    signal_unblock(t);
}

/* --- Coming back. */

static int read_guest(void *arg, void *to, uint64_t addr, size_t len)
{
    return get_bytes(arg, to, addr, len);
}

/* What of the frame is good takes effect, as in Linux. */
static void restore_parts(thread_t *t, const sigframe_out_t *out,
                          enum sigframe_part part)
{
    vcpu_frame_t *f = t->frame;

    if (part >= SIGFRAME_REGS && out->has_mask)
        t->signal.mask = out->mask & ~SIGNALS_UNMASKABLE;
    if (part >= SIGFRAME_REGS) {
        memcpy(f->x, out->x, sizeof f->x);
        f->sp_el0 = out->sp;
        f->elr = out->pc;
        f->spsr = out->pstate;
    }
    if (part >= SIGFRAME_FP) {
        f->fp = out->fp;
        f->fp_op = FP_LOAD;
    }
    if (part >= SIGFRAME_WHOLE)
        signal_set_stack(t, &out->stack, out->sp);
}

static void bad_frame(thread_t *t)
{
    uint64_t sp = t->frame->sp_el0;
    siginfo_t info;

    t->frame->x[0] = 0;
    t->signal.fault_address = t->signal.fault_esr = 0;
    memset(&info, 0, sizeof info);
    info.si_signo = SIGSEGV;
    info.si_code = mm_any_above(t->proc->mm, sp) ? SEGV_ACCERR : SEGV_MAPERR;
    info.si_addr = (void *) sp;
    force(t, &info);
}

int64_t signal_return(thread_t *t)
{
    const sigframe_reader_t reader = {read_guest, t};
    sigframe_out_t out = {.fp.vl = t->frame->fp.vl};
    enum sigframe_part part = SIGFRAME_NONE;

    if (signal_block(t))
        return CALL_RESTART;
    if (t->frame->sp_el0 % 16 == 0 &&
        user_range(t->frame->sp_el0, sizeof(sigframe_t)))
        part = sigframe_parse(&reader, t->frame->sp_el0, &out);
    restore_parts(t, &out, part);
    if (part != SIGFRAME_WHOLE)
        bad_frame(t);
    signal_unblock(t);
    return CALL_DONE;
}
