/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EL1's way in and out, and nothing else.
 *
 * While the vCPU is at EL0, SP_EL1 points at its frame (abi/frame.h), so an
 * exception needs no scratch register to save the first pair; EL1's C stack
 * grows down from the same place. A vector saves all of EL0 into the frame and
 * rings the doorbell: a store to an IPA that is in no memory slot, which the
 * hypervisor reports to the host. When the store completes, the host has done
 * its part, and EL0 goes on with what the frame says then.
 *
 * mmap and munmap may be served before that, by map.c and unmap.c.
 *
 * Interrupts stay masked at EL1 (exception entry masks them; nothing unmasks).
 */
#include "abi/fast.h"
#include "abi/frame.h"
#include "abi/layout.h"

    .section .header, "a"
    .quad 0x316d696873666c65 /* SHIM_MAGIC: shim_header_t */
    .quad shim_entry
    .quad shim_vectors
    .quad shim_writable - SHIM_VA
    .quad shim_end - SHIM_VA

/* --- x2 to x19, which C may change or the way in uses, and x20 to x29; stp
 * saves, ldp loads */
    .macro caller_saved op, base
    \op x2, x3, [\base, #FRAME_X + 16]
    \op x4, x5, [\base, #FRAME_X + 32]
    \op x6, x7, [\base, #FRAME_X + 48]
    \op x8, x9, [\base, #FRAME_X + 64]
    \op x10, x11, [\base, #FRAME_X + 80]
    \op x12, x13, [\base, #FRAME_X + 96]
    \op x14, x15, [\base, #FRAME_X + 112]
    \op x16, x17, [\base, #FRAME_X + 128]
    \op x18, x19, [\base, #FRAME_X + 144]
    .endm
    .macro callee_saved op, base
    \op x20, x21, [\base, #FRAME_X + 160]
    \op x22, x23, [\base, #FRAME_X + 176]
    \op x24, x25, [\base, #FRAME_X + 192]
    \op x26, x27, [\base, #FRAME_X + 208]
    \op x28, x29, [\base, #FRAME_X + 224]
    .endm

/* --- exceptions that EL0 may cause: save and ring */
    .macro from_el0 exit
    .balign 128
    stp x0, x1, [sp, #FRAME_X]
    mov w0, #\exit
    b save
    .endm

/* The same, but mmap and munmap may be served here. ESR_EL1.EC, bits 31:26, is
 * 0x15 for an SVC; the call's number is w8. */
    .macro sync_from_el0
    .balign 128
    stp x0, x1, [sp, #FRAME_X]
    mrs x1, esr_el1
    ubfx x1, x1, #26, #6
    cmp x1, #0x15
    b.ne 1f
    cmp w8, #FAST_NR_MMAP
    b.eq fast
    cmp w8, #FAST_NR_MUNMAP
    b.eq fast
1:  mov w0, #FRAME_EXIT_SYNC
    b save
    .endm

/* --- everything else is a broken invariant; the host reports it */
    .macro unexpected vector
    .balign 128
    mrs x17, tpidr_el1 /* the frame; sp may be what is broken */
    mov w0, #\vector
    b panic
    .endm

    .section .vectors, "ax"
    .balign 2048
    .global shim_vectors
shim_vectors:
    unexpected 0 /* EL1 with SP_EL0 */
    unexpected 1
    unexpected 2
    unexpected 3
    unexpected 4 /* EL1: synchronous, IRQ, FIQ, SError */
    unexpected 5
    unexpected 6
    unexpected 7
    sync_from_el0 /* EL0, AArch64 */
    from_el0 FRAME_EXIT_IRQ
    unexpected 10
    unexpected 11
    unexpected 12 /* EL0, AArch32 */
    unexpected 13
    unexpected 14
    unexpected 15

    .balign 128
save:
    caller_saved stp, sp
save_rest:
    callee_saved stp, sp
    mrs x1, sp_el0
    stp x30, x1, [sp, #FRAME_X + 240]
    mrs x2, elr_el1
    mrs x3, spsr_el1
    stp x2, x3, [sp, #FRAME_ELR]
    mrs x4, esr_el1
    mrs x5, far_el1
    stp x4, x5, [sp, #FRAME_ESR]
    mrs x6, tpidr_el0
    str x6, [sp, #FRAME_TPIDR]

/* w0: why. The host reads the frame on this very PE after the exit, or after
 * the kernel has moved its thread, so that program order suffices here. */
ring:
    str w0, [sp, #FRAME_EXIT]
    ldr x1, doorbell
    str w0, [x1]
after_ring:
    ldr w1, [sp, #FRAME_FP_OP]
    ldr w2, [sp, #FRAME_TLB]
    orr w3, w1, w2
    cbnz w3, requests

restore:
    ldr x6, [sp, #FRAME_TPIDR]
    msr tpidr_el0, x6
    ldp x2, x3, [sp, #FRAME_ELR]
    msr elr_el1, x2
    msr spsr_el1, x3
    ldp x30, x1, [sp, #FRAME_X + 240]
    msr sp_el0, x1
    ldp x28, x29, [sp, #FRAME_X + 224]
    ldp x26, x27, [sp, #FRAME_X + 208]
    ldp x24, x25, [sp, #FRAME_X + 192]
    ldp x22, x23, [sp, #FRAME_X + 176]
    ldp x20, x21, [sp, #FRAME_X + 160]
    ldp x18, x19, [sp, #FRAME_X + 144]
    ldp x16, x17, [sp, #FRAME_X + 128]
    ldp x14, x15, [sp, #FRAME_X + 112]
    ldp x12, x13, [sp, #FRAME_X + 96]
    ldp x10, x11, [sp, #FRAME_X + 80]
    ldp x8, x9, [sp, #FRAME_X + 64]
    ldp x6, x7, [sp, #FRAME_X + 48]
    ldp x4, x5, [sp, #FRAME_X + 32]
    ldp x2, x3, [sp, #FRAME_X + 16]
    ldp x0, x1, [sp, #FRAME_X]
    eret

/*
 * mmap or munmap, w8. What C may change of EL0's registers is saved, the rest
 * stays where it is. x0 and x1 are in the frame. The area is aligned to its
 * size, with the control page at its bottom.
 */
fast:
    mov x1, sp
    and x1, x1, #~(VCPU_AREA_SIZE - 1)
    ldr w1, [x1, #FAST_ON]
    mov w0, #FRAME_EXIT_SYNC
    cbz w1, save
    caller_saved stp, sp
    str x30, [sp, #FRAME_X + 240]
    mov x0, sp
    cmp w8, #FAST_NR_MMAP
    b.ne 1f
    bl shim_fast_mmap
    b 2f
1:  bl shim_fast_munmap
2:  ldr x30, [sp, #FRAME_X + 240]
    tbnz x0, #63, 3f
    ldp x16, x17, [sp, #FRAME_X + 128]
    ldr x18, [sp, #FRAME_X + 144]
    ldp x14, x15, [sp, #FRAME_X + 112]
    ldp x12, x13, [sp, #FRAME_X + 96]
    ldp x10, x11, [sp, #FRAME_X + 80]
    ldp x8, x9, [sp, #FRAME_X + 64]
    ldp x6, x7, [sp, #FRAME_X + 48]
    ldp x4, x5, [sp, #FRAME_X + 32]
    ldp x2, x3, [sp, #FRAME_X + 16]
    ldr x1, [sp, #FRAME_X + 8]
    eret
3:  mov w0, #FRAME_EXIT_SYNC
    b save_rest

/* A new vCPU, sp at its frame: say so. */
    .global shim_entry
shim_entry:
    mov x0, sp
    bl shim_ready
    add x0, sp, #FRAME_FP
    bl fp_ready
    mov w0, #FRAME_EXIT_READY
    b ring

/* w1: fp_op, w2: kind of the invalidation request; EL0's registers are in the
 * frame. What rings again does so when all has been done. */
requests:
    mov w19, #0
    cbz w1, 1f
    str wzr, [sp, #FRAME_FP_OP]
    add x0, sp, #FRAME_FP
    tbnz w1, #2, 4f
    tbnz w1, #0, 2f
    bl fp_load
    b 1f
4:  mov x0, sp
    bl shim_ready
    mov w19, #FRAME_EXIT_READY
    b 1f
2:  bl fp_save
    mov w19, #FRAME_EXIT_FP_SAVED
1:  ldr w2, [sp, #FRAME_TLB]
    cbz w2, 3f
    mov x0, sp
    bl shim_tlb_request
    cbnz w0, ring
3:  mov w0, w19
    cbnz w0, ring
    b restore

/* w0: the vector's number, x17: the frame. EL1's registers go into it. */
panic:
    stp x2, x3, [x17, #FRAME_X + 16]
    stp x4, x5, [x17, #FRAME_X + 32]
    stp x6, x7, [x17, #FRAME_X + 48]
    stp x8, x9, [x17, #FRAME_X + 64]
    stp x10, x11, [x17, #FRAME_X + 80]
    stp x12, x13, [x17, #FRAME_X + 96]
    stp x14, x15, [x17, #FRAME_X + 112]
    stp x18, x19, [x17, #FRAME_X + 144]
    callee_saved stp, x17
    mov x2, sp
    stp x30, x2, [x17, #FRAME_X + 240]
    mrs x2, elr_el1
    mrs x3, spsr_el1
    stp x2, x3, [x17, #FRAME_ELR]
    mrs x2, esr_el1
    mrs x3, far_el1
    stp x2, x3, [x17, #FRAME_ESR]
    stp x0, x1, [x17, #FRAME_X]
    mov w0, #FRAME_EXIT_PANIC
    str w0, [x17, #FRAME_EXIT]
    ldr x1, doorbell
    str w0, [x1]
1:  wfi
    b 1b

    .balign 8
doorbell:
    .quad SHIM_DOORBELL_VA
