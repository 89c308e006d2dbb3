/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/fdspace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "sys/call.h"
#include "sys/procfs_view.h"

/* The kernel's default for /proc/sys/fs/nr_open. */
#define NR_OPEN_DEFAULT 1048576
/* Not higher without need: the kernel's table of descriptors is as long as the
 * highest number, and is copied by fork. */
#define LOW_MAX 65536

#define OWNERS 16

int fdspace_low = INT_MAX;

static struct {
    proc_t *proc;
    int end;             /* one past the last number */
    struct rlimit limit; /* as the guest sees it */
    bool ready;
    int *owner[OWNERS]; /* variables with a number to keep true */
    unsigned owners;
    uint8_t used[FDSPACE_SIZE / 8]; /* bit n: fdspace_low + n is elfuse's */
} space;

static int nr_open(void)
{
    char text[32] = "";
    int fd = open("/proc/sys/fs/nr_open", O_RDONLY | O_CLOEXEC);
    long value = NR_OPEN_DEFAULT;

    if (fd >= 0) {
        ssize_t n = read(fd, text, sizeof text - 1);

        close(fd);
        if (n > 0)
            value = strtol(text, NULL, 10);
    }
    return value > 0 && value < INT_MAX ? (int) value : NR_OPEN_DEFAULT;
}

/* One past the highest open descriptor. */
static int inherited_end(int limit)
{
    /* The kernel's own answer: the first number from which none is open. Found
     * by listing, since descriptors may be above the limit. */
    int end = 3,
        dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char buf[4096] = "";
    int64_t n;

    if (dir < 0) {
        for (int fd = 3; fd < limit && fd < 65536; fd++)
            if (fcntl(fd, F_GETFD) >= 0)
                end = fd + 1;
        return end;
    }
    while ((n = host_call(SYS_getdents64, (uint64_t) dir, P(buf), sizeof buf, 0,
                          0, 0)) > 0) {
        for (int64_t at = 0; at < n;) {
            const char *entry = buf + at;
            int fd = atoi(entry + 19);

            if (fd != dir && fd >= end)
                end = fd + 1;
            at += *(const uint16_t *) (const void *) (entry + 16);
        }
    }
    close(dir);
    return end;
}

/*
 * Where elfuse's numbers begin for a soft limit: at the limit, if it is not
 * very high. They need the hard limit to reach that far; without the privilege
 * to raise it they take the top of what there is. Where they are within the
 * guest's numbers it could ask for one of them, and fdspace_make_room() moves
 * it.
 */
static int choose_low(const struct rlimit *limit, int floor)
{
    int max = nr_open();
    uint64_t low = limit->rlim_cur < LOW_MAX ? limit->rlim_cur : LOW_MAX;
    struct rlimit raised = *limit;

    if (low < (uint64_t) floor)
        low = (uint64_t) floor;
    if (low + FDSPACE_SIZE > (uint64_t) max)
        low = (uint64_t) max - FDSPACE_SIZE;
    if (low + FDSPACE_SIZE <= limit->rlim_max)
        return (int) low;
    raised.rlim_max = low + FDSPACE_SIZE;
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) {
        /* Privileged: it can be raised again whenever it has to be. */
        setrlimit(RLIMIT_NOFILE, limit);
        return (int) low;
    }
    if (limit->rlim_max >= FDSPACE_SIZE + 64U)
        return (int) (limit->rlim_max - FDSPACE_SIZE);
    return (int) (limit->rlim_max - limit->rlim_max / 4);
}

static void fdspace_start(void)
{
    int low;

    space.ready = true;
    if (getrlimit(RLIMIT_NOFILE, &space.limit))
        elfuse_panic("getrlimit(RLIMIT_NOFILE): %d", errno);
    low = choose_low(&space.limit, inherited_end((int) space.limit.rlim_cur));
    fdspace_low = low;
    space.end = low + FDSPACE_SIZE;
}

