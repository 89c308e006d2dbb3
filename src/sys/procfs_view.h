/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc as the guest should see it. Decided after an open has succeeded, by
 * what was opened and not by how it was spelled: the file system's type, the
 * kernel's canonical name of the file, the device number.
 */
#ifndef ELFUSE_SYS_PROCFS_VIEW_H
#define ELFUSE_SYS_PROCFS_VIEW_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "proc/proc.h"

/* Once, before the guest runs. `directory` is what procfs_directory() said
 * before an exec, or -1. */
void procfs_init(int directory);
/* elfuse's own descriptor of /proc, or -1. */
int procfs_directory(void);
/* The kernel's name of an open file; false: not to be known. */
bool procfs_fd_name(int fd, char name[PATH_MAX]);

/*
 * `fd` has just been opened by the guest with these flags. Returns it, perhaps
 * with another file behind it, or -errno after closing it. dirfd and path are
 * what it was opened by (path NULL: a handle).
 */
int64_t procfs_opened(thread_t *t, int fd, int flags, int dirfd,
                      const char *path);
/* True when fd is one of the texts that procfs_opened() puts there; nlink is
 * what fstat said of it. On procfs such a file has size 0. */
bool procfs_is_text(int fd, uint64_t nlink);
#define PROCFS_TEXT_MODE 0100444
/* True for the identity of elfuse's own program file. */
bool procfs_is_elfuse(uint64_t dev, uint64_t ino);
/* True when the path, followed, ends at /proc/<own pid>/exe. */
bool procfs_path_is_exe(thread_t *t, int dirfd, const char *path);
/* True when the path itself, not followed, is that link. */
bool procfs_link_is_exe(thread_t *t, int dirfd, const char *path);
/* True when the path itself names one of elfuse's descriptors below the guest's
 * own fd or fdinfo directory. Costs a look at the last component. */
bool procfs_path_is_hidden(thread_t *t, int dirfd, const char *path);
/* Take elfuse's descriptors out of getdents64's answer, in place; returns the
 * new length. */
size_t procfs_filter_dents(thread_t *t, int fd, uint8_t *buf, size_t len);

/* procfs_text.c: the guest's version of the file named `tail` ("maps", "status"
 * ...), or false when the host's own will do.
 * host_fd is the host's file, open at its beginning. */
bool procfs_has_text(const char *tail);
int procfs_write_text(thread_t *t, const char *tail, int host_fd, FILE *out);

#endif
