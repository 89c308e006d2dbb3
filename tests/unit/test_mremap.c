/* SPDX-License-Identifier: Apache-2.0 */
/* sources: tests/unit/fake_mm.c src/stats.c */
/* sources: src/mm/copy.c src/mm/dirty.c src/mm/gather.c src/mm/hostspace.c */
/* sources: src/mm/materialise.c src/mm/mm.c src/mm/objectspace.c */
/* sources: src/mm/pagetable.c src/mm/ptmove.c src/mm/ptretain.c */
/* sources: src/mm/span.c src/mm/tablepool.c src/mm/window.c */
/* sources: src/mm/vma.c src/mm/object.c src/mm/objectedge.c */
/* sources: src/mm/account.c src/mm/mmap.c src/mm/munmap.c src/mm/mlock.c */
/* sources: src/mm/shm.c src/mm/fault.c src/mm/image.c src/mm/mremap.c */
/* sources: src/mm/maps.c src/mm/hostmaps.c */
/*
 * MREMAP_FIXED when there are no tables left: the target stays as it was,
 * however many there are before they run out.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "fake_mm.h"

/* In different top-level entries, so that every level of tables is needed. */
#define SOURCE 0x100000000000UL
#define TARGET 0x180000000000UL
#define BLOCKS 4U
#define LEN    (BLOCKS * BLOCK_SIZE)

static mm_t *mm;
static mm_cpu_t *cpu;

static void map(uint64_t addr)
{
    assert_int_equal(mm_mmap(mm, cpu, addr, LEN, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
                     addr);
}

static void touch(uint64_t addr, bool write, uint64_t value)
{
    uint64_t got = value;

    assert_int_equal(guest_access(mm, cpu, addr, write, &got), 0);
    assert_int_equal(got, value);
}

static char *maps(void)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    assert_int_equal(mm_print_maps(mm, out), 0);
    fclose(out);
    return text;
}

/* No more than n tables can be had from now on. */
static void leave_tables(uint32_t n)
{
    table_pool_t *pool = mm->pool;

    assert_true(pool->nr_mapped - pool->nr_fresh >= n);
    pool->free = 0;
    pool->nr_fresh = pool->nr_mapped - n;
    pool->size = (uint64_t) pool->nr_mapped * GUEST_PAGE_SIZE;
}

static void no_table_is_pinned(void)
{
    for (uint32_t i = 0; i < mm->pool->nr_fresh; i++)
        assert_false(mm->pool->meta[i].pinned);
}

/* Every block of the source is touched, the first one of the target. */
static void make_world(void)
{
    mm = fake_mm_create(40, 45, GUEST_PAGE_SIZE);
    cpu = fake_cpu_create(mm);
    guest_stale = 0;
    guest_enter(cpu);
    map(SOURCE);
    map(TARGET);
    for (unsigned i = 0; i < BLOCKS; i++)
        touch(SOURCE + i * BLOCK_SIZE + 8, true, 100 + i);
    touch(TARGET + 16, true, 7);
}

static int64_t move_with(uint32_t tables)
{
    int64_t ret;

    leave_tables(tables);
    ret = mm_mremap(mm, cpu, SOURCE, LEN, LEN, MREMAP_MAYMOVE | MREMAP_FIXED,
                    TARGET);
    no_table_is_pinned();
    return ret;
}

static void target_survives(void **state)
{
    uint32_t tables = 0;
    int64_t ret;

    do {
        char *before, *after;

        make_world();
        before = maps();
        ret = move_with(tables);
        after = maps();
        if (ret < 0) {
            assert_int_equal(ret, -ENOMEM);
            assert_string_equal(before, after);
            touch(TARGET + 16, false, 7);
            for (unsigned i = 0; i < BLOCKS; i++)
                touch(SOURCE + i * BLOCK_SIZE + 8, false, 100 + i);
        } else {
            assert_int_equal(ret, TARGET);
            assert_string_not_equal(before, after);
            touch(TARGET + 16, false, 0);
            for (unsigned i = 0; i < BLOCKS; i++)
                touch(TARGET + i * BLOCK_SIZE + 8, false, 100 + i);
        }
        assert_int_equal(guest_stale, 0);
        free(before);
        free(after);
        munmap(mm->space->base, mm->space->size);
    } while (ret < 0 && ++tables < 16);
    /* The target had the tables of its first block. */
    assert_int_equal(tables, BLOCKS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(target_survives),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
