/* SPDX-License-Identifier: Apache-2.0 */
/* The VM: /dev/kvm, what it can do, memory slots. */
#include "hv/kvm/kvm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

static _Thread_local char error_line[256];

const char *hv_error(void)
{
    return error_line;
}

int kvm__fail(int error, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(error_line, sizeof error_line, format, ap);
    va_end(ap);
    return error;
}

static int open_kvm(void)
{
    int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);

    if (fd >= 0)
        return fd;
    switch (errno) {
    case ENOENT:
    case ENODEV:
    case ENXIO:
        return kvm__fail(-ENOENT,
                         "no /dev/kvm: this needs an arm64 Linux host that "
                         "was started at EL2 with KVM in its kernel; on other "
                         "machines use tools/elfuse-vm");
    case EACCES:
    case EPERM:
        return kvm__fail(-EACCES,
                         "no permission for /dev/kvm: add yourself to its "
                         "group (usermod -aG kvm USER) and log in again");
    default:
        return kvm__fail(-errno, "/dev/kvm: %s", strerror(errno));
    }
}

/* What nothing here works without; all are in Linux 5.4. */
static int check_extensions(int kvm)
{
    static const struct {
        int cap;
        const char *name;
    } needed[] = {
        {KVM_CAP_USER_MEMORY, "memory slots"},
        {KVM_CAP_ONE_REG, "register access"},
        {KVM_CAP_IMMEDIATE_EXIT, "immediate exit"},
        {KVM_CAP_VCPU_EVENTS, "vCPU events"},
        {KVM_CAP_ARM_INJECT_EXT_DABT, "injection of aborts"},
    };

    if (ioctl(kvm, KVM_GET_API_VERSION, 0) != KVM_API_VERSION)
        return kvm__fail(-ENOSYS, "/dev/kvm speaks another version");
    for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
        if (ioctl(kvm, KVM_CHECK_EXTENSION, needed[i].cap) <= 0)
            return kvm__fail(-ENOSYS,
                             "this kernel's KVM is too old: it lacks %s "
                             "(Linux 5.10 is enough)",
                             needed[i].name);
    }
    return 0;
}

static uint64_t host_counter_hz(void)
{
    uint64_t hz;

    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hz));
    return hz;
}

/* IPA bits: what the host offers, and at most 48 (52 needs other tables). */
static int choose_ipa_bits(int kvm, const hv_options_t *opt, unsigned *bits)
{
    int offered = ioctl(kvm, KVM_CHECK_EXTENSION, KVM_CAP_ARM_VM_IPA_SIZE);

    *bits = offered > 0 ? (unsigned) offered : 40;
    if (*bits > IPA_BITS_MAX)
        *bits = IPA_BITS_MAX;
    if (opt->ipa_bits && opt->ipa_bits < IPA_BITS_MIN)
        return kvm__fail(-EINVAL, "%u IPA bits: at least %u are needed",
                         opt->ipa_bits, IPA_BITS_MIN);
    if (opt->ipa_bits && opt->ipa_bits < *bits)
        *bits = opt->ipa_bits;
    if (*bits < IPA_BITS_MIN)
        return kvm__fail(-ENOSYS, "the host has %u IPA bits: %u are needed",
                         *bits, IPA_BITS_MIN);
    return 0;
}

static void choose_features(hv_vm_t *vm, int kvm, const hv_options_t *opt)
{
    uint32_t *features = vm->init.features;

    vm->caps.sve =
        !opt->no_sve && ioctl(kvm, KVM_CHECK_EXTENSION, KVM_CAP_ARM_SVE) > 0;
    vm->caps.pauth =
        !opt->no_pauth &&
        ioctl(kvm, KVM_CHECK_EXTENSION, KVM_CAP_ARM_PTRAUTH_ADDRESS) > 0 &&
        ioctl(kvm, KVM_CHECK_EXTENSION, KVM_CAP_ARM_PTRAUTH_GENERIC) > 0;
    if (vm->caps.sve)
        features[0] |= 1U << KVM_ARM_VCPU_SVE;
    if (vm->caps.pauth)
        features[0] |= 1U << KVM_ARM_VCPU_PTRAUTH_ADDRESS |
                       1U << KVM_ARM_VCPU_PTRAUTH_GENERIC;
}

/* Initialised only where it stays: that shows that it is still a vCPU, and not
 * what a thread of the guest has put in its place while it had a low number. */
