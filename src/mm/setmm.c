/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What prctl changes of an address space: where /proc says that things are
 * (PR_SET_MM), names of memory (PR_SET_VMA), writable or executable
 * (PR_SET_MDWE).
 */
#include <errno.h>
#include <linux/prctl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mm/calls.h"

/* The fields of struct prctl_mm_map, in its order. */
enum {
    START_CODE,
    END_CODE,
    START_DATA,
    END_DATA,
    START_BRK,
    BRK,
    START_STACK,
    ARG_START,
    ARG_END,
    ENV_START,
    ENV_END,
};

static void fields_get(mm_t *mm, uint64_t *f)
{
    const mm_image_t *image = &mm->image;
    const uint64_t now[MM_MAP_FIELDS] = {
        image->start_code,  image->end_code,  image->start_data,
        image->end_data,    mm->brk_start,    mm->brk,
        image->start_stack, image->arg_start, image->arg_end,
        image->env_start,   image->env_end,
    };

    memcpy(f, now, sizeof(now));
}

static void fields_set(mm_t *mm, const uint64_t *f)
{
    mm->image = (mm_image_t){
        .start_code = f[START_CODE],
        .end_code = f[END_CODE],
        .start_data = f[START_DATA],
        .end_data = f[END_DATA],
        .start_stack = f[START_STACK],
        .arg_start = f[ARG_START],
        .arg_end = f[ARG_END],
        .env_start = f[ENV_START],
        .env_end = f[ENV_END],
    };
    mm->brk_start = f[START_BRK];
    mm->brk = f[BRK];
}

/* validate_prctl_map_addr() */
static int fields_check(const mm_t *mm, const uint64_t *f)
{
    uint64_t limit = mm->limit_data.rlim_cur;

    for (int i = 0; i < MM_MAP_FIELDS; i++)
        if (f[i] >= mm->task_size || f[i] < mm->mmap_min)
            return -EINVAL;
    if (f[START_CODE] >= f[END_CODE] || f[START_DATA] > f[END_DATA] ||
        f[START_BRK] > f[BRK] || f[ARG_START] > f[ARG_END] ||
        f[ENV_START] > f[ENV_END])
        return -EINVAL;
    if (limit != RLIM_INFINITY &&
        f[BRK] - f[START_BRK] + (f[END_DATA] - f[START_DATA]) > limit)
        return -EINVAL;
    return 0;
}

static int field_of(int option)
{
    switch (option) {
    case PR_SET_MM_START_CODE:
        return START_CODE;
    case PR_SET_MM_END_CODE:
        return END_CODE;
    case PR_SET_MM_START_DATA:
        return START_DATA;
    case PR_SET_MM_END_DATA:
        return END_DATA;
    case PR_SET_MM_START_BRK:
        return START_BRK;
    case PR_SET_MM_BRK:
        return BRK;
    case PR_SET_MM_START_STACK:
        return START_STACK;
    case PR_SET_MM_ARG_START:
        return ARG_START;
    case PR_SET_MM_ARG_END:
        return ARG_END;
    case PR_SET_MM_ENV_START:
        return ENV_START;
    case PR_SET_MM_ENV_END:
        return ENV_END;
    default:
        return -1;
    }
}

int64_t mm_set_mm(mm_t *mm, int option, uint64_t addr)
{
    uint64_t f[MM_MAP_FIELDS];
    int field = field_of(option), err;

    if (addr >= mm->task_size || addr < mm->mmap_min || field < 0)
        return -EINVAL;
    mm_lock(mm);
    fields_get(mm, f);
    f[field] = addr;
    err = fields_check(mm, f);
    /* Linux looks no further than for some VMA that ends above. */
    if (!err && field >= START_STACK && !vma_find(mm, addr))
        err = -EFAULT;
    if (!err)
        fields_set(mm, f);
    mm_unlock(mm);
    return err;
}

int64_t mm_check_mm_map(mm_t *mm, const uint64_t field[MM_MAP_FIELDS])
{
    int err;

    mm_lock(mm);
    err = fields_check(mm, field);
    mm_unlock(mm);
    return err;
}

int64_t mm_set_mm_map(mm_t *mm, const uint64_t field[MM_MAP_FIELDS])
{
    int err;

    mm_lock(mm);
    err = fields_check(mm, field);
    if (!err)
        fields_set(mm, field);
    mm_unlock(mm);
    return err;
}

uint64_t mm_host_of(mm_t *mm, uint64_t start, uint64_t end)
{
    uint64_t at = start, host = (uint64_t) hostspace_ptr(mm, start);

    mm_lock(mm);
    while (at < end) {
        const vma_t *vma = vma_at(mm, at);

        if (!vma || vma->object)
            break;
        at = vma->end;
    }
    mm_unlock(mm);
    return at >= end ? host : 0;
}

void mm_deny_write_exec(mm_t *mm)
{
    mm_lock(mm);
    mm->deny_write_exec = true;
    mm_unlock(mm);
}

/* --- names --------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Never freed: programs have a handful. */
const char *anon_name(const char *name)
{
    static void *names; /* under mm->lock */
    char *text = NULL, **found;

    if (asprintf(&text, "[anon:%s]", name) < 0)
        return NULL;
    found = tsearch(text, &names, compare_names);
    if (!found || *found != text)
        free(text);
    return found ? *found : NULL;
}
