/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walker and the edits of permissions and presence.
 *
 *   v:  47..39   38..30   29..21   20..12   11..0
 *       level 0  level 1  level 2  level 3  in the page
 *
 * Levels 0 to 2 hold table descriptors or zero. Writers hold mm->lock.
 */
#include "mm/pagetable.h"

#include <string.h>
#include <sys/mman.h>

#include "mm/fast.h"
#include "mm/internal.h"
#include "mm/tablepool.h"
#include "proc/proc.h" /* elfuse_panic only */
#include "stats.h"

#define ENTRIES 512U
/* Bits that mprotect changes. */
#define PTE_PERMISSIONS (PTE_AP_EL0 | PTE_AP_RO | PTE_UXN)

/* So many dirty pages in one munmap are dropped rather than kept for reuse;
 * madvise(MADV_DONTNEED) says that the memory is wanted elsewhere. */
#define UNMAP_DROP_PAGES   (32UL << 20 >> GUEST_PAGE_SHIFT)
#define DISCARD_DROP_PAGES (2UL << 20 >> GUEST_PAGE_SHIFT)

static unsigned level_shift(unsigned level)
{
    return 39U - 9U * level;
}

static unsigned level_index(uint64_t v, unsigned level)
{
    return (v >> level_shift(level)) & (ENTRIES - 1);
}

pte_t pte_prot(int prot)
{
    pte_t pte = PTE_VALID | PTE_TYPE | PTE_ATTR_NORMAL | PTE_SH_INNER | PTE_AF |
                PTE_NG | PTE_PXN;

    /* No access from EL0 (AP = 00), or read, or read and write: execute and
     * write imply read, as on Linux. */
    if (prot & (PROT_READ | PROT_WRITE | PROT_EXEC))
        pte |= PTE_AP_EL0;
    if (!(prot & PROT_WRITE))
        pte |= PTE_AP_RO;
    if (!(prot & PROT_EXEC))
        pte |= PTE_UXN;
    return pte;
}

int pte_access(pte_t pte)
{
    int prot = 0;

    if (!(pte & PTE_AP_EL0))
        return 0;
    prot = PROT_READ;
    if (!(pte & PTE_AP_RO))
        prot |= PROT_WRITE;
    if (!(pte & PTE_UXN))
        prot |= PROT_EXEC;
    return prot;
}

_Atomic pte_t *pt_walk(struct mm *mm, uint64_t addr)
{
    const table_pool_t *pool = mm->pool;
    _Atomic pte_t *table = table_entries(pool, 0);

    for (unsigned level = 0; level < 3; level++) {
        /* Pairs with the release in pt_make_l3: a table is filled before it is
         * linked. */
        pte_t pte = atomic_load_explicit(&table[level_index(addr, level)],
                                         memory_order_acquire);

        /* Not there, or retired by EL1. */
        if (!pte_valid(pte))
            return NULL;
        table = table_below(pool, pte);
    }
    return &table[pt_index(addr)];
}

/* First entry at or after *v's that leads to a table, in a table of that level,
 * and *v moved to what it maps; zero when the table or the range ends first. */
static pte_t scan_table(_Atomic pte_t *table, unsigned level, uint64_t *v,
                        uint64_t end)
{
    uint64_t size = 1UL << level_shift(level);

    for (unsigned i = level_index(*v, level); i < ENTRIES; i++) {
        pte_t pte = atomic_load_explicit(&table[i], memory_order_acquire);

        if (pte_valid(pte))
            return pte;
        *v = (*v & ~(size - 1)) + size;
        if (*v >= end)
            return 0;
    }
    return 0;
}

_Atomic pte_t *pt_next_l3(struct mm *mm, uint64_t *v, uint64_t end)
{
    const table_pool_t *pool = mm->pool;

    while (*v < end) {
        _Atomic pte_t *table = table_entries(pool, 0);
        unsigned level;

        for (level = 0; level < 3; level++) {
            pte_t pte = scan_table(table, level, v, end);

            if (!pte)
                break;
            table = table_below(pool, pte);
        }
        if (level == 3)
            return *v < end ? table : NULL;
    }
    return NULL;
}

uint64_t pt_next_table(struct mm *mm, uint64_t addr, uint64_t end)
{
    return pt_next_l3(mm, &addr, end) ? addr : end;
}

