/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that the program's own instructions cause: what siginfo and frame
 * say, on which stack the handler runs, and how to go on.
 */
#include "mem.h"

#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>

#define FLAG_EXPOSE_TAGBITS 0x00000800
#define ESR_MAGIC_          0x45535201U
#define TAG                 (0x5aUL << 56)
#define SS_AUTODISARM_      (1U << 31)

static sigjmp_buf jump;
static volatile int count;
static siginfo_t seen;
static ucontext_t context;
static volatile uint64_t seen_sp, seen_fault_address, seen_pc, seen_esr;
static volatile bool has_esr;

/* The record of this kind in a frame, or NULL. */
static void *record(ucontext_t *uc, uint32_t magic)
{
    char *at = (char *) uc->uc_mcontext.__reserved;

    for (;;) {
        uint32_t head[2];

        memcpy(head, at, sizeof head);
        if (head[0] == magic)
            return at;
        if (head[0] == 0)
            return NULL;
        at += head[1];
    }
}

static void note(siginfo_t *info, ucontext_t *uc)
{
    char *esr = record(uc, ESR_MAGIC_);

    count++;
    seen = *info;
    seen_sp = uc->uc_mcontext.sp;
    seen_pc = uc->uc_mcontext.pc;
    seen_fault_address = uc->uc_mcontext.fault_address;
    has_esr = esr != NULL;
    seen_esr = 0;
    if (esr)
        memcpy((void *) &seen_esr, esr + 8, 8);
}

static void jump_out(int sig, siginfo_t *info, void *uc)
{
    note(info, uc);
    siglongjmp(jump, sig);
}

static void on(int sig, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction act = {.sa_sigaction = handler,
                            .sa_flags = SA_SIGINFO | flags};
    need(sigaction(sig, &act, NULL) == 0, "sigaction");
    count = 0;
}

typedef void action_t(void *arg);

/* Do it; the signal that came of it, or 0. */
static int attempt(action_t *action, void *arg)
{
    int sig = sigsetjmp(jump, 1);

    if (sig == 0)
        action(arg);
    return sig;
}

static void load(void *p)
{
    __asm__ volatile("ldr x9, [%0]" ::"r"(p) : "x9", "memory");
}

static void store(void *p)
{
    __asm__ volatile("str xzr, [%0]" ::"r"(p) : "memory");
}

static void call(void *p)
{
    ((void (*)(void)) p)();
}

#define EC(esr)  ((esr) >> 26 & 0x3f)
#define FSC(esr) ((esr) &0x3f)

static void expect(action_t *action, void *arg, int sig, int code,
                   const void *addr, const char *name)
{
    char line[160];
    int got = attempt(action, arg);

    snprintf(line, sizeof line, "%s: signal", name);
    is(got, sig, line);
    snprintf(line, sizeof line, "%s: si_code", name);
    is(seen.si_code, code, line);
    snprintf(line, sizeof line, "%s: si_addr", name);
    is(seen.si_addr, addr, line);
    snprintf(line, sizeof line, "%s: si_errno", name);
    is(seen.si_errno, 0, line);
}

