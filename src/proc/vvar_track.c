/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/vvar_track.h"

#include <string.h>

/* A second and a nanosecond in units of vvar_base_t.frac. */
#define FRAC_SEC  (VVAR_NSEC << VVAR_SHIFT)
#define FRAC_NSEC (1ULL << VVAR_SHIFT)

/* base + frac, frac below 2^63. */
static vvar_base_t base_add(vvar_base_t base, uint64_t frac)
{
    frac += base.frac;
    base.sec += (int64_t) (frac / FRAC_SEC);
    base.frac = frac % FRAC_SEC;
    return base;
}

static vvar_base_t base_of_ns(uint64_t ns)
{
    return (vvar_base_t){.sec = (int64_t) (ns / VVAR_NSEC),
                         .frac = ns % VVAR_NSEC << VVAR_SHIFT};
}

/* base + ns, ns of either sign. */
static vvar_base_t base_add_ns(vvar_base_t base, int64_t ns)
{
    int64_t sec = ns / (int64_t) VVAR_NSEC;

    ns -= sec * (int64_t) VVAR_NSEC;
    if (ns < 0) {
        ns += (int64_t) VVAR_NSEC;
        sec--;
    }
    base.sec += sec;
    return base_add(base, (uint64_t) ns << VVAR_SHIFT);
}

/* Nanoseconds by which a is ahead of b, rounded up; 0 when it is not; at most
 * 100 s: FRAC_SEC times that fits. */
static uint64_t base_ahead(vvar_base_t a, vvar_base_t b)
{
    if (a.sec < b.sec || (a.sec == b.sec && a.frac <= b.frac))
        return 0;
    uint64_t sec = (uint64_t) (a.sec - b.sec);
    if (sec > 100)
        return 100 * VVAR_NSEC;
    return (sec * FRAC_SEC + a.frac - b.frac + FRAC_NSEC - 1) >> VVAR_SHIFT;
}

void vvar_track_init(vvar_track_t *track, uint64_t hz)
{
    memset(track, 0, sizeof(*track));
    track->hz = hz;
    for (int i = 0; i < VVAR_SLOPES; i++)
        track->slope[i] = FRAC_SEC / hz;
}

void vvar_track_guess(vvar_track_t *track, int64_t ppm)
{
    int64_t nominal = (int64_t) (FRAC_SEC / track->hz);

    /* NTP steers by 500 ppm at most; nominal is below 2^36. */
    if (ppm > -(1000 << 16) && ppm < 1000 << 16)
        track->slope[VVAR_SLOPE_MONOTONIC] =
            (uint64_t) (nominal + nominal * (ppm / 256) / (256 * 1000000));
}

/*
 * The kernel's slope between two samples, into the estimate. Too short a time
 * says little, too long a one may have had a suspension in it; a per cent off
 * the nominal frequency cannot be (NTP steers by 0.05 % at most).
 */
static void learn_slope(vvar_track_t *track, const vvar_sample_t *sample, int i)
{
    uint64_t cycles = sample->cycles - track->last.cycles;
    uint64_t ns = sample->ns[i] - track->last.ns[i];
    uint64_t nominal = FRAC_SEC / track->hz;

    if (cycles < track->hz / 20 || cycles > 16 * track->hz)
        return;
    uint64_t slope = ns < 32 * VVAR_NSEC ? (ns << VVAR_SHIFT) / cycles : 0;
    if (slope < nominal - nominal / 100 || slope > nominal + nominal / 100)
        return;
    /* A quarter of the news: one disturbed sample does not shake the line. */
    track->slope[i] += ((int64_t) slope - (int64_t) track->slope[i]) / 4;
}

/* Where the line goes on from, and how steeply. */
static vvar_base_t next_line(const vvar_track_t *track, vvar_base_t reached,
                             const vvar_sample_t *sample, int i, uint64_t *mult)
{
    vvar_base_t kernel = base_of_ns(sample->ns[i]);
    uint64_t slope = track->slope[i];
    uint64_t ahead = base_ahead(reached, kernel);

    *mult = slope;
    if (ahead == 0)
        return kernel;
    if (ahead > VVAR_PERIOD_NS / 2)
        ahead = VVAR_PERIOD_NS / 2;
    *mult =
        slope - (uint64_t) ((unsigned __int128) slope * ahead / VVAR_PERIOD_NS);
    return reached;
}

static uint64_t distance(int64_t a, int64_t b)
{
    return a > b ? (uint64_t) a - (uint64_t) b : (uint64_t) b - (uint64_t) a;
}

void vvar_track_advance(vvar_track_t *track, const vvar_sample_t *sample,
                        uint64_t span_ns)
{
    vvar_page_t *line = &track->line;
    vvar_base_t base[VVAR_SLOPES] = {line->base[VVAR_MONOTONIC],
                                     line->base[VVAR_RAW]};
    vvar_sample_t now = *sample;

    if (track->started) {
        uint64_t used = now.cycles - line->cycles;
        if (used > line->span)
            used = line->span;
        for (int i = 0; i < VVAR_SLOPES; i++) {
            learn_slope(track, &now, i);
            base[i] = base_add(base[i], used * line->mult[i]);
        }
        uint64_t doubt = VVAR_STEP_NS + now.doubt;
        if (distance(now.realtime, track->last.realtime) <= doubt)
            now.realtime = track->last.realtime;
        if (distance(now.boottime, track->last.boottime) <= doubt)
            now.boottime = track->last.boottime;
    }
    for (int i = 0; i < VVAR_SLOPES; i++)
        base[i] = next_line(track, base[i], &now, i, &line->mult[i]);
    line->cycles = now.cycles;
    line->span =
        (uint64_t) ((unsigned __int128) span_ns * track->hz / VVAR_NSEC);
    line->base[VVAR_MONOTONIC] = base[VVAR_SLOPE_MONOTONIC];
    line->base[VVAR_RAW] = base[VVAR_SLOPE_RAW];
    line->base[VVAR_REALTIME] =
        base_add_ns(base[VVAR_SLOPE_MONOTONIC], now.realtime);
    line->base[VVAR_BOOTTIME] =
        base_add_ns(base[VVAR_SLOPE_MONOTONIC], now.boottime);
    track->last = now;
    track->started = true;
}

void vvar_track_park(vvar_track_t *track, uint64_t cycles)
{
    uint64_t used = cycles - track->line.cycles;

    if (used < track->line.span)
        track->line.span = used;
}
