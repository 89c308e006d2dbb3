/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vCPU frame: EL0's registers as memory. The shim saves into it on the
 * way out and restores from it on the way in, so the host reads and writes
 * guest registers with plain loads and stores and the ABI is the same for
 * every hypervisor. It is valid, for the host, from a doorbell until the vCPU
 * is run again.
 */
#ifndef ELFUSE_ABI_FRAME_H
#define ELFUSE_ABI_FRAME_H

#include "abi/layout.h"

/* vectors.S uses these numbers. */
#define FRAME_X      0
#define FRAME_SP_EL0 248
#define FRAME_ELR    256
#define FRAME_SPSR   264
#define FRAME_ESR    272
#define FRAME_FAR    280
#define FRAME_TPIDR  288
#define FRAME_EXIT   296
#define FRAME_FP_OP  304
#define FRAME_TLB    312
#define FRAME_FP     848

/* Why the shim rang: vcpu_frame_t.exit. */
#define FRAME_EXIT_NONE     0
#define FRAME_EXIT_SYNC     1 /* synchronous exception from EL0: see esr */
#define FRAME_EXIT_IRQ      2 /* the kick: virtual interrupt taken at EL0 */
#define FRAME_EXIT_TLB_DONE 3 /* an at-once request has been carried out */
/* An exception at EL1, or one that nobody expects: esr, elr, far, spsr and
 * sp_el0 (here EL1's stack pointer) describe it, x[0] is its vector's number,
 * x[17] is the frame's own address. */
#define FRAME_EXIT_PANIC 4
/*
 * First exit of a vCPU, which says about itself in x[]: three reads of counters
 * in this order, and ID_AA64ISAR0_EL1. FP_COUNTER asks for the same again.
 */
#define FRAME_EXIT_READY    5
#define READY_CNTPCT_BEFORE 0
#define READY_CNTVCT        1
#define READY_CNTPCT_AFTER  2
#define READY_ISAR0         3
/* fp_op was FP_SAVE: frame.fp is valid. */
#define FRAME_EXIT_FP_SAVED 6

/* vcpu_frame_t.fp_op, for the shim to do when it is run on. Zero: nothing. */
#define FP_SAVE    1 /* registers to frame.fp, then ring */
#define FP_LOAD    2 /* registers from frame.fp, then on to EL0 */
#define FP_COUNTER 4 /* FRAME_EXIT_READY once more: x[] is overwritten */

/* In fp_state_t. */
#define FP_VL   8
#define FP_Z    16
#define FP_P    (FP_Z + 32 * FP_VL_MAX)
#define FP_FFR  (FP_P + 16 * FP_VL_MAX / 8)
#define FP_SIZE (FP_FFR + FP_VL_MAX / 8)
/* Bytes: ZCR_EL1 allows no more (hv). */
#define FP_VL_MAX 64

#ifndef __ASSEMBLER__

#include <stddef.h>
#include <stdint.h>

#include "abi/tlb.h"

/*
 * The floating-point registers of EL0, saved and loaded by the shim on request
 * only. They are the V registers when vl is 0, packed; else the Z, P and FFR
 * registers, each array packed by the vector length vl in bytes (as `str z<n>,
 * [x0, #n, mul vl]` lays them out).
 */
typedef struct fp_state {
    uint32_t fpsr, fpcr;
    uint64_t vl; /* set when the vCPU starts; 0: it has no SVE */
    uint8_t z[32 * FP_VL_MAX];
    uint8_t p[16 * FP_VL_MAX / 8];
    uint8_t ffr[FP_VL_MAX / 8];
} fp_state_t;

typedef struct vcpu_frame {
    _Alignas(64) uint64_t x[31];
    uint64_t sp_el0;
    uint64_t elr;  /* EL0 program counter */
    uint64_t spsr; /* EL0 PSTATE */
    uint64_t esr;  /* syndrome of the exit, as ESR_EL1 */
    uint64_t far;  /* fault address, as FAR_EL1, tag included */
    uint64_t tpidr_el0;
    uint32_t exit;  /* FRAME_EXIT_* */
    uint32_t vcpu;  /* index of this vCPU */
    uint32_t fp_op; /* FP_SAVE, FP_LOAD or FP_COUNTER */
    uint32_t reserved;
    tlb_request_t tlb;
    _Alignas(16) fp_state_t fp;
} vcpu_frame_t;

_Static_assert(offsetof(vcpu_frame_t, sp_el0) == FRAME_SP_EL0, "frame ABI");
_Static_assert(offsetof(vcpu_frame_t, elr) == FRAME_ELR, "frame ABI");
_Static_assert(offsetof(vcpu_frame_t, spsr) == FRAME_SPSR, "frame ABI");
_Static_assert(offsetof(vcpu_frame_t, esr) == FRAME_ESR, "frame ABI");
_Static_assert(offsetof(vcpu_frame_t, far) == FRAME_FAR, "frame ABI");
_Static_assert(offsetof(vcpu_frame_t, tpidr_el0) == FRAME_TPIDR, "frame ABI");
_Static_assert(offsetof(vcpu_frame_t, exit) == FRAME_EXIT, "frame ABI");
_Static_assert(offsetof(vcpu_frame_t, fp_op) == FRAME_FP_OP, "frame ABI");
_Static_assert(offsetof(vcpu_frame_t, tlb) == FRAME_TLB, "frame ABI");
_Static_assert(offsetof(vcpu_frame_t, fp) == FRAME_FP, "frame ABI");
_Static_assert(offsetof(fp_state_t, vl) == FP_VL, "frame ABI");
_Static_assert(offsetof(fp_state_t, z) == FP_Z, "frame ABI");
_Static_assert(offsetof(fp_state_t, p) == FP_P, "frame ABI");
_Static_assert(offsetof(fp_state_t, ffr) == FP_FFR, "frame ABI");
_Static_assert(sizeof(vcpu_frame_t) % 16 == 0, "EL1 stack alignment");
_Static_assert(sizeof(vcpu_frame_t) <= 0x1000, "frame fits a page");

/* Offset of the frame in its vCPU area. */
#define FRAME_OFF (VCPU_AREA_SIZE - sizeof(vcpu_frame_t))

#endif /* __ASSEMBLER__ */

#endif
