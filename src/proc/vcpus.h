/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vCPUs of a VM. There are 512 at most, none can be destroyed, and one that
 * another host thread runs for the first time makes the kernel wait (before
 * 6.13: 9 to 34 ms). So a thread gets one that nobody has run yet, and only
 * when there is none left, that of a thread which has ended.
 */
#ifndef ELFUSE_PROC_VCPUS_H
#define ELFUSE_PROC_VCPUS_H

#include <pthread.h>

#include <bsd/sys/queue.h>

#include "abi/frame.h"
#include "hv/hv.h"

struct proc;
struct thread;

typedef struct vcpu {
    unsigned id; /* the hypervisor's number, and that of its area */
    hv_vcpu_t *hv;
    vcpu_frame_t *frame;
    TAILQ_ENTRY(vcpu) entry; /* in vcpus_t.free */
} vcpu_t;

typedef struct vcpus {
    pthread_mutex_t lock;    /* all of this; nothing is taken under it but
                                what hv_* takes */
    unsigned made;           /* ids from 0 that the VM has */
    unsigned used;           /* of these, how many have been taken once */
    TAILQ_HEAD(, vcpu) free; /* parked, of threads that have ended */
    _Atomic uint32_t ending; /* threads whose vCPU is about to be free; a futex
                                word */
    vcpu_t vcpu[VCPU_MAX];
} vcpus_t;

/* Those of a new VM, which has number 0. NULL: no memory. */
vcpus_t *vcpus_create(void);

/*
 * One that nobody has run: it will ring FRAME_EXIT_READY. `self` may stop the
 * world for it (at a safe point, no lock held), or is NULL for the first of
 * all. NULL: there is none; hv_error().
 */
vcpu_t *vcpus_take_new(struct proc *proc, struct thread *self);
/* In a fork child, whose VM is a new one: vCPU 0 is the calling thread's, with
 * the frame that it had; there are no others. -errno; hv_error(). */
int vcpus_renew(struct proc *proc, struct thread *self);
/* One that is parked, or NULL. */
vcpu_t *vcpus_take_free(struct proc *proc);
/* It is parked and its host thread has released it. */
void vcpus_give_back(struct proc *proc, vcpu_t *vcpu);

/*
 * Between the two a thread ends: it has told others so, but its vCPU is not
 * free yet. vcpus_wait_free(): there may be a free one now; false when there is
 * none, and nobody is ending.
 */
void vcpus_begin_ending(struct proc *proc);
void vcpus_end_ending(struct proc *proc);
bool vcpus_wait_free(struct proc *proc);

#endif
