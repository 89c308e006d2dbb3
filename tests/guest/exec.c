/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exec: what the new image has, what is gone, and every way to fail. The
 * program executes itself with a role as its first argument; roles end with
 * 42 if they have found what they should.
 */
#include "mem.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

#define GOOD_STATUS 42
static char self[PATH_MAX]; /* this program's file */
static char dir[] = "/tmp/exec-XXXXXX";
static char copy[PATH_MAX]; /* the same in dir */

static char *in_dir(const char *name)
{
    static char path[4][PATH_MAX];
    static int next;
    char *p = path[next++ % 4];

    snprintf(p, PATH_MAX, "%s/%s", dir, name);
    return p;
}

static int finish(pid_t pid)
{
    int status;

    need(waitpid(pid, &status, 0) == pid, "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* --- roles */

static int role_args(int argc, char **argv)
{
    return argc == 5 && strcmp(argv[2], "") == 0 &&
                   strcmp(argv[3], "two words") == 0 &&
                   strcmp(argv[4], "\xff\n") == 0 && environ[0] &&
                   strcmp(environ[0], "A=1") == 0 &&
                   strcmp(environ[1], "EMPTY=") == 0 &&
                   strcmp(environ[2], "noequals") == 0 && !environ[3]
               ? GOOD_STATUS
               : 1;
}

static bool file_is(const char *path, const char *want, size_t len)
{
    char text[8192];
    int fd = open(path, O_RDONLY);
    ssize_t n = read(fd, text, sizeof text);

    close(fd);
    return n == (ssize_t) len && memcmp(text, want, len) == 0;
}

/* argv[2]: AT_EXECFN, argv[3]: comm, argv[4]: /proc/self/exe */
static int role_names(int argc, char **argv)
{
    char comm[17] = "", exe[PATH_MAX] = "", cmdline[4096];
    size_t len = 0;
    int fd, mem;

    if (argc != 5 || strcmp((char *) getauxval(AT_EXECFN), argv[2]) != 0)
        return 1;
    prctl(PR_GET_NAME, comm);
    /* By descriptor: its number, on newer kernels the name of the file. */
    if (strcmp(comm, argv[3]) != 0 &&
        !(*argv[3] == '#' &&
          (atoi(comm) > 0 || strcmp(comm, argv[3] + 1) == 0)))
        return 2;
    if (readlink("/proc/self/exe", exe, sizeof exe - 1) < 0 ||
        strcmp(exe, argv[4]) != 0)
        return 3;
    for (int i = 0; i < argc; i++) {
        memcpy(cmdline + len, argv[i], strlen(argv[i]) + 1);
        len += strlen(argv[i]) + 1;
    }
    if (!file_is("/proc/self/cmdline", cmdline, len))
        return 4;
    if (!file_is("/proc/self/environ", "X=y", 4))
        return 5;
    fd = open("/proc/self/auxv", O_RDONLY);
    mem = read(fd, cmdline, sizeof cmdline) > 100;
    close(fd);
    if (!mem || getauxval(AT_PAGESZ) == 0 || !getauxval(AT_RANDOM) ||
        getauxval(AT_SECURE))
        return 6;
    /* Parents see the same. */
    snprintf(exe, sizeof exe, "/proc/%d/comm", getpid());
    len = strlen(comm);
    comm[len] = '\n';
    return file_is(exe, comm, len + 1) ? GOOD_STATUS : 7;
}

static int role_descriptors(int argc, char **argv)
{
    int kept = atoi(argv[2]), closed = atoi(argv[3]), open_fds = 0;

    (void) argc;
    if (lseek(kept, 0, SEEK_CUR) != 3 || fcntl(closed, F_GETFD) >= 0)
        return 1;
    for (int fd = 0; fd < 70000; fd++)
        open_fds += fcntl(fd, F_GETFD) >= 0;
    return open_fds == 4 ? GOOD_STATUS : 2;
}

static int role_signals(int argc, char **argv)
{
    sigset_t set;
    struct sigaction action;
    stack_t stack;
    struct itimerval timer;

    (void) argc;
    (void) argv;
    sigprocmask(SIG_BLOCK, NULL, &set);
    if (!sigismember(&set, SIGUSR1) || !sigismember(&set, SIGRTMIN + 3) ||
        sigismember(&set, SIGUSR2))
        return 1;
    sigpending(&set);
    if (!sigismember(&set, SIGUSR1) || sigismember(&set, SIGRTMIN + 3))
        return 2;
    sigaction(SIGHUP, NULL, &action);
    if (action.sa_handler != SIG_IGN)
        return 3;
    sigaction(SIGUSR2, NULL, &action);
    if (action.sa_handler != SIG_DFL)
        return 4;
    if (sigaltstack(NULL, &stack) || stack.ss_flags != SS_DISABLE)
        return 5;
    getitimer(ITIMER_REAL, &timer);
    return timer.it_value.tv_sec > 0 ? GOOD_STATUS : 6;
}

static const struct {
    int resource;
    struct rlimit limit;
} limits[] = {
    {RLIMIT_AS, {3UL << 30, 5UL << 30}},
    {RLIMIT_DATA, {1UL << 30, 2UL << 30}},
    {RLIMIT_STACK, {7UL << 20, 9UL << 20}},
    {RLIMIT_MEMLOCK, {123 << 12, 124 << 12}},
    {RLIMIT_NOFILE, {77, 99}},
    {RLIMIT_CORE, {5, 6}},
    {RLIMIT_CPU, {1000, 2000}},
};

static int role_limits(int argc, char **argv)
{
    struct rlimit now;

    (void) argc;
    (void) argv;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (getrlimit(limits[i].resource, &now) ||
            now.rlim_cur != limits[i].limit.rlim_cur ||
            now.rlim_max != limits[i].limit.rlim_max)
            return (int) i + 1;
    }
    return GOOD_STATUS;
}

static int threads(void)
{
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY);
    ssize_t n = read(fd, text, sizeof text - 1);
    char *at;

    close(fd);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    at = strstr(text, "Threads:");
    return at ? atoi(at + 8) : -1;
}

