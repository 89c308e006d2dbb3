/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a signal handler returns to. Unwinders know the frame by this code and
 * by the unwind entry: the frame record (x29, x30) that the kernel pushes. They
 * look up the address before the return address, which for a handler is the one
 * before the symbol: hence the nop inside the entry.
 */
    .section .sigreturn, "ax"
    .balign 16
    .cfi_startproc
    .cfi_signal_frame
    .cfi_def_cfa x29, 0
    .cfi_offset x29, 0
    .cfi_offset x30, 8
    nop
    .globl __kernel_rt_sigreturn
    .type __kernel_rt_sigreturn, %function
__kernel_rt_sigreturn:
    mov x8, #139
    svc #0
    .cfi_endproc
    .size __kernel_rt_sigreturn, . - __kernel_rt_sigreturn

    .section .note.elfuse, "a", %note
    .balign 4
    .long 2f - 1f, 4f - 3f, 0
1:  .asciz "elfuse"
2:  .balign 4
3:  .asciz "vDSO"
4:  .balign 4

    .section .note.GNU-stack, "", %progbits
