/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks that the vDSO also shows, and timers that carry a sigevent. */
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "proc/vvar.h"
#include "sys/call.h"

/* One source for both, so that they never disagree. */
static int64_t clock_read(const thread_t *t, int clock, struct timespec *ts)
{
    /* A vfork child would start a thread of its own for the page. */
    if (!t->proc->vforked && vvar_clock_gettime(clock, ts) == 0)
        return 0;
    return host_call(SYS_clock_gettime, (uint64_t) clock, P(ts), 0, 0, 0, 0);
}

int64_t sys_clock_gettime(thread_t *t, const uint64_t *a)
{
    struct timespec ts;
    int64_t ret = clock_read(t, (int) a[0], &ts);

    if (ret)
        return ret;
    return put_struct(t, a[1], &ts);
}

int64_t sys_gettimeofday(thread_t *t, const uint64_t *a)
{
    struct timespec ts = {0};
    struct timeval tv;
    struct timezone tz;

    if (a[0]) {
        int64_t ret = clock_read(t, CLOCK_REALTIME, &ts);

        if (ret)
            return ret;
        tv.tv_sec = ts.tv_sec;
        tv.tv_usec = ts.tv_nsec / 1000;
        if (put_struct(t, a[0], &tv))
            return -EFAULT;
    }
    if (a[1]) {
        host_call(SYS_gettimeofday, 0, P(&tz), 0, 0, 0, 0);
        if (put_struct(t, a[1], &tz))
            return -EFAULT;
    }
    return 0;
}

/* Whatever may step a clock: the kernel's own call, and the clock page follows
 * at once for the program that did it. */
int64_t sys_set_clock(thread_t *t, const uint64_t *a)
{
    unsigned nr = (unsigned) t->frame->x[8];
    int64_t ret = sys_pass(t, nr, &sys_table[nr], a);

    if (ret >= 0 && !t->proc->vforked)
        vvar_clock_was_set();
    return ret;
}

int64_t sys_timer_create(thread_t *t, const uint64_t *a)
{
    uint8_t event[64] __attribute__((aligned(8)));
    int id;
    int64_t ret;

    if (a[1] && get_struct(t, &event, a[1]))
        return -EFAULT;
    ret =
        host_call(SYS_timer_create, a[0], a[1] ? P(event) : 0, P(&id), 0, 0, 0);
    if (ret == 0 && put_struct(t, a[2], &id)) {
        host_call(SYS_timer_delete, (uint64_t) id, 0, 0, 0, 0, 0);
        ret = -EFAULT;
    }
    return ret;
}

/* SIGEV_THREAD names a netlink socket and 32 bytes that are sent to it. */
int64_t sys_mq_notify(thread_t *t, const uint64_t *a)
{
    struct {
        uint64_t value;
        int32_t signo, notify;
        uint8_t rest[48];
    } event;
    uint8_t cookie[32];

    if (fd_hidden(a[0]))
        return -EBADF;
    if (!a[1])
        return host_call(SYS_mq_notify, a[0], 0, 0, 0, 0, 0);
    if (get_struct(t, &event, a[1]))
        return -EFAULT;
    if (event.notify == SIGEV_THREAD) {
        if (fd_hidden((uint64_t) event.signo))
            return -EBADF;
        if (get_struct(t, &cookie, event.value))
            return -EFAULT;
        event.value = P(cookie);
    }
    return host_call(SYS_mq_notify, a[0], P(&event), 0, 0, 0, 0);
}
