/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frame on the handler's stack, and what rt_sigreturn makes of one that a
 * program has changed or written.
 */
#include "tap.h"

#include <setjmp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>

#define FPSIMD_MAGIC_ 0x46508001U
#define ESR_MAGIC_    0x45535201U
#define SVE_MAGIC_    0x53564501U
#define EXTRA_MAGIC_  0x45585401U

/* struct rt_sigframe */
typedef struct frame {
    siginfo_t info;
    ucontext_t uc;
} frame_t;

static volatile int count, mode;
uint64_t entry_x[6]; /* x0-x2, fp, lr, sp */
static uint64_t entry_sp;
static uint64_t *record_at, record[2];
static frame_t *frame_at;
static volatile uint64_t nzcv_seen, bad;
static sigjmp_buf jump;
static siginfo_t segv_info;
static ucontext_t segv_uc;

/* The handler as the kernel enters it. */
void entry(void);
void entry_c(int sig, siginfo_t *info, void *uc);
__asm__(".balign 16\n"
        ".global entry\n"
        "entry:\n"
        "  adrp x3, entry_x\n"
        "  add x3, x3, :lo12:entry_x\n"
        "  stp x0, x1, [x3]\n"
        "  stp x2, x29, [x3, #16]\n"
        "  mov x4, sp\n"
        "  stp x30, x4, [x3, #32]\n"
        "  b entry_c\n");

static uint8_t *records(ucontext_t *uc)
{
    return (uint8_t *) uc->uc_mcontext.__reserved;
}

static uint32_t word_at(const uint8_t *p)
{
    uint32_t w;

    memcpy(&w, p, 4);
    return w;
}

static void put_word(uint8_t *p, uint32_t w)
{
    memcpy(p, &w, 4);
}

static uint8_t *find(ucontext_t *uc, uint32_t magic)
{
    uint8_t *at = records(uc);

    while (word_at(at) && word_at(at) != magic)
        at += word_at(at + 4);
    return word_at(at) == magic ? at : NULL;
}

/* --- What is changed, by `mode` */

static void nothing(frame_t *f)
{
    (void) f;
}

static void mode_el1(frame_t *f)
{
    f->uc.uc_mcontext.pstate |= 5;
}

static void mode_32(frame_t *f)
{
    f->uc.uc_mcontext.pstate |= 0x10;
}

static void masked_irq(frame_t *f)
{
    f->uc.uc_mcontext.pstate |= 1UL << 7;
}

static void ignored_bits(frame_t *f)
{
    f->uc.uc_mcontext.pstate |=
        0xffffffffUL << 32 | 3UL << 26 | 3UL << 22 | 0xffUL << 13 | 1UL << 5;
}

static void no_fpsimd(frame_t *f)
{
    put_word(records(&f->uc), 0);
    put_word(records(&f->uc) + 4, 0);
}

static void fpsimd_short(frame_t *f)
{
    put_word(find(&f->uc, FPSIMD_MAGIC_) + 4, 512);
}

static void fpsimd_twice(frame_t *f)
{
    uint8_t *at = records(&f->uc);

    memcpy(at + 528, at, 528);
    memset(at + 1056, 0, 16);
}

static void unknown_record(frame_t *f)
{
    uint8_t *at = records(&f->uc) + 528;

    put_word(at, 0x12345678);
    put_word(at + 4, 16);
    memset(at + 16, 0, 16);
}

static void size_not_16(frame_t *f)
{
    uint8_t *at = records(&f->uc) + 528;

    put_word(at, ESR_MAGIC_);
    put_word(at + 4, 24);
    memset(at + 24, 0, 24);
}

static void size_zero(frame_t *f)
{
    uint8_t *at = records(&f->uc) + 528;

    put_word(at, ESR_MAGIC_);
    put_word(at + 4, 0);
}

