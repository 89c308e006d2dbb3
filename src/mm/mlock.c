/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mlock family: our own accounting against RLIMIT_MEMLOCK, and pages made
 * present. The host's memory is not locked: that limit is the host's.
 */
#include <errno.h>
#include <sys/mman.h>

#include "mm/account.h"
#include "mm/calls.h"
#include "mm/fast.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

#define LOCK_FLAGS (VMA_LOCKED | VMA_LOCKONFAULT)

/* Have the host commit what is behind [start, end), which is present. -EFAULT:
 * part of it is beyond the end of its file. */
static int populate_host(mm_t *mm, const vma_t *vma, uint64_t start,
                         uint64_t end)
{
    bool write = (vma->prot & PROT_WRITE) && !(vma->flags & VMA_SHARED);
    uint64_t mask = mm->caps.host_page - 1;
    uint64_t host = vma->object ? vma_object_host(vma, start)
                                : (uint64_t) hostspace_ptr(mm, start);
    uint64_t stop = (host + (end - start) + mask) & ~mask;

    host &= ~mask;
    /* Hosts before 5.14 do not know it: they commit at the first access. */
    if (madvise((void *) host, stop - host,
                write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ) &&
        errno == EFAULT)
        return -EFAULT;
    return 0;
}

int populate_range(mm_t *mm, mm_cpu_t *cpu, uint64_t start, uint64_t end)
{
    vma_t *vma = vma_overlap(mm, start, end);
    int err, result = 0;

    for (; vma && vma->start < end; vma = vma_next(vma)) {
        uint64_t from = max_u64(vma->start, start);
        uint64_t to = min_u64(vma->end, end);

        if (vma->flags & (VMA_LOCKONFAULT | VMA_SPECIAL))
            continue;
        err = vma->prot ? materialise_range(mm, cpu, vma, from, to) : -EFAULT;
        if (!err)
            err = populate_host(mm, vma, from, to);
        if (!result)
            result = err;
    }
    return result;
}

/* Pages of [start, end) that are locked already (count_mm_mlocked_page_nr). */
static uint64_t locked_pages(mm_t *mm, uint64_t start, uint64_t end)
{
    vma_t *vma = vma_overlap(mm, start, end);
    uint64_t bytes = 0;

    for (; vma && vma->start < end; vma = vma_next(vma))
        if (vma->flags & VMA_LOCKED)
            bytes += min_u64(vma->end, end) - max_u64(vma->start, start);
    return bytes >> GUEST_PAGE_SHIFT;
}

static int lock_vma(mm_t *mm, vma_t *vma, uint64_t start, uint64_t end,
                    uint32_t lock)
{
    uint32_t flags = (vma->flags & ~LOCK_FLAGS) | lock;
    bool was = vma->flags & VMA_LOCKED;
    uint64_t pages = (end - start) >> GUEST_PAGE_SHIFT;

    if (flags == vma->flags || (vma->flags & VMA_SPECIAL))
        return 0;
    if (!vma_modify(mm, vma, start, end, vma->prot, flags))
        return -ENOMEM;
    if (lock && !was)
        mm->usage.locked += pages;
    else if (!lock && was)
        mm->usage.locked -= pages;
    return 0;
}

/* apply_vma_lock_flags(): what lies before a hole is done. */
static int lock_range(mm_t *mm, uint64_t start, uint64_t end, uint32_t lock)
{
    int err;

    if (end < start)
        return -EINVAL;
    while (start < end) {
        vma_t *vma = vma_at(mm, start);
        uint64_t stop;

        if (!vma)
            return -ENOMEM;
        stop = min_u64(vma->end, end);
        err = lock_vma(mm, vma, start, stop, lock);
        if (err)
            return err;
        start = stop;
    }
    return 0;
}

