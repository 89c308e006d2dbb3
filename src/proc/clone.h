/* SPDX-License-Identifier: Apache-2.0 */
/* What clone, clone3 and vfork ask for, in one form (sys/sys_clone.c). */
#ifndef ELFUSE_PROC_CLONE_H
#define ELFUSE_PROC_CLONE_H

#include <stdint.h>
#include <sys/types.h>

/* The kernel's limit of nested PID namespaces. */
#define CLONE_SET_TID_MAX 32U

/* All addresses are the guest's. Combinations of flags that Linux refuses are
 * not in it any more. */
typedef struct clone_request {
    uint64_t flags;      /* CLONE_*; the signal is not among them */
    int exit_signal;     /* 0 to 64 */
    uint64_t stack;      /* the child's SP; 0: the parent's */
    uint64_t tls;        /* CLONE_SETTLS */
    uint64_t parent_tid; /* CLONE_PARENT_SETTID */
    uint64_t child_tid;  /* CLONE_CHILD_SETTID, CLONE_CHILD_CLEARTID */
    uint64_t pidfd;      /* CLONE_PIDFD */
    uint64_t set_tid_size;
    pid_t set_tid[CLONE_SET_TID_MAX];
    int cgroup; /* CLONE_INTO_CGROUP */
} clone_args_t;

#endif
