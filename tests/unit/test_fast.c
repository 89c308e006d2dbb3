/* SPDX-License-Identifier: Apache-2.0 */
/* threaded */
/* sources: tests/unit/fake_mm.c tests/unit/mm_model.c */
/* sources: tests/unit/fast_model.c */
/* sources: src/stats.c src/shim/map.c src/shim/unmap.c src/shim/tlb.c */
/* sources: src/mm/gate.c src/mm/drain.c src/mm/arena.c src/mm/ptretire.c */
/* sources: src/mm/copy.c src/mm/dirty.c src/mm/gather.c src/mm/hostspace.c */
/* sources: src/mm/materialise.c src/mm/mm.c src/mm/objectspace.c */
/* sources: src/mm/pagetable.c src/mm/ptmove.c src/mm/ptretain.c */
/* sources: src/mm/span.c src/mm/tablepool.c src/mm/window.c */
/* sources: src/mm/vma.c src/mm/object.c src/mm/objectedge.c */
/* sources: src/mm/account.c src/mm/mmap.c src/mm/shm.c */
/* sources: src/mm/munmap.c src/mm/mprotect.c src/mm/mremap.c */
/* sources: src/mm/madvise.c src/mm/mlock.c src/mm/fault.c src/mm/brk.c */
/* sources: src/mm/setmm.c */
/*
 * mmap and munmap at EL1, the shim's code and the host's, under threads that
 * race: see fast_model.h. With arguments: seed, producers, operations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "fast_model.h"

/* EL1 must have served most of it, or the test is of something else. */
static void run(const fast_load_t *load)
{
    fast_served_t served = fast_model_run(load);

    print_message("%lu calls, %lu mmaps and %lu munmaps of them at EL1\n",
                  served.calls, served.maps, served.unmaps);
    assert_in_range(served.maps + served.unmaps, served.calls / 2,
                    served.calls);
}

static void test_alone(void **state)
{
    run(&(fast_load_t){.producers = 1, .operations = 20000, .seed = 1});
}

static void test_producers(void **state)
{
    run(&(fast_load_t){.producers = 4, .operations = 10000, .seed = 2});
}

static void test_races(void **state)
{
    run(&(fast_load_t){.producers = 3,
                       .racers = 2,
                       .editor = true,
                       .operations = 10000,
                       .seed = 3});
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_producers),
        cmocka_unit_test(test_races),
    };

    if (argc > 3) {
        run(&(fast_load_t){.producers = (unsigned) atoi(argv[2]),
                           .racers = 2,
                           .editor = true,
                           .operations = (unsigned) atoi(argv[3]),
                           .seed = (unsigned) atoi(argv[1])});
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
