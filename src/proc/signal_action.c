/* SPDX-License-Identifier: Apache-2.0 */
/* What the guest wants done with each signal, and the host's part of it. */
#include "proc/signal.h"

#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc/proc.h"
#include "proc/signal_host.h"

/* Linux's UAPI_SA_FLAGS; it forgets all others. */
#define KNOWN_FLAGS                                                       \
    (SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | SA_ONSTACK | SA_RESTART | \
     SA_NODEFER | SA_RESETHAND | SIGNAL_RESTORER | SIGNAL_EXPOSE_TAGBITS)

/* Those that the kernel itself acts on before or beside the handler. */
#define HOST_FLAGS                                             \
    (SA_NOCLDSTOP | SA_NOCLDWAIT | SA_RESTART | SA_RESETHAND | \
     SIGNAL_EXPOSE_TAGBITS)

/* Their default action writes a core. */
#define CORE_SIGNALS                                                   \
    (SIGNAL_BIT(SIGQUIT) | SIGNAL_BIT(SIGILL) | SIGNAL_BIT(SIGTRAP) |  \
     SIGNAL_BIT(SIGABRT) | SIGNAL_BIT(SIGBUS) | SIGNAL_BIT(SIGFPE) |   \
     SIGNAL_BIT(SIGSEGV) | SIGNAL_BIT(SIGXCPU) | SIGNAL_BIT(SIGXFSZ) | \
     SIGNAL_BIT(SIGSYS))

static void host_action(int sig, const signal_action_t *act,
                        signal_action_t *old)
{
    if (syscall(SYS_rt_sigaction, sig, act, old, SIGSET_SIZE))
        elfuse_panic("no disposition for signal %d", sig);
}

bool signal_fatal_by_default(int sig)
{
    static const uint64_t harmless = SIGNAL_BIT(SIGCHLD) | SIGNAL_BIT(SIGCONT) |
                                     SIGNAL_BIT(SIGURG) | SIGNAL_BIT(SIGWINCH) |
                                     SIGNAL_BIT(SIGSTOP) | SIGNAL_BIT(SIGTSTP) |
                                     SIGNAL_BIT(SIGTTIN) | SIGNAL_BIT(SIGTTOU);

    return sig >= 1 && sig <= SIGNAL_COUNT && !(harmless & SIGNAL_BIT(sig));
}

void signal_actions_init(signal_actions_t *actions)
{
    memset(actions, 0, sizeof *actions);
    pthread_mutex_init(&actions->lock, NULL);
}

void signal_actions_copy(signal_actions_t *to, signal_actions_t *from)
{
    pthread_mutex_lock(&from->lock);
    memcpy(to, from, sizeof *to);
    pthread_mutex_unlock(&from->lock);
    pthread_mutex_init(&to->lock, NULL);
}

/* Under the lock. */
static signal_action_t *action_of(signal_actions_t *actions, int sig)
{
    signal_action_t *act = &actions->action[sig];

    if (!actions->known[sig]) {
        signal_action_t host = {0};

        /* Ignored since before elfuse (nohup). */
        host_action(sig, NULL, &host);
        act->handler = host.handler == 1;
        actions->known[sig] = true;
    }
    return act;
}

/*
 * Does elfuse need a handler? For the guest's; to end in its own way where the
 * kernel would write a core of elfuse, or print nothing; and for the kick.
 */
static bool needs_handler(const proc_t *proc, int sig,
                          const signal_action_t *act)
{
    if (sig == hv_kick_signal() || act->handler > 1)
        return true;
    if (act->handler == 1 || sig == SIGKILL || !signal_fatal_by_default(sig))
        return false;
    return (CORE_SIGNALS & SIGNAL_BIT(sig)) || proc->strace || proc->show_stats;
}

/* Tell the host. */
static void action_apply(const proc_t *proc, int sig,
                         const signal_action_t *act)
{
    signal_action_t host = {.flags = act->flags & HOST_FLAGS};

    if (needs_handler(proc, sig, act)) {
        host.handler = (uintptr_t) signal_host_handler;
        host.mask = ~0UL;
        host.flags |= SA_SIGINFO;
        /* The kick's handler stays; unless the guest has one that interrupts
         * calls, it interrupts none. */
        if (sig == hv_kick_signal()) {
            host.flags &= ~(uint64_t) SA_RESETHAND;
            if (act->handler < 2)
                host.flags |= SA_RESTART;
        }
    } else {
        host.handler = act->handler;
    }
    host_action(sig, &host, NULL);
}

signal_action_t signal_action_get(proc_t *proc, int sig)
{
    signal_actions_t *actions = proc->signals;
    signal_action_t act;

    pthread_mutex_lock(&actions->lock);
    act = *action_of(actions, sig);
    pthread_mutex_unlock(&actions->lock);
    return act;
}

void signal_action_set(proc_t *proc, int sig, const signal_action_t *act,
                       signal_action_t *old)
{
    signal_actions_t *actions = proc->signals;
    signal_action_t *now;

    pthread_mutex_lock(&actions->lock);
    now = action_of(actions, sig);
    if (old)
        *old = *now;
    *now = *act;
    now->flags &= KNOWN_FLAGS;
    action_apply(proc, sig, now);
    pthread_mutex_unlock(&actions->lock);
}

signal_action_t signal_action_take(proc_t *proc, int sig)
{
    signal_actions_t *actions = proc->signals;
    signal_action_t *now, act;

    pthread_mutex_lock(&actions->lock);
    now = action_of(actions, sig);
    act = *now;
    if (act.handler > 1 && act.flags & SA_RESETHAND) {
        now->handler = 0;
        action_apply(proc, sig, now);
    }
    pthread_mutex_unlock(&actions->lock);
    return act;
}

void signal_action_hand_over(proc_t *proc, int sig, bool over)
{
    signal_actions_t *actions = proc->signals;
    const signal_action_t *act, ignore = {.handler = 1};

    pthread_mutex_lock(&actions->lock);
    act = action_of(actions, sig);
    if (over && act->handler == 1)
        host_action(sig, &ignore, NULL);
    else
        action_apply(proc, sig, act);
    pthread_mutex_unlock(&actions->lock);
}

void signal_actions_start(proc_t *proc)
{
    signal_actions_t *actions = proc->signals;

    pthread_mutex_lock(&actions->lock);
    for (int sig = 1; sig <= SIGNAL_COUNT; sig++) {
        const signal_action_t standard = {0};

        /* Only what is needed is looked at: each costs a system call. */
        if (needs_handler(proc, sig, &standard))
            action_apply(proc, sig, action_of(actions, sig));
    }
    pthread_mutex_unlock(&actions->lock);
}

void signal_actions_reset(proc_t *proc)
{
    signal_actions_t *actions = proc->signals;

    pthread_mutex_lock(&actions->lock);
    for (int sig = 1; sig <= SIGNAL_COUNT; sig++) {
        signal_action_t *act = &actions->action[sig];

        if (!actions->known[sig] || act->handler == 1)
            continue;
        *act = (signal_action_t){0};
        if (sig != SIGKILL && sig != SIGSTOP)
            action_apply(proc, sig, act);
    }
    pthread_mutex_unlock(&actions->lock);
}

void signal_dispositions(proc_t *proc, uint64_t *ignored, uint64_t *caught)
{
    *ignored = *caught = 0;
    for (int sig = 1; sig <= SIGNAL_COUNT; sig++) {
        uint64_t handler = signal_action_get(proc, sig).handler;

        if (handler == 1)
            *ignored |= SIGNAL_BIT(sig);
        else if (handler)
            *caught |= SIGNAL_BIT(sig);
    }
}
