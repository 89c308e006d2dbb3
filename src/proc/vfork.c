/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vfork and posix_spawn: clone with CLONE_VM and CLONE_VFORK. The child is a
 * process of its own on the same memory, elfuse's included, and its parent's
 * thread stands still meanwhile. It runs on a stack of its own but with the
 * parent's thread-local storage, on another vCPU of the same VM, as a guest
 * thread with a proc_t of its own. The parent's other threads run on, so that
 * it takes all locks as they do; what it leaves behind the parent clears away.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "proc/exec.h"
#include "proc/fork.h"
#include "proc/robust.h"
#include "proc/run.h"
#include "proc/thread.h"
#include "proc/word.h"
#include "sys/call.h"

#define STACK_SIZE (512UL << 10)
/* vCPUs that nobody has run are kept for threads, beyond so many. */
#define NEW_MOST 64U

/* What is done here and not by the host. */
#define FLAGS_OURS                                             \
    (CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID | \
     CLONE_CHILD_CLEARTID)
#define CLEAR_SIGHAND 0x100000000UL

typedef struct vfork {
    thread_t *parent, *child;
    const clone_args_t *args;
    char *stack; /* STACK_SIZE bytes */
    signal_actions_t actions;
    proc_t proc;
} vfork_t;

/* The lowest page stays inaccessible. */
static char *make_stack(void)
{
    char *stack = mmap(NULL, STACK_SIZE, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size_t guard = 64UL << 10;

    if (stack == MAP_FAILED)
        return NULL;
    if (mprotect(stack + guard, STACK_SIZE - guard, PROT_READ | PROT_WRITE)) {
        munmap(stack, STACK_SIZE);
        return NULL;
    }
    return stack;
}

static vcpu_t *take_vcpu(thread_t *t)
{
    vcpu_t *slot = NULL;

    if (t->proc->vcpus->used < NEW_MOST)
        slot = vcpus_take_new(t->proc, t);
    if (!slot)
        slot = vcpus_take_free(t->proc);
    return slot ? slot : vcpus_take_new(t->proc, t);
}

static void copy_proc(vfork_t *v)
{
    const proc_t *from = v->parent->proc;

    memcpy(&v->proc, from, sizeof v->proc);
    threads_count_one(&v->proc);
    v->proc.vforked = true;
    if (!(v->args->flags & CLONE_SIGHAND)) {
        signal_actions_copy(&v->actions, from->signals);
        v->proc.signals = &v->actions;
    }
}

/* Everything that can fail before there is a process. */
static int prepare(vfork_t *v, vcpu_t **slot)
{
    thread_t *t = v->parent;

    v->stack = make_stack();
    if (!v->stack)
        return -ENOMEM;
    *slot = take_vcpu(t);
    if (!*slot)
        return -EAGAIN;
    v->child = thread_new(&v->proc, *slot);
    if (!v->child)
        return -ENOMEM;
    copy_proc(v);
    signal_thread_init(v->child, t, true);
    atomic_store_explicit(&v->child->world.state, WORLD_SAFE,
                          memory_order_relaxed);
    v->child->cpu.no_fast = true;
    mm_cpu_init(t->proc->mm, &v->child->cpu, v->child->frame);
    world_add(t, v->child);
    return 0;
}

/* In the child, on its stack. */
static int child_main(void *arg)
{
    vfork_t *v = arg;
    thread_t *t = v->child;

    t->tid = (pid_t) host_call(SYS_gettid, 0, 0, 0, 0, 0, 0);
    t->proc->pid = (pid_t) host_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
    thread_self = t;
    hv_vcpu_adopt(t->vcpu);
    world_leave_safe(t);
    if (t->frame->exit == FRAME_EXIT_NONE)
        thread_run_op(t, 0, FRAME_EXIT_READY);
    thread_copy_registers(v->parent, t, v->args);
    if (v->args->flags & CLONE_CHILD_SETTID)
        (void) put_struct(t, v->args->child_tid, &t->tid);
    if (v->args->flags & CLEAR_SIGHAND)
        signal_actions_reset(t->proc);
    signal_thread_start(t);
    thread_run(t);
    return 0;
}

/* As the kernel's mm_release() for a process that shares its memory. */
static void clear_child_tid(thread_t *t, uint64_t address)
{
    const int32_t zero = 0;
    span_set_t span;
    struct iovec iov;

    if (!address || put_struct(t, address, &zero) ||
        span_get(t->proc->mm, &t->cpu, address, sizeof zero, SPAN_READ, &iov, 1,
                 &span))
        return;
    host_call(SYS_futex, P(iov.iov_base), 1 /* FUTEX_WAKE */, 1, 0, 0, 0);
    span_put(&t->cpu, &span);
}

/*
 * The child has ended, has executed something, or never was. It may have been
 * killed anywhere; only a vCPU that is parked is used again.
 */
static void clear_away(vfork_t *v, vcpu_t *slot)
{
    thread_t *t = v->parent, *child = v->child;
    uint32_t state;

    if (child) {
        state = atomic_exchange_explicit(&child->world.state, WORLD_SAFE,
                                         memory_order_seq_cst);
        word_wake(&child->world.state);
        world_leave_safe(t);
        world_remove(t, child);
        mm_cpu_bury(t->proc->mm, &child->cpu, &t->cpu);
        if (state == WORLD_GUEST)
            slot = NULL;
        robust_release(t, child);
        if (v->args->flags & CLONE_CHILD_CLEARTID)
            clear_child_tid(t, v->args->child_tid);
        if (child->exec)
            exec_forget(child->exec);
        free(child);
    }
    if (slot)
        vcpus_give_back(t->proc, slot);
    if (v->stack)
        munmap(v->stack, STACK_SIZE);
    free(v);
}

/* The child's pid when it is out of our memory again. */
static int64_t host_vfork(vfork_t *v, int *pidfd)
{
    const clone_args_t *args = v->args;
    const uint64_t all = ~0UL;
    thread_t *t = v->parent;
    int flags = (int) (args->flags & ~(uint64_t) FLAGS_OURS);
    int pid;

    world_enter_safe(t);
    /* The kick, too: until thread_self is right no handler may run. */
    host_call(SYS_rt_sigprocmask, SIG_SETMASK, P(&all), 0, SIGSET_SIZE, 0, 0);
    pid = clone(child_main, v->stack + STACK_SIZE, flags | args->exit_signal, v,
                pidfd, NULL, NULL);
    if (pid < 0)
        pid = -errno;
    thread_self = t;
    hv_vcpu_adopt(t->vcpu);
    return pid;
}

int64_t proc_vfork(thread_t *t, const clone_args_t *args, int *pidfd)
{
    vfork_t *v = calloc(1, sizeof *v);
    vcpu_t *slot = NULL;
    int64_t ret;

    if (!v)
        return -ENOMEM;
    v->parent = t;
    v->args = args;
    ret = prepare(v, &slot);
    if (!ret)
        ret = host_vfork(v, pidfd);
    clear_away(v, slot);
    return ret;
}
