/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/thread.h"

#include <errno.h>

int64_t thread_clone(thread_t *t, const clone_args_t *args)
{
    return -ENOSYS;
}
