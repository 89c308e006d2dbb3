/* SPDX-License-Identifier: Apache-2.0 */
/* Changes by way of /proc/self/exe reach the program that runs, no other. */
#include "mem.h"

#include <sys/stat.h>

#define LINK "/proc/self/exe"

static char exe[4096];

static struct stat stat_of_exe(void)
{
    struct stat st = {.st_mode = 0};

    need(stat(exe, &st) == 0, "stat");
    return st;
}

static void test_mode(void)
{
    mode_t mode = stat_of_exe().st_mode & 07777;

    is(chmod(LINK, 0711), 0, "chmod: through the link");
    is(stat_of_exe().st_mode & 07777, 0711, "chmod: is the program's");
    is(symlink(LINK, "exe-change.link"), 0, "chmod: a link to the link");
    is(chmod("exe-change.link", 0755), 0, "chmod: through both");
    is(stat_of_exe().st_mode & 07777, 0755, "chmod: is the program's again");
    is(unlink("exe-change.link"), 0, "chmod: the first link goes");
    is(chmod(exe, mode), 0, "chmod: back");
}

static void test_owner_and_times(void)
{
    struct stat old = stat_of_exe();
    struct timespec times[2] = {{1000, 1}, {2000, 2}};

    is(chown(LINK, 7, 8), 0, "chown: through the link");
    is(stat_of_exe().st_uid, 7, "chown: is the program's");
    is(chown(exe, old.st_uid, old.st_gid), 0, "chown: back");
    is(utimensat(AT_FDCWD, LINK, times, 0), 0, "times: through the link");
    is(stat_of_exe().st_mtim.tv_sec, 2000, "times: are the program's");
}

static void test_busy(void)
{
    fails(truncate(LINK, 0), ETXTBSY, "truncate: it runs");
    fails(open(LINK, O_WRONLY), ETXTBSY, "open for writing: it runs");
    fails(open(LINK, O_RDWR | O_TRUNC), ETXTBSY, "open with O_TRUNC: it runs");
    ok(stat_of_exe().st_size > 0, "busy: nothing is lost");
}

int main(void)
{
    ssize_t n = readlink(LINK, exe, sizeof exe - 1);

    need(n > 0, "readlink");
    test_mode();
    test_owner_and_times();
    test_busy();
    return tap_done();
}
