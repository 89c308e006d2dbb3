/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one way from a guest address to host memory. Nothing else turns a guest
 * address into a pointer.
 *
 * A span is a piece of guest memory that is contiguous in the host. Asking for
 * one materialises what is lazy, checks what the kernel would check (the page's
 * own permissions, for EL0), and gives the accessible PREFIX; the caller gets
 * -EFAULT only if that is empty and there was a byte to touch. A zero length
 * touches nothing.
 *
 * A span is registered in a slot of the calling thread until it is put:
 * memory under a registered span is not zeroed, dropped, reused or unmapped in
 * the host. No lock is needed; none that is above mm->lock may be held.
 */
#ifndef ELFUSE_MM_SPAN_H
#define ELFUSE_MM_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct mm;
struct mm_cpu;

/* Spans that one thread can hold at once: the pointers of one system call. */
#define SPAN_SLOTS 8
/* So much untouched memory is prepared for one span; multiple of a page. */
#define SPAN_STEP (1UL << 20)

typedef struct span_slot {
    _Atomic uint64_t start; /* guest address; 0 with end 0: free */
    _Atomic uint64_t end;
} span_slot_t;

enum span_access { SPAN_READ = 1, SPAN_WRITE = 2 };

typedef struct span_set {
    int slot;     /* in mm_cpu_t.span; -1: nothing registered */
    int nr;       /* pieces in iov */
    size_t bytes; /* their sum: the accessible prefix */
    struct iovec *iov;
} span_set_t;

/*
 * Describe the accessible prefix of [addr, addr + len) in at most `max` pieces
 * (the prefix ends early when they do not suffice; two adjacent pieces are
 * joined when they are contiguous in the host). It ends early, too, after
 * SPAN_STEP bytes of memory that had to be materialised first, so that a read
 * of ten bytes into an untouched gigabyte does not prepare a gigabyte: to go
 * on, use what was given and ask for the rest. Returns 0, or -EFAULT when len
 * is not 0 and not even the first byte is accessible. On -EFAULT nothing is
 * registered. addr may carry a tag in its top byte if span_tags says so.
 */
/* May addresses in system calls carry a tag? As on Linux, not before
 * prctl(PR_SET_TAGGED_ADDR_CTRL); memory calls ignore tags in any case. */
extern bool span_tags;

/* Linux's untagged_addr, as access_ok() uses it: sign extension from bit 55. */
static inline uint64_t span_untag(uint64_t addr)
{
    return span_tags ? (uint64_t) ((int64_t) (addr << 8) >> 8) : addr;
}

int span_get(struct mm *mm, struct mm_cpu *cpu, uint64_t addr, size_t len,
             enum span_access access, struct iovec *iov, int max,
             span_set_t *set);
void span_put(struct mm_cpu *cpu, span_set_t *set);
/*
 * Does a registered span of any thread overlap [start, end)? For whoever frees
 * memory, after its descriptors were made invalid; see gather.c. mm->lock.
 */
bool span_overlaps(struct mm *mm, uint64_t start, uint64_t end);

/* The part of [start, end) that the lowest of these spans covers, in *from and
 * *to. False: there is none. mm->lock. */
bool span_find(struct mm *mm, uint64_t start, uint64_t end, uint64_t *from,
               uint64_t *to);

/*
 * elfuse's own copies. All or nothing in the return value (0 or -EFAULT), as
 * copy_from_user; a failing copy may have copied a prefix. Memory that the host
 * cannot give (a truncated file) is -EFAULT too, never a signal.
 */
int copy_from_guest(struct mm *mm, struct mm_cpu *cpu, void *to, uint64_t from,
                    size_t len);
int copy_to_guest(struct mm *mm, struct mm_cpu *cpu, uint64_t to,
                  const void *from, size_t len);
int clear_guest(struct mm *mm, struct mm_cpu *cpu, uint64_t to, size_t len);
/*
 * An aligned 32-bit word, if it is *found, becomes `next`; *found is what it
 * was. Atomic on private anonymous memory. On that of an object, whose pages
 * may be gone, it is a load and a store: good for who owns the word. 0 or
 * -EFAULT.
 */
int cmpxchg_guest(struct mm *mm, struct mm_cpu *cpu, uint64_t addr,
                  uint32_t *found, uint32_t next);
/*
 * The host's address of a byte of guest memory that nobody looks at: an
 * address to know a futex by. Nothing is touched or materialised, and whether
 * something is mapped there does not matter.
 */
uint64_t span_key(struct mm *mm, struct mm_cpu *cpu, uint64_t addr);
/* Does this host address, out of a span, belong to a file or shared memory? */
bool span_is_object(struct mm *mm, const void *host);
/*
 * A NUL-terminated string of at most max bytes, its NUL included. Returns its
 * length without NUL, -EFAULT, or -ENAMETOOLONG when no NUL came in max bytes.
 */
ssize_t copy_string_from_guest(struct mm *mm, struct mm_cpu *cpu, char *to,
                               uint64_t from, size_t max);

#endif
