/* SPDX-License-Identifier: Apache-2.0 */
/*
 * madvise: one function for each kind of advice, applied VMA after VMA; holes
 * are passed over and reported as ENOMEM at the end.
 */
#include <errno.h>
#include <sys/mman.h>

#include "mm/account.h"
#include "mm/calls.h"
#include "mm/fast.h"

/* Values that older C libraries do not have. */
enum {
    ADVICE_COLD = 20,
    ADVICE_PAGEOUT = 21,
    ADVICE_POPULATE_READ = 22,
    ADVICE_POPULATE_WRITE = 23,
    ADVICE_DONTNEED_LOCKED = 24,
    ADVICE_HWPOISON = 100,
    ADVICE_SOFT_OFFLINE = 101,
    /* Not of madvise: PR_SET_VMA_ANON_NAME goes the same way. */
    ADVICE_NAME = -1,
};

typedef struct advise {
    mm_t *mm;
    mm_cpu_t *cpu;
    gather_t gather;
    int advice;
    const char *name; /* for ADVICE_NAME */
} advise_t;

static bool advice_known(int advice)
{
    return (advice >= MADV_NORMAL && advice <= MADV_DONTNEED) ||
           (advice >= MADV_FREE && advice <= ADVICE_DONTNEED_LOCKED) ||
           advice == ADVICE_HWPOISON || advice == ADVICE_SOFT_OFFLINE;
}

/* --- advice that is a flag of the VMA ------------------------------------ */

/* New flags in *flags, or an error. */
static int advise_flags(const vma_t *vma, int advice, uint32_t *flags)
{
    switch (advice) {
    case MADV_NORMAL:
        *flags &= ~(VMA_SEQ_READ | VMA_RAND_READ);
        return 0;
    case MADV_SEQUENTIAL:
        *flags = (*flags & ~VMA_RAND_READ) | VMA_SEQ_READ;
        return 0;
    case MADV_RANDOM:
        *flags = (*flags & ~VMA_SEQ_READ) | VMA_RAND_READ;
        return 0;
    case MADV_DONTFORK:
        *flags |= VMA_DONTFORK;
        return 0;
    case MADV_DOFORK:
        *flags &= ~VMA_DONTFORK;
        return 0;
    case MADV_WIPEONFORK:
        if (vma->object)
            return -EINVAL;
        *flags |= VMA_WIPEONFORK;
        return 0;
    case MADV_KEEPONFORK:
        *flags &= ~VMA_WIPEONFORK;
        return 0;
    case MADV_DONTDUMP:
        *flags |= VMA_DONTDUMP;
        return 0;
    case MADV_DODUMP:
        if (vma->flags & VMA_SPECIAL)
            return -EINVAL;
        *flags &= ~VMA_DONTDUMP;
        return 0;
    case MADV_MERGEABLE:
    case MADV_UNMERGEABLE:
        if (vma->flags & (VMA_SHARED | VMA_SPECIAL))
            return 0;
        *flags &= ~VMA_MERGEABLE;
        *flags |= advice == MADV_MERGEABLE ? VMA_MERGEABLE : 0;
        return 0;
    default: /* MADV_HUGEPAGE, MADV_NOHUGEPAGE */
        if (advice == MADV_HUGEPAGE && (vma->flags & VMA_SPECIAL))
            return -EINVAL;
        *flags &= ~(VMA_HUGEPAGE | VMA_NOHUGEPAGE);
        *flags |= advice == MADV_HUGEPAGE ? VMA_HUGEPAGE : VMA_NOHUGEPAGE;
        return 0;
    }
}

/*
 * The host decides about huge pages of anonymous memory; a kernel without them
 * says EINVAL, and so do we. Only whole blocks are passed on: each piece with
 * advice of its own is one of the host's limited mappings.
 */
