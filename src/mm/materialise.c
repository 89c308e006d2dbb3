/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a VMA to valid descriptors. How many pages one fault takes is the policy
 * in materialise_fault(); everything below it is mechanism.
 *
 * Order, for one piece within a block: invalidations still due for it are
 * finished; the host may access it; its window has an IPA; its table exists;
 * the dirty map's bit is set; contents are right; then the descriptor becomes
 * valid, with release. Whoever may free tables or windows comes before whoever
 * keeps a pointer to one.
 *
 * Entries that the host owns change under mm->lock only. One that EL1 owns is
 * claimed by compare-and-swap to BUSY first.
 */
#include "mm/materialise.h"

#include <errno.h>
#include <sys/mman.h>

#include "mm/fast.h"
#include "mm/internal.h"
#include "mm/tablepool.h"
#include "proc/proc.h" /* elfuse_panic only */
#include "stats.h"

/* Pages taken by a first touch: of clean backing an aligned group, of backing
 * that must be zeroed one; so many times more for each fault of a linear sweep,
 * up to a most. */
#define CLEAN_PAGES     16U
#define CLEAN_GROWTH    2U
#define CLEAN_PAGES_MAX ((uint32_t) BLOCK_PAGES)
#define DIRTY_PAGES     1U
#define DIRTY_GROWTH    4U
#define DIRTY_PAGES_MAX 16U
/* A sweep in strides of at least so much takes single pages, and after a few
 * strides the next ones as well. */
#define STRIDE_MIN   (2UL * CLEAN_PAGES * GUEST_PAGE_SIZE)
#define STRIDE_RUN   2U
#define STRIDE_AHEAD 16U
/* A block counts as dense when so many of its pages have been in use. */
#define DENSE_PAGES (BLOCK_PAGES * 3 / 4)

/* One piece of a VMA within one block. */
typedef struct piece {
    struct mm *mm;
    struct vma *vma;
    _Atomic pte_t *table;
    table_meta_t *meta;
    uint64_t start, end;
    bool zero_only; /* leave pages that would have to be zeroed */
} piece_t;

static pte_t entry_load(const piece_t *p, uint64_t v)
{
    return atomic_load_explicit(&p->table[pt_index(v)], memory_order_relaxed);
}

/* Take an invalid entry for this materialisation; false: EL1 was faster. */
static bool entry_claim(const piece_t *p, uint64_t v, pte_t pte)
{
    /* Acquire: pairs with EL1's release of what it retired. */
    return !(pte & PTE_INV_EL1) ||
           atomic_compare_exchange_strong_explicit(
               &p->table[pt_index(v)], &pte, pte | PTE_INV_BUSY,
               memory_order_acquire, memory_order_relaxed);
}

static void entry_store(const piece_t *p, uint64_t v, pte_t pte)
{
    /* Release: contents, and the dirty map's bit, come before; pairs with the
     * acquire of spans and with the guest's table walkers. */
    atomic_store_explicit(&p->table[pt_index(v)], pte, memory_order_release);
}

static void grow_present(const piece_t *p, uint64_t start, uint64_t end)
{
    unsigned low = pt_index(start), high = pt_index(end - 1) + 1;

    if (low < p->meta->low)
        p->meta->low = (uint16_t) low;
    if (high > p->meta->high)
        p->meta->high = (uint16_t) high;
}

_Atomic pte_t *materialise_table(struct mm *mm, uint64_t v)
{
    _Atomic pte_t *table, *entry;

    if (dirty_test(mm->dirty, v >> BLOCK_SHIFT))
        return pt_make_l3(mm, v, PTE_INV_ZERO);
    /* A block that was clean until now: every page is zero. */
    entry = pt_walk(mm, v);
    table = entry ? entry - pt_index(v) : pt_make_l3(mm, v, PTE_INV_ZERO);
    if (!table)
        return NULL;
    for (unsigned i = 0; entry && i < BLOCK_PAGES; i++)
        if (!atomic_load_explicit(&table[i], memory_order_relaxed))
            atomic_store_explicit(&table[i], PTE_INV_ZERO,
                                  memory_order_relaxed);
    /* Release inside: before any descriptor becomes valid. */
    dirty_set(mm->dirty, v >> BLOCK_SHIFT);
    stats_add(blocks_entered, 1);
    return table;
}

