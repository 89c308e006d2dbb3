/* SPDX-License-Identifier: Apache-2.0 */
#include "mm/hostspace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mm/internal.h"
#include "mm/lazymap.h"
#include "proc/proc.h" /* elfuse_panic only */
#include "stats.h"

#define RESERVE_FLAGS (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
/* User space shrinks to this before we give up. */
#define TASK_BITS_MIN 36U
#define TASK_BITS_MAX 46U

/* The object area: a quarter of user space. */
static uint64_t object_size(unsigned bits)
{
    return 1UL << (bits - 2);
}

static uint8_t *reserve(uint64_t size)
{
    uint8_t *raw =
        mmap(NULL, size + CHUNK_SIZE, PROT_NONE, RESERVE_FLAGS, -1, 0);
    uint8_t *base;
    size_t head;

    if (raw == MAP_FAILED)
        return NULL;
    head = -(uintptr_t) raw & (CHUNK_SIZE - 1);
    base = raw + head;
    if (head)
        munmap(raw, head);
    munmap(base + size, CHUNK_SIZE - head);
    return base;
}

/* Huge pages by advice are of use unless the host says never. */
static bool huge_possible(size_t host_page)
{
    char text[64];
    ssize_t n;
    int fd = open("/sys/kernel/mm/transparent_hugepage/enabled",
                  O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return false;
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return false;
    text[n] = 0;
    /* A huge page of a 16 KiB host is 32 MiB: not for one block. */
    return host_page == GUEST_PAGE_SIZE && !strstr(text, "[never]");
}

hostspace_t *hostspace_create(size_t host_page, unsigned bits,
                              uint64_t *task_size)
{
    hostspace_t *hs = calloc(1, sizeof(*hs));

    if (!hs)
        return NULL;
    if (!bits || bits > TASK_BITS_MAX)
        bits = TASK_BITS_MAX;
    for (; bits >= TASK_BITS_MIN && !hs->base; bits--) {
        hs->size = (1UL << bits) + object_size(bits);
        hs->base = reserve(hs->size);
        *task_size = 1UL << bits;
    }
    if (!hs->base)
        goto fail;
    hs->host_page = host_page;
    hs->object_base = (uintptr_t) hs->base + *task_size;
    hs->object_end = (uintptr_t) hs->base + hs->size;
    hs->nr_chunks = *task_size >> CHUNK_SHIFT;
    hs->last_chunk = ~0UL;
    hs->huge = huge_possible(host_page);
    hs->chunks = lazy_map(hs->nr_chunks / 8, PROT_READ | PROT_WRITE);
    if (!hs->chunks)
        goto fail;
    hs->free = free_space_create(hs->object_base, hs->object_end);
    if (!hs->free)
        goto fail;
    /* A lone first touch must not commit a huge page; where one pays,
     * hostspace_advise_huge() asks for it. Fails where there are none. */
    (void) madvise(hs->base, *task_size, MADV_NOHUGEPAGE);
    return hs;
fail:
    if (hs->base)
        munmap(hs->base, hs->size);
    free(hs);
    return NULL;
}

void *hostspace_ptr(struct mm *mm, uint64_t v)
{
    return mm->space->base + v;
}

bool hostspace_is_object(struct mm *mm, const void *host)
{
    return (uintptr_t) host >= mm->space->object_base &&
           (uintptr_t) host < mm->space->object_end;
}

static bool chunk_test(const hostspace_t *hs, uint64_t chunk)
{
    return (hs->chunks[chunk >> 6] >> (chunk & 63)) & 1;
}

static int chunk_protect(hostspace_t *hs, uint64_t chunk, int prot)
{
    if (mprotect(hs->base + (chunk << CHUNK_SHIFT), CHUNK_SIZE, prot))
        return -errno;
    hs->chunks[chunk >> 6] ^= 1UL << (chunk & 63);
    return 0;
}

/*
 * The host has no room for another mapping: chunks without a dirty block have
 * no contents, no valid descriptor and no span, and go back to PROT_NONE.
 */
static bool chunks_decommit(struct mm *mm)
{
    const unsigned blocks = 1U << (CHUNK_SHIFT - BLOCK_SHIFT);
    hostspace_t *hs = mm->space;
    bool any = false;

    for (uint64_t c = 0; c < hs->nr_chunks; c++) {
        uint64_t first = c * blocks;

        if (!hs->chunks[c >> 6]) {
            c |= 63;
            continue;
        }
        if (!chunk_test(hs, c) ||
            dirty_next(mm->dirty, first, first + blocks) < first + blocks)
            continue;
        if (!chunk_protect(hs, c, PROT_NONE))
            any = true;
    }
    hs->last_chunk = ~0UL;
    return any;
}

static int chunks_commit(hostspace_t *hs, uint64_t first, uint64_t last)
{
    for (uint64_t c = first; c <= last; c++) {
        int error;

        if (chunk_test(hs, c))
            continue;
        error = chunk_protect(hs, c, PROT_READ | PROT_WRITE);
        if (error)
            return error;
        stats_add(chunks_committed, 1);
    }
    return 0;
}

int hostspace_commit(struct mm *mm, uint64_t start, uint64_t end)
{
    hostspace_t *hs = mm->space;
    uint64_t first = start >> CHUNK_SHIFT, last = (end - 1) >> CHUNK_SHIFT;

    if (first == last && first == hs->last_chunk)
        return 0;
    if (chunks_commit(hs, first, last)) {
        /* What was committed just now may go, too: once more from the start. */
        if (!chunks_decommit(mm) || chunks_commit(hs, first, last))
            return -ENOMEM;
    }
    hs->last_chunk = last;
    return 0;
}

void hostspace_advise_huge(struct mm *mm, uint64_t v)
{
    hostspace_t *hs = mm->space;

    if (!hs->huge)
        return;
    /* Advice only: a refusal costs speed, nothing else. */
    (void) madvise(hs->base + (v & ~(BLOCK_SIZE - 1)), BLOCK_SIZE,
                   MADV_HUGEPAGE);
    stats_add(blocks_huge, 1);
}

void hostspace_zero(struct mm *mm, uint64_t start, uint64_t end)
{
    memset(mm->space->base + start, 0, end - start);
}

void hostspace_drop(struct mm *mm, uint64_t start, uint64_t end)
{
    uint64_t page = mm->space->host_page;
    uint64_t low = (start + page - 1) & ~(page - 1), high = end & ~(page - 1);

    if (low >= high) {
        hostspace_zero(mm, start, end);
        return;
    }
    if (start < low)
        hostspace_zero(mm, start, low);
    if (high < end)
        hostspace_zero(mm, high, end);
    if (madvise(mm->space->base + low, high - low, MADV_DONTNEED))
        hostspace_zero(mm, low, high);
    else
        stats_add(bytes_dropped, high - low);
}

bool hostspace_move(struct mm *mm, uint64_t from, uint64_t to, uint64_t len)
{
    hostspace_t *hs = mm->space;
    uint8_t *src = hs->base + from, *dst = hs->base + to;

    if ((from | to | len) & (hs->host_page - 1))
        return false;
    if (mremap(src, len, len, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
               dst) == dst)
        return true;
    /* The kernel may have unmapped the destination before it failed (the source
     * is more than one host VMA, for one); then this fails, too. */
    if (madvise(dst, len, MADV_DONTNEED) == 0)
        return false;
    if (mmap(dst, len, PROT_READ | PROT_WRITE, RESERVE_FLAGS | MAP_FIXED, -1,
             0) == MAP_FAILED)
        elfuse_panic("mm: no mapping for %p+%#lx after a failed move",
                     (void *) dst, len);
    (void) madvise(dst, len, MADV_NOHUGEPAGE);
    return false;
}

static uint64_t object_round(const hostspace_t *hs, uint64_t size)
{
    return (size + hs->host_page - 1) & ~(hs->host_page - 1);
}

uint64_t hostspace_object_alloc(struct mm *mm, uint64_t size)
{
    hostspace_t *hs = mm->space;
    uint64_t huge = hs->host_page == GUEST_PAGE_SIZE ? BLOCK_SIZE : CHUNK_SIZE;
    uint64_t align = size >= huge ? huge : hs->host_page;

    if (!size || size > hs->object_end - hs->object_base)
        return 0;
    return free_space_alloc(hs->free, object_round(hs, size), align);
}

void hostspace_object_free(struct mm *mm, uint64_t host, uint64_t size)
{
    hostspace_t *hs = mm->space;

    size = object_round(hs, size);
    if (host < hs->object_base || host + size > hs->object_end)
        elfuse_panic("mm: %#lx+%#lx is not in the object area", host, size);
    /* When the host has no room for the split, the old mapping stays and so
     * does its address: never reused. */
    if (mmap((void *) host, size, PROT_NONE, RESERVE_FLAGS | MAP_FIXED, -1,
             0) != MAP_FAILED)
        free_space_put(hs->free, host, size);
}
