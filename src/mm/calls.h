/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the memory calls share. Each call has the shape decode,
 * check, perform: nothing is changed until nothing can fail.
 *
 * mm->lock is held.
 */
#ifndef ELFUSE_MM_CALLS_H
#define ELFUSE_MM_CALLS_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/layout.h"
#include "mm/internal.h"
#include "proved/range.h"

/* Linux's untagged_addr(): drops the top byte of a user address. */
static inline uint64_t untag(uint64_t addr)
{
    return addr & (uint64_t) ((int64_t) (addr << 8) >> 8);
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/*
 * Where a mapping of len bytes (page aligned, not 0) goes, as
 * get_unmapped_area: the hint if it is free, else top down below mmap_base,
 * else bottom up. Only MAP_FIXED of `flags` counts. (mmap.c)
 */
int64_t place_find(mm_t *mm, uint64_t addr, uint64_t len, uint64_t flags);

typedef struct map_request {
    uint64_t addr, len; /* page aligned, len not 0 */
    uint64_t flags;     /* the guest's, FIXED added for FIXED_NOREPLACE */
    uint64_t offset;
    int prot, fd;
    uint32_t vma_flags;
    uint64_t window;         /* 0, or where EL1 would have placed it */
    object_ref_t backing;    /* object NULL: private anonymous memory */
    struct segment *segment; /* of shmat; NULL: mmap */
} map_request_t;

/* mmap and shmat from the choice of the address on: returns it, or -errno with
 * nothing changed. (mmap.c) */
int64_t map_region(mm_t *mm, mm_cpu_t *cpu, map_request_t *r);
/* What is behind r->segment. (shm.c) */
int segment_backing(mm_t *mm, map_request_t *r);

/* "[anon:name]", the same pointer for the same name; NULL: no memory.
 * (setmm.c) */
const char *anon_name(const char *name);

/* Pages of [start, end) that VMAs cover. (munmap.c) */
uint64_t mapped_pages(mm_t *mm, uint64_t start, uint64_t end);
/*
 * Could [start, end) be unmapped now? -ENOMEM at the limit of VMAs or when
 * there is no memory for the nodes, of which `spare` are left afterwards.
 */
int unmap_check(mm_t *mm, uint64_t start, uint64_t end, unsigned spare);
/* Unmap it: tables, objects, accounting, VMAs. Cannot fail after the check. */
void unmap_range(mm_t *mm, gather_t *g, uint64_t start, uint64_t end);
/* The same within a gather of its own. */
void unmap_now(mm_t *mm, mm_cpu_t *cpu, uint64_t start, uint64_t end);

/*
 * Make the pages of [start, end) present and resident, as mm_populate does;
 * holes are passed over. Returns 0 or the first error: -ENOMEM, or -EFAULT for
 * what has no access or lies beyond the end of its file. (mlock.c)
 */
int populate_range(mm_t *mm, mm_cpu_t *cpu, uint64_t start, uint64_t end);

#endif