int kvm__vcpu_fd(hv_vm_t *vm, unsigned id, int (*move)(int fd, void *arg),
                 void *arg)
{
    int fd = ioctl(vm->fd, KVM_CREATE_VCPU, (unsigned long) id);
    int feature = KVM_ARM_VCPU_SVE;

    if (fd < 0)
        return kvm__fail(-errno, "vCPU %u: %s", id, strerror(errno));
    if (move) {
        int moved = move(fd, arg);

        if (moved < 0) {
            close(fd);
            return kvm__fail(moved, "no descriptor for vCPU %u: %s", id,
                             strerror(-moved));
        }
        fd = moved;
    }
    if (ioctl(fd, KVM_ARM_VCPU_INIT, &vm->init) ||
        (vm->caps.sve && ioctl(fd, KVM_ARM_VCPU_FINALIZE, &feature))) {
        int error = errno;

        close(fd);
        return kvm__fail(-error, "initialising vCPU %u: %s", id,
                         strerror(error));
    }
    vm->vcpu_fd[id] = fd;
    vm->nr_vcpus = id + 1;
    return fd;
}

/*
 * The guest's counter shall be the host's. From 6.4 on that is one call for the
 * whole VM and all time; before, see hv_counter_set().
 */
static void align_counter(hv_vm_t *vm)
{
    struct kvm_arm_counter_offset offset = {0};

    vm->caps.counter_exact =
        ioctl(vm->fd, KVM_CHECK_EXTENSION, KVM_CAP_COUNTER_OFFSET) > 0 &&
        ioctl(vm->fd, KVM_ARM_SET_COUNTER_OFFSET, &offset) == 0;
}

static int make_vm(hv_vm_t *vm)
{
    unsigned long type = KVM_VM_TYPE_ARM_IPA_SIZE(vm->caps.ipa_bits);

    /* A signal that stops and continues the process interrupts it. */
    do
        vm->fd = ioctl(vm->kvm, KVM_CREATE_VM, type);
    while (vm->fd < 0 && errno == EINTR);
    if (vm->fd < 0)
        return kvm__fail(-errno, "cannot make a VM: %s", strerror(errno));
    return 0;
}

static int create_vm(hv_vm_t *vm, const hv_options_t *opt)
{
    hv_caps_t *caps = &vm->caps;
    int error, cap, kvm = vm->kvm;

    error = check_extensions(kvm);
    if (!error)
        error = choose_ipa_bits(kvm, opt, &caps->ipa_bits);
    if (error)
        return error;
    vm->run_size = (size_t) ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
    caps->host_page = (size_t) sysconf(_SC_PAGESIZE);
    cap = ioctl(kvm, KVM_CHECK_EXTENSION, KVM_CAP_NR_MEMSLOTS);
    caps->max_slots = cap > 0 ? (unsigned) cap : 32;
    cap = ioctl(kvm, KVM_CHECK_EXTENSION, KVM_CAP_MAX_VCPUS);
    caps->max_vcpus = cap > 0 ? (unsigned) cap : 4;
    if (caps->max_vcpus > VCPU_MAX)
        caps->max_vcpus = VCPU_MAX;
    caps->counter_hz = host_counter_hz();

    error = make_vm(vm);
    if (error)
        return error;
    if (ioctl(vm->fd, KVM_ARM_PREFERRED_TARGET, &vm->init))
        return kvm__fail(-errno, "this CPU cannot run a guest: %s",
                         strerror(errno));
    choose_features(vm, kvm, opt);
    align_counter(vm);
    if (caps->pauth && getrandom(vm->pauth_key, sizeof vm->pauth_key, 0) !=
                           (ssize_t) sizeof vm->pauth_key)
        return kvm__fail(-EIO, "no random numbers for the vCPUs' keys");
    /* vCPU 0 is made now: only a vCPU says what its ID registers are. */
    error = kvm__vcpu_fd(vm, 0, NULL, NULL);
    if (error < 0)
        return error;
    kvm__read_hwcaps(vm);
    return 0;
}

int hv_vm_create(const hv_options_t *opt, hv_vm_t **result, hv_caps_t *caps)
{
    hv_vm_t *vm = calloc(1, sizeof *vm);
    int error;

    if (!vm)
        return kvm__fail(-ENOMEM, "no memory for the VM");
    vm->fd = -1;
    for (unsigned i = 0; i < VCPU_MAX; i++)
        vm->vcpu_fd[i] = -1;
    pthread_mutex_init(&vm->lock, NULL);
    vm->kvm = opt->kvm_fd > 0 ? opt->kvm_fd : open_kvm();
    error = vm->kvm < 0 ? vm->kvm : create_vm(vm, opt);
    if (error) {
        hv_vm_destroy(vm);
        return error;
    }
    *caps = vm->caps;
    *result = vm;
    return 0;
}

