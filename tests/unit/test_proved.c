/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Boundary values of the functions in src/proved. Their contracts say more, for
 * all values (make prove); here it is seen that they are compiled as proved.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proved/arena.h"
#include "proved/blocks.h"
#include "proved/granule.h"
#include "proved/pow2.h"
#include "proved/range.h"
#include "proved/recent.h"
#include "proved/ring.h"
#include "proved/tlbi_range.h"

#define PAGE    GUEST_PAGE_SIZE
#define USER_46 (1UL << 46)

static void powers_of_two(void **state)
{
    assert_int_equal(pow2_clamp(0, 4, 64), 4);
    assert_int_equal(pow2_clamp(4, 4, 64), 4);
    assert_int_equal(pow2_clamp(5, 4, 64), 8);
    assert_int_equal(pow2_clamp(8, 4, 64), 8);
    assert_int_equal(pow2_clamp(64, 4, 64), 64);
    assert_int_equal(pow2_clamp(65, 4, 64), 64);
    assert_int_equal(pow2_clamp(UINT64_MAX, 1, 1UL << 63), 1UL << 63);
    assert_int_equal(pow2_clamp(UINT64_MAX, 2, 2), 2);
    for (unsigned k = 1; k < 63; k++) {
        assert_int_equal(pow2_clamp((1UL << k) + 1, 1, 1UL << 63),
                         1UL << (k + 1));
        assert_int_equal(pow2_clamp(1UL << k, 1, 1UL << 63), 1UL << k);
    }
}

static void lengths_in_a_window(void **state)
{
    recent_lengths_t recent = {.next = 0};

    assert_int_equal(recent_max(&recent), 0);
    recent_add(&recent, UINT64_MAX);
    for (unsigned i = 1; i < RECENT_LENGTHS; i++) {
        recent_add(&recent, i);
        assert_int_equal(recent_max(&recent), UINT64_MAX);
    }
    assert_int_equal(recent.next, 0);
    recent_add(&recent, 3);
    assert_int_equal(recent.length[0], 3);
    assert_int_equal(recent_max(&recent), RECENT_LENGTHS - 1);
    for (unsigned i = 0; i < RECENT_LENGTHS; i++) {
        recent = (recent_lengths_t){.next = 0};
        recent.length[i] = 7;
        assert_int_equal(recent_max(&recent), 7);
    }
}

static void arena_sizes(void **state)
{
    uint64_t user;

    assert_int_equal(arena_size(0, USER_46), ARENA_MIN);
    assert_int_equal(arena_size(ARENA_MIN / 16, USER_46), ARENA_MIN);
    assert_int_equal(arena_size(ARENA_MIN / 16 + 1, USER_46), 2 * ARENA_MIN);
    assert_int_equal(arena_size(ARENA_MAX / 32, USER_46), ARENA_MAX / 2);
    assert_int_equal(arena_size(ARENA_MAX / 16 - 1, USER_46), ARENA_MAX);
    assert_int_equal(arena_size(ARENA_MAX, USER_46), ARENA_MAX);
    assert_int_equal(arena_size(1UL << 60, USER_46), ARENA_MAX);
    assert_int_equal(arena_size((1UL << 60) + 1, USER_46), ARENA_MAX);
    assert_int_equal(arena_size(UINT64_MAX, USER_46), ARENA_MAX);
    assert_int_equal(arena_size(UINT64_MAX, UINT64_MAX), ARENA_MAX);
    /* A small user space: its share, but never less than the least arena. */
    assert_int_equal(arena_size(UINT64_MAX, USER_46 - 1), ARENA_MAX / 2);
    assert_int_equal(arena_size(UINT64_MAX, USER_46 / 4), ARENA_MAX / 4);
    user = ARENA_MIN * ARENA_USER_SHARE;
    assert_int_equal(arena_size(UINT64_MAX, 2 * user), 2 * ARENA_MIN);
    assert_int_equal(arena_size(UINT64_MAX, 2 * user - 1), ARENA_MIN);
    assert_int_equal(arena_size(UINT64_MAX, user - 1), ARENA_MIN);
    assert_int_equal(arena_size(UINT64_MAX, 0), ARENA_MIN);
}

