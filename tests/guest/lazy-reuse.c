/* SPDX-License-Identifier: Apache-2.0 */
/* Anonymous memory is zero at first touch, whatever was there before. */
#include "mem.h"

static char image_data[64 * 4096] __attribute__((aligned(4096))) = {1};
static char image_bss[64 * 4096] __attribute__((aligned(4096)));

static void test_recycled(void)
{
    static const size_t size[] = {PAGE,         3 * PAGE,  64 * PAGE, BLOCK,
                                  BLOCK + PAGE, 3 * BLOCK, 33 * MIB};
    char name[64];
    for (int s = 0; s < 7; s++) {
        bool zero = true;
        for (int round = 0; round < 4; round++) {
            char *p = map_rw(size[s]);
            for (size_t i = 0; i < size[s]; i += PAGE)
                zero &= p[i] == 0 && p[i + PAGE - 1] == 0;
            memset(p, 0xff, size[s]);
            need(sys_munmap(p, size[s]) == 0, "munmap");
        }
        snprintf(name, sizeof name, "recycled memory is zero, size %d of 7",
                 s + 1);
        ok(zero, name);
    }
    char *p = map_aligned(4 * BLOCK);
    memset(p, 0xee, 4 * BLOCK);
    need(sys_munmap(p, 4 * BLOCK) == 0, "munmap");
    bool zero = true, apart = true;
    for (size_t i = 0; i < 4 * BLOCK; i += 16 * PAGE)
        need(sys_mmap(p + i, PAGE, RW, ANON | MAP_FIXED, -1, 0) == p + i,
             "mmap");
    for (size_t i = 0; i < 4 * BLOCK; i += 16 * PAGE) {
        zero &= all_bytes(p + i, 0, PAGE);
        memset(p + i, 1, PAGE);
    }
    ok(zero, "single pages in dirty blocks are zero");
    for (size_t i = PAGE; i < 4 * BLOCK; i += 16 * PAGE)
        need(sys_mmap(p + i, PAGE, RW, ANON | MAP_FIXED, -1, 0) == p + i,
             "mmap");
    for (size_t i = 0; i < 4 * BLOCK; i += 16 * PAGE) {
        apart &= all_bytes(p + i, 1, PAGE);
        zero &= all_bytes(p + i + PAGE, 0, PAGE);
    }
    ok(apart, "a later neighbour does not zero the earlier one");
    ok(zero, "and is zero itself");
    sys_munmap(p, 4 * BLOCK);
}

static void test_image(void)
{
    memset(image_data, 0x11, sizeof image_data);
    memset(image_bss, 0x22, sizeof image_bss);
    int f = ANON | MAP_FIXED;
    is(sys_mmap(image_data + 8 * PAGE, 4 * PAGE, RW, f, -1, 0),
       image_data + 8 * PAGE, "fixed over the image's .data");
    ok(all_bytes(image_data + 8 * PAGE, 0, 4 * PAGE), ".data: zero there");
    ok(all_bytes(image_data, 0x11, 8 * PAGE) &&
           all_bytes(image_data + 12 * PAGE, 0x11, 52 * PAGE),
       ".data: kept beside it");
    is(sys_mmap(image_bss + 8 * PAGE, 4 * PAGE, RW, f, -1, 0),
       image_bss + 8 * PAGE, "fixed over the image's .bss");
    ok(all_bytes(image_bss + 8 * PAGE, 0, 4 * PAGE), ".bss: zero there");
    ok(all_bytes(image_bss, 0x22, 8 * PAGE) &&
           all_bytes(image_bss + 12 * PAGE, 0x22, 52 * PAGE),
       ".bss: kept beside it");
    is(sys_munmap(image_bss + 32 * PAGE, PAGE), 0, "unmap a page of .bss");
    is(sys_mmap(image_bss + 32 * PAGE, PAGE, RW, f, -1, 0),
       image_bss + 32 * PAGE, "map it again");
    ok(all_bytes(image_bss + 32 * PAGE, 0, PAGE), "it is zero");
}

