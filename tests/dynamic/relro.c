/* SPDX-License-Identifier: Apache-2.0 */
/* What is read-only once it is relocated; with -z now, the whole GOT. */
#include "mem.h"

#include <elf.h>
#include <link.h>

static const char *const strings[] = {"one", "two"};
static const char *variable = "three";
static volatile int second = 1;

static bool has_flag(Elf64_Sxword tag, unsigned long bit)
{
    for (const Elf64_Dyn *d = _DYNAMIC; d->d_tag != DT_NULL; d++)
        if (d->d_tag == tag && (bit == 0 || (d->d_un.d_val & bit) != 0))
            return true;
    return false;
}

/* The first entry of a function: the linker's own three are read-only even when
 * functions are bound lazily. Some linkers relocate DT_PLTGOT in memory. */
static void *got(const struct dl_phdr_info *info)
{
    for (const Elf64_Dyn *d = _DYNAMIC; d->d_tag != DT_NULL; d++)
        if (d->d_tag == DT_PLTGOT)
            return (void **) (d->d_un.d_ptr < info->dlpi_addr
                                  ? d->d_un.d_ptr + info->dlpi_addr
                                  : d->d_un.d_ptr) +
                   3;
    return NULL;
}

static int first(struct dl_phdr_info *info, size_t size, void *arg)
{
    (void) size;
    *(void **) arg = got(info);
    return 1;
}

int main(void)
{
    bool now = has_flag(DT_FLAGS, DF_BIND_NOW);
    void *table = NULL;

    need(dl_iterate_phdr(first, &table) == 1 && table != NULL, "the GOT");
    is_str(strings[second], "two", "relocated constants are right");
    ok(now ? !can_write(table) : can_write(table),
       "the GOT can be written only when it is filled lazily");
    ok(can_write(&variable), "variables can be written");
    ok(!can_write(_DYNAMIC), "the dynamic section cannot");
    ok(!can_write((void *) strings), "nor can relocated constants");
    return tap_done();
}
