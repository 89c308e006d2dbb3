/* SPDX-License-Identifier: Apache-2.0 */
/* sources: tests/unit/fake_mm.c tests/unit/mm_model.c src/stats.c */
/* sources: src/mm/copy.c src/mm/dirty.c src/mm/gather.c src/mm/hostspace.c */
/* sources: src/mm/materialise.c src/mm/mm.c src/mm/objectspace.c */
/* sources: src/mm/pagetable.c src/mm/ptmove.c src/mm/ptretain.c */
/* sources: src/mm/span.c src/mm/tablepool.c src/mm/window.c */
/* Spans and elfuse's own copies: what is accessible, and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "mm_model.h"

#define BASE 0x10000000UL
#define RW   (PROT_READ | PROT_WRITE)

static mm_t *mm;
static mm_cpu_t *cpu;

static int setup(void **state)
{
    mm = fake_mm_create(40, 40, 4096);
    cpu = fake_cpu_create(mm);
    return 0;
}

/* Bytes accessible from addr on, or -EFAULT. */
static int64_t prefix(uint64_t addr, size_t len, enum span_access access)
{
    struct iovec iov[16];
    span_set_t set;
    int error = span_get(mm, cpu, addr, len, access, iov, 16, &set);
    size_t sum = 0;

    for (int i = 0; !error && i < set.nr; i++)
        sum += iov[i].iov_len;
    assert_int_equal(sum, error ? 0 : set.bytes);
    span_put(cpu, &set);
    for (int i = 0; i < SPAN_SLOTS; i++)
        assert_int_equal(cpu->span[i].end, 0);
    return error ? error : (int64_t) set.bytes;
}

static void test_prefix(void **state)
{
    fake_vma_set(BASE, BASE + 0x3000, RW, 0);
    fake_vma_set(BASE + 0x3000, BASE + 0x4000, PROT_READ, 0);
    fake_vma_set(BASE + 0x4000, BASE + 0x5000, PROT_NONE, 0);
    assert_int_equal(prefix(BASE + 10, 0x10000, SPAN_READ), 0x4000 - 10);
    assert_int_equal(prefix(BASE + 10, 0x10000, SPAN_WRITE), 0x3000 - 10);
    assert_int_equal(prefix(BASE + 10, 5, SPAN_WRITE), 5);
    assert_int_equal(prefix(BASE + 0x2fff, 2, SPAN_WRITE), 1);
    assert_int_equal(prefix(BASE + 0x3000, 1, SPAN_WRITE), -EFAULT);
    assert_int_equal(prefix(BASE + 0x4000, 1, SPAN_READ), -EFAULT);
    assert_int_equal(prefix(BASE - 1, 2, SPAN_READ), -EFAULT);
}

static void test_zero_length(void **state)
{
    uint64_t present;

    assert_int_equal(prefix(0, 0, SPAN_WRITE), 0);
    assert_int_equal(prefix(~0UL, 0, SPAN_WRITE), 0);
    fake_vma_set(BASE, BASE + 0x1000, RW, 0);
    assert_int_equal(prefix(BASE, 0, SPAN_WRITE), 0);
    present = pt_count_present(mm, 0, mm->task_size);
    assert_int_equal(present, 0);
    assert_int_equal(copy_to_guest(mm, cpu, 0, "", 0), 0);
}

/* Nothing but the pages asked for is made present. */
static void test_exact(void **state)
{
    fake_vma_set(BASE, BASE + 0x100000, RW, 0);
    assert_int_equal(prefix(BASE + 0x5ffe, 4, SPAN_WRITE), 4);
    assert_int_equal(pt_count_present(mm, 0, mm->task_size), 2);
}

