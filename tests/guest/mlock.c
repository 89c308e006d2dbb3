/* SPDX-License-Identifier: Apache-2.0 */
/* mlock and its family, with RLIMIT_MEMLOCK as a plain user meets it. */
#include "mem.h"

#include <linux/capability.h>

static long locked_kb(void)
{
    long kb = -1;
    char *line;
    lines_open(&mem_lines, "/proc/self/status");
    while ((line = lines_next(&mem_lines)))
        if (strncmp(line, "VmLck:", 6) == 0)
            kb = atol(line + 6);
    lines_close(&mem_lines);
    return kb;
}

static void test_basic(void)
{
    char *p = map_rw(8 * PAGE);
    is(mlock(p + PAGE, 2 * PAGE), 0, "mlock of two pages");
    is_str(present(p, 8), "01100000", "makes them present, and no more");
    is(locked_kb(), 8, "VmLck says so");
    is_str(layout(p, 8), "rw-p:1 rw-p:2 rw-p:5", "a mapping of its own");
    is(mlock(p + PAGE, 2 * PAGE), 0, "mlock twice");
    is(locked_kb(), 8, "does not count twice");
    is(munlock(p + PAGE, PAGE), 0, "munlock of one");
    is(locked_kb(), 4, "VmLck says so");
    is(munlock(p, 8 * PAGE), 0, "munlock of more than is locked");
    is(locked_kb(), 0, "nothing locked");
    is(mlock(p + 5, 1), 0, "mlock rounds down and up");
    is(locked_kb(), 4, "to a page");
    is(mlock(p + PAGE - 1, 2), 0, "two bytes over a border");
    is(locked_kb(), 8, "are two pages");
    is(sys_munmap(p, 8 * PAGE), 0, "munmap of locked memory");
    is(locked_kb(), 0, "unlocks it");
}

static void test_errors(void)
{
    char *p = map_hole(4 * PAGE);
    sys_mmap(p, PAGE, RW, ANON | MAP_FIXED, -1, 0);
    sys_mmap(p + 2 * PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0);
    fails(mlock(p, 3 * PAGE), ENOMEM, "mlock over a hole");
    fails(mlock(p + PAGE, PAGE), ENOMEM, "mlock of a hole");
    fails(mlock(NULL, PAGE), ENOMEM, "mlock of page 0");
    fails(munlock(p + PAGE, PAGE), ENOMEM, "munlock of a hole");
    munlock(p, PAGE);
    munlock(p + 2 * PAGE, PAGE);
    is(mlock(p, 0), 0, "mlock of nothing");
    fails(mlock((void *) -PAGE, 2 * PAGE), EINVAL, "mlock that wraps");
    fails(syscall(SYS_mlock2, p, PAGE, 2), EINVAL, "mlock2: unknown flag");
    is(syscall(SYS_mlock2, p, PAGE, 0), 0, "mlock2 without flags");
    is_str(present(p, 1), "1", "makes it present");
    char *q = sys_mmap(NULL, PAGE, PROT_NONE, ANON, -1, 0);
    fails(mlock(q, PAGE), ENOMEM, "mlock of PROT_NONE");
    munlock(q, PAGE);
    q = sys_mmap(NULL, 2 * PAGE, PROT_READ, ANON, -1, 0);
    is(mlock(q, 2 * PAGE), 0, "mlock of read-only memory");
    is_str(present(q, 2), "11", "makes it present");
    munlockall();
}

static void test_onfault(void)
{
    char *p = map_rw(4 * PAGE);
    is(syscall(SYS_mlock2, p, 4 * PAGE, MLOCK_ONFAULT), 0, "mlock2 onfault");
    is_str(present(p, 4), "0000", "brings nothing in");
    is(locked_kb(), 16, "but counts");
    p[PAGE] = 1;
    is_str(present(p, 4), "0100", "a touch brings one page in");
    is(mlock(p, 4 * PAGE), 0, "mlock afterwards");
    is_str(present(p, 4), "1111", "brings the rest in");
    munlock(p, 4 * PAGE);
}

