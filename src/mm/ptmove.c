/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moving private anonymous memory for mremap.
 *
 * 1. Everything the destination needs is made, and its tables are pinned, so
 *    that unmapping what is there leaves them. Nothing has changed for the
 * guest, so this may fail.
 * 2. Valid source entries become EVICTED: contents live, no translation; the
 *    invalidation is carried out at once.
 * 3. Contents go over, and entries: EVICTED at the destination too.
 * 4. The destination's entries become valid; one that cannot be waits for its
 *    fault, as any evicted page.
 */
#include "mm/internal.h"
#include "mm/tablepool.h"

#include <errno.h>
#include <string.h>

/* From here on the host's own mremap is asked, when the range is dense. */
#define HOST_MOVE_MIN (4UL << 20)

typedef struct move {
    struct mm *mm;
    uint64_t from, to, len;
    pte_t perm; /* EVICTED form of the destination's descriptors */
    bool moved; /* the host moved the contents */
} move_t;

/* 2. */
static void evict_source(const move_t *mv, struct mm_cpu *cpu)
{
    struct mm *mm = mv->mm;
    uint64_t v = mv->from, end = mv->from + mv->len;
    _Atomic pte_t *table;
    gather_t g;

    gather_begin(&g, mm, cpu);
    while ((table = pt_next_l3(mm, &v, end))) {
        for (uint64_t stop = pt_block_end(v, end); v < stop;
             v += GUEST_PAGE_SIZE) {
            _Atomic pte_t *entry = &table[pt_index(v)];
            pte_t pte = atomic_load_explicit(entry, memory_order_relaxed);

            if (!pte_valid(pte))
                continue;
            atomic_store_explicit(entry, pte & ~PTE_VALID,
                                  memory_order_relaxed);
            window_count(mm, pte & PTE_ADDR, -1);
            gather_range(&g, v, v + GUEST_PAGE_SIZE);
        }
    }
    gather_finish_now(&g);
}

/* Calls fn for each piece [v, v + len) of the source that lies in one block of
 * the source and one of the destination, has a table, and present pages. */
static int for_pieces(const move_t *mv,
                      int (*fn)(const move_t *mv, _Atomic pte_t *table,
                                uint64_t v, uint64_t len))
{
    uint64_t v = mv->from, end = mv->from + mv->len;
    _Atomic pte_t *table;

    while ((table = pt_next_l3(mv->mm, &v, end))) {
        uint64_t stop = pt_block_end(v, end);
        bool any = table_meta(mv->mm->pool, table)->present != 0;

        while (v < stop) {
            uint64_t to = v - mv->from + mv->to;
            uint64_t len = pt_block_end(to, to + (stop - v)) - to;
            int error = any ? fn(mv, table, v, len) : 0;

            if (error)
                return error;
            v += len;
        }
    }
    return 0;
}

/* 1. The block is dirty from here on, which keeps its chunk accessible. */
static int prepare_piece(const move_t *mv, _Atomic pte_t *table, uint64_t v,
                         uint64_t len)
{
    uint64_t to = v - mv->from + mv->to;
    _Atomic pte_t *dst;

    if (hostspace_commit(mv->mm, to, to + len))
        return -ENOMEM;
    dst = materialise_table(mv->mm, to);
    if (!dst)
        return -ENOMEM;
    table_meta(mv->mm->pool, dst)->pinned = true;
    return 0;
}

/* Let the host move the whole range, if that pays and nothing is in the way:
 * backing without contents is given back first on both sides, so that what is
 * not present is zero on both sides afterwards. */
static bool move_by_host(const move_t *mv, gather_t *g)
{
    struct mm *mm = mv->mm;
    uint64_t end = mv->from + mv->len;

    if (mv->len < HOST_MOVE_MIN ||
        pt_count_present(mm, mv->from, end) < mv->len >>
            (GUEST_PAGE_SHIFT + 1) ||
        span_overlaps(mm, mv->from, end) ||
        span_overlaps(mm, mv->to, mv->to + mv->len) ||
        hostspace_commit(mm, mv->to, mv->to + mv->len))
        return false;
    pt_drop(mm, g, mv->from, end);
    pt_drop(mm, g, mv->to, mv->to + mv->len);
    return true;
}