static void requests_fit(void **state)
{
    assert_false(request_fits(0x1000, 0x9000, 0));
    assert_true(request_fits(0x1000, 0x9000, 0x8000));
    assert_false(request_fits(0x1000, 0x9000, 0x8001));
    assert_false(request_fits(0x9000, 0x9000, 1));
    assert_false(request_fits(0x9001, 0x9000, 1));
    assert_false(request_fits(0x1000, 0x9000, UINT64_MAX));
    assert_false(request_fits(0x1000, 0x9000, UINT64_MAX - 0xfff));
    assert_false(request_fits(UINT64_MAX, 0x9000, 1));
    assert_true(request_fits(0, UINT64_MAX, UINT64_MAX));
}

static void requests_start_at_blocks(void **state)
{
    assert_int_equal(request_start(0x201000, 0x1000), 0x201000);
    assert_int_equal(request_start(0x201000, BLOCK_SIZE - 1), 0x201000);
    assert_int_equal(request_start(0x201000, BLOCK_SIZE), 0x400000);
    assert_int_equal(request_start(0x3fffff, UINT64_MAX), 0x400000);
    assert_int_equal(request_start(0x400000, BLOCK_SIZE), 0x400000);
    assert_int_equal(request_start(0, BLOCK_SIZE), 0);
}

static void ring_indices(void **state)
{
    static const uint32_t head[] = {
        0, 1, 100, 0x7ffffff0, UINT32_MAX - 31, UINT32_MAX - 3, UINT32_MAX};

    for (unsigned i = 0; i < sizeof head / sizeof head[0]; i++) {
        for (uint32_t used = 0; used <= 40; used++) {
            uint32_t tail = head[i] + used;

            assert_int_equal(ring_used(tail, head[i]), used);
            assert_int_equal(ring_full(tail, head[i], 32), used >= 32);
            assert_int_equal(ring_impossible(tail, head[i], 32), used > 32);
            assert_int_equal(ring_near_full(tail, head[i], 32, 0), used >= 32);
            assert_int_equal(ring_near_full(tail, head[i], 32, 1), used >= 31);
            assert_true(ring_near_full(tail, head[i], 32, 32));
            assert_int_equal(ring_slot(tail, 32), tail & 31);
        }
        /* The consumer ahead of the producer. */
        assert_true(ring_impossible(head[i] - 1, head[i], 1U << 31));
        assert_true(ring_near_full(head[i] - 1, head[i], 32, 2));
        assert_true(ring_near_full(head[i] - 1, head[i], 32, UINT32_MAX));
    }
    assert_int_equal(ring_slot(UINT32_MAX, 1), 0);
    assert_int_equal(ring_slot(UINT32_MAX, 1U << 31), (1U << 31) - 1);
}

static void lengths_in_pages(void **state)
{
    assert_int_equal(page_align(0), 0);
    assert_int_equal(page_align(1), PAGE);
    assert_int_equal(page_align(PAGE - 1), PAGE);
    assert_int_equal(page_align(PAGE), PAGE);
    assert_int_equal(page_align(PAGE + 1), 2 * PAGE);
    assert_int_equal(page_align(UINT64_MAX - PAGE), UINT64_MAX - PAGE + 1);
    assert_int_equal(page_align(UINT64_MAX - PAGE + 1), UINT64_MAX - PAGE + 1);
    assert_int_equal(page_align(UINT64_MAX - PAGE + 2), 0);
    assert_int_equal(page_align(UINT64_MAX), 0);
}

static void ranges_in_user_space(void **state)
{
    assert_true(range_valid(0, PAGE, USER_46));
    assert_true(range_valid(0, USER_46, USER_46));
    assert_true(range_valid(USER_46 - PAGE, PAGE, USER_46));
    assert_false(range_valid(0, 0, USER_46));
    assert_false(range_valid(1, PAGE, USER_46));
    assert_false(range_valid(PAGE, PAGE + 1, USER_46));
    assert_false(range_valid(USER_46 - PAGE, 2 * PAGE, USER_46));
    assert_false(range_valid(USER_46, PAGE, USER_46));
    assert_false(range_valid(USER_46 + PAGE, PAGE, USER_46));
    assert_false(range_valid(2 * PAGE, UINT64_MAX - PAGE + 1, USER_46));
    assert_false(range_valid(UINT64_MAX - PAGE + 1, PAGE, USER_46));
}

