/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/spares.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include "proc/thread.h"

/* How many of one thread's are made ready together, and when to begin anew. */
#define SPARES_BATCH 16U
#define SPARES_FEW   4U

struct spares {
    /* Who looks for a vCPU that was used: one thread at a time, so that none
     * sees the vCPUs in another's hands. Taken at a safe point, since its
     * holder comes to some; the world's lock may be taken under it. */
    pthread_mutex_t taking;
    pthread_mutex_t lock;        /* the list; a leaf */
    TAILQ_HEAD(, thread) list;   /* linked by world.entry; oldest first */
    _Atomic uint32_t generation; /* counts changes of attributes */
};

spares_t *spares_create(void)
{
    spares_t *spares = calloc(1, sizeof *spares);

    if (spares)
        spares_after_fork(spares);
    return spares;
}

void spares_after_fork(spares_t *spares)
{
    pthread_mutex_init(&spares->taking, NULL);
    pthread_mutex_init(&spares->lock, NULL);
    TAILQ_INIT(&spares->list);
}

void spares_outdate(spares_t *spares)
{
    /* Relaxed: the attribute itself is the kernel's. */
    atomic_fetch_add_explicit(&spares->generation, 1, memory_order_relaxed);
}

static uint32_t generation(const spares_t *spares)
{
    return atomic_load_explicit(&spares->generation, memory_order_relaxed);
}

static bool is_of(const thread_t *spare, const thread_t *self)
{
    return spare->host.creator == self->tid;
}

static bool is_usable(const thread_t *spare, const thread_t *self)
{
    return is_of(spare, self) &&
           spare->host.generation == generation(self->proc->spares);
}

static bool is_useless(const thread_t *spare, const thread_t *self)
{
    return is_of(spare, self) && !is_usable(spare, self);
}

static bool is_anything(const thread_t *spare, const thread_t *self)
{
    return true;
}

/* The oldest of which this is true, off the list; or NULL. */
static thread_t *unlist(thread_t *self,
                        bool (*wanted)(const thread_t *, const thread_t *))
{
    spares_t *spares = self->proc->spares;
    thread_t *t;

    pthread_mutex_lock(&spares->lock);
    TAILQ_FOREACH (t, &spares->list, world.entry) {
        if (wanted(t, self))
            break;
    }
    if (t)
        TAILQ_REMOVE(&spares->list, t, world.entry);
    pthread_mutex_unlock(&spares->lock);
    return t;
}

static unsigned count_usable(thread_t *self)
{
    spares_t *spares = self->proc->spares;
    unsigned n = 0;
    thread_t *t;

    pthread_mutex_lock(&spares->lock);
    TAILQ_FOREACH (t, &spares->list, world.entry)
        n += is_usable(t, self);
    pthread_mutex_unlock(&spares->lock);
    return n;
}

static void send_away(thread_t *self,
                      bool (*wanted)(const thread_t *, const thread_t *))
{
    thread_t *t;

    while ((t = unlist(self, wanted)))
        host_quit(self, t);
}

/* Up to SPARES_BATCH of them, as many as there are free vCPUs. False: a host
 * thread could not be made. */
static bool fill(thread_t *self)
{
    spares_t *spares = self->proc->spares;

    for (unsigned n = count_usable(self); n < SPARES_BATCH; n++) {
        uint32_t now = generation(spares);
        vcpu_t *slot = vcpus_take_free(self->proc);
        thread_t *t = slot ? host_start(self, slot) : NULL;

        if (!t)
            return !slot;
        t->host.creator = self->tid;
        t->host.generation = now;
        pthread_mutex_lock(&spares->lock);
        TAILQ_INSERT_TAIL(&spares->list, t, world.entry);
        pthread_mutex_unlock(&spares->lock);
    }
    return true;
}

static thread_t *take(thread_t *self, bool *failed)
{
    thread_t *t;

    send_away(self, is_useless);
    if (count_usable(self) < SPARES_FEW)
        *failed = !fill(self);
    t = unlist(self, is_usable);
    if (t)
        return t;
    /* What vCPUs there are, others keep: take them all back. Joined, the
     * threads have given them up. */
    send_away(self, is_anything);
    thread_reap(self);
    *failed = !fill(self);
    return unlist(self, is_usable);
}

thread_t *spares_take(thread_t *self, bool *failed)
{
    spares_t *spares = self->proc->spares;
    thread_t *t;

    world_enter_safe(self);
    pthread_mutex_lock(&spares->taking);
    world_leave_safe(self);
    t = take(self, failed);
    pthread_mutex_unlock(&spares->taking);
    return t;
}

void spares_drop(thread_t *self)
{
    send_away(self, is_of);
}
