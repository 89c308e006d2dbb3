/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of guest addresses, as the memory calls are given them. */
#ifndef ELFUSE_PROVED_RANGE_H
#define ELFUSE_PROVED_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "abi/layout.h"

/* Up to the next page; 0 when that passes the end of the address space. */
/*@ assigns \nothing;
  @ ensures aligned: \result % GUEST_PAGE_SIZE == 0;
  @ ensures up: len <= 0xfffffffffffff000 ==>
  @     len <= \result < len + GUEST_PAGE_SIZE;
  @ ensures past: len > 0xfffffffffffff000 ==> \result == 0;
  @*/
static inline uint64_t page_align(uint64_t len)
{
    if (len > GUEST_PAGE_MASK)
        return 0;
    return (len + (GUEST_PAGE_SIZE - 1)) / GUEST_PAGE_SIZE * GUEST_PAGE_SIZE;
}

/*
 * [addr, addr + len) is some pages of the user space [0, user_size): what
 * munmap wants of an address and a length that page_align() has rounded.
 */
/*@ assigns \nothing;
  @ ensures \result <==> addr % GUEST_PAGE_SIZE == 0 &&
  @     len % GUEST_PAGE_SIZE == 0 && 0 < len && addr + len <= user_size;
  @*/
static inline bool range_valid(uint64_t addr, uint64_t len, uint64_t user_size)
{
    return addr % GUEST_PAGE_SIZE == 0 && len % GUEST_PAGE_SIZE == 0 &&
           len > 0 && addr <= user_size && len <= user_size - addr;
}

#endif