_Atomic pte_t *pt_make_l3(struct mm *mm, uint64_t v, pte_t fill)
{
    table_pool_t *pool = mm->pool;
    _Atomic pte_t *table = table_entries(pool, 0);

    for (unsigned level = 0; level < 3; level++) {
        _Atomic pte_t *entry = &table[level_index(v, level)];
        pte_t pte = atomic_load_explicit(entry, memory_order_relaxed);

        if (!pte) {
            uint32_t below;

            if (level == 2 && dirty_test(mm->dirty, v >> BLOCK_SHIFT))
                elfuse_panic("mm: the block at %#lx is dirty but has no table",
                             v);
            below = table_alloc(mm, level == 2 ? fill : 0);
            /* Tables made above stay, empty; the next user finds them. */
            if (!below)
                return NULL;
            pool->meta[below].block = (uint32_t) (v >> BLOCK_SHIFT);
            table_meta(pool, table)->present++;
            pte = (pool->ipa + (uint64_t) below * GUEST_PAGE_SIZE) |
                  PTE_TABLE_DESC;
            /* Release: pairs with pt_walk, and with the table walker of the
             * guest's processors, which sees a filled table. */
            atomic_store_explicit(entry, pte, memory_order_release);
        }
        if (!pte_valid(pte))
            elfuse_panic("mm: the table at %#lx has been retired: %#lx", v,
                         pte);
        table = table_below(pool, pte);
    }
    return table;
}

_Atomic pte_t *pt_walk_alloc(struct mm *mm, uint64_t addr)
{
    _Atomic pte_t *table = pt_make_l3(mm, addr, 0);

    return table ? &table[pt_index(addr)] : NULL;
}

void pt_free_l3(struct mm *mm, struct gather *g, uint64_t v)
{
    table_pool_t *pool = mm->pool;
    _Atomic pte_t *table[3];

    table[0] = table_entries(pool, 0);
    for (unsigned level = 0; level < 2; level++)
        table[level + 1] = table_below(
            pool, atomic_load_explicit(&table[level][level_index(v, level)],
                                       memory_order_relaxed));
    for (unsigned level = 3; level-- > 0;) {
        _Atomic pte_t *entry = &table[level][level_index(v, level)];
        pte_t pte = atomic_load_explicit(entry, memory_order_relaxed);

        atomic_store_explicit(entry, 0, memory_order_release);
        gather_free_table(g, table_number(pool, table_below(pool, pte)),
                          v & ~((1UL << level_shift(level)) - 1),
                          1UL << level_shift(level));
        /* EL1 may be reading a table of an upper level of the zone. */
        if (--table_meta(pool, table[level])->present ||
            fast_in_zone(mm, v, v + 1))
            return;
    }
}

/* Valid descriptors taken out of one window, counted together. */
typedef struct window_tally {
    struct mm *mm;
    uint64_t ipa;
    int64_t n;
} window_tally_t;

static void tally_flush(window_tally_t *t)
{
    if (t->n)
        window_count(t->mm, t->ipa, -t->n);
    t->n = 0;
}

static void tally_add(window_tally_t *t, pte_t pte)
{
    uint64_t ipa = pte & PTE_ADDR;

    if (t->n && (ipa ^ t->ipa) >> t->mm->windows->shift)
        tally_flush(t);
    t->ipa = ipa;
    t->n++;
}

/* [v, stop) in one level-3 table. */
static void unmap_block(struct mm *mm, gather_t *g, _Atomic pte_t *table,
                        uint64_t v, uint64_t stop)
{
    table_pool_t *pool = mm->pool;
    table_meta_t *m = table_meta(pool, table);
    part_t p = present_part(m, v, stop);
    uint64_t block = v & ~(BLOCK_SIZE - 1);
    bool dirty = dirty_test(mm->dirty, block >> BLOCK_SHIFT);
    window_tally_t tally = {.mm = mm};
    unsigned low = BLOCK_PAGES, high = 0, dirtied = 0;

    if (p.first >= p.last) {
        if (!m->present && !m->dirty)
            pt_settle(mm, g, table, block);
        return;
    }
    for (unsigned i = p.first; i < p.last; i++) {
        pte_t pte = atomic_load_explicit(&table[i], memory_order_relaxed);

        if (!pte_present(pte))
            continue;
        if (pte_valid(pte)) {
            tally_add(&tally, pte);
            low = low < i ? low : i;
            high = i + 1;
        }
        m->present--;
        pool->resident -= !(pte & PTE_SW_OBJECT);
        /* What lies under an object's page is only known in a clean block. */
        dirtied += dirty;
        /* Nobody may act on an invalid entry before the invalidation: its
         * barriers order this store. */
        atomic_store_explicit(&table[i], dirty ? PTE_INV_DIRTY : 0,
                              memory_order_relaxed);
    }
    tally_flush(&tally);
    if (low < high)
        gather_range(g, block + low * GUEST_PAGE_SIZE,
                     block + high * GUEST_PAGE_SIZE);
    m->dirty = (uint16_t) (m->dirty + dirtied);
    pool->retained += dirtied;
    present_narrow(m, p);
    pt_settle(mm, g, table, block);
}

