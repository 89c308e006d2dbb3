/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/histogram.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "sys/sys.h"
#include "sys/table.h"

/* The last element counts numbers past the table. */
static _Atomic uint64_t calls[SYS_MAX + 1], errors[SYS_MAX + 1];

static unsigned slot_of(unsigned nr)
{
    return nr < SYS_MAX ? nr : SYS_MAX;
}

/* Counted on the way in: exit_group does not come back. Relaxed: statistics
 * order nothing. */
void histogram_enter(unsigned nr)
{
    atomic_fetch_add_explicit(&calls[slot_of(nr)], 1, memory_order_relaxed);
}

void histogram_exit(unsigned nr, int64_t ret)
{
    if (ret < 0 && ret >= -4095)
        atomic_fetch_add_explicit(&errors[slot_of(nr)], 1,
                                  memory_order_relaxed);
}

void histogram_reset(void)
{
    for (unsigned i = 0; i <= SYS_MAX; i++) {
        atomic_store_explicit(&calls[i], 0, memory_order_relaxed);
        atomic_store_explicit(&errors[i], 0, memory_order_relaxed);
    }
}

static int by_count(const void *a, const void *b)
{
    uint64_t x = calls[*(const unsigned *) a], y = calls[*(const unsigned *) b];

    return x < y ? 1 : x > y ? -1 : 0;
}

void sys_print_histogram(FILE *out)
{
    unsigned order[SYS_MAX + 1], n = 0;

    for (unsigned i = 0; i <= SYS_MAX; i++)
        if (calls[i])
            order[n++] = i;
    if (!n)
        return;
    qsort(order, n, sizeof order[0], by_count);
    fprintf(out, "%10s %10s  %s\n", "calls", "errors", "system call");
    for (unsigned i = 0; i < n; i++) {
        unsigned nr = order[i];

        fprintf(out, "%10llu %10llu  %s (%u)\n", (unsigned long long) calls[nr],
                (unsigned long long) errors[nr],
                nr < SYS_MAX && sys_table[nr].name ? sys_table[nr].name
                                                   : "unknown",
                nr);
    }
}
