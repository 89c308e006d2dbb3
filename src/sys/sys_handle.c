/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on file systems whose arguments hold a size or depend on a command. */
#include <fcntl.h>
#include <linux/dqblk_xfs.h>
#include <string.h>
#include <sys/quota.h>

#include "sys/call.h"
#include "sys/procfs_view.h"

typedef struct handle_buf {
    struct file_handle head;
    unsigned char bytes[MAX_HANDLE_SZ];
} handle_buf_t;

int64_t sys_name_to_handle_at(thread_t *t, const uint64_t *a)
{
    char path[PATH_MAX];
    handle_buf_t h = {0};
    int mount_id[2] = {0, 0};
    unsigned room;
    int64_t ret;
    int err;

    if (fd_hidden(a[0]))
        return -EBADF;
    err = path_get(t, (int) a[0], a[1], path);
    if (err)
        return err;
    if (get_struct(t, &h.head, a[2]))
        return -EFAULT;
    room = h.head.handle_bytes;
    if (room > MAX_HANDLE_SZ)
        return -EINVAL;
    ret = blocking_call(t, SYS_name_to_handle_at, a[0], P(path), P(&h),
                        P(mount_id), a[4], 0);
    if (ret && ret != -EOVERFLOW)
        return ret;
    if (put_bytes(t, a[3], mount_id, a[4] & 1 ? 8 : 4))
        return -EFAULT;
    /* Too small a buffer: only the size that is needed goes back. */
    if (put_bytes(t, a[2], &h, sizeof h.head + (ret ? 0 : h.head.handle_bytes)))
        return -EFAULT;
    return ret;
}

int64_t sys_open_by_handle_at(thread_t *t, const uint64_t *a)
{
    handle_buf_t h = {0};
    int64_t fd;

    if (fd_hidden(a[0]))
        return -EBADF;
    if (get_struct(t, &h.head, a[1]))
        return -EFAULT;
    if (h.head.handle_bytes > MAX_HANDLE_SZ || h.head.handle_bytes == 0)
        return -EINVAL;
    if (get_bytes(t, h.bytes, a[1] + sizeof h.head, h.head.handle_bytes))
        return -EFAULT;
    fd = blocking_call(t, SYS_open_by_handle_at, a[0], P(&h), a[2], 0, 0, 0);
    if (fd < 0)
        return fd;
    return procfs_opened(t, (int) fd, (int) a[2], -1, NULL);
}

/* A string that may be absent. */
static int64_t string_get(thread_t *t, uint64_t guest, char *buf,
                          uint64_t *host)
{
    ssize_t n;

    *host = 0;
    if (!guest)
        return 0;
    n = copy_string_from_guest(t->proc->mm, &t->cpu, buf, guest, PATH_MAX);
    if (n == -EFAULT)
        return -EFAULT;
    if (n < 0)
        return -EINVAL;
    *host = P(buf);
    return 0;
}

/* mount's data: the kernel copies up to a page, as much as is there. */
static int data_get(thread_t *t, uint64_t guest, uint8_t *page, uint64_t *host)
{
    size_t n = 0;

    *host = 0;
    if (!guest)
        return 0;
    memset(page, 0, 4096);
    while (n < 4095) {
        size_t step = 4096 - ((guest + n) & 4095);

        step = step < 4095 - n ? step : 4095 - n;
        if (get_bytes(t, page + n, guest + n, step))
            break;
        n += step;
    }
    *host = P(page);
    return n ? 0 : -EFAULT;
}

int64_t sys_mount(thread_t *t, const uint64_t *a)
{
    char source[PATH_MAX], target[PATH_MAX], type[PATH_MAX];
    uint8_t data[4096];
    uint64_t host_source, host_type, host_data;
    int64_t ret = string_get(t, a[2], type, &host_type);

    if (ret == 0)
        ret = string_get(t, a[0], source, &host_source);
    if (ret == 0)
        ret = data_get(t, a[4], data, &host_data);
    if (ret == 0)
        ret = path_get(t, AT_FDCWD, a[1], target);
    if (ret)
        return ret;
    return blocking_call(t, SYS_mount, host_source, P(target), host_type, a[3],
                         host_data, 0);
}

