/* SPDX-License-Identifier: Apache-2.0 */
#include "fake_mm.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mm/account.h"
#include "mm/fast.h"
#include "proc/proc.h"

_Noreturn void elfuse_panic(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}

/* --- the hypervisor: memory slots --- */

#define SLOTS_MAX 8192

typedef struct slot {
    uint64_t ipa, size;
    uint8_t *host;
} slot_t;

static slot_t slots[SLOTS_MAX];
unsigned fake_slots, fake_slots_most, fake_slots_made;
unsigned fake_slots_limit = SLOTS_MAX;

int hv_map(hv_vm_t *vm, uint64_t ipa, void *host, size_t size)
{
    if (fake_slots >= fake_slots_limit)
        return -ENOSPC;
    if (((ipa ^ (uintptr_t) host) & (CHUNK_SIZE - 1)) != 0)
        elfuse_panic("slot at %#lx is not congruent to %p", ipa, host);
    for (unsigned i = 0; i < fake_slots; i++)
        if (ipa < slots[i].ipa + slots[i].size && ipa + size > slots[i].ipa)
            elfuse_panic("slots at %#lx overlap", ipa);
    slots[fake_slots++] = (slot_t){ipa, size, host};
    fake_slots_made++;
    if (fake_slots > fake_slots_most)
        fake_slots_most = fake_slots;
    return 0;
}

int hv_unmap(hv_vm_t *vm, uint64_t ipa, size_t size)
{
    for (unsigned i = 0; i < fake_slots; i++) {
        if (slots[i].ipa == ipa && slots[i].size == size) {
            slots[i] = slots[--fake_slots];
            return 0;
        }
    }
    return -ENOENT;
}

/* Stage 2: NULL where no slot is. */
static uint8_t *stage2(uint64_t ipa)
{
    static unsigned last;

    if (last < fake_slots && ipa - slots[last].ipa < slots[last].size)
        return slots[last].host + (ipa - slots[last].ipa);
    for (unsigned i = 0; i < fake_slots; i++) {
        if (ipa - slots[i].ipa < slots[i].size) {
            last = i;
            return slots[i].host + (ipa - slots[i].ipa);
        }
    }
    return NULL;
}

/* --- the calls' part of mm: weak, so that a test can link the real one --- */

#define WEAK __attribute__((weak))

WEAK void account_init(struct mm *mm)
{
}

/* --- mmap and munmap at EL1: off, unless the test links them --- */

WEAK void fast_exclude(struct mm *mm, uint64_t start, uint64_t end)
{
}

WEAK bool fast_excluded(const struct mm *mm, uint64_t start, uint64_t end)
{
    return true;
}

WEAK void fast_claim(struct mm *mm, uint64_t start, uint64_t end)
{
}

WEAK void fast_claim_fixed(struct mm *mm, uint64_t start, uint64_t end)
{
}

WEAK void fast_claim_touch(struct mm *mm, uint64_t start, uint64_t end)
{
}

WEAK void fast_release(struct mm *mm)
{
}

WEAK void fast_mark(struct mm *mm, uint64_t start, uint64_t end)
{
}

WEAK void fast_enter_guest(struct mm *mm, struct mm_cpu *cpu)
{
}

WEAK void fast_leave_guest(struct mm *mm, struct mm_cpu *cpu)
{
}

WEAK bool fast_pending(struct mm *mm, const struct mm_cpu *cpu)
{
    return false;
}

WEAK void fast_drain(struct mm *mm)
{
}

WEAK bool fast_plain(const struct vma *vma)
{
    return false;
}

WEAK bool fast_granting(const struct mm *mm, uint64_t start, uint64_t end)
{
    return false;
}

WEAK void fast_update_off(struct mm *mm)
{
}

WEAK void fast_rewind(struct mm *mm, struct mm_cpu *cpu)
{
}

WEAK uint64_t fast_place(struct mm *mm, struct mm_cpu *cpu, uint64_t size)
{
    return 0;
}

WEAK void fast_cpu_init(struct mm *mm, struct mm_cpu *cpu)
{
}

WEAK void fast_cpu_end(struct mm *mm, struct mm_cpu *cpu)
{
}

/* --- VMAs --- */

#define VMAS_MAX 32768

static vma_t vmas[VMAS_MAX];
static unsigned nr_vmas;

WEAK vma_t *vma_find(struct mm *mm, uint64_t addr)
{
    unsigned low = 0, high = nr_vmas;

    while (low < high) {
        unsigned mid = (low + high) / 2;

        if (vmas[mid].end > addr)
            high = mid;
        else
            low = mid + 1;
    }
    return low < nr_vmas ? &vmas[low] : NULL;
}

static void array_insert(unsigned at, vma_t vma)
{
    if (nr_vmas == VMAS_MAX)
        elfuse_panic("too many VMAs for the test");
    memmove(&vmas[at + 1], &vmas[at], (nr_vmas - at) * sizeof(vma));
    vmas[at] = vma;
    nr_vmas++;
}

