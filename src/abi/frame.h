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
#define FRAME_TLB    304

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
 * in this order, and ID_AA64ISAR0_EL1. With x[READY_AGAIN] not zero when the
 * host runs the vCPU on, it reads anew and rings once more; otherwise it goes
 * to EL0 with what the frame says.
 */
#define FRAME_EXIT_READY    5
#define READY_CNTPCT_BEFORE 0
#define READY_CNTVCT        1
#define READY_CNTPCT_AFTER  2
#define READY_ISAR0         3
#define READY_AGAIN         4

#ifndef __ASSEMBLER__

#include <stddef.h>
#include <stdint.h>

#include "abi/tlb.h"

typedef struct vcpu_frame {
    _Alignas(64) uint64_t x[31];
    uint64_t sp_el0;
    uint64_t elr;  /* EL0 program counter */
    uint64_t spsr; /* EL0 PSTATE */
    uint64_t esr;  /* syndrome of the exit, as ESR_EL1 */
    uint64_t far;  /* fault address, as FAR_EL1, tag included */
    uint64_t tpidr_el0;
    uint32_t exit; /* FRAME_EXIT_* */
    uint32_t vcpu; /* index of this vCPU */
    tlb_request_t tlb;
} vcpu_frame_t;

_Static_assert(offsetof(vcpu_frame_t, sp_el0) == FRAME_SP_EL0, "frame ABI");
_Static_assert(offsetof(vcpu_frame_t, elr) == FRAME_ELR, "frame ABI");
_Static_assert(offsetof(vcpu_frame_t, spsr) == FRAME_SPSR, "frame ABI");
_Static_assert(offsetof(vcpu_frame_t, esr) == FRAME_ESR, "frame ABI");
_Static_assert(offsetof(vcpu_frame_t, far) == FRAME_FAR, "frame ABI");
_Static_assert(offsetof(vcpu_frame_t, tpidr_el0) == FRAME_TPIDR, "frame ABI");
_Static_assert(offsetof(vcpu_frame_t, exit) == FRAME_EXIT, "frame ABI");
_Static_assert(offsetof(vcpu_frame_t, tlb) == FRAME_TLB, "frame ABI");
_Static_assert(sizeof(vcpu_frame_t) % 16 == 0, "EL1 stack alignment");
_Static_assert(sizeof(vcpu_frame_t) <= 0x1000, "frame fits a page");

/* Offset of the frame in its vCPU area. */
#define FRAME_OFF (VCPU_AREA_SIZE - sizeof(vcpu_frame_t))

#endif /* __ASSEMBLER__ */

#endif
