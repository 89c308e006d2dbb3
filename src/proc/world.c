/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/world.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "proc/proc.h"
#include "proc/word.h"

void world_init(world_t *world)
{
    pthread_mutexattr_t attr;

    /* A vfork child that was killed with the lock has its parent's name in it:
     * an error there, and no wait without end. */
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&world->lock, &attr);
    pthread_mutexattr_destroy(&attr);
    atomic_init(&world->nr_vforked, 0);
    atomic_init(&world->stop, 0); /* STOP_NONE */
    atomic_init(&world->count, 0);
    atomic_init(&world->stopper, NULL);
    atomic_init(&world->nr_ended, 0);
    TAILQ_INIT(&world->threads);
    TAILQ_INIT(&world->ended);
}

/* seq_cst: see world.h. */
static void set_state(thread_t *t, uint32_t state)
{
    atomic_store_explicit(&t->world.state, state, memory_order_seq_cst);
}

/* world_t.stop */
enum { STOP_NONE, STOP_ALL, STOP_OWN /* not vfork children */ };

static uint32_t stop_of(const thread_t *t)
{
    return atomic_load_explicit(&t->proc->world->stop, memory_order_seq_cst);
}

void world_enter_safe(thread_t *t)
{
    set_state(t, WORLD_SAFE);
    if (stop_of(t))
        word_wake(&t->world.state);
}

/* From SAFE to `state`, which is not safe. */
static void leave_safe_for(thread_t *t, uint32_t state)
{
    for (;;) {
        uint32_t stop;

        set_state(t, state);
        stop = stop_of(t);
        if (stop == STOP_NONE || (stop == STOP_OWN && t->proc->vforked))
            return;
        world_enter_safe(t);
        word_wait(&t->proc->world->stop, stop);
    }
}

void world_leave_safe(thread_t *t)
{
    leave_safe_for(t, WORLD_HOST);
}

void world_enter_guest(thread_t *t)
{
    leave_safe_for(t, WORLD_GUEST);
}

/*
 * A kick that was on its way when the vCPU came out by itself must not
 * interrupt the system call that the thread goes on to: wait until it has been
 * sent, and let its signal be taken now.
 */
void world_leave_guest(thread_t *t)
{
    set_state(t, WORLD_HOST);
    /* seq_cst: pairs with kick()'s increment, which precedes its look at our
     * state. */
    while (atomic_load_explicit(&t->world.kicking, memory_order_seq_cst) != 0)
        sched_yield();
    /* A plain look first. Acquire: pairs with kick()'s release of `kicking`. */
    if (atomic_load_explicit(&t->world.kicked, memory_order_acquire)) {
        atomic_store_explicit(&t->world.kicked, false, memory_order_relaxed);
        (void) syscall(SYS_getppid);
    }
}

static void kick(thread_t *t)
{
    atomic_fetch_add_explicit(&t->world.kicking, 1, memory_order_seq_cst);
    if (atomic_load_explicit(&t->world.state, memory_order_seq_cst) ==
        WORLD_GUEST) {
        atomic_store_explicit(&t->world.kicked, true, memory_order_relaxed);
        hv_vcpu_kick(t->vcpu);
    }
    /* Release: `kicked` and the signal come before. */
    atomic_fetch_sub_explicit(&t->world.kicking, 1, memory_order_release);
}

/* The list's lock, taken at a safe point: its holder may want us to stop. */
static void world_lock(thread_t *self)
{
    int error;

    set_state(self, WORLD_SAFE);
    if (stop_of(self))
        word_wake(&self->world.state);
    error = pthread_mutex_lock(&self->proc->world->lock);
    if (error)
        elfuse_panic("world: lock: %s", strerror(error));
    /* Only the lock's holder stops the world. */
    set_state(self, WORLD_HOST);
}

static void world_unlock(thread_t *self)
{
    int error = pthread_mutex_unlock(&self->proc->world->lock);

    if (error)
        elfuse_panic("world: unlock: %s", strerror(error));
}

void world_add(thread_t *self, thread_t *other)
{
    world_t *world = self->proc->world;

    world_lock(self);
    TAILQ_INSERT_TAIL(&world->threads, other, world.entry);
    atomic_fetch_add_explicit(&world->count, 1, memory_order_relaxed);
    /* Relaxed: a hint, for who knows the child's pid by other means. */
    if (other->proc->vforked)
        atomic_fetch_add_explicit(&world->nr_vforked, 1, memory_order_relaxed);
    world_unlock(self);
}

