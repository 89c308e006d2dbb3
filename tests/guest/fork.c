/* SPDX-License-Identifier: Apache-2.0 */
/* fork: what the child has, what it shares, and what stays the parent's. */
#include "mem.h"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

typedef int child_t(void *arg);

/* Run `body` in a fork child; its return value is the exit status. */
static pid_t start(child_t *body, void *arg)
{
    pid_t pid = fork();

    need(pid >= 0, "fork");
    if (pid == 0)
        _exit(body(arg));
    return pid;
}

/* The exit status, or -1 when it did not exit. */
static int finish(pid_t pid)
{
    int status;

    need(waitpid(pid, &status, 0) == pid, "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int run(child_t *body, void *arg)
{
    return finish(start(body, arg));
}

/* --- identity */

static pid_t parent_pid;

static int child_ids(void *arg)
{
    pid_t pid = getpid();

    (void) arg;
    return pid != parent_pid && getppid() == parent_pid &&
                   syscall(SYS_gettid) == pid
               ? 42
               : 1;
}

static void test_ids(void)
{
    pid_t pid;
    int status;

    parent_pid = getpid();
    is(run(child_ids, NULL), 42,
       "a child has a pid of its own, which is its "
       "tid, and its parent");
    is(getpid(), parent_pid, "the parent keeps its pid");
    pid = start(child_ids, NULL);
    is(wait4(pid, &status, 0, NULL), pid, "wait4 finds it");
    is(status, 42 << 8, "its status is what it exited with");
    fails(waitpid(pid, &status, 0), ECHILD, "a child is reaped once");
    fails(waitpid(-1, &status, 0), ECHILD, "and then there is none");
}

/* --- registers over the call */

static long raw_fork(void)
{
    register long x8 __asm__("x8") = SYS_clone;
    register long x0 __asm__("x0") = SIGCHLD;
    register long x1 __asm__("x1") = 0;
    register long x2 __asm__("x2") = 0x1234567812345678;
    register long x3 __asm__("x3") = 0x2345678923456789;
    register long x4 __asm__("x4") = 0x3456789a3456789a;
    long bad;

    /* The parent and the child both look at all that a system call keeps. */
    __asm__ volatile(
        "mov x9, #0x111\n\tmov x15, #0x2222\n\tmov x28, #0x3333\n\t"
        "fmov d0, #1.5\n\tfmov d8, #2.5\n\tfmov d15, #3.5\n\t"
        "movi v31.16b, #0x55\n\tmovi v16.16b, #0xcc\n\t"
        "svc #0\n\t"
        "mov x5, #0\n\t"
        "cmp x9, #0x111\n\tcinc x5, x5, ne\n\t"
        "mov x6, #0x2222\n\tcmp x15, x6\n\tcinc x5, x5, ne\n\t"
        "mov x6, #0x3333\n\tcmp x28, x6\n\tcinc x5, x5, ne\n\t"
        "fmov d1, #1.5\n\tfcmp d0, d1\n\tcinc x5, x5, ne\n\t"
        "fmov d1, #2.5\n\tfcmp d8, d1\n\tcinc x5, x5, ne\n\t"
        "fmov d1, #3.5\n\tfcmp d15, d1\n\tcinc x5, x5, ne\n\t"
        "mov x6, #0x5555555555555555\n\tmov x7, v31.d[1]\n\tcmp x6, x7\n\t"
        "cinc x5, x5, ne\n\t"
        "mov x6, #0xcccccccccccccccc\n\tmov x7, v16.d[1]\n\tcmp x6, x7\n\t"
        "cinc x5, x5, ne\n\t"
        "mov %1, x5"
        : "+r"(x0), "=r"(bad), "+r"(x1), "+r"(x2), "+r"(x3), "+r"(x4)
        : "r"(x8)
        : "memory", "cc", "x5", "x6", "x7", "x9", "x15", "x28", "v0", "v1",
          "v8", "v15", "v16", "v31");
    if (x1 != 0 || x2 != 0x1234567812345678 || x3 != 0x2345678923456789 ||
        x4 != 0x3456789a3456789a)
        bad += 100;
    if (x0 == 0)
        _exit(bad ? 1 : 7);
    return bad ? -1 : x0;
}

static void test_registers(void)
{
    long pid = raw_fork();

    ok(pid > 0, "the parent's registers are as they were");
    is(finish((pid_t) pid), 7, "the child's are the parent's");
}

/* --- memory */

typedef struct talk {
    int to_child[2], to_parent[2];
} talk_t;

static void talk_open(talk_t *t)
{
    need(pipe(t->to_child) == 0 && pipe(t->to_parent) == 0, "pipe");
}

static void talk_close(talk_t *t)
{
    for (int i = 0; i < 2; i++) {
        close(t->to_child[i]);
        close(t->to_parent[i]);
    }
}

static void say(int fd)
{
    need(write(fd, "x", 1) == 1, "write");
}

static void hear(int fd)
{
    char c;

    need(read(fd, &c, 1) == 1, "read");
}

static int data = 11;
static int bss;

typedef struct regions {
    talk_t talk;
    int *touched, *untouched, *heap, *stack;
    int *shared, *file_shared, *file_private;
} regions_t;

static int child_memory(void *arg)
{
    regions_t *r = arg;
    bool good;

    good = data == 11 && bss == 0 && *r->touched == 12 && *r->untouched == 0 &&
           *r->heap == 13 && *r->stack == 14 && *r->shared == 15 &&
           *r->file_shared == 16 && *r->file_private == 17;
    data = bss = *r->touched = *r->untouched = *r->heap = *r->stack = 99;
    *r->shared = *r->file_shared = *r->file_private = 98;
    say(r->talk.to_parent[1]);
    hear(r->talk.to_child[0]);
    /* The parent has written to all of them meanwhile. */
    good = good && data == 99 && bss == 99 && *r->touched == 99 &&
           *r->untouched == 99 && *r->heap == 99 && *r->stack == 99 &&
           *r->file_private == 98;
    return good && *r->shared == 97 && *r->file_shared == 97 ? 5 : 1;
}

static int *map_file(int fd, int flags)
{
    int *p = mmap(NULL, PAGE, RW, flags, fd, 0);

    need(GOOD(p), "mmap of a file");
    return p;
}

static void test_memory(void)
{
    char name[] = "/tmp/fork-XXXXXX";
    int on_stack = 14, fd = mkstemp(name), fd2;
    regions_t r;
    pid_t pid;

    need(fd >= 0 && unlink(name) == 0 && ftruncate(fd, PAGE) == 0, "file");
    fd2 = memfd_create("fork", 0);
    need(fd2 >= 0 && ftruncate(fd2, PAGE) == 0, "memfd");
    talk_open(&r.talk);
    r.touched = (int *) map_rw(PAGE);
    r.untouched = (int *) map_rw(PAGE);
    r.heap = malloc(sizeof(int));
    r.stack = &on_stack;
    r.shared = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(GOOD(r.shared) && r.heap, "memory");
    r.file_shared = map_file(fd, MAP_SHARED);
    r.file_private = map_file(fd2, MAP_PRIVATE);
    *r.touched = 12;
    *r.heap = 13;
    *r.shared = 15;
    *r.file_shared = 16;
    *r.file_private = 17;
    pid = start(child_memory, &r);
    hear(r.talk.to_parent[0]);
    ok(data == 11 && bss == 0, "the child's data and bss are its own");
    is(*r.touched, 12, "so is a page touched before");
    is(*r.untouched, 0, "and one that was not");
    ok(*r.heap == 13 && on_stack == 14, "heap and stack too");
    is(*r.file_private, 17, "and a private copy of a file's page");
    is(*r.shared, 98, "shared anonymous memory is shared");
    is(*r.file_shared, 98, "a shared file, too");
    data = bss = *r.touched = *r.untouched = *r.heap = on_stack = 50;
    *r.file_private = 50;
    *r.shared = *r.file_shared = 97;
    say(r.talk.to_child[1]);
    is(finish(pid), 5,
       "the child found what it should, before and after the "
       "parent wrote");
    ok(data == 50 && *r.touched == 50 && *r.heap == 50 && on_stack == 50,
       "the parent keeps what it wrote");
    talk_close(&r.talk);
    munmap(r.touched, PAGE);
    munmap(r.untouched, PAGE);
    munmap(r.shared, PAGE);
    munmap(r.file_shared, PAGE);
    munmap(r.file_private, PAGE);
    free(r.heap);
    close(fd);
    close(fd2);
}

#define MANY (64 * MIB)

static uint64_t pattern(uint64_t at, uint64_t seed)
{
    return (at + seed) * 0x9e3779b97f4a7c15UL;
}

static uint64_t wrong_words(const uint64_t *p, size_t size, uint64_t seed)
{
    uint64_t wrong = 0;

    for (size_t i = 0; i < size / 8; i++)
        wrong += p[i] != pattern(i, seed);
    return wrong;
}

static void fill(uint64_t *p, size_t size, uint64_t seed)
{
    for (size_t i = 0; i < size / 8; i++)
        p[i] = pattern(i, seed);
}

static int child_words(void *arg)
{
    uint64_t *p = arg;

    if (wrong_words(p, MANY, 1))
        return 1;
    fill(p, MANY, 2);
    return wrong_words(p, MANY, 2) ? 2 : 3;
}

static void test_words(void)
{
    uint64_t *p = (uint64_t *) map_rw(MANY);
    pid_t pid;

    fill(p, MANY, 1);
    pid = start(child_words, p);
    is(wrong_words(p, MANY, 1), 0,
       "64 MiB, word by word, while the child "
       "writes its own");
    is(finish(pid), 3, "which the child had too");
    is(wrong_words(p, MANY, 1), 0, "and afterwards");
    munmap(p, MANY);
}

/* Memory that the parent gave back is nobody's: the next mapping is zero. */
static int child_clean(void *arg)
{
    uint64_t *p = mmap(arg, 4 * MIB, RW, ANON | MAP_FIXED, -1, 0);

    if (!GOOD(p))
        return 1;
    for (size_t i = 0; i < 4 * MIB / 8; i++)
        if (p[i])
            return 2;
    memset(p, 0xee, 4 * MIB);
    munmap(p, 4 * MIB);
    return 3;
}

static void test_retained(void)
{
    char *p = map_rw(4 * MIB);
    pid_t pid;

    memset(p, 0x77, 4 * MIB);
    munmap(p, 4 * MIB);
    pid = start(child_clean, p);
    is(finish(pid), 3, "what was dirty and unmapped reads zero in the child");
    is(run(child_clean, p), 3, "and in the next one");
    is(child_clean(p), 3, "and in the parent");
}

/* --- advice about fork */

static int child_advice(void *arg)
{
    char *p = arg;

    if (can_read(p))
        return 1;
    if (p[2 * PAGE] != 0 || p[3 * PAGE] != 0)
        return 2;
    p[2 * PAGE] = 1;
    return p[4 * PAGE] == 5 ? 3 : 4;
}

static void test_advice(void)
{
    char *p = map_rw(5 * PAGE);

    memset(p, 5, 5 * PAGE);
    works(madvise(p, 2 * PAGE, MADV_DONTFORK), "MADV_DONTFORK");
    works(madvise(p + 2 * PAGE, 2 * PAGE, MADV_WIPEONFORK), "MADV_WIPEONFORK");
    is(run(child_advice, p), 3,
       "the child lacks the first, has the second "
       "zeroed");
    ok(p[0] == 5 && p[2 * PAGE] == 5, "the parent has both");
    munmap(p, 5 * PAGE);
}

static long locked_kib(void)
{
    char text[4096];
    int fd = open("/proc/self/status", O_RDONLY);
    ssize_t n = read(fd, text, sizeof text - 1);
    char *at;

    close(fd);
    if (n <= 0)
        return -1;
    text[n] = '\0';
    at = strstr(text, "VmLck:");
    return at ? strtol(at + 6, NULL, 10) : -1;
}

static int child_locked(void *arg)
{
    (void) arg;
    return locked_kib() == 0 ? 3 : 1;
}

static void test_locked(void)
{
    char *p = map_rw(2 * PAGE);

    works(mlock(p, 2 * PAGE), "mlock");
    is(locked_kib(), 8, "counted");
    is(run(child_locked, NULL), 3, "locks are not inherited");
    munmap(p, 2 * PAGE);
}

/* --- depth and number */

static int child_nested(void *arg)
{
    long depth = (long) arg;
    volatile long mine = depth * 1000;
    char *p = map_rw(PAGE);
    int below = 0;

    *p = (char) depth;
    if (syscall(SYS_gettid) != getpid() || raise(0) != 0)
        return 100;
    if (depth < 4)
        below = run(child_nested, (void *) (depth + 1));
    if (mine != depth * 1000 || *p != (char) depth)
        return 101;
    return below < 0 ? 102 : below + 1;
}

static int child_empty(void *arg)
{
    (void) arg;
    return 0;
}

static void test_depth(void)
{
    int failed = 0;

    is(run(child_nested, (void *) 0), 5, "five generations");
    for (int i = 0; i < 200; i++)
        failed += run(child_empty, NULL) != 0;
    is(failed, 0, "200 children one after the other");
}

static int child_waits(void *arg)
{
    hear(*(int *) arg);
    return 0;
}

static void test_together(void)
{
    enum { N = 20 };
    pid_t pid[N];
    int fds[2], failed = 0;

    need(pipe(fds) == 0, "pipe");
    for (int i = 0; i < N; i++)
        pid[i] = start(child_waits, &fds[0]);
    for (int i = 0; i < N; i++)
        say(fds[1]);
    for (int i = 0; i < N; i++)
        failed += finish(pid[i]) != 0;
    is(failed, 0, "20 children at a time");
    close(fds[0]);
    close(fds[1]);
}

/* --- descriptors */

static int child_files(void *arg)
{
    int fd = *(int *) arg;

    /* The offset is shared, the table is not. */
    if (lseek(fd, 0, SEEK_CUR) != 3 || lseek(fd, 5, SEEK_SET) != 5)
        return 1;
    close(fd);
    return 3;
}

static void test_files(void)
{
    int fd = memfd_create("files", 0), top, failed = 0;

    need(fd >= 0 && write(fd, "abcdefgh", 8) == 8, "file");
    need(lseek(fd, 3, SEEK_SET) == 3, "lseek");
    is(run(child_files, &fd), 3, "the child has the open file");
    is(lseek(fd, 0, SEEK_CUR), 5,
       "with one offset for both; what it closes "
       "stays open here");
    while (dup(fd) >= 0)
        continue;
    is(run(child_empty, NULL), 0, "fork with all descriptors in use");
    for (top = fd + 1; close(top) == 0; top++)
        continue;
    failed += run(child_empty, NULL);
    is(failed, 0, "and with few");
    close(fd);
}

/* One table for both; its number comes through memory of both. */
static void test_shared_table(void)
{
    int *fd = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pid;

    need(GOOD(fd), "mmap");
    pid = (pid_t) syscall(SYS_clone, CLONE_FILES | CLONE_FS | SIGCHLD, 0, 0, 0,
                          0);
    need(pid >= 0, "clone");
    if (pid == 0) {
        *fd = memfd_create("shared", 0);
        umask(0123);
        _exit(*fd > 2 && write(*fd, "abc", 3) == 3 ? 3 : 1);
    }
    is(finish(pid), 3, "CLONE_FILES: a file opened by the child");
    is(lseek(*fd, 0, SEEK_CUR), 3, "is open in the parent");
    is(umask(022), 0123, "CLONE_FS: one umask");
    close(*fd);
    is(run(child_empty, NULL), 0, "and fork works afterwards");
    munmap(fd, PAGE);
}

/* --- clocks */

static int64_t now(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

static uint64_t counter(void)
{
    uint64_t value;

    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(value)::"memory");
    return value;
}

typedef struct times {
    int64_t mono, real;
    uint64_t count;
} times_t;

/* The child's are not before the parent's, and the parent's, read after the
 * child has ended, not before the child's. */
static int child_clock(void *arg)
{
    times_t *t = arg;
    times_t mine = {now(CLOCK_MONOTONIC), now(CLOCK_REALTIME), counter()};
    bool good = mine.mono >= t->mono && mine.real >= t->real &&
                (int64_t) (mine.count - t->count) >= 0;

    *t = mine;
    return good ? 3 : 1;
}

static void test_clock(void)
{
    times_t *t = mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int bad = 0;

    need(GOOD(t), "mmap");
    for (int i = 0; i < 50; i++) {
        times_t before = {now(CLOCK_MONOTONIC), now(CLOCK_REALTIME), counter()};

        *t = before;
        bad += run(child_clock, t) != 3;
        bad += now(CLOCK_MONOTONIC) < t->mono || now(CLOCK_REALTIME) < t->real;
        bad += (int64_t) (counter() - t->count) < 0;
    }
    is(bad, 0, "no clock goes back, from parent to child to parent");
    munmap(t, PAGE);
}

/* --- limits */

static int child_limited(void *arg)
{
    struct rlimit limit = {1, 1};
    pid_t pid;

    (void) arg;
    if (setrlimit(RLIMIT_NPROC, &limit) || setresuid(4321, 4321, 4321))
        return 1;
    pid = fork();
    if (pid == 0)
        _exit(0);
    if (pid != -1)
        return 2;
    return errno == EAGAIN ? 3 : 4;
}

static void test_limit(void)
{
    is(run(child_limited, NULL), 3, "RLIMIT_NPROC reached: EAGAIN");
}

int main(void)
{
    test_ids();
    test_registers();
    test_memory();
    test_words();
    test_retained();
    test_advice();
    test_locked();
    test_depth();
    test_together();
    test_files();
    test_shared_table();
    test_clock();
    test_limit();
    return tap_done();
}
