/* SPDX-License-Identifier: Apache-2.0 */
/* Timers with every kind of event, sleeping until a time. */
#include "mem.h"

#include <signal.h>
#include <sys/time.h>
#include <time.h>

static sigset_t usr1;

static void now(int clock, struct timespec *ts)
{
    need(clock_gettime(clock, ts) == 0, "clock_gettime");
}

static long timer(int clock, struct sigevent *ev, int *id)
{
    return syscall(SYS_timer_create, clock, ev, id);
}

/* Arms it for a millisecond and waits for its signal. */
static bool fires(int id, siginfo_t *si)
{
    struct itimerspec in = {.it_value = {0, 1000000}};
    return syscall(SYS_timer_settime, id, 0, &in, NULL) == 0 &&
           sigwaitinfo(&usr1, si) == SIGUSR1;
}

static void test_events(void)
{
    struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    siginfo_t si = {0};
    int id;
    ev.sigev_value.sival_ptr = (void *) 0x123456789abcUL;
    is(timer(CLOCK_MONOTONIC, &ev, &id), 0, "event: signal");
    ok(fires(id, &si), "event: comes");
    ok(si.si_code == SI_TIMER && si.si_timerid == id && si.si_overrun == 0 &&
           si.si_value.sival_ptr == (void *) 0x123456789abcUL,
       "event: says whose");
    is(syscall(SYS_timer_delete, id), 0, "event: deleted");
    fails(syscall(SYS_timer_delete, id), EINVAL, "event: once");

    ev.sigev_notify = SIGEV_THREAD_ID;
    ev._sigev_un._tid = syscall(SYS_gettid);
    is(timer(CLOCK_MONOTONIC, &ev, &id), 0, "event: to this thread");
    ok(fires(id, &si) && si.si_code == SI_TIMER, "event: comes");
    syscall(SYS_timer_delete, id);
    ev._sigev_un._tid = 1; /* of another process */
    fails(timer(CLOCK_MONOTONIC, &ev, &id), EINVAL,
          "event: to no thread of us");
    ev._sigev_un._tid = 0x3fffffff;
    fails(timer(CLOCK_MONOTONIC, &ev, &id), EINVAL, "event: to no thread");

    ev.sigev_notify = SIGEV_NONE;
    is(timer(CLOCK_MONOTONIC, &ev, &id), 0, "event: none");
    struct itimerspec in = {.it_value = {1000, 0}, .it_interval = {5, 6}}, out;
    is(syscall(SYS_timer_settime, id, 0, &in, NULL), 0, "event: armed");
    ok(syscall(SYS_timer_gettime, id, &out) == 0 &&
           out.it_value.tv_sec >= 998 && out.it_interval.tv_sec == 5 &&
           out.it_interval.tv_nsec == 6,
       "event: what is left");
    is(syscall(SYS_timer_getoverrun, id), 0, "event: overrun");
    fails(syscall(SYS_timer_gettime, id, BAD_PTR), EFAULT, "event: to nowhere");
    fails(syscall(SYS_timer_settime, id, 0, BAD_PTR, NULL), EFAULT,
          "event: armed from nowhere");
    fails(syscall(SYS_timer_settime, id, 0, NULL, NULL), EINVAL,
          "event: armed with nothing");
    in.it_value.tv_nsec = -1;
    fails(syscall(SYS_timer_settime, id, 0, &in, NULL), EINVAL,
          "event: bad time");
    syscall(SYS_timer_delete, id);

    ev.sigev_notify = SIGEV_THREAD; /* the kernel takes it as SIGNAL */
    is(timer(CLOCK_REALTIME, &ev, &id), 0, "event: thread");
    syscall(SYS_timer_delete, id);
    ev.sigev_notify = 8;
    fails(timer(CLOCK_REALTIME, &ev, &id), EINVAL, "event: of no kind");
    ev.sigev_notify = SIGEV_SIGNAL;
    ev.sigev_signo = 65;
    fails(timer(CLOCK_REALTIME, &ev, &id), EINVAL, "event: bad signal");
    fails(timer(1234, &ev, &id), EINVAL, "event: bad clock");
    fails(timer(CLOCK_REALTIME, BAD_PTR, &id), EFAULT, "event: from nowhere");
    fails(timer(1234, BAD_PTR, &id), EFAULT, "event: from nowhere, bad clock");
    fails(timer(CLOCK_REALTIME, NULL, BAD_PTR), EFAULT, "event: id to nowhere");
    is(timer(CLOCK_REALTIME, NULL, &id), 0, "event: the usual one");
    syscall(SYS_timer_delete, id);
    static const int clocks[] = {CLOCK_BOOTTIME, CLOCK_PROCESS_CPUTIME_ID,
                                 CLOCK_THREAD_CPUTIME_ID, CLOCK_TAI};
    ev.sigev_signo = SIGUSR1;
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        is(timer(clocks[i], &ev, &id), 0, "event: another clock");
        syscall(SYS_timer_delete, id);
    }
}

