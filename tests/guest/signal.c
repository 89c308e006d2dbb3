/* SPDX-License-Identifier: Apache-2.0 */
/* Signals in a program with one thread: actions, masks, queue, frames. */
#include "tap.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>

/* The kernel's structure; the C library changes some of it. */
typedef struct kernel_action {
    void *handler;
    unsigned long flags;
    void *restorer;
    uint64_t mask;
} kernel_action_t;

#define BIT(sig) (1UL << ((sig) -1))

static volatile sig_atomic_t count, last;
static volatile sig_atomic_t order[16];
static siginfo_t seen;
static volatile uint64_t seen_mask;

static long raw_action(int sig, const kernel_action_t *act,
                       kernel_action_t *old)
{
    return syscall(SYS_rt_sigaction, sig, act, old, 8);
}

static uint64_t mask_now(void)
{
    uint64_t mask = 0;
    need(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, 8) == 0,
         "sigprocmask");
    return mask;
}

static void mask_set(uint64_t mask)
{
    need(syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, NULL, 8) == 0,
         "sigprocmask");
}

static void note(int sig)
{
    if (count < 16)
        order[count] = sig;
    count++;
    last = sig;
}

static void note_info(int sig, siginfo_t *info, void *context)
{
    note(sig);
    seen = *info;
    seen_mask = mask_now();
    (void) context;
}

static void on(int sig, void *handler, unsigned long flags, uint64_t mask)
{
    kernel_action_t act = {handler, flags, NULL, mask};
    need(raw_action(sig, &act, NULL) == 0, "rt_sigaction");
    count = last = 0;
}

static void send(int sig)
{
    need(syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), sig) == 0,
         "tgkill");
}

static void test_once(void)
{
    on(SIGUSR1, note, 0, 0);
    send(SIGUSR1);
    is(count, 1, "a handler has run when tgkill returns");
    is(last, SIGUSR1, "it is given the number");
    send(SIGUSR1);
    send(SIGUSR1);
    is(count, 3, "and runs again");
    need(kill(getpid(), SIGUSR1) == 0, "kill");
    is(count, 4, "also for kill");
    is(mask_now(), 0, "the mask is as before");
}

static void test_info(void)
{
    on(SIGUSR2, note_info, SA_SIGINFO, BIT(SIGTERM));
    need(kill(getpid(), SIGUSR2) == 0, "kill");
    is(seen.si_signo, SIGUSR2, "si_signo");
    is(seen.si_code, SI_USER, "si_code of kill");
    is(seen.si_pid, getpid(), "si_pid");
    is(seen.si_uid, getuid(), "si_uid");
    is(seen_mask, BIT(SIGTERM) | BIT(SIGUSR2),
       "in the handler sa_mask and the signal are blocked");
    is(mask_now(), 0, "and not after it");
    send(SIGUSR2);
    is(seen.si_code, SI_TKILL, "si_code of tgkill");
    on(SIGUSR2, note_info, SA_SIGINFO | SA_NODEFER, ~0UL);
    send(SIGUSR2);
    is(seen_mask, ~(BIT(SIGKILL) | BIT(SIGSTOP)),
       "sa_mask of all: but SIGKILL and SIGSTOP");
    on(SIGUSR2, note_info, SA_SIGINFO | SA_NODEFER, 0);
    send(SIGUSR2);
    is(seen_mask, 0, "SA_NODEFER does not block it");
}

/* Of the kernel's, which the C library does not name. */
#define FLAG_RESTORER       0x04000000UL
#define FLAG_UNSUPPORTED    0x00000400UL
#define FLAG_EXPOSE_TAGBITS 0x00000800UL

