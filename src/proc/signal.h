/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals of the guest. The kernel of the host does the sending, queueing,
 * blocking and choosing of a thread: the guest's mask is the host's, its
 * ignored and default dispositions are the host's, and for a signal that has a
 * handler in the guest elfuse has one of its own in the host. That one takes
 * note (one signal at a time: it leaves all others blocked) and makes the
 * thread come to where frames are built: before EL0 runs on.
 *
 * One number is shared: the kick's (hv_kick_signal()). It is never blocked in
 * the host; one that is no kick is kept here while the guest blocks it.
 *
 * The host's mask of a guest thread is therefore one of three: the guest's
 * without the kick's number; from the moment that a signal is noted until its
 * frame is built, everything without the kick's number; and everything between
 * signal_block() and signal_unblock().
 */
#ifndef ELFUSE_PROC_SIGNAL_H
#define ELFUSE_PROC_SIGNAL_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct proc;
struct thread;

#define SIGNAL_COUNT  64
#define SIGSET_SIZE   8UL
#define SIGNAL_BIT(n) (1UL << ((n) -1))
/* No mask has them. */
#define SIGNALS_UNMASKABLE (SIGNAL_BIT(SIGKILL) | SIGNAL_BIT(SIGSTOP))
/* MINSIGSTKSZ of arm64. */
#define SIGNAL_STACK_MIN 5120UL

/* Flags that the headers of the host's C library do not have. */
#define SIGNAL_EXPOSE_TAGBITS 0x00000800UL
#define SIGNAL_RESTORER       0x04000000UL
#define SIGNAL_AUTODISARM     (1U << 31)

/* The kernel's struct sigaction on arm64. */
typedef struct signal_action {
    uint64_t handler; /* 0: SIG_DFL, 1: SIG_IGN */
    uint64_t flags;
    uint64_t restorer;
    uint64_t mask;
} signal_action_t;

/* What is per process: a vfork child gets a copy, as the host's kernel copies
 * the host's dispositions. */
typedef struct signal_actions {
    pthread_mutex_t lock; /* table and host's dispositions agree under it;
                             nothing else is taken, nothing blocks under it */
    signal_action_t action[SIGNAL_COUNT + 1];
    bool known[SIGNAL_COUNT + 1]; /* else: as the host has it since exec */
} signal_actions_t;

/* The kernel's stack_t on arm64. */
typedef struct signal_stack {
    uint64_t sp;
    int32_t flags;
    uint32_t pad;
    uint64_t size;
} signal_stack_t;

/* signal_thread_t.pending: what is to be delivered before EL0 runs on. */
#define SIGNAL_NOTED 1U /* `noted` */
#define SIGNAL_STRAY 2U /* `stray`, if the mask still allows it */

/* A thread's part. Only the thread itself and its handlers touch it. */
typedef struct signal_thread {
    _Atomic uint32_t pending; /* blocking.S looks at it */
    atomic_bool has_stray;
    siginfo_t noted;
    siginfo_t stray; /* of the kick's number: the first that came */
    uint64_t mask;
    /* Where a call waits with another mask (sigsuspend, ppoll): that one is in
     * `mask`, and the one to go back to is here. */
    uint64_t saved_mask;
    bool restore_mask;
    signal_stack_t stack;
    /* As the kernel's thread_struct: of the last fault, shown in every frame.
     */
    uint64_t fault_address, fault_esr;
} signal_thread_t;

/* --- Per process: proc/signal_action.c */

void signal_actions_init(signal_actions_t *actions);
/* For a vfork child. */
void signal_actions_copy(signal_actions_t *to, signal_actions_t *from);
/* CLONE_CLEAR_SIGHAND and exec: what has a handler gets the default action. */
void signal_actions_reset(struct proc *proc);
/* The action of a signal, 1 to 64. */
signal_action_t signal_action_get(struct proc *proc, int sig);
/* Set it, in the host too. The mask is one that may be set; *old may be NULL.
 */
void signal_action_set(struct proc *proc, int sig, const signal_action_t *act,
                       signal_action_t *old);
