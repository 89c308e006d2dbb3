/* SPDX-License-Identifier: Apache-2.0 */
/* mmap: its errors, and which of two comes first. */
#include "mem.h"

static void test_length(void)
{
    fails(sys_mmap(NULL, 0, RW, ANON, -1, 0), EINVAL, "length 0");
    fails(sys_mmap(NULL, -1UL, RW, ANON, -1, 0), ENOMEM,
          "length ~0 rounds to 0");
    fails(sys_mmap(NULL, -PAGE, RW, ANON, -1, 0), ENOMEM, "length -4096");
    fails(sys_mmap(NULL, TOP, RW, LAZY, -1, 0), ENOMEM,
          "length of the whole address space");
    fails(sys_mmap(NULL, 1UL << 62, PROT_NONE, LAZY, -1, 0), ENOMEM,
          "length 2^62");
    int fd = file_make(PAGE);
    fails(sys_mmap(NULL, 0, RW, MAP_PRIVATE, fd, 0), EINVAL,
          "length 0 of a file");
    fails(sys_mmap(NULL, 2 * PAGE, RW, MAP_PRIVATE, fd, -PAGE), EOVERFLOW,
          "offset plus length wraps");
    fails(sys_mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, LONG_MIN), EOVERFLOW,
          "offset beyond what the file system can hold");
    char *p = sys_mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 1L << 40);
    ok(GOOD(p), "offset beyond the end of the file is no error");
    is_str(access_of(p), "--", "but the page cannot be used");
    sys_munmap(p, PAGE);
    close(fd);
}

static void test_alignment(void)
{
    int fd = file_make(4 * PAGE);
    fails(sys_mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 1), EINVAL, "offset 1");
    fails(sys_mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 2048), EINVAL,
          "offset 2048");
    fails(sys_mmap(NULL, PAGE, RW, ANON, -1, 1), EINVAL,
          "offset 1 of anonymous memory");
    char *p = map_rw(4 * PAGE);
    fails(sys_mmap(p + 1, PAGE, RW, ANON | MAP_FIXED, -1, 0), EINVAL,
          "fixed at an unaligned address");
    fails(sys_mmap(p + 2048, PAGE, RW, ANON | MAP_FIXED, -1, 0), EINVAL,
          "fixed in the middle of a page");
    is_str(layout(p, 4), "rw-p:4", "nothing changed");
    close(fd);
}

static void test_type(void)
{
    int fd = file_make(PAGE);
    fails(sys_mmap(NULL, PAGE, RW, MAP_ANONYMOUS, -1, 0), EINVAL,
          "anonymous of neither kind");
    fails(sys_mmap(NULL, PAGE, RW, 0, fd, 0), EINVAL, "file of neither kind");
    fails(sys_mmap(NULL, PAGE, RW, MAP_ANONYMOUS | 0x4, -1, 0), EINVAL,
          "type 4");
    fails(sys_mmap(NULL, PAGE, RW, 0xf, fd, 0), EINVAL, "type 15 of a file");
    close(fd);
}

static void test_descriptors(void)
{
    int pair[2];
    fails(sys_mmap(NULL, PAGE, RW, MAP_PRIVATE, -1, 0), EBADF, "descriptor -1");
    fails(sys_mmap(NULL, PAGE, RW, MAP_PRIVATE, 9999, 0), EBADF,
          "descriptor that is not open");
    fails(sys_mmap(NULL, PAGE, RW, MAP_SHARED, 9999, 0), EBADF,
          "the same, shared");
    need(pipe(pair) == 0, "pipe");
    fails(sys_mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, pair[0], 0), ENODEV,
          "a pipe");
    fails(sys_mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, pair[1], 0), EACCES,
          "a pipe's writing end");
    int fd = open("/", O_RDONLY | O_DIRECTORY);
    fails(sys_mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0), ENODEV,
          "a directory");
    close(fd);
    fd = open("/", O_PATH);
    fails(sys_mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0), EBADF,
          "an O_PATH descriptor");
    close(fd);
    fd = open("/dev/null", O_RDWR);
    fails(sys_mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0), ENODEV,
          "/dev/null");
    close(fd);
}

static int reopen(int fd, int flags)
{
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    int again = open(name, flags);
    need(again >= 0, "open of /proc/self/fd/N");
    return again;
}

