/* SPDX-License-Identifier: Apache-2.0 */
/* The shim and the vDSO as bytes in elfuse's read-only data. */
    .section .rodata
    .balign 4096
    .global shim_image
shim_image:
    .incbin "shim/shim.bin"
shim_image_end:
    .balign 8
    .global shim_image_size
shim_image_size:
    .quad shim_image_end - shim_image
    .balign 4096
    .global vdso_image, vdso_image_end
vdso_image:
    .incbin "vdso/vdso.so"
    .balign 4096
vdso_image_end:
    .section .note.GNU-stack, "", %progbits
