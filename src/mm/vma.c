/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The VMA tree: nodes, look-up, gaps, and edits that merge as Linux merges.
 *
 * Every node carries the gap below it and the largest gap of its subtree.
 * tree.h recomputes the latter where it rotates; what it does not do is carry a
 * change up to the root, so that gap_carry() does.
 */
#include <stdlib.h>

#include "mm/fast.h"
#include "mm/internal.h"
#include "proc/proc.h"

#define VMA_SLAB 64

static void gap_recompute(vma_t *vma)
{
    uint64_t max = vma->gap;
    const vma_t *left = RB_LEFT(vma, node), *right = RB_RIGHT(vma, node);

    if (left && left->max_gap > max)
        max = left->max_gap;
    if (right && right->max_gap > max)
        max = right->max_gap;
    vma->max_gap = max;
}

#undef RB_AUGMENT
#define RB_AUGMENT(vma) gap_recompute(vma)

static int vma_compare(const vma_t *a, const vma_t *b)
{
    return a->start < b->start ? -1 : a->start > b->start;
}

#define UNUSED_STATIC __attribute__((unused)) static
RB_GENERATE_INTERNAL(vma_tree, vma, node, vma_compare, UNUSED_STATIC)

vma_t *vma_next(vma_t *vma)
{
    return RB_NEXT(vma_tree, NULL, vma);
}

vma_t *vma_prev(vma_t *vma)
{
    return RB_PREV(vma_tree, NULL, vma);
}

vma_t *vma_first(struct mm *mm)
{
    return RB_MIN(vma_tree, &mm->vmas);
}

/* --- gaps ---------------------------------------------------------------- */

/* All ancestors, whether or not one on the way was right already: a rotation
 * may have recomputed it. */
static void gap_carry_all(vma_t *vma)
{
    for (; vma; vma = RB_PARENT(vma, node))
        gap_recompute(vma);
}

/* The tree was consistent before this VMA's gap changed. */
static void gap_carry(vma_t *vma)
{
    for (; vma; vma = RB_PARENT(vma, node)) {
        uint64_t old = vma->max_gap;
        gap_recompute(vma);
        if (vma->max_gap == old)
            break;
    }
}

static uint64_t gap_below(const vma_t *vma, const vma_t *prev)
{
    uint64_t top = vma_guard_start(vma), bottom = prev ? prev->end : 0;

    return top > bottom ? top - bottom : 0;
}

static void gap_update(vma_t *vma, const vma_t *prev)
{
    uint64_t gap = gap_below(vma, prev);

    if (gap == vma->gap)
        return;
    vma->gap = gap;
    gap_carry(vma);
}

/* The part of this VMA's gap inside [low, high) from its top: its end in *top.
 * False when it has fewer than len bytes. */
static bool gap_fits(const vma_t *vma, uint64_t len, uint64_t low,
                     uint64_t high, uint64_t *bottom, uint64_t *top)
{
    *top = vma_guard_start(vma);
    *bottom = *top - vma->gap;
    if (*top > high)
        *top = high;
    if (*bottom < low)
        *bottom = low;
    return *top > *bottom && *top - *bottom >= len;
}

static uint64_t topdown(const vma_t *vma, uint64_t len, uint64_t low,
                        uint64_t high)
{
    uint64_t bottom, top, found;

    while (vma && vma->max_gap >= len) {
        if (vma->end < high) {
            found = topdown(RB_RIGHT(vma, node), len, low, high);
            if (found)
                return found;
        }
        if (gap_fits(vma, len, low, high, &bottom, &top))
            return top - len;
        if (vma->start <= low)
            return 0;
        vma = RB_LEFT(vma, node);
    }
    return 0;
}

static uint64_t bottomup(const vma_t *vma, uint64_t len, uint64_t low,
                         uint64_t high)
{
    uint64_t bottom, top, found;

    while (vma && vma->max_gap >= len) {
        if (vma->start > low) {
            found = bottomup(RB_LEFT(vma, node), len, low, high);
            if (found)
                return found;
        }
        if (gap_fits(vma, len, low, high, &bottom, &top))
            return bottom;
        if (vma->end >= high)
            return 0;
        vma = RB_RIGHT(vma, node);
    }
    return 0;
}

/* Where the space above the last VMA begins, inside [low, high]. */
static uint64_t gap_last(struct mm *mm, uint64_t low, uint64_t high)
{
    const vma_t *last = RB_MAX(vma_tree, &mm->vmas);
    uint64_t bottom = last && last->end > low ? last->end : low;

    return bottom < high ? bottom : high;
}

uint64_t vma_gap_topdown(struct mm *mm, uint64_t len, uint64_t low,
                         uint64_t high)
{
    if (low >= high || high - low < len)
        return 0;
    if (high - gap_last(mm, low, high) >= len)
        return high - len;
    return topdown(RB_ROOT(&mm->vmas), len, low, high);
}

