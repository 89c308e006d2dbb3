/* SPDX-License-Identifier: Apache-2.0 */
/*
 * munmap at EL1: plain memory of the zone. Nothing is changed until nothing can
 * fail; then descriptors, invalidation, record, in this order.
 *
 * A table all of whose pages go is unlinked by one store. Stores are
 * idempotent: another vCPU may be unmapping the same addresses.
 */
#include "abi/pte.h"
#include "proved/tlbi_range.h"
#include "shim/arch.h"
#include "shim/shim.h"

#define ENTRIES 512U

typedef struct unmap {
    const fast_shared_t *shared;
    fast_control_t *control;
    uint64_t start, end; /* addresses */
    /* What has to be invalidated: from the first to the last page that was
     * valid, or had been retired by somebody who may not be done with it. */
    uint64_t low, high;
    bool tables; /* some were unlinked */
    uint64_t pages;
} unmap_t;

/* Another vCPU's control page: areas lie side by side. */
static const fast_control_t *fast_control_of(fast_control_t *own, unsigned vcpu)
{
    int64_t apart = (int64_t) vcpu - fast_frame(own)->vcpu;

    return (void *) ((char *) own + apart * (int64_t) VCPU_AREA_SIZE);
}

/* --- checks -------------------------------------------------------------- */

/* Is no part of [start, end) still to be granted, and all of it in arenas? See
 * docs/fastpath.md, "Who may retire". */
static bool granted(const unmap_t *u, uint64_t first, uint64_t last)
{
    const uint16_t *owners = fast_owners((fast_shared_t *) u->shared);
    unsigned owner = owners[first];

    if (owner == FAST_OWNER_NONE || owners[last] != owner)
        return FAST_BREAK == BREAK_OWNER;
    if (owner != FAST_OWNER_CLOSED) {
        const fast_control_t *c = fast_control_of(u->control, owner - 1);

        /* Acquire: pairs with the grant's release; its record comes first. */
        return u->end <= __atomic_load_n(&c->cursor, __ATOMIC_ACQUIRE) ||
               u->start >= __atomic_load_n(&c->window_end, __ATOMIC_RELAXED) ||
               FAST_BREAK == BREAK_OWNER;
    }
    while (++first < last)
        if (owners[first] != FAST_OWNER_CLOSED)
            return false;
    return true;
}

/* No bit of the host-block map is set for blocks [first, last]. */
static bool plain(const unmap_t *u, uint64_t first, uint64_t last)
{
    const uint64_t *words = fast_blocks((fast_shared_t *) u->shared);
    uint64_t mask = ~0UL << (first & 63), set;
    uint64_t end = last >> 6;

    for (uint64_t i = first >> 6; i < end; i++, mask = ~0UL)
        if (__atomic_load_n(&words[i], __ATOMIC_RELAXED) & mask)
            return false;
    set = __atomic_load_n(&words[end], __ATOMIC_RELAXED) & mask &
          (~0UL >> (~last & 63));
    return !set || FAST_BREAK == BREAK_BLOCKS;
}

/* --- descriptors --------------------------------------------------------- */

static pte_t *table_at(const unmap_t *u, pte_t pte)
{
    return (pte_t *) ((pte & PTE_ADDR) + u->shared->tables);
}

static void note(unmap_t *u, uint64_t start, uint64_t end)
{
    if (start < u->low)
        u->low = start;
    if (end > u->high)
        u->high = end;
}

/* The first entry from here on that is valid or retired, or stop. In fours,
 * since most of what is scanned has never been touched. */
static inline pte_t *next_entry(pte_t *entry, pte_t *stop)
{
    const pte_t any = PTE_VALID | PTE_INV_RETIRED;

    for (; stop - entry >= 4; entry += 4)
        if ((arch_load(&entry[0]) | arch_load(&entry[1]) |
             arch_load(&entry[2]) | arch_load(&entry[3])) &
            any)
            break;
    while (entry < stop && !(arch_load(entry) & any))
        entry++;
    return entry;
}

