/* SPDX-License-Identifier: Apache-2.0 */
/*
 * struct mm, for the files of mm/ only.
 */
#ifndef ELFUSE_MM_INTERNAL_H
#define ELFUSE_MM_INTERNAL_H

#include <errno.h>
#include <pthread.h>

#include "mm/dirty.h"
#include "mm/gather.h"
#include "mm/hostspace.h"
#include "mm/materialise.h"
#include "mm/mm.h"
#include "mm/object.h"
#include "mm/pagetable.h"
#include "mm/vma.h"
#include "mm/window.h"

/* Each part keeps its own state in a structure of its own header or file. */
struct hostspace;
struct windows;
struct table_pool;
struct revoking;
struct fast;

struct mm {
    /*
     * The memory lock. Protects everything here but what is marked; taken with
     * mm_lock() only, which drains first.
     */
    pthread_mutex_t lock;
    hv_vm_t *vm;
    hv_caps_t caps;
    uint64_t task_size;

    /* VMAs and accounting (vma.c, account.c, the calls). */
    struct vma_tree vmas;
    uint32_t nr_vmas;
    vma_t *vma_cache; /* what vma_find found last, or NULL */
    vma_t *vma_spare; /* free nodes, linked by their left pointers */
    uint32_t nr_spare;
    mm_usage_t usage;
    uint64_t mmap_base, mmap_min, stack_top, elf_dyn_base;
    uint64_t brk_start, brk;
    int mlock_future; /* MCL_FUTURE | MCL_ONFAULT as given */
    struct rlimit limit_as, limit_data, limit_stack, limit_memlock;
    uint64_t commit_limit; /* pages of the largest mapping not NORESERVE */
    bool commit_strict;    /* overcommit mode 2 */
    /* Objects alive, and how many the host's limit of mappings leaves room for
     * beside what guest memory itself needs. */
    uint64_t nr_objects, max_objects;
    uint64_t nr_attaches; /* shmats so far, to number them */
    mm_image_t image;
    bool randomise;
    bool deny_write_exec;

    /* Backing and tables. */
    struct hostspace *space;
    struct windows *windows;
    struct table_pool *pool;
    struct revoking *revoking;
    dirty_map_t *dirty;
    struct fast *fast; /* mmap and munmap at EL1 (fast.h); NULL: off */

    /* Registered threads, for spans: whoever frees backing looks at them. */
    TAILQ_HEAD(, mm_cpu) cpus;
};

void mm_lock_init(mm_t *mm);
/* Takes the memory lock, and drains what EL1 has left (nothing yet). */
void mm_lock(mm_t *mm);
void mm_unlock(mm_t *mm);
/* Does the host say that nothing may become executable? Kept over exec, and
 * over fork unless that was asked for otherwise. */
bool mm_host_denies_exec(void);

#endif
