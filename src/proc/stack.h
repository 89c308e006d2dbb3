/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The initial stack, byte for byte as Linux lays it out (fs/exec.c and
 * create_elf_tables() in fs/binfmt_elf.c), built in host memory by pure
 * functions; proc/load.c copies it to the guest.
 *
 *   top        8 zero bytes
 *              file name as exec was given it (AT_EXECFN)
 *              environment strings, the first one lowest
 *              argument strings, likewise
 *              0 to 4095 random bytes, alignment to 16
 *              "aarch64" (AT_PLATFORM), 16 random bytes (AT_RANDOM)
 *              auxiliary vector, environment, arguments, argc
 *   sp         aligned to 16
 */
#ifndef ELFUSE_PROC_STACK_H
#define ELFUSE_PROC_STACK_H

#include <stddef.h>
#include <stdint.h>

/* Words of auxiliary vector at most, AT_NULL included; proc_t has as many. */
#define STACK_AUXV_MAX 64U

typedef struct stack_input {
    char *const *argv; /* at least argv[0]; NULL at the end */
    char *const *envp;
    const char *execfn;
    uint64_t top;         /* end of the stack VMA, page aligned */
    uint64_t limit;       /* RLIMIT_STACK in bytes */
    uint64_t gap;         /* arch_align_stack()'s random distance, < 4096 */
    uint8_t random[16];   /* AT_RANDOM */
    uint64_t vdso;        /* AT_SYSINFO_EHDR; 0: leave it out */
    uint64_t minsigstksz; /* AT_MINSIGSTKSZ */
    uint64_t hwcap, hwcap2;
    uint64_t phdr, phnum, entry; /* biased; of the program */
    uint64_t base;               /* the interpreter's bias; 0: none */
    uint64_t uid, euid, gid, egid, secure;
    uint64_t clktck;
} stack_input_t;

typedef struct stack_image {
    uint64_t sp;      /* guest address of data[0] */
    size_t len;       /* sp + len is the top */
    uint8_t *data;    /* malloc'd */
    uint64_t strings; /* bytes of strings below the top, for stack_vma_size() */
    uint64_t arg_start, arg_end, env_start, env_end;
    uint64_t auxv[STACK_AUXV_MAX];
    unsigned auxv_len; /* words, AT_NULL's two included */
} stack_image_t;

/*
 * Bytes that the strings take below the top: 0 on success, -E2BIG when Linux
 * would refuse them: more than max(128 KiB, min(6 MiB, limit / 4)) with their
 * pointers, or one string of more than 128 KiB.
 */
int stack_measure(const stack_input_t *in, uint64_t *strings);

/* Build it. 0, -E2BIG as above, -ENOMEM. */
int stack_build(const stack_input_t *in, stack_image_t *out);

/* Size of the stack VMA at the start: the pages of the strings and 128 KiB, but
 * no more than the limit. A multiple of a page. */
uint64_t stack_vma_size(uint64_t strings, uint64_t limit);

#endif
