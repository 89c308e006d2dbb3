/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common mmap and munmap, again and again and from several threads: what is
 * unmapped is gone at once, what comes back is zero, and nothing overlaps.
 * Under elfuse most of these calls do not leave the virtual machine; see
 * docs/fastpath.md.
 */
#include "mem.h"

#include <pthread.h>
#include <stdatomic.h>

static uint64_t seed = 88172645463325252UL;

static uint64_t rnd(uint64_t *state, uint64_t most)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state % most;
}

/* One byte in every page. */
static bool zero_pages(const char *p, size_t len)
{
    for (size_t i = 0; i < len; i += PAGE)
        if (p[i] || p[i + PAGE - 1])
            return false;
    return true;
}

static void fill_pages(char *p, size_t len, char value)
{
    for (size_t i = 0; i < len; i += PAGE)
        p[i] = p[i + PAGE - 1] = value;
}

static bool same_pages(const char *p, size_t len, char value)
{
    for (size_t i = 0; i < len; i += PAGE)
        if (p[i] != value || p[i + PAGE - 1] != value)
            return false;
    return true;
}

static void test_gone(void)
{
    char *p = map_rw(4 * PAGE);
    fill_pages(p, 4 * PAGE, 1);
    is(sys_munmap(p + PAGE, PAGE), 0, "gone: munmap of a page");
    is_str(layout(p, 4), "rw-p:1 hole:1 rw-p:2", "gone: maps");
    is_str(access_of(p), "rw", "gone: the page before is there");
    is_str(access_of(p + PAGE), "--", "gone: the page is not");
    is_str(access_of(p + 2 * PAGE), "rw", "gone: the page behind is there");
    is(sys_munmap(p + PAGE, PAGE), 0, "gone: munmap once more");
    is(sys_munmap(p, 4 * PAGE), 0, "gone: munmap over the hole");
    is_str(access_of(p), "--", "gone: all of it");
    is(sys_munmap(p, 4 * PAGE), 0, "gone: munmap of nothing");
}

/* munmap of addresses that a later mmap may give. */
static void test_ahead(void)
{
    bool good = true;
    for (int i = 0; i < 300; i++) {
        char *p = map_rw(16 * PAGE), *q;
        if (!vma_find(p + 16 * PAGE, &(vma_t){0}))
            need(sys_munmap(p + 16 * PAGE, 16 * PAGE) == 0, "munmap ahead");
        q = map_rw(16 * PAGE);
        fill_pages(q, 16 * PAGE, 1);
        good &= can_read(q) && same_pages(q, 16 * PAGE, 1);
        need(sys_munmap(p, 16 * PAGE) == 0, "munmap");
        good &= can_read(q) && same_pages(q, 16 * PAGE, 1);
        need(sys_munmap(q, 16 * PAGE) == 0, "munmap");
    }
    ok(good, "ahead: an earlier munmap does not hit a later mapping");
}

static void test_zero(void)
{
    static const size_t sizes[] = {PAGE, 64 * KIB, 256 * KIB, BLOCK + PAGE};
    bool good = true;
    for (int i = 0; i < 40; i++) {
        size_t len = sizes[i % 4];
        char *p = map_rw(len);
        good &= zero_pages(p, len);
        fill_pages(p, len, (char) (i + 1));
        need(sys_munmap(p, len) == 0, "munmap");
    }
    ok(good, "zero: what comes back reads zero");
    char *p = map_rw(80 * MIB);
    ok(zero_pages(p, MIB) && zero_pages(p + 79 * MIB, MIB),
       "zero: 80 MiB at once");
    fill_pages(p + 79 * MIB, MIB, 3);
    is(sys_munmap(p, 80 * MIB), 0, "zero: and gone");
    is_str(access_of(p + 80 * MIB - PAGE), "--", "zero: to the last page");
}

/* Random mappings that live for a while. */
static void test_mixed(void)
{
    enum { LIVE = 64, STEPS = 3000 };
    static struct {
        char *p;
        size_t len;
        char value;
    } live[LIVE];
    bool good = true;
    for (int i = 0; i < STEPS; i++) {
        int k = (int) rnd(&seed, LIVE);
        size_t touched;
        if (live[k].p) {
            touched = live[k].len < 32 * PAGE ? live[k].len : 32 * PAGE;
            good &= same_pages(live[k].p, touched, live[k].value);
            need(sys_munmap(live[k].p, live[k].len) == 0, "munmap");
        }
        live[k].len = PAGE << rnd(&seed, 11);
        live[k].p = map_rw(live[k].len);
        live[k].value = (char) (1 + i % 100);
        touched = live[k].len < 32 * PAGE ? live[k].len : 32 * PAGE;
        good &= zero_pages(live[k].p, touched);
        fill_pages(live[k].p, touched, live[k].value);
    }
    ok(good, "mixed: each mapping keeps its contents, new ones are zero");
    for (int k = 0; k < LIVE; k++)
        if (live[k].p)
            need(sys_munmap(live[k].p, live[k].len) == 0, "munmap");
}

