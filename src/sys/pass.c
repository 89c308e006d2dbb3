/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The generic path: turn each pointer into one the host can use, as the table
 * describes it, make the call, give results back.
 *
 * A pointer that the guest cannot use becomes bad_pointer(): the kernel then
 * finds the other errors first, as it would for a native program, has the same
 * side effects, and answers EFAULT itself.
 */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sys/call.h"
#include "sys/procfs_view.h"

/* Pieces of one argument; more than one is bounced through a buffer. */
#define PASS_PIECES 4
#define PASS_PATHS  3
#define PASS_ARENA  1024

/* One pointer argument while the call runs. */
typedef struct pointer {
    span_set_t span;
    struct iovec iov[PASS_PIECES];
    void *bounce;
    size_t size;
    uint64_t guest;
    bool held;      /* the span is registered */
    bool copy_back; /* bounce goes back to the guest */
    bool by_result; /* ... as many bytes as the call returned */
    bool allocated;
} pointer_t;

typedef struct pass {
    thread_t *t;
    const uint64_t *a;
    const sys_entry_t *entry;
    uint64_t host[SYS_ARGS];
    pointer_t ptr[SYS_ARGS];
    unsigned nr_ptrs;
    unsigned nr_paths;
    size_t arena_used;
    char (*path)[PATH_MAX];
    uint8_t *arena;
} pass_t;

