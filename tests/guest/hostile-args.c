/* SPDX-License-Identifier: Apache-2.0 */
/* Every call with absurd arguments: whatever they answer, the program lives
 * on, with its memory as it was. */
#include "mem.h"

#include <time.h>

static char canary[4 * 4096];

/* Calls that do not come back, or that change more than this program. */
static bool left_out(long nr, bool zeros)
{
    static const long never[] = {
        SYS_exit,   SYS_exit_group, SYS_rt_sigreturn,
        SYS_clone,  SYS_clone3,     SYS_vhangup,
        SYS_reboot, SYS_kexec_load, SYS_kexec_file_load,
        SYS_ptrace, SYS_seccomp,    SYS_syslog,
        SYS_execve, SYS_execveat,
    };
    static const long with_zeros[] = {
        SYS_close,         SYS_ppoll,       SYS_pselect6, SYS_sethostname,
        SYS_setdomainname, SYS_personality, SYS_sync,     SYS_rt_sigsuspend,
        SYS_umask,         SYS_setsid,      SYS_dup,      SYS_unshare,
    };
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (nr == never[i])
            return true;
    for (size_t i = 0; zeros && i < sizeof with_zeros / sizeof *with_zeros; i++)
        if (nr == with_zeros[i])
            return true;
    return false;
}

static bool alive(void)
{
    struct timespec ts;
    char *p = sys_mmap(NULL, 2 * PAGE, RW, ANON, -1, 0);
    if (!GOOD(p) || p[PAGE] != 0)
        return false;
    p[PAGE] = 1;
    return sys_munmap(p, 2 * PAGE) == 0 &&
           clock_gettime(CLOCK_MONOTONIC, &ts) == 0 &&
           all_bytes(canary, 0x42, sizeof canary);
}

static int run(long value, bool zeros)
{
    int dead = 0;
    for (long nr = 0; nr < 460; nr++) {
        if (left_out(nr, zeros))
            continue;
        syscall(nr, value, value, value, value, value, value);
        if (!alive()) {
            tap_say("#   not after call %ld", nr);
            dead++;
        }
    }
    return dead;
}

int main(void)
{
    memset(canary, 0x42, sizeof canary);
    int null = open("/dev/null", O_RDONLY);
    need(null >= 0 && dup2(null, 0) == 0, "dup2");
    close(null);
    is(run(-1, false), 0, "every call with all arguments -1");
    is(run(0, true), 0, "every call with all arguments 0");
    is(run(LONG_MIN, false), 0, "every call with all arguments the least");
    ok(alive(), "the program lives");
    return tap_done();
}
