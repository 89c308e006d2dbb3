/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/sysroot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AT_RECURSIVE 0x8000 /* linux/fcntl.h, which fcntl.h excludes */

/* Folders of the host that take the place of those in DIR. */
static const char *const host_dirs[] = {"dev", "proc", "run", "sys", "tmp"};
#define HOST_DIRS (sizeof(host_dirs) / sizeof(host_dirs[0]))

typedef struct sysroot {
    int source;          /* DIR */
    int root;            /* the tmpfs */
    int host[HOST_DIRS]; /* detached copies of mounts; -1: none */
    int here;            /* of the current directory likewise */
    char cwd[PATH_MAX];
    char *why;
} sysroot_t;

__attribute__((format(printf, 3, 4))) static int
fail(const sysroot_t *s, int error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(s->why, SYSROOT_WHY_MAX, format, args);
    va_end(args);
    return error;
}

/* --- namespaces ---------------------------------------------------------- */

static int write_file(const char *name, const char *text)
{
    int fd = open(name, O_WRONLY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    ssize_t n = write(fd, text, strlen(text));
    int error = n < 0 ? -errno : 0;
    close(fd);
    return error;
}

/* Ours stay what they are; all others show as 65534. */
static int map_ids(const sysroot_t *s, uid_t uid, gid_t gid)
{
    char line[64];
    /* What a process without privilege must do first; older than 3.19 without
     * it. */
    int error = write_file("/proc/self/setgroups", "deny");

    if (error == 0 || error == -ENOENT) {
        snprintf(line, sizeof(line), "%u %u 1", uid, uid);
        error = write_file("/proc/self/uid_map", line);
    }
    if (error == 0) {
        snprintf(line, sizeof(line), "%u %u 1", gid, gid);
        error = write_file("/proc/self/gid_map", line);
    }
    if (error != 0)
        return fail(s, error,
                    "cannot map user and group in a user namespace: %s",
                    strerror(-error));
    return 0;
}

static int no_namespaces(const sysroot_t *s, int error)
{
    return fail(s, error,
                "it needs root, or user namespaces, which this system forbids "
                "(%s): see sysctl user.max_user_namespaces, "
                "kernel.unprivileged_userns_clone and "
                "kernel.apparmor_restrict_unprivileged_userns",
                strerror(-error));
}

static int enter_namespaces(const sysroot_t *s)
{
    uid_t uid = geteuid();
    gid_t gid = getegid();

    if (unshare(CLONE_NEWNS) != 0) {
        if (errno != EPERM)
            return no_namespaces(s, -errno);
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0)
            return no_namespaces(s, -errno);
        int error = map_ids(s, uid, gid);
        if (error != 0)
            return error;
    }
    /* Lest our mounts reach other namespaces. */
    if (syscall(SYS_mount, "none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        if (errno == EPERM || errno == EACCES)
            return no_namespaces(s, -errno);
        return fail(s, -errno, "cannot make its mounts private: %s",
                    strerror(errno));
    }
    return 0;
}

typedef struct capabilities {
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];
} capabilities_t;

static long capabilities_call(long number, capabilities_t *c)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};

    return syscall(number, &header, c->data);
}

/* --- mounts -------------------------------------------------------------- */

/* A detached copy of the mounts at a path, or -errno. Recursive: a namespace
 * without privilege may not take a mount apart from those on it. */
static int copy_mounts(int dirfd, const char *path)
{
    long fd = syscall(SYS_open_tree, dirfd, path,
                      OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE |
                          AT_SYMLINK_NOFOLLOW);

    return fd < 0 ? -errno : (int) fd;
}

static int attach(int tree, int dirfd, const char *path)
{
    unsigned flags =
        MOVE_MOUNT_F_EMPTY_PATH | (*path == '\0' ? MOVE_MOUNT_T_EMPTY_PATH : 0);

    return syscall(SYS_move_mount, tree, "", dirfd, path, flags) != 0 ? -errno
                                                                      : 0;
}

/* An empty tmpfs, attached nowhere, or -errno. */
static int make_tmpfs(void)
{
    int fs = (int) syscall(SYS_fsopen, "tmpfs", FSOPEN_CLOEXEC);

    if (fs < 0)
        return -errno;
    long fd = -1;
    if (syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "mode", "0755", 0) ==
            0 &&
        syscall(SYS_fsconfig, fs, FSCONFIG_SET_STRING, "source", "sysroot",
                0) == 0 &&
        syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) == 0)
        fd = syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC,
                     MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    int error = fd < 0 ? -errno : (int) fd;
    close(fs);
    return error;
}

