/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the guest process: how they come and go. */
#ifndef ELFUSE_PROC_THREAD_H
#define ELFUSE_PROC_THREAD_H

#include "proc/clone.h"
#include "proc/proc.h"

/* clone with CLONE_THREAD. The new thread's tid, or -errno. */
int64_t thread_clone(thread_t *t, const clone_args_t *args);

/* The registers of a child, in its frame: its parent's, which has its FP
 * registers there, but for what the arguments say. */
void thread_copy_registers(const thread_t *t, thread_t *child,
                           const clone_args_t *args);

/* A structure for a thread on that vCPU; neither mm nor the world knows it.
 * NULL: no memory. */
thread_t *thread_new(proc_t *proc, vcpu_t *slot);

/* proc/thread_host.c: once, before the guest's first instruction. -EAGAIN: this
 * process cannot have threads. */
int host_prepare(void);
/*
 * The same file: a thread on that vCPU with a host thread made by `self`,
 * whose attributes it inherits. It runs the vCPU once and waits
 * (host_wait_ready()); then it is sent into the guest, or away. All signals are
 * blocked in it. NULL: there is none to be had, and the vCPU is free.
 */
thread_t *host_start(thread_t *self, vcpu_t *slot);
/* -EAGAIN: it could not; it is about to end (world_add_ended()). */
int host_wait_ready(thread_t *thread);
/* Let it call unshare() for itself; its error, after which it is gone. */
int host_unshare(thread_t *thread, uint64_t flags);
/* Into the guest, with what is in its frame and signal. mm and the world know
 * it. */
void host_go(thread_t *thread);
/* It has waited in vain. */
void host_quit(thread_t *self, thread_t *thread);

/*
 * In a fork child, on a vCPU of its own that nobody has run: it is to go on
 * with what is in its frame, FP registers too. -errno, with a line in
 * hv_error().
 */
int thread_restart(thread_t *thread);

/* Join the host threads that have ended and free what they had. Before a fork,
 * with the world stopped: then there are only the world's members. */
void thread_reap(thread_t *self);

#endif
