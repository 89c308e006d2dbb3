/* SPDX-License-Identifier: Apache-2.0 */
#include "fast_model.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fake_mm.h"
#include "mm/fast.h"
#include "mm_model.h"
#include "proc/proc.h"
#include "shim/arch.h"
#include "shim/shim.h"

#define CPUS_MAX  8U
#define TLB_SIZE  64U
#define POOL_SIZE 64U
#define HOT       32U
#define PAGES_MAX 1024U
#define RW        (PROT_READ | PROT_WRITE)
#define ANON      (MAP_PRIVATE | MAP_ANONYMOUS)
#define KEPT      24U

/* --- guest CPUs ---------------------------------------------------------- */

typedef struct walk {
    _Atomic uint64_t block; /* address, 0: none */
    _Atomic uint64_t table; /* IPA of its level-3 table */
} walk_t;

typedef struct guest {
    mm_cpu_t cpu;
    _Atomic uint64_t access; /* odd: between translation and use */
    _Atomic uint64_t tlb[TLB_SIZE];
    walk_t walk[TLB_SIZE];
    uint64_t random;
    fast_served_t served;
    unsigned id;
} guest_t;

static mm_t *mm;
static fast_shared_t *shared;
static guest_t *guests[CPUS_MAX];
static unsigned nr_guests;
static const fast_load_t *load;
static uint8_t *areas;

static _Atomic uint64_t *tlb_slot(guest_t *g, uint64_t page)
{
    return &g->tlb[(page >> 12) * 0x9e3779b97f4a7c15UL >> 58];
}

static walk_t *walk_slot(guest_t *g, uint64_t block)
{
    return &g->walk[(block >> 21) * 0x9e3779b97f4a7c15UL >> 58];
}

static void drop(uint64_t start, uint64_t pages, bool leaf)
{
    uint64_t end = start + (pages << 12);

    if (load->no_tlbi)
        return;
    for (unsigned i = 0; i < nr_guests; i++) {
        for (unsigned j = 0; j < TLB_SIZE; j++) {
            guest_t *g = guests[i];
            uint64_t v = atomic_load(&g->tlb[j]);
            uint64_t b = atomic_load(&g->walk[j].block);

            if (v >= start && v < end)
                atomic_store(&g->tlb[j], 0);
            if (!leaf && b < end && b + BLOCK_SIZE > start)
                atomic_store(&g->walk[j].block, 0);
        }
    }
}

void arch_dsb_ishst(void)
{
}

/* Complete: accesses by old translations are over. */
void arch_dsb_ish(void)
{
    for (unsigned i = 0; i < nr_guests; i++) {
        uint64_t now = atomic_load(&guests[i]->access);

        while ((now & 1) && atomic_load(&guests[i]->access) == now)
            sched_yield();
    }
}

void arch_isb(void)
{
}

void arch_tlbi_vale1is(uint64_t operand)
{
    drop(operand << 12, 1, true);
}

void arch_tlbi_vae1is(uint64_t operand)
{
    drop(operand << 12, 1, false);
}

static uint64_t operand_pages(uint64_t operand)
{
    return ((operand >> 39 & 31) + 1) << (5 * (operand >> 44 & 3) + 1);
}

void arch_tlbi_rvale1is(uint64_t operand)
{
    drop((operand & 0x1fffffffffUL) << 12, operand_pages(operand), true);
}

void arch_tlbi_rvae1is(uint64_t operand)
{
    drop((operand & 0x1fffffffffUL) << 12, operand_pages(operand), false);
}

void arch_tlbi_vmalle1is(void)
{
    drop(0, 1UL << 36, false);
}

_Noreturn void arch_trap(void)
{
    elfuse_panic("EL1 has trapped");
}

fast_shared_t *arch_fast_shared(void)
{
    return shared;
}