void fake_vma_clear(uint64_t start, uint64_t end)
{
    unsigned i = (unsigned) ((vma_find(NULL, start) ?: &vmas[nr_vmas]) - vmas);

    while (i < nr_vmas && vmas[i].start < end) {
        vma_t old = vmas[i];

        memmove(&vmas[i], &vmas[i + 1], (nr_vmas - i - 1) * sizeof(old));
        nr_vmas--;
        if (old.start < start) {
            vma_t left = old;

            left.end = start;
            array_insert(i++, left);
        }
        if (old.end > end) {
            if (old.object)
                old.object_host += end - old.start;
            old.start = end;
            array_insert(i, old);
            return;
        }
    }
}

vma_t *fake_vma_set(uint64_t start, uint64_t end, int prot, uint32_t flags)
{
    unsigned at;

    fake_vma_clear(start, end);
    at = (unsigned) ((vma_find(NULL, start) ?: &vmas[nr_vmas]) - vmas);
    array_insert(at, (vma_t){.start = start,
                             .end = end,
                             .prot = (uint8_t) prot,
                             .flags = flags});
    return &vmas[at];
}

WEAK mm_fault_t mm_handle_fault(mm_t *mm, mm_cpu_t *cpu, uint64_t addr,
                                enum mm_access access)
{
    return (mm_fault_t){.signal = SIGSEGV, .code = SEGV_MAPERR};
}

unsigned fake_released;
uint64_t fake_released_bytes;

WEAK void object_release(struct mm *mm, struct object *object, uint64_t host,
                         uint64_t size)
{
    fake_released++;
    fake_released_bytes += size;
}

/* --- the guest's CPU --- */

#define TLB_SIZE 1024

typedef struct tlb_entry {
    uint64_t va; /* page, or block for the walk cache; 0: none */
    uint64_t pte;
} tlb_entry_t;

typedef struct guest_cpu {
    mm_cpu_t cpu;
    mm_t *mm;
    vcpu_frame_t frame;
    tlb_entry_t tlb[TLB_SIZE];
    tlb_entry_t walk[TLB_SIZE]; /* block -> its level-2 descriptor */
} guest_cpu_t;

unsigned guest_faults, guest_stale;

static tlb_entry_t *tlb_slot(tlb_entry_t *table, uint64_t va, unsigned shift)
{
    return &table[(va >> shift) * 0x9e3779b97f4a7c15UL >> 54];
}

static uint64_t entry_at(uint64_t table, unsigned index)
{
    uint8_t *host = stage2(table);

    if (!host)
        elfuse_panic("no slot under the table at %#lx", table);
    return atomic_load_explicit((_Atomic uint64_t *) host + index,
                                memory_order_acquire);
}

/* The level-2 descriptor of va, from the tables. */
static uint64_t walk_to_l2(const guest_cpu_t *gc, uint64_t va)
{
    uint64_t table = mm_ttbr0(gc->mm), pte = 0;

    for (unsigned shift = 39; shift >= 21; shift -= 9) {
        pte = entry_at(table, (va >> shift) & 511);
        if (!(pte & PTE_VALID))
            return 0;
        table = pte & PTE_ADDR;
    }
    return pte;
}

static uint64_t walk_page(const guest_cpu_t *gc, uint64_t va)
{
    uint64_t l2 = walk_to_l2(gc, va), pte;

    if (!l2)
        return 0;
    pte = entry_at(l2 & PTE_ADDR, (va >> 12) & 511);
    return pte & PTE_VALID ? pte : 0;
}

static void tlb_check(guest_cpu_t *gc)
{
    for (unsigned i = 0; i < TLB_SIZE; i++) {
        tlb_entry_t *e = &gc->tlb[i], *w = &gc->walk[i];

        if ((e->va && walk_page(gc, e->va) != e->pte) ||
            (w->va && walk_to_l2(gc, w->va) != w->pte)) {
            guest_stale++;
            e->va = w->va = 0;
        }
    }
}

static bool in_ranges(const tlb_request_t *req, uint64_t start, uint64_t end)
{
    if (req->kind & TLB_ALL)
        return true;
    for (unsigned i = 0; i < req->nr_ranges; i++)
        if (start <
                req->range[i].va + (req->range[i].pages << GUEST_PAGE_SHIFT) &&
            end > req->range[i].va)
            return true;
    return false;
}