static void test_absolute(void)
{
    struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    struct itimerspec in = {.it_value = {0, 1}}, old;
    siginfo_t si = {0};
    int id;
    need(timer(CLOCK_MONOTONIC, &ev, &id) == 0, "timer_create");
    is(syscall(SYS_timer_settime, id, TIMER_ABSTIME, &in, &old), 0,
       "absolute: in the past");
    is(sigwaitinfo(&usr1, &si), SIGUSR1, "absolute: comes at once");
    ok(old.it_value.tv_sec == 0 && old.it_value.tv_nsec == 0,
       "absolute: was not armed");
    in.it_value.tv_nsec = 1000000;
    in.it_interval.tv_nsec = 1000000;
    need(syscall(SYS_timer_settime, id, 0, &in, NULL) == 0, "timer_settime");
    ok(sigwaitinfo(&usr1, &si) == SIGUSR1 && sigwaitinfo(&usr1, &si) == SIGUSR1,
       "absolute: a periodic one");
    syscall(SYS_timer_delete, id);
    struct itimerval it = {.it_value = {0, 1000}};
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_BLOCK, &alarm, NULL);
    is(setitimer(ITIMER_REAL, &it, NULL), 0, "absolute: setitimer");
    ok(sigwaitinfo(&alarm, &si) == SIGALRM && si.si_code == SI_KERNEL,
       "absolute: SIGALRM");
    fails(syscall(SYS_setitimer, 7, &it, NULL), EINVAL, "absolute: which");
}

static void test_sleep(void)
{
    struct timespec a, b, bad = {0, 1000000000}, left = {9, 9};
    now(CLOCK_MONOTONIC, &a);
    a.tv_nsec += 2000000;
    if (a.tv_nsec >= 1000000000) {
        a.tv_nsec -= 1000000000;
        a.tv_sec++;
    }
    is(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &a, &left),
       0, "sleep: until a time");
    now(CLOCK_MONOTONIC, &b);
    ok(b.tv_sec > a.tv_sec || (b.tv_sec == a.tv_sec && b.tv_nsec >= a.tv_nsec),
       "sleep: it has come");
    ok(left.tv_sec == 9 && left.tv_nsec == 9, "sleep: nothing is left");
    is(syscall(SYS_clock_nanosleep, CLOCK_REALTIME, TIMER_ABSTIME, &left, NULL),
       0, "sleep: until a past time");
    struct timespec ms = {0, 1000000};
    is(syscall(SYS_clock_nanosleep, CLOCK_BOOTTIME, 0, &ms, NULL), 0,
       "sleep: for a while");
    is(syscall(SYS_nanosleep, &ms, NULL), 0, "sleep: nanosleep");
    fails(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &bad, NULL), EINVAL,
          "sleep: bad time");
    fails(syscall(SYS_clock_nanosleep, 99, 0, &bad, NULL), EINVAL,
          "sleep: bad clock");
    fails(syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, BAD_PTR, NULL),
          EFAULT, "sleep: of nowhere");
    fails(syscall(SYS_clock_nanosleep, CLOCK_THREAD_CPUTIME_ID, 0, &ms, NULL),
          EOPNOTSUPP, "sleep: by the thread's own time");
    fails(syscall(SYS_nanosleep, BAD_PTR, NULL), EFAULT, "sleep: of nowhere");
}

int main(void)
{
    sigemptyset(&usr1);
    sigaddset(&usr1, SIGUSR1);
    sigprocmask(SIG_BLOCK, &usr1, NULL);
    test_events();
    test_absolute();
    test_sleep();
    return tap_done();
}
