/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System calls. sys_call() serves the call that is in the thread's frame
 * (number in x8, arguments in x0-x5) and writes the result to x0.
 */
#ifndef ELFUSE_SYS_SYS_H
#define ELFUSE_SYS_SYS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "proc/proc.h"

void sys_call(thread_t *thread);

/* For proc_exit() and proc_die(): the trace's last line, and --stats' table of
 * calls. */
void strace_exited(const proc_t *proc, int status);
void strace_killed(const proc_t *proc, int signal);
/* A signal that is being delivered. */
void strace_signal(const proc_t *proc, const siginfo_t *info);
void sys_print_histogram(FILE *out);

/* sys/fdspace.c: elfuse's own descriptors are above what the guest may use. */
/*
 * Once, early in main(), before the first fdspace_hide() and the guest's first
 * call: remembers what to tell when descriptors move.
 */
void fdspace_init(proc_t *proc);
/* Instead, after an exec: hidden numbers begin at `low` as before. `fd`, -1
 * apart, is one of them, and closed on the next exec. */
void fdspace_resume(proc_t *proc, int low);
void fdspace_keep(int fd);
/* Move fd out of the guest's reach; returns its new number or -errno. */
int fdspace_hide(int fd);
/* True for a descriptor number that is elfuse's own: EBADF to every call. */
bool fdspace_hidden(int fd);

/* sys/procfs.c: open the file behind a descriptor of ours once more, with these
 * flags of open(2). A descriptor or -errno. */
int procfs_reopen(int fd, int flags);

#endif