static void test_memory(void)
{
    char *p = map_rw(4 * PAGE);

    memset(p, 1, 4 * PAGE);
    need(sys_mprotect(p + PAGE, PAGE, PROT_READ) == 0, "mprotect");
    need(sys_mprotect(p + 2 * PAGE, PAGE, PROT_NONE) == 0, "mprotect");
    need(sys_munmap(p + 3 * PAGE, PAGE) == 0, "munmap");

    expect(load, p + 3 * PAGE + 8, SIGSEGV, SEGV_MAPERR, p + 3 * PAGE + 8,
           "load from a hole");
    ok(has_esr && EC(seen_esr) == 0x24 && (FSC(seen_esr) & 0x3c) == 4 &&
           !(seen_esr >> 6 & 1),
       "ESR: data abort, translation, read");
    is(seen_fault_address, p + 3 * PAGE + 8, "fault_address");
    expect(store, p + PAGE + 16, SIGSEGV, SEGV_ACCERR, p + PAGE + 16,
           "store to a read-only page");
    ok(has_esr && EC(seen_esr) == 0x24 && seen_esr >> 6 & 1,
       "ESR: data abort, write");
    expect(load, p + 2 * PAGE, SIGSEGV, SEGV_ACCERR, p + 2 * PAGE,
           "load from PROT_NONE");
    expect(call, p, SIGSEGV, SEGV_ACCERR, p, "execution of data");
    ok(has_esr && EC(seen_esr) == 0x20, "ESR: instruction abort");
    is(seen_pc, p, "pc");
    expect(call, p + 3 * PAGE, SIGSEGV, SEGV_MAPERR, p + 3 * PAGE,
           "execution of a hole");
    expect(load, NULL, SIGSEGV, SEGV_MAPERR, NULL, "load from NULL");

    void *kernel = (void *) 0xffff800012345678UL;
    expect(load, kernel, SIGSEGV, SEGV_MAPERR, kernel, "a kernel address");
    ok(has_esr && FSC(seen_esr) == 4, "ESR: tells no level there");

    /* Tags: the frame never has them, siginfo if asked. */
    expect(load, (char *) ((uintptr_t) p + 3 * PAGE + TAG), SIGSEGV,
           SEGV_MAPERR, p + 3 * PAGE, "with a tag");
    on(SIGSEGV, jump_out, FLAG_EXPOSE_TAGBITS);
    expect(load, (char *) ((uintptr_t) p + 3 * PAGE + TAG), SIGSEGV,
           SEGV_MAPERR, (char *) ((uintptr_t) p + 3 * PAGE + TAG),
           "SA_EXPOSE_TAGBITS");
    is(seen_fault_address, p + 3 * PAGE, "fault_address has no tag");
    on(SIGSEGV, jump_out, 0);
    sys_munmap(p, 3 * PAGE);
}

static void test_bus(void)
{
    int fd = file_make(2 * PAGE);
    char *p = sys_mmap(NULL, 2 * PAGE, RW, MAP_SHARED, fd, 0);

    need(GOOD(p), "mmap");
    store(p);
    need(ftruncate(fd, 0) == 0, "ftruncate");
    expect(load, p + 24, SIGBUS, BUS_ADRERR, p + 24, "beyond a file's end");
    ok(has_esr && EC(seen_esr) == 0x24 && (FSC(seen_esr) & 0x3c) == 4,
       "ESR: data abort, translation");
    is(seen_fault_address, p + 24, "fault_address");
    expect(store, p + PAGE, SIGBUS, BUS_ADRERR, p + PAGE, "store there");
    need(ftruncate(fd, 2 * PAGE) == 0, "ftruncate");
    is(attempt(store, p), 0, "after the file has grown it works");
    sys_munmap(p, 2 * PAGE);
    close(fd);
    expect(call, (char *) &test_bus + 2, SIGBUS, BUS_ADRALN,
           (char *) &test_bus + 2, "unaligned pc");
    ok(has_esr && EC(seen_esr) == 0x22, "ESR: pc alignment");
    is(seen_fault_address, 0, "no fault_address");
}

static void bad_sp(void *arg)
{
    __asm__ volatile("mov x9, sp\n\t"
                     "add x10, x9, #4\n\t"
                     "mov sp, x10\n\t"
                     "ldr x10, [sp]\n\t"
                     "mov sp, x9" ::"r"(arg)
                     : "x9", "x10", "memory");
}

extern char undefined_insn[], brk_insn[], hlt_insn[];

static void undefined(void *arg)
{
    (void) arg;
    __asm__ volatile(".global undefined_insn\nundefined_insn: udf #7");
}

static void breakpoint(void *arg)
{
    (void) arg;
    __asm__ volatile(".global brk_insn\nbrk_insn: brk #0x123");
}

