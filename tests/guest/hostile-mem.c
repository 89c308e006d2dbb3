/* SPDX-License-Identifier: Apache-2.0 */
/* Memory by side doors: /proc/self/mem in every spelling, process_vm_readv,
 * pointers all over the address space. Only the program's own is there. */
#include "mem.h"

#include <sys/uio.h>

static char secret[4096] __attribute__((aligned(4096))) = "own memory";
static char *hole;

/* A descriptor on the memory reads and writes what is mapped, and nothing
 * else. It may also be refused altogether. */
static bool honest(int fd)
{
    char c[16];
    if (fd < 0)
        return errno == EACCES || errno == EPERM || errno == ENOENT;
    bool good = pread(fd, c, 10, (off_t) secret) == 10 &&
                memcmp(c, "own memory", 10) == 0;
    good &= pread(fd, c, 1, (off_t) hole) == -1 && errno == EIO;
    good &= pread(fd, c, 1, 0) == -1 && errno == EIO;
    char *lazy = map_rw(PAGE);
    good &= pread(fd, c, 1, (off_t) lazy) == 1 && c[0] == 0;
    good &= pwrite(fd, "w", 1, (off_t) lazy) == 1 && *lazy == 'w';
    sys_munmap(lazy, PAGE);
    good &= pread(fd, c, 1, (off_t) lazy) == -1 && errno == EIO;
    for (unsigned long a = 1UL << 36; a < 1UL << 48; a += 1UL << 36) {
        long n = pread(fd, c, 1, a + 0x5000);
        good &= (n == 1) == can_read((void *) (a + 0x5000));
    }
    close(fd);
    return good;
}

static void test_mem_file(void)
{
    char id[96], name[64];
    static const char *const paths[] = {
        "/proc/self/mem",
        "/proc/thread-self/mem",
        "/proc/./self/mem",
        "/proc/self/../self/mem",
        "//proc//self//mem",
        "/../proc/self/mem",
        "/proc/self/task/../mem",
        "/proc/self/root/proc/self/mem",
        "/proc/self/cwd/proc/self/mem",
        "/dev/fd/../mem",
        "proc/self/mem",
    };
    need(chdir("/") == 0, "chdir");
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        snprintf(name, sizeof name, "mem: spelling %zu", i + 1);
        ok(honest(open(paths[i], O_RDWR)), name);
    }
    snprintf(id, sizeof id, "/proc/%d/mem", getpid());
    ok(honest(open(id, O_RDWR)), "mem: by number");
    snprintf(id, sizeof id, "/proc/self/task/%d/mem", getpid());
    ok(honest(open(id, O_RDWR)), "mem: by thread");
    snprintf(id, sizeof id, "/proc/%d/task/%d/mem", getpid(), getpid());
    ok(honest(open(id, O_RDWR)), "mem: by number and thread");
    int dir = open("/proc/self", O_RDONLY | O_DIRECTORY);
    ok(honest(openat(dir, "mem", O_RDWR)), "mem: by openat");
    ok(honest(openat(dir, "./task/../mem", O_RDWR)), "mem: by openat, again");
    need(fchdir(dir) == 0, "fchdir");
    ok(honest(open("mem", O_RDWR)), "mem: from within");
    need(chdir("/") == 0, "chdir");
    int p = openat(dir, "mem", O_PATH);
    snprintf(id, sizeof id, "/proc/self/fd/%d", p);
    ok(honest(open(id, O_RDWR)), "mem: by O_PATH and again");
    close(p), close(dir);
    dir = open("/proc", O_PATH | O_DIRECTORY);
    ok(honest(openat(dir, "self/mem", O_RDWR)), "mem: from /proc");
    close(dir);
    const char *tmp = getenv("TMPDIR");
    snprintf(id, sizeof id, "%s/guest.l.%d", tmp ? tmp : "/tmp", getpid());
    need(symlink("/proc/self/mem", id) == 0, "symlink");
    ok(honest(open(id, O_RDWR)), "mem: by a symbolic link");
    need(unlink(id) == 0 && symlink("/proc/self", id) == 0, "symlink");
    dir = open(id, O_PATH | O_DIRECTORY);
    ok(honest(openat(dir, "mem", O_RDWR)), "mem: by a link to the directory");
    close(dir);
    need(unlink(id) == 0, "unlink");
    struct {
        uint64_t flags, mode, resolve;
    } how = {O_RDWR, 0, 0};
    ok(honest(
           syscall(SYS_openat2, AT_FDCWD, "/proc/self/mem", &how, sizeof how)),
       "mem: by openat2");
}

