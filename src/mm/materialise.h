/* SPDX-License-Identifier: Apache-2.0 */
/*
 * First touch: from a VMA that is only recorded to pages that are valid.
 *
 * For private anonymous memory: backing that may be dirty is zeroed, clean
 * backing is not touched (the host commits it at the guest's own write), the
 * dirty map's bit is set before a descriptor becomes valid. For object VMAs the
 * descriptor points at the object's host page, through its window.
 *
 * mm->lock is held.
 */
#ifndef ELFUSE_MM_MATERIALISE_H
#define ELFUSE_MM_MATERIALISE_H

#include <stdint.h>

#include "abi/pte.h"

struct mm;
struct mm_cpu;
struct vma;

/*
 * A touch of addr, inside vma and allowed by it: make that page valid, and
 * ahead of it as many as the policy says (see docs/memory.md), never outside
 * the VMA. Returns 0, or -ENOMEM when there is no memory for a table or no IPA
 * window left.
 */
int materialise_fault(struct mm *mm, struct mm_cpu *cpu, struct vma *vma,
                      uint64_t addr);
/* Where materialise_fault() for addr may go: the range to claim before. */
void materialise_reach(const struct mm_cpu *cpu, uint64_t addr, uint64_t *start,
                       uint64_t *end);
/* Exactly the pages of [start, end), all inside vma: host access, POPULATE. */
int materialise_range(struct mm *mm, struct mm_cpu *cpu, struct vma *vma,
                      uint64_t start, uint64_t end);

/*
 * The level-3 table of v's block, in which every entry that is not present says
 * whether its private anonymous backing is zero; the block counts as dirty from
 * now on. NULL: no memory.
 */
_Atomic pte_t *materialise_table(struct mm *mm, uint64_t v);

#endif