/* The action for a signal that is being delivered: SA_RESETHAND is obeyed. */
signal_action_t signal_action_take(struct proc *proc, int sig);
/* Over exec the kernel keeps what is ignored: let it know, or take it back, of
 * a signal for which elfuse has a handler in any case. */
void signal_action_hand_over(struct proc *proc, int sig, bool over);
/* From now on elfuse has handlers for what would write a core, and with
 * --strace or --stats for all that would end the process. */
void signal_actions_start(struct proc *proc);
/* Signals that are ignored, and those that have a handler. */
void signal_dispositions(struct proc *proc, uint64_t *ignored,
                         uint64_t *caught);
/* Would it end a process that has done nothing about it? */
bool signal_fatal_by_default(int sig);

/* --- A thread and its handlers: proc/signal.c */

/*
 * A thread's part, before it runs: what it has from the thread that makes it.
 * `keep_stack`: fork and vfork keep the alternate stack, a thread has none.
 * parent NULL: the first thread; what the host has is what exec left.
 */
void signal_thread_init(struct thread *t, const struct thread *parent,
                        bool keep_stack);
/* In the thread itself, which is thread_self and has a vCPU: they may come. */
void signal_thread_start(struct thread *t);
/* In a fork child, where signals are still blocked: what is kept is the
 * parent's. */
void signal_after_fork(struct thread *t, bool clear_handlers);

/*
 * Nothing is noted until signal_unblock(), and EL0 must not run. CALL_RESTART
 * (not 0) if something has been already: then a call that changes or ends what
 * signals mean for the thread (a mask, fork, exec, exit) comes after the
 * handler; it returns that, having done nothing.
 */
int64_t signal_block(struct thread *t);
/* The host's mask is the guest's again. What is pending comes now. */
void signal_unblock(struct thread *t);
/* Set the guest's mask. 0, or CALL_RESTART and nothing is done. */
int64_t signal_set_mask(struct thread *t, uint64_t mask);

/* blocking_call() with another mask while it waits; for those of Linux's calls
 * that take one. `mask` is the guest's; the host call finds *host_mask. */
int64_t signal_waiting_call(struct thread *t, uint64_t mask,
                            uint64_t *host_mask, uint64_t nr,
                            const uint64_t a[6]);

/* What the guest blocks and elfuse keeps, as bits. */
uint64_t signal_kept(const struct thread *t);
/* Take it, as sigtimedwait does. False: nothing of `set` is kept. */
bool signal_take_kept(struct thread *t, uint64_t set, siginfo_t *info);

/* Before exec: the host's queue and dispositions hold all that the next image
 * is to have, and everything is blocked, so that it keeps it: the mask is
 * handed over. After an exec that failed, the second one and signal_unblock().
 */
void signal_before_exec(struct thread *t);
void signal_exec_failed(struct thread *t);

/* --- Delivery: proc/signal_deliver.c */

/* Build frames for what has been noted. The thread is in HOST, its frame is
 * valid. */
void signal_deliver(struct thread *t);

/* A signal that the guest's own instruction causes. */
typedef struct signal_fault {
    int signo, code;
    uint64_t addr;          /* si_addr, with tag */
    uint64_t fault_address; /* for the frame */
    uint64_t esr;           /* for the frame; 0: no record */
    bool keep;              /* the last two stay as they were */
} signal_fault_t;
/*
 * Deliver it; a process that blocks or ignores it ends. If a signal has been
 * noted, that comes first and nothing is done: the instruction faults again.
 */
void signal_force(struct thread *t, const signal_fault_t *fault);

/* rt_sigreturn: CALL_DONE or CALL_RESTART. */
int64_t signal_return(struct thread *t);
/* Is this address on the thread's alternate stack? (Not if SS_AUTODISARM.) */
bool signal_on_stack(const struct thread *t, uint64_t sp);
/* sigaltstack's second half: 0, -EPERM, -EINVAL or -ENOMEM. */
int signal_set_stack(struct thread *t, const signal_stack_t *stack,
                     uint64_t sp);

#endif
