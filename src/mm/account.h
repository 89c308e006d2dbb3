/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the guest may map: RLIMIT_AS, DATA, STACK and MEMLOCK, overcommit, and
 * the counters behind VmSize, VmData, VmStk, VmExe, VmLck. Counted as Linux
 * counts: data is what is private, writable and no stack.
 *
 * mm->lock is held. Counts are in pages of 4 KiB.
 */
#ifndef ELFUSE_MM_ACCOUNT_H
#define ELFUSE_MM_ACCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/capability.h>

struct mm;

/* What the machine has and its settings say: called by mm_create(), which has
 * read the limits. */
void account_init(struct mm *mm);

/* May `pages` more of such memory be mapped (RLIMIT_AS, RLIMIT_DATA)? */
bool account_may_expand(const struct mm *mm, uint8_t prot, uint32_t flags,
                        uint64_t pages);
/* Does the machine have that much memory at all (overcommit's heuristic)? */
bool account_enough_memory(const struct mm *mm, uint64_t pages);
/* True for private writable memory that is charged: gets VMA_ACCOUNT. */
bool account_chargeable(uint8_t prot, uint32_t flags);

/* `pages` of such memory were mapped (negative: unmapped). */
void account_add(struct mm *mm, uint8_t prot, uint32_t flags, int64_t pages);

/* RLIMIT_MEMLOCK is not 0, or the guest has CAP_IPC_LOCK. */
bool account_can_mlock(const struct mm *mm);
/* May `pages` more be locked? */
bool account_may_lock(const struct mm *mm, uint64_t pages);

/* The calling process's effective capabilities hold `cap`. */
bool account_capable(int cap);

#endif
