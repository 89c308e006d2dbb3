/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the shim call of each other. All run at EL1 with
 * interrupts masked, on the stack of the vCPU's area. */
#ifndef ELFUSE_SHIM_SHIM_H
#define ELFUSE_SHIM_SHIM_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/fast.h"

/* Called by vectors.S when a vCPU starts, and for FP_COUNTER: fills the READY_
 * values of x[]. */
void shim_ready(vcpu_frame_t *frame);

/*
 * Carry out the request in the frame (abi/tlb.h) and take it back. Returns the
 * FRAME_EXIT_ code to ring with, or 0 to go on to EL0.
 */
uint32_t shim_tlb_request(vcpu_frame_t *frame);

/*
 * mmap and munmap with the arguments in x[0..5] of the frame, of which only x0
 * to x19 and x30 are valid: the result of the call, or FAST_FALLBACK with
 * nothing changed.
 */
int64_t shim_fast_mmap(vcpu_frame_t *frame);
int64_t shim_fast_munmap(vcpu_frame_t *frame);

/*
 * Announce that this vCPU works on these blocks. False: the host has claimed
 * some of them, and nothing is announced. fast_leave() is the end of it.
 */
static inline void fast_leave(fast_control_t *control)
{
    /* Release: pairs with the claimant's load, who then sees all we did. */
    __atomic_store_n(&control->active, 0, __ATOMIC_RELEASE);
}

static inline bool fast_enter(fast_control_t *control,
                              const fast_shared_t *shared, uint64_t range)
{
    fast_gate_store(&control->active, range);
    if (!fast_overlap(fast_gate_load(&shared->claim), range) ||
        FAST_BREAK == BREAK_GATE)
        return true;
    fast_leave(control);
    return false;
}

/* Blocks of the zone that [offset, offset + size) lies in. */
static inline uint64_t fast_blocks_of(uint64_t offset, uint64_t size)
{
    return fast_range(offset >> BLOCK_SHIFT,
                      (offset + size + BLOCK_SIZE - 1) >> BLOCK_SHIFT);
}

/* Relaxed: a statistic, written by one side. */
static inline void fast_count(fast_control_t *control, enum fast_count what)
{
    __atomic_store_n(&control->count[what], control->count[what] + 1,
                     __ATOMIC_RELAXED);
}

static inline int64_t fast_miss(fast_control_t *control, enum fast_count why)
{
    fast_count(control, why);
    return FAST_FALLBACK;
}

/* Invalidate the translations of so many pages; `leaf`: no table of them was
 * unlinked. Barriers are the caller's. */
void tlb_invalidate(uint64_t va, uint64_t pages, bool leaf);

/* This CPU has the range forms of TLBI (noted once, by shim_ready). */
void tlb_note_features(uint64_t isar0);

#endif
