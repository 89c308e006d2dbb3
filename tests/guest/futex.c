/* SPDX-License-Identifier: Apache-2.0 */
/* futex: errors and their order, waiting and waking between threads, private
 * and shared, requeueing, PI, futex_waitv. */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>

#include "mem.h"
#include "tap.h"

#define PRIVATE FUTEX_PRIVATE_FLAG
#define RW      (PROT_READ | PROT_WRITE)

typedef _Atomic uint32_t word_t;

static long futex(const volatile void *word, int op, uint32_t value,
                  const void *fourth, const volatile void *second,
                  uint32_t last)
{
    return syscall(SYS_futex, word, op, value, fourth, second, last);
}

static uint8_t *map(size_t len, int prot, int flags, int fd)
{
    uint8_t *p = mmap(NULL, len, prot, flags, fd, 0);

    need(p != MAP_FAILED, "mmap");
    return p;
}

static const struct timespec soon = {.tv_nsec = 1000};

static void test_wait_errors(void)
{
    const struct timespec bad = {.tv_nsec = 1000000000};
    static word_t word;
    uint8_t *none = map(0x3000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);

    fails(futex(&word, FUTEX_WAIT | PRIVATE, 1, NULL, NULL, 0), EAGAIN,
          "another value");
    fails(futex(&word, FUTEX_WAIT | PRIVATE, 0, &soon, NULL, 0), ETIMEDOUT,
          "time runs out");
    fails(futex(&word, FUTEX_WAIT, 0, &soon, NULL, 0), ETIMEDOUT,
          "time runs out, shared");
    fails(futex(&word, FUTEX_WAIT, 0, &bad, NULL, 0), EINVAL,
          "a timeout that is none");
    fails(futex((char *) &word + 1, FUTEX_WAIT, 0, none, NULL, 0), EFAULT,
          "the timeout is looked at first");
    fails(futex(none, FUTEX_WAIT, 0, &bad, NULL, 0), EINVAL,
          "whether it is one, too");
    fails(futex(none + 1, FUTEX_WAIT, 0, NULL, NULL, 0), EINVAL,
          "alignment before access");
    fails(futex(none, FUTEX_WAIT, 0, NULL, NULL, 0), EFAULT, "no access");
    fails(futex(none, FUTEX_WAIT | PRIVATE, 0, NULL, NULL, 0), EFAULT,
          "no access, private");
    munmap(none, 0x3000);
}

