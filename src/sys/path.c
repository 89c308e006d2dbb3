/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Paths from the guest, and iovecs: the copies that several calls share.
 */
#include "sys/call.h"
#include "sys/procfs_view.h"

/* The guest's paths are the host's: --sysroot changes the root of both. */
int path_resolve(thread_t *t, int dirfd, char *path)
{
    return procfs_path_is_hidden(t, dirfd, path) ? -ENOENT : 0;
}

int path_get(thread_t *t, int dirfd, uint64_t guest, char *buf)
{
    ssize_t n =
        copy_string_from_guest(t->proc->mm, &t->cpu, buf, guest, PATH_MAX);

    if (n < 0)
        return (int) n;
    return path_resolve(t, dirfd, buf);
}

int path_get_host(thread_t *t, int dirfd, uint64_t guest, char *buf,
                  uint64_t *host)
{
    int err = path_get(t, dirfd, guest, buf);

    *host = P(buf);
    if (err != -EFAULT)
        return err;
    *host = bad_pointer(guest, 1);
    buf[0] = '\0';
    return 0;
}

int64_t iovec_get(thread_t *t, uint64_t guest, uint64_t count,
                  guest_iovec_t *iov)
{
    uint64_t total = 0;

    count = (uint32_t) count;
    if (count > IOV_COUNT_MAX)
        return -EINVAL;
    if (count == 0)
        return 0;
    if (get_bytes(t, iov, guest, count * sizeof *iov))
        return -EFAULT;
    for (uint64_t i = 0; i < count; i++) {
        if ((int64_t) iov[i].len < 0)
            return -EINVAL;
    }
    for (uint64_t i = 0; i < count; i++) {
        if (!user_range(iov[i].base, iov[i].len))
            return -EFAULT;
        if (iov[i].len > RW_COUNT_MAX - total)
            iov[i].len = RW_COUNT_MAX - total;
        total += iov[i].len;
    }
    return (int64_t) count;
}

int64_t iovec_import(thread_t *t, uint64_t guest, uint64_t count,
                     guest_iovec_t *iov)
{
    int64_t n = iovec_get(t, guest, count, iov);

    for (int64_t i = 0; i < n; i++)
        if (!user_range(iov[i].base, iov[i].len))
            return -EFAULT;
    return n;
}
