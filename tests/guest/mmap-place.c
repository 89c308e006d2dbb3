/* SPDX-License-Identifier: Apache-2.0 */
/* mmap: where things land: hints, holes, low addresses, merging. */
#include "mem.h"

#include <linux/capability.h>

static bool overlap(const char *a, size_t alen, const char *b, size_t blen)
{
    return a < b + blen && b < a + alen;
}

static void test_hints(void)
{
    char *p = map_hole(64 * PAGE);
    is(sys_mmap(p + 8 * PAGE, PAGE, RW, ANON, -1, 0), p + 8 * PAGE,
       "a free hint is honoured");
    p[8 * PAGE] = 9;
    char *q = sys_mmap(p + 8 * PAGE, PAGE, RW, ANON, -1, 0);
    ok(GOOD(q) && q != p + 8 * PAGE, "an occupied one is not");
    is(p[8 * PAGE], 9, "and what is there stays");
    q = sys_mmap(p + 7 * PAGE, 2 * PAGE, RW, ANON, -1, 0);
    ok(GOOD(q) && !overlap(q, 2 * PAGE, p + 8 * PAGE, PAGE),
       "nor one whose end is occupied");
    is(sys_mmap(p + 20 * PAGE + 1, PAGE, RW, ANON, -1, 0), p + 20 * PAGE,
       "an unaligned hint is rounded down");
    int fd = file_make(PAGE);
    is(sys_mmap(p + 30 * PAGE, PAGE, PROT_READ, MAP_PRIVATE, fd, 0),
       p + 30 * PAGE, "a hint for a private file mapping");
    is(sys_mmap(p + 32 * PAGE, PAGE, RW, MAP_SHARED, fd, 0), p + 32 * PAGE,
       "a hint for a shared file mapping");
    is(sys_mmap(p + 34 * PAGE, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0),
       p + 34 * PAGE, "a hint for shared memory");
    is(sys_mmap(p + 36 * PAGE, 4 * PAGE, PROT_NONE, LAZY, -1, 0), p + 36 * PAGE,
       "a hint for PROT_NONE");
    close(fd);
    static const unsigned long far[] = {0x10000000, 0x100000000, 0x1000000000,
                                        0x200000000000};
    char name[64];
    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "a far hint, %d of 4, is honoured", i + 1);
        q = sys_mmap((void *) far[i], PAGE, RW, ANON, -1, 0);
        is(q, far[i], name);
        *q = 1;
        sys_munmap(q, PAGE);
    }
}

static unsigned long min_addr(void)
{
    char *line;
    lines_open(&mem_lines, "/proc/sys/vm/mmap_min_addr");
    line = lines_next(&mem_lines);
    need(line, "mmap_min_addr");
    lines_close(&mem_lines);
    return strtoul(line, NULL, 10);
}

static void drop_rawio(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    need(syscall(SYS_capget, &head, data) == 0, "capget");
    data[0].effective &= ~(1u << CAP_SYS_RAWIO);
    need(syscall(SYS_capset, &head, data) == 0, "capset");
}

static void test_low(void)
{
    unsigned long min = (min_addr() + PAGE - 1) & -PAGE;
    drop_rawio();
    fails(sys_mmap(NULL, PAGE, RW, ANON | MAP_FIXED, -1, 0), EPERM,
          "fixed at 0 without the capability");
    is(sys_mmap((void *) min, PAGE, RW, ANON | MAP_FIXED, -1, 0), min,
       "fixed at mmap_min_addr");
    *(char *) min = 1;
    is(*(char *) min, 1, "can be used");
    sys_munmap((void *) min, PAGE);
    /* To the value of /proc or to the security modules' own minimum. */
    char *p = sys_mmap((void *) (PAGE / 2), PAGE, RW, ANON, -1, 0);
    ok((uintptr_t) p >= min && p != MAP_FAILED,
       "a hint below the minimum gives an address above it");
    sys_munmap(p, PAGE);
    ok(!can_read((void *) 0), "page 0 is not there");
}

static void test_order(void)
{
    static vma_t heap, stack;
    need(sbrk(PAGE) != (void *) -1, "sbrk");
    ok(vma_named("[heap]", &heap), "maps has [heap]");
    ok(vma_named("[stack]", &stack), "maps has [stack]");
    char *p = map_rw(PAGE);
    ok((uintptr_t) p > heap.end, "a mapping lands above the heap");
    ok((uintptr_t) p < stack.start, "and below the stack");
    static char *at[300];
    bool apart = true;
    for (int i = 0; i < 300; i++) {
        at[i] = map_rw((i % 7 + 1) * PAGE);
        memset(at[i], i % 255 + 1, (i % 7 + 1) * PAGE);
    }
    for (int i = 0; i < 300; i++)
        for (int j = 0; j < i; j++)
            apart &=
                !overlap(at[i], (i % 7 + 1) * PAGE, at[j], (j % 7 + 1) * PAGE);
    ok(apart, "300 mappings do not overlap");
    for (int i = 0; i < 300; i++)
        apart &= all_bytes(at[i], i % 255 + 1, (i % 7 + 1) * PAGE);
    ok(apart, "nor share memory");
    for (int i = 0; i < 300; i += 2)
        sys_munmap(at[i], (i % 7 + 1) * PAGE);
    for (int i = 1; i < 300; i += 2)
        apart &= all_bytes(at[i], i % 255 + 1, (i % 7 + 1) * PAGE);
    ok(apart, "after unmapping every other one the rest stays");
}

static void test_merge(void)
{
    int f = ANON | MAP_FIXED, fd = file_make(4 * PAGE);
    char *p = map_hole(16 * PAGE);
    sys_mmap(p + PAGE, PAGE, RW, f, -1, 0);
    sys_mmap(p + 2 * PAGE, PAGE, RW, f, -1, 0);
    is_str(layout(p, 4), "hole:1 rw-p:2 hole:1", "merges with the one below");
    sys_mmap(p, PAGE, RW, f, -1, 0);
    is_str(layout(p, 4), "rw-p:3 hole:1", "merges with the one above");
    sys_mmap(p + 3 * PAGE, PAGE, PROT_READ, f, -1, 0);
    is_str(layout(p, 4), "rw-p:3 r--p:1", "not with another protection");
    sys_mmap(p + 4 * PAGE, PAGE, PROT_READ, f | MAP_NORESERVE, -1, 0);
    sys_mmap(p + 6 * PAGE, PAGE, RW, MAP_SHARED | MAP_FIXED, fd, 0);
    sys_mmap(p + 7 * PAGE, PAGE, RW, MAP_SHARED | MAP_FIXED, fd, PAGE);
    is_str(layout(p + 6 * PAGE, 2), "rw-s:2", "a file's next page merges");
    sys_mmap(p + 8 * PAGE, PAGE, RW, MAP_SHARED | MAP_FIXED, fd, PAGE);
    is_str(layout(p + 6 * PAGE, 3), "rw-s:2 rw-s:1", "the same page does not");
    sys_mmap(p + 10 * PAGE, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED,
             -1, 0);
    sys_mmap(p + 11 * PAGE, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED,
             -1, 0);
    is_str(layout(p + 10 * PAGE, 2), "rw-s:1 rw-s:1",
           "two shared anonymous mappings stay two");
    close(fd);
}

int main(void)
{
    probe_open();
    test_hints();
    test_order();
    test_merge();
    test_low();
    return tap_done();
}
