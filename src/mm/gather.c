/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invalidation requests, and the revoking list of what waits for them.
 *
 * An item leaves the list when its invalidation is complete AND no registered
 * span overlaps its addresses. The second is store buffering: whoever edits
 * stores the descriptor, then looks at the spans; whoever registers a span
 * stores the slot, then looks at the descriptors. Both have a sequentially
 * consistent fence between, so at least one of them sees the other.
 */
#include "mm/gather.h"

#include <stdlib.h>

#include "mm/internal.h"
#include "mm/tablepool.h"
#include "proc/proc.h" /* elfuse_panic only */
#include "stats.h"

/* Above this, invalidating everything is cheaper: 4 GiB. */
#define RANGE_MAX_PAGES (1UL << 20)

typedef struct revoked {
    struct revoked *next;
    struct mm_cpu *cpu; /* whose request; NULL: complete */
    uint64_t sequence;
    uint64_t start, end; /* guest addresses */
    enum revoked_kind {
        REVOKED_RANGE, /* nothing to free: the addresses */
        REVOKED_TABLES,
        REVOKED_OBJECT,
        REVOKED_BACKING,
    } kind;
    uint32_t tables;
    struct object *object;
    uint64_t host, size;
} revoked_t;

struct revoking {
    revoked_t *list;
    revoked_t *spare;
    /* list is not empty; read without the lock, as a hint. */
    _Atomic bool pending;
};

struct revoking *revoking_create(void)
{
    return calloc(1, sizeof(struct revoking));
}

static revoked_t *revoked_new(struct mm *mm, enum revoked_kind kind,
                              uint64_t start, uint64_t end)
{
    revoked_t *r = mm->revoking->spare;

    if (r)
        mm->revoking->spare = r->next;
    else
        r = malloc(sizeof(*r));
    if (!r)
        elfuse_panic("mm: no memory to note what %#lx-%#lx frees", start, end);
    r->kind = kind;
    r->start = start;
    r->end = end;
    return r;
}

static void revoked_free(struct mm *mm, revoked_t *r)
{
    r->next = mm->revoking->spare;
    mm->revoking->spare = r;
}

void gather_begin(gather_t *g, struct mm *mm, struct mm_cpu *cpu)
{
    g->mm = mm;
    g->cpu = cpu;
    g->kind = 0;
    g->nr_ranges = 0;
    g->low = ~0UL;
    g->high = 0;
    g->tables = 0;
    g->tables_low = ~0UL;
    g->tables_high = 0;
    g->frees = NULL;
}

void gather_cover(gather_t *g, uint64_t start, uint64_t end)
{
    if (start < g->low)
        g->low = start;
    if (end > g->high)
        g->high = end;
}

static void add_range(gather_t *g, uint64_t start, uint64_t end)
{
    uint64_t pages = (end - start) >> GUEST_PAGE_SHIFT;
    int n = g->nr_ranges;

    g->kind |= pages > RANGE_MAX_PAGES ? TLB_LEAF | TLB_ALL : TLB_LEAF;
    if (g->kind & TLB_ALL)
        return;
    if (n &&
        g->range[n - 1].va + g->range[n - 1].pages * GUEST_PAGE_SIZE == start) {
        g->range[n - 1].pages += pages;
    } else if (n < TLB_RANGES) {
        g->range[n].va = start;
        g->range[n].pages = pages;
        g->nr_ranges++;
    } else {
        g->kind |= TLB_ALL;
    }
}

void gather_range(gather_t *g, uint64_t start, uint64_t end)
{
    gather_cover(g, start, end);
    add_range(g, start, end);
}

void gather_free_table(gather_t *g, uint32_t table, uint64_t start,
                       uint64_t size)
{
    g->mm->pool->meta[table].next = g->tables;
    g->tables = table;
    if (start < g->tables_low)
        g->tables_low = start;
    if (start + size > g->tables_high)
        g->tables_high = start + size;
    /* One address is enough to drop the walk caches' way to the table. */
    add_range(g, start, start + GUEST_PAGE_SIZE);
    g->kind |= TLB_TABLE;
}

static revoked_t *gather_add(gather_t *g, enum revoked_kind kind,
                             uint64_t start, uint64_t end)
{
    revoked_t *r = revoked_new(g->mm, kind, start, end);

    r->next = g->frees;
    g->frees = r;
    return r;
}

