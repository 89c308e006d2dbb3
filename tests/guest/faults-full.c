/* SPDX-License-Identifier: Apache-2.0 */
/* With all VMAs used up, calls that replace or split fail whole. */
#include "mem.h"

int main(void)
{
    probe_open();
    enum { PAGES = 70000 };
    char *p = sys_mmap(NULL, PAGES * PAGE, PROT_NONE, LAZY, -1, 0);
    char *live = map_rw(8 * PAGE), *other = map_rw(4 * PAGE);
    need(GOOD(p), "mmap");
    memset(live, 5, 8 * PAGE);
    memset(other, 6, 4 * PAGE);
    int fd = file_make(4 * PAGE);
    size_t i = 1;
    while (i < PAGES && sys_mprotect(p + i * PAGE, PAGE, RW) == 0)
        i += 2;
    need(i < PAGES, "limit of VMAs");
    /* Use up the last one as well, in case one is left. */
    sys_mprotect(p + (i + 1) * PAGE, (PAGES - i - 1) * PAGE, PROT_READ);
    fails(sys_mmap(live + PAGE, PAGE, PROT_READ, ANON | MAP_FIXED, -1, 0),
          ENOMEM, "fixed map in the middle of a live mapping");
    fails(sys_mmap(live + PAGE, PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0),
          ENOMEM, "the same with a file");
    fails(sys_mremap(other, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
                     live + 2 * PAGE),
          ENOMEM, "fixed move into it");
    fails(sys_munmap(live + PAGE, PAGE), ENOMEM, "munmap of its middle");
    fails(sys_mprotect(live + PAGE, PAGE, PROT_READ), ENOMEM,
          "mprotect of its middle");
    fails(sys_madvise(live + PAGE, PAGE, MADV_DONTFORK) == 0
              ? 0
              : (errno = errno == EAGAIN ? ENOMEM : errno, -1),
          ENOMEM, "madvise that would split it");
    fails(mlock(live + PAGE, PAGE), ENOMEM, "mlock that would split it");
    ok(all_bytes(live, 5, 8 * PAGE), "it has kept its content");
    ok(all_bytes(other, 6, 4 * PAGE), "so has what was to move");
    is_str(access_of(live + PAGE), "rw", "and its access");
    need(sys_munmap(p, PAGES * PAGE) == 0, "munmap");
    is(sys_mremap(other, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
                  live + 2 * PAGE),
       live + 2 * PAGE, "with room again the move works");
    ok(all_bytes(live, 5, 2 * PAGE) && all_bytes(live + 2 * PAGE, 6, 4 * PAGE),
       "and moves exactly that");
    close(fd);
    return tap_done();
}