static bool under_host_dir(const sysroot_t *s, const char *path)
{
    for (size_t i = 0; i < HOST_DIRS; i++) {
        size_t len = strlen(host_dirs[i]);
        if (s->host[i] >= 0 && strncmp(path + 1, host_dirs[i], len) == 0 &&
            (path[1 + len] == '/' || path[1 + len] == '\0'))
            return true;
    }
    return false;
}

/* What is shown of the host, before DIR is covered: it may lie in there. */
static int take_host(sysroot_t *s)
{
    char path[16];

    for (size_t i = 0; i < HOST_DIRS; i++) {
        snprintf(path, sizeof(path), "/%s/.", host_dirs[i]);
        s->host[i] = copy_mounts(AT_FDCWD, path);
        if (s->host[i] < 0 && s->host[i] != -ENOENT)
            return fail(s, s->host[i], "cannot take the host's /%s: %s",
                        host_dirs[i], strerror(-s->host[i]));
    }
    s->here = -1;
    if (strcmp(s->cwd, "/") == 0 || under_host_dir(s, s->cwd))
        return 0;
    s->here = copy_mounts(AT_FDCWD, ".");
    if (s->here < 0)
        return fail(s, s->here, "cannot take the current directory: %s",
                    strerror(-s->here));
    return 0;
}

/* --- the new root -------------------------------------------------------- */

/* Make the entry `name` of `from` appear in `to`. */
static int bring(const sysroot_t *s, int from, int to, const char *name)
{
    char target[PATH_MAX];
    struct stat st;
    int error = 0;

    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
        return errno == ENOENT
                   ? 0
                   : fail(s, -errno, "%s: %s", name, strerror(errno));
    if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlinkat(from, name, target, sizeof(target) - 1);
        if (n >= 0)
            target[n] = '\0';
        if (n < 0 || symlinkat(target, to, name) != 0)
            error = -errno;
    } else if (S_ISDIR(st.st_mode)
                   ? mkdirat(to, name, 0755) != 0
                   : mknodat(to, name, S_IFREG | 0644, 0) != 0) {
        error = -errno;
    } else {
        int tree = copy_mounts(from, name);
        error = tree < 0 ? tree : attach(tree, to, name);
        if (tree >= 0)
            close(tree);
    }
    if (error != 0)
        return fail(s, error, "cannot bring in its %s: %s", name,
                    strerror(-error));
    return 0;
}

