/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A system call of the guest's that a signal must not slip past.
 *
 * int64_t blocking_svc(const _Atomic uint32_t *pending, uint64_t nr,
 *                      uint64_t a0, ... a5);
 *
 * Between the look at *pending and the call a signal may arrive, and the call
 * would block although there is a signal to deliver. The handler therefore
 * moves a program counter in [blocking_begin, blocking_end) on to
 * blocking_interrupted. The kernel leaves it at the svc, too, when it would
 * restart the call after the handler: nothing has been done yet in either case,
 * and the result says that the guest is to execute its own svc again.
 */
    .text
    .global blocking_svc, blocking_begin, blocking_end, blocking_interrupted
    .type blocking_svc, %function
    .balign 16
blocking_svc:
    mov x9, x0
    mov x8, x1
    mov x0, x2
    mov x1, x3
    mov x2, x4
    mov x3, x5
    mov x4, x6
    mov x5, x7
blocking_begin:
    ldr w9, [x9]
    cbnz w9, blocking_interrupted
    svc #0
blocking_end:
    ret
blocking_interrupted:
    mov x0, #-512 /* CALL_RESTART */
    ret
    .size blocking_svc, . - blocking_svc
    .section .note.GNU-stack, "", %progbits
