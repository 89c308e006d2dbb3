/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finding a program as a shell does (execvp's rules): a name with a slash is a
 * path, any other is looked for in PATH. A candidate that is there but may not
 * be executed is passed over, and remembered: EACCES, not ENOENT, when nothing
 * better follows.
 */
#ifndef ELFUSE_PROC_LOOKUP_H
#define ELFUSE_PROC_LOOKUP_H

/*
 * path: the value of PATH, NULL for the system's default. Returns the file's
 * name, malloc'd, as exec would be given it; or NULL with errno set: ENOENT,
 * EACCES (there, but not an executable file), or what stopped the search.
 */
char *lookup_program(const char *name, const char *path);

#endif