void world_remove(thread_t *self, thread_t *other)
{
    world_t *world = self->proc->world;

    world_lock(self);
    TAILQ_REMOVE(&world->threads, other, world.entry);
    atomic_fetch_sub_explicit(&world->count, 1, memory_order_relaxed);
    if (other->proc->vforked)
        atomic_fetch_sub_explicit(&world->nr_vforked, 1, memory_order_relaxed);
    world_unlock(self);
}

void world_join(thread_t *t)
{
    world_add(t, t);
}

void world_leave(thread_t *t)
{
    world_remove(t, t);
}

/* Into the list of those to be joined; the lock is held. */
static void list_ended(world_t *world, thread_t *t)
{
    TAILQ_INSERT_TAIL(&world->ended, t, world.entry);
    /* Relaxed: a hint for who looks without the lock. */
    atomic_fetch_add_explicit(&world->nr_ended, 1, memory_order_relaxed);
}

void world_end(thread_t *t)
{
    world_t *world = t->proc->world;

    world_lock(t);
    TAILQ_REMOVE(&world->threads, t, world.entry);
    atomic_fetch_sub_explicit(&world->count, 1, memory_order_relaxed);
    list_ended(world, t);
    world_unlock(t);
}

void world_add_ended(thread_t *self, thread_t *other)
{
    world_lock(self);
    list_ended(self->proc->world, other);
    world_unlock(self);
}

static thread_t *unlist_ended(world_t *world)
{
    thread_t *t = TAILQ_FIRST(&world->ended);

    if (t) {
        TAILQ_REMOVE(&world->ended, t, world.entry);
        atomic_fetch_sub_explicit(&world->nr_ended, 1, memory_order_relaxed);
    }
    return t;
}

thread_t *world_take_ended(thread_t *self)
{
    world_t *world = self->proc->world;
    thread_t *t;

    if (!atomic_load_explicit(&world->nr_ended, memory_order_relaxed))
        return NULL;
    /* Relaxed: only we ourselves store our own address. */
    if (atomic_load_explicit(&world->stopper, memory_order_relaxed) == self)
        return unlist_ended(world);
    world_lock(self);
    t = unlist_ended(world);
    world_unlock(self);
    return t;
}

bool world_find(thread_t *self, pid_t tid, uint64_t *robust)
{
    thread_t *t;
    bool found = false;

    world_lock(self);
    WORLD_FOREACH(t, self->proc->world)
    {
        if (t->tid != tid || t->proc != self->proc)
            continue;
        found = true;
        *robust = t->robust;
    }
    world_unlock(self);
    return found;
}

/* False: not until then. */
static bool wait_until_safe(thread_t *t, const struct timespec *until)
{
    uint32_t state;

    while ((state = atomic_load_explicit(&t->world.state,
                                         memory_order_seq_cst)) != WORLD_SAFE) {
        if (state == WORLD_GUEST)
            kick(t);
        if (word_wait_until(&t->world.state, state, until) == ETIMEDOUT)
            return false;
    }
    return true;
}

static bool stop(thread_t *self, const struct timespec *until)
{
    world_t *world = self->proc->world;
    bool all = true;
    thread_t *t;

    world_lock(self);
    atomic_store_explicit(&world->stopper, self, memory_order_relaxed);
    atomic_store_explicit(&world->stop, STOP_ALL, memory_order_seq_cst);
    TAILQ_FOREACH (t, &world->threads, world.entry) {
        if (t != self)
            all = wait_until_safe(t, until) && all;
    }
    return all;
}

void world_stop(thread_t *self)
{
    (void) stop(self, NULL);
}

bool world_stop_within(thread_t *self, unsigned ms)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += (long) (ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    return stop(self, &until);
}

void world_resume(thread_t *self)
{
    world_t *world = self->proc->world;

    atomic_store_explicit(&world->stopper, NULL, memory_order_relaxed);
    atomic_store_explicit(&world->stop, STOP_NONE, memory_order_seq_cst);
    word_wake(&world->stop);
    world_unlock(self);
}

bool world_let_children_go(thread_t *self)
{
    world_t *world = self->proc->world;

    /* Relaxed: written under the lock, which we have. */
    if (!atomic_load_explicit(&world->nr_vforked, memory_order_relaxed))
        return false;
    atomic_store_explicit(&world->stopper, NULL, memory_order_relaxed);
    atomic_store_explicit(&world->stop, STOP_OWN, memory_order_seq_cst);
    word_wake(&world->stop);
    /* Nobody waits for us, who are gone. */
    set_state(self, WORLD_SAFE);
    world_unlock(self);
    return true;
}

void world_regain(thread_t *self)
{
    world_lock(self);
}

void world_after_fork(thread_t *self)
{
    world_init(self->proc->world);
    atomic_store_explicit(&self->world.kicking, 0, memory_order_relaxed);
    world_join(self);
}
