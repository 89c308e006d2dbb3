/* SPDX-License-Identifier: Apache-2.0 */
/* vfork and posix_spawn: a child on its parent's memory. */
#include "mem.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

static char self[PATH_MAX];
static volatile int seen;

static int finish(pid_t pid)
{
    int status;

    need(waitpid(pid, &status, 0) == pid, "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

typedef int child_t(void *arg);

static char stack[64 << 10] __attribute__((aligned(16)));

static pid_t start(child_t *body, void *arg, int flags)
{
    return clone(body, stack + sizeof stack,
                 CLONE_VM | CLONE_VFORK | SIGCHLD | flags, arg);
}

/* --- memory and identity */

static int child_writes(void *arg)
{
    char *p = arg;

    seen = getpid() == syscall(SYS_gettid) ? 1 : 2;
    p[PAGE] = 77; /* untouched until now */
    if (munmap(p + 2 * PAGE, PAGE) != 0 ||
        mmap(p + 3 * PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0) != p + 3 * PAGE)
        seen = 3;
    close(STDERR_FILENO);
    _exit(5);
}

static void test_memory(void)
{
    char *p = map_rw(4 * PAGE);
    pid_t pid;

    p[2 * PAGE] = p[3 * PAGE] = 1;
    pid = start(child_writes, p, 0);
    is(seen, 1,
       "the parent goes on when the child has ended; a process of "
       "its own");
    is(p[PAGE], 77, "what it wrote is here");
    ok(!can_read(p + 2 * PAGE) && p[3 * PAGE] == 0,
       "what it unmapped and mapped, too");
    ok(fcntl(STDERR_FILENO, F_GETFD) >= 0, "but not what it closed");
    is(finish(pid), 5, "its status");
    munmap(p, 4 * PAGE);
}

/* What vfork is for, and what it is not for. */
/* NOLINTBEGIN(clang-analyzer-security.insecureAPI.vfork) */
/* NOLINTBEGIN(clang-analyzer-unix.Vfork): the calls are what is tested */
static void test_vfork(void)
{
    pid_t parent = getpid(), pid;
    volatile int local = 1;

    pid = vfork();
    if (pid == 0) {
        local = getppid() == parent ? 2 : 3;
        _exit(6);
    }
    is(local, 2, "vfork on the parent's own stack");
    is(finish(pid), 6, "returns twice");
    pid = vfork();
    if (pid == 0) {
        execl(self, "x", "good", NULL);
        _exit(7);
    }
    is(finish(pid), 42, "exec in a vfork child");
    pid = vfork();
    if (pid == 0) {
        local = execl("/nowhere", "x", NULL);
        _exit(errno == ENOENT ? 8 : 9);
    }
    is(local, -1, "and one that fails");
    is(finish(pid), 8, "with its error");
}

/* NOLINTEND(clang-analyzer-unix.Vfork) */
/* NOLINTEND(clang-analyzer-security.insecureAPI.vfork) */

static int child_nested(void *arg)
{
    static char more[4][32 << 10] __attribute__((aligned(16)));
    long depth = (long) arg;
    pid_t pid;

    seen++;
    if (depth == 3)
        return 10;
    pid = depth % 2
              ? fork()
              : clone(child_nested, more[depth] + sizeof more[depth],
                      CLONE_VM | CLONE_VFORK | SIGCHLD, (void *) (depth + 1));
    if (pid == 0)
        _exit(child_nested((void *) (depth + 1)));
    return pid < 0 ? 99 : finish(pid) + 1;
}

static void test_nested(void)
{
    seen = 0;
    is(finish(start(child_nested, (void *) 0, 0)), 13,
       "vfork, vfork, fork, one in the other");
    is(seen, 2, "of which two were on this memory");
}

/* --- signals */

static volatile int caught;

static void handler(int sig)
{
    caught = sig;
}

static int child_signals(void *arg)
{
    (void) arg;
    raise(SIGUSR1);
    seen = caught;
    caught = 0;
    signal(SIGUSR1, SIG_IGN);
    raise(SIGUSR1);
    return 0;
}

static void test_signals(void)
{
    signal(SIGUSR1, handler);
    caught = seen = 0;
    is(finish(start(child_signals, NULL, 0)), 0, "signals in the child");
    is(seen, SIGUSR1, "the parent's handler ran there");
    is(caught, 0, "until it was changed");
    raise(SIGUSR1);
    is(caught, SIGUSR1, "which the parent does not feel");
    signal(SIGUSR1, SIG_DFL);
}

static volatile int child_pid;

static void *killer(void *arg)
{
    while (!child_pid)
        sched_yield();
    if (arg)
        poll(NULL, 0, 20);
    kill(child_pid, SIGKILL);
    return NULL;
}

static int child_spins(void *arg)
{
    volatile unsigned n = 0;

    (void) arg;
    child_pid = getpid();
    while (child_pid)
        n++;
    return 0;
}

static int child_blocks(void *arg)
{
    (void) arg;
    child_pid = getpid();
    pause();
    return 0;
}

static int child_maps(void *arg)
{
    (void) arg;
    child_pid = getpid();
    for (;;) {
        char *p = map_rw(16 * PAGE);

        p[0] = p[8 * PAGE] = 1;
        munmap(p, 16 * PAGE);
    }
    return 0;
}

static void *killer_at_times(void *arg)
{
    volatile unsigned n = *(unsigned *) arg;

    while (!child_pid)
        sched_yield();
    while (n)
        n--;
    kill(child_pid, SIGKILL);
    return NULL;
}

/* What the child is doing to the memory that it shares is always done whole. */
static void test_killed_at_work(void)
{
    unsigned times = 25, right = 0;

    for (unsigned i = 0; i < times; i++) {
        unsigned wait = i * 997;
        pthread_t thread;
        char *p;

        child_pid = 0;
        need(pthread_create(&thread, NULL, killer_at_times, &wait) == 0,
             "pthread_create");
        right += finish(start(child_maps, NULL, 0)) == -SIGKILL;
        pthread_join(thread, NULL);
        p = map_rw(16 * PAGE);
        right += p[0] == 0 && p[8 * PAGE] == 0;
        munmap(p, 16 * PAGE);
    }
    is(right, 2 * times, "killed while it maps, and the parent goes on");
}

static void test_killed(void)
{
    pthread_t thread;

    for (int i = 0; i < 4; i++) {
        child_pid = 0;
        need(pthread_create(&thread, NULL, killer, i % 2 ? &thread : NULL) == 0,
             "pthread_create");
        is(finish(start(i < 2 ? child_spins : child_blocks, NULL, 0)), -SIGKILL,
           "killed, and the parent goes on");
        pthread_join(thread, NULL);
    }
}

/* --- the parent goes first, the child stands still */

static int parents[2], told[2]; /* pipes; who else has the first's end */
static bool parent_execs;

static int child_outlives(void *arg)
{
    char byte;
    pid_t pid;

    (void) arg;
    close(parents[1]);
    child_pid = 1;
    /* Until nobody has the other end: the parent is gone. */
    if (read(parents[0], &byte, 1) != 0)
        return 1;
    munmap(map_rw(16 * PAGE), 16 * PAGE);
    pid = fork();
    if (pid == 0)
        _exit(4);
    if (finish(pid) == 4 && write(told[1], "x", 1) != 1)
        return 1;
    return 0;
}

static void *ender(void *arg)
{
    char *argv[] = {self, (char *) "good", NULL};

    (void) arg;
    while (!child_pid)
        sched_yield();
    if (parent_execs)
        execv(self, argv);
    syscall(SYS_exit_group, 42);
    return NULL;
}

static void test_outlived(bool execs)
{
    pthread_t thread;
    char byte;
    pid_t pid;

    child_pid = 0;
    parent_execs = execs;
    need(pipe2(parents, O_CLOEXEC) == 0 && pipe2(told, O_CLOEXEC) == 0,
         "pipe2");
    pid = fork();
    need(pid >= 0, "fork");
    if (pid == 0) {
        need(pthread_create(&thread, NULL, ender, NULL) == 0, "pthread_create");
        start(child_outlives, NULL, 0);
        _exit(1);
    }
    close(parents[0]);
    close(parents[1]);
    close(told[1]);
    is(finish(pid), 42, "a parent ends while its child runs");
    is(read(told[0], &byte, 1), 1, "the child goes on");
    close(told[0]);
}

static int child_stops(void *arg)
{
    (void) arg;
    child_pid = getpid();
    kill(child_pid, SIGSTOP);
    return 6;
}

static void *continuer(void *arg)
{
    siginfo_t info;
    pid_t pid;

    (void) arg;
    while (!child_pid)
        sched_yield();
    need(waitid(P_PID, (id_t) child_pid, &info, WSTOPPED) == 0, "waitid");
    pid = fork();
    if (pid == 0)
        _exit(5);
    is(finish(pid), 5, "another thread forks while the child is stopped");
    kill(child_pid, SIGCONT);
    return NULL;
}

static void test_stopped(void)
{
    pthread_t thread;
    pid_t pid;

    child_pid = 0;
    need(pthread_create(&thread, NULL, continuer, NULL) == 0, "pthread_create");
    pid = start(child_stops, NULL, 0);
    pthread_join(thread, NULL);
    is(finish(pid), 6, "and continued");
}

/* --- posix_spawn */

static pid_t spawn(const posix_spawn_file_actions_t *actions,
                   const posix_spawnattr_t *attr, char *role, char *argument)
{
    char *argv[] = {self, role, argument, NULL};
    char *envp[] = {NULL};
    pid_t pid;

    errno = posix_spawn(&pid, self, actions, attr, argv, envp);
    return errno ? -1 : pid;
}

static void test_spawn(void)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    sigset_t set;
    char *argv[] = {self, NULL};
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, 1, 17);
    posix_spawn_file_actions_addclose(&actions, 0);
    is(finish(spawn(&actions, NULL, "fds", NULL)), 42,
       "posix_spawn with dup2 and close");
    posix_spawnattr_init(&attr);
    sigfillset(&set);
    posix_spawnattr_setsigmask(&attr, &set);
    posix_spawnattr_setpgroup(&attr, 0);
    posix_spawnattr_setflags(&attr,
                             POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
    is(finish(spawn(NULL, &attr, "attr", NULL)), 42,
       "with a mask and a process group");
    is(posix_spawn(&pid, "/nowhere", NULL, NULL, argv, argv + 1), ENOENT,
       "what cannot be found is the call's error");
    fails(waitpid(-1, NULL, 0), ECHILD, "and no child is left");
    posix_spawn_file_actions_addclose(&actions, 999);
    ok(spawn(&actions, NULL, "fds", NULL) > 0 || errno == EBADF,
       "a close that fails");
    while (waitpid(-1, NULL, 0) > 0)
        continue;
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attr);
}

