/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows: the host reservation is cut into equal pieces; a piece gets an IPA
 * range, one memory slot, when something in it is first materialised. Size
 * 2^(ipa_bits - 9), at most 64 GiB, so that about 500 can be open with 36 bits
 * of IPA. When every IPA range is in use, the least recently used window
 * without a valid descriptor is evicted; when there is none, the least recently
 * used one has its valid descriptors turned EVICTED first. Invalidations still
 * owed are carried out before an IPA range changes hands.
 *
 * A 2 MiB block of user space never crosses a window. mm->lock is held, except
 * in window_host.
 */
#ifndef ELFUSE_MM_WINDOW_H
#define ELFUSE_MM_WINDOW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi/layout.h"

struct mm;
struct mm_cpu;

/* A range of IPA of a window's size; free while host is 0. */
typedef struct window_slot {
    _Atomic uint64_t host; /* what it shows */
    uint64_t valid;        /* descriptors that lead here */
    uint64_t used;         /* clock at the last window_ipa */
} window_slot_t;

typedef struct windows {
    unsigned shift;            /* log2 of a window's size */
    unsigned nr_slots;         /* IPA ranges */
    unsigned nr_used;          /* of them handed out so far, never fewer */
    uint64_t ipa;              /* of slot 0 */
    uint64_t host, nr_windows; /* what is cut into windows */
    uint64_t clock;
    _Atomic uint64_t evictions; /* see window_host() */
    uint16_t *slot_of;          /* for each window: slot + 1, or 0 */
    window_slot_t *slot;
} windows_t;

/* For the reservation [host, host + size). NULL: no memory. */
windows_t *windows_create(unsigned ipa_bits, unsigned max_slots, uint64_t host,
                          uint64_t size);

/* IPA of a host address in the reservation; opens its window when needed, which
 * may evict another and run the shim. Returns 0 when no IPA can be had (0 is
 * never a valid IPA). Good until the next call. */
uint64_t window_ipa(struct mm *mm, struct mm_cpu *cpu, uint64_t host);
/* The VM is a new one without memory (fork): show it the windows that
 * descriptors lead to, where they were, and forget the others. -errno. */
int windows_renew(struct mm *mm);
/* Might opening windows for `size` bytes have to evict others? */
bool windows_short(const struct mm *mm, uint64_t size);
/* Valid descriptors into the window of this IPA: n more, or fewer. */
void window_count(struct mm *mm, uint64_t ipa, int64_t n);
/* The same by the host address behind them, whose window is open. */
void window_count_host(struct mm *mm, uint64_t host, int64_t n);
/*
 * Host address behind an IPA taken from a valid descriptor; any thread. It
 * holds only if window_evictions() is the same as before the descriptor was
 * read: the IPA range may have been given to another window.
 */
uint64_t window_host(struct mm *mm, uint64_t ipa);
uint64_t window_evictions(struct mm *mm);

#endif
