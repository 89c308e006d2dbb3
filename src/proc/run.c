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
#define ESR_LOW(esr)   ((esr) &0xffffffffUL)
#define ESR_EC(esr)    ((esr) >> 26 & 0x3f)
#define ESR_FSC(esr)   ((esr) &0x3f)
#define ESR_EC_MASK    (0x3fUL << 26)
#define ESR_IL         (1UL << 25)
#define ESR_TFV        (1UL << 23)
#define ESR_WNR        (1UL << 6)
#define ESR_CM         (1UL << 8)
#define EC_UNKNOWN     0x00
#define EC_WFX         0x01
#define EC_BTI         0x0d
#define EC_SVC64       0x15
#define EC_SYSTEM      0x18
#define EC_SVE         0x19
#define EC_PAUTH       0x1c
#define EC_SME         0x1d
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
#define FSC_LEVEL3     0x03
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

bool thread_in_syscall(const thread_t *thread)
{
    return ESR_EC(thread->frame->esr) == EC_SVC64;
}

/* A signal that an instruction of the guest itself has caused. */
static void force_signal(thread_t *thread, const signal_fault_t *fault)
{
    if (thread->proc->verbose)
        fprintf(stderr,
                "elfuse: signal %d, code %d, address 0x%llx, pc 0x%llx\n",
                fault->signo, fault->code, (unsigned long long) fault->addr,
                (unsigned long long) thread->frame->elr);
    signal_force(thread, fault);
}

/* As Linux's set_thread_esr(): of an address that is not the program's only
 * what the program may know. */
static uint64_t shown_esr(uint64_t esr, uint64_t addr)
{
    esr = ESR_LOW(esr);
    if (!(addr >> 55 & 1))
        return esr;
    if (ESR_EC(esr) == EC_DABT_EL0)
        return (esr & (ESR_EC_MASK | ESR_IL | ESR_CM | ESR_WNR)) |
               FSC_TRANSLATE;
    if (ESR_EC(esr) == EC_IABT_EL0)
        return (esr & (ESR_EC_MASK | ESR_IL)) | FSC_TRANSLATE;
    return 0;
}

/* Of a memory access; `esr` is what the program is told. */
static void access_signal(thread_t *thread, int signo, int code, uint64_t esr)
{
    uint64_t far = thread->frame->far;
    /* Linux keeps the address without tag here, and with it in siginfo. */
    uint64_t addr = far >> 55 & 1 ? far : far & ~(0xffUL << 56);

    force_signal(thread, &(signal_fault_t){.signo = signo,
                                           .code = code,
                                           .addr = far,
                                           .fault_address = addr,
                                           .esr = shown_esr(esr, addr)});
}

/* Of an instruction that is not a memory access. */
static void insn_signal(thread_t *thread, int signo, int code, uint64_t addr,
                        uint64_t esr)
{
    force_signal(thread, &(signal_fault_t){.signo = signo,
                                           .code = code,
                                           .addr = addr,
                                           .esr = ESR_LOW(esr)});
}

static void page_fault(thread_t *thread, enum mm_access access)
{
    proc_t *proc = thread->proc;
    mm_fault_t fault =
        mm_handle_fault(proc->mm, &thread->cpu, thread->frame->far, access);

    if (fault.signal == SIGKILL)
        proc_die(proc, SIGKILL);
    if (fault.signal)
        access_signal(thread, fault.signal, fault.code, thread->frame->esr);
}

