/* SPDX-License-Identifier: Apache-2.0 */
#include "mm/window.h"

#include <stdlib.h>

#include "mm/fast.h"
#include "mm/internal.h"
#include "mm/lazymap.h"
#include "mm/tablepool.h"
#include "proc/proc.h" /* elfuse_panic only */
#include "stats.h"

#define WINDOW_SHIFT_MAX 36U /* 64 GiB */
/* Memory slots kept for the shim and the page-table pool. */
#define SLOTS_KEPT 8U

windows_t *windows_create(unsigned ipa_bits, unsigned max_slots, uint64_t host,
                          uint64_t size)
{
    windows_t *w = calloc(1, sizeof(*w));
    uint64_t room = (1UL << ipa_bits) - (1UL << (ipa_bits - 5));

    if (!w)
        return NULL;
    w->shift = ipa_bits - 9;
    if (w->shift > WINDOW_SHIFT_MAX)
        w->shift = WINDOW_SHIFT_MAX;
    w->ipa = 1UL << (ipa_bits - 5);
    w->nr_slots = (unsigned) (room >> w->shift);
    if (w->nr_slots > max_slots - SLOTS_KEPT)
        w->nr_slots = max_slots - SLOTS_KEPT;
    w->host = host;
    w->nr_windows = (size + (1UL << w->shift) - 1) >> w->shift;
    w->slot = calloc(w->nr_slots, sizeof(*w->slot));
    w->slot_of =
        lazy_map(w->nr_windows * sizeof(*w->slot_of), PROT_READ | PROT_WRITE);
    if (!w->slot || !w->slot_of) {
        free(w->slot);
        free(w);
        return NULL;
    }
    return w;
}

static unsigned slot_of_ipa(const windows_t *w, uint64_t ipa)
{
    return (unsigned) ((ipa - w->ipa) >> w->shift);
}

void window_count(struct mm *mm, uint64_t ipa, int64_t n)
{
    windows_t *w = mm->windows;

    w->slot[slot_of_ipa(w, ipa)].valid += (uint64_t) n;
}

void window_count_host(struct mm *mm, uint64_t host, int64_t n)
{
    windows_t *w = mm->windows;
    unsigned slot = w->slot_of[(host - w->host) >> w->shift];

    if (!slot)
        elfuse_panic("mm: %ld pages at %#lx, which is in no window", n, host);
    w->slot[slot - 1].valid += (uint64_t) n;
}

bool windows_short(const struct mm *mm, uint64_t size)
{
    const windows_t *w = mm->windows;

    return w->nr_slots - w->nr_used < (size >> w->shift) + 2;
}

uint64_t window_host(struct mm *mm, uint64_t ipa)
{
    windows_t *w = mm->windows;
    window_slot_t *s = &w->slot[slot_of_ipa(w, ipa)];

    /* Pairs with the release in slot_open. */
    return atomic_load_explicit(&s->host, memory_order_acquire) +
           (ipa & ((1UL << w->shift) - 1));
}

uint64_t window_evictions(struct mm *mm)
{
    /* Pairs with the release in slot_close: who sees a new window in a slot
     * sees that the count has moved. */
    return atomic_load_explicit(&mm->windows->evictions, memory_order_acquire);
}

/*
 * Turn the valid descriptors of [start, end) that lead into the slot EVICTED.
 */
static void evict_range(struct mm *mm, gather_t *g, window_slot_t *s,
                        uint64_t ipa, uint64_t start, uint64_t end)
{
    windows_t *w = mm->windows;
    uint64_t v = start;
    _Atomic pte_t *table;

    while (s->valid && (table = pt_next_l3(mm, &v, end))) {
        uint64_t stop = pt_block_end(v, end);

        for (; v < stop && s->valid; v += GUEST_PAGE_SIZE) {
            _Atomic pte_t *entry = &table[pt_index(v)];
            pte_t pte = atomic_load_explicit(entry, memory_order_relaxed);

            if (!pte_valid(pte) || ((pte & PTE_ADDR) ^ ipa) >> w->shift)
                continue;
            atomic_store_explicit(entry, pte & ~PTE_VALID,
                                  memory_order_release);
            gather_range(g, v, v + GUEST_PAGE_SIZE);
            s->valid--;
        }
        v = stop;
    }
}

/* Every descriptor into the window at [host, host + size): private anonymous
 * memory's are where the window is, objects' where their VMAs are. */
static void evict_descriptors(struct mm *mm, struct mm_cpu *cpu, unsigned slot)
{
    windows_t *w = mm->windows;
    window_slot_t *s = &w->slot[slot];
    uint64_t size = 1UL << w->shift, ipa = w->ipa + slot * size;
    uint64_t host = atomic_load_explicit(&s->host, memory_order_relaxed);
    gather_t g;

    gather_begin(&g, mm, cpu);
    if (host < mm->space->object_base) {
        uint64_t v = host - w->host;
        uint64_t end = v + size < mm->task_size ? v + size : mm->task_size;

        evict_range(mm, &g, s, ipa, v, end);
    }
    for (vma_t *vma = vma_find(mm, 0); vma && s->valid;
         vma = vma_find(mm, vma->end)) {
        uint64_t low = vma->object_host;

        if (vma->object && low < host + size &&
            low + (vma->end - vma->start) > host)
            evict_range(mm, &g, s, ipa, vma->start, vma->end);
    }
    gather_finish_now(&g);
    if (s->valid)
        elfuse_panic("mm: window at IPA %#lx: %lu descriptors not found", ipa,
                     s->valid);
}

