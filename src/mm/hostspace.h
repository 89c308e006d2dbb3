/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The host reservation: one PROT_NONE range, aligned to 32 MiB. Its first 2^S
 * bytes are user space (guest address v is host address H + v for private
 * anonymous memory), the rest is the object area, where files and shared memory
 * are mapped. Chunks of user space become readable and writable as they come
 * into use; windows (window.h) give parts of both to the VM.
 *
 * mm->lock is held, unless said otherwise. Sizes and addresses are multiples of
 * the host page unless said otherwise.
 */
#ifndef ELFUSE_MM_HOSTSPACE_H
#define ELFUSE_MM_HOSTSPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mm;
struct free_space;

typedef struct hostspace {
    uint8_t *base; /* H; aligned to 32 MiB */
    uint64_t size; /* of user space and object area together */
    uint64_t object_base, object_end; /* host addresses */
    size_t host_page;
    uint64_t last_chunk;     /* known to be accessible */
    uint64_t *chunks;        /* bitmap of those that are */
    uint64_t nr_chunks;      /* of user space */
    bool huge;               /* huge pages can be had by advice */
    struct free_space *free; /* of the object area (objectspace.c) */
} hostspace_t;

/* Reserve it, for user space of at most 2^bits bytes. NULL: no room. */
hostspace_t *hostspace_create(size_t host_page, unsigned bits,
                              uint64_t *task_size);

/* What becomes readable and writable at once. */
#define CHUNK_SHIFT 25
#define CHUNK_SIZE  (1UL << CHUNK_SHIFT)

/* Host address of private anonymous page v. Any thread. */
void *hostspace_ptr(struct mm *mm, uint64_t v);
/* Is this host address, of a span, in the object area, where an access may
 * fail? Any thread. */
bool hostspace_is_object(struct mm *mm, const void *host);

/* Make [start, end) of user space accessible to the host. -ENOMEM. */
int hostspace_commit(struct mm *mm, uint64_t start, uint64_t end);
/* Let the block of 2 MiB at v use a host huge page when it is first written. */
void hostspace_advise_huge(struct mm *mm, uint64_t v);
/* Give back the memory of [start, end), guest pages: host pages wholly inside
 * are dropped, the edges zeroed. Reads zero afterwards. */
void hostspace_drop(struct mm *mm, uint64_t start, uint64_t end);
/* Zero [start, end), guest pages, which must be committed. */
void hostspace_zero(struct mm *mm, uint64_t start, uint64_t end);
/* Move the memory of [from, from + len) to `to`, which is accessible and holds
 * nothing; `from` reads zero afterwards. False: `from` is as it was, copy. */
bool hostspace_move(struct mm *mm, uint64_t from, uint64_t to, uint64_t len);

/*
 * A free piece of the object area, PROT_NONE, of size bytes, aligned to 2 MiB
 * (32 MiB on 16 KiB hosts) when it is large enough to matter. 0: none.
 * hostspace_object_free puts PROT_NONE back over it; pieces of what was
 * allocated may be freed.
 */
uint64_t hostspace_object_alloc(struct mm *mm, uint64_t size);
void hostspace_object_free(struct mm *mm, uint64_t host, uint64_t size);

/* objectspace.c: free pieces of [base, end). NULL: no memory. */
struct free_space *free_space_create(uint64_t base, uint64_t end);
uint64_t free_space_alloc(struct free_space *fs, uint64_t size, uint64_t align);
void free_space_put(struct free_space *fs, uint64_t start, uint64_t size);

#endif