static int role_alone(int argc, char **argv)
{
    (void) argc;
    return getpid() == atoi(argv[2]) && syscall(SYS_gettid) == getpid() &&
                   threads() == 1
               ? GOOD_STATUS
               : 1;
}

static int64_t mono(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

static uint64_t counter(void)
{
    uint64_t value;

    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(value)::"memory");
    return value;
}

/* Executes itself argv[2] times more. */
static int role_chain(int argc, char **argv)
{
    int left = atoi(argv[2]);
    char number[16], time[32], count[32];

    if (argc != 5 || mono() < atol(argv[3]) ||
        (int64_t) (counter() - strtoul(argv[4], NULL, 10)) < 0)
        return 1;
    if (left == 0)
        return fcntl(3, F_GETFD) < 0 ? GOOD_STATUS : 2;
    snprintf(number, sizeof number, "%d", left - 1);
    snprintf(time, sizeof time, "%ld", mono());
    snprintf(count, sizeof count, "%lu", counter());
    execl(argv[0], argv[0], "chain", number, time, count, NULL);
    return 3;
}

/* Of a script: argv[1] is the role, then what the test wants to see. */
static int role_script(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *slash = strrchr(argv[i], '/');

        printf("# %s%c", slash ? slash + 1 : argv[i],
               i == argc - 1 ? '\n' : ' ');
    }
    return GOOD_STATUS;
}

static int role_count(int argc, char **argv)
{
    (void) argv;
    return argc == 20002 ? GOOD_STATUS : 1;
}

static int role_good(int argc, char **argv)
{
    (void) argc;
    (void) argv;
    return GOOD_STATUS;
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} roles[] = {
    {"args", role_args},       {"names", role_names},
    {"fds", role_descriptors}, {"signals", role_signals},
    {"limits", role_limits},   {"alone", role_alone},
    {"chain", role_chain},     {"script", role_script},
    {"count", role_count},     {"good", role_good},
};

/* --- tests: children that execute */

static pid_t run_env(const char *file, char *const argv[], char *const envp[])
{
    pid_t pid = fork();

    need(pid >= 0, "fork");
    if (pid)
        return pid;
    execve(file, argv, envp);
    _exit(100 + errno);
}

#define ARGV(...) ((char *[]){__VA_ARGS__, NULL})
static char *no_env[] = {NULL};
/* The compiler is not to know. */
static char **volatile no_page = (char **) 8;
static char *x_env[] = {(char *) "X=y", NULL};
#define S(text) ((char *) (text))

