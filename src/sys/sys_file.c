/* SPDX-License-Identifier: Apache-2.0 */
/* Files and descriptors: the calls that could meet elfuse's own. */
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "sys/call.h"
#include "sys/procfs_view.h"

int64_t sys_openat(thread_t *t, const uint64_t *a)
{
    char path[PATH_MAX];
    uint64_t host_path;
    int64_t fd;
    int err;

    if (fd_hidden(a[0]))
        return -EBADF;
    err = path_get_host(t, (int) a[0], a[1], path, &host_path);
    if (err)
        return err;
    fd = blocking_call(t, SYS_openat, a[0], host_path, a[2], a[3], 0, 0);
    if (fd < 0)
        return fd;
    return procfs_opened(t, (int) fd, (int) a[2], (int) a[0], path);
}

int64_t sys_openat2(thread_t *t, const uint64_t *a)
{
    char path[PATH_MAX];
    uint8_t how[4096] __attribute__((aligned(8)));
    uint64_t host_path;
    int64_t fd;
    int err;

    if (fd_hidden(a[0]))
        return -EBADF;
    if (a[3] < sizeof(struct open_how))
        return -EINVAL;
    if (a[3] > sizeof how)
        return -E2BIG;
    if (get_bytes(t, how, a[2], a[3]))
        return -EFAULT;
    err = path_get_host(t, (int) a[0], a[1], path, &host_path);
    if (err)
        return err;
    fd = blocking_call(t, SYS_openat2, a[0], host_path, P(how), a[3], 0, 0);
    if (fd < 0)
        return fd;
    return procfs_opened(t, (int) fd, *(int *) (void *) how, (int) a[0], path);
}

/* Close (or mark) everything in the range but our own: the runs of numbers
 * between those. */
int64_t sys_close_range(thread_t *t, const uint64_t *a)
{
    unsigned first = (unsigned) a[0], last = (unsigned) a[1], low, end;
    /* A lone thread shares its table with no other of the guest's; a copy would
     * stay with elfuse's threads, and keep pipes open. */
    unsigned flags = (unsigned) a[2] & ~(unsigned) CLOSE_RANGE_UNSHARE;
    int64_t ret = 0;

    if (first > last || (unsigned) a[2] & ~6U)
        return -EINVAL;
    if (a[2] & CLOSE_RANGE_UNSHARE && threads_several(t->proc))
        return -EINVAL;
    fdspace_range(&low, &end);
    for (unsigned fd = low; fd < end && ret == 0; fd++) {
        if (fd < first || fd > last || !fd_hidden(fd))
            continue;
        if (fd > first)
            ret = host_call(SYS_close_range, first, fd - 1, flags, 0, 0, 0);
        if (fd == last)
            return ret;
        first = fd + 1;
    }
    if (ret == 0)
        ret = host_call(SYS_close_range, first, last, flags, 0, 0, 0);
    return ret;
}

/* dup3 onto one of our numbers. Past the guest's limit it is EBADF for the
 * kernel as well; below it the number is the guest's if it wants it. */
static int64_t fdspace_for_guest(thread_t *t, uint64_t from, uint64_t to,
                                 uint64_t flags)
{
    struct rlimit limit;

    fdspace_set_limit(t->proc, NULL, &limit);
    if ((uint32_t) to >= limit.rlim_cur ||
        host_call(SYS_fcntl, from, F_GETFD, 0, 0, 0, 0) < 0)
        return -EBADF;
    if (flags & ~(uint64_t) O_CLOEXEC)
        return -EINVAL;
    return fdspace_make_room((int) to);
}

int64_t sys_dup3(thread_t *t, const uint64_t *a)
{
    if (fd_hidden(a[0]))
        return -EBADF;
    if (fd_hidden(a[1])) {
        int64_t ret = fdspace_for_guest(t, a[0], a[1], a[2]);

        if (ret)
            return ret;
    }
    return blocking_call(t, SYS_dup3, a[0], a[1], a[2], 0, 0, 0);
}

/* What fcntl's third argument points at; 0: it is a value. */
static unsigned fcntl_size(int cmd)
{
    switch (cmd) {
    case 5: /* F_GETLK, F_SETLK, F_SETLKW: libc may spell them F_*64 */
    case 6:
    case 7:
    case F_OFD_GETLK:
    case F_OFD_SETLK:
    case F_OFD_SETLKW:
        return sizeof(struct flock);
    case F_SETOWN_EX:
    case F_GETOWN_EX:
    case F_GET_RW_HINT:
    case F_SET_RW_HINT:
    case 1037: /* F_GET_FILE_RW_HINT, F_SET_ */
    case 1038:
    case 17: /* F_GETOWNER_UIDS */
        return 8;
    default:
        return 0;
    }
}

int64_t sys_fcntl(thread_t *t, const uint64_t *a)
{
    uint8_t buf[sizeof(struct flock)];
    int cmd = (int) a[1];
    unsigned size = fcntl_size(cmd);
    int64_t ret;

    if (fd_hidden(a[0]))
        return -EBADF;
    if (!size)
        return blocking_call(t, SYS_fcntl, a[0], a[1], a[2], 0, 0, 0);
    if (get_bytes(t, buf, a[2], size))
        return blocking_call(t, SYS_fcntl, a[0], a[1], bad_pointer(a[2], size),
                             0, 0, 0);
    ret = blocking_call(t, SYS_fcntl, a[0], a[1], P(buf), 0, 0, 0);
    if (ret >= 0 && cmd != 6 && cmd != 7 && cmd != F_OFD_SETLK &&
        cmd != F_OFD_SETLKW && put_bytes(t, a[2], buf, size))
        return -EFAULT;
    return ret;
}

