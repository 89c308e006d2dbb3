/* SPDX-License-Identifier: Apache-2.0 */
/* A range of pages as the 2 MiB blocks that it covers, and the rest. */
#ifndef ELFUSE_PROVED_BLOCKS_H
#define ELFUSE_PROVED_BLOCKS_H

#include <stdint.h>

#include "abi/layout.h"

/*
 * `head` pages of one block; then `blocks` whole blocks, the first of which is
 * number `first`; then `tail` pages at the start of the block behind them. A
 * range within one block that does not reach its end is all head or, if it
 * starts at the block's start, all tail.
 */
typedef struct block_span {
    uint64_t head;
    uint64_t first;
    uint64_t blocks;
    uint64_t tail;
} block_span_t;

/* Of the pages [start, end), page numbers. */
/*@ requires start <= end <= 0x0010000000000000;
  @ assigns \nothing;
  @ ensures partial: \result.head < BLOCK_PAGES && \result.tail < BLOCK_PAGES;
  @ ensures all: \result.head + BLOCK_PAGES * \result.blocks + \result.tail ==
  @     end - start;
  @ ensures one_block: \result.head > 0 ==>
  @     start / BLOCK_PAGES == (start + \result.head - 1) / BLOCK_PAGES;
  @ ensures border: \result.blocks > 0 || \result.tail > 0 ==>
  @     start + \result.head == BLOCK_PAGES * \result.first;
  @*/
static inline block_span_t block_span(uint64_t start, uint64_t end)
{
    block_span_t span = {0, 0, 0, 0};
    uint64_t border;

    span.first = (start + BLOCK_PAGES - 1) / BLOCK_PAGES;
    border = span.first * BLOCK_PAGES;
    if (end < border) {
        span.head = end - start;
        return span;
    }
    span.head = border - start;
    span.blocks = (end - border) / BLOCK_PAGES;
    span.tail = (end - border) % BLOCK_PAGES;
    return span;
}

#endif