static void test_arguments(void)
{
    char *env[] = {S("A=1"), S("EMPTY="), S("noequals"), NULL};
    char **many = calloc(20003, sizeof *many);

    is(finish(run_env(
           self, ARGV(S("x"), S("args"), S(""), S("two words"), S("\xff\n")),
           env)),
       GOOD_STATUS, "arguments and environment");
    is(finish(run_env(self, ARGV(S(""), S("good")), no_env)), GOOD_STATUS,
       "argv[0] may be empty");
    need(many != NULL, "calloc");
    for (int i = 0; i < 20002; i++)
        many[i] = S(i == 1 ? "count" : "");
    is(finish(run_env(self, many, no_env)), GOOD_STATUS, "20,002 arguments");
    free(many);
}

static void test_names(void)
{
    char *link = in_dir("a-link-with-a-long-name");

    is(finish(run_env(copy, ARGV(S("x"), S("names"), copy, S("prog"), copy),
                      x_env)),
       GOOD_STATUS, "AT_EXECFN, comm, exe, cmdline, environ, auxv");
    need(symlink("prog", link) == 0, "symlink");
    is(finish(run_env(
           link, ARGV(S("x"), S("names"), link, S("a-link-with-a-l"), copy),
           x_env)),
       GOOD_STATUS, "through a symbolic link: comm is its name, cut");
    need(chdir(dir) == 0, "chdir");
    is(finish(run_env("./prog",
                      ARGV(S("x"), S("names"), S("./prog"), S("prog"), copy),
                      x_env)),
       GOOD_STATUS, "by a relative path");
    is(finish(run_env("prog",
                      ARGV(S("x"), S("names"), S("prog"), S("prog"), copy),
                      x_env)),
       GOOD_STATUS, "by a bare name");
    need(chdir("/") == 0, "chdir");
    is(finish(run_env(
           "/proc/self/exe",
           ARGV(S("x"), S("names"), S("/proc/self/exe"), S("exe"), self),
           x_env)),
       GOOD_STATUS, "/proc/self/exe executes the program itself");
}

static void test_descriptors(void)
{
    char a[16], b[16];
    int kept = memfd_create("kept", 0), closed;

    need(kept >= 0 && write(kept, "abc", 3) == 3, "memfd");
    closed = fcntl(kept, F_DUPFD_CLOEXEC, 0);
    snprintf(a, sizeof a, "%d", kept);
    snprintf(b, sizeof b, "%d", closed);
    is(finish(run_env(self, ARGV(S("x"), S("fds"), a, b), no_env)), GOOD_STATUS,
       "close-on-exec closes, the others stay, no more are there");
    close(kept);
    close(closed);
}

static void handler(int sig)
{
    (void) sig;
}

static void test_signals(void)
{
    struct itimerval timer = {.it_value = {1000, 0}};
    stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigset_t set;
    pid_t pid = fork();

    need(pid >= 0, "fork");
    if (pid == 0) {
        sigemptyset(&set);
        sigaddset(&set, SIGUSR1);
        sigaddset(&set, SIGRTMIN + 3);
        sigprocmask(SIG_SETMASK, &set, NULL);
        kill(getpid(), SIGUSR1);
        signal(SIGHUP, SIG_IGN);
        signal(SIGUSR2, handler);
        sigaltstack(&stack, NULL);
        setitimer(ITIMER_REAL, &timer, NULL);
        execl(self, "x", "signals", NULL);
        _exit(100);
    }
    is(finish(pid), GOOD_STATUS,
       "mask, pending and ignored signals and timers "
       "stay, handlers and stack go");
    free(stack.ss_sp);
}

static void test_limits(void)
{
    pid_t pid = fork();

    need(pid >= 0, "fork");
    if (pid == 0) {
        for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
            if (setrlimit(limits[i].resource, &limits[i].limit))
                _exit(90);
        execl(self, "x", "limits", NULL);
        _exit(100);
    }
    is(finish(pid), GOOD_STATUS, "limits stay as they are");
    pid = fork();
    need(pid >= 0, "fork");
    if (pid == 0) {
        const struct rlimit none = {0, 0};

        if (setrlimit(RLIMIT_NOFILE, &none))
            _exit(90);
        execl(self, "x", "good", NULL);
        _exit(100);
    }
    is(finish(pid), GOOD_STATUS, "no descriptor is needed");
}

static void *thread_execs(void *arg)
{
    execl(self, "x", "alone", arg, NULL);
    _exit(100);
}

static void *thread_waits(void *arg)
{
    pause();
    return arg;
}

static void *thread_spins(void *arg)
{
    volatile int *p = arg;

    while (*p >= 0)
        *p ^= 1;
    return NULL;
}

