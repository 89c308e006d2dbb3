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
    VMA_STACK = 1 << 2, /* the main stack: "[stack]" */
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
    VMA_HEAP = 1 << 15, /* "[heap]" */
};

typedef struct vma {
    RB_ENTRY(vma) node;
    uint64_t start, end;
    uint64_t max_gap; /* largest gap below a VMA of this subtree, bytes */
    uint64_t gap;     /* gap below this VMA, bytes */
    uint8_t prot;     /* PROT_READ | PROT_WRITE | PROT_EXEC */
    uint8_t max_prot; /* what mprotect may give (VM_MAY*) */
    uint32_t flags;   /* enum vma_flags */
    /*
     * Backing. NULL: private anonymous memory at H + v. Otherwise a reference
     * to a mapping in the object area; the page at v has its contents at host
     * address object_host + (v - start), on any 4 KiB piece of a host page.
     */
    struct object *object;
    uint64_t object_host;
    uint64_t offset; /* file offset of start; anonymous: 0 */
} vma_t;

RB_HEAD(vma_tree, vma);

struct mm;
/* First VMA with end > addr, or NULL. */
vma_t *vma_find(struct mm *mm, uint64_t addr);

#endif
