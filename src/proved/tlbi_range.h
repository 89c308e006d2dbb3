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

#include "abi/layout.h"

/* The most that one range operation covers: 32 << 16 pages, 8 GiB. */
#define TLBI_RANGE_MAX_PAGES 0x200000UL

/* Bits 39, 44 and 46. */
#define TLBI_NUM   0x8000000000UL
#define TLBI_SCALE 0x100000000000UL
#define TLBI_TG_4K 0x400000000000UL

/*@ logic integer tlbi_base(integer operand) = operand % 0x2000000000;
  @ logic integer tlbi_ttl(integer operand) = operand / 0x2000000000 % 4;
  @ logic integer tlbi_num(integer operand) = operand / 0x8000000000 % 32;
  @ logic integer tlbi_scale(integer operand) = operand / 0x100000000000 % 4;
  @ logic integer tlbi_tg(integer operand) = operand / 0x400000000000 % 4;
  @ logic integer tlbi_asid(integer operand) = operand / 0x1000000000000;
  @ logic integer tlbi_unit(integer scale) =
  @     scale == 0 ? 2 : scale == 1 ? 64 : scale == 2 ? 2048 : 65536;
  @*/

/*@ requires va <= 0x0001ffffffffffff;
  @ assigns \nothing;
  @ ensures \result == va / 4096;
  @*/
static inline uint64_t tlbi_va_operand(uint64_t va)
{
    return va / GUEST_PAGE_SIZE;
}

/* The scale of the largest unit, (1 << (5 * scale + 1)) pages, that fits. */
/*@ requires 2 <= pages;
  @ assigns \nothing;
  @ ensures scale: 0 <= \result <= 3;
  @ ensures fits: tlbi_unit(\result) <= pages;
  @ ensures largest: \result == 3 || pages < tlbi_unit(\result + 1);
  @*/
static inline uint32_t tlbi_range_scale(uint64_t pages)
{
    if (pages >= 0x10000)
        return 3;
    if (pages >= 0x800)
        return 2;
    return pages >= 0x40 ? 1 : 0;
}

/* Pages of one unit of NUM: 1 << (5 * scale + 1). */
/*@ requires scale <= 3;
  @ assigns \nothing;
  @ ensures \result == tlbi_unit(scale);
  @*/
static inline uint64_t tlbi_range_unit(uint32_t scale)
{
    if (scale >= 2)
        return scale == 2 ? 0x800 : 0x10000;
    return scale == 0 ? 2 : 0x40;
}

/* The operand from its fields, which do not overlap. */
/*@ requires va <= 0x0001ffffffffffff;
  @ requires num <= 31;
  @ requires scale <= 3;
  @ assigns \nothing;
  @ ensures base: tlbi_base(\result) == va / GUEST_PAGE_SIZE;
  @ ensures num: tlbi_num(\result) == num;
  @ ensures scale: tlbi_scale(\result) == scale;
  @ ensures granule: tlbi_tg(\result) == 1;
  @ ensures no_hint: tlbi_ttl(\result) == 0;
  @ ensures no_asid: tlbi_asid(\result) == 0;
  @*/
static inline uint64_t tlbi_range_encode(uint64_t va, uint64_t num,
                                         uint32_t scale)
{
    return va / GUEST_PAGE_SIZE + num * TLBI_NUM + scale * TLBI_SCALE +
           TLBI_TG_4K;
}

/*
 * One range operation from va: as many of the pages as one can cover, at least
 * two and never more than asked for. *covered is how many.
 */
/*@ requires 2 <= pages <= TLBI_RANGE_MAX_PAGES;
  @ requires va <= 0x0001ffffffffffff;
  @ requires \valid(covered);
  @ assigns *covered;
  @ ensures base: tlbi_base(\result) == va / GUEST_PAGE_SIZE;
  @ ensures granule: tlbi_tg(\result) == 1;
  @ ensures no_hint: tlbi_ttl(\result) == 0;
  @ ensures no_asid: tlbi_asid(\result) == 0;
  @ ensures exact: *covered ==
  @     (tlbi_num(\result) + 1) * tlbi_unit(tlbi_scale(\result));
  @ ensures bounds: 2 <= *covered <= pages;
  @ ensures rest: pages - *covered < tlbi_unit(tlbi_scale(\result));
  @*/
static inline uint64_t tlbi_range_operand(uint64_t va, uint64_t pages,
                                          uint64_t *covered)
{
    uint32_t scale = tlbi_range_scale(pages);
    uint64_t unit = tlbi_range_unit(scale);
    /* pages < the next scale's unit, or <= the maximum: num is 0 to 31. */
    uint64_t num = pages / unit - 1;

    *covered = (num + 1) * unit;
    return tlbi_range_encode(va, num, scale);
}

#endif
