/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the memory parts need around them in a unit test: a hypervisor that only
 * keeps a list of memory slots, VMAs in an array, and a guest CPU with a table
 * walker, a TLB and a walk cache of its own, which reports every use of a
 * translation that the page tables no longer give.
 */
#ifndef TESTS_UNIT_FAKE_MM_H
#define TESTS_UNIT_FAKE_MM_H

#include <stdbool.h>
#include <stdint.h>

#include "mm/internal.h"
#include "mm/tablepool.h"

/* An address space with so many IPA bits and bits of user space (0: all). */
mm_t *fake_mm_create(unsigned ipa_bits, unsigned task_bits, size_t host_page);
/* A guest thread of it: frame and TLB. */
mm_cpu_t *fake_cpu_create(mm_t *mm);

/* Zeroed memory that is never freed. */
void *fake_keep(size_t size);

/* VMAs; fake_vma_set also removes what was there. */
vma_t *fake_vma_set(uint64_t start, uint64_t end, int prot, uint32_t flags);
void fake_vma_clear(uint64_t start, uint64_t end);

/* Memory slots alive now, the most there were, and hv_map calls. */
extern unsigned fake_slots, fake_slots_most, fake_slots_made;
/* hv_map fails once there are so many. */
extern unsigned fake_slots_limit;

/* object_release calls, and what they gave up. */
extern unsigned fake_released;
extern uint64_t fake_released_bytes;

/* The vCPU goes back to EL0 (the shim carries out the frame's request, TLB and
 * tables are compared), and out again (mm_after_exit). */
void guest_enter(mm_cpu_t *cpu);
void guest_exit(mm_t *mm, mm_cpu_t *cpu);
/*
 * One access of EL0, faults served as the kernel part would: 0, or SIGSEGV when
 * the VMA does not allow it. Reads to or writes from *value (8 bytes, aligned).
 */
int guest_access(mm_t *mm, mm_cpu_t *cpu, uint64_t addr, bool write,
                 uint64_t *value);
/* Faults taken by guest_access, and stale translations met. */
extern unsigned guest_faults, guest_stale;

#endif