/* Can the path, which is relative, be a mount point where it is? */
static bool has_folder(int from, const char *path)
{
    struct open_how how = {.flags = O_PATH | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
    long fd = syscall(SYS_openat2, from, path, &how, sizeof(how));

    if (fd >= 0)
        close((int) fd);
    return fd >= 0;
}

static int fill(const sysroot_t *s, int from, int to, const char *way);

/* The folder `name` of `from`, in which the way does not go on, becomes one of
 * ours, so that it can. `from` is -1 where there is none. */
static int open_up(const sysroot_t *s, int from, int to, const char *name,
                   const char *rest)
{
    int sub = from < 0
                  ? -1
                  : openat(from, name,
                           O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int error = 0;

    if (from >= 0 && sub < 0)
        return fail(s, -errno,
                    "the current directory cannot be shown in it, for its %s: "
                    "%s",
                    name, strerror(errno));
    if (mkdirat(to, name, 0755) != 0)
        error = -errno;
    int dir = openat(to, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        error = -errno;
    error = error != 0
                ? fail(s, error, "cannot make %s: %s", name, strerror(-error))
                : fill(s, sub, dir, rest);
    if (sub >= 0)
        close(sub);
    if (dir >= 0)
        close(dir);
    return error;
}

/* The first component of a path without leading slash; returns the rest. */
static const char *split(const char *path, char name[NAME_MAX + 1])
{
    size_t len = strcspn(path, "/");

    snprintf(name, NAME_MAX + 1, "%.*s", (int) len, path);
    return path + len + (path[len] == '/');
}

static bool is_ours(const sysroot_t *s, int to, const char *name)
{
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return true;
    for (size_t i = 0; to == s->root && i < HOST_DIRS; i++)
        if (s->host[i] >= 0 && strcmp(name, host_dirs[i]) == 0)
            return true;
    return false;
}

/*
 * Bring the entries of `from` (-1: none) into `to`, and make the folders of the
 * path `way`, which leads to where the current directory will be mounted.
 */
static int fill(const sysroot_t *s, int from, int to, const char *way)
{
    char next[NAME_MAX + 1];
    const char *rest = split(way, next);
    bool made = *next == '\0';
    const struct dirent *entry;
    int error = 0;

    int copy = from < 0 ? -1 : fcntl(from, F_DUPFD_CLOEXEC, 0);
    DIR *dir = copy < 0 ? NULL : fdopendir(copy);
    if (from >= 0 && dir == NULL)
        return fail(s, -errno, "cannot list it: %s", strerror(errno));
    while (error == 0 && dir != NULL && (entry = readdir(dir)) != NULL) {
        if (is_ours(s, to, entry->d_name))
            continue;
        if (made || strcmp(entry->d_name, next) != 0) {
            error = bring(s, from, to, entry->d_name);
            continue;
        }
        made = true;
        error = has_folder(from, way) ? bring(s, from, to, next)
                                      : open_up(s, from, to, next, rest);
    }
    if (dir != NULL)
        closedir(dir);
    if (error == 0 && !made)
        error = open_up(s, -1, to, next, rest);
    return error;
}

static int attach_host(sysroot_t *s)
{
    int error = 0;

    for (size_t i = 0; i < HOST_DIRS; i++) {
        if (s->host[i] < 0)
            continue;
        if (mkdirat(s->root, host_dirs[i], 0755) != 0)
            error = -errno;
        if (error == 0)
            error = attach(s->host[i], s->root, host_dirs[i]);
        close(s->host[i]);
        if (error != 0)
            return fail(s, error, "cannot mount the host's /%s: %s",
                        host_dirs[i], strerror(-error));
    }
    if (s->here < 0)
        return 0;
    error = attach(s->here, s->root, s->cwd + 1);
    close(s->here);
    if (error != 0)
        return fail(s, error, "cannot mount the current directory %s: %s",
                    s->cwd, strerror(-error));
    return 0;
}

/* DIR, which has been covered by the tmpfs, is still open as s->source. */
static int build(sysroot_t *s)
{
    int error = take_host(s);

    if (error != 0)
        return error;
    s->root = make_tmpfs();
    if (s->root == -EPERM || s->root == -EACCES)
        return no_namespaces(s, s->root);
    error = s->root < 0 ? s->root : attach(s->root, s->source, "");
    if (error != 0)
        return fail(s, error, "cannot mount a tmpfs: %s", strerror(-error));
    error = fill(s, s->source, s->root, s->here >= 0 ? s->cwd + 1 : "");
    return error != 0 ? error : attach_host(s);
}

/* chroot and not pivot_root: it works on an initramfs, too, and descriptors
 * that were inherited keep their names in /proc. */
static int change_root(const sysroot_t *s)
{
    if (fchdir(s->root) != 0 || chroot(".") != 0 ||
        syscall(SYS_mount, NULL, ".", NULL,
                MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV,
                NULL) != 0)
        return fail(s, -errno, "cannot change the root: %s", strerror(errno));
    if (chdir(s->cwd) != 0)
        return fail(s, -errno, "cannot change to %s in it: %s", s->cwd,
                    strerror(errno));
    return 0;
}

/* Returns a descriptor, or -errno. */
static int open_source(const sysroot_t *s, const char *dir)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return fail(s, -errno, "%s", strerror(errno));
    return fd;
}

/* A copy of the root's mount elsewhere is another root. */
static bool is_root(int fd)
{
    const unsigned mask = STATX_INO | STATX_MNT_ID;
    struct statx a, b;

    return statx(fd, "", AT_EMPTY_PATH, mask, &a) == 0 &&
           statx(AT_FDCWD, "/", 0, mask, &b) == 0 && a.stx_ino == b.stx_ino &&
           a.stx_dev_major == b.stx_dev_major &&
           a.stx_dev_minor == b.stx_dev_minor && a.stx_mnt_id == b.stx_mnt_id;
}

static int enter(sysroot_t *s)
{
    int error = build(s);

    if (error == 0)
        error = change_root(s);
    if (s->root >= 0)
        close(s->root);
    return error;
}

int sysroot_enter(const char *dir, char why[SYSROOT_WHY_MAX])
{
    sysroot_t s = {.why = why, .root = -1};
    capabilities_t before;

    s.source = open_source(&s, dir);
    if (s.source < 0)
        return s.source;
    bool nothing_to_do = is_root(s.source);
    close(s.source);
    if (nothing_to_do)
        return 0;
    if (getcwd(s.cwd, sizeof(s.cwd)) == NULL)
        return fail(&s, -errno, "the current directory has no name: %s",
                    strerror(errno));
    if (capabilities_call(SYS_capget, &before) != 0)
        return fail(&s, -errno, "capget: %s", strerror(errno));
    int error = enter_namespaces(&s);
    if (error != 0)
        return error;
    /* Once more: only mounts of this namespace can be copied. */
    s.source = open_source(&s, dir);
    if (s.source < 0)
        return s.source;
    error = enter(&s);
    close(s.source);
    if (error == 0 && capabilities_call(SYS_capset, &before) != 0)
        error = fail(&s, -errno, "capset: %s", strerror(errno));
    return error;
}
