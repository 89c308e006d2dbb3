/* SPDX-License-Identifier: Apache-2.0 */
/* The system calls on signals; what a signal does is in proc/signal*.c. */
#include <signal.h>
#include <string.h>

#include "sys/call.h"

int64_t sys_rt_sigaction(thread_t *t, const uint64_t *a)
{
    int sig = (int) a[0];
    signal_action_t act, old;

    if (a[3] != SIGSET_SIZE)
        return -EINVAL;
    if (a[1] && get_struct(t, &act, a[1]))
        return -EFAULT;
    if (sig < 1 || sig > SIGNAL_COUNT ||
        (a[1] && (sig == SIGKILL || sig == SIGSTOP)))
        return -EINVAL;
    if (a[1]) {
        act.mask &= ~SIGNALS_UNMASKABLE;
        signal_action_set(t->proc, sig, &act, &old);
        /* As the kernel does with what it has queued. */
        if (act.handler == 1)
            signal_take_kept(t, SIGNAL_BIT(sig), &(siginfo_t){0});
    } else {
        old = signal_action_get(t->proc, sig);
    }
    if (a[2] && put_struct(t, a[2], &old))
        return -EFAULT;
    return 0;
}

int64_t sys_rt_sigprocmask(thread_t *t, const uint64_t *a)
{
    uint64_t old = t->signal.mask, set, next = old;
    int64_t ret;

    if (a[3] != SIGSET_SIZE)
        return -EINVAL;
    if (a[1]) {
        if (get_struct(t, &set, a[1]))
            return -EFAULT;
        set &= ~SIGNALS_UNMASKABLE;
        switch ((int) a[0]) {
        case SIG_BLOCK:
            next |= set;
            break;
        case SIG_UNBLOCK:
            next &= ~set;
            break;
        case SIG_SETMASK:
            next = set;
            break;
        default:
            return -EINVAL;
        }
        if (next != old) {
            ret = signal_set_mask(t, next);
            if (ret)
                return ret;
        }
    }
    if (a[2] && put_struct(t, a[2], &old))
        return -EFAULT;
    return 0;
}

int64_t sys_rt_sigpending(thread_t *t, const uint64_t *a)
{
    uint64_t set = 0;

    if (a[1] > SIGSET_SIZE)
        return -EINVAL;
    host_call(SYS_rt_sigpending, P(&set), SIGSET_SIZE, 0, 0, 0, 0);
    /* More is blocked in the host while a signal is being delivered. */
    set = (set | signal_kept(t)) & t->signal.mask;
    return put_bytes(t, a[0], &set, a[1]);
}

int64_t sys_rt_sigsuspend(thread_t *t, const uint64_t *a)
{
    uint64_t set, host;

    if (a[1] != SIGSET_SIZE)
        return -EINVAL;
    if (get_struct(t, &set, a[0]))
        return -EFAULT;
    return signal_waiting_call(t, set, &host, SYS_rt_sigsuspend,
                               (uint64_t[6]){P(&host), SIGSET_SIZE});
}

int64_t sys_rt_sigtimedwait(thread_t *t, const uint64_t *a)
{
    uint64_t set, ts[2];
    siginfo_t info;
    int64_t ret;

    if (a[3] != SIGSET_SIZE)
        return -EINVAL;
    if (get_struct(t, &set, a[0]) || (a[2] && get_struct(t, &ts, a[2])))
        return -EFAULT;
    if (signal_take_kept(t, set, &info))
        ret = info.si_signo;
    else
        ret = blocking_call(t, SYS_rt_sigtimedwait, P(&set), P(&info),
                            a[2] ? P(ts) : 0, SIGSET_SIZE, 0, 0);
    /* The one that elfuse keeps interrupts the wait for it. */
    if (ret == -EINTR && signal_take_kept(t, set, &info))
        ret = info.si_signo;
    if (ret > 0 && a[1] && put_struct(t, a[1], &info))
        return -EFAULT;
    return ret;
}

int64_t sys_rt_sigreturn(thread_t *t, const uint64_t *a)
{
    return signal_return(t);
}

int64_t sys_sigaltstack(thread_t *t, const uint64_t *a)
{
    uint64_t sp = t->frame->sp_el0;
    signal_stack_t set, old = t->signal.stack;
    int error;

    old.flags = (int32_t) ((uint32_t) old.flags & SIGNAL_AUTODISARM);
    if (old.size == 0)
        old.flags |= SS_DISABLE;
    else if (signal_on_stack(t, sp))
        old.flags |= SS_ONSTACK;
    if (a[0]) {
        if (get_struct(t, &set, a[0]))
            return -EFAULT;
        error = signal_set_stack(t, &set, sp);
        if (error)
            return error;
    }
    if (a[1] && put_struct(t, a[1], &old))
        return -EFAULT;
    return 0;
}

/* The kick's number cannot be had: what comes is taken by elfuse's handler. */
int64_t sys_signalfd4(thread_t *t, const uint64_t *a)
{
    uint64_t set;

    if (fd_hidden(a[0]))
        return -EBADF;
    if (a[2] != SIGSET_SIZE)
        return -EINVAL;
    if (get_struct(t, &set, a[1]))
        return -EFAULT;
    return host_call(SYS_signalfd4, a[0], P(&set), SIGSET_SIZE, a[3], 0, 0);
}

/* SIGKILL to the guest itself: end in the ordinary way, with statistics and the
 * trace's last line. (What else is fatal has a handler where that matters.) The
 * init of a namespace cannot end like that. */
static void die_if_killed(thread_t *t, bool itself, uint64_t sig)
{
    if (itself && (int) sig == SIGKILL && t->proc->pid != 1)
        proc_die(t->proc, SIGKILL);
}

/*
 * A vfork child that dies or stops must not do so while it holds a lock of the
 * memory that it shares, nor be waited for when it is stopped: it stands at a
 * safe point meanwhile.
 */
static int64_t send(thread_t *t, long nr, const uint64_t *a)
{
    /* Relaxed: whoever knows of a child knows it from its beginning. */
    bool stop =
        !t->proc->vforked && atomic_load_explicit(&t->proc->world->nr_vforked,
                                                  memory_order_relaxed) != 0;
    int64_t ret;

    if (stop)
        world_stop(t);
    else
        world_enter_safe(t);
    ret = host_call(nr, a[0], a[1], a[2], 0, 0, 0);
    if (stop)
        world_resume(t);
    else
        world_leave_safe(t);
    return ret;
}

int64_t sys_kill(thread_t *t, const uint64_t *a)
{
    die_if_killed(t, (pid_t) a[0] == t->proc->pid, a[1]);
    return send(t, SYS_kill, a);
}

int64_t sys_tkill(thread_t *t, const uint64_t *a)
{
    die_if_killed(t, (pid_t) a[0] == t->tid, a[1]);
    return send(t, SYS_tkill, a);
}

int64_t sys_tgkill(thread_t *t, const uint64_t *a)
{
    die_if_killed(t, (pid_t) a[0] == t->proc->pid && (pid_t) a[1] == t->tid,
                  a[2]);
    return send(t, SYS_tgkill, a);
}