static void unmap_range(struct mm *mm, gather_t *g, uint64_t start,
                        uint64_t end, uint64_t drop_pages)
{
    uint64_t v = start, before = mm->pool->retained;
    _Atomic pte_t *table;

    gather_cover(g, start, end);
    while ((table = pt_next_l3(mm, &v, end))) {
        uint64_t stop = pt_block_end(v, end);

        unmap_block(mm, g, table, v, stop);
        v = stop;
    }
    if (mm->pool->retained - before >= drop_pages)
        gather_drop_backing(g, start, end);
    else
        pt_trim(mm, g);
}

void pt_unmap(struct mm *mm, struct gather *g, uint64_t start, uint64_t end)
{
    unmap_range(mm, g, start, end, UNMAP_DROP_PAGES);
}

void pt_discard(struct mm *mm, struct gather *g, uint64_t start, uint64_t end)
{
    unmap_range(mm, g, start, end, DISCARD_DROP_PAGES);
}

/* The host's caches hold code that was written as data (Arm ARM B2.7.4). */
static void sync_code(struct mm *mm, uint64_t v, uint64_t end)
{
    char *host = hostspace_ptr(mm, v);

    __builtin___clear_cache(host, host + (end - v));
}

static void protect_block(struct mm *mm, gather_t *g, _Atomic pte_t *table,
                          uint64_t v, uint64_t stop, pte_t perm)
{
    part_t p = present_part(table_meta(mm->pool, table), v, stop);
    uint64_t block = v & ~(BLOCK_SIZE - 1);
    unsigned low = BLOCK_PAGES, high = 0;

    for (unsigned i = p.first; i < p.last; i++) {
        pte_t pte = atomic_load_explicit(&table[i], memory_order_relaxed);
        pte_t new = (pte & ~PTE_PERMISSIONS) | perm;
        uint64_t page = block + i * GUEST_PAGE_SIZE;

        if (!pte_present(pte) || new == pte)
            continue;
        if ((pte & ~new &PTE_UXN) && !(pte & PTE_SW_OBJECT)) {
            sync_code(mm, page, page + GUEST_PAGE_SIZE);
            g->kind |= TLB_ICACHE;
        }
        /* Same size and output address: no break before make (D8.14.1).
         * Release: after the cache maintenance. */
        atomic_store_explicit(&table[i], new, memory_order_release);
        if (pte_valid(pte)) {
            low = low < i ? low : i;
            high = i + 1;
        }
    }
    if (low < high)
        gather_range(g, block + low * GUEST_PAGE_SIZE,
                     block + high * GUEST_PAGE_SIZE);
}

void pt_protect(struct mm *mm, struct gather *g, uint64_t start, uint64_t end,
                int prot)
{
    pte_t perm = pte_prot(prot) & PTE_PERMISSIONS;
    uint64_t v = start;
    _Atomic pte_t *table;

    gather_cover(g, start, end);
    while ((table = pt_next_l3(mm, &v, end))) {
        uint64_t stop = pt_block_end(v, end);

        protect_block(mm, g, table, v, stop, perm);
        v = stop;
    }
}

void pt_present(struct mm *mm, uint64_t start, uint64_t pages,
                unsigned char *vec)
{
    uint64_t v = start, end = start + pages * GUEST_PAGE_SIZE;
    _Atomic pte_t *table;

    memset(vec, 0, pages);
    while ((table = pt_next_l3(mm, &v, end))) {
        uint64_t stop = pt_block_end(v, end);

        for (; v < stop; v += GUEST_PAGE_SIZE)
            vec[(v - start) >> GUEST_PAGE_SHIFT] =
                pte_present(atomic_load_explicit(&table[pt_index(v)],
                                                 memory_order_relaxed)) != 0;
    }
}

uint64_t pt_count_present(struct mm *mm, uint64_t start, uint64_t end)
{
    uint64_t v = start, n = 0;
    _Atomic pte_t *table;

    while ((table = pt_next_l3(mm, &v, end))) {
        const table_meta_t *m = table_meta(mm->pool, table);
        uint64_t stop = pt_block_end(v, end);
        part_t p = present_part(m, v, stop);

        if (stop - v == BLOCK_SIZE)
            n += m->present;
        else
            for (unsigned i = p.first; i < p.last; i++)
                n += pte_present(atomic_load_explicit(
                         &table[i], memory_order_relaxed)) != 0;
        v = stop;
    }
    return n;
}
