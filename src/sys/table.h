/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of all arm64 system calls: how each argument is to be read. The
 * generic path (pass.c) and the tracer (strace.c) work off it alone; a call
 * that needs more has a function.
 */
#ifndef ELFUSE_SYS_TABLE_H
#define ELFUSE_SYS_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

#define SYS_ARGS 6

/* What an argument is. A NULL pointer is always passed on as NULL: the kernel
 * decides whether it is optional. */
enum arg_kind {
    ARG_NONE,     /* past the last argument */
    ARG_INT,      /* a value */
    ARG_FD,       /* a descriptor: EBADF when it is elfuse's own */
    ARG_PATH,     /* a path; ref: argument with its directory, or NO_REF */
    ARG_STR,      /* another string */
    ARG_IN,       /* struct of `size` bytes, read */
    ARG_OUT,      /* struct of `size` bytes, written */
    ARG_INOUT,    /* struct of `size` bytes, both */
    ARG_IN_BUF,   /* bytes; ref: length; more than `size` is not touched */
    ARG_OUT_BUF,  /* bytes; ref: length; result is what was written, <= size */
    ARG_IN_SIZED, /* struct that begins with its own u32 size; 0: `size` */
    ARG_OUT_VAR, /* ref: length, all written; more than `size` is not touched */
    ARG_IN_ARR,  /* ref: count of elements of `size` bytes, read */
    ARG_OUT_ARR, /* the same, written */
    ARG_GUEST,   /* an address that only an owned call understands */
    ARG_GUEST_IN,  /* the same, bytes read; ref: length */
    ARG_GUEST_OUT, /* the same, bytes written: as many as the result */
};

#define NO_REF 7

/* How the tracer shows it, where the kind does not say. */
enum arg_show {
    SHOW_DEFAULT,
    SHOW_DEC,
    SHOW_UDEC,
    SHOW_HEX,
    SHOW_OCT,
    SHOW_OPEN,
    SHOW_AT,
    SHOW_PROT,
    SHOW_MAP,
    SHOW_MREMAP,
    SHOW_MADVISE,
    SHOW_MSYNC,
    SHOW_SIGNAL,
    SHOW_SIGHOW,
    SHOW_SIGSET,
    SHOW_SIGACTION,
    SHOW_WHENCE,
    SHOW_FCNTL,
    SHOW_IOCTL,
    SHOW_ACCESS,
    SHOW_CLOCK,
    SHOW_FUTEX,
    SHOW_RLIMIT,
    SHOW_AF,
    SHOW_SOCK,
    SHOW_TIMESPEC,
    SHOW_TIMEVAL,
    SHOW_STAT,
    SHOW_IOVEC,
    SHOW_SOCKADDR,
    SHOW_PRCTL,
    SHOW_POLL,
    SHOW_UNAME,
    SHOW_RLIM,
    SHOW_FDPAIR,
    SHOW_ATFLAGS,
};

typedef struct arg {
    uint8_t kind;  /* enum arg_kind */
    uint8_t ref;   /* index of the argument with the length or directory */
    uint8_t show;  /* enum arg_show */
    uint32_t size; /* ARG_PATH: 0 or PATH_CHANGES() */
} arg_t;

/*
 * A call that changes the file its path leads to: through /proc/self/exe that
 * has to be the guest's program, not elfuse. size is 1 + the index of the
 * argument with AT_SYMLINK_NOFOLLOW, or 1 + NO_REF. (Writing and truncating
 * need nothing: both are being executed, and the host says ETXTBSY.)
 */
#define PATH_CHANGES(flags) (1 + (flags))

/* An owned call: the frame's x0-x5; returns a value or -errno. */
typedef int64_t sys_fn_t(struct thread *t, const uint64_t *a);

typedef struct sys_entry {
    const char *name; /* NULL: there is no such call */
    sys_fn_t *fn;     /* NULL: passed on as the arguments say */
    arg_t arg[SYS_ARGS];
    bool attributes; /* changes what a new thread inherits in the kernel */
} sys_entry_t;

#define SYS_MAX 467U
extern const sys_entry_t sys_table[SYS_MAX];

