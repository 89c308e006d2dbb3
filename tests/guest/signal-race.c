/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A signal that arrives at any point around a call that waits is not lost: a
 * handler that feeds the pipe which the program reads always ends the read,
 * whether it runs before it, in it, or in between. (Otherwise the program
 * hangs.) The sender waits a little longer or shorter each time.
 */
#include "tap.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static int pipes[2];
static atomic_int round_now, handled;
static atomic_bool stop;
static pid_t reader;

static int rounds(void)
{
    const char *text = getenv("ROUNDS");

    return text ? atoi(text) : 250;
}

static uint32_t random_next(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static void *send_main(void *arg)
{
    uint32_t state = 12345;
    int last = 0, sig = *(int *) arg;

    for (;;) {
        int now;

        while ((now = atomic_load(&round_now)) == last) {
            if (atomic_load(&stop))
                return NULL;
            sched_yield();
        }
        last = now;
        for (uint32_t n = random_next(&state) % 3000; n; n--)
            __asm__ volatile("nop");
        if (syscall(SYS_tgkill, getpid(), reader, sig))
            _exit(96);
    }
}

static void feed(int sig)
{
    (void) sig;
    atomic_fetch_add(&handled, 1);
    if (write(pipes[1], "x", 1) != 1)
        _exit(95);
}

static void count_only(int sig)
{
    (void) sig;
    atomic_fetch_add(&handled, 1);
}

static pthread_t begin(int *sig, void (*handler)(int), int flags)
{
    struct sigaction act = {.sa_handler = handler, .sa_flags = flags};
    pthread_t thread;

    need(sigaction(*sig, &act, NULL) == 0, "sigaction");
    reader = (pid_t) syscall(SYS_gettid);
    atomic_store(&stop, false);
    atomic_store(&round_now, 0);
    atomic_store(&handled, 0);
    need(pthread_create(&thread, NULL, send_main, sig) == 0, "pthread_create");
    return thread;
}

static void end(pthread_t thread)
{
    atomic_store(&stop, true);
    need(pthread_join(thread, NULL) == 0, "pthread_join");
}

static void test_read(int sig, int flags, const char *name)
{
    pthread_t thread = begin(&sig, feed, flags);
    uint32_t state = 999;
    int n = rounds();
    char c;

    for (int i = 1; i <= n; i++) {
        atomic_store(&round_now, i);
        for (uint32_t k = random_next(&state) % 1500; k; k--)
            __asm__ volatile("nop");
        /* EINTR: the byte is there now. */
        while (read(pipes[0], &c, 1) != 1)
            need(errno == EINTR && !(flags & SA_RESTART), "read");
    }
    end(thread);
    is(atomic_load(&handled), n, name);
}

/* The signal is blocked but in the call. */
static void test_suspend(int sig, const char *name)
{
    pthread_t thread;
    sigset_t set, none;
    int n = rounds() / 3;

    sigemptyset(&none);
    sigemptyset(&set);
    sigaddset(&set, sig);
    need(pthread_sigmask(SIG_SETMASK, &set, NULL) == 0, "sigmask");
    thread = begin(&sig, count_only, 0);
    for (int i = 1; i <= n; i++) {
        atomic_store(&round_now, i);
        if (i % 2)
            sigsuspend(&none);
        else
            need(ppoll(NULL, 0, NULL, &none) == -1 && errno == EINTR, "ppoll");
        if (atomic_load(&handled) != i)
            break;
    }
    end(thread);
    need(pthread_sigmask(SIG_SETMASK, &none, NULL) == 0, "sigmask");
    is(atomic_load(&handled), n, name);
}

int main(void)
{
    need(pipe(pipes) == 0, "pipe");
    test_read(SIGUSR1, 0, "read, no flag: each signal ends it");
    test_read(SIGUSR1, SA_RESTART, "read, SA_RESTART");
    test_read(SIGSTKFLT, 0, "read, SIGSTKFLT");
    test_read(SIGSTKFLT, SA_RESTART, "read, SIGSTKFLT, SA_RESTART");
    test_read(SIGRTMIN + 2, 0, "read, a real-time signal");
    test_suspend(SIGUSR2, "sigsuspend and ppoll");
    test_suspend(SIGSTKFLT, "sigsuspend and ppoll, SIGSTKFLT");
    return tap_done();
}