/* The level-3 entry of v, by the walk cache if it has it. */
static _Atomic pte_t *walk(guest_t *g, uint64_t v)
{
    uint64_t block = v & ~(BLOCK_SIZE - 1);
    walk_t *w = walk_slot(g, block);
    _Atomic pte_t *table = table_entries(mm->pool, 0);

    if (atomic_load(&w->block) == block)
        return table_below(mm->pool, atomic_load(&w->table)) + pt_index(v);
    for (unsigned shift = 39; shift >= 21; shift -= 9) {
        pte_t pte = atomic_load_explicit(&table[v >> shift & 511],
                                         memory_order_acquire);

        if (!(pte & PTE_VALID))
            return NULL;
        if (shift == 21) {
            atomic_store(&w->table, pte & PTE_ADDR);
            atomic_store(&w->block, block);
        }
        table = table_below(mm->pool, pte);
    }
    return &table[pt_index(v)];
}

static bool translate(guest_t *g, uint64_t v, bool write)
{
    uint64_t page = v & GUEST_PAGE_MASK;
    _Atomic pte_t *entry;
    pte_t pte;

    if (!write && atomic_load(tlb_slot(g, page)) == page)
        return true;
    entry = walk(g, v);
    pte = entry ? atomic_load_explicit(entry, memory_order_acquire) : 0;
    if (!pte_valid(pte) || !(pte & PTE_AP_EL0) || (write && (pte & PTE_AP_RO)))
        return false;
    atomic_store(tlb_slot(g, page), page);
    return true;
}

/* One access of the hardware: false, it faults. */
static bool hardware(guest_t *g, uint64_t v, bool write, uint64_t *value)
{
    uint64_t *host = hostspace_ptr(mm, v);
    bool good;

    atomic_fetch_add(&g->access, 1);
    good = translate(g, v, write);
    if (good && write)
        __atomic_store_n(host, *value, __ATOMIC_RELAXED);
    else if (good)
        *value = __atomic_load_n(host, __ATOMIC_RELAXED);
    atomic_fetch_add(&g->access, 1);
    return good;
}

static void leave(guest_t *g)
{
    mm_after_exit(mm, &g->cpu);
}

static void enter(guest_t *g)
{
    mm_enter_guest(mm, &g->cpu);
    if (g->cpu.frame->tlb.kind)
        shim_tlb_request(g->cpu.frame);
}

static void run_shim(mm_cpu_t *cpu)
{
    shim_tlb_request(cpu->frame);
}

/* An access of the guest: 0, or the signal. */
static int touch(guest_t *g, uint64_t v, bool write, uint64_t *value)
{
    for (;;) {
        mm_fault_t fault;

        if (hardware(g, v, write, value))
            return 0;
        leave(g);
        fault = mm_handle_fault(mm, &g->cpu, v, write ? MM_WRITE : MM_READ);
        enter(g);
        if (fault.signal)
            return fault.signal;
    }
}

static uint64_t guest_mmap(guest_t *g, uint64_t addr, uint64_t size,
                           uint64_t flags)
{
    vcpu_frame_t *f = g->cpu.frame;
    int64_t result;

    f->x[0] = addr;
    f->x[1] = size;
    f->x[2] = RW;
    f->x[3] = ANON | flags;
    f->x[5] = 0;
    result = shim_fast_mmap(f);
    g->served.calls++;
    g->served.maps += result >= 0;
    if (result < 0) {
        leave(g);
        result = mm_mmap(mm, &g->cpu, addr, size, RW, ANON | flags, -1, 0);
        enter(g);
    }
    if (result < 0)
        elfuse_panic("mmap of %#lx: error %ld", size, -result);
    return (uint64_t) result;
}

static void guest_munmap(guest_t *g, uint64_t addr, uint64_t size)
{
    vcpu_frame_t *f = g->cpu.frame;
    int64_t result;

    f->x[0] = addr;
    f->x[1] = size;
    result = shim_fast_munmap(f);
    g->served.calls++;
    g->served.unmaps += result == 0;
    if (result < 0) {
        leave(g);
        result = mm_munmap(mm, &g->cpu, addr, size);
        enter(g);
    }
    if (result)
        elfuse_panic("munmap of %#lx: error %ld", addr, -result);
}