void fdspace_init(proc_t *proc)
{
    space.proc = proc;
    if (!space.ready)
        fdspace_start();
    procfs_init(-1);
}

void fdspace_resume(proc_t *proc, int low)
{
    space.proc = proc;
    space.ready = true;
    if (getrlimit(RLIMIT_NOFILE, &space.limit))
        elfuse_panic("getrlimit(RLIMIT_NOFILE): %d", errno);
    fdspace_low = low;
    space.end = low + FDSPACE_SIZE;
}

void fdspace_after_fork(proc_t *proc)
{
    space.proc = proc;
}

void fdspace_keep(int fd)
{
    unsigned n = (unsigned) (fd - fdspace_low);

    if (fd < 0)
        return;
    if (n >= FDSPACE_SIZE)
        elfuse_panic("fdspace: kept descriptor %d is not from %d on", fd,
                     fdspace_low);
    space.used[n / 8] |= (uint8_t) (1U << n % 8);
    (void) fcntl(fd, F_SETFD, FD_CLOEXEC);
}

bool fdspace_is_hidden(int fd)
{
    unsigned n = (unsigned) fd - (unsigned) fdspace_low;

    return n < FDSPACE_SIZE && (space.used[n / 8] & 1U << n % 8);
}

bool fdspace_hidden(int fd)
{
    return fd >= fdspace_low && fdspace_is_hidden(fd);
}

void fdspace_range(unsigned *first, unsigned *end)
{
    *first = (unsigned) fdspace_low;
    *end = (unsigned) space.end;
}

void fdspace_lift(struct rlimit *old)
{
    struct rlimit raised;

    if (getrlimit(RLIMIT_NOFILE, old))
        elfuse_panic("getrlimit(RLIMIT_NOFILE): %d", errno);
    raised.rlim_cur = (uint64_t) fdspace_low + FDSPACE_SIZE;
    raised.rlim_max =
        old->rlim_max > raised.rlim_cur ? old->rlim_max : raised.rlim_cur;
    if (setrlimit(RLIMIT_NOFILE, &raised)) {
        raised.rlim_cur = raised.rlim_max = old->rlim_max;
        setrlimit(RLIMIT_NOFILE, &raised);
    }
}

void fdspace_restore(const struct rlimit *old)
{
    setrlimit(RLIMIT_NOFILE, old);
}

/* Duplicate fd to a number from `low` up, past the limit if need be. */
static int move_up(int fd, int low)
{
    struct rlimit old;
    int moved;

    fdspace_lift(&old);
    moved = fcntl(fd, F_DUPFD_CLOEXEC, low);
    if (moved < 0)
        moved = -errno;
    fdspace_restore(&old);
    if (moved < fdspace_low + FDSPACE_SIZE)
        return moved;
    close(moved);
    return -EMFILE;
}

int fdspace_copy(int fd)
{
    return move_up(fd, fdspace_low);
}

int fdspace_pair(int fd)
{
    int n = move_up(fd, fdspace_low);

    while (n >= 0 && fcntl(n + 1, F_GETFD) >= 0) {
        int next = move_up(fd, n + 1);

        close(n);
        n = next;
    }
    return n;
}

int fdspace_put(int fd, int number)
{
    struct rlimit old;
    int ret;

    fdspace_lift(&old);
    ret = dup3(fd, number, O_CLOEXEC) < 0 ? -errno : 0;
    fdspace_restore(&old);
    close(fd);
    return ret;
}

/* A copy of fd among our numbers, marked as ours. */
static int hide_at(int fd)
{
    int moved = move_up(fd, fdspace_low);
    unsigned n;

    if (moved < 0)
        return moved;
    n = (unsigned) (moved - fdspace_low);
    space.used[n / 8] |= (uint8_t) (1U << n % 8);
    return moved;
}

int fdspace_hide(int fd)
{
    int moved;

    if (!space.ready)
        fdspace_start();
    if (fdspace_hidden(fd))
        return fd;
    moved = hide_at(fd);
    if (moved >= 0)
        close(fd);
    return moved;
}

