/* SPDX-License-Identifier: Apache-2.0 */
/* vCPUs: making them, running them, making them come out. */
#include "hv/kvm/kvm.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Interrupts a KVM_RUN; its handler sets immediate_exit for one not begun. The
 * number that programs use least. */
#define KICK_SIGNAL SIGSTKFLT

static _Thread_local hv_vcpu_t *own_vcpu;
/* Its address is what a kick carries. */
static const char kick_mark;

/*
 * KVM_RUN looks at immediate_exit after it has masked nothing: a signal that
 * arrives before the call leaves the flag, one during the call interrupts it.
 */
static void request_exit(hv_vcpu_t *vcpu)
{
    *(volatile __u8 *) &vcpu->run->immediate_exit = 1;
}

int hv_kick_signal(void)
{
    return KICK_SIGNAL;
}

/* Of several that are pending the kernel keeps the first, whose it may be: a
 * kick may hide behind any of them. */
bool hv_kick_arrived(const siginfo_t *info)
{
    if (own_vcpu)
        request_exit(own_vcpu);
    if (info->si_code == SI_QUEUE && info->si_ptr == &kick_mark)
        return true;
    /* Beyond RLIMIT_SIGPENDING the kernel forgets what came with a signal.
     * Relaxed: the signal itself comes after the store. */
    return info->si_code == SI_USER && info->si_pid == 0 && own_vcpu &&
           atomic_exchange_explicit(&own_vcpu->signalled, false,
                                    memory_order_relaxed);
}

static void send_kick(hv_vcpu_t *vcpu)
{
    siginfo_t info;

    atomic_store_explicit(&vcpu->signalled, true, memory_order_relaxed);
    memset(&info, 0, sizeof info);
    info.si_signo = KICK_SIGNAL;
    info.si_code = SI_QUEUE;
    info.si_pid = getpid();
    info.si_ptr = (void *) (uintptr_t) &kick_mark;
    syscall(SYS_rt_tgsigqueueinfo, vcpu->tgid, vcpu->tid, KICK_SIGNAL, &info);
}

static int attach(hv_vm_t *vm, hv_vcpu_t *vcpu, const hv_vcpu_init_t *init)
{
    int error = kvm__reset_regs(vm, *vcpu->fd, init);

    if (error)
        return error;
    vcpu->run = mmap(NULL, vm->run_size, PROT_READ | PROT_WRITE, MAP_SHARED,
                     *vcpu->fd, 0);
    if (vcpu->run == MAP_FAILED)
        return kvm__fail(-errno, "mapping vCPU %u: %s", init->id,
                         strerror(errno));
    /* A fork child has no use for it, and must not keep the VM alive. */
    (void) madvise(vcpu->run, vm->run_size, MADV_DONTFORK);
    return 0;
}

unsigned hv_vcpus_make(hv_vm_t *vm, unsigned count,
                       int (*move)(int fd, void *arg), void *arg)
{
    unsigned made;

    if (count > vm->caps.max_vcpus)
        count = vm->caps.max_vcpus;
    pthread_mutex_lock(&vm->lock);
    while (vm->nr_vcpus < count &&
           kvm__vcpu_fd(vm, vm->nr_vcpus, move, arg) >= 0)
        continue;
    made = vm->nr_vcpus;
    pthread_mutex_unlock(&vm->lock);
    return made;
}

int hv_vcpu_create(hv_vm_t *vm, const hv_vcpu_init_t *init, hv_vcpu_t **result)
{
    hv_vcpu_t *vcpu;
    int error;

    if (init->id >= vm->caps.max_vcpus || vm->vcpu_fd[init->id] < 0)
        return kvm__fail(-EAGAIN, "there is no vCPU %u", init->id);
    vcpu = calloc(1, sizeof *vcpu);
    if (!vcpu)
        return kvm__fail(-ENOMEM, "no memory for vCPU %u", init->id);
    vcpu->vm = vm;
    vcpu->fd = &vm->vcpu_fd[init->id];
    vcpu->id = init->id;
    error = attach(vm, vcpu, init);
    if (error) {
        free(vcpu);
        return error;
    }
    *result = vcpu;
    return 0;
}

