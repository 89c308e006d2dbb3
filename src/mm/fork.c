/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's memory in a fork child. The host has copied everything: private
 * memory, page tables, this very structure; shared memory is shared. What is
 * left to do is to show it to the child's VM, in which nothing is cached yet,
 * and what Linux's dup_mmap() does to VMAs.
 */
#include <string.h>
#include <sys/mman.h>

#include "mm/account.h"
#include "mm/calls.h"
#include "mm/fast.h"
#include "mm/tablepool.h"

/* The other threads, with their spans and the requests in their frames, are
 * only in the parent. */
static void only_cpu(mm_t *mm, mm_cpu_t *cpu)
{
    mm_lock_init(mm);
    TAILQ_INIT(&mm->cpus);
    TAILQ_INSERT_TAIL(&mm->cpus, cpu, entry);
    revoking_renew(mm, cpu);
    fast_after_fork(mm, cpu);
}

int mm_fork_renew(mm_t *mm, mm_cpu_t *cpu)
{
    int error;

    only_cpu(mm, cpu);
    error = hv_map(mm->vm, mm->pool->ipa, mm->pool->base, mm->pool->size);
    return error ? error : windows_renew(mm);
}

/* Locks are not inherited; what the child is not to have is unmapped. */
static void fork_vmas(mm_t *mm, gather_t *g)
{
    vma_t *vma = vma_first(mm);

    while (vma) {
        uint64_t start = vma->start, end = vma->end;

        vma->flags &= ~(uint32_t) (VMA_LOCKED | VMA_LOCKONFAULT);
        if (vma->flags & VMA_DONTFORK)
            unmap_range(mm, g, start, end);
        else if (vma->flags & VMA_WIPEONFORK)
            pt_discard(mm, g, start, end);
        vma = vma_find(mm, end);
    }
    mm->mlock_future = 0;
    mm->deny_write_exec = mm_host_denies_exec();
    mm->usage.locked = 0;
    mm->usage.peak_vm = mm->usage.total_vm;
}

int mm_fork_finish(mm_t *mm, mm_cpu_t *cpu)
{
    gather_t g;
    int error;

    mm_lock(mm);
    /* unmap_range() wants one, though whole VMAs need none. */
    error = vma_reserve(mm, 1);
    if (!error) {
        gather_begin(&g, mm, cpu);
        fork_vmas(mm, &g);
        gather_finish(&g);
    }
    mm_unlock(mm);
    return error;
}

/* The host pages behind one VMA, which may be a part of what was mapped. */
static int show_special(const mm_t *mm, const vma_t *vma, uint8_t *own)
{
    uint64_t mask = mm->caps.host_page - 1;
    uint64_t from = vma->object_host & ~mask;
    uint64_t to = vma->object_host + (vma->end - vma->start);
    uint64_t size = ((to + mask) & ~mask) - from;

    /* An old length of 0 maps the same memory once more. */
    if (mremap(own + (from - vma->object->host), 0, size,
               MREMAP_MAYMOVE | MREMAP_FIXED, (void *) from) == MAP_FAILED)
        return -errno;
    return 0;
}

int mm_fork_special(mm_t *mm, void *own, const char *name)
{
    int error = 0;

    mm_lock(mm);
    for (vma_t *vma = vma_first(mm); vma && !error; vma = vma_next(vma)) {
        const object_t *object = vma->object;

        if (object && object->special && strcmp(object->special, name) == 0)
            error = show_special(mm, vma, own);
    }
    mm_unlock(mm);
    return error;
}
