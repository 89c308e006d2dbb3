/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/fork.h"

#include <errno.h>

/* Not served yet. */
int64_t proc_fork(thread_t *t, const clone_args_t *args)
{
    return -ENOSYS;
}
