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

#include <stdalign.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/layout.h"
#include "abi/tlb.h"

/* Why the shim rang; the order is that of the vectors. */
enum frame_exit {
    FRAME_EXIT_NONE = 0,
    FRAME_EXIT_SYNC = 1,     /* synchronous exception from EL0: see esr */
    FRAME_EXIT_IRQ = 2,      /* the kick: virtual interrupt taken at EL0 */
    FRAME_EXIT_TLB_DONE = 3, /* an at-once request has been carried out */
    FRAME_EXIT_PANIC = 4,    /* exception at EL1, or one nobody expects: esr,
                                elr, far, spsr and sp_el0 (SP at EL1) are those
                                of the exception, x[0] its vector's number */
    FRAME_EXIT_READY = 5,    /* first exit of a vCPU: frame_ready_t in x[] */
};

typedef struct vcpu_frame {
    uint64_t x[31];
    uint64_t sp_el0;
    uint64_t elr;  /* EL0 program counter */
    uint64_t spsr; /* EL0 PSTATE */
    uint64_t esr;  /* syndrome of the exit, as ESR_EL1 */
    uint64_t far;  /* fault address, as FAR_EL1, tag included */
    uint64_t tpidr_el0;
    uint32_t exit; /* enum frame_exit */
    uint32_t vcpu; /* index of this vCPU */
    tlb_request_t tlb;
} vcpu_frame_t;

/*
 * What a vCPU says about itself in x[] with FRAME_EXIT_READY. The three counter
 * reads are in this order. With x[READY_AGAIN] not zero when the host runs the
 * vCPU on, it reads anew and rings once more; otherwise it goes to EL0 with
 * what the frame says.
 */
enum frame_ready {
    READY_CNTPCT_BEFORE = 0,
    READY_CNTVCT = 1,
    READY_CNTPCT_AFTER = 2,
    READY_ISAR0 = 3, /* ID_AA64ISAR0_EL1 */
    READY_AGAIN = 4,
};

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

#endif
