/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ELF decoder: pure functions over bytes, with no file, no memory map and
 * no guest in them, so that it can be fuzzed and tested anywhere. What passes
 * them is safe to map: no sum in a segment overflows, and every address lies
 * below the task size given.
 *
 * Decoding has two steps, because the program headers may be anywhere in the
 * file: elf_parse() looks at the file header and says where they are;
 * elf_parse_segments() looks at them.
 */
#ifndef ELFUSE_PROC_ELF_H
#define ELFUSE_PROC_ELF_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Linux reads at most so many bytes of program headers. */
#define ELF_PHDRS_MAX 65536U
/* Room for one message. */
#define ELF_WHY_MAX 160
/* Linux wants the interpreter's name to fit PATH_MAX, its NUL included. */
#define ELF_INTERP_MAX 4096U
/* The largest segment alignment honoured for a PIE: a huge page. */
#define ELF_ALIGN_MAX 0x200000UL

/* PT_GNU_STACK: not there, there without X, there with X. */
enum elf_stack { ELF_STACK_DEFAULT, ELF_STACK_NOEXEC, ELF_STACK_EXEC };

typedef struct elf_image {
    bool pie;       /* ET_DYN */
    bool bti;       /* PT_GNU_PROPERTY asks for branch target checks */
    uint64_t entry; /* as in the file: not biased */
    uint64_t phoff; /* file offset of the program headers */
    unsigned phnum; /* 1 .. ELF_PHDRS_MAX / sizeof(Elf64_Phdr) */

    /* Set by elf_parse_segments(). */
    const Elf64_Phdr *phdr; /* phnum of them, the caller's */
    uint64_t phdr_addr;  /* AT_PHDR without bias; 0: not in a segment, Linux's
                            value too */
    uint64_t start, end; /* page-aligned span of all PT_LOADs */
    uint64_t brk;        /* end of the highest segment, not aligned */
    uint64_t align;      /* largest sane p_align, at least one page */
    uint64_t start_code, end_code, start_data, end_data;
    enum elf_stack stack;
    uint64_t interp_off, interp_len; /* len 0: no PT_INTERP */
    uint64_t prop_off, prop_len;     /* len 0: no PT_GNU_PROPERTY */
} elf_image_t;

/*
 * Decode the file header in the first `len` bytes of a file of `file_size`
 * bytes. Returns 0, or -ENOEXEC with a phrase in why[ELF_WHY_MAX] that
 * completes "cannot run PROGRAM: ".
 */
int elf_parse(const void *buf, size_t len, uint64_t file_size,
              elf_image_t *image, char *why);

/*
 * Decode image->phnum program headers, which must stay where they are as long
 * as the image is used. Addresses must lie below task_size. Returns as above;
 * interp_off and interp_len are set also when another segment is bad.
 */
int elf_parse_segments(elf_image_t *image, const Elf64_Phdr *phdr,
                       uint64_t file_size, uint64_t task_size, char *why);

/* Decode the note section of PT_GNU_PROPERTY: sets image->bti. Anything odd in
 * it is passed over. */
void elf_parse_property(elf_image_t *image, const void *buf, size_t len);

/* The name of an e_machine, for messages; NULL when unknown. */
const char *elf_machine_name(unsigned machine);

#endif