void hv_vcpu_release(hv_vcpu_t *vcpu)
{
    if (own_vcpu == vcpu)
        own_vcpu = NULL;
}

void hv_vcpu_adopt(hv_vcpu_t *vcpu)
{
    vcpu->tgid = getpid();
    vcpu->tid = (int) syscall(SYS_gettid);
    own_vcpu = vcpu;
}

/* The vCPU itself stays: KVM has no call that ends one. */
void hv_vcpu_destroy(hv_vcpu_t *vcpu)
{
    hv_vcpu_release(vcpu);
    munmap(vcpu->run, vcpu->vm->run_size);
    free(vcpu);
}

void hv_vcpu_forget(hv_vcpu_t *vcpu)
{
    hv_vcpu_release(vcpu);
    free(vcpu);
}

/* The vCPU's own interrupt line. Its number is the index of creation on some
 * kernels, the id on others: ids are made in order, so they are the same. */
static void set_line(hv_vcpu_t *vcpu, bool high)
{
    uint32_t index = vcpu->id;
    struct kvm_irq_level irq = {
        .irq = KVM_ARM_IRQ_TYPE_CPU << KVM_ARM_IRQ_TYPE_SHIFT |
               (index >> 8) << KVM_ARM_IRQ_VCPU2_SHIFT |
               (index & KVM_ARM_IRQ_VCPU_MASK) << KVM_ARM_IRQ_VCPU_SHIFT |
               KVM_ARM_IRQ_CPU_IRQ,
        .level = high,
    };

    /* Fails for no argument that is right. */
    (void) ioctl(vcpu->vm->fd, KVM_IRQ_LINE, &irq);
    vcpu->line_high = high;
}

/*
 * KVM_RUN was interrupted. The vCPU may be anywhere, even in the middle of the
 * shim, so nothing is looked at; if somebody wants it out, its own line makes
 * EL0 take an interrupt as soon as EL1 is left. (A line raised from another
 * thread can be lost.) immediate_exit is cleared before `kicked` is read: a
 * kick in between sets `kicked` first and the flag again after it.
 */
static void interrupted(hv_vcpu_t *vcpu)
{
    *(volatile __u8 *) &vcpu->run->immediate_exit = 0;
    atomic_signal_fence(memory_order_seq_cst);
    /* seq_cst: pairs with the store in hv_vcpu_kick(). */
    if (atomic_load_explicit(&vcpu->kicked, memory_order_seq_cst) &&
        !vcpu->line_high)
        set_line(vcpu, true);
}

/* The line goes down before the request is taken back: the other order would
 * swallow a kick that came in between. */
static void take_kick(hv_vcpu_t *vcpu)
{
    if (vcpu->line_high)
        set_line(vcpu, false);
    /* A plain look first: the exchange is a full barrier on every exit. */
    if (atomic_load_explicit(&vcpu->kicked, memory_order_relaxed))
        atomic_store_explicit(&vcpu->kicked, false, memory_order_seq_cst);
}

static hv_exit_t mmio_exit(hv_vcpu_t *vcpu)
{
    const struct kvm_run *run = vcpu->run;

    if (run->mmio.phys_addr == IPA_DOORBELL && run->mmio.is_write) {
        take_kick(vcpu);
        return HV_EXIT_DOORBELL;
    }
    kvm__fail(-EFAULT, "vCPU %u %s IPA 0x%llx, where there is no memory",
              vcpu->id, run->mmio.is_write ? "wrote to" : "read from",
              (unsigned long long) run->mmio.phys_addr);
    return HV_EXIT_FAILED;
}

