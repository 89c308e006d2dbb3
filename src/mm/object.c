/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mappings in the object area.
 *
 * A mapping is made where the host likes and then moved into the area with
 * mremap, which replaces the area's PROT_NONE in one step: mmap(MAP_FIXED) that
 * fails may leave a hole, into which another thread's mmap could fall.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statvfs.h>

#include "abi/layout.h"
#include "mm/internal.h"
#include "proc/proc.h"

/* The host pages around len bytes that begin at a 4 KiB address or offset. */
typedef struct extent {
    uint64_t base, head, size;
} extent_t;

static extent_t extent_of(const struct mm *mm, uint64_t at, uint64_t len)
{
    uint64_t mask = mm->caps.host_page - 1;
    extent_t e = {.base = at & ~mask, .head = at & mask};

    e.size = (e.head + len + mask) & ~mask;
    return e;
}

static uint64_t page_pieces(const struct mm *mm)
{
    return mm->caps.host_page / GUEST_PAGE_SIZE;
}

static void object_delete(struct mm *mm, object_t *object)
{
    mm->nr_objects--;
    free(object->released);
    free(object);
}

/* A descriptor structure for len bytes, `head` bytes into the extent. NULL: no
 * memory. */
static object_t *object_new(struct mm *mm, const extent_t *e, uint64_t len)
{
    object_t *object = calloc(1, sizeof(*object));
    uint64_t each = page_pieces(mm);

    if (!object)
        return NULL;
    mm->nr_objects++;
    object->fd = -1;
    object->size = e->size;
    object->pieces = len / GUEST_PAGE_SIZE;
    if (each == 1)
        return object;
    object->released = calloc(e->size / mm->caps.host_page, 1);
    if (!object->released) {
        object_delete(mm, object);
        return NULL;
    }
    object->released[0] = e->head / GUEST_PAGE_SIZE;
    object->released[e->size / mm->caps.host_page - 1] +=
        (e->size - e->head - len) / GUEST_PAGE_SIZE;
    return object;
}

/* Where the object goes: a structure and a piece of the area, or nothing. */
static int object_prepare(struct mm *mm, const extent_t *e, uint64_t len,
                          object_ref_t *ref)
{
    object_t *object;

    if (mm->nr_objects >= mm->max_objects)
        return -ENOMEM;
    object = object_new(mm, e, len);
    if (!object)
        return -ENOMEM;
    object->host = hostspace_object_alloc(mm, e->size);
    if (!object->host) {
        object_delete(mm, object);
        return -ENOMEM;
    }
    ref->object = object;
    ref->host = object->host + e->head;
    return 0;
}

static void object_abandon(struct mm *mm, object_ref_t *ref)
{
    hostspace_object_free(mm, ref->object->host, ref->object->size);
    object_delete(mm, ref->object);
    ref->object = NULL;
}

/* Move a mapping of `from` bytes over the object's place. Negative errno. */
static int area_move(object_t *object, void *own, uint64_t from, int flags)
{
    void *to = (void *) object->host;

    if (mremap(own, from, object->size, MREMAP_MAYMOVE | MREMAP_FIXED | flags,
               to) == to)
        return 0;
    return -errno;
}

/*
 * The rights that elfuse itself needs are wider than the guest's: private
 * memory is written on the guest's behalf, and a later mprotect must find it
 * readable. What a shared mapping may become is known by trying.
 */
static uint8_t widen(void *own, uint64_t size, int fd, int prot, bool shared,
                     bool *writable)
{
    struct statvfs fs;
    uint8_t max = PROT_READ;

    *writable = mprotect(own, size, PROT_READ | PROT_WRITE) == 0;
    if (*writable || !shared)
        max |= PROT_WRITE;
    if (!*writable)
        mprotect(own, size, PROT_READ);
    if ((prot & PROT_EXEC) || fstatvfs(fd, &fs) || !(fs.f_flag & ST_NOEXEC))
        max |= PROT_EXEC;
    return max;
}

