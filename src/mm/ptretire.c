/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What EL1 has retired becomes what munmap leaves: dirty pages that are kept
 * for reuse, in tables that are linked. The invalidation is over, so nothing is
 * gathered; the pages' backing may be used again at once.
 */
#include "mm/fast.h"
#include "mm/tablepool.h"
#include "proc/proc.h" /* elfuse_panic only */

#define ENTRIES 512U

/* [v, stop) of one table, which EL1 has unlinked when `unlinked`. */
static uint64_t retire_block(struct mm *mm, _Atomic pte_t *table, uint64_t v,
                             uint64_t stop, bool unlinked)
{
    table_pool_t *pool = mm->pool;
    table_meta_t *m = table_meta(pool, table);
    uint64_t block = v & ~(BLOCK_SIZE - 1);
    part_t p = present_part(m, v, stop);
    int64_t valid = 0;
    unsigned gone = 0;

    for (unsigned i = p.first; i < p.last; i++) {
        /* Acquire is the drain's: EL1 has released its record since. */
        pte_t pte = atomic_load_explicit(&table[i], memory_order_relaxed);

        if (pte_valid(pte) && !unlinked)
            elfuse_panic("mm: page %#lx was retired, but is valid: %#lx",
                         block + i * GUEST_PAGE_SIZE, pte);
        if (!pte_present(pte) && pte != PTE_RETIRED)
            continue;
        valid += !pte_evicted(pte);
        gone++;
        atomic_store_explicit(&table[i], PTE_INV_DIRTY, memory_order_relaxed);
    }
    if (!gone)
        return 0;
    m->present = (uint16_t) (m->present - gone);
    m->dirty = (uint16_t) (m->dirty + gone);
    pool->resident -= gone;
    pool->retained += gone;
    if (valid)
        window_count_host(mm, (uintptr_t) hostspace_ptr(mm, v), -valid);
    present_narrow(m, p);
    pt_retain(mm, table);
    return gone;
}

/* What a level-2 entry maps, [v, stop) of it. */
static uint64_t retire_entry(struct mm *mm, _Atomic pte_t *entry, uint64_t v,
                             uint64_t stop)
{
    pte_t pte = atomic_load_explicit(entry, memory_order_relaxed);
    bool unlinked = pte_retired_table(pte);
    uint64_t gone;

    if (!pte)
        return 0;
    gone = retire_block(mm, table_below(mm->pool, pte), v, stop, unlinked);
    /* Of a part of the block: another record, still to come, has the rest. */
    if (unlinked && stop - v == BLOCK_SIZE)
        /* Release: pairs with pt_walk and the guest's table walkers. */
        atomic_store_explicit(entry, (pte & PTE_ADDR) | PTE_TABLE_DESC,
                              memory_order_release);
    return gone;
}

uint64_t pt_retire(struct mm *mm, uint64_t start, uint64_t end)
{
    table_pool_t *pool = mm->pool;
    uint64_t gone = 0;

    for (uint64_t v = start; v < end;) {
        pte_t pte = atomic_load_explicit(
            &table_entries(pool, 0)[v >> 39 & (ENTRIES - 1)],
            memory_order_relaxed);
        uint64_t stop = (v | ((1UL << (pte ? 30 : 39)) - 1)) + 1;
        _Atomic pte_t *table = pte ? table_below(pool, pte) : NULL;

        stop = stop < end ? stop : end;
        if (table)
            pte = atomic_load_explicit(&table[v >> 30 & (ENTRIES - 1)],
                                       memory_order_relaxed);
        table = pte ? table_below(pool, pte) : NULL;
        while (table && v < stop) {
            uint64_t next = pt_block_end(v, stop);

            gone += retire_entry(mm, &table[v >> BLOCK_SHIFT & (ENTRIES - 1)],
                                 v, next);
            v = next;
        }
        v = stop;
    }
    return gone;
}