static void test_addresses(void **state)
{
    uint64_t top = mm->task_size;

    fake_vma_set(BASE, BASE + 0x1000, RW, 0);
    fake_vma_set(top - 0x1000, top, RW, 0);
    /* A tag in the top byte matters until it is allowed, anything below it
     * always. */
    assert_int_equal(prefix(BASE | 0xab00000000000000UL, 8, SPAN_WRITE),
                     -EFAULT);
    span_tags = true;
    assert_int_equal(prefix(BASE | 0xab00000000000000UL, 8, SPAN_WRITE), 8);
    assert_int_equal(prefix(BASE | 0x00ab000000000000UL, 8, SPAN_WRITE),
                     -EFAULT);
    assert_int_equal(prefix(BASE | 0x0080000000000000UL, 8, SPAN_WRITE),
                     -EFAULT);
    assert_int_equal(prefix(top - 8, 16, SPAN_WRITE), 8);
    assert_int_equal(prefix(top - 8, ~0UL, SPAN_WRITE), 8);
    assert_int_equal(prefix(top, 8, SPAN_READ), -EFAULT);
    assert_int_equal(prefix(~0UL, 8, SPAN_READ), -EFAULT);
    span_tags = false;
}

/* An untouched gigabyte is prepared a step at a time. */
static void test_step(void **state)
{
    fake_vma_set(BASE, BASE + (1UL << 30), RW, 0);
    assert_int_equal(prefix(BASE, 1UL << 30, SPAN_WRITE), SPAN_STEP);
    assert_int_equal(pt_count_present(mm, 0, mm->task_size),
                     SPAN_STEP / GUEST_PAGE_SIZE);
    /* What is there is given as a whole, and a step more. */
    assert_int_equal(prefix(BASE, 1UL << 30, SPAN_WRITE), 2 * SPAN_STEP);
}

static void *map_object(uint64_t at, uint64_t size, int prot, int fd)
{
    static struct object *none = (struct object *) (void *) &none;
    uint64_t host;
    vma_t *vma;

    mm_lock(mm);
    host = hostspace_object_alloc(mm, size);
    mm_unlock(mm);
    assert_int_not_equal(host, 0);
    assert_ptr_not_equal(
        mmap((void *) host, size, prot,
             MAP_FIXED | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED),
             fd, 0),
        MAP_FAILED);
    vma = fake_vma_set(at, at + size, prot, 0);
    vma->object = none;
    vma->object_host = host;
    return (void *) host;
}

static void test_borders(void **state)
{
    struct iovec iov[4];
    span_set_t set;
    char *object;

    fake_vma_set(BASE, BASE + 0x2000, RW, 0);
    object = map_object(BASE + 0x2000, 0x2000, RW, -1);
    fake_vma_set(BASE + 0x4000, BASE + 0x5000, RW, 0);
    assert_int_equal(
        span_get(mm, cpu, BASE + 0x1800, 0x3000, SPAN_WRITE, iov, 4, &set), 0);
    assert_int_equal(set.nr, 3);
    assert_ptr_equal(iov[1].iov_base, object);
    assert_int_equal(iov[0].iov_len, 0x800);
    assert_int_equal(iov[1].iov_len, 0x2000);
    assert_int_equal(iov[2].iov_len, 0x800);
    span_put(cpu, &set);
    /* Too few pieces: the prefix ends early. */
    assert_int_equal(
        span_get(mm, cpu, BASE + 0x1800, 0x3000, SPAN_WRITE, iov, 2, &set), 0);
    assert_int_equal(set.bytes, 0x2800);
    span_put(cpu, &set);
}

static void test_copies(void **state)
{
    static char out[0x4000], in[0x4000];
    char *object;

    for (size_t i = 0; i < sizeof(out); i++)
        out[i] = (char) (i * 7);
    fake_vma_set(BASE, BASE + 0x2000, RW, 0);
    object = map_object(BASE + 0x2000, 0x3000, RW, -1);
    assert_int_equal(copy_to_guest(mm, cpu, BASE + 0x800, out, 0x4000), 0);
    assert_memory_equal(object, out + 0x1800, 0x2800);
    assert_int_equal(copy_from_guest(mm, cpu, in, BASE + 0x800, 0x4000), 0);
    assert_memory_equal(in, out, sizeof(out));
    assert_int_equal(clear_guest(mm, cpu, BASE + 0x1000, 0x3000), 0);
    assert_int_equal(copy_from_guest(mm, cpu, in, BASE + 0x800, 0x4000), 0);
    memset(out + 0x800, 0, 0x3000);
    assert_memory_equal(in, out, sizeof(out));
    assert_int_equal(copy_from_guest(mm, cpu, in, BASE + 0x4800, 0x1000),
                     -EFAULT);
    assert_int_equal(copy_to_guest(mm, cpu, 0, in, 1), -EFAULT);
}