uint64_t vma_gap_bottomup(struct mm *mm, uint64_t len, uint64_t low,
                          uint64_t high)
{
    uint64_t found, last;

    if (low >= high || high - low < len)
        return 0;
    found = bottomup(RB_ROOT(&mm->vmas), len, low, high);
    if (found)
        return found;
    last = gap_last(mm, low, high);
    return high - last >= len ? last : 0;
}

/* --- look-up ------------------------------------------------------------- */

vma_t *vma_find(struct mm *mm, uint64_t addr)
{
    vma_t *vma = mm->vma_cache, *found = NULL;

    if (vma && vma->start <= addr && addr < vma->end)
        return vma;
    for (vma = RB_ROOT(&mm->vmas); vma;) {
        if (vma->end <= addr) {
            vma = RB_RIGHT(vma, node);
            continue;
        }
        found = vma;
        if (vma->start <= addr)
            break;
        vma = RB_LEFT(vma, node);
    }
    if (found)
        mm->vma_cache = found;
    return found;
}

vma_t *vma_at(struct mm *mm, uint64_t addr)
{
    vma_t *vma = vma_find(mm, addr);

    return vma && vma->start <= addr ? vma : NULL;
}

vma_t *vma_overlap(struct mm *mm, uint64_t start, uint64_t end)
{
    vma_t *vma = vma_find(mm, start);

    return vma && vma->start < end ? vma : NULL;
}

uint64_t vma_overlap_last(struct mm *mm, uint64_t start, uint64_t end)
{
    vma_t *above = vma_find(mm, end - 1);
    const vma_t *last;

    if (above && above->start < end)
        return end;
    last = above ? vma_prev(above) : RB_MAX(vma_tree, &mm->vmas);
    return last && last->end > start ? last->end : start;
}

/* --- nodes --------------------------------------------------------------- */

int vma_reserve(struct mm *mm, unsigned n)
{
    while (mm->nr_spare < n) {
        vma_t *slab = calloc(VMA_SLAB, sizeof(*slab));
        if (!slab)
            return -ENOMEM;
        for (unsigned i = 0; i < VMA_SLAB; i++)
            vma_free(mm, &slab[i]);
    }
    return 0;
}

vma_t *vma_alloc(struct mm *mm)
{
    vma_t *vma = mm->vma_spare;

    if (!vma)
        elfuse_panic("vma_alloc: no node was reserved");
    mm->vma_spare = RB_LEFT(vma, node);
    mm->nr_spare--;
    return vma;
}

void vma_free(struct mm *mm, vma_t *vma)
{
    RB_LEFT(vma, node) = mm->vma_spare;
    mm->vma_spare = vma;
    mm->nr_spare++;
}

/* --- edits --------------------------------------------------------------- */

void vma_insert(struct mm *mm, vma_t *vma)
{
    vma_t *prev, *next;

    vma->gap = vma->max_gap = 0;
    if (vma->start >= vma->end || RB_INSERT(vma_tree, &mm->vmas, vma))
        elfuse_panic("vma_insert: %#lx-%#lx is there already", vma->start,
                     vma->end);
    prev = vma_prev(vma);
    next = vma_next(vma);
    if ((prev && prev->end > vma->start) || (next && next->start < vma->end))
        elfuse_panic("vma_insert: %#lx-%#lx overlaps a neighbour", vma->start,
                     vma->end);
    vma->gap = gap_below(vma, prev);
    gap_carry_all(vma);
    if (next)
        gap_update(next, vma);
    mm->nr_vmas++;
}

void vma_remove(struct mm *mm, vma_t *vma)
{
    vma_t *prev = vma_prev(vma), *next = vma_next(vma);

    /* Without a gap of its own, taking it out changes no ancestor's maximum. */
    vma->gap = 0;
    gap_carry(vma);
    RB_REMOVE(vma_tree, &mm->vmas, vma);
    if (next)
        gap_update(next, prev);
    mm->nr_vmas--;
    if (mm->vma_cache == vma)
        mm->vma_cache = NULL;
}

void vma_set_range(struct mm *mm, vma_t *vma, uint64_t start, uint64_t end)
{
    vma_t *next;

    (void) mm;
    if (start != vma->start) {
        vma->offset += start - vma->start;
        if (vma->object)
            vma->object_host += start - vma->start;
        vma->start = start;
        gap_update(vma, vma_prev(vma));
    }
    if (end != vma->end) {
        vma->end = end;
        next = vma_next(vma);
        if (next)
            gap_update(next, vma);
    }
}

vma_t *vma_split(struct mm *mm, vma_t *vma, uint64_t addr)
{
    vma_t *upper = vma_alloc(mm);
    uint64_t end = vma->end;

    *upper = *vma;
    upper->start = addr;
    upper->offset += addr - vma->start;
    if (upper->object)
        upper->object_host += addr - vma->start;
    vma_set_range(mm, vma, vma->start, addr);
    upper->end = end;
    vma_insert(mm, upper);
    return upper;
}

