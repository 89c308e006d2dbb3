/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ELFUSE_PROC_TITLE_H
#define ELFUSE_PROC_TITLE_H

#include <stdbool.h>

#include "proc/proc.h"

/*
 * Show the guest's arguments and environment, as mm_image() says where they
 * are, in the host's /proc/<pid>/cmdline and environ. Where that is not
 * possible, elfuse's own stay. `alone`: no other thread can be in malloc.
 */
void proc_show_strings(const proc_t *proc, bool alone);

#endif