static void halt(void *arg)
{
    (void) arg;
    __asm__ volatile(".global hlt_insn\nhlt_insn: hlt #1");
}

/* Its own stack, since the one that it comes from is not aligned. */
static char stack[65536] __attribute__((aligned(16)));

static void stack_on(size_t size, int flags)
{
    stack_t ss = {.ss_sp = stack, .ss_size = size, .ss_flags = flags};
    need(sigaltstack(&ss, NULL) == 0, "sigaltstack");
}

static void test_insns(void)
{
    int sig;

    expect(undefined, NULL, SIGILL, ILL_ILLOPC, undefined_insn, "udf");
    ok(!has_esr, "no ESR");
    is(seen_fault_address, 0, "no fault_address");
    is(seen_pc, undefined_insn, "pc is the instruction");
    expect(halt, NULL, SIGILL, ILL_ILLOPC, hlt_insn, "hlt");
    expect(breakpoint, NULL, SIGTRAP, TRAP_BRKPT, brk_insn, "brk");
    is(seen_pc, brk_insn, "pc is the instruction");
    stack_on(sizeof stack, 0);
    on(SIGBUS, jump_out, SA_ONSTACK);
    /* An emulated processor may not look at it. */
    sig = attempt(bad_sp, NULL);
    ok(sig == 0 || (sig == SIGBUS && seen.si_code == BUS_ADRALN &&
                    (uintptr_t) seen.si_addr == seen_sp && seen_sp % 16 == 4),
       "unaligned sp");
    on(SIGBUS, jump_out, 0);
    stack_on(0, SS_DISABLE);
}

/* --- Going on after the handler */

static void skip(int sig, siginfo_t *info, void *p)
{
    ucontext_t *uc = p;

    (void) sig;
    note(info, uc);
    uc->uc_mcontext.regs[9] = 4711;
    uc->uc_mcontext.pc += 4;
}

static void test_skip(void)
{
    uint64_t got;

    on(SIGSEGV, skip, 0);
    __asm__ volatile("ldr x9, [%1]\n\tmov %0, x9"
                     : "=r"(got)
                     : "r"(8UL)
                     : "x9");
    is(got, 4711, "the handler gives a register and steps over the load");
}

/* A collector's write barrier: the page is opened by the handler. */
static char *heap;
#define HEAP_PAGES 64

static void barrier(int sig, siginfo_t *info, void *uc)
{
    uintptr_t page = (uintptr_t) info->si_addr & ~(PAGE - 1UL);

    (void) sig;
    (void) uc;
    count++;
    if (sys_mprotect((void *) page, PAGE, RW))
        _exit(97);
}

static void test_barrier(void)
{
    int wrong = 0;

    heap = map_rw(HEAP_PAGES * PAGE);
    on(SIGSEGV, barrier, 0);
    for (int round = 0; round < 10; round++) {
        need(sys_mprotect(heap, HEAP_PAGES * PAGE, PROT_READ) == 0, "mprotect");
        for (int i = 0; i < HEAP_PAGES; i++)
            heap[i * PAGE + 5] = (char) (round + i);
        for (int i = 0; i < HEAP_PAGES; i++)
            wrong += heap[i * PAGE + 5] != (char) (round + i);
    }
    is(count, 10 * HEAP_PAGES, "a write barrier is met once a page and round");
    is(wrong, 0, "and each store has been done");
    sys_munmap(heap, HEAP_PAGES * PAGE);
}

static void test_jumps(void)
{
    on(SIGSEGV, jump_out, 0);
    for (int i = 0; i < 500; i++)
        (void) attempt(load, NULL);
    is(count, 500, "siglongjmp out of a fault, 500 times");
}

/* --- The alternate stack */

static volatile bool on_stack, on_stack_inner;
static volatile int inner_flags, inner_errno;

static bool is_on_stack(const void *p)
{
    return (const char *) p >= stack && (const char *) p < stack + sizeof stack;
}

