/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec: everything that can fail is checked first, as Linux checks it; then
 * elfuse executes itself (proc/handover.h). Threads, handlers, timers, memory,
 * close-on-exec and credentials are thereby the host kernel's business.
 */
#include "proc/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "proc/handover.h"
#include "proc/robust.h"
#include "proc/stack.h"
#include "sys/call.h"
#include "sys/procfs_view.h"
#include "sys/strace.h"

/* elfuse's own stack limit over exec: a quarter of it bounds the arguments,
 * which 6 MiB do anyway. Without any limit the kernel would lay memory out
 * bottom up. */
#define OWN_STACK (64UL << 20)

exec_t *exec_new(size_t size)
{
    exec_t *exec;

    size += sizeof *exec;
    exec = mmap(NULL, size, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (exec == MAP_FAILED)
        return NULL;
    exec->size = size;
    exec->program.fd = exec->program.interp_fd = -1;
    return exec;
}

void *exec_room(exec_t *exec, size_t size)
{
    void *room;

    exec->used = (exec->used + 7) & ~(size_t) 7;
    room = (char *) (exec + 1) + exec->used;
    if (size > exec->size - sizeof *exec - exec->used)
        elfuse_panic("exec: no room for %zu bytes after %zu", size, exec->used);
    exec->used += size;
    return room;
}

void exec_free(exec_t *exec)
{
    program_close(&exec->program);
    munmap(exec, exec->size);
}

void exec_forget(exec_t *exec)
{
    exec->program.fd = exec->program.interp_fd = -1;
    exec_free(exec);
}

/* Do the arguments fit, with those of scripts? */
static int64_t check_size(thread_t *t, const exec_t *exec)
{
    stack_input_t in = {
        .argv = exec->program.argv,
        .envp = exec->envp,
        .execfn = exec->program.execfn,
    };
    struct rlimit limit;
    uint64_t strings;

    mm_get_rlimit(t->proc->mm, RLIMIT_STACK, &limit);
    in.limit = limit.rlim_cur;
    return stack_measure(&in, &strings);
}

static void describe(thread_t *t, const exec_t *exec, handover_t *h)
{
    const proc_t *proc = t->proc;

    memset(h, 0, sizeof *h);
    h->hv = proc->hv_options;
    h->hv.kvm_fd = hv_kvm_fd(proc->vm);
    h->strace = proc->strace;
    h->strace_pids = proc->strace_pids;
    h->show_stats = proc->show_stats;
    h->verbose = proc->verbose;
    h->proc_dir = procfs_directory();
    h->trace_fd = strace_output();
    h->program_fd = h->interp_fd = -1;
    h->fds_low = fdspace_low;
    h->mask = t->signal.mask;
    mm_get_limits(proc->mm, h->limit);
    h->by_descriptor = *exec->path == '\0' && !exec->execfn;
    snprintf(h->execfn, sizeof h->execfn, "%s", exec->program.execfn);
}

/* The descriptors that only the new image has need of. */
static void close_new(const handover_t *h)
{
    const int fd[] = {h->program_fd, h->interp_fd, h->self_fd,
                      h->self_fd < 0 ? -1 : h->self_fd + 1};

    for (size_t i = 0; i < sizeof fd / sizeof *fd; i++)
        if (fd[i] >= 0)
            close(fd[i]);
}

static int open_new(thread_t *t, const exec_t *exec, handover_t *h)
{
    int state;

    h->self_fd = -1;
    h->program_fd = fdspace_copy(exec->program.fd);
    if (h->program_fd < 0)
        return h->program_fd;
    if (exec->program.interp_fd >= 0) {
        h->interp_fd = fdspace_copy(exec->program.interp_fd);
        if (h->interp_fd < 0)
            return h->interp_fd;
    }
    /* Its content depends on the number, which depends on nothing. */
    h->self_fd = fdspace_pair(t->proc->self_fd);
    if (h->self_fd < 0)
        return h->self_fd;
    state = handover_write(h);
    if (state < 0)
        return state;
    if (fdspace_put(state, h->self_fd + 1) < 0)
        return -EMFILE;
    return 0;
}

static void keep_over_exec(const handover_t *h, bool keep)
{
    const int fd[] = {h->self_fd,    h->self_fd + 1, h->hv.kvm_fd, h->proc_dir,
                      h->program_fd, h->interp_fd,   h->trace_fd};

    for (size_t i = 0; i < sizeof fd / sizeof *fd; i++)
        if (fd[i] >= 0)
            (void) fcntl(fd[i], F_SETFD, keep ? 0 : FD_CLOEXEC);
}

/* The point of no return, or -errno and all is as before. */
static int64_t execute(thread_t *t, const exec_t *exec, const handover_t *h)
{
    struct rlimit old, limit;
    int64_t error;
    bool gone;

    getrlimit(RLIMIT_STACK, &old);
    limit = old;
    if (limit.rlim_cur > OWN_STACK)
        limit.rlim_cur = OWN_STACK;
    setrlimit(RLIMIT_STACK, &limit);
    keep_over_exec(h, true);
    gone = !t->proc->vforked && world_let_children_go(t);
    error = host_call(SYS_execveat, (uint64_t) h->self_fd, P(""),
                      P(exec->program.argv), P(exec->envp), AT_EMPTY_PATH, 0);
    if (gone)
        world_regain(t);
    keep_over_exec(h, false);
    setrlimit(RLIMIT_STACK, &old);
    return error;
}

static int64_t prepare_and_execute(thread_t *t, exec_t *exec)
{
    program_request_t request = {
        .dirfd = exec->dirfd,
        .path = exec->path,
        .flags = exec->flags,
        .execfn = exec->execfn,
        .argv = exec->argv,
        .task_size = mm_task_size(t->proc->mm),
    };
    handover_t handover = {.self_fd = -1, .program_fd = -1, .interp_fd = -1};
    struct rlimit limit;
    int64_t error;

    /* The kernel opens a program without a descriptor. */
    fdspace_lift(&limit);
    error = program_open(&request, &exec->program);
    if (!error)
        error = check_size(t, exec);
    if (!error) {
        describe(t, exec, &handover);
        error = open_new(t, exec, &handover);
    }
    fdspace_restore(&limit);
    if (!error) {
        strace_executed(t);
        robust_release(t, t);
        signal_before_exec(t);
        error = execute(t, exec, &handover);
        signal_exec_failed(t);
    }
    close_new(&handover);
    return error;
}

int64_t proc_exec(thread_t *t, exec_t *exec)
{
    int64_t error = signal_block(t);

    if (error)
        return error;
    /* Nobody else executes, or sees the descriptors, meanwhile: they are a
     * vfork child's own, and its parent's threads must not stand still when it
     * is gone. */
    if (!t->proc->vforked)
        world_stop(t);
    error = prepare_and_execute(t, exec);
    if (!t->proc->vforked)
        world_resume(t);
    signal_unblock(t);
    return error;
}
