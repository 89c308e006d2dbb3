/* SPDX-License-Identifier: Apache-2.0 */
/* clone and clone3 by hand, for threads: flags, errors, what a thread begins
 * with, the ids that are stored and cleared. */
#include <linux/futex.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tap.h"

#define THREAD                                                          \
    (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | \
     CLONE_SYSVSEM)
#define STACK_SIZE 65536

/*
 * long start(struct clone_args *args, size_t size, fn, arg): clone3, or clone
 * with the same where size is 0. The child calls fn(arg) and exits; it has no
 * TLS of its own unless it is given one, so fn makes system calls by raw()
 * only.
 */
long start(struct clone_args *args, size_t size, void (*fn)(void *), void *arg);
__asm__(".text\n"
        ".global start\n"
        "start:\n"
        "  mov x10, x2\n"
        "  mov x11, x3\n"
        "  cbz x1, 1f\n"
        "  mov x8, #435\n"
        "  svc #0\n"
        "  b 2f\n"
        "1: mov x9, x0\n"
        "  ldr x0, [x9, #0]\n"
        "  ldr x1, [x9, #32]\n"
        "  orr x0, x0, x1\n"
        "  ldr x1, [x9, #40]\n"
        "  ldr x2, [x9, #48]\n"
        "  add x1, x1, x2\n"
        "  ldr x2, [x9, #24]\n"
        "  ldr x3, [x9, #56]\n"
        "  ldr x4, [x9, #16]\n"
        "  mov x8, #220\n"
        "  svc #0\n"
        "2: cbz x0, 3f\n"
        "  ret\n"
        "3: mov x29, xzr\n"
        "  mov x0, x11\n"
        "  blr x10\n"
        "  mov x0, #0\n"
        "  mov x8, #93\n"
        "  svc #0\n");

static long raw(long nr, long a, long b, long c, long d)
{
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;

    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3)
                     : "memory");
    return x0;
}

static uint8_t *stack;

/* What a thread notes about itself. */
typedef struct seen {
    _Atomic int ran;
    uint64_t tls, sp;
    int tid, tid_there;
    const int *there; /* where CHILD_SETTID is to be */
    double v8;
} seen_t;

static void look(void *arg)
{
    seen_t *seen = arg;
    register double v8 __asm__("d8");

    __asm__ volatile("" : "=w"(v8));
    seen->v8 = v8;
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(seen->tls));
    __asm__ volatile("mov %0, sp" : "=r"(seen->sp));
    seen->tid = (int) raw(SYS_gettid, 0, 0, 0, 0);
    if (seen->there)
        seen->tid_there = *seen->there;
    seen->ran = 1;
}

static void wait_zero(_Atomic int *word)
{
    int now;

    while ((now = *word) != 0)
        syscall(SYS_futex, word, FUTEX_WAIT, now, NULL, NULL, 0);
}

static void test_thread(size_t size, const char *name)
{
    static _Atomic int parent, child;
    static uint64_t tls[2];
    seen_t seen = {.there = (const int *) &child};
    struct clone_args args = {
        .flags = THREAD | CLONE_SETTLS | CLONE_PARENT_SETTID |
                 CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID,
        .parent_tid = (uintptr_t) &parent,
        .child_tid = (uintptr_t) &child,
        .stack = (uintptr_t) stack,
        .stack_size = STACK_SIZE,
        .tls = (uintptr_t) tls,
    };
    register double v8 __asm__("d8") = 8.5;
    long tid;

    parent = child = -1;
    __asm__ volatile("" : "+w"(v8));
    tid = start(&args, size, look, &seen);
    __asm__ volatile("" : "+w"(v8));
    ok(tid > 0, name);
    if (tid <= 0)
        return;
    is(parent, tid, "the parent's copy of its id");
    wait_zero(&child);
    is(seen.ran, 1, "it has run when its id is cleared");
    is(seen.tid, tid, "with that id");
    is(seen.tid_there, tid, "which it has found in its own copy");
    is(seen.tls, (uintptr_t) tls, "with its TLS");
    ok(seen.sp > (uintptr_t) stack && seen.sp <= (uintptr_t) stack + STACK_SIZE,
       "on its stack");
    ok(seen.v8 == 8.5, "with its parent's FP registers");
}

/* Nobody tells when it ends: by what it does. */
static void test_plain(void)
{
    seen_t seen = {.ran = 0};
    uint64_t own;
    struct clone_args args = {
        .flags = THREAD, .stack = (uintptr_t) stack, .stack_size = STACK_SIZE};

    __asm__("mrs %0, tpidr_el0" : "=r"(own));
    need(start(&args, 0, look, &seen) > 0, "clone");
    while (!seen.ran)
        sched_yield();
    is(seen.tls, own, "without SETTLS it has its parent's TLS");
}

static void note_directory(void *arg)
{
    char name[64];

    raw(SYS_chdir, (long) "/", 0, 0, 0);
    *(_Atomic long *) arg = raw(SYS_getcwd, (long) name, sizeof name, 0, 0);
}

