/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/self/smaps tells which pages a fork has left shared. */
#include "mem.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* The kB on the line `label` of the mapping that begins at `page`, or -1. */
static long smaps_kb(const void *page, const char *label)
{
    FILE *in = fopen("/proc/self/smaps", "r");
    char line[512], head[32];
    bool there = false;
    long kb = -1;

    need(in != NULL, "open smaps");
    snprintf(head, sizeof(head), "%08lx-", (unsigned long) page);
    while (kb < 0 && fgets(line, sizeof(line), in)) {
        if (strncmp(line, head, strlen(head)) == 0)
            there = true;
        else if (there && strncmp(line, label, strlen(label)) == 0)
            sscanf(line + strlen(label), "%ld", &kb);
    }
    fclose(in);
    return kb;
}

/* A set of bits: what the child found right. */
static int child(char *page)
{
    int right = 0;

    right |= smaps_kb(page, "Shared_Dirty:") == 4 ? 1 : 0;
    right |= smaps_kb(page, "Private_Dirty:") == 0 ? 2 : 0;
    page[0] = 2;
    right |= smaps_kb(page, "Shared_Dirty:") == 0 ? 4 : 0;
    right |= smaps_kb(page, "Private_Dirty:") == 4 ? 8 : 0;
    return right;
}

int main(void)
{
    char *area =
        mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *page = area + PAGE;
    int status;
    pid_t pid;

    need(area != MAP_FAILED, "mmap");
    need(mprotect(page, PAGE, PROT_READ | PROT_WRITE) == 0, "mprotect");
    page[0] = 1;
    is(smaps_kb(page, "Shared_Dirty:"), 0, "before a fork nothing is shared");
    is(smaps_kb(page, "Private_Dirty:"), 4, "the page is private");
    pid = fork();
    need(pid >= 0, "fork");
    if (pid == 0)
        _exit(child(page));
    need(waitpid(pid, &status, 0) == pid && WIFEXITED(status), "waitpid");
    status = WEXITSTATUS(status);
    is(status & 1, 1, "in the child it is shared");
    is(status & 2, 2, "and not private");
    is(status & 4, 4, "once written no longer shared");
    is(status & 8, 8, "but private");
    is(smaps_kb(page, "Shared_Dirty:"), 0, "afterwards the parent is alone");
    is(page[0], 1, "with its own contents");
    return tap_done();
}
