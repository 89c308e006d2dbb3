/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The drain: the one place where what EL1 has done becomes VMAs and counts.
 *
 * Retire tails first, then every grant, then the retirements up to those tails:
 * who unmaps an address has it from a grant that was written before, so that a
 * retirement in the snapshot finds its grant already committed.
 */
#include <sys/mman.h>

#include "mm/account.h"
#include "mm/calls.h"
#include "mm/fast.h"
#include "proc/proc.h" /* elfuse_panic only */
#include "stats.h"

/* So much of one retirement is dropped rather than kept (see pagetable.c). */
#define DROP_PAGES (32UL << 20 >> GUEST_PAGE_SHIFT)

typedef struct snapshot {
    unsigned n;
    struct {
        struct mm_cpu *cpu;
        uint64_t tail;
    } ring[VCPU_MAX];
} snapshot_t;

static void ring_check(const struct mm_cpu *cpu, const char *ring,
                       uint64_t head, uint64_t tail)
{
    if (tail - head >= FAST_RING)
        elfuse_panic("mm: vCPU %u: %s ring has %lu records, %lu taken",
                     cpu->frame->vcpu, ring, tail, head);
}

/* --- grants -------------------------------------------------------------- */

static void grant_check(struct mm *mm, const struct mm_cpu *cpu,
                        const fast_grant_t *g, uint64_t size)
{
    const arena_t *a = fast_arena(mm, cpu);
    uint32_t generation = g->what >> FAST_GRANT_GENERATION_SHIFT;
    vma_t *there;

    if (!a || !size || ((g->addr | size) & ~GUEST_PAGE_MASK) ||
        g->addr < a->base || g->addr > a->limit || size > a->limit - g->addr ||
        generation != cpu->fast->generation)
        elfuse_panic("mm: vCPU %u granted %#lx+%#lx, generation %u; its arena "
                     "is %#lx-%#lx, generation %u",
                     cpu->frame->vcpu, g->addr, size, generation,
                     a ? a->base : 0, a ? a->limit : 0, cpu->fast->generation);
    there = vma_overlap(mm, g->addr, g->addr + size);
    if (there)
        elfuse_panic("mm: vCPU %u granted %#lx+%#lx, where %#lx-%#lx is",
                     cpu->frame->vcpu, g->addr, size, there->start, there->end);
}

static void grant_commit(struct mm *mm, const struct mm_cpu *cpu,
                         const fast_grant_t *g)
{
    uint64_t pages = g->what & FAST_GRANT_PAGES;
    uint64_t size = pages << GUEST_PAGE_SHIFT;
    vma_t area = {
        .start = g->addr,
        .end = g->addr + size,
        .prot = PROT_READ | PROT_WRITE,
        .max_prot = PROT_READ | PROT_WRITE | PROT_EXEC,
        .flags = g->what & FAST_GRANT_NORESERVE ? VMA_NORESERVE : VMA_ACCOUNT,
        .offset = g->addr,
    };

    grant_check(mm, cpu, g, size);
    if (vma_reserve(mm, 1))
        elfuse_panic("mm: no memory to note %#lx+%#lx", g->addr, size);
    account_add(mm, area.prot, area.flags, (int64_t) pages);
    vma_add(mm, &area);
    fast_note_length(mm, size);
    stats_add(fast_mmaps, 1);
}

static void drain_grants(struct mm_cpu *cpu, void *arg)
{
    struct mm *mm = arg;
    fast_control_t *c = cpu->fast;
    uint64_t head = c->grant_head;
    /* Acquire: pairs with EL1's release; the records are written. */
    uint64_t tail = __atomic_load_n(&c->grant_tail, __ATOMIC_ACQUIRE);

    if (head == tail)
        return;
    ring_check(cpu, "grant", head, tail);
    for (; head != tail; head++)
        grant_commit(mm, cpu, &fast_grants(c)[head % FAST_RING]);
    /* Release: pairs with EL1's acquire; the slots have been read. */
    __atomic_store_n(&c->grant_head, head, __ATOMIC_RELEASE);
}

/* --- retirements --------------------------------------------------------- */