static void test_threads(void)
{
    static int word;
    pthread_t thread;
    char number[16];
    pid_t pid = fork();

    need(pid >= 0, "fork");
    if (pid == 0) {
        snprintf(number, sizeof number, "%d", getpid());
        if (pthread_create(&thread, NULL, thread_waits, NULL) ||
            pthread_create(&thread, NULL, thread_spins, &word) ||
            pthread_create(&thread, NULL, thread_execs, number))
            _exit(90);
        for (;;)
            pause();
    }
    is(finish(pid), GOOD_STATUS,
       "exec from another thread: the pid stays, the "
       "threads go");
}

static void test_chain(void)
{
    is(finish(run_env(self, ARGV(self, S("chain"), S("30"), S("0"), S("0")),
                      no_env)),
       GOOD_STATUS, "30 times, and no clock goes back");
}

/* --- failures; a failing exec changes nothing */

static long try_exec(const char *path)
{
    return syscall(SYS_execve, path, ARGV(S("x"), S("good")), no_env);
}

static void write_file(const char *path, const void *data, size_t len, int mode)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    need(fd >= 0 && write(fd, data, len) == (ssize_t) len, path);
    need(fchmod(fd, (mode_t) mode) == 0, "fchmod");
    close(fd);
}

static void write_text(const char *name, const char *text, int mode)
{
    write_file(in_dir(name), text, strlen(text), mode);
}

static void copy_self(const char *path)
{
    struct stat st;
    char *data;
    int fd = open(self, O_RDONLY);

    need(fd >= 0 && fstat(fd, &st) == 0, "self");
    data = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    need(GOOD(data), "mmap");
    write_file(path, data, (size_t) st.st_size, 0755);
    munmap(data, (size_t) st.st_size);
    close(fd);
}

static void test_file_errors(void)
{
    char name[PATH_MAX + 10];
    int fd;

    fails(try_exec(in_dir("missing")), ENOENT, "no such file");
    fails(try_exec(""), ENOENT, "empty path");
    fails(try_exec(NULL), EFAULT, "NULL path");
    fails(try_exec(dir), EACCES, "a directory");
    fails(try_exec(in_dir("prog/x")), ENOTDIR, "below a file");
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    fails(try_exec(name), ENAMETOOLONG, "a path that is too long");
    name[300] = '\0';
    fails(try_exec(name), ENAMETOOLONG, "a name that is too long");
    need(symlink("loop", in_dir("loop")) == 0, "symlink");
    fails(try_exec(in_dir("loop")), ELOOP, "a loop of links");
    write_text("not-executable", "#!/bin/sh\n", 0644);
    fails(try_exec(in_dir("not-executable")), EACCES, "no permission");
    write_text("text", "hello\n", 0755);
    fails(try_exec(in_dir("text")), ENOEXEC, "a text");
    write_text("empty", "", 0755);
    fails(try_exec(in_dir("empty")), ENOEXEC, "an empty file");
    write_text("short", "\177ELF", 0755);
    fails(try_exec(in_dir("short")), ENOEXEC, "a part of an ELF header");
    need(mkfifo(in_dir("fifo"), 0755) == 0, "mkfifo");
    fails(try_exec(in_dir("fifo")), EACCES, "a FIFO");
    write_text("no-interp", "#!/nowhere/at/all\n", 0755);
    fails(try_exec(in_dir("no-interp")), ENOENT, "no interpreter");
    write_text("bad-interp", "#!", 0755);
    fails_any(try_exec(in_dir("bad-interp")), "an empty #! line", ENOEXEC,
              EACCES);
    copy_self(in_dir("busy"));
    fd = open(in_dir("busy"), O_WRONLY);
    need(fd >= 0, "open");
    fails(try_exec(in_dir("busy")), ETXTBSY, "open for writing");
    close(fd);
}

