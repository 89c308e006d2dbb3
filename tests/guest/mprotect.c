/* SPDX-License-Identifier: Apache-2.0 */
/* mprotect: errors, splitting and merging, and that tables follow VMAs. */
#include "mem.h"

#ifndef PROT_BTI
#define PROT_BTI 0x10
#endif

static void test_errors(void)
{
    char *p = map_rw(4 * PAGE);
    fails(sys_mprotect(p + 1, PAGE, PROT_READ), EINVAL, "unaligned address");
    fails(sys_mprotect(p + 1, 0, PROT_READ), EINVAL, "unaligned, length 0");
    is(sys_mprotect(p, 0, PROT_NONE), 0, "length 0");
    is(sys_mprotect(NULL, 0, PROT_NONE), 0, "length 0 of a hole");
    fails(sys_mprotect(p, PAGE, 0x40), EINVAL, "unknown protection");
    is(sys_mprotect(p, 0, 0x40), 0, "unknown protection, length 0");
    fails(sys_mprotect(p, PAGE, PROT_READ | PROT_GROWSDOWN | PROT_GROWSUP),
          EINVAL, "growsdown and growsup");
    fails(sys_mprotect(p, PAGE, PROT_READ | PROT_GROWSUP), EINVAL,
          "growsup of an ordinary mapping");
    fails(sys_mprotect(p, PAGE, PROT_READ | PROT_GROWSDOWN), EINVAL,
          "growsdown of an ordinary mapping");
    fails(sys_mprotect(p, -1UL, PROT_READ), ENOMEM, "length ~0");
    fails(sys_mprotect(p, -PAGE, PROT_READ), ENOMEM, "length wraps around");
    fails(sys_mprotect(NULL, PAGE, PROT_READ), ENOMEM, "page 0");
    fails(sys_mprotect((void *) TOP, PAGE, PROT_READ), ENOMEM,
          "beyond user space");
    fails(sys_mprotect(BAD_PTR, PAGE, PROT_READ), ENOMEM, "at the top");
    is_str(layout(p, 4), "rw-p:4", "nothing changed");
    is_str(access_of(p), "rw", "in the tables neither");
    is(sys_mprotect(p, PAGE + 1, PROT_READ), 0, "length rounds up");
    is_str(layout(p, 4), "r--p:2 rw-p:2", "to two pages");
    sys_munmap(p, 4 * PAGE);
}

static void test_holes(void)
{
    char *p = map_hole(8 * PAGE);
    sys_mmap(p, 2 * PAGE, RW, ANON | MAP_FIXED, -1, 0);
    sys_mmap(p + 4 * PAGE, 2 * PAGE, RW, ANON | MAP_FIXED, -1, 0);
    p[0] = p[PAGE] = p[4 * PAGE] = p[5 * PAGE] = 1;
    fails(sys_mprotect(p, 6 * PAGE, PROT_READ), ENOMEM, "a hole in the middle");
    is_str(layout(p, 8), "r--p:2 hole:2 rw-p:2 hole:2",
           "the part before the hole has changed");
    is_str(access_of(p + PAGE), "r-", "in the tables too");
    is_str(access_of(p + 4 * PAGE), "rw", "the part after it has not");
    fails(sys_mprotect(p + 2 * PAGE, 4 * PAGE, PROT_READ), ENOMEM,
          "a hole first");
    is_str(layout(p, 8), "r--p:2 hole:2 rw-p:2 hole:2", "changes nothing");
    fails(sys_mprotect(p + 4 * PAGE, 4 * PAGE, PROT_NONE), ENOMEM,
          "a hole last");
    is_str(layout(p, 8), "r--p:2 hole:2 ---p:2 hole:2",
           "changes what is there");
    sys_munmap(p, 8 * PAGE);
}

static void test_split_merge(void)
{
    char *p = map_hole(9 * PAGE);
    sys_mmap(p, 9 * PAGE, RW, ANON | MAP_FIXED, -1, 0);
    for (int i = 0; i < 9; i++)
        memset(p + i * PAGE, i + 1, PAGE);
    is(sys_mprotect(p + 3 * PAGE, 3 * PAGE, PROT_READ), 0, "the middle");
    is_str(layout(p, 9), "rw-p:3 r--p:3 rw-p:3", "three parts");
    is(sys_mprotect(p + 4 * PAGE, PAGE, PROT_NONE), 0, "the middle's middle");
    is_str(layout(p, 9), "rw-p:3 r--p:1 ---p:1 r--p:1 rw-p:3", "five parts");
    is_str(access_of(p + 4 * PAGE), "--", "no access in the middle");
    is_str(access_of(p + 3 * PAGE), "r-", "read beside it");
    is_str(access_of(p + 2 * PAGE), "rw", "both further out");
    is(sys_mprotect(p + 3 * PAGE, 3 * PAGE, PROT_READ), 0, "merge three");
    is_str(layout(p, 9), "rw-p:3 r--p:3 rw-p:3", "three parts again");
    is(sys_mprotect(p, 9 * PAGE, RW), 0, "all to read-write");
    is_str(layout(p, 9), "rw-p:9", "one part");
    bool kept = true;
    for (int i = 0; i < 9; i++)
        kept &= all_bytes(p + i * PAGE, i + 1, PAGE);
    ok(kept, "every page has kept its content");
    is(sys_mprotect(p, PAGE, PROT_READ), 0, "the first page");
    is(sys_mprotect(p + 8 * PAGE, PAGE, PROT_READ), 0, "the last page");
    is(sys_mprotect(p, 4 * PAGE, PROT_NONE), 0, "over a border between parts");
    is_str(layout(p, 9), "---p:4 rw-p:4 r--p:1", "as it is now");
    is(sys_mprotect(p, 4 * PAGE, RW), 0, "and back");
    is_str(layout(p, 9), "rw-p:8 r--p:1", "merged upwards");
    is(p[3 * PAGE], 4, "content has survived PROT_NONE");
    sys_munmap(p, 9 * PAGE);
}

