/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mremap. Private anonymous memory moves with its tables (pt_move); an object's
 * pages stay where the host has them, and only the VMA moves, unless it grows:
 * then the host makes a larger mapping.
 *
 * Linux unmaps the target of MREMAP_FIXED before it has checked the rest. Here
 * all that can fail comes first.
 */
#include <errno.h>
#include <sys/mman.h>

#include "mm/account.h"
#include "mm/calls.h"
#include "mm/fast.h"

#define LOCK_FLAGS (VMA_LOCKED | VMA_LOCKONFAULT)

typedef struct remap {
    uint64_t addr, old_len, new_len, new_addr;
    uint64_t flags;
    vma_t *vma; /* contains addr */
} remap_t;

static uint64_t pages_of(uint64_t bytes)
{
    return bytes >> GUEST_PAGE_SHIFT;
}

/* vma_to_resize(); `freed` pages of the target will be unmapped before. */
static int resize_check(mm_t *mm, const remap_t *r, uint64_t freed)
{
    const vma_t *vma = r->vma;
    uint64_t more;

    if (!r->old_len && !(vma->flags & VMA_SHARED))
        return -EINVAL;
    if ((r->flags & MREMAP_DONTUNMAP) && (vma->flags & VMA_SPECIAL))
        return -EINVAL;
    if (r->old_len > vma->end - r->addr)
        return -EFAULT;
    if (r->new_len == r->old_len)
        return 0;
    if (vma->flags & VMA_SPECIAL)
        return -EFAULT;
    more = pages_of(r->new_len - r->old_len);
    if ((vma->flags & VMA_LOCKED) && !account_may_lock(mm, more))
        return -EAGAIN;
    more -= min_u64(more, freed);
    if (!account_may_expand(mm, vma->prot, vma->flags, more))
        return -ENOMEM;
    return 0;
}

/* --- in place ------------------------------------------------------------ */

static bool expandable(mm_t *mm, const vma_t *vma, uint64_t more)
{
    uint64_t end = vma->end + more;

    return end > vma->end && end <= mm->task_size &&
           !vma_overlap(mm, vma->end, end) &&
           place_find(mm, vma->start, end - vma->start, MAP_FIXED) >= 0;
}

/*
 * A larger mapping of what is behind vma from addr on, len bytes of it. Private
 * pages move there, so nothing may reach the old ones any more.
 */
static int object_grow(mm_t *mm, mm_cpu_t *cpu, const vma_t *vma, uint64_t addr,
                       uint64_t len, uint64_t new_len, bool keep,
                       object_ref_t *ref)
{
    uint64_t host = vma_object_host(vma, addr);
    gather_t g;

    if (vma->flags & VMA_SHARED)
        return object_duplicate(mm, vma->object, host, new_len, ref);
    gather_begin(&g, mm, cpu);
    pt_unmap(mm, &g, addr, addr + len);
    gather_finish_now(&g);
    return object_move(mm, vma->object, host, len, new_len, keep, ref);
}

/* The VMA's pages are those of *ref from now on; gives up the old ones. */
static void object_replace(mm_t *mm, mm_cpu_t *cpu, vma_t *vma,
                           const object_ref_t *ref)
{
    gather_t g;

    gather_begin(&g, mm, cpu);
    pt_unmap(mm, &g, vma->start, vma->end);
    gather_free_object(&g, vma->object, vma->object_host,
                       vma->end - vma->start);
    gather_finish(&g);
    vma->object = ref->object;
    vma->object_host = ref->host;
}

static int grow_in_place(mm_t *mm, mm_cpu_t *cpu, const remap_t *r)
{
    vma_t *vma = r->vma, area = *vma;
    uint64_t more = r->new_len - r->old_len, len = vma->end - vma->start;
    object_ref_t ref;

    if ((vma->flags & VMA_ACCOUNT) &&
        !account_enough_memory(mm, pages_of(more)))
        return -ENOMEM;
    if (vma->object) {
        if (object_grow(mm, cpu, vma, vma->start, len, len + more, false, &ref))
            return -ENOMEM;
        object_replace(mm, cpu, vma, &ref);
        vma_set_range(mm, vma, vma->start, vma->end + more);
    } else {
        /* Always joins its predecessor, so that it needs no node. */
        area.offset += len;
        area.start = vma->end;
        area.end = vma->end + more;
        vma_add(mm, &area);
    }
    account_add(mm, area.prot, area.flags, (int64_t) pages_of(more));
    if (area.flags & VMA_LOCKED)
        populate_range(mm, cpu, r->addr + r->old_len, r->addr + r->new_len);
    return 0;
}

/* --- moving -------------------------------------------------------------- */

/* The new VMA, but for its backing. */
static vma_t moved_area(mm_t *mm, const remap_t *r)
{
    const vma_t *vma = r->vma;
    vma_t area = *vma;

    area.start = r->new_addr;
    area.end = r->new_addr + r->new_len;
    area.offset += r->addr - vma->start;
    if (vma->object)
        area.object_host = vma_object_host(vma, r->addr);
    else if (!pt_count_present(mm, vma->start, vma->end))
        area.offset = area.start; /* Linux: nothing was faulted in yet */
    return area;
}

