/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EL0's stage-1 tables: the pool they come from, the one walker, and the edits
 * built on it. Formats and states: abi/pte.h.
 *
 *   level 0: 512 GiB an entry   level 1: 1 GiB   level 2: 2 MiB   level 3: 4
 * KiB
 *
 * Writers hold mm->lock, readers take no lock: a table is filled before the
 * release store that links it, and freed only through the revoking list.
 * Materialisation of a page claims its entry by compare-and-swap to BUSY, so
 * that it does not exclude others.
 *
 * Each table has a count of present entries and, at level 3, one of pages whose
 * backing may be dirty, so that empty ranges are skipped.
 *
 * Addresses are page aligned and below mm_task_size().
 */
#ifndef ELFUSE_MM_PAGETABLE_H
#define ELFUSE_MM_PAGETABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/pte.h"

struct mm;
struct gather;
struct mm_cpu;

/* Access bits of a valid descriptor for a VMA's PROT_* (prot 0: no EL0). */
pte_t pte_prot(int prot);
/* What EL0 may do through a valid descriptor: a set of PROT_*. */
int pte_access(pte_t pte);

/* The walker. Both return the level-3 entry of addr; pt_walk gives NULL where
 * there is no level-3 table, pt_walk_alloc makes the tables (NULL: no memory).
 * pt_next_table returns the first address >= addr and < end that has a level-3
 * table, or end: how empty terabytes are skipped. */
_Atomic pte_t *pt_walk(struct mm *mm, uint64_t addr);
_Atomic pte_t *pt_walk_alloc(struct mm *mm, uint64_t addr);
uint64_t pt_next_table(struct mm *mm, uint64_t addr, uint64_t end);

/*
 * Make every entry of [start, end) invalid: anonymous pages become "host, may
 * be dirty", object pages "host, nothing known". Tables left without a VMA's
 * page and without dirty backing are freed. Costs in proportion to the tables
 * that exist. Never fails and never allocates.
 */
void pt_unmap(struct mm *mm, struct gather *g, uint64_t start, uint64_t end);

/* Give the present pages of [start, end) the permissions of prot, in place. */
void pt_protect(struct mm *mm, struct gather *g, uint64_t start, uint64_t end,
                int prot);

/*
 * mremap of private anonymous memory: contents and state of [from, from + len)
 * go to [to, to + len), which is unmapped and not mapped by any VMA; pages
 * present at `from` are present at `to` with prot. Afterwards `from` reads as
 * never touched. The invalidation of `from` is done before contents move.
 *
 * pt_move_prepare comes first, while the destination may still be in use: it
 * makes what the move needs there and pins it. -ENOMEM: nothing has changed.
 * Between the two the source stays as it is; then pt_move cannot fail.
 */
int pt_move_prepare(struct mm *mm, struct mm_cpu *cpu, uint64_t from,
                    uint64_t to, uint64_t len);
void pt_move(struct mm *mm, struct mm_cpu *cpu, uint64_t from, uint64_t to,
             uint64_t len, int prot);

/*
 * Anonymous pages of [start, end) lose their contents: entries invalid, backing
 * zero or dropped, whichever is cheaper (MADV_DONTNEED, and munmap of large
 * dirty runs). The next touch reads zero.
 */
void pt_discard(struct mm *mm, struct gather *g, uint64_t start, uint64_t end);

/* mincore: vec[i] = 1 where the page is present. Any thread, no lock. */
void pt_present(struct mm *mm, uint64_t start, uint64_t pages,
                unsigned char *vec);
/* Number of present pages in [start, end). */
uint64_t pt_count_present(struct mm *mm, uint64_t start, uint64_t end);

#endif
