/* SPDX-License-Identifier: Apache-2.0 */
/* sources: src/mm/dirty.c */
/* The dirty map against an array of bools. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mm/dirty.h"

#define BLOCKS 300000UL

static uint64_t model_next(const bool *model, uint64_t block, uint64_t end)
{
    while (block < end && !model[block])
        block++;
    return block;
}

static void test_random(void **state)
{
    dirty_map_t *map = dirty_map_create(BLOCKS);
    bool *model = calloc(BLOCKS, sizeof(*model));
    uint64_t base = 0;

    assert_non_null(map);
    assert_non_null(model);
    srandom(1);
    for (int i = 0; i < 40000; i++) {
        uint64_t block, end;

        if (i % 100 == 0)
            base = (uint64_t) random() % (BLOCKS - 200);
        block = base + (uint64_t) random() % 200;
        end = block + (uint64_t) random() % (i % 50 ? 200 : BLOCKS - block);
        if (end > BLOCKS)
            end = BLOCKS;
        if (random() % 3 == 0) {
            dirty_set(map, block);
            model[block] = true;
        } else if (random() % 2) {
            dirty_clear(map, block);
            model[block] = false;
        }
        assert_int_equal(dirty_test(map, block), model[block]);
        assert_int_equal(dirty_next(map, block, end),
                         model_next(model, block, end));
    }
    for (uint64_t b = 0; b < BLOCKS; b++) {
        if (model[b])
            dirty_clear(map, b);
    }
    assert_int_equal(dirty_next(map, 0, BLOCKS), BLOCKS);
    dirty_map_destroy(map);
    free(model);
}

static void test_edges(void **state)
{
    dirty_map_t *map = dirty_map_create(1UL << 25);

    assert_non_null(map);
    assert_int_equal(dirty_next(map, 0, 1UL << 25), 1UL << 25);
    dirty_set(map, (1UL << 25) - 1);
    dirty_set(map, 4096);
    assert_int_equal(dirty_next(map, 0, 1UL << 25), 4096);
    assert_int_equal(dirty_next(map, 4097, 1UL << 25), (1UL << 25) - 1);
    assert_int_equal(dirty_next(map, 4097, 8192), 8192);
    assert_int_equal(dirty_next(map, 4096, 4096), 4096);
    /* Past the end of the map nothing is dirty. */
    dirty_clear(map, (1UL << 25) - 1);
    assert_int_equal(dirty_next(map, 4097, 1UL << 26), 1UL << 25);
    dirty_map_destroy(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_edges),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
