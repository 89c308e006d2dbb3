/* SPDX-License-Identifier: Apache-2.0 */
#include "mm_model.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "proc/proc.h"

#define REGIONS      4
#define REGION_PAGES 8192U /* 32 MiB */

typedef struct model_page {
    bool mapped;
    uint8_t prot;
    uint64_t value; /* at a place in the page that depends on its address */
} model_page_t;

struct mm_model {
    mm_t *mm;
    mm_cpu_t *cpu;
    uint64_t base[REGIONS];
    model_page_t page[REGIONS][REGION_PAGES];
};

typedef struct range {
    unsigned region, first, pages;
    uint64_t start, end;
} range_t;

mm_model_t *model_create(unsigned ipa_bits, size_t host_page, unsigned seed)
{
    mm_model_t *m = fake_keep(sizeof(*m));

    srandom(seed);
    m->mm = fake_mm_create(ipa_bits, 40, host_page);
    m->cpu = fake_cpu_create(m->mm);
    /* Off the block borders, in windows of their own. */
    for (unsigned r = 0; r < REGIONS; r++)
        m->base[r] = (r + 1) * (100UL << 30) + r * 0x33000UL;
    return m;
}

static range_t pick(const mm_model_t *m, unsigned most)
{
    range_t r;

    r.region = (unsigned) random() % REGIONS;
    r.first = (unsigned) random() % REGION_PAGES;
    r.pages = 1 + (unsigned) random() % most;
    if (r.pages > REGION_PAGES - r.first)
        r.pages = REGION_PAGES - r.first;
    r.start = m->base[r.region] + r.first * GUEST_PAGE_SIZE;
    r.end = r.start + r.pages * GUEST_PAGE_SIZE;
    return r;
}

static model_page_t *pages_of(mm_model_t *m, const range_t *r)
{
    return &m->page[r->region][r->first];
}

/* Where in its page a page's value is. */
static uint64_t value_at(uint64_t page)
{
    return page + ((page >> 9) & 0xff8);
}

static void access_page(mm_model_t *m, const range_t *r, unsigned i)
{
    model_page_t *p = &pages_of(m, r)[i];
    uint64_t addr = value_at(r->start + i * GUEST_PAGE_SIZE);
    bool write = random() % 2;
    uint64_t value = (uint64_t) random();
    bool allowed = p->mapped && (write ? p->prot & PROT_WRITE : p->prot != 0);
    int signal = guest_access(m->mm, m->cpu, addr, write, &value);

    if ((signal == 0) != allowed || (signal && signal != SIGSEGV))
        elfuse_panic("%s of %#lx: signal %d, mapped %d prot %d",
                     write ? "write" : "read", addr, signal, p->mapped,
                     p->prot);
    if (signal)
        return;
    if (write)
        p->value = value;
    else if (value != p->value)
        elfuse_panic("%#lx holds %#lx, not %#lx", addr, value, p->value);
}

static void do_touch(mm_model_t *m, const range_t *r)
{
    unsigned step = random() % 2 ? 1 : 1 + (unsigned) random() % 40;

    for (unsigned i = 0; i < r->pages; i += step)
        access_page(m, r, i);
}

static void set_prot(mm_model_t *m, const range_t *r, int prot)
{
    for (unsigned i = 0; i < r->pages; i++) {
        uint64_t v = r->start + i * GUEST_PAGE_SIZE;
        unsigned n = 1;

        while (i + n < r->pages &&
               pages_of(m, r)[i + n].mapped == pages_of(m, r)[i].mapped)
            n++;
        if (pages_of(m, r)[i].mapped)
            fake_vma_set(v, v + n * GUEST_PAGE_SIZE, prot, 0);
        i += n - 1;
    }
    for (unsigned i = 0; i < r->pages; i++)
        pages_of(m, r)[i].prot = (uint8_t) prot;
}

static int random_prot(void)
{
    static const int prot[] = {PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE,
                               PROT_READ, PROT_NONE, PROT_READ | PROT_EXEC};

    return prot[random() % 5];
}

static void do_unmap(mm_model_t *m, const range_t *r)
{
    gather_t g;

    gather_begin(&g, m->mm, m->cpu);
    pt_unmap(m->mm, &g, r->start, r->end);
    gather_finish(&g);
    fake_vma_clear(r->start, r->end);
    memset(pages_of(m, r), 0, r->pages * sizeof(model_page_t));
}

