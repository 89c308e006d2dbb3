/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Windows: the host reservation is cut into equal pieces; a piece gets an IPA
 * range, one memory slot, when something in it is first materialised. Size
 * 2^(ipa_bits - 9), at most 64 GiB, so that about 500 can be open with 36 bits
 * of IPA. A window with no valid descriptor, no revocation pending and no
 * registered span is evicted, least recently used first; when none is idle, the
 * least recently used one has its valid descriptors turned EVICTED first.
 *
 * mm->lock is held, except in window_host.
 */
#ifndef ELFUSE_MM_WINDOW_H
#define ELFUSE_MM_WINDOW_H

#include <stdint.h>

struct mm;
struct mm_cpu;

/* IPA of a host address in the reservation; opens its window when needed.
 * Returns 0 when no IPA can be had (0 is never a valid IPA). */
uint64_t window_ipa(struct mm *mm, struct mm_cpu *cpu, uint64_t host);
/* Host address behind an IPA taken from a valid descriptor. Any thread that
 * has a registered span over the page. */
uint64_t window_host(struct mm *mm, uint64_t ipa);
/* Valid descriptors into the window of this IPA: n more, or fewer. */
void window_count(struct mm *mm, uint64_t ipa, int64_t n);

#endif