static uint64_t rnd(guest_t *g, uint64_t most)
{
    g->random ^= g->random << 13;
    g->random ^= g->random >> 7;
    g->random ^= g->random << 17;
    return most ? g->random % most : 0;
}

/* --- mappings ------------------------------------------------------------ */

typedef struct mapping {
    uint64_t addr, pages;
    uint64_t tag; /* its pages hold this, xor their address, or zero */
    uint64_t touched[PAGES_MAX / 64];
    bool read_only;
} mapping_t;

/* What goes from one thread to another. */
static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static mapping_t pool[POOL_SIZE];
static unsigned nr_pool;
/* Addresses for the racers. */
static _Atomic uint64_t hot[HOT];
static _Atomic bool stop;

static bool pool_put(const mapping_t *m)
{
    bool room;

    pthread_mutex_lock(&pool_lock);
    room = nr_pool < POOL_SIZE;
    if (room)
        pool[nr_pool++] = *m;
    pthread_mutex_unlock(&pool_lock);
    return room;
}

static bool pool_take(mapping_t *m)
{
    bool any;

    pthread_mutex_lock(&pool_lock);
    any = nr_pool > 0;
    if (any)
        *m = pool[--nr_pool];
    pthread_mutex_unlock(&pool_lock);
    return any;
}

static bool is_touched(const mapping_t *m, uint64_t page)
{
    return m->touched[page / 64] >> (page & 63) & 1;
}

static uint64_t page_at(const mapping_t *m, uint64_t page)
{
    /* Not always the same word. */
    return m->addr + page * GUEST_PAGE_SIZE + (m->tag % 511) * 8;
}

static void page_check(guest_t *g, const mapping_t *m, uint64_t page)
{
    uint64_t v = page_at(m, page), value = ~0UL;
    uint64_t want = is_touched(m, page) ? m->tag ^ v : 0;
    int signal = touch(g, v, false, &value);

    if (signal || value != want)
        elfuse_panic("thread %u: %#lx in %#lx+%#lx pages: signal %d, %#lx "
                     "instead of %#lx",
                     g->id, v, m->addr, m->pages, signal, value, want);
}

static void page_write(guest_t *g, mapping_t *m, uint64_t page)
{
    uint64_t v = page_at(m, page), value = m->tag ^ v;
    int signal;

    page_check(g, m, page);
    signal = touch(g, v, true, &value);
    if (signal)
        elfuse_panic("thread %u: write to %#lx: signal %d", g->id, v, signal);
    m->touched[page / 64] |= 1UL << (page & 63);
}

static void some_pages(guest_t *g, mapping_t *m, unsigned n)
{
    while (n--)
        page_write(g, m, rnd(g, m->pages));
}

static void check_all(guest_t *g, const mapping_t *m)
{
    for (uint64_t i = 0; i < m->pages; i++)
        if (is_touched(m, i))
            page_check(g, m, i);
}

static uint64_t some_size(guest_t *g)
{
    uint64_t kind = rnd(g, 16);

    if (kind < 9)
        return 1 + rnd(g, 16);
    if (kind < 13)
        return 64;
    return kind < 15 ? 512 : 1 + rnd(g, PAGES_MAX);
}

static mapping_t make(guest_t *g)
{
    mapping_t m = {.pages = some_size(g), .tag = g->random | 1};
    uint64_t flags = rnd(g, 8) ? 0 : MAP_NORESERVE;

    m.addr = guest_mmap(g, 0, m.pages << 12, flags);
    atomic_store(&hot[rnd(g, HOT)], page_at(&m, rnd(g, m.pages)));
    some_pages(g, &m, (unsigned) rnd(g, 6));
    if (!rnd(g, 32))
        for (uint64_t i = 0; i < m.pages && i < 64; i++)
            page_write(g, &m, i);
    return m;
}