/* What the host's mmap is asked: placement, locking and population are ours. */
#define FLAGS_OURS                                                 \
    (MAP_FIXED | MAP_FIXED_NOREPLACE | MAP_LOCKED | MAP_POPULATE | \
     MAP_NONBLOCK | MAP_HUGETLB)

int object_map_file(struct mm *mm, int fd, uint64_t offset, uint64_t len,
                    int prot, int flags, object_ref_t *ref)
{
    extent_t e = extent_of(mm, offset, len);
    bool shared = (flags & MAP_TYPE) != MAP_PRIVATE;
    void *own;
    int err;

    if (e.size < len)
        return -ENOMEM;
    own = mmap(NULL, e.size, prot, (flags & ~FLAGS_OURS) | MAP_NORESERVE, fd,
               (off_t) e.base);
    if (own == MAP_FAILED)
        return -errno;
    err = object_prepare(mm, &e, len, ref);
    if (err) {
        munmap(own, e.size);
        return err;
    }
    ref->max_prot =
        widen(own, e.size, fd, prot, shared, &ref->object->writable);
    ref->object->shared = shared;
    ref->object->fd = fd;
    err = area_move(ref->object, own, e.size, 0);
    if (err) {
        munmap(own, e.size);
        object_abandon(mm, ref);
        return err == -EAGAIN ? -EAGAIN : -ENOMEM;
    }
    return 0;
}