/* 3. One page's entries; its contents are moved or about to be copied. */
static void move_entry(const move_t *mv, _Atomic pte_t *entry,
                       _Atomic pte_t *dst, table_meta_t *from, table_meta_t *to,
                       unsigned index)
{
    table_pool_t *pool = mv->mm->pool;

    if (atomic_load_explicit(dst, memory_order_relaxed) == PTE_INV_DIRTY) {
        to->dirty--;
        pool->retained--;
    }
    atomic_store_explicit(dst, mv->perm, memory_order_release);
    to->present++;
    if (index < to->low)
        to->low = (uint16_t) index;
    if (index >= to->high)
        to->high = (uint16_t) (index + 1);
    atomic_store_explicit(entry, mv->moved ? PTE_INV_ZERO : PTE_INV_DIRTY,
                          memory_order_relaxed);
    from->present--;
    from->dirty += !mv->moved;
    pool->retained += !mv->moved;
}

static int move_piece(const move_t *mv, _Atomic pte_t *table, uint64_t v,
                      uint64_t len)
{
    struct mm *mm = mv->mm;
    uint64_t to = v - mv->from + mv->to;
    _Atomic pte_t *dst = pt_walk(mm, to) - pt_index(to);
    table_meta_t *from_meta = table_meta(mm->pool, table);
    table_meta_t *to_meta = table_meta(mm->pool, dst);

    for (uint64_t end = v + len; v < end;
         v += GUEST_PAGE_SIZE, to += GUEST_PAGE_SIZE) {
        _Atomic pte_t *entry = &table[pt_index(v)];

        if (!pte_present(atomic_load_explicit(entry, memory_order_relaxed)))
            continue;
        if (!mv->moved)
            memcpy(hostspace_ptr(mm, to), hostspace_ptr(mm, v),
                   GUEST_PAGE_SIZE);
        move_entry(mv, entry, &dst[pt_index(to)], from_meta, to_meta,
                   pt_index(to));
    }
    if (!from_meta->present) {
        from_meta->low = BLOCK_PAGES;
        from_meta->high = 0;
    }
    if (to_meta->listed && !to_meta->dirty)
        retained_remove(mm->pool, table_number(mm->pool, dst));
    return 0;
}

/* Tables of [start, end) that have nothing left, or were made for nothing. */
static void settle(struct mm *mm, gather_t *g, uint64_t start, uint64_t end)
{
    uint64_t v = start;
    _Atomic pte_t *table;

    while ((table = pt_next_l3(mm, &v, end))) {
        uint64_t stop = pt_block_end(v, end);

        table_meta(mm->pool, table)->pinned = false;
        pt_settle(mm, g, table, v & ~(BLOCK_SIZE - 1));
        v = stop;
    }
}

/* 4. */
static void revive(const move_t *mv, struct mm_cpu *cpu)
{
    struct mm *mm = mv->mm;
    uint64_t v = mv->to, end = mv->to + mv->len;

    while (pt_next_l3(mm, &v, end)) {
        uint64_t stop = pt_block_end(v, end);
        uint64_t ipa = window_ipa(mm, cpu, (uintptr_t) hostspace_ptr(mm, v));
        int64_t valid = 0;
        _Atomic pte_t *entry = pt_walk(mm, v);

        if (!ipa)
            return;
        for (; entry && v < stop;
             entry++, v += GUEST_PAGE_SIZE, ipa += GUEST_PAGE_SIZE) {
            pte_t pte = atomic_load_explicit(entry, memory_order_relaxed);

            if (!pte_evicted(pte))
                continue;
            atomic_store_explicit(entry, (pte & ~PTE_ADDR) | ipa | PTE_VALID,
                                  memory_order_release);
            valid++;
        }
        window_count(mm, ipa - GUEST_PAGE_SIZE, valid);
        v = stop;
    }
}

int pt_move_prepare(struct mm *mm, struct mm_cpu *cpu, uint64_t from,
                    uint64_t to, uint64_t len)
{
    move_t mv = {.mm = mm, .from = from, .to = to, .len = len};
    int error = for_pieces(&mv, prepare_piece);
    gather_t g;

    if (!error)
        return 0;
    gather_begin(&g, mm, cpu);
    settle(mm, &g, to, to + len);
    gather_finish(&g);
    return error;
}

void pt_move(struct mm *mm, struct mm_cpu *cpu, uint64_t from, uint64_t to,
             uint64_t len, int prot)
{
    move_t mv = {.mm = mm,
                 .from = from,
                 .to = to,
                 .len = len,
                 .perm = pte_prot(prot) & ~PTE_VALID};
    gather_t g;

    gather_wait_for(mm, cpu, from, from + len);
    gather_wait_for(mm, cpu, to, to + len);
    evict_source(&mv, cpu);
    gather_begin(&g, mm, cpu);
    mv.moved = move_by_host(&mv, &g) && hostspace_move(mm, from, to, len);
    (void) for_pieces(&mv, move_piece);
    settle(mm, &g, from, from + len);
    settle(mm, &g, to, to + len);
    gather_finish(&g);
    revive(&mv, cpu);
}
