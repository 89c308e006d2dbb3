/* SPDX-License-Identifier: Apache-2.0 */
/* Threads as the C library makes them: creation, joining, many of them. */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>

#include "tap.h"

#define MANY 256

static void *give_back(void *arg)
{
    return arg;
}

static void test_join(void)
{
    pthread_t thread;
    void *result = NULL;
    int failed = 0;

    is(pthread_create(&thread, NULL, give_back, &failed), 0,
       "a thread is made");
    is(pthread_join(thread, &result), 0, "it is joined");
    ok(result == &failed, "with its result");
    for (int i = 0; i < 300; i++) {
        failed += pthread_create(&thread, NULL, give_back, &i) != 0;
        failed += pthread_join(thread, &result) != 0;
        failed += result != &i;
    }
    is(failed, 0, "300 one after the other");
}

static _Thread_local int own = 17;
static int own_seen[4];

static void *count_own(void *arg)
{
    for (int i = 0; i < 1000; i++)
        own++;
    *(int *) arg = own;
    return NULL;
}

static void test_tls(void)
{
    pthread_t thread[4];
    int failed = 0, wrong = 0;

    for (int i = 0; i < 4; i++)
        failed +=
            pthread_create(&thread[i], NULL, count_own, &own_seen[i]) != 0;
    for (int i = 0; i < 4; i++) {
        failed += pthread_join(thread[i], NULL) != 0;
        wrong += own_seen[i] != 1017;
    }
    is(failed, 0, "four at a time");
    is(wrong, 0, "each with its own copy of a variable");
    is(own, 17, "the main thread's is as it was");
}

static pthread_barrier_t barrier;
static _Atomic int here;
static pid_t tids[MANY];

static void *wait_for_all(void *arg)
{
    pid_t *tid = arg;

    *tid = (pid_t) syscall(SYS_gettid);
    atomic_fetch_add(&here, 1);
    pthread_barrier_wait(&barrier);
    return NULL;
}

static int compare(const void *a, const void *b)
{
    return *(const pid_t *) a - *(const pid_t *) b;
}

static void test_many(void)
{
    static pthread_t thread[MANY];
    int failed = 0, same = 0;

    need(pthread_barrier_init(&barrier, NULL, MANY + 1) == 0, "barrier");
    for (int i = 0; i < MANY; i++)
        failed += pthread_create(&thread[i], NULL, wait_for_all, &tids[i]) != 0;
    is(failed, 0, "256 threads are made");
    if (failed)
        _exit(1);
    pthread_barrier_wait(&barrier);
    is(here, MANY, "all are alive at once");
    for (int i = 0; i < MANY; i++)
        failed += pthread_join(thread[i], NULL) != 0;
    is(failed, 0, "all are joined");
    qsort(tids, MANY, sizeof *tids, compare);
    for (int i = 1; i < MANY; i++)
        same += tids[i] == tids[i - 1];
    is(same, 0, "each had an id of its own");
    ok(tids[0] != getpid(), "and not the process's");
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static long counter, turns;

static void *count_locked(void *arg)
{
    (void) arg;
    for (int i = 0; i < 5000; i++) {
        pthread_mutex_lock(&mutex);
        counter++;
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

static void *take_turns(void *arg)
{
    long me = (long) arg;

    pthread_mutex_lock(&mutex);
    for (int i = 0; i < 200; i++) {
        while (turns % 2 != me)
            pthread_cond_wait(&condition, &mutex);
        turns++;
        pthread_cond_broadcast(&condition);
    }
    pthread_mutex_unlock(&mutex);
    return NULL;
}

static void run_pair(void *(*fn)(void *) )
{
    pthread_t thread[2];

    for (long i = 0; i < 2; i++)
        need(pthread_create(&thread[i], NULL, fn, (void *) i) == 0, "thread");
    for (int i = 0; i < 2; i++)
        need(pthread_join(thread[i], NULL) == 0, "join");
}

static void test_locks(void)
{
    run_pair(count_locked);
    is(counter, 10000, "a mutex keeps two threads apart");
    run_pair(take_turns);
    is(turns, 400, "a condition variable makes two threads take turns");
}

int main(void)
{
    test_join();
    test_tls();
    test_many();
    test_locks();
    return tap_done();
}
