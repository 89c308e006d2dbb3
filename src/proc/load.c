/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/load.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "abi/layout.h"
#include "proc/proc.h"
#include "proc/stack.h"
#include "proc/vdso.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

#define PAGE_OFFSET(x) ((x) & (GUEST_PAGE_SIZE - 1))
#define PAGE_DOWN(x)   ((x) &GUEST_PAGE_MASK)
#define PAGE_UP(x)     (((x) + GUEST_PAGE_SIZE - 1) & GUEST_PAGE_MASK)

/* For load_check(), which knows no address space yet. */
#define TASK_SIZE_MAX (1UL << 48)
/* Linux reads no more of PT_GNU_PROPERTY. */
#define PROPERTY_MAX 1024U

/* What is needed while one program is loaded. */
typedef struct loader {
    proc_t *proc;
    mm_cpu_t *cpu;
    int fd;
    elf_image_t image;
    Elf64_Phdr *phdr; /* malloc'd; image.phdr points at it */
    uint64_t bias;
    char interp[PATH_MAX]; /* "" for a static program */
} loader_t;

static char error_text[ELF_WHY_MAX + 64];

const char *proc_error(void)
{
    return error_text;
}

__attribute__((format(printf, 2, 3))) static int fail(int error,
                                                      const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error_text, sizeof(error_text), format, args);
    va_end(args);
    return error;
}