static void size_huge(frame_t *f)
{
    uint8_t *at = records(&f->uc) + 528;

    put_word(at, ESR_MAGIC_);
    put_word(at + 4, 0xfffffff0);
}

static void end_with_size(frame_t *f)
{
    uint8_t *at = records(&f->uc) + 528;

    put_word(at, 0);
    put_word(at + 4, 16);
}

static void extra_esr(frame_t *f)
{
    uint8_t *at = records(&f->uc) + 528;

    put_word(at, ESR_MAGIC_);
    put_word(at + 4, 32);
    memset(at + 32, 0, 16);
}

static void full(frame_t *f)
{
    uint8_t *at = records(&f->uc) + 528;

    /* To the last byte: there is no room for a terminator. */
    put_word(at, ESR_MAGIC_);
    put_word(at + 4, 4096 - 528);
}

/* All records in the block behind the frame. */
static void make_extra(frame_t *f, uint64_t off, uint32_t size)
{
    static uint8_t fpsimd[528];
    uint8_t *at = records(&f->uc), *extra = at + 48;
    uint64_t data = (uintptr_t) extra + off;

    memcpy(fpsimd, at, 528);
    put_word(at, EXTRA_MAGIC_);
    put_word(at + 4, 32);
    memcpy(at + 8, &data, 8);
    put_word(at + 16, size);
    memset(at + 20, 0, 12 + 16);
    memcpy(extra, fpsimd, 528);
    memset(extra + 528, 0, 16);
}

static void extra_good(frame_t *f)
{
    make_extra(f, 0, 544);
}

static void extra_elsewhere(frame_t *f)
{
    make_extra(f, 16, 544);
}

static void extra_short(frame_t *f)
{
    make_extra(f, 0, 528);
}

static void extra_huge(frame_t *f)
{
    make_extra(f, 0, 0x40000);
}

static void extra_in_extra(frame_t *f)
{
    make_extra(f, 0, 544);
    uint8_t *extra = records(&f->uc) + 48;
    put_word(extra, EXTRA_MAGIC_);
    put_word(extra + 4, 32);
}

static void sve_wrong(frame_t *f)
{
    uint8_t *at = find(&f->uc, SVE_MAGIC_);

    if (!at) {
        at = records(&f->uc) + 528;
        put_word(at, SVE_MAGIC_);
        put_word(at + 4, 16);
        memset(at + 8, 0, 8 + 16);
    }
    put_word(at + 8, 12345);
}

typedef struct change {
    const char *name;
    void (*change)(frame_t *f);
    bool good;
} change_t;

static const change_t changes[] = {
    {"as it was", nothing, true},
    {"EL1", mode_el1, false},
    {"AArch32", mode_32, false},
    {"interrupts masked", masked_irq, false},
    {"bits of PSTATE that are passed over", ignored_bits, true},
    {"no fpsimd_context", no_fpsimd, false},
    {"fpsimd_context too short", fpsimd_short, false},
    {"two of them", fpsimd_twice, false},
    {"an unknown record", unknown_record, false},
    {"a size that is no multiple of 16", size_not_16, false},
    {"size 0", size_zero, false},
    {"a size beyond the frame", size_huge, false},
    {"a terminator with a size", end_with_size, false},
    {"a longer esr_context", extra_esr, true},
    {"no terminator", full, false},
    {"extra_context", extra_good, true},
    {"extra_context somewhere else", extra_elsewhere, false},
    {"extra_context without terminator", extra_short, false},
    {"extra_context that is too large", extra_huge, false},
    {"extra_context in extra_context", extra_in_extra, false},
    {"a vector length that is not ours", sve_wrong, false},
};

/* The interrupted code is this: nothing else happens in between, so that what
 * the handler finds is known. */
