/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mmap at EL1: the one common shape, from this vCPU's window.
 */
#include "proved/arena.h"
#include "shim/arch.h"
#include "shim/shim.h"

/* Linux's numbers. */
#define PROT_RW       3
#define MAP_ANON      0x22 /* MAP_PRIVATE | MAP_ANONYMOUS */
#define MAP_NORESERVE 0x4000

/* mmap(NULL, len, RW, PRIVATE|ANONYMOUS[|NORESERVE], any, page aligned): its
 * size in bytes, or 0. */
static uint64_t wanted(const vcpu_frame_t *f, const fast_shared_t *shared)
{
    uint64_t len = f->x[1], flags = f->x[3];

    if (f->x[0] || f->x[2] != PROT_RW || (flags & ~MAP_NORESERVE) != MAP_ANON ||
        (f->x[5] & ~GUEST_PAGE_MASK) || len - 1 >= FAST_LEN_MAX)
        return 0;
    if (len > shared->max_len && !(flags & MAP_NORESERVE))
        return 0;
    return (len + GUEST_PAGE_SIZE - 1) & GUEST_PAGE_MASK;
}

/* There is room in ring and window: nothing can fail any more. */
static void grant(fast_control_t *c, uint64_t addr, uint64_t size,
                  uint64_t flags)
{
    uint64_t tail = c->grant_tail;
    fast_grant_t *g = &fast_grants(c)[tail % FAST_RING];

    g->addr = addr;
    g->what = size >> GUEST_PAGE_SHIFT |
              (flags & MAP_NORESERVE ? FAST_GRANT_NORESERVE : 0) |
              (uint64_t) c->generation << FAST_GRANT_GENERATION_SHIFT;
    /* Release: pairs with the drain's acquire. */
    __atomic_store_n(&c->grant_tail, tail + 1, __ATOMIC_RELEASE);
    /* Release: whoever unmaps this address has read the cursor, and so brings
     * the record above along to the drain that sees the retirement. */
    __atomic_store_n(&c->cursor, addr + size, __ATOMIC_RELEASE);
}

int64_t shim_fast_mmap(vcpu_frame_t *f)
{
    fast_control_t *c = fast_control(f);
    const fast_shared_t *shared = arch_fast_shared();
    uint64_t size = wanted(f, shared), addr = c->cursor, end;

    if (!size)
        return fast_miss(c, FAST_MISS_SHAPE);
    /* Acquire: the host has read the slot before it gave it back. */
    if (c->grant_tail - __atomic_load_n(&c->grant_head, __ATOMIC_ACQUIRE) >=
        FAST_RING - 1)
        return fast_miss(c, FAST_MISS_RING);
    if (!fast_enter(c, shared, fast_blocks_of(addr - shared->zone_start, size)))
        return fast_miss(c, FAST_MISS_CLAIM);
    end = __atomic_load_n(&c->window_end, __ATOMIC_RELAXED);
    if (!request_fits(addr, end, size) ||
        (__atomic_load_n(&shared->off, __ATOMIC_RELAXED) & FAST_NO_GRANTS)) {
        fast_leave(c);
        return fast_miss(c, FAST_MISS_ROOM);
    }
    grant(c, addr, size, f->x[3]);
    fast_count(c, FAST_MMAPS);
    fast_leave(c);
    return (int64_t) addr;
}
