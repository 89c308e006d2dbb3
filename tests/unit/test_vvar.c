/* SPDX-License-Identifier: Apache-2.0 */
/* sources: src/proc/vvar.c src/proc/vvar_refresh.c src/proc/vvar_track.c */
/* threaded */
/*
 * The clock page: its lines against a simulated kernel, in simulated time; and
 * readers, the refresher and a stopping thread racing on a real one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proc/vvar.h"
#include "proc/vvar_track.h"

#define HZ_1G      1000000000ULL
#define HZ_MACHINE 62500000ULL

uint64_t vvar_counter(void)
{
    struct timespec ts;

    assert_int_equal(clock_gettime(CLOCK_MONOTONIC_RAW, &ts), 0);
    return (uint64_t) ts.tv_sec * HZ_1G + (uint64_t) ts.tv_nsec;
}

/* --- simulation */

typedef struct world {
    uint64_t hz;
    double ppm;  /* the kernel's MONOTONIC against the counter */
    double mono; /* ns, at `cycles` */
    uint64_t cycles;
    int64_t realtime; /* ahead of mono */
    uint64_t noise;   /* samples are off by up to so many ns */
    vvar_track_t track;
    int64_t last_ns[VVAR_CLOCKS];
} world_t;

static world_t world(uint64_t hz, double ppm)
{
    world_t w = {.hz = hz,
                 .ppm = ppm,
                 .mono = 5e12,
                 .cycles = 77 * hz,
                 .realtime = 1700000000000000123LL,
                 .noise = 300};

    vvar_track_init(&w.track, hz);
    return w;
}

static void pass(world_t *w, uint64_t cycles)
{
    w->cycles += cycles;
    w->mono += (double) cycles * 1e9 / (double) w->hz * (1 + w->ppm / 1e6);
}

static int64_t noise(const world_t *w)
{
    return (int64_t) ((uint64_t) rand() % (2 * w->noise + 1)) -
           (int64_t) w->noise;
}

static void refresh(world_t *w)
{
    vvar_sample_t s = {.cycles = w->cycles, .doubt = w->noise};

    s.ns[0] = (uint64_t) ((int64_t) w->mono + noise(w));
    s.ns[1] = (uint64_t) ((double) w->cycles * 1e9 / (double) w->hz);
    s.realtime = w->realtime + noise(w);
    s.boottime = 1234567890 + noise(w);
    vvar_track_advance(&w->track, &s, VVAR_SPAN_SEC * VVAR_NSEC);
}

/* ns of a line now, or -1 when it does not serve. */
static int64_t look(world_t *w, int line)
{
    const vvar_page_t *page = &w->track.line;
    uint64_t delta = w->cycles - page->cycles;
    int64_t sec;
    uint64_t nsec;

    if (delta >= page->span)
        return -1;
    vvar_line_at(&page->base[line], page->mult[line == VVAR_RAW], delta, &sec,
                 &nsec);
    assert_true(nsec < VVAR_NSEC);
    return sec * (int64_t) VVAR_NSEC + (int64_t) nsec;
}

/* No line goes back. `stepped` allows it to REALTIME. */
static void look_at_all(world_t *w, bool stepped)
{
    for (int line = 0; line < VVAR_CLOCKS; line++) {
        int64_t ns = look(w, line);
        assert_true(ns >= 0);
        if (!(stepped && line == VVAR_REALTIME) && ns < w->last_ns[line])
            fail_msg("line %d went back by %lld ns", line,
                     (long long) (w->last_ns[line] - ns));
        w->last_ns[line] = ns;
    }
}

static int64_t error_of(world_t *w)
{
    return llabs(look(w, VVAR_MONOTONIC) - (int64_t) w->mono);
}

static void follow(uint64_t hz, double ppm)
{
    world_t w = world(hz, ppm);

    refresh(&w);
    for (int period = 0; period < 400; period++) {
        /* NTP turns the wheel a little. */
        if (period % 50 == 49)
            w.ppm += (double) (rand() % 21 - 10);
        for (int i = 0; i < 50; i++) {
            look_at_all(&w, false);
            pass(&w, hz / 200 + (uint64_t) rand() % 1000);
        }
        /* At first the nominal slope is all there is: 500 ppm of a period. */
        int64_t most = period < 20 ? 160000 : 9000;
        if (error_of(&w) > most)
            fail_msg("%lld Hz, %g ppm, period %d: off by %lld ns",
                     (long long) hz, ppm, period, (long long) error_of(&w));
        look_at_all(&w, false);
        refresh(&w);
        look_at_all(&w, false);
    }
}

static void test_follows_the_kernel(void **state)
{
    srand(1);
    for (int ppm = -500; ppm <= 500; ppm += 250) {
        follow(HZ_1G, ppm);
        follow(HZ_MACHINE, ppm);
        follow(1000000, ppm);
    }
}

static void test_first_guess(void **state)
{
    for (int ppm = -500; ppm <= 500; ppm += 100) {
        world_t w = world(HZ_MACHINE, ppm);
        vvar_track_guess(&w.track, ppm * 65536LL);
        refresh(&w);
        pass(&w, w.hz / 4);
        assert_true(error_of(&w) < 1000);
    }
}

