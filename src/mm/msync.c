/* SPDX-License-Identifier: Apache-2.0 */
/*
 * msync. The memory lock is not held while the host writes; a registered span
 * keeps the object's pages from being unmapped and reused meanwhile.
 */
#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "mm/calls.h"

/* What the host is to write, found under the lock. */
typedef struct sync_piece {
    uint64_t next; /* guest address where to go on */
    uint64_t host, size;
    span_slot_t *slot;
    bool hole; /* something before `next` is not mapped */
} sync_piece_t;

/*
 * Register [start, end) in a free slot of this thread; NULL: none is free. The
 * lock is held, so nobody is between looking at the slots and unmapping;
 * seq_cst as in span.c, with which whoever unmaps later is ordered.
 */
static span_slot_t *pin(mm_cpu_t *cpu, uint64_t start, uint64_t end)
{
    for (int i = 0; i < SPAN_SLOTS; i++) {
        span_slot_t *slot = &cpu->span[i];
        if (atomic_load_explicit(&slot->end, memory_order_relaxed))
            continue;
        atomic_store_explicit(&slot->start, start, memory_order_seq_cst);
        atomic_store_explicit(&slot->end, end, memory_order_seq_cst);
        return slot;
    }
    return NULL;
}

static void unpin(span_slot_t *slot)
{
    /* Release: the host's accesses come before. */
    atomic_store_explicit(&slot->end, 0, memory_order_release);
    atomic_store_explicit(&slot->start, 0, memory_order_release);
}

static void piece_of(mm_t *mm, mm_cpu_t *cpu, const vma_t *vma, uint64_t start,
                     sync_piece_t *piece)
{
    uint64_t mask = mm->caps.host_page - 1;
    uint64_t host = vma_object_host(vma, start);

    piece->slot = pin(cpu, start, piece->next);
    piece->host = host & ~mask;
    piece->size = (host + (piece->next - start) - piece->host + mask) & ~mask;
}

/* The next VMA at or after start. 0, or what msync returns now. */
static int sync_find(mm_t *mm, mm_cpu_t *cpu, uint64_t start, uint64_t end,
                     int flags, sync_piece_t *piece)
{
    vma_t *vma = vma_find(mm, start);

    *piece = (sync_piece_t){.next = end};
    if (!vma)
        return -ENOMEM;
    if (vma->start > start) {
        piece->hole = true;
        start = vma->start;
        if (start >= end)
            return -ENOMEM;
    }
    if ((flags & MS_INVALIDATE) && (vma->flags & VMA_LOCKED))
        return -EBUSY;
    piece->next = min_u64(vma->end, end);
    if ((flags & MS_SYNC) && vma->object && (vma->flags & VMA_SHARED) &&
        vma->object->writable && !vma->object->special)
        piece_of(mm, cpu, vma, start, piece);
    return 0;
}

/* Up to the end of one VMA. */
static int sync_step(mm_t *mm, mm_cpu_t *cpu, uint64_t start, uint64_t end,
                     int flags, sync_piece_t *piece)
{
    int err;

    mm_lock(mm);
    err = sync_find(mm, cpu, start, end, flags, piece);
    /* Without a slot to hold the pages, the lock has to do it. */
    if (!err && piece->size && !piece->slot) {
        err = msync((void *) piece->host, piece->size, MS_SYNC) ? -errno : 0;
        piece->size = 0;
    }
    mm_unlock(mm);
    if (!err && piece->size) {
        err = msync((void *) piece->host, piece->size, MS_SYNC) ? -errno : 0;
        unpin(piece->slot);
    }
    return err;
}

int64_t mm_msync(mm_t *mm, mm_cpu_t *cpu, uint64_t addr, uint64_t len,
                 int flags)
{
    uint64_t start = untag(addr), end = start + page_align(len);
    int err, unmapped = 0;

    if ((flags & ~(MS_ASYNC | MS_INVALIDATE | MS_SYNC)) ||
        (start & ~GUEST_PAGE_MASK) || ((flags & MS_ASYNC) && (flags & MS_SYNC)))
        return -EINVAL;
    if (end < start)
        return -ENOMEM;
    while (start < end) {
        sync_piece_t piece;

        err = sync_step(mm, cpu, start, end, flags, &piece);
        if (err)
            return err;
        if (piece.hole)
            unmapped = -ENOMEM;
        start = piece.next;
    }
    return unmapped;
}