static void test_own_directory(void)
{
    char before[512], after[512];
    _Atomic long length = 0;
    struct clone_args args = {.flags = THREAD & ~CLONE_FS,
                              .stack = (uintptr_t) stack,
                              .stack_size = STACK_SIZE};

    need(chdir("/tmp") == 0 && getcwd(before, sizeof before), "chdir");
    need(start(&args, 0, note_directory, &length) > 0, "clone");
    while (!length)
        sched_yield();
    is(length, 2, "a thread with a directory of its own changes it");
    need(getcwd(after, sizeof after), "getcwd");
    is_str(after, before, "but not ours");
}

static void never(void *arg)
{
    (void) arg;
    raw(SYS_exit_group, 97, 0, 0, 0);
}

/* A failing call; both forms. */
static long try(uint64_t flags, size_t size, uint64_t stack_at,
                uint64_t stack_size)
{
    struct clone_args args = {
        .flags = flags, .stack = stack_at, .stack_size = stack_size};
    long ret = start(&args, size, never, NULL);

    if (ret < 0) {
        errno = (int) -ret;
        ret = -1;
    }
    return ret;
}

static void test_errors(void)
{
    const uint64_t at = (uintptr_t) stack;
    const size_t size = sizeof(struct clone_args);
    struct clone_args args = {.flags = THREAD, .stack = at};
    static char more[128];

    fails(try(CLONE_VM | CLONE_THREAD, 0, at, STACK_SIZE), EINVAL,
          "THREAD without SIGHAND");
    fails(try(CLONE_SIGHAND, 0, at, STACK_SIZE), EINVAL, "SIGHAND without VM");
    fails(try(THREAD | CLONE_NEWPID, 0, at, STACK_SIZE), EINVAL,
          "THREAD with a PID namespace");
    fails(try(THREAD | CLONE_NEWUSER, 0, at, STACK_SIZE), EINVAL,
          "THREAD with a user namespace");
    fails(try(THREAD | CLONE_NEWNS, 0, at, STACK_SIZE), EINVAL,
          "FS with a mount namespace");
    fails(try(THREAD, size, at, 0), EINVAL, "clone3: a stack without size");
    fails(try(THREAD, size, 0, STACK_SIZE), EINVAL, "a size without stack");
    fails(try(THREAD, size, -4096UL, STACK_SIZE), EINVAL,
          "a stack beyond user space");
    fails(try(THREAD | 17, size, at, STACK_SIZE), EINVAL, "a signal in flags");
    fails(try(THREAD | 1UL << 40, size, at, STACK_SIZE), EINVAL,
          "a flag that is none");
    fails(try(THREAD, 56, at, STACK_SIZE), EINVAL, "too small a structure");
    fails(syscall(SYS_clone3, &args, 8192UL), E2BIG, "too large a structure");
    fails(syscall(SYS_clone3, 64UL, size), EFAULT, "one that is not there");
    memcpy(more, &args, sizeof args);
    more[100] = 1;
    fails(syscall(SYS_clone3, more, sizeof more), E2BIG,
          "one that knows more than the kernel");
    args.stack_size = STACK_SIZE;
    args.exit_signal = 17;
    fails(syscall(SYS_clone3, &args, size), EINVAL,
          "a thread with an exit signal");
    args.exit_signal = 65;
    args.flags = 0;
    fails(syscall(SYS_clone3, &args, size), EINVAL, "a signal that is none");
    args.exit_signal = 0;
    args.set_tid_size = 1;
    fails(syscall(SYS_clone3, &args, size), EINVAL, "ids that are nowhere");
    args.set_tid_size = 0;
    args.set_tid = (uintptr_t) more;
    fails(syscall(SYS_clone3, &args, size), EINVAL, "no ids somewhere");
    args.set_tid = 64;
    args.set_tid_size = 1;
    fails(syscall(SYS_clone3, &args, size), EFAULT, "ids that are not there");
}

/* The stores of ids may fail, and nobody cares. */
static void test_bad_ids(void)
{
    seen_t seen = {.ran = 0};
    struct clone_args args = {
        .flags = THREAD | CLONE_PARENT_SETTID | CLONE_CHILD_SETTID |
                 CLONE_CHILD_CLEARTID,
        .parent_tid = 64,
        .child_tid = 64,
        .stack = (uintptr_t) stack,
        .stack_size = STACK_SIZE,
    };

    ok(start(&args, 0, look, &seen) > 0, "ids can be stored nowhere");
    while (!seen.ran)
        sched_yield();
    ok(seen.ran, "the thread runs");
}

/* But no child is made whose descriptor cannot be told. */
static void test_bad_pidfd(void)
{
    static const int constant = -1;
    int *bad[] = {(int *) 64, (int *) (uintptr_t) &constant};

    for (int i = 0; i < 2; i++) {
        errno = 0;
        long pid = syscall(SYS_clone, CLONE_PIDFD | SIGCHLD, 0L, bad[i], 0, 0);

        if (pid == 0)
            _exit(0);
        fails(pid, EFAULT, "nowhere for the pidfd");
        fails(waitpid(-1, NULL, __WALL), ECHILD, "there is no child");
    }
}

int main(void)
{
    stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(stack != MAP_FAILED, "stack");
    test_thread(0, "clone makes a thread");
    test_thread(sizeof(struct clone_args), "clone3 makes a thread");
    test_thread(64, "and with its first structure");
    test_plain();
    test_own_directory();
    test_errors();
    test_bad_ids();
    test_bad_pidfd();
    return tap_done();
}
