/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three bitmaps, each with one bit for a 64-bit word of the one below. They lie
 * in one lazily committed host mapping, so that clean terabytes cost nothing.
 *
 * A setter writes upwards, a clearer downwards: it clears the summary bit first
 * and looks at the word below again afterwards. Both use read-modify-writes of
 * the summary word with acquire and release, so that whichever comes second in
 * that word's order sees what the first one did, and no set bit is ever left
 * without its summary.
 */
#include "mm/dirty.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "mm/lazymap.h"

#define LEVELS 3
/* A bit at level l stands for 2^(6 * l) blocks. */
#define LEVEL_SHIFT(l) (6U * (l))

struct dirty_map {
    uint64_t blocks;
    size_t mapped;
    _Atomic uint64_t *level[LEVELS];
};

static uint64_t words_at(uint64_t blocks, unsigned level)
{
    unsigned shift = LEVEL_SHIFT(level + 1);

    return (blocks + (1UL << shift) - 1) >> shift;
}

dirty_map_t *dirty_map_create(uint64_t blocks)
{
    dirty_map_t *map = calloc(1, sizeof(*map));
    uint64_t words = 0;
    _Atomic uint64_t *base;

    if (!map)
        return NULL;
    for (unsigned l = 0; l < LEVELS; l++)
        words += words_at(blocks, l);
    map->blocks = blocks;
    map->mapped = words * sizeof(uint64_t);
    base = lazy_map(map->mapped, PROT_READ | PROT_WRITE);
    if (!base) {
        free(map);
        return NULL;
    }
    for (unsigned l = 0; l < LEVELS; l++) {
        map->level[l] = base;
        base += words_at(blocks, l);
    }
    return map;
}

void dirty_map_destroy(dirty_map_t *map)
{
    if (!map)
        return;
    munmap((void *) map->level[0], map->mapped);
    free(map);
}

bool dirty_test(const dirty_map_t *map, uint64_t block)
{
    /* Pairs with the release in dirty_set. */
    uint64_t word =
        atomic_load_explicit(&map->level[0][block >> 6], memory_order_acquire);

    return (word >> (block & 63)) & 1;
}

void dirty_set(dirty_map_t *map, uint64_t block)
{
    for (unsigned l = 0; l < LEVELS; l++) {
        uint64_t bit = block >> LEVEL_SHIFT(l);

        /* Release: pairs with dirty_test, and with the clearer's acquire. */
        atomic_fetch_or_explicit(&map->level[l][bit >> 6], 1UL << (bit & 63),
                                 memory_order_acq_rel);
    }
}

void dirty_clear(dirty_map_t *map, uint64_t block)
{
    for (unsigned l = 0; l < LEVELS; l++) {
        uint64_t bit = block >> LEVEL_SHIFT(l);
        _Atomic uint64_t *word = &map->level[l][bit >> 6];
        uint64_t mask = 1UL << (bit & 63);

        atomic_fetch_and_explicit(word, ~mask, memory_order_acq_rel);
        /* Somebody set a bit below meanwhile: its summary must stay. */
        if (l > 0 && atomic_load_explicit(&map->level[l - 1][bit],
                                          memory_order_acquire)) {
            atomic_fetch_or_explicit(word, mask, memory_order_acq_rel);
            return;
        }
        if (atomic_load_explicit(word, memory_order_relaxed))
            return;
    }
}

/* First bit >= bit that is set in its word of that level, or the next word's
 * first bit when there is none. */
static uint64_t scan_word(const dirty_map_t *map, unsigned level, uint64_t bit,
                          bool *found)
{
    uint64_t word = atomic_load_explicit(&map->level[level][bit >> 6],
                                         memory_order_acquire);

    word &= ~0UL << (bit & 63);
    *found = word != 0;
    return word ? (bit & ~63UL) + (uint64_t) __builtin_ctzl(word)
                : (bit | 63) + 1;
}

uint64_t dirty_next(const dirty_map_t *map, uint64_t block, uint64_t end)
{
    unsigned level = 0;

    if (end > map->blocks)
        end = map->blocks;
    while (block < end) {
        bool found;
        uint64_t bit =
            scan_word(map, level, block >> LEVEL_SHIFT(level), &found);

        /* A summary bit's first block may lie before where we are. */
        if ((bit << LEVEL_SHIFT(level)) > block)
            block = bit << LEVEL_SHIFT(level);
        if (found && level == 0)
            break;
        /* Down where something is, up where a whole word was empty. */
        if (found)
            level--;
        else if (level + 1 < LEVELS)
            level++;
    }
    return block < end ? block : end;
}
