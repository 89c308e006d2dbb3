/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free pieces of the object area: a tree by address, so that neighbours join,
 * and a list for each power of two, so that allocation does not search.
 */
#include <stdlib.h>

#include <bsd/sys/queue.h>
#include <bsd/sys/tree.h>

#include "mm/hostspace.h"

#define BINS 64
/* So many pieces of the bin that may or may not fit are looked at. */
#define TRIES 16

typedef struct extent {
    RB_ENTRY(extent) node;
    LIST_ENTRY(extent) in_bin;
    uint64_t start, end;
} extent_t;

RB_HEAD(extent_tree, extent);
LIST_HEAD(extent_bin, extent);

struct free_space {
    struct extent_tree tree;
    struct extent_bin bin[BINS];
};

static int extent_compare(const extent_t *a, const extent_t *b)
{
    return a->start < b->start ? -1 : a->start > b->start;
}

/* RB_GENERATE_STATIC of libbsd needs __unused, which glibc does not have.
 * cppcheck does not read the system's headers. */
#define UNUSED_STATIC __attribute__((__unused__)) static
/* cppcheck-suppress unknownMacro */
RB_GENERATE_INTERNAL(extent_tree, extent, node, extent_compare, UNUSED_STATIC)

static unsigned bin_of(uint64_t size)
{
    return 63U - (unsigned) __builtin_clzl(size);
}

static void extent_insert(struct free_space *fs, extent_t *e)
{
    RB_INSERT(extent_tree, &fs->tree, e);
    LIST_INSERT_HEAD(&fs->bin[bin_of(e->end - e->start)], e, in_bin);
}

static void extent_remove(struct free_space *fs, extent_t *e)
{
    RB_REMOVE(extent_tree, &fs->tree, e);
    LIST_REMOVE(e, in_bin);
}

static extent_t *extent_new(uint64_t start, uint64_t end)
{
    extent_t *e = malloc(sizeof(*e));

    if (e) {
        e->start = start;
        e->end = end;
    }
    return e;
}

struct free_space *free_space_create(uint64_t base, uint64_t end)
{
    struct free_space *fs = malloc(sizeof(*fs));
    extent_t *all = extent_new(base, end);

    if (!fs || !all) {
        free(fs);
        free(all);
        return NULL;
    }
    RB_INIT(&fs->tree);
    for (int i = 0; i < BINS; i++)
        LIST_INIT(&fs->bin[i]);
    extent_insert(fs, all);
    return fs;
}

/* Where size bytes fit into e, or 0. */
static uint64_t fit(const extent_t *e, uint64_t size, uint64_t align)
{
    uint64_t at = (e->start + align - 1) & ~(align - 1);

    return at < e->end && e->end - at >= size ? at : 0;
}

static extent_t *find_fit(struct free_space *fs, uint64_t size, uint64_t align)
{
    for (unsigned b = bin_of(size); b < BINS; b++) {
        extent_t *e;
        int tries = TRIES;

        LIST_FOREACH (e, &fs->bin[b], in_bin) {
            if (fit(e, size, align))
                return e;
            if (--tries == 0)
                break;
        }
    }
    return NULL;
}

uint64_t free_space_alloc(struct free_space *fs, uint64_t size, uint64_t align)
{
    extent_t *e = find_fit(fs, size, align);
    uint64_t at, end;

    if (!e)
        return 0;
    at = fit(e, size, align);
    end = e->end;
    extent_remove(fs, e);
    /* What is left before and after; a lost remainder is only address space. */
    if (e->start < at) {
        e->end = at;
        extent_insert(fs, e);
        e = end > at + size ? extent_new(at + size, end) : NULL;
        if (e)
            extent_insert(fs, e);
    } else if (end > at + size) {
        e->start = at + size;
        extent_insert(fs, e);
    } else {
        free(e);
    }
    return at;
}

/* Without memory for the record the address space is lost, which is safe. */
void free_space_put(struct free_space *fs, uint64_t start, uint64_t size)
{
    extent_t key = {.start = start}, *above, *below;
    uint64_t end = start + size;
    extent_t *e = NULL;

    above = RB_NFIND(extent_tree, &fs->tree, &key);
    below = above ? RB_PREV(extent_tree, &fs->tree, above)
                  : RB_MAX(extent_tree, &fs->tree);
    if (below && below->end == start) {
        extent_remove(fs, below);
        start = below->start;
        e = below;
    }
    if (above && above->start == end) {
        extent_remove(fs, above);
        end = above->end;
        if (e)
            free(above);
        else
            e = above;
    }
    if (!e)
        e = extent_new(start, end);
    if (!e)
        return;
    e->start = start;
    e->end = end;
    extent_insert(fs, e);
}
