/* SPDX-License-Identifier: Apache-2.0 */
/* --strace: calls on standard error in the form of strace(1). */
#ifndef ELFUSE_SYS_STRACE_H
#define ELFUSE_SYS_STRACE_H

#include <stdint.h>

#include "proc/proc.h"
#include "sys/table.h"

void strace_enter(thread_t *t, unsigned nr, const sys_entry_t *entry,
                  const uint64_t *a);
void strace_exit(thread_t *t, unsigned nr, const sys_entry_t *entry,
                 const uint64_t *a, int64_t ret);

/* "SIGTERM"; 24 bytes are enough for all. */
void strace_signal_name(int sig, char *buf, size_t size);
/* A line of the trace that is no call. */
void strace_line(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Where lines go, over an exec; -1: standard error, as it is at the first. */
int strace_output(void);
void strace_set_output(int fd);
/* Before exec replaces everything: the call's line, which says 0. */
void strace_executed(thread_t *t);

#endif
