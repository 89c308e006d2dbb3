/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits and counters of mapped memory.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "abi/layout.h"
#include "mm/account.h"
#include "mm/internal.h"

#define MMAP_MIN_DEFAULT 65536UL
/* Of the host's mappings, left for elfuse itself and for guest memory that
 * comes into use: when none is left, a first touch cannot be served. */
#define HOST_MAPS_SPARE 4096UL

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

void account_init(struct mm *mm)
{
    uint64_t maps = sysctl_number("/proc/sys/vm/max_map_count", VMA_COUNT_MAX);
    struct sysinfo info;

    mm->max_objects =
        maps > 2 * HOST_MAPS_SPARE ? maps - HOST_MAPS_SPARE : maps / 2;
    mm->mmap_min =
        sysctl_number("/proc/sys/vm/mmap_min_addr", MMAP_MIN_DEFAULT);
    mm->commit_strict = sysctl_number("/proc/sys/vm/overcommit_memory", 0) == 2;
    /* Mode 0 refuses only what passes all memory there is. */
    mm->commit_limit = UINT64_MAX;
    if (sysctl_number("/proc/sys/vm/overcommit_memory", 0) == 0 &&
        sysinfo(&info) == 0)
        mm->commit_limit =
            ((uint64_t) info.totalram + info.totalswap) * info.mem_unit >>
            GUEST_PAGE_SHIFT;
}

static uint64_t limit_pages(rlim_t limit)
{
    return limit >> GUEST_PAGE_SHIFT;
}

/* What RLIMIT_DATA counts: private, writable, no stack. */
static bool is_data(uint8_t prot, uint32_t flags)
{
    return (prot & PROT_WRITE) && !(flags & (VMA_SHARED | VMA_GROWSDOWN));
}

static bool is_exec(uint8_t prot, uint32_t flags)
{
    return (prot & PROT_EXEC) && !(prot & PROT_WRITE) &&
           !(flags & VMA_GROWSDOWN);
}

bool account_may_expand(const struct mm *mm, uint8_t prot, uint32_t flags,
                        uint64_t pages)
{
    const mm_usage_t *usage = &mm->usage;
    const struct rlimit *data = &mm->limit_data;

    if (usage->total_vm + pages > limit_pages(mm->limit_as.rlim_cur))
        return false;
    if (!is_data(prot, flags) ||
        usage->data + pages <= limit_pages(data->rlim_cur))
        return true;
    /* Linux: a soft limit of 0 means the hard one (valgrind sets it so). */
    return data->rlim_cur == 0 &&
           usage->data + pages <= limit_pages(data->rlim_max);
}

bool account_enough_memory(const struct mm *mm, uint64_t pages)
{
    return pages <= mm->commit_limit;
}

bool account_chargeable(uint8_t prot, uint32_t flags)
{
    return (prot & PROT_WRITE) && !(flags & (VMA_SHARED | VMA_NORESERVE));
}

void account_add(struct mm *mm, uint8_t prot, uint32_t flags, int64_t pages)
{
    mm_usage_t *usage = &mm->usage;

    usage->total_vm += pages;
    if (usage->total_vm > usage->peak_vm)
        usage->peak_vm = usage->total_vm;
    if (is_exec(prot, flags))
        usage->exec += pages;
    else if (flags & VMA_GROWSDOWN)
        usage->stack += pages;
    else if (is_data(prot, flags))
        usage->data += pages;
    if (flags & VMA_LOCKED)
        usage->locked += pages;
}

bool account_capable(int cap)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

    if (syscall(SYS_capget, &header, data))
        return false;
    return (data[CAP_TO_INDEX(cap)].effective & CAP_TO_MASK(cap)) != 0;
}

bool account_can_mlock(const struct mm *mm)
{
    return mm->limit_memlock.rlim_cur != 0 || account_capable(CAP_IPC_LOCK);
}

bool account_may_lock(const struct mm *mm, uint64_t pages)
{
    return mm->usage.locked + pages <=
               limit_pages(mm->limit_memlock.rlim_cur) ||
           account_capable(CAP_IPC_LOCK);
}

bool mm_owns_rlimit(int resource)
{
    return resource == RLIMIT_AS || resource == RLIMIT_DATA ||
           resource == RLIMIT_STACK || resource == RLIMIT_MEMLOCK;
}

static struct rlimit *limit_of(mm_t *mm, int resource)
{
    switch (resource) {
    case RLIMIT_AS:
        return &mm->limit_as;
    case RLIMIT_DATA:
        return &mm->limit_data;
    case RLIMIT_STACK:
        return &mm->limit_stack;
    default:
        return &mm->limit_memlock;
    }
}

void mm_get_rlimit(mm_t *mm, int resource, struct rlimit *limit)
{
    mm_lock(mm);
    *limit = *limit_of(mm, resource);
    mm_unlock(mm);
}

void mm_set_rlimit(mm_t *mm, int resource, const struct rlimit *limit)
{
    mm_lock(mm);
    *limit_of(mm, resource) = *limit;
    mm_unlock(mm);
}
