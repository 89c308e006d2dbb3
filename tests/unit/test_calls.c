/* SPDX-License-Identifier: Apache-2.0 */
/* sources: tests/unit/fake_mm.c src/stats.c */
/* sources: src/mm/copy.c src/mm/dirty.c src/mm/gather.c src/mm/hostspace.c */
/* sources: src/mm/materialise.c src/mm/mm.c src/mm/objectspace.c */
/* sources: src/mm/pagetable.c src/mm/ptmove.c src/mm/ptretain.c */
/* sources: src/mm/span.c src/mm/tablepool.c src/mm/window.c */
/* sources: src/mm/vma.c src/mm/object.c src/mm/objectedge.c */
/* sources: src/mm/account.c src/mm/mmap.c src/mm/shm.c */
/* sources: src/mm/munmap.c src/mm/mprotect.c src/mm/mremap.c */
/* sources: src/mm/madvise.c src/mm/mlock.c src/mm/fault.c src/mm/image.c */
/* sources: src/mm/maps.c src/mm/hostmaps.c src/mm/brk.c src/mm/setmm.c */
/*
 * The memory calls against the kernel of the build machine: the same random
 * calls on the same addresses, in the guest and in this process; results,
 * contents, permissions and VMAs must be the same. Calls on which kernels of
 * different age disagree are left out.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_mm.h"

#define BASE       0x180000000000UL
#define PAGES      96U
#define FILE_PAGES 2048U
#define STEPS      3000U

typedef struct range {
    unsigned first, pages;
} range_t;

static mm_t *mm;
static mm_cpu_t *cpu;
static int file_rw, file_ro, file_private, probe[2];
static char log_text[1 << 16][96]; /* what was done, shown on failure */
static unsigned step;
static uint64_t seed;

static unsigned below(unsigned n)
{
    seed = seed * 6364136223846793005UL + 1442695040888963407UL;
    return (unsigned) (seed >> 33) % n;
}

static uint64_t addr_of(unsigned page)
{
    return BASE + page * GUEST_PAGE_SIZE;
}

static range_t pick(void)
{
    range_t r = {below(PAGES), 1 + below(below(3) ? 6 : 30)};

    if (r.first + r.pages > PAGES)
        r.pages = PAGES - r.first;
    return r;
}

static void show_log(void)
{
    for (unsigned i = step < 40 ? 0 : step - 40; i <= step; i++)
        fprintf(stderr, "%u %s\n", i, log_text[i]);
}

static void expect(int64_t guest, int64_t native, const char *what)
{
    if (guest == native)
        return;
    show_log();
    fail_msg("%s: %ld in the guest, %ld in the kernel", what, guest, native);
}

/* --- contents ------------------------------------------------------------ */

static sigjmp_buf no_page;

static void on_bus_error(int sig)
{
    siglongjmp(no_page, 1);
}

/* 0, SIGSEGV or SIGBUS; the value is 0 unless it is 0. */
static int guest_touch(uint64_t addr, bool write, uint64_t *value)
{
    int signal;

    if (sigsetjmp(no_page, 1)) {
        guest_exit(mm, cpu);
        guest_enter(cpu);
        return SIGSEGV; /* through a system call, both are EFAULT */
    }
    signal = guest_access(mm, cpu, addr, write, value);
    return signal;
}

static int native_touch(uint64_t addr, bool write, uint64_t *value)
{
    uint64_t scrap = 0;

    if (!write) {
        if (syscall(SYS_write, probe[1], addr, sizeof(scrap)) != sizeof(scrap))
            return SIGSEGV;
        assert_int_equal(read(probe[0], value, sizeof(scrap)), sizeof(scrap));
        return 0;
    }
    assert_int_equal(syscall(SYS_write, probe[1], value, sizeof(scrap)),
                     sizeof(scrap));
    if (syscall(SYS_read, probe[0], addr, sizeof(scrap)) == sizeof(scrap))
        return 0;
    while (read(probe[0], &scrap, sizeof(scrap)) > 0)
        ;
    return SIGSEGV;
}

