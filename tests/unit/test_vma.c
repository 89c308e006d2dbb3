/* SPDX-License-Identifier: Apache-2.0 */
/* sources: src/mm/vma.c */
/*
 * The VMA tree against a model: an array that says of every page of a small
 * space what it is mapped as. After each random operation the tree must show
 * exactly the maximal runs of equal pages, and every gap must be right.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "abi/layout.h"
#include "mm/fast.h"
#include "mm/internal.h"
#include "proc/proc.h"

#define PAGES 160U
#define BASE  0x10000000UL

typedef struct page {
    bool mapped;
    uint8_t prot;
    uint32_t flags;
    int object;    /* 0: anonymous */
    uint64_t bias; /* offset minus address, in pages */
} page_t;

static page_t model[PAGES];
static object_t objects[3];
static struct mm *mm;

/* mmap and munmap at EL1 are off. */
bool fast_plain(const struct vma *vma)
{
    return true;
}

void fast_mark(struct mm *the_mm, uint64_t start, uint64_t end)
{
}

void elfuse_panic(const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    abort();
}

static uint64_t page_addr(unsigned page)
{
    return BASE + page * GUEST_PAGE_SIZE;
}

static bool same(const page_t *a, const page_t *b)
{
    return a->mapped == b->mapped && a->prot == b->prot &&
           a->flags == b->flags && a->object == b->object && a->bias == b->bias;
}

/* --- checks -------------------------------------------------------------- */

static uint64_t check_gaps(const vma_t *vma)
{
    uint64_t max, sub;

    if (!vma)
        return 0;
    max = vma->gap;
    sub = check_gaps(RB_LEFT(vma, node));
    max = sub > max ? sub : max;
    sub = check_gaps(RB_RIGHT(vma, node));
    max = sub > max ? sub : max;
    assert_int_equal(vma->max_gap, max);
    return max;
}

static void check_vma(const vma_t *vma, unsigned first, unsigned last,
                      uint64_t prev_end)
{
    const page_t *p = &model[first];
    uint64_t low = vma_guard_start(vma);

    assert_non_null(vma);
    assert_int_equal(vma->start, page_addr(first));
    assert_int_equal(vma->end, page_addr(last));
    assert_int_equal(vma->prot, p->prot);
    assert_int_equal(vma->flags, p->flags);
    assert_ptr_equal(vma->object, p->object ? &objects[p->object] : NULL);
    if (p->object)
        assert_int_equal(vma->object_host,
                         vma->start + p->bias * GUEST_PAGE_SIZE);
    assert_int_equal(vma->offset, vma->start + p->bias * GUEST_PAGE_SIZE);
    assert_int_equal(vma->gap, low > prev_end ? low - prev_end : 0);
}

static void check_all(void)
{
    vma_t *vma = vma_first(mm);
    uint64_t prev_end = 0;
    unsigned nr = 0, last;

    for (unsigned i = 0; i < PAGES; i = last) {
        last = i + 1;
        while (last < PAGES && same(&model[i], &model[last]))
            last++;
        if (!model[i].mapped)
            continue;
        check_vma(vma, i, last, prev_end);
        prev_end = vma->end;
        vma = vma_next(vma);
        nr++;
    }
    assert_null(vma);
    assert_int_equal(mm->nr_vmas, nr);
    check_gaps(RB_ROOT(&mm->vmas));
}

static void check_find(unsigned page)
{
    vma_t *vma = vma_find(mm, page_addr(page) + 7);
    unsigned i = page;

    while (i < PAGES && !model[i].mapped)
        i++;
    if (i == PAGES) {
        assert_null(vma);
        return;
    }
    assert_non_null(vma);
    assert_true(vma->end > page_addr(page));
    assert_true(vma->start <= page_addr(i) && page_addr(i) < vma->end);
    assert_int_equal(vma_at(mm, page_addr(page)) != NULL, i == page);
}

/* The guard of a stack counts as taken, from 256 pages below: here everything
 * between it and the VMA before. */
