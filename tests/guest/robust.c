/* SPDX-License-Identifier: Apache-2.0 */
/* Robust lists: what a thread or a process leaves locked when it ends. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tap.h"

#define RW (PROT_READ | PROT_WRITE)

static pthread_mutex_t *make_mutex(void *at, int shared, int protocol)
{
    pthread_mutexattr_t attr;

    need(pthread_mutexattr_init(&attr) == 0, "attributes");
    need(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST) == 0,
         "robust");
    need(pthread_mutexattr_setpshared(&attr, shared) == 0, "shared");
    need(pthread_mutexattr_setprotocol(&attr, protocol) == 0, "protocol");
    need(pthread_mutex_init(at, &attr) == 0, "mutex");
    return at;
}

static void *lock_and_end(void *arg)
{
    return (void *) (long) pthread_mutex_lock(arg);
}

static void test_thread(int protocol, const char *name)
{
    pthread_mutex_t space, *mutex;
    pthread_t thread;

    mutex = make_mutex(&space, PTHREAD_PROCESS_PRIVATE, protocol);
    need(pthread_create(&thread, NULL, lock_and_end, mutex) == 0, "thread");
    need(pthread_join(thread, NULL) == 0, "join");
    is(pthread_mutex_lock(mutex), EOWNERDEAD, name);
    is(pthread_mutex_consistent(mutex), 0, "it is made consistent");
    is(pthread_mutex_unlock(mutex), 0, "unlocked");
    is(pthread_mutex_lock(mutex), 0, "and locked");
    is(pthread_mutex_unlock(mutex), 0, "and unlocked again");
    pthread_mutex_destroy(mutex);
}

/* The owner ends while another thread waits. */
static _Atomic int locked;

static void *lock_wait_end(void *arg)
{
    pthread_mutex_t *mutex = arg;

    need(pthread_mutex_lock(mutex) == 0, "lock");
    locked = 1;
    /* Bit 31 of the futex word: somebody waits. */
    while (!(atomic_load((_Atomic uint32_t *) &mutex->__data.__lock) &
             FUTEX_WAITERS))
        sched_yield();
    return NULL;
}

static void test_waiter(int protocol, const char *name)
{
    pthread_mutex_t space, *mutex;
    pthread_t thread;

    locked = 0;
    mutex = make_mutex(&space, PTHREAD_PROCESS_PRIVATE, protocol);
    need(pthread_create(&thread, NULL, lock_wait_end, mutex) == 0, "thread");
    while (!locked)
        sched_yield();
    is(pthread_mutex_lock(mutex), EOWNERDEAD, name);
    need(pthread_join(thread, NULL) == 0, "join");
    need(pthread_mutex_consistent(mutex) == 0, "consistent");
    need(pthread_mutex_unlock(mutex) == 0, "unlock");
}

static int end_of(pid_t child)
{
    int status = -1;

    need(waitpid(child, &status, 0) == child, "waitpid");
    return status;
}

static void *sleep_on(void *arg)
{
    (void) pthread_mutex_lock(arg);
    locked = 1;
    for (;;)
        pause();
    return NULL;
}

/* A child that ends by exit_group with two mutexes locked, one of them by
 * another thread. */
static void child_of_two(pthread_mutex_t *one, pthread_mutex_t *two, int how)
{
    pthread_t thread;

    locked = 0;
    if (pthread_mutex_lock(one) || pthread_create(&thread, NULL, sleep_on, two))
        _exit(1);
    while (!locked)
        sched_yield();
    if (how)
        raise(how);
    _exit(7);
}

static void test_process(uint8_t *shared, const char *name)
{
    pthread_mutex_t *one, *two;
    pid_t child;

    one = make_mutex(shared, PTHREAD_PROCESS_SHARED, PTHREAD_PRIO_NONE);
    two = make_mutex(shared + 512, PTHREAD_PROCESS_SHARED, PTHREAD_PRIO_NONE);
    child = fork();
    need(child >= 0, "fork");
    if (!child)
        child_of_two(one, two, 0);
    is(end_of(child), 7 << 8, name);
    is(pthread_mutex_lock(one), EOWNERDEAD, "leaves its own mutex");
    is(pthread_mutex_lock(two), EOWNERDEAD, "and its other thread's");
    need(pthread_mutex_consistent(one) == 0, "consistent");
    need(pthread_mutex_consistent(two) == 0, "consistent");
    need(pthread_mutex_unlock(one) == 0, "unlock");
    need(pthread_mutex_unlock(two) == 0, "unlock");
}

/* Lists by hand. */
typedef struct entry {
    struct robust_list list;
    _Atomic uint32_t word;
} entry_t;

#define ENTRIES 2100 /* more than the kernel walks */

static entry_t entries[ENTRIES], pending;
static struct robust_list_head head;

static void link_entries(int n, bool circle)
{
    for (int i = 0; i < n; i++) {
        entries[i].word = 0;
        entries[i].list.next = i + 1 < n ? &entries[i + 1].list
                               : circle  ? &entries[0].list
                                         : &head.list;
    }
    head.list.next = &entries[0].list;
    head.futex_offset = offsetof(entry_t, word);
    head.list_op_pending = NULL;
    pending.word = 0;
}

