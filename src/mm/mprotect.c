/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mprotect: VMA after VMA, as Linux does it; what was changed before an error
 * stays changed.
 */
#include <errno.h>
#include <sys/mman.h>

#include "mm/account.h"
#include "mm/calls.h"
#include "mm/fast.h"

#define PROT_ACCESS (PROT_READ | PROT_WRITE | PROT_EXEC)
#define PROT_SEM    0x8
#define PROT_BTI    0x10
#define HWCAP2_BTI  (1UL << 17)

static bool prot_valid(const mm_t *mm, uint64_t prot)
{
    uint64_t known = PROT_ACCESS | PROT_SEM;

    if (mm->caps.hwcap2 & HWCAP2_BTI)
        known |= PROT_BTI;
    return (prot & ~known) == 0;
}

/* [start, end) lies in vma. Decides the new flags. */
static int protect_check(mm_t *mm, const vma_t *vma, uint64_t pages,
                         uint8_t prot, uint32_t *flags)
{
    *flags = vma->flags;
    if (prot & ~vma->max_prot)
        return -EACCES;
    if (mm->deny_write_exec && (prot & PROT_EXEC) &&
        ((prot & PROT_WRITE) || !(vma->prot & PROT_EXEC)))
        return -EACCES;
    if (!(prot & PROT_WRITE) || prot == vma->prot)
        return 0;
    if (!account_may_expand(mm, prot, vma->flags, pages) &&
        account_may_expand(mm, vma->prot, vma->flags, pages))
        return -ENOMEM;
    if (!(vma->prot & PROT_WRITE) && !(vma->flags & VMA_ACCOUNT) &&
        account_chargeable(prot, vma->flags)) {
        if (!account_enough_memory(mm, pages))
            return -ENOMEM;
        *flags |= VMA_ACCOUNT;
    }
    return 0;
}

static int protect_vma(mm_t *mm, gather_t *g, vma_t *vma, uint64_t start,
                       uint64_t end, uint8_t prot)
{
    int64_t pages = (int64_t) ((end - start) >> GUEST_PAGE_SHIFT);
    uint8_t old_prot = vma->prot;
    uint32_t flags, old_flags = vma->flags;
    int err = protect_check(mm, vma, (uint64_t) pages, prot, &flags);

    if (err)
        return err;
    if (!vma_modify(mm, vma, start, end, prot, flags))
        return -ENOMEM;
    account_add(mm, old_prot, old_flags, -pages);
    account_add(mm, prot, flags, pages);
    /* Also when the VMA says so already: the tables are the truth. */
    pt_protect(mm, g, start, end, prot);
    return 0;
}

static int protect_range(mm_t *mm, gather_t *g, vma_t *vma, uint64_t start,
                         uint64_t end, uint8_t prot)
{
    for (;;) {
        uint64_t stop = min_u64(vma->end, end);
        int err = protect_vma(mm, g, vma, start, stop, prot);

        if (err || stop == end)
            return err;
        vma = vma_at(mm, stop);
        if (!vma)
            return -ENOMEM;
        start = stop;
    }
}

/* The first VMA, and where to begin in it: PROT_GROWSDOWN begins at its start.
 */
static int protect_find(mm_t *mm, uint64_t *start, uint64_t *end,
                        uint64_t grows, vma_t **vma)
{
    *vma = vma_find(mm, *start);
    if (!*vma)
        return -ENOMEM;
    if (grows == PROT_GROWSDOWN) {
        if ((*vma)->start >= *end)
            return -ENOMEM;
        *start = (*vma)->start;
        return (*vma)->flags & VMA_GROWSDOWN ? 0 : -EINVAL;
    }
    if ((*vma)->start > *start)
        return -ENOMEM;
    /* No stack grows up on this architecture. */
    return grows == PROT_GROWSUP ? -EINVAL : 0;
}

int64_t mm_mprotect(mm_t *mm, mm_cpu_t *cpu, uint64_t addr, uint64_t len,
                    uint64_t prot)
{
    uint64_t grows = prot & (PROT_GROWSDOWN | PROT_GROWSUP);
    uint64_t start = untag(addr), end;
    gather_t g;
    vma_t *vma;
    int err;

    prot &= ~grows;
    if (grows == (PROT_GROWSDOWN | PROT_GROWSUP) || (start & ~GUEST_PAGE_MASK))
        return -EINVAL;
    if (len == 0)
        return 0;
    end = start + page_align(len);
    if (end <= start)
        return -ENOMEM;
    if (!prot_valid(mm, prot))
        return -EINVAL;
    mm_lock(mm);
    fast_claim(mm, start, end);
    err = protect_find(mm, &start, &end, grows, &vma);
    if (!err) {
        gather_begin(&g, mm, cpu);
        err = protect_range(mm, &g, vma, start, end, prot & PROT_ACCESS);
        gather_finish(&g);
    }
    mm_unlock(mm);
    return err;
}