/* Nothing may be there, and nobody else puts something there: the addresses are
 * of this thread's own arena, unless that has been closed meanwhile. */
static void must_fault(guest_t *g, const mapping_t *m, const arena_t *own)
{
    uint64_t v = page_at(m, rnd(g, m->pages)), value;
    int signal = touch(g, v, false, &value);
    bool mapped;

    if (signal == SIGSEGV)
        return;
    leave(g);
    mm_lock(mm);
    mapped = vma_at(mm, v) != NULL;
    if (fast_arena(mm, &g->cpu) == own)
        elfuse_panic("thread %u: %#lx, %smapped, can be read after munmap",
                     g->id, v, mapped ? "" : "not ");
    mm_unlock(mm);
    enter(g);
}

/* The thread's own arena, if the mapping lies in it. */
static const arena_t *own_arena(guest_t *g, const mapping_t *m)
{
    const arena_t *a;

    leave(g);
    mm_lock(mm);
    a = fast_arena(mm, &g->cpu);
    if (a && (m->addr < a->base || m->addr >= a->limit))
        a = NULL;
    mm_unlock(mm);
    enter(g);
    return a;
}

static void unmap_part(guest_t *g, const mapping_t *m, uint64_t first,
                       uint64_t pages)
{
    mapping_t part = {.addr = m->addr + first * GUEST_PAGE_SIZE,
                      .pages = pages,
                      .tag = m->tag};
    const arena_t *own = NULL;

    if (!pages)
        return;
    if (!rnd(g, 4))
        own = own_arena(g, m);
    guest_munmap(g, part.addr, pages << 12);
    if (own)
        must_fault(g, &part, own);
    /* Once more, for nothing: where nobody closes arenas meanwhile. */
    if (own && !load->editor && !rnd(g, 4))
        guest_munmap(g, part.addr, pages << 12);
}

static void destroy(guest_t *g, const mapping_t *m)
{
    uint64_t a = rnd(g, m->pages + 1), b = a + rnd(g, m->pages - a + 1);

    check_all(g, m);
    if (rnd(g, 4)) {
        unmap_part(g, m, 0, m->pages);
        return;
    }
    /* With a hole first. */
    unmap_part(g, m, a, b - a);
    for (uint64_t i = 0; i < m->pages; i++)
        if (is_touched(m, i) && (i < a || i >= b))
            page_check(g, m, i);
    unmap_part(g, m, 0, a);
    unmap_part(g, m, b, m->pages - b);
}

/* munmap of what has not been granted yet must not hit who gets it next. */
static void unmap_ahead(guest_t *g)
{
    mapping_t m = make(g), next;
    uint64_t ahead = g->cpu.fast->cursor;

    if (ahead + (64UL << 12) <= g->cpu.fast->window_end)
        guest_munmap(g, ahead, 64UL << 12);
    next = make(g);
    some_pages(g, &next, 2);
    leave(g);
    enter(g);
    some_pages(g, &next, 2);
    destroy(g, &m);
    destroy(g, &next);
}

static void *produce(void *arg)
{
    guest_t *g = arg;
    mapping_t *kept = calloc(KEPT, sizeof(*kept));
    unsigned n = 0;
    mapping_t m;

    if (!kept)
        elfuse_panic("no memory");
    enter(g);
    for (unsigned i = 0; i < load->operations; i++) {
        uint64_t kind = rnd(g, 16);

        if (kind < 8 && n < KEPT) {
            kept[n++] = make(g);
        } else if (kind < 10 && n) {
            some_pages(g, &kept[rnd(g, n)], 2);
        } else if (kind < 13 && n) {
            unsigned which = (unsigned) rnd(g, n);

            m = kept[which];
            kept[which] = kept[--n];
            if (rnd(g, 3) || !pool_put(&m))
                destroy(g, &m);
        } else if (kind < 15 && pool_take(&m)) {
            destroy(g, &m);
        } else if (!rnd(g, 8)) {
            unmap_ahead(g);
        }
    }
    while (n)
        destroy(g, &kept[--n]);
    leave(g);
    free(kept);
    return NULL;
}

