/* SPDX-License-Identifier: Apache-2.0 */
/* /proc of other processes and threads, and what every spelling leads to. */
#include "mem.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static char buf[1 << 16];

/* The whole file into buf; its length or -1. */
static ssize_t slurp_at(int dir, const char *path)
{
    int fd = openat(dir, path, O_RDONLY | O_CLOEXEC);
    ssize_t n, at = 0;
    if (fd < 0)
        return -1;
    while ((n = read(fd, buf + at, sizeof buf - 1 - at)) > 0)
        at += n;
    int saved = errno;
    close(fd);
    buf[at] = 0;
    errno = saved;
    return n < 0 ? -1 : at;
}

static ssize_t slurp(const char *path)
{
    return slurp_at(AT_FDCWD, path);
}

static const char *of(pid_t pid, const char *file)
{
    static char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", pid, file);
    return path;
}

/* A child that does fn, and then waits until its pipe is closed. */
static pid_t child(int *to, void (*fn)(void))
{
    int go[2], ready[2];
    char c;
    need(pipe(go) == 0 && pipe(ready) == 0, "pipe");
    pid_t pid = fork();
    need(pid >= 0, "fork");
    if (pid == 0) {
        close(go[1]);
        close(ready[0]);
        fn();
        need(write(ready[1], "r", 1) == 1, "write");
        _exit(read(go[0], &c, 1) == 0 ? 0 : 1);
    }
    close(go[0]);
    close(ready[1]);
    need(read(ready[0], &c, 1) == 1, "the child");
    close(ready[0]);
    *to = go[1];
    return pid;
}

static char **args;
static char *title;

static void rename_self(void)
{
    memset(title, 'T', strlen(title));
    prctl(PR_SET_NAME, "a child");
}

static void move_title(void)
{
    char *text = map_rw(PAGE);
    memcpy(text, "moved\0away", 11);
    prctl(PR_SET_MM, PR_SET_MM_ARG_START, text, 0, 0);
    prctl(PR_SET_MM, PR_SET_MM_ARG_END, text + 11, 0, 0);
}

static void test_child(void)
{
    char want[512];
    int end, status;
    ssize_t n;
    size_t len = strlen(args[0]) + 1;
    snprintf(want, sizeof want, "%s", args[0]);
    pid_t pid = child(&end, rename_self);
    is(slurp(of(pid, "cmdline")), len, "child: length of its arguments");
    ok(buf[0] == 'T' && buf[len - 2] == 'T' && !buf[len - 1],
       "child: as it has written them");
    ok(slurp(of(pid, "comm")) == 8 && strcmp(buf, "a child\n") == 0,
       "child: its name");
    ok(slurp(of(pid, "stat")) > 0 && strstr(buf, "(a child) S "),
       "child: it sleeps");
    ok(slurp(of(pid, "status")) > 0 && strstr(buf, "Threads:"),
       "child: its status");
    n = slurp(of(pid, "environ"));
    ok(n > 0 && memmem(buf, n, "ELFUSE_UNDER_TEST=", 18),
       "child: its environment");
    ok(readlink(of(pid, "cwd"), buf, sizeof buf) > 0, "child: cwd");
    is(slurp(of(getpid(), "cmdline")), len, "child: the parent's own");
    is_str(buf, want, "child: are as they were");
    close(end);
    ok(waitpid(pid, &status, 0) == pid && status == 0, "child: has ended");
    is(slurp(of(pid, "cmdline")), -1, "child: and is gone");
    pid = child(&end, move_title);
    n = slurp(of(pid, "cmdline"));
    ok(n == 11 && memcmp(buf, "moved\0away", 11) == 0,
       "child: arguments moved by PR_SET_MM");
    close(end);
    waitpid(pid, &status, 0);
}

static int back[2];
static pid_t parent;

static void look_at_parent(void)
{
    char line[2] = {
        '0' + (slurp(of(parent, "cmdline")) > 0 && strcmp(buf, args[0]) == 0),
        '0' + (slurp(of(parent, "comm")) > 0)};
    need(write(back[1], line, 2) == 2, "write");
}

static void test_parent(void)
{
    char line[2];
    int end;
    need(pipe(back) == 0, "pipe");
    parent = getpid();
    pid_t pid = child(&end, look_at_parent);
    need(read(back[0], line, 2) == 2, "read");
    is(line[0], '1', "parent: its arguments");
    is(line[1], '1', "parent: its name");
    close(end), close(back[0]), close(back[1]);
    waitpid(pid, NULL, 0);
}

