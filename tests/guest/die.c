/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends in the way which its argument names. The status that the parent must
 * see is in EXPECT.
 */
#include "mem.h"

#include <signal.h>

typedef int (*func_t)(void);

static volatile int sink;
/* Volatile, so that no tool and no compiler knows it. */
static void *volatile null;

static void load(const void *p)
{
    sink = *(const volatile char *) p;
}

static void store(void *p)
{
    *(volatile char *) p = 1;
}

static void call(void *p)
{
    sink = ((func_t) p)();
}

static char *fresh(int prot)
{
    char *p = sys_mmap(NULL, 2 * PAGE, prot, ANON, -1, 0);
    need(GOOD(p), "mmap");
    return p;
}

static char *gone(void)
{
    char *p = map_rw(4 * PAGE);
    memset(p, 1, 4 * PAGE);
    need(sys_munmap(p + PAGE, PAGE) == 0, "munmap");
    return p + PAGE;
}

static void read_null(void)
{
    load(null);
}

static void write_null(void)
{
    store(null);
}

static void read_none(void)
{
    load(fresh(PROT_NONE));
}

static void read_closed(void)
{
    char *p = fresh(RW);
    store(p);
    need(sys_mprotect(p, PAGE, PROT_NONE) == 0, "mprotect");
    load(p);
}

static void write_readonly(void)
{
    store(fresh(PROT_READ));
}

static void write_readonly_after_read(void)
{
    char *p = fresh(PROT_READ);
    load(p);
    store(p);
}

static void write_readonly_twice(void)
{
    /* mprotect to what it already is must not be a way around. */
    char *p = fresh(PROT_READ);
    need(sys_mprotect(p, PAGE, PROT_READ) == 0, "mprotect");
    store(p);
}

static void write_after_mprotect(void)
{
    char *p = fresh(RW);
    store(p);
    need(sys_mprotect(p, PAGE, PROT_READ) == 0, "mprotect");
    store(p);
}

static void write_text(void)
{
    store((void *) &write_text);
}

static void write_rodata(void)
{
    store((void *) (uintptr_t) "constant");
}

static void read_unmapped(void)
{
    load(gone());
}

static void write_unmapped(void)
{
    store(gone());
}

static void read_kernel(void)
{
    load((void *) 0xffff000000001000UL);
}

static void read_noncanonical(void)
{
    load((void *) 0x00ff000000001000UL);
}

static void write_vdso(void)
{
    static vma_t v;
    need(vma_named("[vdso]", &v), "[vdso]");
    store((void *) v.start);
}

static void jump_null(void)
{
    call(null);
}

static void exec_data(void)
{
    char *p = fresh(RW);
    uint32_t ret = 0xd65f03c0;
    memcpy(p, &ret, sizeof ret);
    __builtin___clear_cache(p, p + 4);
    call(p);
}

static void exec_stack(void)
{
    uint32_t ret[4] = {0xd65f03c0, 0xd65f03c0, 0xd65f03c0, 0xd65f03c0};
    __builtin___clear_cache((char *) ret, (char *) (ret + 4));
    call(ret);
}

static void unaligned_pc(void)
{
    call((char *) &unaligned_pc + 2);
}

static void undefined(void)
{
    __asm__ volatile("udf #0");
}

static void privileged(void)
{
    __asm__ volatile("msr vbar_el1, xzr");
}

static void hypercall(void)
{
    __asm__ volatile("hvc #0");
}

static void breakpoint(void)
{
    __asm__ volatile("brk #0");
}

static void beyond_file(void)
{
    int fd = file_make(PAGE);
    char *p = sys_mmap(NULL, 2 * PAGE, RW, MAP_SHARED, fd, 0);
    need(GOOD(p), "mmap");
    load(p + PAGE);
}

static void beyond_file_private(void)
{
    int fd = file_make(PAGE);
    char *p = sys_mmap(NULL, 2 * PAGE, RW, MAP_PRIVATE, fd, 0);
    need(GOOD(p), "mmap");
    store(p + PAGE);
}

static void truncated_file(void)
{
    int fd = file_make(2 * PAGE);
    char *p = sys_mmap(NULL, 2 * PAGE, RW, MAP_SHARED, fd, 0);
    need(GOOD(p), "mmap");
    store(p + PAGE);
    need(ftruncate(fd, PAGE) == 0, "ftruncate");
    store(p + PAGE);
}

