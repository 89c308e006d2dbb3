/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/shim.h"

#include "abi/layout.h"
#include "abi/pte.h"
#include "abi/shim.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* src/embed.S */
extern const uint8_t shim_image[];
extern const uint64_t shim_image_size;

/* EL1's own descriptors: never for EL0, never global code but the image. */
#define EL1_BASE   (PTE_VALID | PTE_AF | PTE_UXN)
#define EL1_NORMAL (EL1_BASE | PTE_ATTR_NORMAL | PTE_SH_INNER)
#define EL1_CODE   (EL1_NORMAL | PTE_AP_RO)
#define EL1_DATA   (EL1_NORMAL | PTE_PXN)
#define EL1_DEVICE (EL1_BASE | 1UL << 2 | PTE_PXN) /* MAIR index 1 */

#define LEVELS    4
#define GIB_SHIFT 30

/* A table from the tables' part; NULL: it is full. */
static pte_t *table_alloc(shim_t *shim, uint64_t *ipa)
{
    size_t offset = SHIM_TABLES_OFF + shim->tables_used;

    if (shim->tables_used == SHIM_TABLES_MAX)
        return NULL;
    shim->tables_used += GUEST_PAGE_SIZE;
    *ipa = IPA_SHIM + offset;
    return (pte_t *) (void *) (shim->memory + offset);
}

/*
 * Map one page (level 3) or one block (level 2: 2 MiB, level 1: 1 GiB) at va.
 * The tables of the range may not hold a block there already. -ENOMEM.
 */
static int map_one(shim_t *shim, uint64_t va, uint64_t ipa, pte_t attributes,
                   int level)
{
    pte_t *table = (pte_t *) (void *) (shim->memory + (shim->ttbr1 - IPA_SHIM));

    for (int l = 0;; l++) {
        pte_t *pte = &table[va >> (39 - 9 * l) & 511];
        uint64_t next;

        if (l == level) {
            *pte = ipa | attributes | (level == LEVELS - 1 ? PTE_TYPE : 0);
            return 0;
        }
        if (!pte_valid(*pte)) {
            if (!table_alloc(shim, &next))
                return -ENOMEM;
            *pte = next | PTE_TABLE_DESC;
        }
        table =
            (pte_t *) (void *) (shim->memory + ((*pte & PTE_ADDR) - IPA_SHIM));
    }
}

static int map_pages(shim_t *shim, uint64_t va, uint64_t ipa, uint64_t size,
                     pte_t attributes)
{
    int error = 0;

    for (uint64_t o = 0; o < size && !error; o += GUEST_PAGE_SIZE)
        error = map_one(shim, va + o, ipa + o, attributes, LEVELS - 1);
    return error;
}

/* In blocks of 1 GiB where they fit, of 2 MiB elsewhere. */
static int map_pool(shim_t *shim, uint64_t ipa, uint64_t size)
{
    uint64_t va = SHIM_POOL_VA, gib = 1UL << GIB_SHIFT, step;
    int error = 0;

    for (; size && !error; va += step, ipa += step, size -= step) {
        bool large = !((ipa | va) & (gib - 1)) && size >= gib;

        step = large ? gib : BLOCK_SIZE;
        if (size < step)
            return -EINVAL;
        error = map_one(shim, va, ipa, EL1_DATA, large ? 1 : 2);
    }
    return error;
}

/* The guard page of each area stays unmapped: EL1's stack ends there. */
static int map_areas(shim_t *shim)
{
    const uint64_t above = VCPU_AREA_GUARD + GUEST_PAGE_SIZE;
    int error = 0;

    for (unsigned i = 0; i < VCPU_MAX && !error; i++) {
        uint64_t offset = i * VCPU_AREA_SIZE;
        uint64_t va = SHIM_AREAS_VA + offset;
        uint64_t ipa = IPA_SHIM + SHIM_AREAS_OFF + offset;

        error = map_pages(shim, va, ipa, VCPU_AREA_GUARD, EL1_DATA);
        if (!error)
            error = map_pages(shim, va + above, ipa + above,
                              VCPU_AREA_SIZE - above, EL1_DATA);
    }
    if (!error)
        error = map_pages(shim, SHIM_FAST_VA, IPA_SHIM + SHIM_FAST_OFF,
                          SHIM_FAST_SIZE, EL1_DATA);
    return error;
}