/* A truncated file: EFAULT, no SIGBUS. */
static void test_truncated(void **state)
{
    FILE *file = tmpfile();
    char text[8] = "1234567";

    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), 0x2000), 0);
    map_object(BASE, 0x2000, RW, fileno(file));
    assert_int_equal(copy_to_guest(mm, cpu, BASE + 0x1000, text, 8), 0);
    assert_int_equal(ftruncate(fileno(file), 0x1000), 0);
    assert_int_equal(copy_to_guest(mm, cpu, BASE + 0x1000, text, 8), -EFAULT);
    assert_int_equal(copy_from_guest(mm, cpu, text, BASE + 0x1000, 8), -EFAULT);
    assert_int_equal(clear_guest(mm, cpu, BASE + 0x1000, 8), -EFAULT);
    assert_int_equal(copy_string_from_guest(mm, cpu, text, BASE + 0x1000, 8),
                     -EFAULT);
    assert_int_equal(copy_to_guest(mm, cpu, BASE + 0xff8, text, 8), 0);
    fclose(file);
}

static void test_strings(void **state)
{
    static char text[0x2000], in[0x2000];

    fake_vma_set(BASE, BASE + 0x2000, RW, 0);
    map_object(BASE + 0x4000, 0x2000, RW, -1);
    memset(text, 'x', sizeof(text));
    for (unsigned i = 0; i < 2; i++) {
        uint64_t at = BASE + i * 0x4000UL;

        text[0x900] = 0;
        /* Over a page's end. */
        assert_int_equal(copy_to_guest(mm, cpu, at + 0x800, text, 0x901), 0);
        assert_int_equal(
            copy_string_from_guest(mm, cpu, in, at + 0x800, sizeof(in)), 0x900);
        assert_string_equal(in, text);
        assert_int_equal(copy_string_from_guest(mm, cpu, in, at + 0x800, 0x901),
                         0x900);
        assert_int_equal(copy_string_from_guest(mm, cpu, in, at + 0x800, 0x900),
                         -ENAMETOOLONG);
        /* Ends with the last accessible byte, and runs off it. */
        assert_int_equal(copy_to_guest(mm, cpu, at + 0x1ffe, "a", 2), 0);
        assert_int_equal(
            copy_string_from_guest(mm, cpu, in, at + 0x1ffe, sizeof(in)), 1);
        assert_int_equal(copy_to_guest(mm, cpu, at + 0x1ffe, "ab", 2), 0);
        assert_int_equal(
            copy_string_from_guest(mm, cpu, in, at + 0x1ffe, sizeof(in)),
            -EFAULT);
        text[0x900] = 'x';
    }
    assert_int_equal(copy_string_from_guest(mm, cpu, in, BASE, 0),
                     -ENAMETOOLONG);
}

static void unmap(uint64_t start, uint64_t end, bool drop)
{
    gather_t g;

    mm_lock(mm);
    gather_begin(&g, mm, cpu);
    pt_unmap(mm, &g, start, end);
    if (drop)
        gather_drop_backing(&g, start, end);
    gather_finish(&g);
    mm_unlock(mm);
    guest_enter(cpu);
    guest_exit(mm, cpu);
}

/* read(pipe) into X blocks; X is unmapped; nothing of it is given back, called
 * clean or free until the read is over; then what it wrote is not seen. */
