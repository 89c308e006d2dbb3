/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a guest thread: its vCPU runs until the shim rings, what it rang
 * for is served, and it runs on.
 */
#include "proc/run.h"
#include "proc/idregs.h"
#include "stats.h"
#include "sys/sys.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ESR_EL1 (Arm ARM DDI 0487, D17.2.37). The upper half may hold garbage. */
#define ESR_EC(esr)    ((esr) >> 26 & 0x3f)
#define ESR_FSC(esr)   ((esr) &0x3f)
#define ESR_WNR        (1UL << 6)
#define ESR_CM         (1UL << 8)
#define EC_UNKNOWN     0x00
#define EC_WFX         0x01
#define EC_SVC64       0x15
#define EC_SYSTEM      0x18
#define EC_IABT_EL0    0x20
#define EC_PC_ALIGN    0x22
#define EC_DABT_EL0    0x24
#define EC_SP_ALIGN    0x26
#define EC_FP64        0x2c
#define EC_BREAK_EL0   0x30
#define EC_STEP_EL0    0x32
#define EC_WATCH_EL0   0x34
#define EC_BRK64       0x3c
#define FSC_TYPE(fsc)  ((fsc) &0x3c) /* level masked out */
#define FSC_SIZE       0x00
#define FSC_TRANSLATE  0x04
#define FSC_ACCESS     0x08
#define FSC_PERMISSION 0x0c
#define FSC_EXTERNAL   0x10
#define FSC_ALIGNMENT  0x21
#define FSC_LOCKDOWN   0x34
#define FSC_EXCLUSIVE  0x35

/* ELFUSE_TRACE_EXITS: a line for each exit. */
static bool trace_exits;

void thread_trace_exits(bool on)
{
    trace_exits = on;
}

static void trace(const thread_t *thread)
{
    const vcpu_frame_t *f = thread->frame;

    fprintf(stderr,
            "elfuse: [%d] exit %u esr %08x far %llx pc %llx sp %llx x8 %llu\n",
            thread->tid, f->exit, (unsigned) f->esr,
            (unsigned long long) f->far, (unsigned long long) f->elr,
            (unsigned long long) f->sp_el0, (unsigned long long) f->x[8]);
}

static _Noreturn void shim_died(const thread_t *thread)
{
    const vcpu_frame_t *f = thread->frame;

    elfuse_panic("the shim of vCPU %u took exception %llu at EL1: esr 0x%llx "
                 "elr 0x%llx far 0x%llx sp 0x%llx lr 0x%llx",
                 f->vcpu, (unsigned long long) f->x[0],
                 (unsigned long long) f->esr, (unsigned long long) f->elr,
                 (unsigned long long) f->far, (unsigned long long) f->sp_el0,
                 (unsigned long long) f->x[30]);
}

void thread_run_to_doorbell(thread_t *thread)
{
    for (;;) {
        switch (hv_vcpu_run(thread->vcpu)) {
        case HV_EXIT_DOORBELL:
            if (trace_exits)
                trace(thread);
            if (thread->frame->exit == FRAME_EXIT_PANIC)
                shim_died(thread);
            return;
        case HV_EXIT_NO_PAGE:
            stats_add(exits_no_page, 1);
            if (hv_vcpu_inject_abort(thread->vcpu))
                elfuse_panic("%s", hv_error());
            break;
        case HV_EXIT_FAILED:
            elfuse_panic("%s (pc at the last exit 0x%llx)", hv_error(),
                         (unsigned long long) thread->frame->elr);
        }
    }
}

void thread_run_op(thread_t *thread, uint32_t fp_op, uint32_t exit)
{
    thread->frame->fp_op = fp_op;
    thread_run_to_doorbell(thread);
    if (thread->frame->exit != exit)
        elfuse_panic("vCPU %u: exit %u instead of %u", thread->frame->vcpu,
                     thread->frame->exit, exit);
}

void thread_run_shim(mm_cpu_t *cpu)
{
    thread_t *thread =
        (thread_t *) (void *) ((char *) cpu - offsetof(thread_t, cpu));

    thread_run_to_doorbell(thread);
    if (thread->frame->exit != FRAME_EXIT_TLB_DONE)
        elfuse_panic("exit %u instead of a finished invalidation",
                     thread->frame->exit);
    stats_add(exits_tlb, 1);
}

