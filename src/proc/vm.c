/* SPDX-License-Identifier: Apache-2.0 */
/* The VM of a guest process: hypervisor, memory, shim. */
#include "proc/run.h"
#include "sys/sys.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char error_line[320];

const char *proc_vm_error(void)
{
    return error_line;
}

int proc_vm_fail(int error, const char *line)
{
    snprintf(error_line, sizeof error_line, "%s", line);
    return error;
}

static int hide_fd(int fd, void *arg)
{
    int hidden = fdspace_hide(fd);

    return hidden < 0 ? fd : hidden;
}

/* Tracing sees only what the host serves. */
static bool fast_path_wanted(const proc_t *proc)
{
    const char *value = getenv("ELFUSE_MMAP_FASTPATH");

    return value && strcmp(value, "1") == 0 && !proc->strace;
}

int proc_vm_create(proc_t *proc, const hv_options_t *hv, const mm_options_t *mm)
{
    static world_t world;
    int error;

    world_init(&world);
    proc->world = &world;
    proc->vcpus = vcpus_create();
    proc->spares = spares_create();
    if (!proc->vcpus || !proc->spares)
        return proc_vm_fail(-ENOMEM, "no memory for the vCPUs");
    error = hv_vm_create(hv, &proc->vm, &proc->caps);
    if (error)
        return proc_vm_fail(error, hv_error());
    hv_each_fd(proc->vm, hide_fd, NULL);
    error = mm_create(proc->vm, &proc->caps, mm, &proc->mm);
    if (error)
        return proc_vm_fail(error, mm_error());
    error = shim_load(proc->vm, mm_pool_ipa(proc->mm), mm_pool_size(proc->mm),
                      &proc->shim);
    if (!error && fast_path_wanted(proc))
        error = mm_fast_enable(proc->mm, shim_fast(&proc->shim),
                               SHIM_POOL_VA - mm_pool_ipa(proc->mm));
    if (error)
        snprintf(error_line, sizeof error_line, "cannot load the shim: %s",
                 strerror(-error));
    return error;
}