static void unmap_all(void)
{
    sys_munmap(NULL, 1UL << 46);
    sys_munmap((void *) (1UL << 46), TOP - (1UL << 46));
}

static void close_all(void)
{
    sys_mprotect((void *) (uintptr_t) 0x400000, 64 * PAGE, PROT_NONE);
}

static void unmap_stack(void)
{
    static vma_t v;
    need(vma_named("[stack]", &v), "[stack]");
    sys_munmap((void *) v.start, v.end - v.start);
}

static int deeper(int n)
{
    volatile char frame[1024];
    frame[0] = n;
    return n < 0 ? frame[0] : deeper(n + 1) + frame[0];
}

static void stack_overflow(void)
{
    sink = deeper(0);
}

static void stack_guard(void)
{
    /* Far below the stack, beyond its limit. */
    static vma_t v;
    struct rlimit lim;
    need(vma_named("[stack]", &v), "[stack]");
    need(getrlimit(RLIMIT_STACK, &lim) == 0, "getrlimit");
    store((void *) (v.end - lim.rlim_cur - 16 * PAGE));
}

static void raise_kill(void)
{
    raise(SIGKILL);
}

static void raise_term(void)
{
    raise(SIGTERM);
}

static void raise_rt(void)
{
    raise(SIGRTMIN + 3);
}

/* Each number is the program's, also the last one. */
static void queue_last(void)
{
    union sigval value = {.sival_int = 0};

    sigqueue(getpid(), 64, value);
}

static void tgkill_self(void)
{
    syscall(SYS_tgkill, getpid(), syscall(SYS_gettid), SIGUSR1);
}

static void pipe_broken(void)
{
    int pair[2];
    need(pipe(pair) == 0, "pipe");
    close(pair[0]);
    (void) !write(pair[1], "x", 1);
}

static void cpu_limit(void)
{
    struct rlimit lim = {1, 2};
    need(setrlimit(RLIMIT_CPU, &lim) == 0, "setrlimit");
    for (;;)
        sink++;
}

static void alarm_default(void)
{
    alarm(1);
    for (;;)
        pause();
}

static void exit_group_7(void)
{
    syscall(SYS_exit_group, 7);
}

static void exit_raw_9(void)
{
    syscall(SYS_exit, 9);
}

static void exit_256(void)
{
    exit(256);
}

static void exit_0(void)
{
    exit(0);
}

static void exit_3(void)
{
    exit(3);
}

static void exit_255(void)
{
    exit(255);
}

static void return_4(void)
{
}

#define WAY(f) \
    {          \
#f, f  \
    }
static const struct {
    const char *name;
    void (*func)(void);
} ways[] = {
    WAY(read_null),
    WAY(write_null),
    WAY(read_none),
    WAY(read_closed),
    WAY(write_readonly),
    WAY(write_readonly_after_read),
    WAY(write_readonly_twice),
    WAY(write_after_mprotect),
    WAY(write_text),
    WAY(write_rodata),
    WAY(read_unmapped),
    WAY(write_unmapped),
    WAY(read_kernel),
    WAY(read_noncanonical),
    WAY(write_vdso),
    WAY(jump_null),
    WAY(exec_data),
    WAY(exec_stack),
    WAY(unaligned_pc),
    WAY(undefined),
    WAY(privileged),
    WAY(hypercall),
    WAY(breakpoint),
    WAY(beyond_file),
    WAY(beyond_file_private),
    WAY(truncated_file),
    WAY(unmap_all),
    WAY(close_all),
    WAY(unmap_stack),
    WAY(stack_overflow),
    WAY(stack_guard),
    WAY(abort),
    WAY(raise_kill),
    WAY(raise_term),
    WAY(raise_rt),
    WAY(queue_last),
    WAY(tgkill_self),
    WAY(pipe_broken),
    WAY(cpu_limit),
    WAY(alarm_default),
    WAY(exit_group_7),
    WAY(exit_raw_9),
    WAY(exit_256),
    WAY(exit_0),
    WAY(exit_3),
    WAY(exit_255),
    WAY(return_4),
};

int main(int argc, char **argv)
{
    struct rlimit no_core = {0, 0};
    need(setrlimit(RLIMIT_CORE, &no_core) == 0, "setrlimit");
    need(argc == 2, "one argument");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        if (strcmp(argv[1], ways[i].name) == 0) {
            tap_say("# about to: %s", argv[1]);
            ways[i].func();
            return 4;
        }
    tap_say("Bail out! no such way");
    return 99;
}
