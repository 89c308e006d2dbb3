/* SPDX-License-Identifier: Apache-2.0 */
/* Memory under several threads: first touch, storms of calls, what a thread
 * still sees of what another has unmapped, reads into memory that goes away. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "mem.h"
#include "tap.h"

#define THREADS     4
#define PAGE        4096UL
#define AREA_SHARED 0x200000UL
#define RW          (PROT_READ | PROT_WRITE)

static uint8_t *map_at(void *at, size_t len, int flags)
{
    uint8_t *p = mmap(at, len, RW, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

    need(p != MAP_FAILED, "mmap");
    return p;
}

static void run_all(void *(*fn)(void *) )
{
    pthread_t thread[THREADS];

    for (long i = 0; i < THREADS; i++)
        need(pthread_create(&thread[i], NULL, fn, (void *) i) == 0, "thread");
    for (int i = 0; i < THREADS; i++)
        need(pthread_join(thread[i], NULL) == 0, "join");
}

/* --- first touch of one block by all; the second half of the rounds on memory
 * that was used before */
#define ROUNDS 10

static uint8_t *block;
static pthread_barrier_t barrier;
static _Atomic int wrong;

static void *touch(void *arg)
{
    unsigned id = (unsigned) (long) arg;

    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&barrier);
        if (id == 0)
            block = map_at(round < ROUNDS / 2 ? NULL : block, AREA_SHARED, 0);
        pthread_barrier_wait(&barrier);
        for (uint64_t at = 0; at < AREA_SHARED; at += PAGE) {
            volatile uint64_t *word = (void *) (block + at + 8 * id);

            wrong += *word != 0;
            *word = id + 1;
        }
        pthread_barrier_wait(&barrier);
        for (uint64_t at = 0; at < AREA_SHARED; at += PAGE)
            for (unsigned i = 0; i < THREADS; i++)
                wrong += *(uint64_t *) (void *) (block + at + 8 * i) != i + 1;
        pthread_barrier_wait(&barrier);
        if (id == 0)
            munmap(block, AREA_SHARED);
    }
    return NULL;
}

static void test_first_touch(void)
{
    need(pthread_barrier_init(&barrier, NULL, THREADS) == 0, "barrier");
    run_all(touch);
    is(wrong, 0, "four threads touch one block first");
}

/* --- storms: each thread with areas of its own, in the same blocks as the
 * others' */
#define STORM 1500
#define AREAS 8
#define AREA  (16 * PAGE)

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

/* All bytes of a page are `value`, looked at here and there. */
static bool page_is(const uint8_t *page, uint8_t value)
{
    return page[0] == value && page[1] == value && page[2047] == value &&
           page[4095] == value;
}

typedef struct area {
    uint8_t *at;       /* NULL: none */
    uint8_t value[16]; /* of each page */
    bool read_only;
} area_t;

static void area_check(const area_t *a)
{
    for (int i = 0; i < 16; i++)
        wrong += !page_is(a->at + (uint64_t) i * PAGE, a->value[i]);
}

static void area_map(area_t *a)
{
    a->at = map_at(NULL, AREA, 0);
    a->read_only = false;
    memset(a->value, 0, sizeof a->value);
}

