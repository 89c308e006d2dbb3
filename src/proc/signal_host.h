/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of proc/signal*.c know of each other. */
#ifndef ELFUSE_PROC_SIGNAL_HOST_H
#define ELFUSE_PROC_SIGNAL_HOST_H

#include <signal.h>

/* The one handler that elfuse has in the host. */
void signal_host_handler(int sig, siginfo_t *info, void *context);

#endif