int fdspace_hide_owned(int *owner)
{
    int moved = fdspace_hide(*owner);

    if (moved < 0)
        return moved;
    if (space.owners == OWNERS)
        elfuse_panic("fdspace: more than %d owners", OWNERS);
    *owner = moved;
    space.owner[space.owners++] = owner;
    return 0;
}

/* Everyone who keeps the number of one of our descriptors. */
static void each_owner(int (*move)(int fd, void *arg), void *arg)
{
    if (space.proc && space.proc->vm)
        hv_each_fd(space.proc->vm, move, arg);
    for (unsigned i = 0; i < space.owners; i++)
        *space.owner[i] = move(*space.owner[i], arg);
    if (space.proc && space.proc->exe_fd >= 0)
        space.proc->exe_fd = move(space.proc->exe_fd, arg);
}

static int move_one(int fd, void *arg)
{
    int moved = fdspace_hide(fd);

    return moved < 0 ? fd : moved;
}

/* Descriptors move while nobody uses one: not a vCPU's either. */
static void stop_others(void)
{
    if (thread_self)
        world_stop(thread_self);
}

static void resume_others(void)
{
    if (thread_self)
        world_resume(thread_self);
}

/* The guest's limit reaches our numbers: move above it, if there is room. */
static void relocate(const struct rlimit *limit)
{
    uint8_t used[sizeof space.used];
    int old_low = fdspace_low, low = choose_low(limit, space.end);

    if (low < space.end)
        return;
    stop_others();
    for (size_t i = 0; i < sizeof used; i++)
        used[i] = space.used[i];
    fdspace_low = low;
    space.end = low + FDSPACE_SIZE;
    for (size_t i = 0; i < sizeof used; i++)
        space.used[i] = 0;
    each_owner(move_one, NULL);
    for (int n = 0; n < FDSPACE_SIZE; n++)
        if (used[n / 8] & 1U << n % 8 && fcntl(old_low + n, F_GETFD) >= 0)
            elfuse_panic("fdspace: descriptor %d has no owner", old_low + n);
    resume_others();
}

typedef struct eviction {
    int from, to;
} eviction_t;

static int evict_one(int fd, void *arg)
{
    const eviction_t *e = arg;

    return fd == e->from ? e->to : fd;
}

static int evict(int fd)
{
    unsigned n = (unsigned) (fd - fdspace_low);
    eviction_t e = {.from = fd};

    if (!fdspace_hidden(fd))
        return 0;
    /* The numbers are its parent's, too. */
    if (thread_self && thread_self->proc->vforked)
        return -EMFILE;
    e.to = hide_at(fd);
    if (e.to < 0)
        return e.to;
    each_owner(evict_one, &e);
    space.used[n / 8] &= (uint8_t) ~(1U << n % 8);
    close(fd);
    return 0;
}

int fdspace_make_room(int fd)
{
    int error;

    stop_others();
    error = evict(fd);
    resume_others();
    return error;
}

int fdspace_set_limit(struct proc *proc, const struct rlimit *limit,
                      struct rlimit *old)
{
    if (!space.ready)
        fdspace_start();
    /* A vfork child has a limit of its own, and what is noted here is its
     * parent's. */
    if (proc->vforked)
        return prlimit(0, RLIMIT_NOFILE, limit, old) ? -errno : 0;
    if (old)
        *old = space.limit;
    if (!limit)
        return 0;
    if (limit->rlim_cur > limit->rlim_max)
        return -EINVAL;
    /* The kernel judges privilege and fs.nr_open. */
    if (setrlimit(RLIMIT_NOFILE, limit))
        return -errno;
    space.limit = *limit;
    if (limit->rlim_cur > (uint64_t) fdspace_low && fdspace_low < LOW_MAX)
        relocate(limit);
    return 0;
}
