/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host's side of mmap and munmap at EL1 (docs/fastpath.md): the gate, the
 * drain, the arenas. For mm/ only; mm->lock is held unless said otherwise.
 * Everything here does nothing where the fast path is off (mm->fast NULL).
 */
#ifndef ELFUSE_MM_FAST_H
#define ELFUSE_MM_FAST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <bsd/sys/queue.h>

#include "abi/fast.h"
#include "mm/internal.h"
#include "proved/recent.h"

/* A piece of the zone, of whole chunks, from which a vCPU grants or has. */
typedef struct arena {
    uint64_t base, limit;
    TAILQ_ENTRY(arena) entry; /* in fast_t.closed */
} arena_t;

typedef struct fast {
    fast_shared_t *shared;
    uint64_t zone_start, zone_end;
    struct free_space *space; /* pieces of the zone in no arena */
    uint64_t claim;           /* what shared->claim says */
    /* A bit for each vCPU that may be in the guest: its rings may fill, and it
     * may be active. See fast_enter_guest(). */
    _Atomic uint64_t in_guest[VCPU_MAX / 64];
    struct mm_cpu *cpu[VCPU_MAX]; /* by number */
    arena_t *arena[VCPU_MAX];     /* what it grants from, or NULL */
    TAILQ_HEAD(, arena) closed;
    recent_lengths_t recent; /* of the mappings of the shape */
    uint64_t commits;        /* retirements committed so far */
} fast_t;

static inline bool fast_in_zone(const struct mm *mm, uint64_t start,
                                uint64_t end)
{
    return mm->fast && start < mm->fast->zone_end && end > mm->fast->zone_start;
}

static inline arena_t *fast_arena(const struct mm *mm, const struct mm_cpu *cpu)
{
    return mm->fast->arena[cpu->frame->vcpu];
}

/* Plain: what EL1 may unmap, wherever it lies. */
bool fast_plain(const struct vma *vma);

/* --- gate.c -------------------------------------------------------------- */

/*
 * Keep EL1 out of [start, end), as far as it lies in the zone, until the lock
 * is given up: waits for services under way there. What they have left in the
 * rings is NOT drained; so this may be called when VMAs are being held.
 */
void fast_exclude(struct mm *mm, uint64_t start, uint64_t end);
/*
 * The same, and drains: what VMAs and page tables say of the range is true from
 * now on. Before any VMA is looked at, since the drain changes VMAs.
 */
void fast_claim(struct mm *mm, uint64_t start, uint64_t end);
/* The same for somebody who will put something there: what an arena would still
 * grant of it is taken from that arena. */
void fast_claim_fixed(struct mm *mm, uint64_t start, uint64_t end);
/* The same for who makes pages valid: windows may have to be evicted for it. */
void fast_claim_touch(struct mm *mm, uint64_t start, uint64_t end);
/* Is all of [start, end), if it lies in the zone, kept from EL1? */
bool fast_excluded(const struct mm *mm, uint64_t start, uint64_t end);

/* Give it up; mm_unlock() does. fast_claim_restore() goes back to an earlier
 * value of fast_t.claim. */
void fast_release(struct mm *mm);
void fast_claim_restore(struct mm *mm, uint64_t claim);

/* Set or clear the bits of the blocks that [start, end) touches (set) or covers
 * (clear) in the host-block map. The range is excluded. */
void fast_mark(struct mm *mm, uint64_t start, uint64_t end);
void fast_unmark(struct mm *mm, uint64_t start, uint64_t end);

/*
 * The calling thread's vCPU is about to run, or has come out with empty rings;
 * without mm->lock.
 */
void fast_enter_guest(struct mm *mm, struct mm_cpu *cpu);
void fast_leave_guest(struct mm *mm, struct mm_cpu *cpu);
/* Has it left records, or asks somebody for a drain? Without mm->lock. */
bool fast_pending(struct mm *mm, const struct mm_cpu *cpu);

/* fn for each vCPU that may be in the guest, as of now. */
void fast_each(struct mm *mm, void (*fn)(struct mm_cpu *cpu, void *arg),
               void *arg);

/* --- drain.c ------------------------------------------------------------- */

/* Bring VMAs and tables up to what EL1 has done. No VMA may be held. */
void fast_drain(struct mm *mm);

/* --- arena.c ------------------------------------------------------------- */

int fast_create(struct mm *mm, fast_shared_t *shared);
void fast_cpu_init(struct mm *mm, struct mm_cpu *cpu);
void fast_cpu_end(struct mm *mm, struct mm_cpu *cpu);
/* In a fork child: nobody grants any more but what `cpu` asks for anew. */
void fast_after_fork(struct mm *mm, struct mm_cpu *cpu);

/* A mapping of this size and of the shape that EL1 serves: its address, from
 * the window of `cpu`, which is moved or made for it; 0: place it as others. */
uint64_t fast_place(struct mm *mm, struct mm_cpu *cpu, uint64_t size);
/* Note a length for the size of arenas. */
void fast_note_length(struct mm *mm, uint64_t size);
/* This vCPU, which is not in the guest, has left records: let it use what was
 * unmapped again. */
void fast_rewind(struct mm *mm, struct mm_cpu *cpu);
/* What lies in [start, end) is not granted by anybody: see
 * fast_claim_fixed(). */
void fast_close_windows(struct mm *mm, uint64_t start, uint64_t end);
/* Might somebody still grant part of [start, end)? */
bool fast_granting(const struct mm *mm, uint64_t start, uint64_t end);
/* May EL1 grant and retire, by limits, mlockall and the number of VMAs? */
void fast_update_off(struct mm *mm);

/* --- ptretire.c ---------------------------------------------------------- */

/*
 * EL1 has retired [start, end), which is excluded: entries become what munmap
 * makes of them, tables are linked again. Returns the number of pages that are
 * now dirty. Nothing is owed for it.
 */
uint64_t pt_retire(struct mm *mm, uint64_t start, uint64_t end);

#endif