/* Retire the valid entries from here on up to one that is not; returns it. */
static inline pte_t *retire_run(pte_t *entry, pte_t *stop, pte_t *ours)
{
    for (; stop - entry >= 4; entry += 4) {
        pte_t all = arch_load(&entry[0]) & arch_load(&entry[1]) &
                    arch_load(&entry[2]) & arch_load(&entry[3]);

        if (!(all & PTE_VALID))
            break;
        *ours &= all;
        for (int i = 0; i < 4; i++)
            arch_store(&entry[i], PTE_RETIRED);
    }
    while (entry < stop) {
        pte_t pte = arch_load(entry);

        if (!(pte & PTE_VALID))
            break;
        *ours &= pte;
        arch_store(entry++, PTE_RETIRED);
    }
    return entry;
}

/* The page at v alone, which is what most calls are about. */
static inline void retire_page(unmap_t *u, pte_t *table, uint64_t v)
{
    pte_t *entry = &table[v >> GUEST_PAGE_SHIFT & (ENTRIES - 1)];
    pte_t pte = arch_load(entry);

    if (pte & PTE_VALID) {
        if (!(pte & PTE_SW_EL1))
            arch_trap();
        arch_store(entry, PTE_RETIRED);
        u->pages++;
    } else if (pte != PTE_RETIRED) {
        return;
    }
    note(u, v, v + GUEST_PAGE_SIZE);
}

/* Pages [v, end) of one level-3 table. Out of line, for its registers. */
static __attribute__((noinline)) void retire_pages(unmap_t *u, pte_t *table,
                                                   uint64_t v, uint64_t end)
{
    pte_t *entry = &table[v >> GUEST_PAGE_SHIFT & (ENTRIES - 1)];
    pte_t *stop = entry + ((end - v) >> GUEST_PAGE_SHIFT);
    pte_t *first = next_entry(entry, stop), *last = first, ours = PTE_SW_EL1;

    for (entry = first; entry < stop; entry = next_entry(last, stop)) {
        last = retire_run(entry, stop, &ours);
        u->pages += (uint64_t) (last - entry);
        last += last == entry; /* retired already */
    }
    if (first == stop)
        return;
    if (!ours)
        arch_trap();
    v &= ~(BLOCK_SIZE - 1);
    note(u, v + ((uint64_t) (first - table) << GUEST_PAGE_SHIFT),
         v + ((uint64_t) (last - table) << GUEST_PAGE_SHIFT));
}

/* What a level-2 entry maps, [v, end) of it. */
static void retire_block(unmap_t *u, pte_t *entry, uint64_t v, uint64_t end)
{
    /* Acquire: pairs with the release in pt_make_l3. */
    pte_t pte = __atomic_load_n(entry, __ATOMIC_ACQUIRE);

    if ((pte & PTE_VALID) && end - v < BLOCK_SIZE) {
        if (end - v == GUEST_PAGE_SIZE)
            retire_page(u, table_at(u, pte), v);
        else
            retire_pages(u, table_at(u, pte), v, end);
        return;
    }
    if (!pte)
        return;
    if (pte & PTE_VALID) {
        __atomic_store_n(entry, (pte & PTE_ADDR) | PTE_RETIRED,
                         __ATOMIC_RELAXED);
        u->pages += BLOCK_PAGES;
    }
    u->tables = true;
    note(u, v, end);
}

/* Level 2 of [v, end), which lies in one of its tables. */
static void retire_table(unmap_t *u, pte_t *table, uint64_t v, uint64_t end)
{
    uint64_t block = v & ~(BLOCK_SIZE - 1);
    pte_t *entry = &table[v >> BLOCK_SHIFT & (ENTRIES - 1)];
    pte_t *first = entry;
    pte_t *stop = entry + ((end - block + BLOCK_SIZE - 1) >> BLOCK_SHIFT);

    for (;; entry++) {
        uint64_t start, last;

        entry = next_entry(entry, stop);
        if (entry == stop)
            return;
        start = block + ((uint64_t) (entry - first) << BLOCK_SHIFT);
        last = start + BLOCK_SIZE;
        retire_block(u, entry, start > v ? start : v, last < end ? last : end);
    }
}

/* The level-2 table of v. 0: there is none, and none up to *stop either. The
 * tables of these levels are never freed in the zone. */
static inline pte_t *level2(const unmap_t *u, uint64_t v, uint64_t *stop)
{
    /* Acquire: as in retire_block(). */
    pte_t pte = __atomic_load_n(&table_at(u, u->shared->root)[v >> 39],
                                __ATOMIC_ACQUIRE);

    *stop = (v | ((1UL << (pte ? 30 : 39)) - 1)) + 1;
    if (pte)
        pte = __atomic_load_n(&table_at(u, pte)[v >> 30 & (ENTRIES - 1)],
                              __ATOMIC_ACQUIRE);
    return pte ? table_at(u, pte) : NULL;
}

