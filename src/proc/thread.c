/* SPDX-License-Identifier: Apache-2.0 */
/* Making a guest thread: its vCPU, as far as the shim's first word. */
#include "proc/run.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

_Thread_local thread_t *thread_self;

/* How far the guest's counter is from the host's, from what the shim read. */
static int64_t counter_residue(const vcpu_frame_t *frame)
{
    uint64_t before = frame->x[READY_CNTPCT_BEFORE];
    uint64_t after = frame->x[READY_CNTPCT_AFTER];

    return (int64_t) (frame->x[READY_CNTVCT] - (before + (after - before) / 2));
}

/*
 * On hosts that cannot tie the guest's counter to theirs: set it, see by how
 * much the setting came late, set it again that much ahead. A preemption in
 * between spoils a round; a fifth of a microsecond is far less than an exit
 * takes, so clocks read inside and outside never seem to run backwards.
 */
static int align_counter(thread_t *thread)
{
    enum { ROUNDS = 64 };
    vcpu_frame_t *frame = thread->frame;
    int64_t enough = (int64_t) (thread->proc->caps.counter_hz / 5000000) + 1;
    int64_t advance = 0, residue = 0;

    for (int i = 0; i < ROUNDS; i++) {
        int error = hv_counter_set(thread->vcpu, advance);

        if (error)
            return error;
        frame->x[READY_AGAIN] = 1;
        thread_run_to_doorbell(thread);
        residue = counter_residue(frame);
        if (llabs(residue) <= enough)
            return 0;
        advance -= residue;
    }
    if (thread->proc->verbose)
        fprintf(stderr, "elfuse: the guest's counter is %lld ticks off\n",
                (long long) residue);
    return 0;
}

static int start_vcpu(thread_t *thread, unsigned id)
{
    proc_t *proc = thread->proc;
    hv_vcpu_init_t init = {
        .id = id,
        .entry = proc->shim.entry,
        .vectors = proc->shim.vectors,
        .sp_el1 = shim_frame_va(id),
        .ttbr0 = mm_ttbr0(proc->mm),
        .ttbr1 = proc->shim.ttbr1,
    };
    int error = hv_vcpu_create(proc->vm, &init, &thread->vcpu);

    if (error)
        return error;
    thread_run_to_doorbell(thread);
    if (thread->frame->exit != FRAME_EXIT_READY)
        elfuse_panic("vCPU %u began with exit %u", id, thread->frame->exit);
    return proc->caps.counter_exact ? 0 : align_counter(thread);
}

int thread_create(proc_t *proc, thread_t **result)
{
    unsigned id =
        atomic_fetch_add_explicit(&proc->nr_vcpus, 1, memory_order_relaxed);
    thread_t *thread = calloc(1, sizeof *thread);
    int error;

    if (!thread)
        return proc_vm_fail(-ENOMEM, "no memory for a thread");
    thread_trace_exits(getenv("ELFUSE_TRACE_EXITS") != NULL);
    thread->proc = proc;
    thread->tid = (pid_t) syscall(SYS_gettid);
    thread->frame = shim_frame(&proc->shim, id);
    thread->frame->vcpu = id;
    error = start_vcpu(thread, id);
    if (error) {
        free(thread);
        return proc_vm_fail(error, hv_error());
    }
    mm_cpu_init(proc->mm, &thread->cpu, thread->frame);
    thread->cpu.run_shim = thread_run_shim;
    thread_self = thread;
    world_join(thread);
    *result = thread;
    return 0;
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