static void test_flags(void)
{
    kernel_action_t old;

    on(SIGUSR1, note, SA_RESETHAND, 0);
    send(SIGUSR1);
    is(count, 1, "SA_RESETHAND: the handler runs");
    need(raw_action(SIGUSR1, NULL, &old) == 0, "rt_sigaction");
    is(old.handler, 0, "and is SIG_DFL afterwards");
    is(old.flags, SA_RESETHAND, "with its flags");
    on(SIGUSR1, note, ~FLAG_RESTORER, ~0UL);
    need(raw_action(SIGUSR1, NULL, &old) == 0, "rt_sigaction");
    is(old.flags,
       SA_NOCLDSTOP | SA_NOCLDWAIT | SA_SIGINFO | SA_ONSTACK | SA_RESTART |
           SA_NODEFER | SA_RESETHAND | FLAG_EXPOSE_TAGBITS,
       "unknown flags are forgotten, SA_UNSUPPORTED among them");
    is(old.mask, ~(BIT(SIGKILL) | BIT(SIGSTOP)),
       "SIGKILL and SIGSTOP are not in a mask");
    is(old.handler, note, "the handler is told");
}

static void test_action_errors(void)
{
    kernel_action_t act = {note, 0, NULL, 0};

    fails(syscall(SYS_rt_sigaction, SIGUSR1, &act, NULL, 4), EINVAL,
          "sigset of 4 bytes");
    fails(raw_action(0, &act, NULL), EINVAL, "signal 0");
    fails(raw_action(65, &act, NULL), EINVAL, "signal 65");
    fails(raw_action(-1, &act, NULL), EINVAL, "signal -1");
    fails(raw_action(SIGKILL, &act, NULL), EINVAL, "SIGKILL");
    fails(raw_action(SIGSTOP, &act, NULL), EINVAL, "SIGSTOP");
    works(raw_action(SIGKILL, NULL, &act), "SIGKILL can be asked for");
    fails(raw_action(SIGUSR1, (void *) 8, NULL), EFAULT, "bad action");
    fails(raw_action(65, (void *) 8, NULL), EFAULT,
          "bad action before bad signal");
    works(raw_action(SIGUSR1, NULL, &act), "before a bad pointer");
    fails(raw_action(SIGUSR1, &act, (void *) 8), EFAULT, "bad old action");
}

static void test_all_numbers(void)
{
    int wrong = 0;

    for (int sig = 1; sig <= 64; sig++) {
        if (sig == SIGKILL || sig == SIGSTOP)
            continue;
        on(sig, note_info, SA_SIGINFO, 0);
        send(sig);
        wrong += count != 1 || last != sig || seen.si_signo != sig ||
                 seen_mask != BIT(sig);
        mask_set(BIT(sig));
        send(sig);
        wrong += count != 1;
        mask_set(0);
        wrong += count != 2;
        on(sig, SIG_IGN, 0, 0);
        send(sig);
        wrong += count != 0;
    }
    is(wrong, 0, "every number: handled, blocked, ignored");
    for (int sig = 1; sig <= 64; sig++)
        if (sig != SIGKILL && sig != SIGSTOP)
            on(sig, SIG_DFL, 0, 0);
}

static uint64_t pending_now(void)
{
    uint64_t set = 0;
    need(syscall(SYS_rt_sigpending, &set, 8) == 0, "rt_sigpending");
    return set;
}

static void test_pending(int sig, const char *name)
{
    char line[100];

    on(sig, note, 0, 0);
    mask_set(BIT(sig));
    send(sig);
    send(sig);
    snprintf(line, sizeof line, "%s: blocked is not delivered", name);
    is(count, 0, line);
    snprintf(line, sizeof line, "%s: but pending", name);
    is(pending_now(), BIT(sig), line);
    on(sig, SIG_IGN, 0, 0);
    snprintf(line, sizeof line, "%s: ignoring it takes it away", name);
    is(pending_now(), 0, line);
    send(sig);
    on(sig, note, 0, 0);
    mask_set(0);
    snprintf(line, sizeof line, "%s: ignored while blocked is kept", name);
    is(count, 1, line);
    is(pending_now(), 0, "then nothing is pending");
    on(sig, SIG_DFL, 0, 0);
}

