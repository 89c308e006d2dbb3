/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that was unmapped and is kept for reuse: what becomes of a table after
 * an edit, and giving back backing that is too much. Spans: backing is dropped
 * only where none is registered, see gather.c.
 */
#include "mm/fast.h"
#include "mm/internal.h"
#include "mm/tablepool.h"
#include "stats.h"

/* Retained dirty memory: a quarter of the most that was in use, at least this.
 */
#define RETAIN_MIN_PAGES (64UL << 20 >> GUEST_PAGE_SHIFT)

void pt_retain(struct mm *mm, _Atomic pte_t *table)
{
    table_pool_t *pool = mm->pool;
    uint32_t number = table_number(pool, table);
    const table_meta_t *m = &pool->meta[number];

    if (m->listed && pool->newest == number && m->dirty)
        return;
    if (m->listed)
        retained_remove(pool, number);
    if (m->dirty)
        retained_add(pool, number);
}

void pt_settle(struct mm *mm, struct gather *g, _Atomic pte_t *table,
               uint64_t v)
{
    const table_meta_t *m = table_meta(mm->pool, table);

    pt_retain(mm, table);
    if (!m->dirty && !m->present && !m->pinned) {
        /* Every entry says zero, or nothing in a block that is clean. */
        if (dirty_test(mm->dirty, v >> BLOCK_SHIFT))
            dirty_clear(mm->dirty, v >> BLOCK_SHIFT);
        pt_free_l3(mm, g, v);
    }
}

/* Adjacent pieces are given back by one system call. */
typedef struct drop {
    struct mm *mm;
    uint64_t start, end;
} drop_t;

static void drop_flush(drop_t *d)
{
    if (d->start < d->end)
        hostspace_drop(d->mm, d->start, d->end);
    d->start = d->end = 0;
}

static void drop_add(drop_t *d, uint64_t start, uint64_t end)
{
    if (d->end != start) {
        drop_flush(d);
        d->start = start;
    }
    d->end = end;
}

/* [v, stop) in one level-3 table. */
static void drop_block(drop_t *d, gather_t *g, _Atomic pte_t *table, uint64_t v,
                       uint64_t stop)
{
    struct mm *mm = d->mm;
    table_meta_t *m = table_meta(mm->pool, table);
    uint64_t block = v & ~(BLOCK_SIZE - 1);
    unsigned dropped = 0;

    if (!m->dirty)
        return;
    if (!m->present && !m->pinned && stop - v == BLOCK_SIZE) {
        /* The whole block, so that the host can free a huge page as one; the
         * table goes, so its entries need no change. */
        drop_add(d, v, stop);
        dropped = m->dirty;
    } else {
        for (; v < stop; v += GUEST_PAGE_SIZE) {
            _Atomic pte_t *entry = &table[pt_index(v)];

            if (atomic_load_explicit(entry, memory_order_relaxed) !=
                PTE_INV_DIRTY)
                continue;
            drop_add(d, v, v + GUEST_PAGE_SIZE);
            atomic_store_explicit(entry, PTE_INV_ZERO, memory_order_relaxed);
            dropped++;
        }
    }
    mm->pool->retained -= dropped;
    m->dirty = (uint16_t) (m->dirty - dropped);
    pt_settle(mm, g, table, block);
}

void pt_drop(struct mm *mm, struct gather *g, uint64_t start, uint64_t end)
{
    drop_t d = {.mm = mm};
    uint64_t v = start;
    _Atomic pte_t *table;

    fast_exclude(mm, start, end);
    while ((table = pt_next_l3(mm, &v, end))) {
        uint64_t stop = pt_block_end(v, end);

        drop_block(&d, g, table, v, stop);
        v = stop;
    }
    drop_flush(&d);
}

/* Give back the oldest until no more than `goal` pages are retained. */
static void trim_to(struct mm *mm, struct gather *g, uint64_t goal)
{
    table_pool_t *pool = mm->pool;
    uint32_t table, next;

    for (table = pool->oldest; table && pool->retained > goal; table = next) {
        uint64_t v = (uint64_t) pool->meta[table].block << BLOCK_SHIFT;
        uint64_t end = v + BLOCK_SIZE;

        next = pool->meta[table].next;
        /* What is being unmapped just now has its invalidation before it. */
        if ((v < g->high && end > g->low) || gather_revoking(mm, v, end) ||
            span_overlaps(mm, v, end))
            continue;
        pt_drop(mm, g, v, end);
    }
}

void pt_trim(struct mm *mm, struct gather *g)
{
    uint64_t cap = mm->pool->peak / 4;

    if (cap < RETAIN_MIN_PAGES)
        cap = RETAIN_MIN_PAGES;
    /* Some more than needed, so that this is rare. */
    if (mm->pool->retained > cap)
        trim_to(mm, g, cap - cap / 8);
}

void pt_trim_all(struct mm *mm, struct mm_cpu *cpu)
{
    gather_t g;

    gather_begin(&g, mm, cpu);
    trim_to(mm, &g, 0);
    gather_finish(&g);
}
