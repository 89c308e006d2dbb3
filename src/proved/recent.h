/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lengths of the last requests that an arena served, in bytes. All zero is
 * the empty window. One owner; nothing here is atomic.
 */
#ifndef ELFUSE_PROVED_RECENT_H
#define ELFUSE_PROVED_RECENT_H

#include <stdint.h>

#define RECENT_LENGTHS 16U

typedef struct recent_lengths {
    uint64_t length[RECENT_LENGTHS];
    uint32_t next; /* the oldest, which the next one replaces */
} recent_lengths_t;

/*@ requires \valid(recent);
  @ requires recent->next < RECENT_LENGTHS;
  @ assigns recent->length[recent->next], recent->next;
  @ ensures added: recent->length[\old(recent->next)] == len;
  @ ensures turn: recent->next == (\old(recent->next) + 1) % RECENT_LENGTHS;
  @*/
static inline void recent_add(recent_lengths_t *recent, uint64_t len)
{
    recent->length[recent->next] = len;
    recent->next = (recent->next + 1) % RECENT_LENGTHS;
}

/*@ requires \valid_read(recent);
  @ assigns \nothing;
  @ ensures bound: \forall integer i; 0 <= i < RECENT_LENGTHS ==>
  @     recent->length[i] <= \result;
  @ ensures member: \exists integer i; 0 <= i < RECENT_LENGTHS &&
  @     recent->length[i] == \result;
  @*/
static inline uint64_t recent_max(const recent_lengths_t *recent)
{
    uint64_t longest = recent->length[0];

    /*@ loop invariant index: 1 <= i <= RECENT_LENGTHS;
      @ loop invariant bound: \forall integer j; 0 <= j < i ==>
      @     recent->length[j] <= longest;
      @ loop invariant member: \exists integer j; 0 <= j < i &&
      @     recent->length[j] == longest;
      @ loop assigns i, longest;
      @ loop variant RECENT_LENGTHS - i;
      @*/
    for (uint32_t i = 1; i < RECENT_LENGTHS; i++) {
        if (recent->length[i] > longest)
            longest = recent->length[i];
    }
    return longest;
}

#endif
