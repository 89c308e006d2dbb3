/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory through which EL1 and the host serve mmap and munmap together;
 * docs/fastpath.md has the protocol, its invariants and why.
 *
 * The zone is a part of user space in which only EL1 places mappings, out of
 * arenas that the host carves out, one for each vCPU. EL1 reports what it gave
 * away (grants) and what it unmapped (retirements) in two rings of its vCPU:
 * the shim writes them, whoever holds mm->lock empties them.
 *
 * The gate is over ranges of blocks of the zone, packed into one word (start in
 * the upper half, end in the lower, 0: none). EL1 stores its range as active
 * and then reads what the host has claimed; the host stores its claim and then
 * reads what is active. All four are sequentially consistent, or both could
 * miss the other (store buffering).
 */
#ifndef ELFUSE_ABI_FAST_H
#define ELFUSE_ABI_FAST_H

#include "abi/layout.h"

/* In a vCPU's area; vectors.S uses FAST_ON. */
#define FAST_GRANT_OFF  0x1000
#define FAST_RETIRE_OFF 0x2000
#define FAST_ON         136

/* In the part that all share. */
#define FAST_OWNER_OFF  0x1000
#define FAST_BLOCKS_OFF 0x41000

/* System calls that EL1 may serve. */
#define FAST_NR_MUNMAP 215
#define FAST_NR_MMAP   222
/* What a service returns for "not by me"; its results are not negative. */
#define FAST_FALLBACK (-1)

#ifndef __ASSEMBLER__

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/frame.h"

/* Entries of a ring; one stays free. */
#define FAST_RING 256U
/* The longest mapping that EL1 serves: 32 GiB. */
#define FAST_LEN_MAX (32UL << 30)
/* Arenas are made of chunks, each with an entry in the table of owners. */
#define FAST_CHUNK_SHIFT 26
#define FAST_CHUNK_SIZE  (1UL << FAST_CHUNK_SHIFT)
#define FAST_ZONE_MAX    (8UL << 40)

/* Who grants from a chunk: nobody has ever, or vCPU number owner - 1 does, or
 * nobody does any more. */
#define FAST_OWNER_NONE   0
#define FAST_OWNER_CLOSED 0xffff

/* Pages retired and not yet committed, from where on the next exit of any vCPU
 * drains: 256 MiB. */
#define FAST_ADVISE_PAGES (256UL << 20 >> GUEST_PAGE_SHIFT)

typedef struct fast_grant {
    uint64_t addr;
    uint64_t what; /* pages | FAST_GRANT_NORESERVE | generation << 40 */
} fast_grant_t;
#define FAST_GRANT_PAGES            0xffffffffUL
#define FAST_GRANT_NORESERVE        (1UL << 32)
#define FAST_GRANT_GENERATION_SHIFT 40
#define FAST_GENERATION_MASK        0xffffffU

typedef struct fast_retire {
    uint64_t addr, pages;
} fast_retire_t;

/* What EL1 has done, for statistics. */
enum fast_count {
    FAST_MMAPS,
    FAST_MUNMAPS,
    FAST_MISS_SHAPE, /* not a call of the kind that EL1 serves */
    FAST_MISS_ROOM,  /* window used up */
    FAST_MISS_RING,  /* ring full */
    FAST_MISS_CLAIM, /* the host is at work there */
    FAST_MISS_BLOCK, /* the host's block, or no arena's address */
    FAST_COUNTS,
};

/*
 * Of one vCPU. Lines are written by one side each: the first two by EL1 (and,
 * while the vCPU is not in the guest, by its own host thread), the others by
 * the host under mm->lock.
 */
typedef struct fast_control {
    /* Where the next grant begins. Release, after grant_tail. */
    _Alignas(64) uint64_t cursor;
    uint64_t grant_tail;    /* records written so far; release */
    uint64_t retire_tail;   /* the same */
    uint64_t retired_pages; /* in tables and pages, so far; relaxed */
    uint32_t count[FAST_COUNTS];
    /* Blocks of the zone that a service works on; 0: none. */
    _Alignas(64) uint64_t active;
    /* Grants end here. Relaxed: for the vCPU itself it changes only under a
     * claim that covers the window, or while the vCPU is not in the guest. */
    _Alignas(64) uint64_t window_end;
    uint32_t on; /* this vCPU may serve calls at EL1 */
    uint32_t generation;
    /* Records taken out so far; release. */
    _Alignas(64) uint64_t grant_head;
    uint64_t retire_head;
    uint64_t drained_pages; /* of retired_pages; relaxed */
} fast_control_t;

/* fast_shared_t.off */
#define FAST_NO_GRANTS  1U
#define FAST_NO_RETIRES 2U

