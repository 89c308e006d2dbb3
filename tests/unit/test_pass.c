/* SPDX-License-Identifier: Apache-2.0 */
/* sources: src/sys/pass.c src/sys/path.c */
/*
 * The generic path, on a guest memory of six pages of which the third lies
 * elsewhere in the host and the fifth is not accessible.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sys/call.h"
#include "sys/procfs_view.h"

#define BASE  0x10000UL
#define PAGE  0x1000UL
#define PAGES 6
#define HOLE  4

static uint8_t near_pages[PAGES * PAGE], far_page[PAGE];
static unsigned spans_held, spans_made;

static uint8_t *host_of(uint64_t addr)
{
    uint64_t page = (addr - BASE) / PAGE;

    if (addr < BASE || page >= PAGES || page == HOLE)
        return NULL;
    return page == 2 ? far_page + addr % PAGE : near_pages + (addr - BASE);
}

bool span_tags;

int span_get(struct mm *mm, struct mm_cpu *cpu, uint64_t addr, size_t len,
             enum span_access access, struct iovec *iov, int max,
             span_set_t *set)
{
    if (!iov)
        abort();
    *set = (span_set_t){.slot = 1, .iov = iov};
    for (; set->bytes < len; addr++) {
        uint8_t *host = host_of(addr);
        struct iovec *last = set->nr ? &iov[set->nr - 1] : NULL;

        if (!host)
            break;
        if (last && (uint8_t *) last->iov_base + last->iov_len == host) {
            last->iov_len++;
        } else {
            if (set->nr == max)
                break;
            iov[set->nr].iov_base = host;
            iov[set->nr++].iov_len = 1;
        }
        set->bytes++;
    }
    if (!set->bytes)
        return -EFAULT;
    spans_held++;
    spans_made++;
    return 0;
}

void span_put(struct mm_cpu *cpu, span_set_t *set)
{
    spans_held--;
}

static int copy(uint64_t guest, void *own, size_t len, bool in)
{
    uint8_t *at = own;

    for (size_t i = 0; i < len; i++) {
        uint8_t *host = host_of(guest + i);

        if (!host)
            return -EFAULT;
        if (in)
            at[i] = *host;
        else
            *host = at[i];
    }
    return 0;
}

int copy_from_guest(struct mm *mm, struct mm_cpu *cpu, void *to, uint64_t from,
                    size_t len)
{
    return copy(from, to, len, true);
}

int copy_to_guest(struct mm *mm, struct mm_cpu *cpu, uint64_t to,
                  const void *from, size_t len)
{
    return copy(to, (void *) (uintptr_t) from, len, false);
}

ssize_t copy_string_from_guest(struct mm *mm, struct mm_cpu *cpu, char *to,
                               uint64_t from, size_t max)
{
    for (size_t i = 0; i < max; i++) {
        if (copy(from + i, to + i, 1, true))
            return -EFAULT;
        if (!to[i])
            return (ssize_t) i;
    }
    return -ENAMETOOLONG;
}

int fdspace_low = 1024;

bool fdspace_is_hidden(int fd)
{
    return fd == 1024;
}

bool procfs_path_is_exe(thread_t *t, int dirfd, const char *path)
{
    return false;
}

bool procfs_path_is_hidden(thread_t *t, int dirfd, const char *path)
{
    return false;
}

_Noreturn void elfuse_panic(const char *format, ...)
{
    abort();
}

/* What the host was asked, and what it answers. */
static uint64_t seen[SYS_ARGS];
static unsigned calls;
static int64_t answer;
static unsigned fill_arg, fill_bytes;

int64_t host_call(uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2,
                  uint64_t a3, uint64_t a4, uint64_t a5)
{
    const uint64_t a[SYS_ARGS] = {a0, a1, a2, a3, a4, a5};

    memcpy(seen, a, sizeof seen);
    calls++;
    if (fill_bytes)
        memset((void *) (uintptr_t) a[fill_arg], 'x', fill_bytes);
    return answer;
}

static proc_t proc;
static thread_t thread = {.proc = &proc};

static int reset(void **state)
{
    memset(near_pages, 0, sizeof near_pages);
    memset(far_page, 0, sizeof far_page);
    spans_held = spans_made = calls = fill_bytes = 0;
    answer = 0;
    return 0;
}

static int64_t pass(const sys_entry_t *entry, uint64_t a0, uint64_t a1,
                    uint64_t a2)
{
    const uint64_t a[SYS_ARGS] = {a0, a1, a2};
    int64_t ret = sys_pass(&thread, 1, entry, a);

    assert_int_equal(spans_held, 0);
    return ret;
}

