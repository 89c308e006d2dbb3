/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All registers of a computing loop outlive handlers that use all of them: a
 * timer's, a thread that sends as fast as it can, and handlers that send the
 * program elsewhere, as Go does to preempt.
 */
#include "tap.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>

#define ROUNDS 200

static volatile sig_atomic_t count;

/* What a loop found wrong, by bits. */
enum { BAD_X = 1, BAD_V = 2, BAD_FPCR = 4, BAD_FPSR = 8, BAD_NZCV = 16 };

/* Fills x0-x27 (but those that the loop counts with), v0-v31, FPCR, FPSR and
 * NZCV, spins, and looks. */
uint64_t check_registers(uint64_t spins);
__asm__(".text\n"
        ".balign 16\n"
        ".global check_registers\n"
        "check_registers:\n"
        "  stp x29, x30, [sp, #-176]!\n"
        "  stp x19, x20, [sp, #16]\n"
        "  stp x21, x22, [sp, #32]\n"
        "  stp x23, x24, [sp, #48]\n"
        "  stp x25, x26, [sp, #64]\n"
        "  stp x27, x28, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n"
        "  stp d10, d11, [sp, #112]\n"
        "  stp d12, d13, [sp, #128]\n"
        "  stp d14, d15, [sp, #144]\n"
        "  mrs x1, fpcr\n"
        "  str x1, [sp, #160]\n"
        "  mov x28, x0\n"
        ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,"
        "24,25,26,27,28,29,30,31\n"
        "  mov x1, #\\n + 1000\n"
        "  dup v\\n\\().2d, x1\n"
        "  add x1, x1, #7\n"
        "  mov v\\n\\().d[1], x1\n"
        ".endr\n"
        "  mov x1, #0x1400000\n" /* RMode 1, FZ */
        "  msr fpcr, x1\n"
        "  mov x1, #0x15\n" /* IXC, OFC, IOC */
        "  msr fpsr, x1\n"
        ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,"
        "24,25,26\n"
        "  mov x\\n, #\\n + 500\n"
        ".endr\n"
        "1: mov x27, #0x6\n" /* N clear, Z and C set */
        "  lsl x27, x27, #28\n"
        "  msr nzcv, x27\n"
        "  nop\n nop\n nop\n nop\n nop\n nop\n nop\n nop\n"
        "  mrs x27, nzcv\n"
        "  lsr x27, x27, #28\n"
        "  eor x27, x27, #6\n"
        "  cbnz x27, 8f\n"
        "  sub x28, x28, #1\n"
        "  cbnz x28, 1b\n"
        "  b 2f\n"
        "8: mov x28, #16\n"
        "2: \n"
        ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,"
        "24,25,26\n"
        "  sub x27, x\\n, #\\n + 500\n"
        "  cbnz x27, 3f\n"
        ".endr\n"
        "  b 4f\n"
        "3: orr x28, x28, #1\n"
        "4: \n"
        ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,"
        "24,25,26,27,28,29,30,31\n"
        "  mov x1, v\\n\\().d[0]\n"
        "  mov x2, v\\n\\().d[1]\n"
        "  sub x1, x1, #\\n + 1000\n"
        "  sub x2, x2, #\\n + 1007\n"
        "  orr x1, x1, x2\n"
        "  cbnz x1, 5f\n"
        ".endr\n"
        "  b 6f\n"
        "5: orr x28, x28, #2\n"
        "6: mrs x1, fpcr\n"
        "  mov x2, #0x1400000\n"
        "  cmp x1, x2\n"
        "  b.eq 7f\n"
        "  orr x28, x28, #4\n"
        "7: mrs x1, fpsr\n"
        "  cmp x1, #0x15\n"
        "  b.eq 9f\n"
        "  orr x28, x28, #8\n"
        "9: mov x0, x28\n"
        "  ldr x1, [sp, #160]\n"
        "  msr fpcr, x1\n"
        "  ldp d14, d15, [sp, #144]\n"
        "  ldp d12, d13, [sp, #128]\n"
        "  ldp d10, d11, [sp, #112]\n"
        "  ldp d8, d9, [sp, #96]\n"
        "  ldp x27, x28, [sp, #80]\n"
        "  ldp x25, x26, [sp, #64]\n"
        "  ldp x23, x24, [sp, #48]\n"
        "  ldp x21, x22, [sp, #32]\n"
        "  ldp x19, x20, [sp, #16]\n"
        "  ldp x29, x30, [sp], #176\n"
        "  ret\n");

