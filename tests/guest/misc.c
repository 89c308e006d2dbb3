/* SPDX-License-Identifier: Apache-2.0 */
/* Ids, limits, times, masks, names: the small calls, with their errors. */
#include "mem.h"

#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>

static void test_uname(void)
{
    struct utsname u;
    struct sysinfo si;
    is(uname(&u), 0, "uname");
    is_str(u.sysname, "Linux", "uname: system");
    is_str(u.machine, "aarch64", "uname: machine");
    ok(strlen(u.release) > 2, "uname: release");
    fails(uname(BAD_PTR), EFAULT, "uname: nowhere");
    ok(sysinfo(&si) == 0 && si.totalram > 0 && si.procs > 0 && si.mem_unit > 0,
       "sysinfo");
    fails(sysinfo(BAD_PTR), EFAULT, "sysinfo: nowhere");
    char name[65];
    need(gethostname(name, 65) == 0, "gethostname");
    is_str(name, u.nodename, "gethostname agrees");
    fails(sethostname(BAD_PTR, 5), EFAULT, "sethostname: nowhere");
    fails(sethostname("x", -1), EINVAL, "sethostname: absurd length");
}

static void test_ids(void)
{
    pid_t pid = getpid();
    ok(pid > 0 && getppid() >= 0, "getpid, getppid");
    is(syscall(SYS_gettid), pid, "gettid of the first thread");
    ok(getpgid(0) == getpgrp() && getsid(0) >= 0, "getpgid, getsid");
    is(getpgid(pid), getpgid(0), "getpgid by number");
    fails(getpgid(-5), ESRCH, "getpgid of nobody");
    uid_t r, e, s;
    ok(getresuid(&r, &e, &s) == 0 && r == getuid() && e == geteuid(),
       "getresuid");
    fails(getresuid(BAD_PTR, &e, &s), EFAULT, "getresuid: nowhere");
    ok(getresgid(&r, &e, &s) == 0 && r == getgid() && e == getegid(),
       "getresgid");
    gid_t groups[64];
    int n = getgroups(64, groups);
    ok(n >= 0, "getgroups");
    is(getgroups(0, NULL), n, "getgroups: how many");
    fails(getgroups(-1, groups), EINVAL, "getgroups: -1");
    gid_t set[2] = {7, 9};
    is(setgroups(2, set), 0, "setgroups");
    ok(getgroups(64, groups) == 2 && groups[0] == 7 && groups[1] == 9,
       "setgroups: they are set");
    fails(setgroups(2, BAD_PTR), EFAULT, "setgroups: nowhere");
    is(setresgid(-1, 33, -1), 0, "setresgid");
    is(getegid(), 33, "getegid follows");
    is(setfsuid(-1), 0, "setfsuid: ask");
    is(setresuid(-1, 1000, -1), 0, "setresuid: another effective user");
    is(geteuid(), 1000, "geteuid follows");
    fails(setresuid(5, 5, 5), EPERM, "setresuid to a stranger");
    fails(open("/proc/1/environ", O_RDONLY), EACCES, "rights are gone");
    char *p = map_rw(4 * BLOCK);
    memset(p, 1, 4 * BLOCK);
    ok(all_bytes(p, 1, 4 * BLOCK), "memory works for a plain user");
    is(setresuid(-1, 0, -1), 0, "and back");
    is(kill(pid, 0), 0, "kill 0 of itself");
    fails(kill(pid, 99), EINVAL, "kill: bad signal");
    fails(kill(0x7ffffffe, 0), ESRCH, "kill: nobody");
    fails(syscall(SYS_tgkill, pid, 0x7ffffffe, 0), ESRCH, "tgkill: nobody");
    fails(wait4(-1, NULL, WNOHANG, NULL), ECHILD, "wait4: no children");
    siginfo_t si;
    fails(waitid(P_ALL, 0, &si, WEXITED), ECHILD, "waitid: no children");
    fails(waitid(P_ALL, 0, &si, 0), EINVAL, "waitid: no options");
}

