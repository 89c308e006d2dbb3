/* SPDX-License-Identifier: Apache-2.0 */
/* The vDSO (src/vdso, embedded as bytes) and its clock page in the guest. */
#ifndef ELFUSE_PROC_VDSO_H
#define ELFUSE_PROC_VDSO_H

#include <stdint.h>

#include "proc/proc.h"

/* Map both; *address is AT_SYSINFO_EHDR's value. 0 or -errno. */
int vdso_map(proc_t *proc, mm_cpu_t *cpu, uint64_t *address);

#endif
