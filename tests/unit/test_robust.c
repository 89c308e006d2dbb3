/* SPDX-License-Identifier: Apache-2.0 */
/* sources: src/proc/robust.c */
/* The walk of robust lists, over an array that is the guest's memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <linux/futex.h>
#include <string.h>

#include <cmocka.h>

#include "proc/robust.h"
#include "sys/call.h"

#define TID    77U
#define BASE   0x1000UL
#define HEAD   BASE
#define OFFSET 16
/* Entries are 64 bytes apart, from here on. */
#define ENTRY(n) (BASE + 64 + 64UL * (n))
#define WORD(n)  (ENTRY(n) + OFFSET)
#define MOST     2100

static uint8_t memory[64 + 64 * MOST];
static unsigned wakes;
static uint64_t waked;
/* This word changes to that between the look and the exchange, once. */
static uint64_t change_at;
static uint32_t change_to;

static void *at(uint64_t guest, size_t len)
{
    return guest >= BASE && guest + len <= BASE + sizeof(memory)
               ? memory + (guest - BASE)
               : NULL;
}

int copy_from_guest(struct mm *mm, struct mm_cpu *cpu, void *to, uint64_t from,
                    size_t len)
{
    const void *p = at(from, len);

    if (!p)
        return -EFAULT;
    memcpy(to, p, len);
    return 0;
}

int cmpxchg_guest(struct mm *mm, struct mm_cpu *cpu, uint64_t addr,
                  uint32_t *found, uint32_t next)
{
    uint32_t *p = at(addr, 4), was;

    if (!p)
        return -EFAULT;
    if (addr == change_at) {
        *p = change_to;
        change_at = 0;
    }
    was = *p;
    if (was == *found)
        *p = next;
    *found = was;
    return 0;
}

int span_get(struct mm *mm, struct mm_cpu *cpu, uint64_t addr, size_t len,
             enum span_access access, struct iovec *iov, int max,
             span_set_t *set)
{
    iov->iov_base = at(addr, len);
    waked = addr;
    return iov->iov_base ? 0 : -EFAULT;
}

void span_put(struct mm_cpu *cpu, span_set_t *set)
{
}

int64_t host_call(uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2,
                  uint64_t a3, uint64_t a4, uint64_t a5)
{
    assert_int_equal(nr, SYS_futex);
    assert_int_equal(a1, FUTEX_WAKE);
    assert_int_equal(a2, 1);
    wakes++;
    return 0;
}

static void put64(uint64_t guest, uint64_t value)
{
    memcpy(at(guest, 8), &value, 8);
}

static void put32(uint64_t guest, uint32_t value)
{
    memcpy(at(guest, 4), &value, 4);
}

static uint32_t get32(uint64_t guest)
{
    uint32_t value;

    memcpy(&value, at(guest, 4), 4);
    return value;
}

/* n entries, all words `value`; `last` follows the last. */
static void make_list(unsigned n, uint32_t value, uint64_t last,
                      uint64_t pending)
{
    memset(memory, 0, sizeof(memory));
    put64(HEAD, n ? ENTRY(0) : HEAD);
    put64(HEAD + 8, OFFSET);
    put64(HEAD + 16, pending);
    for (unsigned i = 0; i < n; i++) {
        put64(ENTRY(i), i + 1 < n ? ENTRY(i + 1) : last);
        put32(WORD(i), value);
    }
}

static void walk(uint64_t head)
{
    static proc_t proc;
    static thread_t thread = {.proc = &proc, .tid = TID};

    thread.robust = head;
    wakes = 0;
    robust_release(&thread, &thread);
}

static unsigned count(unsigned n, uint32_t value)
{
    unsigned found = 0;

    for (unsigned i = 0; i < n; i++)
        found += get32(WORD(i)) == value;
    return found;
}

static void test_none(void **state)
{
    walk(0);
    walk(64); /* not readable */
    make_list(0, 0, HEAD, 0);
    walk(HEAD);
    assert_int_equal(wakes, 0);
}

static void test_owned(void **state)
{
    make_list(3, TID, HEAD, 0);
    put32(WORD(1), TID | FUTEX_WAITERS);
    walk(HEAD);
    assert_int_equal(get32(WORD(0)), FUTEX_OWNER_DIED);
    assert_int_equal(get32(WORD(1)), FUTEX_OWNER_DIED | FUTEX_WAITERS);
    assert_int_equal(count(3, FUTEX_OWNER_DIED), 2);
}

static void test_of_others(void **state)
{
    make_list(3, TID + 1, HEAD, 0);
    walk(HEAD);
    assert_int_equal(count(3, TID + 1), 3);
    assert_int_equal(wakes, 0);
}

static void test_limit(void **state)
{
    make_list(MOST, TID, HEAD, 0);
    walk(HEAD);
    assert_int_equal(count(MOST, FUTEX_OWNER_DIED), ROBUST_LIST_LIMIT);
    make_list(4, TID, ENTRY(0), 0);
    walk(HEAD);
    assert_int_equal(count(4, FUTEX_OWNER_DIED), 4);
}

static void test_broken(void **state)
{
    make_list(2, TID, 64, 0);
    walk(HEAD);
    assert_int_equal(count(2, FUTEX_OWNER_DIED), 2);
    make_list(2, TID, ENTRY(2) + 2, 0);
    walk(HEAD);
    assert_int_equal(count(2, FUTEX_OWNER_DIED), 2);
}

static void test_pending(void **state)
{
    make_list(1, TID, HEAD, ENTRY(5));
    put32(WORD(5), TID | FUTEX_WAITERS);
    walk(HEAD);
    assert_int_equal(get32(WORD(5)), FUTEX_OWNER_DIED | FUTEX_WAITERS);
    /* Free: the waiter may not have been woken. */
    make_list(0, 0, HEAD, ENTRY(5));
    walk(HEAD);
    assert_int_equal(wakes, 1);
    assert_int_equal(waked, WORD(5));
    assert_int_equal(get32(WORD(5)), 0);
    /* PI: the kernel's. */
    make_list(0, 0, HEAD, ENTRY(5) | 1);
    walk(HEAD);
    assert_int_equal(wakes, 0);
    /* In the list, too: once, as the pending one. */
    make_list(2, TID, HEAD, ENTRY(1));
    walk(HEAD);
    assert_int_equal(count(2, FUTEX_OWNER_DIED), 2);
}

static void test_pi(void **state)
{
    make_list(1, TID | FUTEX_WAITERS, HEAD, 0);
    put64(HEAD, ENTRY(0) | 1);
    walk(HEAD);
    assert_int_equal(get32(WORD(0)), FUTEX_OWNER_DIED | FUTEX_WAITERS);
    assert_int_equal(wakes, 0);
}

/* A waiter marks the word while we look. */
static void test_race(void **state)
{
    make_list(1, TID, HEAD, 0);
    change_at = WORD(0);
    change_to = TID | FUTEX_WAITERS;
    walk(HEAD);
    assert_int_equal(get32(WORD(0)), FUTEX_OWNER_DIED | FUTEX_WAITERS);
    assert_int_equal(wakes, 1);
    make_list(1, TID, HEAD, 0);
    change_at = WORD(0);
    change_to = TID + 1;
    walk(HEAD);
    assert_int_equal(get32(WORD(0)), TID + 1);
    assert_int_equal(wakes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none),      cmocka_unit_test(test_owned),
        cmocka_unit_test(test_of_others), cmocka_unit_test(test_limit),
        cmocka_unit_test(test_broken),    cmocka_unit_test(test_pending),
        cmocka_unit_test(test_pi),        cmocka_unit_test(test_race),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
