/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dirty map: one bit for each 2 MiB block of user space, set while some
 * page of the block's private anonymous backing may be non-zero; two summary
 * levels above it, so that clean terabytes are skipped. Bits are set with
 * release before a descriptor becomes valid, and cleared only under mm->lock
 * after the backing was zeroed or dropped with no descriptor and no span left.
 */
#ifndef ELFUSE_MM_DIRTY_H
#define ELFUSE_MM_DIRTY_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dirty_map dirty_map_t;

/* For `blocks` blocks; NULL: no memory. Memory is committed as bits are set. */
dirty_map_t *dirty_map_create(uint64_t blocks);
void dirty_map_destroy(dirty_map_t *map);
bool dirty_test(const dirty_map_t *map, uint64_t block); /* acquire */
void dirty_set(dirty_map_t *map, uint64_t block);        /* release */
void dirty_clear(dirty_map_t *map, uint64_t block);
/* First dirty block >= block and < end, or end. */
uint64_t dirty_next(const dirty_map_t *map, uint64_t block, uint64_t end);

#endif
