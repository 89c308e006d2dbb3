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

int vdso_map(proc_t *proc, mm_cpu_t *cpu, uint64_t *address)
{
    size_t size = (size_t) (vdso_image_end - vdso_image);
    uint64_t magic;

    memcpy(&magic, vdso_image + VDSO_VVAR_OFF, sizeof(magic));
    if (magic != VDSO_VVAR_MAGIC)
        elfuse_panic("vDSO: 0x%llx where the clock page's address belongs",
                     (unsigned long long) magic);
    char *code = copy_image(size);
    void *clocks = vvar_create(proc->caps.counter_hz);
    if (code == NULL || clocks == NULL)
        return -ENOMEM;

    /* mmap goes downwards: the clock page comes to lie below the code. */
    int64_t at = mm_map_special(proc->mm, cpu, code, size,
                                PROT_READ | PROT_EXEC, "[vdso]");
    if (at < 0)
        return (int) at;
    int64_t vvar = mm_map_special(proc->mm, cpu, clocks, GUEST_PAGE_SIZE,
                                  PROT_READ, "[vvar]");
    if (vvar < 0)
        return (int) vvar;
    memcpy(code + VDSO_VVAR_OFF, &vvar, sizeof(vvar));
    /* The guest executes what was written here: DC CVAU ... IC IVAU, ISB. */
    __builtin___clear_cache(code, code + size);
    *address = (uint64_t) at;
    return 0;
}
