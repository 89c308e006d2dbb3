/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of single mmap and munmap calls, by the counter read at EL0 right
 * before and after the svc: in a machine under -icount with a counter of 1 GHz,
 * instructions. Prints the median of an odd number of calls for each case.
 *
 *   fastpath            all cases
 *   fastpath pairs N    N untouched pairs of 2 MiB, and nothing else
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define CALLS 51
#define PAGE  4096UL
#define KIB   (1UL << 10)
#define MIB   (1UL << 20)
#define GIB   (1UL << 30)

/* A call and its cost. */
static long timed(long nr, long a, long b, long c, long d, uint64_t *cost)
{
    register long x8 __asm__("x8") = nr;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = -1;
    register long x5 __asm__("x5") = 0;
    uint64_t before, after;

    __asm__ volatile(
        "isb\n\tmrs %0, cntvct_el0\n\tsvc #0\n\tisb\n\tmrs %1, cntvct_el0"
        : "=&r"(before), "=&r"(after), "+r"(x0)
        : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
        : "memory");
    *cost = after - before;
    return x0;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *) a, y = *(const uint64_t *) b;

    return x < y ? -1 : x > y;
}

static uint64_t median(uint64_t *cost)
{
    qsort(cost, CALLS, sizeof *cost, compare);
    return cost[CALLS / 2];
}

static char *map(size_t len, uint64_t *cost)
{
    long p = timed(SYS_mmap, 0, (long) len, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, cost);

    if (p < 0) {
        fprintf(stderr, "mmap: %s\n", strerror((int) -p));
        exit(2);
    }
    return (char *) p;
}

static void unmap(char *p, size_t len, uint64_t *cost)
{
    long error = timed(SYS_munmap, (long) p, (long) len, 0, 0, cost);

    if (error) {
        fprintf(stderr, "munmap: %s\n", strerror((int) -error));
        exit(2);
    }
}

/* Map, write to a byte every `step` (0: none), unmap; parts > 1: unmap the
 * mapping in so many parts, and count the last. */
static void measure(const char *name, size_t len, size_t step)
{
    uint64_t mapping[CALLS], unmapping[CALLS];

    for (int i = 0; i < CALLS; i++) {
        volatile char *p = map(len, &mapping[i]);

        for (size_t j = 0; step && j < len; j += step)
            p[j] = 1;
        unmap((char *) p, len, &unmapping[i]);
    }
    printf("%s mmap=%" PRIu64 " munmap=%" PRIu64 "\n", name, median(mapping),
           median(unmapping));
}

static void pairs(long n)
{
    uint64_t before, after, cost;

    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(before)::"memory");
    for (long i = 0; i < n; i++)
        unmap(map(2 * MIB, &cost), 2 * MIB, &cost);
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(after)::"memory");
    printf("pairs cost=%.1f\n", (double) (after - before) / n);
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "pairs") == 0) {
        pairs(atol(argv[2]));
        return 0;
    }
    measure("untouched-4K", PAGE, 0);
    measure("untouched-256K", 256 * KIB, 0);
    measure("untouched-2M", 2 * MIB, 0);
    measure("untouched-1G", GIB, 0);
    measure("untouched-32G", 32 * GIB, 0);
    measure("one-4K", PAGE, PAGE);
    measure("one-256K", 256 * KIB, 256 * KIB);
    measure("one-1G", GIB, GIB);
    measure("all-256K", 256 * KIB, PAGE);
    measure("all-2M", 2 * MIB, PAGE);
    return 0;
}
