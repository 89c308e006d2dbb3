/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/handover.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

/* From Linux 6.3 on; where it is demanded. */
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8U
#endif

#define MAGIC 0x65786563656c6675UL

int handover_write(handover_t *handover)
{
    ssize_t n;
    int fd = memfd_create("elfuse-exec", MFD_CLOEXEC);

    if (fd < 0 && errno == EACCES)
        fd = memfd_create("elfuse-exec", MFD_CLOEXEC | MFD_NOEXEC_SEAL);
    if (fd < 0)
        return -errno;
    handover->magic = MAGIC;
    handover->size = sizeof *handover;
    n = write(fd, handover, sizeof *handover);
    if (n == (ssize_t) sizeof *handover)
        return fd;
    close(fd);
    return -ENOMEM;
}

bool handover_read(handover_t *handover)
{
    const char *name = (const char *) getauxval(AT_EXECFN);
    int fd, len = 0;

    if (!name || sscanf(name, "/dev/fd/%d%n", &fd, &len) != 1 || name[len])
        return false;
    if (pread(fd + 1, handover, sizeof *handover, 0) !=
            (ssize_t) sizeof *handover ||
        handover->magic != MAGIC || handover->size != sizeof *handover ||
        handover->self_fd != fd)
        return false;
    close(fd + 1);
    return true;
}
