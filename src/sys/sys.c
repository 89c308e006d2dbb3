/* SPDX-License-Identifier: Apache-2.0 */
/* Dispatch: number and arguments from the frame, result to x0. */
#include <stdio.h>

#include "stats.h"
#include "sys/call.h"
#include "sys/histogram.h"
#include "sys/strace.h"

/* A call that no one serves: ENOSYS, and a line for who wants to know. */
int64_t sys_enosys(thread_t *t, const uint64_t *a)
{
    unsigned nr = (unsigned) t->frame->x[8];
    const char *name = nr < SYS_MAX ? sys_table[nr].name : NULL;

    stats_add(syscalls_unknown, 1);
    if (t->proc->verbose && !t->proc->strace)
        fprintf(stderr, "elfuse: system call %u (%s) is not supported\n", nr,
                name ? name : "unknown");
    return -ENOSYS;
}

int64_t sys_eperm(thread_t *t, const uint64_t *a)
{
    return -EPERM;
}

int64_t sys_zero(thread_t *t, const uint64_t *a)
{
    return 0;
}

static int64_t call_serve(thread_t *t, unsigned nr, const sys_entry_t *entry,
                          const uint64_t *a)
{
    int64_t ret;

    if (entry->fn)
        ret = entry->fn(t, a);
    else if (!entry->name)
        return sys_enosys(t, a);
    else
        ret = sys_pass(t, nr, entry, a);
    if (entry->attributes)
        spares_outdate(t->proc->spares);
    return ret;
}

#ifdef __aarch64__
int64_t blocking_call(thread_t *t, uint64_t nr, uint64_t a0, uint64_t a1,
                      uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
    int64_t ret;

    world_enter_safe(t);
    ret = blocking_svc(&t->signal.pending, nr, a0, a1, a2, a3, a4, a5);
    world_leave_safe(t);
    return ret;
}
#endif

/* x0 keeps its argument when the guest is to execute the svc again. */
static void call_finish(vcpu_frame_t *frame, int64_t ret)
{
    if (ret == CALL_RESTART)
        frame->elr -= 4;
    else if (ret != CALL_DONE)
        frame->x[0] = (uint64_t) ret;
}

/* With --strace or --stats: the same call, watched. */
static __attribute__((noinline)) void call_watched(thread_t *t, unsigned nr,
                                                   const sys_entry_t *entry)
{
    uint64_t a[SYS_ARGS];
    pid_t tid = t->tid;
    int64_t ret;

    for (int i = 0; i < SYS_ARGS; i++)
        a[i] = t->frame->x[i];
    if (t->proc->show_stats)
        histogram_enter(nr);
    if (t->proc->strace)
        strace_enter(t, nr, entry, a);
    ret = call_serve(t, nr, entry, a);
    /* A fork child has not made the call. */
    if (t->proc->strace && t->tid == tid)
        strace_exit(t, nr, entry, a, ret);
    if (t->proc->show_stats)
        histogram_exit(nr, ret);
    call_finish(t->frame, ret);
}

void sys_call(thread_t *thread)
{
    static const sys_entry_t none;
    /* The kernel takes the number from w8. */
    unsigned nr = (uint32_t) thread->frame->x[8];
    const sys_entry_t *entry = nr < SYS_MAX ? &sys_table[nr] : &none;
    int64_t ret;

    stats_add(syscalls, 1);
    if (thread->proc->strace || thread->proc->show_stats) {
        call_watched(thread, nr, entry);
        return;
    }
    ret = call_serve(thread, nr, entry, thread->frame->x);
    /* Which in a fork child is another frame. */
    call_finish(thread->frame, ret);
}
