/* SPDX-License-Identifier: Apache-2.0 */
/* Every way in which a guest process ends. */
#include "proc/proc.h"
#include "stats.h"
#include "sys/sys.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static void print_stats(const proc_t *proc)
{
    /* A vfork child's are counted with its parent's. */
    if (proc->show_stats && !proc->vforked) {
        mm_fast_stats(proc->mm);
        stats_print(stderr);
        sys_print_histogram(stderr);
    }
}

/* NULL: the last thread has done so for itself. */
static void release_threads(void)
{
    if (thread_self)
        threads_release(thread_self);
}

_Noreturn void proc_exit(proc_t *proc, int status)
{
    release_threads();
    strace_exited(proc, status);
    print_stats(proc);
    _exit(status);
}

/*
 * No core: it would be one of elfuse, with all of its reservation, and a
 * core_pattern that is a pipe ignores the limit but not the dumpable flag.
 */
static void forbid_core(void)
{
    const struct rlimit none = {0, 0};

    setrlimit(RLIMIT_CORE, &none);
    prctl(PR_SET_DUMPABLE, 0);
}

/* By the signal's default action. Not by the C library, which keeps two numbers
 * to itself, and whose abort() knows nothing of elfuse's handlers. */
static _Noreturn void die_of(int signal)
{
    const signal_action_t standard = {0};
    const uint64_t set = SIGNAL_BIT(signal);

    forbid_core();
    /* SIGKILL and SIGSTOP refuse, and need none of it. */
    syscall(SYS_rt_sigaction, signal, &standard, NULL, SIGSET_SIZE);
    syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &set, NULL, SIGSET_SIZE);
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), signal);
    /* Its default action was not to end the process. */
    _exit(128 + signal);
}

_Noreturn void proc_die(proc_t *proc, int signal)
{
    release_threads();
    strace_killed(proc, signal);
    print_stats(proc);
    die_of(signal);
}

_Noreturn void elfuse_panic(const char *format, ...)
{
    va_list ap;
    char line[512];
    int n;

    n = snprintf(line, sizeof line, "elfuse: panic: ");
    va_start(ap, format);
    vsnprintf(line + n, sizeof line - (size_t) n, format, ap);
    va_end(ap);
    fprintf(stderr, "%s\n", line);
    die_of(SIGABRT);
}