void gather_free_object(gather_t *g, struct object *object, uint64_t host,
                        uint64_t size)
{
    /* Its guest addresses are those of the edit. */
    revoked_t *r = gather_add(g, REVOKED_OBJECT, g->low, g->high);

    r->object = object;
    r->host = host;
    r->size = size;
}

void gather_drop_backing(gather_t *g, uint64_t start, uint64_t end)
{
    gather_cover(g, start, end);
    (void) gather_add(g, REVOKED_BACKING, start, end);
}

static _Atomic uint64_t *completed_of(struct mm_cpu *cpu)
{
    return (_Atomic uint64_t *) &cpu->frame->tlb.completed;
}

static bool cpu_completed(struct mm_cpu *cpu, uint64_t sequence)
{
    /* Pairs with the shim's release after its DSB ISH. */
    return atomic_load_explicit(completed_of(cpu), memory_order_acquire) >=
           sequence;
}

static bool revoked_complete(revoked_t *r)
{
    if (r->cpu && cpu_completed(r->cpu, r->sequence))
        r->cpu = NULL;
    return !r->cpu;
}

/* Add what g wants to the request in its vCPU's frame, which may hold an older
 * one that the shim has not come to yet: then it carries out both. */
static void request_add(gather_t *g, uint32_t flags)
{
    tlb_request_t *req = &g->cpu->frame->tlb;

    if (cpu_completed(g->cpu, g->cpu->tlb_sequence)) {
        req->nr_ranges = 0;
        req->nr_stores = 0;
        req->kind = 0;
    }
    req->kind |= g->kind | flags;
    for (int i = 0; i < g->nr_ranges && !(req->kind & TLB_ALL); i++) {
        if (req->nr_ranges == TLB_RANGES)
            req->kind |= TLB_ALL;
        else
            req->range[req->nr_ranges++] = g->range[i];
    }
    req->sequence = ++g->cpu->tlb_sequence;
    stats_add(tlb_requests, 1);
    if (req->kind & TLB_ALL)
        stats_add(tlb_all, 1);
    else
        stats_add(tlb_ranges, (uint64_t) g->nr_ranges);
}

static void run_at_once(struct mm_cpu *cpu)
{
    cpu->run_shim(cpu);
    if (!cpu_completed(cpu, cpu->tlb_sequence))
        elfuse_panic("mm: the shim left invalidation %lu undone",
                     cpu->tlb_sequence);
}

/* What g's tables and other frees wait for. */
static void list_frees(gather_t *g, bool wait)
{
    struct revoking *rv = g->mm->revoking;
    revoked_t *r, *next;

    if (g->tables) {
        r = gather_add(g, REVOKED_TABLES, g->tables_low, g->tables_high);
        r->tables = g->tables;
    }
    if (wait)
        (void) gather_add(g, REVOKED_RANGE, g->low, g->high);
    for (r = g->frees; r; r = next) {
        next = r->next;
        r->cpu = wait ? g->cpu : NULL;
        r->sequence = wait ? g->cpu->tlb_sequence : 0;
        r->next = rv->list;
        rv->list = r;
    }
    g->frees = NULL;
    atomic_store_explicit(&rv->pending, rv->list != NULL, memory_order_relaxed);
}

static void finish(gather_t *g, bool at_once)
{
    /* Another vCPU's invalidation may still be due for what is freed here,
     * though this edit found nothing valid. */
    if (g->frees && g->low < g->high && gather_revoking(g->mm, g->low, g->high))
        gather_range(g, g->low, g->high);
    if (!g->kind && !g->frees)
        return;
    if (!g->cpu->frame || !g->kind) {
        list_frees(g, false);
        revoking_collect(g->mm, g->cpu);
        return;
    }
    request_add(g, at_once ? TLB_AT_ONCE : 0);
    list_frees(g, true);
    if (at_once) {
        run_at_once(g->cpu);
        revoking_collect(g->mm, g->cpu);
    }
}

void gather_finish(gather_t *g)
{
    finish(g, false);
}

void gather_finish_now(gather_t *g)
{
    finish(g, true);
}

static void revoked_release(struct mm *mm, gather_t *g, revoked_t *r)
{
    uint32_t table, next;

    switch (r->kind) {
    case REVOKED_RANGE:
        break;
    case REVOKED_TABLES:
        for (table = r->tables; table; table = next) {
            next = mm->pool->meta[table].next;
            table_free(mm, table);
        }
        break;
    case REVOKED_OBJECT:
        object_release(mm, r->object, r->host, r->size);
        break;
    case REVOKED_BACKING:
        /* Goes by the entries' states, so pages touched meanwhile stay. */
        pt_drop(mm, g, r->start, r->end);
        break;
    }
}

