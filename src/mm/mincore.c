/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mincore. A page of private anonymous memory is in core when its descriptor is
 * present and the host has committed it: first touch makes more pages valid
 * than were touched, and the host commits each at its own first access. For
 * objects the host answers, page cache included.
 */
#include <errno.h>
#include <sys/mman.h>

#include "mm/calls.h"

/* Pages that are looked at under one lock. */
#define CHUNK_PAGES 4096

/* What the host says of the guest pages at host address `host`. */
static void host_mincore(const mm_t *mm, uint64_t host, uint64_t pages,
                         unsigned char *vec)
{
    unsigned char own[CHUNK_PAGES + 1];
    uint64_t hp = mm->caps.host_page, base = host & ~(hp - 1);
    uint64_t size = host + pages * GUEST_PAGE_SIZE - base;

    if (mincore((void *) base, size, own)) {
        for (uint64_t i = 0; i < pages; i++)
            vec[i] = 0;
        return;
    }
    for (uint64_t i = 0; i < pages; i++)
        vec[i] = own[(host + i * GUEST_PAGE_SIZE - base) / hp] & 1;
}

static void vma_mincore(mm_t *mm, const vma_t *vma, uint64_t start,
                        uint64_t pages, unsigned char *vec)
{
    unsigned char host[CHUNK_PAGES];

    if (vma->object) {
        host_mincore(mm, vma_object_host(vma, start), pages, vec);
        return;
    }
    pt_present(mm, start, pages, vec);
    host_mincore(mm, (uint64_t) hostspace_ptr(mm, start), pages, host);
    for (uint64_t i = 0; i < pages; i++)
        vec[i] &= host[i];
}

/* At most `pages` pages, inside one VMA. Returns how many, or -ENOMEM. */
static int64_t mincore_chunk(mm_t *mm, uint64_t start, uint64_t pages,
                             unsigned char *vec)
{
    vma_t *vma;
    int64_t n = -ENOMEM;

    mm_lock(mm);
    vma = vma_at(mm, start);
    if (vma) {
        n = (int64_t) min_u64(pages, (vma->end - start) >> GUEST_PAGE_SHIFT);
        vma_mincore(mm, vma, start, (uint64_t) n, vec);
    }
    mm_unlock(mm);
    return n;
}

int64_t mm_mincore(mm_t *mm, mm_cpu_t *cpu, uint64_t addr, uint64_t len,
                   uint64_t vec)
{
    unsigned char chunk[CHUNK_PAGES];
    uint64_t start = untag(addr), pages = len >> GUEST_PAGE_SHIFT;

    if (start & ~GUEST_PAGE_MASK)
        return -EINVAL;
    if (start > mm->task_size || len > mm->task_size - start)
        return -ENOMEM;
    pages += (len & ~GUEST_PAGE_MASK) != 0;
    if (untag(vec) > mm->task_size || pages > mm->task_size - untag(vec))
        return -EFAULT;
    while (pages) {
        int64_t n =
            mincore_chunk(mm, start, min_u64(pages, CHUNK_PAGES), chunk);
        if (n < 0)
            return n;
        if (copy_to_guest(mm, cpu, vec, chunk, (size_t) n))
            return -EFAULT;
        start += (uint64_t) n << GUEST_PAGE_SHIFT;
        vec += (uint64_t) n;
        pages -= (uint64_t) n;
    }
    return 0;
}