static bool page_free(unsigned page)
{
    unsigned i = page;

    while (i < PAGES && !model[i].mapped)
        i++;
    if (i == page)
        return false;
    return i == PAGES || !(model[i].flags & VMA_GROWSDOWN) ||
           page_addr(i) - page_addr(page) > VMA_GUARD_GAP;
}

static void check_search(unsigned low, unsigned high, unsigned len)
{
    uint64_t top = 0, bottom = 0;

    for (unsigned i = low; i + len <= high; i++) {
        unsigned n = 0;
        while (n < len && page_free(i + n))
            n++;
        if (n < len)
            continue;
        top = page_addr(i);
        bottom = bottom ? bottom : top;
    }
    assert_int_equal(vma_gap_topdown(mm, len * GUEST_PAGE_SIZE, page_addr(low),
                                     page_addr(high)),
                     top);
    assert_int_equal(vma_gap_bottomup(mm, len * GUEST_PAGE_SIZE, page_addr(low),
                                      page_addr(high)),
                     bottom);
}

/* --- operations ---------------------------------------------------------- */

static unsigned below(unsigned n)
{
    return (unsigned) random() % n;
}

static void random_range(unsigned *first, unsigned *last)
{
    *first = below(PAGES);
    *last = *first + 1 + below(below(4) ? 6 : 40);
    if (*last > PAGES)
        *last = PAGES;
}

static page_t random_page(void)
{
    static const uint32_t flags[] = {0, 0, 0, VMA_SHARED, VMA_NORESERVE};
    page_t p = {.mapped = true, .prot = below(2) ? 3 : (uint8_t) below(8)};

    p.flags = flags[below(5)];
    p.object = below(3) ? 0 : (int) below(2) + 1;
    p.bias = below(4) ? 0 : below(3);
    return p;
}

static void do_add(void)
{
    page_t p = random_page();
    unsigned first, last;
    vma_t area;

    random_range(&first, &last);
    for (unsigned i = first; i < last; i++)
        if (model[i].mapped)
            last = i;
    if (last <= first)
        return;
    for (unsigned i = first; i < last; i++)
        model[i] = p;
    area = (vma_t){
        .start = page_addr(first),
        .end = page_addr(last),
        .prot = p.prot,
        .flags = p.flags,
        .max_prot = 7,
        .object = p.object ? &objects[p.object] : NULL,
        .offset = page_addr(first) + p.bias * GUEST_PAGE_SIZE,
    };
    area.object_host = area.object ? area.offset : 0;
    assert_int_equal(vma_reserve(mm, 1), 0);
    vma_t *vma = vma_add(mm, &area);
    assert_true(vma->start <= area.start && area.end <= vma->end);
}

static void do_clear(void)
{
    unsigned first, last;

    random_range(&first, &last);
    assert_int_equal(vma_reserve(mm, 1), 0);
    vma_clear(mm, page_addr(first), page_addr(last));
    memset(&model[first], 0, (last - first) * sizeof(model[0]));
}

static void do_modify(void)
{
    page_t p = random_page();
    unsigned first, last;
    vma_t *vma;

    random_range(&first, &last);
    vma = vma_at(mm, page_addr(first));
    if (!vma)
        return;
    if (page_addr(last) > vma->end)
        last = (unsigned) ((vma->end - BASE) / GUEST_PAGE_SIZE);
    vma =
        vma_modify(mm, vma, page_addr(first), page_addr(last), p.prot, p.flags);
    assert_non_null(vma);
    assert_true(vma->start <= page_addr(first) && page_addr(last) <= vma->end);
    for (unsigned i = first; i < last; i++) {
        model[i].prot = p.prot;
        model[i].flags = p.flags;
    }
}

static int setup(void **state)
{
    (void) state;
    mm = calloc(1, sizeof(*mm));
    memset(model, 0, sizeof(model));
    srandom(20260101);
    return mm ? 0 : -1;
}

/* mm keeps its nodes for good; a test run forgets them, so that mm itself must
 * stay reachable for the leak checker. */
static struct mm *kept[8];
static unsigned nr_kept;

