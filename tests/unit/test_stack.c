/* SPDX-License-Identifier: Apache-2.0 */
/* sources: src/proc/stack.c */
/* The initial stack, read back as a program's start-up code would. */
#include <elf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proc/stack.h"

#define TOP (1UL << 46)
#define MIB (1UL << 20)

static char *argv[] = {"prog", "-x", "", "two words", NULL};
static char *envp[] = {"A=1", "PATH=/bin", NULL};

static stack_input_t input(void)
{
    stack_input_t in = {
        .argv = argv,
        .envp = envp,
        .execfn = "./prog",
        .top = TOP,
        .limit = 8 * MIB,
        .random = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
        .vdso = 0x123000,
        .minsigstksz = 4720,
        .hwcap = 0xff,
        .hwcap2 = 0x7,
        .phdr = 0x400040,
        .phnum = 5,
        .entry = 0x400180,
        .clktck = 100,
    };
    return in;
}

static const char *at(const stack_image_t *s, uint64_t addr)
{
    assert_in_range(addr, s->sp, TOP - 1);
    return (const char *) s->data + (addr - s->sp);
}

/* Checks a NULL-terminated vector of strings; returns the word after it. */
static const uint64_t *check_vector(const stack_image_t *s,
                                    const uint64_t *word, char **strings,
                                    uint64_t start, uint64_t end)
{
    for (; *strings != NULL; strings++, word++) {
        assert_int_equal(*word, start);
        assert_string_equal(at(s, *word), *strings);
        start += strlen(*strings) + 1;
    }
    assert_int_equal(*word++, 0);
    assert_int_equal(start, end);
    return word;
}

static void check_stack(const stack_input_t *in)
{
    static const uint64_t order[] = {
        AT_SYSINFO_EHDR, 51 /* AT_MINSIGSTKSZ */,
        AT_HWCAP,        AT_PAGESZ,
        AT_CLKTCK,       AT_PHDR,
        AT_PHENT,        AT_PHNUM,
        AT_BASE,         AT_FLAGS,
        AT_ENTRY,        AT_UID,
        AT_EUID,         AT_GID,
        AT_EGID,         AT_SECURE,
        AT_RANDOM,       AT_HWCAP2,
        AT_EXECFN,       AT_PLATFORM,
        AT_NULL,
    };
    stack_image_t s;

    assert_int_equal(stack_build(in, &s), 0);
    assert_int_equal(s.sp % 16, 0);
    assert_int_equal(s.sp + s.len, TOP);
    const uint64_t *word = (const uint64_t *) s.data;
    assert_int_equal(*word++, 4);
    word = check_vector(&s, word, argv, s.arg_start, s.arg_end);
    assert_int_equal(s.arg_end, s.env_start);
    word = check_vector(&s, word, envp, s.env_start, s.env_end);
    uint64_t random = 0, execfn = 0, platform = 0;
    for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++, word += 2) {
        assert_int_equal(word[0], order[i]);
        assert_int_equal(s.auxv[2 * i], order[i]);
        assert_int_equal(s.auxv[2 * i + 1], word[1]);
        if (word[0] == AT_RANDOM)
            random = word[1];
        if (word[0] == AT_EXECFN)
            execfn = word[1];
        if (word[0] == AT_PLATFORM)
            platform = word[1];
    }
    assert_memory_equal(at(&s, random), in->random, 16);
    assert_string_equal(at(&s, execfn), "./prog");
    assert_string_equal(at(&s, platform), "aarch64");
    /* Highest first: eight zero bytes, file name, environment. */
    assert_memory_equal(at(&s, TOP - 8), "\0\0\0\0\0\0\0", 8);
    assert_int_equal(execfn, TOP - 8 - 7);
    assert_int_equal(s.env_end, execfn);
    assert_int_equal(platform, ((s.arg_start - in->gap) & ~15UL) - 8);
    assert_int_equal(random, platform - 16);
    free(s.data);
}

static void test_layout(void **state)
{
    stack_input_t in = input();

    check_stack(&in);
    for (in.gap = 1; in.gap < 4096; in.gap += 61)
        check_stack(&in);
}

static void test_no_vdso(void **state)
{
    stack_input_t in = input();
    stack_image_t s;

    in.vdso = 0;
    assert_int_equal(stack_build(&in, &s), 0);
    assert_int_equal(s.auxv[0], 51);
    assert_int_equal(s.auxv_len, 40);
    free(s.data);
}

/* One string of `len` bytes, its NUL included, as the only argument. */
static int build_with(size_t len, uint64_t limit)
{
    char *text = malloc(len);
    char *args[] = {text, NULL};
    stack_input_t in = input();
    stack_image_t s;

    assert_non_null(text);
    memset(text, 'x', len - 1);
    text[len - 1] = '\0';
    in.argv = args;
    in.limit = limit;
    int error = stack_build(&in, &s);
    if (error == 0)
        free(s.data);
    free(text);
    return error;
}

static void test_one_long_string(void **state)
{
    assert_int_equal(build_with(128 << 10, 8 * MIB), 0);
    assert_int_equal(build_with((128 << 10) + 1, 8 * MIB), -E2BIG);
}

/* argc strings of 1000 bytes. */
static int build_many(size_t argc, uint64_t limit)
{
    static char text[1000];
    char **args = calloc(argc + 1, sizeof(*args));
    stack_input_t in = input();
    stack_image_t s;

    assert_non_null(args);
    memset(text, 'y', sizeof(text) - 1);
    for (size_t i = 0; i < argc; i++)
        args[i] = text;
    in.argv = args;
    in.limit = limit;
    int error = stack_build(&in, &s);
    if (error == 0)
        free(s.data);
    free(args);
    return error;
}

static void test_sum_of_strings(void **state)
{
    /* A quarter of the limit, pointers included: 2 MiB / 1008. */
    assert_int_equal(build_many(2080, 8 * MIB), 0);
    assert_int_equal(build_many(2081, 8 * MIB), -E2BIG);
    /* Never less than 128 KiB, whatever the limit. */
    assert_int_equal(build_many(129, 4096), 0);
    assert_int_equal(build_many(131, 4096), -E2BIG);
    /* Never more than 6 MiB. */
    assert_int_equal(build_many(6241, UINT64_MAX), 0);
    assert_int_equal(build_many(6242, UINT64_MAX), -E2BIG);
}

static void test_vma_size(void **state)
{
    assert_int_equal(stack_vma_size(100, 8 * MIB), 0x21000);
    assert_int_equal(stack_vma_size(4097, 8 * MIB), 0x22000);
    assert_int_equal(stack_vma_size(100, 0x10000), 0x10000);
    assert_int_equal(stack_vma_size(100, 0), 0x1000);
    assert_int_equal(stack_vma_size(100, UINT64_MAX), 0x21000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_no_vdso),
        cmocka_unit_test(test_one_long_string),
        cmocka_unit_test(test_sum_of_strings),
        cmocka_unit_test(test_vma_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
