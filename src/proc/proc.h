/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest process and its threads. A guest thread is a host thread with its
 * own vCPU; guest tids and pids are the host's.
 */
#ifndef ELFUSE_PROC_PROC_H
#define ELFUSE_PROC_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hv/hv.h"
#include "mm/mm.h"
#include "proc/shim.h"
#include "proc/signal.h"
#include "proc/spares.h"
#include "proc/vcpus.h"
#include "proc/world.h"

/* What is per process; a vfork child will copy it as a whole. */
typedef struct proc {
    hv_vm_t *vm;
    hv_caps_t caps;
    hv_options_t hv_options;
    mm_t *mm;
    world_t *world; /* the threads that share mm */
    shim_t shim;
    vcpus_t *vcpus; /* of vm */
    spares_t *spares;
    _Atomic uint32_t nr_threads; /* that have not ended */
    _Atomic uint32_t nr_running; /* that have not called exit */
    _Atomic int status;          /* of the last to call exit */
    pid_t pid;
    bool vforked; /* on its parent's memory: what it is to other processes is
                     its own, elfuse's state is shared */
    signal_actions_t *signals;
    uint64_t sigreturn; /* where handlers return to: in the vDSO */
    char *exe;    /* absolute path of the program, as /proc/self/exe shows */
    int exe_fd;   /* read-only descriptor of it, hidden from the guest */
    int self_fd;  /* elfuse's own file, for exec; hidden; -1: unknown */
    char *execfn; /* its name as exec would be given it: AT_EXECFN */
    char **argv;
    char **envp;
    char comm[16];
    bool strace;
    bool strace_pids; /* it has forked, or was forked */
    bool show_stats;
    bool verbose;
    /* The auxiliary vector as the guest got it, for /proc/self/auxv. */
    uint64_t auxv[64];
    unsigned auxv_len; /* in 64-bit words */
} proc_t;

/* A host thread that is made for a thread of the guest: proc/thread_host.c. */
typedef struct host_thread {
    pthread_t pthread;
    _Atomic uint32_t stage; /* a futex word */
    uint64_t unshare;       /* what HOST_UNSHARE asks for */
    int error;              /* of HOST_FAILED, -errno */
    pid_t creator;          /* while it is a spare: whose attributes it has, */
    uint32_t generation;    /* and from when (spares.c) */
} host_thread_t;

typedef struct thread {
    proc_t *proc;
    pid_t tid;
    vcpu_t *slot; /* which vCPU it has; the two below are its */
    hv_vcpu_t *vcpu;
    vcpu_frame_t *frame;
    mm_cpu_t cpu; /* mm's part */
    world_member_t world;
    signal_thread_t signal;
    host_thread_t host; /* what runs it; the main thread's is all zero */
    struct exec *exec;  /* while it executes something */
    bool ended;         /* by exit: thread_run() comes back */
    int status;         /* of exit */
    uint64_t clear_tid; /* guest address, or 0: cleared at the end */
    uint64_t robust;    /* guest address of the head of its list, or 0 */
    uint32_t persona;   /* of personality(), what the host must not have */
} thread_t;

/* The calling host thread's guest thread; NULL in threads of elfuse's own. For
 * signal handlers: everything else is given its thread. */
extern _Thread_local thread_t *thread_self;

/*
 * proc/vm.c: make the VM and the guest's memory, put the shim into it; fills
 * proc->vm, caps and mm. Errors are -errno (-ENOENT, -EACCES: no /dev/kvm, no
 * permission) with a line in proc_vm_error().
 */
int proc_vm_create(proc_t *proc, const hv_options_t *hv,
                   const mm_options_t *mm);
const char *proc_vm_error(void);

/*
 * proc/thread.c: make the process's first thread, which is the calling one,
 * with a vCPU that has come as far as the shim. thread->cpu is usable from here
 * on, for proc_load() too. Errors as above. thread_set_start says where EL0
 * begins: all other registers are 0.
 */
int thread_create(proc_t *proc, thread_t **thread);
void thread_set_start(thread_t *thread, uint64_t entry, uint64_t sp);

/* proc/load.c: map the program, and its interpreter, from the descriptors in
 * `program` and build the stack from proc->argv, envp and execfn; fills entry
 * and sp. Errors are -errno with a line in proc_error(). */
struct program;
typedef struct load_result {
    uint64_t entry, sp;
} load_result_t;
int proc_load(proc_t *proc, mm_cpu_t *cpu, const struct program *program,
              load_result_t *result);
const char *proc_error(void);

/* proc/run.c: run the calling thread's vCPU until the thread has ended. */
void thread_run(thread_t *thread);

/* Asked by one of them. */
static inline bool threads_several(const proc_t *proc)
{
    /* Relaxed: only its own threads make it more than one. */
    return atomic_load_explicit(&proc->nr_threads, memory_order_relaxed) > 1;
}

/* The process has one thread from here on. */
static inline void threads_count_one(proc_t *proc)
{
    atomic_store_explicit(&proc->nr_threads, 1, memory_order_relaxed);
    atomic_store_explicit(&proc->nr_running, 1, memory_order_relaxed);
}

/*
 * proc/thread_exit.c: the calling thread, which has ended, gives up what it
 * has. As the last of its process it ends that. Afterwards it is to be joined;
 * the main thread, whose id is the process's, stays for ever instead.
 */
void thread_end(thread_t *thread);

/* The same file: the process of `t`, which calls it, ends here and now. What
 * its threads hold in shared memory is given up; the others do not run any
 * more. */
void threads_release(thread_t *t);

/* proc/thread.c: is this a thread of the guest's? Others of elfuse are not to
 * be seen. Takes the world's lock; from a guest's thread. */
bool thread_is_guest(pid_t tid);

/* proc/exit.c: end the process as the guest asked: statistics, then status. */
_Noreturn void proc_exit(proc_t *proc, int status);
/* Die of this signal, so that the parent sees just that. */
_Noreturn void proc_die(proc_t *proc, int signal);
/* A broken invariant: one message, then SIGABRT. Never returns. */
_Noreturn void elfuse_panic(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

#endif
