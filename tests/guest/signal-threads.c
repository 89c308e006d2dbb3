/* SPDX-License-Identifier: Apache-2.0 */
/* Signals among threads and processes: who gets which, and with what mask. */
#include "tap.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define THREADS 4

static pthread_t thread[THREADS];
static pid_t tid[THREADS];
static sem_t ready, handled;
static atomic_int hits[THREADS + 1];
static atomic_bool stop;
static __thread int number;
static __thread volatile bool on_own_stack;
static __thread char *own_stack;

#define STACK 65536

static pid_t gettid_(void)
{
    return (pid_t) syscall(SYS_gettid);
}

static void hit(int sig, siginfo_t *info, void *uc)
{
    char here;

    (void) sig;
    (void) info;
    (void) uc;
    on_own_stack = &here >= own_stack && &here < own_stack + STACK;
    atomic_fetch_add(&hits[number], 1);
    sem_post(&handled);
}

static void on(int sig, int flags)
{
    struct sigaction act = {.sa_sigaction = hit,
                            .sa_flags = SA_SIGINFO | flags};
    need(sigaction(sig, &act, NULL) == 0, "sigaction");
}

static void wait_sem(sem_t *sem)
{
    while (sem_wait(sem))
        need(errno == EINTR, "sem_wait");
}

static void mask_of(uint64_t *mask)
{
    need(syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, mask, 8) == 0,
         "sigprocmask");
}

static atomic_int wrong_masks, wrong_stacks;

/* Odd ones compute, even ones wait in the kernel. */
static void *thread_main(void *arg)
{
    stack_t ss = {.ss_size = STACK}, old;
    uint64_t mask;

    number = (int) (intptr_t) arg + 1;
    mask_of(&mask);
    if (mask != 1UL << (SIGUSR2 - 1))
        atomic_fetch_add(&wrong_masks, 1);
    need(sigaltstack(NULL, &old) == 0, "sigaltstack");
    if (old.ss_flags != SS_DISABLE)
        atomic_fetch_add(&wrong_stacks, 1);
    own_stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(own_stack != MAP_FAILED, "mmap");
    ss.ss_sp = own_stack;
    need(sigaltstack(&ss, NULL) == 0, "sigaltstack");
    tid[number - 1] = gettid_();
    sem_post(&ready);
    while (!atomic_load(&stop))
        if (number % 2 == 0)
            pause();
    return (void *) (intptr_t) on_own_stack;
}

static void test_directed(void)
{
    static char main_stack[STACK];
    stack_t ss = {.ss_sp = main_stack, .ss_size = STACK};
    sigset_t set;
    int wrong = 0, stacks = 0;

    on(SIGUSR1, SA_ONSTACK);
    need(sigaltstack(&ss, NULL) == 0, "sigaltstack");
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    need(pthread_sigmask(SIG_SETMASK, &set, NULL) == 0, "sigmask");
    for (intptr_t i = 0; i < THREADS; i++)
        need(pthread_create(&thread[i], NULL, thread_main, (void *) i) == 0,
             "pthread_create");
    for (int i = 0; i < THREADS; i++)
        wait_sem(&ready);
    is(atomic_load(&wrong_masks), 0, "a thread has its maker's mask");
    is(atomic_load(&wrong_stacks), 0, "but no alternate stack");
    for (int round = 0; round < 50; round++)
        for (int i = 0; i < THREADS; i++) {
            need(syscall(SYS_tgkill, getpid(), tid[i], SIGUSR1) == 0, "tgkill");
            wait_sem(&handled);
        }
    for (int i = 0; i < THREADS; i++)
        wrong += atomic_load(&hits[i + 1]) != 50;
    is(wrong, 0, "tgkill: each thread has handled its own");
    is(atomic_load(&hits[0]), 0, "and the first thread none");
    fails(syscall(SYS_tgkill, getpid() + 1, tid[0], SIGUSR1), ESRCH,
          "tgkill with another process");

    /* Each but the first blocks nothing of this; the first does. */
    sigaddset(&set, SIGUSR1);
    need(pthread_sigmask(SIG_SETMASK, &set, NULL) == 0, "sigmask");
    for (int round = 0; round < 50; round++) {
        need(kill(getpid(), SIGUSR1) == 0, "kill");
        wait_sem(&handled);
    }
    is(atomic_load(&hits[0]), 0, "kill: who blocks it does not get it");

    atomic_store(&stop, true);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        need(syscall(SYS_tgkill, getpid(), tid[i], SIGUSR1) == 0 ||
                 errno == ESRCH,
             "tgkill");
        need(pthread_join(thread[i], &result) == 0, "pthread_join");
        stacks += result != NULL;
    }
    is(stacks, THREADS, "each on its own alternate stack");
    sigemptyset(&set);
    need(pthread_sigmask(SIG_SETMASK, &set, NULL) == 0, "sigmask");
}

