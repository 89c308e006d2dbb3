/* SPDX-License-Identifier: Apache-2.0 */
/* sources: tests/unit/fake_mm.c src/stats.c */
/* sources: src/mm/copy.c src/mm/dirty.c src/mm/gather.c src/mm/hostspace.c */
/* sources: src/mm/materialise.c src/mm/mm.c src/mm/objectspace.c */
/* sources: src/mm/pagetable.c src/mm/ptmove.c src/mm/ptretain.c */
/* sources: src/mm/span.c src/mm/tablepool.c src/mm/window.c */
/* sources: src/mm/vma.c src/mm/object.c src/mm/objectedge.c */
/* sources: src/mm/account.c src/mm/mmap.c src/mm/munmap.c src/mm/mlock.c */
/* sources: src/mm/shm.c src/mm/setmm.c src/mm/fault.c src/mm/image.c */
/* sources: src/mm/maps.c src/mm/hostmaps.c */
/* sources: src/mm/brk.c */
/* The text of maps, smaps and smaps_rollup, to the letter. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_mm.h"

#define BASE 0x10000000UL
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED)

static mm_t *mm;
static mm_cpu_t *cpu;
static char *text;

static void map(uint64_t addr, uint64_t pages, int prot, int flags, int fd,
                uint64_t offset)
{
    assert_int_equal(mm_mmap(mm, cpu, addr, pages * GUEST_PAGE_SIZE,
                             (uint64_t) prot, (uint64_t) flags, fd, offset),
                     addr);
}

static const char *print(int (*fn)(FILE *out))
{
    size_t size;
    FILE *out;

    free(text);
    out = open_memstream(&text, &size);
    assert_int_equal(fn(out), 0);
    fclose(out);
    return text;
}

static int print_maps(FILE *out)
{
    return mm_print_maps(mm, out);
}

static int print_smaps(FILE *out)
{
    return mm_print_smaps(mm, out, false);
}

static int print_rollup(FILE *out)
{
    return mm_print_smaps(mm, out, true);
}

static int setup(void **state)
{
    mm = fake_mm_create(40, 44, 4096);
    cpu = fake_cpu_create(mm);
    guest_enter(cpu);
    guest_exit(mm, cpu);
    return 0;
}

static int teardown(void **state)
{
    free(text);
    text = NULL;
    munmap(mm->space->base, mm->space->size);
    return 0;
}

static void names_and_columns(void **state)
{
    mm_set_brk(mm, BASE + 0x1000);
    mm->brk_start = mm->brk = BASE + 0x1000;
    assert_int_equal(mm_brk(mm, cpu, BASE + 0x3000), BASE + 0x3000);
    map(BASE + 0x100000, 1, PROT_READ | PROT_EXEC, ANON, -1, 0);
    map(0xaaaabbbb000, 2, PROT_NONE, ANON, -1, 0);
    mm->stack_top = 0xbbbbbbb0000;
    assert_int_equal(mm_make_stack(mm, cpu, 0x2000, false), 0);
    assert_string_equal(
        print(print_maps),
        "10001000-10003000 rw-p 00000000 00:00 0                            "
        "      [heap]\n"
        "10100000-10101000 r-xp 00000000 00:00 0 \n"
        "aaaabbbb000-aaaabbbd000 ---p 00000000 00:00 0 \n"
        "bbbbbbae000-bbbbbbb0000 rw-p 00000000 00:00 0                      "
        "      [stack]\n");
}

/* Two mappings of one descriptor that continue each other are one line, with
 * the name as it is now. */
static void files(void **state)
{
    char path[] = "/tmp/test_maps.XXXXXX", want[512];
    int fd = mkstemp(path);
    struct stat st;
    int n;

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, 8 * 4096), 0);
    assert_int_equal(fstat(fd, &st), 0);
    map(BASE, 2, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0);
    map(BASE + 0x2000, 2, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0x2000);
    map(BASE + 0x4000, 1, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0x7000);
    for (int deleted = 0; deleted < 2; deleted++) {
        n = snprintf(want, sizeof(want),
                     "10000000-10004000 r--s 00000000 %02x:%02x %lu ",
                     major(st.st_dev), minor(st.st_dev), st.st_ino);
        n += snprintf(want + n, sizeof(want) - (size_t) n, "%*s%s%s\n", 73 - n,
                      "", path, deleted ? " (deleted)" : "");
        n += snprintf(want + n, sizeof(want) - (size_t) n,
                      "10004000-10005000 r--s 00007000 %02x:%02x %lu ",
                      major(st.st_dev), minor(st.st_dev), st.st_ino);
        snprintf(want + n, sizeof(want) - (size_t) n, "%*s%s%s\n",
                 73 - (n - (int) (strchr(want, '\n') + 1 - want)), "", path,
                 deleted ? " (deleted)" : "");
        assert_string_equal(print(print_maps), want);
        unlink(path);
    }
    close(fd);
}

static void smaps_lines(void **state)
{
    uint64_t value = 1;

    map(BASE, 64, PROT_READ | PROT_WRITE, ANON, -1, 0);
    assert_int_equal(guest_access(mm, cpu, BASE, true, &value), 0);
    guest_exit(mm, cpu);
    assert_string_equal(print(print_smaps),
                        "10000000-10040000 rw-p 00000000 00:00 0 \n"
                        "Size:                256 kB\n"
                        "KernelPageSize:        4 kB\n"
                        "MMUPageSize:           4 kB\n"
                        "Rss:                  64 kB\n"
                        "Pss:                  64 kB\n"
                        "Pss_Dirty:            64 kB\n"
                        "Shared_Clean:          0 kB\n"
                        "Shared_Dirty:          0 kB\n"
                        "Private_Clean:         0 kB\n"
                        "Private_Dirty:        64 kB\n"
                        "Referenced:           64 kB\n"
                        "Anonymous:            64 kB\n"
                        "LazyFree:              0 kB\n"
                        "AnonHugePages:         0 kB\n"
                        "ShmemPmdMapped:        0 kB\n"
                        "FilePmdMapped:         0 kB\n"
                        "Shared_Hugetlb:        0 kB\n"
                        "Private_Hugetlb:       0 kB\n"
                        "Swap:                  0 kB\n"
                        "SwapPss:               0 kB\n"
                        "Locked:                0 kB\n"
                        "THPeligible:    0\n"
                        "VmFlags: rd wr mr mw me ac \n");
}

static void rollup_is_one_entry(void **state)
{
    map(BASE, 1, PROT_READ, ANON, -1, 0);
    map(BASE + 0x10000, 1, PROT_READ, ANON, -1, 0);
    assert_memory_equal(
        print(print_rollup),
        "10000000-10011000 ---p 00000000 00:00 0                            "
        "      [rollup]\n"
        "Rss:                   0 kB\n",
        80 + 28);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(names_and_columns, setup, teardown),
        cmocka_unit_test_setup_teardown(files, setup, teardown),
        cmocka_unit_test_setup_teardown(smaps_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(rollup_is_one_entry, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