/* End of the run of entries from v on that are like `like`. */
static uint64_t run_end(const piece_t *p, uint64_t v, pte_t like)
{
    while (v < p->end && entry_load(p, v) == like)
        v += GUEST_PAGE_SIZE;
    return v;
}

/* [v, end) has entries with the same invalid state; make them valid. */
static void fill_run(const piece_t *p, uint64_t v, uint64_t end, pte_t state,
                     pte_t pte)
{
    uint64_t pages = (end - v) >> GUEST_PAGE_SHIFT;
    table_pool_t *pool = p->mm->pool;

    if (!(state & PTE_INV_ZERO)) {
        hostspace_zero(p->mm, v, end);
        stats_add(pages_zeroed, pages);
        p->meta->dirty = (uint16_t) (p->meta->dirty - pages);
        pool->retained -= pages;
    } else {
        stats_add(pages_clean, pages);
    }
    /* What the host wrote there may be executed now (Arm ARM B2.7.4). */
    if (!(pte & PTE_UXN)) {
        char *host = hostspace_ptr(p->mm, v);

        __builtin___clear_cache(host, host + (end - v));
    }
    for (; v < end; v += GUEST_PAGE_SIZE, pte += GUEST_PAGE_SIZE)
        entry_store(p, v, pte);
    p->meta->present = (uint16_t) (p->meta->present + pages);
    pool->resident += pages;
}

/* The bit that lets EL1 unmap the pages of a plain VMA. */
static pte_t retirable(const piece_t *p)
{
    return fast_in_zone(p->mm, p->start, p->end) && fast_plain(p->vma)
               ? PTE_SW_EL1
               : 0;
}

/* Fill the piece from private anonymous backing at IPA `ipa`. */
static void fill_anonymous(const piece_t *p, uint64_t ipa)
{
    pte_t base = pte_prot(p->vma->prot) | retirable(p);
    table_pool_t *pool = p->mm->pool;
    int64_t valid = 0;
    uint64_t end;

    for (uint64_t v = p->start; v < p->end; v = end) {
        pte_t pte = entry_load(p, v), to = base | (ipa + (v - p->start));

        end = v + GUEST_PAGE_SIZE;
        if (pte_valid(pte))
            continue;
        if (pte_evicted(pte)) {
            /* Its window is back, perhaps elsewhere; permissions stay. */
            entry_store(p, v, (pte & ~PTE_ADDR) | (to & PTE_ADDR) | PTE_VALID);
            valid++;
            continue;
        }
        if (p->zero_only && !(pte & PTE_INV_ZERO))
            continue;
        if (!entry_claim(p, v, pte))
            continue;
        if (!(pte & PTE_INV_EL1))
            end = run_end(p, end, pte);
        fill_run(p, v, end, pte, to);
        valid += (int64_t) ((end - v) >> GUEST_PAGE_SHIFT);
    }
    window_count(p->mm, ipa, valid);
    grow_present(p, p->start, p->end);
    if (pool->resident > pool->peak)
        pool->peak = pool->resident;
    if (p->meta->listed && !p->meta->dirty)
        retained_remove(pool, table_number(pool, p->table));
}

static int map_anonymous(piece_t *p, struct mm_cpu *cpu)
{
    struct mm *mm = p->mm;
    uint64_t ipa;

    if (hostspace_commit(mm, p->start, p->end)) {
        /* The host takes no more mappings: retained memory holds some. */
        pt_trim_all(mm, cpu);
        if (hostspace_commit(mm, p->start, p->end))
            return -ENOMEM;
    }
    ipa = window_ipa(mm, cpu, (uintptr_t) hostspace_ptr(mm, p->start));
    if (!ipa)
        return -ENOMEM;
    p->table = materialise_table(mm, p->start);
    if (!p->table)
        return -ENOMEM;
    p->meta = table_meta(mm->pool, p->table);
    fill_anonymous(p, ipa);
    return 0;
}

