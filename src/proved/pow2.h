/* SPDX-License-Identifier: Apache-2.0 */
/* Powers of two. */
#ifndef ELFUSE_PROVED_POW2_H
#define ELFUSE_PROVED_POW2_H

#include <stdint.h>

/*@ predicate is_pow2(integer n) =
  @     n == 0x1 || n == 0x2 || n == 0x4 || n == 0x8 ||
  @     n == 0x10 || n == 0x20 || n == 0x40 || n == 0x80 ||
  @     n == 0x100 || n == 0x200 || n == 0x400 || n == 0x800 ||
  @     n == 0x1000 || n == 0x2000 || n == 0x4000 || n == 0x8000 ||
  @     n == 0x10000 || n == 0x20000 || n == 0x40000 || n == 0x80000 ||
  @     n == 0x100000 || n == 0x200000 || n == 0x400000 || n == 0x800000 ||
  @     n == 0x1000000 || n == 0x2000000 || n == 0x4000000 ||
  @     n == 0x8000000 || n == 0x10000000 || n == 0x20000000 ||
  @     n == 0x40000000 || n == 0x80000000 || n == 0x100000000 ||
  @     n == 0x200000000 || n == 0x400000000 || n == 0x800000000 ||
  @     n == 0x1000000000 || n == 0x2000000000 || n == 0x4000000000 ||
  @     n == 0x8000000000 || n == 0x10000000000 || n == 0x20000000000 ||
  @     n == 0x40000000000 || n == 0x80000000000 || n == 0x100000000000 ||
  @     n == 0x200000000000 || n == 0x400000000000 || n == 0x800000000000 ||
  @     n == 0x1000000000000 || n == 0x2000000000000 ||
  @     n == 0x4000000000000 || n == 0x8000000000000 ||
  @     n == 0x10000000000000 || n == 0x20000000000000 ||
  @     n == 0x40000000000000 || n == 0x80000000000000 ||
  @     n == 0x100000000000000 || n == 0x200000000000000 ||
  @     n == 0x400000000000000 || n == 0x800000000000000 ||
  @     n == 0x1000000000000000 || n == 0x2000000000000000 ||
  @     n == 0x4000000000000000 || n == 0x8000000000000000;
  @*/

/* The least power of two from min on that is not below n, but at most max. */
/*@ requires is_pow2(min) && is_pow2(max) && min <= max;
  @ assigns \nothing;
  @ ensures power: is_pow2(\result);
  @ ensures bounds: min <= \result <= max;
  @ ensures enough: n <= \result || \result == max;
  @ ensures least: \result == min || \result / 2 < n;
  @*/
static inline uint64_t pow2_clamp(uint64_t n, uint64_t min, uint64_t max)
{
    uint64_t size = min;

    /*@ loop invariant power: is_pow2(size);
      @ loop invariant bounds: min <= size <= max;
      @ loop invariant least: size == min || size / 2 < n;
      @ loop assigns size;
      @ loop variant max - size;
      @*/
    while (size < n && size < max)
        size *= 2;
    return size;
}

#endif
