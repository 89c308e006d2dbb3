/* SPDX-License-Identifier: Apache-2.0 */
#include "stats.h"

#include <inttypes.h>

stats_t stats;

void stats_reset(void)
{
#define STATS_RESET(name, text) \
    atomic_store_explicit(&stats.name, 0, memory_order_relaxed);
    STATS(STATS_RESET)
#undef STATS_RESET
}

void stats_print(FILE *out)
{
    fprintf(out, "elfuse: statistics\n");
#define STATS_PRINT(name, text)         \
    fprintf(out, "%16" PRIu64 "  %s\n", \
            atomic_load_explicit(&stats.name, memory_order_relaxed), text);
    STATS(STATS_PRINT)
#undef STATS_PRINT
    fflush(out);
}