static void see_stack(int sig, siginfo_t *info, void *p)
{
    ucontext_t *uc = p;
    stack_t ss;

    note(info, uc);
    on_stack = is_on_stack(&ss) && is_on_stack(uc);
    context = *uc;
    need(sigaltstack(NULL, &ss) == 0, "sigaltstack");
    inner_flags = ss.ss_flags;
    ss.ss_flags = 0;
    ss.ss_size = sizeof stack;
    ss.ss_sp = stack;
    inner_errno = sigaltstack(&ss, NULL) ? errno : 0;
    if (sig == SIGUSR1 && count < 3)
        raise(SIGUSR1);
    if (sig == SIGSEGV)
        siglongjmp(jump, sig);
}

/* The compiler must not know that it does not end. */
static volatile int end = -1;

static int deeper(int n)
{
    volatile char frame[4096];

    frame[0] = (char) n;
    return n == end ? 0 : deeper(n + 1) + frame[0];
}

static void overflow(void *arg)
{
    (void) arg;
    deeper(0);
}

static void test_altstack(void)
{
    stack_t ss, tiny = {.ss_sp = stack, .ss_size = 5119};
    sigset_t none;

    sigemptyset(&none);
    fails(sigaltstack(&tiny, NULL), ENOMEM, "5119 bytes are too few");
    tiny.ss_flags = 7;
    fails(sigaltstack(&tiny, NULL), EINVAL, "unknown flags");
    need(sigaltstack(NULL, &ss) == 0, "sigaltstack");
    is(ss.ss_flags, SS_DISABLE, "none at first");
    stack_on(sizeof stack, 0);
    on(SIGUSR1, see_stack, 0);
    count = 3;
    raise(SIGUSR1);
    ok(!on_stack, "without SA_ONSTACK it is not used");
    on(SIGUSR1, see_stack, SA_ONSTACK);
    count = 3;
    raise(SIGUSR1);
    ok(on_stack, "with SA_ONSTACK it is");
    is(inner_flags, SS_ONSTACK, "sigaltstack says so");
    is(inner_errno, EPERM, "and does not change it");
    is(context.uc_stack.ss_sp, stack, "uc_stack.ss_sp");
    is(context.uc_stack.ss_size, sizeof stack, "uc_stack.ss_size");
    on(SIGUSR1, see_stack, SA_ONSTACK | SA_NODEFER);
    raise(SIGUSR1);
    is(count, 3, "nested handlers share it");
    stack_on(sizeof stack, (int) SS_AUTODISARM_);
    on(SIGUSR1, see_stack, SA_ONSTACK);
    count = 3;
    raise(SIGUSR1);
    ok(on_stack, "SS_AUTODISARM");
    is(inner_flags, SS_DISABLE, "disarmed in the handler");
    is(inner_errno, 0, "where another can be set");
    need(sigaltstack(NULL, &ss) == 0, "sigaltstack");
    is(ss.ss_flags, (int) SS_AUTODISARM_, "and armed again after it");
    stack_on(sizeof stack, 0);
    on(SIGSEGV, see_stack, SA_ONSTACK);
    is(attempt(overflow, NULL), SIGSEGV, "the stack's overflow is survived");
    ok(on_stack, "on the other one");
    is(attempt(overflow, NULL), SIGSEGV, "twice");
    stack_on(0, SS_DISABLE);
    need(sigaltstack(NULL, &ss) == 0, "sigaltstack");
    is(ss.ss_flags, SS_DISABLE, "none at last");
}

int main(void)
{
    struct rlimit lim = {1 << 20, 1 << 20};

    need(setrlimit(RLIMIT_STACK, &lim) == 0, "setrlimit");
    on(SIGSEGV, jump_out, 0);
    on(SIGBUS, jump_out, 0);
    on(SIGILL, jump_out, 0);
    on(SIGTRAP, jump_out, 0);
    test_memory();
    test_bus();
    test_insns();
    test_skip();
    test_barrier();
    test_jumps();
    test_altstack();
    return tap_done();
}
