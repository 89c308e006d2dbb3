/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stopping all other guest threads, for what must not happen under their eyes:
 * a fork, a new batch of vCPUs.
 *
 * Each thread is in one of three states. In HOST it runs elfuse's code and may
 * hold locks. In GUEST its vCPU runs. At a safe point (SAFE) it is in neither:
 * it holds no lock, is not in the C library's allocator, and its frame is
 * valid; that is where it waits when the world is stopped, and where it is
 * while it blocks in a system call of the guest. Whoever leaves a safe point
 * while the world is stopped goes back and waits.
 *
 * The state and the stop request are store buffering: a thread stores its new
 * state and then reads the request, the stopper stores the request and then
 * reads the states. Both sides are seq_cst, so one of them sees the other.
 */
#ifndef ELFUSE_PROC_WORLD_H
#define ELFUSE_PROC_WORLD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <sys/types.h>

#include <bsd/sys/queue.h>

struct thread;

enum world_state { WORLD_HOST, WORLD_GUEST, WORLD_SAFE };

/* A thread's part. */
typedef struct world_member {
    _Atomic uint32_t state;    /* enum world_state; a futex word */
    _Atomic uint32_t kicking;  /* others between their look at state and the
                                  end of their kick */
    _Atomic bool kicked;       /* a kick's signal is on its way to us */
    TAILQ_ENTRY(thread) entry; /* in world_t.threads */
} world_member_t;

/* All threads that run on one guest memory, a vfork child's too. */
typedef struct world {
    pthread_mutex_t lock;   /* the list; held by the stopper all the while */
    _Atomic uint32_t stop;  /* a futex word */
    _Atomic uint32_t count; /* of threads; written under lock */
    _Atomic uint32_t nr_vforked; /* of them vfork children; likewise */
    TAILQ_HEAD(, thread) threads;
    _Atomic(struct thread *) stopper; /* who has stopped the world */
    /* Not members any more: host threads that only have to be joined. */
    TAILQ_HEAD(, thread) ended;
    _Atomic uint32_t nr_ended; /* written under lock */
} world_t;

void world_init(world_t *world);

/* The calling thread comes, in HOST, and goes. */
void world_join(struct thread *thread);
void world_leave(struct thread *thread);
/* The calling thread goes, and is to be joined: it takes no lock any more. */
void world_end(struct thread *thread);
/* To be joined, too, though never a member: it is about to end by itself. */
void world_add_ended(struct thread *self, struct thread *other);
/* One that is to be joined, or NULL. Also with the world stopped. */
struct thread *world_take_ended(struct thread *self);
/* Is tid a thread of self's process? Then *robust is its list, too. */
bool world_find(struct thread *self, pid_t tid, uint64_t *robust);
/* Put in and take out another thread, which is not running: a vfork child's,
 * by its suspended parent. */
void world_add(struct thread *self, struct thread *other);
void world_remove(struct thread *self, struct thread *other);

/* Between HOST and GUEST. world_enter_guest() is a safe point: it returns when
 * the world is not stopped. */
void world_enter_guest(struct thread *thread);
void world_leave_guest(struct thread *thread);

/* Between HOST and SAFE, around a call that may block. */
void world_enter_safe(struct thread *thread);
void world_leave_safe(struct thread *thread);

/*
 * All other threads are at a safe point from the return on until
 * world_resume(). Calls do not nest; several stoppers take turns, being at a
 * safe point while they wait. The caller holds no lock.
 */
void world_stop(struct thread *self);
/* For the end of the process: some may not be at a safe point after so many
 * milliseconds; false then. They do not run on after their call either way. */
bool world_stop_within(struct thread *self, unsigned ms);
void world_resume(struct thread *self);

/*
 * The process with the stopped world is about to end or to execute something.
 * Its vfork children run on without it and may need the lock; its own threads
 * stay where they are. False: there are none, and all is as before. True:
 * world_regain() if the exec has failed, then world_resume().
 */
bool world_let_children_go(struct thread *self);
void world_regain(struct thread *self);

/* In a fork child, whose parent had stopped the world: only `self` is left. */
void world_after_fork(struct thread *self);

/* Walk the list: between world_stop() and world_resume() only. */
#define WORLD_FOREACH(t, the_world) \
    TAILQ_FOREACH (t, &(the_world)->threads, world.entry)

#endif
