/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Spare threads: when every vCPU has been run once, a new thread needs one that
 * has belonged to another, and the first run of such a one makes the kernel
 * wait. Spares do that ahead of time, many at once: host threads that have
 * never run the guest's code, made by a thread that clones, whose attributes
 * they have therefore inherited. Only that thread can use them, and only until
 * it changes an attribute. The guest does not see them.
 */
#ifndef ELFUSE_PROC_SPARES_H
#define ELFUSE_PROC_SPARES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct thread;
typedef struct spares spares_t;

/* NULL: no memory. */
spares_t *spares_create(void);

/* A thread that `self` may use, ready or about to be (host_wait_ready()). Makes
 * more of them when they become few, and takes the vCPUs of other threads'
 * spares when there are no others. NULL: no vCPU is free, or (*failed) a host
 * thread could not be made. Comes to safe points. */
struct thread *spares_take(struct thread *self, bool *failed);

/* Send away those that `self` has made. */
void spares_drop(struct thread *self);

/* A system call has changed what new threads inherit. */
void spares_outdate(spares_t *spares);

/* In a fork child, where they do not exist. */
void spares_after_fork(spares_t *spares);

#endif