hv_exit_t hv_vcpu_run(hv_vcpu_t *vcpu)
{
    struct kvm_run *run = vcpu->run;

    for (;;) {
        if (ioctl(*vcpu->fd, KVM_RUN, 0) == 0) {
            if (run->exit_reason == KVM_EXIT_MMIO)
                return mmio_exit(vcpu);
            kvm__fail(-EIO, "vCPU %u stopped: KVM exit reason %u", vcpu->id,
                      run->exit_reason);
            return HV_EXIT_FAILED;
        }
        if (errno == EINTR || errno == EAGAIN) {
            interrupted(vcpu);
        } else if (errno == EFAULT) {
            return HV_EXIT_NO_PAGE;
        } else {
            kvm__fail(-errno, "vCPU %u stopped: %s", vcpu->id, strerror(errno));
            return HV_EXIT_FAILED;
        }
    }
}

void hv_vcpu_kick(hv_vcpu_t *vcpu)
{
    /* seq_cst: before the signal, and pairs with interrupted(). */
    atomic_store_explicit(&vcpu->kicked, true, memory_order_seq_cst);
    if (own_vcpu == vcpu)
        request_exit(vcpu);
    else
        send_kick(vcpu);
}

int hv_vcpu_inject_abort(hv_vcpu_t *vcpu)
{
    struct kvm_vcpu_events events = {
        .exception = {.ext_dabt_pending = 1},
    };

    if (ioctl(*vcpu->fd, KVM_SET_VCPU_EVENTS, &events))
        return kvm__fail(-errno, "injecting an abort: %s", strerror(errno));
    return 0;
}

static uint64_t host_counter(void)
{
    uint64_t value;

    __asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(value)::"memory");
    return value;
}

int hv_counter_set(hv_vcpu_t *vcpu, int64_t advance)
{
    int error = kvm__set_reg(*vcpu->fd, KVM_REG_ARM_TIMER_CNT,
                             host_counter() + (uint64_t) advance);

    if (error)
        kvm__fail(error, "setting the guest's counter: %s", strerror(-error));
    return error;
}

/* After a doorbell the store is still to be completed; a KVM_RUN that goes no
 * further does it, so that the registers are those of a parked vCPU. */
static void complete_store(hv_vcpu_t *vcpu)
{
    volatile __u8 *exit_flag = &vcpu->run->immediate_exit;

    *exit_flag = 1;
    (void) ioctl(*vcpu->fd, KVM_RUN, 0);
    interrupted(vcpu);
}

static int get_vector(hv_vcpu_t *vcpu, unsigned n, uint8_t v[16])
{
    const uint64_t fp = offsetof(struct kvm_regs, fp_regs) / sizeof(uint32_t);
    struct kvm_one_reg reg = {
        .id = KVM_REG_ARM64 | KVM_REG_ARM_CORE | KVM_REG_SIZE_U128 |
              (fp + n * 4UL),
        .addr = (uintptr_t) v,
    };

    if (vcpu->vm->caps.sve)
        return kvm__get_zreg(*vcpu->fd, n, v);
    return ioctl(*vcpu->fd, KVM_GET_ONE_REG, &reg) ? -errno : 0;
}

static int get_word(hv_vcpu_t *vcpu, uint64_t core_reg, uint32_t *value)
{
    uint32_t got = 0;
    struct kvm_one_reg reg = {
        .id = KVM_REG_ARM64 | KVM_REG_ARM_CORE | KVM_REG_SIZE_U32 | core_reg,
        .addr = (uintptr_t) &got,
    };

    if (ioctl(*vcpu->fd, KVM_GET_ONE_REG, &reg))
        return -errno;
    *value = got;
    return 0;
}

int hv_vcpu_get_fp(hv_vcpu_t *vcpu, uint8_t v[32][16], uint32_t *fpsr,
                   uint32_t *fpcr)
{
    int error = 0;

    complete_store(vcpu);
    for (unsigned i = 0; i < 32 && !error; i++)
        error = get_vector(vcpu, i, v[i]);
    if (!error)
        error = get_word(vcpu, KVM_REG_ARM_CORE_REG(fp_regs.fpsr), fpsr);
    if (!error)
        error = get_word(vcpu, KVM_REG_ARM_CORE_REG(fp_regs.fpcr), fpcr);
    if (error)
        kvm__fail(error, "reading FP registers: %s", strerror(-error));
    return error;
}
