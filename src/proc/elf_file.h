/* SPDX-License-Identifier: Apache-2.0 */
/* The headers of an ELF file: read, decoded and checked; nothing is mapped. */
#ifndef ELFUSE_PROC_ELF_FILE_H
#define ELFUSE_PROC_ELF_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "proc/elf.h"

typedef struct elf_file {
    int fd; /* the caller's */
    elf_image_t image;
    Elf64_Phdr *phdr;            /* malloc'd; image.phdr points at it */
    char interp[ELF_INTERP_MAX]; /* of PT_INTERP, if image.interp_len > 0 */
} elf_file_t;

/*
 * Read the headers of fd. 0, or -errno (mostly -ENOEXEC) with a phrase in
 * why[ELF_WHY_MAX] that completes "cannot run PROGRAM: "; elf_file_free() in
 * either case. Even then image.interp_len > 0 says that `interp` is sound:
 * Linux looks for the interpreter before it looks at segments.
 */
int elf_file_read(elf_file_t *file, int fd, uint64_t task_size, char *why);
void elf_file_free(elf_file_t *file);

/* Exactly len bytes at offset: 0, -EIO when the file is shorter, -errno. */
int elf_file_read_at(int fd, void *to, size_t len, uint64_t offset);

#endif
