/* SPDX-License-Identifier: Apache-2.0 */
/* The program's own memory file by mounts: whatever /proc is called and
 * wherever it is hung, there is only the program's own memory behind it. */
#include "mem.h"

#include <dirent.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define OPEN_TREE_CLONE_ 1

static char secret[4096] __attribute__((aligned(4096))) = "own memory";
static char dir[64];

/* A descriptor on the memory reads what is mapped, and nothing else. It may
 * also be refused altogether. */
static bool honest(int fd)
{
    char c[16];
    if (fd < 0)
        return errno == EACCES || errno == EPERM || errno == ENOENT;
    bool good = pread(fd, c, 10, (off_t) secret) == 10 &&
                memcmp(c, "own memory", 10) == 0;
    for (unsigned long a = 1UL << 36; a < 1UL << 48; a += 1UL << 36) {
        long n = pread(fd, c, 1, (off_t) (a + 0x5000));
        good &= (n == 1) == can_read((void *) (a + 0x5000));
    }
    close(fd);
    return good;
}

static char *in_dir(const char *name)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void test_mounts(void)
{
    int tree, file = open(in_dir("f"), O_CREAT | O_RDWR, 0600);

    need(file >= 0 && mkdir(in_dir("7"), 0700) == 0 &&
             mkdir(in_dir("d"), 0700) == 0,
         "files to mount on");
    close(file);
    works(mount("proc", in_dir("7"), "proc", 0, NULL), "proc mounted again");
    ok(honest(open(in_dir("7/self/mem"), O_RDWR)), "memory below a number");
    works(mount("/proc/self/mem", in_dir("f"), NULL, MS_BIND, NULL),
          "memory file mounted");
    ok(honest(open(in_dir("f"), O_RDWR)), "memory as a mounted file");
    works(mount("/proc/self", in_dir("d"), NULL, MS_BIND, NULL),
          "own directory mounted");
    ok(honest(open(in_dir("d/mem"), O_RDWR)), "memory in a mounted directory");
    tree =
        (int) syscall(SYS_open_tree, AT_FDCWD, "/proc/self", OPEN_TREE_CLONE_);
    works(tree, "own directory as a tree of its own");
    ok(honest(openat(tree, "mem", O_RDWR)), "memory in an unmounted tree");
    close(tree);
}

static void test_no_proc(void)
{
    int proc = open("/proc", O_RDONLY | O_DIRECTORY);

    need(proc >= 0, "open /proc");
    works(mount("tmpfs", "/proc", "tmpfs", 0, NULL), "/proc covered");
    ok(honest(openat(proc, "self/mem", O_RDWR)), "memory in a covered /proc");
    works(chroot(dir), "root moved");
    ok(honest(openat(proc, "self/mem", O_RDWR)), "memory outside the root");
    close(proc);
}

static void test_tasks(void)
{
    DIR *tasks = opendir("/proc/self/task");
    const struct dirent *entry;
    int n = 0;

    need(tasks, "opendir");
    while ((entry = readdir(tasks)))
        n += entry->d_name[0] != '.';
    closedir(tasks);
    is(n, 1, "one thread is listed");
}

int main(void)
{
    const char *tmp = getenv("TMPDIR");

    snprintf(dir, sizeof dir, "%s/mounts-XXXXXX", tmp ? tmp : "/tmp");
    need(mkdtemp(dir), "a folder");
    need(unshare(CLONE_NEWNS) == 0, "a mount namespace");
    need(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0,
         "private mounts");
    need(mount("tmpfs", dir, "tmpfs", 0, NULL) == 0, "a file system");
    test_tasks();
    test_mounts();
    test_no_proc();
    return tap_done();
}