uint64_t raise_with(long pid, long tid, long sig, uint64_t nzcv);
extern char after_svc[];
__asm__(".balign 16\n"
        ".global raise_with, after_svc\n"
        "raise_with:\n"
        "  stp x29, x30, [sp, #-32]!\n"
        "  mov x29, sp\n"
        "  str d8, [sp, #16]\n"
        "  fmov d8, #2.0\n"
        "  msr nzcv, x3\n"
        "  mov x8, #131\n" /* tgkill */
        "  svc #0\n"
        "after_svc:\n"
        "  mrs x1, nzcv\n"
        "  fmov x2, d8\n"
        "  eor x0, x1, x3\n"
        "  mov x3, #0x4000000000000000\n"
        "  sub x2, x2, x3\n"
        "  orr x0, x0, x2\n"
        "  ldr d8, [sp, #16]\n"
        "  ldp x29, x30, [sp], #32\n"
        "  ret\n");

void entry_c(int sig, siginfo_t *info, void *uc)
{
    (void) sig;
    frame_at = (frame_t *) info;
    record_at = (uint64_t *) entry_x[3];
    entry_sp = entry_x[5];
    memcpy(record, record_at, sizeof record);
    count++;
    bad = uc != &frame_at->uc;
    __asm__ volatile("movi v8.16b, #0x77\n cmn xzr, xzr" ::: "v8", "cc");
    changes[mode].change(frame_at);
}

static void on_segv(int sig, siginfo_t *info, void *uc)
{
    segv_info = *info;
    segv_uc = *(ucontext_t *) uc;
    siglongjmp(jump, sig);
}

static uint64_t send_one(uint64_t nzcv)
{
    return raise_with(getpid(), (long) syscall(SYS_gettid), SIGUSR1, nzcv);
}

static void test_layout(void)
{
    uint8_t *at;

    mode = 0;
    is(send_one(5UL << 28), 0, "NZCV and d8 are as before");
    is(bad, 0, "x2 is behind siginfo");
    is(entry_x[0], SIGUSR1, "x0 is the number");
    is(entry_x[1], entry_sp, "x1 is sp: there is siginfo");
    is(entry_sp % 16, 0, "sp is aligned");
    is((uintptr_t) record_at % 16, 0, "so is the frame record");
    is((uintptr_t) record_at - entry_sp, 4688, "which is above the frame");
    is(record[0], frame_at->uc.uc_mcontext.regs[29], "the record's fp");
    is(record[1], frame_at->uc.uc_mcontext.regs[30], "and lr");
    is(frame_at->uc.uc_mcontext.pc, after_svc, "pc");
    is(frame_at->uc.uc_mcontext.regs[0], 0, "x0: tgkill's result");
    is(frame_at->uc.uc_mcontext.regs[8], 131, "x8");
    is(frame_at->uc.uc_mcontext.pstate >> 28, 5, "NZCV in pstate");
    is(frame_at->uc.uc_flags, 0, "uc_flags");
    is(frame_at->uc.uc_link, 0, "uc_link");
    at = records(&frame_at->uc);
    is(word_at(at), FPSIMD_MAGIC_, "first record: fpsimd_context");
    is(word_at(at + 4), 528, "its size");
    is(word_at(at + 16 + 8 * 16 + 4), 0x40000000, "v8 in it");
    at += 528;
    if (getauxval(AT_HWCAP) & HWCAP_SVE) {
        is(word_at(at), SVE_MAGIC_, "then sve_context");
        is(word_at(at + 4), 16, "without registers after a system call");
        at += 16;
    }
    is(word_at(at), 0, "terminator");
    is(word_at(at + 4), 0, "of size 0");
    is(frame_at->uc.uc_mcontext.fault_address, 0, "no fault_address");

    /* Where it returns to: code that unwinders know. */
    uint32_t code[2];
    memcpy(code, (void *) entry_x[4], 8);
    ok(code[0] == 0xd2801168 && code[1] == 0xd4000001,
       "lr: mov x8, #139; svc #0");
}

