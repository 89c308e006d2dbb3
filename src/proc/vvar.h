/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock page (abi/vvar.h) of this process. It serves nothing until somebody
 * asks for a clock by a system call: then it is filled, and a refresher thread
 * renews its anchors every 250 ms, so that a step of CLOCK_REALTIME shows as
 * soon. After two seconds the page is withdrawn and the refresher sleeps, until
 * the next system call: a program that no longer asks costs nothing, one that
 * does pays an exit in two seconds.
 *
 * Without a refresher (no thread to be had) the page serves for one period
 * only, and the system call that follows renews it.
 */
#ifndef ELFUSE_PROC_VVAR_H
#define ELFUSE_PROC_VVAR_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/*
 * Make the page, in shared anonymous memory of `size` bytes that the guest is
 * to read. counter_hz is CNTVCT's. Returns NULL without memory. Once a process,
 * before any other call here.
 */
void *vvar_create(uint64_t counter_hz, size_t size);

/*
 * clock_gettime for REALTIME, MONOTONIC, MONOTONIC_RAW and BOOTTIME, from the
 * page, so that system call and vDSO cannot disagree. 0, or -1: not one of
 * these, ask the kernel. Any thread; takes only the page's own mutex, above
 * which no lock is taken.
 */
int vvar_clock_gettime(int clock, struct timespec *ts);

/* This process has set CLOCK_REALTIME itself: let it see so at once. */
void vvar_clock_was_set(void);

/* Withdraw the page and end the refresher. The next vvar_clock_gettime() starts
 * both again. */
void vvar_stop(void);

/*
 * Around fork: nobody writes the page between vvar_fork_begin() and
 * vvar_fork_end() in the parent. In the child vvar_fork_child() gives the page
 * memory of its own, at the same address; it serves nothing until a clock is
 * asked for by a system call. Returns that address, for the guest to be shown;
 * NULL: no memory, or (with *none) there is no page.
 */
void vvar_fork_begin(void);
void vvar_fork_end(void);
void *vvar_fork_child(bool *none);

/* For vvar.c and vvar_refresh.c only. */
/* Take a sample and publish it, to serve for span_ns. The mutex is held. */
void vvar_refresh(uint64_t span_ns);
/* The page serves no more. The mutex is held. */
void vvar_withdraw(void);
void vvar_lock(void);
void vvar_unlock(void);
/* Lets go of the mutex and sleeps until signalled; with `until`, at most until
 * that CLOCK_MONOTONIC time: false when it came. */
bool vvar_wait(pthread_cond_t *condition, const struct timespec *until);
/* Let the refresher run for the next two seconds. Returns for how many ns the
 * page may serve. The mutex is held. */
uint64_t vvar_refresher_wake(void);
/* In a fork child: there is no refresher. */
void vvar_refresher_forget(void);
/* End the refresher; no lock is held. */
void vvar_refresher_stop(void);

#endif