static int map_image(shim_t *shim, const shim_header_t *header)
{
    uint64_t split = header->writable_offset;
    int error = map_pages(shim, SHIM_VA, IPA_SHIM, split, EL1_CODE);

    if (!error)
        error = map_pages(shim, SHIM_VA + split, IPA_SHIM + split,
                          header->image_size - split, EL1_DATA);
    return error;
}

/* The host's memory, aligned as windows are so that stage 2 may use blocks. */
static uint8_t *reserve(void)
{
    const size_t align = 32UL << 20;
    uint8_t *p, *memory;

    p = mmap(NULL, SHIM_SIZE + align, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    memory = (uint8_t *) (((uintptr_t) p + align - 1) & ~(align - 1));
    if (memory > p)
        munmap(p, (size_t) (memory - p));
    munmap(memory + SHIM_SIZE, (size_t) (p + align - memory));
    /* A few pages of it are used: not in huge pages. Fails where there are
     * none. */
    (void) madvise(memory, SHIM_SIZE, MADV_NOHUGEPAGE);
    if (mprotect(memory, SHIM_SIZE, PROT_READ | PROT_WRITE)) {
        munmap(memory, SHIM_SIZE);
        return NULL;
    }
    return memory;
}

static bool header_good(const shim_header_t *header)
{
    uint64_t size = shim_image_size;

    return size >= sizeof *header && header->magic == SHIM_MAGIC &&
           header->image_size <= SHIM_IMAGE_MAX && size <= SHIM_IMAGE_MAX &&
           header->writable_offset <= header->image_size &&
           !((header->writable_offset | header->image_size) &
             (GUEST_PAGE_SIZE - 1));
}

int shim_load(hv_vm_t *vm, uint64_t pool_ipa, uint64_t pool_size, shim_t *shim)
{
    const shim_header_t *header = (const void *) shim_image;
    int error;

    if (!header_good(header))
        return -ENOEXEC;
    *shim = (shim_t){.entry = header->entry, .vectors = header->vectors};
    shim->memory = reserve();
    if (!shim->memory)
        return -ENOMEM;
    memcpy(shim->memory, shim_image, shim_image_size);
    /* EL1 fetches what was just written: DC CVAU, IC IVAU, DSB ISH. */
    __builtin___clear_cache((char *) shim->memory,
                            (char *) shim->memory + header->image_size);
    table_alloc(shim, &shim->ttbr1);
    error = map_image(shim, header);
    if (!error)
        error = map_areas(shim);
    if (!error)
        error = map_pages(shim, SHIM_DOORBELL_VA, IPA_DOORBELL, GUEST_PAGE_SIZE,
                          EL1_DEVICE);
    if (!error)
        error = map_pool(shim, pool_ipa, pool_size);
    if (!error)
        error = shim_show(vm, shim);
    if (error)
        munmap(shim->memory, SHIM_SIZE);
    return error;
}

int shim_show(hv_vm_t *vm, const shim_t *shim)
{
    return hv_map(vm, IPA_SHIM, shim->memory, SHIM_SIZE);
}

fast_shared_t *shim_fast(const shim_t *shim)
{
    return (void *) (shim->memory + SHIM_FAST_OFF);
}

vcpu_frame_t *shim_frame(const shim_t *shim, unsigned vcpu)
{
    return (void *) (shim->memory + SHIM_AREAS_OFF +
                     (size_t) vcpu * VCPU_AREA_SIZE + FRAME_OFF);
}

uint64_t shim_frame_va(unsigned vcpu)
{
    return SHIM_AREAS_VA + vcpu * VCPU_AREA_SIZE + FRAME_OFF;
}