#define ARG(kind_, ref_, size_)                         \
    {                                                   \
        .kind = (kind_), .ref = (ref_), .size = (size_) \
    }

static void values_go_unchanged(void **state)
{
    static const sys_entry_t e = {
        "e", .arg = {ARG(ARG_INT, 7, 0), ARG(ARG_FD, 7, 0)}};

    answer = 77;
    assert_int_equal(pass(&e, 1UL << 40, 3, 0), 77);
    assert_true(seen[0] == 1UL << 40);
    assert_int_equal(spans_made, 0);
}

static void hidden_descriptor_is_closed(void **state)
{
    static const sys_entry_t plain = {"p", .arg = {ARG(ARG_FD, 7, 0)}};
    static const sys_entry_t pointer = {
        "q", .arg = {ARG(ARG_OUT, 7, 8), ARG(ARG_FD, 7, 0)}};

    assert_int_equal(pass(&plain, 1024, 0, 0), -EBADF);
    /* Only 32 bits of a descriptor count. */
    assert_int_equal(pass(&plain, 1024 | 1UL << 32, 0, 0), -EBADF);
    assert_int_equal(pass(&pointer, BASE, 1024, 0), -EBADF);
    assert_int_equal(calls, 0);
    assert_int_equal(spans_made, 0);
    assert_int_equal(pass(&plain, 1025, 0, 0), 0);
}

static void null_stays_null(void **state)
{
    static const sys_entry_t e = {
        "e",
        .arg = {ARG(ARG_IN, 7, 16), ARG(ARG_PATH, 7, 0), ARG(ARG_OUT, 7, 8)}};

    pass(&e, 0, 0, 0);
    assert_int_equal(seen[0] | seen[1] | seen[2], 0);
}

static void struct_in_place(void **state)
{
    static const sys_entry_t e = {"e", .arg = {ARG(ARG_OUT, 7, 16)}};

    pass(&e, BASE + 8, 0, 0);
    assert_true(seen[0] == P(near_pages + 8));
}

static void struct_over_a_seam(void **state)
{
    static const sys_entry_t e = {"e", .arg = {ARG(ARG_OUT, 7, 16)}};

    near_pages[2 * PAGE - 1] = 'k';
    fill_bytes = 4;
    fill_arg = 0;
    assert_int_equal(pass(&e, BASE + 2 * PAGE - 8, 0, 0), 0);
    assert_true(seen[0] != P(near_pages + 2 * PAGE - 8));
    assert_int_equal(near_pages[2 * PAGE - 8], 'x');
    /* What the call left alone is as it was. */
    assert_int_equal(near_pages[2 * PAGE - 1], 'k');
}

static void struct_half_accessible(void **state)
{
    static const sys_entry_t e = {"e", .arg = {ARG(ARG_INOUT, 7, 16)}};

    answer = -EFAULT;
    assert_int_equal(pass(&e, BASE + HOLE * PAGE - 8, 0, 0), -EFAULT);
    assert_true(seen[0] == bad_pointer(BASE, 1));
    /* Beyond user space the kernel may look first of all. */
    assert_int_equal(pass(&e, 0xffff000000000000UL, 0, 0), -EFAULT);
    assert_true(seen[0] >> 48 == 0xffff);
}

static void result_buffer_needs_only_the_result(void **state)
{
    static const sys_entry_t e = {
        "e", .arg = {ARG(ARG_OUT_BUF, 1, 4096), ARG(ARG_INT, 7, 0)}};

    answer = 5;
    fill_bytes = 5;
    fill_arg = 0;
    assert_int_equal(pass(&e, BASE + HOLE * PAGE - 8, 100, 0), 5);
    assert_int_equal(seen[1], 100);
    assert_memory_equal(near_pages + HOLE * PAGE - 8, "xxxxx\0", 6);
    /* ... and that much it does need. */
    answer = 20;
    fill_bytes = 20;
    assert_int_equal(pass(&e, BASE + HOLE * PAGE - 8, 100, 0), -EFAULT);
}

static void result_buffer_is_capped(void **state)
{
    static const sys_entry_t after = {
        "e", .arg = {ARG(ARG_OUT_BUF, 1, 64), ARG(ARG_INT, 7, 0)}};
    static const sys_entry_t before = {
        "e", .arg = {ARG(ARG_INT, 7, 0), ARG(ARG_OUT_BUF, 0, 64)}};

    pass(&after, BASE, 1UL << 40, 0);
    assert_int_equal(seen[1], 64);
    assert_true(seen[0] == P(near_pages));
    pass(&before, 1UL << 40, BASE, 0);
    assert_int_equal(seen[0], 64);
}