static void test_order(void)
{
    const int sigs[] = {SIGTERM, 64, 32, SIGUSR1, 33, 34, SIGHUP};
    uint64_t all = 0;
    int wrong = 0;

    for (int i = 0; i < 7; i++) {
        on(sigs[i], note, 0, ~0UL);
        all |= BIT(sigs[i]);
    }
    mask_set(all);
    for (int i = 0; i < 7; i++)
        send(sigs[i]);
    is(pending_now(), all, "seven are pending");
    mask_set(0);
    is(count, 7, "and are all delivered");
    for (int i = 1; i < 7; i++)
        wrong += order[i] < order[i - 1];
    is(wrong, 0, "lowest number first, when each blocks the others");
    for (int i = 0; i < 7; i++)
        on(sigs[i], note, 0, 0);
    mask_set(all);
    for (int i = 0; i < 7; i++)
        send(sigs[i]);
    mask_set(0);
    wrong = 0;
    for (int i = 1; i < 7; i++)
        wrong += order[i] > order[i - 1];
    is(wrong, 0, "and highest first, when they nest");
    for (int i = 0; i < 7; i++)
        on(sigs[i], SIG_DFL, 0, 0);
}

static void test_queue(void)
{
    siginfo_t info = {0};
    int wrong = 0;

    on(SIGRTMIN, note_info, SA_SIGINFO, 0);
    mask_set(BIT(SIGRTMIN));
    for (int i = 0; i < 3; i++) {
        union sigval value = {.sival_int = 100 + i};
        need(sigqueue(getpid(), SIGRTMIN, value) == 0, "sigqueue");
    }
    for (int i = 0; i < 3; i++) {
        struct timespec none = {0, 0};
        uint64_t set = BIT(SIGRTMIN);
        wrong +=
            syscall(SYS_rt_sigtimedwait, &set, &info, &none, 8) != SIGRTMIN ||
            info.si_int != 100 + i || info.si_code != SI_QUEUE;
    }
    is(wrong, 0, "three of a kind are queued in order with their values");
    info.si_code = SI_QUEUE;
    info.si_int = 7;
    need(syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), SIGRTMIN,
                 &info) == 0,
         "rt_tgsigqueueinfo");
    mask_set(0);
    is(count, 1, "rt_tgsigqueueinfo");
    is(seen.si_int, 7, "its value");
    info.si_code = 12345;
    works(syscall(SYS_rt_sigqueueinfo, getpid(), SIGRTMIN, &info),
          "any code may be sent to oneself");
    is(seen.si_code, 12345, "and comes");
    fails(syscall(SYS_rt_sigqueueinfo, getpid(), 65, &info), EINVAL,
          "signal 65");
    int fd = syscall(434 /* pidfd_open */, getpid(), 0);
    works(fd, "pidfd_open");
    works(syscall(424 /* pidfd_send_signal */, fd, SIGRTMIN, NULL, 0),
          "pidfd_send_signal");
    is(count, 3, "comes");
    close(fd);
    on(SIGRTMIN, SIG_DFL, 0, 0);
}

