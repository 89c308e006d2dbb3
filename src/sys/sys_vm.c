/* SPDX-License-Identifier: Apache-2.0 */
/*
 * process_vm_readv/writev and process_madvise. On the guest itself they go
 * through spans, so that no address reaches elfuse's own memory. On another
 * process they are refused: it may be an elfuse, whose guest's addresses mean
 * nothing to the kernel.
 */
#include <stdlib.h>
#include <sys/uio.h>

#include "sys/call.h"

#define COPY_STEP 65536UL

typedef struct cursor {
    guest_iovec_t *iov;
    uint64_t nr, at, done; /* element, and bytes of it that are behind us */
} cursor_t;

static bool cursor_valid(cursor_t *c)
{
    while (c->at < c->nr && c->done == c->iov[c->at].len) {
        c->at++;
        c->done = 0;
    }
    return c->at < c->nr;
}

/* Copy from one guest range to another in the order of the lists. Linux stops
 * at the first page it cannot reach and returns what was copied. */
static int64_t copy_lists(thread_t *t, cursor_t *from, cursor_t *to)
{
    uint8_t *buf = malloc(COPY_STEP);
    int64_t total = 0;
    int err = 0;

    if (!buf)
        return -ENOMEM;
    while (!err && cursor_valid(from) && cursor_valid(to)) {
        uint64_t src = from->iov[from->at].base + from->done;
        uint64_t dst = to->iov[to->at].base + to->done;
        uint64_t n = COPY_STEP;
        uint64_t page = 0x1000 - (src & 0xfff), page2 = 0x1000 - (dst & 0xfff);

        if (n > from->iov[from->at].len - from->done)
            n = from->iov[from->at].len - from->done;
        if (n > to->iov[to->at].len - to->done)
            n = to->iov[to->at].len - to->done;
        if (get_bytes(t, buf, src, n) || put_bytes(t, dst, buf, n)) {
            /* To the byte: again by pages, where the first failure counts. */
            n = n < page ? n : page;
            n = n < page2 ? n : page2;
            if (get_bytes(t, buf, src, n) || put_bytes(t, dst, buf, n)) {
                err = -EFAULT;
                break;
            }
        }
        from->done += n;
        to->done += n;
        total += (int64_t) n;
    }
    free(buf);
    return total ? total : err;
}

static int64_t vm_copy(thread_t *t, const uint64_t *a, bool write)
{
    guest_iovec_t *iov;
    cursor_t local = {0}, remote = {0};
    int64_t ret;

    if (a[5])
        return -EINVAL;
    iov = calloc(2 * (size_t) IOV_COUNT_MAX, sizeof *iov);
    if (!iov)
        return -ENOMEM;
    local.iov = iov;
    remote.iov = iov + IOV_COUNT_MAX;
    ret = iovec_import(t, a[1], a[2], local.iov);
    if (ret >= 0) {
        local.nr = (uint64_t) ret;
        ret = iovec_get(t, a[3], a[4], remote.iov);
    }
    if (ret >= 0) {
        remote.nr = (uint64_t) ret;
        if (!cursor_valid(&local) || !cursor_valid(&remote))
            ret = 0;
        else if ((pid_t) a[0] == t->proc->pid || (pid_t) a[0] == t->tid)
            ret = write ? copy_lists(t, &local, &remote)
                        : copy_lists(t, &remote, &local);
        else if (host_call(SYS_kill, a[0], 0, 0, 0, 0, 0) == -ESRCH)
            ret = -ESRCH;
        else
            ret = -EPERM;
    }
    free(iov);
    return ret;
}

int64_t sys_process_vm_readv(thread_t *t, const uint64_t *a)
{
    return vm_copy(t, a, false);
}

int64_t sys_process_vm_writev(thread_t *t, const uint64_t *a)
{
    return vm_copy(t, a, true);
}

int64_t sys_process_madvise(thread_t *t, const uint64_t *a)
{
    if (fd_hidden(a[0]))
        return -EBADF;
    if (a[4])
        return -EINVAL;
    return -EPERM;
}
