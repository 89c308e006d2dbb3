/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that renews the clock page's anchors. It exists from the first
 * clock that a program reads, and sleeps without a time limit unless one was
 * asked for in the last two seconds. All signals are blocked in it.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "abi/vvar.h"
#include "proc/vvar.h"
#include "proc/vvar_track.h"
#include "sys/sys.h"

/* The page is withdrawn after so many anchors that nobody asked for by a call.
 * Shorter than the page's span, so that the page does not run out by itself. */
#define IDLE_PERIODS 8

/* Protected by the page's mutex. */
static struct {
    pthread_t thread;
    bool running;
    bool failed; /* no thread to be had: not tried again */
    bool stop;
    unsigned periods; /* anchors still to be renewed */
    int timer;        /* -1: none; steps then show after a period */
} refresher = {.timer = -1};

static pthread_cond_t wanted = PTHREAD_COND_INITIALIZER;

/* Make the descriptor readable when CLOCK_REALTIME is set; the time itself
 * never comes. */
static void arm_timer(int timer)
{
    const struct itimerspec never = {.it_value.tv_sec = INT_MAX};

    /* ECANCELED says that a step came just now: arm again. */
    while (timerfd_settime(timer, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET,
                           &never, NULL) != 0 &&
           errno == ECANCELED)
        continue;
}

/* Sleep for a period, or until the clock is set. */
static void wait_period(int timer)
{
    struct pollfd fd = {.fd = timer, .events = POLLIN};

    if (poll(&fd, 1, (int) (VVAR_PERIOD_NS / 1000000)) <= 0)
        return;
    uint64_t expirations;
    if (read(timer, &expirations, sizeof(expirations)) < 0 &&
        errno == ECANCELED)
        arm_timer(timer);
}

static void *refresher_main(void *arg)
{
    (void) arg;
    prctl(PR_SET_NAME, "elfuse-clock");
    vvar_lock();
    while (!refresher.stop) {
        if (refresher.periods == 0) {
            vvar_wait(&wanted);
            continue;
        }
        int timer = refresher.timer;
        vvar_unlock();
        wait_period(timer);
        vvar_lock();
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

    int timer = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK | TFD_CLOEXEC);
    if (timer >= 0) {
        refresher.timer = fdspace_hide(timer);
        if (refresher.timer < 0) {
            close(timer);
            refresher.timer = -1;
        } else {
            arm_timer(refresher.timer);
        }
    }
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
    pthread_cond_signal(&wanted);
    return VVAR_SPAN_SEC * VVAR_NSEC;
}

void vvar_refresher_stop(void)
{
    vvar_lock();
    bool running = refresher.running;
    refresher.stop = true;
    refresher.periods = 0;
    if (running && refresher.timer >= 0) {
        /* Let the poll return now. */
        const struct itimerspec now = {.it_value.tv_nsec = 1};
        timerfd_settime(refresher.timer, 0, &now, NULL);
    }
    pthread_cond_signal(&wanted);
    vvar_unlock();
    if (running)
        pthread_join(refresher.thread, NULL);
    vvar_lock();
    refresher.running = false;
    refresher.failed = false;
    if (refresher.timer >= 0)
        close(refresher.timer);
    refresher.timer = -1;
    vvar_unlock();
}
