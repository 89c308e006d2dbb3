/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saving and loading the floating-point registers of EL0 (abi/frame.h,
 * fp_state_t; its address in x0). Only x1 and x2 are used up.
 */
#include "abi/frame.h"

    .arch armv8-a+sve
    .text

/* How long this vCPU's vectors are. ID_AA64PFR0_EL1.SVE, bits 35:32; KVM shows
 * 0 where the guest may not use it. */
    .global fp_ready
fp_ready:
    mrs x1, id_aa64pfr0_el1
    ubfx x1, x1, #32, #4
    cbz x1, 1f
    rdvl x1, #1
1:  str x1, [x0, #FP_VL]
    ret

    .macro each_pair op
    \op q0, q1, [x2]
    \op q2, q3, [x2, #32]
    \op q4, q5, [x2, #64]
    \op q6, q7, [x2, #96]
    \op q8, q9, [x2, #128]
    \op q10, q11, [x2, #160]
    \op q12, q13, [x2, #192]
    \op q14, q15, [x2, #224]
    \op q16, q17, [x2, #256]
    \op q18, q19, [x2, #288]
    \op q20, q21, [x2, #320]
    \op q22, q23, [x2, #352]
    \op q24, q25, [x2, #384]
    \op q26, q27, [x2, #416]
    \op q28, q29, [x2, #448]
    \op q30, q31, [x2, #480]
    .endm

    .macro each_vector op
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
    \op z\n, [x2, #\n, mul vl]
    .endr
    .endm

    .macro each_predicate op
    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
    \op p\n, [x2, #\n, mul vl]
    .endr
    .endm

    .global fp_save
fp_save:
    mrs x1, fpsr
    mrs x2, fpcr
    stp w1, w2, [x0]
    ldr x1, [x0, #FP_VL]
    add x2, x0, #FP_Z
    cbnz x1, 1f
    each_pair stp
    ret
1:  each_vector str
    add x2, x0, #FP_P
    each_predicate str
    rdffr p0.b
    add x1, x0, #FP_FFR
    str p0, [x1]
    ldr p0, [x2]
    ret

    .global fp_load
fp_load:
    ldp w1, w2, [x0]
    msr fpsr, x1
    msr fpcr, x2
    ldr x1, [x0, #FP_VL]
    add x2, x0, #FP_Z
    cbnz x1, 1f
    each_pair ldp
    ret
1:  each_vector ldr
    add x2, x0, #FP_FFR
    ldr p0, [x2]
    wrffr p0.b
    add x2, x0, #FP_P
    each_predicate ldr
    ret
