/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that renews the clock page's anchors. It exists from the first
 * clock that a program reads, and sleeps without a time limit unless one was
 * asked for in the last two seconds. All signals are blocked in it, and it has
 * no descriptor: a step of CLOCK_REALTIME is seen at the next anchor.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "abi/vvar.h"
#include "proc/vvar.h"
#include "proc/vvar_track.h"

/* The page is withdrawn after so many anchors that nobody asked for by a call.
 */
#define IDLE_PERIODS 8

/* Protected by the page's mutex. */
static struct {
    pthread_t thread;
    bool running;
    bool failed; /* no thread to be had: not tried again */
    bool stop;
    unsigned periods; /* anchors still to be renewed */
    pthread_cond_t wanted;
} refresher;

/* Sleep until the next anchor is due; returns early when stopped. */
static void wait_period(void)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long) VVAR_PERIOD_NS;
    if (until.tv_nsec >= (long) VVAR_NSEC) {
        until.tv_nsec -= (long) VVAR_NSEC;
        until.tv_sec++;
    }
    /* Woken up otherwise, by a clock asked for meanwhile, it sleeps on. */
    while (!refresher.stop && vvar_wait(&refresher.wanted, &until))
        continue;
}

static void *refresher_main(void *arg)
{
    (void) arg;
    prctl(PR_SET_NAME, "elfuse-clock");
    vvar_lock();
    while (!refresher.stop) {
        if (refresher.periods == 0) {
            vvar_wait(&refresher.wanted, NULL);
            continue;
        }
        wait_period();
        if (refresher.stop)
            break;
        if (--refresher.periods > 0)
            vvar_refresh(VVAR_SPAN_SEC * VVAR_NSEC);
        else
            vvar_withdraw();
    }
    vvar_unlock();
    return NULL;
}

static void start_thread(void)
{
    sigset_t all, old;
    pthread_attr_t attr;
    pthread_condattr_t clock;

    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&refresher.wanted, &clock);
    pthread_condattr_destroy(&clock);
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, (size_t) sysconf(_SC_THREAD_STACK_MIN));
    pthread_sigmask(SIG_SETMASK, &all, &old);
    refresher.stop = false;
    refresher.running =
        pthread_create(&refresher.thread, &attr, refresher_main, NULL) == 0;
    refresher.failed = !refresher.running;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
}

uint64_t vvar_refresher_wake(void)
{
    if (!refresher.running && !refresher.failed)
        start_thread();
    if (!refresher.running)
        return VVAR_PERIOD_NS;
    refresher.periods = IDLE_PERIODS;
    pthread_cond_signal(&refresher.wanted);
    return VVAR_SPAN_SEC * VVAR_NSEC;
}

void vvar_refresher_forget(void)
{
    refresher.running = refresher.failed = refresher.stop = false;
    refresher.periods = 0;
}

void vvar_refresher_stop(void)
{
    vvar_lock();
    pthread_t thread = refresher.thread;
    bool mine = refresher.running && !refresher.stop;
    if (mine) {
        refresher.stop = true;
        pthread_cond_signal(&refresher.wanted);
    }
    vvar_unlock();
    if (!mine)
        return;
    pthread_join(thread, NULL);
    vvar_lock();
    pthread_cond_destroy(&refresher.wanted);
    refresher.running = false;
    refresher.failed = false;
    refresher.periods = 0;
    vvar_unlock();
}