/* Whatever comes of it: others' pages become valid while they are unmapped. */
static void *race(void *arg)
{
    guest_t *g = arg;
    struct iovec iov;
    span_set_t span;
    uint64_t value;

    enter(g);
    while (!atomic_load(&stop)) {
        uint64_t v = atomic_load(&hot[rnd(g, HOT)]);

        if (!v)
            continue;
        if (rnd(g, 2)) {
            (void) touch(g, v, false, &value);
            continue;
        }
        leave(g);
        if (!span_get(mm, &g->cpu, v, 8, SPAN_READ, &iov, 1, &span))
            span_put(&g->cpu, &span);
        enter(g);
    }
    leave(g);
    return NULL;
}

static void edit_protect(guest_t *g, mapping_t *m)
{
    uint64_t first = rnd(g, m->pages), pages = 1 + rnd(g, m->pages - first);
    uint64_t addr = m->addr + first * GUEST_PAGE_SIZE, value = 0;

    leave(g);
    if (mm_mprotect(mm, &g->cpu, addr, pages << 12, PROT_READ))
        elfuse_panic("mprotect of %#lx failed", addr);
    enter(g);
    if (touch(g, page_at(m, first), true, &value) != SIGSEGV)
        elfuse_panic("%#lx can be written", addr);
    page_check(g, m, first);
    if (!rnd(g, 2))
        return;
    leave(g);
    if (mm_mprotect(mm, &g->cpu, addr, pages << 12, RW))
        elfuse_panic("mprotect of %#lx failed", addr);
    enter(g);
}

static void forget(mapping_t *m, uint64_t first, uint64_t pages)
{
    for (uint64_t i = first; i < first + pages; i++)
        m->touched[i / 64] &= ~(1UL << (i & 63));
}

static void edit_contents(guest_t *g, mapping_t *m)
{
    uint64_t first = rnd(g, m->pages), pages = 1 + rnd(g, m->pages - first);
    uint64_t addr = m->addr + first * GUEST_PAGE_SIZE;
    int64_t result;

    leave(g);
    if (rnd(g, 2))
        result = mm_madvise(mm, &g->cpu, addr, pages << 12, MADV_DONTNEED);
    else
        result = mm_mmap(mm, &g->cpu, addr, pages << 12, RW, ANON | MAP_FIXED,
                         -1, 0) == (int64_t) addr
                     ? 0
                     : -1;
    enter(g);
    if (result)
        elfuse_panic("emptying %#lx failed", addr);
    forget(m, first, pages);
}

static void edit_move(guest_t *g, mapping_t *m)
{
    uint64_t size = m->pages << 12;
    int64_t to;

    leave(g);
    to = mm_mremap(mm, &g->cpu, m->addr, size, size + GUEST_PAGE_SIZE,
                   MREMAP_MAYMOVE, 0);
    if (to > 0)
        (void) mm_munmap(mm, &g->cpu, (uint64_t) to + size, GUEST_PAGE_SIZE);
    enter(g);
    if (to < 0)
        elfuse_panic("mremap of %#lx: error %ld", m->addr, -to);
    for (uint64_t i = 0; i < m->pages; i++) {
        uint64_t value = m->tag ^ page_at(m, i);
        uint64_t v = page_at(m, i) - m->addr + (uint64_t) to;

        if (!is_touched(m, i))
            continue;
        /* Contents are as before; then as page_check() wants them. */
        if (touch(g, v, false, &value) || value != (m->tag ^ page_at(m, i)))
            elfuse_panic("%#lx has lost its contents", v);
        value = m->tag ^ v;
        if (touch(g, v, true, &value))
            elfuse_panic("%#lx cannot be written", v);
    }
    m->addr = (uint64_t) to;
}

