/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/stack.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "abi/layout.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

/* bprm_stack_limits(): three quarters of the default stack, at least ARG_MAX.
 */
#define STRINGS_MAX   (6UL << 20)
#define STRINGS_MIN   (128UL << 10)
#define STRING_MAX    (128UL << 10) /* MAX_ARG_STRLEN, NUL included */
#define INITIAL_EXTRA (128UL << 10) /* setup_arg_pages() */
#define TOP_ZEROS     sizeof(uint64_t)

static const char platform[] = "aarch64";

static size_t count(char *const *strings)
{
    size_t n = 0;
    while (strings[n] != NULL)
        n++;
    return n;
}

/* Adds the bytes of strings to *sum; -E2BIG when they pass max. */
static int add_strings(char *const *strings, uint64_t max, uint64_t *sum)
{
    for (; *strings != NULL; strings++) {
        size_t len = strlen(*strings) + 1;
        if (len > STRING_MAX)
            return -E2BIG;
        *sum += len;
        if (*sum > max)
            return -E2BIG;
    }
    return 0;
}

int stack_measure(const stack_input_t *in, uint64_t *strings)
{
    uint64_t max = in->limit / 4;
    uint64_t pointers = (count(in->argv) + count(in->envp)) * sizeof(uint64_t);
    char *const execfn[] = {(char *) in->execfn, NULL};

    if (max > STRINGS_MAX)
        max = STRINGS_MAX;
    if (max < STRINGS_MIN)
        max = STRINGS_MIN;
    if (max <= pointers)
        return -E2BIG;
    max -= pointers;
    *strings = 0;
    if (add_strings(execfn, max, strings) != 0 ||
        add_strings(in->envp, max, strings) != 0 ||
        add_strings(in->argv, max, strings) != 0)
        return -E2BIG;
    *strings += TOP_ZEROS;
    return 0;
}

uint64_t stack_vma_size(uint64_t strings, uint64_t limit)
{
    uint64_t size = (strings + GUEST_PAGE_SIZE - 1) & GUEST_PAGE_MASK;

    size += INITIAL_EXTRA;
    limit &= GUEST_PAGE_MASK;
    if (size > limit)
        size = limit;
    return size < GUEST_PAGE_SIZE ? GUEST_PAGE_SIZE : size;
}

/* In the order of Linux's create_elf_tables(), arm64's ARCH_DLINFO first. */
static void fill_auxv(const stack_input_t *in, stack_image_t *out,
                      uint64_t random, uint64_t execfn, uint64_t plat)
{
    const uint64_t all[][2] = {
        {AT_SYSINFO_EHDR, in->vdso},
        {AT_MINSIGSTKSZ, in->minsigstksz},
        {AT_HWCAP, in->hwcap},
        {AT_PAGESZ, GUEST_PAGE_SIZE},
        {AT_CLKTCK, in->clktck},
        {AT_PHDR, in->phdr},
        {AT_PHENT, sizeof(Elf64_Phdr)},
        {AT_PHNUM, in->phnum},
        {AT_BASE, in->base},
        {AT_FLAGS, 0},
        {AT_ENTRY, in->entry},
        {AT_UID, in->uid},
        {AT_EUID, in->euid},
        {AT_GID, in->gid},
        {AT_EGID, in->egid},
        {AT_SECURE, in->secure},
        {AT_RANDOM, random},
        {AT_HWCAP2, in->hwcap2},
        {AT_EXECFN, execfn},
        {AT_PLATFORM, plat},
        {AT_NULL, 0},
    };
    _Static_assert(sizeof(all) <= sizeof(out->auxv), "proc_t.auxv holds it");

    out->auxv_len = 0;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (all[i][0] == AT_SYSINFO_EHDR && in->vdso == 0)
            continue;
        out->auxv[out->auxv_len++] = all[i][0];
        out->auxv[out->auxv_len++] = all[i][1];
    }
}

/* Copies strings to the guest address at, writes their addresses and a NULL
 * from *word on; returns the address past the last string. */
static uint64_t put_strings(const stack_image_t *out, char *const *strings,
                            uint64_t at, uint64_t **word)
{
    for (; *strings != NULL; strings++) {
        size_t len = strlen(*strings) + 1;
        memcpy(out->data + (at - out->sp), *strings, len);
        *(*word)++ = at;
        at += len;
    }
    *(*word)++ = 0;
    return at;
}

int stack_build(const stack_input_t *in, stack_image_t *out)
{
    memset(out, 0, sizeof(*out));
    int error = stack_measure(in, &out->strings);
    if (error != 0)
        return error;

    /* Addresses from the top down. */
    uint64_t execfn = in->top - TOP_ZEROS - (strlen(in->execfn) + 1);
    out->arg_start = in->top - out->strings;
    uint64_t plat = ((out->arg_start - in->gap) & ~15UL) - sizeof(platform);
    uint64_t random = plat - sizeof(in->random);
    fill_auxv(in, out, random, execfn, plat);
    uint64_t words = 1 + count(in->argv) + 1 + count(in->envp) + 1;
    out->sp = random - out->auxv_len * sizeof(uint64_t);
    out->sp = (out->sp - words * sizeof(uint64_t)) & ~15UL;

    out->len = in->top - out->sp;
    out->data = calloc(1, out->len);
    if (out->data == NULL)
        return -ENOMEM;
    memcpy(out->data + (execfn - out->sp), in->execfn, strlen(in->execfn) + 1);
    memcpy(out->data + (plat - out->sp), platform, sizeof(platform));
    memcpy(out->data + (random - out->sp), in->random, sizeof(in->random));

    uint64_t *word = (uint64_t *) out->data;
    *word++ = count(in->argv);
    out->arg_end = put_strings(out, in->argv, out->arg_start, &word);
    out->env_start = out->arg_end;
    out->env_end = put_strings(out, in->envp, out->env_start, &word);
    memcpy(word, out->auxv, out->auxv_len * sizeof(uint64_t));
    return 0;
}