void revoking_collect(struct mm *mm, struct mm_cpu *cpu)
{
    struct revoking *rv = mm->revoking;
    revoked_t *list = rv->list, *r;
    gather_t g;

    rv->list = NULL;
    gather_begin(&g, mm, cpu);
    while ((r = list)) {
        list = r->next;
        if (!revoked_complete(r) || span_overlaps(mm, r->start, r->end)) {
            r->next = rv->list;
            rv->list = r;
            continue;
        }
        revoked_release(mm, &g, r);
        revoked_free(mm, r);
    }
    atomic_store_explicit(&rv->pending, rv->list != NULL, memory_order_relaxed);
    /* Dropping backing may have unlinked tables. */
    if (g.kind)
        gather_finish(&g);
}

void revoking_renew(struct mm *mm, struct mm_cpu *cpu)
{
    tlb_request_t *req = &cpu->frame->tlb;

    for (revoked_t *r = mm->revoking->list; r; r = r->next)
        r->cpu = NULL;
    req->kind = 0;
    req->completed = cpu->tlb_sequence;
    cpu->tlb_seen = cpu->tlb_sequence;
}

void revoking_add_backing(struct mm *mm, uint64_t start, uint64_t end)
{
    revoked_t *r = revoked_new(mm, REVOKED_BACKING, start, end);

    r->cpu = NULL;
    r->next = mm->revoking->list;
    mm->revoking->list = r;
    atomic_store_explicit(&mm->revoking->pending, true, memory_order_relaxed);
}

bool revoking_pending(const struct mm *mm)
{
    return atomic_load_explicit(&mm->revoking->pending, memory_order_relaxed);
}

bool gather_revoking(struct mm *mm, uint64_t start, uint64_t end)
{
    for (const revoked_t *r = mm->revoking->list; r; r = r->next)
        if (r->start < end && r->end > start)
            return true;
    return false;
}

void gather_wait_for(struct mm *mm, struct mm_cpu *cpu, uint64_t start,
                     uint64_t end)
{
    gather_t g;

    gather_begin(&g, mm, cpu);
    for (revoked_t *r = mm->revoking->list; r; r = r->next) {
        if (r->start >= end || r->end <= start || revoked_complete(r))
            continue;
        gather_range(&g, r->start, r->end);
        g.kind |= TLB_TABLE;
        /* Complete as soon as the shim has run, before the lock is let go. */
        r->cpu = NULL;
    }
    if (!g.kind)
        return;
    if (!cpu->frame)
        elfuse_panic("mm: %#lx-%#lx is being revoked, and there is no vCPU to "
                     "finish it",
                     start, end);
    request_add(&g, TLB_AT_ONCE);
    run_at_once(cpu);
    revoking_collect(mm, cpu);
}

void gather_end_cpu(struct mm *mm, struct mm_cpu *cpu)
{
    gather_t g;

    if (!cpu->frame)
        return;
    /* What is freed at the end of a round may ask for another one. */
    do {
        if (!cpu_completed(cpu, cpu->tlb_sequence)) {
            gather_begin(&g, mm, cpu);
            request_add(&g, TLB_AT_ONCE);
            run_at_once(cpu);
        }
        for (revoked_t *r = mm->revoking->list; r; r = r->next)
            if (r->cpu == cpu)
                r->cpu = NULL;
        revoking_collect(mm, cpu);
    } while (!cpu_completed(cpu, cpu->tlb_sequence));
}

void gather_bury_cpu(struct mm *mm, struct mm_cpu *dead, struct mm_cpu *self)
{
    tlb_request_t *req = &dead->frame->tlb;
    gather_t g;

    if (!cpu_completed(dead, dead->tlb_sequence)) {
        gather_begin(&g, mm, self);
        g.kind = TLB_LEAF | TLB_TABLE | TLB_ALL;
        request_add(&g, TLB_AT_ONCE);
        run_at_once(self);
        req->kind = 0;
        req->completed = dead->tlb_sequence;
    }
    for (revoked_t *r = mm->revoking->list; r; r = r->next)
        if (r->cpu == dead)
            r->cpu = NULL;
    revoking_collect(mm, self);
}
