/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/vcpus.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proc/run.h"
#include "proc/word.h"
#include "sys/fdspace.h"
#include "sys/sys.h"

/* As many are made at a time as there are, within these bounds: they cost the
 * kernel memory, and while they are made nobody runs. */
#define BATCH_LEAST 7U
#define BATCH_MOST  64U

vcpus_t *vcpus_create(void)
{
    vcpus_t *vcpus = calloc(1, sizeof *vcpus);

    if (!vcpus)
        return NULL;
    pthread_mutex_init(&vcpus->lock, NULL);
    TAILQ_INIT(&vcpus->free);
    vcpus->made = 1;
    return vcpus;
}

static int hide_fd(int fd, void *arg)
{
    return fdspace_hide(fd);
}

/*
 * Under a stopped world, so that no thread of the guest sees the descriptors
 * before they are hidden, and none reads the counter before it is right again.
 */
static void make_more(struct proc *proc, thread_t *self)
{
    vcpus_t *vcpus = proc->vcpus;
    unsigned batch, made;
    struct rlimit limit;

    world_stop(self);
    /* Somebody else may have been here since. */
    if (vcpus->used == vcpus->made && vcpus->made < proc->caps.max_vcpus) {
        batch = vcpus->made < BATCH_LEAST  ? BATCH_LEAST
                : vcpus->made > BATCH_MOST ? BATCH_MOST
                                           : vcpus->made;
        /* Even with all its descriptors in use the guest can have threads. */
        fdspace_lift(&limit);
        made = hv_vcpus_make(proc->vm, vcpus->made + batch, hide_fd, NULL);
        fdspace_restore(&limit);
        if (made != vcpus->made && !proc->caps.counter_exact)
            thread_align_counter(self);
        vcpus->made = made;
    }
    world_resume(self);
}

static hv_vcpu_t *create(struct proc *proc, unsigned id)
{
    hv_vcpu_init_t init = {
        .id = id,
        .entry = proc->shim.entry,
        .vectors = proc->shim.vectors,
        .sp_el1 = shim_frame_va(id),
        .ttbr0 = mm_ttbr0(proc->mm),
        .ttbr1 = proc->shim.ttbr1,
    };
    hv_vcpu_t *vcpu;

    return hv_vcpu_create(proc->vm, &init, &vcpu) ? NULL : vcpu;
}

static vcpu_t *take_made(struct proc *proc)
{
    vcpus_t *vcpus = proc->vcpus;
    vcpu_t *vcpu = NULL;

    pthread_mutex_lock(&vcpus->lock);
    if (vcpus->used < vcpus->made) {
        vcpu = &vcpus->vcpu[vcpus->used];
        vcpu->id = vcpus->used;
        vcpu->hv = create(proc, vcpu->id);
        if (vcpu->hv) {
            vcpus->used++;
            vcpu->frame = shim_frame(&proc->shim, vcpu->id);
            /* In a fork child it may be that of a thread of the parent. */
            memset(vcpu->frame, 0, sizeof *vcpu->frame);
            vcpu->frame->vcpu = vcpu->id;
        } else {
            vcpu = NULL;
        }
    }
    pthread_mutex_unlock(&vcpus->lock);
    return vcpu;
}

int vcpus_renew(struct proc *proc, thread_t *self)
{
    vcpus_t *vcpus = proc->vcpus;
    vcpu_t *first = &vcpus->vcpu[0];

    for (unsigned i = 0; i < vcpus->used; i++)
        hv_vcpu_forget(vcpus->vcpu[i].hv);
    pthread_mutex_init(&vcpus->lock, NULL);
    TAILQ_INIT(&vcpus->free);
    vcpus->made = 1;
    vcpus->used = 1;
    atomic_store_explicit(&vcpus->ending, 0, memory_order_relaxed);
    if (self->frame != first->frame) {
        *first->frame = *self->frame;
        first->frame->vcpu = 0;
    }
    first->hv = create(proc, 0);
    if (!first->hv)
        return -EIO;
    self->slot = first;
    self->vcpu = first->hv;
    self->frame = first->frame;
    self->cpu.frame = first->frame;
    return 0;
}

vcpu_t *vcpus_take_new(struct proc *proc, thread_t *self)
{
    vcpu_t *vcpu = take_made(proc);

    if (vcpu || !self)
        return vcpu;
    make_more(proc, self);
    return take_made(proc);
}

vcpu_t *vcpus_take_free(struct proc *proc)
{
    vcpus_t *vcpus = proc->vcpus;
    vcpu_t *vcpu;

    pthread_mutex_lock(&vcpus->lock);
    /* The one that was given back first: its thread is the surest to have left
     * the kernel's books. */
    vcpu = TAILQ_FIRST(&vcpus->free);
    if (vcpu)
        TAILQ_REMOVE(&vcpus->free, vcpu, entry);
    pthread_mutex_unlock(&vcpus->lock);
    return vcpu;
}

void vcpus_give_back(struct proc *proc, vcpu_t *vcpu)
{
    vcpus_t *vcpus = proc->vcpus;

    pthread_mutex_lock(&vcpus->lock);
    TAILQ_INSERT_TAIL(&vcpus->free, vcpu, entry);
    pthread_mutex_unlock(&vcpus->lock);
}

/* seq_cst, here and in the next two: a vCPU is free before nobody is ending any
 * more, and is looked for after that. */
void vcpus_begin_ending(struct proc *proc)
{
    atomic_fetch_add_explicit(&proc->vcpus->ending, 1, memory_order_seq_cst);
}

void vcpus_end_ending(struct proc *proc)
{
    atomic_fetch_sub_explicit(&proc->vcpus->ending, 1, memory_order_seq_cst);
    word_wake(&proc->vcpus->ending);
}

bool vcpus_wait_free(struct proc *proc)
{
    vcpus_t *vcpus = proc->vcpus;
    uint32_t now = atomic_load_explicit(&vcpus->ending, memory_order_seq_cst);
    bool any;

    if (now) {
        word_wait(&vcpus->ending, now);
        return true;
    }
    pthread_mutex_lock(&vcpus->lock);
    any = !TAILQ_EMPTY(&vcpus->free);
    pthread_mutex_unlock(&vcpus->lock);
    return any;
}