static void test_process_vm(void)
{
    char c[16];
    struct iovec l = {c, 10}, r = {secret, 10};
    long n = process_vm_readv(getpid(), &l, 1, &r, 1, 0);
    bool refused = n == -1 && (errno == EPERM || errno == ENOSYS);
    ok(refused || (n == 10 && memcmp(c, "own memory", 10) == 0),
       "process_vm_readv of own memory works or is refused");
    r.iov_base = hole;
    n = process_vm_readv(getpid(), &l, 1, &r, 1, 0);
    ok(n == -1 && (refused || errno == EFAULT), "of a hole it fails");
    char *lazy = map_rw(PAGE);
    r.iov_base = lazy;
    c[0] = 'v';
    l.iov_len = r.iov_len = 1;
    n = process_vm_writev(getpid(), &l, 1, &r, 1, 0);
    ok(refused || (n == 1 && *lazy == 'v'), "process_vm_writev");
    bool good = true;
    for (unsigned long a = 1UL << 35; a < 1UL << 48; a += 1UL << 35) {
        r.iov_base = (void *) (a + 0x7000);
        bool mapped = can_read(r.iov_base);
        n = process_vm_readv(getpid(), &l, 1, &r, 1, 0);
        good &= refused ? n == -1 : (n == 1) == mapped;
        if (mapped)
            continue;
        n = process_vm_writev(getpid(), &l, 1, &r, 1, 0);
        good &= n == -1 && (refused || errno == EFAULT);
    }
    ok(good, "8191 addresses over the whole address space");
    l.iov_base = BAD_PTR;
    r.iov_base = secret;
    n = process_vm_readv(getpid(), &l, 1, &r, 1, 0);
    ok(n == -1, "to nowhere it fails");
    fails(syscall(SYS_process_vm_readv, getpid(), &l, 1, &r, 1, 1),
          refused ? errno : EINVAL, "an unknown flag");
}

/* What maps does not list, no system call can reach. */
static void test_pointers(void)
{
    static vma_t v;
    static struct {
        unsigned long start, end;
        bool stack; /* an access below it would make it grow */
    } have[256];
    int n = 0;
    char *line;
    lines_open(&mem_lines, "/proc/self/maps");
    while (n < 256 && (line = lines_next(&mem_lines)))
        if (vma_parse(line, &v)) {
            have[n].stack = strcmp(v.name, "[stack]") == 0;
            have[n].start = v.start;
            have[n++].end = v.end;
        }
    lines_close(&mem_lines);
    int outside = 0;
    for (int i = 0; i < n; i++) {
        bool below = i == 0 || have[i - 1].end < have[i].start;
        bool above = i == n - 1 || have[i].end < have[i + 1].start;
        if (below && !have[i].stack)
            outside += can_read((void *) (have[i].start - 1));
        if (above)
            outside += can_read((void *) have[i].end);
    }
    is(outside, 0, "next to each mapping there is nothing");
    for (unsigned long k = 0; k < 16384; k++) {
        unsigned long a = k << 34 | 0x3000;
        bool listed = false;
        for (int i = 0; i < n; i++)
            listed |= a >= have[i].start && a < have[i].end;
        outside += !listed && can_read((void *) a);
    }
    is(outside, 0, "16384 addresses over the whole address space");
    static const unsigned long kernel[] = {
        0x0001000000000000, 0x0001000000001000, 0x00ff000000000000,
        0x7fffffffffffffff, 0x8000000000000000, 0xffff000000000000,
        0xffff000000001000, 0xffff800000000000, 0xffff800008000000,
        0xffffffc000000000, 0xfffffffffe000000, 0xffffffffffe00000,
        0xfffffffffffff000, 0xffffffffffffffff,
    };
    for (size_t i = 0; i < sizeof kernel / sizeof *kernel; i++)
        outside += can_read((void *) kernel[i]);
    is(outside, 0, "nor beyond user space");
    /* write(2) must not wrap or run into what follows the mapping either. */
    fails(write(probe_pipe[1], secret, -1UL), EFAULT, "a length of ~0");
    fails(write(probe_pipe[1], (void *) 0xfffffffffffff000, 8192), EFAULT,
          "a range that wraps");
}

static void test_fixed_everywhere(void)
{
    /* Mapping and unmapping all over user space meets nobody else. */
    bool good = true;
    for (unsigned long k = 1; k < 1024; k++) {
        unsigned long a = k << 36;
        char *p =
            sys_mmap((void *) a, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0);
        if (!GOOD(p)) {
            good &= errno == EEXIST;
            continue;
        }
        good &= *p == 0;
        *p = 1;
        good &= *p == 1 && sys_munmap(p, PAGE) == 0;
    }
    ok(good, "a page at each of 1023 places up to 2^46");
    for (unsigned long k = 1; k < 1024; k++)
        good &= sys_munmap((void *) ((k << 36) + BLOCK * 77), BLOCK) == 0;
    ok(good, "munmap of holes there");
    ok(memcmp(secret, "own memory", 10) == 0, "and the program lives");
}

int main(void)
{
    probe_open();
    hole = map_hole(PAGE);
    test_mem_file();
    test_process_vm();
    test_pointers();
    test_fixed_everywhere();
    return tap_done();
}