static void touch(uint64_t addr, bool write)
{
    uint64_t guest = seed, native = seed;
    int a = guest_touch(addr, write, &guest);
    int b = native_touch(addr, write, &native);
    char what[64];

    snprintf(what, sizeof(what), "%s of page %lu", write ? "write" : "read",
             (addr - BASE) / GUEST_PAGE_SIZE);
    expect(a, b, what);
    if (!a)
        expect((int64_t) guest, (int64_t) native, what);
}

static void touch_all(void)
{
    for (unsigned i = 0; i < PAGES; i++)
        touch(addr_of(i) + below(512) * 8, false);
}

/* --- layout -------------------------------------------------------------- */

/*
 * Lines of maps inside the region, without devices and inodes, which differ for
 * shared anonymous memory. Adjacent anonymous lines are joined: when those
 * merge depends on anon_vmas and on the kernel's age.
 */
static void layout(FILE *in, char *out, size_t room)
{
    char line[512], name[512] = "", last[8] = "";
    uint64_t last_end = 0, from_offset = 0;
    size_t n = 0, last_n = 0, from = 0;

    out[0] = 0;
    while (fgets(line, sizeof(line), in)) {
        uint64_t start, end, offset;
        char perm[8];
        int at = 0;

        if (sscanf(line, "%lx-%lx %7s %lx %*s %*u %n", &start, &end, perm,
                   &offset, &at) < 4 ||
            end <= BASE || start >= addr_of(PAGES))
            continue;
        line[strcspn(line, "\n")] = 0;
        start = (start - BASE) / GUEST_PAGE_SIZE;
        end = (end - BASE) / GUEST_PAGE_SIZE;
        if (start == last_end && perm[3] == 'p' && !strcmp(perm, last) &&
            !strcmp(line + at, name) &&
            (!line[at] ||
             offset == from_offset + (start - from) * GUEST_PAGE_SIZE)) {
            n = last_n;
            start = from;
            offset = from_offset;
        }
        last_n = n;
        from = start;
        last_end = end;
        from_offset = offset;
        snprintf(last, sizeof(last), "%s", perm);
        snprintf(name, sizeof(name), "%s", line + at);
        n += (size_t) snprintf(out + n, room - n, "%lu-%lu %s %lx %s\n", start,
                               end, perm, offset, line + at);
        assert_true(n < room);
    }
}

static void compare_layout(void)
{
    static char guest[1 << 16], native[1 << 16];
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size), *in;

    assert_int_equal(mm_print_maps(mm, out), 0);
    fclose(out);
    in = fmemopen(text, size, "r");
    if (size)
        layout(in, guest, sizeof(guest));
    fclose(in);
    free(text);
    in = fopen("/proc/self/maps", "re");
    layout(in, native, sizeof(native));
    fclose(in);
    if (strcmp(guest, native) == 0)
        return;
    show_log();
    for (char *g = guest, *n = native;; g++, n++) {
        char *end;

        end = strchr(g, '\n');
        if (end && strncmp(g, n, (size_t) (end - g)) == 0) {
            n += end - g;
            g = end;
            continue;
        }
        fail_msg("guest: %.200s\nkernel: %.200s", g, n);
    }
}

/* --- calls --------------------------------------------------------------- */

static int64_t native_result(long result)
{
    return result == -1 ? -errno : result;
}

#define NOTE(...) snprintf(log_text[step], sizeof(log_text[step]), __VA_ARGS__)

static void call_mmap(void)
{
    static const int prots[] = {3, 3, 3, 1, 0, 7, 2};
    range_t r = pick();
    int prot = prots[below(7)], kind = below(7), fd = -1;
    int flags = kind == 1 || kind >= 5 ? MAP_SHARED : MAP_PRIVATE;
    uint64_t offset = 0, addr = addr_of(r.first);
    uint64_t len = r.pages * GUEST_PAGE_SIZE;
    int64_t a, b;

    if (kind >= 3) {
        fd = kind == 6 ? file_ro : kind == 5 ? file_rw : file_private;
        offset = below(8) * GUEST_PAGE_SIZE;
    } else {
        flags |= MAP_ANONYMOUS;
    }
    flags |= below(5) ? MAP_FIXED : MAP_FIXED_NOREPLACE;
    flags |= below(8) ? 0 : MAP_NORESERVE;
    flags |= below(8) ? 0 : MAP_POPULATE;
    NOTE("mmap %u+%u prot %d flags %x %s offset %lx", r.first, r.pages, prot,
         (unsigned) flags,
         fd < 0          ? ""
         : fd == file_ro ? "ro"
                         : "rw",
         offset);
    a = mm_mmap(mm, cpu, addr, len, (uint64_t) prot, (uint64_t) flags, fd,
                offset);
    b = native_result(syscall(SYS_mmap, addr, len, prot, flags, fd, offset));
    expect(a, b, "mmap");
}

