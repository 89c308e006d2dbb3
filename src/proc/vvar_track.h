/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic behind the clock page: how its lines follow the kernel's
 * clocks. Pure functions; proc/vvar.c takes the samples and publishes.
 *
 * The rule: what a reader may have seen is never undercut. At a new anchor a
 * line continues either at the kernel's time, when that is ahead, or where it
 * has come to, with a smaller slope that meets the kernel's time one period
 * later.
 */
#ifndef ELFUSE_PROC_VVAR_TRACK_H
#define ELFUSE_PROC_VVAR_TRACK_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/vvar.h"

/* The anchors are renewed so often, nanoseconds. */
#define VVAR_PERIOD_NS 250000000ULL
/* An offset that moves by less than this, plus the sample's own doubt, has not
 * moved. */
#define VVAR_STEP_NS 1000ULL

enum vvar_slope { VVAR_SLOPE_MONOTONIC, VVAR_SLOPE_RAW, VVAR_SLOPES };

/* The kernel's clocks at one count of the counter. */
typedef struct vvar_sample {
    uint64_t cycles;
    uint64_t ns[VVAR_SLOPES];   /* MONOTONIC and MONOTONIC_RAW */
    int64_t realtime, boottime; /* ns ahead of MONOTONIC */
    uint64_t doubt;             /* ns by which the offsets may be off */
} vvar_sample_t;

typedef struct vvar_track {
    bool started;
    uint64_t hz;                 /* of the counter */
    uint64_t slope[VVAR_SLOPES]; /* the kernel's, estimated; << VVAR_SHIFT */
    vvar_sample_t last;
    vvar_page_t line; /* as published, but for seq; its span says how far
                         readers may have used it */
} vvar_track_t;

/* hz: at least 1 MHz, at most 1 GHz by the architecture. */
void vvar_track_init(vvar_track_t *track, uint64_t hz);

/* MONOTONIC runs off the nominal frequency by ppm / 2^16 millionths, as
 * adjtimex(2) says it: a better first guess than none. */
void vvar_track_guess(vvar_track_t *track, int64_t ppm);

/* Take a new sample into account; the new lines serve for span_ns, at most
 * VVAR_SPAN_SEC. Samples come with increasing cycles. */
void vvar_track_advance(vvar_track_t *track, const vvar_sample_t *sample,
                        uint64_t span_ns);

/* The lines are withdrawn at this count: nobody has read later ones. */
void vvar_track_park(vvar_track_t *track, uint64_t cycles);

#endif
