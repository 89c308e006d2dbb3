/* SPDX-License-Identifier: Apache-2.0 */
/* sources: tests/unit/fake_mm.c tests/unit/mm_model.c src/stats.c */
/* sources: src/mm/copy.c src/mm/dirty.c src/mm/hostspace.c */
/* sources: src/mm/materialise.c src/mm/mm.c src/mm/objectspace.c */
/* sources: src/mm/pagetable.c src/mm/ptmove.c src/mm/ptretain.c */
/* sources: src/mm/span.c src/mm/tablepool.c src/mm/window.c */
/*
 * Negative control of test_pagetable: the same random operations with the
 * invalidations left out, or with walk caches not told of freed tables, must be
 * caught. Without this test a fake TLB that never complains would pass.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "mm_model.h"

/* gather.c with its gather_range under another name. */
void gather_range_complete(gather_t *g, uint64_t start, uint64_t end);
#define gather_range gather_range_complete
/* The file itself, with one function renamed. */
#include "../../src/mm/gather.c" // NOLINT(bugprone-suspicious-include)
#undef gather_range

static unsigned leave_out_one_in;

void gather_range(gather_t *g, uint64_t start, uint64_t end)
{
    static unsigned n;

    if (leave_out_one_in && ++n % leave_out_one_in == 0)
        gather_cover(g, start, end);
    else
        gather_range_complete(g, start, end);
}

static unsigned run(unsigned one_in)
{
    mm_model_t *model = model_create(40, 4096, 5);

    leave_out_one_in = one_in;
    guest_stale = 0;
    model_run(model, 300);
    return guest_stale;
}

static void test_complete(void **state)
{
    assert_int_equal(run(0), 0);
}

static void test_all_left_out(void **state)
{
    assert_in_range(run(1), 1, ~0U);
}

static void test_some_left_out(void **state)
{
    assert_in_range(run(10), 1, ~0U);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_complete),
        cmocka_unit_test(test_all_left_out),
        cmocka_unit_test(test_some_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