/* Bytes behind quotactl's address; *in: they are read. */
static size_t quota_size(uint32_t cmd, bool *in)
{
    *in = false;
    switch (cmd >> 8) {
    case Q_SETQUOTA:
        *in = true;
        return sizeof(struct dqblk);
    case Q_GETQUOTA:
        return sizeof(struct dqblk);
    case 0x800009: /* Q_GETNEXTQUOTA */
        return sizeof(struct dqblk) + 8;
    case Q_SETINFO:
        *in = true;
        return sizeof(struct dqinfo);
    case Q_GETINFO:
        return sizeof(struct dqinfo);
    case Q_GETFMT:
        return 4;
    case Q_XQUOTAON:
    case Q_XQUOTAOFF:
    case Q_XQUOTARM:
        *in = true;
        return 4;
    case Q_XSETQLIM:
        *in = true;
        return sizeof(struct fs_disk_quota);
    case Q_XGETQUOTA:
    case Q_XGETNEXTQUOTA:
        return sizeof(struct fs_disk_quota);
    case Q_XGETQSTAT:
        return sizeof(struct fs_quota_stat);
    case Q_XGETQSTATV:
        *in = true;
        return sizeof(struct fs_quota_statv);
    default:
        return 0;
    }
}

static int64_t quota_call(thread_t *t, uint64_t nr, uint64_t cmd,
                          uint64_t first, uint64_t second, uint64_t id,
                          uint64_t addr)
{
    uint8_t buf[512] __attribute__((aligned(8))) = {0};
    char path[PATH_MAX];
    bool in;
    size_t size = quota_size((uint32_t) cmd, &in);
    uint64_t host = addr ? P(buf) : 0;
    int64_t ret;

    if ((uint32_t) cmd >> 8 == Q_QUOTAON) {
        if (path_get(t, AT_FDCWD, addr, path))
            return -EFAULT;
        return blocking_call(t, nr, first, second, id, P(path), 0, 0);
    }
    if (in && get_bytes(t, buf, addr, size))
        host = bad_pointer(addr, size);
    ret = blocking_call(t, nr, first, second, id, host, 0, 0);
    if (ret == 0 && size && (!in || cmd >> 8 == Q_XGETQSTATV) &&
        put_bytes(t, addr, buf, size))
        return -EFAULT;
    return ret;
}

int64_t sys_quotactl(thread_t *t, const uint64_t *a)
{
    char path[PATH_MAX];
    uint64_t special = 0;

    if (a[1]) {
        int err = path_get(t, AT_FDCWD, a[1], path);

        if (err)
            return err;
        special = P(path);
    }
    return quota_call(t, SYS_quotactl, a[0], a[0], special, a[2], a[3]);
}

int64_t sys_quotactl_fd(thread_t *t, const uint64_t *a)
{
    if (fd_hidden(a[0]))
        return -EBADF;
    return quota_call(t, SYS_quotactl_fd, a[1], a[0], a[1], a[2], a[3]);
}

int64_t sys_fsconfig(thread_t *t, const uint64_t *a)
{
    char key[PATH_MAX], value[PATH_MAX];
    uint64_t host_key = 0, host_value = 0;
    int64_t ret;

    if (fd_hidden(a[0]) || fd_hidden(a[4]))
        return -EBADF;
    ret = string_get(t, a[2], key, &host_key);
    if (ret)
        return ret;
    if (a[1] == 2) { /* FSCONFIG_SET_BINARY: aux is the length */
        if (a[4] == 0 || a[4] > sizeof value)
            return -EINVAL;
        if (get_bytes(t, value, a[3], a[4]))
            return -EFAULT;
        host_value = P(value);
    } else {
        ret = string_get(t, a[3], value, &host_value);
        if (ret)
            return ret;
    }
    return blocking_call(t, SYS_fsconfig, a[0], a[1], host_key, host_value,
                         a[4], 0);
}
