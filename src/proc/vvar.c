/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/vvar.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/timex.h>

#include "abi/vvar.h"
#include "proc/vvar_track.h"

/* Protects track and is the page's writer lock. A leaf: see
 * docs/development.md. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static vvar_track_t track;
static vvar_page_t *page;
static size_t page_size; /* of its mapping, bytes */

/* Of which the quickest counts: the others may have been preempted. */
#define TRIES 4

void vvar_lock(void)
{
    pthread_mutex_lock(&mutex);
}

void vvar_unlock(void)
{
    pthread_mutex_unlock(&mutex);
}

bool vvar_wait(pthread_cond_t *condition, const struct timespec *until)
{
    if (until == NULL)
        return pthread_cond_wait(condition, &mutex) == 0;
    return pthread_cond_timedwait(condition, &mutex, until) == 0;
}

void *vvar_create(uint64_t counter_hz, size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return NULL;
    vvar_track_init(&track, counter_hz);
    page = memory;
    page_size = size;
    return memory;
}

/*
 * The page becomes odd (relaxed: the releases of the fields order it before
 * them), and only then is the counter read: whoever still used the old lines
 * had read a smaller count. Reading the counter is no memory access, so it
 * takes a DSB to order it after the store; the ISB is vvar_counter()'s.
 */
static void write_begin(void)
{
    uint32_t seq = __atomic_load_n(&page->seq, __ATOMIC_RELAXED);
    __atomic_store_n(&page->seq, seq + 1, __ATOMIC_RELAXED);
#ifdef __aarch64__
    __asm__ volatile("dsb ish" ::: "memory");
#endif
}

/* All releases: they pair with the acquires of vvar_read(). */
static void write_end(const vvar_page_t *line, uint64_t span)
{
    __atomic_store_n(&page->cycles, line->cycles, __ATOMIC_RELEASE);
    __atomic_store_n(&page->span, span, __ATOMIC_RELEASE);
    for (int i = 0; i < 2; i++)
        __atomic_store_n(&page->mult[i], line->mult[i], __ATOMIC_RELEASE);
    for (int i = 0; i < VVAR_CLOCKS; i++) {
        __atomic_store_n(&page->base[i].sec, line->base[i].sec,
                         __ATOMIC_RELEASE);
        __atomic_store_n(&page->base[i].frac, line->base[i].frac,
                         __ATOMIC_RELEASE);
    }
    uint32_t seq = __atomic_load_n(&page->seq, __ATOMIC_RELAXED);
    __atomic_store_n(&page->seq, seq + 1, __ATOMIC_RELEASE);
}

static uint64_t cycles_to_ns(uint64_t cycles)
{
    return (uint64_t) ((unsigned __int128) cycles * VVAR_NSEC / track.hz);
}

/* A clock, and the count in the middle of reading it: the best of a few tries,
 * for a preemption in between. *doubt is half the time it took, ns. */
static uint64_t read_clock(clockid_t clock, uint64_t *cycles, uint64_t *doubt)
{
    uint64_t best = UINT64_MAX, ns = 0;

    *cycles = 0;
    for (int i = 0; i < TRIES; i++) {
        struct timespec ts;
        uint64_t before = vvar_counter();
        clock_gettime(clock, &ts);
        uint64_t took = vvar_counter() - before;
        if (took >= best)
            continue;
        best = took;
        *cycles = before + took / 2;
        ns = (uint64_t) ts.tv_sec * VVAR_NSEC + (uint64_t) ts.tv_nsec;
    }
    *doubt = cycles_to_ns(best / 2);
    return ns;
}

/* The same for another clock, carried back to the anchor's count. */
static uint64_t read_clock_at(clockid_t clock, const vvar_sample_t *sample,
                              uint64_t *doubt)
{
    uint64_t cycles = 0;
    uint64_t ns = read_clock(clock, &cycles, doubt);

    return ns - cycles_to_ns(cycles - sample->cycles);
}

/* Before the first line: how NTP steers the clocks at this time. */
static void guess_slope(void)
{
    struct timex timex = {.modes = 0};

    if (adjtimex(&timex) >= 0)
        vvar_track_guess(&track, timex.freq);
}

void vvar_refresh(uint64_t span_ns)
{
    vvar_sample_t s = {.cycles = 0};
    uint64_t doubt[4];

    if (!track.started)
        guess_slope();
    write_begin();
    s.ns[VVAR_SLOPE_MONOTONIC] =
        read_clock(CLOCK_MONOTONIC, &s.cycles, &doubt[0]);
    s.ns[VVAR_SLOPE_RAW] = read_clock_at(CLOCK_MONOTONIC_RAW, &s, &doubt[1]);
    uint64_t mono = s.ns[VVAR_SLOPE_MONOTONIC];
    s.realtime =
        (int64_t) (read_clock_at(CLOCK_REALTIME, &s, &doubt[2]) - mono);
    s.boottime =
        (int64_t) (read_clock_at(CLOCK_BOOTTIME, &s, &doubt[3]) - mono);
    s.doubt = doubt[0] + (doubt[2] > doubt[3] ? doubt[2] : doubt[3]);
    vvar_track_advance(&track, &s, span_ns);
    write_end(&track.line, track.line.span);
}

void vvar_withdraw(void)
{
    write_begin();
    vvar_track_park(&track, vvar_counter());
    write_end(&track.line, 0);
}

int vvar_clock_gettime(int clock, struct timespec *ts)
{
    int line = vvar_line(clock);
    int64_t sec;
    uint64_t nsec;

    if (line < 0 || page == NULL)
        return -1;
    bool served = vvar_read(page, line, &sec, &nsec);
    if (!served) {
        vvar_lock();
        /* Somebody else may have renewed it meanwhile. The writer is shut out,
         * so that only a stop of more than the span makes a second try fail. */
        for (int i = 0; i < 3 && !served; i++) {
            served = vvar_read(page, line, &sec, &nsec);
            if (!served)
                vvar_refresh(vvar_refresher_wake());
        }
        if (!served)
            served = vvar_read(page, line, &sec, &nsec);
        vvar_unlock();
    }
    if (!served)
        return -1;
    ts->tv_sec = sec;
    ts->tv_nsec = (long) nsec;
    return 0;
}

void vvar_clock_was_set(void)
{
    vvar_lock();
    if (page != NULL && track.started)
        vvar_refresh(vvar_refresher_wake());
    vvar_unlock();
}

void vvar_stop(void)
{
    vvar_refresher_stop();
    if (page == NULL)
        return;
    vvar_lock();
    if (track.started)
        vvar_withdraw();
    vvar_unlock();
}

void vvar_fork_begin(void)
{
    vvar_lock();
}

void vvar_fork_end(void)
{
    vvar_unlock();
}

void *vvar_fork_child(bool *none)
{
    vvar_page_t copy;

    pthread_mutex_init(&mutex, NULL);
    vvar_refresher_forget();
    *none = page == NULL;
    if (page == NULL)
        return NULL;
    copy = *page;
    if (mmap(page, page_size, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        return NULL;
    *page = copy;
    if (track.started)
        vvar_withdraw();
    return page;
}