static void test_errors(void)
{
    static word_t word;
    uint8_t *none = map(0x3000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    uint8_t *lazy = map(0x3000, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    unsigned char present = 1;

    fails(futex(none, FUTEX_WAKE, 1, NULL, NULL, 0), EFAULT,
          "a shared futex is looked for");
    is(futex(none, FUTEX_WAKE | PRIVATE, 1, NULL, NULL, 0), 0,
       "a private one is not");
    fails(futex((void *) (1UL << 55), FUTEX_WAKE | PRIVATE, 1, NULL, NULL, 0),
          EFAULT, "but beyond user space");
    fails(futex(lazy + 2, FUTEX_WAKE, 1, NULL, NULL, 0), EINVAL, "misaligned");
    fails(futex(lazy + 2, FUTEX_WAKE | PRIVATE, 1, NULL, NULL, 0), EINVAL,
          "misaligned, private");
    fails(futex(&word, FUTEX_WAKE_BITSET, 1, NULL, NULL, 0), EINVAL,
          "no bits to wake");
    fails(futex(&word, FUTEX_WAIT_BITSET, 0, NULL, NULL, 0), EINVAL,
          "no bits to wait for");
    fails(futex(none, FUTEX_WAKE_BITSET, 1, NULL, NULL, 0), EINVAL,
          "no bits to wake where nothing is");
    fails(futex(none, FUTEX_WAIT_BITSET, 0, NULL, NULL, 0), EINVAL,
          "no bits to wait for there");
    fails(futex(none, FUTEX_WAIT_REQUEUE_PI, 0, NULL, none, 0), EINVAL,
          "from a word to itself");
    fails(futex(none, FUTEX_CMP_REQUEUE_PI, 1, NULL, none, 0), EINVAL,
          "the same by another");
    fails(futex(none, FUTEX_CMP_REQUEUE_PI, 2, NULL, lazy, 0), EINVAL,
          "two are woken to one lock");
    fails(futex(none, FUTEX_REQUEUE, 1, (void *) -1L, lazy, 0), EINVAL,
          "a count below zero comes before access");
    fails(futex(none + 1, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0), EFAULT,
          "an unlocked word is read first");
    fails(futex((char *) &word + 2, FUTEX_UNLOCK_PI, 0, NULL, NULL, 0), EPERM,
          "and its owner looked at");
    fails(futex(&word, FUTEX_WAKE | FUTEX_CLOCK_REALTIME, 1, NULL, NULL, 0),
          ENOSYS, "a clock for what has no timeout");
    fails(futex(&word, FUTEX_WAIT | FUTEX_CLOCK_REALTIME, 0, &soon, NULL, 0),
          ENOSYS, "a clock for FUTEX_WAIT");
    fails(futex(&word, 14, 0, NULL, NULL, 0), ENOSYS, "no such command");
    fails(futex(&word, FUTEX_FD, 0, NULL, NULL, 0), ENOSYS, "FUTEX_FD");
    fails(futex(&word, FUTEX_REQUEUE | PRIVATE, 1, (void *) 1, lazy + 1, 0),
          EINVAL, "the second word is misaligned");
    fails(futex(none, FUTEX_CMP_REQUEUE | PRIVATE, 1, (void *) 1, lazy + 1, 0),
          EINVAL, "that comes before the first word's value");
    fails(futex(none, FUTEX_CMP_REQUEUE, 1, (void *) 1, lazy + 1, 0), EFAULT,
          "but behind the search for a shared one");
    fails(futex(&word, FUTEX_CMP_REQUEUE, 1, (void *) 1, &word, 1), EAGAIN,
          "requeue, another value");
    fails(futex(&word, FUTEX_CMP_REQUEUE, -1, (void *) 1, &word, 0), EINVAL,
          "requeue, a count below zero");
    fails(futex(&word, FUTEX_WAKE_OP | PRIVATE, 1, (void *) 1, none, 0), EFAULT,
          "wake-op, no access to the second word");
    is(futex(none, FUTEX_WAKE_OP | PRIVATE, 1, (void *) 1, &word,
             FUTEX_OP(FUTEX_OP_ADD, 5, FUTEX_OP_CMP_EQ, 0)),
       0, "wake-op, the first is not looked at");
    is(word, 5, "it has added");
    is(mincore(lazy, 0x1000, &present), 0, "mincore");
    is(present & 1, 0, "none of this has touched the page");
    is(futex(lazy, FUTEX_WAKE | PRIVATE, 1, NULL, NULL, 0), 0,
       "a private wake on an untouched page");
    is(mincore(lazy, 0x1000, &present), 0, "mincore");
    is(present & 1, 0, "does not touch it");
    munmap(none, 0x3000);
    munmap(lazy, 0x3000);
}

static void test_read_only(void)
{
    uint8_t *p = map(0x1000, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    int fd = memfd_create("futex", 0);

    need(fd >= 0 && ftruncate(fd, 0x2000) == 0, "memfd");
    uint8_t *file = map(0x2000, PROT_READ, MAP_SHARED, fd);

    *p = 0;
    need(mprotect(p, 0x1000, PROT_READ) == 0, "mprotect");
    fails(futex(p, FUTEX_WAIT | PRIVATE, 1, NULL, NULL, 0), EAGAIN,
          "a private futex can be read-only");
    fails(futex(p, FUTEX_WAIT, 1, NULL, NULL, 0), EFAULT,
          "a shared one in private memory cannot");
    fails(futex(p, FUTEX_WAKE, 1, NULL, NULL, 0), EFAULT, "nor be woken");
    fails(futex(p, FUTEX_LOCK_PI | PRIVATE, 0, NULL, NULL, 0), EFAULT,
          "nor be locked");
    fails(futex(file, FUTEX_WAIT, 1, NULL, NULL, 0), EAGAIN,
          "in a file it can be");
    is(futex(file, FUTEX_WAKE, 1, NULL, NULL, 0), 0, "and be woken");
    need(ftruncate(fd, 0x1000) == 0, "ftruncate");
    fails(futex(file + 0x1000, FUTEX_WAIT, 0, NULL, NULL, 0), EFAULT,
          "the file is too short: waiting");
    fails(futex(file + 0x1000, FUTEX_WAIT | PRIVATE, 0, NULL, NULL, 0), EFAULT,
          "privately");
    fails(futex(file + 0x1000, FUTEX_WAKE, 1, NULL, NULL, 0), EFAULT, "waking");
    uint8_t *rw = map(0x2000, RW, MAP_SHARED, fd);
    fails(futex(rw + 0x1000, FUTEX_LOCK_PI, 0, NULL, NULL, 0), EFAULT,
          "locking");
    munmap(file, 0x2000);
    munmap(rw, 0x2000);
    munmap(p, 0x1000);
    close(fd);
}

/* A thread that waits on one word with one operation. */
typedef struct waiter {
    pthread_t thread;
    volatile void *word;
    int op;
    uint32_t bits;
    const struct timespec *until;
    long result;
    int error;
    _Atomic pid_t tid;
} waiter_t;

static void *wait_main(void *arg)
{
    waiter_t *w = arg;

    w->tid = (pid_t) syscall(SYS_gettid);
    w->result = futex(w->word, w->op, 0, w->until, NULL, w->bits);
    w->error = errno;
    return NULL;
}

static void begin(waiter_t *w, volatile void *word, int op, uint32_t bits)
{
    *w = (waiter_t){.word = word, .op = op, .bits = bits};
    need(pthread_create(&w->thread, NULL, wait_main, w) == 0, "thread");
}

/* Wake until one is woken: the waiter may not be there yet. */
static bool wake(volatile void *word, int op, uint32_t bits)
{
    long n;

    while ((n = futex(word, op, 1, NULL, NULL, bits)) == 0)
        sched_yield();
    return n == 1;
}

static bool woken(waiter_t *w)
{
    need(pthread_join(w->thread, NULL) == 0, "join");
    if (w->result)
        tap_say("# waiter: %ld, %s", w->result, tap_errname(w->error));
    return w->result == 0;
}

static void wait_and_wake(volatile void *here, volatile void *there, int flags,
                          const char *name)
{
    waiter_t w;

    begin(&w, here, FUTEX_WAIT | flags, 0);
    ok(wake(there, FUTEX_WAKE | flags, 0) && woken(&w), name);
}

static void test_wake(void)
{
    static word_t word;
    int fd = memfd_create("futex", 0);
    uint8_t *anon = map(0x1000, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    uint8_t *shared = map(0x1000, RW, MAP_SHARED | MAP_ANONYMOUS, -1);

    need(fd >= 0 && ftruncate(fd, 0x1000) == 0, "memfd");
    uint8_t *one = map(0x1000, RW, MAP_SHARED, fd);
    uint8_t *two = map(0x1000, RW, MAP_SHARED, fd);

    wait_and_wake(&word, &word, PRIVATE, "private, in the program's data");
    wait_and_wake(&word, &word, 0, "shared, in the program's data");
    wait_and_wake(anon, anon, PRIVATE, "private, in anonymous memory");
    wait_and_wake(anon, anon, 0, "shared, in anonymous memory");
    wait_and_wake(shared, shared, PRIVATE, "private, in shared memory");
    wait_and_wake(shared, shared, 0, "shared, in shared memory");
    wait_and_wake(one, two, 0, "through two mappings of a file");
    munmap(one, 0x1000);
    munmap(two, 0x1000);
    munmap(shared, 0x1000);
    munmap(anon, 0x1000);
    close(fd);
}

static void test_bits(void)
{
    static word_t word;
    waiter_t w;

    begin(&w, &word, FUTEX_WAIT_BITSET | PRIVATE, 2);
    /* It waits for sure when it can be moved from one word to the same. */
    while (futex(&word, FUTEX_CMP_REQUEUE | PRIVATE, 0, (void *) 1, &word, 0) ==
           0)
        sched_yield();
    is(futex(&word, FUTEX_WAKE_BITSET | PRIVATE, 1, NULL, NULL, 4), 0,
       "other bits wake nobody");
    is(futex(&word, FUTEX_WAKE_BITSET | PRIVATE, 1, NULL, NULL, 6), 1,
       "its own do");
    ok(woken(&w), "the waiter is woken");
}

static void test_requeue(void)
{
    static word_t first, second;
    waiter_t w[3];
    int moved = 0, waked = 0;

    for (int i = 0; i < 3; i++)
        begin(&w[i], &first, FUTEX_WAIT | PRIVATE, 0);
    while (moved < 3)
        moved += (int) futex(&first, FUTEX_CMP_REQUEUE | PRIVATE, 0, (void *) 3,
                             &second, 0);
    is(moved, 3, "three waiters are moved");
    is(futex(&first, FUTEX_WAKE | PRIVATE, 3, NULL, NULL, 0), 0,
       "nobody is left");
    waked = (int) futex(&second, FUTEX_WAKE | PRIVATE, 2, NULL, NULL, 0);
    is(waked, 2, "two are woken where they are now");
    is(futex(&first, FUTEX_WAKE_OP | PRIVATE, 1, (void *) 1, &second,
             FUTEX_OP(FUTEX_OP_SET, 7, FUTEX_OP_CMP_EQ, 0)),
       1, "the third by an operation on its word");
    ok(woken(&w[0]) && woken(&w[1]) && woken(&w[2]), "all are back");
    is(second, 7, "the operation has been done");
}

/* The waiter's memory goes away, and comes back. */
static void test_unmapped(void)
{
    uint8_t *p = map(0x1000, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    waiter_t w;

    begin(&w, p, FUTEX_WAIT | PRIVATE, 0);
    while (futex(p, FUTEX_CMP_REQUEUE | PRIVATE, 0, (void *) 1, p, 0) == 0)
        sched_yield();
    need(munmap(p, 0x1000) == 0, "munmap");
    need(mmap(p, 0x1000, RW, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
             p,
         "mmap");
    is(*p, 0, "memory mapped where a thread waits is zero");
    ok(wake(p, FUTEX_WAKE | PRIVATE, 0) && woken(&w),
       "and the thread is woken there");
    munmap(p, 0x1000);
}

static word_t pi;

static void *lock_pi(void *arg)
{
    long *result = arg;

    *result = futex(&pi, FUTEX_LOCK_PI | PRIVATE, 0, NULL, NULL, 0);
    if (*result == 0 && (pi & FUTEX_TID_MASK) == syscall(SYS_gettid))
        *result = futex(&pi, FUTEX_UNLOCK_PI | PRIVATE, 0, NULL, NULL, 0);
    return NULL;
}

static void test_pi(void)
{
    uint32_t self = (uint32_t) syscall(SYS_gettid);
    pthread_t thread;
    long result = -1;

    is(futex(&pi, FUTEX_LOCK_PI | PRIVATE, 0, NULL, NULL, 0), 0, "PI: locked");
    is(pi, self, "the word has our id");
    fails(futex(&pi, FUTEX_LOCK_PI | PRIVATE, 0, NULL, NULL, 0), EDEADLK,
          "not a second time");
    need(pthread_create(&thread, NULL, lock_pi, &result) == 0, "thread");
    while (!(pi & FUTEX_WAITERS))
        sched_yield();
    is(futex(&pi, FUTEX_UNLOCK_PI | PRIVATE, 0, NULL, NULL, 0), 0,
       "given to who waits");
    need(pthread_join(thread, NULL) == 0, "join");
    is(result, 0, "who has had it");
    is(pi, 0, "free again");
    is(futex(&pi, FUTEX_TRYLOCK_PI | PRIVATE, 0, NULL, NULL, 0), 0, "tried");
    is(futex(&pi, FUTEX_UNLOCK_PI | PRIVATE, 0, NULL, NULL, 0), 0, "unlocked");
    pi = 1;
    fails(futex(&pi, FUTEX_UNLOCK_PI | PRIVATE, 0, NULL, NULL, 0), EPERM,
          "not ours to unlock");
    pi = 0;
}

/* struct futex_waitv, not in all headers. */
struct waitv {
    uint64_t value, address;
    uint32_t flags, reserved;
};

static long waitv(const struct waitv *v, unsigned nr, unsigned flags,
                  const struct timespec *until, int clock)
{
    return syscall(449, v, nr, flags, until, clock);
}

static struct waitv two[2];

static void *wait_two(void *arg)
{
    *(long *) arg = waitv(two, 2, 0, NULL, 0);
    return NULL;
}

static void test_waitv(void)
{
    static word_t a, b;
    const struct timespec past = {0}, bad = {.tv_nsec = -1};
    struct waitv v = {.address = (uintptr_t) &a, .flags = 2 | 128};
    pthread_t thread;
    long result = -1;

    fails(waitv(&v, 1, 1, NULL, 0), EINVAL, "waitv: no flags");
    fails(waitv(&v, 0, 0, NULL, 0), EINVAL, "some words");
    fails(waitv(&v, 129, 0, NULL, 0), EINVAL, "not too many");
    fails(waitv(NULL, 1, 0, NULL, 0), EINVAL, "nowhere");
    fails(waitv((void *) 64, 1, 0, NULL, 0), EFAULT, "not readable");
    fails(waitv(&v, 1, 0, &past, 7), EINVAL, "no such clock");
    fails(waitv(&v, 1, 0, &bad, CLOCK_MONOTONIC), EINVAL, "no time");
    fails(waitv(&v, 1, 0, &past, CLOCK_MONOTONIC), ETIMEDOUT, "in the past");
    v.value = 1;
    fails(waitv(&v, 1, 0, NULL, 0), EAGAIN, "another value");
    v.flags = 128;
    fails(waitv(&v, 1, 0, NULL, 0), EINVAL, "no size");
    v.flags = 2;
    v.address++;
    fails(waitv(&v, 1, 0, NULL, 0), EINVAL, "misaligned");
    v.address = 64;
    fails(waitv(&v, 1, 0, NULL, 0), EFAULT, "not mapped");
    two[0] = (struct waitv){.address = (uintptr_t) &a, .flags = 2};
    two[1] = (struct waitv){.address = (uintptr_t) &b, .flags = 2 | 128};
    need(pthread_create(&thread, NULL, wait_two, &result) == 0, "thread");
    ok(wake(&b, FUTEX_WAKE | PRIVATE, 0), "one of two words wakes");
    need(pthread_join(thread, NULL) == 0, "join");
    is(result, 1, "it is the second");
}

int main(void)
{
    test_wait_errors();
    test_errors();
    test_read_only();
    test_wake();
    test_bits();
    test_requeue();
    test_unmapped();
    test_pi();
    test_waitv();
    return tap_done();
}
