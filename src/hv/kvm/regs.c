/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registers of a vCPU. KVM fills what nobody sets with a poison value, so
 * all that EL0 or the shim can feel is set here, for the first and for later
 * vCPUs alike. docs/hypervisor.md says why each has its value.
 */
#include "hv/kvm/kvm.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#define CORE(field)                                        \
    (KVM_REG_ARM64 | KVM_REG_SIZE_U64 | KVM_REG_ARM_CORE | \
     (offsetof(struct kvm_regs, field) / sizeof(uint32_t)))

#define BIT(n) (1UL << (n))

/* SCTLR_EL1: EOS, TSCXT, EIS, SPAN, nTLSMD, LSMAOE are or may be RES1. */
#define SCTLR_RES1 (BIT(11) | BIT(20) | BIT(22) | BIT(28) | BIT(29))
#define SCTLR_M    BIT(0)
#define SCTLR_C    BIT(2)
#define SCTLR_SA   BIT(3)
#define SCTLR_SA0  BIT(4)
#define SCTLR_I    BIT(12)
#define SCTLR_DZE  BIT(14)
#define SCTLR_UCT  BIT(15)
#define SCTLR_NTWE BIT(18)
#define SCTLR_SPAN BIT(23)
#define SCTLR_UCI  BIT(26)
/* EnDB, EnDA, EnIB, EnIA: the four address keys work. */
#define SCTLR_PAUTH (BIT(13) | BIT(27) | BIT(30) | BIT(31))

/* TCR_EL1: both halves 48 bits, 4 KiB, walks inner shareable write-back. */
#define TCR_T0SZ(n) ((uint64_t) (64 - (n)))
#define TCR_T1SZ(n) ((uint64_t) (64 - (n)) << 16)
#define TCR_WALK0   (BIT(8) | BIT(10) | 3UL << 12)
#define TCR_WALK1   (BIT(24) | BIT(26) | 3UL << 28)
#define TCR_TG1_4K  (2UL << 30)
#define TCR_IPS(n)  ((uint64_t) (n) << 32)
#define TCR_TBI0    BIT(37)

/* MAIR_EL1: 0 normal write-back read-write-allocate, 1 device nGnRnE. */
#define MAIR_VALUE 0x00ffUL

#define CPACR_FPEN (3UL << 20)
#define CPACR_ZEN  (3UL << 16)

#define CNTKCTL_EL0VCTEN BIT(1)
#define CNTKCTL_EVNTEN   BIT(2)
#define CNTKCTL_EVNTI(n) ((uint64_t) (n) << 4)

/* PSTATE: EL1 with SP_EL1, D, A, I and F masked. */
#define PSTATE_EL1H 0x3c5UL

#define ZCR_EL1 ARM64_SYS_REG(3, 0, 1, 2, 0)

int kvm__get_reg(int fd, uint64_t id, uint64_t *value)
{
    uint64_t got = 0;
    struct kvm_one_reg reg = {.id = id, .addr = (uintptr_t) &got};

    if (ioctl(fd, KVM_GET_ONE_REG, &reg))
        return -errno;
    *value = got;
    return 0;
}

int kvm__set_reg(int fd, uint64_t id, uint64_t value)
{
    struct kvm_one_reg reg = {.id = id, .addr = (uintptr_t) &value};

    return ioctl(fd, KVM_SET_ONE_REG, &reg) ? -errno : 0;
}

int kvm__get_zreg(int fd, unsigned n, uint8_t v[16])
{
    /* 2048 bits: what one slice of the interface holds. */
    uint8_t z[256] = {0};
    struct kvm_one_reg reg = {
        .id = KVM_REG_ARM64_SVE_ZREG(n, 0),
        .addr = (uintptr_t) z,
    };

    if (ioctl(fd, KVM_GET_ONE_REG, &reg))
        return -errno;
    /* cppcheck-suppress uninitvar ; the ioctl has filled it */
    memcpy(v, z, 16);
    return 0;
}

/* EL0's vector length is that of the host's thread, which the host keeps over
 * clone and exec as Linux does. ZCR counts 16s, minus 1. */
