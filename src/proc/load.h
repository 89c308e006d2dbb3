/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a program's file to a process image. proc_load() is declared in
 * proc/proc.h.
 */
#ifndef ELFUSE_PROC_LOAD_H
#define ELFUSE_PROC_LOAD_H

#include <stdbool.h>

#include "proc/elf.h"

/*
 * Could this file be run? 0, or -errno (mostly -ENOEXEC) with a phrase in
 * why[ELF_WHY_MAX] that completes "cannot run PROGRAM: ". Needs no VM, so that
 * errors of the program come before errors of the machine.
 */
int load_check(int fd, char *why);

/* Address space layout is randomised: unless personality(2) or the system says
 * no. */
bool load_randomises(void);

#endif
