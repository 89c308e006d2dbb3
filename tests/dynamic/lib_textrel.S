/* SPDX-License-Identifier: Apache-2.0 */
/* flags: -nostdlib -Wl,-z,notext */
/* An address in the text, which the linker has to write there: DT_TEXTREL. */
    .text
    .global textrel_value
    .type textrel_value, %function
textrel_value:
    adr     x0, 1f
    ldr     x0, [x0]
    ldr     w0, [x0]
    ret
    .balign 8
1:  .quad   textrel_data
    .size textrel_value, . - textrel_value

    .data
    .global textrel_data
    .type textrel_data, %object
textrel_data:
    .word   4711
    .size textrel_data, 4
    .section .note.GNU-stack, "", %progbits
