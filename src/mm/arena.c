/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arenas: pieces of the zone from which vCPUs grant mappings, each through a
 * window, a hole in its arena that the host has given it. The window moves on
 * when it is used up, and back when something below was unmapped, so that warm
 * memory is used again. Both happen while its vCPU is not in the guest.
 *
 * An arena that is given up is closed: nobody grants from it, and its chunks go
 * back to the zone as they become empty.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mm/account.h"
#include "mm/calls.h"
#include "mm/fast.h"
#include "proved/arena.h"
#include "stats.h"

/* So many of the longest recent mapping fit into an arena; and of one that is
 * longer than that allows, so many. */
#define ARENA_LENGTHS 256UL
#define ARENA_LEAST   4UL
/* No arena takes more of the zone than one part in so many. */
#define ZONE_SHARE 64UL
/* Closed arenas looked at when another one is wanted. */
#define RECLAIM 16
/* Below the limit of VMAs by so many: what EL1 may do before it is noticed. */
#define VMA_ROOM 2048U

bool fast_plain(const struct vma *vma)
{
    const uint32_t harmless = VMA_ACCOUNT | VMA_NORESERVE | VMA_DONTFORK |
                              VMA_WIPEONFORK | VMA_DONTDUMP | VMA_HUGEPAGE |
                              VMA_NOHUGEPAGE | VMA_SEQ_READ | VMA_RAND_READ |
                              VMA_MERGEABLE;

    return !vma->object && vma->prot == (PROT_READ | PROT_WRITE) &&
           !(vma->flags & ~harmless);
}

void fast_update_off(struct mm *mm)
{
    fast_shared_t *shared = mm->fast->shared;
    uint32_t off = 0;

    if (mm->limit_as.rlim_cur != RLIM_INFINITY ||
        mm->limit_data.rlim_cur != RLIM_INFINITY ||
        (mm->mlock_future & MCL_FUTURE) || mm->commit_strict)
        off |= FAST_NO_GRANTS;
    if (mm->nr_vmas > VMA_COUNT_MAX - VMA_ROOM)
        off |= FAST_NO_GRANTS | FAST_NO_RETIRES;
    /* Relaxed: who is told that the limit has changed has it from us. */
    if (off != shared->off)
        __atomic_store_n(&shared->off, off, __ATOMIC_RELAXED);
}

/* --- how large ----------------------------------------------------------- */

void fast_note_length(struct mm *mm, uint64_t size)
{
    recent_add(&mm->fast->recent, size);
}

static uint64_t longest(const fast_t *f)
{
    return max_u64(recent_max(&f->recent), GUEST_PAGE_SIZE);
}

/* A power of two, as the zone is. */
static uint64_t arena_most(const fast_t *f)
{
    return max_u64((f->zone_end - f->zone_start) / ZONE_SHARE, FAST_CHUNK_SIZE);
}

/* Of an arena that is made now: at least one chunk, a power of two. */
static uint64_t arena_wanted(const fast_t *f)
{
    uint64_t length = longest(f);
    uint64_t size = min_u64(length * ARENA_LENGTHS, ARENA_MAX);

    return pow2_clamp(max_u64(size, length * ARENA_LEAST), FAST_CHUNK_SIZE,
                      arena_most(f));
}

/* --- the zone ------------------------------------------------------------ */

static void owners_set(fast_t *f, uint64_t start, uint64_t end, unsigned owner)
{
    uint16_t *owners = fast_owners(f->shared);
    uint64_t first = (start - f->zone_start) >> FAST_CHUNK_SHIFT;
    uint64_t last = (end - f->zone_start) >> FAST_CHUNK_SHIFT;

    while (first < last)
        owners[first++] = (uint16_t) owner;
}

static uint64_t chunk_up(const fast_t *f, uint64_t addr)
{
    uint64_t offset = addr - f->zone_start;

    return f->zone_start +
           ((offset + FAST_CHUNK_SIZE - 1) & ~(FAST_CHUNK_SIZE - 1));
}

static uint64_t chunk_down(const fast_t *f, uint64_t addr)
{
    return f->zone_start + ((addr - f->zone_start) & ~(FAST_CHUNK_SIZE - 1));
}

