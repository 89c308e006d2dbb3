/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --sysroot: the kernel resolves the paths. elfuse moves into a mount namespace
 * of its own and changes its root to a small tmpfs, on which the entries of the
 * folder are mounted, with some folders of the host between them
 * (docs/usage.md). Outside nothing changes, the folder may be read-only.
 */
#ifndef ELFUSE_PROC_SYSROOT_H
#define ELFUSE_PROC_SYSROOT_H

#include <limits.h>

#define SYSROOT_WHY_MAX (PATH_MAX + 256)

/*
 * Make DIR the root of this process, which must have one thread, and keep the
 * current directory. Nothing happens when DIR is the root already. 0, or -errno
 * with a line in `why`; the process is of no more use then.
 */
int sysroot_enter(const char *dir, char why[SYSROOT_WHY_MAX]);

#endif