/* Bytes of the window at host: the reservation's last one may be cut short. */
static uint64_t window_size(struct mm *mm, uint64_t host)
{
    uint64_t size = 1UL << mm->windows->shift;
    uint64_t left = mm->windows->host + mm->space->size - host;

    return size < left ? size : left;
}

/* The slot shows nothing any more. */
static void slot_forget(windows_t *w, unsigned slot, uint64_t host)
{
    w->slot_of[(host - w->host) >> w->shift] = 0;
    /* Before the slot shows another window; see window_evictions(). */
    atomic_fetch_add_explicit(&w->evictions, 1, memory_order_release);
    atomic_store_explicit(&w->slot[slot].host, 0, memory_order_release);
}

static void slot_close(struct mm *mm, unsigned slot)
{
    windows_t *w = mm->windows;
    window_slot_t *s = &w->slot[slot];
    uint64_t host = atomic_load_explicit(&s->host, memory_order_relaxed);
    uint64_t ipa = w->ipa + ((uint64_t) slot << w->shift);
    int error = hv_unmap(mm->vm, ipa, window_size(mm, host));

    if (error)
        elfuse_panic("mm: cannot unmap the window at IPA %#lx: error %d", ipa,
                     -error);
    slot_forget(w, slot, host);
    stats_add(windows_evicted, 1);
}

/* May the descriptors into this slot's window be changed now? Not where EL1
 * may be at work (fast_claim_touch() has seen to it that it is not, where it
 * matters). */
static bool slot_evictable(struct mm *mm, const window_slot_t *s)
{
    uint64_t host = atomic_load_explicit(&s->host, memory_order_relaxed);
    uint64_t v = host - mm->windows->host;

    return !host || host >= mm->space->object_base ||
           fast_excluded(mm, v, v + (1UL << mm->windows->shift));
}

/* Make the least recently used slot free, one with no valid descriptor if
 * there is such a one. Returns nr_slots when there is none. */
static unsigned slot_evict(struct mm *mm, struct mm_cpu *cpu)
{
    windows_t *w = mm->windows;
    unsigned best = w->nr_slots;

    for (unsigned i = 0; i < w->nr_slots; i++) {
        const window_slot_t *a = &w->slot[i], *b = &w->slot[best];

        if (!slot_evictable(mm, a))
            continue;
        if (best == w->nr_slots ||
            (!a->valid != !b->valid ? !a->valid : a->used < b->used))
            best = i;
    }
    if (best == w->nr_slots)
        return best;
    /* Translations into it may still be cached for entries already gone. */
    gather_wait_for(mm, cpu, 0, mm->task_size);
    if (w->slot[best].valid)
        evict_descriptors(mm, cpu, best);
    if (atomic_load_explicit(&w->slot[best].host, memory_order_relaxed))
        slot_close(mm, best);
    return best;
}

static int slot_open(struct mm *mm, unsigned slot, uint64_t window)
{
    windows_t *w = mm->windows;
    uint64_t host = w->host + (window << w->shift);
    uint64_t ipa = w->ipa + ((uint64_t) slot << w->shift);
    int error = hv_map(mm->vm, ipa, (void *) host, window_size(mm, host));

    if (error)
        return error;
    w->slot_of[window] = (uint16_t) (slot + 1);
    /* Pairs with window_host. */
    atomic_store_explicit(&w->slot[slot].host, host, memory_order_release);
    stats_add(windows_opened, 1);
    return 0;
}

int windows_renew(struct mm *mm)
{
    windows_t *w = mm->windows;

    for (unsigned i = 0; i < w->nr_used; i++) {
        window_slot_t *s = &w->slot[i];
        uint64_t host = atomic_load_explicit(&s->host, memory_order_relaxed);
        int error = 0;

        if (!host)
            continue;
        if (s->valid)
            error = hv_map(mm->vm, w->ipa + ((uint64_t) i << w->shift),
                           (void *) host, window_size(mm, host));
        if (error)
            return error;
        if (!s->valid)
            slot_forget(w, i, host);
    }
    return 0;
}

static unsigned window_open(struct mm *mm, struct mm_cpu *cpu, uint64_t window)
{
    windows_t *w = mm->windows;
    unsigned slot;

    if (w->nr_used < w->nr_slots) {
        slot = w->nr_used;
        if (slot_open(mm, slot, window) == 0) {
            w->nr_used++;
            return slot + 1;
        }
        /* The hypervisor takes no more of them: live with what there is. */
        w->nr_slots = w->nr_used;
        if (!w->nr_slots)
            return 0;
    }
    slot = slot_evict(mm, cpu);
    if (slot == w->nr_slots)
        return 0;
    return slot_open(mm, slot, window) == 0 ? slot + 1 : 0;
}

uint64_t window_ipa(struct mm *mm, struct mm_cpu *cpu, uint64_t host)
{
    windows_t *w = mm->windows;
    uint64_t window = (host - w->host) >> w->shift;
    unsigned slot = w->slot_of[window];

    if (!slot)
        slot = window_open(mm, cpu, window);
    if (!slot)
        return 0;
    w->slot[slot - 1].used = ++w->clock;
    return w->ipa + ((uint64_t) (slot - 1) << w->shift) +
           ((host - w->host) & ((1UL << w->shift) - 1));
}
