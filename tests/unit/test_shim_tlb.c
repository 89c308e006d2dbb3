/* SPDX-License-Identifier: Apache-2.0 */
/* sources: src/shim/tlb.c */
/*
 * The shim's invalidation on a recording machine: TLBI operands are decoded
 * anew, from the architecture's formula, and every page asked for must be
 * covered, in the order that abi/tlb.h promises.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "abi/frame.h"
#include "proved/tlbi_range.h"
#include "shim/arch.h"
#include "shim/shim.h"

#define ISAR0_RANGE (2UL << 56)
#define ISAR0_NONE  (1UL << 56) /* outer shareable, no ranges */

enum event {
    EVENT_DSB_ISHST,
    EVENT_DSB_ISH,
    EVENT_ISB,
    EVENT_LEAF,
    EVENT_TABLE,
    EVENT_ALL,
};

static struct {
    enum event event;
    uint64_t va, pages;
} journal[4096];
static unsigned nr_events;

static void record(enum event event, uint64_t va, uint64_t pages)
{
    assert_true(nr_events < sizeof journal / sizeof journal[0]);
    journal[nr_events].event = event;
    journal[nr_events].va = va;
    journal[nr_events++].pages = pages;
}

/* Decodes as the pseudocode of TLBI RVAE1IS does. */
static void record_range(enum event event, uint64_t operand)
{
    uint64_t base = (operand & 0x1fffffffffUL) << 12;
    uint64_t num = operand >> 39 & 31, scale = operand >> 44 & 3;

    assert_int_equal(operand >> 46 & 3, 1); /* 4 KiB */
    assert_int_equal(operand >> 37 & 3, 0); /* no level hint */
    assert_int_equal(operand >> 48, 0);     /* ASID */
    record(event, base, (num + 1) << (5 * scale + 1));
}

void arch_dsb_ishst(void)
{
    record(EVENT_DSB_ISHST, 0, 0);
}
void arch_dsb_ish(void)
{
    record(EVENT_DSB_ISH, 0, 0);
}
void arch_isb(void)
{
    record(EVENT_ISB, 0, 0);
}
void arch_tlbi_vale1is(uint64_t operand)
{
    record(EVENT_LEAF, operand << 12, 1);
}
void arch_tlbi_vae1is(uint64_t operand)
{
    record(EVENT_TABLE, operand << 12, 1);
}
void arch_tlbi_rvale1is(uint64_t operand)
{
    record_range(EVENT_LEAF, operand);
}
void arch_tlbi_rvae1is(uint64_t operand)
{
    record_range(EVENT_TABLE, operand);
}
void arch_tlbi_vmalle1is(void)
{
    record(EVENT_ALL, 0, 0);
}

static vcpu_frame_t frame;

static uint32_t request(uint32_t kind, uint64_t va, uint64_t pages)
{
    memset(&frame, 0, sizeof frame);
    frame.tlb.kind = kind;
    frame.tlb.nr_ranges = 1;
    frame.tlb.range[0] = (tlb_range_t){va, pages};
    frame.tlb.sequence = 7;
    nr_events = 0;
    return shim_tlb_request(&frame);
}

/* The TLBI events, between the barriers, tile [va, va + pages) exactly. */
static unsigned check_tiles(enum event kind, uint64_t va, uint64_t pages)
{
    unsigned i = 1;

    assert_int_equal(journal[0].event, EVENT_DSB_ISHST);
    for (; i < nr_events && journal[i].event == kind; i++) {
        assert_int_equal(journal[i].va, va);
        assert_true(journal[i].pages <= pages);
        va += journal[i].pages << 12;
        pages -= journal[i].pages;
    }
    assert_int_equal(pages, 0);
    assert_int_equal(journal[i].event, EVENT_DSB_ISH);
    assert_int_equal(journal[i + 1].event, EVENT_ISB);
    assert_int_equal(nr_events, i + 2);
    assert_int_equal(frame.tlb.completed, 7);
    assert_int_equal(frame.tlb.kind, 0);
    return i - 1;
}

