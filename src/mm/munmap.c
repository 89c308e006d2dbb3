/* SPDX-License-Identifier: Apache-2.0 */
/*
 * munmap, and the unmapping that mmap, mremap and brk do.
 */
#include <errno.h>

#include "mm/account.h"
#include "mm/calls.h"
#include "mm/fast.h"

uint64_t mapped_pages(mm_t *mm, uint64_t start, uint64_t end)
{
    vma_t *vma = vma_overlap(mm, start, end);
    uint64_t bytes = 0;

    for (; vma && vma->start < end; vma = vma_next(vma))
        bytes += min_u64(vma->end, end) - max_u64(vma->start, start);
    return bytes >> GUEST_PAGE_SHIFT;
}

int unmap_check(mm_t *mm, uint64_t start, uint64_t end, unsigned spare)
{
    vma_t *vma = vma_overlap(mm, start, end);
    bool hole = vma && vma->start < start && vma->end > end;

    if (hole && mm->nr_vmas >= VMA_COUNT_MAX)
        return -ENOMEM;
    return vma_reserve(mm, hole + spare);
}

void unmap_range(mm_t *mm, gather_t *g, uint64_t start, uint64_t end)
{
    vma_t *vma = vma_overlap(mm, start, end);

    if (!vma)
        return;
    pt_unmap(mm, g, start, end);
    /* Spans over pages that have no descriptor hold objects too. */
    gather_cover(g, start, end);
    for (; vma && vma->start < end; vma = vma_next(vma)) {
        uint64_t from = max_u64(vma->start, start);
        uint64_t to = min_u64(vma->end, end);

        account_add(mm, vma->prot, vma->flags,
                    -(int64_t) ((to - from) >> GUEST_PAGE_SHIFT));
        if (vma->object)
            gather_free_object(g, vma->object, vma_object_host(vma, from),
                               to - from);
    }
    vma_clear(mm, start, end);
}

void unmap_now(mm_t *mm, mm_cpu_t *cpu, uint64_t start, uint64_t end)
{
    gather_t g;

    gather_begin(&g, mm, cpu);
    unmap_range(mm, &g, start, end);
    gather_finish(&g);
}

int64_t mm_munmap(mm_t *mm, mm_cpu_t *cpu, uint64_t addr, uint64_t len)
{
    uint64_t start = untag(addr), size = page_align(len);
    int err;

    if ((start & ~GUEST_PAGE_MASK) || start > mm->task_size ||
        len > mm->task_size - start || size == 0)
        return -EINVAL;
    mm_lock(mm);
    fast_claim(mm, start, start + size);
    err = unmap_check(mm, start, start + size, 0);
    if (!err)
        unmap_now(mm, cpu, start, start + size);
    mm_unlock(mm);
    return err;
}
