/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signal frame of arm64 Linux as bytes: what a handler finds as its
 * ucontext, and what rt_sigreturn takes back. Pure functions; the guest's
 * memory is reached through a function that is given. Layout: the kernel's
 * uapi/asm/sigcontext.h and ucontext.h.
 */
#ifndef ELFUSE_PROC_SIGFRAME_H
#define ELFUSE_PROC_SIGFRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/frame.h"
#include "proc/signal.h"

#define SIGFRAME_RESERVED 4096

/* struct rt_sigframe: siginfo, then ucontext, which ends with sigcontext. */
typedef struct sigframe {
    uint8_t info[128];
    uint64_t uc_flags, uc_link;
    signal_stack_t stack;
    uint64_t mask;
    uint8_t unused[120];
    uint64_t pad;
    uint64_t fault_address;
    uint64_t x[31];
    uint64_t sp, pc, pstate;
    uint64_t pad2;
    uint8_t reserved[SIGFRAME_RESERVED]; /* records, each of 16n bytes */
} sigframe_t;

/* What of a sigframe_t are where the handler's arguments point. */
#define SIGFRAME_UC offsetof(sigframe_t, uc_flags)

_Static_assert(offsetof(sigframe_t, stack) == 144, "kernel ABI");
_Static_assert(offsetof(sigframe_t, mask) == 168, "kernel ABI");
_Static_assert(offsetof(sigframe_t, fault_address) == 304, "kernel ABI");
_Static_assert(offsetof(sigframe_t, reserved) == 592, "kernel ABI");
_Static_assert(sizeof(sigframe_t) == 4688, "kernel ABI");

typedef struct sigframe_in {
    const vcpu_frame_t *regs; /* fp valid */
    const signal_thread_t *signal;
    uint64_t mask; /* to go back to */
    bool sve;      /* the Z, P and FFR registers are worth keeping */
} sigframe_in_t;

/* Fill f but for info. Returns how many of its bytes are the frame: the last
 * record is the terminator. */
size_t sigframe_build(sigframe_t *f, const sigframe_in_t *in);

/* Read len bytes of guest memory at addr; 0 or -EFAULT. */
typedef struct sigframe_reader {
    int (*read)(void *arg, void *to, uint64_t addr, size_t len);
    void *arg;
} sigframe_reader_t;

/* How much of a frame was good: rt_sigreturn uses what it comes by. */
enum sigframe_part {
    SIGFRAME_NONE,  /* never looked at */
    SIGFRAME_REGS,  /* x, sp, pc, pstate, which is safe; mask, if has_mask */
    SIGFRAME_FP,    /* and fp */
    SIGFRAME_WHOLE, /* and stack */
};

typedef struct sigframe_out {
    bool has_mask;
    uint64_t mask;
    uint64_t x[31];
    uint64_t sp, pc, pstate;
    fp_state_t fp; /* vl: the caller's, before */
    signal_stack_t stack;
} sigframe_out_t;

/* The frame at addr, which is aligned. Anything but SIGFRAME_WHOLE is a bad
 * frame. */
enum sigframe_part sigframe_parse(const sigframe_reader_t *r, uint64_t addr,
                                  sigframe_out_t *out);

#endif
