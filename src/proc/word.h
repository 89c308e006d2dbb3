/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for a word to change, between threads of elfuse. */
#ifndef ELFUSE_PROC_WORD_H
#define ELFUSE_PROC_WORD_H

#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Not FUTEX_PRIVATE_FLAG: a vfork child is another process on this memory. */
static inline void word_wait(_Atomic uint32_t *word, uint32_t value)
{
    /* EAGAIN and EINTR: the caller looks again. */
    (void) syscall(SYS_futex, word, FUTEX_WAIT, value, NULL, NULL, 0);
}

static inline void word_wake(_Atomic uint32_t *word)
{
    (void) syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

#endif
