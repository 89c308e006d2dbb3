/* SPDX-License-Identifier: Apache-2.0 */
/* RLIMIT_AS and RLIMIT_DATA as mmap, mprotect and mremap meet them. */
#include "mem.h"

static unsigned long size_now(void)
{
    char *line;
    lines_open(&mem_lines, "/proc/self/statm");
    line = lines_next(&mem_lines);
    need(line, "statm");
    lines_close(&mem_lines);
    return strtoul(line, NULL, 10) * PAGE;
}

static void test_as(void)
{
    struct rlimit old;
    need(getrlimit(RLIMIT_AS, &old) == 0, "getrlimit");
    limit_set(RLIMIT_AS, size_now() + 4 * MIB);
    fails(sys_mmap(NULL, 4 * MIB + PAGE, RW, ANON, -1, 0), ENOMEM,
          "AS: one page more than is left");
    char *p = sys_mmap(NULL, 4 * MIB, RW, ANON, -1, 0);
    ok(GOOD(p), "AS: exactly what is left");
    fails(sys_mmap(NULL, PAGE, PROT_NONE, LAZY, -1, 0), ENOMEM,
          "AS: PROT_NONE counts too");
    fails(sys_mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0), ENOMEM,
          "AS: shared memory counts too");
    is(sys_mmap(p + PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0), p + PAGE,
       "AS: replacing is no growth");
    is(sys_munmap(p, MIB), 0, "AS: give one MiB back");
    char *q = sys_mmap(NULL, MIB, PROT_READ, ANON, -1, 0);
    ok(GOOD(q), "AS: and use it for something else");
    fails(sys_mremap(q, MIB, 2 * MIB, MREMAP_MAYMOVE, NULL), ENOMEM,
          "AS: mremap cannot grow");
    fails(sbrk(2 * MIB) == (void *) -1 ? -1 : 0, ENOMEM, "AS: brk neither");
    is(sys_mprotect(p + MIB, PAGE, PROT_NONE), 0, "AS: mprotect is no growth");
    limit_set(RLIMIT_AS, MIB);
    fails(sys_mmap(NULL, PAGE, RW, ANON, -1, 0), ENOMEM,
          "AS: a limit below what is in use");
    is(sys_munmap(q, MIB), 0, "AS: munmap works there");
    limit_set(RLIMIT_AS, old.rlim_cur);
    ok(GOOD(sys_mmap(NULL, 64 * MIB, RW, ANON, -1, 0)), "AS: lifted again");
    sys_munmap(p, 4 * MIB);
}

static void test_data(void)
{
    struct rlimit old;
    need(getrlimit(RLIMIT_DATA, &old) == 0, "getrlimit");
    char *ro = sys_mmap(NULL, MIB, PROT_READ, ANON, -1, 0);
    need(GOOD(ro), "mmap");
    limit_set(RLIMIT_DATA, 0);
    ok(GOOD(sys_mmap(NULL, PAGE, RW, ANON, -1, 0)),
       "DATA: a limit of 0 is none for mmap");
    limit_set(RLIMIT_DATA, PAGE);
    fails(sys_mmap(NULL, PAGE, RW, ANON, -1, 0), ENOMEM,
          "DATA: private writable memory counts");
    fails(sys_mmap(NULL, PAGE, RW, LAZY, -1, 0), ENOMEM,
          "DATA: also without reserve");
    ok(GOOD(sys_mmap(NULL, PAGE, PROT_READ, ANON, -1, 0)),
       "DATA: read-only does not");
    ok(GOOD(sys_mmap(NULL, PAGE, PROT_NONE, ANON, -1, 0)),
       "DATA: PROT_NONE does not");
    ok(GOOD(sys_mmap(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0)),
       "DATA: shared does not");
    int fd = file_make(PAGE);
    fails(sys_mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 0), ENOMEM,
          "DATA: a private writable file mapping counts");
    ok(GOOD(sys_mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0)),
       "DATA: a shared one does not");
    close(fd);
    fails(sys_mprotect(ro, MIB, RW), ENOMEM,
          "DATA: mprotect to writable counts");
    is_str(layout(ro, 1), "r--p:1", "DATA: and changes nothing");
    limit_set(RLIMIT_DATA, old.rlim_cur);
    is(sys_mprotect(ro, MIB, RW), 0, "DATA: lifted again");
}

static void test_values(void)
{
    struct rlimit lim, back;
    static const int which[] = {RLIMIT_AS, RLIMIT_DATA, RLIMIT_STACK,
                                RLIMIT_MEMLOCK};
    static const char *const what[] = {"AS", "DATA", "STACK", "MEMLOCK"};
    char name[64];
    for (int i = 0; i < 4; i++) {
        need(getrlimit(which[i], &lim) == 0, "getrlimit");
        rlim_t soft = lim.rlim_cur;
        lim.rlim_cur = 1234567;
        snprintf(name, sizeof name, "%s: any value can be set", what[i]);
        is(setrlimit(which[i], &lim), 0, name);
        snprintf(name, sizeof name, "%s: and is what getrlimit tells", what[i]);
        ok(getrlimit(which[i], &back) == 0 && back.rlim_cur == 1234567, name);
        snprintf(name, sizeof name, "%s: and prlimit", what[i]);
        ok(prlimit(0, which[i], NULL, &back) == 0 && back.rlim_cur == 1234567,
           name);
        lim.rlim_cur = soft;
        need(setrlimit(which[i], &lim) == 0, "setrlimit");
        lim.rlim_cur = 2, lim.rlim_max = 1;
        snprintf(name, sizeof name, "%s: soft above hard", what[i]);
        fails(setrlimit(which[i], &lim), EINVAL, name);
    }
    fails(getrlimit(99, &lim), EINVAL, "unknown resource");
    fails(getrlimit(RLIMIT_AS, BAD_PTR), EFAULT, "getrlimit to nowhere");
    fails(setrlimit(RLIMIT_AS, BAD_PTR), EFAULT, "setrlimit from nowhere");
}

int main(void)
{
    test_as();
    test_data();
    test_values();
    return tap_done();
}
