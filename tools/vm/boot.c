/* SPDX-License-Identifier: Apache-2.0 */
/* Setting up the machine. */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#define MODULES "/lib/modules/vm"
#define ELFUSE  "/usr/local/bin/elfuse"

static void mount_at(const char *type, const char *path, unsigned long flags,
                     const char *options)
{
    mkdir(path, 0755);
    if (mount(type, path, type, flags, options) < 0)
        die(errno, "mount %s on %s", type, path);
}

static void mount_kernel_trees(void)
{
    const unsigned long strict = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    mount_at("proc", "/proc", strict, NULL);
    mount_at("sysfs", "/sys", strict, NULL);
    mount_at("devtmpfs", "/dev", MS_NOSUID, "mode=0755");
    mount_at("devpts", "/dev/pts", MS_NOSUID | MS_NOEXEC,
             "gid=5,mode=620,ptmxmode=666");
    mount_at("tmpfs", "/dev/shm", MS_NOSUID | MS_NODEV, "mode=1777");
    mount_at("tmpfs", "/run", MS_NOSUID | MS_NODEV, "mode=0755");
    mount_at("tmpfs", "/tmp", MS_NOSUID | MS_NODEV, "mode=1777");
    symlink("/proc/self/fd", "/dev/fd");
    symlink("/proc/self/fd/0", "/dev/stdin");
    symlink("/proc/self/fd/1", "/dev/stdout");
    symlink("/proc/self/fd/2", "/dev/stderr");
    /* What udev would do: anybody may use these. */
    chmod("/dev/kvm", 0666);
}

void boot_mount_basics(void)
{
    umask(022);
    mount_kernel_trees();
}

void boot_load_modules(const char *list)
{
    char path[256], line[128];
    snprintf(path, sizeof path, MODULES "/%s", list);
    FILE *names = fopen(path, "re");
    if (!names)
        die(errno, "%s", path);
    while (fgets(line, sizeof line, names)) {
        line[strcspn(line, "\n")] = 0;
        snprintf(path, sizeof path, MODULES "/%s", line);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            die(errno, "%s", path);
        if (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST)
            die(errno, "load %s", line);
        close(fd);
    }
    fclose(names);
}

static void raise_loopback(void)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq request = {.ifr_name = "lo"};
    if (fd < 0 || ioctl(fd, SIOCGIFFLAGS, &request) < 0)
        die(errno, "loopback");
    request.ifr_flags |= IFF_UP;
    if (ioctl(fd, SIOCSIFFLAGS, &request) < 0)
        die(errno, "loopback");
    close(fd);
}

void boot_settings(void)
{
    static const char name[] = "vm";
    if (sethostname(name, sizeof name - 1) < 0)
        die(errno, "hostname");
    raise_loopback();
    /* As on an ordinary Debian system. */
    const struct rlimit files = {1024, 1048576};
    if (setrlimit(RLIMIT_NOFILE, &files) < 0)
        die(errno, "limit of open files");
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0)
        die(errno, "%s", path);
    close(fd);
}

void boot_huge_pages(const char *word)
{
    write_file("/sys/kernel/mm/transparent_hugepage/enabled", word);
}

void boot_set_clock(const char *nanoseconds)
{
    unsigned long long ns = strtoull(nanoseconds, NULL, 10);
    const struct timespec now = {(time_t) (ns / 1000000000),
                                 (long) (ns % 1000000000)};
    if (clock_settime(CLOCK_REALTIME, &now) < 0)
        die(errno, "clock");
}

/* Like mkdir -p; what cannot be made shows when it is used. */
static void make_dirs(const char *path)
{
    char *copy = strdup(path);
    if (!copy)
        die(errno, "%s", path);
    for (char *slash = copy + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = 0;
        mkdir(copy, 0755);
        *slash = '/';
    }
    mkdir(copy, 0755);
    free(copy);
}

void boot_mount_share(int index, const char *path)
{
    char tag[16];
    snprintf(tag, sizeof tag, "vm%d", index);
    make_dirs(path);
    /* cache=mmap: files can be mapped shared and written, and all other
     * access goes to the host at once. */
    if (mount(tag, path, "9p", 0,
              "trans=virtio,version=9p2000.L,msize=512000,cache=mmap") < 0)
        die(errno, "mount share %s", path);
}

static void copy_file(const char *from, const char *to)
{
    int in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return; /* there is no elfuse in this machine */
    int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    ssize_t done;
    while (out >= 0 && (done = sendfile(out, in, NULL, 1 << 20)) > 0)
        ;
    if (out < 0 || done < 0)
        die(errno, "copy %s to the root image's overlay", from);
    close(in);
    close(out);
}

/* The image is never written: a tmpfs lies over it. */
void boot_mount_root_image(void)
{
    static const char *const types[] = {"squashfs", "erofs", "ext4", NULL};
    boot_load_modules("root");
    mkdir("/mnt", 0755);
    mkdir("/mnt/image", 0755);
    int failed = 1;
    for (int i = 0; types[i] && failed; i++) {
        failed = mount("/dev/vda", "/mnt/image", types[i], MS_RDONLY, NULL);
        if (failed && strcmp(types[i], "ext4") == 0)
            failed =
                mount("/dev/vda", "/mnt/image", types[i], MS_RDONLY, "noload");
    }
    if (failed)
        die(0, "the root image holds no squashfs, erofs or ext4");
    mount_at("tmpfs", "/mnt/over", 0, "mode=0755");
    mkdir("/mnt/over/upper", 0755);
    mkdir("/mnt/over/work", 0755);
    mkdir("/mnt/root", 0755);
    if (mount("overlay", "/mnt/root", "overlay", 0,
              "lowerdir=/mnt/image,upperdir=/mnt/over/upper,"
              "workdir=/mnt/over/work") < 0)
        die(errno, "overlay over the root image");
    if (chdir("/mnt/root") < 0)
        die(errno, "root image");
    make_dirs("/mnt/root/usr/local/bin");
    copy_file(ELFUSE, "/mnt/root" ELFUSE);
    if (mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 ||
        chdir("/") < 0)
        die(errno, "change to the root image");
    mount_kernel_trees();
}

void boot_power_off(void)
{
    /* Only the shares outlive the machine, and they hold nothing back except
     * pages of shared mappings. */
    sync();
    reboot(RB_POWER_OFF);
    for (;;)
        pause();
}
