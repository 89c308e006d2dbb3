/* SPDX-License-Identifier: Apache-2.0 */
#include "mm/tablepool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mm/lazymap.h"
#include "stats.h"

#define POOL_MAX   (64UL << 30)
#define POOL_ALIGN (32UL << 20)
/* Steps in which tables become accessible: small programs need a few dozen, and
 * large ones get theirs from huge pages. */
#define STEP_MIN 32U
#define STEP_MAX ((uint32_t) (BLOCK_SIZE / GUEST_PAGE_SIZE))

static uint8_t *reserve(uint64_t size)
{
    uint8_t *raw = lazy_map(size + POOL_ALIGN, PROT_NONE);

    if (!raw)
        return NULL;
    /* The slack around it is only address space, and stays. */
    return raw + (-(uintptr_t) raw & (POOL_ALIGN - 1));
}

int table_pool_create(struct mm *mm)
{
    table_pool_t *pool = calloc(1, sizeof(*pool));
    int error;

    if (!pool)
        return -ENOMEM;
    pool->ipa = 1UL << (mm->caps.ipa_bits - 6);
    pool->size = pool->ipa < POOL_MAX ? pool->ipa : POOL_MAX;
    pool->base = reserve(pool->size);
    pool->meta =
        lazy_map((pool->size >> GUEST_PAGE_SHIFT) * sizeof(*pool->meta),
                 PROT_READ | PROT_WRITE);
    if (!pool->base || !pool->meta) {
        free(pool);
        return -ENOMEM;
    }
    error = hv_map(mm->vm, pool->ipa, pool->base, pool->size);
    if (error) {
        free(pool);
        return error;
    }
    mm->pool = pool;
    /* The level-0 table is number 0. */
    pool->nr_fresh = 0;
    (void) table_alloc(mm, 0);
    return pool->nr_fresh == 1 ? 0 : -ENOMEM;
}

/* Another step of accessible tables. */
static bool pool_grow(table_pool_t *pool)
{
    uint32_t most = (uint32_t) (pool->size >> GUEST_PAGE_SHIFT);
    uint32_t step = pool->nr_mapped;
    uint8_t *at = pool->base + (uint64_t) pool->nr_mapped * GUEST_PAGE_SIZE;

    if (step < STEP_MIN)
        step = STEP_MIN;
    if (step > STEP_MAX)
        step = STEP_MAX;
    if (step > most - pool->nr_mapped)
        step = most - pool->nr_mapped;
    if (!step ||
        mprotect(at, (uint64_t) step * GUEST_PAGE_SIZE, PROT_READ | PROT_WRITE))
        return false;
    /* Advice: one commit and one stage-2 fault for 512 tables. */
    if (step == STEP_MAX)
        (void) madvise(at, (uint64_t) step * GUEST_PAGE_SIZE, MADV_HUGEPAGE);
    pool->nr_mapped += step;
    return true;
}

uint32_t table_alloc(struct mm *mm, pte_t fill)
{
    table_pool_t *pool = mm->pool;
    uint32_t table = pool->free;
    pte_t *entry;

    if (table) {
        pool->free = pool->meta[table].next;
    } else {
        if (pool->nr_fresh == pool->nr_mapped && !pool_grow(pool))
            return 0;
        table = pool->nr_fresh++;
    }
    pool->meta[table] = (table_meta_t){.low = BLOCK_PAGES};
    /* Not linked: nobody else sees it, so these need not be atomic. */
    entry = (pte_t *) (pool->base + (uint64_t) table * GUEST_PAGE_SIZE);
    for (unsigned i = 0; i < BLOCK_PAGES; i++)
        entry[i] = fill;
    stats_add(tables_allocated, 1);
    return table;
}

void table_free(struct mm *mm, uint32_t table)
{
    table_pool_t *pool = mm->pool;

    pool->meta[table].next = pool->free;
    pool->free = table;
    stats_add(tables_freed, 1);
}

void retained_add(table_pool_t *pool, uint32_t table)
{
    table_meta_t *m = &pool->meta[table];

    m->next = 0;
    m->prev = pool->newest;
    if (pool->newest)
        pool->meta[pool->newest].next = table;
    else
        pool->oldest = table;
    pool->newest = table;
    m->listed = true;
}

void retained_remove(table_pool_t *pool, uint32_t table)
{
    table_meta_t *m = &pool->meta[table];

    if (m->prev)
        pool->meta[m->prev].next = m->next;
    else
        pool->oldest = m->next;
    if (m->next)
        pool->meta[m->next].prev = m->prev;
    else
        pool->newest = m->prev;
    m->listed = false;
}
