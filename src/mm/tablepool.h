/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where EL0's page tables come from: a reservation that one memory slot shows
 * to the VM, made accessible in steps, with a list of freed tables; and what is
 * known about each table beside its entries. Table number i is page i of the
 * pool; number 0 is the level-0 table.
 *
 * Also the list of level-3 tables with pages whose backing may be dirty but
 * which belong to no valid page, oldest first: memory that elfuse retains for
 * reuse and gives back when it is too much (pt_trim).
 *
 * For mm/ only. mm->lock is held, unless said otherwise.
 */
#ifndef ELFUSE_MM_TABLEPOOL_H
#define ELFUSE_MM_TABLEPOOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "mm/internal.h"

typedef struct table_meta {
    uint16_t present; /* level 3: present entries; above: tables linked */
    uint16_t dirty;   /* level 3: not present, backing may be dirty */
    uint16_t low;     /* level 3: present entries are in [low, high) */
    uint16_t high;
    uint32_t block;      /* level 3: which block of user space */
    uint32_t next, prev; /* free list, revoking list, retained list */
    bool listed;         /* is on the retained list */
    bool pinned;         /* level 3: stays though it has nothing to say */
} table_meta_t;

typedef struct table_pool {
    uint8_t *base; /* host address */
    uint64_t ipa, size;
    uint32_t nr_mapped; /* tables accessible to the host */
    uint32_t nr_fresh;  /* tables handed out at least once */
    uint32_t free;      /* head of the free list, 0: empty */
    table_meta_t *meta;
    uint32_t oldest, newest; /* retained list */
    /* Pages: valid private anonymous ones, the most there were; pages that are
     * retained. */
    uint64_t resident, peak, retained;
} table_pool_t;

/* Makes the pool and its memory slot. 0 or -errno. */
int table_pool_create(struct mm *mm);
/* A table with every entry `fill`, not linked yet. 0: no memory. */
uint32_t table_alloc(struct mm *mm, pte_t fill);
/* Nobody can see it any more. */
void table_free(struct mm *mm, uint32_t table);

static inline _Atomic pte_t *table_entries(const table_pool_t *pool,
                                           uint32_t table)
{
    return (_Atomic pte_t *) (pool->base + (uint64_t) table * GUEST_PAGE_SIZE);
}

/* The table that a table descriptor leads to; any thread. */
static inline _Atomic pte_t *table_below(const table_pool_t *pool, pte_t pte)
{
    return (_Atomic pte_t *) (pool->base + ((pte & PTE_ADDR) - pool->ipa));
}

static inline uint32_t table_number(const table_pool_t *pool,
                                    const _Atomic pte_t *table)
{
    return (uint32_t) (((const uint8_t *) table - pool->base) >>
                       GUEST_PAGE_SHIFT);
}

static inline table_meta_t *table_meta(const table_pool_t *pool,
                                       const _Atomic pte_t *table)
{
    return &pool->meta[table_number(pool, table)];
}

/* Put at the young end of the retained list; take off. */
void retained_add(table_pool_t *pool, uint32_t table);
void retained_remove(table_pool_t *pool, uint32_t table);

/* Index into the level-3 table of v's block. */
static inline unsigned pt_index(uint64_t v)
{
    return (v >> GUEST_PAGE_SHIFT) & (BLOCK_PAGES - 1);
}

/* The end of v's block, or end if that comes first. */
static inline uint64_t pt_block_end(uint64_t v, uint64_t end)
{
    uint64_t stop = (v | (BLOCK_SIZE - 1)) + 1;

    return stop < end ? stop : end;
}

/* Level-3 table of the first address >= *v and < end that has one, and *v is
 * moved there; NULL when there is none. Any thread that keeps the range's
 * tables alive (a span, or mm->lock). */
_Atomic pte_t *pt_next_l3(struct mm *mm, uint64_t *v, uint64_t end);
/* Level-3 table of v, made with every entry `fill` if there is none. */
_Atomic pte_t *pt_make_l3(struct mm *mm, uint64_t v, pte_t fill);
/* Unlink and free v's level-3 table, which has no present entry and no dirty
 * backing, and the tables above it that become empty. */
void pt_free_l3(struct mm *mm, struct gather *g, uint64_t v);

/* Present entries of a table, between which indices. */
typedef struct part {
    unsigned first, last; /* [first, last) */
} part_t;

static inline part_t present_part(const table_meta_t *m, uint64_t v,
                                  uint64_t stop)
{
    part_t p = {pt_index(v), pt_index(stop - 1) + 1};

    if (p.first < m->low)
        p.first = m->low;
    if (p.last > m->high)
        p.last = m->high;
    return p;
}

/* Nothing in `gone` is present any more. */
static inline void present_narrow(table_meta_t *m, part_t gone)
{
    if (!m->present) {
        m->low = BLOCK_PAGES;
        m->high = 0;
    } else if (gone.first <= m->low) {
        m->low = (uint16_t) gone.last;
    } else if (gone.last >= m->high) {
        m->high = (uint16_t) gone.first;
    }
}

/* ptretain.c */
/* Put this level-3 table on the retained list, as its newest, or take it off,
 * by its count of dirty pages. */
void pt_retain(struct mm *mm, _Atomic pte_t *table);
/* After an edit of this level-3 table: free it if it has nothing to say, else
 * put it on the retained list or take it off. */
void pt_settle(struct mm *mm, struct gather *g, _Atomic pte_t *table,
               uint64_t v);
/* Give back the dirty backing of pages of [start, end) that are not present. */
void pt_drop(struct mm *mm, struct gather *g, uint64_t start, uint64_t end);
/* Drop the oldest retained backing while there is more than the cap. */
void pt_trim(struct mm *mm, struct gather *g);
/* Drop what can be, when the host is short of something. */
void pt_trim_all(struct mm *mm, struct mm_cpu *cpu);

#endif
