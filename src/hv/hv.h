/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole boundary to the hypervisor. One implementation is linked in
 * (hv/kvm on Linux); there is no table of function pointers.
 *
 * Errors are negative errno values. Functions that a user may see fail also
 * leave one line, without a newline, in the buffer of hv_error().
 */
#ifndef ELFUSE_HV_HV_H
#define ELFUSE_HV_HV_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hv_vm hv_vm_t;
typedef struct hv_vcpu hv_vcpu_t;

typedef struct hv_options {
    unsigned ipa_bits; /* at most so many IPA bits; 0: what there is */
    bool no_sve;       /* tests: pretend the host lacks it */
    bool no_pauth;
    int kvm_fd; /* what hv_kvm_fd() said before an exec; 0: open it */
} hv_options_t;

typedef struct hv_caps {
    unsigned ipa_bits;   /* 36 to 48 */
    size_t host_page;    /* bytes: 4, 16 or 64 KiB */
    unsigned max_vcpus;  /* at most VCPU_MAX */
    unsigned max_slots;  /* memory regions alive at once */
    bool sve;            /* enabled in every vCPU */
    bool pauth;          /* enabled in every vCPU */
    uint64_t hwcap;      /* AT_HWCAP as true for the vCPU */
    uint64_t hwcap2;     /* AT_HWCAP2 likewise */
    uint64_t counter_hz; /* of CNTVCT */
    bool counter_exact;  /* CNTVCT is the host's by itself; otherwise after
                            hv_counter_set() only */
} hv_caps_t;

typedef enum hv_exit {
    HV_EXIT_DOORBELL, /* the shim rang: the frame is valid */
    HV_EXIT_NO_PAGE,  /* an access hit memory that the host cannot give: a
                         truncated file; hv_vcpu_inject_abort() and run */
    HV_EXIT_FAILED,   /* the vCPU cannot go on; hv_error() says why */
} hv_exit_t;

/* Last failure of this thread in words: what was tried, what to do next. */
const char *hv_error(void);

/*
 * Make the VM. -ENOENT: no hypervisor on this machine; -EACCES: no
 * permission; -ENOSYS: too old. *caps is filled.
 */
int hv_vm_create(const hv_options_t *opt, hv_vm_t **vm, hv_caps_t *caps);
void hv_vm_destroy(hv_vm_t *vm);

/*
 * Give [ipa, ipa + size) the memory at host; all three aligned to the host
 * page, ipa congruent to host modulo 2 MiB (32 MiB with 16 KiB pages) so that
 * stage 2 can use blocks. Parts that the process cannot access are allowed and
 * give HV_EXIT_NO_PAGE when touched. May be called while vCPUs run.
 * hv_unmap takes exactly a range that hv_map was given.
 */
int hv_map(hv_vm_t *vm, uint64_t ipa, void *host, size_t size);
int hv_unmap(hv_vm_t *vm, uint64_t ipa, size_t size);

/*
 * Let there be `count` vCPUs, at most caps.max_vcpus; number 0 comes with the
 * VM. None ever goes away. `move` gives each new descriptor the number that it
 * is to have, or -errno. Where caps.counter_exact is false the counter of all
 * vCPUs is lost. Not to be called by two threads at once. Stops at the first
 * one that cannot be made: how many there are then, at least 1.
 */
unsigned hv_vcpus_make(hv_vm_t *vm, unsigned count,
                       int (*move)(int fd, void *arg), void *arg);

/*
 * vCPU number id, one of those made, with every EL1 register set in this one
 * place: it starts at the shim's entry, which rings FRAME_EXIT_READY and then
 * goes to EL0 with what its frame says. Once for each id. ttbr0 and ttbr1 are
 * the IPAs of the two top-level tables. The thread that is to run it adopts it.
 */
typedef struct hv_vcpu_init {
    unsigned id;
    uint64_t entry;   /* EL1 VA of the shim's way in */
    uint64_t vectors; /* EL1 VA for VBAR_EL1 */
    uint64_t sp_el1;  /* EL1 VA of the frame */
    uint64_t ttbr0, ttbr1;
} hv_vcpu_init_t;