/* Exactly len bytes at offset; -EIO when the file is shorter by now. */
static int read_at(int fd, void *to, size_t len, uint64_t offset)
{
    char *p = to;

    while (len > 0) {
        ssize_t n = pread(fd, p, len, (off_t) offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        p += n;
        offset += (uint64_t) n;
        len -= (size_t) n;
    }
    return 0;
}

static int cannot_read(int error, char *why)
{
    snprintf(why, ELF_WHY_MAX, "cannot read it: %s", strerror(-error));
    return error;
}

/* The parts of the file that two program headers point at. */
static int read_extras(loader_t *l, char *why)
{
    elf_image_t *image = &l->image;
    char property[PROPERTY_MAX];
    size_t len =
        image->prop_len < sizeof(property) ? image->prop_len : sizeof(property);
    /* No use in refusing a program for a note that it need not have. */
    if (len > 0 && read_at(l->fd, property, len, image->prop_off) == 0)
        elf_parse_property(image, property, len);
    if (image->interp_len == 0)
        return 0;
    int error = read_at(l->fd, l->interp, image->interp_len, image->interp_off);
    if (error != 0)
        return cannot_read(error, why);
    if (l->interp[image->interp_len - 1] != '\0') {
        snprintf(why, ELF_WHY_MAX,
                 "bad ELF segment: the interpreter's name "
                 "does not end");
        return -ENOEXEC;
    }
    return 0;
}

/* Read and check all headers. l->fd is set; l->phdr is to be freed. */
static int read_program(loader_t *l, uint64_t task_size, char *why)
{
    char header[sizeof(Elf64_Ehdr)];
    struct stat st;

    if (fstat(l->fd, &st) != 0)
        return cannot_read(-errno, why);
    uint64_t size = (uint64_t) st.st_size;
    size_t len = size < sizeof(header) ? size : sizeof(header);
    int error = read_at(l->fd, header, len, 0);
    if (error != 0)
        return cannot_read(error, why);
    error = elf_parse(header, len, size, &l->image, why);
    if (error != 0)
        return error;
    size_t bytes = l->image.phnum * sizeof(Elf64_Phdr);
    l->phdr = malloc(bytes);
    if (l->phdr == NULL)
        return cannot_read(-ENOMEM, why);
    error = read_at(l->fd, l->phdr, bytes, l->image.phoff);
    if (error != 0)
        return cannot_read(error, why);
    error = elf_parse_segments(&l->image, l->phdr, size, task_size, why);
    if (error != 0)
        return error;
    error = read_extras(l, why);
    if (error != 0)
        return error;
    if (l->interp[0] != '\0') {
        snprintf(why, ELF_WHY_MAX,
                 "it is dynamically linked (interpreter %.80s); "
                 "link it with -static",
                 l->interp);
        return -ENOEXEC;
    }
    return 0;
}

int load_check(int fd, char *why)
{
    loader_t l = {.fd = fd};
    int error = read_program(&l, TASK_SIZE_MAX, why);

    free(l.phdr);
    return error;
}

bool load_randomises(void)
{
    char level = '2';
    int now = personality(0xffffffff);

    if (now != -1 && (now & ADDR_NO_RANDOMIZE) != 0)
        return false;
    int fd = open("/proc/sys/kernel/randomize_va_space", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        if (read(fd, &level, 1) != 1)
            level = '2';
        close(fd);
    }
    return level != '0';
}

static int map_failed(const Elf64_Phdr *p, int64_t error)
{
    return fail((int) error, "cannot map the segment at 0x%llx: %s",
                (unsigned long long) p->p_vaddr, strerror((int) -error));
}

/*
 * The part of a segment that is not in the file: the tail of the last file page
 * is zeroed, as far as the page goes, and what follows is anonymous, readable
 * and writable whatever the segment says (vm_brk_flags()).
 */
static int map_bss(loader_t *l, const Elf64_Phdr *p, int prot)
{
    uint64_t start = l->bias + p->p_vaddr + p->p_filesz;
    uint64_t end = PAGE_UP(l->bias + p->p_vaddr + p->p_memsz);

    if (p->p_memsz == p->p_filesz)
        return 0;
    if (p->p_filesz == 0)
        start = PAGE_DOWN(start);
    /* Linux lets a read-only segment keep what the file has there. */
    if (PAGE_OFFSET(start) != 0 && (prot & PROT_WRITE) != 0) {
        int error =
            clear_guest(l->proc->mm, l->cpu, start, PAGE_UP(start) - start);
        if (error != 0)
            return map_failed(p, error);
    }
    start = PAGE_UP(start);
    if (start >= end)
        return 0;
    int64_t at = mm_mmap(l->proc->mm, l->cpu, start, end - start,
                         PROT_READ | PROT_WRITE | (prot & PROT_EXEC),
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    return at < 0 ? map_failed(p, at) : 0;
}

static int map_segment(loader_t *l, const Elf64_Phdr *p, int placing)
{
    int prot = ((p->p_flags & PF_R) != 0 ? PROT_READ : 0) |
               ((p->p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
               ((p->p_flags & PF_X) != 0 ? PROT_EXEC : 0);
    uint64_t in_page = PAGE_OFFSET(p->p_vaddr);

    if (p->p_filesz > 0) {
        int64_t at = mm_mmap(
            l->proc->mm, l->cpu, l->bias + PAGE_DOWN(p->p_vaddr),
            PAGE_UP(p->p_filesz + in_page), (uint64_t) prot,
            (uint64_t) (MAP_PRIVATE | placing), l->fd, p->p_offset - in_page);
        if (at < 0)
            return map_failed(p, at);
    }
    return map_bss(l, p, prot);
}

/*
 * Where a static PIE goes: like Linux, where mmap would put it, aligned as its
 * segments ask for. The span is only looked for here: nothing else maps before
 * the segments do.
 */
static int place_pie(loader_t *l)
{
    const elf_image_t *image = &l->image;
    uint64_t size = image->end - image->start;
    uint64_t slack = image->align - GUEST_PAGE_SIZE;
    int64_t at = mm_mmap(l->proc->mm, l->cpu, 0, size + slack, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at < 0)
        return fail((int) at, "no room for its %llu bytes of segments",
                    (unsigned long long) size);
    int64_t error = mm_munmap(l->proc->mm, l->cpu, (uint64_t) at, size + slack);
    if (error < 0)
        return fail((int) error, "cannot place its segments: %s",
                    strerror((int) -error));
    /* Downwards from the highest place, so that no gap is left above. The
     * bias is what must be aligned: p_vaddr modulo p_align is kept. */
    uint64_t bias = (uint64_t) at + slack - image->start;
    l->bias = bias & ~(image->align - 1);
    return 0;
}

static int map_image(loader_t *l)
{
    bool first = true;

    if (l->image.pie) {
        int error = place_pie(l);
        if (error != 0)
            return error;
    }
    for (unsigned i = 0; i < l->image.phnum; i++) {
        const Elf64_Phdr *p = &l->image.phdr[i];
        if (p->p_type != PT_LOAD)
            continue;
        /* Later segments may overlap earlier ones and then replace them. */
        int error = map_segment(l, p, first ? MAP_FIXED_NOREPLACE : MAP_FIXED);
        if (error != 0)
            return error;
        first = false;
    }
    /* The heap of a PIE that lies among the mappings would meet one at once:
     * Linux moves it to where PIEs with an interpreter begin. */
    mm_set_brk(l->proc->mm, l->image.pie ? mm_elf_dyn_base(l->proc->mm)
                                         : PAGE_UP(l->image.brk));
    return 0;
}

static void describe_stack(const loader_t *l, uint64_t vdso, stack_input_t *in)
{
    const proc_t *proc = l->proc;
    struct rlimit limit;
    long clktck = sysconf(_SC_CLK_TCK);
    unsigned long minsigstksz = getauxval(AT_MINSIGSTKSZ);
    uint16_t gap = 0;

    mm_get_rlimit(proc->mm, RLIMIT_STACK, &limit);
    if (getrandom(in->random, sizeof(in->random), 0) !=
            (ssize_t) sizeof(in->random) ||
        getrandom(&gap, sizeof(gap), 0) != (ssize_t) sizeof(gap))
        elfuse_panic("getrandom: %s", strerror(errno));
    in->argv = proc->argv;
    in->envp = proc->envp;
    in->execfn = proc->execfn;
    in->top = mm_stack_top(proc->mm);
    in->limit = limit.rlim_cur;
    in->gap = load_randomises() ? gap % GUEST_PAGE_SIZE : 0;
    in->vdso = vdso;
    in->minsigstksz = minsigstksz != 0 ? minsigstksz : 4720;
    in->hwcap = proc->caps.hwcap;
    in->hwcap2 = proc->caps.hwcap2;
    in->phdr = l->image.phdr_addr + l->bias;
    in->phnum = l->image.phnum;
    in->entry = l->image.entry + l->bias;
    in->uid = getuid();
    in->euid = geteuid();
    in->gid = getgid();
    in->egid = getegid();
    in->secure = getauxval(AT_SECURE);
    in->clktck = (uint64_t) clktck;
}

/* What /proc and prctl tell about the image. */
static void note_image(const loader_t *l, const stack_image_t *stack)
{
    mm_image_t *image = mm_image(l->proc->mm);

    image->start_code = l->image.start_code + l->bias;
    image->end_code = l->image.end_code + l->bias;
    image->start_data = l->image.start_data + l->bias;
    image->end_data = l->image.end_data + l->bias;
    image->start_stack = stack->sp;
    image->arg_start = stack->arg_start;
    image->arg_end = stack->arg_end;
    image->env_start = stack->env_start;
    image->env_end = stack->env_end;
    _Static_assert(sizeof(l->proc->auxv) == sizeof(stack->auxv), "AUXV_MAX");
    memcpy(l->proc->auxv, stack->auxv, sizeof(stack->auxv));
    l->proc->auxv_len = stack->auxv_len;
}

static int copy_stack(const loader_t *l, uint64_t vdso, uint64_t *sp)
{
    stack_input_t in;
    stack_image_t stack;

    describe_stack(l, vdso, &in);
    int error = stack_build(&in, &stack);
    if (error == 0)
        error =
            copy_to_guest(l->proc->mm, l->cpu, stack.sp, stack.data, stack.len);
    if (error == 0)
        note_image(l, &stack);
    *sp = stack.sp;
    free(stack.data);
    if (error != 0)
        return fail(error, "cannot fill its stack: %s", strerror(-error));
    return 0;
}

static int make_stack(const loader_t *l)
{
    stack_input_t in;
    uint64_t strings;

    describe_stack(l, 0, &in);
    if (stack_measure(&in, &strings) != 0)
        return fail(-E2BIG, "%s", strerror(E2BIG));
    int error =
        mm_make_stack(l->proc->mm, l->cpu, stack_vma_size(strings, in.limit),
                      l->image.stack == ELF_STACK_EXEC);
    if (error != 0)
        return fail(error, "cannot make its stack: %s", strerror(-error));
    return 0;
}

static int load_program(loader_t *l, load_result_t *result)
{
    char why[ELF_WHY_MAX];
    uint64_t vdso;

    int error = read_program(l, mm_task_size(l->proc->mm), why);
    if (error != 0)
        return fail(error, "%s", why);
    error = make_stack(l);
    if (error != 0)
        return error;
    error = map_image(l);
    if (error != 0)
        return error;
    error = vdso_map(l->proc, l->cpu, &vdso);
    if (error != 0)
        return fail(error, "cannot map the vDSO: %s", strerror(-error));
    result->entry = l->image.entry + l->bias;
    return copy_stack(l, vdso, &result->sp);
}

int proc_load(proc_t *proc, mm_cpu_t *cpu, int fd, load_result_t *result)
{
    loader_t l = {.proc = proc, .cpu = cpu, .fd = fd};
    int error = load_program(&l, result);

    free(l.phdr);
    return error;
}