static void vmas_retire(struct mm *mm, const struct mm_cpu *cpu, uint64_t start,
                        uint64_t end)
{
    vma_t *vma = vma_overlap(mm, start, end);

    if (!vma)
        return;
    if (vma_reserve(mm, 1))
        elfuse_panic("mm: no memory to unmap %#lx-%#lx", start, end);
    for (; vma && vma->start < end; vma = vma_next(vma)) {
        uint64_t from = max_u64(vma->start, start);
        uint64_t to = min_u64(vma->end, end);

        if (!fast_plain(vma))
            elfuse_panic("mm: vCPU %u retired %#lx-%#lx, where %#lx-%#lx is "
                         "not plain",
                         cpu->frame->vcpu, start, end, vma->start, vma->end);
        account_add(mm, vma->prot, vma->flags,
                    -(int64_t) ((to - from) >> GUEST_PAGE_SHIFT));
    }
    vma_clear(mm, start, end);
}

static void retire_commit(struct mm *mm, const struct mm_cpu *cpu,
                          const fast_retire_t *r)
{
    uint64_t start = r->addr, end = start + (r->pages << GUEST_PAGE_SHIFT);

    vmas_retire(mm, cpu, start, end);
    if (pt_retire(mm, start, end) >= DROP_PAGES &&
        !gather_revoking(mm, start, end))
        revoking_add_backing(mm, start, end);
    mm->fast->commits++;
    stats_add(fast_munmaps, 1);
}

/* What all records of a ring up to tail touch. */
static void retire_exclude(struct mm *mm, const struct mm_cpu *cpu,
                           uint64_t head, uint64_t tail)
{
    const fast_t *f = mm->fast;
    uint64_t low = ~0UL, high = 0;

    for (; head != tail; head++) {
        const fast_retire_t *r = &fast_retires(cpu->fast)[head % FAST_RING];
        uint64_t room = f->zone_end - r->addr;

        if (r->addr < f->zone_start || r->addr >= f->zone_end || !r->pages ||
            (r->addr & ~GUEST_PAGE_MASK) || r->pages > room >> GUEST_PAGE_SHIFT)
            elfuse_panic("mm: vCPU %u retired %#lx, %lu pages; the zone is "
                         "%#lx-%#lx",
                         cpu->frame->vcpu, r->addr, r->pages, f->zone_start,
                         f->zone_end);
        low = min_u64(low, r->addr);
        high = max_u64(high, r->addr + (r->pages << GUEST_PAGE_SHIFT));
    }
    fast_exclude(mm, low, high);
}

static void drain_retires(struct mm *mm, struct mm_cpu *cpu, uint64_t tail)
{
    fast_control_t *c = cpu->fast;
    uint64_t head = c->retire_head, claim = mm->fast->claim;

    ring_check(cpu, "retire", head, tail);
    retire_exclude(mm, cpu, head, tail);
    for (; head != tail; head++)
        retire_commit(mm, cpu, &fast_retires(c)[head % FAST_RING]);
    /* Relaxed: only for the advice. */
    __atomic_store_n(&c->drained_pages,
                     __atomic_load_n(&c->retired_pages, __ATOMIC_RELAXED),
                     __ATOMIC_RELAXED);
    /* Release: as for grants. */
    __atomic_store_n(&c->retire_head, head, __ATOMIC_RELEASE);
    fast_claim_restore(mm, claim);
}

static void snapshot_add(struct mm_cpu *cpu, void *arg)
{
    snapshot_t *s = arg;
    /* Acquire: pairs with EL1's release; descriptors and invalidations are done
     * with, and the grants that this vCPU has seen are in their rings. */
    uint64_t tail = __atomic_load_n(&cpu->fast->retire_tail, __ATOMIC_ACQUIRE);

    if (tail == cpu->fast->retire_head)
        return;
    s->ring[s->n].cpu = cpu;
    s->ring[s->n++].tail = tail;
}

void fast_drain(struct mm *mm)
{
    const bool late = FAST_BREAK == BREAK_DRAIN;
    snapshot_t s; /* large, and hardly any of it is used */

    s.n = 0;
    fast_each(mm, snapshot_add, &s);
    if (!late)
        fast_each(mm, drain_grants, mm);
    for (unsigned i = 0; i < s.n; i++)
        drain_retires(mm, s.ring[i].cpu, s.ring[i].tail);
    if (late)
        fast_each(mm, drain_grants, mm);
}