static void test_tables(void)
{
    static const int prot[] = {PROT_NONE, PROT_READ, RW,        PROT_READ,
                               PROT_NONE, RW,        PROT_WRITE};
    static const char *want[] = {"--", "r-", "rw", "r-", "--", "rw", "rw"};
    char name[64];
    char *p = map_rw(2 * PAGE);
    p[0] = 42;
    for (int i = 0; i < 7; i++) {
        need(sys_mprotect(p, PAGE, prot[i]) == 0, "mprotect");
        snprintf(name, sizeof name, "touched page, step %d: access %s", i + 1,
                 want[i]);
        is_str(access_of(p), want[i], name);
    }
    is(p[0], 42, "touched page: content after all steps");
    char *q = map_rw(2 * PAGE);
    for (int i = 0; i < 7; i++) {
        need(sys_mprotect(q, PAGE, prot[i]) == 0, "mprotect");
        snprintf(name, sizeof name, "fresh page, step %d: access %s", i + 1,
                 want[i]);
        is_str(access_of(q), want[i], name);
    }
    ok(all_bytes(q, 0, 2 * PAGE), "fresh page: zero after all steps");
    q = sys_mmap(NULL, PAGE, PROT_READ, ANON, -1, 0);
    is(sys_mprotect(q, PAGE, PROT_READ), 0, "read-only to read-only");
    is_str(access_of(q), "r-", "is still read-only");
    is(*q, 0, "and reads zero");
    is_str(access_of(q), "r-", "also after the read");
    is(sys_mprotect(q, PAGE, RW), 0, "then to read-write");
    *q = 1;
    is(*q, 1, "and a store works at once");
}

static void test_growsdown(void)
{
    char *p = map_hole(64 * PAGE);
    sys_mmap(p + 40 * PAGE, 8 * PAGE, RW, ANON | MAP_FIXED | MAP_GROWSDOWN, -1,
             0);
    is(sys_mprotect(p + 44 * PAGE, PAGE, PROT_READ | PROT_GROWSDOWN), 0,
       "growsdown of a growing mapping");
    is_str(layout(p + 40 * PAGE, 8), "r--p:5 rw-p:3",
           "reaches down to the mapping's start");
    sys_munmap(p, 64 * PAGE);
}

static void test_shared_file(void)
{
    int fd = file_make(4 * PAGE);
    char *p = sys_mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0);
    need(GOOD(p), "mmap");
    is(sys_mprotect(p + PAGE, PAGE, PROT_READ), 0, "shared file: one page");
    is_str(layout(p, 4), "rw-s:1 r--s:1 rw-s:2", "shared file: split");
    is(sys_mprotect(p, 4 * PAGE, RW), 0, "shared file: back");
    is_str(layout(p, 4), "rw-s:4", "shared file: merged by offset");
    p[PAGE] = 'z';
    is(file_byte(fd, PAGE), 'z', "shared file: a store reaches the file");
    sys_munmap(p, 4 * PAGE);
    close(fd);
}

static void test_blocks(void)
{
    char *p = map_aligned(6 * BLOCK);
    for (size_t i = 0; i < 6 * BLOCK; i += 32 * KIB)
        p[i] = i / BLOCK + 1;
    is(sys_mprotect(p + BLOCK, BLOCK, PROT_READ), 0, "a whole block");
    is(sys_mprotect(p + 3 * BLOCK - PAGE, 2 * PAGE, PROT_READ), 0,
       "two pages over a block's border");
    is_str(access_of(p + BLOCK - PAGE), "rw", "below the block");
    is_str(access_of(p + BLOCK), "r-", "the block's first page");
    is_str(access_of(p + 2 * BLOCK - PAGE), "r-", "the block's last page");
    is_str(access_of(p + 2 * BLOCK), "rw", "above the block");
    is_str(access_of(p + 3 * BLOCK - 2 * PAGE), "rw", "below the two pages");
    is_str(access_of(p + 3 * BLOCK - PAGE), "r-", "the first of the two");
    is_str(access_of(p + 3 * BLOCK), "r-", "the second of the two");
    is_str(access_of(p + 3 * BLOCK + PAGE), "rw", "above the two pages");
    is(sys_mprotect(p, 6 * BLOCK, RW), 0, "all back to read-write");
    bool kept = true;
    for (size_t i = 0; i < 6 * BLOCK; i += 32 * KIB)
        kept &= p[i] == (char) (i / BLOCK + 1);
    ok(kept, "everything has kept its content");
    for (size_t i = 0; i < 6 * BLOCK; i += 32 * KIB)
        p[i] = 99;
    ok(p[BLOCK] == 99 && p[3 * BLOCK] == 99, "and can be written");
    sys_munmap(p, 6 * BLOCK);
}

static void test_bti(void)
{
    char *p = map_rw(PAGE);
    long r = sys_mprotect(p, PAGE, PROT_READ | PROT_EXEC | PROT_BTI);
    ok(r == 0 || errno == EINVAL, "PROT_BTI is known or EINVAL");
    sys_munmap(p, PAGE);
}

int main(void)
{
    probe_open();
    test_errors();
    test_holes();
    test_split_merge();
    test_tables();
    test_growsdown();
    test_shared_file();
    test_blocks();
    test_bti();
    return tap_done();
}
