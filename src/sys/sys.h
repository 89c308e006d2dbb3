/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls. sys_call() serves the call that is in the thread's frame
 * (number in x8, arguments in x0-x5) and writes the result to x0.
 */
#ifndef ELFUSE_SYS_SYS_H
#define ELFUSE_SYS_SYS_H

#include <stdbool.h>
#include <stdint.h>

#include "proc/proc.h"

void sys_call(thread_t *thread);

/* sys/fdspace.c: elfuse's own descriptors are above what the guest may use. */
/* Move fd out of the guest's reach; returns its new number or -errno. */
int fdspace_hide(int fd);
/* True for a descriptor number that is elfuse's own: EBADF to every call. */
bool fdspace_hidden(int fd);

#endif