static void test_step_of_realtime(void **state)
{
    world_t w = world(HZ_MACHINE, 20);

    refresh(&w);
    for (int i = 0; i < 40; i++) {
        look_at_all(&w, i % 4 == 1);
        int64_t mono = look(&w, VVAR_MONOTONIC);
        int64_t off = look(&w, VVAR_REALTIME) - mono - w.realtime;
        assert_true(llabs(off) < 2000);
        pass(&w, w.hz / 4);
        if (i % 4 == 0)
            w.realtime += i % 8 == 0 ? 3600 * (int64_t) VVAR_NSEC
                                     : -86400 * (int64_t) VVAR_NSEC - 1;
        refresh(&w);
    }
}

static void test_serves_for_its_span_only(void **state)
{
    world_t w = world(HZ_MACHINE, 0);

    refresh(&w);
    pass(&w, 2 * w.hz - 1);
    look_at_all(&w, false);
    pass(&w, 1);
    assert_int_equal(look(&w, VVAR_MONOTONIC), -1);
    /* The machine was away for an hour; MONOTONIC may have stood still. */
    w.cycles += 3600 * w.hz;
    refresh(&w);
    look_at_all(&w, false);
    assert_true(error_of(&w) < 2000);
}

/* The kernel's clock falls far behind: half speed until it has caught up. */
static void test_ahead_of_the_kernel(void **state)
{
    world_t w = world(HZ_MACHINE, 0);

    refresh(&w);
    pass(&w, w.hz);
    look_at_all(&w, false);
    w.mono -= 5e8;
    refresh(&w);
    for (int i = 0; i < 12; i++) {
        look_at_all(&w, false);
        pass(&w, w.hz / 4);
        look_at_all(&w, false);
        refresh(&w);
    }
    assert_true(error_of(&w) < 2000);
}

static void test_parked(void **state)
{
    world_t w = world(HZ_MACHINE, 100);

    refresh(&w);
    pass(&w, w.hz / 10);
    look_at_all(&w, false);
    vvar_track_park(&w.track, w.cycles);
    assert_int_equal(look(&w, VVAR_MONOTONIC), -1);
    /* Nothing was read meanwhile: the kernel's time is taken as it is. */
    pass(&w, w.hz * 10);
    refresh(&w);
    look_at_all(&w, false);
    assert_true(error_of(&w) < 2000);
}

/* --- the real one */

#define READERS 3
#define READS   40000

static atomic_llong seen;
static atomic_int failures;

static void *reader(void *arg)
{
    for (int i = 0; i < READS; i++) {
        /* Acquire and release: a value read before, by any thread, is a lower
         * bound. */
        long long before = atomic_load_explicit(&seen, memory_order_acquire);
        struct timespec ts;
        if (vvar_clock_gettime(CLOCK_MONOTONIC, &ts) != 0) {
            atomic_fetch_add_explicit(&failures, 1, memory_order_relaxed);
            continue;
        }
        long long now = ts.tv_sec * 1000000000LL + ts.tv_nsec;
        if (now < before)
            atomic_fetch_add_explicit(&failures, 1, memory_order_relaxed);
        while (before < now && !atomic_compare_exchange_weak_explicit(
                                   &seen, &before, now, memory_order_acq_rel,
                                   memory_order_acquire))
            continue;
    }
    return NULL;
}

static void *disturber(void *arg)
{
    for (int i = 0; i < 200; i++) {
        vvar_lock();
        vvar_refresh(VVAR_PERIOD_NS);
        vvar_unlock();
        if (i % 20 == 0)
            vvar_stop();
    }
    return NULL;
}

static void test_race(void **state)
{
    pthread_t thread[READERS + 1];

    assert_non_null(vvar_create(HZ_1G, 4096));
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, reader, NULL), 0);
    assert_int_equal(pthread_create(&thread[READERS], NULL, disturber, NULL),
                     0);
    for (int i = 0; i <= READERS; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    vvar_stop();
    assert_int_equal(atomic_load(&failures), 0);
}

static void test_which_clocks(void **state)
{
    static const clockid_t ours[] = {CLOCK_REALTIME, CLOCK_MONOTONIC,
                                     CLOCK_MONOTONIC_RAW, CLOCK_BOOTTIME};
    static const clockid_t others[] = {CLOCK_PROCESS_CPUTIME_ID,
                                       CLOCK_THREAD_CPUTIME_ID,
                                       CLOCK_REALTIME_COARSE,
                                       CLOCK_MONOTONIC_COARSE,
                                       CLOCK_TAI,
                                       99,
                                       -6};
    struct timespec before, ts, after;

    for (size_t i = 0; i < sizeof(ours) / sizeof(ours[0]); i++) {
        assert_int_equal(clock_gettime(ours[i], &before), 0);
        assert_int_equal(vvar_clock_gettime(ours[i], &ts), 0);
        assert_int_equal(clock_gettime(ours[i], &after), 0);
        /* Seconds are enough to tell one clock from another. */
        assert_in_range(ts.tv_sec, before.tv_sec - 1, after.tv_sec + 1);
    }
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_int_equal(vvar_clock_gettime(others[i], &ts), -1);
    vvar_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_follows_the_kernel),
        cmocka_unit_test(test_first_guess),
        cmocka_unit_test(test_step_of_realtime),
        cmocka_unit_test(test_serves_for_its_span_only),
        cmocka_unit_test(test_ahead_of_the_kernel),
        cmocka_unit_test(test_parked),
        cmocka_unit_test(test_race),
        cmocka_unit_test(test_which_clocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
