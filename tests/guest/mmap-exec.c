/* SPDX-License-Identifier: Apache-2.0 */
/* Code in fresh memory: copied, made coherent, executed, replaced. */
#include "mem.h"

typedef int (*func_t)(void);

/* mov w0, #n; ret */
static void put_code(void *to, int n)
{
    uint32_t code[2] = {0x52800000 | (uint32_t) n << 5, 0xd65f03c0};
    memcpy(to, code, sizeof code);
    __builtin___clear_cache((char *) to, (char *) to + sizeof code);
}

static int call(void *p)
{
    return ((func_t) p)();
}

static void test_rwx(void)
{
    char *p = sys_mmap(NULL, 2 * PAGE, RW | PROT_EXEC, ANON, -1, 0);
    ok(GOOD(p), "mmap read-write-execute");
    is_str(layout(p, 2), "rwxp:2", "maps agrees");
    bool good = true;
    for (int i = 1; i <= 500; i++) {
        put_code(p + 64, i);
        good &= call(p + 64) == i;
    }
    ok(good, "500 versions of one function");
    good = true;
    for (int i = 0; i < 500; i++) {
        put_code(p + 8L * i, i);
        good &= call(p + 8L * i) == i;
    }
    ok(good, "500 functions side by side");
    sys_munmap(p, 2 * PAGE);
}

static void test_switch(void)
{
    char *p = map_rw(PAGE);
    bool good = true;
    for (int i = 0; i < 200; i++) {
        need(sys_mprotect(p, PAGE, RW) == 0, "mprotect to write");
        put_code(p, i);
        need(sys_mprotect(p, PAGE, PROT_READ | PROT_EXEC) == 0,
             "mprotect to execute");
        good &= call(p) == i;
    }
    ok(good, "200 switches between write and execute");
    is_str(access_of(p), "r-", "not writable while executable");
    is_str(layout(p, 1), "r-xp:1", "maps agrees");
    sys_munmap(p, PAGE);
}

static void test_exec_only(void)
{
    char *p = map_rw(PAGE);
    put_code(p, 77);
    is(sys_mprotect(p, PAGE, PROT_EXEC), 0, "execute-only");
    is(call(p), 77, "can be executed");
    ok(!can_write(p), "cannot be written");
    /* Readable on processors without EPAN, not readable with it. */
    can_read(p);
    ok(true, "may or may not be readable");
    is_str(layout(p, 1), "--xp:1", "maps shows execute only");
    is(sys_mprotect(p, PAGE, RW), 0, "back to read-write");
    is(p[4], (char) 0xc0, "content is there");
    sys_munmap(p, PAGE);
}

static void test_reuse(void)
{
    bool good = true;
    for (int i = 0; i < 100; i++) {
        char *p = map_rw(16 * PAGE);
        good &= all_bytes(p, 0, 64);
        put_code(p, i);
        need(sys_mprotect(p, PAGE, PROT_READ | PROT_EXEC) == 0, "mprotect");
        good &= call(p) == i;
        sys_munmap(p, 16 * PAGE);
    }
    ok(good, "map, fill, execute, unmap 100 times");
}

static void test_file(void)
{
    int fd = file_make(2 * PAGE);
    uint32_t code[2] = {0x52800000 | 55 << 5, 0xd65f03c0};
    need(pwrite(fd, code, sizeof code, PAGE) == sizeof code, "pwrite");
    char *p =
        sys_mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, PAGE);
    ok(GOOD(p), "a file mapped to be executed");
    is(call(p), 55, "code put there by pwrite");
    sys_munmap(p, PAGE);
    p = sys_mmap(NULL, PAGE, RW, MAP_SHARED, fd, 0);
    char *q = sys_mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    need(GOOD(p) && GOOD(q), "mmap");
    put_code(p, 31);
    __builtin___clear_cache(q, q + 8);
    is(call(q), 31, "two mappings: written through one, executed in the other");
    need(lseek(fd, 0, SEEK_SET) == 0, "lseek");
    char *r = map_rw(PAGE);
    need(read(fd, r, PAGE) == (ssize_t) PAGE, "read");
    need(sys_mprotect(r, PAGE, PROT_READ | PROT_EXEC) == 0, "mprotect");
    is(call(r), 31, "code brought in by read(2), then made executable");
    close(fd);
}

int main(void)
{
    test_rwx();
    test_switch();
    test_exec_only();
    test_reuse();
    test_file();
    return tap_done();
}
