/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec: elfuse executes itself, with the new program's arguments and
 * environment as its own, so that everybody sees them. What it needs to know
 * besides is in a file that only a descriptor leads to: elfuse is executed by
 * descriptor N, which AT_EXECFN tells ("/dev/fd/N"), and N + 1 is that file.
 */
#ifndef ELFUSE_PROC_HANDOVER_H
#define ELFUSE_PROC_HANDOVER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

#include "hv/hv.h"
#include "mm/mm.h"

/* "/dev/fd/N/" and a path. */
#define HANDOVER_NAME_MAX (PATH_MAX + 32)

typedef struct handover {
    uint64_t magic;
    uint32_t size; /* of this */
    hv_options_t hv;
    bool strace, strace_pids, show_stats, verbose;
    bool by_descriptor; /* execfn says no more than its number */
    /* Descriptors, all hidden; -1: there is none. */
    int self_fd; /* elfuse's own file, and N */
    int proc_dir, program_fd, interp_fd, trace_fd;
    int fds_low;   /* where the hidden ones begin */
    uint64_t mask; /* of signals, the guest's: in the host all are blocked */
    struct rlimit limit[MM_LIMITS];
    char execfn[HANDOVER_NAME_MAX];
} handover_t;

/* A descriptor for the new image to read it from, or -errno. */
int handover_write(handover_t *handover);
/* False: this process was not started by exec of a guest. */
bool handover_read(handover_t *handover);

#endif
