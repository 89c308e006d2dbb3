/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of a map, touch, unmap cycle.
 *
 *   cycle [CYCLES [bytes|pages|none [recycled|fresh]]]   256 KiB a cycle
 *   cycle sweep2m [CYCLES]          1 GiB a cycle, a touch every 2 MiB
 *
 * recycled: each cycle unmaps before the next maps, so that memory comes
 * back. fresh: all cycles keep an address range of their own, and nothing is
 * unmapped into the next one's hands: the ranges are mapped and touched at
 * ever new addresses, and every unmap comes after all of them, still counted.
 *
 * Prints nanoseconds by CLOCK_MONOTONIC, and by the counter read at EL0: in a
 * machine under -icount with a counter of 1 GHz, that is instructions.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define PAGE  4096UL
#define CYCLE (256UL << 10)
#define SWEEP (1UL << 30)

typedef struct {
    struct timespec clock;
    uint64_t counter;
} mark_t;

static mark_t now(void)
{
    mark_t m;
    if (clock_gettime(CLOCK_MONOTONIC, &m.clock) != 0)
        abort();
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(m.counter)::"memory");
    return m;
}

static double counter_ns(uint64_t ticks)
{
    uint64_t freq;
    __asm__("mrs %0, cntfrq_el0" : "=r"(freq));
    return ticks * 1e9 / freq;
}

static char *map(size_t len)
{
    char *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
    return p;
}

static void unmap(char *p, size_t len)
{
    if (munmap(p, len) != 0) {
        perror("munmap");
        exit(2);
    }
}

static void touch(volatile char *p, size_t len, size_t step)
{
    for (size_t i = 0; step && i < len; i += step)
        p[i] = 1;
}

static void run_recycled(long cycles, size_t len, size_t step)
{
    for (long i = 0; i < cycles; i++) {
        char *p = map(len);
        touch(p, len, step);
        unmap(p, len);
    }
}

static void run_fresh(long cycles, size_t len, size_t step, char **kept)
{
    for (long i = 0; i < cycles; i++) {
        kept[i] = map(len);
        touch(kept[i], len, step);
    }
    for (long i = 0; i < cycles; i++)
        unmap(kept[i], len);
}

static void usage(void)
{
    fprintf(stderr, "usage: cycle [CYCLES [bytes|pages|none "
                    "[recycled|fresh]]] | cycle sweep2m [CYCLES]\n");
    exit(2);
}

int main(int argc, char **argv)
{
    long cycles = 5000;
    size_t len = CYCLE, step = CYCLE;
    const char *what = "bytes", *kind = "recycled";
    if (argc > 1 && strcmp(argv[1], "sweep2m") == 0) {
        what = "sweep2m", len = SWEEP, step = 2UL << 20;
        cycles = argc > 2 ? atol(argv[2]) : 10;
    } else {
        cycles = argc > 1 ? atol(argv[1]) : cycles;
        what = argc > 2 ? argv[2] : what;
        kind = argc > 3 ? argv[3] : kind;
        if (strcmp(what, "pages") == 0)
            step = PAGE;
        else if (strcmp(what, "none") == 0)
            step = 0;
        else if (strcmp(what, "bytes") != 0)
            usage();
    }
    int fresh = strcmp(kind, "fresh") == 0;
    if (cycles < 1 || (!fresh && strcmp(kind, "recycled") != 0))
        usage();
    char **kept = calloc(fresh ? cycles : 1, sizeof *kept);
    if (!kept)
        abort();
    memset(kept, 0xff, (fresh ? cycles : 1) * sizeof *kept);

    mark_t a = now();
    if (fresh)
        run_fresh(cycles, len, step, kept);
    else
        run_recycled(cycles, len, step);
    mark_t b = now();
    double ns = (b.clock.tv_sec - a.clock.tv_sec) * 1e9 +
                (b.clock.tv_nsec - a.clock.tv_nsec);
    printf("%s %s cycles=%ld ns/cycle=%.1f counter-ns/cycle=%.1f\n", what, kind,
           cycles, ns / cycles, counter_ns(b.counter - a.counter) / cycles);
    free(kept);
    return 0;
}
