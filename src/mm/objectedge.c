/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host pages larger than 4 KiB at the ends of a range of an object's pieces:
 * what the host can only do to the whole page must leave the other pieces as
 * they were. Until that is done, a sibling thread that touches such a piece may
 * see the file's contents in a private mapping.
 *
 * All copies are by system calls, which say EFAULT for pages beyond the end of
 * the file: there is nothing to keep of those.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "mm/internal.h"

#define HOST_PAGE_MAX 0x10000UL

static bool fetch(char *own, uint64_t from, uint64_t len)
{
    struct iovec local = {own, len}, remote = {(void *) from, len};

    return len && process_vm_readv(getpid(), &local, 1, &remote, 1, 0) ==
                      (ssize_t) len;
}

static void store(uint64_t to, const char *own, uint64_t len)
{
    struct iovec local = {(void *) own, len}, remote = {(void *) to, len};

    if (len)
        (void) !process_vm_writev(getpid(), &local, 1, &remote, 1, 0);
}

void object_keep_neighbours(uint64_t base, uint64_t size, uint64_t head,
                            uint64_t len, uint64_t to)
{
    char moved[HOST_PAGE_MAX], fresh[HOST_PAGE_MAX];
    uint64_t tail = head + len;

    if (fetch(moved, to, head))
        store(base, moved, head);
    /* Behind it a mapping that has grown goes on with what the file has. */
    if (fetch(moved, to + tail, size - tail) &&
        fetch(fresh, base + tail, size - tail)) {
        store(base + tail, moved, size - tail);
        store(to + tail, fresh, size - tail);
    }
}

/* [low, high) of one host page goes back to what the file has. */
static void drop_part(uint64_t page, uint64_t hp, uint64_t low, uint64_t high)
{
    char bounce[HOST_PAGE_MAX];

    if (low >= high || !fetch(bounce, page, hp) ||
        madvise((void *) page, hp, MADV_DONTNEED))
        return;
    store(page, bounce, low - page);
    store(high, bounce + (high - page), page + hp - high);
}

static void zero_part(uint64_t page, uint64_t hp, uint64_t low, uint64_t high)
{
    static const char zeros[HOST_PAGE_MAX];

    (void) page;
    (void) hp;
    if (low < high)
        store(low, zeros, high - low);
}

/* The parts of host pages at both ends of [host, end). */
static void for_edges(uint64_t hp, uint64_t host, uint64_t end,
                      void (*fn)(uint64_t page, uint64_t hp, uint64_t low,
                                 uint64_t high))
{
    uint64_t first = host & ~(hp - 1), last = end & ~(hp - 1);

    if (first == last) {
        fn(first, hp, host, end);
        return;
    }
    if (host != first)
        fn(first, hp, host, first + hp);
    if (end != last)
        fn(last, hp, last, end);
}

/* The host's advice on what lies in whole pages. */
static int whole_pages(uint64_t hp, uint64_t host, uint64_t end, int advice)
{
    uint64_t from = (host + hp - 1) & ~(hp - 1), to = end & ~(hp - 1);

    if (from >= to || madvise((void *) from, to - from, advice) == 0)
        return 0;
    return -errno;
}

int object_advise(struct mm *mm, const object_t *object, uint64_t host,
                  uint64_t len, int advice)
{
    uint64_t hp = mm->caps.host_page, end = host + len;
    int err = whole_pages(hp, host, end, advice);

    if (err)
        return err;
    if (advice == MADV_DONTNEED && !object->shared)
        for_edges(hp, host, end, drop_part);
    else if (advice == MADV_REMOVE)
        for_edges(hp, host, end, zero_part);
    return 0;
}