/* --- threads ------------------------------------------------------------- */

#define THREADS 3

static pthread_barrier_t begun, over;
static pid_t tids[THREADS];

static void *sleeper(void *number)
{
    tids[(long) number] = syscall(SYS_gettid);
    prctl(PR_SET_NAME, "sleeper");
    pthread_barrier_wait(&begun);
    pthread_barrier_wait(&over);
    return NULL;
}

static bool known(long tid)
{
    bool is = tid == getpid();
    for (int i = 0; i < THREADS; i++)
        is |= tid == tids[i];
    return is;
}

/* Listed threads; *others counts those that are not ours. */
static int list_tasks(int *others)
{
    DIR *dir = opendir("/proc/self/task");
    struct dirent *d;
    int n = 0;
    need(dir, "/proc/self/task");
    *others = 0;
    while ((d = readdir(dir)))
        if (d->d_name[0] != '.') {
            n++;
            *others += !known(atol(d->d_name));
        }
    closedir(dir);
    return n;
}

/* No number near ours is a thread that is not ours, by any way. */
static int strangers(void)
{
    struct stat st;
    char path[80];
    int n = 0, task = open("/proc/self/task", O_RDONLY | O_DIRECTORY);
    for (long tid = getpid() - 2; tid < getpid() + 40; tid++) {
        if (known(tid))
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%ld", tid);
        n += stat(path, &st) == 0;
        n += access(path, F_OK) == 0;
        snprintf(path, sizeof path, "/proc/self/task/%ld/comm", tid);
        n += slurp(path) >= 0;
        snprintf(path, sizeof path, "%ld/", tid);
        int fd = openat(task, path, O_RDONLY | O_DIRECTORY);
        n += fd >= 0;
        close(fd);
        snprintf(path, sizeof path, "/proc/%d/task/%ld/status", getpid(), tid);
        n += slurp(path) >= 0;
    }
    close(task);
    return n;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    char path[80], *p;
    int others;
    pthread_barrier_init(&begun, NULL, THREADS + 1);
    pthread_barrier_init(&over, NULL, THREADS + 1);
    for (long i = 0; i < THREADS; i++)
        need(pthread_create(&threads[i], NULL, sleeper, (void *) i) == 0,
             "pthread_create");
    pthread_barrier_wait(&begun);
    is(list_tasks(&others), THREADS + 1, "threads: all are listed");
    is(others, 0, "threads: and no other");
    is(strangers(), 0, "threads: none is found by its number");
    need(slurp("/proc/self/status") > 0, "status");
    p = strstr(buf, "Threads:\t");
    is(p ? atoi(p + 9) : 0, THREADS + 1, "threads: counted in status");
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", tids[1]);
    ok(slurp(path) > 0 && strcmp(buf, "sleeper\n") == 0, "threads: a name");
    int fd = open(path, O_WRONLY);
    ok(fd >= 0 && write(fd, "renamed", 7) == 7, "threads: a new one");
    close(fd);
    ok(slurp(path) > 0 && strcmp(buf, "renamed\n") == 0, "threads: is it");
    snprintf(path, sizeof path, "/proc/self/task/%d/cmdline", tids[1]);
    ok(slurp(path) > 0 && strcmp(buf, args[0]) == 0, "threads: the arguments");
    snprintf(path, sizeof path, "/proc/%d/maps", tids[1]);
    ok(slurp(path) > 0 && strstr(buf, "[stack]"),
       "threads: maps by a thread's number");
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", tids[1]);
    ok(slurp(path) > 0 && atoi(buf) == tids[1], "threads: stat");
    pthread_barrier_wait(&over);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

/* --- files and spellings ------------------------------------------------- */

static void test_files(void)
{
    unsigned long v[7];
    need(slurp("/proc/self/statm") > 0, "statm");
    ok(sscanf(buf, "%lu %lu %lu %lu %lu %lu %lu", v, v + 1, v + 2, v + 3, v + 4,
              v + 5, v + 6) == 7 &&
           v[0] >= v[1] && v[1] > 0 && v[4] == 0 && v[6] == 0,
       "files: statm");
    ok(slurp("/proc/self/io") > 0 && strstr(buf, "rchar:"), "files: io");
    ok(slurp("/proc/self/mountinfo") > 0 && strstr(buf, " / "),
       "files: mountinfo");
    ok(slurp("/proc/self/cgroup") >= 0, "files: cgroup");
    ok(slurp("/proc/self/oom_score") > 0, "files: oom_score");
    int fd = open("/proc/self/oom_score_adj", O_RDWR);
    ok(fd >= 0 && write(fd, "123", 3) == 3, "files: oom_score_adj written");
    close(fd);
    ok(slurp("/proc/self/oom_score_adj") == 4 && strcmp(buf, "123\n") == 0,
       "files: is it");
    ok(readlink("/proc/self/ns/pid", buf, 64) > 4 &&
           memcmp(buf, "pid:", 4) == 0,
       "files: ns");
    ok(slurp("/proc/self/loginuid") >= 0 || errno == ENOENT, "files: loginuid");
    ok(slurp("/proc/self/limits") > 0 && strstr(buf, "Max open files"),
       "files: limits");
    ok(slurp("/proc/self/stat") > 0 && atoi(buf) == getpid(), "files: stat");
    struct stat st;
    ok(stat("/proc/self/maps", &st) == 0 && st.st_size == 0 &&
           S_ISREG(st.st_mode),
       "files: stat of maps");
}

static bool is_maps(int dir, const char *path)
{
    return slurp_at(dir, path) > 0 && strstr(buf, "[stack]") &&
           strstr(buf, "[vdso]") && !strstr(buf, "elfuse");
}

static void test_spellings(void)
{
    char path[128], link[64];
    int self = open("/proc/self", O_PATH | O_DIRECTORY);
    int proc = open("/proc", O_RDONLY | O_DIRECTORY);
    need(self >= 0 && proc >= 0, "open");
    ok(is_maps(AT_FDCWD, "/proc/self/maps"), "spelling: self");
    ok(is_maps(AT_FDCWD, "/proc/thread-self/maps"), "spelling: thread-self");
    ok(is_maps(AT_FDCWD, of(getpid(), "maps")), "spelling: number");
    ok(is_maps(AT_FDCWD, of(getpid(), "task/../maps")), "spelling: up");
    snprintf(path, sizeof path, "/proc/self/task/%ld/maps",
             syscall(SYS_gettid));
    ok(is_maps(AT_FDCWD, path), "spelling: task");
    ok(is_maps(self, "maps"), "spelling: by a directory");
    ok(is_maps(proc, "self/./maps"), "spelling: by another");
    ok(is_maps(AT_FDCWD, "/proc/self/root/proc/self/maps"), "spelling: root");
    ok(is_maps(AT_FDCWD, "/proc/self/fd/../maps"), "spelling: fd");
    snprintf(path, sizeof path, "/proc/self/fd/%d/maps", self);
    ok(is_maps(AT_FDCWD, path), "spelling: a descriptor's link");
    snprintf(link, sizeof link, "/tmp/guest.link.%d", getpid());
    need(symlink("/proc/self/maps", link) == 0, "symlink");
    ok(is_maps(AT_FDCWD, link), "spelling: a symbolic link");
    unlink(link);
    need(symlink("/proc/self", link) == 0, "symlink");
    snprintf(path, sizeof path, "%s/maps", link);
    ok(is_maps(AT_FDCWD, path), "spelling: a link to the directory");
    unlink(link);
    need(chdir("/proc/self") == 0, "chdir");
    ok(is_maps(AT_FDCWD, "maps"), "spelling: in it");
    ok(is_maps(AT_FDCWD, "../thread-self/maps"), "spelling: beside it");
    need(chdir("/") == 0, "chdir");
    int fd = openat(self, "maps", O_RDONLY);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ok(fd >= 0 && is_maps(AT_FDCWD, path), "spelling: opened again");
    close(fd);

    /* In a root without /proc, by the descriptors from before. */
    snprintf(link, sizeof link, "/tmp/guest.root.%d", getpid());
    need(mkdir(link, 0700) == 0, "mkdir");
    pid_t pid = fork();
    need(pid >= 0, "fork");
    if (pid == 0) {
        need(chroot(link) == 0 && chdir("/") == 0, "chroot");
        snprintf(path, sizeof path, "%d/maps", getpid());
        int good = is_maps(proc, path) && slurp("/proc/self/maps") == -1;
        _exit(good ? 0 : 1);
    }
    int status;
    ok(waitpid(pid, &status, 0) == pid && status == 0,
       "spelling: in a root without /proc");
    rmdir(link);
    close(self), close(proc);
}

int main(int argc, char **argv)
{
    (void) argc;
    args = argv;
    title = argv[0];
    test_child();
    test_parent();
    test_threads();
    test_files();
    test_spellings();
    return tap_done();
}
