/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Large tables of which little is ever used: zero, committed page by page as
 * they are written. Not in huge pages, or one bit would cost 2 MiB on a host
 * that uses them everywhere.
 */
#ifndef ELFUSE_MM_LAZYMAP_H
#define ELFUSE_MM_LAZYMAP_H

#include <stddef.h>
#include <sys/mman.h>

/* NULL: no memory. munmap gives it back. */
static inline void *lazy_map(size_t size, int prot)
{
    void *p = mmap(NULL, size, prot,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    /* Fails where there are no huge pages. */
    (void) madvise(p, size, MADV_NOHUGEPAGE);
    return p;
}

#endif