#define THREADS 4
#define ROUNDS  12

static void *spawner(void *arg)
{
    posix_spawn_file_actions_t actions;
    long bad = 0;

    for (int i = 0; i < ROUNDS; i++) {
        posix_spawn_file_actions_init(&actions);
        posix_spawn_file_actions_adddup2(&actions, 1, 17);
        posix_spawn_file_actions_addclose(&actions, 0);
        bad += finish(spawn(&actions, NULL, "fds", NULL)) != 42;
        posix_spawn_file_actions_destroy(&actions);
    }
    *(long *) arg = bad;
    return NULL;
}

static void test_many(void)
{
    pthread_t thread[THREADS];
    long bad[THREADS], sum = 0;

    for (int i = 0; i < THREADS; i++)
        need(pthread_create(&thread[i], NULL, spawner, &bad[i]) == 0,
             "pthread_create");
    for (int i = 0; i < THREADS; i++) {
        pthread_join(thread[i], NULL);
        sum += bad[i];
    }
    is(sum, 0, "from four threads");
}

/* --- clone's other forms */

static void test_ids(void)
{
    int ptid = 0, ctid = -1, pidfd = -1;
    siginfo_t info;
    pid_t pid = clone(child_writes, stack + sizeof stack,
                      CLONE_VM | CLONE_VFORK | SIGCHLD | CLONE_PARENT_SETTID |
                          CLONE_CHILD_CLEARTID,
                      map_rw(4 * PAGE), &ptid, NULL, &ctid);

    is(ptid, pid, "CLONE_PARENT_SETTID");
    is(ctid, 0, "CLONE_CHILD_CLEARTID");
    is(finish(pid), 5, "its status");
    pid = clone(child_writes, stack + sizeof stack,
                CLONE_VM | CLONE_VFORK | SIGCHLD | CLONE_PIDFD,
                map_rw(4 * PAGE), &pidfd);
    ok(pid > 0 && pidfd >= 0, "CLONE_PIDFD");
    is(waitid(P_PIDFD, (id_t) pidfd, &info, WEXITED), 0, "waitid by it");
    is(info.si_pid, pid, "finds the child");
    close(pidfd);
}

int main(int argc, char **argv)
{
    sigset_t set;

    if (argc > 1 && strcmp(argv[1], "good") == 0)
        return 42;
    if (argc > 1 && strcmp(argv[1], "fds") == 0)
        return fcntl(17, F_GETFD) == 0 && fcntl(0, F_GETFD) < 0 ? 42 : 1;
    if (argc > 1 && strcmp(argv[1], "attr") == 0) {
        sigprocmask(SIG_BLOCK, NULL, &set);
        return getpgrp() == getpid() && sigismember(&set, SIGUSR2) ? 42 : 1;
    }
    need(readlink("/proc/self/exe", self, sizeof self - 1) > 0, "self");
    test_memory();
    test_vfork();
    test_nested();
    test_signals();
    test_spawn();
    test_ids();
    test_many();
    test_killed();
    test_killed_at_work();
    test_outlived(false);
    test_outlived(true);
    test_stopped();
    return tap_done();
}