/* An abort by its fault status, as Linux's fault_info[] sorts them. */
static void abort_exit(thread_t *thread, enum mm_access access)
{
    uint64_t esr = thread->frame->esr, fsc = ESR_FSC(esr);

    stats_add(exits_fault, 1);
    switch (FSC_TYPE(fsc)) {
    case FSC_TRANSLATE:
    case FSC_ACCESS:
    case FSC_PERMISSION:
        page_fault(thread, access);
        return;
    case FSC_EXTERNAL:
        /* No page behind the address: past the end of a truncated file. To
         * the program it is a missing one. */
        access_signal(thread, SIGBUS, BUS_ADRERR,
                      (ESR_LOW(esr) & ~0x3fUL) | FSC_TRANSLATE | FSC_LEVEL3);
        return;
    default:
        if (fsc == FSC_ALIGNMENT)
            access_signal(thread, SIGBUS, BUS_ADRALN, esr);
        /* Device memory that the guest has mapped: exclusives, lockdown. */
        else if (fsc == FSC_LOCKDOWN || fsc == FSC_EXCLUSIVE)
            access_signal(thread, SIGBUS, BUS_OBJERR, esr);
        else
            elfuse_panic("abort with fault status 0x%llx at 0x%llx, pc 0x%llx",
                         (unsigned long long) fsc,
                         (unsigned long long) thread->frame->far,
                         (unsigned long long) thread->frame->elr);
    }
}

/* Cache maintenance reports a write but needs only what a read needs. */
static enum mm_access data_access(uint64_t esr)
{
    return (esr & ESR_WNR) && !(esr & ESR_CM) ? MM_WRITE : MM_READ;
}

/* What a floating-point exception was, by the syndrome's flags. */
static int fp_code(uint64_t esr)
{
    static const struct {
        uint64_t flag;
        int code;
    } codes[] = {
        {1UL << 0, FPE_FLTINV}, {1UL << 1, FPE_FLTDIV}, {1UL << 2, FPE_FLTOVF},
        {1UL << 3, FPE_FLTUND}, {1UL << 4, FPE_FLTRES},
    };

    if (esr & ESR_TFV)
        for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
            if (esr & codes[i].flag)
                return codes[i].code;
    return FPE_FLTUNK;
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
            insn_signal(thread, SIGILL, ILL_ILLOPC, frame->elr, 0);
        return;
    case EC_PC_ALIGN:
        insn_signal(thread, SIGBUS, BUS_ADRALN, frame->far, frame->esr);
        return;
    case EC_SP_ALIGN:
        insn_signal(thread, SIGBUS, BUS_ADRALN, frame->sp_el0, frame->esr);
        return;
    case EC_BRK64:
    case EC_BREAK_EL0:
    case EC_STEP_EL0:
    case EC_WATCH_EL0:
        force_signal(thread, &(signal_fault_t){.signo = SIGTRAP,
                                               .code = TRAP_BRKPT,
                                               .addr = frame->elr,
                                               .keep = true});
        return;
    case EC_FP64:
        force_signal(thread, &(signal_fault_t){.signo = SIGFPE,
                                               .code = fp_code(frame->esr),
                                               .addr = frame->elr,
                                               .keep = true});
        return;
    case EC_PAUTH:
        insn_signal(thread, SIGILL, ILL_ILLOPN, frame->elr, frame->esr);
        return;
    case EC_SVE:
    case EC_BTI:
    case EC_SME:
        insn_signal(thread, SIGILL, ILL_ILLOPC, frame->elr, 0);
        return;
    default:
        insn_signal(thread, SIGILL, ILL_ILLOPC, frame->elr, frame->esr);
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

/*
 * To EL0 and back. A handler that notes a signal looks at the thread's state
 * after it has set `pending`; here the state is set first. So either the vCPU
 * is kicked, or what is pending is seen.
 */
static void run_guest(thread_t *thread)
{
    for (;;) {
        signal_deliver(thread);
        world_enter_guest(thread);
        atomic_signal_fence(memory_order_seq_cst);
        /* Relaxed: this thread's own handlers write it. */
        if (!atomic_load_explicit(&thread->signal.pending,
                                  memory_order_relaxed))
            break;
        world_leave_guest(thread);
    }
    mm_enter_guest(thread->proc->mm, &thread->cpu);
    thread_run_to_doorbell(thread);
    world_leave_guest(thread);
}

void thread_run(thread_t *thread)
{
    while (!thread->ended) {
        run_guest(thread);
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
