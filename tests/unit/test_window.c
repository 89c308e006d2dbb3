/* SPDX-License-Identifier: Apache-2.0 */
/* sources: tests/unit/fake_mm.c tests/unit/mm_model.c src/stats.c */
/* sources: src/mm/copy.c src/mm/dirty.c src/mm/gather.c src/mm/hostspace.c */
/* sources: src/mm/materialise.c src/mm/mm.c src/mm/objectspace.c */
/* sources: src/mm/pagetable.c src/mm/ptmove.c src/mm/ptretain.c */
/* sources: src/mm/span.c src/mm/tablepool.c src/mm/window.c */
/* IPA windows: opening, eviction, and life with 36 bits of IPA. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "mm_model.h"
#include "stats.h"

static uint64_t random_page(const mm_t *mm)
{
    uint64_t r = (uint64_t) random() << 31 ^ (uint64_t) random();

    return (r << GUEST_PAGE_SHIFT & (mm->task_size - 1)) | 0x1000;
}

static void unmap(mm_t *mm, mm_cpu_t *cpu, uint64_t start, uint64_t end)
{
    gather_t g;

    guest_exit(mm, cpu);
    mm_lock(mm);
    gather_begin(&g, mm, cpu);
    pt_unmap(mm, &g, start, end);
    gather_finish(&g);
    mm_unlock(mm);
    fake_vma_clear(start, end);
    guest_enter(cpu);
}

/* One-page maps all over user space, each touched and unmapped. */
static void test_one_after_the_other(void **state)
{
    mm_t *mm = fake_mm_create(36, 0, 4096);
    mm_cpu_t *cpu = fake_cpu_create(mm);
    unsigned stale = guest_stale;

    srandom(1);
    for (unsigned i = 0; i < 10000; i++) {
        uint64_t v = random_page(mm), value = v;

        fake_vma_set(v, v + 4096, PROT_READ | PROT_WRITE, 0);
        assert_int_equal(guest_access(mm, cpu, v, true, &value), 0);
        value = 0;
        assert_int_equal(guest_access(mm, cpu, v, false, &value), 0);
        assert_int_equal(value, v);
        unmap(mm, cpu, v, v + 4096);
    }
    assert_in_range(fake_slots_most, 400, 512);
    assert_int_equal(guest_stale, stale);
    model_check_books(mm);
}

/* More windows alive at once than there are IPA ranges. */
static void test_alive_at_once(void **state)
{
    enum { PAGES = 1500 };
    mm_t *mm = fake_mm_create(36, 0, 4096);
    mm_cpu_t *cpu = fake_cpu_create(mm);
    static uint64_t page[PAGES];
    unsigned stale = guest_stale;
    uint64_t value;

    srandom(2);
    for (unsigned i = 0; i < PAGES; i++) {
        page[i] = value = random_page(mm);
        fake_vma_set(page[i], page[i] + 4096, PROT_READ | PROT_WRITE, 0);
        assert_int_equal(guest_access(mm, cpu, page[i], true, &value), 0);
    }
    for (unsigned i = 0; i < 2 * PAGES; i++) {
        unsigned n = (unsigned) random() % PAGES;
        struct iovec iov;
        span_set_t set;

        if (i % 2) {
            assert_int_equal(guest_access(mm, cpu, page[n], false, &value), 0);
            assert_int_equal(value, page[n]);
            continue;
        }
        /* elfuse itself sees evicted pages, too. */
        assert_int_equal(
            span_get(mm, cpu, page[n], 8, SPAN_READ, &iov, 1, &set), 0);
        assert_int_equal(*(uint64_t *) iov.iov_base, page[n]);
        span_put(cpu, &set);
    }
    assert_in_range(fake_slots_most, 400, 512);
    model_check_books(mm);
    for (unsigned i = 0; i < PAGES; i++)
        unmap(mm, cpu, page[i], page[i] + 4096);
    model_check_books(mm);
    assert_int_equal(mm->pool->resident, 0);
    assert_int_equal(guest_stale, stale);
}

/* An object's pages are evicted and come back, through their VMA. */
static void test_objects(void **state)
{
    mm_t *mm;
    mm_cpu_t *cpu;
    uint64_t host, far, value = 0, base = 5UL << 32, size = 6UL << 20;
    static struct object *none = (struct object *) (void *) &none;
    vma_t *vma;

    fake_slots_limit = 2; /* the pool and one window */
    mm = fake_mm_create(36, 0, 4096);
    cpu = fake_cpu_create(mm);
    mm_lock(mm);
    /* Over the border of two windows. */
    far = hostspace_object_alloc(mm, (128UL << 20) - (2UL << 20));
    host = hostspace_object_alloc(mm, size);
    mm_unlock(mm);
    assert_true(far && host);
    assert_ptr_not_equal(mmap((void *) host, size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                         MAP_FAILED);
    vma = fake_vma_set(base, base + size, PROT_READ | PROT_WRITE, 0);
    vma->object = none;
    vma->object_host = host;
    for (unsigned round = 0; round < 3; round++) {
        for (uint64_t off = 0; off < size; off += 0x3000) {
            value = off + round;
            assert_int_equal(guest_access(mm, cpu, base + off, true, &value),
                             0);
            assert_int_equal(*(uint64_t *) (host + off), value);
        }
    }
    assert_in_range(fake_slots_made, 4, ~0U);
    unmap(mm, cpu, base, base + size);
    guest_exit(mm, cpu);
    model_check_books(mm);
    assert_int_equal(model_tables(mm), 1);
    fake_slots_limit = 8192;
}

/* More pieces of user space in use, one after the other, than the host allows
 * mappings: what is only retained makes room. */
static void test_host_mappings(void **state)
{
    mm_t *mm = fake_mm_create(40, 0, 4096);
    mm_cpu_t *cpu = fake_cpu_create(mm);
    uint64_t before = stats.bytes_dropped, step = 2 * CHUNK_SIZE;

    for (unsigned i = 1; i < 36000; i++) {
        uint64_t v = i * step, value = v;

        fake_vma_set(v, v + 4096, PROT_READ | PROT_WRITE, 0);
        assert_int_equal(guest_access(mm, cpu, v, true, &value), 0);
        /* One of sixteen stays. */
        if (i % 16)
            unmap(mm, cpu, v, v + 4096);
    }
    assert_in_range(stats.bytes_dropped, before + 4096, ~0UL);
    model_check_books(mm);
    for (unsigned i = 16; i < 36000; i += 16) {
        uint64_t value;

        assert_int_equal(guest_access(mm, cpu, i * step, false, &value), 0);
        assert_int_equal(value, i * step);
    }
}

/* No memory slot can be had at all: ENOMEM, nothing else. */
static void test_no_slot(void **state)
{
    mm_t *mm;
    mm_cpu_t *cpu;
    uint64_t value = 0;

    fake_slots_limit = 1;
    mm = fake_mm_create(40, 0, 4096);
    cpu = fake_cpu_create(mm);
    fake_vma_set(1UL << 32, (1UL << 32) + 4096, PROT_READ | PROT_WRITE, 0);
    assert_int_not_equal(guest_access(mm, cpu, 1UL << 32, true, &value), 0);
    fake_slots_limit = 8192;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_after_the_other),
        cmocka_unit_test(test_alive_at_once),
        cmocka_unit_test(test_objects),
        cmocka_unit_test(test_no_slot),
        cmocka_unit_test(test_host_mappings),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
