/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Putting the shim into a VM: its 32 MiB of memory (abi/layout.h), with the
 * image, EL1's translation tables and an area for each vCPU.
 */
#ifndef ELFUSE_PROC_SHIM_H
#define ELFUSE_PROC_SHIM_H

#include <stddef.h>
#include <stdint.h>

#include "abi/fast.h"
#include "hv/hv.h"

typedef struct shim {
    uint8_t *memory;         /* SHIM_SIZE bytes */
    uint64_t ttbr1;          /* IPA of EL1's top-level table */
    uint64_t entry, vectors; /* EL1 virtual */
    size_t tables_used;      /* bytes of the tables' part */
} shim_t;

/*
 * Load the shim and give it to the VM. [pool_ipa, pool_ipa + pool_size) is the
 * page-table pool, aligned to 2 MiB. -errno; -ENOEXEC: the image in this binary
 * is not a shim.
 */
int shim_load(hv_vm_t *vm, uint64_t pool_ipa, uint64_t pool_size, shim_t *shim);

/* Give the loaded shim to another VM (fork). -errno. */
int shim_show(hv_vm_t *vm, const shim_t *shim);

/* What all vCPUs share for mmap and munmap. */
fast_shared_t *shim_fast(const shim_t *shim);
/* The frame of a vCPU: here, and as EL1 sees it. */
vcpu_frame_t *shim_frame(const shim_t *shim, unsigned vcpu);
uint64_t shim_frame_va(unsigned vcpu);

#endif
