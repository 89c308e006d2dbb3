/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/idregs.h"

#include <stdint.h>

/* MRS <Xt>, S3_0_C0_C<m>_<op2>: Rt in 4:0, op2 in 7:5, CRm in 11:8. */
#define MRS_ID_MASK  0xfffff000U
#define MRS_ID_VALUE 0xd5380000U

/*
 * What Linux shows of each register: `visible` as the vCPU has it, for the rest
 * the fixed value that says least (Documentation/arm64/cpu-feature-registers).
 * BTI and MTE are not offered (hv/kvm/hwcap.c). Others read as zero.
 */
static const struct {
    uint8_t crm, op2;
    uint64_t visible, fixed;
} shown[] = {
    {0, 0, 0xffffffff, 0},                     /* MIDR */
    {0, 5, 0, 1UL << 31},                      /* MPIDR */
    {4, 0, 0x000f000f00ff0000, 0x11},          /* PFR0: DIT SVE AdvSIMD FP */
    {4, 1, 0x00000000000000f0, 0},             /* PFR1: SSBS */
    {4, 4, 0x0ff0ff0f00ff00ff, 0},             /* ZFR0 */
    {5, 0, 0, 0x6},                            /* DFR0: Armv8 debug */
    {6, 0, 0xf0fffffff0fffff0, 0},             /* ISAR0: not TLB, TME */
    {6, 1, 0x00ffffffffffffff, 0},             /* ISAR1: not LS64, XS */
    {6, 2, 0x000000000000ffff, 0},             /* ISAR2: PAuth RPRES WFxT */
    {7, 0, 0xf000000000000000, 0x0ff000000UL}, /* MMFR0: ECV */
    {7, 1, 0x0000f00000000000, 0},             /* MMFR1: AFP */
    {7, 2, 0x0000000f00000000, 0},             /* MMFR2: AT */
};

/* False: no such register for EL0. */
static bool shown_value(hv_vm_t *vm, unsigned crm, unsigned op2,
                        uint64_t *value)
{
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
        if (shown[i].crm == crm && shown[i].op2 == op2) {
            *value = (hv_id_register(vm, crm, op2) & shown[i].visible) |
                     shown[i].fixed;
            return true;
        }
    }
    *value = 0;
    return (crm == 0 && op2 == 6) || (crm >= 2 && crm <= 7);
}

bool idregs_emulate(thread_t *thread)
{
    vcpu_frame_t *frame = thread->frame;
    uint32_t insn;
    uint64_t value;

    if (copy_from_guest(thread->proc->mm, &thread->cpu, &insn, frame->elr,
                        sizeof insn))
        return false;
    if ((insn & MRS_ID_MASK) != MRS_ID_VALUE ||
        !shown_value(thread->proc->vm, insn >> 8 & 15, insn >> 5 & 7, &value))
        return false;
    if ((insn & 31) != 31)
        frame->x[insn & 31] = value;
    frame->elr += 4;
    return true;
}