static void *spin_main(void *arg)
{
    while (!atomic_load(&stop))
        ;
    return arg;
}

static int status_of(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        need(errno == EINTR, "waitpid");
    return status;
}

static void test_fork(void)
{
    sigset_t set, pending;
    pid_t pid;

    on(SIGUSR1, 0);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGSTKFLT);
    need(sigprocmask(SIG_BLOCK, &set, NULL) == 0, "sigprocmask");
    raise(SIGUSR1);
    raise(SIGSTKFLT);
    pid = fork();
    need(pid >= 0, "fork");
    if (pid == 0) {
        int before = atomic_load(&hits[0]);
        sigpending(&pending);
        if (sigismember(&pending, SIGUSR1) || sigismember(&pending, SIGSTKFLT))
            _exit(1);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        if (atomic_load(&hits[0]) != before)
            _exit(2);
        raise(SIGUSR1);
        _exit(atomic_load(&hits[0]) == before + 1 ? 0 : 3);
    }
    is(status_of(pid), 0, "a child has the handlers, but nothing is pending");
    need(signal(SIGSTKFLT, SIG_IGN) != SIG_ERR, "signal");
    need(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0, "sigprocmask");
    need(signal(SIGSTKFLT, SIG_DFL) != SIG_ERR, "signal");
}

/* What the kernel forgets of a signal beyond the limit must not matter to those
 * that nobody of the program has sent. */
static void test_no_queue(void)
{
    struct rlimit none, old;
    pthread_t spinner;
    int wrong = 0;

    need(getrlimit(RLIMIT_SIGPENDING, &old) == 0, "getrlimit");
    none = old;
    none.rlim_cur = 0;
    atomic_store(&stop, false);
    need(pthread_create(&spinner, NULL, spin_main, NULL) == 0,
         "pthread_create");
    need(setrlimit(RLIMIT_SIGPENDING, &none) == 0, "setrlimit");
    for (int i = 0; i < 10; i++) {
        pid_t pid = fork();
        need(pid >= 0, "fork");
        if (pid == 0)
            _exit(3);
        wrong += status_of(pid) != 3 << 8;
    }
    on(SIGUSR1, 0);
    wrong += raise(SIGUSR1) != 0;
    need(setrlimit(RLIMIT_SIGPENDING, &old) == 0, "setrlimit");
    atomic_store(&stop, true);
    need(pthread_join(spinner, NULL) == 0, "pthread_join");
    is(wrong, 0, "fork beside a thread, RLIMIT_SIGPENDING being 0");
}

static volatile pid_t made;

static void fork_here(int sig)
{
    (void) sig;
    made = fork();
}

static void test_fork_in_handler(void)
{
    struct sigaction act = {.sa_handler = fork_here};
    int wrong = 0;

    need(sigaction(SIGUSR2, &act, NULL) == 0, "sigaction");
    for (int i = 0; i < 5; i++) {
        sigset_t set;
        raise(SIGUSR2);
        need(made >= 0, "fork");
        sigprocmask(SIG_BLOCK, NULL, &set);
        if (made == 0)
            _exit(sigismember(&set, SIGUSR2) ? 9 : 42);
        wrong += status_of(made) != 42 << 8;
    }
    is(wrong, 0, "fork in a handler: both return from it");
}

