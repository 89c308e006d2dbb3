/* SPDX-License-Identifier: Apache-2.0 */
/* sources: tests/unit/fake_mm.c tests/unit/mm_model.c */
/* sources: tests/unit/fast_model.c */
/* sources: tests/unit/fast_control_mm.c tests/unit/fast_control_shim.c */
/* sources: src/stats.c src/shim/tlb.c src/mm/arena.c src/mm/ptretire.c */
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
 * Negative controls of test_fast: each rule of the protocol is broken once, and
 * the same load must notice it. Each runs in a process of its own, which is
 * expected to end with a message; as races decide, with several seeds.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fast_control.h"

#include "abi/fast.h"
#include "fast_model.h"

#define SEEDS 40

int fast_break;

/* Did the load end well in a process of its own? */
static bool ends_well(const fast_load_t *load)
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0) {
        /* What is expected need not be read. */
        if (fast_break || load->no_tlbi)
            dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        fast_model_run(load);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool noticed(fast_load_t load, int rule)
{
    bool good = true;

    fast_break = rule;
    for (load.seed = 1; load.seed <= SEEDS && good; load.seed++)
        good = ends_well(&load);
    fast_break = BREAK_NOTHING;
    return !good;
}

static const fast_load_t races = {
    .producers = 3, .racers = 2, .editor = true, .operations = 3000};

static void test_nothing_broken(void **state)
{
    assert_false(noticed(
        (fast_load_t){
            .producers = 3, .racers = 2, .editor = true, .operations = 300},
        BREAK_NOTHING));
}

static void test_no_invalidation(void **state)
{
    fast_load_t load = {.producers = 1, .operations = 3000, .no_tlbi = true};

    assert_true(noticed(load, BREAK_NOTHING));
}

static void test_gate_not_looked_at(void **state)
{
    assert_true(noticed(races, BREAK_GATE));
}

static void test_not_active_while_invalidating(void **state)
{
    assert_true(noticed(races, BREAK_ACTIVE));
}

static void test_retirements_before_grants(void **state)
{
    assert_true(noticed(races, BREAK_DRAIN));
}

static void test_no_drain_after_claim(void **state)
{
    assert_true(noticed(races, BREAK_REDRAIN));
}

static void test_owner_not_looked_at(void **state)
{
    fast_load_t load = {.producers = 1, .operations = 3000};

    assert_true(noticed(load, BREAK_OWNER));
}

static void test_block_map_not_looked_at(void **state)
{
    assert_true(noticed(races, BREAK_BLOCKS));
}

/* --- the gate's orders --------------------------------------------------- */

/* One round: EL1 announces and looks at the claim, the host claims and looks at
 * who is active. Both must not go on. */
typedef struct rounds {
    _Alignas(64) uint64_t active;
    _Alignas(64) uint64_t claim;
    _Alignas(64) _Atomic unsigned el1, host; /* rounds begun */
    bool el1_in, host_in;
    unsigned both;
} rounds_t;

#define ROUNDS 200000U

static void meet(_Atomic unsigned *mine, const _Atomic unsigned *other)
{
    unsigned round = atomic_fetch_add(mine, 1) + 1;

    while (atomic_load(other) < round)
        ;
}

static void *el1_side(void *arg)
{
    rounds_t *r = arg;

    for (unsigned i = 0; i < ROUNDS; i++) {
        meet(&r->el1, &r->host);
        fast_gate_store(&r->active, fast_range(3, 4));
        r->el1_in = !fast_overlap(fast_gate_load(&r->claim), fast_range(3, 4));
        meet(&r->el1, &r->host);
        __atomic_store_n(&r->active, 0, __ATOMIC_RELEASE);
    }
    return NULL;
}

static unsigned count_both(int rule)
{
    rounds_t *r = aligned_alloc(64, sizeof(*r));
    pthread_t thread;
    unsigned both;

    assert_non_null(r);
    *r = (rounds_t){.both = 0};
    fast_break = rule;
    assert_int_equal(pthread_create(&thread, NULL, el1_side, r), 0);
    for (unsigned i = 0; i < ROUNDS; i++) {
        bool alone;

        meet(&r->host, &r->el1);
        fast_gate_store(&r->claim, fast_range(0, 9));
        alone = !fast_overlap(fast_gate_load(&r->active), fast_range(0, 9));
        meet(&r->host, &r->el1);
        r->both += alone && r->el1_in;
        __atomic_store_n(&r->claim, 0, __ATOMIC_RELEASE);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    fast_break = BREAK_NOTHING;
    both = r->both;
    free(r);
    return both;
}

static void test_gate_excludes(void **state)
{
    assert_int_equal(count_both(BREAK_NOTHING), 0);
}

static void test_acquire_and_release_do_not(void **state)
{
    unsigned both = count_both(BREAK_GATE_ORDER);

    print_message("both sides were in, in %u of %u rounds\n", both, ROUNDS);
    assert_in_range(both, 1, ROUNDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_broken),
        cmocka_unit_test(test_no_invalidation),
        cmocka_unit_test(test_gate_not_looked_at),
        cmocka_unit_test(test_not_active_while_invalidating),
        cmocka_unit_test(test_retirements_before_grants),
        cmocka_unit_test(test_no_drain_after_claim),
        cmocka_unit_test(test_owner_not_looked_at),
        cmocka_unit_test(test_block_map_not_looked_at),
        cmocka_unit_test(test_gate_excludes),
        cmocka_unit_test(test_acquire_and_release_do_not),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