static void test_wait(void)
{
    struct timespec none = {0, 0};
    uint64_t set = BIT(SIGUSR1) | BIT(SIGSTKFLT);
    siginfo_t info;

    on(SIGUSR1, note, 0, 0);
    mask_set(set);
    fails(syscall(SYS_rt_sigtimedwait, &set, &info, &none, 8), EAGAIN,
          "nothing to wait for");
    send(SIGUSR1);
    is(syscall(SYS_rt_sigtimedwait, &set, &info, &none, 8), SIGUSR1,
       "sigtimedwait takes it");
    is(info.si_code, SI_TKILL, "with its code");
    send(SIGSTKFLT);
    is(syscall(SYS_rt_sigtimedwait, &set, &info, NULL, 8), SIGSTKFLT,
       "SIGSTKFLT too");
    is(pending_now(), 0, "nothing is left");
    fails(syscall(SYS_rt_sigtimedwait, &set, NULL, &none, 8), EAGAIN,
          "nothing again");
    mask_set(0);
    is(count, 0, "no handler has run");

    /* A handler for another signal ends the wait. */
    struct itimerval timer = {{0, 10000}, {0, 10000}}, off = {{0, 0}, {0, 0}};
    on(SIGALRM, note, SA_RESTART, 0);
    mask_set(set);
    need(setitimer(ITIMER_REAL, &timer, NULL) == 0, "setitimer");
    fails(syscall(SYS_rt_sigtimedwait, &set, NULL, NULL, 8), EINTR,
          "a handler ends sigtimedwait, also with SA_RESTART");
    need(setitimer(ITIMER_REAL, &off, NULL) == 0, "setitimer");
    ok(count >= 1, "it has run");
    mask_set(0);
}

static void test_suspend(void)
{
    uint64_t empty = 0, set = BIT(SIGUSR2);

    on(SIGUSR1, note_info, SA_SIGINFO, BIT(SIGTERM));
    mask_set(BIT(SIGUSR1));
    send(SIGUSR1);
    fails(syscall(SYS_rt_sigsuspend, &set, 8), EINTR, "sigsuspend");
    is(count, 1, "has let it through");
    is(seen_mask, BIT(SIGUSR1) | BIT(SIGUSR2) | BIT(SIGTERM),
       "the handler has sigsuspend's mask and its own");
    is(mask_now(), BIT(SIGUSR1), "then the old mask is back");
    send(SIGUSR1);
    fails(syscall(SYS_ppoll, NULL, 0, NULL, &empty, 8), EINTR, "ppoll");
    is(count, 2, "has let it through");
    is(mask_now(), BIT(SIGUSR1), "the old mask is back");
    send(SIGUSR1);
    struct {
        uint64_t *mask;
        size_t size;
    } pair = {&empty, 8};
    fails(syscall(SYS_pselect6, 0, NULL, NULL, NULL, NULL, &pair), EINTR,
          "pselect6");
    is(count, 3, "has let it through");
    send(SIGUSR1);
    struct timespec none = {0, 0};
    int pipes[2];
    need(pipe(pipes) == 0 && write(pipes[1], "x", 1) == 1, "pipe");
    struct pollfd fd = {pipes[0], POLLIN, 0};
    is(syscall(SYS_ppoll, &fd, 1, &none, &empty, 8), 1,
       "ppoll with something ready returns that");
    is(count, 3, "and no handler runs");
    is(pending_now(), BIT(SIGUSR1), "the signal is still pending");
    mask_set(0);
    is(count, 4, "until it is unblocked");

    on(SIGSTKFLT, note_info, SA_SIGINFO, 0);
    mask_set(BIT(SIGSTKFLT));
    send(SIGSTKFLT);
    fails(syscall(SYS_rt_sigsuspend, &set, 8), EINTR,
          "sigsuspend for SIGSTKFLT");
    is(count, 1, "has let it through");
    is(mask_now(), BIT(SIGSTKFLT), "the old mask is back");
    mask_set(0);
    on(SIGSTKFLT, SIG_DFL, 0, 0);
    close(pipes[0]);
    close(pipes[1]);
}

static void test_signalfd(void)
{
    uint64_t set = BIT(SIGUSR1);
    struct signalfd_siginfo info;

    on(SIGUSR1, note, 0, 0);
    mask_set(set);
    int fd = syscall(SYS_signalfd4, -1, &set, 8, SFD_NONBLOCK);
    need(fd >= 0, "signalfd4");
    fails(read(fd, &info, sizeof info), EAGAIN, "signalfd: nothing yet");
    send(SIGUSR1);
    is(read(fd, &info, sizeof info), sizeof info, "one signal is read");
    is(info.ssi_signo, SIGUSR1, "its number");
    is(info.ssi_pid, getpid(), "its sender");
    mask_set(0);
    is(count, 0, "no handler has run");
    close(fd);
}

