/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects: mappings of files, shared memory and elfuse's own pages, made by the
 * host in the object area on its own page size. VMAs point at 4 KiB pieces of
 * them. An object is one host mapping made by one mmap (or moved by mremap); it
 * is counted by the VMAs that use it, and host pages that no VMA uses any more
 * are unmapped through the revoking list.
 *
 * mm->lock is held.
 */
#ifndef ELFUSE_MM_OBJECT_H
#define ELFUSE_MM_OBJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct mm;

typedef struct object {
    uint32_t references; /* VMAs */
    bool shared;
    bool special;        /* elfuse's own memory: not unmapped */
    bool file;           /* has a name in maps */
    uint64_t host, size; /* of the whole host mapping */
    dev_t dev;           /* for /proc/self/maps */
    ino_t ino;
    char *path; /* as the kernel would print it, or "[vdso]" */
} object_t;

/*
 * Called from the revoking list: nobody can see the host pages [host, host +
 * size) of the object through the reference given up with gather_free_object()
 * any more. Drops that reference, unmaps the host pages that no VMA uses, frees
 * the object with its last reference.
 */
void object_release(struct mm *mm, struct object *object, uint64_t host,
                    uint64_t size);

#endif
