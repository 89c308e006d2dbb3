/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spans: registered first, then read off the descriptors without a lock; only
 * where a descriptor is not good enough is the VMA asked, under mm->lock.
 */
#include "mm/span.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "mm/fast.h"
#include "mm/internal.h"
#include "mm/tablepool.h"
#include "proc/proc.h" /* elfuse_panic only */

/* Descriptor and VMA disagreeing so often for one page: they are being changed
 * all the time, or broken. */
#define TRIES 1000

bool span_tags;

static int slot_register(struct mm_cpu *cpu, uint64_t start, uint64_t end)
{
    for (int i = 0; i < SPAN_SLOTS; i++) {
        span_slot_t *s = &cpu->span[i];

        if (atomic_load_explicit(&s->end, memory_order_relaxed))
            continue;
        atomic_store_explicit(&s->start, start, memory_order_relaxed);
        /* Release: with `end` comes `start`. */
        atomic_store_explicit(&s->end, end, memory_order_release);
        /* Before the descriptors are looked at: pairs with the fence in
         * span_overlaps. */
        atomic_thread_fence(memory_order_seq_cst);
        return i;
    }
    elfuse_panic("mm: one thread holds more than %d spans", SPAN_SLOTS);
}

bool span_find(struct mm *mm, uint64_t start, uint64_t end, uint64_t *from,
               uint64_t *to)
{
    struct mm_cpu *cpu;

    *from = end;
    /* After the descriptors were made invalid: pairs with the fence in
     * slot_register. */
    atomic_thread_fence(memory_order_seq_cst);
    TAILQ_FOREACH (cpu, &mm->cpus, entry) {
        for (int i = 0; i < SPAN_SLOTS; i++) {
            span_slot_t *slot = &cpu->span[i];
            /* Acquire: pairs with span_put, so that what was done through the
             * span is over; and with slot_register. */
            uint64_t e = atomic_load_explicit(&slot->end, memory_order_acquire);
            uint64_t s =
                atomic_load_explicit(&slot->start, memory_order_relaxed);

            if (e <= start || s >= *from)
                continue;
            *from = s > start ? s : start;
            *to = e < end ? e : end;
        }
    }
    return *from < end;
}

bool span_overlaps(struct mm *mm, uint64_t start, uint64_t end)
{
    uint64_t from, to;

    return span_find(mm, start, end, &from, &to);
}

void span_put(struct mm_cpu *cpu, span_set_t *set)
{
    if (set->slot >= 0)
        atomic_store_explicit(&cpu->span[set->slot].end, 0,
                              memory_order_release);
    set->slot = -1;
}

static bool allows(pte_t pte, enum span_access access)
{
    int prot = pte_access(pte);

    return access & SPAN_WRITE ? (prot & PROT_WRITE) != 0
                               : (prot & PROT_READ) != 0;
}

/* Host address of page v, or NULL when its descriptor does not do. */
static uint8_t *page_host(struct mm *mm, const _Atomic pte_t *entry, uint64_t v,
                          enum span_access access)
{
    uint64_t evictions = window_evictions(mm), host;
    /* Acquire: pairs with the release that made it valid. */
    pte_t pte = atomic_load_explicit(entry, memory_order_acquire);

    if (!pte_present(pte) || !allows(pte, access))
        return NULL;
    if (!(pte & PTE_SW_OBJECT))
        return hostspace_ptr(mm, v & GUEST_PAGE_MASK);
    if (!pte_valid(pte))
        return NULL;
    host = window_host(mm, pte & PTE_ADDR);
    return window_evictions(mm) == evictions ? (uint8_t *) host : NULL;
}

/* Make what the guest may touch of [v, end) valid, at most `most` bytes. How
 * many, or -EFAULT. */
