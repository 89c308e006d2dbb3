/* SPDX-License-Identifier: Apache-2.0 */
/* prctl: a list of what may be passed on; the rest does not exist. */
#include <linux/capability.h>
#include <linux/prctl.h>
#include <string.h>

#include "proc/title.h"
#include "sys/call.h"

#define TAGGED_ADDR_ENABLE 1UL

/* Newer than the C library's header may be. */
#define GET_AUXV         0x41555856
#define SET_MDWE         65
#define GET_MDWE         66
#define SET_MEMORY_MERGE 67
#define GET_MEMORY_MERGE 68
#define MDWE_REFUSE      1UL

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

/* --- the guest's memory -------------------------------------------------- */

/* A descriptor for /proc/self/exe. The old program is mapped as long as the
 * guest runs it, and Linux replaces no program that is. */
static int64_t set_exe(uint64_t fd)
{
    if (fd_hidden(fd) ||
        host_call(SYS_fcntl, fd, 1 /* F_GETFD */, 0, 0, 0, 0) < 0)
        return -EBADF;
    return -EBUSY;
}

static int64_t set_auxv(thread_t *t, uint64_t from, uint64_t size)
{
    proc_t *proc = t->proc;
    uint64_t auxv[sizeof proc->auxv / sizeof proc->auxv[0]] = {0};

    if (!from || size > proc->auxv_len * sizeof auxv[0])
        return -EINVAL;
    if (get_bytes(t, auxv, from, size))
        return -EFAULT;
    auxv[proc->auxv_len - 2] = auxv[proc->auxv_len - 1] = 0; /* AT_NULL */
    memcpy(proc->auxv, auxv, sizeof auxv);
    return 0;
}

/* PR_SET_MM_MAP, PR_SET_MM_MAP_SIZE */
static int64_t set_mm_map(thread_t *t, const uint64_t *a)
{
    struct prctl_mm_map map;
    uint64_t field[MM_MAP_FIELDS];
    uint32_t size = 0;
    int64_t ret =
        host_call(SYS_prctl, PR_SET_MM, PR_SET_MM_MAP_SIZE, P(&size), 0, 0, 0);

    if (ret < 0) /* a kernel without CONFIG_CHECKPOINT_RESTORE */
        return ret;
    if (a[1] == PR_SET_MM_MAP_SIZE) {
        size = sizeof map;
        return put_struct(t, a[2], &size);
    }
    if (a[3] != sizeof map)
        return -EINVAL;
    if (get_struct(t, &map, a[2]))
        return -EFAULT;
    memcpy(field, &map, sizeof field);
    ret = mm_check_mm_map(t->proc->mm, field);
    if (ret == 0 && map.exe_fd != ~0U)
        ret = sys_capable(CAP_SYS_ADMIN) || sys_capable(CAP_CHECKPOINT_RESTORE)
                  ? set_exe(map.exe_fd)
                  : -EPERM;
    if (ret == 0 && map.auxv_size)
        ret = set_auxv(t, P(map.auxv), map.auxv_size);
    return ret ? ret : mm_set_mm_map(t->proc->mm, field);
}

static int64_t change_mm(thread_t *t, const uint64_t *a)
{
    if (a[4] || (a[3] && a[1] != PR_SET_MM_AUXV && a[1] != PR_SET_MM_MAP &&
                 a[1] != PR_SET_MM_MAP_SIZE))
        return -EINVAL;
    if (a[1] == PR_SET_MM_MAP || a[1] == PR_SET_MM_MAP_SIZE)
        return set_mm_map(t, a);
    if (!sys_capable(CAP_SYS_RESOURCE))
        return -EPERM;
    if (a[1] == PR_SET_MM_EXE_FILE)
        return set_exe((uint32_t) a[2]);
    if (a[1] == PR_SET_MM_AUXV)
        return set_auxv(t, a[2], a[3]);
    return mm_set_mm(t->proc->mm, (int) a[1], a[2]);
}

static int64_t set_mm(thread_t *t, const uint64_t *a)
{
    int64_t ret = change_mm(t, a);

    if (ret == 0)
        proc_show_strings(t->proc, false);
    return ret;
}

/* PR_SET_VMA_ANON_NAME. A kernel without it says so for no memory at all. */
static int64_t set_vma_name(thread_t *t, const uint64_t *a)
{
    char name[80];
    int64_t ret;

    if (a[1] != PR_SET_VMA_ANON_NAME)
        return -EINVAL;
    ret = host_call(SYS_prctl, PR_SET_VMA, PR_SET_VMA_ANON_NAME, 0, 0, 0, 0);
    if (ret < 0)
        return ret;
    if (!a[4])
        return mm_set_anon_name(t->proc->mm, a[2], a[3], NULL);
    ret = copy_string_from_guest(t->proc->mm, &t->cpu, name, a[4], sizeof name);
    if (ret < 0)
        return ret == -EFAULT ? -EFAULT : -EINVAL;
    for (const char *p = name; *p; p++)
        if (*p < 0x20 || *p > 0x7e || strchr("\\`$[]", *p))
            return -EINVAL;
    return mm_set_anon_name(t->proc->mm, a[2], a[3], name);
}

/* The host's answer is right, and its refusal holds for elfuse as well, which
 * makes no code; but it does not know the guest's pages. */
static int64_t set_mdwe(thread_t *t, const uint64_t *a)
{
    int64_t ret = pass_values(a);

    if (ret == 0 && (a[1] & MDWE_REFUSE))
        mm_deny_write_exec(t->proc->mm);
    return ret;
}

/* --- the vector length --------------------------------------------------- */

/* The host's thread has the guest's length, so that Linux itself keeps it over
 * clone and exec. Vectors need no care: a call leaves what is above bit 127
 * unspecified. */
static int64_t sve_length(thread_t *t, const uint64_t *a)
{
    int64_t ret = t->proc->caps.sve ? pass_values(a) : -EINVAL;

    if (ret >= 0 && (int) a[0] == PR_SVE_SET_VL && hv_vcpu_sync_sve(t->vcpu))
        elfuse_panic("SVE vector length %ld is not the vCPU's", ret);
    return ret;
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
    case PR_SET_PTRACER:
    case SET_MEMORY_MERGE:
    case GET_MEMORY_MERGE:
    case GET_MDWE:
        return pass_values(a);
    case PR_GET_PDEATHSIG:
    case PR_GET_CHILD_SUBREAPER:
        return pass_int(t, a);
    case PR_SET_TAGGED_ADDR_CTRL:
    case PR_GET_TAGGED_ADDR_CTRL:
        return tagged_addr(a);
    case GET_AUXV:
        return get_auxv(t, a);
    case PR_GET_TID_ADDRESS:
        return put_struct(t, a[1], &t->clear_tid);
    case PR_SET_MM:
        return set_mm(t, a);
    case PR_SET_VMA:
        return set_vma_name(t, a);
    case SET_MDWE:
        return set_mdwe(t, a);
    case PR_SVE_GET_VL:
    case PR_SVE_SET_VL:
        return sve_length(t, a);
    case PR_TASK_PERF_EVENTS_DISABLE:
    case PR_TASK_PERF_EVENTS_ENABLE: /* there are none */
    case PR_GET_SECCOMP:
        return 0;
    default:
        return -EINVAL;
    }
}