static void check_span(uint64_t start, uint64_t end)
{
    block_span_t span = block_span(start, end);
    uint64_t page = start, stop = start + span.head;

    assert_true(stop <= end);
    assert_true(span.blocks <= (end - start) / BLOCK_PAGES);
    for (; page < stop; page++)
        assert_int_equal(page / BLOCK_PAGES, start / BLOCK_PAGES);
    assert_true(span.head < BLOCK_PAGES);
    assert_true(span.tail < BLOCK_PAGES);
    if (page < end) {
        assert_int_equal(page % BLOCK_PAGES, 0);
        assert_int_equal(page / BLOCK_PAGES, span.first);
    }
    page += span.blocks * BLOCK_PAGES;
    assert_int_equal(page + span.tail, end);
}

static void pages_as_blocks(void **state)
{
    static const uint64_t base[] = {0, 0x12345 * BLOCK_PAGES,
                                    (1UL << 36) - 4 * BLOCK_PAGES};
    static const uint64_t near[] = {0, 1, 2, 255, 510, 511};
    const unsigned n = sizeof near / sizeof near[0];
    block_span_t span = block_span(511, 1025);

    assert_int_equal(span.head, 1);
    assert_int_equal(span.first, 1);
    assert_int_equal(span.blocks, 1);
    assert_int_equal(span.tail, 1);
    span = block_span(0, 512);
    assert_int_equal(span.blocks, 1);
    for (unsigned i = 0; i < sizeof base / sizeof base[0]; i++) {
        for (unsigned a = 0; a < n; a++) {
            for (unsigned b = 0; b < 4 * n; b++) {
                uint64_t start = base[i] + near[a];
                uint64_t end = base[i] + b / n * BLOCK_PAGES + near[b % n];

                if (start <= end)
                    check_span(start, end);
            }
        }
    }
}

static void granules_of_addresses(void **state)
{
    assert_int_equal(granule_count(0), 0);
    assert_int_equal(granule_count(1), 1);
    assert_int_equal(granule_count(GRANULE_SIZE), 1);
    assert_int_equal(granule_count(GRANULE_SIZE + 1), 2);
    assert_int_equal(granule_count(USER_46), 1UL << 20);
    assert_int_equal(granule_index(0), 0);
    assert_int_equal(granule_index(GRANULE_SIZE - 1), 0);
    assert_int_equal(granule_index(GRANULE_SIZE), 1);
    assert_int_equal(granule_index(USER_46 - 1), granule_count(USER_46) - 1);
}

static void check_operand(uint64_t va, uint64_t pages)
{
    uint64_t covered, operand = tlbi_range_operand(va, pages, &covered);
    uint64_t num = operand >> 39 & 31, scale = operand >> 44 & 3;
    uint64_t unit = 2UL << (5 * scale);

    assert_int_equal(operand & 0x1fffffffff, va >> 12);
    assert_int_equal(operand >> 37 & 3, 0);
    assert_int_equal(operand >> 46, 1);
    assert_int_equal(covered, (num + 1) * unit);
    assert_true(covered >= 2 && covered <= pages);
    assert_true(pages - covered < unit);
}

static void operands_of_tlbi(void **state)
{
    assert_int_equal(tlbi_va_operand(0x0001ffffffffffff), 0x1fffffffff);
    assert_int_equal(tlbi_range_scale(2), 0);
    assert_int_equal(tlbi_range_scale(63), 0);
    assert_int_equal(tlbi_range_scale(64), 1);
    assert_int_equal(tlbi_range_scale(0x7ff), 1);
    assert_int_equal(tlbi_range_scale(0x800), 2);
    assert_int_equal(tlbi_range_scale(0xffff), 2);
    assert_int_equal(tlbi_range_scale(0x10000), 3);
    for (uint32_t scale = 0; scale < 4; scale++)
        assert_int_equal(tlbi_range_unit(scale), 2UL << (5 * scale));
    for (unsigned k = 1; k <= 21; k++) {
        check_operand(0, 1UL << k);
        check_operand(0x0001fffffffff000, 1UL << k);
        if (k < 21)
            check_operand(0x7fff12345000, (1UL << k) + 1);
        if (k > 1)
            check_operand(0x1000, (1UL << k) - 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(powers_of_two),
        cmocka_unit_test(lengths_in_a_window),
        cmocka_unit_test(arena_sizes),
        cmocka_unit_test(requests_fit),
        cmocka_unit_test(requests_start_at_blocks),
        cmocka_unit_test(ring_indices),
        cmocka_unit_test(lengths_in_pages),
        cmocka_unit_test(ranges_in_user_space),
        cmocka_unit_test(pages_as_blocks),
        cmocka_unit_test(granules_of_addresses),
        cmocka_unit_test(operands_of_tlbi),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
