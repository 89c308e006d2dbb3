/* SPDX-License-Identifier: Apache-2.0 */
/* munmap: every shape of range over every shape of mapping. */
#include "mem.h"

static void test_errors(void)
{
    char *p = map_rw(4 * PAGE);
    fails(sys_munmap(p + 1, PAGE), EINVAL, "unaligned address");
    fails(sys_munmap(p + 2048, PAGE), EINVAL, "middle of a page");
    fails(sys_munmap(p, 0), EINVAL, "length 0");
    fails(sys_munmap(p + 1, 0), EINVAL, "unaligned and length 0");
    fails(sys_munmap(p, -1UL), EINVAL, "length ~0");
    fails(sys_munmap(p, -PAGE), EINVAL, "length -4096");
    fails(sys_munmap(p, 1UL << 63), EINVAL, "length 2^63");
    fails(sys_munmap((void *) TOP, PAGE), EINVAL, "at 2^52");
    fails(sys_munmap((void *) (TOP - PAGE), 2 * PAGE), EINVAL, "over 2^52");
    fails(sys_munmap(BAD_PTR, PAGE), EINVAL, "at the top");
    fails(sys_munmap((void *) 0xffff000000000000UL, PAGE), EINVAL,
          "in the kernel's half");
    is_str(layout(p, 4), "rw-p:4", "nothing changed");
    is(sys_munmap(p, 4 * PAGE), 0, "the whole");
}

static void test_holes(void)
{
    char *p = map_hole(16 * PAGE);
    is(sys_munmap(p, 16 * PAGE), 0, "a hole");
    is(sys_munmap(p, PAGE), 0, "a hole again");
    is(sys_munmap(NULL, PAGE), 0, "page 0");
    is(sys_munmap((void *) PAGE, 15 * PAGE), 0, "below mmap_min_addr");
    for (int i = 0; i < 16; i += 4)
        need(
            GOOD(sys_mmap(p + i * PAGE, 2 * PAGE, RW, ANON | MAP_FIXED, -1, 0)),
            "mmap");
    is_str(layout(p, 16),
           "rw-p:2 hole:2 rw-p:2 hole:2 rw-p:2 hole:2 rw-p:2 hole:2",
           "four mappings with holes");
    is(sys_munmap(p + PAGE, 12 * PAGE), 0, "over mappings and holes");
    is_str(layout(p, 16), "rw-p:1 hole:12 rw-p:1 hole:2", "only the ends stay");
    is(sys_munmap(p, 16 * PAGE), 0, "what is left");
    is_str(layout(p, 16), "hole:16", "all gone");
}

static void test_split(void)
{
    char *p = map_rw(9 * PAGE);
    memset(p, 3, 9 * PAGE);
    is(sys_munmap(p + 4 * PAGE, PAGE), 0, "the middle page");
    is_str(layout(p, 9), "rw-p:4 hole:1 rw-p:4", "split in two");
    ok(all_bytes(p, 3, 4 * PAGE) && all_bytes(p + 5 * PAGE, 3, 4 * PAGE),
       "both halves keep their content");
    is_str(access_of(p + 4 * PAGE), "--", "the hole is not accessible");
    is(sys_munmap(p, PAGE), 0, "the first page");
    is(sys_munmap(p + 8 * PAGE, PAGE), 0, "the last page");
    is_str(layout(p, 9), "hole:1 rw-p:3 hole:1 rw-p:3 hole:1", "as it is now");
    is(sys_munmap(p + 4 * PAGE, PAGE), 0, "the hole twice");
    char *q = sys_mmap(p + 4 * PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0);
    is(q, p + 4 * PAGE, "map into the hole");
    ok(all_bytes(q, 0, PAGE), "it is zero");
    is_str(layout(p, 9), "hole:1 rw-p:7 hole:1", "and merges with its sides");
    ok(all_bytes(p + PAGE, 3, 3 * PAGE) && all_bytes(q + PAGE, 3, 3 * PAGE),
       "which keep their content");
    is(sys_munmap(p, 9 * PAGE), 0, "everything");

    p = map_rw(2 * PAGE);
    is(sys_munmap(p, PAGE + 1), 0, "length 4097 rounds up");
    is_str(layout(p, 2), "hole:2", "and takes both pages");
}

