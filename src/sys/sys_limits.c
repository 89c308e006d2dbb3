/* SPDX-License-Identifier: Apache-2.0 */
/* Resource limits: those of memory are mm's, that of descriptors moves elfuse's
 * own, the rest are the host's. */
#include <linux/capability.h>

#include "sys/call.h"

bool sys_capable(unsigned cap)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2] = {{0}, {0}};

    if (host_call(SYS_capget, P(&head), P(data), 0, 0, 0, 0))
        return false;
    return data[cap / 32].effective >> cap % 32 & 1;
}

static int64_t memory_limit(thread_t *t, int resource,
                            const struct rlimit *limit, struct rlimit *old)
{
    struct rlimit now;

    mm_get_rlimit(t->proc->mm, resource, &now);
    *old = now;
    if (!limit)
        return 0;
    if (limit->rlim_cur > limit->rlim_max)
        return -EINVAL;
    if (limit->rlim_max > now.rlim_max && !sys_capable(CAP_SYS_RESOURCE))
        return -EPERM;
    mm_set_rlimit(t->proc->mm, resource, limit);
    return 0;
}

static int64_t own_limit(thread_t *t, unsigned resource,
                         const struct rlimit *limit, struct rlimit *old)
{
    if (resource == RLIMIT_NOFILE)
        return fdspace_set_limit(t->proc, limit, old);
    if (mm_owns_rlimit((int) resource))
        return memory_limit(t, (int) resource, limit, old);
    return host_call(SYS_prlimit64, 0, resource, P(limit), P(old), 0, 0);
}

int64_t sys_getrlimit(thread_t *t, const uint64_t *a)
{
    struct rlimit old;
    int64_t ret = own_limit(t, (unsigned) a[0], NULL, &old);

    if (ret == 0 && put_struct(t, a[1], &old))
        return -EFAULT;
    return ret;
}

int64_t sys_setrlimit(thread_t *t, const uint64_t *a)
{
    struct rlimit limit, old;

    if (get_struct(t, &limit, a[1]))
        return -EFAULT;
    return own_limit(t, (unsigned) a[0], &limit, &old);
}

int64_t sys_prlimit64(thread_t *t, const uint64_t *a)
{
    struct rlimit limit, old;
    unsigned resource = (unsigned) a[1];
    int64_t ret;

    if (a[2] && get_struct(t, &limit, a[2]))
        return -EFAULT;
    if (a[0] == 0 || (pid_t) a[0] == t->proc->pid)
        ret = own_limit(t, resource, a[2] ? &limit : NULL, &old);
    else if (a[2] &&
             (mm_owns_rlimit((int) resource) || resource == RLIMIT_NOFILE))
        return -EPERM; /* it may be an elfuse, which counts for itself */
    else
        ret = host_call(SYS_prlimit64, a[0], resource, a[2] ? P(&limit) : 0,
                        P(&old), 0, 0);
    if (ret == 0 && a[3] && put_struct(t, a[3], &old))
        return -EFAULT;
    return ret;
}
