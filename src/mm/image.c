/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's layout as Linux lays it out on arm64: stack at the top, mmap_base
 * below the room that the stack may take, PIEs at two thirds, the heap after
 * the image; and what the loader asks for.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "mm/account.h"
#include "mm/calls.h"

/* 18 random bits of page number for the stack, 2^30 bytes of room for it. */
#define STACK_RANDOM_MAX (0x3ffffUL << GUEST_PAGE_SHIFT)
#define MMAP_RANDOM_BITS 18
#define BRK_RANDOM       (1UL << 30)
#define GAP_MIN          (128UL << 20)
#define MMAP_MIN_DEFAULT 65536UL

/* Pages below `max` bytes, 0 when the layout is fixed. */
static uint64_t random_pages(const mm_t *mm, uint64_t max)
{
    uint64_t r = 0;

    if (!mm->randomise || getrandom(&r, sizeof(r), 0) != sizeof(r))
        return 0;
    return (r & (max - 1)) & GUEST_PAGE_MASK;
}

/* A number in a file of /proc/sys, or `otherwise`. */
static uint64_t sysctl_number(const char *path, uint64_t otherwise)
{
    char text[32];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n;

    if (fd < 0)
        return otherwise;
    n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0)
        return otherwise;
    text[n] = 0;
    return strtoull(text, NULL, 10);
}

/* Pages that one mapping may have under overcommit mode 0: all there are. */
static uint64_t commit_limit(void)
{
    struct sysinfo info;

    if (sysctl_number("/proc/sys/vm/overcommit_memory", 0) != 0 ||
        sysinfo(&info))
        return UINT64_MAX;
    return ((uint64_t) info.totalram + info.totalswap) * info.mem_unit >>
           GUEST_PAGE_SHIFT;
}

void mm_layout_init(mm_t *mm)
{
    uint64_t task = mm->task_size, gap, pad;

    RB_INIT(&mm->vmas);
    getrlimit(RLIMIT_AS, &mm->limit_as);
    getrlimit(RLIMIT_DATA, &mm->limit_data);
    getrlimit(RLIMIT_STACK, &mm->limit_stack);
    getrlimit(RLIMIT_MEMLOCK, &mm->limit_memlock);
    mm->commit_limit = commit_limit();
    mm->mmap_min =
        sysctl_number("/proc/sys/vm/mmap_min_addr", MMAP_MIN_DEFAULT);

    mm->stack_top = task - random_pages(mm, STACK_RANDOM_MAX + 1);
    pad = VMA_GUARD_GAP + (mm->randomise ? STACK_RANDOM_MAX : 0);
    gap = mm->limit_stack.rlim_cur;
    if (gap + pad > gap)
        gap += pad;
    gap = max_u64(min_u64(gap, task / 6 * 5), GAP_MIN);
    mm->mmap_base = page_align(
        task - gap -
        random_pages(mm, 1UL << (MMAP_RANDOM_BITS + GUEST_PAGE_SHIFT)));
    mm->elf_dyn_base =
        (task / 3 * 2 & GUEST_PAGE_MASK) +
        random_pages(mm, 1UL << (MMAP_RANDOM_BITS + GUEST_PAGE_SHIFT));
}

uint64_t mm_stack_top(const mm_t *mm)
{
    return mm->stack_top;
}

uint64_t mm_elf_dyn_base(const mm_t *mm)
{
    return mm->elf_dyn_base;
}

mm_image_t *mm_image(mm_t *mm)
{
    return &mm->image;
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
        mm->brk_start = page_align(end) + random_pages(mm, BRK_RANDOM);
    mm->brk = mm->brk_start;
    mm_unlock(mm);
}

static int64_t special_add(mm_t *mm, void *host, uint64_t size, uint8_t prot,
                           const char *name)
{
    object_ref_t ref;
    int64_t addr = place_find(mm, 0, size, 0);
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

int64_t mm_map_special(mm_t *mm, mm_cpu_t *cpu, void *host, uint64_t size,
                       uint64_t prot, const char *name)
{
    int64_t addr;

    mm_lock(mm);
    addr = special_add(mm, host, page_align(size), (uint8_t) prot, name);
    mm_unlock(mm);
    return addr;
}
