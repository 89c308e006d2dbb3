/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory helpers for the guest tests: raw calls (the C library checks some
 * arguments itself), access probes by system calls that report EFAULT, and
 * /proc/self/maps read without malloc.
 */
#ifndef MEM_H
#define MEM_H

#include "tap.h"

#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define PAGE  4096UL
#define BLOCK (2UL << 20)
#define KIB   (1UL << 10)
#define MIB   (1UL << 20)
#define GIB   (1UL << 30)
#define TIB   (1UL << 40)
#define RW    (PROT_READ | PROT_WRITE)
#define ANON  (MAP_PRIVATE | MAP_ANONYMOUS)
#define LAZY  (MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
/* No arm64 kernel has more user space than 52 bits; most have 48. */
#define TOP     (1UL << 52)
#define BAD_PTR ((void *) -PAGE) /* beyond every user space */
#define NO_PAGE ((void *) 8)     /* in user space, never mapped */
#define GOOD(p) ((p) != MAP_FAILED)

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static inline void *sys_mmap(void *addr, size_t len, int prot, int flags,
                             int fd, off_t off)
{
    return (void *) syscall(SYS_mmap, addr, len, prot, flags, fd, off);
}

static inline long sys_munmap(void *addr, size_t len)
{
    return syscall(SYS_munmap, addr, len);
}

static inline long sys_mprotect(void *addr, size_t len, int prot)
{
    return syscall(SYS_mprotect, addr, len, prot);
}

static inline void *sys_mremap(void *addr, size_t old_len, size_t new_len,
                               int flags, void *new_addr)
{
    return (void *) syscall(SYS_mremap, addr, old_len, new_len, flags,
                            new_addr);
}

static inline long sys_madvise(void *addr, size_t len, int advice)
{
    return syscall(SYS_madvise, addr, len, advice);
}

/* Private anonymous read-write memory, or the end of the test. */
static inline char *map_rw(size_t len)
{
    char *p = sys_mmap(NULL, len, RW, ANON, -1, 0);
    need(GOOD(p), "mmap");
    return p;
}

/* The same with its first byte on a 2 MiB border and PROT_NONE around it. */
static inline char *map_aligned(size_t len)
{
    char *p = sys_mmap(NULL, len + 3 * BLOCK, PROT_NONE, LAZY, -1, 0);
    need(GOOD(p), "mmap");
    char *q = (char *) (((uintptr_t) p + 2 * BLOCK) & ~(BLOCK - 1));
    need(sys_mprotect(q, len, RW) == 0, "mprotect");
    return q;
}

/* Address space with nothing in it for `len` bytes, and a page of PROT_NONE
 * on both sides that keeps others from growing into it. */
static inline char *map_hole(size_t len)
{
    char *p = sys_mmap(NULL, len + 2 * PAGE, PROT_NONE, LAZY, -1, 0);
    need(GOOD(p), "mmap");
    need(sys_munmap(p + PAGE, len) == 0, "munmap");
    return p + PAGE;
}

static int probe_pipe[2] = {-1, -1};

static inline void probe_open(void)
{
    if (probe_pipe[0] == -1)
        need(pipe2(probe_pipe, O_CLOEXEC | O_NONBLOCK) == 0, "pipe2");
}

/* May the kernel read this byte for us? */
static inline bool can_read(const void *p)
{
    char c;
    probe_open();
    if (write(probe_pipe[1], p, 1) != 1)
        return false;
    need(read(probe_pipe[0], &c, 1) == 1, "read of the probe pipe");
    return true;
}

/* May the kernel write it? The byte keeps its value if it can be read. */
static inline bool can_write(void *p)
{
    char c = 0;
    probe_open();
    if (write(probe_pipe[1], p, 1) != 1)
        need(write(probe_pipe[1], &c, 1) == 1, "write of the probe pipe");
    if (read(probe_pipe[0], p, 1) == 1)
        return true;
    need(read(probe_pipe[0], &c, 1) == 1, "read of the probe pipe");
    return false;
}

/* "rw", "r-", "-w" or "--", as the tables have it rather than the VMAs. */
static inline const char *access_of(void *p)
{
    bool r = can_read(p), w = can_write(p);
    return r ? (w ? "rw" : "r-") : (w ? "-w" : "--");
}

static inline bool all_bytes(const void *p, int value, size_t len)
{
    const unsigned char *c = p;
    for (size_t i = 0; i < len; i++)
        if (c[i] != (unsigned char) value)
            return false;
    return true;
}

/* "1" for each page that mincore reports present, "0" for absent. */
static inline const char *present(void *p, size_t pages)
{
    static char text[513];
    unsigned char vec[512];
    need(pages <= 512, "present() of too much");
    if (mincore(p, pages * PAGE, vec) != 0)
        return tap_errname(errno);
    for (size_t i = 0; i < pages; i++)
        text[i] = '0' + (vec[i] & 1);
    text[pages] = 0;
    return text;
}

/* A file descriptor's lines, one after the other, from a static buffer. */
typedef struct {
    int fd;
    size_t at, have;
    char buf[8192];
    char line[4200];
} lines_t;

