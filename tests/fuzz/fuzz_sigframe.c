/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a signal frame: what comes out must be safe to run, and the
 * vector length stays what it was.
 */
/* sources: src/proc/sigframe.c */
#include <stdlib.h>
#include <string.h>

#include "proc/sigframe.h"

#define BASE 0x10000UL

typedef struct input {
    const uint8_t *data;
    size_t size;
} input_t;

static int read_input(void *arg, void *to, uint64_t addr, size_t len)
{
    const input_t *in = arg;
    uint64_t at = addr - BASE;

    if (at > in->size || len > in->size - at)
        return -14;
    memcpy(to, in->data + at, len);
    return 0;
}

/* The first bytes are no interesting part of a frame: begin near its records,
 * with the frame before them all zero. */
static void fuzz_records(const uint8_t *data, size_t size, uint64_t vl)
{
    static uint8_t frame[sizeof(sigframe_t) + 0x10000];
    size_t from = offsetof(sigframe_t, reserved);
    sigframe_out_t out = {.fp.vl = vl};
    input_t in = {frame, from + size};
    const sigframe_reader_t reader = {read_input, &in};

    if (from + size > sizeof frame)
        return;
    memset(frame, 0, from);
    memcpy(frame + from, data, size);
    (void) sigframe_parse(&reader, BASE, &out);
    if (out.fp.vl != vl)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input_t in = {data, size};
    const sigframe_reader_t reader = {read_input, &in};
    sigframe_out_t out = {.fp.vl = 0};

    if (size < 1)
        return 0;
    (void) sigframe_parse(&reader, BASE, &out);
    /* EL0, 64 bits, nothing masked. */
    if (out.pstate & 0x3df)
        abort();
    fuzz_records(data + 1, size - 1, data[0] % 5 * 16);
    return 0;
}
