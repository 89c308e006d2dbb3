/* SPDX-License-Identifier: Apache-2.0 */
/* prctl, one option after the other. */
#include "mem.h"

#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>

#ifndef PR_SET_MDWE
#define PR_SET_MDWE 65
#define PR_GET_MDWE 66
#endif

static long pr(int option, unsigned long a, unsigned long b, unsigned long c,
               unsigned long d)
{
    return syscall(SYS_prctl, option, a, b, c, d);
}

#define PTR(p) ((unsigned long) (p))

static void test_name(void)
{
    char name[17] = "";
    is(pr(PR_SET_NAME, PTR("a name that is too long"), 0, 0, 0), 0,
       "name: set");
    is(pr(PR_GET_NAME, PTR(name), 0, 0, 0), 0, "name: get");
    is_str(name, "a name that is ", "name: 15 bytes of it");
    fails(pr(PR_SET_NAME, PTR(BAD_PTR), 0, 0, 0), EFAULT, "name: of nowhere");
    fails(pr(PR_GET_NAME, PTR(BAD_PTR), 0, 0, 0), EFAULT, "name: to nowhere");
    lines_open(&mem_lines, "/proc/self/comm");
    is_str(lines_next(&mem_lines), "a name that is ", "name: comm");
    lines_close(&mem_lines);
    int fd = open("/proc/self/comm", O_RDWR);
    ok(fd >= 0 && write(fd, "by file", 7) == 7, "name: written to comm");
    close(fd);
    memset(name, 0, sizeof name);
    pr(PR_GET_NAME, PTR(name), 0, 0, 0);
    is_str(name, "by file", "name: is it");
    lines_open(&mem_lines, "/proc/thread-self/comm");
    is_str(lines_next(&mem_lines), "by file", "name: of the thread");
    lines_close(&mem_lines);
}

