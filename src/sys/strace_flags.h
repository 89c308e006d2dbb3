/* SPDX-License-Identifier: Apache-2.0 */
/* Names of flags and constants for --strace. */
#ifndef ELFUSE_SYS_STRACE_FLAGS_H
#define ELFUSE_SYS_STRACE_FLAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The text for value v of a SHOW_* kind; false: there are no names for it. */
bool strace_flags(int show, uint64_t v, char *out, size_t size);

#endif
