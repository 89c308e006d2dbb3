/* SPDX-License-Identifier: Apache-2.0 */
/* System V messages and semaphores: structures chosen by a command. */
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>

#include "sys/call.h"

#define MESSAGE_MAX (1UL << 24)

int64_t sys_msgsnd(thread_t *t, const uint64_t *a)
{
    uint64_t len = a[2];
    uint8_t *buf;
    int64_t ret, type;

    if (get_struct(t, &type, a[1]))
        return -EFAULT;
    if ((int64_t) len < 0 || len > MESSAGE_MAX)
        return -EINVAL;
    buf = malloc(len + 8);
    if (!buf)
        return -ENOMEM;
    if (get_bytes(t, buf, a[1], len + 8))
        ret = -EFAULT;
    else
        ret = blocking_call(t, SYS_msgsnd, a[0], P(buf), len, a[3], 0, 0);
    free(buf);
    return ret;
}

int64_t sys_msgrcv(thread_t *t, const uint64_t *a)
{
    uint64_t len = a[2];
    uint8_t *buf;
    int64_t ret;

    if ((int64_t) len < 0)
        return -EINVAL;
    len = len < MESSAGE_MAX ? len : MESSAGE_MAX;
    buf = malloc(len + 8);
    if (!buf)
        return -ENOMEM;
    ret = blocking_call(t, SYS_msgrcv, a[0], P(buf), len, a[3], a[4], 0);
    if (ret >= 0 && put_bytes(t, a[1], buf, (size_t) ret + 8))
        ret = -EFAULT;
    free(buf);
    return ret;
}

static int64_t control(thread_t *t, uint64_t nr, const uint64_t *a,
                       unsigned cmd_at, size_t size, bool in)
{
    uint8_t buf[256] __attribute__((aligned(8))) = {0};
    uint64_t guest = a[cmd_at + 1];
    uint64_t host[4];
    int64_t ret;

    for (unsigned i = 0; i < 4; i++)
        host[i] = a[i];
    host[cmd_at + 1] = P(buf);
    if (in && get_bytes(t, buf, guest, size))
        return -EFAULT;
    ret = blocking_call(t, nr, host[0], host[1], host[2], host[3], 0, 0);
    if (!in && ret >= 0 && put_bytes(t, guest, buf, size))
        return -EFAULT;
    return ret;
}

int64_t sys_msgctl(thread_t *t, const uint64_t *a)
{
    switch ((int) a[1]) {
    case IPC_RMID:
        return blocking_call(t, SYS_msgctl, a[0], a[1], 0, 0, 0, 0);
    case IPC_SET:
        return control(t, SYS_msgctl, a, 1, sizeof(struct msqid_ds), true);
    case IPC_STAT:
    case MSG_STAT:
    case 13 /* MSG_STAT_ANY */:
        return control(t, SYS_msgctl, a, 1, sizeof(struct msqid_ds), false);
    case IPC_INFO:
    case MSG_INFO:
        return control(t, SYS_msgctl, a, 1, sizeof(struct msginfo), false);
    default:
        return -EINVAL;
    }
}

static int64_t sem_all(thread_t *t, const uint64_t *a)
{
    struct semid_ds ds = {.sem_nsems = 0};
    int64_t ret = blocking_call(t, SYS_semctl, a[0], 0, IPC_STAT, P(&ds), 0, 0);
    uint16_t *values;
    size_t size;

    if (ret < 0)
        return ret;
    size = ds.sem_nsems * sizeof *values;
    values = malloc(size + 1);
    if (!values)
        return -ENOMEM;
    if ((int) a[2] == SETALL && get_bytes(t, values, a[3], size))
        ret = -EFAULT;
    else
        ret = blocking_call(t, SYS_semctl, a[0], a[1], a[2], P(values), 0, 0);
    if (ret >= 0 && (int) a[2] == GETALL && put_bytes(t, a[3], values, size))
        ret = -EFAULT;
    free(values);
    return ret;
}

int64_t sys_semctl(thread_t *t, const uint64_t *a)
{
    switch ((int) a[2]) {
    case IPC_RMID:
    case GETVAL:
    case GETPID:
    case GETNCNT:
    case GETZCNT:
    case SETVAL:
        return blocking_call(t, SYS_semctl, a[0], a[1], a[2], a[3], 0, 0);
    case GETALL:
    case SETALL:
        return sem_all(t, a);
    case IPC_SET:
        return control(t, SYS_semctl, a, 2, sizeof(struct semid_ds), true);
    case IPC_STAT:
    case SEM_STAT:
    case 20 /* SEM_STAT_ANY */:
        return control(t, SYS_semctl, a, 2, sizeof(struct semid_ds), false);
    case IPC_INFO:
    case SEM_INFO:
        return control(t, SYS_semctl, a, 2, sizeof(struct seminfo), false);
    default:
        return -EINVAL;
    }
}
