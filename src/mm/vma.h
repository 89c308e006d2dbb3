/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's virtual memory areas: linear, sorted, non-overlapping, merged as
 * Linux merges. A red-black tree (libbsd's sys/tree.h) augmented with the
 * largest gap below each node, so that placement is O(log n) at 65,530 VMAs.
 *
 * All functions need mm->lock, unless they say otherwise. Addresses are page
 * aligned guest virtual addresses, ends are exclusive.
 */
#ifndef ELFUSE_MM_VMA_H
#define ELFUSE_MM_VMA_H

#include <stdbool.h>
#include <stdint.h>

#include <bsd/sys/tree.h>

struct object;

enum vma_flags {
    VMA_SHARED = 1 << 0,
    VMA_GROWSDOWN = 1 << 1,
    VMA_STACK = 1 << 2, /* the main stack */
    VMA_LOCKED = 1 << 3,
    VMA_LOCKONFAULT = 1 << 4,
    VMA_NORESERVE = 1 << 5,
    VMA_ACCOUNT = 1 << 6, /* counts as private writable data */
    VMA_DONTFORK = 1 << 7,
    VMA_WIPEONFORK = 1 << 8,
    VMA_DONTDUMP = 1 << 9,
    VMA_HUGEPAGE = 1 << 10,
    VMA_NOHUGEPAGE = 1 << 11,
    VMA_SPECIAL = 1 << 12, /* vDSO, vvar: cannot grow, merge or be advised */
    VMA_SEQ_READ = 1 << 13,
    VMA_RAND_READ = 1 << 14,
    VMA_MERGEABLE = 1 << 15,
};

typedef struct vma {
    RB_ENTRY(vma) node;
    uint64_t start, end;
    uint64_t max_gap; /* largest gap below a VMA of this subtree, bytes */
    uint64_t gap;     /* free for placement below this VMA, bytes: from the end
                         of its predecessor to vma_guard_start() */
    uint8_t prot;     /* PROT_READ | PROT_WRITE | PROT_EXEC */
    uint8_t max_prot; /* what mprotect may give (VM_MAY*) */
    uint32_t flags;   /* enum vma_flags */
    /*
     * Backing. NULL: private anonymous memory at H + v. Otherwise a reference
     * to a mapping in the object area; the page at v has its contents at host
     * address object_host + (v - start), any 4 KiB piece of a host page.
     */
    struct object *object;
    uint64_t object_host;
    /* File offset of start. For private anonymous memory the address at which
     * it was first mapped, as Linux counts for merging. */
    uint64_t offset;
    /* PR_SET_VMA_ANON_NAME, as maps shows it: equal names are one pointer
     * (setmm.c). NULL: none. */
    const char *name;
} vma_t;

RB_HEAD(vma_tree, vma);

struct mm;

/* Linux's default vm.max_map_count, and where it is compared. */
#define VMA_COUNT_MAX 65530U
/* Left free below a VMA that grows down (stack_guard_gap, 256 pages). */
#define VMA_GUARD_GAP 0x100000UL

static inline uint64_t vma_guard_start(const vma_t *vma)
{
    if (!(vma->flags & VMA_GROWSDOWN))
        return vma->start;
    return vma->start > VMA_GUARD_GAP ? vma->start - VMA_GUARD_GAP : 0;
}

/* Host address of the object's piece behind addr; vma->object is not NULL. */
static inline uint64_t vma_object_host(const vma_t *vma, uint64_t addr)
{
    return vma->object_host + (addr - vma->start);
}

/* First VMA with end > addr (it may begin above addr), or NULL. */
vma_t *vma_find(struct mm *mm, uint64_t addr);
/* The VMA that contains addr, or NULL. */
vma_t *vma_at(struct mm *mm, uint64_t addr);
/* First VMA that overlaps [start, end), or NULL. */
vma_t *vma_overlap(struct mm *mm, uint64_t start, uint64_t end);
/* Where the last VMA that overlaps [start, end) ends, at most at end; start
 * when there is none. */
uint64_t vma_overlap_last(struct mm *mm, uint64_t start, uint64_t end);
vma_t *vma_next(vma_t *vma);
vma_t *vma_prev(vma_t *vma);
vma_t *vma_first(struct mm *mm);

/*
 * Nodes. vma_reserve makes sure that the next n vma_alloc() succeed: whoever
 * will need nodes after the point of no return calls it first. -ENOMEM.
 */
int vma_reserve(struct mm *mm, unsigned n);
vma_t *vma_alloc(struct mm *mm);
void vma_free(struct mm *mm, vma_t *vma);

/* Put it into the tree; it overlaps nothing (panic). Counted in nr_vmas. */
void vma_insert(struct mm *mm, vma_t *vma);
void vma_remove(struct mm *mm, vma_t *vma);
/* Move its borders; offset and object_host follow a change of start. It keeps
 * its place in the order. */
void vma_set_range(struct mm *mm, vma_t *vma, uint64_t start, uint64_t end);
/* Cut at addr, inside; returns the upper part. Needs a reserved node. */
vma_t *vma_split(struct mm *mm, vma_t *vma, uint64_t addr);

/*
 * Insert what *area describes (start, end, prot, flags, backing): by growing a
 * neighbour that Linux would merge it with, else as a node (reserved before).
 * Returns the VMA that covers it.
 */
vma_t *vma_add(struct mm *mm, const vma_t *area);
/*
 * Give [start, end), inside vma, other protection and flags: merging with
 * neighbours where Linux would, else splitting. Returns the VMA that covers it,
 * or NULL when a split would pass the limit of VMAs or there is no memory; no
 * page has changed then, though vma may have been cut once.
 */
vma_t *vma_modify(struct mm *mm, vma_t *vma, uint64_t start, uint64_t end,
                  uint8_t prot, uint32_t flags);
/* The same for its name. */
vma_t *vma_rename(struct mm *mm, vma_t *vma, uint64_t start, uint64_t end,
                  const char *name);
/* Take every VMA out of [start, end); the caller has unmapped the pages and
 * given up objects. Needs one reserved node. */
void vma_clear(struct mm *mm, uint64_t start, uint64_t end);

/*
 * Free space of len bytes inside [low, high): the highest, or the lowest.
 * Returns its start, or 0.
 */
uint64_t vma_gap_topdown(struct mm *mm, uint64_t len, uint64_t low,
                         uint64_t high);
uint64_t vma_gap_bottomup(struct mm *mm, uint64_t len, uint64_t low,
                          uint64_t high);

/*
 * The VMA to which an access to addr belongs, growing a stack down to it if
 * that is allowed (RLIMIT_STACK, RLIMIT_AS, guard gap); NULL: none. Used by the
 * fault path and by spans. (fault.c)
 */
vma_t *vma_find_grow(struct mm *mm, uint64_t addr);

#endif