static int advise_huge(mm_t *mm, uint64_t start, uint64_t end, int advice)
{
    uint64_t from = (start + BLOCK_SIZE - 1) & ~(BLOCK_SIZE - 1);
    uint64_t to = end & ~(BLOCK_SIZE - 1);

    if (from >= to) /* nothing to advise, but the answer is the host's */
        from = to = start & ~(mm->caps.host_page - 1);
    if (madvise(hostspace_ptr(mm, from), to - from, advice) && errno == EINVAL)
        return -EINVAL;
    return 0;
}

static int advise_set(advise_t *a, vma_t *vma, uint64_t start, uint64_t end)
{
    uint32_t flags = vma->flags;
    bool huge = a->advice == MADV_HUGEPAGE || a->advice == MADV_NOHUGEPAGE;
    int err = advise_flags(vma, a->advice, &flags);

    if (!err && huge && !vma->object)
        err = advise_huge(a->mm, start, end, a->advice);
    if (err)
        return err;
    return vma_modify(a->mm, vma, start, end, vma->prot, flags) ? 0 : -EAGAIN;
}

/* --- advice about contents ----------------------------------------------- */

static int advise_object(mm_t *mm, const vma_t *vma, uint64_t start,
                         uint64_t end, int advice)
{
    return object_advise(mm, vma->object, vma_object_host(vma, start),
                         end - start, advice);
}

static int advise_dontneed(advise_t *a, const vma_t *vma, uint64_t start,
                           uint64_t end)
{
    if ((vma->flags & VMA_LOCKED) && a->advice != ADVICE_DONTNEED_LOCKED)
        return -EINVAL;
    if (vma->flags & VMA_SPECIAL)
        return 0;
    if (vma->object)
        return advise_object(a->mm, vma, start, end, MADV_DONTNEED);
    pt_discard(a->mm, &a->gather, start, end);
    return 0;
}

/*
 * The host frees the pages when it is short of memory; until then they keep
 * their contents, as in Linux. Stage 2 follows by itself. Only blocks that may
 * hold something are asked for.
 */
static int advise_free(advise_t *a, const vma_t *vma, uint64_t start,
                       uint64_t end)
{
    mm_t *mm = a->mm;
    uint64_t mask = mm->caps.host_page - 1, last = end >> BLOCK_SHIFT;
    uint64_t block = start >> BLOCK_SHIFT;

    if (vma->object || (vma->flags & VMA_LOCKED))
        return -EINVAL;
    for (;; block++) {
        uint64_t from, to;

        block = dirty_next(mm->dirty, block, last + 1);
        if (block > last)
            return 0;
        from = (max_u64(start, block << BLOCK_SHIFT) + mask) & ~mask;
        to = min_u64(end, (block + 1) << BLOCK_SHIFT) & ~mask;
        if (from < to)
            madvise(hostspace_ptr(mm, from), to - from, MADV_FREE);
    }
}

static int advise_willneed(advise_t *a, const vma_t *vma, uint64_t start,
                           uint64_t end)
{
    if (vma->object && !(vma->flags & VMA_SPECIAL))
        advise_object(a->mm, vma, start, end, MADV_WILLNEED);
    return 0;
}

static int advise_remove(advise_t *a, const vma_t *vma, uint64_t start,
                         uint64_t end)
{
    if ((vma->flags & VMA_LOCKED) || !vma->object || (vma->flags & VMA_SPECIAL))
        return -EINVAL;
    /* Linux since 6.7 and its stable releases: what could be made writable. */
    if (!(vma->flags & VMA_SHARED) || !(vma->max_prot & PROT_WRITE))
        return -EACCES;
    return advise_object(a->mm, vma, start, end, MADV_REMOVE);
}