static void test_changes(void)
{
    static size_t i;
    static uint64_t wrong;

    for (i = 0; i < sizeof changes / sizeof *changes; i++) {
        char line[128];
        int got = sigsetjmp(jump, 1);

        wrong = 1;
        mode = (int) i;
        if (got == 0)
            wrong = send_one(9UL << 28);
        snprintf(line, sizeof line, "%s: %s", changes[i].name,
                 changes[i].good ? "good" : "SIGSEGV");
        if (changes[i].good)
            ok(got == 0 && wrong == 0, line);
        else if (!ok(got == SIGSEGV && segv_info.si_code == SEGV_ACCERR &&
                         segv_info.si_addr == (void *) segv_uc.uc_mcontext.sp,
                     line))
            tap_say("#   signal %d, code %d, address %p, sp %#llx", got,
                    segv_info.si_code, segv_info.si_addr,
                    (unsigned long long) segv_uc.uc_mcontext.sp);
    }
    mode = 0;
}

static void sigreturn_at(uintptr_t sp)
{
    __asm__ volatile("mov x9, sp\n"
                     "mov sp, %0\n"
                     "mov x8, #139\n"
                     "svc #0\n"
                     "mov sp, x9\n" ::"r"(sp)
                     : "x0", "x8", "x9", "memory");
}

static void test_bad_places(void)
{
    char *page =
        mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const struct {
        const char *name;
        uintptr_t sp;
        bool readable; /* or not even looked at */
    } places[] = {
        {"sp not aligned", (uintptr_t) page + 8, true},
        {"sp at no access", (uintptr_t) page, false},
        {"sp at 0", 0, false},
        {"sp beyond user space", 1UL << 52, true},
    };
    static size_t i;

    for (i = 0; i < sizeof places / sizeof *places; i++) {
        int got = sigsetjmp(jump, 1);
        if (got == 0)
            sigreturn_at(places[i].sp);
        /* Where there is nothing to read, sp is zero afterwards. */
        void *sp = (void *) (places[i].readable ? places[i].sp : 0);
        if (!ok(got == SIGSEGV && segv_info.si_addr == sp, places[i].name))
            tap_say("#   signal %d, code %d, address %p, not %p", got,
                    segv_info.si_code, segv_info.si_addr, sp);
        is(segv_uc.uc_mcontext.regs[0], 0, "x0 is 0 there");
    }
}

/* --- A context of the program's own */

static ucontext_t main_context, other_context;
static volatile int turns;

static void other(void)
{
    for (;;) {
        turns++;
        swapcontext(&other_context, &main_context);
    }
}

static void test_contexts(void)
{
    static char stack[32768];
    volatile int again = 0;

    need(getcontext(&other_context) == 0, "getcontext");
    other_context.uc_stack.ss_sp = stack;
    other_context.uc_stack.ss_size = sizeof stack;
    other_context.uc_link = NULL;
    makecontext(&other_context, other, 0);
    for (int i = 0; i < 100; i++)
        swapcontext(&main_context, &other_context);
    is(turns, 100, "swapcontext");
    getcontext(&main_context);
    if (again++ < 10)
        setcontext(&main_context);
    is(again, 11, "setcontext");
}

int main(void)
{
    static char altstack[65536];
    stack_t ss = {.ss_sp = altstack, .ss_size = sizeof altstack};
    struct sigaction act = {.sa_flags = SA_SIGINFO};

    need(sigaltstack(&ss, NULL) == 0, "sigaltstack");
    act.sa_sigaction = (void (*)(int, siginfo_t *, void *)) entry;
    need(sigaction(SIGUSR1, &act, NULL) == 0, "sigaction");
    act.sa_sigaction = on_segv;
    act.sa_flags |= SA_ONSTACK;
    need(sigaction(SIGSEGV, &act, NULL) == 0, "sigaction");
    test_layout();
    test_changes();
    test_bad_places();
    test_contexts();
    return tap_done();
}
