/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/vdso.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/layout.h"
#include "abi/vvar.h"
#include "proc/vvar.h"

/* src/embed.S */
extern const char vdso_image[], vdso_image_end[];

/* Linux has two pages of data before the code; ours needs one of them. */
#define VVAR_SIZE (2 * GUEST_PAGE_SIZE)

/* A copy of the image that the guest can be given: whole host pages. */
static char *copy_image(size_t size)
{
    char *copy = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (copy == MAP_FAILED)
        return NULL;
    memcpy(copy, vdso_image, size);
    return copy;
}

/* Room for both together, where mmap would put them. The loader is alone, so
 * what is free now is free when they are mapped. */
static int64_t find_place(proc_t *proc, mm_cpu_t *cpu, size_t size)
{
    int64_t at = mm_mmap(proc->mm, cpu, 0, size, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at < 0)
        return at;
    int64_t error = mm_munmap(proc->mm, cpu, (uint64_t) at, size);
    return error < 0 ? error : at;
}

/* The clock page with its address in the code, and the code behind it. */
static int64_t map_both(proc_t *proc, mm_cpu_t *cpu, char *code, size_t size,
                        void *clocks)
{
    int64_t at = find_place(proc, cpu, VVAR_SIZE + size);
    if (at < 0)
        return at;
    int64_t vvar = mm_map_special(proc->mm, cpu, (uint64_t) at, clocks,
                                  VVAR_SIZE, PROT_READ, "[vvar]");
    if (vvar < 0)
        return vvar;
    memcpy(code + VDSO_VVAR_OFF, &vvar, sizeof(vvar));
    /* The guest executes what was written here: DC CVAU ... IC IVAU, ISB. */
    __builtin___clear_cache(code, code + size);
    return mm_map_special(proc->mm, cpu, (uint64_t) at + VVAR_SIZE, code, size,
                          PROT_READ | PROT_EXEC, "[vdso]");
}

int vdso_map(proc_t *proc, mm_cpu_t *cpu, uint64_t *address)
{
    size_t size = (uintptr_t) vdso_image_end - (uintptr_t) vdso_image;
    uint64_t magic;

    memcpy(&magic, vdso_image + VDSO_VVAR_OFF, sizeof(magic));
    if (magic != VDSO_VVAR_MAGIC)
        elfuse_panic("vDSO: 0x%llx where the clock page's address belongs",
                     (unsigned long long) magic);
    char *code = copy_image(size);
    void *clocks = vvar_create(proc->caps.counter_hz, VVAR_SIZE);
    if (code == NULL || clocks == NULL)
        return -ENOMEM;
    int64_t at = map_both(proc, cpu, code, size, clocks);
    if (at < 0)
        return (int) at;
    *address = (uint64_t) at;
    proc->sigreturn = *address + VDSO_SIGRETURN_OFF;
    return 0;
}