static void call_munmap(void)
{
    range_t r = pick();
    int64_t a, b;

    NOTE("munmap %u+%u", r.first, r.pages);
    a = mm_munmap(mm, cpu, addr_of(r.first), r.pages * GUEST_PAGE_SIZE);
    b = native_result(
        syscall(SYS_munmap, addr_of(r.first), r.pages * GUEST_PAGE_SIZE));
    expect(a, b, "munmap");
}

static void call_mprotect(void)
{
    range_t r = pick();
    unsigned prot = below(8);
    int64_t a, b;

    NOTE("mprotect %u+%u %u", r.first, r.pages, prot);
    a = mm_mprotect(mm, cpu, addr_of(r.first), r.pages * GUEST_PAGE_SIZE, prot);
    b = native_result(syscall(SYS_mprotect, addr_of(r.first),
                              r.pages * GUEST_PAGE_SIZE, prot));
    expect(a, b, "mprotect");
}

static bool native_inside_one(uint64_t start, uint64_t end)
{
    FILE *in = fopen("/proc/self/maps", "re");
    char line[512];
    bool inside = false;

    while (!inside && fgets(line, sizeof(line), in)) {
        uint64_t from, to;

        inside = sscanf(line, "%lx-%lx", &from, &to) == 2 && from <= start &&
                 end <= to;
    }
    fclose(in);
    return inside;
}

/* Newer kernels move several VMAs at once, and VMAs that one merges another may
 * not: only ranges inside one, for both, are tried. */
static bool inside_one(range_t r)
{
    uint64_t start = addr_of(r.first), end = addr_of(r.first + r.pages);
    vma_t *vma = vma_at(mm, start);

    return vma && vma->end >= end && native_inside_one(start, end);
}

static bool is_shared_anonymous(unsigned page)
{
    vma_t *vma = vma_at(mm, addr_of(page));

    return vma->object && vma->object->anonymous;
}

static void call_mremap(void)
{
    range_t from = pick(), to = pick();
    uint64_t flags = MREMAP_MAYMOVE | MREMAP_FIXED;
    unsigned old = from.pages, new = to.pages;
    int64_t a, b;

    if (!inside_one(from))
        return;
    switch (below(6)) {
    case 0:
        flags = 0;
        break;
    case 1:
        flags = 0;
        new = old + below(4);
        break;
    case 2:
        flags |= MREMAP_DONTUNMAP;
        new = old;
        break;
    case 3:
        old = below(3) ? old : 0;
        break;
    }
    if ((flags ? to.first : from.first) + new > PAGES)
        new = PAGES - (flags ? to.first : from.first);
    /* Older kernels have unmapped the source by then. */
    if (!old && to.first <= from.first && from.first < to.first + new)
        return;
    /* Shared anonymous memory has whole host pages. */
    if (new > old &&
        mm->caps.host_page > GUEST_PAGE_SIZE &&is_shared_anonymous(from.first))
        return;
    NOTE("mremap %u+%u -> %u+%u flags %lx", from.first, old, to.first, new,
         flags);
    a = mm_mremap(mm, cpu, addr_of(from.first), old * GUEST_PAGE_SIZE,
                  new *GUEST_PAGE_SIZE, flags, addr_of(to.first));
    b = native_result(syscall(SYS_mremap, addr_of(from.first),
                              old * GUEST_PAGE_SIZE, new *GUEST_PAGE_SIZE,
                              flags, addr_of(to.first)));
    expect(a, b, "mremap");
}