/* The Z and P registers likewise; only where there is SVE. */
uint64_t check_vectors(uint64_t spins);
__asm__(".arch armv8-a+sve\n"
        ".balign 16\n"
        ".global check_vectors\n"
        "check_vectors:\n"
        "  stp d8, d9, [sp, #-64]!\n"
        "  stp d10, d11, [sp, #16]\n"
        "  stp d12, d13, [sp, #32]\n"
        "  stp d14, d15, [sp, #48]\n"
        "  ptrue p0.b\n"
        ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,"
        "24,25,26,27,28,29,30,31\n"
        "  index z\\n\\().d, #\\n - 16, #3\n"
        ".endr\n"
        ".irp n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "  mov x1, #\\n\n"
        "  whilelo p\\n\\().b, xzr, x1\n"
        ".endr\n"
        "  wrffr p5.b\n"
        "1: subs x0, x0, #1\n"
        "  b.ne 1b\n"
        "  mov x0, #0\n"
        "  rdffr p0.b\n"
        "  cntp x1, p0, p0.b\n"
        "  cmp x1, #5\n"
        "  cinc x0, x0, ne\n"
        "  ptrue p0.b\n"
        ".irp n, 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
        "  cntp x1, p0, p\\n\\().b\n"
        "  cmp x1, #\\n\n"
        "  cinc x0, x0, ne\n"
        ".endr\n"
        /* Z31 is used to look at the others. */
        ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,"
        "24,25,26,27,28,29,30\n"
        "  index z31.d, #\\n - 16, #3\n"
        "  cmpne p1.d, p0/z, z\\n\\().d, z31.d\n"
        "  cset x1, ne\n"
        "  add x0, x0, x1\n"
        ".endr\n"
        "  ldp d14, d15, [sp, #48]\n"
        "  ldp d12, d13, [sp, #32]\n"
        "  ldp d10, d11, [sp, #16]\n"
        "  ldp d8, d9, [sp], #64\n"
        "  ret\n"
        ".arch armv8-a\n");

/* Everything gets another value in the handler. */
static void scribble(void)
{
    __asm__ volatile(
        "movi v0.16b, #0xff\n movi v1.16b, #0xff\n movi v2.16b, #0xff\n"
        "movi v3.16b, #0xff\n movi v4.16b, #0xff\n movi v5.16b, #0xff\n"
        "movi v6.16b, #0xff\n movi v7.16b, #0xff\n movi v16.16b, #0xff\n"
        "movi v17.16b, #0xff\n movi v18.16b, #0xff\n movi v19.16b, #0xff\n"
        "movi v20.16b, #0xff\n movi v21.16b, #0xff\n movi v22.16b, #0xff\n"
        "movi v23.16b, #0xff\n movi v24.16b, #0xff\n movi v25.16b, #0xff\n"
        "movi v26.16b, #0xff\n movi v27.16b, #0xff\n movi v28.16b, #0xff\n"
        "movi v29.16b, #0xff\n movi v30.16b, #0xff\n movi v31.16b, #0xff\n"
        "movi v8.16b, #0xff\n movi v9.16b, #0xff\n movi v10.16b, #0xff\n"
        "movi v11.16b, #0xff\n movi v12.16b, #0xff\n movi v13.16b, #0xff\n"
        "movi v14.16b, #0xff\n movi v15.16b, #0xff\n"
        "msr fpsr, xzr\n msr fpcr, xzr\n tst xzr, xzr\n" ::
            : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10",
              "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19",
              "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28",
              "v29", "v30", "v31", "cc");
}

static void tick(int sig)
{
    (void) sig;
    count++;
    scribble();
}

static void on(int sig, void *handler, int flags)
{
    struct sigaction act = {.sa_handler = (void (*)(int)) handler,
                            .sa_flags = flags};
    need(sigaction(sig, &act, NULL) == 0, "sigaction");
    count = 0;
}

/* Some time with both ends at work. */
static uint64_t spin(uint64_t (*check)(uint64_t), int rounds)
{
    uint64_t bad = 0;

    while (count < rounds)
        bad |= check(2000);
    return bad;
}

static void test_timer(uint64_t (*check)(uint64_t), const char *name)
{
    struct itimerval timer = {{0, 500}, {0, 500}}, off = {{0, 0}, {0, 0}};

    on(SIGALRM, tick, SA_RESTART);
    need(setitimer(ITIMER_REAL, &timer, NULL) == 0, "setitimer");
    is(spin(check, ROUNDS), 0, name);
    need(setitimer(ITIMER_REAL, &off, NULL) == 0, "setitimer");
}

/* --- A thread that sends */

typedef struct sender {
    pid_t tid;
    int sig;
    atomic_bool stop;
    pthread_t thread;
} sender_t;

static void *send_main(void *arg)
{
    sender_t *s = arg;
    pid_t pid = getpid();

    while (!atomic_load_explicit(&s->stop, memory_order_relaxed))
        if (syscall(SYS_tgkill, pid, s->tid, s->sig))
            _exit(96);
    return NULL;
}

