/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fork in a process whose other threads are busy: blocked in calls with the
 * process's memory in their hands, running, mapping and unmapping.
 */
#include "mem.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#define FORKS 12
#define WORDS (1UL << 17)

static atomic_bool stop;
static uint64_t *words; /* nobody writes them after the start */
static int pipe_fd[2];

static int finish(pid_t pid)
{
    int status;

    need(waitpid(pid, &status, 0) == pid, "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static uint64_t pattern(uint64_t i)
{
    return i * 0x9e3779b97f4a7c15UL + 1;
}

static bool words_good(void)
{
    for (uint64_t i = 0; i < WORDS; i++)
        if (words[i] != pattern(i))
            return false;
    return true;
}

/* --- the others */

static void *reads(void *arg)
{
    static char buffer[64 << 10];

    (void) !read(pipe_fd[0], buffer, sizeof buffer);
    return arg;
}

static void *spins(void *arg)
{
    volatile uint64_t *own = (uint64_t *) map_rw(PAGE);

    while (!atomic_load_explicit(&stop, memory_order_relaxed))
        own[0]++;
    return arg;
}

/* Each mapping is filled with its own byte; a child must find it whole, or not
 * at all. */
static void *maps(void *arg)
{
    long bad = 0;

    for (unsigned char n = 1;
         !atomic_load_explicit(&stop, memory_order_relaxed); n++) {
        size_t size = (1 + n % 40) * PAGE;
        unsigned char *p = (unsigned char *) map_rw(size);

        for (size_t i = 0; i < size; i += PAGE)
            bad += p[i] != 0;
        memset(p, n, size);
        if (n % 3 == 0)
            bad += sys_mprotect(p, PAGE, PROT_READ) != 0;
        bad += sys_munmap(p, size) != 0;
    }
    *(long *) arg = bad;
    return NULL;
}

static void *allocates(void *arg)
{
    while (!atomic_load_explicit(&stop, memory_order_relaxed))
        free(malloc(1000));
    return arg;
}

/* --- children */

static void *adds(void *arg)
{
    ++*(int *) arg;
    return NULL;
}

static int child(void)
{
    char *p = map_rw(64 * PAGE);
    pthread_t thread;
    int n = 0;

    if (!words_good())
        return 1;
    for (int i = 0; i < 64; i++)
        if (p[i * PAGE])
            return 2;
    memset(p, 7, 64 * PAGE);
    words[5] = 0;
    if (getpid() != syscall(SYS_gettid))
        return 3;
    /* It may have threads of its own. */
    if (pthread_create(&thread, NULL, adds, &n) || pthread_join(thread, NULL) ||
        n != 1)
        return 4;
    return 42;
}

static int fork_child(void)
{
    pid_t pid = fork();

    need(pid >= 0, "fork");
    if (pid == 0)
        _exit(child());
    return finish(pid);
}

static void *forks(void *arg)
{
    long bad = 0;

    for (int i = 0; i < FORKS; i++)
        bad += fork_child() != 42;
    *(long *) arg = bad;
    return NULL;
}

static int child_of_thread(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(child());
    return pid < 0 ? 90 : finish(pid);
}

static void *forks_nested(void *arg)
{
    pid_t pid = fork();

    need(pid >= 0, "fork");
    if (pid == 0)
        _exit(child_of_thread());
    *(int *) arg = finish(pid);
    return NULL;
}

int main(void)
{
    pthread_t other[6], forker[2];
    long bad[2] = {0}, bad_maps = 0, sum = 0;
    int status = 0;

    words = (uint64_t *) map_rw(WORDS * 8);
    for (uint64_t i = 0; i < WORDS; i++)
        words[i] = pattern(i);
    need(pipe(pipe_fd) == 0, "pipe");
    need(pthread_create(&other[0], NULL, reads, NULL) == 0 &&
             pthread_create(&other[1], NULL, spins, NULL) == 0 &&
             pthread_create(&other[2], NULL, maps, &bad_maps) == 0 &&
             pthread_create(&other[3], NULL, allocates, NULL) == 0,
         "pthread_create");
    forks(&bad[0]);
    is(bad[0], 0, "forks of the main thread, with four others");
    need(pthread_create(&forker[0], NULL, forks, &bad[0]) == 0 &&
             pthread_create(&forker[1], NULL, forks, &bad[1]) == 0,
         "pthread_create");
    for (int i = 0; i < 2; i++) {
        pthread_join(forker[i], NULL);
        sum += bad[i];
    }
    is(sum, 0, "forks of two threads at a time");
    need(pthread_create(&forker[0], NULL, forks_nested, &status) == 0,
         "pthread_create");
    pthread_join(forker[0], NULL);
    is(status, 42, "a fork in a fork of a thread");
    atomic_store_explicit(&stop, true, memory_order_relaxed);
    need(write(pipe_fd[1], "x", 1) == 1, "write");
    for (int i = 0; i < 4; i++)
        pthread_join(other[i], NULL);
    is(bad_maps, 0, "the mappings were what they should be");
    ok(words_good(), "and the parent's memory is as it was");
    return tap_done();
}
