/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AT_HWCAP and AT_HWCAP2 true for the vCPU: a bit is given when the host gives
 * it to its own programs and the vCPU's ID registers show the feature. Bits
 * that this table does not know are left out, and so are, on purpose, those
 * that need something elfuse does not do: MTE, SME, BTI, MOPS.
 */
#include "hv/kvm/kvm.h"

#include <asm/hwcap.h>
#include <sys/auxv.h>

/* ID registers S3_0_C0_C<crm>_<op2>, as an index of hv_vm.id. */
enum id_register {
    MIDR = 0,
    PFR0 = 4 << 3 | 0,
    PFR1 = 4 << 3 | 1,
    ZFR0 = 4 << 3 | 4,
    DFR0 = 5 << 3 | 0,
    ISAR0 = 6 << 3 | 0,
    ISAR1 = 6 << 3 | 1,
    ISAR2 = 6 << 3 | 2,
    MMFR0 = 7 << 3 | 0,
    MMFR1 = 7 << 3 | 1,
    MMFR2 = 7 << 3 | 2,
};

typedef struct feature {
    uint64_t hwcap;
    uint8_t reg;   /* enum id_register */
    uint8_t shift; /* of the 4-bit field */
    uint8_t least; /* the value from which on the feature is there */
} feature_t;

static const feature_t features[] = {
    {HWCAP_AES, ISAR0, 4, 1},       {HWCAP_PMULL, ISAR0, 4, 2},
    {HWCAP_SHA1, ISAR0, 8, 1},      {HWCAP_SHA2, ISAR0, 12, 1},
    {HWCAP_SHA512, ISAR0, 12, 2},   {HWCAP_CRC32, ISAR0, 16, 1},
    {HWCAP_ATOMICS, ISAR0, 20, 2},  {HWCAP_ASIMDRDM, ISAR0, 28, 1},
    {HWCAP_SHA3, ISAR0, 32, 1},     {HWCAP_SM3, ISAR0, 36, 1},
    {HWCAP_SM4, ISAR0, 40, 1},      {HWCAP_ASIMDDP, ISAR0, 44, 1},
    {HWCAP_ASIMDFHM, ISAR0, 48, 1}, {HWCAP_FLAGM, ISAR0, 52, 1},
    {HWCAP_DCPOP, ISAR1, 0, 1},     {HWCAP_JSCVT, ISAR1, 12, 1},
    {HWCAP_FCMA, ISAR1, 16, 1},     {HWCAP_LRCPC, ISAR1, 20, 1},
    {HWCAP_ILRCPC, ISAR1, 20, 2},   {HWCAP_SB, ISAR1, 36, 1},
    {HWCAP_DIT, PFR0, 48, 1},       {HWCAP_SSBS, PFR1, 4, 2},
    {HWCAP_USCAT, MMFR2, 32, 1},
};

static const feature_t features2[] = {
    {HWCAP2_RNG, ISAR0, 60, 1},   {HWCAP2_FLAGM2, ISAR0, 52, 2},
    {HWCAP2_DCPODP, ISAR1, 0, 2}, {HWCAP2_FRINT, ISAR1, 32, 1},
    {HWCAP2_BF16, ISAR1, 44, 1},  {HWCAP2_EBF16, ISAR1, 44, 2},
    {HWCAP2_DGH, ISAR1, 48, 1},   {HWCAP2_I8MM, ISAR1, 52, 1},
    {HWCAP2_RPRES, ISAR2, 4, 1},  {HWCAP2_WFXT, ISAR2, 0, 2},
    {HWCAP2_ECV, MMFR0, 60, 1},   {HWCAP2_AFP, MMFR1, 44, 1},
};

static const feature_t features_sve2[] = {
    {HWCAP2_SVE2, ZFR0, 0, 1},      {HWCAP2_SVEAES, ZFR0, 4, 1},
    {HWCAP2_SVEPMULL, ZFR0, 4, 2},  {HWCAP2_SVEBITPERM, ZFR0, 16, 1},
    {HWCAP2_SVEBF16, ZFR0, 20, 1},  {HWCAP2_SVE_EBF16, ZFR0, 20, 2},
    {HWCAP2_SVESHA3, ZFR0, 32, 1},  {HWCAP2_SVESM4, ZFR0, 40, 1},
    {HWCAP2_SVEI8MM, ZFR0, 44, 1},  {HWCAP2_SVEF32MM, ZFR0, 52, 1},
    {HWCAP2_SVEF64MM, ZFR0, 56, 1},
};

static uint64_t field(const hv_vm_t *vm, enum id_register reg, unsigned shift)
{
    return vm->id[reg] >> shift & 0xf;
}

static uint64_t collect(const hv_vm_t *vm, const feature_t *table, size_t n)
{
    uint64_t hwcap = 0;

    for (size_t i = 0; i < n; i++) {
        if (field(vm, table[i].reg, table[i].shift) >= table[i].least)
            hwcap |= table[i].hwcap;
    }
    return hwcap;
}

#define COLLECT(vm, table) \
    collect(vm, table, sizeof(table) / sizeof((table)[0]))

/* ID_AA64PFR0_EL1.FP and AdvSIMD are signed: -1 none, 1 half precision too. */
static uint64_t fp_hwcap(const hv_vm_t *vm)
{
    uint64_t fp = field(vm, PFR0, 16), simd = field(vm, PFR0, 20);
    uint64_t hwcap = 0;

    if (fp != 0xf)
        hwcap |= HWCAP_FP | (fp ? HWCAP_FPHP : 0);
    if (simd != 0xf)
        hwcap |= HWCAP_ASIMD | (simd ? HWCAP_ASIMDHP : 0);
    return hwcap;
}

static void read_id_registers(hv_vm_t *vm)
{
    static const uint8_t readable[] = {MIDR,  PFR0,  PFR1,  ZFR0,  DFR0, ISAR0,
                                       ISAR1, ISAR2, MMFR0, MMFR1, MMFR2};

    for (size_t i = 0; i < sizeof readable; i++) {
        unsigned crm = readable[i] >> 3, op2 = readable[i] & 7;

        /* One that the kernel does not know reads as zero for EL1 too. */
        if (kvm__get_reg(vm->vcpu_fd[0], ARM64_SYS_REG(3, 0, 0, crm, op2),
                         &vm->id[readable[i]]))
            vm->id[readable[i]] = 0;
    }
}

void kvm__read_hwcaps(hv_vm_t *vm)
{
    hv_caps_t *caps = &vm->caps;

    read_id_registers(vm);
    caps->hwcap = COLLECT(vm, features) | fp_hwcap(vm);
    caps->hwcap2 = COLLECT(vm, features2);
    if (caps->sve) {
        caps->hwcap |= HWCAP_SVE;
        caps->hwcap2 |= COLLECT(vm, features_sve2);
    }
    if (caps->pauth)
        caps->hwcap |= HWCAP_PACA | HWCAP_PACG;
    /* proc/idregs.c answers reads of ID registers; regs.c sets the event
     * stream up. */
    caps->hwcap |= HWCAP_CPUID | HWCAP_EVTSTRM;
    caps->hwcap &= getauxval(AT_HWCAP);
    caps->hwcap2 &= getauxval(AT_HWCAP2);
}

uint64_t hv_id_register(hv_vm_t *vm, unsigned crm, unsigned op2)
{
    return crm < 8 && op2 < 8 ? vm->id[crm << 3 | op2] : 0;
}