/* What the shim does. */
static void carry_out(guest_cpu_t *gc)
{
    tlb_request_t *req = &gc->frame.tlb;

    if (!req->kind)
        return;
    for (unsigned i = 0; i < TLB_SIZE; i++) {
        tlb_entry_t *e = &gc->tlb[i], *w = &gc->walk[i];

        if (in_ranges(req, e->va, e->va + GUEST_PAGE_SIZE))
            e->va = 0;
        if ((req->kind & (TLB_TABLE | TLB_ALL)) &&
            in_ranges(req, w->va, w->va + BLOCK_SIZE))
            w->va = 0;
    }
    req->kind = 0;
    atomic_store_explicit((_Atomic uint64_t *) &req->completed, req->sequence,
                          memory_order_release);
}

static void run_shim(mm_cpu_t *cpu)
{
    carry_out((guest_cpu_t *) cpu);
}

void guest_enter(mm_cpu_t *cpu)
{
    guest_cpu_t *gc = (guest_cpu_t *) cpu;

    carry_out(gc);
    tlb_check(gc);
}

void guest_exit(mm_t *mm, mm_cpu_t *cpu)
{
    mm_after_exit(mm, cpu);
}

static bool permits(uint64_t pte, bool write)
{
    return (pte & PTE_AP_EL0) && !(write && (pte & PTE_AP_RO));
}

/* One translation, filling the TLB; 0: fault. */
static uint64_t translate(guest_cpu_t *gc, uint64_t va, bool write)
{
    uint64_t page = va & GUEST_PAGE_MASK, block = va & ~(BLOCK_SIZE - 1);
    tlb_entry_t *e = tlb_slot(gc->tlb, page, 12);
    tlb_entry_t *w = tlb_slot(gc->walk, block, 21);
    uint64_t pte;

    if (e->va != page || !e->va) {
        if (w->va != block)
            *w = (tlb_entry_t){block, walk_to_l2(gc, va)};
        if (!w->pte) {
            w->va = 0;
            return 0;
        }
        pte = entry_at(w->pte & PTE_ADDR, (va >> 12) & 511);
        if (!(pte & PTE_VALID))
            return 0;
        *e = (tlb_entry_t){page, pte};
    }
    if (walk_page(gc, va) != e->pte) {
        guest_stale++;
        e->va = w->va = 0;
        return 0;
    }
    return permits(e->pte, write) ? e->pte : 0;
}

int guest_access(mm_t *mm, mm_cpu_t *cpu, uint64_t addr, bool write,
                 uint64_t *value)
{
    guest_cpu_t *gc = (guest_cpu_t *) cpu;

    for (int tries = 0; tries < 100; tries++) {
        uint64_t pte = translate(gc, addr, write);
        vma_t *vma;
        int error;

        if (pte) {
            uint8_t *host = stage2((pte & PTE_ADDR) | (addr & 4095));

            if (!host)
                elfuse_panic("no slot under page %#lx", addr);
            if (write)
                *(volatile uint64_t *) (void *) host = *value;
            else
                *value = *(volatile uint64_t *) (void *) host;
            return 0;
        }
        guest_faults++;
        guest_exit(mm, cpu);
        mm_lock(mm);
        vma = vma_find(mm, addr);
        if (!vma || vma->start > addr || !permits(pte_prot(vma->prot), write)) {
            mm_unlock(mm);
            guest_enter(cpu);
            return SIGSEGV;
        }
        error = materialise_fault(mm, cpu, vma, addr);
        mm_unlock(mm);
        guest_enter(cpu);
        if (error)
            return SIGBUS;
    }
    elfuse_panic("page %#lx faults for ever", addr);
}

typedef struct kept {
    struct kept *next;
    _Alignas(64) uint8_t memory[];
} kept_t;
static kept_t *fake_kept;

/* An address space lives as long as its process: kept, so that the leak
 * checker finds what was lost and not these. */
void *fake_keep(size_t size)
{
    size_t all = (sizeof(kept_t) + size + 63) & ~63UL;
    kept_t *p = aligned_alloc(64, all);

    if (!p)
        elfuse_panic("no memory");
    memset(p, 0, all);
    p->next = fake_kept;
    fake_kept = p;
    return p->memory;
}

mm_cpu_t *fake_cpu_create(mm_t *mm)
{
    guest_cpu_t *gc = fake_keep(sizeof(*gc));

    gc->mm = mm;
    mm_cpu_init(mm, &gc->cpu, &gc->frame);
    gc->cpu.run_shim = run_shim;
    return &gc->cpu;
}

mm_t *fake_mm_create(unsigned ipa_bits, unsigned task_bits, size_t host_page)
{
    hv_caps_t caps = {.ipa_bits = ipa_bits,
                      .host_page = host_page,
                      .max_slots = SLOTS_MAX,
                      .max_vcpus = VCPU_MAX};
    mm_options_t options = {.randomise = true, .task_bits = task_bits};
    mm_t *mm;

    nr_vmas = 0;
    fake_slots = fake_slots_most = fake_slots_made = 0;
    if (mm_create(NULL, &caps, &options, &mm))
        elfuse_panic("mm_create: %s", mm_error());
    return mm;
}