static void ranges_tile_at_every_scale(void **state)
{
    static const uint64_t base[] = {0, 0x1000, 0x7fff12345000,
                                    0xffffc0000000 - 0x200000000};

    tlb_note_features(ISAR0_RANGE);
    for (uint64_t pages = 1; pages <= TLBI_RANGE_MAX_PAGES;
         pages = pages < 5000 ? pages + 1 : pages + pages / 7 + 1) {
        for (unsigned i = 0; i < sizeof base / sizeof base[0]; i++) {
            assert_int_equal(request(TLB_LEAF, base[i], pages), 0);
            assert_true(check_tiles(EVENT_LEAF, base[i], pages) <= 5);
            assert_int_equal(request(TLB_TABLE, base[i], pages), 0);
            check_tiles(EVENT_TABLE, base[i], pages);
        }
    }
    request(TLB_LEAF, 0, TLBI_RANGE_MAX_PAGES);
    assert_int_equal(check_tiles(EVENT_LEAF, 0, TLBI_RANGE_MAX_PAGES), 1);
}

static void exact_units_take_one_operation(void **state)
{
    uint64_t covered;

    for (unsigned scale = 0; scale < 4; scale++) {
        for (uint64_t num = 0; num < 32; num++) {
            uint64_t pages = (num + 1) << (5 * scale + 1);
            uint64_t operand = tlbi_range_operand(0x1000, pages, &covered);

            assert_int_equal(covered, pages);
            assert_int_equal(operand & 0x1fffffffff, 1);
        }
    }
}

static void without_ranges_page_by_page(void **state)
{
    tlb_note_features(ISAR0_NONE);
    for (uint64_t pages = 1; pages <= 512; pages++) {
        request(TLB_LEAF, 0x400000, pages);
        assert_int_equal(check_tiles(EVENT_LEAF, 0x400000, pages), pages);
    }
}

static void huge_requests_invalidate_all(void **state)
{
    tlb_note_features(ISAR0_NONE);
    request(TLB_LEAF, 0, 513);
    assert_int_equal(journal[1].event, EVENT_ALL);
    tlb_note_features(ISAR0_RANGE);
    request(TLB_TABLE, 0, TLBI_RANGE_MAX_PAGES + 1);
    assert_int_equal(journal[1].event, EVENT_ALL);
    request(TLB_ALL, 0, 1);
    assert_int_equal(journal[0].event, EVENT_DSB_ISHST);
    assert_int_equal(journal[1].event, EVENT_ALL);
    assert_int_equal(journal[2].event, EVENT_DSB_ISH);
    assert_int_equal(journal[3].event, EVENT_ISB);
    assert_int_equal(nr_events, 4);
}

static void sums_of_ranges_count_too(void **state)
{
    tlb_note_features(ISAR0_NONE);
    memset(&frame, 0, sizeof frame);
    frame.tlb.kind = TLB_LEAF;
    frame.tlb.nr_ranges = 2;
    frame.tlb.range[0] = (tlb_range_t){0x1000, 300};
    frame.tlb.range[1] = (tlb_range_t){0x10000000, 213};
    nr_events = 0;
    shim_tlb_request(&frame);
    assert_int_equal(journal[1].event, EVENT_ALL);
    frame.tlb.kind = TLB_LEAF;
    frame.tlb.range[1].pages = 212;
    nr_events = 0;
    shim_tlb_request(&frame);
    assert_int_equal(nr_events, 1 + 512 + 2);
}

static void at_once_rings_again(void **state)
{
    assert_int_equal(request(TLB_LEAF | TLB_AT_ONCE, 0x1000, 1),
                     FRAME_EXIT_TLB_DONE);
    assert_int_equal(request(TLB_ICACHE, 0, 0), 0);
    assert_int_equal(nr_events, 1);
    assert_int_equal(journal[0].event, EVENT_ISB);
    assert_int_equal(frame.tlb.completed, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_tile_at_every_scale),
        cmocka_unit_test(exact_units_take_one_operation),
        cmocka_unit_test(without_ranges_page_by_page),
        cmocka_unit_test(huge_requests_invalidate_all),
        cmocka_unit_test(sums_of_ranges_count_too),
        cmocka_unit_test(at_once_rings_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
