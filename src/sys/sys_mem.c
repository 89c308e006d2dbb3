/* SPDX-License-Identifier: Apache-2.0 */
/* Memory calls: mm/ serves them; protection keys, which arm64 lacks. */
#include <sys/mman.h>

#include "sys/call.h"

#define MM_CALL(name, ...)                                     \
    int64_t sys_##name(thread_t *t, const uint64_t *a)         \
    {                                                          \
        return mm_##name(t->proc->mm, &t->cpu, ##__VA_ARGS__); \
    }

MM_CALL(brk, a[0])
MM_CALL(munmap, a[0], a[1])
MM_CALL(mprotect, a[0], a[1], a[2])
MM_CALL(mremap, a[0], a[1], a[2], a[3], a[4])
MM_CALL(madvise, a[0], a[1], (int) a[2])
MM_CALL(mincore, a[0], a[1], a[2])
MM_CALL(msync, a[0], a[1], (int) a[2])
MM_CALL(munlock, a[0], a[1])
MM_CALL(mlockall, (int) a[0])
MM_CALL(munlockall)

int64_t sys_mmap(thread_t *t, const uint64_t *a)
{
    int fd = (int) a[4];

    if (!(a[3] & MAP_ANONYMOUS) && fd_hidden(a[4]))
        return -EBADF;
    return mm_mmap(t->proc->mm, &t->cpu, a[0], a[1], a[2], a[3], fd, a[5]);
}

int64_t sys_mlock(thread_t *t, const uint64_t *a)
{
    return mm_mlock(t->proc->mm, &t->cpu, a[0], a[1], 0);
}

int64_t sys_mlock2(thread_t *t, const uint64_t *a)
{
    return mm_mlock(t->proc->mm, &t->cpu, a[0], a[1], (int) a[2]);
}

/* A kernel without protection keys has none of the calls. */
static bool has_pkeys(void)
{
    return host_call(SYS_pkey_free, ~0UL, 0, 0, 0, 0, 0) != -ENOSYS;
}

/* A CPU without protection keys: only key -1 (none) exists. */
int64_t sys_pkey_mprotect(thread_t *t, const uint64_t *a)
{
    if (!has_pkeys())
        return -ENOSYS;
    if ((int) a[3] != -1)
        return -EINVAL;
    return mm_mprotect(t->proc->mm, &t->cpu, a[0], a[1], a[2]);
}

int64_t sys_pkey_alloc(thread_t *t, const uint64_t *a)
{
    if (!has_pkeys())
        return -ENOSYS;
    if (a[0] || a[1] & ~3UL)
        return -EINVAL;
    return -ENOSPC;
}

int64_t sys_pkey_free(thread_t *t, const uint64_t *a)
{
    return has_pkeys() ? -EINVAL : -ENOSYS;
}