/* Whole chunks without a VMA go back, unless something is still owed there. */
static bool zone_put(struct mm *mm, uint64_t start, uint64_t end)
{
    fast_t *f = mm->fast;

    if (start >= end)
        return true;
    fast_claim(mm, start, end);
    if (vma_overlap(mm, start, end) || gather_revoking(mm, start, end))
        return false;
    fast_unmark(mm, start, end);
    owners_set(f, start, end, FAST_OWNER_NONE);
    free_space_put(f->space, start, end - start);
    return true;
}

/* Give back what is empty at both ends of a closed arena. True: it is gone. */
static bool arena_shrink(struct mm *mm, arena_t *a)
{
    const fast_t *f = mm->fast;
    const vma_t *vma = vma_overlap(mm, a->base, a->limit);
    uint64_t high = vma_overlap_last(mm, a->base, a->limit);
    uint64_t first = vma ? chunk_down(f, vma->start) : a->limit;
    uint64_t last = vma ? chunk_up(f, high) : a->limit;

    first = max_u64(first, a->base);
    if (last < a->limit && zone_put(mm, last, a->limit))
        a->limit = last;
    if (zone_put(mm, a->base, first))
        a->base = first;
    return a->base == a->limit;
}

/* Nobody grants from this vCPU's arena any more. Its window is excluded, or
 * the vCPU is not in the guest; its grants have been drained. */
static void arena_close(struct mm *mm, unsigned vcpu)
{
    fast_t *f = mm->fast;
    arena_t *a = f->arena[vcpu];

    if (!a)
        return;
    f->arena[vcpu] = NULL;
    fast_exclude(mm, a->base, a->limit);
    owners_set(f, a->base, a->limit, FAST_OWNER_CLOSED);
    if (arena_shrink(mm, a))
        free(a);
    else
        TAILQ_INSERT_TAIL(&f->closed, a, entry);
}

/* Of a vCPU that goes on. */
static void window_close(struct mm *mm, struct mm_cpu *cpu)
{
    __atomic_store_n(&cpu->fast->window_end, 0, __ATOMIC_RELAXED);
    arena_close(mm, cpu->frame->vcpu);
}

/* Some of the closed ones, the same ones not again too soon. */
static void reclaim(struct mm *mm)
{
    fast_t *f = mm->fast;

    for (int i = 0; i < RECLAIM && !TAILQ_EMPTY(&f->closed); i++) {
        arena_t *a = TAILQ_FIRST(&f->closed);

        TAILQ_REMOVE(&f->closed, a, entry);
        if (arena_shrink(mm, a))
            free(a);
        else
            TAILQ_INSERT_TAIL(&f->closed, a, entry);
    }
}

/* A new one for this vCPU, which is not in the guest, with room for `size`. */
static bool arena_open(struct mm *mm, struct mm_cpu *cpu, uint64_t size)
{
    fast_t *f = mm->fast;
    uint64_t want = arena_wanted(f), at;
    arena_t *a;

    window_close(mm, cpu);
    reclaim(mm);
    for (;; want >>= 1) {
        if (want < size || want < FAST_CHUNK_SIZE)
            return false;
        at = free_space_alloc(f->space, want, FAST_CHUNK_SIZE);
        if (at)
            break;
    }
    a = calloc(1, sizeof(*a));
    if (!a) {
        free_space_put(f->space, at, want);
        return false;
    }
    a->base = at;
    a->limit = at + want;
    f->arena[cpu->frame->vcpu] = a;
    fast_exclude(mm, a->base, a->limit);
    owners_set(f, a->base, a->limit, cpu->frame->vcpu + 1);
    stats_add(fast_arenas, 1);
    return true;
}

/* --- windows ------------------------------------------------------------- */

/* An empty window, of a vCPU without an arena, ends at 0. */
static bool window_fits(const struct mm_cpu *cpu, uint64_t size)
{
    const fast_control_t *c = cpu->fast;

    return request_fits(c->cursor, c->window_end, size);
}

