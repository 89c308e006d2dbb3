/* SPDX-License-Identifier: Apache-2.0 */
/* What run.c, thread.c and vm.c know of each other. */
#ifndef ELFUSE_PROC_RUN_H
#define ELFUSE_PROC_RUN_H

#include "proc/proc.h"

/* Run the vCPU until the shim rings; the frame is valid then. An exit that
 * nobody expects ends the process. */
void thread_run_to_doorbell(thread_t *thread);

/* Have the shim do fp_op (abi/frame.h), for which it rings with this exit. EL0
 * does not run. */
void thread_run_op(thread_t *thread, uint32_t fp_op, uint32_t exit);

/* Make the guest's counter the host's, where caps.counter_exact is false. No
 * other vCPU runs. -errno, hv_error(). */
int thread_align_counter(thread_t *thread);

/* The last exit was a system call. Valid while frame->exit is. */
bool thread_in_syscall(const thread_t *thread);

/* mm_cpu_t.run_shim: the request in the frame has been carried out when it
 * returns. */
void thread_run_shim(mm_cpu_t *cpu);

/* Print a line for each exit, or stop doing so. */
void thread_trace_exits(bool on);

/* Leave the line for proc_vm_error() and return `error`. */
int proc_vm_fail(int error, const char *line);

#endif
