/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mmap and munmap at EL1 on the build machine: the shim's own code and the
 * host's, on memory tables, with a TLB and a walk cache for each guest thread
 * that only invalidations empty. Threads race; each knows what it has mapped,
 * and what it has written.
 */
#ifndef TESTS_UNIT_FAST_MODEL_H
#define TESTS_UNIT_FAST_MODEL_H

#include <stdbool.h>

typedef struct fast_load {
    unsigned producers;  /* threads that map, touch, unmap */
    unsigned racers;     /* threads that touch what others have */
    unsigned operations; /* of each producer */
    bool editor;         /* one that changes mappings by other calls */
    bool no_tlbi;        /* control: EL1's invalidations do nothing */
    unsigned seed;
} fast_load_t;

typedef struct fast_served {
    unsigned long maps, unmaps; /* by EL1 */
    unsigned long calls;        /* all */
} fast_served_t;

/* Run it; the program ends with a message when something is not as it must be.
 */
fast_served_t fast_model_run(const fast_load_t *load);

#endif
