/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's arguments and environment in the host's /proc, so that ps, pgrep
 * and other guests see the program and not elfuse. The kernel is told where
 * they are in elfuse's memory, so that a program that writes over its arguments
 * is seen to have done so.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "proc/title.h"
#include "sys/call.h"

/* Fields of /proc/self/stat, as proc(5) counts. */
enum { CODE = 26, STACK = 28, DATA = 45, BRK = 47, FIELDS = 52 };

/* false: there is no /proc. */
static bool read_stat(uint64_t field[FIELDS])
{
    FILE *in = fopen("/proc/self/stat", "re");
    char line[2048] = "", *p, *save = NULL;
    int i = 3;

    if (!in)
        return false;
    p = fgets(line, sizeof line, in) ? strrchr(line, ')') : NULL;
    fclose(in);
    if (!p)
        return false;
    for (p = strtok_r(p + 2, " ", &save); p && i < FIELDS;
         p = strtok_r(NULL, " ", &save))
        sscanf(p, "%lu", &field[i++]);
    return i == FIELDS;
}

typedef struct strings {
    uint64_t arg_start, arg_end, env_start, env_end;
} strings_t;

/* All at once, for which no privilege is needed. It also sets the break, so
 * that nobody else may be in malloc. */
static void show_map(const strings_t *s)
{
    uint64_t f[FIELDS] = {0};
    struct prctl_mm_map map = {.exe_fd = ~0U};

    if (!read_stat(f))
        return;
    map.start_code = f[CODE];
    map.end_code = f[CODE + 1];
    map.start_data = f[DATA];
    map.end_data = f[DATA + 1];
    map.start_stack = f[STACK];
    map.start_brk = f[BRK];
    map.arg_start = s->arg_start;
    map.arg_end = s->arg_end;
    map.env_start = s->env_start;
    map.env_end = s->env_end;
    map.brk = P(sbrk(0));
    host_call(SYS_prctl, PR_SET_MM, PR_SET_MM_MAP, P(&map), sizeof map, 0, 0);
}

static bool set_field(int option, uint64_t value)
{
    return host_call(SYS_prctl, PR_SET_MM, (uint64_t) option, value, 0, 0, 0) ==
           0;
}

/* In the order in which the start is never above the end. */
static bool set_pair(int start, int end, uint64_t from, uint64_t to)
{
    if (set_field(start, from))
        return set_field(end, to);
    return set_field(end, to) && set_field(start, from);
}

static bool find_strings(const proc_t *proc, strings_t *s)
{
    const mm_image_t *image = mm_image(proc->mm);

    s->arg_start = mm_host_of(proc->mm, image->arg_start, image->arg_end);
    s->env_start = mm_host_of(proc->mm, image->env_start, image->env_end);
    s->arg_end = s->arg_start + (image->arg_end - image->arg_start);
    s->env_end = s->env_start + (image->env_end - image->env_start);
    return s->arg_start && s->env_start;
}

void proc_show_strings(const proc_t *proc, bool alone)
{
    strings_t s;

    if (!find_strings(proc, &s))
        return;
    if (set_pair(PR_SET_MM_ARG_START, PR_SET_MM_ARG_END, s.arg_start,
                 s.arg_end))
        (void) set_pair(PR_SET_MM_ENV_START, PR_SET_MM_ENV_END, s.env_start,
                        s.env_end);
    else if (alone)
        show_map(&s);
}
