/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings of memfds, /dev/zero, unlinked and special files. */
#include "mem.h"

static void test_memfd(void)
{
    int fd = memfd_create("guest", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    need(fd >= 0, "memfd_create");
    need(ftruncate(fd, 4 * PAGE) == 0, "ftruncate");
    char *p = sys_mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0);
    ok(GOOD(p) && all_bytes(p, 0, 4 * PAGE), "memfd: zero");
    memset(p, 'm', 4 * PAGE);
    is(file_byte(fd, 3 * PAGE), 'm', "memfd: a store is seen by pread");
    fails(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), EBUSY,
          "memfd: no write seal while mapped writable");
    is(sys_munmap(p, 4 * PAGE), 0, "memfd: munmap");
    is(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0, "memfd: the seal afterwards");
    fails(sys_mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0), EPERM,
          "memfd: sealed, no writable mapping");
    p = sys_mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    ok(GOOD(p) && p[0] == 'm', "memfd: sealed, readable");
    fails(sys_mprotect(p, PAGE, RW), EACCES, "memfd: sealed, stays readable");
    p = sys_mmap(NULL, PAGE, RW, MAP_PRIVATE, fd, 0);
    ok(GOOD(p), "memfd: sealed, private writable");
    p[0] = 'x';
    is(file_byte(fd, 0), 'm', "memfd: not in the file");
    close(fd);
}

static void test_zero(void)
{
    int fd = open("/dev/zero", O_RDWR);
    need(fd >= 0, "open of /dev/zero");
    char *p = sys_mmap(NULL, 4 * PAGE, RW, MAP_PRIVATE, fd, 0);
    ok(GOOD(p) && all_bytes(p, 0, 4 * PAGE), "zero: private is zero");
    memset(p, 1, 4 * PAGE);
    ok(all_bytes(p, 1, 4 * PAGE), "zero: private keeps what is put");
    char *s = sys_mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0);
    ok(GOOD(s) && all_bytes(s, 0, 4 * PAGE), "zero: shared is zero");
    memset(s, 2, 4 * PAGE);
    char *t = sys_mmap(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0);
    ok(GOOD(t) && all_bytes(t, 0, 4 * PAGE), "zero: another shared is its own");
    is(sys_madvise(p, PAGE, MADV_DONTNEED), 0, "zero: DONTNEED of private");
    ok(all_bytes(p, 0, PAGE), "zero: private is zero again");
    is(sys_madvise(s, PAGE, MADV_DONTNEED), 0, "zero: DONTNEED of shared");
    ok(all_bytes(s, 2, PAGE), "zero: shared keeps");
    char *q = sys_mremap(p, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE, NULL);
    ok(GOOD(q) && q[PAGE] == 1 && q[7 * PAGE] == 0, "zero: private grows");
    close(fd);
    is(sys_munmap(s, 4 * PAGE), 0, "zero: munmap");
}

static void test_shared_anonymous(void)
{
    char *p = sys_mmap(NULL, 3 * BLOCK, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    need(GOOD(p), "mmap");
    bool zero = true;
    for (size_t i = 0; i < 3 * BLOCK; i += PAGE)
        zero &= p[i] == 0;
    ok(zero, "shared anonymous: 6 MiB of zero");
    for (size_t i = 0; i < 3 * BLOCK; i += PAGE)
        p[i] = i / PAGE % 100 + 1;
    need(sys_mprotect(p, 3 * BLOCK, PROT_NONE) == 0, "mprotect");
    need(sys_mprotect(p, 3 * BLOCK, PROT_READ) == 0, "mprotect");
    bool kept = true;
    for (size_t i = 0; i < 3 * BLOCK; i += PAGE)
        kept &= p[i] == (char) (i / PAGE % 100 + 1);
    ok(kept, "shared anonymous: content over mprotect");
    char *q = sys_mremap(p + BLOCK, BLOCK, BLOCK, MREMAP_MAYMOVE | MREMAP_FIXED,
                         map_hole(BLOCK));
    ok(GOOD(q) && q[PAGE] == (char) ((BLOCK / PAGE + 1) % 100 + 1),
       "shared anonymous: moved with content");
    static vma_t v;
    ok(vma_find(p, &v) && strncmp(v.name, "/dev/zero", 9) == 0,
       "shared anonymous: /dev/zero (deleted) in maps");
    sys_munmap(p, 3 * BLOCK);
}

static void test_names(void)
{
    char path[256], want[300];
    const char *dir = getenv("TMPDIR");
    static vma_t v;
    snprintf(path, sizeof path, "%s/guest.map.%d", dir ? dir : "/tmp",
             getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    need(fd >= 0 && ftruncate(fd, 2 * PAGE) == 0, "file");
    char *p = sys_mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, PAGE);
    ok(vma_find(p, &v), "names: the mapping is in maps");
    is_str(v.name, path, "names: with the file's path");
    is(v.offset, PAGE, "names: and its offset");
    struct stat st;
    ok(fstat(fd, &st) == 0 && st.st_ino == v.inode, "names: and its inode");
    need(unlink(path) == 0, "unlink");
    snprintf(want, sizeof want, "%s (deleted)", path);
    ok(vma_find(p, &v), "names: after unlink it is still there");
    is_str(v.name, want, "names: and said to be deleted");
    close(fd);
    is(p[0], 0, "names: and readable");
    sys_munmap(p, PAGE);
    fd = open("/proc/self/exe", O_RDONLY);
    p = sys_mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    ok(GOOD(p) && memcmp(p, "\177ELF", 4) == 0, "names: own program mapped");
    fails(open("/proc/self/exe", O_RDWR), ETXTBSY, "names: is busy");
    close(fd);
}

static void test_locked_sync(void)
{
    int fd = file_make(4 * PAGE);
    char *p = sys_mmap(NULL, 4 * PAGE, RW, MAP_SHARED | MAP_POPULATE, fd, 0);
    ok(GOOD(p), "populate of a file");
    is_str(present(p, 4), "1111", "it is present");
    is(mlock(p, 4 * PAGE), 0, "mlock of a file mapping");
    is(sys_madvise(p, PAGE, MADV_REMOVE), -1, "REMOVE of a locked one fails");
    munlock(p, 4 * PAGE);
    is(sys_madvise(p + PAGE, PAGE, MADV_REMOVE), 0, "REMOVE punches a hole");
    is(file_byte(fd, PAGE), 0, "in the file");
    is(fallocate(fd, 3, 2 * PAGE, PAGE), 0, "fallocate punches another");
    is(p[2 * PAGE], 0, "seen in the mapping");
    close(fd);
}

int main(void)
{
    probe_open();
    test_memfd();
    test_zero();
    test_shared_anonymous();
    test_names();
    test_locked_sync();
    return tap_done();
}
