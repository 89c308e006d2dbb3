/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From a program's file to a process image. proc_load() is declared in
 * proc/proc.h.
 */
#ifndef ELFUSE_PROC_LOAD_H
#define ELFUSE_PROC_LOAD_H

#include <stdbool.h>

/* Address space layout is randomised: unless personality(2) or the system says
 * no. */
bool load_randomises(void);

#endif