static void absurd_length_touches_nothing(void **state)
{
    static const sys_entry_t buf = {
        "e", .arg = {ARG(ARG_IN_BUF, 1, 64), ARG(ARG_INT, 7, 0)}};
    static const sys_entry_t arr = {
        "e", .arg = {ARG(ARG_INT, 7, 0), ARG(ARG_OUT_ARR, 0, 4)}};

    pass(&buf, BASE, 65, 0);
    assert_true(seen[0] == bad_pointer(BASE, 1));
    assert_int_equal(seen[1], 65);
    pass(&arr, 0xffffffff, BASE, 0);
    assert_true(seen[1] == bad_pointer(BASE, 1));
    pass(&buf, BASE, 0, 0);
    assert_int_equal(spans_made, 0);
}

static void paths_are_copied(void **state)
{
    static const sys_entry_t e = {"e", .arg = {ARG(ARG_PATH, 7, 0)}};

    near_pages[2 * PAGE - 2] = '/';
    near_pages[2 * PAGE - 1] = 'a';
    far_page[0] = 'b'; /* and the rest is zero */
    answer = 3;
    assert_int_equal(pass(&e, BASE + 2 * PAGE - 2, 0, 0), 3);
    assert_int_equal(spans_made, 0);
    memset(near_pages, 'n', 2 * PAGE);
    memset(far_page, 'n', PAGE);
    assert_int_equal(pass(&e, BASE, 0, 0), -ENAMETOOLONG);
    assert_int_equal(calls, 1);
    memset(near_pages + 3 * PAGE, 'n', PAGE);
    answer = -EFAULT;
    assert_int_equal(pass(&e, BASE + HOLE * PAGE - 2, 0, 0), -EFAULT);
    assert_true(seen[0] == bad_pointer(BASE, 1));
}

static void sized_struct(void **state)
{
    static const sys_entry_t e = {"e", .arg = {ARG(ARG_IN_SIZED, 7, 48)}};
    uint32_t size = 16;

    memcpy(near_pages + 2 * PAGE - 8, &size, 4);
    pass(&e, BASE + 2 * PAGE - 8, 0, 0);
    assert_true(seen[0] != bad_pointer(BASE, 1));
    size = 64; /* reaches into the hole */
    memcpy(near_pages + HOLE * PAGE - 16, &size, 4);
    pass(&e, BASE + HOLE * PAGE - 16, 0, 0);
    assert_true(seen[0] == bad_pointer(BASE, 1));
}

static void iovecs(void **state)
{
    static guest_iovec_t iov[IOV_COUNT_MAX];
    const guest_iovec_t given[2] = {{1, RW_COUNT_MAX - 1}, {2, 5}};
    const guest_iovec_t negative = {1, 1UL << 63};
    const guest_iovec_t kernel = {1UL << 55, 1};

    assert_int_equal(iovec_get(&thread, BASE, IOV_COUNT_MAX + 1, iov), -EINVAL);
    assert_int_equal(iovec_get(&thread, 0, 0, iov), 0);
    assert_int_equal(iovec_get(&thread, 0, 1, iov), -EFAULT);
    memcpy(near_pages, given, sizeof given);
    assert_int_equal(iovec_get(&thread, BASE, 2, iov), 2);
    assert_int_equal(iov[1].len, 1);
    memcpy(near_pages, &negative, sizeof negative);
    assert_int_equal(iovec_get(&thread, BASE, 1, iov), -EINVAL);
    memcpy(near_pages, &kernel, sizeof kernel);
    assert_int_equal(iovec_get(&thread, BASE, 1, iov), -EFAULT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(values_go_unchanged, reset),
        cmocka_unit_test_setup(hidden_descriptor_is_closed, reset),
        cmocka_unit_test_setup(null_stays_null, reset),
        cmocka_unit_test_setup(struct_in_place, reset),
        cmocka_unit_test_setup(struct_over_a_seam, reset),
        cmocka_unit_test_setup(struct_half_accessible, reset),
        cmocka_unit_test_setup(result_buffer_needs_only_the_result, reset),
        cmocka_unit_test_setup(result_buffer_is_capped, reset),
        cmocka_unit_test_setup(absurd_length_touches_nothing, reset),
        cmocka_unit_test_setup(paths_are_copied, reset),
        cmocka_unit_test_setup(sized_struct, reset),
        cmocka_unit_test_setup(iovecs, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