static void sender_start(sender_t *s, int sig)
{
    s->tid = (pid_t) syscall(SYS_gettid);
    s->sig = sig;
    atomic_init(&s->stop, false);
    need(pthread_create(&s->thread, NULL, send_main, s) == 0, "pthread_create");
}

static void sender_stop(sender_t *s)
{
    atomic_store_explicit(&s->stop, true, memory_order_relaxed);
    need(pthread_join(s->thread, NULL) == 0, "pthread_join");
}

static void test_storm(void)
{
    sender_t sender;

    on(SIGUSR1, tick, SA_RESTART);
    sender_start(&sender, SIGUSR1);
    is(spin(check_registers, ROUNDS), 0,
       "registers: signals as fast as a thread can send");
    sender_stop(&sender);
}

/* --- As Go preempts: the handler makes it look as if the program had called
 * this function where it was. x27 is the one register that is not kept. */

atomic_int preempted;
void preempt_entry(void);
__asm__(".balign 16\n"
        ".global preempt_entry\n"
        "preempt_entry:\n"
        "  stp x29, x30, [sp, #-80]!\n"
        "  stp x0, x1, [sp, #16]\n"
        "  stp x2, x3, [sp, #32]\n"
        "  str q0, [sp, #48]\n"
        "  mrs x27, nzcv\n"
        "  str x27, [sp, #64]\n"
        "  adrp x0, preempted\n"
        "  add x0, x0, :lo12:preempted\n"
        "1: ldaxr w1, [x0]\n"
        "  add w1, w1, #1\n"
        "  stlxr w2, w1, [x0]\n"
        "  cbnz w2, 1b\n"
        "  ldr x27, [sp, #64]\n"
        "  msr nzcv, x27\n"
        "  ldr q0, [sp, #48]\n"
        "  ldp x2, x3, [sp, #32]\n"
        "  ldp x0, x1, [sp, #16]\n"
        "  ldp x29, x30, [sp], #80\n"
        "  mov x27, x30\n"
        "  ldr x30, [sp], #16\n"
        "  br x27\n");

uint64_t preemptible_loop(uint64_t spins);
extern char preemptible_begin[], preemptible_end[];
/* x0 counts down, x1 up by 3; the result is x1. */
__asm__(".balign 16\n"
        ".global preemptible_loop, preemptible_begin, preemptible_end\n"
        "preemptible_loop:\n"
        "  str x30, [sp, #-32]!\n"
        "  str x27, [sp, #16]\n"
        "  mov x1, #0\n"
        "  mov x30, #77\n"
        "preemptible_begin:\n"
        "  add x1, x1, #3\n"
        "  subs x0, x0, #1\n"
        "  b.ne preemptible_begin\n"
        "preemptible_end:\n"
        "  mov x0, x1\n"
        "  sub x0, x0, #77\n"
        "  add x0, x0, x30\n"
        "  ldr x27, [sp, #16]\n"
        "  ldr x30, [sp], #32\n"
        "  ret\n");

static char stack[65536] __attribute__((aligned(16)));

static void preempt(int sig, siginfo_t *info, void *p)
{
    ucontext_t *uc = p;
    uint64_t pc = uc->uc_mcontext.pc;

    (void) sig;
    (void) info;
    count++;
    scribble();
    if (pc < (uintptr_t) preemptible_begin || pc >= (uintptr_t) preemptible_end)
        return;
    uc->uc_mcontext.sp -= 16;
    *(uint64_t *) uc->uc_mcontext.sp = uc->uc_mcontext.regs[30];
    uc->uc_mcontext.regs[30] = pc;
    uc->uc_mcontext.pc = (uintptr_t) preempt_entry;
}

static void test_preemption(void)
{
    stack_t ss = {.ss_sp = stack, .ss_size = sizeof stack};
    sender_t sender;
    int wrong = 0;

    need(sigaltstack(&ss, NULL) == 0, "sigaltstack");
    on(SIGURG, preempt, SA_SIGINFO | SA_ONSTACK | SA_RESTART);
    sender_start(&sender, SIGURG);
    while (atomic_load_explicit(&preempted, memory_order_relaxed) < ROUNDS)
        wrong += preemptible_loop(5000) != 15000;
    sender_stop(&sender);
    is(wrong, 0, "preempted by SIGURG, 200 times, the sum is right");
}

int main(void)
{
    is(check_registers(1000), 0, "registers: without a signal");
    test_timer(check_registers, "registers: a timer's storm");
    test_storm();
    if (getauxval(AT_HWCAP) & HWCAP_SVE) {
        is(check_vectors(1000), 0, "SVE: without a signal");
        test_timer(check_vectors, "SVE: a timer's storm");
    }
    test_preemption();
    return tap_done();
}