static void do_map(mm_model_t *m, const range_t *r)
{
    do_unmap(m, r);
    fake_vma_set(r->start, r->end, PROT_READ | PROT_WRITE, 0);
    for (unsigned i = 0; i < r->pages; i++)
        pages_of(m, r)[i] = (model_page_t){true, PROT_READ | PROT_WRITE, 0};
}

static void do_protect(mm_model_t *m, const range_t *r)
{
    int prot = random_prot();
    gather_t g;

    gather_begin(&g, m->mm, m->cpu);
    pt_protect(m->mm, &g, r->start, r->end, prot);
    gather_finish(&g);
    set_prot(m, r, prot);
}

static void do_discard(mm_model_t *m, const range_t *r)
{
    gather_t g;

    gather_begin(&g, m->mm, m->cpu);
    pt_discard(m->mm, &g, r->start, r->end);
    gather_finish(&g);
    for (unsigned i = 0; i < r->pages; i++)
        pages_of(m, r)[i].value = 0;
}

static void do_move(mm_model_t *m, const range_t *from)
{
    range_t to = pick(m, REGION_PAGES);
    model_page_t *src = pages_of(m, from);
    unsigned n = to.pages < from->pages ? to.pages : from->pages;
    int prot = src[0].prot;

    if (!src[0].mapped)
        return;
    for (unsigned i = 1; i < n; i++)
        if (!src[i].mapped || src[i].prot != prot)
            n = i;
    if (to.region == from->region && to.first < from->first + n &&
        to.first + n > from->first)
        return;
    to.pages = n;
    to.end = to.start + n * GUEST_PAGE_SIZE;
    if (pt_move_prepare(m->mm, m->cpu, from->start, to.start,
                        n * GUEST_PAGE_SIZE))
        elfuse_panic("pt_move_prepare failed");
    do_unmap(m, &to);
    pt_move(m->mm, m->cpu, from->start, to.start, n * GUEST_PAGE_SIZE, prot);
    fake_vma_set(to.start, to.end, prot, 0);
    memcpy(pages_of(m, &to), src, n * sizeof(*src));
    /* The value's place in the page goes by the address. */
    for (unsigned i = 0; i < n; i++) {
        uint64_t was = from->start + i * GUEST_PAGE_SIZE;
        uint64_t now = to.start + i * GUEST_PAGE_SIZE;
        model_page_t *p = &pages_of(m, &to)[i];
        char *host = hostspace_ptr(m->mm, now);

        if (p->value && value_at(was) - was != value_at(now) - now) {
            memcpy(host + (value_at(now) - now), host + (value_at(was) - was),
                   8);
        }
    }
    fake_vma_clear(from->start, from->start + n * GUEST_PAGE_SIZE);
    memset(src, 0, n * sizeof(*src));
}

static void do_host(mm_model_t *m, const range_t *r)
{
    struct iovec iov[64];
    uint64_t size = 0;
    span_set_t set;

    while (size < r->pages && pages_of(m, r)[size].mapped &&
           pages_of(m, r)[size].prot)
        size++;
    size *= GUEST_PAGE_SIZE;
    if (span_get(m->mm, m->cpu, r->start, r->end - r->start, SPAN_READ, iov, 64,
                 &set) != (size ? 0 : -EFAULT))
        elfuse_panic("span at %#lx: %lu bytes expected", r->start, size);
    if (set.bytes > size || (set.bytes < size && set.bytes < SPAN_STEP))
        elfuse_panic("span at %#lx: %zu bytes, not %lu", r->start, set.bytes,
                     size);
    span_put(m->cpu, &set);
}

/* As a system call does: out, under the lock where it needs it, in. */
static void step(mm_model_t *m)
{
    range_t r = pick(m, random() % 8 ? 300 : REGION_PAGES);
    unsigned op = (unsigned) random() % 16;

    if (op < 6) {
        do_touch(m, &r);
        return;
    }
    guest_exit(m->mm, m->cpu);
    if (op < 7) {
        do_host(m, &r);
        guest_enter(m->cpu);
        return;
    }
    mm_lock(m->mm);
    if (op < 10)
        do_map(m, &r);
    else if (op < 12)
        do_unmap(m, &r);
    else if (op < 13)
        do_protect(m, &r);
    else if (op < 14)
        do_discard(m, &r);
    else
        do_move(m, &r);
    mm_unlock(m->mm);
    guest_enter(m->cpu);
}

unsigned model_tables(mm_t *mm)
{
    unsigned used = mm->pool->nr_fresh;

    for (uint32_t t = mm->pool->free; t; t = mm->pool->meta[t].next)
        used--;
    return used;
}

