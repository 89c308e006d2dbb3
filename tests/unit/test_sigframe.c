/* SPDX-License-Identifier: Apache-2.0 */
/* Signal frames: built and taken back, and what must be refused. */
/* sources: src/proc/sigframe.c */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proc/sigframe.h"

#define BASE 0x7000000UL /* where the frame is, for the guest */

typedef struct memory {
    sigframe_t frame;
    uint8_t behind[4096];
    uint64_t hole_from, hole_to; /* cannot be read */
} memory_t;

static memory_t memory;

static int read_memory(void *arg, void *to, uint64_t addr, size_t len)
{
    const memory_t *m = arg;
    uint64_t at = addr - BASE;

    if (at > offsetof(memory_t, hole_from) ||
        len > offsetof(memory_t, hole_from) - at)
        return -14;
    if (addr < m->hole_to && addr + len > m->hole_from)
        return -14;
    memcpy(to, (const uint8_t *) m + at, len);
    return 0;
}

static const sigframe_reader_t reader = {read_memory, &memory};

static vcpu_frame_t regs;
static signal_thread_t thread;
static sigframe_out_t out;

/* Registers that are all different. */
static void fill(uint64_t vl)
{
    uint8_t *p = (uint8_t *) &regs.fp;

    memset(&memory, 0xee, sizeof memory);
    memory.hole_from = memory.hole_to = 0;
    memset(&thread, 0, sizeof thread);
    for (size_t i = 0; i < sizeof regs.fp; i++)
        p[i] = (uint8_t) (i * 31 + i / 256);
    for (unsigned i = 0; i < 31; i++)
        regs.x[i] = 1000 + i;
    regs.sp_el0 = 2000;
    regs.elr = 3000;
    regs.spsr = 6UL << 28;
    regs.fp.vl = vl;
    memset(&out, 0, sizeof out);
    out.fp.vl = vl;
}

static size_t build(bool sve)
{
    sigframe_in_t in = {&regs, &thread, 0x1234, sve};

    return sigframe_build(&memory.frame, &in);
}

static enum sigframe_part parse(void)
{
    return sigframe_parse(&reader, BASE, &out);
}

static void assert_registers(void)
{
    assert_memory_equal(out.x, regs.x, sizeof regs.x);
    assert_int_equal(out.sp, 2000);
    assert_int_equal(out.pc, 3000);
    assert_int_equal(out.pstate, 6UL << 28);
    assert_true(out.has_mask);
    assert_int_equal(out.mask, 0x1234);
    assert_int_equal(out.fp.fpsr, regs.fp.fpsr);
    assert_int_equal(out.fp.fpcr, regs.fp.fpcr);
}

static void test_without_sve(void **state)
{
    (void) state;
    fill(0);
    assert_int_equal(build(true), 592 + 528 + 16);
    assert_int_equal(parse(), SIGFRAME_WHOLE);
    assert_registers();
    assert_memory_equal(out.fp.z, regs.fp.z, 512);
}

static void test_with_sve(void **state)
{
    (void) state;
    for (uint64_t vl = 16; vl <= FP_VL_MAX; vl += 16) {
        size_t size = (16 + 32 * vl + 16 * vl / 8 + vl / 8 + 15) & ~15UL;

        fill(vl);
        assert_int_equal(build(true), 592 + 528 + size + 16);
        assert_int_equal(parse(), SIGFRAME_WHOLE);
        assert_registers();
        assert_memory_equal(out.fp.z, regs.fp.z, 32 * vl);
        assert_memory_equal(out.fp.p, regs.fp.p, 2 * vl);
        assert_memory_equal(out.fp.ffr, regs.fp.ffr, vl / 8);
    }
}

/* The record is there, its registers are not: they become zero but for V. */
static void test_sve_of_a_call(void **state)
{
    static const uint8_t zero[FP_VL_MAX];

    (void) state;
    fill(32);
    assert_int_equal(build(false), 592 + 528 + 16 + 16);
    memset(&out.fp.z, 0xff, sizeof out.fp.z);
    memset(&out.fp.p, 0xff, sizeof out.fp.p);
    assert_int_equal(parse(), SIGFRAME_WHOLE);
    for (unsigned n = 0; n < 32; n++) {
        assert_memory_equal(out.fp.z + 32 * n, regs.fp.z + 32 * n, 16);
        assert_memory_equal(out.fp.z + 32 * n + 16, zero, 16);
    }
    assert_memory_equal(out.fp.p, zero, 64);
}

static void test_esr(void **state)
{
    (void) state;
    fill(0);
    thread.fault_address = 4711;
    thread.fault_esr = 0x92000047;
    assert_int_equal(build(true), 592 + 528 + 16 + 16);
    assert_int_equal(memory.frame.fault_address, 4711);
    assert_memory_equal(memory.frame.reserved + 536, &thread.fault_esr, 8);
    assert_int_equal(parse(), SIGFRAME_WHOLE);
}

static void test_pstate(void **state)
{
    static const uint64_t bad[] = {1, 4, 5, 0x10, 1 << 6, 1 << 9};

    (void) state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        fill(0);
        build(true);
        memory.frame.pstate = bad[i] | 9UL << 28 | 3UL << 10;
        assert_int_equal(parse(), SIGFRAME_REGS);
        assert_int_equal(out.pstate, 9UL << 28);
    }
    fill(0);
    build(true);
    memory.frame.pstate = ~0x3dfUL;
    assert_int_equal(parse(), SIGFRAME_WHOLE);
    assert_int_equal(out.pstate, 0xf3001c00UL);
}

/* Wherever reading stops, what came before counts. */
static void test_holes(void **state)
{
    (void) state;
    for (uint64_t at = 0; at < sizeof(sigframe_t); at += 8) {
        enum sigframe_part part;

        fill(16);
        build(true);
        memory.hole_from = BASE + at;
        memory.hole_to = BASE + at + 8;
        part = parse();
        if (at >= 304 + 8 && at < 592) {
            assert_int_equal(part, at < 584 ? SIGFRAME_REGS : SIGFRAME_WHOLE);
        } else if (at == 168) {
            assert_int_equal(part, SIGFRAME_REGS);
            assert_false(out.has_mask);
            assert_int_equal(out.sp, 2000);
        } else if (at >= 144 && at < 168) {
            assert_int_equal(part, SIGFRAME_FP);
        }
        if (at == 560)
            assert_int_equal(out.sp, 0);
    }
}

/* No byte of the records makes it read outside, or end nowhere. */
static void test_each_byte(void **state)
{
    (void) state;
    for (size_t at = 0; at < 528 + 640; at++) {
        for (unsigned flip = 1; flip < 256; flip <<= 1) {
            fill(16);
            build(true);
            memory.frame.reserved[at] ^= (uint8_t) flip;
            (void) parse();
            assert_int_equal(out.fp.vl, 16);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_sve),   cmocka_unit_test(test_with_sve),
        cmocka_unit_test(test_sve_of_a_call), cmocka_unit_test(test_esr),
        cmocka_unit_test(test_pstate),        cmocka_unit_test(test_holes),
        cmocka_unit_test(test_each_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
