/* SPDX-License-Identifier: Apache-2.0 */
/* The other files of /proc/self, as a program expects them. */
#include "mem.h"

#include <dirent.h>
#include <sys/auxv.h>
#include <sys/prctl.h>

static char buf[65536];

/* The whole of a file in buf, with a 0 after it. */
static long slurp(const char *path)
{
    int fd = open(path, O_RDONLY);
    long n = 0, r;
    if (fd < 0)
        return -1;
    while ((r = read(fd, buf + n, sizeof buf - 1 - n)) > 0)
        n += r;
    close(fd);
    buf[n] = 0;
    return r < 0 ? -1 : n;
}

static const char *status_line(const char *key)
{
    static char text[128];
    need(slurp("/proc/self/status") > 0, "status");
    char *p = strstr(buf, key);
    if (!p)
        return "";
    p += strlen(key);
    p += strspn(p, "\t ");
    snprintf(text, sizeof text, "%.*s", (int) strcspn(p, "\n"), p);
    return text;
}

static void test_exe(void)
{
    static char link[4096], real[4096];
    struct stat a, b;
    const char *fn = (const char *) getauxval(AT_EXECFN);
    ssize_t n = readlink("/proc/self/exe", link, sizeof link - 1);
    ok(n > 0 && link[0] == '/', "exe: a link to an absolute path");
    ok(realpath(fn, real) && strcmp(real, link) == 0, "exe: to the program");
    is(readlink("/proc/self/exe", real, 5), 5, "exe: cut short");
    ok(memcmp(real, link, 5) == 0, "exe: is its start");
    ok(stat("/proc/self/exe", &a) == 0 && stat(link, &b) == 0 &&
           a.st_ino == b.st_ino,
       "exe: stat gives the program");
    ok(lstat("/proc/self/exe", &a) == 0 && S_ISLNK(a.st_mode), "exe: lstat");
    int fd = open("/proc/self/exe", O_RDONLY);
    ok(read(fd, buf, 4) == 4 && memcmp(buf, "\177ELF", 4) == 0, "exe: content");
    is(close(fd), 0, "exe: close");
    static const char *const all[] = {
        "/proc/thread-self/exe", "/proc/./self/exe", "/proc/self/task/../exe"};
    char id[64], name[64];
    for (int i = 0; i < 4; i++) {
        snprintf(id, sizeof id, "/proc/%d/exe", getpid());
        n = readlink(i < 3 ? all[i] : id, real, sizeof real - 1);
        real[n > 0 ? n : 0] = 0;
        snprintf(name, sizeof name, "exe: spelling %d of 4", i + 1);
        is_str(real, link, name);
    }
    int dir = open("/proc/self", O_RDONLY | O_DIRECTORY);
    n = readlinkat(dir, "exe", real, sizeof real - 1);
    real[n > 0 ? n : 0] = 0;
    is_str(real, link, "exe: by readlinkat");
    close(dir);
    fails(readlink("/proc/self/exe", BAD_PTR, 100), EFAULT, "exe: to nowhere");
}

static void test_strings(int argc, char **argv)
{
    long n = slurp("/proc/self/cmdline"), at = 0;
    bool same = n > 0;
    for (int i = 0; i < argc && same; i++) {
        same = strcmp(buf + at, argv[i]) == 0;
        at += strlen(argv[i]) + 1;
    }
    ok(same && at == n, "cmdline is argv");
    n = slurp("/proc/self/environ"), at = 0;
    same = n >= 0;
    for (int i = 0; environ[i] && same; i++) {
        same = strcmp(buf + at, environ[i]) == 0;
        at += strlen(environ[i]) + 1;
    }
    ok(same && at == n, "environ is envp");
}