typedef struct books {
    uint64_t present, anonymous, dirty, valid;
} books_t;

static void check_table(mm_t *mm, const _Atomic pte_t *table, uint64_t v,
                        books_t *sum)
{
    const table_meta_t *meta = table_meta(mm->pool, table);
    bool block = dirty_test(mm->dirty, v >> BLOCK_SHIFT);
    unsigned present = 0, dirty = 0;

    for (unsigned i = 0; i < BLOCK_PAGES; i++) {
        pte_t pte = table[i];

        if (pte_present(pte) && (i < meta->low || i >= meta->high))
            elfuse_panic("present entry outside [low, high)");
        if (!pte_present(pte) && pte & PTE_INV_BUSY)
            elfuse_panic("a busy claim has been left");
        if (!pte_present(pte) && pte != PTE_INV_DIRTY && pte != PTE_INV_ZERO &&
            (pte || block))
            elfuse_panic("state %#lx at %#lx", pte, v + i * GUEST_PAGE_SIZE);
        present += pte_present(pte) != 0;
        dirty += pte == PTE_INV_DIRTY;
        sum->anonymous += pte_present(pte) && !(pte & PTE_SW_OBJECT);
        sum->valid += pte_valid(pte) != 0;
    }
    if ((dirty || sum->anonymous) && !block && dirty)
        elfuse_panic("dirty pages in the clean block at %#lx", v);
    if (present != meta->present || dirty != meta->dirty)
        elfuse_panic("table at %#lx: present %u not %u, dirty %u not %u", v,
                     present, meta->present, dirty, meta->dirty);
    if (meta->listed != (dirty != 0))
        elfuse_panic("table at %#lx: listed %d, dirty %u", v, meta->listed,
                     dirty);
    if (!present && !dirty)
        elfuse_panic("table at %#lx says nothing", v);
    sum->present += present;
    sum->dirty += dirty;
}

void model_check_books(mm_t *mm)
{
    uint64_t v = 0, valid = 0;
    books_t sum = {0};
    _Atomic pte_t *table;

    while ((table = pt_next_l3(mm, &v, mm->task_size))) {
        check_table(mm, table, v & ~(BLOCK_SIZE - 1), &sum);
        v = (v | (BLOCK_SIZE - 1)) + 1;
    }
    for (unsigned i = 0; i < mm->windows->nr_slots; i++)
        valid += mm->windows->slot[i].valid;
    if (sum.valid != valid || sum.dirty != mm->pool->retained ||
        sum.anonymous != mm->pool->resident ||
        sum.present != pt_count_present(mm, 0, mm->task_size))
        elfuse_panic("books: valid %lu/%lu, retained %lu/%lu, resident "
                     "%lu/%lu",
                     valid, sum.valid, mm->pool->retained, sum.dirty,
                     mm->pool->resident, sum.anonymous);
    /* A dirty block has a table. */
    for (uint64_t b = 0;
         (b = dirty_next(mm->dirty, b, mm->task_size >> BLOCK_SHIFT)) <
         mm->task_size >> BLOCK_SHIFT;
         b++)
        if (!pt_walk(mm, b << BLOCK_SHIFT))
            elfuse_panic("dirty block %#lx has no table", b << BLOCK_SHIFT);
}

void model_run(mm_model_t *m, unsigned operations)
{
    for (unsigned i = 0; i < operations; i++) {
        step(m);
        if (i % 50 == 0)
            model_check_books(m->mm);
    }
}

void model_end(mm_model_t *m)
{
    gather_t g;

    guest_exit(m->mm, m->cpu);
    mm_lock(m->mm);
    gather_begin(&g, m->mm, m->cpu);
    pt_unmap(m->mm, &g, 0, m->mm->task_size);
    gather_drop_backing(&g, 0, m->mm->task_size);
    gather_finish(&g);
    mm_unlock(m->mm);
    for (int i = 0; i < 3; i++) {
        guest_enter(m->cpu);
        guest_exit(m->mm, m->cpu);
    }
    model_check_books(m->mm);
    if (model_tables(m->mm) != 1)
        elfuse_panic("%u tables are left", model_tables(m->mm) - 1);
    if (dirty_next(m->mm->dirty, 0, m->mm->task_size >> BLOCK_SHIFT) !=
        m->mm->task_size >> BLOCK_SHIFT)
        elfuse_panic("a dirty block is left");
}
