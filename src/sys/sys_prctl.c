/* SPDX-License-Identifier: Apache-2.0 */
/* prctl: a list of what may be passed on; the rest does not exist. */
#include <linux/prctl.h>
#include <string.h>

#include "sys/call.h"

#define TAGGED_ADDR_ENABLE 1UL
#define GET_AUXV           0x41555856

static int64_t pass_values(const uint64_t *a)
{
    return host_call(SYS_prctl, a[0], a[1], a[2], a[3], a[4], 0);
}

/* An int goes to the guest through the second argument. */
static int64_t pass_int(thread_t *t, const uint64_t *a)
{
    int value = 0;
    int64_t ret = host_call(SYS_prctl, a[0], P(&value), a[2], a[3], a[4], 0);

    if (ret >= 0 && put_struct(t, a[1], &value))
        return -EFAULT;
    return ret;
}

static int64_t set_name(thread_t *t, const uint64_t *a)
{
    char name[16];
    ssize_t n =
        copy_string_from_guest(t->proc->mm, &t->cpu, name, a[1], sizeof name);

    if (n == -EFAULT)
        return -EFAULT;
    name[sizeof name - 1] = '\0';
    if (t->tid == t->proc->pid)
        memcpy(t->proc->comm, name, sizeof name);
    return host_call(SYS_prctl, PR_SET_NAME, P(name), 0, 0, 0, 0);
}

static int64_t get_name(thread_t *t, const uint64_t *a)
{
    char name[16] = "";
    int64_t ret = host_call(SYS_prctl, PR_GET_NAME, P(name), 0, 0, 0, 0);

    if (ret == 0 && put_struct(t, a[1], &name))
        return -EFAULT;
    return ret;
}

static int64_t get_auxv(thread_t *t, const uint64_t *a)
{
    uint64_t size = t->proc->auxv_len * sizeof t->proc->auxv[0];
    uint64_t n = a[2] < size ? a[2] : size;

    if (a[3] || a[4])
        return -EINVAL;
    if (n && put_bytes(t, a[1], t->proc->auxv, n))
        return -EFAULT;
    return (int64_t) size;
}

static int64_t tagged_addr(const uint64_t *a)
{
    if ((int) a[0] == PR_GET_TAGGED_ADDR_CTRL)
        return a[1] || a[2] || a[3] || a[4] ? -EINVAL : (int64_t) span_tags;
    if (a[1] & ~TAGGED_ADDR_ENABLE || a[2] || a[3] || a[4])
        return -EINVAL;
    span_tags = a[1] & TAGGED_ADDR_ENABLE;
    return 0;
}

int64_t sys_prctl(thread_t *t, const uint64_t *a)
{
    switch ((int) a[0]) {
    case PR_SET_NAME:
        return set_name(t, a);
    case PR_GET_NAME:
        return get_name(t, a);
    case PR_SET_PDEATHSIG:
    case PR_GET_DUMPABLE:
    case PR_SET_DUMPABLE:
    case PR_GET_KEEPCAPS:
    case PR_SET_KEEPCAPS:
    case PR_GET_TIMING:
    case PR_SET_TIMING:
    case PR_CAPBSET_READ:
    case PR_CAPBSET_DROP:
    case PR_GET_SECUREBITS:
    case PR_SET_SECUREBITS:
    case PR_SET_TIMERSLACK:
    case PR_GET_TIMERSLACK:
    case PR_SET_CHILD_SUBREAPER:
    case PR_SET_NO_NEW_PRIVS:
    case PR_GET_NO_NEW_PRIVS:
    case PR_GET_THP_DISABLE:
    case PR_SET_THP_DISABLE:
    case PR_CAP_AMBIENT:
    case PR_MCE_KILL:
    case PR_MCE_KILL_GET:
    case PR_GET_SPECULATION_CTRL:
    case PR_SET_SPECULATION_CTRL:
    case PR_SET_IO_FLUSHER:
    case PR_GET_IO_FLUSHER:
        return pass_values(a);
    case PR_GET_PDEATHSIG:
    case PR_GET_CHILD_SUBREAPER:
        return pass_int(t, a);
    case PR_SET_TAGGED_ADDR_CTRL:
    case PR_GET_TAGGED_ADDR_CTRL:
        return tagged_addr(a);
    case GET_AUXV:
        return get_auxv(t, a);
    case PR_TASK_PERF_EVENTS_DISABLE:
    case PR_TASK_PERF_EVENTS_ENABLE: /* there are none */
    case PR_GET_SECCOMP:
        return 0;
    default:
        return -EINVAL;
    }
}