/* Other kinds of memory where this kind was. */
static void test_others(void)
{
    char *p = map_rw(16 * PAGE);
    int fd = file_make(4 * PAGE);
    fill_pages(p, 16 * PAGE, 1);
    is(sys_mprotect(p + PAGE, PAGE, PROT_READ), 0, "others: mprotect");
    is_str(access_of(p + PAGE), "r-", "others: read-only");
    need(sys_munmap(p + 2 * PAGE, 4 * PAGE) == 0, "munmap");
    ok(sys_mmap(p + 2 * PAGE, 4 * PAGE, RW, MAP_SHARED | MAP_FIXED, fd, 0) ==
           p + 2 * PAGE,
       "others: a file in the hole");
    is(p[2 * PAGE], 'A', "others: with its contents");
    p[3 * PAGE] = 'x';
    is(file_byte(fd, PAGE), 'x', "others: shared");
    is_str(layout(p, 16), "rw-p:1 r--p:1 rw-s:4 rw-p:10", "others: maps");
    ok(sys_mmap(p + 8 * PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0) ==
           p + 8 * PAGE,
       "others: MAP_FIXED over it");
    ok(zero_pages(p + 8 * PAGE, PAGE), "others: is zero");
    is(sys_madvise(p + 10 * PAGE, PAGE, MADV_DONTNEED), 0,
       "others: MADV_DONTNEED");
    ok(zero_pages(p + 10 * PAGE, PAGE), "others: is zero, too");
    is(mlock(p + 12 * PAGE, PAGE), 0, "others: mlock");
    is(sys_munmap(p, 16 * PAGE), 0, "others: munmap of all of them");
    is_str(layout(p, 16), "hole:16", "others: nothing is left");
    is(file_byte(fd, 2 * PAGE), 'C', "others: the file is as it was");
    close(fd);
}

static void test_fixed_ahead(void)
{
    char *p = map_rw(PAGE), *fixed = p + 64 * PAGE, *q;
    bool good = true;
    if (vma_find(fixed, &(vma_t){0}) || vma_find(fixed + PAGE, &(vma_t){0}))
        fixed = map_hole(2 * PAGE);
    need(sys_mmap(fixed, 2 * PAGE, RW, ANON | MAP_FIXED, -1, 0) == fixed,
         "mmap ahead");
    fill_pages(fixed, 2 * PAGE, 7);
    for (int i = 0; i < 200; i++) {
        q = map_rw(PAGE);
        good &= q + PAGE <= fixed || q >= fixed + 2 * PAGE;
        fill_pages(q, PAGE, 1);
    }
    ok(good, "fixed: what is mapped there is not given away");
    ok(same_pages(fixed, 2 * PAGE, 7), "fixed: keeps its contents");
    is(sys_munmap(fixed, 2 * PAGE), 0, "fixed: munmap");
}

static void test_remap(void)
{
    char *p = map_rw(8 * PAGE), *q;
    fill_pages(p, 8 * PAGE, 5);
    q = sys_mremap(p, 8 * PAGE, 600 * PAGE, MREMAP_MAYMOVE, NULL);
    ok(GOOD(q) && same_pages(q, 8 * PAGE, 5), "remap: contents come along");
    ok(zero_pages(q + 8 * PAGE, 592 * PAGE), "remap: the rest is zero");
    fill_pages(q, 600 * PAGE, 6);
    p = map_rw(8 * PAGE);
    ok(zero_pages(p, 8 * PAGE), "remap: a new mapping is zero");
    ok(sys_mremap(q, 8 * PAGE, 8 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p) == p,
       "remap: onto another mapping");
    ok(same_pages(p, 8 * PAGE, 6), "remap: has the contents");
    is(sys_munmap(p, 8 * PAGE), 0, "remap: munmap of the target");
    is_str(access_of(p), "--", "remap: it is gone");
    is(sys_munmap(q + 8 * PAGE, 592 * PAGE), 0, "remap: munmap of the rest");
    is_str(access_of(q + 100 * PAGE), "--", "remap: gone, too");
}

