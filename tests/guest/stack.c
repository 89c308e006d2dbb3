/* SPDX-License-Identifier: Apache-2.0 */
/* The stack: what the kernel puts there, how it grows, where it stops. */
#include "mem.h"

#include <alloca.h>
#include <elf.h>
#include <sys/auxv.h>

static char **the_argv;
static int the_argc;

static const Elf64_auxv_t *auxv_start(void)
{
    char **p = the_argv + the_argc + 1;
    while (*p)
        p++;
    return (const Elf64_auxv_t *) (p + 1);
}

static const char *after(const char *s)
{
    return s + strlen(s) + 1;
}

static void test_layout(void)
{
    static vma_t v;
    need(vma_named("[stack]", &v), "[stack]");
    long *argc = (long *) the_argv - 1;
    is(*argc, the_argc, "argc is just below argv");
    is((uintptr_t) argc % 16, 0, "and on a 16-byte border");
    is(the_argv[the_argc], 0, "argv ends with NULL");
    is(environ, the_argv + the_argc + 1, "envp follows at once");
    const char *s = the_argv[0];
    bool order = true;
    for (int i = 0; i < the_argc; i++, s = after(s))
        order &= the_argv[i] == s;
    ok(order, "argument strings follow each other");
    is(environ[0], s, "the environment's strings follow them");
    for (int i = 0; environ[i]; i++, s = after(s))
        order &= environ[i] == s;
    ok(order, "and each other");
    const char *fn = (const char *) getauxval(AT_EXECFN);
    is(fn, s, "the file name follows them");
    is((uintptr_t) after(fn) + 8, v.end, "8 bytes below the stack's top");
    ok(all_bytes(after(fn), 0, 8), "which are zero");

    const Elf64_auxv_t *a = auxv_start();
    while (a->a_type != AT_NULL)
        a++;
    const char *rnd = (const char *) getauxval(AT_RANDOM);
    const char *platform = (const char *) getauxval(AT_PLATFORM);
    ok(rnd >= (const char *) (a + 1) && rnd + 16 <= the_argv[0],
       "AT_RANDOM lies between auxv and the strings");
    ok(!all_bytes(rnd, 0, 16), "and is not all zero");
    ok(platform > (const char *) a && platform < the_argv[0],
       "so does AT_PLATFORM");
    is_str(platform, "aarch64", "AT_PLATFORM");
    is_str(v.perms, "rw-p", "the stack is not executable");
}

__attribute__((noinline)) static char deep_alloca(size_t len)
{
    /* cppcheck-suppress allocaCalled ; a frame that is not touched at once is
     * what this is about */
    volatile char *p = alloca(len);
    for (size_t i = len; i >= PAGE; i -= PAGE)
        p[i - 1] = 1;
    return p[len - 1];
}

__attribute__((noinline)) static int recurse(int n)
{
    volatile char frame[2000];
    frame[0] = frame[1999] = n % 100;
    int below = n ? recurse(n - 1) : 0;
    return below + (frame[0] == n % 100) + (frame[1999] == n % 100);
}

static void test_growth(void)
{
    static vma_t v, w;
    need(vma_named("[stack]", &v), "[stack]");
    is(deep_alloca(MIB), 1, "grow by 1 MiB, a page at a time");
    need(vma_named("[stack]", &w), "[stack]");
    ok(w.start <= v.end - MIB && w.end == v.end, "maps shows it");
    is(recurse(2000), 4002, "4 MiB of frames");
    char *p = (char *) v.end - 6 * MIB;
    *(volatile char *) p = 3;
    is(p[0], 3, "a store 6 MiB below the top");
    ok(all_bytes(p + 1, 0, PAGE - 1), "finds zero around it");
    need(vma_named("[stack]", &w), "[stack]");
    is(w.start, (uintptr_t) p & -PAGE, "and the stack starts there");
    is_str(layout(p, 6 * MIB / PAGE), "rw-p:1536", "as one mapping");
    p = (char *) v.end - 7 * MIB;
    is(access_of(p)[1], 'w', "a system call grows it too");
    need(vma_named("[stack]", &w), "[stack]");
    is(w.start, (uintptr_t) p & -PAGE, "to where it wrote");
}

static void test_limit(void)
{
    static vma_t v;
    struct rlimit old;
    need(getrlimit(RLIMIT_STACK, &old) == 0, "getrlimit");
    need(vma_named("[stack]", &v), "[stack]");
    char *top = (char *) v.end;
    is(old.rlim_cur, 8 * MIB, "the limit is 8 MiB");
    ok(!can_write(top - 9 * MIB), "beyond it nothing grows");
    limit_set(RLIMIT_STACK, 12 * MIB);
    ok(can_write(top - 9 * MIB), "with a higher limit it does");
    limit_set(RLIMIT_STACK, 10 * MIB);
    ok(!can_write(top - 11 * MIB), "and not beyond a lower one");
    ok(can_write(top - 9 * MIB), "what has grown stays");
    limit_set(RLIMIT_STACK, old.rlim_cur);
}

static void test_gap(void)
{
    static vma_t v;
    struct rlimit old;
    need(getrlimit(RLIMIT_STACK, &old) == 0, "getrlimit");
    limit_set(RLIMIT_STACK, 64 * MIB);
    need(vma_named("[stack]", &v), "[stack]");
    char *start = (char *) v.start;
    char *p =
        sys_mmap(start - 4 * MIB, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0);
    is(p, start - 4 * MIB, "a mapping 4 MiB below the stack");
    ok(can_write(p + PAGE + MIB), "the stack grows to 1 MiB above it");
    ok(!can_write(p + PAGE + MIB - 64 * KIB), "and no nearer");
    ok(!can_write(p + PAGE), "nor right above it");
    is(sys_munmap(p, PAGE), 0, "take it away");
    ok(can_write(p + PAGE + MIB - 64 * KIB), "then it grows there");
    p = sys_mmap((void *) (((uintptr_t) p - MIB) & -PAGE), PAGE, PROT_NONE,
                 ANON | MAP_FIXED_NOREPLACE, -1, 0);
    ok(GOOD(p), "PROT_NONE below the stack");
    ok(can_write(p + 2 * PAGE), "the stack grows next to PROT_NONE");
    ok(!can_write(p), "but not over it");
    sys_munmap(p, PAGE);
    limit_set(RLIMIT_STACK, old.rlim_cur);
}

static void test_unmap(void)
{
    static vma_t v;
    need(vma_named("[stack]", &v), "[stack]");
    char *p = (char *) v.start;
    memset(p, 1, 4 * PAGE);
    is(sys_mprotect(p, PAGE, PROT_READ), 0, "mprotect of its lowest page");
    is_str(access_of(p), "r-", "works");
    is(sys_munmap(p + PAGE, PAGE), 0, "munmap of the page above");
    is_str(layout(p, 4), "r--p:1 hole:1 rw-p:2", "makes a hole");
    ok(all_bytes(p + 2 * PAGE, 1, 2 * PAGE), "above it the content is there");
    is(sys_mprotect(p + 2 * PAGE, PAGE, PROT_READ | PROT_GROWSDOWN), 0,
       "mprotect with growsdown");
    is(sys_mprotect(p + 2 * PAGE, PAGE, RW | PROT_GROWSDOWN), 0, "and back");
}

int main(int argc, char **argv)
{
    the_argc = argc;
    the_argv = argv;
    probe_open();
    test_layout();
    test_growth();
    test_limit();
    test_gap();
    test_unmap();
    return tap_done();
}
