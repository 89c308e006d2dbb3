/* SPDX-License-Identifier: Apache-2.0 */
/* The first thread of a process, and what all threads are made with. */
#include "proc/thread.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc/run.h"

_Thread_local thread_t *thread_self;

/* How far the guest's counter is from the host's, from what the shim read. */
static int64_t counter_residue(const vcpu_frame_t *frame)
{
    uint64_t before = frame->x[READY_CNTPCT_BEFORE];
    uint64_t after = frame->x[READY_CNTPCT_AFTER];

    return (int64_t) (frame->x[READY_CNTVCT] - (before + (after - before) / 2));
}

/*
 * Set it, see by how much the setting came late, set it again that much ahead.
 * A preemption in between spoils a round; a fifth of a microsecond is far less
 * than an exit takes, so clocks read inside and outside never seem to run
 * backwards.
 */
int thread_align_counter(thread_t *thread)
{
    enum { ROUNDS = 64 };
    vcpu_frame_t *frame = thread->frame;
    int64_t enough = (int64_t) (thread->proc->caps.counter_hz / 5000000) + 1;
    int64_t advance = 0, residue = enough + 1;
    uint64_t x[READY_ISAR0 + 1];
    int error = 0;

    memcpy(x, frame->x, sizeof x);
    for (int i = 0; i < ROUNDS && llabs(residue) > enough; i++) {
        error = hv_counter_set(thread->vcpu, advance);
        if (error)
            break;
        thread_run_op(thread, FP_COUNTER, FRAME_EXIT_READY);
        residue = counter_residue(frame);
        advance -= residue;
    }
    memcpy(frame->x, x, sizeof x);
    if (!error && llabs(residue) > enough && thread->proc->verbose)
        fprintf(stderr, "elfuse: the guest's counter is %lld ticks off\n",
                (long long) residue);
    return error;
}

thread_t *thread_new(proc_t *proc, vcpu_t *slot)
{
    thread_t *thread = calloc(1, sizeof *thread);

    if (!thread)
        return NULL;
    thread->proc = proc;
    thread->slot = slot;
    thread->vcpu = slot->hv;
    thread->frame = slot->frame;
    thread->cpu.run_shim = thread_run_shim;
    return thread;
}

int thread_create(proc_t *proc, thread_t **result)
{
    vcpu_t *slot = vcpus_take_new(proc, NULL);
    thread_t *thread = slot ? thread_new(proc, slot) : NULL;
    int error = 0;

    if (!slot)
        return proc_vm_fail(-EIO, hv_error());
    if (!thread)
        return proc_vm_fail(-ENOMEM, "no memory for a thread");
    error = host_prepare();
    if (error) {
        free(thread);
        return proc_vm_fail(error, "no thread can be made");
    }
    thread_trace_exits(getenv("ELFUSE_TRACE_EXITS") != NULL);
    thread->tid = (pid_t) syscall(SYS_gettid);
    hv_vcpu_adopt(thread->vcpu);
    thread_run_op(thread, 0, FRAME_EXIT_READY);
    if (!proc->caps.counter_exact)
        error = thread_align_counter(thread);
    if (error) {
        free(thread);
        return proc_vm_fail(error, hv_error());
    }
    mm_cpu_init(proc->mm, &thread->cpu, thread->frame);
    thread_self = thread;
    threads_count_one(proc);
    world_join(thread);
    *result = thread;
    return 0;
}

int thread_restart(thread_t *thread)
{
    vcpu_frame_t *frame = thread->frame;
    uint64_t x[READY_ISAR0 + 1];
    int error = 0;

    hv_vcpu_adopt(thread->vcpu);
    /* The shim tells about the vCPU in these. */
    memcpy(x, frame->x, sizeof x);
    thread_run_op(thread, 0, FRAME_EXIT_READY);
    memcpy(frame->x, x, sizeof x);
    if (!thread->proc->caps.counter_exact)
        error = thread_align_counter(thread);
    frame->fp_op = FP_LOAD;
    return error;
}

void thread_set_start(thread_t *thread, uint64_t entry, uint64_t sp)
{
    vcpu_frame_t *frame = thread->frame;

    for (unsigned i = 0; i < 31; i++)
        frame->x[i] = 0;
    frame->elr = entry;
    frame->sp_el0 = sp;
    frame->spsr = 0; /* EL0t, nothing masked: kicks come through */
    frame->tpidr_el0 = 0;
}

bool thread_is_guest(pid_t tid)
{
    uint64_t robust;

    /* The main thread's id stays, whether it has ended or not. */
    return tid == thread_self->proc->pid ||
           world_find(thread_self, tid, &robust);
}