static void area_step(area_t *a, uint32_t r)
{
    unsigned page = r >> 4 & 15;
    uint8_t *at = a->at + page * PAGE;

    switch (r & 7) {
    case 0:
        area_check(a);
        need(munmap(a->at, AREA) == 0, "munmap");
        a->at = NULL;
        break;
    case 1:
        need(madvise(at, PAGE, MADV_DONTNEED) == 0, "madvise");
        a->value[page] = 0;
        break;
    case 2:
        need(mprotect(a->at, AREA, a->read_only ? RW : PROT_READ) == 0,
             "mprotect");
        a->read_only = !a->read_only;
        break;
    case 3:
        if (mmap(at, PAGE, a->read_only ? PROT_READ : RW,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at)
            tap_bail("mmap");
        a->value[page] = 0;
        break;
    default:
        if (a->read_only)
            break;
        a->value[page] = (uint8_t) (r >> 8);
        memset(at, a->value[page], PAGE);
    }
}

static void *storm(void *arg)
{
    uint32_t seed = (uint32_t) (long) arg * 77 + 5;
    area_t area[AREAS] = {{NULL, {0}, false}};

    for (int i = 0; i < STORM; i++) {
        uint32_t r = next_random(&seed);
        area_t *a = &area[r % AREAS];

        if (!a->at)
            area_map(a);
        area_step(a, r >> 3);
    }
    for (int i = 0; i < AREAS; i++) {
        if (area[i].at) {
            area_check(&area[i]);
            munmap(area[i].at, AREA);
        }
    }
    return NULL;
}

static void test_storm(void)
{
    wrong = 0;
    run_all(storm);
    is(wrong, 0, "four threads map, protect, drop and unmap: contents");
}

/* --- each thread changes its own page and looks at once */
static uint8_t *pages;

static void *protect_own(void *arg)
{
    uint8_t *own = pages + (uint64_t) (long) arg * PAGE;

    for (int i = 0; i < 400; i++) {
        int prot = i & 1 ? RW : i & 2 ? PROT_READ : PROT_NONE;

        need(mprotect(own, PAGE, prot) == 0, "mprotect");
        wrong += can_write(own) != (prot == RW);
        wrong += can_read(own) != (prot != PROT_NONE);
        if (prot == RW)
            *own = (uint8_t) i;
    }
    return NULL;
}

static void test_protect(void)
{
    wrong = 0;
    pages = map_at(NULL, THREADS * PAGE, 0);
    run_all(protect_own);
    is(wrong, 0, "four threads protect a page each, and see it at once");
    munmap(pages, THREADS * PAGE);
}

/* --- a thread uses a page all the time while another takes it away */
static _Thread_local sigjmp_buf jump;
static _Thread_local volatile bool may_jump;

static void on_fault(int sig)
{
    if (!may_jump) {
        signal(sig, SIG_DFL);
        return;
    }
    siglongjmp(jump, 1);
}

typedef struct warm {
    volatile uint8_t *page;
    _Atomic int state; /* 1: the user is warm, 2: the page is gone */
    bool write;
    bool stale;
} warm_t;

static void use(const warm_t *w)
{
    if (w->write)
        *w->page = 1;
    else
        (void) *w->page;
}

static void *use_page(void *arg)
{
    warm_t *w = arg;
    volatile int i = 0;

    may_jump = true;
    if (sigsetjmp(jump, 1))
        return NULL; /* while it was being taken away, or after */
    while (w->state < 2) {
        use(w);
        i = i + 1;
        if (i == 50)
            w->state = 1;
    }
    /* Gone for sure. */
    use(w);
    w->stale = true;
    return NULL;
}

static bool use_and_take(bool write, bool unmap)
{
    warm_t w = {.page = map_at(NULL, PAGE, 0), .write = write};
    pthread_t thread;

    *w.page = 1;
    need(pthread_create(&thread, NULL, use_page, &w) == 0, "thread");
    while (w.state < 1)
        sched_yield();
    if (unmap)
        need(munmap((void *) (uintptr_t) w.page, PAGE) == 0, "munmap");
    else
        need(mprotect((void *) (uintptr_t) w.page, PAGE,
                      write ? PROT_READ : PROT_NONE) == 0,
             "mprotect");
    w.state = 2;
    need(pthread_join(thread, NULL) == 0, "join");
    munmap((void *) (uintptr_t) w.page, PAGE);
    return !w.stale;
}

static void test_warm(void)
{
    struct sigaction action = {.sa_handler = on_fault};
    bool good = true;

    need(sigaction(SIGSEGV, &action, NULL) == 0, "sigaction");
    for (int i = 0; i < 40; i++)
        good &= use_and_take(false, true);
    ok(good, "a page unmapped by another thread cannot be read");
    good = true;
    for (int i = 0; i < 40; i++)
        good &= use_and_take(true, false);
    ok(good, "a page protected by another thread cannot be written");
    good = true;
    for (int i = 0; i < 20; i++)
        good &= use_and_take(false, false);
    ok(good, "nor read");
    signal(SIGSEGV, SIG_DFL);
}

/* --- a read waits while its memory goes and comes */
typedef struct reader {
    int fd;
    uint8_t *to;
    long result;
    int error;
    _Atomic pid_t tid;
} reader_t;

static void *read_main(void *arg)
{
    reader_t *r = arg;

    r->tid = (pid_t) syscall(SYS_gettid);
    r->result = read(r->fd, r->to, PAGE);
    r->error = errno;
    return NULL;
}

/* It sleeps in the kernel: state S in /proc. */
static void wait_asleep(const reader_t *r)
{
    char name[64], text[512], *state;

    while (!r->tid)
        sched_yield();
    snprintf(name, sizeof name, "/proc/self/task/%d/stat", (int) r->tid);
    do {
        FILE *file = fopen(name, "r");

        need(file, "open stat");
        need(fgets(text, sizeof text, file), "read stat");
        fclose(file);
        state = strrchr(text, ')');
    } while (!state || state[2] != 'S');
}

enum comeback { GONE, FRESH, TOUCHED, FILLED };

static void test_read(enum comeback how, const char *name)
{
    int fds[2];
    reader_t r = {.to = map_at(NULL, PAGE, 0)};
    pthread_t thread;
    bool good;

    need(pipe(fds) == 0, "pipe");
    r.fd = fds[0];
    memset(r.to, 0xee, PAGE);
    need(pthread_create(&thread, NULL, read_main, &r) == 0, "thread");
    wait_asleep(&r);
    need(munmap(r.to, PAGE) == 0, "munmap");
    if (how != GONE)
        map_at(r.to, PAGE, MAP_FIXED);
    good = how < TOUCHED || r.to[100] == 0;
    if (how == FILLED)
        memset(r.to, 0x11, PAGE);
    need(write(fds[1], "data", 4) == 4, "write");
    need(pthread_join(thread, NULL) == 0, "join");
    if (how == GONE) {
        /* Where the kernel copies at once it is EFAULT; elfuse's host has kept
         * the memory for the call, which then has come before the unmapping. */
        ok((r.result == -1 && r.error == EFAULT) || r.result == 4, name);
        map_at(r.to, PAGE, MAP_FIXED);
        for (unsigned i = 0; i < PAGE; i++)
            good &= r.to[i] == 0;
        ok(good, "new memory there is zero");
    } else {
        is(r.result, 4, name);
        ok(memcmp(r.to, "data", 4) == 0, "what was read is in the new memory");
        for (unsigned i = 4; i < PAGE; i++)
            good &= r.to[i] == (how == FILLED ? 0x11 : 0);
        ok(good, "and nothing else");
    }
    munmap(r.to, PAGE);
    close(fds[0]);
    close(fds[1]);
}

int main(void)
{
    test_first_touch();
    test_storm();
    test_protect();
    test_warm();
    test_read(GONE, "a read into memory that goes away");
    test_read(FRESH, "a read into memory that is mapped anew");
    test_read(TOUCHED, "mapped anew and looked at");
    test_read(FILLED, "mapped anew and filled");
    return tap_done();
}
