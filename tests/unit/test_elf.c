/* SPDX-License-Identifier: Apache-2.0 */
/* sources: src/proc/elf.c */
/* The ELF decoder: what it accepts, what it refuses and how it says so. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proc/elf.h"

#define FILE_SIZE 0x30000UL
#define TASK_SIZE (1UL << 46)

/* A program with text, data and a bss; tests spoil one thing each. */
typedef struct program {
    Elf64_Ehdr header;
    Elf64_Phdr phdr[4];
    uint64_t file_size;
    elf_image_t image;
    char why[ELF_WHY_MAX];
} program_t;

static program_t sound(void)
{
    program_t p = {
        .header =
            {
                .e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1},
                .e_type = ET_EXEC,
                .e_machine = EM_AARCH64,
                .e_version = 1,
                .e_entry = 0x400180,
                .e_phoff = sizeof(Elf64_Ehdr),
                .e_ehsize = sizeof(Elf64_Ehdr),
                .e_phentsize = sizeof(Elf64_Phdr),
                .e_phnum = 3,
            },
        .phdr =
            {
                {.p_type = PT_LOAD,
                 .p_flags = PF_R | PF_X,
                 .p_vaddr = 0x400000,
                 .p_filesz = 0x1234,
                 .p_memsz = 0x1234,
                 .p_align = 0x10000},
                {.p_type = PT_LOAD,
                 .p_flags = PF_R | PF_W,
                 .p_offset = 0xfff0,
                 .p_vaddr = 0x41fff0,
                 .p_filesz = 0x210,
                 .p_memsz = 0x2000,
                 .p_align = 0x10000},
                {.p_type = PT_GNU_STACK, .p_flags = PF_R | PF_W},
            },
        .file_size = FILE_SIZE,
    };
    return p;
}

/* Headers in exactly as many bytes as are valid, for ASan to watch. */
static int parse(program_t *p)
{
    size_t len =
        p->file_size < sizeof(p->header) ? p->file_size : sizeof(p->header);
    void *exact = malloc(len ? len : 1);

    assert_non_null(exact);
    memcpy(exact, &p->header, len);
    strcpy(p->why, "");
    int error = elf_parse(exact, len, p->file_size, &p->image, p->why);
    free(exact);
    if (error == 0)
        error = elf_parse_segments(&p->image, p->phdr, p->file_size, TASK_SIZE,
                                   p->why);
    return error;
}

static void accepted(program_t *p)
{
    if (parse(p) != 0)
        fail_msg("refused: %s", p->why);
}

