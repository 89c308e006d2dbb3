/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the functions of owned calls share: the host call, access to guest
 * structures, checks on descriptors and paths.
 */
#ifndef ELFUSE_SYS_CALL_H
#define ELFUSE_SYS_CALL_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

#include "mm/mm.h"
#include "proc/proc.h"
#include "sys/fdspace.h"
#include "sys/sys.h"
#include "sys/table.h"

/*
 * The host's own system call: the result as the kernel gives it, -errno for
 * failure. errno and libc's caches stay out of it.
 */
#ifdef __aarch64__
static inline int64_t host_call(uint64_t nr, uint64_t a0, uint64_t a1,
                                uint64_t a2, uint64_t a3, uint64_t a4,
                                uint64_t a5)
{
    register uint64_t x8 __asm__("x8") = nr;
    register uint64_t x0 __asm__("x0") = a0;
    register uint64_t x1 __asm__("x1") = a1;
    register uint64_t x2 __asm__("x2") = a2;
    register uint64_t x3 __asm__("x3") = a3;
    register uint64_t x4 __asm__("x4") = a4;
    register uint64_t x5 __asm__("x5") = a5;

    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory", "cc");
    return (int64_t) x0;
}
#else
/* Unit tests on the build machine say what the host answers. */
int64_t host_call(uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2,
                  uint64_t a3, uint64_t a4, uint64_t a5);
#endif

/*
 * A call on the guest's behalf that may block or be interrupted: a safe point
 * of the thread (proc/world.h), so no lock may be held. Returns CALL_RESTART
 * when a signal came before it began, or when Linux would restart it after the
 * handler: nothing has happened then, and the owned call returns the same at
 * once if it has done nothing yet either.
 */
#ifdef __aarch64__
int64_t blocking_call(thread_t *t, uint64_t nr, uint64_t a0, uint64_t a1,
                      uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5);
/* proc/blocking.S: the call itself, without the safe point. */
int64_t blocking_svc(const _Atomic uint32_t *pending, uint64_t nr, uint64_t a0,
                     uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4,
                     uint64_t a5);
#else
#define blocking_call(t, ...) host_call(__VA_ARGS__)
#endif

/* An owned call's result: the guest is to execute its svc again, after the
 * signal's handler. Linux's ERESTARTSYS, which no program sees. */
#define CALL_RESTART (-512)
/* An owned call that has set the registers itself, x0 among them. */
#define CALL_DONE (-513)

#define P(pointer) ((uint64_t) (uintptr_t) (pointer))

static inline int get_bytes(thread_t *t, void *to, uint64_t from, size_t len)
{
    return copy_from_guest(t->proc->mm, &t->cpu, to, from, len);
}

static inline int put_bytes(thread_t *t, uint64_t to, const void *from,
                            size_t len)
{
    return copy_to_guest(t->proc->mm, &t->cpu, to, from, len);
}

/* A structure from or to the guest: 0 or -EFAULT. */
#define get_struct(t, ptr, from) get_bytes(t, ptr, from, sizeof *(ptr))
#define put_struct(t, to, ptr)   put_bytes(t, to, ptr, sizeof *(ptr))

/*
 * A path from the guest, resolved: `buf` has PATH_MAX bytes and holds what the
 * host is to be given. dirfd is what the path is relative to. Returns 0,
 * -EFAULT, -ENAMETOOLONG or -ENOENT. Every call that takes a path comes through
 * here (path.c).
 */
int path_get(thread_t *t, int dirfd, uint64_t guest, char *buf);
int path_resolve(thread_t *t, int dirfd, char *path);
/* The same, with *path as the host is to be given it: a path that the guest
 * cannot read is one that the host cannot read either, and no error here, so
 * that the host finds the other errors first. */
int path_get_host(thread_t *t, int dirfd, uint64_t guest, char *buf,
                  uint64_t *host);

/* Has the calling thread this capability, CAP_*? (sys_limits.c) */
bool sys_capable(unsigned cap);

/* False for a range that reaches past user space: some calls look at that (the
 * kernel's access_ok) before they look at anything else. */
static inline bool user_range(uint64_t guest, uint64_t len)
{
    const uint64_t top = 1UL << 48;
    uint64_t addr = span_untag(guest);

    return len <= top && addr <= top - len;
}

/*
 * A host address for a range that the guest cannot use: the kernel answers
 * EFAULT for it, in its own order of checks. Nothing is mapped there; for a
 * range beyond user space it is beyond the host's too.
 */
uint64_t bad_pointer(uint64_t guest, uint64_t len);

/* sys/pass.c: serve the call by its table entry. */
int64_t sys_pass(thread_t *t, unsigned nr, const sys_entry_t *entry,
                 const uint64_t *a);

/* Host iovec and guest iovec have one layout (arm64 LP64). */
typedef struct guest_iovec {
    uint64_t base, len;
} guest_iovec_t;

#define IOV_COUNT_MAX 1024U
/* Linux's MAX_RW_COUNT: what one read or write may move. */
#define RW_COUNT_MAX 0x7ffff000UL

/* Copy in and check an iovec: count of elements or -errno, lengths clamped so
 * that the sum is at most RW_COUNT_MAX. `iov` has IOV_COUNT_MAX elements. Of
 * the count, Linux takes 32 bits. */
int64_t iovec_get(thread_t *t, uint64_t guest, uint64_t count,
                  guest_iovec_t *iov);
/* The same for buffers of the calling process: all must be user addresses. */
int64_t iovec_import(thread_t *t, uint64_t guest, uint64_t count,
                     guest_iovec_t *iov);

#endif
