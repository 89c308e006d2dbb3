/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mmap: placement, and the checks in the order in which Linux makes them.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>

#include "mm/account.h"
#include "mm/calls.h"
#include "mm/fast.h"

#ifndef MAP_SYNC
#define MAP_SYNC 0x80000
#endif

/* Log2 of the huge page size, in the flags; 0: the default size. */
#define HUGE_SHIFT 26
#define HUGE_MASK  0x3f

/* cap_mmap_addr() */
static int low_address_check(const mm_t *mm, uint64_t addr)
{
    if (addr < mm->mmap_min && !account_capable(CAP_SYS_RAWIO))
        return -EPERM;
    return 0;
}

/* A hint is taken when the range is free and leaves stacks their guard. */
static bool hint_free(mm_t *mm, uint64_t addr, uint64_t len)
{
    const vma_t *vma;

    if (addr > mm->task_size - len || addr < mm->mmap_min ||
        fast_granting(mm, addr, addr + len))
        return false;
    vma = vma_find(mm, addr);
    return !vma || addr + len <= vma_guard_start(vma);
}

/* The highest hole below mmap_base, but not in the zone of EL1's mappings. */
static uint64_t gap_topdown(mm_t *mm, uint64_t len, uint64_t low)
{
    const fast_t *f = mm->fast;
    uint64_t addr;

    if (!f)
        return vma_gap_topdown(mm, len, low, mm->mmap_base);
    addr = vma_gap_topdown(mm, len, f->zone_end, mm->mmap_base);
    if (addr)
        return addr;
    return vma_gap_topdown(mm, len, low, min_u64(mm->mmap_base, f->zone_start));
}

int64_t place_find(mm_t *mm, uint64_t addr, uint64_t len, uint64_t flags)
{
    uint64_t low = max_u64(mm->mmap_min, GUEST_PAGE_SIZE);
    int err;

    if (len > mm->task_size)
        return -ENOMEM;
    if (flags & MAP_FIXED) {
        if (addr > mm->task_size - len)
            return -ENOMEM;
        if (addr & ~GUEST_PAGE_MASK)
            return -EINVAL;
    } else {
        addr = page_align(addr);
        if (!addr || !hint_free(mm, addr, len))
            addr = gap_topdown(mm, len, low);
        if (!addr)
            addr = vma_gap_bottomup(mm, len, page_align(mm->task_size / 4),
                                    mm->task_size);
        if (!addr)
            return -ENOMEM;
    }
    err = low_address_check(mm, addr);
    return err ? err : (int64_t) addr;
}

/*
 * A kernel with huge pages of every size and none of them reserved: the size is
 * checked, then there is no memory.
 */
static int huge_error(const map_request_t *r)
{
    unsigned log = r->flags >> HUGE_SHIFT & HUGE_MASK;

    if (!(r->flags & MAP_ANONYMOUS))
        return -EINVAL; /* a file that is not on hugetlbfs */
    if (log != 0 && log != 16 && log != 21 && log != 25 && log != 30)
        return -EINVAL;
    if (r->len == 0)
        return -EINVAL;
    if ((r->flags & MAP_FIXED) && (r->addr & ((1UL << (log ? log : 21)) - 1)))
        return -EINVAL;
    return -ENOMEM;
}

/* ksys_mmap_pgoff() and the head of do_mmap(). */
static int map_decode(mm_t *mm, map_request_t *r)
{
    if (r->offset & ~GUEST_PAGE_MASK)
        return -EINVAL;
    if (!(r->flags & MAP_ANONYMOUS)) {
        int status = fcntl(r->fd, F_GETFL);
        if (status < 0 || (status & O_PATH))
            return -EBADF;
    }
    if (r->flags & MAP_HUGETLB)
        return huge_error(r);
    if (r->len == 0)
        return -EINVAL;
    if (r->flags & MAP_FIXED_NOREPLACE)
        r->flags |= MAP_FIXED;
    if (!(r->flags & MAP_FIXED)) {
        r->addr &= GUEST_PAGE_MASK;
        if (r->addr && r->addr < mm->mmap_min)
            r->addr = page_align(mm->mmap_min);
    }
    r->len = page_align(r->len);
    if (r->len == 0)
        return -ENOMEM;
    return 0;
}