static int advise_populate(advise_t *a, vma_t *vma, uint64_t start,
                           uint64_t end)
{
    bool write = a->advice == ADVICE_POPULATE_WRITE;
    uint64_t mask = a->mm->caps.host_page - 1, host, size;

    if (!(vma->prot & (write ? PROT_WRITE : PROT_READ)) ||
        (vma->flags & VMA_SPECIAL))
        return -EINVAL;
    if (materialise_range(a->mm, a->cpu, vma, start, end))
        return -ENOMEM;
    host = vma->object ? vma_object_host(vma, start)
                       : (uint64_t) hostspace_ptr(a->mm, start);
    size = ((host & mask) + (end - start) + mask) & ~mask;
    if (madvise((void *) (host & ~mask), size, a->advice) && errno == EFAULT)
        return -EFAULT; /* beyond the end of the file */
    return 0;
}

static int advise_name(advise_t *a, vma_t *vma, uint64_t start, uint64_t end)
{
    if (vma->object)
        return -EBADF;
    return vma_rename(a->mm, vma, start, end, a->name) ? 0 : -EAGAIN;
}

/* [start, end) lies in vma, which may be merged or split by this. */
static int advise_vma(advise_t *a, vma_t *vma, uint64_t start, uint64_t end)
{
    switch (a->advice) {
    case ADVICE_NAME:
        return advise_name(a, vma, start, end);
    case MADV_REMOVE:
        return advise_remove(a, vma, start, end);
    case MADV_WILLNEED:
        return advise_willneed(a, vma, start, end);
    case ADVICE_COLD:
    case ADVICE_PAGEOUT:
        return vma->flags & (VMA_LOCKED | VMA_SPECIAL) ? -EINVAL : 0;
    case MADV_FREE:
        return advise_free(a, vma, start, end);
    case MADV_DONTNEED:
    case ADVICE_DONTNEED_LOCKED:
        return advise_dontneed(a, vma, start, end);
    case ADVICE_POPULATE_READ:
    case ADVICE_POPULATE_WRITE:
        return advise_populate(a, vma, start, end);
    default:
        return advise_set(a, vma, start, end);
    }
}

/* madvise_walk_vmas() */
static int advise_walk(advise_t *a, uint64_t start, uint64_t end)
{
    int unmapped = 0;

    while (start < end) {
        vma_t *vma = vma_find(a->mm, start);
        uint64_t stop;
        int err;

        if (!vma)
            return -ENOMEM;
        if (vma->start > start) {
            unmapped = -ENOMEM;
            start = vma->start;
            if (start >= end)
                break;
        }
        stop = min_u64(vma->end, end);
        err = advise_vma(a, vma, start, stop);
        if (err)
            return err;
        start = stop;
    }
    return unmapped;
}

int64_t mm_madvise(mm_t *mm, mm_cpu_t *cpu, uint64_t addr, uint64_t len,
                   int advice)
{
    advise_t a = {.mm = mm, .cpu = cpu, .advice = advice};
    uint64_t start = untag(addr), size = page_align(len);
    int err;

    if (!advice_known(advice) || (start & ~GUEST_PAGE_MASK))
        return -EINVAL;
    if ((len && !size) || start + size < start)
        return -EINVAL;
    if (size == 0)
        return 0;
    /* Poisoning real memory is not for guests, privileged or not. */
    if (advice == ADVICE_HWPOISON || advice == ADVICE_SOFT_OFFLINE)
        return -EPERM;
    mm_lock(mm);
    fast_claim(mm, start, start + size);
    gather_begin(&a.gather, mm, cpu);
    err = advise_walk(&a, start, start + size);
    gather_finish(&a.gather);
    mm_unlock(mm);
    return err;
}

int64_t mm_set_anon_name(mm_t *mm, uint64_t addr, uint64_t len,
                         const char *name)
{
    advise_t a = {.mm = mm, .advice = ADVICE_NAME};
    uint64_t size = page_align(len);
    int err;

    if ((addr & ~GUEST_PAGE_MASK) || (len && !size) || addr + size < addr)
        return -EINVAL;
    if (size == 0)
        return 0;
    mm_lock(mm);
    a.name = name ? anon_name(name) : NULL;
    if (name && !a.name)
        err = -ENOMEM;
    else
        err = advise_walk(&a, addr, addr + size);
    mm_unlock(mm);
    return err;
}
