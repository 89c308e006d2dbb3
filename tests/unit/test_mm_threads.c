/* SPDX-License-Identifier: Apache-2.0 */
/* threaded */
/* sources: tests/unit/fake_mm.c src/stats.c */
/* sources: src/mm/copy.c src/mm/dirty.c src/mm/gather.c src/mm/hostspace.c */
/* sources: src/mm/materialise.c src/mm/mm.c src/mm/objectspace.c */
/* sources: src/mm/pagetable.c src/mm/ptmove.c src/mm/ptretain.c */
/* sources: src/mm/span.c src/mm/tablepool.c src/mm/window.c */
/*
 * Host threads that reach guest memory at once: first touch of one block by
 * all, and spans that are held while another thread unmaps and drops the memory
 * under them. Fixed numbers of rounds, no time limits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "fake_mm.h"
#include "proc/proc.h"

#define THREADS 4
#define BASE    (1UL << 32)
#define RW      (PROT_READ | PROT_WRITE)

static mm_t *mm;
static pthread_barrier_t barrier;

typedef struct worker {
    pthread_t thread;
    mm_cpu_t *cpu;
    unsigned id, rounds;
    unsigned given, refused;
} worker_t;

static void barrier_wait(void)
{
    int error = pthread_barrier_wait(&barrier);

    if (error && error != PTHREAD_BARRIER_SERIAL_THREAD)
        elfuse_panic("barrier: %s", strerror(error));
}

static void start(worker_t *workers, unsigned rounds, void *(*fn)(void *) )
{
    assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        workers[i] =
            (worker_t){.cpu = fake_cpu_create(mm), .id = i, .rounds = rounds};
        assert_int_equal(
            pthread_create(&workers[i].thread, NULL, fn, &workers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    assert_int_equal(pthread_barrier_destroy(&barrier), 0);
}

/* Every thread adds one to each 8 bytes of its own in every page of a block. */
static void *touch_block(void *arg)
{
    worker_t *w = arg;

    for (unsigned round = 0; round < w->rounds; round++) {
        uint64_t block = BASE + round * BLOCK_SIZE;

        barrier_wait();
        for (uint64_t v = block; v < block + BLOCK_SIZE; v += 0x1000) {
            uint64_t value = 1, at = v + w->id * 8UL;

            if (copy_from_guest(mm, w->cpu, &value, at, 8))
                elfuse_panic("no access to %#lx", at);
            if (value)
                elfuse_panic("%#lx is not zero", at);
            value = w->id + 1;
            if (copy_to_guest(mm, w->cpu, at, &value, 8))
                elfuse_panic("no access to %#lx", at);
        }
    }
    return NULL;
}

/* A page that one thread zeroes after another has written to it would show. */
static void test_first_touch(void **state)
{
    enum { ROUNDS = 20 };
    worker_t workers[THREADS];

    mm = fake_mm_create(40, 40, 4096);
    fake_vma_set(BASE, BASE + ROUNDS * BLOCK_SIZE, RW, 0);
    start(workers, ROUNDS, touch_block);
    for (uint64_t v = BASE; v < BASE + ROUNDS * BLOCK_SIZE; v += 0x1000) {
        uint64_t value[THREADS];

        assert_int_equal(
            copy_from_guest(mm, workers[0].cpu, value, v, sizeof(value)), 0);
        for (unsigned i = 0; i < THREADS; i++)
            assert_int_equal(value[i], i + 1);
    }
}

/* Thread 0: map, touch, unmap with the backing dropped, over and over. */
static void edit(worker_t *w, unsigned round)
{
    uint64_t value = round + 1;
    gather_t g;

    mm_lock(mm);
    fake_vma_set(BASE, BASE + 0x4000, RW, 0);
    mm_unlock(mm);
    if (copy_to_guest(mm, w->cpu, BASE, &value, 8))
        elfuse_panic("no access to what was mapped");
    mm_lock(mm);
    gather_begin(&g, mm, w->cpu);
    pt_unmap(mm, &g, BASE, BASE + 0x4000);
    if (round % 2)
        gather_drop_backing(&g, BASE, BASE + 0x4000);
    gather_finish(&g);
    fake_vma_clear(BASE, BASE + 0x4000);
    mm_unlock(mm);
    guest_enter(w->cpu);
    guest_exit(mm, w->cpu);
}

/* The others: what a span gives stays as it is while it is held. */
static void hold(worker_t *w)
{
    struct iovec iov;
    span_set_t set;
    uint64_t *word;

    if (span_get(mm, w->cpu, BASE + w->id * 0x1000UL, 8, SPAN_WRITE, &iov, 1,
                 &set)) {
        w->refused++;
        return;
    }
    word = iov.iov_base;
    __atomic_store_n(word, w->id, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < 50; i++)
        if (__atomic_load_n(word, __ATOMIC_RELAXED) != w->id)
            elfuse_panic("memory under a span was zeroed or dropped");
    span_put(w->cpu, &set);
    w->given++;
}

static void *edit_or_hold(void *arg)
{
    worker_t *w = arg;

    for (unsigned round = 0; round < w->rounds; round++) {
        if (w->id == 0) {
            edit(w, round);
        } else {
            hold(w);
            guest_enter(w->cpu);
            guest_exit(mm, w->cpu);
        }
    }
    return NULL;
}

static void test_spans_and_unmap(void **state)
{
    worker_t workers[THREADS];
    uint64_t value = 1;

    mm = fake_mm_create(40, 40, 4096);
    start(workers, 3000, edit_or_hold);
    /* No stale contents come back. */
    fake_vma_set(BASE, BASE + 0x4000, RW, 0);
    for (unsigned i = 0; i < THREADS; i++) {
        assert_int_equal(
            copy_from_guest(mm, workers[0].cpu, &value, BASE + i * 0x1000UL, 8),
            0);
        assert_int_equal(value, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_touch),
        cmocka_unit_test(test_spans_and_unmap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
