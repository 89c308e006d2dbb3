/* SPDX-License-Identifier: Apache-2.0 */
/* The process and its threads, and what would reach into one. */
#include <linux/kcmp.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/personality.h>

#include "proc/robust.h"
#include "sys/call.h"

/* The run loop ends the thread, when nothing of this call is left. */
int64_t sys_exit(thread_t *t, const uint64_t *a)
{
    /* What has been noted may be the process's: it comes first. */
    if (signal_block(t))
        return CALL_RESTART;
    t->status = (int) (a[0] & 0xff);
    t->ended = true;
    return 0;
}

int64_t sys_exit_group(thread_t *t, const uint64_t *a)
{
    proc_exit(t->proc, (int) (a[0] & 0xff));
}

int64_t sys_set_tid_address(thread_t *t, const uint64_t *a)
{
    t->clear_tid = a[0];
    return t->tid;
}

int64_t sys_set_robust_list(thread_t *t, const uint64_t *a)
{
    if (a[1] != ROBUST_SIZE)
        return -EINVAL;
    t->robust = a[0];
    return 0;
}

int64_t sys_get_robust_list(thread_t *t, const uint64_t *a)
{
    uint64_t size = ROBUST_SIZE, head = t->robust;
    pid_t tid = (pid_t) a[0];

    if (tid && !world_find(t, tid, &head))
        return host_call(SYS_kill, a[0], 0, 0, 0, 0, 0) == -ESRCH ? -ESRCH
                                                                  : -EPERM;
    if (put_struct(t, a[2], &size) || put_struct(t, a[1], &head))
        return -EFAULT;
    return 0;
}

/* With one guest thread nothing of these is shared, so that there is nothing to
 * do; a table of descriptors would really be copied, for elfuse's threads. */
int64_t sys_unshare(thread_t *t, const uint64_t *a)
{
    const uint64_t none = CLONE_FILES | CLONE_VM | CLONE_SIGHAND | CLONE_THREAD;

    /* For the last three that is Linux's answer; descriptors of its own would
     * part a thread from those of later vCPUs. */
    if (a[0] & none && threads_several(t->proc))
        return -EINVAL;
    return host_call(SYS_unshare, a[0] & ~none, 0, 0, 0, 0, 0);
}

/* READ_IMPLIES_EXEC would change elfuse's own mappings. */
int64_t sys_personality(thread_t *t, const uint64_t *a)
{
    uint32_t persona = (uint32_t) a[0];
    int64_t old;

    if (persona == 0xffffffff) {
        old = host_call(SYS_personality, persona, 0, 0, 0, 0, 0);
        return old < 0 ? old : old | t->persona;
    }
    old = host_call(SYS_personality, persona & ~(uint32_t) READ_IMPLIES_EXEC, 0,
                    0, 0, 0, 0);
    if (old < 0)
        return old;
    old |= t->persona;
    t->persona = persona & READ_IMPLIES_EXEC;
    return old;
}

/*
 * The host's is one for the guest's threads too (docs/hypervisor.md); only
 * restartable sequences are not offered.
 */
int64_t sys_membarrier(thread_t *t, const uint64_t *a)
{
    const uint64_t rseq = MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ |
                          MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ;
    int64_t ret;

    if ((uint32_t) a[0] & rseq)
        return -EINVAL;
    ret = blocking_call(t, SYS_membarrier, a[0], a[1], a[2], 0, 0, 0);
    return (uint32_t) a[0] == MEMBARRIER_CMD_QUERY && ret > 0
               ? ret & ~(int64_t) rseq
               : ret;
}

int64_t sys_ptrace(thread_t *t, const uint64_t *a)
{
    return -EPERM;
}

/* Files of the guest's own may be compared; everything else is an address or
 * a table of elfuse's. */
int64_t sys_kcmp(thread_t *t, const uint64_t *a)
{
    pid_t pid = t->proc->pid;

    if ((pid_t) a[0] != pid || (pid_t) a[1] != pid || a[2] != KCMP_FILE)
        return -EPERM;
    if (fd_hidden(a[3]) || fd_hidden(a[4]))
        return -EBADF;
    return host_call(SYS_kcmp, a[0], a[1], a[2], a[3], a[4], 0);
}

/* A filter would judge elfuse's calls, with addresses it does not know. */
int64_t sys_seccomp(thread_t *t, const uint64_t *a)
{
    return -ENOSYS;
}

int64_t sys_pidfd_getfd(thread_t *t, const uint64_t *a)
{
    return fd_hidden(a[0]) ? -EBADF : -EPERM;
}