/* Would Linux make one of these two? */
static bool mergeable(const vma_t *low, const vma_t *high)
{
    if (low->end != high->start || low->prot != high->prot ||
        low->flags != high->flags || low->max_prot != high->max_prot ||
        low->object != high->object || low->name != high->name ||
        (low->flags & VMA_SPECIAL))
        return false;
    /* Linux counts the areas of a segment, and leaves them as they are. */
    if (low->object && low->object->attach)
        return false;
    if (low->object)
        return vma_object_host(low, low->end) == high->object_host;
    return low->offset + (low->end - low->start) == high->offset;
}

/* Whatever is not plain in the zone of EL1's mappings is the host's alone, and
 * so are the blocks it lies in. */
static void zone_mark(struct mm *mm, const vma_t *area)
{
    if (fast_in_zone(mm, area->start, area->end) && !fast_plain(area))
        fast_mark(mm, area->start, area->end);
}

vma_t *vma_add(struct mm *mm, const vma_t *area)
{
    vma_t *next = vma_find(mm, area->start), *prev, *vma;

    zone_mark(mm, area);
    prev = next ? vma_prev(next) : RB_MAX(vma_tree, &mm->vmas);
    if (prev && !mergeable(prev, area))
        prev = NULL;
    if (next && !mergeable(area, next))
        next = NULL;
    if (prev) {
        uint64_t end = area->end;
        if (next) {
            end = next->end;
            vma_remove(mm, next);
            vma_free(mm, next);
        }
        vma_set_range(mm, prev, prev->start, end);
        return prev;
    }
    if (next) {
        vma_set_range(mm, next, area->start, next->end);
        return next;
    }
    vma = vma_alloc(mm);
    *vma = *area;
    vma_insert(mm, vma);
    return vma;
}

static void vma_delete(struct mm *mm, vma_t *vma)
{
    vma_remove(mm, vma);
    vma_free(mm, vma);
}

/* [start, end) of vma goes over to prev and/or next, which touch it. */
static vma_t *modify_merge(struct mm *mm, vma_t *vma, vma_t *prev, vma_t *next,
                           uint64_t start, uint64_t end)
{
    if (prev && next) {
        end = next->end;
        vma_delete(mm, vma);
        vma_delete(mm, next);
        vma_set_range(mm, prev, prev->start, end);
        return prev;
    }
    if (prev) {
        if (end == vma->end)
            vma_delete(mm, vma);
        else
            vma_set_range(mm, vma, end, vma->end);
        vma_set_range(mm, prev, prev->start, end);
        return prev;
    }
    if (start == vma->start)
        vma_delete(mm, vma);
    else
        vma_set_range(mm, vma, vma->start, start);
    vma_set_range(mm, next, start, next->end);
    return next;
}

/* [start, end) of vma becomes what *as has of protection, flags and name. */
static vma_t *modify(struct mm *mm, vma_t *vma, uint64_t start, uint64_t end,
                     const vma_t *as)
{
    vma_t *prev, *next, want = *as;

    want.start = start;
    want.end = end;
    want.offset += start - vma->start;
    want.object_host += start - vma->start;
    /* What is the host's already stays so. */
    if (mm->fast && fast_plain(vma))
        zone_mark(mm, &want);
    prev = start == vma->start ? vma_prev(vma) : NULL;
    next = end == vma->end ? vma_next(vma) : NULL;
    if (prev && !mergeable(prev, &want))
        prev = NULL;
    if (next && !mergeable(&want, next))
        next = NULL;
    if (prev || next)
        return modify_merge(mm, vma, prev, next, start, end);
    /* As in Linux, the first cut stays when the second is refused. */
    if (start > vma->start) {
        if (mm->nr_vmas >= VMA_COUNT_MAX || vma_reserve(mm, 2))
            return NULL;
        vma = vma_split(mm, vma, start);
    }
    if (end < vma->end) {
        if (mm->nr_vmas >= VMA_COUNT_MAX || vma_reserve(mm, 1))
            return NULL;
        vma_split(mm, vma, end);
    }
    vma->prot = want.prot;
    vma->flags = want.flags;
    vma->name = want.name;
    return vma;
}

vma_t *vma_modify(struct mm *mm, vma_t *vma, uint64_t start, uint64_t end,
                  uint8_t prot, uint32_t flags)
{
    vma_t want = *vma;

    if (vma->prot == prot && vma->flags == flags)
        return vma;
    want.prot = prot;
    want.flags = flags;
    return modify(mm, vma, start, end, &want);
}

vma_t *vma_rename(struct mm *mm, vma_t *vma, uint64_t start, uint64_t end,
                  const char *name)
{
    vma_t want = *vma;

    if (vma->name == name)
        return vma;
    want.name = name;
    return modify(mm, vma, start, end, &want);
}

void vma_clear(struct mm *mm, uint64_t start, uint64_t end)
{
    vma_t *vma = vma_overlap(mm, start, end), *next;

    for (; vma && vma->start < end; vma = next) {
        next = vma_next(vma);
        if (vma->start < start) {
            if (vma->end > end)
                vma_split(mm, vma, end);
            vma_set_range(mm, vma, vma->start, start);
        } else if (vma->end > end) {
            vma_set_range(mm, vma, end, vma->end);
        } else {
            vma_delete(mm, vma);
        }
    }
}
