/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of hv/kvm only. */
#ifndef ELFUSE_HV_KVM_KVM_H
#define ELFUSE_HV_KVM_KVM_H

#include <linux/kvm.h>
#include <pthread.h>
#include <stdatomic.h>

#include "abi/layout.h"
#include "hv/hv.h"

/* From 6.4 on; not in Debian 12's headers. */
#ifndef KVM_CAP_COUNTER_OFFSET
#define KVM_CAP_COUNTER_OFFSET 227
struct kvm_arm_counter_offset {
    __u64 counter_offset;
    __u64 reserved;
};
#define KVM_ARM_SET_COUNTER_OFFSET \
    _IOW(KVMIO, 0xb5, struct kvm_arm_counter_offset)
#endif

/* A memory slot; size 0: the number is free. */
typedef struct kvm_slot {
    uint64_t ipa, size;
} kvm_slot_t;

/* Five pointer-authentication keys of 128 bits. */
#define PAUTH_KEY_WORDS 10

struct hv_vm {
    int kvm; /* /dev/kvm, for fork children */
    int fd;
    int vcpu_fd[VCPU_MAX]; /* -1: not made, or destroyed */
    unsigned nr_vcpus;     /* ids used up, from 0 */
    size_t run_size;       /* of the mapping of kvm_run, bytes */
    struct kvm_vcpu_init init;
    hv_caps_t caps;
    uint64_t pauth_key[PAUTH_KEY_WORDS]; /* the same in all vCPUs */
    uint64_t id[8 << 3];  /* ID registers as EL1 reads them: crm << 3 | op2 */
    pthread_mutex_t lock; /* slots, nr_vcpus; taken last of all */
    kvm_slot_t *slot;
    unsigned nr_slots; /* entries of slot[] in use or free */
    unsigned slots_allocated;
};

struct hv_vcpu {
    hv_vm_t *vm;
    struct kvm_run *run;
    const int *fd; /* in vm->vcpu_fd: descriptors can be moved */
    int tgid, tid; /* host thread it belongs to */
    unsigned id;
    /*
     * Set by hv_vcpu_kick(), taken back by the vCPU's thread at a doorbell,
     * after the interrupt line is low. seq_cst with immediate_exit, see vcpu.c.
     */
    atomic_bool kicked;
    bool line_high;
    atomic_bool signalled; /* a kick's signal is on its way */
};

/* Leave the words for hv_error() and return `error`. */
int kvm__fail(int error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* vm.c: a new vCPU's descriptor, moved and initialised; -errno. */
int kvm__vcpu_fd(hv_vm_t *vm, unsigned id, int (*move)(int fd, void *arg),
                 void *arg);

/* regs.c. Identifiers are KVM's register numbers. */
int kvm__get_reg(int fd, uint64_t id, uint64_t *value);
int kvm__set_reg(int fd, uint64_t id, uint64_t value);
/* Every register of a new vCPU. */
int kvm__reset_regs(hv_vm_t *vm, int fd, const hv_vcpu_init_t *init);

/* The low 16 bytes of SVE register Z<n>: V<n>. */
int kvm__get_zreg(int fd, unsigned n, uint8_t v[16]);

/* hwcap.c: what the vCPU offers to EL0. */
void kvm__read_hwcaps(hv_vm_t *vm);

#endif