/* A signal that an instruction of the guest itself has caused. */
static _Noreturn void force_signal(thread_t *thread, int signal, int code,
                                   uint64_t addr)
{
    if (thread->proc->verbose)
        fprintf(stderr,
                "elfuse: signal %d, code %d, address 0x%llx, pc 0x%llx\n",
                signal, code, (unsigned long long) addr,
                (unsigned long long) thread->frame->elr);
    proc_die(thread->proc, signal);
}

static void page_fault(thread_t *thread, enum mm_access access)
{
    proc_t *proc = thread->proc;
    mm_fault_t fault =
        mm_handle_fault(proc->mm, &thread->cpu, thread->frame->far, access);

    if (fault.signal)
        force_signal(thread, fault.signal, fault.code, thread->frame->far);
}

/* An abort by its fault status, as Linux's fault_info[] sorts them. */
static void abort_exit(thread_t *thread, enum mm_access access)
{
    uint64_t fsc = ESR_FSC(thread->frame->esr), far = thread->frame->far;

    stats_add(exits_fault, 1);
    switch (FSC_TYPE(fsc)) {
    case FSC_TRANSLATE:
    case FSC_ACCESS:
    case FSC_PERMISSION:
        page_fault(thread, access);
        return;
    case FSC_EXTERNAL:
        /* No page behind the address: past the end of a truncated file. */
        force_signal(thread, SIGBUS, BUS_ADRERR, far);
    default:
        if (fsc == FSC_ALIGNMENT)
            force_signal(thread, SIGBUS, BUS_ADRALN, far);
        /* Device memory that the guest has mapped: exclusives, lockdown. */
        if (fsc == FSC_LOCKDOWN || fsc == FSC_EXCLUSIVE)
            force_signal(thread, SIGBUS, BUS_OBJERR, far);
        elfuse_panic("abort with fault status 0x%llx at 0x%llx, pc 0x%llx",
                     (unsigned long long) fsc, (unsigned long long) far,
                     (unsigned long long) thread->frame->elr);
    }
}

/* Cache maintenance reports a write but needs only what a read needs. */
static enum mm_access data_access(uint64_t esr)
{
    return (esr & ESR_WNR) && !(esr & ESR_CM) ? MM_WRITE : MM_READ;
}

/* Everything but system calls and aborts. */
static void other_exit(thread_t *thread, unsigned ec)
{
    vcpu_frame_t *frame = thread->frame;

    stats_add(exits_other, 1);
    switch (ec) {
    case EC_WFX:
        frame->elr += 4;
        return;
    case EC_UNKNOWN:
    case EC_SYSTEM:
        if (!idregs_emulate(thread))
            force_signal(thread, SIGILL, ILL_ILLOPC, frame->elr);
        return;
    case EC_PC_ALIGN:
        force_signal(thread, SIGBUS, BUS_ADRALN, frame->far);
    case EC_SP_ALIGN:
        force_signal(thread, SIGBUS, BUS_ADRALN, frame->sp_el0);
    case EC_BRK64:
    case EC_BREAK_EL0:
    case EC_STEP_EL0:
    case EC_WATCH_EL0:
        force_signal(thread, SIGTRAP, TRAP_BRKPT, frame->elr);
    case EC_FP64:
        force_signal(thread, SIGFPE, FPE_FLTUNK, frame->elr);
    default:
        force_signal(thread, SIGILL, ILL_ILLOPC, frame->elr);
    }
}

static void sync_exit(thread_t *thread)
{
    uint64_t esr = thread->frame->esr;
    unsigned ec = ESR_EC(esr);

    switch (ec) {
    case EC_SVC64:
        stats_add(exits_syscall, 1);
        sys_call(thread);
        return;
    case EC_DABT_EL0:
        abort_exit(thread, data_access(esr));
        return;
    case EC_IABT_EL0:
        abort_exit(thread, MM_EXEC);
        return;
    default:
        other_exit(thread, ec);
    }
}

void thread_run(thread_t *thread)
{
    while (!thread->ended) {
        world_enter_guest(thread);
        thread_run_to_doorbell(thread);
        world_leave_guest(thread);
        mm_after_exit(thread->proc->mm, &thread->cpu);
        switch (thread->frame->exit) {
        case FRAME_EXIT_SYNC:
            sync_exit(thread);
            break;
        case FRAME_EXIT_IRQ:
            stats_add(exits_irq, 1);
            break;
        default:
            elfuse_panic("the shim rang for reason %u, which is none",
                         thread->frame->exit);
        }
    }
    thread_end(thread);
}