static void test_comm(void)
{
    char name[16], link[4096], want[32];
    ssize_t n = readlink("/proc/self/exe", link, sizeof link - 1);
    need(n > 0, "readlink");
    link[n] = 0;
    snprintf(want, sizeof want, "%.15s\n", strrchr(link, '/') + 1);
    need(slurp("/proc/self/comm") > 0, "comm");
    is_str(buf, want, "comm is the program's name");
    is(prctl(PR_SET_NAME, "a-name-too-long-for-it"), 0, "PR_SET_NAME");
    ok(prctl(PR_GET_NAME, name) == 0 && strcmp(name, "a-name-too-long") == 0,
       "PR_GET_NAME");
    need(slurp("/proc/self/comm") > 0, "comm");
    is_str(buf, "a-name-too-long\n", "comm follows");
    is_str(status_line("Name:"), "a-name-too-long", "status follows");
    int fd = open("/proc/self/comm", O_WRONLY);
    is(write(fd, "written", 7), 7, "comm can be written");
    close(fd);
    ok(prctl(PR_GET_NAME, name) == 0 && strcmp(name, "written") == 0,
       "and PR_GET_NAME follows");
    fails(prctl(PR_SET_NAME, BAD_PTR), EFAULT, "PR_SET_NAME from nowhere");
}

static void test_status(void)
{
    char want[64];
    snprintf(want, sizeof want, "%d", getpid());
    is_str(status_line("\nPid:"), want, "status: Pid");
    is_str(status_line("\nTgid:"), want, "status: Tgid");
    snprintf(want, sizeof want, "%d", getppid());
    is_str(status_line("\nPPid:"), want, "status: PPid");
    is_str(status_line("\nThreads:"), "1", "status: one thread");
    is_str(status_line("\nTracerPid:"), "0", "status: no tracer");
    snprintf(want, sizeof want, "%d\t%d\t%d\t%d", getuid(), geteuid(),
             geteuid(), geteuid());
    is_str(status_line("\nUid:"), want, "status: Uid");
    is_str(status_line("\nState:"), "R (running)", "status: running");
    is_str(status_line("\nSigBlk:"), "0000000000000000", "status: no mask");
    is_str(status_line("\nSigCgt:"), "0000000000000000", "status: no handler");

    need(slurp("/proc/self/stat") > 0, "stat");
    int pid, ppid;
    char state;
    is(sscanf(buf, "%d (%*[^)]) %c %d", &pid, &state, &ppid), 3, "stat");
    ok(pid == getpid() && ppid == getppid() && state == 'R', "stat: its start");
}

static void test_fd(void)
{
    char link[256], name[64];
    int a = file_make(PAGE), b = open("/", O_RDONLY), seen = 0, others = 0;
    int dfd = open("/proc/self/fd", O_RDONLY | O_DIRECTORY);
    need(dfd >= 0, "/proc/self/fd");
    long n;
    while ((n = syscall(SYS_getdents64, dfd, buf, sizeof buf)) > 0)
        for (long at = 0; at < n;) {
            struct dirent64 *d = (void *) (buf + at);
            at += d->d_reclen;
            int fd = atoi(d->d_name);
            if (d->d_name[0] == '.')
                continue;
            if (fd <= 2 || fd == a || fd == b || fd == dfd)
                seen++;
            else
                others++;
        }
    is(seen, 6, "fd: every own descriptor is listed");
    is(others, 0, "fd: and nothing else");
    snprintf(name, sizeof name, "/proc/self/fd/%d", b);
    ok(readlink(name, link, sizeof link) == 1 && link[0] == '/',
       "fd: a link to what is open");
    snprintf(name, sizeof name, "/proc/self/fd/%d", a);
    n = readlink(name, link, sizeof link - 1);
    link[n > 0 ? n : 0] = 0;
    ok(strstr(link, " (deleted)") != NULL, "fd: a deleted file");
    struct stat st, st2;
    ok(stat(name, &st) == 0 && fstat(a, &st2) == 0 && st.st_ino == st2.st_ino,
       "fd: stat of it");
    need(lseek(a, 123, SEEK_SET) == 123, "lseek");
    snprintf(name, sizeof name, "/proc/self/fdinfo/%d", a);
    ok(slurp(name) > 0 && strncmp(buf, "pos:\t123\n", 9) == 0,
       "fdinfo: the position");
    fails(open("/proc/self/fd/999", O_RDONLY), ENOENT, "fd: none such");
    fails(readlink("/proc/self/fd/999", link, 10), ENOENT, "fd: no link");
    close(a), close(b), close(dfd);
}