static void test_all(void)
{
    char *before = map_rw(4 * PAGE);
    fails(mlockall(0), EINVAL, "mlockall: no flag");
    fails(mlockall(8), EINVAL, "mlockall: unknown flag");
    fails(mlockall(MCL_ONFAULT), EINVAL, "mlockall: onfault alone");
    is(mlockall(MCL_FUTURE), 0, "mlockall: future");
    is_str(present(before, 4), "0000", "leaves what there is");
    char *p = sys_mmap(NULL, 4 * PAGE, RW, ANON, -1, 0);
    is_str(present(p, 4), "1111", "a new mapping is present at once");
    is(munlockall(), 0, "munlockall");
    is(locked_kb(), 0, "nothing locked");
    p = map_rw(4 * PAGE);
    is_str(present(p, 4), "0000", "new mappings are lazy again");
    is(mlockall(MCL_FUTURE | MCL_ONFAULT), 0, "mlockall: future, onfault");
    p = map_rw(4 * PAGE);
    is_str(present(p, 4), "0000", "a new mapping brings nothing in");
    is(locked_kb(), 16, "but is locked");
    munlockall();
    is(mlockall(MCL_CURRENT), 0, "mlockall: current");
    is_str(present(before, 4), "1111", "brings everything in");
    is(munlockall(), 0, "munlockall");
}

static void drop_ipc_lock(void)
{
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    need(syscall(SYS_capget, &head, data) == 0, "capget");
    data[0].effective &= ~(1u << CAP_IPC_LOCK);
    data[0].permitted &= ~(1u << CAP_IPC_LOCK);
    need(syscall(SYS_capset, &head, data) == 0, "capset");
}

static void test_limits(void)
{
    struct rlimit lim = {64 * KIB, 64 * KIB};
    char *p = map_rw(256 * KIB);
    need(setrlimit(RLIMIT_MEMLOCK, &lim) == 0, "setrlimit");
    is(mlock(p, 256 * KIB), 0, "CAP_IPC_LOCK is above the limit");
    munlock(p, 256 * KIB);
    drop_ipc_lock();
    fails(mlock(p, 256 * KIB), ENOMEM, "256K against a limit of 64K");
    is(locked_kb(), 0, "nothing locked");
    is(mlock(p, 64 * KIB), 0, "exactly 64K");
    fails(mlock(p + 64 * KIB, PAGE), ENOMEM, "one page more");
    is(mlock(p, 64 * KIB), 0, "the same again is not more");
    fails(sys_mmap(NULL, PAGE, RW, ANON | MAP_LOCKED, -1, 0), EAGAIN,
          "MAP_LOCKED over the limit");
    fails(sys_mremap(p, 64 * KIB, 128 * KIB, MREMAP_MAYMOVE, NULL), EAGAIN,
          "growth of locked memory over the limit");
    is(munlock(p, 64 * KIB), 0, "munlock");
    char *q = sys_mmap(NULL, 64 * KIB, RW, ANON | MAP_LOCKED, -1, 0);
    ok(GOOD(q), "MAP_LOCKED up to the limit");
    sys_munmap(q, 64 * KIB);
    fails(mlockall(MCL_CURRENT), ENOMEM, "mlockall over the limit");
    is(mlockall(MCL_FUTURE), 0, "mlockall of the future is allowed");
    fails(sys_mmap(NULL, 128 * KIB, RW, ANON, -1, 0), EAGAIN,
          "but a large mapping is not then");
    is(munlockall(), 0, "munlockall is always allowed");
    lim.rlim_cur = lim.rlim_max = 0;
    need(setrlimit(RLIMIT_MEMLOCK, &lim) == 0, "setrlimit");
    fails(mlock(p, PAGE), EPERM, "mlock with a limit of 0");
    fails(mlockall(MCL_FUTURE), EPERM, "mlockall with a limit of 0");
    fails(sys_mmap(NULL, PAGE, RW, ANON | MAP_LOCKED, -1, 0), EPERM,
          "MAP_LOCKED with a limit of 0");
}

int main(void)
{
    test_basic();
    test_errors();
    test_onfault();
    test_all();
    test_limits();
    return tap_done();
}
