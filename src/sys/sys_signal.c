/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals. SIG_IGN and SIG_DFL are the host's; a handler is recorded. Masks are
 * mirrored in the host, so that blocked signals stay pending there.
 *
 * Handlers are not delivered yet. Where that belongs: signal_apply() gives the
 * host a handler that kicks the vCPU, and the run loop builds the frame from
 * signal_action().
 */
#include <signal.h>
#include <string.h>

#include "sys/call.h"
#include "sys/sigstate.h"

#define UNMASKABLE (SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP))
#define MIN_STACK  5120UL /* MINSIGSTKSZ of arm64 */

/* struct stack_t of the guest. */
typedef struct guest_stack {
    uint64_t sp;
    int32_t flags;
    uint32_t pad;
    uint64_t size;
} guest_stack_t;

static struct {
    guest_sigaction_t action[SIGNAL_COUNT + 1];
    bool set[SIGNAL_COUNT + 1];
} state;

static __thread struct {
    uint64_t mask;
    bool known;
    guest_stack_t stack;
    bool has_stack;
} self;

static int64_t host_action(int sig, const guest_sigaction_t *act,
                           guest_sigaction_t *old)
{
    return host_call(SYS_rt_sigaction, (uint64_t) sig, P(act), P(old),
                     SIGSET_SIZE, 0, 0);
}

const guest_sigaction_t *signal_action(int sig)
{
    guest_sigaction_t *act = &state.action[sig];

    if (!state.set[sig]) {
        guest_sigaction_t host = {0};

        /* Ignored since before elfuse (nohup); a handler is elfuse's own. */
        host_action(sig, NULL, &host);
        memset(act, 0, sizeof *act);
        act->handler = host.handler == 1;
        state.set[sig] = true;
    }
    return act;
}

uint64_t signal_host_mask(uint64_t guest)
{
    return guest & ~UNMASKABLE;
}

bool signal_fatal_by_default(int sig)
{
    static const uint64_t harmless = SIGNAL_BIT(SIGCHLD) | SIGNAL_BIT(SIGCONT) |
                                     SIGNAL_BIT(SIGURG) | SIGNAL_BIT(SIGWINCH) |
                                     SIGNAL_BIT(SIGSTOP) | SIGNAL_BIT(SIGTSTP) |
                                     SIGNAL_BIT(SIGTTIN) | SIGNAL_BIT(SIGTTOU);

    return sig >= 1 && sig <= SIGNAL_COUNT && !(harmless & SIGNAL_BIT(sig));
}

/* Tell the host. A signal for which elfuse has a handler keeps it. */
static void signal_apply(int sig, const guest_sigaction_t *act)
{
    guest_sigaction_t host = {0}, wanted = {0};

    host_action(sig, NULL, &host);
    if (host.handler > 1) {
        hv_stray_kick_fatal(act->handler == 0);
        return;
    }
    wanted.handler = act->handler == 1;
    wanted.flags = act->flags & (SA_NOCLDSTOP | SA_NOCLDWAIT);
    host_action(sig, &wanted, NULL);
}

int64_t sys_rt_sigaction(thread_t *t, const uint64_t *a)
{
    int sig = (int) a[0];
    guest_sigaction_t act, old;

    if (a[3] != SIGSET_SIZE)
        return -EINVAL;
    if (a[1] && get_struct(t, &act, a[1]))
        return -EFAULT;
    if (sig < 1 || sig > SIGNAL_COUNT ||
        (a[1] && (sig == SIGKILL || sig == SIGSTOP)))
        return -EINVAL;
    old = *signal_action(sig);
    if (a[1]) {
        act.mask &= ~UNMASKABLE;
        state.action[sig] = act;
        signal_apply(sig, &act);
    }
    if (a[2] && put_struct(t, a[2], &old))
        return -EFAULT;
    return 0;
}

static uint64_t *mask_get(void)
{
    if (!self.known) {
        host_call(SYS_rt_sigprocmask, SIG_BLOCK, 0, P(&self.mask), SIGSET_SIZE,
                  0, 0);
        self.known = true;
    }
    return &self.mask;
}

uint64_t signal_mask(void)
{
    return *mask_get();
}

void signal_dispositions(uint64_t *ignored, uint64_t *caught)
{
    *ignored = *caught = 0;
    for (int sig = 1; sig <= SIGNAL_COUNT; sig++) {
        uint64_t handler = signal_action(sig)->handler;

        if (handler == 1)
            *ignored |= SIGNAL_BIT(sig);
        else if (handler)
            *caught |= SIGNAL_BIT(sig);
    }
}