/* The middle of do_mmap(): where, and whether it may be locked. */
static int map_place(mm_t *mm, map_request_t *r)
{
    int64_t addr;

    if (mm->nr_vmas > VMA_COUNT_MAX)
        return -ENOMEM;
    addr = (int64_t) r->window;
    if (!addr)
        addr = place_find(mm, r->addr, r->len, r->flags);
    if (addr < 0)
        return (int) addr;
    r->addr = (uint64_t) addr;
    if ((r->flags & MAP_FIXED_NOREPLACE) &&
        vma_overlap(mm, r->addr, r->addr + r->len))
        return -EEXIST;
    if (r->flags & MAP_LOCKED)
        r->vma_flags |= VMA_LOCKED;
    if (mm->mlock_future & MCL_FUTURE)
        r->vma_flags |= VMA_LOCKED;
    if ((mm->mlock_future & MCL_FUTURE) && (mm->mlock_future & MCL_ONFAULT))
        r->vma_flags |= VMA_LOCKONFAULT;
    if ((r->flags & MAP_LOCKED) && !account_can_mlock(mm))
        return -EPERM;
    if ((r->vma_flags & VMA_LOCKED) &&
        !account_may_lock(mm, r->len >> GUEST_PAGE_SHIFT))
        return -EAGAIN;
    if (r->flags & MAP_GROWSDOWN)
        r->vma_flags |= VMA_GROWSDOWN;
    if (r->flags & MAP_NORESERVE)
        r->vma_flags |= VMA_NORESERVE;
    return 0;
}

static int map_file(mm_t *mm, map_request_t *r)
{
    int type = r->flags & MAP_TYPE;
    int err;

    /* Linux does not list this one among the flags a file can have. */
    if (type == MAP_SHARED_VALIDATE && (r->flags & MAP_FIXED_NOREPLACE))
        return -EOPNOTSUPP;
    err = object_map_file(mm, r->fd, r->offset, r->len, r->prot, (int) r->flags,
                          &r->backing);
    if (err)
        return err;
    /* What cannot be written through is, to Linux, no shared mapping. */
    if (type != MAP_PRIVATE)
        r->vma_flags |= VMA_SHARED;
    return 0;
}

/* What is behind it. An object is made here, before anything is unmapped. */
static int map_backing(mm_t *mm, map_request_t *r)
{
    int type = r->flags & MAP_TYPE;

    r->backing.max_prot = PROT_READ | PROT_WRITE | PROT_EXEC;
    if (r->segment)
        return segment_backing(mm, r);
    if (!(r->flags & MAP_ANONYMOUS))
        return map_file(mm, r);
    if (type == MAP_PRIVATE) {
        r->offset = r->addr;
        return 0;
    }
    if (type != MAP_SHARED || (r->vma_flags & VMA_GROWSDOWN))
        return -EINVAL;
    r->vma_flags |= VMA_SHARED;
    r->offset = 0;
    if (!(r->flags & MAP_NORESERVE) &&
        !account_enough_memory(mm, r->len >> GUEST_PAGE_SHIFT))
        return -ENOMEM;
    return object_map_anonymous(mm, r->len, &r->backing);
}

/* The head of mmap_region(): limits, and all that can still fail. */
static int map_check(mm_t *mm, map_request_t *r)
{
    uint64_t pages = r->len >> GUEST_PAGE_SHIFT, end = r->addr + r->len;

    if (mm->deny_write_exec && (r->prot & PROT_WRITE) && (r->prot & PROT_EXEC))
        return -EACCES;
    if (!account_may_expand(mm, r->prot, r->vma_flags, pages) &&
        !account_may_expand(mm, r->prot, r->vma_flags,
                            pages - mapped_pages(mm, r->addr, end)))
        return -ENOMEM;
    if (account_chargeable(r->prot, r->vma_flags)) {
        if (!account_enough_memory(mm, pages))
            return -ENOMEM;
        r->vma_flags |= VMA_ACCOUNT;
    }
    return unmap_check(mm, r->addr, end, 1);
}