static void refused(program_t *p, const char *phrase)
{
    assert_int_equal(parse(p), -ENOEXEC);
    if (strstr(p->why, phrase) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", p->why, phrase);
}

static void test_sound(void **state)
{
    program_t p = sound();

    accepted(&p);
    assert_false(p.image.pie);
    assert_int_equal(p.image.entry, 0x400180);
    assert_int_equal(p.image.start, 0x400000);
    assert_int_equal(p.image.end, 0x422000);
    assert_int_equal(p.image.brk, 0x421ff0);
    assert_int_equal(p.image.align, 0x10000);
    assert_int_equal(p.image.phdr_addr, 0x400040);
    assert_int_equal(p.image.stack, ELF_STACK_NOEXEC);
    assert_int_equal(p.image.start_code, 0x400000);
    assert_int_equal(p.image.end_code, 0x401234);
    assert_int_equal(p.image.start_data, 0x41fff0);
    assert_int_equal(p.image.end_data, 0x420200);
    assert_int_equal(p.image.interp_len, 0);
}

static void test_pie(void **state)
{
    program_t p = sound();

    p.header.e_type = ET_DYN;
    p.phdr[0].p_vaddr = 0;
    p.phdr[2].p_flags |= PF_X;
    accepted(&p);
    assert_true(p.image.pie);
    assert_int_equal(p.image.start, 0);
    assert_int_equal(p.image.phdr_addr, 0x40);
    assert_int_equal(p.image.stack, ELF_STACK_EXEC);
}

static void test_not_elf(void **state)
{
    program_t p = sound();

    p.file_size = 0;
    refused(&p, "empty");
    p.file_size = 3;
    refused(&p, "not an ELF file");
    p.file_size = 63;
    refused(&p, "truncated");
    p = sound();
    memcpy(&p.header, "#!/bin/sh\n", 10);
    refused(&p, "script");
    p.file_size = 2;
    refused(&p, "script");
    p = sound();
    p.header.e_ident[0] = 'x';
    refused(&p, "not an ELF file");
}

static void test_wrong_target(void **state)
{
    program_t p = sound();

    p.header.e_machine = EM_X86_64;
    refused(&p, "x86-64");
    p.header.e_machine = 0x1234;
    refused(&p, "machine 4660");
    p.header.e_machine = EM_ARM;
    p.header.e_ident[EI_CLASS] = ELFCLASS32;
    refused(&p, "32-bit Arm");
    p = sound();
    p.header.e_ident[EI_CLASS] = ELFCLASS32;
    refused(&p, "32-bit");
    p.header.e_ident[EI_CLASS] = 7;
    refused(&p, "class 7");
    p = sound();
    p.header.e_ident[EI_DATA] = ELFDATA2MSB;
    p.header.e_machine = EM_AARCH64 << 8;
    refused(&p, "big-endian");
    p.header.e_machine = EM_S390 << 8;
    refused(&p, "S/390");
    p = sound();
    p.header.e_ident[EI_DATA] = 9;
    refused(&p, "byte order 9");
    p = sound();
    p.header.e_type = ET_REL;
    refused(&p, "ELF type 1");
    p.header.e_type = ET_CORE;
    refused(&p, "ELF type 4");
}

static void test_bad_header(void **state)
{
    program_t p = sound();

    p.header.e_phentsize = 32;
    refused(&p, "program headers of 32 bytes");
    p = sound();
    p.header.e_phnum = 0;
    refused(&p, "no program headers");
    p.header.e_phnum = 1171;
    refused(&p, "too many");
    p = sound();
    p.header.e_phoff = FILE_SIZE - 3 * sizeof(Elf64_Phdr) + 1;
    refused(&p, "truncated");
    p.header.e_phoff = UINT64_MAX;
    refused(&p, "truncated");
    p.header.e_phoff = UINT64_MAX - 100;
    refused(&p, "truncated");
    p = sound();
    p.header.e_entry = TASK_SIZE;
    refused(&p, "entry");
}

static void test_bad_segments(void **state)
{
    program_t p = sound();

    p.phdr[0].p_type = p.phdr[1].p_type = PT_NULL;
    refused(&p, "no loadable segment");
    p = sound();
    p.phdr[1].p_memsz = 0x20f;
    refused(&p, "more bytes in the file");
    p = sound();
    p.phdr[1].p_memsz = UINT64_MAX;
    refused(&p, "outside user space");
    p = sound();
    p.phdr[1].p_vaddr = TASK_SIZE - 0x10;
    refused(&p, "outside user space");
    p.phdr[1].p_vaddr = UINT64_MAX - 0xf;
    refused(&p, "outside user space");
    p = sound();
    p.phdr[1].p_offset = FILE_SIZE - 0x200 + 0xff0;
    refused(&p, "truncated");
    p.phdr[1].p_offset = UINT64_MAX - 0xf;
    refused(&p, "truncated");
    p = sound();
    p.phdr[1].p_offset++;
    refused(&p, "differ within the page");
    /* No bytes in the file: the offset does not matter. */
    p.phdr[1].p_filesz = 0;
    p.phdr[1].p_offset = UINT64_MAX;
    accepted(&p);
    p = sound();
    p.phdr[0].p_filesz = p.phdr[0].p_memsz = 0;
    p.phdr[1].p_type = PT_NULL;
    refused(&p, "no loadable segment");
}

static void test_end_of_user_space(void **state)
{
    program_t p = sound();

    p.phdr[1].p_vaddr = TASK_SIZE - 0x10010;
    p.phdr[1].p_memsz = 0x10010;
    accepted(&p);
    assert_int_equal(p.image.end, TASK_SIZE);
    p.phdr[1].p_memsz++;
    refused(&p, "outside user space");
}

static void test_unsorted_and_overlapping(void **state)
{
    program_t p = sound();
    Elf64_Phdr first = p.phdr[0];

    p.phdr[0] = p.phdr[1];
    p.phdr[1] = first;
    accepted(&p);
    assert_int_equal(p.image.start, 0x400000);
    assert_int_equal(p.image.end, 0x422000);
    p.phdr[0] = p.phdr[1];
    accepted(&p);
    assert_int_equal(p.image.end, 0x402000);
}

static void test_alignment(void **state)
{
    program_t p = sound();

    p.phdr[0].p_align = p.phdr[1].p_align = 0;
    accepted(&p);
    assert_int_equal(p.image.align, 0x1000);
    p.phdr[0].p_align = 0x3000; /* no power of two */
    accepted(&p);
    assert_int_equal(p.image.align, 0x1000);
    p.phdr[0].p_align = 1UL << 40;
    accepted(&p);
    assert_int_equal(p.image.align, ELF_ALIGN_MAX);
}

static void test_headers_outside_segments(void **state)
{
    program_t p = sound();

    p.header.e_phoff = 0x2000;
    accepted(&p);
    assert_int_equal(p.image.phdr_addr, 0);
}

static void test_interpreter(void **state)
{
    program_t p = sound();

    p.header.e_phnum = 4;
    p.phdr[3] =
        (Elf64_Phdr){.p_type = PT_INTERP, .p_offset = 0x200, .p_filesz = 28};
    accepted(&p);
    assert_int_equal(p.image.interp_off, 0x200);
    assert_int_equal(p.image.interp_len, 28);
    /* The first one counts. */
    p.phdr[2] = p.phdr[3];
    p.phdr[2].p_offset = 0x300;
    accepted(&p);
    assert_int_equal(p.image.interp_off, 0x300);
    p.phdr[2].p_type = PT_NULL;
    p.phdr[3].p_filesz = 1;
    refused(&p, "interpreter");
    p.phdr[3].p_filesz = ELF_INTERP_MAX + 1;
    refused(&p, "interpreter");
    p.phdr[3].p_filesz = 28;
    p.phdr[3].p_offset = FILE_SIZE - 27;
    refused(&p, "interpreter");
    p.phdr[3].p_offset = UINT64_MAX;
    refused(&p, "interpreter");
}

/* A property note of one feature word, of which `len` bytes are looked at. */
static bool bti_of(uint32_t bits, size_t len)
{
    const uint32_t note[8] = {4,
                              16,
                              NT_GNU_PROPERTY_TYPE_0,
                              0x554e47,
                              GNU_PROPERTY_AARCH64_FEATURE_1_AND,
                              4,
                              bits,
                              0};
    elf_image_t image = {.pie = false};
    void *exact = malloc(len);

    assert_non_null(exact);
    memcpy(exact, note, len);
    elf_parse_property(&image, exact, len);
    free(exact);
    return image.bti;
}

static void test_property(void **state)
{
    assert_true(bti_of(GNU_PROPERTY_AARCH64_FEATURE_1_BTI, 32));
    assert_false(bti_of(GNU_PROPERTY_AARCH64_FEATURE_1_PAC, 32));
    for (size_t len = 1; len < 28; len++)
        assert_false(bti_of(GNU_PROPERTY_AARCH64_FEATURE_1_BTI, len));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound),
        cmocka_unit_test(test_pie),
        cmocka_unit_test(test_not_elf),
        cmocka_unit_test(test_wrong_target),
        cmocka_unit_test(test_bad_header),
        cmocka_unit_test(test_bad_segments),
        cmocka_unit_test(test_end_of_user_space),
        cmocka_unit_test(test_unsorted_and_overlapping),
        cmocka_unit_test(test_alignment),
        cmocka_unit_test(test_headers_outside_segments),
        cmocka_unit_test(test_interpreter),
        cmocka_unit_test(test_property),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
