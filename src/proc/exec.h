/* SPDX-License-Identifier: Apache-2.0 */
/* execve and execveat: from arguments in the host's memory to a new image. */
#ifndef ELFUSE_PROC_EXEC_H
#define ELFUSE_PROC_EXEC_H

#include <limits.h>
#include <stddef.h>

#include "proc/proc.h"
#include "proc/program.h"

/*
 * What one call needs, in a mapping of its own: in a vfork child a successful
 * exec leaves it behind in the parent's memory, for the parent to free.
 */
typedef struct exec {
    size_t size; /* of the mapping */
    size_t used; /* of the bytes behind this structure */
    int dirfd, flags;
    const char *execfn; /* NULL: see program_request_t */
    char **argv, **envp;
    program_t program;
    char path[PATH_MAX];
} exec_t;

/* Room for `size` bytes of strings and pointers. NULL: no memory. */
exec_t *exec_new(size_t size);
/* `size` more of them, aligned to a pointer; there is room. */
void *exec_room(exec_t *exec, size_t size);
/* In the process that asked for it; exec_forget() in the parent of a vfork
 * child that did: descriptors have been the child's. */
void exec_free(exec_t *exec);
void exec_forget(exec_t *exec);

/* Execute what *exec describes. Returns only if that failed, with -errno and
 * nothing changed, or CALL_RESTART. The caller holds no lock. */
int64_t proc_exec(thread_t *t, exec_t *exec);

#endif
