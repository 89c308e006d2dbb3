/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an edit of the page tables owes before its memory may be reused: the
 * invalidation, and what may be freed after it. The field's mmu_gather.
 *
 *     gather_t g;
 *     gather_begin(&g, mm, cpu);
 *     ... pt_unmap(), pt_protect(), gather_free_*() ...
 *     gather_finish(&g);          or gather_finish_now(&g) to have it done
 *
 * gather_finish leaves a request in the vCPU's frame, which the shim completes
 * before EL0 continues, and puts what is to be freed on the REVOKING list with
 * the request's sequence. Until mm_after_exit() sees that sequence completed,
 * listed addresses, backing and tables are not reallocated, zeroed, dropped or
 * reused; gather_wait_for() is what somebody calls who needs a range first.
 * Without a vCPU (cpu->frame NULL) there is nothing to invalidate.
 *
 * mm->lock is held from begin to finish.
 */
#ifndef ELFUSE_MM_GATHER_H
#define ELFUSE_MM_GATHER_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/tlb.h"

struct mm;
struct mm_cpu;
struct object;

typedef struct gather {
    struct mm *mm;
    struct mm_cpu *cpu;
    uint32_t kind; /* enum tlb_kind, growing */
    int nr_ranges; /* past TLB_RANGES it becomes TLB_ALL */
    tlb_range_t range[TLB_RANGES];
    uint64_t low, high; /* envelope of everything revoked */
    uint32_t tables;    /* unlinked, chained by table_meta_t.next */
    uint64_t tables_low, tables_high; /* addresses that they served */
    struct revoked *frees; /* what gather_finish puts on the revoking list */
} gather_t;

void gather_begin(gather_t *g, struct mm *mm, struct mm_cpu *cpu);
/* Valid entries of [start, end) were changed or removed. Adjacent ranges join.
 */
void gather_range(gather_t *g, uint64_t start, uint64_t end);
/* The edit concerns [start, end), whether valid entries change or not. */
void gather_cover(gather_t *g, uint64_t start, uint64_t end);
/* A table with that pool index, for [start, start + size), was unlinked. */
void gather_free_table(gather_t *g, uint32_t table, uint64_t start,
                       uint64_t size);
/* A reference to an object mapping, and with it host pages, is given up. */
void gather_free_object(gather_t *g, struct object *object, uint64_t host,
                        uint64_t size);
/* Private anonymous backing of [start, end) is dropped once nobody sees it. */
void gather_drop_backing(gather_t *g, uint64_t start, uint64_t end);
void gather_finish(gather_t *g);
void gather_finish_now(gather_t *g);

/* The list itself. NULL: no memory. */
struct revoking *revoking_create(void);
/* In a fork child: there is only `cpu`, and no translation is cached. */
void revoking_renew(struct mm *mm, struct mm_cpu *cpu);
/* Free what waits for nothing any more; mm->lock is held. */
void revoking_collect(struct mm *mm, struct mm_cpu *cpu);
/* Backing of [start, end), which nobody can reach any more, is dropped when no
 * span is in the way. */
void revoking_add_backing(struct mm *mm, uint64_t start, uint64_t end);
/* True when mm_after_exit has something to look at. Any thread. */
bool revoking_pending(const struct mm *mm);

/* The thread of `cpu` ends: its request is carried out now, and nothing waits
 * for it any more. Spans stay. */
void gather_end_cpu(struct mm *mm, struct mm_cpu *cpu);
/* The thread of `dead` has ended without that: `self` does it. */
void gather_bury_cpu(struct mm *mm, struct mm_cpu *dead, struct mm_cpu *self);

/* True while some unfinished invalidation covers part of [start, end). */
bool gather_revoking(struct mm *mm, uint64_t start, uint64_t end);
/* Have it finished, by this vCPU if need be. */
void gather_wait_for(struct mm *mm, struct mm_cpu *cpu, uint64_t start,
                     uint64_t end);

#endif