int64_t sys_rt_sigprocmask(thread_t *t, const uint64_t *a)
{
    uint64_t *mask = mask_get(), old = *mask, set, next = old;

    if (a[3] != SIGSET_SIZE)
        return -EINVAL;
    if (a[1]) {
        if (get_struct(t, &set, a[1]))
            return -EFAULT;
        set &= ~UNMASKABLE;
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
            uint64_t host = signal_host_mask(next);

            *mask = next;
            host_call(SYS_rt_sigprocmask, SIG_SETMASK, P(&host), 0, SIGSET_SIZE,
                      0, 0);
        }
    }
    if (a[2] && put_struct(t, a[2], &old))
        return -EFAULT;
    return 0;
}

int64_t sys_rt_sigsuspend(thread_t *t, const uint64_t *a)
{
    uint64_t set;

    if (a[1] != SIGSET_SIZE)
        return -EINVAL;
    if (get_struct(t, &set, a[0]))
        return -EFAULT;
    set = signal_host_mask(set);
    return host_call(SYS_rt_sigsuspend, P(&set), SIGSET_SIZE, 0, 0, 0, 0);
}

int64_t sys_rt_sigtimedwait(thread_t *t, const uint64_t *a)
{
    uint64_t set, ts[2];
    uint8_t info[128];
    int64_t ret;

    if (a[3] != SIGSET_SIZE)
        return -EINVAL;
    if (get_struct(t, &set, a[0]) || (a[2] && get_struct(t, &ts, a[2])))
        return -EFAULT;
    set = signal_host_mask(set);
    ret = host_call(SYS_rt_sigtimedwait, P(&set), P(info), a[2] ? P(ts) : 0,
                    SIGSET_SIZE, 0, 0);
    if (ret > 0 && a[1] && put_bytes(t, a[1], info, sizeof info))
        return -EFAULT;
    return ret;
}

/* No handler has run, so there is no frame to return from: as the kernel does
 * with a bad one. */
int64_t sys_rt_sigreturn(thread_t *t, const uint64_t *a)
{
    proc_die(t->proc, SIGSEGV);
}

int64_t sys_sigaltstack(thread_t *t, const uint64_t *a)
{
    guest_stack_t set, old = self.stack;

    if (!self.has_stack) {
        memset(&old, 0, sizeof old);
        old.flags = SS_DISABLE;
    }
    if (a[0]) {
        int mode;

        if (get_struct(t, &set, a[0]))
            return -EFAULT;
        mode = set.flags & ~(int) (1U << 31) /* SS_AUTODISARM */;
        if (mode != SS_DISABLE && mode != SS_ONSTACK && mode != 0)
            return -EINVAL;
        if (mode == SS_DISABLE) {
            set.size = 0;
            set.sp = 0;
        } else if (set.size < MIN_STACK) {
            return -ENOMEM;
        }
        set.pad = 0;
        self.stack = set;
        self.has_stack = true;
    }
    if (a[1] && put_struct(t, a[1], &old))
        return -EFAULT;
    return 0;
}

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

/* A fatal signal to the guest itself: end in the ordinary way, with statistics
 * and the trace's last line. */
static void die_if_fatal(thread_t *t, int sig)
{
    if (signal_fatal_by_default(sig) && signal_action(sig)->handler == 0 &&
        (!(*mask_get() & SIGNAL_BIT(sig)) || sig == SIGKILL))
        proc_die(t->proc, sig);
}

int64_t sys_kill(thread_t *t, const uint64_t *a)
{
    if ((pid_t) a[0] == t->proc->pid)
        die_if_fatal(t, (int) a[1]);
    return host_call(SYS_kill, a[0], a[1], 0, 0, 0, 0);
}

int64_t sys_tkill(thread_t *t, const uint64_t *a)
{
    if ((pid_t) a[0] == t->tid)
        die_if_fatal(t, (int) a[1]);
    return host_call(SYS_tkill, a[0], a[1], 0, 0, 0, 0);
}

int64_t sys_tgkill(thread_t *t, const uint64_t *a)
{
    if ((pid_t) a[0] == t->proc->pid && (pid_t) a[1] == t->tid)
        die_if_fatal(t, (int) a[2]);
    return host_call(SYS_tgkill, a[0], a[1], a[2], 0, 0, 0);
}
