/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/procfs_view.h"

#include <ctype.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "mm/hostmaps.h"
#include "sys/call.h"

#define KVM_MAJOR 10
#define KVM_MINOR 232
#define LINKS_MAX 40

/* What an open file of the guest's own /proc directory is. */
enum own_file {
    OWN_NONE,   /* not on procfs, or not the guest's own */
    OWN_PASS,   /* the host's file is right */
    OWN_TEXT,   /* we write it */
    OWN_DENIED, /* would show or change elfuse */
    OWN_HIDDEN, /* of a thread that the guest does not know */
};

/* Files under /proc/<pid> through which elfuse could be reached. */
static const char *const denied[] = {"mem",        "pagemap", "map_files",
                                     "clear_refs", "syscall", "stack",
                                     "numa_maps",  "wchan",   "patch_state"};

static struct stat elfuse_file;

int procfs_directory(void)
{
    return host_proc_dir;
}

void procfs_init(int directory)
{
    host_proc_dir = directory;
    if (host_proc_dir < 0)
        host_proc_dir = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (host_proc_dir < 0)
        return;
    if (fstatat(host_proc_dir, "self/exe", &elfuse_file, 0) ||
        fdspace_hide_owned(&host_proc_dir) < 0) {
        close(host_proc_dir);
        host_proc_dir = -1;
    }
}

bool procfs_is_elfuse(uint64_t dev, uint64_t ino)
{
    return ino == elfuse_file.st_ino && dev == elfuse_file.st_dev;
}

int procfs_reopen(int fd, int flags)
{
    char link[64];
    int again;

    if (host_proc_dir < 0) /* there was no /proc */
        return -ENOENT;
    snprintf(link, sizeof link, "self/fd/%d", fd);
    again = openat(host_proc_dir, link, flags);
    return again < 0 ? -errno : again;
}

