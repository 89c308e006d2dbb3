/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clone and clone3: brought into one form, checked as the kernel checks them
 * and in its order, and handed on to who makes threads or processes.
 */
#include <linux/sched.h>
#include <signal.h>
#include <string.h>

#include "proc/fork.h"
#include "proc/thread.h"
#include "sys/call.h"

/* What clone3 takes beside the flags of clone. */
#define CLONE3_MORE (CLONE_CLEAR_SIGHAND | CLONE_INTO_CGROUP)
/* Sizes of the kernel's structure: the least, the one with a cgroup. */
#define ARGS_LEAST CLONE_ARGS_SIZE_VER0
#define ARGS_WHOLE CLONE_ARGS_SIZE_VER2
#define ARGS_MOST  4096U

static bool has(uint64_t flags, uint64_t all)
{
    return (flags & all) == all;
}

/* kernel_clone() and copy_process(). */
static int64_t clone_check(const clone_args_t *args)
{
    uint64_t flags = args->flags;

    if (has(flags, CLONE_PIDFD | CLONE_PARENT_SETTID) &&
        args->pidfd == args->parent_tid)
        return -EINVAL;
    if (has(flags, CLONE_NEWNS | CLONE_FS) ||
        has(flags, CLONE_NEWUSER | CLONE_FS))
        return -EINVAL;
    if (flags & CLONE_THREAD && !(flags & CLONE_SIGHAND))
        return -EINVAL;
    if (flags & CLONE_SIGHAND && !(flags & CLONE_VM))
        return -EINVAL;
    if (flags & CLONE_THREAD && flags & (CLONE_NEWUSER | CLONE_NEWPID))
        return -EINVAL;
    if (flags & CLONE_PIDFD && flags & CLONE_DETACHED)
        return -EINVAL;
    return 0;
}

static int64_t clone_dispatch(thread_t *t, const clone_args_t *args)
{
    int64_t ret = clone_check(args);

    if (ret)
        return ret;
    return args->flags & CLONE_THREAD ? thread_clone(t, args)
                                      : proc_fork(t, args);
}

/* arm64's order of arguments: flags, SP, parent's tid, TLS, child's tid. */
int64_t sys_clone(thread_t *t, const uint64_t *a)
{
    uint32_t flags = (uint32_t) a[0];
    clone_args_t args = {
        .flags = flags & ~(uint32_t) CSIGNAL,
        .exit_signal = (int) (flags & CSIGNAL),
        .stack = a[1],
        .parent_tid = a[2],
        .pidfd = a[2],
        .tls = a[3],
        .child_tid = a[4],
    };

    return clone_dispatch(t, &args);
}

/* The structure, whose size says of which version it is. */
static int64_t args_get(thread_t *t, uint64_t from, uint64_t size,
                        struct clone_args *args)
{
    uint8_t more[64];
    uint64_t known = size < sizeof *args ? size : sizeof *args;

    memset(args, 0, sizeof *args);
    if (size > ARGS_MOST)
        return -E2BIG;
    if (size < ARGS_LEAST)
        return -EINVAL;
    /* What a later version would have must be zero; it is looked at first. */
    for (uint64_t at = known; at < size;) {
        uint64_t n = size - at < sizeof more ? size - at : sizeof more;

        if (get_bytes(t, more, from + at, n))
            return -EFAULT;
        for (uint64_t i = 0; i < n; i++)
            if (more[i])
                return -E2BIG;
        at += n;
    }
    return get_bytes(t, args, from, known);
}

/* copy_clone_args_from_user(). */
static int64_t args_check(const struct clone_args *k, uint64_t size)
{
    if (k->set_tid_size > CLONE_SET_TID_MAX)
        return -EINVAL;
    if (!k->set_tid != !k->set_tid_size)
        return -EINVAL;
    if (k->exit_signal & ~(uint64_t) CSIGNAL || k->exit_signal > 64)
        return -EINVAL;
    if (k->flags & CLONE_INTO_CGROUP &&
        (k->cgroup > INT_MAX || size < ARGS_WHOLE))
        return -EINVAL;
    return 0;
}

/* clone3_args_valid(). */
static bool args_valid(const struct clone_args *k)
{
    uint64_t flags = k->flags;

    if (flags & ~(0xffffffffUL | CLONE3_MORE))
        return false;
    if (flags & (CLONE_DETACHED | (CSIGNAL & ~(uint64_t) CLONE_NEWTIME)))
        return false;
    if (has(flags, CLONE_SIGHAND | CLONE_CLEAR_SIGHAND))
        return false;
    if (flags & (CLONE_THREAD | CLONE_PARENT) && k->exit_signal)
        return false;
    if (!k->stack)
        return !k->stack_size;
    return k->stack_size && user_range(k->stack, k->stack_size);
}

int64_t sys_clone3(thread_t *t, const uint64_t *a)
{
    struct clone_args k;
    clone_args_t args;
    int64_t ret = args_get(t, a[0], a[1], &k);

    if (!ret)
        ret = args_check(&k, a[1]);
    if (ret)
        return ret;
    args = (clone_args_t){
        .flags = k.flags,
        .exit_signal = (int) k.exit_signal,
        .stack = k.stack + k.stack_size,
        .parent_tid = k.parent_tid,
        .pidfd = k.pidfd,
        .tls = k.tls,
        .child_tid = k.child_tid,
        .set_tid_size = k.set_tid_size,
        .cgroup = (int) k.cgroup,
    };
    if (get_bytes(t, args.set_tid, k.set_tid,
                  k.set_tid_size * sizeof args.set_tid[0]))
        return -EFAULT;
    if (!args_valid(&k))
        return -EINVAL;
    return clone_dispatch(t, &args);
}