static void test_modes(void)
{
    int fd = file_make(PAGE);
    int r = reopen(fd, O_RDONLY), w = reopen(fd, O_WRONLY);
    fails(sys_mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, w, 0), EACCES,
          "write-only, private read");
    fails(sys_mmap(NULL, PAGE, PROT_READ, MAP_SHARED, w, 0), EACCES,
          "write-only, shared read");
    fails(sys_mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, w, 0), EACCES,
          "write-only, shared write");
    fails(sys_mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE, w, 0), EACCES,
          "write-only, no access at all");
    fails(sys_mmap(NULL, PAGE, RW, MAP_SHARED, r, 0), EACCES,
          "read-only, shared write");
    char *p = sys_mmap(NULL, PAGE, RW, MAP_PRIVATE, r, 0);
    ok(GOOD(p), "read-only, private write");
    p[0] = 'x';
    is(file_byte(fd, 0), 'A', "which does not reach the file");
    sys_munmap(p, PAGE);
    p = sys_mmap(NULL, PAGE, PROT_READ, MAP_SHARED, r, 0);
    ok(GOOD(p), "read-only, shared read");
    fails(sys_mprotect(p, PAGE, RW), EACCES, "which cannot become writable");
    is_str(layout(p, 1), "r--s:1", "and stays as it was");
    sys_munmap(p, PAGE);
    p = sys_mmap(NULL, PAGE, PROT_READ, MAP_SHARED_VALIDATE, r, 0);
    ok(GOOD(p), "read-only, shared-validate read");
    fails(sys_mprotect(p, PAGE, RW), EACCES, "which cannot become writable");
    close(fd), close(r), close(w);
}

static void test_order(void)
{
    int fd = file_make(PAGE), w = reopen(fd, O_WRONLY);
    fails(sys_mmap(NULL, 0, RW, MAP_PRIVATE, 9999, 0), EBADF,
          "bad descriptor before length 0");
    fails(sys_mmap(NULL, 0, RW, MAP_PRIVATE, 9999, 1), EINVAL,
          "unaligned offset before a bad descriptor");
    fails(sys_mmap(NULL, 0, RW, 0, fd, 0), EINVAL, "length 0, no type");
    fails(sys_mmap(NULL, -1UL, RW, MAP_ANONYMOUS, -1, 0), ENOMEM,
          "length ~0 before no type");
    fails(sys_mmap(NULL, -1UL, RW, MAP_PRIVATE, w, 0), ENOMEM,
          "length ~0 before the mode of the file");
    fails(sys_mmap((void *) 1, -1UL, RW, ANON | MAP_FIXED, -1, 0), ENOMEM,
          "length ~0 before an unaligned fixed address");
    fails(sys_mmap((void *) 1, PAGE, RW, MAP_ANONYMOUS | MAP_FIXED, -1, 0),
          EINVAL, "unaligned fixed address and no type");
    fails(sys_mmap((void *) TOP, PAGE, RW, MAP_PRIVATE | MAP_FIXED, w, 0),
          ENOMEM, "address beyond user space before the mode of the file");
    fails(sys_mmap((void *) (TOP + 1), PAGE, RW, ANON | MAP_FIXED, -1, 0),
          ENOMEM, "beyond user space before unaligned");
    fails(sys_mmap((void *) 1, PAGE, RW, MAP_PRIVATE | MAP_FIXED, w, 0), EINVAL,
          "unaligned fixed address before the mode of the file");
    fails(sys_mmap(NULL, PAGE, RW, MAP_PRIVATE | MAP_HUGETLB, 9999, 0), EBADF,
          "hugetlb: bad descriptor first");
    close(fd), close(w);
}

static void test_addresses(void)
{
    static const struct {
        unsigned long addr;
        const char *name;
    } bad[] = {
        {TOP, "fixed at 2^52"},
        {TOP - PAGE, "fixed, second page at 2^52"},
        {1UL << 55, "fixed at 2^55"},
        {0xffff000000000000UL, "fixed at the kernel's first address"},
        {0xffffffffffffe000UL, "fixed near the top"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        fails(sys_mmap((void *) bad[i].addr, 2 * PAGE, RW, ANON | MAP_FIXED, -1,
                       0),
              ENOMEM, bad[i].name);
    char *p = sys_mmap((void *) TOP, PAGE, RW, ANON, -1, 0);
    ok(GOOD(p), "a hint at 2^52 is only a hint");
    ok((uintptr_t) p < TOP, "and gives an address in user space");
    sys_munmap(p, PAGE);
    p = sys_mmap((void *) -PAGE, PAGE, RW, ANON, -1, 0);
    ok(GOOD(p), "a hint at the top is only a hint");
    sys_munmap(p, PAGE);
    /* A tag in the top byte is not stripped from a fixed address. */
    p = map_rw(PAGE);
    fails(sys_mmap((void *) ((uintptr_t) p | 1UL << 56), PAGE, RW,
                   ANON | MAP_FIXED, -1, 0),
          ENOMEM, "a tagged fixed address is out of range");
    sys_munmap(p, PAGE);
}

int main(void)
{
    test_length();
    test_alignment();
    test_type();
    test_descriptors();
    test_modes();
    test_order();
    test_addresses();
    return tap_done();
}
