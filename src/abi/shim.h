/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The head of the shim's image, for whoever loads it. Everything before
 * writable_offset is mapped read-only and executable for EL1, the rest up to
 * image_size writable and not executable.
 */
#ifndef ELFUSE_ABI_SHIM_H
#define ELFUSE_ABI_SHIM_H

#include <stdint.h>

#define SHIM_MAGIC 0x316d696873666c65UL /* "elfshim1" */

typedef struct shim_header {
    uint64_t magic;
    uint64_t entry;           /* EL1 VA: where a vCPU starts */
    uint64_t vectors;         /* EL1 VA: for VBAR_EL1 */
    uint64_t writable_offset; /* bytes, page aligned */
    uint64_t image_size;      /* bytes, .bss included, page aligned */
} shim_header_t;

#endif
