/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the shim call of each other. All run at EL1 with
 * interrupts masked, on the stack of the vCPU's area. */
#ifndef ELFUSE_SHIM_SHIM_H
#define ELFUSE_SHIM_SHIM_H

#include <stdint.h>

#include "abi/frame.h"

/* Called by vectors.S when a vCPU starts, and for FP_COUNTER: fills the READY_
 * values of x[]. */
void shim_ready(vcpu_frame_t *frame);

/*
 * Carry out the request in the frame (abi/tlb.h) and take it back. Returns the
 * FRAME_EXIT_ code to ring with, or 0 to go on to EL0.
 */
uint32_t shim_tlb_request(vcpu_frame_t *frame);

/* This CPU has the range forms of TLBI (noted once, by shim_ready). */
void tlb_note_features(uint64_t isar0);

#endif
