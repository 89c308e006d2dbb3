/* SPDX-License-Identifier: Apache-2.0 */
/* What there are not enough of for another thread, and what threads have for
 * themselves: credentials, scheduling, barriers. */
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tap.h"

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

static void *wait_gate(void *arg)
{
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    return arg;
}

/* As many as can be, at most `most`; the error that ended it. */
static int fill(pthread_t *thread, int most, int *made)
{
    pthread_attr_t attr;
    int error = 0;

    need(pthread_attr_init(&attr) == 0, "attributes");
    need(pthread_attr_setstacksize(&attr, 0x40000) == 0, "stack size");
    pthread_mutex_lock(&gate);
    for (*made = 0; *made < most && !error; *made += !error)
        error = pthread_create(&thread[*made], &attr, wait_gate, NULL);
    pthread_attr_destroy(&attr);
    return error;
}

static void empty(pthread_t *thread, int made)
{
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < made; i++)
        need(pthread_join(thread[i], NULL) == 0, "join");
}

/* In a child: no limit but that of the machine. */
static void use_up(void)
{
    static pthread_t thread[600];
    int made, error = fill(thread, 600, &made);

    if (error && error != EAGAIN)
        _exit(2);
    if (made < 256)
        _exit(3);
    empty(thread, made);
    /* One ends, one can begin, for as long as one likes. */
    for (int i = 0; i < 40; i++) {
        if (pthread_create(&thread[0], NULL, wait_gate, NULL) ||
            pthread_join(thread[0], NULL))
            _exit(4);
    }
    error = fill(thread, made, &made);
    empty(thread, made);
    _exit(error ? 5 : 0);
}

/* In a child: a limit of processes. */
static void use_up_limit(void)
{
    static pthread_t thread[200];
    const struct rlimit limit = {60, 60};
    int made, error;

    if (setrlimit(RLIMIT_NPROC, &limit) || setresuid(12345, 12345, 12345))
        _exit(2);
    error = fill(thread, 200, &made);
    if (error != EAGAIN || made < 30 || made > 60)
        _exit(3);
    empty(thread, made);
    _exit(0);
}

/* In a child: no descriptor is left. */
static void use_up_descriptors(void)
{
    static pthread_t thread[40];
    int made, error;

    while (dup(1) >= 0)
        continue;
    error = errno == EMFILE ? fill(thread, 40, &made) : -1;
    if (error)
        _exit(2);
    empty(thread, made);
    _exit(0);
}

static int status_of(void (*fn)(void))
{
    int status = -1;
    pid_t child = fork();

    need(child >= 0, "fork");
    if (!child) {
        fn();
        _exit(99);
    }
    need(waitpid(child, &status, 0) == child, "waitpid");
    return status;
}

/* --- what a thread has for itself */
static void *note_affinity(void *arg)
{
    cpu_set_t *set = arg;

    return (void *) (long) sched_getaffinity(0, sizeof *set, set);
}

static int affinity_of_new(cpu_set_t *set)
{
    pthread_t thread;
    void *result;

    need(pthread_create(&thread, NULL, note_affinity, set) == 0, "thread");
    need(pthread_join(thread, &result) == 0, "join");
    return (int) (long) result;
}

static void test_affinity(void)
{
    cpu_set_t all, one, got;
    int first = 0;

    need(sched_getaffinity(0, sizeof all, &all) == 0, "getaffinity");
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    is(sched_setaffinity(0, sizeof one, &one), 0, "on one processor");
    need(affinity_of_new(&got) == 0, "getaffinity");
    ok(CPU_EQUAL(&got, &one), "a new thread is there, too");
    need(sched_setaffinity(0, sizeof all, &all) == 0, "setaffinity");
    need(affinity_of_new(&got) == 0, "getaffinity");
    ok(CPU_EQUAL(&got, &all), "and the next on all of them again");
}

static void *note_nice(void *arg)
{
    *(int *) arg = getpriority(PRIO_PROCESS, 0);
    return NULL;
}

