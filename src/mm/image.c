/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the loader asks for: the stack, the heap after the image, the vDSO.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/random.h>

#include "mm/account.h"
#include "mm/calls.h"

/* The heap begins so far behind the image at most (arch_randomize_brk). */
#define BRK_RANDOM (1UL << 30)

/* A page aligned number below BRK_RANDOM. */
static uint64_t brk_random(void)
{
    uint64_t r = 0;

    if (getrandom(&r, sizeof(r), 0) != (ssize_t) sizeof(r))
        return 0;
    return r & (BRK_RANDOM - 1) & GUEST_PAGE_MASK;
}

static int stack_add(mm_t *mm, uint64_t size, bool exec)
{
    vma_t area = {
        .start = mm->stack_top - size,
        .end = mm->stack_top,
        .prot = PROT_READ | PROT_WRITE | (exec ? PROT_EXEC : 0),
        .max_prot = PROT_READ | PROT_WRITE | PROT_EXEC,
        .flags = VMA_GROWSDOWN | VMA_STACK | VMA_ACCOUNT,
        .offset = mm->stack_top - size,
    };

    if (size == 0 || size > mm->stack_top || size > mm->limit_stack.rlim_cur ||
        vma_overlap(mm, area.start, area.end) || vma_reserve(mm, 1))
        return -ENOMEM;
    account_add(mm, area.prot, area.flags,
                (int64_t) (size >> GUEST_PAGE_SHIFT));
    vma_add(mm, &area);
    mm->image.start_stack = mm->stack_top - GUEST_PAGE_SIZE;
    return 0;
}

int mm_make_stack(mm_t *mm, mm_cpu_t *cpu, uint64_t size, bool exec)
{
    int err;

    mm_lock(mm);
    err = stack_add(mm, page_align(size), exec);
    mm_unlock(mm);
    return err;
}

void mm_set_brk(mm_t *mm, uint64_t end)
{
    mm_lock(mm);
    mm->brk_start = end;
    if (mm->randomise)
        mm->brk_start = page_align(end) + brk_random();
    mm->brk = mm->brk_start;
    mm_unlock(mm);
}

static int64_t special_add(mm_t *mm, uint64_t hint, void *host, uint64_t size,
                           uint8_t prot, const char *name)
{
    object_ref_t ref;
    int64_t addr = place_find(mm, hint, size, 0);
    int err;

    if (addr < 0)
        return addr;
    if (vma_reserve(mm, 1))
        return -ENOMEM;
    err = object_map_special(mm, host, size, name, &ref);
    if (err)
        return err;
    account_add(mm, prot, VMA_SPECIAL, (int64_t) (size >> GUEST_PAGE_SHIFT));
    vma_add(mm, &(vma_t){
                    .start = (uint64_t) addr,
                    .end = (uint64_t) addr + size,
                    .prot = prot,
                    .max_prot = prot | (prot & PROT_EXEC ? PROT_WRITE : 0),
                    .flags = VMA_SPECIAL,
                    .object = ref.object,
                    .object_host = ref.host,
                });
    return addr;
}

int64_t mm_map_special(mm_t *mm, mm_cpu_t *cpu, uint64_t hint, void *host,
                       uint64_t size, uint64_t prot, const char *name)
{
    int64_t addr;

    mm_lock(mm);
    addr = special_add(mm, hint, host, page_align(size), (uint8_t) prot, name);
    mm_unlock(mm);
    return addr;
}