__attribute__((noinline)) static void test_stack(void)
{
    volatile char deep[64 * 4096];
    memset((char *) deep, 0x33, sizeof deep);
    char *p = (char *) (((uintptr_t) deep + 16 * PAGE) & -PAGE);
    is(sys_mmap(p, 4 * PAGE, RW, ANON | MAP_FIXED, -1, 0), p,
       "fixed over pages of the stack");
    ok(all_bytes(p, 0, 4 * PAGE), "stack: zero there");
    ok(all_bytes(p - 8 * PAGE, 0x33, 8 * PAGE) &&
           all_bytes(p + 4 * PAGE, 0x33, 8 * PAGE),
       "stack: kept beside it");
}

static void test_mappings(void)
{
    int fd = file_make(4 * PAGE), f = ANON | MAP_FIXED;
    char *p = sys_mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0);
    need(GOOD(p), "mmap");
    is(sys_mmap(p + PAGE, PAGE, RW, f, -1, 0), p + PAGE,
       "fixed over a shared file");
    ok(all_bytes(p + PAGE, 0, PAGE), "shared file: zero there");
    memset(p + PAGE, 1, PAGE);
    is(file_byte(fd, PAGE), 'B', "shared file: the file is as it was");
    ok(p[0] == 'A' && p[2 * PAGE] == 'C', "shared file: kept beside it");
    sys_munmap(p, 4 * PAGE);
    p = sys_mmap(NULL, 4 * PAGE, RW, MAP_PRIVATE, fd, 0);
    memset(p, 'x', 4 * PAGE);
    is(sys_mmap(p, 4 * PAGE, RW, f, -1, 0), p, "fixed over a private file");
    ok(all_bytes(p, 0, 4 * PAGE), "private file: zero there");
    memset(p, 'x', 4 * PAGE);
    is(sys_mmap(p, 4 * PAGE, RW, MAP_PRIVATE | MAP_FIXED, fd, 0), p,
       "a file fixed over dirty memory");
    ok(all_bytes(p + PAGE, 'B', PAGE), "shows the file");
    is(sys_mmap(p, 4 * PAGE, RW, f, -1, 0), p, "and memory over the file");
    ok(all_bytes(p, 0, 4 * PAGE), "shows zero");
    close(fd);
    p = sys_mmap(NULL, 4 * PAGE, PROT_NONE, ANON, -1, 0);
    is(sys_mmap(p, 4 * PAGE, RW, f, -1, 0), p, "fixed over PROT_NONE");
    ok(all_bytes(p, 0, 4 * PAGE), "PROT_NONE: zero there");
    memset(p, 'y', 4 * PAGE);
    is(sys_mmap(p, 4 * PAGE, PROT_NONE, f, -1, 0), p,
       "PROT_NONE fixed over dirty memory");
    is_str(access_of(p), "--", "is not accessible");
    is(sys_mprotect(p, 4 * PAGE, RW), 0, "until opened");
    ok(all_bytes(p, 0, 4 * PAGE), "and then zero, not what was there");
}

static void test_none(void)
{
    char *p = map_rw(4 * PAGE);
    memset(p, 0x44, 4 * PAGE);
    is(sys_mprotect(p, 4 * PAGE, PROT_NONE), 0, "close memory");
    is_str(access_of(p + PAGE), "--", "no access");
    is(sys_mprotect(p, 4 * PAGE, RW), 0, "open it");
    ok(all_bytes(p, 0x44, 4 * PAGE), "content is there");
    char *q = sys_mmap(NULL, GIB, PROT_NONE, LAZY, -1, 0);
    need(GOOD(q), "mmap");
    is_str(access_of(q + GIB / 2), "--", "a 1 GiB reservation: no access");
    is(sys_mprotect(q + GIB / 2, 2 * PAGE, RW), 0, "open two pages of it");
    ok(all_bytes(q + GIB / 2, 0, 2 * PAGE), "they are zero");
    is_str(access_of(q + GIB / 2), "rw", "and accessible");
    is_str(access_of(q + GIB / 2 - PAGE), "--", "the page below is not");
    is_str(access_of(q + GIB / 2 + 2 * PAGE), "--", "the page above is not");
    is(sys_mprotect(q + GIB / 2, 2 * PAGE, PROT_NONE), 0, "close them again");
    is_str(access_of(q + GIB / 2), "--", "no access any more");
    sys_munmap(q, GIB);
}

int main(void)
{
    probe_open();
    test_recycled();
    test_image();
    test_stack();
    test_mappings();
    test_none();
    return tap_done();
}
