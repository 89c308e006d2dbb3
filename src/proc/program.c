/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/program.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "proc/elf_file.h"
#include "proc/script.h"
#include "sys/sys.h"

/* For a check before there is an address space. */
#define TASK_SIZE_MAX (1UL << 48)
#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

__attribute__((format(printf, 3, 4))) static int
fail(program_t *program, int error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(program->why, sizeof(program->why), format, args);
    va_end(args);
    return error;
}

/*
 * A regular file that we may execute, as may_open() wants it for exec.
 * faccessat2 minds noexec mounts, and takes a descriptor without a path.
 */
static int check_executable(int fd)
{
    struct stat st;

    if (fstat(fd, &st) != 0)
        return -errno;
    if (S_ISLNK(st.st_mode)) /* AT_SYMLINK_NOFOLLOW */
        return -ELOOP;
    if (!S_ISREG(st.st_mode))
        return -EACCES;
    if (syscall(SYS_faccessat2, fd, "", X_OK, AT_EACCESS | AT_EMPTY_PATH) != 0)
        return -errno;
    return 0;
}

/* On other file systems a lease asks a server. */
static bool leases_are_local(int fd)
{
    static const long local[] = {EXT4_SUPER_MAGIC,     XFS_SUPER_MAGIC,
                                 BTRFS_SUPER_MAGIC,    F2FS_SUPER_MAGIC,
                                 TMPFS_MAGIC,          RAMFS_MAGIC,
                                 OVERLAYFS_SUPER_MAGIC};
    struct statfs fs;

    if (fstatfs(fd, &fs) != 0)
        return false;
    for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
        if ((long) fs.f_type == local[i])
            return true;
    return false;
}

/*
 * Is the file open for writing, by anybody? A read lease is refused then, and
 * nothing else tells. It needs the file's owner or CAP_LEASE; who may not ask
 * is told no. Whoever opens the file for writing while we hold the lease waits
 * for that moment, and we get a signal: one that is ignored unless the guest
 * catches it, and then means no more than "look again".
 */
static bool being_written(int fd)
{
    if (!leases_are_local(fd) || fcntl(fd, F_SETSIG, SIGURG) != 0)
        return false;
    if (fcntl(fd, F_SETLEASE, F_RDLCK) != 0)
        return errno == EAGAIN;
    (void) fcntl(fd, F_SETLEASE, F_UNLCK);
    return false;
}