/* The hole that begins at `low`, where there is one, becomes the window. */
static bool window_set(struct mm *mm, struct mm_cpu *cpu, uint64_t low)
{
    fast_control_t *c = cpu->fast;
    const vma_t *next = vma_find(mm, low);
    uint64_t high = fast_arena(mm, cpu)->limit;

    if (next)
        high = min_u64(high, vma_guard_start(next));
    /* A call that still has a span there is to write into what comes next,
     * which map_under_spans() sees to. */
    if (gather_revoking(mm, low, high) || span_overlaps(mm, low, high))
        return false;
    /* Whoever was unmapping something there has reported it by now, and is
     * drained before it is granted again. */
    fast_claim(mm, low, high);
    fast_unmark(mm, low, high);
    c->generation = (c->generation + 1) & FAST_GENERATION_MASK;
    __atomic_store_n(&c->window_end, high, __ATOMIC_RELAXED);
    /* Release: pairs with other vCPUs' acquire. */
    __atomic_store_n(&c->cursor, low, __ATOMIC_RELEASE);
    stats_add(fast_windows, 1);
    return true;
}

static bool window_find(struct mm *mm, struct mm_cpu *cpu, uint64_t size)
{
    const arena_t *a = fast_arena(mm, cpu);
    uint64_t low = a ? vma_gap_bottomup(mm, size, a->base, a->limit) : 0;

    return low && window_set(mm, cpu, low);
}

void fast_rewind(struct mm *mm, struct mm_cpu *cpu)
{
    const fast_t *f = mm->fast;
    const arena_t *a = fast_arena(mm, cpu);
    uint64_t size, low;

    if (!a || cpu->fast_commits == f->commits)
        return;
    cpu->fast_commits = f->commits;
    size = longest(f);
    low = vma_gap_bottomup(mm, size, a->base, a->limit);
    if (low && (low < cpu->fast->cursor || !window_fits(cpu, size)))
        window_set(mm, cpu, low);
}

/* A window with room for `size`: a good one in the arena there is, a new arena,
 * or any. */
static bool refill(struct mm *mm, struct mm_cpu *cpu, uint64_t size)
{
    const arena_t *a = fast_arena(mm, cpu);
    uint64_t have = a ? a->limit - a->base : 0;

    if (have >= arena_wanted(mm->fast) &&
        window_find(mm, cpu, max_u64(size, have / 8)))
        return true;
    if (window_find(mm, cpu, size * 16))
        return true;
    return arena_open(mm, cpu, size) && window_find(mm, cpu, size);
}

/* Is the arena one for shorter mappings, which a few of these would use up? */
static bool outgrown(const struct mm *mm, const struct mm_cpu *cpu,
                     uint64_t size)
{
    const arena_t *a = fast_arena(mm, cpu);

    return a && a->limit - a->base < size * ARENA_LEAST &&
           a->limit - a->base < arena_wanted(mm->fast);
}

uint64_t fast_place(struct mm *mm, struct mm_cpu *cpu, uint64_t size)
{
    fast_t *f = mm->fast;
    uint64_t addr;

    if (!f || !cpu->fast || !cpu->fast->on || size > FAST_LEN_MAX ||
        size > arena_most(f) || (f->shared->off & FAST_NO_GRANTS))
        return 0;
    fast_note_length(mm, size);
    fast_rewind(mm, cpu);
    if ((outgrown(mm, cpu, size) || !window_fits(cpu, size)) &&
        !refill(mm, cpu, size))
        return 0;
    addr = cpu->fast->cursor;
    /* Release: as EL1 does; the mapping is made before the lock is given up. */
    __atomic_store_n(&cpu->fast->cursor, addr + size, __ATOMIC_RELEASE);
    return addr;
}

static bool window_overlaps(const struct mm_cpu *cpu, uint64_t start,
                            uint64_t end)
{
    /* Acquire: pairs with EL1's release. What has been granted meanwhile is in
     * the way as a mapping, or claimed. */
    return cpu && __atomic_load_n(&cpu->fast->cursor, __ATOMIC_ACQUIRE) < end &&
           cpu->fast->window_end > start;
}

