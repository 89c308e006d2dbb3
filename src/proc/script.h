/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first line of a script, read as Linux's binfmt_script reads it: a pure
 * function over the bytes that the kernel looks at.
 */
#ifndef ELFUSE_PROC_SCRIPT_H
#define ELFUSE_PROC_SCRIPT_H

#include <stdbool.h>

/* BINPRM_BUF_SIZE: what of a file decides its format. */
#define SCRIPT_HEAD 256U

typedef struct script_line {
    bool has_argument;
    char name[SCRIPT_HEAD]; /* may be "" */
    char argument[SCRIPT_HEAD];
} script_line_t;

/* True when the file is a script at all: whether its line will do or not. */
bool script_is(const char head[SCRIPT_HEAD]);

/*
 * Decode the head of a file, which zeros fill up to SCRIPT_HEAD bytes. 0, or
 * -ENOEXEC: no script, no interpreter named, or its name may be cut off.
 */
int script_parse(const char head[SCRIPT_HEAD], script_line_t *line);

#endif