/* Pages of an object: the part of the piece that lies in one window. */
static int map_object_part(piece_t *p, struct mm_cpu *cpu, uint64_t start,
                           uint64_t end, uint64_t host)
{
    struct mm *mm = p->mm;
    pte_t base = pte_prot(p->vma->prot) | PTE_SW_OBJECT;
    uint64_t ipa = window_ipa(mm, cpu, host);
    int64_t valid = 0;

    if (!ipa)
        return -ENOMEM;
    p->table = pt_make_l3(mm, start, 0);
    if (!p->table)
        return -ENOMEM;
    p->meta = table_meta(mm->pool, p->table);
    for (uint64_t v = start; v < end; v += GUEST_PAGE_SIZE) {
        pte_t pte = entry_load(p, v), to = base | (ipa + (v - start));

        if (pte_valid(pte) || (!pte_present(pte) && !entry_claim(p, v, pte)))
            continue;
        if (pte == PTE_INV_DIRTY) {
            p->meta->dirty--;
            mm->pool->retained--;
        }
        p->meta->present += !pte_present(pte);
        entry_store(p, v, to);
        valid++;
    }
    window_count(mm, ipa, valid);
    grow_present(p, start, end);
    if (p->meta->listed && !p->meta->dirty)
        retained_remove(mm->pool, table_number(mm->pool, p->table));
    return 0;
}

static int map_object(piece_t *p, struct mm_cpu *cpu)
{
    uint64_t host = p->vma->object_host + (p->start - p->vma->start);
    uint64_t size = 1UL << p->mm->windows->shift;
    uint64_t stop;

    for (uint64_t v = p->start; v < p->end; host += stop - v, v = stop) {
        uint64_t left = size - ((host - p->mm->windows->host) & (size - 1));
        int error;

        stop = p->end - v < left ? p->end : v + left;
        error = map_object_part(p, cpu, v, stop, host);
        if (error)
            return error;
    }
    return 0;
}

static int map_pieces(struct mm *mm, struct mm_cpu *cpu, struct vma *vma,
                      uint64_t start, uint64_t end, bool zero_only)
{
    if (!fast_excluded(mm, start, end))
        elfuse_panic("mm: %#lx-%#lx is touched, but not claimed", start, end);
    if (revoking_pending(mm))
        gather_wait_for(mm, cpu, start, end);
    while (start < end) {
        uint64_t stop = pt_block_end(start, end);
        piece_t p = {.mm = mm,
                     .vma = vma,
                     .start = start,
                     .end = stop,
                     .zero_only = zero_only};
        int error = vma->object ? map_object(&p, cpu) : map_anonymous(&p, cpu);

        if (error)
            return error;
        start = stop;
    }
    return 0;
}

int materialise_range(struct mm *mm, struct mm_cpu *cpu, struct vma *vma,
                      uint64_t start, uint64_t end)
{
    return map_pieces(mm, cpu, vma, start, end, false);
}

/* Pages of v's block that have been in use, and may still be. */
static unsigned block_used(struct mm *mm, uint64_t v)
{
    _Atomic pte_t *entry = v < mm->task_size ? pt_walk(mm, v) : NULL;
    const table_meta_t *m;

    if (!entry)
        return 0;
    m = table_meta(mm->pool, entry - pt_index(v));
    return m->present + m->dirty;
}

/* May this untouched block be used as a whole: it is asked for, or memory next
 * to it was used densely. */
static bool block_dense(struct mm *mm, const struct vma *vma, uint64_t v)
{
    uint64_t block = v & ~(BLOCK_SIZE - 1);

    if (vma->flags & VMA_NOHUGEPAGE)
        return false;
    if (vma->flags & VMA_HUGEPAGE && vma->start <= block &&
        vma->end - block >= BLOCK_SIZE)
        return true;
    return block_used(mm, block + BLOCK_SIZE) >= DENSE_PAGES ||
           block_used(mm, block - BLOCK_SIZE) >= DENSE_PAGES;
}

/* How many pages to take from `page` on for a fault that may continue the last
 * one's sweep. */
static uint32_t sweep_pages(const struct mm_cpu *cpu, uint64_t page,
                            uint32_t first, uint32_t growth, uint32_t most)
{
    uint32_t pages = first;

    if (page == cpu->fault_next && cpu->fault_pages) {
        pages = cpu->fault_pages * growth;
        if (pages < first)
            pages = first;
    }
    return pages < most ? pages : most;
}

/* Note a fault at `page`; true when it continues a sweep in wide strides. */
static bool strided(struct mm_cpu *cpu, uint64_t page)
{
    uint64_t stride = page - cpu->fault_last;

    if (stride == cpu->fault_stride) {
        cpu->fault_run++;
    } else {
        cpu->fault_stride = stride;
        cpu->fault_run = 0;
    }
    cpu->fault_last = page;
    /* Backwards is as good. */
    return cpu->fault_run >= STRIDE_RUN && stride + STRIDE_MIN > 2 * STRIDE_MIN;
}