uint64_t bad_pointer(uint64_t guest, uint64_t len)
{
    static _Atomic uint64_t page;
    /* Relaxed: an address that nobody looks behind. */
    uint64_t now = atomic_load_explicit(&page, memory_order_relaxed), mine;

    if (!user_range(guest, len))
        return 0xffff000000001000UL;
    if (now)
        return now;
    void *p =
        mmap(NULL, 0x10000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        elfuse_panic("bad_pointer: no address space: %d", errno);
    mine = P(p);
    if (atomic_compare_exchange_strong_explicit(
            &page, &now, mine, memory_order_relaxed, memory_order_relaxed))
        return mine;
    munmap(p, 0x10000); /* another thread was faster */
    return now;
}

static void *bounce_alloc(pass_t *p, pointer_t *ptr, size_t size)
{
    size_t rounded = (size + 15) & ~(size_t) 15;

    if (rounded <= PASS_ARENA - p->arena_used) {
        ptr->bounce = p->arena + p->arena_used;
        p->arena_used += rounded;
    } else {
        ptr->bounce = malloc(size);
        ptr->allocated = true;
    }
    return ptr->bounce;
}

/*
 * A span over what is accessible of `size` bytes at `guest`. The host address
 * when that is all of them in one piece; 0 when the argument has to be bounced;
 * *ptr, the next free one, is taken in both cases. Else a bad pointer.
 */
static uint64_t pointer_span(pass_t *p, pointer_t *ptr, uint64_t guest,
                             size_t size, enum span_access access)
{
    thread_t *t = p->t;

    if (size == 0 || span_get(t->proc->mm, &t->cpu, guest, size, access,
                              ptr->iov, PASS_PIECES, &ptr->span))
        return bad_pointer(guest, size);
    p->nr_ptrs++;
    ptr->bounce = NULL;
    ptr->guest = guest;
    ptr->size = size;
    ptr->allocated = ptr->copy_back = ptr->by_result = false;
    ptr->held = ptr->span.nr == 1 && ptr->span.bytes == size;
    if (ptr->held)
        return P(ptr->iov[0].iov_base);
    span_put(&t->cpu, &ptr->span);
    return 0;
}

/*
 * `size` bytes at `guest`, all of which must be accessible. `access` is a set
 * of SPAN_READ and SPAN_WRITE. Returns what the host is to be given.
 */
static uint64_t pointer_whole(pass_t *p, uint64_t guest, size_t size,
                              enum span_access access)
{
    pointer_t *ptr = &p->ptr[p->nr_ptrs];
    uint64_t host;

    if (!guest)
        return 0;
    host = pointer_span(p, ptr, guest, size, access);
    if (host)
        return host;
    if (!bounce_alloc(p, ptr, size) ||
        get_bytes(p->t, ptr->bounce, guest, size))
        return bad_pointer(guest, size);
    ptr->copy_back = (access & SPAN_WRITE) != 0;
    return P(ptr->bounce);
}

/*
 * An output buffer of which the call fills as much as its result says: only
 * that much has to be accessible.
 */
static uint64_t pointer_result(pass_t *p, uint64_t guest, size_t size)
{
    pointer_t *ptr = &p->ptr[p->nr_ptrs];
    uint64_t host;

    if (!guest)
        return 0;
    host = pointer_span(p, ptr, guest, size, SPAN_WRITE);
    if (host)
        return host;
    if (!bounce_alloc(p, ptr, size))
        return bad_pointer(guest, size);
    ptr->copy_back = ptr->by_result = true;
    return P(ptr->bounce);
}

static uint64_t pointer_string(pass_t *p, uint64_t guest)
{
    char *buf = p->path[p->nr_paths];
    thread_t *t = p->t;
    ssize_t n;

    if (!guest)
        return 0;
    n = copy_string_from_guest(t->proc->mm, &t->cpu, buf, guest, PATH_MAX);
    if (n == -EFAULT)
        return bad_pointer(guest, 1);
    /* Longer than any name may be: the kernel says so in each call's way. */
    if (n < 0)
        buf[PATH_MAX - 1] = '\0';
    p->nr_paths++;
    return P(buf);
}

/* The call changes what /proc/self/exe leads to: then the path becomes that of
 * the guest's program. */
static void path_of_exe(pass_t *p, const arg_t *arg, int dirfd, char *path)
{
    unsigned flags = arg->size - PATH_CHANGES(0);
    proc_t *proc = p->t->proc;

    if (flags < SYS_ARGS && (p->a[flags] & AT_SYMLINK_NOFOLLOW))
        return;
    if (proc->exe && procfs_path_is_exe(p->t, dirfd, path))
        snprintf(path, PATH_MAX, "%s", proc->exe);
}

static int64_t arg_path(pass_t *p, const arg_t *arg, unsigned i)
{
    int dirfd = arg->ref == NO_REF ? AT_FDCWD : (int) p->a[arg->ref];
    int64_t ret;

    if (!p->a[i]) {
        p->host[i] = 0;
        return 0;
    }
    ret = path_get(p->t, dirfd, p->a[i], p->path[p->nr_paths]);
    if (ret == -EFAULT) {
        p->host[i] = bad_pointer(p->a[i], 1);
        return 0;
    }
    if (ret)
        return ret;
    if (arg->size)
        path_of_exe(p, arg, dirfd, p->path[p->nr_paths]);
    p->host[i] = P(p->path[p->nr_paths++]);
    return 0;
}

/* A length beyond what the call can use: the kernel refuses it or stops early
 * without reading the buffer to its end. */
static uint64_t arg_in_buf(pass_t *p, const arg_t *arg, unsigned i)
{
    uint64_t len = p->a[arg->ref];

    if (len > arg->size)
        return p->a[i] ? bad_pointer(p->a[i], 1) : 0;
    return pointer_whole(p, p->a[i], len, SPAN_READ);
}

static uint64_t arg_array(pass_t *p, const arg_t *arg, unsigned i,
                          enum span_access access)
{
    uint32_t count = (uint32_t) p->a[arg->ref];

    /* No call takes a million: a larger count is an error or negative. */
    if (count > (1U << 20))
        return p->a[i] ? bad_pointer(p->a[i], 1) : 0;
    return pointer_whole(p, p->a[i], (size_t) count * arg->size, access);
}

static uint64_t arg_sized(pass_t *p, const arg_t *arg, unsigned i)
{
    uint32_t size;

    if (!p->a[i] || get_struct(p->t, &size, p->a[i]))
        return p->a[i] ? bad_pointer(p->a[i], 1) : 0;
    if (size == 0)
        size = arg->size;
    if (size > 4096)
        size = sizeof size;
    return pointer_whole(p, p->a[i], size, SPAN_READ);
}

static int64_t arg_prepare(pass_t *p, const arg_t *arg, unsigned i)
{
    uint64_t value = p->a[i], len;

    switch (arg->kind) {
    case ARG_FD:
        if (fd_hidden(value))
            return -EBADF;
        break;
    case ARG_PATH:
        return arg_path(p, arg, i);
    case ARG_STR:
        value = pointer_string(p, value);
        break;
    case ARG_IN:
        value = pointer_whole(p, value, arg->size, SPAN_READ);
        break;
    case ARG_OUT:
        value = pointer_whole(p, value, arg->size, SPAN_WRITE);
        break;
    case ARG_INOUT:
        value = pointer_whole(p, value, arg->size, SPAN_READ | SPAN_WRITE);
        break;
    case ARG_IN_SIZED:
        value = arg_sized(p, arg, i);
        break;
    case ARG_IN_BUF:
        value = arg_in_buf(p, arg, i);
        break;
    case ARG_OUT_BUF:
        len = p->a[arg->ref] < arg->size ? p->a[arg->ref] : arg->size;
        p->host[arg->ref] = len;
        value = pointer_result(p, value, len);
        break;
    case ARG_OUT_VAR:
        len = p->a[arg->ref];
        value = len > arg->size ? (value ? bad_pointer(value, 1) : 0)
                                : pointer_whole(p, value, len, SPAN_WRITE);
        break;
    case ARG_IN_ARR:
        value = arg_array(p, arg, i, SPAN_READ);
        break;
    case ARG_OUT_ARR:
        value = arg_array(p, arg, i, SPAN_WRITE);
        break;
    default:
        break;
    }
    p->host[i] = value;
    return 0;
}

/* Give back what was bounced; release spans. */
static int64_t pass_finish(pass_t *p, int64_t ret)
{
    for (unsigned i = 0; i < p->nr_ptrs; i++) {
        pointer_t *ptr = &p->ptr[i];
        size_t n = ptr->size;

        if (ptr->held)
            span_put(&p->t->cpu, &ptr->span);
        if (ptr->by_result && ptr->copy_back)
            n = ret <= 0 ? 0 : (uint64_t) ret < n ? (uint64_t) ret : n;
        if (ptr->copy_back && n && ret != -EFAULT &&
            put_bytes(p->t, ptr->guest, ptr->bounce, n))
            ret = -EFAULT;
        if (ptr->allocated)
            free(ptr->bounce);
    }
    return ret;
}

/* Calls with pointers; apart, so that the others need no large frame. */
static __attribute__((noinline)) int64_t pass_pointers(thread_t *t, unsigned nr,
                                                       const sys_entry_t *entry,
                                                       const uint64_t *a)
{
    char path[PASS_PATHS][PATH_MAX];
    uint8_t arena[PASS_ARENA] __attribute__((aligned(16)));
    pass_t p;
    int64_t ret = 0;

    p.t = t;
    p.a = a;
    p.entry = entry;
    p.nr_ptrs = 0;
    p.nr_paths = 0;
    p.arena_used = 0;
    p.path = path;
    p.arena = arena;
    for (unsigned i = 0; i < SYS_ARGS; i++)
        p.host[i] = a[i];
    /* Descriptors first, as the kernel looks them up before it copies. */
    for (unsigned i = 0; i < SYS_ARGS && ret == 0; i++)
        if (entry->arg[i].kind == ARG_FD && fd_hidden(a[i]))
            ret = -EBADF;
    for (unsigned i = 0; i < SYS_ARGS && ret == 0; i++) {
        uint64_t len = p.host[i];

        if (entry->arg[i].kind == ARG_NONE)
            break;
        ret = arg_prepare(&p, &entry->arg[i], i);
        /* An OUT_BUF before it has already set this length. */
        if (entry->arg[i].kind == ARG_INT)
            p.host[i] = len;
    }
    if (ret == 0)
        ret = blocking_call(t, nr, p.host[0], p.host[1], p.host[2], p.host[3],
                            p.host[4], p.host[5]);
    return pass_finish(&p, ret);
}

int64_t sys_pass(thread_t *t, unsigned nr, const sys_entry_t *entry,
                 const uint64_t *a)
{
    for (unsigned i = 0; i < SYS_ARGS; i++) {
        unsigned kind = entry->arg[i].kind;

        if (kind == ARG_NONE)
            break;
        if (kind > ARG_FD)
            return pass_pointers(t, nr, entry, a);
        if (kind == ARG_FD && fd_hidden(a[i]))
            return -EBADF;
    }
    return blocking_call(t, nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}
