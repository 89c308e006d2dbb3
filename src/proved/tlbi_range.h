/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operands of the TLBI instructions (Arm ARM DDI 0487, D8.14 and the pages of
 * TLBI VAE1IS and TLBI RVAE1IS), for ASID 0 and the 4 KiB granule:
 *
 *   by address  bits 43:0 are VA[55:12]
 *   by range    bits 36:0 are VA[48:12], 43:39 NUM, 45:44 SCALE, 47:46 TG = 1;
 *               covers (NUM + 1) << (5 * SCALE + 1) pages from there on
 */
#ifndef ELFUSE_PROVED_TLBI_RANGE_H
#define ELFUSE_PROVED_TLBI_RANGE_H

#include <stdint.h>

/* The most that one range operation covers: 32 << 16 pages, 8 GiB. */
#define TLBI_RANGE_MAX_PAGES 0x200000UL

/*@ requires va <= 0x0001ffffffffffff;
  @ assigns \nothing;
  @ ensures \result == (va >> 12);
  @*/
static inline uint64_t tlbi_va_operand(uint64_t va)
{
    return va >> 12;
}

/* The scale of the largest unit, (1 << (5 * scale + 1)) pages, that fits. */
/*@ requires 2 <= pages <= 0x200000;
  @ assigns \nothing;
  @ ensures 0 <= \result <= 3;
  @ ensures (2UL << (5 * \result)) <= pages;
  @ ensures \result == 3 || pages < (2UL << (5 * (\result + 1)));
  @*/
static inline unsigned tlbi_range_scale(uint64_t pages)
{
    if (pages >= 0x10000)
        return 3;
    if (pages >= 0x800)
        return 2;
    return pages >= 0x40 ? 1 : 0;
}

/*
 * One range operation from va: as many of the pages as one can cover, at least
 * two and never more than asked for. *covered is how many.
 */
/*@ requires 2 <= pages <= 0x200000;
  @ requires va <= 0x0001ffffffffffff;
  @ requires \valid(covered);
  @ assigns *covered;
  @ ensures 2 <= *covered <= pages;
  @ ensures pages - *covered < (2UL << 15);
  @*/
static inline uint64_t tlbi_range_operand(uint64_t va, uint64_t pages,
                                          uint64_t *covered)
{
    unsigned scale = tlbi_range_scale(pages);
    unsigned shift = 5 * scale + 1;
    uint64_t num = (pages >> shift) - 1;

    /* pages < the next scale's unit, or <= the maximum: num is 0 to 31. */
    *covered = (num + 1) << shift;
    return (va >> 12) | (num << 39) | ((uint64_t) scale << 44) | (1UL << 46);
}

#endif
