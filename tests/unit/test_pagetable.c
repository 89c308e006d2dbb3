/* SPDX-License-Identifier: Apache-2.0 */
/* sources: tests/unit/fake_mm.c tests/unit/mm_model.c src/stats.c */
/* sources: src/mm/copy.c src/mm/dirty.c src/mm/gather.c src/mm/hostspace.c */
/* sources: src/mm/materialise.c src/mm/mm.c src/mm/objectspace.c */
/* sources: src/mm/pagetable.c src/mm/ptmove.c src/mm/ptretain.c */
/* sources: src/mm/span.c src/mm/tablepool.c src/mm/window.c */
/* Page tables, first touch, unmapping, protection, moves, discards: random
 * operations against a model, as one guest thread would do them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "mm_model.h"
#include "stats.h"

static void run(unsigned ipa_bits, size_t host_page, unsigned seed)
{
    mm_model_t *model = model_create(ipa_bits, host_page, seed);

    guest_stale = 0;
    model_run(model, 700);
    model_end(model);
    assert_int_equal(guest_stale, 0);
}

static void test_random_40(void **state)
{
    run(40, 4096, 1);
}

static void test_random_36(void **state)
{
    run(36, 4096, 2);
}

static void test_random_16k(void **state)
{
    run(40, 16384, 3);
}

/* Two IPA windows only: every few accesses one is evicted. */
static void test_random_eviction(void **state)
{
    fake_slots_limit = 3; /* the pool and two windows */
    run(36, 4096, 4);
    fake_slots_limit = 8192;
    assert_in_range(fake_slots_made, 20, ~0U);
}

static void test_protections(void **state)
{
    for (int prot = 0; prot < 8; prot++) {
        pte_t pte = pte_prot(prot);
        int expect = prot ? prot | PROT_READ : 0;

        assert_true(pte_valid(pte));
        assert_int_equal(pte_access(pte), expect);
        assert_true(pte & PTE_AF);
        assert_true(pte & PTE_PXN);
    }
}

/* A terabyte with ten pages: tables are skipped, and given back. */
static void test_sparse(void **state)
{
    mm_t *mm = fake_mm_create(40, 0, 4096);
    mm_cpu_t *cpu = fake_cpu_create(mm);
    uint64_t base = 1UL << 40, size = 32UL << 40, value = 7;
    gather_t g;

    if (mm->task_size < base + size)
        size = mm->task_size - base;
    fake_vma_set(base, base + size, PROT_READ | PROT_WRITE, 0);
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(guest_access(mm, cpu, base + (size / 10 & ~4095UL) * i,
                                      true, &value),
                         0);
    assert_in_range(model_tables(mm), 12, 31);
    guest_exit(mm, cpu);
    mm_lock(mm);
    gather_begin(&g, mm, cpu);
    pt_discard(mm, &g, base, base + size);
    gather_drop_backing(&g, base, base + size);
    gather_finish(&g);
    mm_unlock(mm);
    for (int i = 0; i < 3; i++) {
        guest_enter(cpu);
        guest_exit(mm, cpu);
    }
    assert_int_equal(model_tables(mm), 1);
    assert_int_equal(guest_stale, 0);
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
    guest_enter(cpu);
    guest_exit(mm, cpu);
}

/* Retained memory stays under its cap, oldest first, and reads zero. */
static void test_retained(void **state)
{
    mm_t *mm = fake_mm_create(40, 40, 4096);
    mm_cpu_t *cpu = fake_cpu_create(mm);
    uint64_t base = 1UL << 32, step = 8UL << 20, value = 7;

    for (unsigned i = 0; i < 16; i++) {
        uint64_t start = base + i * step;

        fake_vma_set(start, start + step, PROT_READ | PROT_WRITE, 0);
        for (uint64_t v = start; v < start + step; v += 4096)
            assert_int_equal(guest_access(mm, cpu, v, true, &value), 0);
        unmap(mm, cpu, start, start + step);
        assert_in_range(mm->pool->retained, 0,
                        (64UL << 20 >> GUEST_PAGE_SHIFT) + 4096);
        model_check_books(mm);
    }
    /* The oldest is gone, the newest still there; both read zero. */
    assert_false(dirty_test(mm->dirty, base >> BLOCK_SHIFT));
    assert_true(dirty_test(mm->dirty, (base + 15 * step) >> BLOCK_SHIFT));
    for (unsigned i = 0; i < 16; i++) {
        fake_vma_set(base + i * step, base + (i + 1) * step, PROT_READ, 0);
        value = 1;
        assert_int_equal(
            guest_access(mm, cpu, base + i * step + 8, false, &value), 0);
        assert_int_equal(value, 0);
    }
}

/* A lone touch of clean memory takes 64 KiB at most and zeroes nothing; a
 * second VMA in the block finds it known to be zero. */
static void test_first_touch(void **state)
{
    mm_t *mm = fake_mm_create(40, 40, 4096);
    mm_cpu_t *cpu = fake_cpu_create(mm);
    uint64_t base = 1UL << 33, value = 1, zeroed = stats.pages_zeroed;

    fake_vma_set(base, base + 0x3000, PROT_READ | PROT_WRITE, 0);
    fake_vma_set(base + 0x20000, base + 0x100000, PROT_READ | PROT_WRITE, 0);
    assert_int_equal(guest_access(mm, cpu, base, true, &value), 0);
    assert_int_equal(pt_count_present(mm, base, base + BLOCK_SIZE), 3);
    assert_int_equal(guest_access(mm, cpu, base + 0x25000, true, &value), 0);
    assert_int_equal(pt_count_present(mm, base, base + BLOCK_SIZE), 19);
    assert_int_equal(stats.pages_zeroed, zeroed);
    /* Recycled: only what is touched is zeroed. */
    unmap(mm, cpu, base + 0x20000, base + 0x100000);
    assert_int_equal(guest_access(mm, cpu, base + 0x25000, false, &value), 0);
    assert_int_equal(value, 0);
    assert_in_range(stats.pages_zeroed, zeroed + 1, zeroed + 4);
    /* A fault on what is valid does nothing. */
    value = 5;
    assert_int_equal(guest_access(mm, cpu, base + 0x25000, true, &value), 0);
    mm_lock(mm);
    assert_int_equal(materialise_fault(mm, cpu, vma_find(mm, base + 0x25000),
                                       base + 0x25000),
                     0);
    mm_unlock(mm);
    assert_int_equal(guest_access(mm, cpu, base + 0x25000, false, &value), 0);
    assert_int_equal(value, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_protections),
        cmocka_unit_test(test_first_touch),
        cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_retained),
        cmocka_unit_test(test_random_40),
        cmocka_unit_test(test_random_36),
        cmocka_unit_test(test_random_16k),
        cmocka_unit_test(test_random_eviction),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
