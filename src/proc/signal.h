/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals of the guest. The kernel of the host does the sending, queueing,
 * blocking and choosing of a thread: the guest's mask is the host's, its
 * ignored and default dispositions are the host's, and for a signal that has a
 * handler in the guest elfuse has one of its own in the host. That one takes
 * note (one signal at a time: it leaves all others blocked) and makes the
 * thread come to where frames are built: before EL0 runs on.
 */
#ifndef ELFUSE_PROC_SIGNAL_H
#define ELFUSE_PROC_SIGNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A thread's part. */
typedef struct signal_thread {
    /* A signal was taken and is to be delivered before EL0 runs on. Written by
     * the thread itself and its handler only; blocking.S looks at it. */
    _Atomic uint32_t pending;
} signal_thread_t;

#endif
