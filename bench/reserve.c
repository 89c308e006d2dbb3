/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sparse reservation: SIZE GiB of address space of which a few pages are
 * touched. Prints the address space it has, waits for a line on standard input
 * twice (before the reservation and with it), so that its cost can be looked at
 * from outside, and then gives it back.
 *
 *   reserve [GIB [PAGES]]
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define GIB (1UL << 30)

static void wait_line(const char *what)
{
    char line[80];
    printf("%s\n", what);
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) {
        fprintf(stderr, "reserve: end of input\n");
        exit(2);
    }
}

static size_t number(const char *text)
{
    char *end;
    size_t n = strtoul(text, &end, 10);
    if (*end || n == 0) {
        fprintf(stderr, "usage: reserve [GIB [PAGES]]\n");
        exit(2);
    }
    return n;
}

int main(int argc, char **argv)
{
    size_t len = (argc > 1 ? number(argv[1]) : 1024) * GIB;
    size_t pages = argc > 2 ? number(argv[2]) : 10;

    wait_line("started");
    char *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) {
        perror("reserve: mmap");
        return 2;
    }
    for (size_t i = 0; i < pages; i++)
        p[len / pages * i] = (char) (i + 1);
    for (size_t i = 0; i < pages; i++) {
        if (p[len / pages * i] != (char) (i + 1) || p[len / pages * i + 1]) {
            fprintf(stderr, "reserve: page %zu reads wrong\n", i);
            return 1;
        }
    }
    wait_line("reserved");
    if (munmap(p, len) != 0) {
        perror("reserve: munmap");
        return 2;
    }
    return 0;
}