static bool on_procfs(int fd)
{
    struct statfs fs;

    return fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

bool procfs_fd_name(int fd, char name[PATH_MAX])
{
    char link[64];
    ssize_t n;

    snprintf(link, sizeof link, "self/fd/%d", fd);
    n = host_proc_dir < 0 ? -1
                          : readlinkat(host_proc_dir, link, name, PATH_MAX - 1);
    if (n < 0)
        return false;
    name[n] = '\0';
    return true;
}

/* A thread of this process, the guest's or not. */
static bool is_own_task(const thread_t *t, long pid)
{
    char name[40];

    if (pid == t->proc->pid || pid == t->tid)
        return true;
    snprintf(name, sizeof name, "self/task/%ld", pid);
    return faccessat(host_proc_dir, name, F_OK, 0) == 0;
}

/* Whose directory a file of procfs is below. */
enum owner {
    OWNER_OTHER,
    OWNER_GUEST,
    OWNER_HIDDEN /* a thread of elfuse's */
};

/*
 * The part of a procfs name behind the directory of a process: "maps" of
 * "/proc/7/maps" or "/proc/7/task/8/maps", and whose it is. NULL: not below a
 * process. What stands before the last such directory is where the guest may
 * have mounted it.
 */
static const char *process_tail(const thread_t *t, const char *name,
                                enum owner *owner)
{
    const char *p = name, *tail = NULL;

    *owner = OWNER_OTHER;
    while ((p = strchr(p, '/'))) {
        char *end;
        long pid = strtol(++p, &end, 10);

        if (end == p || *end != '/' || !isdigit((unsigned char) *p))
            continue;
        *owner = !is_own_task(t, pid)           ? OWNER_OTHER
                 : thread_is_guest((pid_t) pid) ? OWNER_GUEST
                                                : OWNER_HIDDEN;
        p = end;
        tail = end + 1;
    }
    return tail;
}

/* The same for an open directory, whose own number counts: "" for that of a
 * process. name has room for a byte more than fd_name() fills. */
static const char *directory_tail(const thread_t *t, char *name,
                                  enum owner *owner)
{
    size_t len = strlen(name);

    name[len] = '/';
    name[len + 1] = '\0';
    return process_tail(t, name, owner);
}

static bool is_denied(const char *tail)
{
    for (size_t i = 0; i < sizeof denied / sizeof *denied; i++) {
        size_t n = strlen(denied[i]);

        if (strncmp(tail, denied[i], n) == 0 &&
            (tail[n] == '\0' || tail[n] == '/'))
            return true;
    }
    return false;
}

static enum own_file classify(const thread_t *t, const char *name,
                              const char **tail)
{
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    enum owner owner;

    *tail = process_tail(t, name, &owner);
    if (owner == OWNER_HIDDEN)
        return OWN_HIDDEN;
    if (*tail && owner == OWNER_GUEST) {
        if (is_denied(*tail) || is_denied(last))
            return OWN_DENIED;
        return procfs_has_text(*tail) ? OWN_TEXT : OWN_PASS;
    }
    /* Another process may be an elfuse; a directory of our own may have been
     * mounted where its number does not show. */
    if (strcmp(last, "mem") == 0)
        return OWN_DENIED;
    return !*tail && is_denied(last) ? OWN_DENIED : OWN_NONE;
}

/* A single file of procfs mounted somewhere: its name says nothing. */
static bool is_mounted_file(int fd)
{
    struct statx st;

    return statx(fd, "", AT_EMPTY_PATH, STATX_TYPE, &st) == 0 &&
           S_ISREG(st.stx_mode) && (st.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

/* What marks a text of ours: all the seals there are. */
#define TEXT_SEALS                                              \
    (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | \
     0x10 /* F_SEAL_FUTURE_WRITE */)

bool procfs_is_text(int fd, uint64_t nlink)
{
    return nlink == 0 && fcntl(fd, F_GET_SEALS) == TEXT_SEALS;
}

/* Put a file with the text, which cannot be changed, behind the descriptor
 * number fd. Root may open it for writing, as it may the kernel's. */
static int64_t replace_by_text(thread_t *t, int fd, int flags, const char *tail)
{
    char link[64];
    int mem, ro;
    FILE *out;

    mem = memfd_create(tail, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (mem < 0)
        return -errno;
    snprintf(link, sizeof link, "self/fd/%d", mem);
    ro = openat(host_proc_dir, link, (flags & O_ACCMODE) | O_CLOEXEC);
    out = fdopen(mem, "w");
    if (!out || ro < 0) {
        close(mem);
        return -EMFILE;
    }
    procfs_write_text(t, tail, fd, out);
    fflush(out);
    fcntl(mem, F_ADD_SEALS, TEXT_SEALS);
    if (fclose(out)) {
        close(ro);
        return -ENOMEM;
    }
    mem = dup3(ro, fd, flags & O_CLOEXEC);
    close(ro);
    return mem < 0 ? -errno : fd;
}

static int64_t open_exe(thread_t *t, int fd, int flags)
{
    int exe = open(t->proc->exe, flags & ~(O_CREAT | O_EXCL | O_TRUNC));
    int64_t ret = exe < 0 ? -errno : 0;

    if (exe >= 0) {
        ret = dup3(exe, fd, flags & O_CLOEXEC);
        close(exe);
    }
    return ret < 0 ? ret : fd;
}

/* Could the number be one that is hidden? Cheap for most. */
static bool task_suspect(const thread_t *t, long number)
{
    return is_own_task(t, number) && !thread_is_guest((pid_t) number);
}

/* The directory of a thread that the guest does not know: other directories of
 * procfs that are numbers have no comm. */
static bool is_hidden_task(const thread_t *t, int fd, const char *name)
{
    const char *last = strrchr(name, '/');
    char *end;

    return last && isdigit((unsigned char) last[1]) &&
           task_suspect(t, strtol(last + 1, &end, 10)) && !*end &&
           faccessat(fd, "comm", F_OK, 0) == 0;
}

static int64_t opened_on_procfs(thread_t *t, int fd, int flags)
{
    char name[PATH_MAX];
    const char *tail;

    if (is_mounted_file(fd) || !procfs_fd_name(fd, name))
        return -EACCES; /* it could be anything */
    if (is_hidden_task(t, fd, name))
        return -ENOENT;
    switch (classify(t, name, &tail)) {
    case OWN_HIDDEN:
        return -ENOENT;
    case OWN_DENIED:
        return -EACCES;
    case OWN_TEXT:
        if (flags & O_PATH)
            return fd;
        return replace_by_text(t, fd, flags, tail);
    default:
        return fd;
    }
}

int64_t procfs_opened(thread_t *t, int fd, int flags, int dirfd,
                      const char *path)
{
    struct stat st;
    int64_t ret = fd;

    if (fstat(fd, &st))
        return fd;
    if (S_ISCHR(st.st_mode) && st.st_rdev == makedev(KVM_MAJOR, KVM_MINOR))
        ret = -ENOENT;
    else if (S_ISREG(st.st_mode) && procfs_is_elfuse(st.st_dev, st.st_ino) &&
             path && procfs_path_is_exe(t, dirfd, path))
        ret = open_exe(t, fd, flags);
    else if (major(st.st_dev) == 0 && on_procfs(fd))
        ret = opened_on_procfs(t, fd, flags);
    if (ret < 0)
        close(fd);
    return ret;
}

bool procfs_link_is_exe(thread_t *t, int dirfd, const char *path)
{
    char name[PATH_MAX];
    const char *tail = NULL;
    enum owner owner;
    bool is = false;
    int fd = openat(dirfd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return false;
    if (on_procfs(fd) && procfs_fd_name(fd, name)) {
        tail = process_tail(t, name, &owner);
        is = tail && owner == OWNER_GUEST && strcmp(tail, "exe") == 0;
    }
    close(fd);
    return is;
}

/* Is the number one of elfuse's in the guest's own directory of descriptors? */
static bool is_hidden_fd(const thread_t *t, const char *name, long number)
{
    enum owner owner;
    const char *tail = process_tail(t, name, &owner);

    return tail && owner == OWNER_GUEST && fd_hidden((uint64_t) number) &&
           (strncmp(tail, "fd/", 3) == 0 || strncmp(tail, "fdinfo/", 7) == 0);
}

bool procfs_path_is_hidden(thread_t *t, int dirfd, const char *path)
{
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    char name[PATH_MAX], *end;
    bool hidden = false;
    long number;
    int fd;

    if (!isdigit((unsigned char) *last))
        return false;
    number = strtol(last, &end, 10);
    if (*end || (!fd_hidden((uint64_t) number) && !task_suspect(t, number)))
        return false;
    fd = openat(dirfd, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    if (on_procfs(fd) && procfs_fd_name(fd, name))
        hidden = is_hidden_fd(t, name, number) || is_hidden_task(t, fd, name);
    close(fd);
    return hidden;
}

bool procfs_path_is_exe(thread_t *t, int dirfd, const char *path)
{
    char at[PATH_MAX], target[PATH_MAX], next[2 * PATH_MAX];

    if (snprintf(at, sizeof at, "%s", path) >= (int) sizeof at)
        return false;
    for (int i = 0; i < LINKS_MAX; i++) {
        ssize_t n;
        char *slash;

        if (procfs_link_is_exe(t, dirfd, at))
            return true;
        n = readlinkat(dirfd, at, target, sizeof target - 1);
        if (n < 0)
            return false;
        target[n] = '\0';
        slash = target[0] == '/' ? NULL : strrchr(at, '/');
        snprintf(next, sizeof next, "%.*s%s",
                 slash ? (int) (slash + 1 - at) : 0, at, target);
        if (snprintf(at, sizeof at, "%s", next) >= (int) sizeof at)
            return false;
    }
    return false;
}

/* struct linux_dirent64 */
#define DENT_RECLEN 16
#define DENT_NAME   19

/* Which list of numbers a directory is. */
enum number_dir { DIR_UNKNOWN, DIR_OTHER, DIR_FD, DIR_TASK };

static enum number_dir number_dir(const thread_t *t, int fd)
{
    char name[PATH_MAX + 1];
    const char *tail;
    enum owner owner;

    if (!on_procfs(fd) || !procfs_fd_name(fd, name))
        return DIR_OTHER;
    tail = directory_tail(t, name, &owner);
    if (!tail || owner != OWNER_GUEST)
        return DIR_OTHER;
    if (strcmp(tail, "fd/") == 0 || strcmp(tail, "fdinfo/") == 0)
        return DIR_FD;
    return strcmp(tail, "task/") == 0 ? DIR_TASK : DIR_OTHER;
}

/* A number that is elfuse's own in a directory of this kind. */
static bool number_hidden(enum number_dir dir, long number)
{
    return dir == DIR_FD ? fd_hidden((uint64_t) number)
                         : dir == DIR_TASK && !thread_is_guest((pid_t) number);
}

size_t procfs_filter_dents(thread_t *t, int fd, uint8_t *buf, size_t len)
{
    enum number_dir dir = DIR_UNKNOWN;
    size_t to = 0;

    for (size_t at = 0; at < len;) {
        const char *name = (const char *) buf + at + DENT_NAME;
        bool number = isdigit((unsigned char) name[0]);
        uint16_t reclen;

        memcpy(&reclen, buf + at + DENT_RECLEN, sizeof reclen);
        if (number && dir == DIR_UNKNOWN) {
            dir = number_dir(t, fd);
            if (dir == DIR_OTHER)
                return len;
        }
        if (!number || !number_hidden(dir, strtol(name, NULL, 10))) {
            memmove(buf + to, buf + at, reclen);
            to += reclen;
        }
        at += reclen;
    }
    return to;
}
