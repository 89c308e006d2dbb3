/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elfuse's own copies from and to guest memory, through spans. Private
 * anonymous memory is always there; an object's pages may be gone (a truncated
 * file), so those are copied by a system call that says EFAULT where a plain
 * access would be SIGBUS: process_vm_readv on ourselves, or where a security
 * policy refuses that, /proc/self/mem.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "mm/internal.h"
#include "mm/span.h"

#define PIECES 8

static int copy_by_mem(void *object, void *own, size_t len,
                       enum span_access access)
{
    int fd = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    off_t at = (off_t) (uintptr_t) object;
    ssize_t n;

    if (fd < 0)
        return -EFAULT;
    n = access == SPAN_READ ? pread(fd, own, len, at)
                            : pwrite(fd, own, len, at);
    close(fd);
    return n == (ssize_t) len ? 0 : -EFAULT;
}

/* Copy between an object's memory and elfuse's own. */
static int copy_object(void *object, void *own, size_t len,
                       enum span_access access)
{
    struct iovec local = {own, len}, remote = {object, len};
    ssize_t n = access == SPAN_READ
                    ? process_vm_readv(getpid(), &local, 1, &remote, 1, 0)
                    : process_vm_writev(getpid(), &local, 1, &remote, 1, 0);

    if (n < 0 && (errno == EPERM || errno == ENOSYS))
        return copy_by_mem(object, own, len, access);
    return n == (ssize_t) len ? 0 : -EFAULT;
}

static int copy_piece(struct mm *mm, void *guest, void *own, size_t len,
                      enum span_access access)
{
    if (hostspace_is_object(mm, guest))
        return copy_object(guest, own, len, access);
    if (access == SPAN_READ)
        memcpy(own, guest, len);
    else
        memcpy(guest, own, len);
    return 0;
}

static int copy_guest(struct mm *mm, struct mm_cpu *cpu, uint64_t addr,
                      void *own, size_t len, enum span_access access)
{
    uint8_t *at = own;

    while (len) {
        struct iovec iov[PIECES];
        span_set_t set;
        int error = span_get(mm, cpu, addr, len, access, iov, PIECES, &set);

        for (int i = 0; !error && i < set.nr; i++) {
            error = copy_piece(mm, iov[i].iov_base, at, iov[i].iov_len, access);
            at += iov[i].iov_len;
        }
        span_put(cpu, &set);
        if (error)
            return error;
        addr += set.bytes;
        len -= set.bytes;
    }
    return 0;
}

int copy_from_guest(struct mm *mm, struct mm_cpu *cpu, void *to, uint64_t from,
                    size_t len)
{
    return copy_guest(mm, cpu, from, to, len, SPAN_READ);
}

int copy_to_guest(struct mm *mm, struct mm_cpu *cpu, uint64_t to,
                  const void *from, size_t len)
{
    /* Only read: SPAN_WRITE writes to the guest. */
    return copy_guest(mm, cpu, to, (void *) (uintptr_t) from, len, SPAN_WRITE);
}

static int clear_object(uint8_t *object, size_t len)
{
    static uint8_t zeros[GUEST_PAGE_SIZE]; /* never written */

    while (len) {
        size_t n = len < sizeof(zeros) ? len : sizeof(zeros);

        if (copy_object(object, zeros, n, SPAN_WRITE))
            return -EFAULT;
        object += n;
        len -= n;
    }
    return 0;
}

int clear_guest(struct mm *mm, struct mm_cpu *cpu, uint64_t to, size_t len)
{
    while (len) {
        struct iovec iov[PIECES];
        span_set_t set;
        int error = span_get(mm, cpu, to, len, SPAN_WRITE, iov, PIECES, &set);

        for (int i = 0; !error && i < set.nr; i++) {
            if (hostspace_is_object(mm, iov[i].iov_base))
                error = clear_object(iov[i].iov_base, iov[i].iov_len);
            else
                memset(iov[i].iov_base, 0, iov[i].iov_len);
        }
        span_put(cpu, &set);
        if (error)
            return error;
        to += set.bytes;
        len -= set.bytes;
    }
    return 0;
}

/* One piece of a string, copied once, since the guest may change it meanwhile.
 * Bytes before the NUL, or len when there is none, or -EFAULT. */
static ssize_t copy_string_piece(struct mm *mm, char *to, void *guest,
                                 size_t len)
{
    char *nul;

    if (!hostspace_is_object(mm, guest)) {
        nul = memccpy(to, guest, 0, len);
        return nul ? nul - 1 - to : (ssize_t) len;
    }
    if (copy_object(guest, to, len, SPAN_READ))
        return -EFAULT;
    nul = memchr(to, 0, len);
    return nul ? nul - to : (ssize_t) len;
}

ssize_t copy_string_from_guest(struct mm *mm, struct mm_cpu *cpu, char *to,
                               uint64_t from, size_t max)
{
    size_t done = 0;

    while (done < max) {
        size_t page = GUEST_PAGE_SIZE - (from & (GUEST_PAGE_SIZE - 1));
        size_t want = max - done < page ? max - done : page;
        struct iovec iov;
        span_set_t set;
        ssize_t n;

        /* Page by page: what lies behind the NUL need not be accessible. */
        if (span_get(mm, cpu, from, want, SPAN_READ, &iov, 1, &set))
            return -EFAULT;
        n = copy_string_piece(mm, to + done, iov.iov_base, set.bytes);
        span_put(cpu, &set);
        if (n < 0)
            return n;
        done += (size_t) n;
        if ((size_t) n < set.bytes)
            return (ssize_t) done;
        from += set.bytes;
    }
    return -ENAMETOOLONG;
}

static int cmpxchg_object(void *object, uint32_t *found, uint32_t next)
{
    uint32_t want = *found;

    if (copy_object(object, found, sizeof(*found), SPAN_READ))
        return -EFAULT;
    return *found == want ? copy_object(object, &next, sizeof(next), SPAN_WRITE)
                          : 0;
}

int cmpxchg_guest(struct mm *mm, struct mm_cpu *cpu, uint64_t addr,
                  uint32_t *found, uint32_t next)
{
    struct iovec iov;
    span_set_t set;
    int error =
        span_get(mm, cpu, addr, sizeof(*found), SPAN_WRITE, &iov, 1, &set);

    if (error)
        return error;
    if (hostspace_is_object(mm, iov.iov_base))
        error = cmpxchg_object(iov.iov_base, found, next);
    else
        /* seq_cst: as the guest's own, on words that are locks. */
        __atomic_compare_exchange_n((uint32_t *) iov.iov_base, found, next,
                                    false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    span_put(cpu, &set);
    return error;
}