static int64_t fill(struct mm *mm, struct mm_cpu *cpu, uint64_t v, uint64_t end,
                    uint64_t most, enum span_access access)
{
    enum mm_access kind = access & SPAN_WRITE ? MM_WRITE : MM_READ;
    struct vma *vma;
    int error = -EFAULT;

    mm_lock(mm);
    fast_claim_touch(mm, v, (end - v < most ? end : v + most));
    vma = vma_find(mm, v);
    if (vma && vma->start <= v) {
        if (allows(pte_prot(vma->prot), access)) {
            v &= GUEST_PAGE_MASK;
            end = (end + GUEST_PAGE_SIZE - 1) & GUEST_PAGE_MASK;
            end = end < vma->end ? end : vma->end;
            end = end - v < most ? end : v + most;
            error = materialise_range(mm, cpu, vma, v, end);
        }
        mm_unlock(mm);
        return error ? -EFAULT : (int64_t) (end - v);
    }
    mm_unlock(mm);
    /* No VMA there: a stack may grow. */
    return mm_handle_fault(mm, cpu, v, kind).signal ? -EFAULT : 0;
}

static bool append(span_set_t *set, int max, uint8_t *host, size_t len)
{
    struct iovec *next = set->iov + set->nr;

    if (set->nr && (uint8_t *) next[-1].iov_base + next[-1].iov_len == host) {
        next[-1].iov_len += len;
    } else {
        if (set->nr == max)
            return false;
        next->iov_base = host;
        next->iov_len = len;
        set->nr++;
    }
    set->bytes += len;
    return true;
}

/* Collect pieces from v on until something stops it; returns where. */
static uint64_t collect(struct mm *mm, uint64_t v, uint64_t end,
                        enum span_access access, int max, span_set_t *set,
                        bool *full)
{
    const _Atomic pte_t *entry = NULL;

    while (v < end) {
        uint64_t stop = (v | (GUEST_PAGE_SIZE - 1)) + 1;
        uint8_t *host;

        /* Tables of a registered range stay: walk once for each block. */
        entry = entry && pt_index(v) ? entry + 1 : pt_walk(mm, v);
        host = entry ? page_host(mm, entry, v, access) : NULL;
        if (!host)
            return v;
        stop = stop < end ? stop : end;
        host += v & (GUEST_PAGE_SIZE - 1);
        if (!append(set, max, host, stop - v)) {
            *full = true;
            return v;
        }
        v = stop;
    }
    return v;
}

int span_get(struct mm *mm, struct mm_cpu *cpu, uint64_t addr, size_t len,
             enum span_access access, struct iovec *iov, int max,
             span_set_t *set)
{
    uint64_t end, v, ready = SPAN_STEP, last = ~0UL;
    bool full = false;
    int tries = 0;

    *set = (span_set_t){.slot = -1, .iov = iov};
    if (!len)
        return 0;
    addr = span_untag(addr);
    if (addr >= mm->task_size)
        return -EFAULT;
    end = len < mm->task_size - addr ? addr + len : mm->task_size;
    set->slot = slot_register(cpu, addr, end);
    for (v = addr; v < end;) {
        int64_t n;

        v = collect(mm, v, end, access, max, set, &full);
        if (v == end || full || !ready)
            break;
        tries = v == last ? tries + 1 : 0;
        n = fill(mm, cpu, v, end, ready, access);
        if (n < 0 || tries > TRIES)
            break;
        ready -= (uint64_t) n < ready ? (uint64_t) n : ready;
        last = v;
    }
    if (!set->bytes) {
        span_put(cpu, set);
        return -EFAULT;
    }
    return 0;
}

uint64_t span_key(struct mm *mm, struct mm_cpu *cpu, uint64_t addr)
{
    const _Atomic pte_t *entry;
    uint8_t *host = NULL;
    span_set_t set = {.slot = -1};

    addr = span_untag(addr);
    if (addr < mm->task_size) {
        set.slot = slot_register(cpu, addr, addr + 1);
        entry = pt_walk(mm, addr);
        host = entry ? page_host(mm, entry, addr, SPAN_READ) : NULL;
        span_put(cpu, &set);
    }
    if (!host)
        host = hostspace_ptr(mm, addr & GUEST_PAGE_MASK);
    return (uintptr_t) host + (addr & ~GUEST_PAGE_MASK);
}

bool span_is_object(struct mm *mm, const void *host)
{
    return hostspace_is_object(mm, host);
}
