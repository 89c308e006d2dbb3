/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The invalidation request that a host path leaves in the frame of the vCPU
 * it works for. The shim carries it out before EL0 continues:
 *
 *     DSB ISHST; TLBI ...IS for each range; DSB ISH; ISB;
 *     stores[], each a release; DSB ISHST when there were any;
 *     completed = sequence (release; pairs with the host's acquire load).
 *
 * Requests are per vCPU and never shared: only the host thread of that vCPU
 * writes one, and only while the vCPU is parked at a doorbell.
 */
#ifndef ELFUSE_ABI_TLB_H
#define ELFUSE_ABI_TLB_H

#include <stdint.h>

#define TLB_RANGES 16
#define TLB_STORES 16

/* tlb_request_t.kind; zero says that there is no request. */
enum tlb_kind {
    TLB_LEAF = 1,    /* ranges[]: last-level entries only (VALE1IS, RVALE1IS) */
    TLB_TABLE = 2,   /* ranges[]: tables were freed too (VAE1IS, RVAE1IS) */
    TLB_ALL = 4,     /* everything (VMALLE1IS); ranges[] are ignored */
    TLB_AT_ONCE = 8, /* ring again (FRAME_EXIT_TLB_DONE) instead of ERET */
    TLB_ICACHE = 16, /* code was written: ISB before ERET */
};

typedef struct tlb_range {
    uint64_t va; /* page aligned, canonical, no tag */
    uint64_t pages;
} tlb_range_t;

typedef struct tlb_store {
    uint64_t offset; /* of the descriptor in the table pool, bytes */
    uint64_t value;
} tlb_store_t;

typedef struct tlb_request {
    uint32_t kind;
    uint16_t nr_ranges;
    uint16_t nr_stores;
    uint64_t sequence;  /* of this request; counts up from 1 for each vCPU */
    uint64_t completed; /* last sequence carried out; release by the shim */
    tlb_range_t range[TLB_RANGES];
    tlb_store_t store[TLB_STORES];
} tlb_request_t;

#define TLB_REQ_KIND 0
_Static_assert(sizeof(tlb_request_t) % 8 == 0, "frame ABI");

#endif
