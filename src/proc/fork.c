/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork: clone without CLONE_VM. The host copies elfuse and the guest's memory
 * alike, while the other threads stand at safe points, where they hold no lock
 * and are not in the C library's allocator. Nothing of KVM is of use to a
 * child: it makes a new VM over the same host addresses, and one vCPU, which
 * goes on with the frame that the parent's had.
 */
#include "proc/fork.h"

#include <errno.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mm/span.h"
#include "proc/run.h"
#include "proc/thread.h"
#include "proc/vvar.h"
#include "stats.h"
#include "sys/call.h"
#include "sys/fdspace.h"
#include "sys/histogram.h"
#include "sys/strace.h"

/* Flags whose work is done here: the host's thread has other addresses, and
 * its signal handlers are elfuse's. */
#define FLAGS_OURS                                             \
    (CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | \
     CLONE_CHILD_CLEARTID | CLONE_VFORK | CLONE_CLEAR_SIGHAND)

/* The host's clone: 0 in the child. *pidfd is set if asked for. */
static int64_t host_clone(const clone_args_t *args, int *pidfd)
{
    struct clone_args host = {
        .flags = args->flags & ~(uint64_t) FLAGS_OURS,
        .pidfd = P(pidfd),
        .exit_signal = (uint64_t) args->exit_signal,
        .set_tid = P(args->set_tid),
        .set_tid_size = args->set_tid_size,
        .cgroup = (uint64_t) args->cgroup,
    };

    /* clone3 is forbidden in some containers: only where it is needed. */
    if (!args->set_tid_size && !(args->flags & CLONE_INTO_CGROUP))
        return host_call(SYS_clone, host.flags | host.exit_signal, 0, P(pidfd),
                         0, 0, 0);
    if (!args->set_tid_size)
        host.set_tid = 0;
    return host_call(SYS_clone3, P(&host), sizeof host, 0, 0, 0, 0);
}

static _Noreturn void child_failed(const char *what, int error)
{
    dprintf(STDERR_FILENO, "elfuse: fork: %s: %s\n", what, strerror(-error));
    _exit(125);
}

static int hide_fd(int fd, void *arg)
{
    int hidden = fdspace_hide(fd);

    if (hidden < 0)
        child_failed("no descriptor is free", hidden);
    return hidden;
}

/* The VM of the child, over what was copied of the parent. */
static void child_vm(thread_t *t, bool shared_files)
{
    proc_t *proc = t->proc;
    struct rlimit limit;
    int error;

    /* Even with all its descriptors in use the guest can fork. */
    fdspace_lift(&limit);
    error = hv_vm_renew(proc->vm, shared_files);
    if (!error && shared_files)
        hv_each_fd(proc->vm, hide_fd, NULL);
    fdspace_restore(&limit);
    if (error)
        child_failed(hv_error(), error);
    error = vcpus_renew(proc, t);
    if (error)
        child_failed(hv_error(), error);
    error = mm_fork_renew(proc->mm, &t->cpu);
    if (!error)
        error = shim_show(proc->vm, &proc->shim);
    if (error)
        child_failed("the guest's memory", error);
}

static void child_clocks(thread_t *t)
{
    bool none;
    void *page = vvar_fork_child(&none);
    int error = page || none ? 0 : -ENOMEM;

    if (page)
        error = mm_fork_special(t->proc->mm, page, "[vvar]");
    if (error)
        child_failed("the clock page", error);
}

/* What the others had is a copy here that nobody uses. */
static void drop_siblings(thread_t *t)
{
    world_t *world = t->proc->world;
    thread_t *other;

    spares_after_fork(t->proc->spares);
    while ((other = TAILQ_FIRST(&world->threads))) {
        TAILQ_REMOVE(&world->threads, other, world.entry);
        if (other != t)
            free(other);
    }
}

/* What EL0 finds in the child: the parent's registers, but for these. */
static void child_registers(thread_t *t, const clone_args_t *args)
{
    if (args->stack)
        t->frame->sp_el0 = args->stack;
    if (args->flags & CLONE_SETTLS)
        t->frame->tpidr_el0 = args->tls;
}

static void child_begins(thread_t *t, const clone_args_t *args)
{
    proc_t *proc = t->proc;
    int error;

    proc->pid = (pid_t) host_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    t->tid = (pid_t) host_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    threads_count_one(proc);
    proc->vforked = false;
    fdspace_after_fork(proc);
    drop_siblings(t);
    world_after_fork(t);
    signal_after_fork(t, args->flags & CLONE_CLEAR_SIGHAND);
    if (proc->show_stats) {
        stats_reset();
        histogram_reset();
    }
    child_vm(t, args->flags & CLONE_FILES);
    child_clocks(t);
    error = thread_restart(t);
    if (error)
        child_failed(hv_error(), error);
    child_registers(t, args);
    error = mm_fork_finish(proc->mm, &t->cpu);
    if (error)
        child_failed("the guest's memory", error);
    t->robust = 0;
    t->clear_tid = args->flags & CLONE_CHILD_CLEARTID ? args->child_tid : 0;
    /* The kernel ignores an address that cannot be written, too. */
    if (args->flags & CLONE_CHILD_SETTID)
        (void) put_struct(t, args->child_tid, &t->tid);
}

/* What the parent is told besides the result. */
static void parent_told(thread_t *t, const clone_args_t *args, pid_t pid,
                        int pidfd)
{
    if (args->flags & CLONE_PARENT_SETTID)
        (void) put_struct(t, args->parent_tid, &pid);
    if (args->flags & CLONE_PIDFD)
        (void) put_struct(t, args->pidfd, &pidfd);
}

static int64_t fork_copy(thread_t *t, const clone_args_t *args, int *pidfd)
{
    int64_t pid;

    world_stop(t);
    /* From here on there are only the world's members. */
    thread_reap(t);
    vvar_fork_begin();
    pid = host_clone(args, pidfd);
    if (pid == 0) {
        child_begins(t, args);
    } else {
        vvar_fork_end();
        world_resume(t);
    }
    return pid;
}

/* The kernel makes no child whose descriptor it cannot tell. */
static bool can_tell(thread_t *t, const clone_args_t *args)
{
    const size_t size = sizeof(int);
    struct iovec iov[2];
    span_set_t span;
    bool whole;

    if (!(args->flags & CLONE_PIDFD))
        return true;
    if (span_get(t->proc->mm, &t->cpu, args->pidfd, size, SPAN_WRITE, iov, 2,
                 &span))
        return false;
    whole = span.bytes == size;
    span_put(&t->cpu, &span);
    return whole;
}

int64_t proc_fork(thread_t *t, const clone_args_t *args)
{
    int pidfd = -1;
    int64_t pid;

    /* A child that runs beside its parent's thread on its memory. */
    if (args->flags & CLONE_VM && !(args->flags & CLONE_VFORK))
        return -ENOSYS;
    if (!can_tell(t, args))
        return -EFAULT;
    /* None is taken while the child is half made. */
    pid = signal_block(t);
    if (pid)
        return pid;
    thread_run_op(t, FP_SAVE, FRAME_EXIT_FP_SAVED);
    t->proc->strace_pids = true;
    pid = args->flags & CLONE_VM ? proc_vfork(t, args, &pidfd)
                                 : fork_copy(t, args, &pidfd);
    signal_unblock(t);
    if (pid > 0)
        parent_told(t, args, (pid_t) pid, pidfd);
    return pid;
}
