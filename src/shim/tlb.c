/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Invalidation for the host, which edits page tables but has no TLBI that the
 * guest's translations would hear. Order and rules: abi/tlb.h; each barrier is
 * in the table of docs/memory.md.
 */
#include "proved/tlbi_range.h"
#include "shim/arch.h"
#include "shim/shim.h"

#include <stdbool.h>

/* ID_AA64ISAR0_EL1.TLB, bits 59:56: 2 says range forms. */
#define ISAR0_TLB_SHIFT 56

/*
 * From where on everything is invalidated instead: without range forms the
 * pages of one table, beside which refilling the TLB is cheap; with them what
 * one operation can cover.
 */
#define ALL_PAGES_SINGLE 512UL
#define ALL_PAGES_RANGE  TLBI_RANGE_MAX_PAGES

/* The same for every vCPU (KVM shows one CPU type): racing stores agree. */
static bool have_range;

void tlb_note_features(uint64_t isar0)
{
    bool range = ((isar0 >> ISAR0_TLB_SHIFT) & 0xf) >= 2;

    __atomic_store_n(&have_range, range, __ATOMIC_RELAXED);
}

static void invalidate_page(uint64_t va, bool leaf)
{
    if (leaf)
        arch_tlbi_vale1is(tlbi_va_operand(va));
    else
        arch_tlbi_vae1is(tlbi_va_operand(va));
}

static void invalidate_range(uint64_t va, uint64_t pages, bool leaf, bool range)
{
    while (pages) {
        uint64_t covered = 1, operand;

        if (pages == 1 || !range) {
            invalidate_page(va, leaf);
        } else {
            operand = tlbi_range_operand(va, pages, &covered);
            if (leaf)
                arch_tlbi_rvale1is(operand);
            else
                arch_tlbi_rvae1is(operand);
        }
        pages -= covered;
        va += covered << GUEST_PAGE_SHIFT;
    }
}

void tlb_invalidate(uint64_t va, uint64_t pages, bool leaf)
{
    bool range = __atomic_load_n(&have_range, __ATOMIC_RELAXED);

    if (pages > (range ? ALL_PAGES_RANGE : ALL_PAGES_SINGLE))
        arch_tlbi_vmalle1is();
    else
        invalidate_range(va, pages, leaf, range);
}

static void invalidate(const tlb_request_t *tlb, uint32_t kind)
{
    bool leaf = !(kind & TLB_TABLE);
    bool range = __atomic_load_n(&have_range, __ATOMIC_RELAXED);
    uint64_t left = range ? ALL_PAGES_RANGE : ALL_PAGES_SINGLE;
    bool all = kind & TLB_ALL;

    for (unsigned i = 0; i < tlb->nr_ranges && !all; i++) {
        all = tlb->range[i].pages > left;
        left -= tlb->range[i].pages;
    }
    if (all) {
        arch_tlbi_vmalle1is();
        return;
    }
    for (unsigned i = 0; i < tlb->nr_ranges; i++)
        invalidate_range(tlb->range[i].va, tlb->range[i].pages, leaf, range);
}

static void store_all(const tlb_request_t *tlb)
{
    for (unsigned i = 0; i < tlb->nr_stores; i++) {
        uint64_t *pte = (uint64_t *) (SHIM_POOL_VA + tlb->store[i].offset);

        __atomic_store_n(pte, tlb->store[i].value, __ATOMIC_RELEASE);
    }
    if (tlb->nr_stores)
        arch_dsb_ishst(); /* the walker must see them before EL0 goes on */
}

uint32_t shim_tlb_request(vcpu_frame_t *frame)
{
    tlb_request_t *tlb = &frame->tlb;
    uint32_t kind = tlb->kind;

    if (kind & (TLB_LEAF | TLB_TABLE | TLB_ALL)) {
        arch_dsb_ishst(); /* the host's stores to descriptors come first */
        invalidate(tlb, kind);
        arch_dsb_ish(); /* complete in the whole domain */
    }
    arch_isb();
    store_all(tlb);
    tlb->kind = 0;
    /* Pairs with the acquire load in mm_after_exit(). */
    __atomic_store_n(&tlb->completed, tlb->sequence, __ATOMIC_RELEASE);
    return kind & TLB_AT_ONCE ? FRAME_EXIT_TLB_DONE : FRAME_EXIT_NONE;
}