/* The limit counts what is mapped now. */
static void test_limit(void)
{
    struct rlimit old, lim;
    vma_t v;
    char *p, *q;
    for (int i = 0; i < 500; i++)
        need(sys_munmap(map_rw(MIB), MIB) == 0, "munmap");
    need(vma_named("[heap]", &v) || true, "maps");
    need(getrlimit(RLIMIT_DATA, &old) == 0, "getrlimit");
    lim = old;
    lim.rlim_cur = 64 * MIB;
    need(setrlimit(RLIMIT_DATA, &lim) == 0, "setrlimit");
    p = sys_mmap(NULL, 32 * MIB, RW, ANON, -1, 0);
    ok(GOOD(p), "limit: below it");
    q = sys_mmap(NULL, 64 * MIB, RW, ANON, -1, 0);
    ok(!GOOD(q) && errno == ENOMEM, "limit: above it");
    need(sys_munmap(p, 32 * MIB) == 0, "munmap");
    p = sys_mmap(NULL, 32 * MIB, RW, ANON, -1, 0);
    ok(GOOD(p), "limit: what was unmapped does not count");
    need(sys_munmap(p, 32 * MIB) == 0, "munmap");
    need(setrlimit(RLIMIT_DATA, &old) == 0, "setrlimit");
}

/* --- threads ------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS  1500

typedef struct shelf {
    char *p;
    size_t pages;
    char value;
} shelf_t;

static pthread_mutex_t shelf_lock = PTHREAD_MUTEX_INITIALIZER;
static shelf_t shelf[32];
static unsigned on_shelf;
static atomic_int failures;

static void put(shelf_t s)
{
    bool room;
    pthread_mutex_lock(&shelf_lock);
    room = on_shelf < 32;
    if (room)
        shelf[on_shelf++] = s;
    pthread_mutex_unlock(&shelf_lock);
    if (!room)
        need(sys_munmap(s.p, s.pages * PAGE) == 0, "munmap");
}

static bool take(shelf_t *s)
{
    bool any;
    pthread_mutex_lock(&shelf_lock);
    any = on_shelf > 0;
    if (any)
        *s = shelf[--on_shelf];
    pthread_mutex_unlock(&shelf_lock);
    return any;
}

/* Maps, and unmaps what others have mapped. */
static void *exchange(void *arg)
{
    uint64_t state = (uintptr_t) arg * 0x9e3779b97f4a7c15UL + 1;
    for (int i = 0; i < ROUNDS; i++) {
        shelf_t s = {.pages = 1 + rnd(&state, 24),
                     .value = (char) (1 + rnd(&state, 100))};
        s.p = map_rw(s.pages * PAGE);
        if (!zero_pages(s.p, s.pages * PAGE))
            atomic_fetch_add(&failures, 1);
        fill_pages(s.p, s.pages * PAGE, s.value);
        put(s);
        if (!take(&s))
            continue;
        if (!same_pages(s.p, s.pages * PAGE, s.value))
            atomic_fetch_add(&failures, 1);
        need(sys_munmap(s.p, s.pages * PAGE) == 0, "munmap");
    }
    return NULL;
}

static void test_threads(void)
{
    pthread_t thread[THREADS];
    shelf_t s;
    for (uintptr_t i = 0; i < THREADS; i++)
        need(pthread_create(&thread[i], NULL, exchange, (void *) i) == 0,
             "pthread_create");
    for (int i = 0; i < THREADS; i++)
        need(pthread_join(thread[i], NULL) == 0, "pthread_join");
    while (take(&s))
        need(sys_munmap(s.p, s.pages * PAGE) == 0, "munmap");
    is(atomic_load(&failures), 0, "threads: contents are nobody else's");
}

/* Threads that come and go, and leave mappings to others. */
static void *leave_one(void *arg)
{
    char *p = map_rw(64 * PAGE);
    (void) arg;
    fill_pages(p, 64 * PAGE, 9);
    need(sys_munmap(p + 16 * PAGE, 16 * PAGE) == 0, "munmap");
    return p;
}

static void test_ended(void)
{
    bool good = true;
    for (int i = 0; i < 30; i++) {
        pthread_t thread;
        void *p;
        need(pthread_create(&thread, NULL, leave_one, NULL) == 0,
             "pthread_create");
        need(pthread_join(thread, &p) == 0, "pthread_join");
        good &=
            same_pages(p, 16 * PAGE, 9) && !can_read((char *) p + 16 * PAGE);
        good &= same_pages((char *) p + 32 * PAGE, 32 * PAGE, 9);
        need(sys_munmap(p, 64 * PAGE) == 0, "munmap");
        good &= !can_read(p);
    }
    ok(good, "threads: what one leaves behind can be used and unmapped");
}

int main(void)
{
    test_gone();
    test_ahead();
    test_zero();
    test_mixed();
    test_others();
    test_fixed_ahead();
    test_remap();
    test_limit();
    test_threads();
    test_ended();
    return tap_done();
}
