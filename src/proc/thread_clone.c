/* SPDX-License-Identifier: Apache-2.0 */
/* clone with CLONE_THREAD: pthread_create's, and others. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "proc/run.h"
#include "proc/spares.h"
#include "proc/thread.h"
#include "sys/call.h"

/* What a thread may have for itself: it asks for it when it begins. */
#define OWN_SPACES \
    (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWNET)

/* A thread with descriptors of its own would not have those of later vCPUs;
 * nor can one be suspended for another of the same process. */
static int64_t refuse(const thread_t *t, const clone_args_t *args)
{
    uint64_t flags = args->flags;

    /* They would outlive it in lists of its parent's. */
    if (t->proc->vforked)
        return -EAGAIN;
    if (!(flags & CLONE_FILES) || flags & CLONE_VFORK)
        return -EINVAL;
    if (flags >> 32 || args->set_tid_size) /* CLONE_INTO_CGROUP and later */
        return -EINVAL;
    return 0;
}

/* On a vCPU that nobody has run yet, or NULL. */
static thread_t *prepare_new(thread_t *t, int64_t *error)
{
    vcpu_t *slot = vcpus_take_new(t->proc, t);
    thread_t *new;

    if (!slot)
        return NULL;
    new = host_start(t, slot);
    if (!new)
        *error = -EAGAIN;
    return new;
}

/* A host thread with a vCPU, ready to go. */
static thread_t *prepare(thread_t *t, int64_t *error)
{
    bool failed = false;
    thread_t *new;

    *error = 0;
    do {
        new = prepare_new(t, error);
        if (!new && !*error)
            new = spares_take(t, &failed);
        /* The vCPU of a thread that has said so will be free in a moment. */
    } while (!new && !*error && !failed && vcpus_wait_free(t->proc));
    if (!new) {
        *error = -EAGAIN;
        return NULL;
    }
    if (host_wait_ready(new)) {
        world_add_ended(t, new);
        *error = -EAGAIN;
        return NULL;
    }
    return new;
}

/* Not a thread of the guest yet: with descriptors and namespaces. */
static int64_t equip(thread_t *t, thread_t *new, const clone_args_t *args)
{
    uint64_t own = args->flags & OWN_SPACES;
    int64_t error;
    int32_t fd;

    own |= ~args->flags & (CLONE_FS | CLONE_SYSVSEM);
    if (own) {
        error = host_unshare(new, own);
        if (error) {
            world_add_ended(t, new);
            return error;
        }
    }
    if (!(args->flags & CLONE_PIDFD))
        return 0;
    /* PIDFD_THREAD, which is O_EXCL; kernels before 6.9 say EINVAL. */
    error = host_call(SYS_pidfd_open, (uint64_t) new->tid, O_EXCL, 0, 0, 0, 0);
    if (error >= 0) {
        fd = (int32_t) error;
        error = put_struct(t, args->pidfd, &fd);
        if (error)
            host_call(SYS_close, (uint64_t) fd, 0, 0, 0, 0, 0);
    }
    if (error < 0)
        host_quit(t, new);
    return error;
}

void thread_copy_registers(const thread_t *t, thread_t *new,
                           const clone_args_t *args)
{
    const vcpu_frame_t *from = t->frame;
    vcpu_frame_t *to = new->frame;

    memcpy(to->x, from->x, sizeof to->x);
    to->x[0] = 0;
    to->sp_el0 = args->stack ? args->stack : from->sp_el0;
    to->elr = from->elr;
    to->spsr = from->spsr;
    to->tpidr_el0 = args->flags & CLONE_SETTLS ? args->tls : from->tpidr_el0;
    to->fp = from->fp;
    to->fp_op = FP_LOAD;
    new->persona = t->persona;
}

/* Linux does not care whether these can be written. */
static void put_tids(thread_t *t, thread_t *new, const clone_args_t *args)
{
    int32_t tid = new->tid;

    if (args->flags & CLONE_PARENT_SETTID)
        (void) put_struct(t, args->parent_tid, &tid);
    if (args->flags & CLONE_CHILD_SETTID)
        (void) put_struct(t, args->child_tid, &tid);
    if (args->flags & CLONE_CHILD_CLEARTID)
        new->clear_tid = args->child_tid;
}

int64_t thread_clone(thread_t *t, const clone_args_t *args)
{
    int64_t error = refuse(t, args);
    thread_t *new;

    if (error)
        return error;
    /* A signal counts as before the call: its handler runs first. */
    if (atomic_load_explicit(&t->signal.pending, memory_order_relaxed))
        return CALL_RESTART;
    thread_reap(t);
    thread_run_op(t, FP_SAVE, FRAME_EXIT_FP_SAVED);
    new = prepare(t, &error);
    if (!error)
        error = equip(t, new, args);
    if (error)
        return error;
    thread_copy_registers(t, new, args);
    put_tids(t, new, args);
    signal_thread_init(new, t, false);
    mm_cpu_init(t->proc->mm, &new->cpu, new->frame);
    atomic_store_explicit(&new->world.state, WORLD_SAFE, memory_order_relaxed);
    /* Relaxed: they can be zero only after we ourselves have ended. */
    atomic_fetch_add_explicit(&t->proc->nr_threads, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&t->proc->nr_running, 1, memory_order_relaxed);
    world_add(t, new);
    error = new->tid;
    host_go(new);
    return error;
}
