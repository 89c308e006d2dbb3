/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The instructions that C has no words for. A unit test supplies
 * the functions itself.
 *
 * Invalidations are the inner-shareable forms: the siblings of a vCPU see them
 * too. Operands are made by proved/tlbi_range.h.
 */
#ifndef ELFUSE_SHIM_ARCH_H
#define ELFUSE_SHIM_ARCH_H

#include <stdint.h>

#include "abi/fast.h"

/*
 * A descriptor, read and written as a whole (Arm ARM B2.2.1) and in no order.
 * Relaxed atomics, but for gcc, which would compute each address anew.
 */
static inline uint64_t arch_load(const uint64_t *word)
{
#if __STDC_HOSTED__
    return __atomic_load_n(word, __ATOMIC_RELAXED);
#else
    return *(const volatile uint64_t *) word;
#endif
}

static inline void arch_store(uint64_t *word, uint64_t value)
{
#if __STDC_HOSTED__
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
#else
    *(volatile uint64_t *) word = value;
#endif
}

/* The shim is freestanding, a unit test is not. */
#if __STDC_HOSTED__
void arch_dsb_ishst(void);
void arch_dsb_ish(void);
void arch_isb(void);
void arch_tlbi_vale1is(uint64_t operand);
void arch_tlbi_vae1is(uint64_t operand);
void arch_tlbi_rvale1is(uint64_t operand);
void arch_tlbi_rvae1is(uint64_t operand);
void arch_tlbi_vmalle1is(void);
_Noreturn void arch_trap(void);
fast_shared_t *arch_fast_shared(void);
#else

/* What all vCPUs share. */
static inline fast_shared_t *arch_fast_shared(void)
{
    uint64_t address = SHIM_FAST_VA;

    /* Not to be composed of its quarters at each use. */
    __asm__("" : "+r"(address));
    return (fast_shared_t *) address;
}

/* A broken invariant: an exception at EL1, which the host reports. */
_Noreturn static inline void arch_trap(void)
{
    __asm__ volatile("brk #0");
    __builtin_unreachable();
}

static inline void arch_dsb_ishst(void)
{
    __asm__ volatile("dsb ishst" ::: "memory");
}

static inline void arch_dsb_ish(void)
{
    __asm__ volatile("dsb ish" ::: "memory");
}

static inline void arch_isb(void)
{
    __asm__ volatile("isb" ::: "memory");
}

static inline void arch_tlbi_vale1is(uint64_t operand)
{
    __asm__ volatile("tlbi vale1is, %0" ::"r"(operand) : "memory");
}

static inline void arch_tlbi_vae1is(uint64_t operand)
{
    __asm__ volatile("tlbi vae1is, %0" ::"r"(operand) : "memory");
}

/* FEAT_TLBIRANGE (Armv8.4), spelt as SYS for assemblers of Armv8.0. */
static inline void arch_tlbi_rvale1is(uint64_t operand)
{
    __asm__ volatile("sys #0, c8, c2, #5, %0" ::"r"(operand) : "memory");
}

static inline void arch_tlbi_rvae1is(uint64_t operand)
{
    __asm__ volatile("sys #0, c8, c2, #1, %0" ::"r"(operand) : "memory");
}

static inline void arch_tlbi_vmalle1is(void)
{
    __asm__ volatile("tlbi vmalle1is" ::: "memory");
}

static inline uint64_t arch_isar0(void)
{
    uint64_t value;

    __asm__ volatile("mrs %0, id_aa64isar0_el1" : "=r"(value));
    return value;
}

/* ISB before each: a counter read may otherwise run ahead of earlier code. */
static inline uint64_t arch_cntpct(void)
{
    uint64_t value;

    __asm__ volatile("isb; mrs %0, cntpct_el0" : "=r"(value)::"memory");
    return value;
}

static inline uint64_t arch_cntvct(void)
{
    uint64_t value;

    __asm__ volatile("isb; mrs %0, cntvct_el0" : "=r"(value)::"memory");
    return value;
}
#endif

#endif