typedef struct by_hand {
    int own;          /* so many are ours */
    uint32_t pending; /* flags beside our id in the pending word; ~0: 0 */
} by_hand_t;

static void *end_by_hand(void *arg)
{
    const by_hand_t *what = arg;
    uint32_t tid = (uint32_t) syscall(SYS_gettid);

    for (int i = 0; i < what->own; i++)
        entries[i].word = tid;
    if (head.list_op_pending)
        pending.word = what->pending == ~0U ? 0 : tid | what->pending;
    need(syscall(SYS_set_robust_list, &head, sizeof head) == 0, "list");
    return NULL;
}

static void end_with(int own, uint32_t flags)
{
    by_hand_t what = {own, flags};
    pthread_t thread;

    need(pthread_create(&thread, NULL, end_by_hand, &what) == 0, "thread");
    need(pthread_join(thread, NULL) == 0, "join");
}

static int count_dead(int n)
{
    int dead = 0;

    for (int i = 0; i < n; i++)
        dead += entries[i].word == FUTEX_OWNER_DIED;
    return dead;
}

static void test_by_hand(void)
{
    uint64_t *at = NULL;
    size_t size = 0;

    fails(syscall(SYS_set_robust_list, &head, sizeof head - 1), EINVAL,
          "a list of another size");
    is(syscall(SYS_get_robust_list, 0, &at, &size), 0, "our own list");
    is(size, sizeof head, "has the right size");
    fails(syscall(SYS_get_robust_list, 0, (void *) 8, &size), EFAULT,
          "get_robust_list, nowhere");
    link_entries(3, false);
    end_with(2, 0);
    is(count_dead(3), 2, "two of three were locked");
    is(entries[2].word, 0, "the third is as it was");
    link_entries(ENTRIES, false);
    end_with(ENTRIES, 0);
    is(count_dead(ENTRIES), ROBUST_LIST_LIMIT, "a list is walked so far");
    link_entries(5, true);
    end_with(5, 0);
    is(count_dead(5), 5, "a circle ends, too");
    link_entries(5, false);
    entries[2].list.next = (void *) 64;
    end_with(5, 0);
    is(count_dead(5), 3, "up to an entry that cannot be read");
    link_entries(5, false);
    entries[1].list.next = (void *) ((char *) &entries[2].list + 2);
    end_with(5, 0);
    is(count_dead(5), 2, "up to a word that is misaligned");
    link_entries(2, false);
    head.list_op_pending = &pending.list;
    end_with(1, FUTEX_WAITERS);
    is(pending.word, FUTEX_WAITERS | FUTEX_OWNER_DIED,
       "the pending one, who waits is kept");
    link_entries(2, false);
    head.list_op_pending = &pending.list;
    end_with(1, ~0U);
    is(pending.word, 0, "pending, but free");
    link_entries(3, false);
    head.list_op_pending = &entries[1].list;
    end_with(3, 0);
    is(count_dead(3), 3, "pending and in the list");
}

/* A list in a mapping whose file is gone. */
static void *end_truncated(void *arg)
{
    int fd = *(int *) arg;
    struct robust_list_head *there = mmap(NULL, 0x1000, RW, MAP_SHARED, fd, 0);

    need(there != MAP_FAILED, "mmap");
    there->list.next = &there->list;
    there->list_op_pending = NULL;
    need(syscall(SYS_set_robust_list, there, sizeof *there) == 0, "list");
    need(ftruncate(fd, 0) == 0, "ftruncate");
    return NULL;
}

static void test_truncated(void)
{
    int fd = memfd_create("robust", 0);
    pthread_t thread;

    need(fd >= 0 && ftruncate(fd, 0x1000) == 0, "memfd");
    need(pthread_create(&thread, NULL, end_truncated, &fd) == 0, "thread");
    is(pthread_join(thread, NULL), 0, "a list in a truncated file");
    close(fd);
}

int main(void)
{
    int fd = memfd_create("robust", 0);
    uint8_t *anon = mmap(NULL, 0x1000, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint8_t *file;

    need(fd >= 0 && ftruncate(fd, 0x1000) == 0, "memfd");
    file = mmap(NULL, 0x1000, RW, MAP_SHARED, fd, 0);
    need(anon != MAP_FAILED && file != MAP_FAILED, "mmap");
    test_thread(PTHREAD_PRIO_NONE, "the owner has ended");
    test_thread(PTHREAD_PRIO_INHERIT, "the owner has ended, PI");
    test_waiter(PTHREAD_PRIO_NONE, "the owner ends under a waiter");
    test_waiter(PTHREAD_PRIO_INHERIT, "the owner ends under a waiter, PI");
    test_by_hand();
    test_truncated();
    test_process(anon, "a process ends, shared memory");
    test_process(file, "a process ends, a file");
    return tap_done();
}
