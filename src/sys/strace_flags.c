/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/strace_flags.h"

#include <asm/termbits.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/prctl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "sys/table.h"

typedef struct name {
    uint64_t value;
    const char *text;
} name_t;

#define N(x)              \
    {                     \
        (uint64_t)(x), #x \
    }

static const name_t open_flags[] = {
    N(O_APPEND), N(O_CLOEXEC), N(O_CREAT),  N(O_DIRECTORY), N(O_DSYNC),
    N(O_EXCL),   N(O_NOATIME), N(O_NOCTTY), N(O_NOFOLLOW),  N(O_NONBLOCK),
    N(O_PATH),   N(O_TRUNC),   N(O_DIRECT)};
static const name_t prot_flags[] = {N(PROT_READ), N(PROT_WRITE), N(PROT_EXEC)};
static const name_t map_flags[] = {
    N(MAP_FIXED),     N(MAP_ANONYMOUS),
    N(MAP_GROWSDOWN), N(MAP_LOCKED),
    N(MAP_NORESERVE), N(MAP_POPULATE),
    N(MAP_NONBLOCK),  N(MAP_STACK),
    N(MAP_HUGETLB),   {0x100000, "MAP_FIXED_NOREPLACE"}};
static const name_t mremap_flags[] = {
    N(MREMAP_MAYMOVE), N(MREMAP_FIXED), {4, "MREMAP_DONTUNMAP"}};
static const name_t msync_flags[] = {N(MS_ASYNC), N(MS_INVALIDATE), N(MS_SYNC)};
static const name_t access_flags[] = {N(R_OK), N(W_OK), N(X_OK)};
static const name_t at_flags[] = {{0x100, "AT_SYMLINK_NOFOLLOW"},
                                  {0x200, "AT_REMOVEDIR"},
                                  {0x400, "AT_SYMLINK_FOLLOW"},
                                  {0x800, "AT_NO_AUTOMOUNT"},
                                  {0x1000, "AT_EMPTY_PATH"}};
static const name_t sock_types[] = {N(SOCK_STREAM), N(SOCK_DGRAM), N(SOCK_RAW),
                                    N(SOCK_SEQPACKET)};
static const name_t madvise_names[] = {
    N(MADV_NORMAL),        N(MADV_RANDOM),     N(MADV_SEQUENTIAL),
    N(MADV_WILLNEED),      N(MADV_DONTNEED),   N(MADV_FREE),
    N(MADV_REMOVE),        N(MADV_DONTFORK),   N(MADV_DOFORK),
    N(MADV_HUGEPAGE),      N(MADV_NOHUGEPAGE), N(MADV_DONTDUMP),
    N(MADV_DODUMP),        N(MADV_WIPEONFORK), N(MADV_KEEPONFORK),
    N(MADV_COLD),          N(MADV_PAGEOUT),    N(MADV_POPULATE_READ),
    N(MADV_POPULATE_WRITE)};
static const name_t whence_names[] = {N(SEEK_SET), N(SEEK_CUR), N(SEEK_END),
                                      N(SEEK_DATA), N(SEEK_HOLE)};
static const name_t sighow_names[] = {N(SIG_BLOCK), N(SIG_UNBLOCK),
                                      N(SIG_SETMASK)};
static const name_t fcntl_names[] = {
    N(F_DUPFD),      N(F_GETFD),     N(F_SETFD),         N(F_GETFL),
    N(F_SETFL),      N(F_GETLK),     N(F_SETLK),         N(F_SETLKW),
    N(F_SETOWN),     N(F_GETOWN),    N(F_DUPFD_CLOEXEC), N(F_SETPIPE_SZ),
    N(F_GETPIPE_SZ), N(F_ADD_SEALS), N(F_GET_SEALS)};
static const name_t ioctl_names[] = {
    N(TCGETS),     N(TCSETS),    N(TCSETSW),   N(TCSETSF),   N(TIOCGWINSZ),
    N(TIOCSWINSZ), N(TIOCGPGRP), N(TIOCSPGRP), N(TIOCSCTTY), N(FIONREAD),
    N(FIONBIO),    N(FIOCLEX),   N(FIONCLEX)};
static const name_t clock_names[] = {N(CLOCK_REALTIME),
                                     N(CLOCK_MONOTONIC),
                                     N(CLOCK_PROCESS_CPUTIME_ID),
                                     N(CLOCK_THREAD_CPUTIME_ID),
                                     N(CLOCK_MONOTONIC_RAW),
                                     N(CLOCK_REALTIME_COARSE),
                                     N(CLOCK_MONOTONIC_COARSE),
                                     N(CLOCK_BOOTTIME),
                                     N(CLOCK_TAI)};
static const name_t futex_names[] = {N(FUTEX_WAIT),
                                     N(FUTEX_WAKE),
                                     N(FUTEX_REQUEUE),
                                     N(FUTEX_CMP_REQUEUE),
                                     N(FUTEX_WAKE_OP),
                                     N(FUTEX_LOCK_PI),
                                     N(FUTEX_UNLOCK_PI),
                                     N(FUTEX_TRYLOCK_PI),
                                     N(FUTEX_WAIT_BITSET),
                                     N(FUTEX_WAKE_BITSET),
                                     N(FUTEX_WAIT_REQUEUE_PI),
                                     N(FUTEX_CMP_REQUEUE_PI)};
