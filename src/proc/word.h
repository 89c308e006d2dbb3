/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a word to change, between threads of elfuse. */
#ifndef ELFUSE_PROC_WORD_H
#define ELFUSE_PROC_WORD_H

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Not FUTEX_PRIVATE_FLAG: a vfork child is another process on this memory. */
static inline void word_wait(_Atomic uint32_t *word, uint32_t value)
{
    /* EAGAIN and EINTR: the caller looks again. */
    (void) syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

/* The same, at most until then on CLOCK_MONOTONIC (NULL: for ever). Returns
 * ETIMEDOUT, or something else to look again. */
static inline int word_wait_until(_Atomic uint32_t *word, uint32_t value,
                                  const struct timespec *until)
{
    return syscall(SYS_futex, word, FUTEX_WAIT_BITSET, value, until, NULL,
                   FUTEX_BITSET_MATCH_ANY) < 0
               ? errno
               : 0;
}

static inline void word_wake(_Atomic uint32_t *word)
{
    (void) syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

#endif
