/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stage-1 descriptors of EL0's address space (VMSAv8-64, 4 KiB granule, four
 * levels; Arm ARM DDI 0487, D8.3) and the states that invalid ones carry.
 *
 * Page-table entries are the truth about pages. A valid level-3 descriptor
 * says that the page has been materialised; its access permissions are the
 * VMA's. A page of a PROT_NONE VMA that has contents stays valid with no
 * access from EL0 (AP = 00). No block descriptors, no contiguous bit; AF is
 * always set.
 *
 * An invalid descriptor (bit 0 clear) holds
 *   owner    host, or EL1 (a page that EL1 may materialise or retire)
 *   backing  nothing known / known zero / may be dirty
 *   avail    available, retired (unmapped by EL1, not yet committed by the
 *            host), busy (a materialisation has claimed it)
 * A level-2 descriptor that EL1 has retired keeps the table's address, and the
 * entries of the table stay as they were; see abi/fast.h.
 * All zero says "host, nothing known, available": then the dirty map
 * (mm/dirty.h) decides whether the page may be non-zero. A descriptor with bit
 * 0 clear and bit 1 set is EVICTED: every other bit is that of the valid
 * descriptor it was, the contents are live, but its window lost its IPA range.
 */
#ifndef ELFUSE_ABI_PTE_H
#define ELFUSE_ABI_PTE_H

#include <stdint.h>

typedef uint64_t pte_t;

#define PTE_VALID       (1UL << 0)
#define PTE_TYPE        (1UL << 1) /* table at levels 0-2, page at level 3 */
#define PTE_ATTR_NORMAL (0UL << 2) /* MAIR index 0: normal, write-back */
#define PTE_AP_EL0      (1UL << 6) /* EL0 may access */
#define PTE_AP_RO       (1UL << 7)
#define PTE_SH_INNER    (3UL << 8)
#define PTE_AF          (1UL << 10)
#define PTE_NG          (1UL << 11)
#define PTE_ADDR        0x0000fffffffff000UL
#define PTE_PXN         (1UL << 53)
#define PTE_UXN         (1UL << 54)

/* Software bits of a valid descriptor. */
#define PTE_SW_EL1    (1UL << 55) /* EL1 may retire this page */
#define PTE_SW_OBJECT (1UL << 56) /* backing is the object area, not H + v */

/* Fields of an invalid descriptor (bits 0 and 1 clear). */
#define PTE_INV_EL1     (1UL << 2) /* owner is EL1 */
#define PTE_INV_ZERO    (1UL << 3) /* backing is known to be zero */
#define PTE_INV_DIRTY   (1UL << 4) /* backing may be non-zero */
#define PTE_INV_RETIRED (1UL << 5)
#define PTE_INV_BUSY    (1UL << 6)

/* What EL1 writes over a page that it retires, never "zero"; and over the
 * attributes of a table descriptor. */
#define PTE_RETIRED (PTE_INV_EL1 | PTE_INV_DIRTY | PTE_INV_RETIRED)

#define PTE_TABLE_DESC (PTE_VALID | PTE_TYPE)

static inline int pte_valid(pte_t pte)
{
    return (pte & PTE_VALID) != 0;
}

static inline int pte_evicted(pte_t pte)
{
    return (pte & (PTE_VALID | PTE_TYPE)) == PTE_TYPE;
}

/* Level 2: a table that EL1 has unlinked, and the host not taken back yet. */
static inline int pte_retired_table(pte_t pte)
{
    return !(pte & PTE_VALID) && (pte & PTE_INV_RETIRED);
}

/* The page has contents that must be kept: valid, or evicted. */
static inline int pte_present(pte_t pte)
{
    return (pte & (PTE_VALID | PTE_TYPE)) != 0;
}

#endif