static void test_span_outlives_unmap(void **state)
{
    uint64_t far = BASE + (1UL << 32), value = 7;
    mm_cpu_t *other = fake_cpu_create(mm);
    struct iovec iov;
    span_set_t set;

    fake_vma_set(far, far + 0x4000, RW, 0);
    assert_int_equal(
        span_get(mm, other, far, 0x4000, SPAN_WRITE, &iov, 1, &set), 0);
    *(uint64_t *) iov.iov_base = 1;
    unmap(far, far + 0x4000, true);
    fake_vma_clear(far, far + 0x4000);
    assert_true(gather_revoking(mm, far, far + 0x1000));
    assert_int_equal(*(uint64_t *) iov.iov_base, 1);
    assert_true(dirty_test(mm->dirty, far >> BLOCK_SHIFT));
    assert_non_null(pt_walk(mm, far));
    /* The late write, then a new mapping of the same place: zero. */
    *(uint64_t *) iov.iov_base = 2;
    span_put(other, &set);
    guest_exit(mm, cpu);
    /* Its table has been unlinked, which has an invalidation of its own. */
    guest_enter(cpu);
    guest_exit(mm, cpu);
    assert_false(gather_revoking(mm, far, far + 0x1000));
    assert_false(dirty_test(mm->dirty, far >> BLOCK_SHIFT));
    guest_enter(cpu);
    fake_vma_set(far, far + 0x4000, RW, 0);
    assert_int_equal(guest_access(mm, cpu, far, false, &value), 0);
    assert_int_equal(value, 0);
}

/* The same for an object: its host pages stay until the span is put. */
static void test_span_outlives_object(void **state)
{
    mm_cpu_t *other = fake_cpu_create(mm);
    unsigned released = fake_released;
    struct iovec iov;
    span_set_t set;
    gather_t g;

    map_object(BASE, 0x2000, RW, -1);
    assert_int_equal(
        span_get(mm, other, BASE, 0x2000, SPAN_WRITE, &iov, 1, &set), 0);
    mm_lock(mm);
    gather_begin(&g, mm, cpu);
    pt_unmap(mm, &g, BASE, BASE + 0x2000);
    gather_free_object(&g, NULL, (uintptr_t) iov.iov_base, 0x2000);
    gather_finish(&g);
    mm_unlock(mm);
    /* Not before the invalidation either. */
    guest_exit(mm, cpu);
    assert_int_equal(fake_released, released);
    guest_enter(cpu);
    guest_exit(mm, cpu);
    assert_int_equal(fake_released, released);
    span_put(other, &set);
    guest_exit(mm, cpu);
    assert_int_equal(fake_released, released + 1);
}

/* Another thread's invalidation is still due where memory is wanted: whoever
 * wants it carries it out. */
static void test_wait_for(void **state)
{
    mm_cpu_t *other = fake_cpu_create(mm);
    uint64_t value = 3, sequence;
    gather_t g;

    fake_vma_set(BASE, BASE + 0x4000, RW, 0);
    assert_int_equal(guest_access(mm, cpu, BASE, true, &value), 0);
    guest_exit(mm, other);
    mm_lock(mm);
    gather_begin(&g, mm, other);
    pt_unmap(mm, &g, BASE, BASE + 0x4000);
    gather_finish(&g);
    mm_unlock(mm);
    assert_true(gather_revoking(mm, BASE, BASE + 0x1000));
    sequence = cpu->tlb_sequence;
    /* The first thread's next touch, elfuse's own here, needs the page. */
    assert_int_equal(copy_from_guest(mm, cpu, &value, BASE, 8), 0);
    assert_int_equal(value, 0);
    assert_int_equal(cpu->tlb_sequence, sequence + 1);
    assert_int_equal(cpu->frame->tlb.completed, sequence + 1);
    guest_enter(other);
    guest_exit(mm, other);
    assert_false(gather_revoking(mm, BASE, BASE + 0x1000));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_prefix, setup),
        cmocka_unit_test_setup(test_zero_length, setup),
        cmocka_unit_test_setup(test_exact, setup),
        cmocka_unit_test_setup(test_addresses, setup),
        cmocka_unit_test_setup(test_step, setup),
        cmocka_unit_test_setup(test_borders, setup),
        cmocka_unit_test_setup(test_copies, setup),
        cmocka_unit_test_setup(test_truncated, setup),
        cmocka_unit_test_setup(test_strings, setup),
        cmocka_unit_test_setup(test_span_outlives_unmap, setup),
        cmocka_unit_test_setup(test_span_outlives_object, setup),
        cmocka_unit_test_setup(test_wait_for, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