static void test_times(void)
{
    struct timespec t = {0, 1000000}, a, b, left;
    struct rusage ru;
    struct tms tms;
    need(clock_gettime(CLOCK_MONOTONIC, &a) == 0, "clock_gettime");
    is(clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL), 0, "clock_nanosleep");
    need(clock_gettime(CLOCK_MONOTONIC, &b) == 0, "clock_gettime");
    ok((b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec >= 1000000,
       "it slept at least that long");
    is(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &a, NULL), 0,
       "until a time gone by");
    is(clock_nanosleep(99, 0, &t, NULL), EINVAL, "clock_nanosleep: clock");
    is(clock_nanosleep(CLOCK_REALTIME, 0, BAD_PTR, NULL), EFAULT,
       "clock_nanosleep: nowhere");
    t.tv_nsec = 1000000000;
    fails(nanosleep(&t, &left), EINVAL, "nanosleep: absurd time");
    fails(nanosleep(BAD_PTR, NULL), EFAULT, "nanosleep: nowhere");
    ok(getrusage(RUSAGE_SELF, &ru) == 0 && ru.ru_maxrss > 0, "getrusage");
    fails(getrusage(77, &ru), EINVAL, "getrusage: of whom");
    fails(getrusage(RUSAGE_SELF, BAD_PTR), EFAULT, "getrusage: nowhere");
    ok(times(&tms) != -1 && tms.tms_cutime == 0, "times");
    fails(syscall(SYS_times, BAD_PTR), EFAULT, "times: nowhere");
    struct itimerval it = {.it_value = {1000, 0}}, old;
    is(setitimer(ITIMER_REAL, &it, &old), 0, "setitimer");
    ok(getitimer(ITIMER_REAL, &it) == 0 && it.it_value.tv_sec >= 990,
       "getitimer");
    is(alarm(0) > 0, 1, "alarm takes it back");
    fails(setitimer(9, &it, NULL), EINVAL, "setitimer: unknown");
    fails(getitimer(ITIMER_REAL, BAD_PTR), EFAULT, "getitimer: nowhere");
    timer_t id;
    struct sigevent sev = {.sigev_notify = SIGEV_NONE};
    struct itimerspec its = {.it_value = {500, 0}};
    is(timer_create(CLOCK_MONOTONIC, &sev, &id), 0, "timer_create");
    is(timer_settime(id, 0, &its, NULL), 0, "timer_settime");
    ok(timer_gettime(id, &its) == 0 && its.it_value.tv_sec >= 490,
       "timer_gettime");
    is(timer_getoverrun(id), 0, "timer_getoverrun");
    is(timer_delete(id), 0, "timer_delete");
    fails(syscall(SYS_timer_delete, 12345), EINVAL, "timer_delete: unknown");
    struct timeval tv;
    ok(gettimeofday(&tv, NULL) == 0 && tv.tv_sec > 0, "gettimeofday");
    fails(syscall(SYS_settimeofday, BAD_PTR, NULL), EFAULT,
          "settimeofday: nowhere");
}

static void test_limits(void)
{
    struct rlimit lim, again;
    bool all = true;
    for (int r = 0; r < RLIM_NLIMITS; r++)
        all &= getrlimit(r, &lim) == 0 && lim.rlim_cur <= lim.rlim_max;
    ok(all, "every limit can be read");
    need(getrlimit(RLIMIT_FSIZE, &lim) == 0, "getrlimit");
    int fd = file_make(0);
    limit_set(RLIMIT_FSIZE, 4096);
    char buf[8192] = {0};
    signal(SIGXFSZ, SIG_IGN);
    is(write(fd, buf, 8192), 4096, "RLIMIT_FSIZE cuts a write");
    fails(write(fd, buf, 1), EFBIG, "and ends the next");
    fails(ftruncate(fd, 9000), EFBIG, "ftruncate too");
    limit_set(RLIMIT_FSIZE, lim.rlim_cur);
    close(fd);
    is(prlimit(getpid(), RLIMIT_NOFILE, NULL, &lim), 0, "prlimit of itself");
    ok(getrlimit(RLIMIT_NOFILE, &again) == 0 && again.rlim_cur == lim.rlim_cur,
       "prlimit agrees");
    is(getpriority(PRIO_PROCESS, 0), 0, "getpriority");
    is(setpriority(PRIO_PROCESS, 0, 5), 0, "setpriority");
    is(getpriority(PRIO_PROCESS, 0), 5, "getpriority follows");
    fails(setpriority(9, 0, 0), EINVAL, "setpriority: of whom");
}