/* --- Timers */

static void wait_for(int n)
{
    uint64_t empty = 0;

    while (count < n)
        syscall(SYS_rt_sigsuspend, &empty, 8);
}

static void test_timers(void)
{
    struct itimerval timer = {{0, 1000}, {0, 1000}}, off = {{0, 0}, {0, 0}};
    struct sigevent event = {0};
    timer_t id;

    on(SIGALRM, note_info, SA_SIGINFO, 0);
    mask_set(BIT(SIGALRM));
    need(setitimer(ITIMER_REAL, &timer, NULL) == 0, "setitimer");
    wait_for(3);
    need(setitimer(ITIMER_REAL, &off, NULL) == 0, "setitimer");
    ok(count >= 3, "an interval timer fires again and again");
    is(seen.si_code, SI_KERNEL, "si_code of setitimer");
    mask_set(0);

    on(SIGRTMIN + 1, note_info, SA_SIGINFO, 0);
    mask_set(BIT(SIGRTMIN + 1));
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGRTMIN + 1;
    event.sigev_value.sival_int = 4711;
    need(timer_create(CLOCK_MONOTONIC, &event, &id) == 0, "timer_create");
    struct itimerspec spec = {{0, 0}, {0, 1000000}};
    need(timer_settime(id, 0, &spec, NULL) == 0, "timer_settime");
    wait_for(1);
    is(seen.si_code, SI_TIMER, "timer_create: si_code");
    is(seen.si_int, 4711, "its value");
    timer_delete(id);
    mask_set(0);

    on(SIGALRM, note, 0, 0);
    mask_set(BIT(SIGALRM));
    alarm(1);
    ok(alarm(0) > 0, "alarm tells what is left");
    mask_set(0);

    /* Processor time: the computing itself is interrupted. */
    on(SIGPROF, note, 0, 0);
    need(setitimer(ITIMER_PROF, &timer, NULL) == 0, "setitimer");
    while (count < 3)
        ;
    need(setitimer(ITIMER_PROF, &off, NULL) == 0, "setitimer");
    ok(count >= 3, "ITIMER_PROF interrupts a loop");
}

/* --- Nesting and jumping out */

static volatile int depth, deepest;

static void recurse(int sig)
{
    note(sig);
    if (++depth > deepest)
        deepest = depth;
    if (count < 20)
        send(sig);
    depth--;
}

static sigjmp_buf jump;

static void jump_out(int sig)
{
    note(sig);
    siglongjmp(jump, 1);
}

static void test_nesting(void)
{
    on(SIGUSR1, recurse, SA_NODEFER, 0);
    send(SIGUSR1);
    is(deepest, 20, "SA_NODEFER: a handler interrupts itself");
    is(count, 20, "as often as it sends");
    depth = deepest = 0;
    on(SIGUSR1, recurse, 0, 0);
    send(SIGUSR1);
    is(deepest, 1, "without it comes when the first has returned");
    on(SIGUSR1, jump_out, 0, 0);
    for (volatile int i = 0; i < 1000; i++)
        if (sigsetjmp(jump, 1) == 0)
            send(SIGUSR1);
    is(count, 1000, "siglongjmp out of a handler, 1000 times");
    is(mask_now(), 0, "the mask is as it was");
}

int main(void)
{
    test_once();
    test_info();
    test_flags();
    test_action_errors();
    test_all_numbers();
    test_pending(SIGUSR1, "SIGUSR1");
    test_pending(SIGSTKFLT, "SIGSTKFLT");
    test_pending(64, "signal 64");
    test_order();
    test_queue();
    test_wait();
    test_suspend();
    test_signalfd();
    test_timers();
    test_nesting();
    return tap_done();
}
