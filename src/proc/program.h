/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From what exec is given, a file and arguments, to what is to be loaded: the
 * ELF program, its interpreter, and the arguments with those of `#!` lines
 * before them. For the command line and for execve alike: it looks at files
 * only, changes nothing, and knows nothing of a guest's memory.
 */
#ifndef ELFUSE_PROC_PROGRAM_H
#define ELFUSE_PROC_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Linux gives up at a sixth script that is run by a script. */
#define PROGRAM_SCRIPTS 5U
#define PROGRAM_WHY_MAX (PATH_MAX + 256)

typedef struct program_request {
    int dirfd; /* AT_FDCWD, or where a relative path begins */
    const char *path;
    int flags; /* execveat's: AT_EMPTY_PATH, AT_SYMLINK_NOFOLLOW */
    /*
     * The file's name for AT_EXECFN and for interpreters of scripts. NULL: what
     * Linux makes of dirfd and path, "/dev/fd/N" or "/dev/fd/N/path" if the
     * path does not say it all; a script is then ENOENT when N is closed by
     * exec.
     */
    const char *execfn;
    char *const *argv;  /* NULL at the end; if empty, it becomes {""} */
    uint64_t task_size; /* bytes of user space; 0: not known yet */
} program_request_t;

typedef struct program {
    int fd;        /* of the ELF program, for reading; close-on-exec */
    int interp_fd; /* of its interpreter likewise; -1: a static program */
    char *execfn;  /* malloc'd: the file's name for AT_EXECFN and comm */
    char **argv;   /* malloc'd; its strings are the request's and words[] */
    unsigned argc; /* at least 1 */
    char *words[2 * (PROGRAM_SCRIPTS + 1)]; /* malloc'd: of `#!` lines */
    unsigned nr_words;
    /* After a failure: what completes "cannot run PROGRAM: ". */
    char why[PROGRAM_WHY_MAX];
} program_t;

/*
 * 0, or Linux's -errno in Linux's order with a line in program->why. Then
 * nothing is open, and program_close() not needed. Checked are permission with
 * the effective ids, noexec mounts, ETXTBSY (where it can be told), the
 * formats, and the headers of program and interpreter, so that only the lack of
 * memory can fail later; not the size of the arguments (stack_measure()). What
 * Linux finds bad only when it is too late, and dies of, is -ENOEXEC or
 * -ELIBBAD.
 */
int program_open(const program_request_t *request, program_t *program);
void program_close(program_t *program);

#endif
