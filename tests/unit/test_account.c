/* SPDX-License-Identifier: Apache-2.0 */
/* sources: src/mm/account.c */
/*
 * Limits and counters against a model that keeps every mapping it was told of
 * and counts them anew each time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "mm/account.h"
#include "mm/internal.h"

#define MAPPINGS 64

typedef struct mapping {
    uint8_t prot;
    uint32_t flags;
    uint64_t pages;
} mapping_t;

static mapping_t mappings[MAPPINGS];
static struct mm *mm;

void mm_lock(mm_t *m)
{
}

void mm_unlock(mm_t *m)
{
}

static int setup(void **state)
{
    mm = calloc(1, sizeof(*mm));
    if (!mm)
        return -1;
    memset(mappings, 0, sizeof(mappings));
    mm->limit_as = mm->limit_data = mm->limit_stack = mm->limit_memlock =
        (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
    mm->commit_limit = UINT64_MAX;
    srandom(7);
    return 0;
}

static int teardown(void **state)
{
    free(mm);
    return 0;
}

static unsigned below(unsigned n)
{
    return (unsigned) random() % n;
}

/* vm_stat_account() and is_data_mapping(), written down again. */
static mm_usage_t count(void)
{
    mm_usage_t u = {0};

    for (unsigned i = 0; i < MAPPINGS; i++) {
        const mapping_t *m = &mappings[i];
        bool stack = m->flags & VMA_GROWSDOWN;
        bool write = m->prot & PROT_WRITE;

        u.total_vm += m->pages;
        if (!stack && !write && (m->prot & PROT_EXEC))
            u.exec += m->pages;
        if (stack)
            u.stack += m->pages;
        if (!stack && write && !(m->flags & VMA_SHARED))
            u.data += m->pages;
        if (m->flags & VMA_LOCKED)
            u.locked += m->pages;
    }
    return u;
}

static mapping_t random_mapping(void)
{
    static const uint32_t flags[] = {
        0,          VMA_SHARED,    VMA_GROWSDOWN,
        VMA_LOCKED, VMA_NORESERVE, VMA_LOCKED | VMA_SHARED};

    return (mapping_t){.prot = (uint8_t) below(8),
                       .flags = flags[below(6)],
                       .pages = 1 + below(500)};
}

static void counters_match(void **state)
{
    uint64_t peak = 0;

    for (int i = 0; i < 20000; i++) {
        mapping_t *m = &mappings[below(MAPPINGS)];
        mm_usage_t want;

        account_add(mm, m->prot, m->flags, -(int64_t) m->pages);
        *m = below(3) ? random_mapping() : (mapping_t){0};
        account_add(mm, m->prot, m->flags, (int64_t) m->pages);
        want = count();
        peak = want.total_vm > peak ? want.total_vm : peak;
        assert_int_equal(mm->usage.total_vm, want.total_vm);
        assert_int_equal(mm->usage.data, want.data);
        assert_int_equal(mm->usage.stack, want.stack);
        assert_int_equal(mm->usage.exec, want.exec);
        assert_int_equal(mm->usage.locked, want.locked);
        assert_true(mm->usage.peak_vm >= peak);
    }
}

static void address_space_limit(void **state)
{
    mm->usage.total_vm = 90;
    mm->limit_as.rlim_cur = 100 * 4096 + 4095; /* part of a page is none */
    assert_true(account_may_expand(mm, PROT_READ, 0, 10));
    assert_false(account_may_expand(mm, PROT_READ, 0, 11));
    assert_false(account_may_expand(mm, PROT_READ, VMA_SHARED, 11));
}

static void data_limit_is_for_private_writable(void **state)
{
    mm->usage.data = 90;
    mm->limit_data.rlim_cur = 100UL * 4096;
    assert_true(account_may_expand(mm, PROT_WRITE, 0, 10));
    assert_false(account_may_expand(mm, PROT_WRITE, 0, 11));
    assert_true(account_may_expand(mm, PROT_READ, 0, 11));
    assert_true(account_may_expand(mm, PROT_WRITE, VMA_SHARED, 11));
    assert_true(account_may_expand(mm, PROT_WRITE, VMA_GROWSDOWN, 11));
    /* A soft limit of 0 stands for the hard one. */
    mm->limit_data = (struct rlimit){0, 200UL * 4096};
    assert_true(account_may_expand(mm, PROT_WRITE, 0, 110));
    assert_false(account_may_expand(mm, PROT_WRITE, 0, 111));
}

static void charged_is_private_writable_reserved(void **state)
{
    assert_true(account_chargeable(PROT_READ | PROT_WRITE, 0));
    assert_false(account_chargeable(PROT_READ, 0));
    assert_false(account_chargeable(PROT_WRITE, VMA_SHARED));
    assert_false(account_chargeable(PROT_WRITE, VMA_NORESERVE));
    mm->commit_limit = 5;
    assert_true(account_enough_memory(mm, 5));
    assert_false(account_enough_memory(mm, 6));
}

static void lock_limit(void **state)
{
    bool privileged = account_capable(CAP_IPC_LOCK);

    mm->usage.locked = 3;
    mm->limit_memlock.rlim_cur = 8UL * 4096;
    assert_true(account_may_lock(mm, 5));
    assert_int_equal(account_may_lock(mm, 6), privileged);
    assert_true(account_can_mlock(mm));
    mm->limit_memlock.rlim_cur = 0;
    assert_int_equal(account_can_mlock(mm), privileged);
}

static void limits_are_kept(void **state)
{
    struct rlimit out, in = {4096, 8192};

    assert_false(mm_owns_rlimit(RLIMIT_NOFILE));
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        if (!mm_owns_rlimit(i))
            continue;
        mm_set_rlimit(mm, i, &in);
        mm_get_rlimit(mm, i, &out);
        assert_memory_equal(&in, &out, sizeof(in));
        in.rlim_cur += 4096;
        in.rlim_max += 4096;
    }
    assert_int_equal(mm->limit_as.rlim_cur + mm->limit_data.rlim_cur +
                         mm->limit_stack.rlim_cur + mm->limit_memlock.rlim_cur,
                     4 * 4096 + 6 * 4096);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counters_match, setup, teardown),
        cmocka_unit_test_setup_teardown(address_space_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(data_limit_is_for_private_writable,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(charged_is_private_writable_reserved,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(lock_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(limits_are_kept, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
