/* SPDX-License-Identifier: Apache-2.0 */
/* threaded */
/* sources: src/proc/thread.c src/proc/thread_clone.c src/proc/thread_exit.c */
/* sources: src/proc/thread_host.c src/proc/spares.c src/proc/vcpus.c */
/* sources: src/proc/world.c */
/*
 * Threads that begin and end, on more threads than there are vCPUs over time,
 * beside one that stops the world. The vCPUs are make-believe: they watch that
 * one thread at a time runs one of them, and only one that it has adopted.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <errno.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proc/robust.h"
#include "proc/run.h"
#include "proc/thread.h"
#include "sys/call.h"
#include "sys/fdspace.h"

#define VCPUS   24
#define CLONERS 3
#define ROUNDS  150
#define THREAD                                                          \
    (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | \
     CLONE_SYSVSEM | CLONE_CHILD_CLEARTID)

struct hv_vcpu {
    unsigned id;
    _Atomic pid_t owner;
    _Atomic bool running;
};

static struct hv_vcpu vcpus[VCPUS];
static vcpu_frame_t frames[VCPUS];
static unsigned made = 1;
static _Atomic bool stopped; /* by the thread that stops the world */
static _Atomic unsigned ran, alive, most_alive;
static proc_t proc;
static world_t world;

static void must(bool condition, const char *what)
{
    if (!condition)
        elfuse_panic("%s", what);
}

/* --- the hypervisor */
unsigned hv_vcpus_make(hv_vm_t *vm, unsigned count,
                       int (*move)(int fd, void *arg), void *arg)
{
    must(move(5, arg) == 5, "descriptors are hidden");
    made = count < VCPUS ? count : VCPUS;
    return made;
}

int hv_vcpu_create(hv_vm_t *vm, const hv_vcpu_init_t *init, hv_vcpu_t **vcpu)
{
    must(init->id < made, "a vCPU that is made");
    vcpus[init->id].id = init->id;
    *vcpu = &vcpus[init->id];
    return 0;
}

void hv_vcpu_adopt(hv_vcpu_t *vcpu)
{
    pid_t none = 0;

    must(atomic_compare_exchange_strong(&vcpu->owner, &none,
                                        (pid_t) syscall(SYS_gettid)),
         "a vCPU has one owner");
}

void hv_vcpu_release(hv_vcpu_t *vcpu)
{
    atomic_store(&vcpu->owner, 0);
}

hv_exit_t hv_vcpu_run(hv_vcpu_t *vcpu)
{
    vcpu_frame_t *f = &frames[vcpu->id];

    must(atomic_load(&vcpu->owner) == (pid_t) syscall(SYS_gettid),
         "a thread runs its own vCPU");
    must(!atomic_exchange(&vcpu->running, true), "one thread runs a vCPU");
    if (f->exit == FRAME_EXIT_NONE)
        f->exit = FRAME_EXIT_READY;
    else if (f->tlb.kind & TLB_AT_ONCE)
        f->exit = FRAME_EXIT_TLB_DONE;
    f->tlb.kind = 0;
    sched_yield();
    atomic_store(&vcpu->running, false);
    return HV_EXIT_DOORBELL;
}

void hv_vcpu_kick(hv_vcpu_t *vcpu)
{
}

int hv_counter_set(hv_vcpu_t *vcpu, int64_t advance)
{
    return 0;
}

const char *hv_error(void)
{
    return "";
}

/* --- what surrounds the threads */
vcpu_frame_t *shim_frame(const shim_t *shim, unsigned vcpu)
{
    return &frames[vcpu];
}

uint64_t shim_frame_va(unsigned vcpu)
{
    return vcpu;
}

uint64_t mm_ttbr0(const mm_t *mm)
{
    return 0;
}

void mm_cpu_init(mm_t *mm, mm_cpu_t *cpu, vcpu_frame_t *frame)
{
    cpu->frame = frame;
}

void mm_cpu_park(mm_t *mm, mm_cpu_t *cpu)
{
    must(!atomic_load(&stopped), "nobody serves while the world is stopped");
    cpu->frame = NULL;
}

void mm_cpu_remove(mm_t *mm, mm_cpu_t *cpu)
{
}

/* Guest addresses are the host's here. */
int copy_to_guest(struct mm *mm, struct mm_cpu *cpu, uint64_t to,
                  const void *from, size_t len)
{
    int value;

    must(len == sizeof(value), "only ids are stored");
    memcpy(&value, from, len);
    __atomic_store_n((int *) to, value, __ATOMIC_SEQ_CST);
    return 0;
}

int span_get(struct mm *mm, struct mm_cpu *cpu, uint64_t addr, size_t len,
             enum span_access access, struct iovec *iov, int max,
             span_set_t *set)
{
    iov->iov_base = (void *) addr;
    return 0;
}

void span_put(struct mm_cpu *cpu, span_set_t *set)
{
}

int64_t host_call(uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2,
                  uint64_t a3, uint64_t a4, uint64_t a5)
{
    long ret = syscall((long) nr, a0, a1, a2, a3, a4, a5);

    return ret < 0 ? -errno : ret;
}

void robust_release(thread_t *t, const thread_t *dead)
{
}

void signal_thread_init(thread_t *t, const thread_t *parent, bool keep_stack)
{
}

void signal_thread_start(thread_t *t)
{
}

