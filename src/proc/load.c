/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/load.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/random.h>
#include <unistd.h>

#include "abi/layout.h"
#include "proc/elf_file.h"
#include "proc/proc.h"
#include "proc/program.h"
#include "proc/stack.h"
#include "proc/vdso.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

#define PAGE_OFFSET(x) ((x) & (GUEST_PAGE_SIZE - 1))
#define PAGE_DOWN(x)   ((x) &GUEST_PAGE_MASK)
#define PAGE_UP(x)     (((x) + GUEST_PAGE_SIZE - 1) & GUEST_PAGE_MASK)

/* One ELF file of the two, and where it goes. */
typedef struct part {
    elf_file_t file;
    uint64_t bias; /* from the file's addresses to the guest's */
} part_t;

/* What is needed while one program is loaded. */
typedef struct loader {
    proc_t *proc;
    mm_cpu_t *cpu;
    part_t program, interp; /* interp.file.fd is -1 for a static program */
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
static int map_bss(const loader_t *l, uint64_t bias, const Elf64_Phdr *p,
                   int prot)
{
    uint64_t start = bias + p->p_vaddr + p->p_filesz;
    uint64_t end = PAGE_UP(bias + p->p_vaddr + p->p_memsz);

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

static int map_segment(const loader_t *l, const part_t *part,
                       const Elf64_Phdr *p, int placing)
{
    int prot = ((p->p_flags & PF_R) != 0 ? PROT_READ : 0) |
               ((p->p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
               ((p->p_flags & PF_X) != 0 ? PROT_EXEC : 0);
    uint64_t in_page = PAGE_OFFSET(p->p_vaddr);

    if (p->p_filesz > 0) {
        int64_t at =
            mm_mmap(l->proc->mm, l->cpu, part->bias + PAGE_DOWN(p->p_vaddr),
                    PAGE_UP(p->p_filesz + in_page), (uint64_t) prot,
                    (uint64_t) (MAP_PRIVATE | placing), part->file.fd,
                    p->p_offset - in_page);
        if (at < 0)
            return map_failed(p, at);
    }
    return map_bss(l, part->bias, p, prot);
}

/* Later segments may overlap earlier ones and then replace them. */
static int map_segments(const loader_t *l, const part_t *part, int first)
{
    const elf_image_t *image = &part->file.image;
    int placing = first;

    for (unsigned i = 0; i < image->phnum; i++) {
        if (image->phdr[i].p_type != PT_LOAD)
            continue;
        int error = map_segment(l, part, &image->phdr[i], placing);
        if (error != 0)
            return error;
        placing = MAP_FIXED;
    }
    return 0;
}

/*
 * Where mmap would put it, with a bias that is a multiple of `align`. The span
 * is only looked for here: nothing else maps before the segments do.
 */
static int place_by_mmap(const loader_t *l, part_t *part, uint64_t align)
{
    const elf_image_t *image = &part->file.image;
    uint64_t size = image->end - image->start;
    uint64_t slack = align - GUEST_PAGE_SIZE;
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
    part->bias = bias & ~(align - 1);
    return 0;
}

/* A program with an interpreter has a region of its own; one without is taken
 * for an interpreter that was run directly, and goes among the mappings. */
static int place_program(loader_t *l)
{
    const elf_image_t *image = &l->program.file.image;

    if (!image->pie)
        return 0;
    if (l->interp.file.fd < 0)
        return place_by_mmap(l, &l->program, image->align);
    l->program.bias =
        (mm_elf_dyn_base(l->proc->mm) & ~(image->align - 1)) - image->start;
    return 0;
}

static int map_program(loader_t *l)
{
    const elf_image_t *image = &l->program.file.image;
    int error = place_program(l);

    if (error == 0)
        error = map_segments(l, &l->program, MAP_FIXED_NOREPLACE);
    if (error != 0)
        return error;
    /* The heap of a PIE that lies among the mappings would meet one at once:
     * Linux moves it to where PIEs with an interpreter begin. */
    bool among = image->pie && l->interp.file.fd < 0;
    mm_set_brk(l->proc->mm, among ? mm_elf_dyn_base(l->proc->mm)
                                  : PAGE_UP(l->program.bias + image->brk));
    return 0;
}

/* One with fixed addresses replaces what is there, as Linux lets it. */
static int map_interpreter(loader_t *l)
{
    if (l->interp.file.fd < 0)
        return 0;
    if (l->interp.file.image.pie) {
        int error = place_by_mmap(l, &l->interp, GUEST_PAGE_SIZE);
        if (error != 0)
            return error;
    }
    return map_segments(l, &l->interp, MAP_FIXED);
}

static void describe_stack(const loader_t *l, uint64_t vdso, stack_input_t *in)
{
    const proc_t *proc = l->proc;
    const elf_image_t *image = &l->program.file.image;
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
    in->phdr = image->phdr_addr + l->program.bias;
    in->phnum = image->phnum;
    in->entry = image->entry + l->program.bias;
    in->base = l->interp.bias;
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
    const elf_image_t *file = &l->program.file.image;

    image->start_code = file->start_code + l->program.bias;
    image->end_code = file->end_code + l->program.bias;
    image->start_data = file->start_data + l->program.bias;
    image->end_data = file->end_data + l->program.bias;
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
                      l->program.file.image.stack == ELF_STACK_EXEC);
    if (error != 0)
        return fail(error, "cannot make its stack: %s", strerror(-error));
    return 0;
}

/* Read the headers, once more: what was checked then holds the files' own
 * promise only. */
static int read_part(const loader_t *l, part_t *part, int fd)
{
    char why[ELF_WHY_MAX];
    int error = elf_file_read(&part->file, fd, mm_task_size(l->proc->mm), why);

    return error != 0 ? fail(error, "%s", why) : 0;
}

static int load_parts(loader_t *l, load_result_t *result)
{
    uint64_t vdso;
    int error = make_stack(l);

    if (error == 0)
        error = map_program(l);
    if (error == 0)
        error = map_interpreter(l);
    if (error != 0)
        return error;
    error = vdso_map(l->proc, l->cpu, &vdso);
    if (error != 0)
        return fail(error, "cannot map the vDSO: %s", strerror(-error));
    const part_t *first = l->interp.file.fd < 0 ? &l->program : &l->interp;
    result->entry = first->file.image.entry + first->bias;
    return copy_stack(l, vdso, &result->sp);
}

int proc_load(proc_t *proc, mm_cpu_t *cpu, const program_t *program,
              load_result_t *result)
{
    loader_t l = {.proc = proc, .cpu = cpu, .interp.file.fd = -1};
    int error = read_part(&l, &l.program, program->fd);

    if (error == 0 && program->interp_fd >= 0)
        error = read_part(&l, &l.interp, program->interp_fd);
    if (error == 0)
        error = load_parts(&l, result);
    elf_file_free(&l.program.file);
    elf_file_free(&l.interp.file);
    return error;
}
