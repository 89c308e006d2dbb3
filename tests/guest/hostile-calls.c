/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that could reach what runs the program, or change how it runs. What
 * each one may answer is a set: natively it often works, under elfuse it is
 * refused as a kernel without the feature would.
 */
#include "mem.h"

#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/kcmp.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/sysmacros.h>

static bool under_elfuse(void)
{
    const char *who = getenv("ELFUSE_UNDER_TEST");
    return who && strcmp(who, "elfuse") == 0;
}

static bool refused(long r)
{
    return r == -1 && (errno == EPERM || errno == ENOSYS || errno == EINVAL ||
                       errno == EACCES || errno == ENOENT ||
                       errno == EOPNOTSUPP || errno == ESRCH ||
                       errno == EBADF || errno == ENODEV || errno == ENXIO);
}

/* Natively anything is right. */
static void guarded(long r, const char *name)
{
    int saved = errno;
    if (!ok(!under_elfuse() || refused(r), name))
        tap_say("#   got %ld, %s", r, tap_errname(saved));
    if (r > 2)
        close(r);
}

static void test_kvm(void)
{
    char path[256];
    const char *tmp = getenv("TMPDIR");
    guarded(open("/dev/kvm", O_RDWR), "open of /dev/kvm");
    guarded(open("/dev/../dev/./kvm", O_RDWR), "by another spelling");
    guarded(open("/proc/self/root/dev/kvm", O_RDWR), "through /proc");
    int dir = open("/dev", O_RDONLY | O_DIRECTORY);
    guarded(openat(dir, "kvm", O_RDWR), "by openat");
    guarded(openat(dir, "kvm", O_RDONLY), "read-only");
    close(dir);
    snprintf(path, sizeof path, "%s/guest.k.%d", tmp ? tmp : "/tmp", getpid());
    need(symlink("/dev/kvm", path) == 0, "symlink");
    guarded(open(path, O_RDWR), "by a symbolic link");
    need(unlink(path) == 0, "unlink");
    long r = mknod(path, S_IFCHR | 0600, makedev(10, 232));
    if (r == 0)
        r = open(path, O_RDWR);
    guarded(r, "by a node of its own");
    unlink(path);
    struct {
        uint64_t flags, mode, resolve;
    } how = {O_RDWR, 0, 0};
    guarded(syscall(SYS_openat2, AT_FDCWD, "/dev/kvm", &how, sizeof how),
            "by openat2");
}

static void test_prctl(void)
{
    /* Of the guest, not of what runs it. */
    is(prctl(PR_SET_MM, PR_SET_MM_BRK, sbrk(0), 0, 0), 0, "PR_SET_MM");
    is(prctl(PR_SET_DUMPABLE, 0, 0, 0, 0), 0, "PR_SET_DUMPABLE 0");
    is(prctl(PR_GET_DUMPABLE), 0, "PR_GET_DUMPABLE");
    is(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0, "PR_SET_DUMPABLE 1");
    fails(prctl(PR_SET_DUMPABLE, 7, 0, 0, 0), EINVAL, "PR_SET_DUMPABLE 7");
    is(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0, "PR_SET_NO_NEW_PRIVS");
    is(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1, "PR_GET_NO_NEW_PRIVS");
    int sig = -1;
    is(prctl(PR_SET_PDEATHSIG, 0), 0, "PR_SET_PDEATHSIG");
    ok(prctl(PR_GET_PDEATHSIG, &sig) == 0 && sig == 0, "PR_GET_PDEATHSIG");
    fails(prctl(PR_GET_PDEATHSIG, BAD_PTR), EFAULT, "to nowhere");
    is(prctl(PR_SET_TIMERSLACK, 50000), 0, "PR_SET_TIMERSLACK");
    fails(prctl(99999), EINVAL, "prctl: unknown");
    is(prctl(PR_CAPBSET_READ, 0), 1, "PR_CAPBSET_READ");
}

static void test_seccomp(void)
{
    /* A filter that refuses ioctl, on which the machine below may depend. */
    struct sock_filter f[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog prog = {4, f};
    int n = 0;
    long r = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog);
    ok(r == 0 || refused(r), "PR_SET_SECCOMP works or is refused");
    long s = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &prog);
    ok(s == 0 || refused(s), "seccomp works or is refused");
    char *p = map_rw(BLOCK);
    memset(p, 1, BLOCK);
    ok(all_bytes(p, 1, BLOCK), "the program lives");
    int fd = file_make(10);
    r = ioctl(fd, FIONREAD, &n);
    ok((r == 0 && n == 10) || (r == -1 && errno == EPERM),
       "ioctl works or is filtered");
    close(fd);
    r = syscall(SYS_seccomp, 99, 0, NULL);
    ok(refused(r), "seccomp: unknown operation");
}

