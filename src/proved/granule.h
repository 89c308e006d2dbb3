/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table that finds the arena of an address: user space cut into granules of
 * the least size an arena has. Arenas start and end where granules do.
 */
#ifndef ELFUSE_PROVED_GRANULE_H
#define ELFUSE_PROVED_GRANULE_H

#include <stdint.h>

#include "proved/arena.h"

#define GRANULE_SIZE ARENA_MIN

/* Entries that the table needs for user_size bytes of user space. */
/*@ requires user_size <= 0x0001000000000000;
  @ assigns \nothing;
  @ ensures all: \result * GRANULE_SIZE >= user_size;
  @ ensures least: \result * GRANULE_SIZE < user_size + GRANULE_SIZE;
  @*/
static inline uint64_t granule_count(uint64_t user_size)
{
    return (user_size + GRANULE_SIZE - 1) / GRANULE_SIZE;
}

/* The entry of an address: below granule_count(n) for every address below n. */
/*@ assigns \nothing;
  @ ensures \result * GRANULE_SIZE <= addr < (\result + 1) * GRANULE_SIZE;
  @*/
static inline uint64_t granule_index(uint64_t addr)
{
    return addr / GRANULE_SIZE;
}

#endif