static void test_argument_errors(void)
{
    size_t big = 33 * PAGE;
    char *string = map_rw(big), **many;
    char *hole = map_rw(2 * PAGE);

    memset(string, 'a', big - 1);
    fails(execve(self, ARGV(S("x"), string), no_env), E2BIG,
          "one argument of more than 128 KiB");
    fails(execve(self, ARGV(S("x")), ARGV(string)), E2BIG, "and one variable");
    string[32 * PAGE - 1] = '\0';
    many = calloc(100, sizeof *many);
    need(many != NULL, "calloc");
    for (int i = 0; i < 99; i++)
        many[i] = string;
    fails(execve(self, many, no_env), E2BIG, "more than all may be together");
    free(many);
    need(munmap(hole + PAGE, PAGE) == 0, "munmap");
    fails(execve(self, no_page, no_env), EFAULT, "unreadable argv");
    fails(execve(self, ARGV(S("x")), no_page), EFAULT, "unreadable envp");
    fails(execve(self, ARGV(S("x"), NO_PAGE), no_env), EFAULT,
          "unreadable argument");
    memset(hole, 'b', PAGE);
    fails(execve(self, ARGV(S("x"), hole), no_env), EFAULT,
          "an argument that does not end");
    munmap(hole, PAGE);
    munmap(string, big);
}

static void test_nothing_changed(void)
{
    struct rlimit limit;
    sigset_t set;

    getrlimit(RLIMIT_STACK, &limit);
    is(limit.rlim_cur, 8 * MIB, "the stack's limit is what it was");
    sigprocmask(SIG_BLOCK, NULL, &set);
    ok(!sigismember(&set, SIGUSR1) && !sigismember(&set, SIGCHLD),
       "no signal has stayed blocked");
    is(fcntl(3, F_GETFD), -1, "no descriptor has stayed open");
}

/* --- scripts */

static void test_scripts(void)
{
    char text[PATH_MAX + 64], name[16];
    int last = 0;

    snprintf(text, sizeof text, "#!%s script \n", copy);
    write_text("plain", text, 0755);
    is(finish(run_env(in_dir("plain"), ARGV(S("zero"), S("one")), no_env)),
       GOOD_STATUS, "a script with an argument in its line");
    snprintf(text, sizeof text, "#! \t%s   script  two words \t\nrest\n", copy);
    write_text("blanks", text, 0755);
    is(finish(run_env(in_dir("blanks"), ARGV(S("zero")), no_env)), 1,
       "blanks are one argument");
    for (int i = 1; i <= 7; i++) {
        snprintf(name, sizeof name, "s%d", i);
        if (i == 1)
            snprintf(text, sizeof text, "#!%s script\n", copy);
        else
            snprintf(text, sizeof text, "#!%s/s%d\n", dir, i - 1);
        write_text(name, text, 0755);
    }
    for (int i = 1; i <= 7; i++) {
        snprintf(name, sizeof name, "s%d", i);
        if (finish(run_env(in_dir(name), ARGV(S("zero")), no_env)) ==
            GOOD_STATUS)
            last = i;
    }
    is(last, 5, "scripts of scripts, five deep");
    fails(try_exec(in_dir("s7")), ELOOP, "and no deeper");
}

/* --- execveat */

static int run_at(int fd, const char *path, int flags, char *const argv[])
{
    pid_t pid = fork();

    need(pid >= 0, "fork");
    if (pid == 0) {
        syscall(SYS_execveat, fd, path, argv, x_env, flags);
        _exit(100 + errno);
    }
    return finish(pid);
}

static long exec_at(int fd, const char *path, int flags)
{
    return syscall(SYS_execveat, fd, path, ARGV(S("x"), S("good")), no_env,
                   flags);
}