/* The old range's VMAs go without their objects' pieces, which moved along. */
static void forget_old(mm_t *mm, mm_cpu_t *cpu, const remap_t *r,
                       const vma_t *area)
{
    gather_t g;

    gather_begin(&g, mm, cpu);
    pt_unmap(mm, &g, r->addr, r->addr + r->old_len);
    gather_finish(&g);
    account_add(mm, area->prot, area->flags, -(int64_t) pages_of(r->old_len));
    vma_clear(mm, r->addr, r->addr + r->old_len);
}

/* MREMAP_DONTUNMAP: the old range stays; its whole VMA is unlocked, as in
 * Linux. Looked up again: unmapping the target may have split it. */
static void unlock_old(mm_t *mm, const remap_t *r)
{
    vma_t *vma = vma_at(mm, r->addr);

    if (!vma || !(vma->flags & VMA_LOCKED))
        return;
    vma->flags &= ~LOCK_FLAGS;
    mm->usage.locked -= pages_of(vma->end - vma->start);
}

static int move_anonymous(mm_t *mm, mm_cpu_t *cpu, const remap_t *r)
{
    vma_t area = moved_area(mm, r);
    int err = pt_move_prepare(mm, cpu, r->addr, r->new_addr, r->old_len);

    if (err)
        return err;
    if (r->flags & MREMAP_FIXED)
        unmap_now(mm, cpu, area.start, area.end);
    pt_move(mm, cpu, r->addr, r->new_addr, r->old_len, area.prot);
    if (r->flags & MREMAP_DONTUNMAP)
        unlock_old(mm, r);
    else
        forget_old(mm, cpu, r, &area);
    account_add(mm, area.prot, area.flags, (int64_t) pages_of(r->new_len));
    vma_add(mm, &area);
    return 0;
}

static int move_object(mm_t *mm, mm_cpu_t *cpu, const remap_t *r)
{
    vma_t area = moved_area(mm, r);
    bool keep = r->old_len == 0 || (r->flags & MREMAP_DONTUNMAP);
    bool fresh = keep || r->new_len > r->old_len;
    object_ref_t ref;
    int err;

    if (fresh) {
        err = object_grow(mm, cpu, r->vma, r->addr, r->old_len, r->new_len,
                          keep, &ref);
        if (err)
            return err;
        area.object = ref.object;
        area.object_host = ref.host;
    }
    if (r->flags & MREMAP_FIXED)
        unmap_now(mm, cpu, area.start, area.end);
    if (!keep && fresh)
        unmap_now(mm, cpu, r->addr, r->addr + r->old_len);
    else if (!keep)
        forget_old(mm, cpu, r, &area);
    else if (r->old_len)
        unlock_old(mm, r);
    account_add(mm, area.prot, area.flags, (int64_t) pages_of(r->new_len));
    vma_add(mm, &area);
    return 0;
}

/* move_vma(): r->new_addr is where, r->old_len <= r->new_len. */
static int64_t remap_move(mm_t *mm, mm_cpu_t *cpu, const remap_t *r)
{
    uint32_t flags = r->vma->flags;
    uint64_t charged =
        r->flags & MREMAP_DONTUNMAP ? r->new_len : r->new_len - r->old_len;
    int err;

    if (mm->nr_vmas >= VMA_COUNT_MAX - 3)
        return -ENOMEM;
    if ((flags & VMA_ACCOUNT) && !account_enough_memory(mm, pages_of(charged)))
        return -ENOMEM;
    /* The target may split a VMA, the source another; and the new one. */
    if (vma_reserve(mm, 4))
        return -ENOMEM;
    /* What is moved there is not EL1's. */
    fast_mark(mm, r->new_addr, r->new_addr + r->new_len);
    err = r->vma->object ? move_object(mm, cpu, r) : move_anonymous(mm, cpu, r);
    if (err)
        return err;
    if (flags & VMA_LOCKED)
        populate_range(mm, cpu, r->new_addr + r->old_len,
                       r->new_addr + r->new_len);
    return (int64_t) r->new_addr;
}

/* --- the calls' three ways ----------------------------------------------- */