int hv_vcpu_create(hv_vm_t *vm, const hv_vcpu_init_t *init, hv_vcpu_t **vcpu);
void hv_vcpu_destroy(hv_vcpu_t *vcpu);
/*
 * The calling thread runs this vCPU from now on. A vCPU that is parked at a
 * doorbell changes hands: its thread releases it, and another thread adopts it.
 * On kernels before 6.13 the next hv_vcpu_run() takes 9 to 34 ms then.
 */
void hv_vcpu_release(hv_vcpu_t *vcpu);
void hv_vcpu_adopt(hv_vcpu_t *vcpu);

/*
 * Where caps.counter_exact is false: make the guest's CNTVCT, in all vCPUs, the
 * host's counter plus `advance` ticks, as nearly as one ioctl can. Every
 * vCPU that is made loses it. The caller measures what is left (READY_CNTVCT)
 * and corrects with `advance`.
 */
int hv_counter_set(hv_vcpu_t *vcpu, int64_t advance);

/*
 * The value that EL1 reads from the ID register S3_0_C0_C<crm>_<op2>, or 0
 * where there is none; for emulating EL0's reads (HWCAP_CPUID).
 */
uint64_t hv_id_register(hv_vm_t *vm, unsigned crm, unsigned op2);

/* Run until something needs the host. Only from the vCPU's own thread. */
hv_exit_t hv_vcpu_run(hv_vcpu_t *vcpu);

/*
 * Make a running vCPU come out: from any thread, or from a signal handler of
 * the vCPU's own thread. Never lost: if the vCPU is not running, its next
 * hv_vcpu_run() comes out before EL0 executes an instruction. It always comes
 * out through the shim (FRAME_EXIT_IRQ, unless EL0 was on its way out anyway),
 * so that the frame is valid: an interruption at EL1 parks nothing.
 */
void hv_vcpu_kick(hv_vcpu_t *vcpu);
/*
 * The signal by which a kick reaches another thread, 0 if there is none. It is
 * never blocked while a vCPU runs, and its handler, which is the caller's,
 * hands each one that arrives to hv_kick_arrived(). That returns false for one
 * that was no kick: the number is the guest's as well.
 */
int hv_kick_signal(void);
bool hv_kick_arrived(const siginfo_t *info);

/* After HV_EXIT_NO_PAGE: let EL1 take a synchronous external abort. */
int hv_vcpu_inject_abort(hv_vcpu_t *vcpu);

/*
 * FP/SIMD registers of a parked vCPU: 32 vectors of 16 bytes, FPSR, FPCR.
 * Slow (ioctls); for signal frames and for tests.
 */
int hv_vcpu_get_fp(hv_vcpu_t *vcpu, uint8_t v[32][16], uint32_t *fpsr,
                   uint32_t *fpcr);

/*
 * The host has changed this thread's SVE vector length (PR_SVE_SET_VL): EL0's
 * follows. Only with caps.sve. Returns 0 or -errno.
 */
int hv_vcpu_sync_sve(hv_vcpu_t *vcpu);

/*
 * In a fork child, where VM and vCPUs of the parent are of no use: make a VM
 * like the parent's behind the same `vm`, with the same features and keys,
 * without memory (hv_map again) and without vCPUs. The new descriptors have the
 * old numbers; with `shared`, where the parent uses the same table of
 * descriptors, they have new ones, for the caller to hide. hv_vcpu_forget()
 * frees what describes a vCPU of the parent, and nothing else.
 */
int hv_vm_renew(hv_vm_t *vm, bool shared);
void hv_vcpu_forget(hv_vcpu_t *vcpu);

/* The descriptor with which a later image can make a VM, though it may not open
 * the hypervisor any more. */
int hv_kvm_fd(const hv_vm_t *vm);

/* File descriptors that this back end holds, for sys/fdspace.c to hide. The
 * callback may move the descriptor and returns its new number. */
void hv_each_fd(hv_vm_t *vm, int (*move)(int fd, void *arg), void *arg);

#endif