/* Of all vCPUs. */
typedef struct fast_shared {
    /* Constant from before the first vCPU runs. */
    _Alignas(64) uint64_t zone_start;
    uint64_t zone_size;
    uint64_t max_len; /* of what is not NORESERVE */
    uint64_t tables;  /* added to a table's IPA: where EL1 finds it */
    uint64_t root;    /* IPA of the level-0 table */
    /* Written by the host under mm->lock. */
    _Alignas(64) uint64_t claim;
    uint32_t off;
    /* Set by EL1, cleared by the host. */
    _Alignas(64) uint32_t advise;
} fast_shared_t;

#define FAST_OFFSET_IS(member, offset)                           \
    _Static_assert(offsetof(fast_control_t, member) == (offset), \
                   "lines of the control page")
FAST_OFFSET_IS(cursor, 0);
FAST_OFFSET_IS(active, 64);
FAST_OFFSET_IS(window_end, 128);
FAST_OFFSET_IS(on, FAST_ON);
FAST_OFFSET_IS(grant_head, 192);
_Static_assert(offsetof(fast_shared_t, claim) == 64, "shared lines");
_Static_assert(offsetof(fast_shared_t, advise) == 128, "shared lines");
_Static_assert(sizeof(fast_control_t) <= FAST_GRANT_OFF, "control page");
_Static_assert(FAST_RING * sizeof(fast_grant_t) == GUEST_PAGE_SIZE, "rings");
_Static_assert(FAST_RING * sizeof(fast_retire_t) == GUEST_PAGE_SIZE, "rings");
_Static_assert((FAST_ZONE_MAX >> FAST_CHUNK_SHIFT) * 2 <=
                   FAST_BLOCKS_OFF - FAST_OWNER_OFF,
               "table of owners");
_Static_assert(FAST_BLOCKS_OFF + (FAST_ZONE_MAX >> BLOCK_SHIFT) / 8 <=
                   SHIM_FAST_SIZE,
               "host-block map");

/* A vCPU's control page and rings, from its frame. */
static inline fast_control_t *fast_control(vcpu_frame_t *frame)
{
    return (fast_control_t *) (void *) ((char *) frame - FRAME_OFF);
}

static inline vcpu_frame_t *fast_frame(fast_control_t *control)
{
    return (vcpu_frame_t *) (void *) ((char *) control + FRAME_OFF);
}

static inline fast_grant_t *fast_grants(fast_control_t *control)
{
    return (fast_grant_t *) (void *) ((char *) control + FAST_GRANT_OFF);
}

static inline fast_retire_t *fast_retires(fast_control_t *control)
{
    return (fast_retire_t *) (void *) ((char *) control + FAST_RETIRE_OFF);
}

/* For each chunk of the zone its owner. Written under a claim. */
static inline uint16_t *fast_owners(fast_shared_t *shared)
{
    return (uint16_t *) (void *) ((char *) shared + FAST_OWNER_OFF);
}

/* The host-block map: a bit for each block of the zone that may hold something
 * else than plain memory. Set under a claim. */
static inline uint64_t *fast_blocks(fast_shared_t *shared)
{
    return (uint64_t *) (void *) ((char *) shared + FAST_BLOCKS_OFF);
}

/* Blocks [start, end) of the zone as one word. */
static inline uint64_t fast_range(uint64_t start, uint64_t end)
{
    return start << 32 | end;
}

static inline bool fast_overlap(uint64_t a, uint64_t b)
{
    return a >> 32 < (uint32_t) b && b >> 32 < (uint32_t) a;
}

/*
 * Rules that a negative control breaks, one at a time; 0 in elfuse itself.
 * (tests/unit/test_fast_control.c)
 */
enum {
    BREAK_NOTHING,
    BREAK_GATE_ORDER, /* acquire and release where it must be seq_cst */
    BREAK_GATE,       /* no look at the claim */
    BREAK_ACTIVE,     /* not active any more while it invalidates */
    BREAK_DRAIN,      /* retirements before grants */
    BREAK_REDRAIN,    /* no second drain after a claim */
    BREAK_OWNER,      /* no look at the owner of the addresses */
    BREAK_BLOCKS,     /* no look at the host-block map */
};
#ifndef FAST_BREAK
#define FAST_BREAK BREAK_NOTHING
#endif

static inline void fast_gate_store(uint64_t *word, uint64_t range)
{
    if (FAST_BREAK == BREAK_GATE_ORDER)
        __atomic_store_n(word, range, __ATOMIC_RELEASE);
    else
        __atomic_store_n(word, range, __ATOMIC_SEQ_CST);
}

static inline uint64_t fast_gate_load(const uint64_t *word)
{
    if (FAST_BREAK == BREAK_GATE_ORDER)
        return __atomic_load_n(word, __ATOMIC_ACQUIRE);
    return __atomic_load_n(word, __ATOMIC_SEQ_CST);
}

#endif /* __ASSEMBLER__ */

#endif