static void retire(unmap_t *u)
{
    uint64_t v = u->start, stop;
    pte_t *table;

    if ((u->start ^ (u->end - 1)) < BLOCK_SIZE) {
        table = level2(u, v, &stop);
        if (table)
            retire_block(u, &table[v >> BLOCK_SHIFT & (ENTRIES - 1)], v,
                         u->end);
        return;
    }
    for (; v < u->end; v = stop) {
        table = level2(u, v, &stop);
        stop = stop < u->end ? stop : u->end;
        if (table)
            retire_table(u, table, v, stop);
    }
}

/* --- the rest ------------------------------------------------------------ */

static void invalidate(const unmap_t *u)
{
    uint64_t pages = (u->high - u->low) >> GUEST_PAGE_SHIFT;

    arch_dsb_ishst();
    if (pages == 1 && !u->tables)
        arch_tlbi_vale1is(tlbi_va_operand(u->low));
    else
        tlb_invalidate(u->low, pages, !u->tables);
    arch_dsb_ish();
    arch_isb();
}

static void publish(const unmap_t *u, fast_shared_t *shared)
{
    fast_control_t *c = u->control;
    uint64_t tail = c->retire_tail, pages;
    fast_retire_t *r = &fast_retires(c)[tail % FAST_RING];

    r->addr = u->start;
    r->pages = (u->end - u->start) >> GUEST_PAGE_SHIFT;
    /* Release: pairs with the drain's acquire. */
    __atomic_store_n(&c->retire_tail, tail + 1, __ATOMIC_RELEASE);
    fast_count(c, FAST_MUNMAPS);
    if (!u->pages)
        return;
    pages = c->retired_pages + u->pages;
    __atomic_store_n(&c->retired_pages, pages, __ATOMIC_RELAXED);
    if (pages - __atomic_load_n(&c->drained_pages, __ATOMIC_RELAXED) >
        FAST_ADVISE_PAGES)
        __atomic_store_n(&shared->advise, 1, __ATOMIC_RELAXED);
}

static int64_t unmap(unmap_t *u, uint64_t offset, uint64_t size)
{
    uint64_t last = offset + size - 1;
    fast_control_t *c = u->control;

    if (!granted(u, offset >> FAST_CHUNK_SHIFT, last >> FAST_CHUNK_SHIFT) ||
        !plain(u, offset >> BLOCK_SHIFT, last >> BLOCK_SHIFT) ||
        (__atomic_load_n(&u->shared->off, __ATOMIC_RELAXED) & FAST_NO_RETIRES))
        return fast_miss(c, FAST_MISS_BLOCK);
    retire(u);
    if (FAST_BREAK == BREAK_ACTIVE)
        fast_leave(c);
    if (u->low < u->high)
        invalidate(u);
    publish(u, (fast_shared_t *) u->shared);
    return 0;
}

int64_t shim_fast_munmap(vcpu_frame_t *f)
{
    fast_control_t *c = fast_control(f);
    const fast_shared_t *shared = arch_fast_shared();
    uint64_t addr = f->x[0], offset = addr - shared->zone_start;
    uint64_t size = (f->x[1] + GUEST_PAGE_SIZE - 1) & GUEST_PAGE_MASK;
    unmap_t u = {
        .shared = shared,
        .control = c,
        .start = addr,
        .end = addr + size,
        .low = ~0UL,
    };
    int64_t result;

    if ((addr & ~GUEST_PAGE_MASK) || offset >= shared->zone_size ||
        size - 1 >= shared->zone_size - offset)
        return fast_miss(c, FAST_MISS_SHAPE);
    /* The slot first: no descriptor changes without one. Acquire: as for
     * grants. */
    if (c->retire_tail - __atomic_load_n(&c->retire_head, __ATOMIC_ACQUIRE) >=
        FAST_RING - 1)
        return fast_miss(c, FAST_MISS_RING);
    if (!fast_enter(c, shared, fast_blocks_of(offset, size)))
        return fast_miss(c, FAST_MISS_CLAIM);
    result = unmap(&u, offset, size);
    fast_leave(c);
    return result;
}