static int teardown(void **state)
{
    (void) state;
    kept[nr_kept++] = mm;
    return 0;
}

/* --- tests --------------------------------------------------------------- */

static void random_operations(void **state)
{
    (void) state;
    for (int i = 0; i < 60000; i++) {
        switch (below(5)) {
        case 0:
        case 1:
            do_add();
            break;
        case 2:
            do_clear();
            break;
        default:
            do_modify();
            break;
        }
        check_all();
        check_find(below(PAGES));
        if (i % 8 == 0) {
            unsigned low = below(PAGES), high = low + below(PAGES - low) + 1;
            check_search(low, high, 1 + below(8));
        }
    }
}

static void special_never_merges(void **state)
{
    vma_t area = {.prot = 1, .max_prot = 1, .flags = VMA_SPECIAL};

    (void) state;
    area.object = &objects[1];
    for (unsigned i = 0; i < 2; i++) {
        area.start = area.offset = area.object_host = page_addr(i);
        area.end = page_addr(i + 1);
        assert_int_equal(vma_reserve(mm, 1), 0);
        vma_add(mm, &area);
    }
    assert_int_equal(mm->nr_vmas, 2);
}

static void stack_keeps_its_guard(void **state)
{
    vma_t area = {.prot = 3, .max_prot = 7, .flags = VMA_GROWSDOWN};
    uint64_t top = BASE + 16 * VMA_GUARD_GAP;

    (void) state;
    area.start = area.offset = top - GUEST_PAGE_SIZE;
    area.end = top;
    assert_int_equal(vma_reserve(mm, 2), 0);
    vma_add(mm, &area);
    assert_int_equal(vma_gap_topdown(mm, GUEST_PAGE_SIZE, BASE, top),
                     area.start - VMA_GUARD_GAP - GUEST_PAGE_SIZE);
    /* Nothing at all fits between a VMA less than the gap below and it. */
    area.flags = 0;
    area.start = area.offset = BASE;
    area.end = top - VMA_GUARD_GAP;
    vma_add(mm, &area);
    assert_int_equal(vma_gap_topdown(mm, GUEST_PAGE_SIZE, BASE, top), 0);
    assert_int_equal(vma_gap_bottomup(mm, GUEST_PAGE_SIZE, BASE, top), 0);
    check_gaps(RB_ROOT(&mm->vmas));
}

static void limit_refuses_splits(void **state)
{
    vma_t area = {.prot = 3, .max_prot = 7, .start = page_addr(0)}, *vma;

    (void) state;
    area.offset = area.start;
    area.end = page_addr(10);
    assert_int_equal(vma_reserve(mm, 1), 0);
    vma = vma_add(mm, &area);
    mm->nr_vmas = VMA_COUNT_MAX - 1; /* one split more, not two */
    /* Linux leaves the first of two cuts, and no page is changed. */
    assert_null(vma_modify(mm, vma, page_addr(3), page_addr(5), 1, 0));
    assert_int_equal(mm->nr_vmas, VMA_COUNT_MAX);
    assert_int_equal(vma->end, page_addr(3));
    assert_int_equal(vma_next(vma)->prot, 3);
    assert_int_equal(vma_next(vma)->end, page_addr(10));
    assert_null(vma_modify(mm, vma, page_addr(0), page_addr(2), 1, 0));
    /* At the limit a border may still move: it needs no node. */
    vma = vma_modify(mm, vma_next(vma), page_addr(3), page_addr(10), 1, 0);
    assert_non_null(vma);
    assert_non_null(
        vma_modify(mm, vma_prev(vma), page_addr(2), page_addr(3), 1, 0));
    assert_int_equal(vma->start, page_addr(2));
    assert_int_equal(mm->nr_vmas, VMA_COUNT_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(random_operations, setup, teardown),
        cmocka_unit_test_setup_teardown(special_never_merges, setup, teardown),
        cmocka_unit_test_setup_teardown(stack_keeps_its_guard, setup, teardown),
        cmocka_unit_test_setup_teardown(limit_refuses_splits, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