static void test_sched(void)
{
    cpu_set_t set;
    struct sched_param sp;
    unsigned cpu, node;
    is(sched_yield(), 0, "sched_yield");
    is(sched_getscheduler(0), SCHED_OTHER, "sched_getscheduler");
    ok(sched_getparam(0, &sp) == 0 && sp.sched_priority == 0, "sched_getparam");
    ok(sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) >= 1,
       "sched_getaffinity");
    is(sched_setaffinity(0, sizeof set, &set), 0, "sched_setaffinity");
    fails(sched_getaffinity(0, 0, &set), EINVAL, "sched_getaffinity: size 0");
    fails(syscall(SYS_sched_setaffinity, 0, 128, BAD_PTR), EFAULT,
          "sched_setaffinity: nowhere");
    ok(syscall(SYS_getcpu, &cpu, &node, NULL) == 0 && CPU_ISSET(cpu, &set),
       "getcpu");
    is(sched_get_priority_max(SCHED_FIFO), 99, "sched_get_priority_max");
    fails(sched_get_priority_max(77), EINVAL, "of an unknown policy");
}

static void test_signals(void)
{
    sigset_t set, old;
    struct timespec zero = {0, 0};
    siginfo_t si;
    sigfillset(&set);
    is(sigprocmask(SIG_SETMASK, &set, NULL), 0, "block everything");
    ok(sigprocmask(SIG_SETMASK, NULL, &old) == 0 &&
           sigismember(&old, SIGTERM) && !sigismember(&old, SIGKILL) &&
           !sigismember(&old, SIGSTOP),
       "all but KILL and STOP");
    need(kill(getpid(), SIGUSR2) == 0, "kill");
    need(raise(SIGRTMIN + 5) == 0, "raise");
    ok(sigpending(&old) == 0 && sigismember(&old, SIGUSR2) &&
           sigismember(&old, SIGRTMIN + 5) && !sigismember(&old, SIGUSR1),
       "sigpending: two");
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    is(sigtimedwait(&set, &si, &zero), SIGUSR2, "sigtimedwait");
    ok(si.si_code == SI_USER && si.si_pid == getpid(), "sigtimedwait: from us");
    fails(sigtimedwait(&set, &si, &zero), EAGAIN, "sigtimedwait: no more");
    union sigval v = {.sival_int = 4711};
    need(sigqueue(getpid(), SIGUSR2, v) == 0, "sigqueue");
    ok(sigwaitinfo(&set, &si) == SIGUSR2 && si.si_value.sival_int == 4711,
       "sigqueue: its value");
    sigaddset(&set, SIGRTMIN + 5);
    is(sigtimedwait(&set, &si, &zero), SIGRTMIN + 5, "the other one");
    sigemptyset(&set);
    is(sigprocmask(SIG_SETMASK, &set, NULL), 0, "unblock");
    fails(sigprocmask(99, &set, NULL), EINVAL, "sigprocmask: how");
    fails(syscall(SYS_rt_sigaction, 0, NULL, NULL, 8), EINVAL,
          "sigaction: signal 0");
    fails(syscall(SYS_rt_sigaction, SIGUSR1, BAD_PTR, NULL, 8), EFAULT,
          "sigaction: nowhere");
    struct sigaction sa = {.sa_handler = SIG_IGN}, got;
    fails(sigaction(SIGKILL, &sa, NULL), EINVAL, "sigaction: KILL");
    is(sigaction(SIGUSR1, &sa, NULL), 0, "ignore a signal");
    ok(sigaction(SIGUSR1, NULL, &got) == 0 && got.sa_handler == SIG_IGN,
       "it is");
    is(raise(SIGUSR1), 0, "raise it");
    is(raise(SIGCHLD), 0, "one that is ignored by default");
    is(raise(SIGWINCH), 0, "another");
    stack_t ss = {.ss_sp = map_rw(64 * KIB), .ss_size = 64 * KIB}, os;
    is(sigaltstack(&ss, NULL), 0, "sigaltstack");
    ok(sigaltstack(NULL, &os) == 0 && os.ss_sp == ss.ss_sp &&
           os.ss_size == 64 * KIB && os.ss_flags == 0,
       "sigaltstack: it is set");
    ss.ss_size = 100;
    fails(sigaltstack(&ss, NULL), ENOMEM, "sigaltstack: too small");
    fails(sigaltstack(BAD_PTR, NULL), EFAULT, "sigaltstack: nowhere");
}

int main(void)
{
    test_uname();
    test_times();
    test_limits();
    test_sched();
    test_signals();
    test_ids();
    return tap_done();
}