static void *edit(void *arg)
{
    guest_t *g = arg;
    mapping_t m;

    enter(g);
    while (!atomic_load(&stop)) {
        if (!pool_take(&m)) {
            sched_yield();
            continue;
        }
        check_all(g, &m);
        switch (rnd(g, 4)) {
        case 0:
            edit_protect(g, &m);
            break;
        case 1:
            edit_contents(g, &m);
            break;
        case 2:
            edit_move(g, &m);
            break;
        default:
            break;
        }
        destroy(g, &m);
    }
    leave(g);
    return NULL;
}

/* --- the whole ----------------------------------------------------------- */

static void guest_add(unsigned seed)
{
    guest_t *g = fake_keep(sizeof(*g));
    vcpu_frame_t *frame =
        (void *) (areas + nr_guests * VCPU_AREA_SIZE + FRAME_OFF);

    frame->vcpu = nr_guests;
    g->id = nr_guests;
    g->random = (seed * 2654435761UL + nr_guests + 1) * 0x9e3779b97f4a7c15UL;
    g->cpu.run_shim = run_shim;
    mm_cpu_init(mm, &g->cpu, frame);
    guests[nr_guests++] = g;
}

static void prepare(const fast_load_t *the_load)
{
    load = the_load;
    mm = fake_mm_create(40, 40, 4096);
    mm->limit_as.rlim_cur = mm->limit_data.rlim_cur = RLIM_INFINITY;
    mm->commit_limit = ~0UL;
    mm->commit_strict = false;
    shared = fake_keep(SHIM_FAST_SIZE);
    areas = aligned_alloc(VCPU_AREA_SIZE, CPUS_MAX * VCPU_AREA_SIZE);
    if (!areas)
        elfuse_panic("no memory");
    memset(areas, 0, CPUS_MAX * VCPU_AREA_SIZE);
    if (mm_fast_enable(mm, shared, (uint64_t) mm->pool->base - mm->pool->ipa))
        elfuse_panic("no fast path");
    nr_guests = nr_pool = 0;
    atomic_store(&stop, false);
    for (unsigned i = 0; i < HOT; i++)
        atomic_store(&hot[i], 0);
}

/* Nothing is left of all that. */
static void finish(void)
{
    guest_t *g = guests[0];
    mapping_t m;

    enter(g);
    while (pool_take(&m))
        destroy(g, &m);
    leave(g);
    mm_lock(mm);
    if (vma_find(mm, 0))
        elfuse_panic("a mapping is left at %#lx", vma_find(mm, 0)->start);
    if (mm->usage.total_vm || mm->usage.data)
        elfuse_panic("%lu pages are left", mm->usage.total_vm);
    mm_unlock(mm);
    for (int i = 0; i < 3; i++) {
        enter(g);
        leave(g);
    }
    model_check_books(mm);
    for (unsigned i = 0; i < nr_guests; i++) {
        mm_cpu_park(mm, &guests[i]->cpu);
        mm_cpu_remove(mm, &guests[i]->cpu);
    }
    free(areas);
}

fast_served_t fast_model_run(const fast_load_t *the_load)
{
    unsigned all = the_load->producers + the_load->racers + the_load->editor;
    pthread_t thread[CPUS_MAX];
    fast_served_t sum = {0};

    prepare(the_load);
    if (all > CPUS_MAX)
        elfuse_panic("too many threads");
    for (unsigned i = 0; i < all; i++)
        guest_add(the_load->seed);
    for (unsigned i = 0; i < all; i++) {
        void *(*fn)(void *) = i < the_load->producers      ? produce
                              : i < all - the_load->editor ? race
                                                           : edit;

        if (pthread_create(&thread[i], NULL, fn, guests[i]))
            elfuse_panic("no thread");
    }
    for (unsigned i = 0; i < all; i++) {
        if (i == the_load->producers)
            atomic_store(&stop, true);
        if (pthread_join(thread[i], NULL))
            elfuse_panic("no end of a thread");
        sum.maps += guests[i]->served.maps;
        sum.unmaps += guests[i]->served.unmaps;
        sum.calls += guests[i]->served.calls;
    }
    finish();
    return sum;
}