static uint64_t zcr(void)
{
    int vl = prctl(PR_SVE_GET_VL);

    return vl < 0 ? 0 : ((uint64_t) vl & PR_SVE_VL_LEN_MASK) / 16 - 1;
}

/* The IPS field that holds `bits` bits of physical address. */
static unsigned ips_field(unsigned bits)
{
    static const uint8_t size[] = {32, 36, 40, 42, 44, 48};
    unsigned i = 0;

    while (size[i] < bits)
        i++;
    return i;
}

/*
 * The event stream that wakes WFE 10,000 times a second, as Linux has it: an
 * event when bit EVNTI of the counter changes to 1.
 */
static uint64_t event_stream(uint64_t hz)
{
    unsigned bit = 0;

    while (bit < 15 && hz >> (bit + 1) >= 10000)
        bit++;
    return CNTKCTL_EVNTEN | CNTKCTL_EVNTI(bit);
}

/* Without nTWI: EL0's WFI comes to the shim. The hypervisor would put the vCPU
 * to sleep until an interrupt, of which there may be none. */
static uint64_t sctlr(const hv_caps_t *caps)
{
    uint64_t value = SCTLR_RES1 | SCTLR_SPAN | SCTLR_M | SCTLR_C | SCTLR_I |
                     SCTLR_SA | SCTLR_SA0 | SCTLR_DZE | SCTLR_UCT | SCTLR_NTWE |
                     SCTLR_UCI;

    return caps->pauth ? value | SCTLR_PAUTH : value;
}

static uint64_t tcr(const hv_caps_t *caps)
{
    return TCR_T0SZ(48) | TCR_T1SZ(48) | TCR_WALK0 | TCR_WALK1 | TCR_TG1_4K |
           TCR_IPS(ips_field(caps->ipa_bits)) | TCR_TBI0;
}

/* Must be there, or may be missing on some CPUs and kernels. */
enum presence { REQUIRED, OPTIONAL };

static int set(int fd, const char *name, uint64_t id, uint64_t value,
               enum presence presence)
{
    int error = kvm__set_reg(fd, id, value);

    if (!error || (presence == OPTIONAL && error == -ENOENT))
        return 0;
    return kvm__fail(error, "setting %s: %s", name, strerror(-error));
}

static int set_pauth_keys(const hv_vm_t *vm, int fd)
{
    /* APIA, APIB, APDA, APDB, APGA: low half, high half. */
    static const uint64_t id[PAUTH_KEY_WORDS] = {
        ARM64_SYS_REG(3, 0, 2, 1, 0), ARM64_SYS_REG(3, 0, 2, 1, 1),
        ARM64_SYS_REG(3, 0, 2, 1, 2), ARM64_SYS_REG(3, 0, 2, 1, 3),
        ARM64_SYS_REG(3, 0, 2, 2, 0), ARM64_SYS_REG(3, 0, 2, 2, 1),
        ARM64_SYS_REG(3, 0, 2, 2, 2), ARM64_SYS_REG(3, 0, 2, 2, 3),
        ARM64_SYS_REG(3, 0, 2, 3, 0), ARM64_SYS_REG(3, 0, 2, 3, 1),
    };
    int error = 0;

    for (unsigned i = 0; i < PAUTH_KEY_WORDS && !error; i++)
        error = set(fd, "a pointer authentication key", id[i], vm->pauth_key[i],
                    REQUIRED);
    return error;
}

