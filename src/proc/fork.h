/* SPDX-License-Identifier: Apache-2.0 */
/* New processes. */
#ifndef ELFUSE_PROC_FORK_H
#define ELFUSE_PROC_FORK_H

#include "proc/clone.h"
#include "proc/proc.h"

/* clone without CLONE_THREAD: fork and vfork in all their forms. The child's
 * pid, or -errno. */
int64_t proc_fork(thread_t *t, const clone_args_t *args);

/* proc/vfork.c, for fork.c: with CLONE_VM and CLONE_VFORK. Signals are blocked
 * (signal_block()), FP registers are in the frame. *pidfd is set if asked for.
 */
int64_t proc_vfork(thread_t *t, const clone_args_t *args, int *pidfd);

#endif
