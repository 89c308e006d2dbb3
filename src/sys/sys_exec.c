/* SPDX-License-Identifier: Apache-2.0 */
/* execve, execveat: the arguments, copied as the kernel copies them. */
#include <fcntl.h>

#include "proc/exec.h"
#include "sys/call.h"
#include "sys/procfs_view.h"

/* The kernel's MAX_ARG_STRLEN, and its bounds of all strings together. */
#define STRING_MAX (32UL * GUEST_PAGE_SIZE)
#define TOTAL_MAX  (6UL << 20)
#define TOTAL_MIN  (128UL << 10)
#define NR_MAX     0x7fffffffUL

/* bprm_stack_limits(): bytes for strings and the pointers to them. */
static uint64_t total_limit(thread_t *t)
{
    struct rlimit limit;
    uint64_t total;

    mm_get_rlimit(t->proc->mm, RLIMIT_STACK, &limit);
    total = limit.rlim_cur / 4 < TOTAL_MAX ? limit.rlim_cur / 4 : TOTAL_MAX;
    return total > TOTAL_MIN ? total : TOTAL_MIN;
}

/* Pointers before the NULL, at most `most`: -EFAULT, -E2BIG. */
static int64_t count_pointers(thread_t *t, uint64_t array, uint64_t most)
{
    uint64_t p;

    for (uint64_t n = 0; array; n++) {
        if (get_struct(t, &p, array + n * sizeof p))
            return -EFAULT;
        if (!p)
            return (int64_t) n;
        if (n >= most)
            return -E2BIG;
    }
    return 0;
}

/* `n` strings to `to`, with a NULL behind them; *left is what may be used. */
static int64_t copy_strings(thread_t *t, exec_t *exec, uint64_t array,
                            int64_t n, char **to, uint64_t *left)
{
    for (int64_t i = 0; i < n; i++) {
        uint64_t max = *left < STRING_MAX ? *left : STRING_MAX, p;
        ssize_t len;

        if (get_struct(t, &p, array + (uint64_t) i * sizeof p))
            return -EFAULT;
        to[i] = (char *) (exec + 1) + exec->used;
        len = copy_string_from_guest(t->proc->mm, &t->cpu, to[i], p, max);
        if (len < 0)
            return len == -ENAMETOOLONG ? -E2BIG : len;
        exec->used += (uint64_t) len + 1;
        *left -= (uint64_t) len + 1;
    }
    to[n] = NULL;
    return 0;
}

static int64_t get_arguments(thread_t *t, exec_t *exec, uint64_t argv,
                             uint64_t envp, uint64_t total)
{
    uint64_t most = total / sizeof(uint64_t);
    int64_t argc = count_pointers(t, argv, most), envc, error;

    if (argc < 0)
        return argc;
    envc = count_pointers(t, envp, most);
    if (envc < 0)
        return envc;
    /* A program without arguments is given an empty one. */
    if ((uint64_t) ((argc ? argc : 1) + envc) * sizeof(uint64_t) >= total)
        return -E2BIG;
    total -= (uint64_t) ((argc ? argc : 1) + envc) * sizeof(uint64_t);
    exec->argv = exec_room(exec, (uint64_t) (argc + 1) * sizeof(char *));
    exec->envp = exec_room(exec, (uint64_t) (envc + 1) * sizeof(char *));
    error = copy_strings(t, exec, envp, envc, exec->envp, &total);
    return error ? error
                 : copy_strings(t, exec, argv, argc, exec->argv, &total);
}

/* What path and descriptor mean to the host. */
static int64_t get_file(thread_t *t, exec_t *exec, int dirfd, uint64_t path,
                        int flags)
{
    char given[PATH_MAX];
    ssize_t n =
        copy_string_from_guest(t->proc->mm, &t->cpu, given, path, sizeof given);
    int64_t error;

    if (n < 0)
        return n;
    if (n == 0 && !(flags & AT_EMPTY_PATH))
        return -ENOENT;
    exec->dirfd = dirfd;
    exec->flags = flags;
    if (fd_hidden((uint64_t) dirfd) && given[0] != '/')
        return -EBADF;
    if (n == 0)
        return 0;
    /* Through this link the guest's program is meant. */
    if (procfs_path_is_exe(t, dirfd, given)) {
        exec->execfn = exec_room(exec, (size_t) n + 1);
        for (ssize_t i = 0; i <= n; i++)
            ((char *) exec->execfn)[i] = given[i];
        exec->dirfd = t->proc->exe_fd;
        exec->flags = AT_EMPTY_PATH;
        return 0;
    }
    error = path_get(t, dirfd, path, exec->path);
    return error;
}

static int64_t exec_call(thread_t *t, int dirfd, uint64_t path, uint64_t argv,
                         uint64_t envp, int flags)
{
    uint64_t total = total_limit(t);
    exec_t *exec = exec_new(total + 2 * STRING_MAX + PATH_MAX);
    int64_t error;

    if (!exec)
        return -ENOMEM;
    t->exec = exec;
    error = get_file(t, exec, dirfd, path, flags);
    if (!error)
        error = get_arguments(t, exec, argv, envp, total);
    if (!error && flags & ~(AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW))
        error = -EINVAL;
    if (!error)
        error = proc_exec(t, exec);
    t->exec = NULL;
    exec_free(exec);
    return error;
}

int64_t sys_execve(thread_t *t, const uint64_t *a)
{
    return exec_call(t, AT_FDCWD, a[0], a[1], a[2], 0);
}

int64_t sys_execveat(thread_t *t, const uint64_t *a)
{
    return exec_call(t, (int) a[0], a[1], a[2], a[3], (int) a[4]);
}
