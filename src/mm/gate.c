/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's side of the gate, and the host-block map.
 */
#include <sched.h>

#include "mm/fast.h"
#include "proc/proc.h" /* elfuse_panic only */
#include "stats.h"

/* [start, end) cut to the zone, as blocks; 0 when nothing is left. */
static uint64_t blocks_of(const fast_t *f, uint64_t start, uint64_t end)
{
    start = start > f->zone_start ? start : f->zone_start;
    end = end < f->zone_end ? end : f->zone_end;
    if (start >= end)
        return 0;
    return fast_range((start - f->zone_start) >> BLOCK_SHIFT,
                      (end - f->zone_start + BLOCK_SIZE - 1) >> BLOCK_SHIFT);
}

static uint64_t unite(uint64_t a, uint64_t b)
{
    uint64_t start = a >> 32 < b >> 32 ? a >> 32 : b >> 32;
    uint64_t end = (uint32_t) a > (uint32_t) b ? (uint32_t) a : (uint32_t) b;

    return a ? fast_range(start, end) : b;
}

static bool covers(uint64_t claim, uint64_t range)
{
    return unite(claim, range) == claim;
}

void fast_each(struct mm *mm, void (*fn)(struct mm_cpu *cpu, void *arg),
               void *arg)
{
    fast_t *f = mm->fast;

    for (unsigned i = 0; i < VCPU_MAX / 64; i++) {
        /* seq_cst: pairs with fast_enter_guest(). Whoever is not seen here will
         * see the claim. */
        uint64_t word =
            atomic_load_explicit(&f->in_guest[i], memory_order_seq_cst);

        for (; word; word &= word - 1)
            fn(f->cpu[i * 64 + (unsigned) __builtin_ctzl(word)], arg);
    }
}

/* EL1 does not wait for anybody, so this ends. */
static void wait_inactive(struct mm_cpu *cpu, void *arg)
{
    const uint64_t *claim = arg;

    while (fast_overlap(fast_gate_load(&cpu->fast->active), *claim))
        sched_yield();
}

void fast_exclude(struct mm *mm, uint64_t start, uint64_t end)
{
    fast_t *f = mm->fast;
    uint64_t range;

    if (!f)
        return;
    range = blocks_of(f, start, end);
    if (!range || covers(f->claim, range))
        return;
    f->claim = unite(f->claim, range);
    fast_gate_store(&f->shared->claim, f->claim);
    fast_each(mm, wait_inactive, &f->claim);
}

bool fast_excluded(const struct mm *mm, uint64_t start, uint64_t end)
{
    uint64_t range = mm->fast ? blocks_of(mm->fast, start, end) : 0;

    return !range || covers(mm->fast->claim, range);
}

void fast_claim(struct mm *mm, uint64_t start, uint64_t end)
{
    if (!fast_in_zone(mm, start, end))
        return;
    fast_exclude(mm, start, end);
    if (FAST_BREAK != BREAK_REDRAIN)
        fast_drain(mm);
}

void fast_claim_fixed(struct mm *mm, uint64_t start, uint64_t end)
{
    if (!fast_in_zone(mm, start, end))
        return;
    fast_claim(mm, start, end);
    fast_close_windows(mm, start, end);
}

void fast_claim_touch(struct mm *mm, uint64_t start, uint64_t end)
{
    if (!mm->fast)
        return;
    if (windows_short(mm, end - start))
        fast_claim(mm, mm->fast->zone_start, mm->fast->zone_end);
    else
        fast_claim(mm, start, end);
}

void fast_claim_restore(struct mm *mm, uint64_t claim)
{
    fast_t *f = mm->fast;

    if (f->claim == claim)
        return;
    f->claim = claim;
    /* Release: pairs with EL1's load, which then sees what was done. */
    __atomic_store_n(&f->shared->claim, claim, __ATOMIC_RELEASE);
}

void fast_release(struct mm *mm)
{
    fast_claim_restore(mm, 0);
}

/* --- the host-block map -------------------------------------------------- */

static void write_bits(fast_t *f, uint64_t first, uint64_t last, bool set)
{
    uint64_t *words = fast_blocks(f->shared);

    while (first < last) {
        uint64_t stop = (first | 63) + 1 < last ? (first | 63) + 1 : last;
        uint64_t mask = (~0UL >> (64 - (stop - first))) << (first & 63);

        /* Relaxed: EL1 looks at its bits between the gate's loads and stores.
         */
        if (set)
            __atomic_fetch_or(&words[first >> 6], mask, __ATOMIC_RELAXED);
        else if (__atomic_load_n(&words[first >> 6], __ATOMIC_RELAXED) & mask)
            __atomic_fetch_and(&words[first >> 6], ~mask, __ATOMIC_RELAXED);
        first = stop;
    }
}

void fast_mark(struct mm *mm, uint64_t start, uint64_t end)
{
    uint64_t range = mm->fast ? blocks_of(mm->fast, start, end) : 0;

    if (!range)
        return;
    if (!covers(mm->fast->claim, range))
        elfuse_panic("mm: %#lx-%#lx becomes the host's, but is not claimed",
                     start, end);
    write_bits(mm->fast, range >> 32, (uint32_t) range, true);
}

void fast_unmark(struct mm *mm, uint64_t start, uint64_t end)
{
    const fast_t *f = mm->fast;

    write_bits(mm->fast,
               (start - f->zone_start + BLOCK_SIZE - 1) >> BLOCK_SHIFT,
               (end - f->zone_start) >> BLOCK_SHIFT, false);
}

/* --- who is in the guest ------------------------------------------------- */

void fast_enter_guest(struct mm *mm, struct mm_cpu *cpu)
{
    unsigned i = cpu->frame->vcpu;

    if (!cpu->fast)
        return;
    /* seq_cst: before EL1's look at the claim; see fast_each(). */
    atomic_fetch_or_explicit(&mm->fast->in_guest[i / 64], 1UL << (i & 63),
                             memory_order_seq_cst);
}

void fast_leave_guest(struct mm *mm, struct mm_cpu *cpu)
{
    unsigned i = cpu->frame->vcpu;

    if (!cpu->fast)
        return;
    /* Release: its rings are empty. */
    atomic_fetch_and_explicit(&mm->fast->in_guest[i / 64], ~(1UL << (i & 63)),
                              memory_order_release);
}

/* Relaxed: our own vCPU's, which stands still; heads only ever catch up. */
bool fast_pending(struct mm *mm, const struct mm_cpu *cpu)
{
    const fast_control_t *c = cpu->fast;

    if (!c)
        return false;
    return __atomic_load_n(&c->grant_head, __ATOMIC_RELAXED) !=
               __atomic_load_n(&c->grant_tail, __ATOMIC_RELAXED) ||
           __atomic_load_n(&c->retire_head, __ATOMIC_RELAXED) !=
               __atomic_load_n(&c->retire_tail, __ATOMIC_RELAXED) ||
           __atomic_load_n(&mm->fast->shared->advise, __ATOMIC_RELAXED);
}
