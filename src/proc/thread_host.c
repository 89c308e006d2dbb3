/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host threads for threads of the guest. One begins on its own: it makes the
 * vCPU its own by running it once, and waits until it is told to go on as a
 * thread of the guest, or to end. The C library's lists and caches are touched
 * by who creates and joins it, never by the thread itself outside the world, so
 * that a fork finds them at rest.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proc/run.h"
#include "proc/thread.h"
#include "proc/word.h"

/* What serving a call needs, with room: buffers on the stack are a few pages.
 */
#define HOST_STACK_SIZE (256UL << 10)

enum stage {
    HOST_STARTING,
    HOST_READY,   /* its vCPU is its own; it waits */
    HOST_UNSHARE, /* told to; READY or FAILED again afterwards */
    HOST_GO,
    HOST_QUIT,
    HOST_FAILED, /* it ends by itself */
};

/* Release: with the stage comes what was written before it. */
static void set_stage(thread_t *t, uint32_t stage)
{
    atomic_store_explicit(&t->host.stage, stage, memory_order_release);
    word_wake(&t->host.stage);
}

/* A spare may have been sent away already. */
static void become_ready(thread_t *t)
{
    uint32_t stage = HOST_STARTING;

    /* Release: as set_stage(). */
    if (atomic_compare_exchange_strong_explicit(
            &t->host.stage, &stage, HOST_READY, memory_order_release,
            memory_order_relaxed))
        word_wake(&t->host.stage);
}

/* The stage when it is no longer `stage`. Acquire: see set_stage(). */
static uint32_t wait_stage(thread_t *t, uint32_t stage)
{
    uint32_t now;

    while ((now = atomic_load_explicit(&t->host.stage, memory_order_acquire)) ==
           stage)
        word_wait(&t->host.stage, stage);
    return now;
}

static uint64_t set_mask(uint64_t mask)
{
    uint64_t old = 0;

    (void) syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask, &old, sizeof mask);
    return old;
}

/* A new vCPU says that it is ready; one that was another thread's carries an
 * empty request out. */
static int run_first(thread_t *t)
{
    bool fresh = t->frame->exit == FRAME_EXIT_NONE;
    uint32_t want = fresh ? FRAME_EXIT_READY : FRAME_EXIT_TLB_DONE;

    if (!fresh) {
        t->frame->tlb.kind = TLB_AT_ONCE;
        t->frame->tlb.nr_stores = 0;
    }
    if (hv_vcpu_run(t->vcpu) != HV_EXIT_DOORBELL)
        return -EAGAIN;
    if (t->frame->exit != want)
        elfuse_panic("vCPU %u began with exit %u", t->frame->vcpu,
                     t->frame->exit);
    return 0;
}

static bool serve_unshare(thread_t *t)
{
    if (syscall(SYS_unshare, t->host.unshare)) {
        t->host.error = -errno;
        return false;
    }
    set_stage(t, HOST_READY);
    return true;
}

/* True: into the guest. */
static bool wait_for_go(thread_t *t)
{
    for (;;) {
        switch (wait_stage(t, HOST_READY)) {
        case HOST_UNSHARE:
            if (serve_unshare(t))
                break;
            return false;
        case HOST_GO:
            return true;
        default:
            return false;
        }
    }
}

static void *host_main(void *arg)
{
    thread_t *t = arg;

    t->tid = (pid_t) syscall(SYS_gettid);
    hv_vcpu_adopt(t->vcpu);
    t->host.error = run_first(t);
    if (t->host.error) {
        /* Nothing is known of such a vCPU: it is not used any more. */
        set_stage(t, HOST_FAILED);
        return NULL;
    }
    become_ready(t);
    if (!wait_for_go(t)) {
        hv_vcpu_release(t->vcpu);
        vcpus_give_back(t->proc, t->slot);
        if (t->host.error)
            set_stage(t, HOST_FAILED);
        return NULL;
    }
    thread_self = t;
    world_leave_safe(t);
    signal_thread_start(t);
    thread_run(t);
    return NULL;
}

static void *do_nothing(void *arg)
{
    return arg;
}

/*
 * When it makes its first thread, the C library takes the two signals before
 * SIGRTMIN for itself: it unblocks both and has a handler for the second. They
 * are the guest's, so that is over before the guest runs.
 */
int host_prepare(void)
{
    const int setxid = SIGRTMIN - 1;
    signal_action_t action;
    uint64_t mask = set_mask(~0UL);
    pthread_t thread;
    int error;

    (void) syscall(SYS_rt_sigaction, setxid, NULL, &action, SIGSET_SIZE);
    error = pthread_create(&thread, NULL, do_nothing, NULL);
    if (!error)
        error = pthread_join(thread, NULL);
    (void) syscall(SYS_rt_sigaction, setxid, &action, NULL, SIGSET_SIZE);
    set_mask(mask);
    return error ? -EAGAIN : 0;
}

/* In host_main() a new vCPU is known by its frame. */
static int start(thread_t *thread)
{
    pthread_attr_t attr;
    uint64_t old;
    int error;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, HOST_STACK_SIZE);
    old = set_mask(~0UL);
    error = pthread_create(&thread->host.pthread, &attr, host_main, thread);
    set_mask(old);
    pthread_attr_destroy(&attr);
    return error;
}

thread_t *host_start(thread_t *self, vcpu_t *slot)
{
    thread_t *thread = thread_new(self->proc, slot);

    if (thread && start(thread)) {
        free(thread);
        thread = NULL;
    }
    if (!thread)
        vcpus_give_back(self->proc, slot);
    return thread;
}

int host_wait_ready(thread_t *thread)
{
    return wait_stage(thread, HOST_STARTING) == HOST_READY ? 0 : -EAGAIN;
}

int host_unshare(thread_t *thread, uint64_t flags)
{
    thread->host.unshare = flags;
    set_stage(thread, HOST_UNSHARE);
    return wait_stage(thread, HOST_UNSHARE) == HOST_READY ? 0
                                                          : thread->host.error;
}

void host_go(thread_t *thread)
{
    set_stage(thread, HOST_GO);
}

void host_quit(thread_t *self, thread_t *thread)
{
    set_stage(thread, HOST_QUIT);
    world_add_ended(self, thread);
}

void thread_reap(thread_t *self)
{
    thread_t *t;
    int error;

    while ((t = world_take_ended(self))) {
        error = pthread_join(t->host.pthread, NULL);
        if (error)
            elfuse_panic("thread %d cannot be joined: %d", t->tid, error);
        free(t);
    }
}
