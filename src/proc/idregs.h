/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ELFUSE_PROC_IDREGS_H
#define ELFUSE_PROC_IDREGS_H

#include <stdbool.h>

#include "proc/proc.h"

/*
 * EL0 executed an instruction that is undefined for it. If it is a read of an
 * ID register, do what Linux does for HWCAP_CPUID: give the fields that
 * programs may see and step over it. False: it is something else.
 */
bool idregs_emulate(thread_t *thread);

#endif