/* The link /proc/<pid>/exe has this as its last component, or is open. */
static bool may_be_exe(const char *path)
{
    const char *slash = strrchr(path, '/');

    return *path == '\0' || strcmp(slash ? slash + 1 : path, "exe") == 0;
}

int64_t sys_readlinkat(thread_t *t, const uint64_t *a)
{
    char path[PATH_MAX], target[PATH_MAX];
    uint64_t size = a[3] < sizeof target ? a[3] : sizeof target, host_path;
    int64_t ret;
    int err;

    if (fd_hidden(a[0]))
        return -EBADF;
    if ((int) a[3] <= 0)
        return -EINVAL;
    err = path_get_host(t, (int) a[0], a[1], path, &host_path);
    if (err)
        return err;
    ret = blocking_call(t, SYS_readlinkat, a[0], host_path, P(target),
                        sizeof target, 0, 0);
    if (ret < 0)
        return ret;
    if (may_be_exe(path) && procfs_link_is_exe(t, (int) a[0], path) &&
        t->proc->exe) {
        ret = (int64_t) strlen(t->proc->exe);
        memcpy(target, t->proc->exe, (size_t) ret);
    }
    if ((uint64_t) ret > size)
        ret = (int64_t) size;
    return put_bytes(t, a[2], target, (size_t) ret) ? -EFAULT : ret;
}

/* A directory is listed in pieces: more than this at once helps nobody. */
#define DENTS_MAX 65536U

int64_t sys_getdents64(thread_t *t, const uint64_t *a)
{
    uint8_t stack[4096], *buf = stack;
    unsigned len = (unsigned) a[2];
    int64_t ret;

    if (fd_hidden(a[0]))
        return -EBADF;
    len = len < DENTS_MAX ? len : DENTS_MAX;
    if (len > sizeof stack && !(buf = malloc(len)))
        return -ENOMEM;
    do {
        ret = blocking_call(t, SYS_getdents64, a[0], P(buf), len, 0, 0, 0);
        if (ret <= 0)
            break;
        /* Nothing left after filtering is not the end of the directory. */
        ret = (int64_t) procfs_filter_dents(t, (int) a[0], buf, (size_t) ret);
    } while (ret == 0);
    if (ret > 0 && put_bytes(t, a[1], buf, (size_t) ret))
        ret = -EFAULT;
    if (buf != stack)
        free(buf);
    return ret;
}

/* A text of ours under /proc looks like a file of procfs. */
static void stat_disguise(int fd, struct stat *st)
{
    if (procfs_is_text(fd, st->st_nlink)) {
        st->st_size = 0;
        st->st_blocks = 0;
        st->st_nlink = 1;
        st->st_mode = PROCFS_TEXT_MODE;
    }
}

int64_t sys_fstat(thread_t *t, const uint64_t *a)
{
    struct stat st = {.st_ino = 0};
    int64_t ret;

    if (fd_hidden(a[0]))
        return -EBADF;
    ret = blocking_call(t, SYS_fstat, a[0], P(&st), 0, 0, 0, 0);
    if (ret)
        return ret;
    stat_disguise((int) a[0], &st);
    return put_struct(t, a[1], &st);
}

/* stat of /proc/self/exe, followed, is the guest's program. */
int64_t sys_newfstatat(thread_t *t, const uint64_t *a)
{
    char path[PATH_MAX];
    struct stat st = {.st_ino = 0};
    uint64_t host_path;
    int64_t ret;
    int err;

    if (fd_hidden(a[0]))
        return -EBADF;
    err = path_get_host(t, (int) a[0], a[1], path, &host_path);
    if (err)
        return err;
    ret = blocking_call(t, SYS_newfstatat, a[0], host_path, P(&st), a[3], 0, 0);
    if (ret == 0 && procfs_is_elfuse(st.st_dev, st.st_ino) && t->proc->exe &&
        procfs_path_is_exe(t, (int) a[0], path))
        ret = blocking_call(t, SYS_newfstatat, (uint64_t) AT_FDCWD,
                            P(t->proc->exe), P(&st), 0, 0, 0);
    if (ret == 0 && path[0] == '\0')
        stat_disguise((int) a[0], &st);
    if (ret == 0 && put_struct(t, a[2], &st))
        ret = -EFAULT;
    return ret;
}

int64_t sys_statx(thread_t *t, const uint64_t *a)
{
    char path[PATH_MAX];
    struct statx st = {.stx_ino = 0};
    uint64_t host_path = 0;
    int64_t ret;

    path[0] = '\0';
    if (fd_hidden(a[0]))
        return -EBADF;
    if (a[1]) {
        int err = path_get_host(t, (int) a[0], a[1], path, &host_path);

        if (err)
            return err;
    }
    ret = blocking_call(t, SYS_statx, a[0], host_path, a[2], a[3], P(&st), 0);
    if (ret == 0 && host_path && t->proc->exe &&
        procfs_is_elfuse(makedev(st.stx_dev_major, st.stx_dev_minor),
                         st.stx_ino) &&
        procfs_path_is_exe(t, (int) a[0], path))
        ret = blocking_call(t, SYS_statx, (uint64_t) AT_FDCWD, P(t->proc->exe),
                            0, a[3], P(&st), 0);
    if (ret == 0 && path[0] == '\0' &&
        procfs_is_text((int) a[0], st.stx_nlink)) {
        st.stx_size = st.stx_blocks = 0;
        st.stx_nlink = 1;
        st.stx_mode = PROCFS_TEXT_MODE;
    }
    if (ret == 0 && put_struct(t, a[4], &st))
        ret = -EFAULT;
    return ret;
}