static void call_madvise(void)
{
    static const int advice[] = {
        MADV_NORMAL,
        MADV_RANDOM,
        MADV_SEQUENTIAL,
        MADV_WILLNEED,
        MADV_DONTNEED,
        MADV_DONTNEED,
        MADV_DONTNEED,
        MADV_REMOVE,
        MADV_DONTFORK,
        MADV_DOFORK,
        MADV_DONTDUMP,
        MADV_DODUMP,
        MADV_WIPEONFORK,
        MADV_KEEPONFORK,
        MADV_COLD,
        MADV_POPULATE_READ,
        MADV_POPULATE_WRITE,
        5,
        7,
    };
    range_t r = pick();
    int what = advice[below(sizeof(advice) / sizeof(advice[0]))];
    int64_t a, b;

    if ((what == MADV_POPULATE_READ || what == MADV_POPULATE_WRITE) &&
        !inside_one(r))
        return;
    NOTE("madvise %u+%u %d", r.first, r.pages, what);
    a = mm_madvise(mm, cpu, addr_of(r.first), r.pages * GUEST_PAGE_SIZE, what);
    b = native_result(syscall(SYS_madvise, addr_of(r.first),
                              r.pages * GUEST_PAGE_SIZE, what));
    expect(a, b, "madvise");
}

static void one_call(void)
{
    guest_exit(mm, cpu);
    NOTE("nothing");
    switch (below(14)) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
        call_mmap();
        break;
    case 5:
        call_munmap();
        break;
    case 6:
    case 7:
        call_mprotect();
        break;
    case 8:
    case 9:
    case 10:
        call_mremap();
        break;
    case 11:
    case 12:
        call_madvise();
        break;
    default:
        break;
    }
    guest_enter(cpu);
}

/* --- set-up -------------------------------------------------------------- */

static int make_file(int *read_only)
{
    char path[] = "/tmp/test_calls.XXXXXX";
    int fd = mkstemp(path);

    *read_only = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0 && *read_only >= 0);
    unlink(path);
    for (uint64_t i = 0; i < FILE_PAGES * 512UL; i += 512) {
        uint64_t page[512];

        for (unsigned k = 0; k < 512; k++)
            page[k] = i + k + 1;
        assert_int_equal(write(fd, page, sizeof(page)), sizeof(page));
    }
    return fd;
}

static void run(uint64_t start, size_t host_page, unsigned steps)
{
    struct sigaction action = {.sa_handler = on_bus_error};
    int other = -1;

    seed = start;
    sigaction(SIGBUS, &action, NULL);
    file_private = file_rw = make_file(&file_ro);
    /* A private page of which a part was written no longer shows what others
     * write to the file; with larger host pages that is more of it. */
    if (host_page > GUEST_PAGE_SIZE)
        file_private = make_file(&other);
    assert_int_equal(pipe2(probe, O_NONBLOCK | O_CLOEXEC), 0);
    mm = fake_mm_create(40, 45, host_page);
    cpu = fake_cpu_create(mm);
    guest_stale = 0;
    guest_enter(cpu);
    for (step = 0; step < steps; step++) {
        one_call();
        for (int i = 0; i < 6; i++)
            touch(addr_of(below(PAGES)) + below(512) * 8, below(2));
        if (step % 4 == 3) {
            compare_layout();
            touch_all();
        }
        expect(guest_stale, 0, "stale translations");
    }
    syscall(SYS_munmap, BASE, PAGES * GUEST_PAGE_SIZE);
    /* Two reservations do not fit beside the sanitizer's. */
    munmap(mm->space->base, mm->space->size);
    if (file_private != file_rw)
        close(file_private);
    close(other);
    close(file_rw);
    close(file_ro);
    close(probe[0]);
    close(probe[1]);
}

static void calls_as_the_kernel(void **state)
{
    run(1, 4096, STEPS);
}

/* Objects made of host pages of which several VMAs use a part. */
static void calls_with_large_host_pages(void **state)
{
    run(2, 16384, STEPS);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_as_the_kernel),
        cmocka_unit_test(calls_with_large_host_pages),
    };

    /* Longer, by hand: seed, host page size, steps. */
    if (argc == 4) {
        run(strtoul(argv[1], NULL, 0), strtoul(argv[2], NULL, 0),
            (unsigned) strtoul(argv[3], NULL, 0));
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