bool fast_granting(const struct mm *mm, uint64_t start, uint64_t end)
{
    if (fast_in_zone(mm, start, end))
        for (unsigned i = 0; i < VCPU_MAX; i++)
            if (window_overlaps(mm->fast->cpu[i], start, end))
                return true;
    return false;
}

void fast_close_windows(struct mm *mm, uint64_t start, uint64_t end)
{
    fast_t *f = mm->fast;

    for (unsigned i = 0; i < VCPU_MAX; i++) {
        struct mm_cpu *cpu = f->cpu[i];

        if (!window_overlaps(cpu, start, end))
            continue;
        fast_claim(mm, f->arena[i]->base, f->arena[i]->limit);
        if (window_overlaps(cpu, start, end))
            window_close(mm, cpu);
    }
}

/* --- their beginning and end --------------------------------------------- */

int fast_create(struct mm *mm, fast_shared_t *shared)
{
    uint64_t start = mm->task_size / 8, end = mm->task_size / 4;
    fast_t *f = calloc(1, sizeof(*f));

    if (!f)
        return -ENOMEM;
    f->zone_start = start;
    f->zone_end = min_u64(end, start + FAST_ZONE_MAX);
    f->space = free_space_create(f->zone_start, f->zone_end);
    if (!f->space) {
        free(f);
        return -ENOMEM;
    }
    f->shared = shared;
    TAILQ_INIT(&f->closed);
    shared->zone_start = f->zone_start;
    shared->zone_size = f->zone_end - f->zone_start;
    shared->max_len = mm->commit_limit > FAST_LEN_MAX >> GUEST_PAGE_SHIFT
                          ? FAST_LEN_MAX
                          : mm->commit_limit << GUEST_PAGE_SHIFT;
    mm->fast = f;
    return 0;
}

void fast_cpu_init(struct mm *mm, struct mm_cpu *cpu)
{
    fast_control_t *c;

    cpu->fast = NULL;
    if (!cpu->frame)
        return;
    fast_control(cpu->frame)->on = 0;
    if (cpu->no_fast)
        return;
    /* The vCPU's number may have been another thread's: its rings are empty. */
    c = fast_control(cpu->frame);
    c->cursor = 0;
    c->window_end = 0;
    c->on = 1;
    cpu->fast = c;
    mm->fast->cpu[cpu->frame->vcpu] = cpu;
}

static void stats_harvest(fast_control_t *c)
{
    stats_add(fast_miss_shape, c->count[FAST_MISS_SHAPE]);
    stats_add(fast_miss_room, c->count[FAST_MISS_ROOM]);
    stats_add(fast_miss_ring, c->count[FAST_MISS_RING]);
    stats_add(fast_miss_claim, c->count[FAST_MISS_CLAIM]);
    stats_add(fast_miss_block, c->count[FAST_MISS_BLOCK]);
    memset(c->count, 0, sizeof(c->count));
}

void mm_fast_stats(mm_t *mm)
{
    if (!mm->fast)
        return;
    mm_lock(mm);
    for (unsigned i = 0; i < VCPU_MAX; i++)
        if (mm->fast->cpu[i])
            stats_harvest(mm->fast->cpu[i]->fast);
    mm_unlock(mm);
}

void fast_cpu_end(struct mm *mm, struct mm_cpu *cpu)
{
    if (!cpu->fast)
        return;
    window_close(mm, cpu);
    stats_harvest(cpu->fast);
    cpu->fast->on = 0;
    mm->fast->cpu[cpu->frame->vcpu] = NULL;
    cpu->fast = NULL;
}

void fast_after_fork(struct mm *mm, struct mm_cpu *cpu)
{
    fast_t *f = mm->fast;

    if (!f)
        return;
    for (unsigned i = 0; i < VCPU_MAX / 64; i++)
        atomic_store_explicit(&f->in_guest[i], 0, memory_order_relaxed);
    /* The others' structures are gone already. */
    memset(f->cpu, 0, sizeof(f->cpu));
    for (unsigned i = 0; i < VCPU_MAX; i++)
        arena_close(mm, i);
    fast_release(mm);
    cpu->no_fast = false;
    fast_cpu_init(mm, cpu);
}
