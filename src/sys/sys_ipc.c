/* SPDX-License-Identifier: Apache-2.0 */
/*
 * System V messages, semaphores and shared memory: structures chosen by a
 * command. What the guest cannot give is a bad pointer for the host, which
 * looks at the identifier and the permissions first.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <unistd.h>

#include "sys/call.h"

#define MESSAGE_MAX (1UL << 24)

/* Commands of newer kernels than the C library may know. */
#define MSG_STAT_ANY_CMD 13
#define SEM_STAT_ANY_CMD 20
#define SHM_STAT_ANY_CMD 15

/* --- messages ------------------------------------------------------------ */

/* The text cannot be read: the host finds the type, and then nothing. */
static int64_t send_bad_text(thread_t *t, const uint64_t *a, int64_t type)
{
    size_t page = (size_t) sysconf(_SC_PAGESIZE);
    uint8_t *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *at = two + page - sizeof type;
    int64_t ret = -ENOMEM;

    if (two == MAP_FAILED)
        return -ENOMEM;
    memcpy(at, &type, sizeof type);
    if (mprotect(two + page, page, PROT_NONE) == 0)
        ret = blocking_call(t, SYS_msgsnd, a[0], P(at), a[2], a[3], 0, 0);
    munmap(two, 2 * page);
    return ret;
}

int64_t sys_msgsnd(thread_t *t, const uint64_t *a)
{
    uint64_t len = a[2];
    uint8_t *buf;
    int64_t ret, type;

    if (get_struct(t, &type, a[1]))
        return -EFAULT;
    if ((int64_t) len < 0 || len > MESSAGE_MAX)
        return -EINVAL;
    buf = malloc(len + sizeof type);
    if (!buf)
        return -ENOMEM;
    memcpy(buf, &type, sizeof type);
    if (len && get_bytes(t, buf + sizeof type, a[1] + sizeof type, len))
        ret = send_bad_text(t, a, type);
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

/* --- structures ---------------------------------------------------------- */

/* Argument `at` is the command, the next one points to `size` bytes in. */
static int64_t control_in(thread_t *t, uint64_t nr, const uint64_t *a,
                          unsigned at, size_t size)
{
    uint8_t buf[256] __attribute__((aligned(8))) = {0};
    uint64_t host[4] = {a[0], a[1], a[2], a[3]};

    host[at + 1] = get_bytes(t, buf, a[at + 1], size)
                       ? bad_pointer(a[at + 1], size)
                       : P(buf);
    return host_call(nr, host[0], host[1], host[2], host[3], 0, 0);
}

/* The same for a structure that comes out, into buf. */
static int64_t control_out(uint64_t nr, const uint64_t *a, unsigned at,
                           void *buf)
{
    uint64_t host[4] = {a[0], a[1], a[2], a[3]};

    host[at + 1] = P(buf);
    return host_call(nr, host[0], host[1], host[2], host[3], 0, 0);
}

static int64_t control_put(thread_t *t, uint64_t nr, const uint64_t *a,
                           unsigned at, size_t size)
{
    uint8_t buf[256] __attribute__((aligned(8))) = {0};
    int64_t ret = control_out(nr, a, at, buf);

    if (ret >= 0 && put_bytes(t, a[at + 1], buf, size))
        return -EFAULT;
    return ret;
}

int64_t sys_msgctl(thread_t *t, const uint64_t *a)
{
    switch ((int) a[1]) {
    case IPC_RMID:
        return host_call(SYS_msgctl, a[0], a[1], 0, 0, 0, 0);
    case IPC_SET:
        return control_in(t, SYS_msgctl, a, 1, sizeof(struct msqid_ds));
    case IPC_STAT:
    case MSG_STAT:
    case MSG_STAT_ANY_CMD:
        return control_put(t, SYS_msgctl, a, 1, sizeof(struct msqid_ds));
    case IPC_INFO:
    case MSG_INFO:
        return control_put(t, SYS_msgctl, a, 1, sizeof(struct msginfo));
    default:
        return -EINVAL;
    }
}

/* --- semaphores ---------------------------------------------------------- */

/* Number of semaphores in a set, also of one that may be written only: its
 * index is in the low bits of the identifier, 15 or 24 of them. */
static int64_t sem_count(uint64_t id)
{
    static const uint64_t index[] = {0x7fff, 0xffffff};
    struct semid_ds ds = {.sem_nsems = 0};
    int64_t ret = host_call(SYS_semctl, id, 0, IPC_STAT, P(&ds), 0, 0);

    for (int i = 0; ret == -EACCES && i < 2; i++)
        if (host_call(SYS_semctl, id & index[i], 0, SEM_STAT_ANY_CMD, P(&ds), 0,
                      0) == (int32_t) id)
            ret = 0;
    return ret < 0 ? ret : (int64_t) ds.sem_nsems;
}

static int64_t sem_all(thread_t *t, const uint64_t *a)
{
    int64_t ret = sem_count(a[0]);
    uint16_t *values;
    uint64_t host;
    size_t size;

    if (ret < 0)
        return ret;
    size = (size_t) ret * sizeof *values;
    values = malloc(size + 1);
    if (!values)
        return -ENOMEM;
    host = P(values);
    if ((int) a[2] == SETALL && get_bytes(t, values, a[3], size))
        host = bad_pointer(a[3], size);
    ret = host_call(SYS_semctl, a[0], a[1], a[2], host, 0, 0);
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
        return host_call(SYS_semctl, a[0], a[1], a[2], a[3], 0, 0);
    case GETALL:
    case SETALL:
        return sem_all(t, a);
    case IPC_SET:
        return control_in(t, SYS_semctl, a, 2, sizeof(struct semid_ds));
    case IPC_STAT:
    case SEM_STAT:
    case SEM_STAT_ANY_CMD:
        return control_put(t, SYS_semctl, a, 2, sizeof(struct semid_ds));
    case IPC_INFO:
    case SEM_INFO:
        return control_put(t, SYS_semctl, a, 2, sizeof(struct seminfo));
    default:
        return -EINVAL;
    }
}