/* Open what (dirfd, path, flags) means with these flags of open(2). */
static int open_again(int dirfd, const char *path, int flags, int how)
{
    bool by_fd = *path == '\0' && (flags & AT_EMPTY_PATH) != 0;
    int fd;

    if (by_fd && dirfd != AT_FDCWD) {
        if (fcntl(dirfd, F_GETFD) < 0)
            return -errno;
        return procfs_reopen(dirfd, how | O_CLOEXEC);
    }
    if ((flags & AT_SYMLINK_NOFOLLOW) != 0)
        how |= O_NOFOLLOW;
    fd = openat(dirfd, by_fd ? "." : path, how | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

/*
 * Open a file as exec does. First without touching it: opening a FIFO or a
 * device has effects. Returns a descriptor for reading, or -errno.
 */
static int open_executable(int dirfd, const char *path, int flags)
{
    int fd = open_again(dirfd, path, flags, O_PATH);

    if (fd < 0)
        return fd;
    int error = check_executable(fd);
    close(fd);
    if (error != 0)
        return error;
    fd = open_again(dirfd, path, flags, O_RDONLY);
    if (fd < 0)
        return fd;
    /* Once more: the name may have come to mean another file. */
    error = check_executable(fd);
    if (error == 0 && being_written(fd))
        error = -ETXTBSY;
    if (error == 0)
        return fd;
    close(fd);
    return error;
}

/* The interpreter of a script or of a program: a name that the kernel reads,
 * to which an empty one is the current directory. */
static int open_interpreter(const char *name)
{
    return open_executable(AT_FDCWD, *name != '\0' ? name : ".", 0);
}

static int set_execfn(program_t *program, const program_request_t *request)
{
    const char *slash = *request->path != '\0' ? "/" : "";
    int n = 0;

    if (request->execfn != NULL)
        program->execfn = strdup(request->execfn);
    else if (request->dirfd == AT_FDCWD || *request->path == '/')
        program->execfn = strdup(request->path);
    else
        n = asprintf(&program->execfn, "/dev/fd/%d%s%s", request->dirfd, slash,
                     request->path);
    if (n < 0)
        program->execfn = NULL;
    return program->execfn != NULL ? 0 : -ENOMEM;
}

/* True when execfn will lead nowhere once exec has closed descriptors. */
static bool name_will_be_gone(const program_request_t *request)
{
    if (request->execfn != NULL || request->dirfd == AT_FDCWD ||
        *request->path == '/')
        return false;
    int flags = fcntl(request->dirfd, F_GETFD);
    return flags >= 0 && (flags & FD_CLOEXEC) != 0;
}

/* Room for what scripts put in front; it grows at the front. */
#define FRONT (2 * (PROGRAM_SCRIPTS + 1))

static int copy_argv(program_t *program, char *const *argv)
{
    unsigned n = 0;

    while (argv[n] != NULL)
        n++;
    program->argc = n > 0 ? n : 1;
    program->argv = calloc(program->argc + FRONT + 1, sizeof(char *));
    if (program->argv == NULL)
        return -ENOMEM;
    program->argv[0] = (char *) "";
    for (unsigned i = 0; i < n; i++)
        program->argv[i] = argv[i];
    return 0;
}

static void push_front(program_t *program, char *word)
{
    memmove(program->argv + 1, program->argv,
            program->argc * sizeof(program->argv[0]));
    program->argv[0] = word;
    program->argc++;
}

/* A copy that program_close() frees; NULL without memory. */
static char *keep_word(program_t *program, const char *word)
{
    char *copy = strdup(word);

    if (copy != NULL)
        program->words[program->nr_words++] = copy;
    return copy;
}

static int no_interpreter(program_t *program, const char *of, const char *name,
                          int error)
{
    const char *hint = "";

    if (error == -ENOENT && strchr(name, '\r') != NULL)
        hint = ": its lines end in CR LF, as a text of Windows";
    else if (error == -ENOENT && strncmp(name, "/lib/ld-", 8) == 0)
        hint = ": for a folder that has it, say --sysroot FOLDER";
    return fail(program, error, "%s %.*s: %s%s", of,
                (int) strcspn(name, "\r\n"), name, strerror(-error), hint);
}

/* What program->fd begins with is a script's line: make its interpreter the
 * program. `script` is the name that the interpreter will find the script by.
 */
static int run_script(program_t *program, const program_request_t *request,
                      const char *head, char *script)
{
    script_line_t line;

    if (script_parse(head, &line) != 0)
        return fail(program, -ENOEXEC,
                    "its first line names no interpreter, or too long a one");
    if (name_will_be_gone(request))
        return fail(program, -ENOENT, "its descriptor is closed by exec");
    char *argument =
        line.has_argument ? keep_word(program, line.argument) : NULL;
    char *name = keep_word(program, line.name);
    if (name == NULL || (line.has_argument && argument == NULL))
        return fail(program, -ENOMEM, "%s", strerror(ENOMEM));

    program->argv[0] = script;
    if (argument != NULL)
        push_front(program, argument);
    push_front(program, name);
    int fd = open_interpreter(name);
    if (fd < 0)
        return no_interpreter(program, "the interpreter of the script,", name,
                              fd);
    close(program->fd);
    program->fd = fd;
    return 0;
}

/* Follow scripts until program->fd is none. */
static int follow_scripts(program_t *program, const program_request_t *request)
{
    char *script = program->execfn;

    for (unsigned level = 0;; level++) {
        char head[SCRIPT_HEAD] = {0};
        ssize_t n;

        if (level > PROGRAM_SCRIPTS)
            return fail(program, -ELOOP, "scripts that run scripts: %s",
                        strerror(ELOOP));
        do
            n = pread(program->fd, head, sizeof(head), 0);
        while (n < 0 && errno == EINTR);
        if (n < 0)
            return fail(program, -errno, "cannot read it: %s", strerror(errno));
        if (!script_is(head))
            return 0;
        int error = run_script(program, request, head, script);
        if (error != 0)
            return error;
        script = program->argv[0];
    }
}

/* Linux's errors: EIO for a file too short for a header, else ELIBBAD. */
static int check_interpreter(program_t *program, const char *name,
                             uint64_t task_size)
{
    char why[ELF_WHY_MAX];
    elf_file_t file;
    struct stat st;

    program->interp_fd = open_interpreter(name);
    if (program->interp_fd < 0)
        return no_interpreter(program, "its interpreter", name,
                              program->interp_fd);
    if (fstat(program->interp_fd, &st) != 0 ||
        st.st_size < (off_t) sizeof(Elf64_Ehdr))
        return fail(program, -EIO,
                    "its interpreter %s: too short for an ELF file", name);
    int error = elf_file_read(&file, program->interp_fd, task_size, why);
    elf_file_free(&file);
    if (error != 0)
        return fail(program, error == -ENOEXEC ? -ELIBBAD : error,
                    "its interpreter %s: %s", name, why);
    return 0;
}

static int check_elf(program_t *program, uint64_t task_size)
{
    char why[ELF_WHY_MAX];
    elf_file_t file;
    int error = elf_file_read(&file, program->fd, task_size, why);

    int missing = file.image.interp_len > 0
                      ? check_interpreter(program, file.interp, task_size)
                      : 0;
    elf_file_free(&file);
    if (missing != 0)
        return missing;
    return error != 0 ? fail(program, error, "%s", why) : 0;
}

static int open_all(const program_request_t *request, program_t *program)
{
    int error = set_execfn(program, request);

    if (error == 0)
        error = copy_argv(program, request->argv);
    if (error == 0)
        error = program->fd =
            open_executable(request->dirfd, request->path, request->flags);
    if (error < 0)
        return fail(program, error, "%s", strerror(-error));
    error = follow_scripts(program, request);
    if (error != 0)
        return error;
    return check_elf(program, request->task_size != 0 ? request->task_size
                                                      : TASK_SIZE_MAX);
}

int program_open(const program_request_t *request, program_t *program)
{
    memset(program, 0, sizeof(*program));
    program->fd = program->interp_fd = -1;
    int error = open_all(request, program);
    if (error != 0)
        program_close(program);
    return error;
}

void program_close(program_t *program)
{
    if (program->fd >= 0)
        close(program->fd);
    if (program->interp_fd >= 0)
        close(program->interp_fd);
    for (unsigned i = 0; i < program->nr_words; i++)
        free(program->words[i]);
    free(program->argv);
    free(program->execfn);
    program->fd = program->interp_fd = -1;
    program->nr_words = program->argc = 0;
    program->argv = NULL;
    program->execfn = NULL;
}