static void test_execveat(void)
{
    char **good = ARGV(S("x"), S("good"));
    char name[64], exe[PATH_MAX + 16];
    int d = open(dir, O_PATH), fd = open(copy, O_RDONLY), path;
    int memfd = memfd_create("prog", 0);

    is(run_at(d, "prog", 0, good), GOOD_STATUS, "by directory and name");
    is(run_at(d, copy, 0, good), GOOD_STATUS, "an absolute path needs none");
    is(run_at(fd, "", AT_EMPTY_PATH, good), GOOD_STATUS, "by descriptor");
    path = open(copy, O_PATH | O_CLOEXEC);
    is(run_at(path, "", AT_EMPTY_PATH, good), GOOD_STATUS,
       "by one for the path only, close-on-exec");
    snprintf(name, sizeof name, "/dev/fd/%d", fd);
    is(run_at(fd, "", AT_EMPTY_PATH,
              ARGV(S("x"), S("names"), name, S("#prog"), copy)),
       GOOD_STATUS, "its name is /dev/fd/N");
    copy_self(in_dir("gone"));
    close(path);
    path = open(in_dir("gone"), O_RDONLY);
    unlink(in_dir("gone"));
    snprintf(exe, sizeof exe, "%s/gone (deleted)", dir);
    snprintf(name, sizeof name, "/dev/fd/%d", path);
    is(run_at(path, "", AT_EMPTY_PATH,
              ARGV(S("x"), S("names"), name, S("#gone"), exe)),
       GOOD_STATUS, "a file that was removed");
    fails(exec_at(d, "loop", AT_SYMLINK_NOFOLLOW), ELOOP,
          "AT_SYMLINK_NOFOLLOW: a link");
    is(run_at(d, "prog", AT_SYMLINK_NOFOLLOW, good), GOOD_STATUS, "and a file");
    fails(exec_at(d, "prog", 0x4000), EINVAL, "unknown flags");
    fails(exec_at(99, "prog", 0), EBADF, "no descriptor");
    fails(exec_at(99, "", AT_EMPTY_PATH), EBADF, "nor here");
    fails(exec_at(fd, "", 0), ENOENT, "an empty path without the flag");
    fails(exec_at(fd, "prog", 0), ENOTDIR, "relative to a file");
    fails(exec_at(d, "", AT_EMPTY_PATH), EACCES, "a directory by descriptor");
    need(memfd >= 0, "memfd");
    {
        struct stat st;
        char *data;

        need(fstat(fd, &st) == 0, "fstat");
        data = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        need(GOOD(data) && write(memfd, data, (size_t) st.st_size) ==
                               (ssize_t) st.st_size,
             "memfd");
        munmap(data, (size_t) st.st_size);
    }
    close(path);
    is(run_at(memfd, "", AT_EMPTY_PATH, good), GOOD_STATUS, "a memfd");
    close(memfd);
    close(fd);
    close(d);
}

/* --- surroundings */

static void test_shared_file(void)
{
    int fd = open(in_dir("shared"), O_RDWR | O_CREAT, 0600);
    char *p, text[6] = "";
    pid_t pid;

    need(fd >= 0 && ftruncate(fd, PAGE) == 0, "file");
    p = mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0);
    need(GOOD(p), "mmap");
    memcpy(p, "first", 6);
    pid = fork();
    need(pid >= 0, "fork");
    if (pid == 0) {
        memcpy(p, "other", 6);
        execl(self, "x", "good", NULL);
        _exit(100);
    }
    is(finish(pid), GOOD_STATUS, "exec with a shared file mapped");
    need(pread(fd, text, 5, 0) == 5, "pread");
    is_str(text, "other", "leaves in it what was written");
    munmap(p, PAGE);
    close(fd);
}

static void test_chroot(void)
{
    pid_t pid = fork();

    need(pid >= 0, "fork");
    if (pid == 0) {
        if (chroot(dir) || chdir("/") || setresgid(4000, 4000, 4000) ||
            setresuid(4000, 4000, 4000))
            _exit(90);
        execl("/prog", "x", "good", NULL);
        _exit(100 + errno);
    }
    is(finish(pid), GOOD_STATUS,
       "in a new root, without privileges, without "
       "/proc and /dev");
}

static void test_user(void)
{
    pid_t pid = fork();

    need(pid >= 0, "fork");
    if (pid == 0) {
        write_text("root-only", "", 0700);
        copy_self(in_dir("root-only"));
        chmod(in_dir("root-only"), 0700);
        if (setresuid(4000, 4000, 4000))
            _exit(90);
        execl(in_dir("root-only"), "x", "good", NULL);
        _exit(errno == EACCES ? GOOD_STATUS : 1);
    }
    is(finish(pid), GOOD_STATUS, "permission is that of the effective user");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        for (size_t i = 0; i < sizeof roles / sizeof *roles; i++)
            if (strcmp(argv[1], roles[i].name) == 0)
                return roles[i].run(argc, argv);
    /* What blanks make of a role. */
    if (argc > 1)
        return strcmp(argv[1], "script  two words") == 0 && argc == 3 ? 1 : 3;
    need(readlink("/proc/self/exe", self, sizeof self - 1) > 0, "self");
    need(mkdtemp(dir) != NULL && chmod(dir, 0755) == 0, "mkdtemp");
    snprintf(copy, sizeof copy, "%s", in_dir("prog"));
    copy_self(copy);
    test_arguments();
    test_names();
    test_descriptors();
    test_signals();
    test_limits();
    test_threads();
    test_chain();
    test_file_errors();
    test_argument_errors();
    test_nothing_changed();
    test_scripts();
    test_execveat();
    test_shared_file();
    test_chroot();
    test_user();
    return tap_done();
}