static void map_perform(mm_t *mm, mm_cpu_t *cpu, const map_request_t *r)
{
    vma_t area = {
        .start = r->addr,
        .end = r->addr + r->len,
        .prot = r->prot,
        .max_prot = r->backing.max_prot,
        .flags = r->vma_flags,
        .object = r->backing.object,
        .object_host = r->backing.host,
        .offset = r->offset,
    };

    if (r->flags & MAP_FIXED)
        unmap_now(mm, cpu, area.start, area.end);
    account_add(mm, area.prot, area.flags, r->len >> GUEST_PAGE_SHIFT);
    vma_add(mm, &area);
}

/*
 * Calls of other threads may still be about to write here, into what was mapped
 * before. As in Linux that goes to the new mapping, which must therefore be
 * zeroed now, and not when it is touched.
 */
static void map_under_spans(mm_t *mm, mm_cpu_t *cpu, const map_request_t *r)
{
    uint64_t end = r->addr + r->len, from, to = r->addr;

    if (r->backing.object || !r->prot || !revoking_pending(mm) ||
        !gather_revoking(mm, r->addr, end))
        return;
    while (span_find(mm, to, end, &from, &to)) {
        to = page_align(to);
        populate_range(mm, cpu, from & GUEST_PAGE_MASK, to);
    }
}

/* Of the kind that EL1 serves (shim/map.c), where it could not. */
static bool served_at_el1(const mm_t *mm, const map_request_t *r)
{
    const uint64_t anonymous = MAP_PRIVATE | MAP_ANONYMOUS;

    return !r->addr && !r->segment && r->prot == (PROT_READ | PROT_WRITE) &&
           (r->flags & ~(uint64_t) MAP_NORESERVE) == anonymous &&
           (account_enough_memory(mm, r->len >> GUEST_PAGE_SHIFT) ||
            (r->flags & MAP_NORESERVE));
}

int64_t map_region(mm_t *mm, mm_cpu_t *cpu, map_request_t *r)
{
    int err;

    if (r->flags & MAP_FIXED)
        fast_claim_fixed(mm, r->addr, r->addr + r->len);
    else if (mm->fast && served_at_el1(mm, r))
        r->window = fast_place(mm, cpu, r->len);
    else if (r->addr)
        fast_claim(mm, r->addr, r->addr + r->len);
    err = map_place(mm, r);
    if (!err)
        err = map_backing(mm, r);
    if (err)
        return err;
    err = map_check(mm, r);
    if (err) {
        if (r->backing.object)
            object_release(mm, r->backing.object, r->backing.host, r->len);
        return err;
    }
    map_perform(mm, cpu, r);
    map_under_spans(mm, cpu, r);
    if ((r->vma_flags & VMA_LOCKED) ||
        (r->flags & (MAP_POPULATE | MAP_NONBLOCK)) == MAP_POPULATE)
        populate_range(mm, cpu, r->addr, r->addr + r->len);
    return (int64_t) r->addr;
}

int64_t mm_mmap(mm_t *mm, mm_cpu_t *cpu, uint64_t addr, uint64_t len,
                uint64_t prot, uint64_t flags, int fd, uint64_t offset)
{
    map_request_t r = {
        .addr = addr,
        .len = len,
        .flags = flags,
        .offset = offset,
        .prot = prot & (PROT_READ | PROT_WRITE | PROT_EXEC),
        .fd = fd,
    };
    int64_t result = map_decode(mm, &r);

    if (result)
        return result;
    mm_lock(mm);
    result = map_region(mm, cpu, &r);
    mm_unlock(mm);
    return result;
}
