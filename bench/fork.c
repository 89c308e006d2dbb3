/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cost of fork, exec and posix_spawn, until the child is reaped:
 *
 *     fork MIB ROUNDS     with so much memory touched, "fork NS"
 *     fork exec ROUNDS    fork and exec of itself, "exec NS"
 *     fork spawn ROUNDS   posix_spawn of itself, "spawn NS"
 *
 * NS is of the monotonic clock, which in a machine started with --icount is the
 * number of instructions.
 */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

static void check(int good, const char *what)
{
    if (good)
        return;
    perror(what);
    exit(1);
}

static void one(const char *kind, char *self)
{
    char *argv[] = {self, "child", NULL};
    pid_t pid;
    int status;

    if (strcmp(kind, "spawn") == 0) {
        check(posix_spawn(&pid, self, NULL, NULL, argv, environ) == 0, "spawn");
    } else {
        pid = fork();
        check(pid >= 0, "fork");
        if (pid == 0) {
            if (strcmp(kind, "exec") == 0)
                execv(self, argv);
            _exit(0);
        }
    }
    check(waitpid(pid, &status, 0) == pid && status == 0, "child");
}

int main(int argc, char **argv)
{
    if (argc == 2)
        return 0;
    if (argc != 3)
        return 2;
    int rounds = atoi(argv[2]);
    size_t size = (size_t) atoi(argv[1]) << 20;
    if (size > 0) {
        char *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        check(p != MAP_FAILED, "mmap");
        memset(p, 1, size);
    }
    one(argv[1], argv[0]); /* warm */
    long start = now();
    for (int i = 0; i < rounds; i++)
        one(argv[1], argv[0]);
    printf("%s %ld\n", argv[1], (now() - start) / rounds);
    return 0;
}