static void *nicer(void *arg)
{
    int *seen = arg;
    pthread_t thread;

    seen[0] = setpriority(PRIO_PROCESS, 0, 7);
    need(pthread_create(&thread, NULL, note_nice, &seen[1]) == 0, "thread");
    need(pthread_join(thread, NULL) == 0, "join");
    return NULL;
}

static void test_nice(void)
{
    int seen[2] = {-1, -1}, own = getpriority(PRIO_PROCESS, 0);
    pthread_t thread;

    need(pthread_create(&thread, NULL, nicer, seen) == 0, "thread");
    need(pthread_join(thread, NULL) == 0, "join");
    is(seen[0], 0, "a thread is nice");
    is(seen[1], 7, "its child as well");
    is(getpriority(PRIO_PROCESS, 0), own, "we are not");
}

static void *own_uid(void *arg)
{
    *(long *) arg = syscall(SYS_setresuid, 1234, 1234, -1);
    *(long *) arg |= getuid() != 1234;
    return NULL;
}

static void *all_uid(void *arg)
{
    while (!*(_Atomic int *) arg)
        sched_yield();
    return (void *) (long) getuid();
}

static void uid_child(void)
{
    static _Atomic int go;
    pthread_t one, two;
    void *seen;
    long error = -1;

    if (pthread_create(&one, NULL, own_uid, &error) ||
        pthread_join(one, NULL) || error || getuid() != 0)
        _exit(2); /* the system call is for one thread */
    if (pthread_create(&two, NULL, all_uid, (void *) (long) &go))
        _exit(3);
    if (setuid(2345))
        _exit(4);
    go = 1;
    if (pthread_join(two, &seen) || (long) seen != 2345)
        _exit(5); /* the library's function for all */
    _exit(0);
}

static long membarrier(int cmd)
{
    return syscall(SYS_membarrier, cmd, 0, 0);
}

/* Store buffering: without a barrier in either thread both could read 0. One
 * has none of its own, the other's system call is for both. */
static _Atomic int x, y, turn;
static int seen_x, seen_y;

static void *quick_side(void *arg)
{
    for (int i = 1; i <= *(int *) arg; i++) {
        while (turn < i)
            continue;
        atomic_store_explicit(&x, i, memory_order_relaxed);
        __asm__ volatile("" ::: "memory");
        seen_y = atomic_load_explicit(&y, memory_order_relaxed);
        atomic_store(&turn, -i);
        while (turn == -i)
            continue;
    }
    return NULL;
}

static void test_membarrier(void)
{
    int rounds = 200, both = 0;
    pthread_t thread;

    ok(membarrier(MEMBARRIER_CMD_QUERY) & MEMBARRIER_CMD_PRIVATE_EXPEDITED,
       "membarrier: private expedited is there");
    fails(membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED), EPERM,
          "not before one registers");
    is(membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED), 0, "registered");
    is(membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED), 0, "a barrier");
    is(membarrier(MEMBARRIER_CMD_GLOBAL), 0, "a global one");
    is(membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED), 0, "registered");
    is(membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED), 0, "global, expedited");
    is(membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE), 0,
       "registered");
    is(membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE), 0,
       "for instructions");
    fails(membarrier(1 << 20), EINVAL, "no such command");
    need(pthread_create(&thread, NULL, quick_side, &rounds) == 0, "thread");
    for (int i = 1; i <= rounds; i++) {
        atomic_store(&turn, i);
        atomic_store_explicit(&y, i, memory_order_relaxed);
        need(membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0, "membarrier");
        seen_x = atomic_load_explicit(&x, memory_order_relaxed);
        while (turn != -i)
            continue;
        both += seen_x < i && seen_y < i;
        atomic_store(&turn, 0);
    }
    need(pthread_join(thread, NULL) == 0, "join");
    is(both, 0, "it is one for a thread that runs");
}

int main(void)
{
    is(status_of(use_up), 0, "threads until there are no more, and again");
    is(status_of(use_up_limit), 0, "until a limit is reached: EAGAIN");
    is(status_of(use_up_descriptors), 0, "without a descriptor left");
    test_affinity();
    test_nice();
    is(status_of(uid_child), 0, "a user id for one thread, and for all");
    test_membarrier();
    return tap_done();
}