static const name_t rlimit_names[] = {
    N(RLIMIT_CPU),      N(RLIMIT_FSIZE), N(RLIMIT_DATA),   N(RLIMIT_STACK),
    N(RLIMIT_CORE),     N(RLIMIT_RSS),   N(RLIMIT_NPROC),  N(RLIMIT_NOFILE),
    N(RLIMIT_MEMLOCK),  N(RLIMIT_AS),    N(RLIMIT_LOCKS),  N(RLIMIT_SIGPENDING),
    N(RLIMIT_MSGQUEUE), N(RLIMIT_NICE),  N(RLIMIT_RTPRIO), N(RLIMIT_RTTIME)};
static const name_t af_names[] = {N(AF_UNIX), N(AF_INET), N(AF_INET6),
                                  N(AF_NETLINK), N(AF_PACKET)};
static const name_t prctl_names[] = {N(PR_SET_NAME),         N(PR_GET_NAME),
                                     N(PR_SET_PDEATHSIG),    N(PR_SET_DUMPABLE),
                                     N(PR_GET_DUMPABLE),     N(PR_SET_SECCOMP),
                                     N(PR_SET_NO_NEW_PRIVS), N(PR_SET_VMA),
                                     N(PR_CAPBSET_READ),     N(PR_SET_MM)};

#define COUNT(a) (sizeof(a) / sizeof *(a))

static void append(char *out, size_t size, const char *text)
{
    size_t len = strlen(out);

    snprintf(out + len, size - len, "%s%s", len ? "|" : "", text);
}

/* The names of the set bits; what has none in hexadecimal. */
static void bits(const name_t *names, size_t n, uint64_t v, const char *zero,
                 char *out, size_t size)
{
    for (size_t i = 0; i < n; i++) {
        if (names[i].value && (v & names[i].value) == names[i].value) {
            append(out, size, names[i].text);
            v &= ~names[i].value;
        }
    }
    if (v) {
        char hex[24];

        snprintf(hex, sizeof hex, "%#llx", (unsigned long long) v);
        append(out, size, hex);
    } else if (!*out) {
        append(out, size, zero);
    }
}

static bool one(const name_t *names, size_t n, uint64_t v, char *out,
                size_t size)
{
    for (size_t i = 0; i < n; i++) {
        if (names[i].value == (uint32_t) v) {
            append(out, size, names[i].text);
            return true;
        }
    }
    return false;
}

static void show_open(uint64_t v, char *out, size_t size)
{
    static const char *const modes[] = {"O_RDONLY", "O_WRONLY", "O_RDWR",
                                        "O_ACCMODE"};

    append(out, size, modes[v & 3]);
    v = (uint32_t) v & ~(3U | 0x20000U); /* O_LARGEFILE says nothing */
    if (v)
        bits(open_flags, COUNT(open_flags), v, "", out, size);
}

static void show_map(uint64_t v, char *out, size_t size)
{
    static const char *const types[] = {"MAP_FILE", "MAP_SHARED", "MAP_PRIVATE",
                                        "MAP_SHARED_VALIDATE"};

    append(out, size, types[v & 3]);
    v &= ~3UL;
    if (v)
        bits(map_flags, COUNT(map_flags), v, "", out, size);
}

static bool show_ioctl(uint64_t v, char *out, size_t size)
{
    if (!one(ioctl_names, COUNT(ioctl_names), v, out, size))
        snprintf(out, size, "%#x", (unsigned) v);
    return true;
}

static bool show_futex(uint64_t v, char *out, size_t size)
{
    if (!one(futex_names, COUNT(futex_names), v & FUTEX_CMD_MASK, out, size))
        return false;
    if (v & FUTEX_PRIVATE_FLAG)
        append(out, size, "FUTEX_PRIVATE_FLAG");
    if (v & FUTEX_CLOCK_REALTIME)
        append(out, size, "FUTEX_CLOCK_REALTIME");
    return true;
}

static bool show_sock(uint64_t v, char *out, size_t size)
{
    if (!one(sock_types, COUNT(sock_types), v & 15, out, size))
        return false;
    if (v & SOCK_CLOEXEC)
        append(out, size, "SOCK_CLOEXEC");
    if (v & SOCK_NONBLOCK)
        append(out, size, "SOCK_NONBLOCK");
    return true;
}

bool strace_flags(int show, uint64_t v, char *out, size_t size)
{
    *out = '\0';
    switch (show) {
    case SHOW_OPEN:
        show_open(v, out, size);
        return true;
    case SHOW_MAP:
        show_map(v, out, size);
        return true;
    case SHOW_PROT:
        bits(prot_flags, COUNT(prot_flags), v, "PROT_NONE", out, size);
        return true;
    case SHOW_MREMAP:
        bits(mremap_flags, COUNT(mremap_flags), v, "0", out, size);
        return true;
    case SHOW_MSYNC:
        bits(msync_flags, COUNT(msync_flags), v, "0", out, size);
        return true;
    case SHOW_ACCESS:
        bits(access_flags, COUNT(access_flags), v, "F_OK", out, size);
        return true;
    case SHOW_ATFLAGS:
        bits(at_flags, COUNT(at_flags), v, "0", out, size);
        return true;
    case SHOW_SOCK:
        return show_sock(v, out, size);
    case SHOW_IOCTL:
        return show_ioctl(v, out, size);
    case SHOW_FUTEX:
        return show_futex(v, out, size);
#define ONE(kind, names) \
    case kind:           \
        return one(names, COUNT(names), v, out, size);
        ONE(SHOW_MADVISE, madvise_names)
        ONE(SHOW_WHENCE, whence_names)
        ONE(SHOW_SIGHOW, sighow_names)
        ONE(SHOW_FCNTL, fcntl_names)
        ONE(SHOW_CLOCK, clock_names)
        ONE(SHOW_RLIMIT, rlimit_names)
        ONE(SHOW_AF, af_names)
        ONE(SHOW_PRCTL, prctl_names)
    default:
        return false;
    }
}
