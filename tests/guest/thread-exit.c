/* SPDX-License-Identifier: Apache-2.0 */
/* How threads and their process end: in any order, by any of them. */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tap.h"

static _Atomic int *shared;

/* Run in a child; its status as wait gives it. */
static int status_of(void (*fn)(void))
{
    int status = -1;
    pid_t child;

    *shared = 0;
    child = fork();
    need(child >= 0, "fork");
    if (!child) {
        fn();
        _exit(99);
    }
    need(waitpid(child, &status, 0) == child, "waitpid");
    return status;
}

static void start(void *(*fn)(void *) )
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, fn, NULL))
        _exit(98);
}

static void *group_exit(void *arg)
{
    (void) arg;
    _exit(5);
}

static void thread_ends_all(void)
{
    start(group_exit);
    for (;;)
        pause();
}

static void *spin(void *arg)
{
    (void) arg;
    for (;;)
        *shared |= 1;
    return NULL;
}

static void end_spinners(void)
{
    for (int i = 0; i < 3; i++)
        start(spin);
    while (!*shared)
        sched_yield();
    _exit(6);
}

static void *wait_for_main(void *arg)
{
    (void) arg;
    /* Its id is cleared when the main thread is gone. */
    while (*shared == 0)
        sched_yield();
    for (int i = 0; i < 100; i++)
        sched_yield();
    *shared = 2;
    syscall(SYS_exit, 9);
    return NULL;
}

static void main_ends_first(void)
{
    start(wait_for_main);
    *shared = 1;
    syscall(SYS_exit, 3);
}

static void *end_raw(void *arg)
{
    (void) arg;
    syscall(SYS_exit, 4);
    return NULL;
}

static void main_ends_last(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, end_raw, NULL))
        _exit(98);
    if (pthread_join(thread, NULL))
        _exit(97);
    syscall(SYS_exit, 8);
}

static void *thread_of_the_dead(void *arg)
{
    pthread_t thread;

    (void) arg;
    while (*shared == 0)
        sched_yield();
    /* More threads, by one that is not the first. */
    for (int i = 0; i < 5; i++) {
        if (pthread_create(&thread, NULL, end_raw, NULL) ||
            pthread_join(thread, NULL))
            _exit(96);
    }
    if (syscall(SYS_tgkill, getpid(), getpid(), 0))
        _exit(95); /* the first one's id is not free */
    _exit(11);
}

static void others_go_on(void)
{
    start(thread_of_the_dead);
    *shared = 1;
    pthread_exit(NULL);
}

static void *fault(void *arg)
{
    *(volatile int *) arg = 1;
    return NULL;
}

static void thread_faults(void)
{
    start(fault);
    for (;;)
        pause();
}

/* The only thread of the child, and the first of its process. */
static void forked_here(void)
{
    pthread_t thread;

    if (syscall(SYS_gettid) != getpid())
        _exit(94);
    if (pthread_create(&thread, NULL, end_raw, NULL) ||
        pthread_join(thread, NULL))
        _exit(91);
    syscall(SYS_exit, 13);
}

static void *fork_here(void *arg)
{
    int status = 0;
    pid_t child = fork();

    (void) arg;
    if (child == 0)
        forked_here();
    if (child < 0 || waitpid(child, &status, 0) != child)
        _exit(93);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) + 1 : 92);
}

static void thread_forks(void)
{
    start(fork_here);
    for (;;)
        pause();
}

/* A detached thread unmaps the stack it stands on and exits: no memory of its
 * own is left, and what comes to lie there is not touched. */
static uint8_t *own_stack;
#define OWN_STACK 0x40000UL

__attribute__((noinline)) static void unmap_and_exit(void *at, size_t len)
{
    register long x0 __asm__("x0") = (long) at;
    register long x1 __asm__("x1") = (long) len;
    register long x8 __asm__("x8") = SYS_munmap;

    __asm__ volatile("svc #0\n"
                     "mov x8, #93\n"
                     "mov x0, #0\n"
                     "svc #0\n"
                     : "+r"(x0)
                     : "r"(x1), "r"(x8)
                     : "memory");
    __builtin_unreachable();
}

static int on_own_stack(void *arg)
{
    (void) arg;
    unmap_and_exit(own_stack, OWN_STACK);
    return 0;
}

static bool unmapped(void)
{
    unsigned char present;

    return mincore(own_stack, 0x1000, &present) == -1 && errno == ENOMEM;
}

static void test_own_stack(void)
{
    bool zero = true;

    for (int i = 0; i < 20; i++) {
        own_stack = mmap(NULL, OWN_STACK, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        need(own_stack != MAP_FAILED, "mmap");
        need(clone(on_own_stack, own_stack + OWN_STACK,
                   CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
                       CLONE_THREAD | CLONE_SYSVSEM,
                   NULL) > 0,
             "clone");
        while (!unmapped())
            sched_yield();
        uint8_t *again = mmap(own_stack, OWN_STACK, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        need(again == own_stack, "mmap");
        for (size_t at = 0; at < OWN_STACK; at += 64)
            zero &= again[at] == 0;
        munmap(again, OWN_STACK);
    }
    ok(zero, "a thread unmaps its stack and exits: new memory there is zero");
}

int main(void)
{
    shared = mmap(NULL, 0x1000, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(shared != MAP_FAILED, "mmap");
    is(status_of(thread_ends_all), 5 << 8, "a thread ends the process");
    is(status_of(end_spinners), 6 << 8, "others run when it ends");
    /* The last one's, before 5.17 the main thread's. */
    int status = status_of(main_ends_first);
    ok(status == 9 << 8 || status == 3 << 8, "the main thread ends first");
    is(*shared, 2, "and another has gone on");
    is(status_of(main_ends_last), 8 << 8, "the main thread ends last");
    is(status_of(others_go_on), 11 << 8, "others go on and make threads");
    is(status_of(thread_faults), SIGSEGV, "a thread's fault ends all");
    is(status_of(thread_forks), 14 << 8, "a thread forks");
    test_own_stack();
    return tap_done();
}