/* mremap_to(): MREMAP_FIXED or MREMAP_DONTUNMAP. */
static int64_t remap_to(mm_t *mm, mm_cpu_t *cpu, remap_t *r)
{
    uint64_t target = r->new_addr + r->new_len, freed = 0;
    uint64_t tail = r->old_len;
    int64_t addr;
    int err;

    if ((r->new_addr & ~GUEST_PAGE_MASK) || r->new_len > mm->task_size ||
        r->new_addr > mm->task_size - r->new_len)
        return -EINVAL;
    if (r->addr + r->old_len > r->new_addr && target > r->addr)
        return -EINVAL;
    /* With an old length of 0: the source would be unmapped before its use. */
    if ((r->flags & MREMAP_FIXED) && r->new_addr <= r->addr && r->addr < target)
        return -EFAULT;
    if (mm->nr_vmas + 2 >= VMA_COUNT_MAX - 3)
        return -ENOMEM;
    if (r->flags & MREMAP_FIXED)
        freed = mapped_pages(mm, r->new_addr, target);
    /* The end that will be unmapped; its length may wrap around. */
    if (tail > mm->task_size || r->addr > mm->task_size - tail)
        return -EINVAL;
    r->old_len = min_u64(r->old_len, r->new_len);
    err = resize_check(mm, r, freed);
    if (err)
        return err;
    if ((r->flags & MREMAP_DONTUNMAP) &&
        !account_may_expand(mm, r->vma->prot, r->vma->flags,
                            pages_of(r->old_len) -
                                min_u64(pages_of(r->old_len), freed)))
        return -ENOMEM;
    addr = place_find(mm, r->new_addr, r->new_len,
                      r->flags & MREMAP_FIXED ? MAP_FIXED : 0);
    if (addr < 0)
        return addr;
    r->new_addr = (uint64_t) addr;
    if (tail > r->new_len) {
        err = unmap_check(mm, r->addr + r->new_len, r->addr + tail, 4);
        if (err)
            return err;
        unmap_now(mm, cpu, r->addr + r->new_len, r->addr + tail);
    }
    return remap_move(mm, cpu, r);
}

static int64_t remap_shrink(mm_t *mm, mm_cpu_t *cpu, const remap_t *r)
{
    uint64_t start = r->addr + r->new_len, size = r->old_len - r->new_len;
    int err;

    if (size == 0)
        return (int64_t) r->addr;
    if (start > mm->task_size || size > mm->task_size - start)
        return -EINVAL;
    err = unmap_check(mm, start, start + size, 0);
    if (err)
        return err;
    unmap_now(mm, cpu, start, start + size);
    return (int64_t) r->addr;
}

static int64_t remap_grow(mm_t *mm, mm_cpu_t *cpu, remap_t *r)
{
    int64_t addr;
    int err = resize_check(mm, r, 0);

    if (err)
        return err;
    if (r->old_len == r->vma->end - r->addr &&
        expandable(mm, r->vma, r->new_len - r->old_len)) {
        err = grow_in_place(mm, cpu, r);
        return err ? err : (int64_t) r->addr;
    }
    if (!(r->flags & MREMAP_MAYMOVE))
        return -ENOMEM;
    addr = place_find(mm, 0, r->new_len, 0);
    if (addr < 0)
        return addr;
    r->new_addr = (uint64_t) addr;
    return remap_move(mm, cpu, r);
}

static int remap_decode(remap_t *r)
{
    uint64_t known = MREMAP_FIXED | MREMAP_MAYMOVE | MREMAP_DONTUNMAP;

    if ((r->flags & ~known) ||
        ((r->flags & MREMAP_FIXED) && !(r->flags & MREMAP_MAYMOVE)))
        return -EINVAL;
    if ((r->flags & MREMAP_DONTUNMAP) &&
        (!(r->flags & MREMAP_MAYMOVE) || r->old_len != r->new_len))
        return -EINVAL;
    if (r->addr & ~GUEST_PAGE_MASK)
        return -EINVAL;
    r->old_len = page_align(r->old_len);
    r->new_len = page_align(r->new_len);
    return r->new_len ? 0 : -EINVAL;
}

/* Keep EL1 out of what may be moved, grown into and replaced. */
static void remap_claim(mm_t *mm, const remap_t *r)
{
    uint64_t old_end = r->addr + r->old_len;

    fast_claim_touch(mm, r->addr, old_end);
    if (r->new_len > r->old_len)
        fast_claim_fixed(mm, old_end, r->addr + r->new_len);
    if (r->flags & MREMAP_FIXED)
        fast_claim_fixed(mm, r->new_addr, r->new_addr + r->new_len);
}

int64_t mm_mremap(mm_t *mm, mm_cpu_t *cpu, uint64_t addr, uint64_t old_len,
                  uint64_t new_len, uint64_t flags, uint64_t new_addr)
{
    remap_t r = {
        .addr = untag(addr),
        .old_len = old_len,
        .new_len = new_len,
        .new_addr = new_addr,
        .flags = flags,
    };
    int64_t result = remap_decode(&r);

    if (result)
        return result;
    mm_lock(mm);
    remap_claim(mm, &r);
    r.vma = vma_at(mm, r.addr);
    if (!r.vma)
        result = -EFAULT;
    else if (r.flags & (MREMAP_FIXED | MREMAP_DONTUNMAP))
        result = remap_to(mm, cpu, &r);
    else if (r.old_len >= r.new_len)
        result = remap_shrink(mm, cpu, &r);
    else
        result = remap_grow(mm, cpu, &r);
    mm_unlock(mm);
    return result;
}
