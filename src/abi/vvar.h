/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock page: written by the host (proc/vvar.c), read by the vDSO at EL0
 * and by the host's own clock_gettime, both through vvar_read() below, so that
 * they cannot disagree.
 *
 * A clock is a straight line over the counter CNTVCT_EL0, which is the same for
 * the guest and the host:
 *
 *     ns << VVAR_SHIFT = frac + (counter - cycles) * mult
 *
 * and is served only for `span` counts past the anchor. REALTIME, MONOTONIC and
 * BOOTTIME differ by offsets and share one slope; MONOTONIC_RAW has its own.
 * The coarse clocks are not here: Linux promises that they agree with the time
 * stamps of files, so only the kernel can tell them.
 *
 * Seqlock. The writer (one at a time, under a mutex): seq becomes odd
 * (relaxed), fields (each a release), seq becomes even (release). The reader:
 * seq (acquire: pairs with the writer's last store), fields (each an acquire,
 * pairs with the release of that field: whoever sees a new one will see seq
 * odd, or further on), seq again (relaxed). A reader that meets a writer does
 * not spin: it falls to the system call, which sleeps on the writer's mutex.
 */
#ifndef ELFUSE_ABI_VVAR_H
#define ELFUSE_ABI_VVAR_H

#include <stdbool.h>
#include <stdint.h>

/* (span * mult + frac) fits 64 bits: 2 s and 1 s in ns are 2^31 and 2^30. */
#define VVAR_SHIFT    26
#define VVAR_NSEC     1000000000ULL
#define VVAR_SPAN_SEC 2

/* Which lines there are. */
enum vvar_clock {
    VVAR_REALTIME,
    VVAR_MONOTONIC,
    VVAR_BOOTTIME,
    VVAR_RAW,
    VVAR_CLOCKS,
};

typedef struct vvar_base {
    int64_t sec;
    uint64_t frac; /* nanoseconds << VVAR_SHIFT, below one second */
} vvar_base_t;

typedef struct vvar_page {
    uint32_t seq; /* odd: being written */
    uint32_t pad;
    uint64_t cycles;  /* counter at the anchor */
    uint64_t span;    /* counts for which the page serves; 0: it does not */
    uint64_t mult[2]; /* slope of VVAR_RAW is [1], of all others [0] */
    vvar_base_t base[VVAR_CLOCKS];
} vvar_page_t;

_Static_assert(sizeof(vvar_page_t) == 40 + 16 * VVAR_CLOCKS, "vvar ABI");

/*
 * The vDSO finds the page through one word of its image, at this offset, which
 * the loader replaces by the page's address. Until then it holds the magic.
 * vdso.lds has the same number.
 */
#define VDSO_VVAR_OFF   0x200
#define VDSO_VVAR_MAGIC 0x76766172656c6675ULL
/* __kernel_rt_sigreturn, likewise. */
#define VDSO_SIGRETURN_OFF 0x244

/* The line that serves a clockid_t, or -1. */
static inline int vvar_line(int clock)
{
    switch (clock) {
    case 0:
        return VVAR_REALTIME;
    case 1:
        return VVAR_MONOTONIC;
    case 4:
        return VVAR_RAW;
    case 7:
        return VVAR_BOOTTIME;
    default:
        return -1;
    }
}

#ifdef __aarch64__
/*
 * ISB on both sides: the counter may be read ahead of what is before it in
 * program order (Arm ARM, D11.1.2), and the second look at seq must not be.
 */
static inline uint64_t vvar_counter(void)
{
    uint64_t count;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb"
                     : "=r"(count)
                     :
                     : "memory");
    return count;
}
#else
uint64_t vvar_counter(void); /* unit tests bring their own */
#endif

/* Value of a line `delta` counts past the anchor. */
static inline void vvar_line_at(const vvar_base_t *base, uint64_t mult,
                                uint64_t delta, int64_t *sec, uint64_t *nsec)
{
    uint64_t ns = (base->frac + delta * mult) >> VVAR_SHIFT;

    *sec = base->sec;
    while (ns >= VVAR_NSEC) { /* at most three times: see VVAR_SHIFT */
        ns -= VVAR_NSEC;
        ++*sec;
    }
    *nsec = ns;
}

/* Read one line; false: the page does not serve now, ask the kernel. */
static inline bool vvar_read(const vvar_page_t *page, int line, int64_t *sec,
                             uint64_t *nsec)
{
    uint32_t seq = __atomic_load_n(&page->seq, __ATOMIC_ACQUIRE);
    if ((seq & 1) != 0)
        return false;
    vvar_base_t base;
    uint64_t cycles = __atomic_load_n(&page->cycles, __ATOMIC_ACQUIRE);
    uint64_t span = __atomic_load_n(&page->span, __ATOMIC_ACQUIRE);
    uint64_t mult =
        __atomic_load_n(&page->mult[line == VVAR_RAW], __ATOMIC_ACQUIRE);
    base.sec = __atomic_load_n(&page->base[line].sec, __ATOMIC_ACQUIRE);
    base.frac = __atomic_load_n(&page->base[line].frac, __ATOMIC_ACQUIRE);
    uint64_t count = vvar_counter();
    if (__atomic_load_n(&page->seq, __ATOMIC_RELAXED) != seq)
        return false;
    /* A counter a little behind the anchor's reads as the anchor itself. */
    uint64_t delta = (int64_t) (count - cycles) < 0 ? 0 : count - cycles;
    if (delta >= span)
        return false;
    vvar_line_at(&base, mult, delta, sec, nsec);
    return true;
}

#endif
