/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Indices of a ring with one producer and one consumer. Both run freely over
 * all 32 bits: the producer's tail and the consumer's head are equal when the
 * ring is empty, and the subtraction may wrap.
 */
#ifndef ELFUSE_PROVED_RING_H
#define ELFUSE_PROVED_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "proved/pow2.h"

#define RING_INDICES 0x100000000UL

/*@ logic integer ring_distance(integer tail, integer head) =
  @     tail >= head ? tail - head : tail - head + RING_INDICES;
  @*/

/* How many entries wait for the consumer. */
/*@ assigns \nothing;
  @ ensures \result == ring_distance(tail, head);
  @*/
static inline uint32_t ring_used(uint32_t tail, uint32_t head)
{
    /* The same as tail - head, in words that the proof understands. */
    return (uint32_t) ((tail + RING_INDICES - head) % RING_INDICES);
}

/* No producer and consumer of a ring of this size can have got there. */
/*@ assigns \nothing;
  @ ensures \result <==> ring_distance(tail, head) > size;
  @*/
static inline bool ring_impossible(uint32_t tail, uint32_t head, uint32_t size)
{
    return ring_used(tail, head) > size;
}

/* No slot is free. Also said of impossible indices. */
/*@ assigns \nothing;
  @ ensures \result <==> ring_distance(tail, head) >= size;
  @*/
static inline bool ring_full(uint32_t tail, uint32_t head, uint32_t size)
{
    return ring_used(tail, head) >= size;
}

/* No more than `spare` slots are free. */
/*@ assigns \nothing;
  @ ensures \result <==> ring_distance(tail, head) + spare >= size;
  @*/
static inline bool ring_near_full(uint32_t tail, uint32_t head, uint32_t size,
                                  uint32_t spare)
{
    return (uint64_t) ring_used(tail, head) + spare >= size;
}

/* The slot of an index; the power of two makes slot 0 follow the last one
 * where the index wraps, too. */
/*@ requires is_pow2(size);
  @ assigns \nothing;
  @ ensures bound: \result < size;
  @ ensures slot: \result == index % size;
  @ ensures wrap: index == 0xffffffff ==> \result == size - 1;
  @*/
static inline uint32_t ring_slot(uint32_t index, uint32_t size)
{
    return index % size;
}

#endif
