/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How large an arena is, and what fits into one. An arena is a range of guest
 * addresses that belongs to one vCPU; a cursor moves through it from the start
 * to the limit. All in bytes.
 */
#ifndef ELFUSE_PROVED_ARENA_H
#define ELFUSE_PROVED_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/layout.h"
#include "proved/pow2.h"

#define ARENA_MIN 0x4000000UL   /* 64 MiB */
#define ARENA_MAX 0x800000000UL /* 32 GiB */
/* How many requests of the longest recent length one arena is to serve. */
#define ARENA_REQUESTS 16UL
/* Arenas on all vCPUs (VCPU_MAX) leave three quarters of user space alone. */
#define ARENA_USER_SHARE (4UL * VCPU_MAX)

/*
 * Where a request is placed, with the cursor in user space: from a block's size
 * on at the start of a block, so that unmapping it clears whole tables.
 */
/*@ requires cursor <= 0x0001000000000000;
  @ assigns \nothing;
  @ ensures near: cursor <= \result < cursor + BLOCK_SIZE;
  @ ensures small: len < BLOCK_SIZE ==> \result == cursor;
  @ ensures large: len >= BLOCK_SIZE ==> \result % BLOCK_SIZE == 0;
  @*/
static inline uint64_t request_start(uint64_t cursor, uint64_t len)
{
    if (len < BLOCK_SIZE)
        return cursor;
    return (cursor + BLOCK_SIZE - 1) / BLOCK_SIZE * BLOCK_SIZE;
}

/* len bytes from start on end at or before limit; zero bytes never fit. */
/*@ assigns \nothing;
  @ ensures \result <==> 0 < len && start + len <= limit;
  @*/
static inline bool request_fits(uint64_t start, uint64_t limit, uint64_t len)
{
    return len > 0 && start <= limit && len <= limit - start;
}

/*
 * Of an arena to be carved out, for the longest of the recent requests and
 * user_size bytes of user space: room for ARENA_REQUESTS such requests if the
 * bounds allow it.
 */
/*@ assigns \nothing;
  @ ensures power: is_pow2(\result);
  @ ensures bounds: ARENA_MIN <= \result <= ARENA_MAX;
  @ ensures share: \result <= user_size / ARENA_USER_SHARE ||
  @     \result == ARENA_MIN;
  @ ensures enough: longest * ARENA_REQUESTS <= \result ||
  @     \result == ARENA_MAX || 2 * \result > user_size / ARENA_USER_SHARE;
  @ ensures least: \result == ARENA_MIN ||
  @     \result / 2 < longest * ARENA_REQUESTS;
  @*/
static inline uint64_t arena_size(uint64_t longest, uint64_t user_size)
{
    uint64_t most = ARENA_MAX, wanted = ARENA_MAX;

    /*@ loop invariant power: is_pow2(most);
      @ loop invariant bounds: ARENA_MIN <= most <= ARENA_MAX;
      @ loop invariant share: most == ARENA_MAX ||
      @     2 * most > user_size / ARENA_USER_SHARE;
      @ loop assigns most;
      @ loop variant most;
      @*/
    while (most > ARENA_MIN && most > user_size / ARENA_USER_SHARE)
        most /= 2;
    if (longest < ARENA_MAX / ARENA_REQUESTS)
        wanted = longest * ARENA_REQUESTS;
    return pow2_clamp(wanted, ARENA_MIN, most);
}

#endif
