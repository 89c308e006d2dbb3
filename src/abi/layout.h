/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where things are in the guest's physical (IPA) space and in EL1's half of
 * the virtual address space. Seen by the shim, the host and the hypervisor
 * back end alike; nothing else may invent an address.
 *
 *   IPA, b bits                           EL1 virtual (TTBR1, T1SZ = 16)
 *   0x0010_0000  doorbell, no memory      SHIM_DOORBELL_VA
 *   0x0200_0000  shim: image, tables,     SHIM_VA, SHIM_AREAS_VA,
 *                vCPU areas (32 MiB)      SHIM_FAST_VA
 *   2^(b-6)      page-table pool          SHIM_POOL_VA
 *   2^(b-5) ..   windows on guest memory  not mapped
 *
 * The shim reaches the page tables of EL0 through SHIM_POOL_VA, but no page of
 * the guest's own memory.
 */
#ifndef ELFUSE_ABI_LAYOUT_H
#define ELFUSE_ABI_LAYOUT_H

/* The assembler knows no suffixes. */
#ifdef __ASSEMBLER__
#define ABI_UL(x) x
#else
#define ABI_UL(x) x##UL
#endif

#define GUEST_PAGE_SHIFT 12
#define GUEST_PAGE_SIZE  ABI_UL(0x1000)
#define GUEST_PAGE_MASK  (~(GUEST_PAGE_SIZE - 1))
/* What one level-3 table maps. */
#define BLOCK_SHIFT 21
#define BLOCK_SIZE  ABI_UL(0x200000)
#define BLOCK_PAGES ABI_UL(512)

#define IPA_BITS_MIN 36U
#define IPA_BITS_MAX 48U

#define IPA_DOORBELL ABI_UL(0x00100000)
#define IPA_SHIM     ABI_UL(0x02000000)
#define SHIM_SIZE    ABI_UL(0x02000000)

#define SHIM_VA          ABI_UL(0xffff800000000000)
#define SHIM_AREAS_VA    ABI_UL(0xffff800010000000)
#define SHIM_DOORBELL_VA ABI_UL(0xffff800020000000)
#define SHIM_FAST_VA     ABI_UL(0xffff800030000000)
#define SHIM_POOL_VA     ABI_UL(0xffff808000000000)

/* Offsets in the shim's 32 MiB. */
#define SHIM_IMAGE_OFF  ABI_UL(0x00000000)
#define SHIM_IMAGE_MAX  ABI_UL(0x00100000)
#define SHIM_TABLES_OFF ABI_UL(0x00100000)
#define SHIM_TABLES_MAX ABI_UL(0x00700000)
#define SHIM_AREAS_OFF  ABI_UL(0x00800000)
#define SHIM_FAST_OFF   ABI_UL(0x01800000) /* abi/fast.h: shared by all */
#define SHIM_FAST_SIZE  ABI_UL(0x00100000)

/*
 * One area for each vCPU, aligned to its size: three pages of abi/fast.h, a
 * guard page that EL1 does not map, then EL1's stack, then at its top the frame
 * (abi/frame.h). SP_EL1 points at the frame whenever the vCPU is at EL0.
 */
#define VCPU_AREA_SIZE  ABI_UL(0x8000)
#define VCPU_AREA_GUARD ABI_UL(0x3000)
#define VCPU_MAX        512U

#endif