int fdspace_hide(int fd)
{
    return fd;
}

void fdspace_lift(struct rlimit *old)
{
    *old = (struct rlimit){0, 0};
}

void fdspace_restore(const struct rlimit *old)
{
}

void thread_run_op(thread_t *thread, uint32_t fp_op, uint32_t exit)
{
    thread->frame->exit = exit;
}

void thread_run_shim(mm_cpu_t *cpu)
{
}

/* The life of a guest's thread. */
void thread_run(thread_t *t)
{
    unsigned now = atomic_fetch_add(&alive, 1) + 1, most;

    for (most = atomic_load(&most_alive); now > most;)
        if (atomic_compare_exchange_weak(&most_alive, &most, now))
            break;
    world_enter_guest(t);
    (void) hv_vcpu_run(t->vcpu);
    world_leave_guest(t);
    must(!atomic_load(&stopped), "nobody runs while the world is stopped");
    atomic_fetch_add(&ran, 1);
    atomic_fetch_sub(&alive, 1);
    thread_end(t);
}

_Noreturn void proc_exit(proc_t *p, int status)
{
    elfuse_panic("the process ends");
}

_Noreturn void elfuse_panic(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fprintf(stderr, "\n");
    abort();
}

/* --- the tests */
static thread_t *join_world(void)
{
    vcpu_t *slot = vcpus_take_new(&proc, NULL);
    thread_t *t = slot ? thread_new(&proc, slot) : NULL;

    must(t, "a thread of the test");
    t->tid = (pid_t) syscall(SYS_gettid);
    hv_vcpu_adopt(t->vcpu);
    (void) hv_vcpu_run(t->vcpu);
    world_join(t);
    thread_self = t;
    return t;
}

/* Wait, at a safe point, for the id to be cleared. */
static void join(thread_t *t, int *word)
{
    int now;

    world_enter_safe(t);
    while ((now = __atomic_load_n(word, __ATOMIC_SEQ_CST)))
        (void) host_call(SYS_futex, P(word), FUTEX_WAIT, (uint64_t) now, 0, 0,
                         0);
    world_leave_safe(t);
}

static void *clone_and_join(void *arg)
{
    thread_t *t = arg;
    int word[4];

    t->tid = (pid_t) syscall(SYS_gettid);
    atomic_store(&t->vcpu->owner, t->tid);
    thread_self = t;
    world_leave_safe(t);
    for (int i = 0; i < ROUNDS; i++) {
        unsigned n = 1 + (unsigned) i % 4;

        for (unsigned j = 0; j < n; j++) {
            clone_args_t args = {.flags = THREAD | CLONE_CHILD_SETTID,
                                 .child_tid = P(&word[j])};

            must(thread_clone(t, &args) > 0, "a thread is made");
        }
        for (unsigned j = 0; j < n; j++)
            join(t, &word[j]);
        if (i % 16 == 7)
            spares_outdate(proc.spares);
    }
    spares_drop(t);
    thread_reap(t);
    world_enter_safe(t);
    return NULL;
}

static void make_process(void)
{
    vcpus_t *pool = vcpus_create();

    must(pool, "vCPUs");
    world_init(&world);
    proc = (proc_t){.world = &world, .vcpus = pool, .pid = 1};
    proc.spares = spares_create();
    proc.caps.max_vcpus = VCPUS;
    proc.caps.counter_exact = true;
    threads_count_one(&proc);
}

/* A thread of the test that will run elsewhere: at a safe point until then. */
static thread_t *make_cloner(thread_t *self)
{
    vcpu_t *slot = vcpus_take_new(&proc, self);
    thread_t *t = slot ? thread_new(&proc, slot) : NULL;

    must(t, "a cloner");
    slot->frame->exit = FRAME_EXIT_SYNC;
    atomic_store(&t->world.state, WORLD_SAFE);
    world_add(self, t);
    return t;
}

static void test_many(void **state)
{
    pthread_t thread[CLONERS];
    thread_t *self, *cloner[CLONERS];
    unsigned want = 0;

    make_process();
    self = join_world();
    for (unsigned i = 0; i < CLONERS; i++) {
        cloner[i] = make_cloner(self);
        assert_int_equal(
            pthread_create(&thread[i], NULL, clone_and_join, cloner[i]), 0);
        for (unsigned j = 0; j < ROUNDS; j++)
            want += 1 + j % 4;
    }
    while (atomic_load(&ran) < want) {
        world_stop(self);
        atomic_store(&stopped, true);
        thread_reap(self);
        sched_yield();
        atomic_store(&stopped, false);
        world_resume(self);
        sched_yield();
    }
    world_enter_safe(self);
    for (unsigned i = 0; i < CLONERS; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    world_leave_safe(self);
    thread_reap(self);
    assert_int_equal(atomic_load(&ran), want);
    assert_int_equal(atomic_load(&world.count), 1 + CLONERS);
    /* Every vCPU that no thread of the test has is free. */
    unsigned unused = 0;
    while (vcpus_take_free(&proc))
        unused++;
    assert_int_equal(unused, VCPUS - 1 - CLONERS);
    assert_true(atomic_load(&most_alive) <= VCPUS - 1 - CLONERS);
    for (unsigned i = 0; i < CLONERS; i++)
        free(cloner[i]);
    free(self);
    free(proc.vcpus);
    free(proc.spares);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_many)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
