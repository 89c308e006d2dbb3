/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the guest process: how they come and go. */
#ifndef ELFUSE_PROC_THREAD_H
#define ELFUSE_PROC_THREAD_H

#include "proc/clone.h"
#include "proc/proc.h"

/* clone with CLONE_THREAD. The new thread's tid, or -errno. */
int64_t thread_clone(thread_t *t, const clone_args_t *args);

#endif
