/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Robust lists: what a thread that ends has locked. The kernel would look for
 * them at the guest's addresses, so elfuse walks them.
 */
#ifndef ELFUSE_PROC_ROBUST_H
#define ELFUSE_PROC_ROBUST_H

#include <stdint.h>

struct thread;

/* Linux's size of struct robust_list_head. */
#define ROBUST_SIZE 24U

/* Mark what `dead` holds as its dead owner's and wake who waits. Guest memory
 * is reached as `t`, which is the calling thread and may be the same. */
void robust_release(struct thread *t, const struct thread *dead);

#endif