static void test_values(void)
{
    int v = -1;
    is(pr(PR_SET_PDEATHSIG, SIGUSR1, 0, 0, 0), 0, "values: PDEATHSIG");
    ok(pr(PR_GET_PDEATHSIG, PTR(&v), 0, 0, 0) == 0 && v == SIGUSR1,
       "values: is set");
    fails(pr(PR_SET_PDEATHSIG, 99, 0, 0, 0), EINVAL, "values: bad signal");
    fails(pr(PR_GET_PDEATHSIG, PTR(BAD_PTR), 0, 0, 0), EFAULT,
          "values: to nowhere");
    is(pr(PR_SET_PDEATHSIG, 0, 0, 0, 0), 0, "values: PDEATHSIG off");
    is(pr(PR_GET_DUMPABLE, 0, 0, 0, 0), 1, "values: dumpable");
    is(pr(PR_SET_DUMPABLE, 0, 0, 0, 0), 0, "values: not dumpable");
    is(pr(PR_GET_DUMPABLE, 0, 0, 0, 0), 0, "values: is not");
    static vma_t map;
    ok(vma_named("[stack]", &map), "values: maps can be read");
    fails(pr(PR_SET_DUMPABLE, 2, 0, 0, 0), EINVAL, "values: dumpable by root");
    is(pr(PR_SET_DUMPABLE, 1, 0, 0, 0), 0, "values: dumpable again");
    is(pr(PR_GET_KEEPCAPS, 0, 0, 0, 0), 0, "values: KEEPCAPS");
    is(pr(PR_SET_KEEPCAPS, 1, 0, 0, 0), 0, "values: KEEPCAPS set");
    is(pr(PR_GET_KEEPCAPS, 0, 0, 0, 0), 1, "values: is set");
    fails(pr(PR_SET_KEEPCAPS, 2, 0, 0, 0), EINVAL, "values: KEEPCAPS bad");
    is(pr(PR_SET_KEEPCAPS, 0, 0, 0, 0), 0, "values: KEEPCAPS off");
    is(pr(PR_GET_TIMERSLACK, 0, 0, 0, 0), 50000, "values: TIMERSLACK");
    is(pr(PR_SET_TIMERSLACK, 1234, 0, 0, 0), 0, "values: TIMERSLACK set");
    is(pr(PR_GET_TIMERSLACK, 0, 0, 0, 0), 1234, "values: is set");
    is(pr(PR_SET_TIMERSLACK, 0, 0, 0, 0), 0, "values: TIMERSLACK default");
    is(pr(PR_GET_TIMERSLACK, 0, 0, 0, 0), 50000, "values: is it");
    is(pr(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0, "values: SUBREAPER");
    ok(pr(PR_GET_CHILD_SUBREAPER, PTR(&v), 0, 0, 0) == 0 && v == 1,
       "values: is set");
    is(pr(PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0), 0, "values: SUBREAPER off");
    is(pr(PR_GET_SECUREBITS, 0, 0, 0, 0), 0, "values: SECUREBITS");
    is(pr(PR_SET_SECUREBITS, 1, 0, 0, 0), 0, "values: SECUREBITS set");
    is(pr(PR_GET_SECUREBITS, 0, 0, 0, 0), 1, "values: is set");
    is(pr(PR_SET_SECUREBITS, 0, 0, 0, 0), 0, "values: SECUREBITS off");
    is(pr(PR_GET_THP_DISABLE, 0, 0, 0, 0), 0, "values: THP_DISABLE");
    is(pr(PR_SET_THP_DISABLE, 1, 0, 0, 0), 0, "values: THP_DISABLE set");
    is(pr(PR_GET_THP_DISABLE, 0, 0, 0, 0), 1, "values: is set");
    fails(pr(PR_SET_THP_DISABLE, 1, 1, 0, 0), EINVAL, "values: arguments");
    is(pr(PR_SET_THP_DISABLE, 0, 0, 0, 0), 0, "values: THP_DISABLE off");
    is(pr(PR_GET_TIMING, 0, 0, 0, 0), 0, "values: TIMING");
    fails(pr(PR_SET_TIMING, 1, 0, 0, 0), EINVAL, "values: TIMING set");
    is(pr(PR_MCE_KILL_GET, 0, 0, 0, 0), PR_MCE_KILL_DEFAULT, "values: MCE");
    fails(pr(12345, 0, 0, 0, 0), EINVAL, "values: no option");
    fails(pr(PR_SET_FPEMU, 0, 0, 0, 0), EINVAL, "values: FPEMU");
    fails(pr(PR_SET_ENDIAN, 0, 0, 0, 0), EINVAL, "values: ENDIAN");
    unsigned long address = 0, own = 8;
    syscall(SYS_set_tid_address, &own);
    long got = pr(PR_GET_TID_ADDRESS, PTR(&address), 0, 0, 0);
    ok((got == 0 && address == PTR(&own)) || errno == EINVAL,
       "values: TID_ADDRESS");
    syscall(SYS_set_tid_address, NULL);
    long ptracer = pr(PR_SET_PTRACER, getpid(), 0, 0, 0);
    ok(ptracer == 0 || errno == EINVAL, "values: PTRACER");
}

static void test_caps(void)
{
    is(pr(PR_CAPBSET_READ, CAP_SYS_ADMIN, 0, 0, 0), 1, "caps: bounding set");
    fails(pr(PR_CAPBSET_READ, 99, 0, 0, 0), EINVAL, "caps: no such");
    is(pr(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_SYS_ADMIN, 0, 0), 0,
       "caps: not ambient");
    struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[2];
    need(syscall(SYS_capget, &head, data) == 0, "capget");
    data[0].inheritable |= 1U << CAP_CHOWN;
    is(syscall(SYS_capset, &head, data), 0, "caps: inheritable");
    is(pr(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_CHOWN, 0, 0), 0,
       "caps: raised");
    is(pr(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, CAP_CHOWN, 0, 0), 1,
       "caps: is ambient");
    is(pr(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0), 0,
       "caps: cleared");
    is(pr(PR_CAPBSET_DROP, CAP_SYS_TIME, 0, 0, 0), 0, "caps: dropped");
    is(pr(PR_CAPBSET_READ, CAP_SYS_TIME, 0, 0, 0), 0, "caps: is gone");
    head.version = 1;
    fails(syscall(SYS_capget, &head, data), EINVAL, "caps: old version");
    is(head.version, _LINUX_CAPABILITY_VERSION_3, "caps: says which");
}

static void test_tags(void)
{
    is(pr(PR_GET_TAGGED_ADDR_CTRL, 0, 0, 0, 0), 0, "tags: off");
    is(pr(PR_SET_TAGGED_ADDR_CTRL, PR_TAGGED_ADDR_ENABLE, 0, 0, 0), 0,
       "tags: on");
    is(pr(PR_GET_TAGGED_ADDR_CTRL, 0, 0, 0, 0), 1, "tags: are on");
    fails(pr(PR_SET_TAGGED_ADDR_CTRL, 0x80000000, 0, 0, 0), EINVAL,
          "tags: bits");
    fails(pr(PR_SET_TAGGED_ADDR_CTRL, 1, 1, 0, 0), EINVAL, "tags: arguments");
    is(pr(PR_SET_TAGGED_ADDR_CTRL, 0, 0, 0, 0), 0, "tags: off again");
}

static void test_vectors(void)
{
    if (!(getauxval(AT_HWCAP) & (1UL << 22))) {
        fails(pr(PR_SVE_GET_VL, 0, 0, 0, 0), EINVAL, "vectors: none");
        fails(pr(PR_SVE_SET_VL, 16, 0, 0, 0), EINVAL, "vectors: none to set");
        return;
    }
    long vl = pr(PR_SVE_GET_VL, 0, 0, 0, 0), length;
    __asm__ volatile(".arch_extension sve\n\trdvl %0, #1" : "=r"(length));
    is(vl, length, "vectors: length");
    is(pr(PR_SVE_SET_VL, 16, 0, 0, 0), 16, "vectors: shortest");
    is(pr(PR_SVE_GET_VL, 0, 0, 0, 0), 16, "vectors: is it");
    __asm__ volatile(".arch_extension sve\n\trdvl %0, #1" : "=r"(length));
    is(length, 16, "vectors: the processor says so");
    ok(pr(PR_SVE_SET_VL, 8192, 0, 0, 0) >= vl, "vectors: longest");
    is(pr(PR_SVE_SET_VL, vl | PR_SVE_VL_INHERIT, 0, 0, 0),
       vl | PR_SVE_VL_INHERIT, "vectors: inherited");
    fails(pr(PR_SVE_SET_VL, 17, 0, 0, 0), EINVAL, "vectors: bad length");
    fails(pr(PR_SVE_SET_VL, vl | 1UL << 20, 0, 0, 0), EINVAL,
          "vectors: bad flag");
    is(pr(PR_SVE_SET_VL, vl, 0, 0, 0), vl, "vectors: as it was");
}

/* The words of /proc/self/cmdline, joined. */
static const char *cmdline(void)
{
    static char text[256];
    int fd = open("/proc/self/cmdline", O_RDONLY);
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    for (ssize_t i = 0; i + 1 < n; i++)
        if (!text[i])
            text[i] = ' ';
    text[n > 0 ? n : 0] = 0;
    return text;
}

static void test_set_mm(void)
{
    unsigned size = 0;
    char *p = map_rw(PAGE);
    memcpy(p, "new\0title", 10);
    /* The arguments are on the stack, above all other memory. */
    fails(pr(PR_SET_MM, PR_SET_MM_ARG_END, PTR(p), 0, 0), EINVAL,
          "mm: an end before the start");
    fails(pr(PR_SET_MM, PR_SET_MM_ARG_START, 1, 0, 0), EINVAL, "mm: too low");
    fails(pr(PR_SET_MM, PR_SET_MM_ARG_START, TOP, 0, 0), EINVAL,
          "mm: too high");
    fails(pr(PR_SET_MM, 99, PTR(p), 0, 0), EINVAL, "mm: no option");
    fails(pr(PR_SET_MM, PR_SET_MM_ARG_START, PTR(p), 1, 0), EINVAL,
          "mm: argument 4");
    fails(pr(PR_SET_MM, PR_SET_MM_ARG_START, PTR(p), 0, 1), EINVAL,
          "mm: argument 5");
    fails(pr(PR_SET_MM, PR_SET_MM_EXE_FILE, 999, 0, 0), EBADF, "mm: no file");
    int fd = open("/proc/self/exe", O_RDONLY);
    fails(pr(PR_SET_MM, PR_SET_MM_EXE_FILE, fd, 0, 0), EBUSY, "mm: program");
    close(fd);
    fails(pr(PR_SET_MM, PR_SET_MM_AUXV, PTR(p), 1 << 20, 0), EINVAL,
          "mm: too long an auxv");
    if (pr(PR_SET_MM, PR_SET_MM_MAP_SIZE, PTR(&size), 0, 0)) {
        tap_skip("mm: all at once", "no CONFIG_CHECKPOINT_RESTORE");
        return;
    }
    struct prctl_mm_map m;
    is(size, sizeof m, "mm: size");
    fails(pr(PR_SET_MM, PR_SET_MM_MAP, PTR(&m), 8, 0), EINVAL, "mm: bad size");
    fails(pr(PR_SET_MM, PR_SET_MM_MAP, PTR(BAD_PTR), sizeof m, 0), EFAULT,
          "mm: of nowhere");
    memset(&m, 0, sizeof m);
    fails(pr(PR_SET_MM, PR_SET_MM_MAP, PTR(&m), sizeof m, 0), EINVAL,
          "mm: of nothing");
    m.start_code = m.start_data = m.start_brk = m.start_stack = m.arg_start =
        m.env_start = m.env_end = PTR(p);
    m.end_code = m.end_data = m.brk = PTR(p + PAGE);
    m.arg_end = PTR(p + 10);
    m.exe_fd = -1;
    is(pr(PR_SET_MM, PR_SET_MM_MAP, PTR(&m), sizeof m, 0), 0, "mm: set");
    is_str(cmdline(), "new title", "mm: the command line");
    is(syscall(SYS_brk, 0), p + PAGE, "mm: the break");
    static vma_t v;
    ok(vma_find(p, &v) && strcmp(v.name, "[heap]") == 0, "mm: the heap");
    is(pr(PR_SET_MM, PR_SET_MM_ARG_END, PTR(p + 4), 0, 0), 0,
       "mm: a shorter line");
    is_str(cmdline(), "new", "mm: is shorter");
}

static const char *name_at(void *p)
{
    static vma_t v;
    return vma_find(p, &v) ? v.name : "?";
}

#define NAME(p, len, name) \
    pr(PR_SET_VMA, PR_SET_VMA_ANON_NAME, PTR(p), len, PTR(name))

static void test_vma_names(void)
{
    char *p = map_hole(16 * PAGE);
    need(sys_mmap(p, 8 * PAGE, RW, ANON | MAP_FIXED, -1, 0) == p, "mmap");
    fails(pr(PR_SET_VMA, 1, PTR(p), PAGE, PTR("x")), EINVAL, "names: option");
    if (NAME(p, 0, NULL)) {
        tap_skip("names", "no CONFIG_ANON_VMA_NAME");
        return;
    }
    is(NAME(p + PAGE, 2 * PAGE, "pool one"), 0, "names: given");
    is_str(name_at(p + PAGE), "[anon:pool one]", "names: in maps");
    is_str(name_at(p), "", "names: not before");
    is_str(name_at(p + 3 * PAGE), "", "names: not behind");
    is_str(layout(p, 8), "rw-p:1 rw-p:2 rw-p:5", "names: parts");
    is(NAME(p + 3 * PAGE, PAGE, "pool one"), 0, "names: the same beside it");
    is_str(layout(p, 8), "rw-p:1 rw-p:3 rw-p:4", "names: joined");
    is(NAME(p + 2 * PAGE, PAGE, "other"), 0, "names: another inside");
    is_str(layout(p, 8), "rw-p:1 rw-p:1 rw-p:1 rw-p:1 rw-p:4", "names: cut");
    is(NAME(p, 8 * PAGE, NULL), 0, "names: none");
    is_str(layout(p, 8), "rw-p:8", "names: joined");
    need(NAME(p, 8 * PAGE, "moved") == 0, "name");
    is(sys_mprotect(p, PAGE, PROT_READ), 0, "names: mprotect");
    is_str(name_at(p), "[anon:moved]", "names: keeps it");
    is(sys_mremap(p + 4 * PAGE, 2 * PAGE, 2 * PAGE,
                  MREMAP_MAYMOVE | MREMAP_FIXED, p + 10 * PAGE),
       p + 10 * PAGE, "names: mremap");
    is_str(name_at(p + 10 * PAGE), "[anon:moved]", "names: keeps it");
    fails(NAME(p, 8 * PAGE, "holed"), ENOMEM, "names: over a hole");
    is_str(name_at(p + 7 * PAGE), "[anon:holed]", "names: behind it, too");
    fails(NAME(p + 1, PAGE, "x"), EINVAL, "names: off a page");
    fails(NAME(p, -1UL, "x"), EINVAL, "names: length");
    fails(NAME(p, PAGE, "back`tick"), EINVAL, "names: a character");
    fails(NAME(p, PAGE, "new\nline"), EINVAL, "names: another");
    static char longest[90];
    memset(longest, 'n', 79);
    is(NAME(p, PAGE, longest), 0, "names: the longest");
    longest[79] = 'n';
    fails(NAME(p, PAGE, longest), EINVAL, "names: longer");
    fails(NAME(p, PAGE, BAD_PTR), EFAULT, "names: of nowhere");
    int fd = file_make(PAGE);
    char *f = sys_mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    fails(NAME(f, PAGE, "x"), EBADF, "names: of a file");
    close(fd);
}

static void test_random(void)
{
    char buf[300];
    memset(buf, 0, sizeof buf);
    is(getrandom(buf, sizeof buf, 0), 300, "random: bytes");
    ok(!all_bytes(buf, 0, 300), "random: are some");
    is(getrandom(buf, 16, GRND_NONBLOCK | GRND_RANDOM), 16, "random: flags");
    is(getrandom(buf, 16, 4 /* GRND_INSECURE */), 16, "random: insecure");
    fails(getrandom(buf, 16, 4 | GRND_RANDOM), EINVAL, "random: both");
    fails(getrandom(buf, 16, 8), EINVAL, "random: bad flag");
    fails(getrandom(BAD_PTR, 16, 0), EFAULT, "random: to nowhere");
    is(getrandom(buf, 0, 0), 0, "random: nothing");
}

static void test_system(void)
{
    struct sysinfo info;
    cpu_set_t set;
    ok(sysinfo(&info) == 0 && info.totalram > 0 && info.mem_unit > 0 &&
           info.procs > 0 && info.uptime >= 0,
       "system: sysinfo");
    fails(syscall(SYS_sysinfo, BAD_PTR), EFAULT, "system: to nowhere");
    CPU_ZERO(&set);
    long n = syscall(SYS_sched_getaffinity, 0, sizeof set, &set);
    ok(n > 0 && n % 8 == 0 && CPU_COUNT(&set) == sysconf(_SC_NPROCESSORS_ONLN),
       "system: affinity");
    fails(syscall(SYS_sched_getaffinity, 0, 1, &set), EINVAL,
          "system: too short");
    CPU_ZERO(&set);
    CPU_SET(0, &set);
    is(sched_setaffinity(0, sizeof set, &set), 0, "system: bound to one");
    unsigned cpu = 99;
    ok(syscall(SYS_getcpu, &cpu, NULL, NULL) == 0 && cpu == 0,
       "system: runs on it");
    CPU_ZERO(&set);
    fails(sched_setaffinity(0, sizeof set, &set), EINVAL, "system: to none");
    is(personality(0xffffffff), 0, "system: personality");
    is(personality(ADDR_NO_RANDOMIZE), 0, "system: no randomisation");
    is(personality(0xffffffff), ADDR_NO_RANDOMIZE, "system: is it");
    is(personality(READ_IMPLIES_EXEC), ADDR_NO_RANDOMIZE, "system: exec");
    is(personality(0), READ_IMPLIES_EXEC, "system: was it");
}

/* Last: there is no way back. */
static void test_for_ever(void)
{
    is(pr(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 0, "ever: NO_NEW_PRIVS");
    fails(pr(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), EINVAL, "ever: cannot be off");
    is(pr(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0, "ever: set");
    is(pr(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1, "ever: is set");
    if (pr(PR_GET_MDWE, 0, 0, 0, 0)) {
        tap_skip("ever: MDWE", "a kernel without PR_SET_MDWE");
        return;
    }
    char *p = map_rw(2 * PAGE);
    fails(pr(PR_SET_MDWE, 8, 0, 0, 0), EINVAL, "ever: MDWE bits");
    is(pr(PR_SET_MDWE, 1, 0, 0, 0), 0, "ever: MDWE");
    is(pr(PR_GET_MDWE, 0, 0, 0, 0), 1, "ever: is on");
    fails(pr(PR_SET_MDWE, 0, 0, 0, 0), EPERM, "ever: stays on");
    fails(sys_mmap(NULL, PAGE, RW | PROT_EXEC, ANON, -1, 0), EACCES,
          "ever: no writable code");
    fails(sys_mprotect(p, PAGE, PROT_READ | PROT_EXEC), EACCES,
          "ever: nothing becomes code");
    char *x = sys_mmap(NULL, PAGE, PROT_READ | PROT_EXEC, ANON, -1, 0);
    ok(GOOD(x), "ever: code from the start");
    fails(sys_mprotect(x, PAGE, RW | PROT_EXEC), EACCES,
          "ever: does not become writable");
    is(sys_mprotect(x, PAGE, PROT_READ), 0, "ever: may become data");
    int status;
    pid_t pid = fork();
    need(pid >= 0, "fork");
    if (pid == 0)
        _exit(sys_mprotect(p, PAGE, PROT_READ | PROT_EXEC) == -1 ? errno : 0);
    is(waitpid(pid, &status, 0), pid, "ever: a child");
    is(WEXITSTATUS(status), EACCES, "ever: inherits it");
    pid = fork();
    need(pid >= 0, "fork");
    if (pid == 0) {
        execl("/proc/self/exe", "prctl", "mdwe", NULL);
        _exit(99);
    }
    is(waitpid(pid, &status, 0), pid, "ever: a program");
    is(WEXITSTATUS(status), EACCES, "ever: inherits it");
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "mdwe") == 0) {
        char *p = map_rw(PAGE);
        return sys_mprotect(p, PAGE, PROT_READ | PROT_EXEC) == -1 ? errno : 0;
    }
    test_name();
    test_values();
    test_caps();
    test_tags();
    test_vectors();
    test_random();
    test_system();
    test_vma_names();
    test_set_mm();
    test_for_ever();
    return tap_done();
}