#define OWNED_CALLS(X)                            \
    X(enosys)                                     \
    X(eperm)                                      \
    X(zero)                                       \
    /* sys_mem.c */                               \
    X(brk)                                        \
    X(mmap)                                       \
    X(munmap)                                     \
    X(mprotect)                                   \
    X(mremap)                                     \
    X(madvise)                                    \
    X(mincore)                                    \
    X(msync)                                      \
    X(mlock)                                      \
    X(mlock2)                                     \
    X(munlock)                                    \
    X(mlockall)                                   \
    X(munlockall)                                 \
    X(pkey_mprotect)                              \
    X(pkey_alloc)                                 \
    X(pkey_free)                                  \
    X(process_vm_readv)                           \
    X(process_vm_writev)                          \
    X(process_madvise)                            \
    /* sys_rw.c */                                \
    X(read)                                       \
    X(write)                                      \
    X(pread64)                                    \
    X(pwrite64)                                   \
    X(readv)                                      \
    X(writev)                                     \
    X(preadv)                                     \
    X(pwritev)                                    \
    X(preadv2)                                    \
    X(pwritev2)                                   \
    X(vmsplice)                                   \
    X(getrandom)                                  \
    /* sys_file.c */                              \
    X(openat)                                     \
    X(openat2)                                    \
    X(close_range)                                \
    X(dup3)                                       \
    X(fcntl)                                      \
    X(readlinkat)                                 \
    X(getdents64)                                 \
    X(fstat)                                      \
    X(newfstatat)                                 \
    X(statx)                                      \
    X(name_to_handle_at)                          \
    X(open_by_handle_at)                          \
    X(mount)                                      \
    X(quotactl)                                   \
    X(quotactl_fd)                                \
    X(fsconfig)                                   \
    /* sys_ioctl.c */                             \
    X(ioctl)                                      \
    /* sys_net.c, sys_msg.c */                    \
    X(accept)                                     \
    X(accept4)                                    \
    X(getsockname)                                \
    X(getpeername)                                \
    X(getsockopt)                                 \
    X(setsockopt)                                 \
    X(sendto)                                     \
    X(recvfrom)                                   \
    X(sendmsg)                                    \
    X(recvmsg)                                    \
    X(sendmmsg)                                   \
    X(recvmmsg)                                   \
    /* sys_poll.c */                              \
    X(ppoll)                                      \
    X(pselect6)                                   \
    X(epoll_pwait)                                \
    X(epoll_pwait2)                               \
    /* sys_ipc.c */                               \
    X(msgctl)                                     \
    X(msgrcv)                                     \
    X(msgsnd)                                     \
    X(semctl)                                     \
    X(shmget)                                     \
    X(shmctl)                                     \
    X(shmat)                                      \
    X(shmdt)                                      \
    /* sys_time.c */                              \
    X(clock_gettime)                              \
    X(gettimeofday)                               \
    X(set_clock)                                  \
    X(timer_create)                               \
    X(mq_notify)                                  \
    /* sys_signal.c */                            \
    X(rt_sigaction)                               \
    X(rt_sigprocmask)                             \
    X(rt_sigpending)                              \
    X(rt_sigsuspend)                              \
    X(rt_sigtimedwait)                            \
    X(rt_sigreturn)                               \
    X(sigaltstack)                                \
    X(signalfd4)                                  \
    X(kill)                                       \
    X(tkill)                                      \
    X(tgkill)                                     \
    /* sys_process.c, sys_prctl.c, sys_futex.c */ \
    X(exit)                                       \
    X(exit_group)                                 \
    X(set_tid_address)                            \
    X(set_robust_list)                            \
    X(get_robust_list)                            \
    X(futex)                                      \
    X(futex_waitv)                                \
    X(clone)                                      \
    X(clone3)                                     \
    /* sys_exec.c */                              \
    X(execve)                                     \
    X(execveat)                                   \
    X(personality)                                \
    X(unshare)                                    \
    X(membarrier)                                 \
    X(prctl)                                      \
    X(ptrace)                                     \
    X(kcmp)                                       \
    X(seccomp)                                    \
    X(pidfd_getfd)                                \
    /* sys_limits.c */                            \
    X(getrlimit)                                  \
    X(setrlimit)                                  \
    X(prlimit64)

#define OWNED_DECLARE(name) sys_fn_t sys_##name;
OWNED_CALLS(OWNED_DECLARE)
#undef OWNED_DECLARE

#endif
