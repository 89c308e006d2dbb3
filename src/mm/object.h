/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Objects: mappings of files, shared memory and elfuse's own pages, made by the
 * host in the object area on its own page size. VMAs point at 4 KiB pieces of
 * them. Each piece of an object is used by at most one VMA page (what would use
 * it twice, mremap of a shared mapping with an old length of 0, gets an object
 * of its own), so an object needs no list of its VMAs: it counts the pieces
 * that are still in use, and host pages of which no piece is in use any more
 * are unmapped, after the invalidation (gather_free_object).
 *
 * Names, devices and inodes are not kept: /proc/self/maps takes them from the
 * host's own, where they are as current as the kernel's.
 *
 * mm->lock is held. Guest lengths and file offsets are multiples of 4 KiB.
 */
#ifndef ELFUSE_MM_OBJECT_H
#define ELFUSE_MM_OBJECT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct mm;

typedef struct object {
    uint64_t host, size; /* of the host mapping, multiples of the host page */
    uint64_t pieces;     /* 4 KiB pieces that VMAs use */
    uint8_t *released;   /* for each host page, pieces no longer used; NULL
                            when the host page is one piece */
    bool shared;         /* writes go to the file or shared memory */
    bool anonymous;      /* shared anonymous memory: no file of the guest's */
    bool writable;       /* the host mapping may be written */
    int fd;              /* descriptor number it was mapped from, or -1: two
                            objects of one file print as one VMA in maps */
    const char *special; /* "[vdso]", "[vvar]"; NULL otherwise */
    uint64_t attach;     /* number of the shmat that it comes from, 0: none */
    uint64_t segment;    /* bytes of its shared memory segment */
    int shmid;
} object_t;

/* What object_map gives: the piece for the first guest page. */
typedef struct object_ref {
    object_t *object;
    uint64_t host;
    uint8_t max_prot;
} object_ref_t;

/*
 * Map len bytes of fd at offset with the host's mmap: the guest's prot and
 * flags decide the errors. Negative errno of mmap, -ENOMEM.
 */
int object_map_file(struct mm *mm, int fd, uint64_t offset, uint64_t len,
                    int prot, int flags, object_ref_t *ref);
/* Shared anonymous memory. */
int object_map_anonymous(struct mm *mm, uint64_t len, object_ref_t *ref);
/*
 * A System V segment that the host has attached at `own`, as the shmat numbered
 * `attach`: its pages move into the area, and `own` is gone when this succeeds.
 */
int object_adopt(struct mm *mm, void *own, uint64_t attach, int shmid,
                 uint64_t segment, object_ref_t *ref);
/* elfuse's own page(s) at `own`: the same memory when it is a shared mapping,
 * a copy otherwise. */
int object_map_special(struct mm *mm, void *own, uint64_t len, const char *name,
                       object_ref_t *ref);
/*
 * A second mapping, new_len bytes, of the shared memory behind piece `host`
 * (mremap of a shared mapping). The first one stays.
 */
int object_duplicate(struct mm *mm, const object_t *object, uint64_t host,
                     uint64_t new_len, object_ref_t *ref);
/*
 * Move the private mapping behind [host, host + len), copied pages included, to
 * a new object of new_len >= len bytes. No EL0 can reach it any more. The old
 * pieces show the file's contents afterwards; with `keep` they stay in use (and
 * new_len == len), else they are still to be given up with object_release().
 */
int object_move(struct mm *mm, object_t *object, uint64_t host, uint64_t len,
                uint64_t new_len, bool keep, object_ref_t *ref);

/*
 * The host's madvise on pieces [host, host + len): DONTNEED and REMOVE do what
 * they should to parts of host pages too, other advice leaves those out.
 * Returns 0 or what the host says.
 */
int object_advise(struct mm *mm, const object_t *object, uint64_t host,
                  uint64_t len, int advice);
/*
 * The host pages [base, base + size) of a private mapping were moved to `to`
 * for the sake of len bytes from base + head on: put the contents of the other
 * pieces back. (objectedge.c)
 */
void object_keep_neighbours(uint64_t base, uint64_t size, uint64_t head,
                            uint64_t len, uint64_t to);

/*
 * Pieces [host, host + size) are used by no VMA and no descriptor or TLB entry
 * any more: called by gather.c when the invalidation has completed. The object
 * is freed with its last piece.
 */
void object_release(struct mm *mm, object_t *object, uint64_t host,
                    uint64_t size);

#endif