static void test_limits(void)
{
    char *p;
    struct rlimit lim;
    unsigned long soft = 0, hard = 0;
    need(getrlimit(RLIMIT_NOFILE, &lim) == 0, "getrlimit");
    need(slurp("/proc/self/limits") > 0, "limits");
    p = strstr(buf, "Max open files");
    ok(p && sscanf(p + 14, "%lu %lu", &soft, &hard) == 2 &&
           soft == lim.rlim_cur && hard == lim.rlim_max,
       "limits: open files");
    limit_set(RLIMIT_AS, 5 * GIB);
    need(slurp("/proc/self/limits") > 0, "limits");
    p = strstr(buf, "Max address space");
    ok(p && sscanf(p + 17, "%lu", &soft) == 1 && soft == 5 * GIB,
       "limits: address space follows setrlimit");
    limit_set(RLIMIT_AS, RLIM_INFINITY);
    need(slurp("/proc/self/limits") > 0, "limits");
    p = strstr(buf, "Max stack size");
    ok(p && sscanf(p + 14, "%lu", &soft) == 1 && soft == 8 * MIB,
       "limits: stack");
}

static void test_tree(void)
{
    char link[64], want[64], cwd[256];
    long n = readlink("/proc/self", link, sizeof link - 1);
    link[n > 0 ? n : 0] = 0;
    snprintf(want, sizeof want, "%d", getpid());
    is_str(link, want, "self is the process");
    n = readlink("/proc/thread-self", link, sizeof link - 1);
    link[n > 0 ? n : 0] = 0;
    snprintf(want, sizeof want, "%d/task/%ld", getpid(), syscall(SYS_gettid));
    is_str(link, want, "thread-self is the thread");
    n = readlink("/proc/self/cwd", buf, sizeof buf - 1);
    buf[n > 0 ? n : 0] = 0;
    ok(getcwd(cwd, sizeof cwd) && strcmp(buf, cwd) == 0, "cwd");
    ok(readlink("/proc/self/root", buf, 9) == 1 && buf[0] == '/', "root");
    int dir = open("/proc/self/task", O_RDONLY | O_DIRECTORY), tasks = 0;
    while ((n = syscall(SYS_getdents64, dir, buf, sizeof buf)) > 0)
        for (long at = 0; at < n;) {
            struct dirent64 *d = (void *) (buf + at);
            at += d->d_reclen;
            tasks += d->d_name[0] != '.';
        }
    close(dir);
    is(tasks, 1, "task has one thread");
    snprintf(want, sizeof want, "/proc/self/task/%d/comm", getpid());
    ok(slurp(want) > 0, "task: its comm");
    snprintf(want, sizeof want, "/proc/%d/status", getpid());
    ok(slurp(want) > 0, "by number: status");
    ok(slurp("/proc/self/mounts") > 0, "mounts");
    ok(slurp("/proc/cpuinfo") > 0 && strstr(buf, "processor"), "cpuinfo");
    ok(slurp("/proc/meminfo") > 0 && strstr(buf, "MemTotal:"), "meminfo");
    ok(slurp("/proc/uptime") > 0, "uptime");
    is(slurp("/proc/self/no-such-file"), -1, "no such file");
    is(errno, ENOENT, "is ENOENT");
}

int main(int argc, char **argv)
{
    test_comm();
    test_exe();
    test_strings(argc, argv);
    test_status();
    test_fd();
    test_limits();
    test_tree();
    return tap_done();
}