static void test_tracing(void)
{
    pid_t me = getpid();
    ok(refused(ptrace(PTRACE_ATTACH, me, 0, 0)), "ptrace: attach to itself");
    ok(refused(syscall(SYS_ptrace, PTRACE_SEIZE, me, 0, 0)),
       "ptrace: seize itself");
    ok(refused(syscall(SYS_ptrace, PTRACE_CONT, me, 0, 0)),
       "ptrace: continue itself");
    ok(refused(syscall(SYS_ptrace, 0x9999, me, 0, 0)), "ptrace: unknown");
    guarded(syscall(SYS_kcmp, me, me, KCMP_VM, 0, 0), "kcmp");
    int pidfd = syscall(SYS_pidfd_open, me, 0);
    ok(pidfd > 2 || refused(pidfd), "pidfd_open");
    if (pidfd > 2)
        is(syscall(SYS_pidfd_send_signal, pidfd, 0, NULL, 0), 0,
           "pidfd_send_signal");
    else
        ok(true, "pidfd_send_signal");
    int got = 0;
    for (int fd = 20; fd < 4096; fd++) {
        int r = syscall(SYS_pidfd_getfd, pidfd, fd, 0);
        got += r >= 0;
    }
    is(got, 0, "pidfd_getfd finds nothing in 20 to 4095");
    if (pidfd > 2)
        close(pidfd);
    struct perf_event_attr pe = {.type = PERF_TYPE_SOFTWARE,
                                 .size = sizeof pe,
                                 .config = PERF_COUNT_SW_CPU_CLOCK};
    guarded(syscall(SYS_perf_event_open, &pe, 0, -1, -1, 0), "perf_event_open");
    guarded(syscall(SYS_userfaultfd, 0), "userfaultfd");
    guarded(syscall(SYS_userfaultfd, 1), "userfaultfd, user mode only");
    union bpf_attr attr;
    memset(&attr, 0, sizeof attr);
    attr.map_type = BPF_MAP_TYPE_ARRAY;
    attr.key_size = attr.value_size = 4;
    attr.max_entries = 1;
    guarded(syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof attr), "bpf");
    char params[256] = {0};
    guarded(syscall(SYS_io_uring_setup, 4, params), "io_uring_setup");
    long r = syscall(SYS_process_madvise, -1, NULL, 0, 0, 0);
    ok(r == -1, "process_madvise of nobody");
}

static void test_process(void)
{
    long r = syscall(SYS_personality, 0xffffffff);
    ok(r >= 0, "personality: ask");
    is(syscall(SYS_personality, r), r, "personality: set the same");
    r = syscall(SYS_membarrier, 0, 0, 0);
    ok(r >= 0 || refused(r), "membarrier: query");
    r = syscall(SYS_rseq, BAD_PTR, 32, 0, 0x1234);
    ok(r == -1, "rseq at a bad pointer");
    is(syscall(SYS_set_tid_address, secure_getenv), getpid(),
       "set_tid_address");
    is(syscall(SYS_set_tid_address, 0), getpid(), "and back");
    fails(syscall(SYS_set_robust_list, 0, 5), EINVAL,
          "set_robust_list: wrong size");
    static void *head[3] = {head, 0, 0};
    is(syscall(SYS_set_robust_list, head, 24), 0, "set_robust_list");
    r = syscall(SYS_unshare, 0x400); /* CLONE_FILES */
    ok(r == 0 || refused(r), "unshare of the descriptors");
    fails(syscall(SYS_unshare, 0x7), EINVAL, "unshare: unknown");
    fails(syscall(SYS_setns, 0, 0), EINVAL, "setns to what is none");
    static const long numbers[] = {244, 600, 1000, 5000, 1 << 20, -1, -2};
    char name[48];
    for (int i = 0; i < 7; i++) {
        snprintf(name, sizeof name, "call number %ld", numbers[i]);
        fails(syscall(numbers[i], 0, 0, 0, 0, 0, 0), ENOSYS, name);
    }
}

int main(void)
{
    int null = open("/dev/null", O_RDONLY);
    need(null >= 0 && dup2(null, 0) == 0, "dup2");
    close(null);
    test_kvm();
    test_prctl();
    test_tracing();
    test_process();
    test_seccomp();
    return tap_done();
}
