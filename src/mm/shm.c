/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System V shared memory: shmat and shmdt. The host attaches a segment where it
 * likes, which also finds every error of the identifier and its permissions in
 * the kernel's order; then its pages become an object, placed as mmap places a
 * shared mapping.
 */
#include <errno.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

#include "mm/calls.h"

#define ADVICE_COLD 20 /* MADV_COLD, which older C libraries do not have */

typedef struct segment {
    int id;
    void *own;     /* where the host has attached it; NULL: given away */
    uint64_t size; /* as shmget was told, in bytes */
} segment_t;

/* Huge pages cannot be cut to the guest's pages. This advice changes nothing
 * that is seen, and the kernel refuses it for them. */
static bool huge_pages(const mm_t *mm, const segment_t *s)
{
    return madvise(s->own, mm->caps.host_page, ADVICE_COLD) && errno == EINVAL;
}

static int segment_attach(const mm_t *mm, segment_t *s, int flags)
{
    struct shmid_ds ds;

    s->own = shmat(s->id, NULL, flags & (SHM_RDONLY | SHM_EXEC));
    if (s->own == (void *) -1)
        return -errno;
    /* It lives at least as long as it is attached. */
    if (shmctl(s->id, IPC_STAT, &ds)) {
        int err = -errno;

        shmdt(s->own);
        return err;
    }
    s->size = ds.shm_segsz;
    if (huge_pages(mm, s)) {
        shmdt(s->own);
        return -ENOMEM;
    }
    return 0;
}

int segment_backing(mm_t *mm, map_request_t *r)
{
    segment_t *s = r->segment;
    int err = object_adopt(mm, s->own, ++mm->nr_attaches, s->id, s->size,
                           &r->backing);

    if (err)
        return err;
    s->own = NULL;
    r->vma_flags |= VMA_SHARED;
    return 0;
}

/* The head of do_shmat(): the address, 0 for any. SHMLBA is a page. */
static int decode_address(uint64_t *addr, int flags)
{
    if (*addr & ~GUEST_PAGE_MASK) {
        if (!(flags & SHM_RND))
            return -EINVAL;
        *addr &= GUEST_PAGE_MASK;
    }
    return !*addr && (flags & SHM_REMAP) ? -EINVAL : 0;
}

static int64_t attach_locked(mm_t *mm, mm_cpu_t *cpu, map_request_t *r,
                             int flags)
{
    if (r->addr && !(flags & SHM_REMAP) &&
        (r->addr + r->segment->size < r->addr ||
         vma_overlap(mm, r->addr, r->addr + r->segment->size)))
        return -EINVAL;
    return map_region(mm, cpu, r);
}

int64_t mm_shmat(mm_t *mm, mm_cpu_t *cpu, int id, uint64_t addr, int flags)
{
    segment_t s = {.id = id};
    map_request_t r = {
        /* An address that is rounded down to 0 is one all the same. */
        .flags = MAP_SHARED | (addr ? MAP_FIXED : 0),
        .prot = PROT_READ | (flags & SHM_RDONLY ? 0 : PROT_WRITE) |
                (flags & SHM_EXEC ? PROT_EXEC : 0),
        .fd = -1,
        .segment = &s,
    };
    int64_t result;

    if (id < 0)
        return -EINVAL;
    result = decode_address(&addr, flags);
    if (result)
        return result;
    result = segment_attach(mm, &s, flags);
    if (result)
        return result;
    r.addr = addr;
    r.len = page_align(s.size);
    mm_lock(mm);
    result = attach_locked(mm, cpu, &r, flags);
    mm_unlock(mm);
    if (s.own)
        shmdt(s.own);
    return result;
}

/* --- shmdt --------------------------------------------------------------- */

/* The part of a segment that lies where an attach at addr has put it. */
static bool attached_at(const vma_t *vma, uint64_t addr)
{
    return vma->object && vma->object->attach &&
           vma->start - addr == vma->offset;
}

/* The first VMA at or above addr of some attach at addr, or NULL. */
static vma_t *attach_find(mm_t *mm, uint64_t addr)
{
    vma_t *vma = vma_find(mm, addr);

    while (vma && !attached_at(vma, addr))
        vma = vma_next(vma);
    return vma;
}

/* What else of that attach there is: as far as the segment reaches, whatever
 * mprotect, munmap and mremap have made of it. */
static void detach(mm_t *mm, gather_t *g, vma_t *vma, uint64_t addr)
{
    uint64_t attach = vma->object->attach, size = vma->object->segment;
    vma_t *next = vma_next(vma);

    size = page_align(size);
    unmap_range(mm, g, vma->start, vma->end);
    for (vma = next; vma && vma->end - addr <= size; vma = next) {
        next = vma_next(vma);
        if (attached_at(vma, addr) && vma->object->attach == attach)
            unmap_range(mm, g, vma->start, vma->end);
    }
}

int64_t mm_shmdt(mm_t *mm, mm_cpu_t *cpu, uint64_t addr)
{
    gather_t g;
    vma_t *vma;

    if (addr & ~GUEST_PAGE_MASK)
        return -EINVAL;
    mm_lock(mm);
    vma = attach_find(mm, addr);
    if (vma) {
        gather_begin(&g, mm, cpu);
        detach(mm, &g, vma, addr);
        gather_finish(&g);
    }
    mm_unlock(mm);
    return vma ? 0 : -EINVAL;
}

uint64_t mm_shm_attaches(mm_t *mm, int id)
{
    const vma_t *prev = NULL;
    uint64_t more = 0;

    mm_lock(mm);
    for (vma_t *vma = vma_first(mm); vma; prev = vma, vma = vma_next(vma))
        if (prev && vma->object && vma->object->attach &&
            vma->object->shmid == id && vma->object == prev->object &&
            vma_object_host(prev, prev->end) == vma->object_host)
            more++;
    mm_unlock(mm);
    return more;
}