/* What is zero in a fresh process, or is not used at all. */
static int clear_registers(int fd)
{
    static const struct {
        const char *name;
        uint64_t id;
        enum presence presence;
    } zero[] = {
        {"MDSCR_EL1", ARM64_SYS_REG(2, 0, 0, 2, 2), REQUIRED},
        {"MDCCINT_EL1", ARM64_SYS_REG(2, 0, 0, 2, 0), OPTIONAL},
        {"ACTLR_EL1", ARM64_SYS_REG(3, 0, 1, 0, 1), OPTIONAL},
        {"TCR2_EL1", ARM64_SYS_REG(3, 0, 2, 0, 3), OPTIONAL},
        {"AFSR0_EL1", ARM64_SYS_REG(3, 0, 5, 1, 0), REQUIRED},
        {"AFSR1_EL1", ARM64_SYS_REG(3, 0, 5, 1, 1), REQUIRED},
        {"ESR_EL1", ARM64_SYS_REG(3, 0, 5, 2, 0), REQUIRED},
        {"FAR_EL1", ARM64_SYS_REG(3, 0, 6, 0, 0), REQUIRED},
        {"PAR_EL1", ARM64_SYS_REG(3, 0, 7, 4, 0), OPTIONAL},
        {"AMAIR_EL1", ARM64_SYS_REG(3, 0, 10, 3, 0), REQUIRED},
        {"CONTEXTIDR_EL1", ARM64_SYS_REG(3, 0, 13, 0, 1), REQUIRED},
        {"CSSELR_EL1", ARM64_SYS_REG(3, 2, 0, 0, 0), OPTIONAL},
        {"TPIDR_EL0", ARM64_SYS_REG(3, 3, 13, 0, 2), REQUIRED},
        {"TPIDRRO_EL0", ARM64_SYS_REG(3, 3, 13, 0, 3), REQUIRED},
        {"TPIDR2_EL0", ARM64_SYS_REG(3, 3, 13, 0, 5), OPTIONAL},
        {"PMUSERENR_EL0", ARM64_SYS_REG(3, 3, 9, 14, 0), OPTIONAL},
        {"SP_EL0", CORE(regs.sp), REQUIRED},
        {"ELR_EL1", CORE(elr_el1), REQUIRED},
        {"SPSR_EL1", CORE(spsr[KVM_SPSR_EL1]), REQUIRED},
    };
    int error = 0;

    for (size_t i = 0; i < sizeof zero / sizeof zero[0] && !error; i++)
        error = set(fd, zero[i].name, zero[i].id, 0, zero[i].presence);
    return error;
}

int kvm__reset_regs(hv_vm_t *vm, int fd, const hv_vcpu_init_t *init)
{
    const hv_caps_t *caps = &vm->caps;
    const struct {
        const char *name;
        uint64_t id, value;
    } reg[] = {
        {"MAIR_EL1", ARM64_SYS_REG(3, 0, 10, 2, 0), MAIR_VALUE},
        {"TCR_EL1", ARM64_SYS_REG(3, 0, 2, 0, 2), tcr(caps)},
        {"TTBR0_EL1", ARM64_SYS_REG(3, 0, 2, 0, 0), init->ttbr0},
        {"TTBR1_EL1", ARM64_SYS_REG(3, 0, 2, 0, 1), init->ttbr1},
        {"SCTLR_EL1", ARM64_SYS_REG(3, 0, 1, 0, 0), sctlr(caps)},
        {"CPACR_EL1", ARM64_SYS_REG(3, 0, 1, 0, 2),
         CPACR_FPEN | (caps->sve ? CPACR_ZEN : 0)},
        {"CNTKCTL_EL1", ARM64_SYS_REG(3, 0, 14, 1, 0),
         CNTKCTL_EL0VCTEN | event_stream(caps->counter_hz)},
        {"VBAR_EL1", ARM64_SYS_REG(3, 0, 12, 0, 0), init->vectors},
        {"TPIDR_EL1", ARM64_SYS_REG(3, 0, 13, 0, 4), init->sp_el1},
        {"SP_EL1", CORE(sp_el1), init->sp_el1},
        {"PC", CORE(regs.pc), init->entry},
        {"PSTATE", CORE(regs.pstate), PSTATE_EL1H},
    };
    int error = clear_registers(fd);

    for (size_t i = 0; i < sizeof reg / sizeof reg[0] && !error; i++)
        error = set(fd, reg[i].name, reg[i].id, reg[i].value, REQUIRED);
    if (!error && caps->sve)
        error = set(fd, "ZCR_EL1", ZCR_EL1, zcr(), OPTIONAL);
    if (!error && caps->pauth)
        error = set_pauth_keys(vm, fd);
    return error;
}

int hv_vcpu_sync_sve(hv_vcpu_t *vcpu)
{
    return kvm__set_reg(*vcpu->fd, ZCR_EL1, zcr());
}