int object_map_anonymous(struct mm *mm, uint64_t len, object_ref_t *ref)
{
    extent_t e = extent_of(mm, 0, len);
    void *own;

    if (e.size < len)
        return -ENOMEM;
    own = mmap(NULL, e.size, PROT_READ | PROT_WRITE,
               MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (own == MAP_FAILED)
        return -errno;
    if (object_prepare(mm, &e, len, ref)) {
        munmap(own, e.size);
        return -ENOMEM;
    }
    if (area_move(ref->object, own, e.size, 0)) {
        munmap(own, e.size);
        object_abandon(mm, ref);
        return -ENOMEM;
    }
    ref->object->shared = ref->object->anonymous = true;
    ref->object->writable = true;
    ref->max_prot = PROT_READ | PROT_WRITE | PROT_EXEC;
    return 0;
}

int object_adopt(struct mm *mm, void *own, uint64_t attach, int shmid,
                 uint64_t segment, object_ref_t *ref)
{
    uint64_t len = (segment + GUEST_PAGE_SIZE - 1) & GUEST_PAGE_MASK;
    extent_t e = extent_of(mm, 0, len);
    object_t *object;

    if (object_prepare(mm, &e, len, ref))
        return -ENOMEM;
    object = ref->object;
    ref->max_prot = widen(own, e.size, -1, 0, true, &object->writable);
    object->shared = true;
    object->attach = attach;
    object->shmid = shmid;
    object->segment = segment;
    if (area_move(object, own, e.size, 0) == 0)
        return 0;
    object_abandon(mm, ref);
    return -ENOMEM;
}

int object_map_special(struct mm *mm, void *own, uint64_t len, const char *name,
                       object_ref_t *ref)
{
    extent_t e = extent_of(mm, 0, len);
    object_t *object;
    void *to;

    if (object_prepare(mm, &e, len, ref))
        return -ENOMEM;
    object = ref->object;
    object->special = name;
    object->writable = true;
    /* An old length of 0 duplicates a shared mapping; EINVAL: it is private. */
    if (area_move(object, own, 0, 0) == 0)
        return 0;
    to = mmap((void *) object->host, e.size, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (to == MAP_FAILED) {
        object_abandon(mm, ref);
        return -ENOMEM;
    }
    memcpy(to, own, len);
    return 0;
}

/* A new object takes over what the old one is. */
static void object_inherit(object_t *object, const object_t *from)
{
    object->shared = from->shared;
    object->anonymous = from->anonymous;
    object->writable = from->writable;
    object->fd = from->fd;
    object->special = from->special;
    object->attach = from->attach;
    object->shmid = from->shmid;
    object->segment = from->segment;
}

int object_duplicate(struct mm *mm, const object_t *object, uint64_t host,
                     uint64_t new_len, object_ref_t *ref)
{
    extent_t e = extent_of(mm, host, new_len);

    if (object_prepare(mm, &e, new_len, ref))
        return -ENOMEM;
    object_inherit(ref->object, object);
    if (area_move(ref->object, (void *) e.base, 0, 0)) {
        object_abandon(mm, ref);
        return -ENOMEM;
    }
    return 0;
}

/*
 * Move and enlarge without leaving a hole in the area: first to a place outside
 * it, the old place staying mapped (MREMAP_DONTUNMAP, files since Linux 5.13),
 * then into the area.
 */
static int move_enlarge(object_t *object, const extent_t *old)
{
    void *from = (void *) old->base;
    void *scratch = mmap(NULL, old->size, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (scratch == MAP_FAILED)
        return -ENOMEM;
    if (mremap(from, old->size, old->size,
               MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP,
               scratch) != scratch) {
        munmap(scratch, old->size);
        return -ENOMEM;
    }
    if (area_move(object, scratch, old->size, 0) == 0)
        return 0;
    if (mremap(scratch, old->size, old->size, MREMAP_MAYMOVE | MREMAP_FIXED,
               from) != from)
        elfuse_panic("object_move: cannot move %#lx back", old->base);
    return -ENOMEM;
}

int object_move(struct mm *mm, object_t *object, uint64_t host, uint64_t len,
                uint64_t new_len, bool keep, object_ref_t *ref)
{
    extent_t old = extent_of(mm, host, len);
    extent_t e = extent_of(mm, host, new_len);
    int err;

    if (object_prepare(mm, &e, new_len, ref))
        return -ENOMEM;
    object_inherit(ref->object, object);
    if (keep)
        err = area_move(ref->object, (void *) old.base, old.size,
                        MREMAP_DONTUNMAP);
    else
        err = move_enlarge(ref->object, &old);
    if (err) {
        object_abandon(mm, ref);
        return -ENOMEM;
    }
    object_keep_neighbours(old.base, old.size, old.head, len,
                           ref->object->host);
    return 0;
}

/* n more pieces of the host page at `page` are unused; true: all are now. */
static bool release_edge(struct mm *mm, object_t *object, uint64_t page,
                         uint64_t bytes)
{
    uint8_t *count =
        &object->released[(page - object->host) / mm->caps.host_page];

    *count += bytes / GUEST_PAGE_SIZE;
    if (*count > page_pieces(mm))
        elfuse_panic("object_release: %u pieces of one host page", *count);
    return *count == page_pieces(mm);
}

/* Host pages of [host, end) that nobody uses any more: shrink to them. */
static void release_edges(struct mm *mm, object_t *object, uint64_t *host,
                          uint64_t *end)
{
    uint64_t hp = mm->caps.host_page;
    uint64_t first = *host & ~(hp - 1), last = *end & ~(hp - 1);

    if (first == last) {
        bool all = release_edge(mm, object, first, *end - *host);
        *host = first;
        *end = all ? first + hp : first;
        return;
    }
    if (*host != first)
        *host = release_edge(mm, object, first, first + hp - *host)
                    ? first
                    : first + hp;
    if (*end != last)
        *end = release_edge(mm, object, last, *end - last) ? last + hp : last;
}

void object_release(struct mm *mm, object_t *object, uint64_t host,
                    uint64_t size)
{
    uint64_t end = host + size;

    if (host < object->host || end > object->host + object->size ||
        size / GUEST_PAGE_SIZE > object->pieces)
        elfuse_panic("object_release: %#lx-%#lx is not in use", host, end);
    object->pieces -= size / GUEST_PAGE_SIZE;
    if (object->released)
        release_edges(mm, object, &host, &end);
    if (end > host)
        hostspace_object_free(mm, host, end - host);
    if (object->pieces == 0)
        object_delete(mm, object);
}
