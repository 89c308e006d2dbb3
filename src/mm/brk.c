/* SPDX-License-Identifier: Apache-2.0 */
/*
 * brk. The heap is plain private anonymous memory; it is called [heap] because
 * it lies between brk_start and brk.
 */
#include <sys/mman.h>

#include "mm/account.h"
#include "mm/calls.h"
#include "mm/fast.h"

static bool data_limit_allows(const mm_t *mm, uint64_t addr)
{
    uint64_t data = mm->image.end_data - mm->image.start_data;

    return mm->limit_data.rlim_cur == RLIM_INFINITY ||
           addr - mm->brk_start + data <= mm->limit_data.rlim_cur;
}

/* Nothing in the way: not even a stack's guard, one page further. */
static bool room_above(mm_t *mm, uint64_t old, uint64_t end)
{
    vma_t *next = vma_find(mm, old);

    return !next || end + GUEST_PAGE_SIZE <= vma_guard_start(next);
}

static bool brk_grow(mm_t *mm, mm_cpu_t *cpu, uint64_t old, uint64_t end)
{
    uint64_t pages = (end - old) >> GUEST_PAGE_SHIFT;
    vma_t area = {
        .start = old,
        .end = end,
        .prot = PROT_READ | PROT_WRITE,
        .max_prot = PROT_READ | PROT_WRITE | PROT_EXEC,
        .flags = VMA_ACCOUNT,
        .offset = old,
    };

    fast_claim_fixed(mm, old, end);
    if (mm->mlock_future & MCL_FUTURE)
        area.flags |= VMA_LOCKED;
    if ((mm->mlock_future & MCL_FUTURE) && (mm->mlock_future & MCL_ONFAULT))
        area.flags |= VMA_LOCKONFAULT;
    if (place_find(mm, old, end - old, MAP_FIXED) < 0)
        return false;
    if ((area.flags & VMA_LOCKED) && !account_may_lock(mm, pages))
        return false;
    if (!room_above(mm, old, end) ||
        !account_may_expand(mm, area.prot, area.flags, pages) ||
        mm->nr_vmas > VMA_COUNT_MAX || !account_enough_memory(mm, pages) ||
        vma_reserve(mm, 1))
        return false;
    account_add(mm, area.prot, area.flags, (int64_t) pages);
    vma_add(mm, &area);
    if (area.flags & VMA_LOCKED)
        populate_range(mm, cpu, old, end);
    return true;
}

static bool brk_shrink(mm_t *mm, mm_cpu_t *cpu, uint64_t end, uint64_t old)
{
    fast_claim(mm, end, old);
    if (unmap_check(mm, end, old, 0))
        return false;
    unmap_now(mm, cpu, end, old);
    return true;
}

static bool brk_move(mm_t *mm, mm_cpu_t *cpu, uint64_t addr)
{
    uint64_t end = page_align(addr), old = page_align(mm->brk);

    if (addr < mm->brk_start || !data_limit_allows(mm, addr))
        return false;
    if (end == old)
        return true;
    if (addr <= mm->brk)
        return brk_shrink(mm, cpu, end, old);
    return end > old && brk_grow(mm, cpu, old, end);
}

int64_t mm_brk(mm_t *mm, mm_cpu_t *cpu, uint64_t addr)
{
    uint64_t result;

    mm_lock(mm);
    if (brk_move(mm, cpu, addr))
        mm->brk = addr;
    result = mm->brk;
    mm_unlock(mm);
    return (int64_t) result;
}
