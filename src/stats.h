/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters for --stats. Plain relaxed increments: a statistic orders nothing.
 */
#ifndef ELFUSE_STATS_H
#define ELFUSE_STATS_H

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

#define STATS(X)                                           \
    X(exits_syscall, "exits: system call")                 \
    X(exits_fault, "exits: page fault")                    \
    X(exits_other, "exits: other exception")               \
    X(exits_irq, "exits: kick")                            \
    X(exits_tlb, "exits: invalidation at once")            \
    X(exits_no_page, "exits: no host page")                \
    X(syscalls, "system calls served by the host")         \
    X(syscalls_unknown, "system calls answered ENOSYS")    \
    X(faults_solved, "faults solved")                      \
    X(faults_spurious, "faults on a page already valid")   \
    X(pages_clean, "pages materialised without zeroing")   \
    X(pages_zeroed, "pages zeroed before use")             \
    X(bytes_dropped, "bytes of backing given back")        \
    X(blocks_entered, "blocks entered clean")              \
    X(blocks_huge, "blocks advised for huge pages")        \
    X(tables_allocated, "page tables allocated")           \
    X(tables_freed, "page tables freed")                   \
    X(tlb_requests, "invalidation requests")               \
    X(tlb_ranges, "ranges invalidated")                    \
    X(tlb_all, "whole-VM invalidations")                   \
    X(windows_opened, "windows opened")                    \
    X(windows_evicted, "windows evicted")                  \
    X(chunks_committed, "chunks made accessible")          \
    X(fast_mmaps, "mmaps at EL1")                          \
    X(fast_munmaps, "munmaps at EL1")                      \
    X(fast_miss_shape, "not at EL1: another kind of call") \
    X(fast_miss_room, "not at EL1: window used up")        \
    X(fast_miss_ring, "not at EL1: ring full")             \
    X(fast_miss_claim, "not at EL1: host at work there")   \
    X(fast_miss_block, "not at EL1: memory of the host")   \
    X(fast_arenas, "arenas made")                          \
    X(fast_windows, "windows of arenas moved")             \
    X(drains, "drains")

typedef struct stats {
#define STATS_FIELD(name, text) _Atomic uint64_t name;
    STATS(STATS_FIELD)
#undef STATS_FIELD
} stats_t;

extern stats_t stats;

#define stats_add(name, n) \
    atomic_fetch_add_explicit(&stats.name, (n), memory_order_relaxed)

void stats_print(FILE *out);
/* All zero again: a new process. */
void stats_reset(void);

#endif