static void test_groups(void)
{
    sigset_t set;
    pid_t pid[3];
    int wrong = 0, sig;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGCHLD);
    need(sigprocmask(SIG_BLOCK, &set, NULL) == 0, "sigprocmask");
    need(setpgid(0, 0) == 0 || errno == EPERM, "setpgid");
    for (int i = 0; i < 3; i++) {
        pid[i] = fork();
        need(pid[i] >= 0, "fork");
        if (pid[i] == 0) {
            sigwait(&set, &sig);
            _exit(sig);
        }
    }
    need(kill(0, SIGUSR1) == 0, "kill");
    for (int i = 0; i < 3; i++)
        wrong += status_of(pid[i]) != SIGUSR1 << 8;
    is(wrong, 0, "kill(0): all of the group");
    sigdelset(&set, SIGCHLD);
    need(sigwait(&set, &sig) == 0, "sigwait");
    is(sig, SIGUSR1, "the sender too");
    pid[0] = fork();
    need(pid[0] >= 0, "fork");
    if (pid[0] == 0)
        for (;;)
            pause();
    need(setpgid(pid[0], pid[0]) == 0, "setpgid");
    need(kill(-pid[0], SIGTERM) == 0, "kill");
    is(status_of(pid[0]), SIGTERM, "kill(-pgid)");
    sigaddset(&set, SIGCHLD);
    need(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0, "sigprocmask");
}

/* How a child ends or stops. */
static void test_children(void)
{
    static const int fatal[] = {SIGHUP,  SIGQUIT,   SIGILL,  SIGSEGV, SIGPIPE,
                                SIGTERM, SIGSTKFLT, SIGPROF, SIGSYS,  32,
                                33,      34,        64};
    int wrong = 0, status;
    sigset_t set;
    pid_t pid;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    need(sigprocmask(SIG_BLOCK, &set, NULL) == 0, "sigprocmask");

    for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++) {
        uint64_t standard[4] = {0};
        /* Whoever has started this may ignore some. */
        need(syscall(SYS_rt_sigaction, fatal[i], standard, NULL, 8) == 0,
             "rt_sigaction");
        pid = fork();
        need(pid >= 0, "fork");
        if (pid == 0) {
            syscall(SYS_tgkill, getpid(), gettid_(), fatal[i]);
            _exit(1);
        }
        status = status_of(pid);
        wrong += !WIFSIGNALED(status) || WTERMSIG(status) != fatal[i];
        pid = fork();
        need(pid >= 0, "fork");
        if (pid == 0)
            for (;;)
                pause();
        need(kill(pid, fatal[i]) == 0, "kill");
        status = status_of(pid);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != fatal[i]) {
            tap_say("#   signal %d: status %#x", fatal[i], status);
            wrong++;
        }
    }
    is(wrong, 0, "default actions that end a process");
    pid = fork();
    need(pid >= 0, "fork");
    if (pid == 0) {
        raise(SIGTSTP);
        sigwait(&set, &status);
        raise(SIGSTOP);
        sigwait(&set, &status);
        _exit(7);
    }
    for (int i = 0; i < 2; i++) {
        need(waitpid(pid, &status, WUNTRACED) == pid, "waitpid");
        ok(WIFSTOPPED(status) && WSTOPSIG(status) == (i ? SIGSTOP : SIGTSTP),
           i ? "stopped by SIGSTOP" : "stopped by SIGTSTP");
        need(kill(pid, SIGCONT) == 0, "kill");
        need(waitpid(pid, &status, WCONTINUED) == pid, "waitpid");
        ok(WIFCONTINUED(status), "continued");
        need(kill(pid, SIGUSR1) == 0, "kill");
    }
    is(status_of(pid), 7 << 8, "and ended");
}

int main(void)
{
    struct rlimit none = {0, 0};

    need(setrlimit(RLIMIT_CORE, &none) == 0, "setrlimit");
    need(sem_init(&ready, 0, 0) == 0 && sem_init(&handled, 0, 0) == 0,
         "sem_init");
    test_directed();
    test_fork();
    test_no_queue();
    test_fork_in_handler();
    test_groups();
    test_children();
    return tap_done();
}