/* --- shared memory ------------------------------------------------------- */

/* As a kernel whose pools of huge pages are empty: one that exists is found,
 * a new one cannot be made. */
static int64_t get_huge(const uint64_t *a)
{
    uint64_t flags = a[2] & ~(uint64_t) (IPC_CREAT | IPC_EXCL | SHM_HUGETLB);
    unsigned log = a[2] >> 26 & 0x3f;
    int64_t ret = -ENOENT;

    if ((int32_t) a[0] != IPC_PRIVATE)
        ret = host_call(SYS_shmget, a[0], a[1], flags, 0, 0, 0);
    if (ret >= 0 && (a[2] & IPC_CREAT) && (a[2] & IPC_EXCL))
        return -EEXIST;
    if (ret != -ENOENT ||
        ((int32_t) a[0] != IPC_PRIVATE && !(a[2] & IPC_CREAT)))
        return ret;
    if (a[1] == 0 || (log && log != 16 && log != 21 && log != 25 && log != 30))
        return -EINVAL;
    return -ENOMEM;
}

int64_t sys_shmget(thread_t *t, const uint64_t *a)
{
    if (a[2] & SHM_HUGETLB)
        return get_huge(a);
    return host_call(SYS_shmget, a[0], a[1], a[2], 0, 0, 0);
}

static int64_t shm_stat(thread_t *t, const uint64_t *a)
{
    struct shmid_ds ds = {.shm_nattch = 0};
    int64_t ret = control_out(SYS_shmctl, a, 1, &ds);

    if (ret < 0)
        return ret;
    ds.shm_nattch += mm_shm_attaches(
        t->proc->mm, (int) a[1] == IPC_STAT ? (int) a[0] : (int) ret);
    return put_struct(t, a[2], &ds) ? -EFAULT : ret;
}

int64_t sys_shmctl(thread_t *t, const uint64_t *a)
{
    switch ((int) a[1]) {
    case IPC_RMID:
    case SHM_LOCK:
    case SHM_UNLOCK:
        return host_call(SYS_shmctl, a[0], a[1], 0, 0, 0, 0);
    case IPC_SET:
        return control_in(t, SYS_shmctl, a, 1, sizeof(struct shmid_ds));
    case IPC_STAT:
    case SHM_STAT:
    case SHM_STAT_ANY_CMD:
        return shm_stat(t, a);
    case IPC_INFO:
        return control_put(t, SYS_shmctl, a, 1, sizeof(struct shminfo));
    case SHM_INFO:
        return control_put(t, SYS_shmctl, a, 1, sizeof(struct shm_info));
    default:
        return -EINVAL;
    }
}

int64_t sys_shmat(thread_t *t, const uint64_t *a)
{
    return mm_shmat(t->proc->mm, &t->cpu, (int) a[0], a[1], (int) a[2]);
}

int64_t sys_shmdt(thread_t *t, const uint64_t *a)
{
    return mm_shmdt(t->proc->mm, &t->cpu, a[0]);
}
