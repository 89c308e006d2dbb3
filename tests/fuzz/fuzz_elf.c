/* SPDX-License-Identifier: Apache-2.0 */
/* sources: src/proc/elf.c */
/*
 * libFuzzer on the ELF decoder: the input is a file. Whatever is accepted must
 * be safe to map, which is checked here independently of the decoder.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "proc/elf.h"

#define TASK_SIZE (1UL << 46)

/* offset + len lies in the file. 128 bits, so that nothing can wrap. */
static int in_file(uint64_t offset, uint64_t len, uint64_t file_size)
{
    return (unsigned __int128) offset + len <= file_size;
}

static void check_image(const elf_image_t *image, uint64_t file_size)
{
    unsigned loads = 0;

    CHECK(image->start < image->end);
    CHECK(image->end <= TASK_SIZE);
    CHECK(image->start % 4096 == 0 && image->end % 4096 == 0);
    CHECK(image->align >= 4096 && image->align <= ELF_ALIGN_MAX);
    CHECK((image->align & (image->align - 1)) == 0);
    CHECK(image->brk <= image->end);
    for (unsigned i = 0; i < image->phnum; i++) {
        const Elf64_Phdr *p = &image->phdr[i];
        if (p->p_type != PT_LOAD)
            continue;
        loads++;
        CHECK((unsigned __int128) p->p_vaddr + p->p_memsz <= image->end);
        CHECK(p->p_vaddr >= image->start);
        CHECK(p->p_filesz <= p->p_memsz);
        CHECK(p->p_filesz == 0 || in_file(p->p_offset, p->p_filesz, file_size));
        CHECK(p->p_filesz == 0 || (p->p_offset - p->p_vaddr) % 4096 == 0);
    }
    CHECK(loads > 0);
}

static void check_why(int error, const char *why)
{
    CHECK(error < 0);
    CHECK(strlen(why) > 0 && strlen(why) < ELF_WHY_MAX);
}

/* Read the data as the start of a file of file_size bytes. */
static void decode(const uint8_t *data, size_t size, uint64_t file_size)
{
    elf_image_t image;
    char why[ELF_WHY_MAX] = "";
    size_t len = size < sizeof(Elf64_Ehdr) ? size : sizeof(Elf64_Ehdr);

    int error = elf_parse(data, len, file_size, &image, why);
    if (error != 0) {
        check_why(error, why);
        return;
    }
    size_t bytes = image.phnum * sizeof(Elf64_Phdr);
    CHECK(bytes > 0 && bytes <= ELF_PHDRS_MAX);
    CHECK(in_file(image.phoff, bytes, file_size));
    if (!in_file(image.phoff, bytes, size))
        return;
    Elf64_Phdr *phdr = malloc(bytes);
    CHECK(phdr != NULL);
    memcpy(phdr, data + image.phoff, bytes);
    error = elf_parse_segments(&image, phdr, file_size, TASK_SIZE, why);
    /* The name is read even when a segment is bad. */
    CHECK(in_file(image.interp_off, image.interp_len, file_size));
    CHECK(image.interp_len <= ELF_INTERP_MAX);
    if (error != 0)
        check_why(error, why);
    else
        check_image(&image, file_size);
    if (error == 0 && in_file(image.prop_off, image.prop_len, size))
        elf_parse_property(&image, data + image.prop_off, image.prop_len);
    free(phdr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    decode(data, size, size);
    /* As if much more followed: the largest file there can be. */
    decode(data, size, INT64_MAX);
    return 0;
}