static inline void lines_open(lines_t *l, const char *path)
{
    l->fd = open(path, O_RDONLY | O_CLOEXEC);
    need(l->fd >= 0, path);
    l->at = l->have = 0;
}

static inline char *lines_next(lines_t *l)
{
    size_t n = 0;
    for (;;) {
        if (l->at == l->have) {
            ssize_t r = read(l->fd, l->buf, sizeof l->buf);
            need(r >= 0, "read of a /proc file");
            if (r == 0)
                break;
            l->at = 0;
            l->have = r;
        }
        char c = l->buf[l->at++];
        if (c == '\n') {
            l->line[n] = 0;
            return l->line;
        }
        if (n < sizeof l->line - 1)
            l->line[n++] = c;
    }
    l->line[n] = 0;
    return n ? l->line : NULL;
}

static inline void lines_close(lines_t *l)
{
    close(l->fd);
}

typedef struct {
    unsigned long start, end, offset, inode;
    char perms[5];
    char name[4096];
} vma_t;

static inline bool vma_parse(const char *line, vma_t *v)
{
    int at = 0;
    if (sscanf(line, "%lx-%lx %4s %lx %*x:%*x %lu%n", &v->start, &v->end,
               v->perms, &v->offset, &v->inode, &at) < 5)
        return false;
    while (line[at] == ' ')
        at++;
    snprintf(v->name, sizeof v->name, "%s", line + at);
    return true;
}

static lines_t mem_lines;

/* The VMA that holds p, from /proc/self/maps. */
static inline bool vma_find(const void *p, vma_t *v)
{
    bool found = false;
    char *line;
    lines_open(&mem_lines, "/proc/self/maps");
    while (!found && (line = lines_next(&mem_lines)))
        found = vma_parse(line, v) && (unsigned long) p >= v->start &&
                (unsigned long) p < v->end;
    lines_close(&mem_lines);
    return found;
}

/* The same by name, such as "[stack]". */
static inline bool vma_named(const char *name, vma_t *v)
{
    bool found = false;
    char *line;
    lines_open(&mem_lines, "/proc/self/maps");
    while (!found && (line = lines_next(&mem_lines)))
        found = vma_parse(line, v) && strcmp(v->name, name) == 0;
    lines_close(&mem_lines);
    return found;
}

static inline long vma_count(void)
{
    long n = 0;
    lines_open(&mem_lines, "/proc/self/maps");
    while (lines_next(&mem_lines))
        n++;
    lines_close(&mem_lines);
    return n;
}

/*
 * How [base, base + pages) is made up according to /proc/self/maps, in pages:
 * "rw-p:2 hole:1 r--p:5". Parts of a VMA outside of the range do not count.
 */
static inline const char *layout(const void *base, size_t pages)
{
    static char text[1024];
    static vma_t v;
    unsigned long at = (unsigned long) base, end = at + pages * PAGE;
    size_t n = 0;
    char *line;
    text[0] = 0;
    lines_open(&mem_lines, "/proc/self/maps");
    while (at < end && (line = lines_next(&mem_lines))) {
        if (!vma_parse(line, &v) || v.end <= at || v.start >= end)
            continue;
        if (v.start > at) {
            n += snprintf(text + n, sizeof text - n, "%shole:%lu", n ? " " : "",
                          (v.start - at) / PAGE);
            at = v.start;
        }
        unsigned long stop = v.end < end ? v.end : end;
        n += snprintf(text + n, sizeof text - n, "%s%s:%lu", n ? " " : "",
                      v.perms, (stop - at) / PAGE);
        at = stop;
    }
    if (at < end)
        snprintf(text + n, sizeof text - n, "%shole:%lu", n ? " " : "",
                 (end - at) / PAGE);
    lines_close(&mem_lines);
    return text;
}

/* A fresh unlinked file of `len` bytes in which page i is filled with 'A' + i
 * (mod 26). */
static inline int file_make(size_t len)
{
    const char *dir = getenv("TMPDIR");
    char name[256], buf[4096];
    snprintf(name, sizeof name, "%s/guestXXXXXX", dir ? dir : "/tmp");
    int fd = mkstemp(name);
    need(fd >= 0, "mkstemp");
    need(unlink(name) == 0, "unlink");
    for (size_t at = 0; at < len; at += PAGE) {
        size_t n = len - at < PAGE ? len - at : PAGE;
        memset(buf, 'A' + (at / PAGE) % 26, sizeof buf);
        need(pwrite(fd, buf, n, at) == (ssize_t) n, "pwrite");
    }
    return fd;
}

/* The byte of a file at an offset, or -1. */
static inline int file_byte(int fd, off_t off)
{
    unsigned char c;
    return pread(fd, &c, 1, off) == 1 ? c : -1;
}

static inline void limit_set(int resource, rlim_t soft)
{
    struct rlimit lim;
    need(getrlimit(resource, &lim) == 0, "getrlimit");
    lim.rlim_cur = soft;
    need(setrlimit(resource, &lim) == 0, "setrlimit");
}

#endif