static void test_kinds(void)
{
    int fd = file_make(2 * PAGE);
    char *p = map_hole(8 * PAGE);
    int f = MAP_FIXED;
    sys_mmap(p, PAGE, RW, ANON | f, -1, 0);
    sys_mmap(p + PAGE, PAGE, PROT_READ, ANON | f, -1, 0);
    sys_mmap(p + 2 * PAGE, PAGE, RW, MAP_SHARED | f, fd, 0);
    sys_mmap(p + 3 * PAGE, PAGE, RW, MAP_PRIVATE | f, fd, PAGE);
    sys_mmap(p + 4 * PAGE, PAGE, PROT_NONE, ANON | f, -1, 0);
    sys_mmap(p + 5 * PAGE, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS | f, -1, 0);
    sys_mmap(p + 6 * PAGE, PAGE, PROT_READ | PROT_EXEC, ANON | f, -1, 0);
    is_str(layout(p, 8),
           "rw-p:1 r--p:1 rw-s:1 rw-p:1 ---p:1 rw-s:1 r-xp:1 hole:1",
           "seven kinds in a row");
    p[2 * PAGE] = 'x';
    p[3 * PAGE] = 'y';
    p[5 * PAGE] = 'z';
    is(sys_munmap(p, 8 * PAGE), 0, "all of them in one call");
    is_str(layout(p, 8), "hole:8", "all gone");
    is(file_byte(fd, 0), 'x', "the shared store is in the file");
    is(file_byte(fd, PAGE), 'B', "the private one is not");
    close(fd);
}

static void test_blocks(void)
{
    char *p = map_aligned(8 * BLOCK);
    for (size_t i = 0; i < 8 * BLOCK; i += 64 * KIB)
        p[i] = 1;
    is(sys_munmap(p + BLOCK, BLOCK), 0, "a whole 2 MiB block");
    is(sys_munmap(p + 3 * BLOCK + PAGE, BLOCK), 0, "2 MiB from a border + 4K");
    is(sys_munmap(p + 6 * BLOCK - PAGE, 2 * PAGE), 0,
       "two pages over a border");
    is_str(access_of(p + BLOCK - PAGE), "rw", "page below the block");
    is_str(access_of(p + BLOCK), "--", "first page of the block");
    is_str(access_of(p + 2 * BLOCK - PAGE), "--", "last page of the block");
    is_str(access_of(p + 2 * BLOCK), "rw", "page above the block");
    is(p[2 * BLOCK], 1, "which keeps its content");
    is_str(access_of(p + 3 * BLOCK), "rw", "page at the border");
    is_str(access_of(p + 3 * BLOCK + PAGE), "--", "page after it");
    is_str(access_of(p + 4 * BLOCK), "--", "first page of the next block");
    is_str(access_of(p + 4 * BLOCK + PAGE), "rw", "the one after it");
    is(p[4 * BLOCK + 64 * KIB], 1, "and content further on");
    is_str(access_of(p + 6 * BLOCK - 2 * PAGE), "rw", "below the two pages");
    is_str(access_of(p + 6 * BLOCK - PAGE), "--", "the first of the two");
    is_str(access_of(p + 6 * BLOCK), "--", "the second");
    is_str(access_of(p + 6 * BLOCK + PAGE), "rw", "above them");
    is(sys_munmap(p, 8 * BLOCK), 0, "the rest, over holes");
    bool gone = true;
    for (size_t i = 0; i < 8 * BLOCK; i += BLOCK / 2)
        gone &= !can_read(p + i);
    ok(gone, "all gone");
}

static void test_cycles(void)
{
    static const size_t size[] = {PAGE, 16 * PAGE, BLOCK, 5 * BLOCK + PAGE};
    bool zero = true, kept = true;
    for (int i = 0; i < 400; i++) {
        size_t len = size[i % 4];
        char *p = map_rw(len);
        zero &= p[0] == 0 && p[len / 2] == 0 && p[len - 1] == 0;
        p[0] = p[len / 2] = p[len - 1] = 1;
        kept &= p[0] == 1 && p[len / 2] == 1 && p[len - 1] == 1;
        need(sys_munmap(p, len) == 0, "munmap");
    }
    ok(zero, "400 cycles of four sizes: always zero");
    ok(kept, "and always as written");
}

int main(void)
{
    probe_open();
    test_errors();
    test_holes();
    test_split();
    test_kinds();
    test_blocks();
    test_cycles();
    return tap_done();
}