void hv_vm_destroy(hv_vm_t *vm)
{
    for (unsigned i = 0; i < vm->nr_vcpus; i++) {
        if (vm->vcpu_fd[i] >= 0)
            close(vm->vcpu_fd[i]);
    }
    if (vm->fd >= 0)
        close(vm->fd);
    if (vm->kvm >= 0)
        close(vm->kvm);
    pthread_mutex_destroy(&vm->lock);
    free(vm->slot);
    free(vm);
}

/* What was just opened takes the number of what it replaces. */
static int take_number(int *fd, int number)
{
    int opened = *fd;

    if (opened < 0 || opened == number)
        return 0;
    *fd = dup3(opened, number, O_CLOEXEC);
    close(opened);
    return *fd < 0
               ? kvm__fail(-errno, "descriptor %d: %s", number, strerror(errno))
               : 0;
}

int hv_vm_renew(hv_vm_t *vm, bool shared)
{
    int old_vm = vm->fd, old_vcpu = vm->vcpu_fd[0], error;

    pthread_mutex_init(&vm->lock, NULL);
    for (unsigned i = 1; i < vm->nr_vcpus; i++) {
        if (vm->vcpu_fd[i] >= 0 && !shared)
            close(vm->vcpu_fd[i]);
        vm->vcpu_fd[i] = -1;
    }
    vm->nr_slots = 0;
    error = make_vm(vm);
    if (error)
        return error;
    align_counter(vm);
    error = kvm__vcpu_fd(vm, 0, NULL, NULL);
    if (error < 0 || shared)
        return error < 0 ? error : 0;
    error = take_number(&vm->fd, old_vm);
    return error ? error : take_number(&vm->vcpu_fd[0], old_vcpu);
}

static int set_region(hv_vm_t *vm, unsigned number, uint64_t ipa, void *host,
                      size_t size)
{
    struct kvm_userspace_memory_region region = {
        .slot = number,
        .guest_phys_addr = ipa,
        .memory_size = size,
        .userspace_addr = (uintptr_t) host,
    };

    if (ioctl(vm->fd, KVM_SET_USER_MEMORY_REGION, &region))
        return -errno;
    return 0;
}

/* A free slot number; slot[] has room for it. */
static int find_slot(hv_vm_t *vm, unsigned *number)
{
    kvm_slot_t *grown;
    unsigned want;

    for (unsigned i = 0; i < vm->nr_slots; i++) {
        if (!vm->slot[i].size) {
            *number = i;
            return 0;
        }
    }
    if (vm->nr_slots == vm->caps.max_slots)
        return -ENOSPC;
    if (vm->nr_slots == vm->slots_allocated) {
        want = vm->slots_allocated ? vm->slots_allocated * 2 : 64;
        grown = realloc(vm->slot, want * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        vm->slot = grown;
        vm->slots_allocated = want;
    }
    vm->slot[vm->nr_slots].size = 0;
    *number = vm->nr_slots++;
    return 0;
}

int hv_map(hv_vm_t *vm, uint64_t ipa, void *host, size_t size)
{
    unsigned number;
    int error;

    pthread_mutex_lock(&vm->lock);
    error = find_slot(vm, &number);
    if (!error)
        error = set_region(vm, number, ipa, host, size);
    if (!error)
        vm->slot[number] = (kvm_slot_t){ipa, size};
    pthread_mutex_unlock(&vm->lock);
    if (error)
        kvm__fail(error, "memory slot of 0x%zx bytes at IPA 0x%llx: %s", size,
                  (unsigned long long) ipa, strerror(-error));
    return error;
}

int hv_unmap(hv_vm_t *vm, uint64_t ipa, size_t size)
{
    int error = -ENOENT;

    pthread_mutex_lock(&vm->lock);
    for (unsigned i = 0; i < vm->nr_slots; i++) {
        if (vm->slot[i].size != size || vm->slot[i].ipa != ipa)
            continue;
        error = set_region(vm, i, ipa, NULL, 0);
        if (!error)
            vm->slot[i].size = 0;
        break;
    }
    pthread_mutex_unlock(&vm->lock);
    if (error)
        kvm__fail(error, "removing the memory slot at IPA 0x%llx: %s",
                  (unsigned long long) ipa, strerror(-error));
    return error;
}

int hv_kvm_fd(const hv_vm_t *vm)
{
    return vm->kvm;
}

void hv_each_fd(hv_vm_t *vm, int (*move)(int fd, void *arg), void *arg)
{
    vm->kvm = move(vm->kvm, arg);
    vm->fd = move(vm->fd, arg);
    for (unsigned i = 0; i < vm->nr_vcpus; i++) {
        if (vm->vcpu_fd[i] >= 0)
            vm->vcpu_fd[i] = move(vm->vcpu_fd[i], arg);
    }
}