/* Single pages, this one and twice as many ahead as at the last such fault. */
static int fault_strided(struct mm *mm, struct mm_cpu *cpu, struct vma *vma,
                         uint64_t page)
{
    unsigned doublings = cpu->fault_run - STRIDE_RUN;
    unsigned n = doublings < 8 ? 1U << doublings : STRIDE_AHEAD;
    int error = map_pieces(mm, cpu, vma, page, page + GUEST_PAGE_SIZE, false);

    n = n < STRIDE_AHEAD ? n : STRIDE_AHEAD;
    while (!error && --n) {
        page += cpu->fault_stride;
        if (page < vma->start || page >= vma->end ||
            !fast_excluded(mm, page, page + GUEST_PAGE_SIZE) ||
            map_pieces(mm, cpu, vma, page, page + GUEST_PAGE_SIZE, false))
            break;
        cpu->fault_last = page;
    }
    return error;
}

void materialise_reach(const struct mm_cpu *cpu, uint64_t addr, uint64_t *start,
                       uint64_t *end)
{
    uint64_t page = addr & GUEST_PAGE_MASK, stride = cpu->fault_stride;
    uint64_t reach = stride * (STRIDE_AHEAD + 1);

    *start = page & ~(BLOCK_SIZE - 1);
    *end = *start + 2 * BLOCK_SIZE;
    if (cpu->fault_run < STRIDE_RUN - 1 || page - cpu->fault_last != stride)
        return;
    if ((int64_t) stride > 0 && page + reach > page)
        *end = *end > page + reach ? *end : page + reach;
    else if (page + reach < page)
        *start = page + reach;
}

static uint64_t clip_end(const struct vma *vma, uint64_t start, uint64_t pages)
{
    uint64_t left = (vma->end - start) >> GUEST_PAGE_SHIFT;

    return start + (pages < left ? pages : left) * GUEST_PAGE_SIZE;
}

int materialise_fault(struct mm *mm, struct mm_cpu *cpu, struct vma *vma,
                      uint64_t addr)
{
    uint64_t page = addr & GUEST_PAGE_MASK, start = page, end;
    _Atomic pte_t *entry = pt_walk(mm, page);
    pte_t pte = entry ? atomic_load_explicit(entry, memory_order_relaxed) : 0;
    bool clean;
    int error;

    if (pte_valid(pte)) {
        stats_add(faults_spurious, 1);
        return 0;
    }
    /* A linear sweep that takes whole blocks has a stride, too. */
    if (strided(cpu, page) && page != cpu->fault_next && !vma->object)
        return fault_strided(mm, cpu, vma, page);
    clean = vma->object || pte_evicted(pte) || pte == PTE_INV_ZERO ||
            !dirty_test(mm->dirty, page >> BLOCK_SHIFT);
    if (!clean) {
        end = clip_end(
            vma, page,
            sweep_pages(cpu, page, DIRTY_PAGES, DIRTY_GROWTH, DIRTY_PAGES_MAX));
    } else if (!entry && !vma->object && block_dense(mm, vma, page)) {
        uint64_t block = page & ~(BLOCK_SIZE - 1);

        hostspace_advise_huge(mm, block);
        start = block > vma->start ? block : vma->start;
        end = pt_block_end(page, vma->end);
    } else if (page == cpu->fault_next) {
        end = clip_end(
            vma, page,
            sweep_pages(cpu, page, CLEAN_PAGES, CLEAN_GROWTH, CLEAN_PAGES_MAX));
        /* The next block is to be found untouched, and used as a whole. */
        if (!vma->object)
            end = pt_block_end(page, end);
    } else {
        start = page & ~(CLEAN_PAGES * GUEST_PAGE_SIZE - 1);
        if (start < vma->start)
            start = vma->start;
        end = clip_end(vma, start, CLEAN_PAGES);
        if (end <= page)
            end = page + GUEST_PAGE_SIZE;
    }
    error = map_pieces(mm, cpu, vma, start, end, clean && !vma->object);
    if (error && (start != page || end != page + GUEST_PAGE_SIZE))
        error = map_pieces(mm, cpu, vma, page, page + GUEST_PAGE_SIZE, false);
    cpu->fault_next = end;
    cpu->fault_pages = (uint32_t) ((end - page) >> GUEST_PAGE_SHIFT);
    return error;
}
