/* SPDX-License-Identifier: Apache-2.0 */
/* The guest's signal state: what it asked for, beside what the host has. */
#ifndef ELFUSE_SYS_SIGSTATE_H
#define ELFUSE_SYS_SIGSTATE_H

#include <stdbool.h>
#include <stdint.h>

#include "proc/proc.h"

#define SIGNAL_COUNT  64
#define SIGSET_SIZE   8UL
#define SIGNAL_BIT(n) (1UL << ((n) -1))

/* The kernel's struct sigaction on arm64. */
typedef struct guest_sigaction {
    uint64_t handler; /* 0: SIG_DFL, 1: SIG_IGN */
    uint64_t flags;
    uint64_t restorer;
    uint64_t mask;
} guest_sigaction_t;

/* What the guest has set for a signal, 1 to 64; delivery looks here. */
const guest_sigaction_t *signal_action(int sig);
/* The mask the host may have for one that the guest wants: signals that elfuse
 * itself needs are never blocked. */
uint64_t signal_host_mask(uint64_t guest);
/* Signals the guest ignores, and those for which it has a handler. */
void signal_dispositions(uint64_t *ignored, uint64_t *caught);
/* The guest's own mask, of this thread. */
uint64_t signal_mask(void);
/* True when the signal would end a process that has done nothing about it. */
bool signal_fatal_by_default(int sig);

#endif
