/* SPDX-License-Identifier: Apache-2.0 */
/* As many VMAs as Linux allows; then ENOMEM, with nothing changed. */
#include "mem.h"

#define PAGES 70000UL

int main(void)
{
    probe_open();
    char *p = sys_mmap(NULL, PAGES * PAGE, PROT_NONE, LAZY, -1, 0);
    need(GOOD(p), "mmap");
    long before = vma_count();
    size_t i = 1;
    while (i < PAGES && sys_mprotect(p + i * PAGE, PAGE, RW) == 0)
        i += 2;
    fails(i < PAGES ? -1 : 0, ENOMEM, "mprotect splits until ENOMEM");
    long full = vma_count();
    ok(full >= 65528 && full <= 65532, "there are about 65,530 of them");
    /* The last one may have split once before it failed. */
    long extra = full - before - (long) (i - 1);
    ok(extra == 0 || extra == 1, "each split has added two");
    is_str(access_of(p + i * PAGE), "--",
           "the one that failed has opened nothing");
    fails(sys_mprotect(p + (i + 8) * PAGE, PAGE, RW), ENOMEM,
          "nor does another");
    fails(sys_munmap(p + (i + 8) * PAGE, PAGE), ENOMEM,
          "munmap in the middle of one");
    is_str(layout(p + (i + 7) * PAGE, 3), "---p:3", "changes nothing");
    is(vma_count(), full, "the number is the same");
    bool good = true;
    for (size_t k = 1; k < i; k += 2)
        p[k * PAGE] = k % 127;
    for (size_t k = 1; k < i; k += 2)
        good &= p[k * PAGE] == (char) (k % 127);
    ok(good, "every page of them works");
    is(sys_munmap(p + PAGE, PAGE), 0, "munmap of a whole one works");
    is(sys_mprotect(p + 3 * PAGE, PAGE, PROT_NONE), 0, "so does merging");
    is(sys_mprotect(p + 3 * PAGE, PAGE, RW), 0, "and splitting again");
    is(p[3 * PAGE], 3, "with its content");
    is(sys_munmap(p, PAGES * PAGE), 0, "munmap of everything");
    is(vma_count(), before - 1, "leaves none");
    char *q = map_rw(PAGE);
    ok(GOOD(q) && *q == 0, "and new mappings work");
    return tap_done();
}