static int64_t mlock_locked(mm_t *mm, mm_cpu_t *cpu, uint64_t start,
                            uint64_t size, uint32_t lock)
{
    uint64_t pages = size >> GUEST_PAGE_SHIFT;
    uint64_t limit = mm->limit_memlock.rlim_cur >> GUEST_PAGE_SHIFT;
    int err;

    if (pages + mm->usage.locked > limit && !account_capable(CAP_IPC_LOCK) &&
        pages + mm->usage.locked - locked_pages(mm, start, start + size) >
            limit)
        return -ENOMEM;
    err = lock_range(mm, start, start + size, lock);
    if (err)
        return err;
    err = populate_range(mm, cpu, start, start + size);
    if (err == -ENOMEM)
        return -EAGAIN;
    return err == -EFAULT ? -ENOMEM : err;
}

int64_t mm_mlock(mm_t *mm, mm_cpu_t *cpu, uint64_t addr, uint64_t len,
                 int flags)
{
    uint32_t lock = VMA_LOCKED;
    uint64_t start = untag(addr);
    int64_t result;

    if (flags & ~MLOCK_ONFAULT)
        return -EINVAL;
    if (flags & MLOCK_ONFAULT)
        lock |= VMA_LOCKONFAULT;
    mm_lock(mm);
    fast_claim(mm, start & GUEST_PAGE_MASK,
               (start & GUEST_PAGE_MASK) +
                   page_align(len + (start & ~GUEST_PAGE_MASK)));
    if (!account_can_mlock(mm))
        result = -EPERM;
    else
        result =
            mlock_locked(mm, cpu, start & GUEST_PAGE_MASK,
                         page_align(len + (start & ~GUEST_PAGE_MASK)), lock);
    mm_unlock(mm);
    return result;
}

int64_t mm_munlock(mm_t *mm, mm_cpu_t *cpu, uint64_t addr, uint64_t len)
{
    uint64_t start = untag(addr);
    uint64_t size = page_align(len + (start & ~GUEST_PAGE_MASK));
    int err;

    start &= GUEST_PAGE_MASK;
    mm_lock(mm);
    fast_claim(mm, start, start + size);
    err = lock_range(mm, start, start + size, 0);
    mm_unlock(mm);
    return err;
}

/* Every VMA; those that cannot be split stay as they are. */
static void lock_all(mm_t *mm, uint32_t lock)
{
    vma_t *vma = vma_first(mm);

    while (vma) {
        uint64_t end = vma->end;
        lock_vma(mm, vma, vma->start, end, lock);
        vma = vma_find(mm, end);
    }
}

int64_t mm_mlockall(mm_t *mm, mm_cpu_t *cpu, int flags)
{
    uint32_t lock = VMA_LOCKED;
    int64_t result = 0;

    if (!flags || flags == MCL_ONFAULT ||
        (flags & ~(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT)))
        return -EINVAL;
    if (flags & MCL_ONFAULT)
        lock |= VMA_LOCKONFAULT;
    mm_lock(mm);
    fast_claim(mm, 0, mm->task_size);
    if (!account_can_mlock(mm)) {
        result = -EPERM;
    } else if ((flags & MCL_CURRENT) &&
               mm->usage.total_vm > mm->limit_memlock.rlim_cur >>
                   GUEST_PAGE_SHIFT &&
               !account_capable(CAP_IPC_LOCK)) {
        result = -ENOMEM;
    } else {
        mm->mlock_future = flags & MCL_FUTURE ? flags & ~MCL_CURRENT : 0;
        if (flags & MCL_CURRENT) {
            lock_all(mm, lock);
            populate_range(mm, cpu, 0, mm->task_size);
        }
    }
    mm_unlock(mm);
    return result;
}

int64_t mm_munlockall(mm_t *mm, mm_cpu_t *cpu)
{
    mm_lock(mm);
    fast_claim(mm, 0, mm->task_size);
    mm->mlock_future = 0;
    lock_all(mm, 0);
    mm_unlock(mm);
    return 0;
}
