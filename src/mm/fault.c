/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EL0's faults, and the growth of stacks.
 */
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "mm/account.h"
#include "mm/calls.h"
#include "mm/fast.h"
#include "stats.h"

/* acct_stack_growth(): may vma begin at start, which is below it? */
static bool stack_may_grow(mm_t *mm, const vma_t *vma, uint64_t start)
{
    uint64_t pages = (vma->start - start) >> GUEST_PAGE_SHIFT;

    return account_may_expand(mm, vma->prot, vma->flags, pages) &&
           vma->end - start <= mm->limit_stack.rlim_cur &&
           (!(vma->flags & VMA_LOCKED) || account_may_lock(mm, pages)) &&
           account_enough_memory(mm, pages);
}

/* expand_downwards() */
static bool stack_grow(mm_t *mm, vma_t *vma, uint64_t start)
{
    const vma_t *prev = vma_prev(vma);

    if (start < mm->mmap_min)
        return false;
    if (prev && !(prev->flags & VMA_GROWSDOWN) && prev->prot &&
        start - prev->end < VMA_GUARD_GAP)
        return false;
    if (!stack_may_grow(mm, vma, start))
        return false;
    account_add(mm, vma->prot, vma->flags,
                (int64_t) ((vma->start - start) >> GUEST_PAGE_SHIFT));
    fast_mark(mm, start, vma->start);
    vma_set_range(mm, vma, start, vma->end);
    return true;
}

vma_t *vma_find_grow(struct mm *mm, uint64_t addr)
{
    vma_t *vma = vma_find(mm, addr);

    if (!vma || vma->start <= addr)
        return vma;
    if (!(vma->flags & VMA_GROWSDOWN) ||
        !stack_grow(mm, vma, addr & GUEST_PAGE_MASK))
        return NULL;
    return vma;
}

/* Does the descriptor allow it? Acquire: pairs with the release store that
 * made it valid. */
static bool page_allows(mm_t *mm, uint64_t addr, enum mm_access access)
{
    _Atomic pte_t *entry = pt_walk(mm, addr & GUEST_PAGE_MASK);
    pte_t pte = entry ? atomic_load_explicit(entry, memory_order_acquire) : 0;

    return pte_valid(pte) && (pte_access(pte) & (int) access);
}

/* As arm64 has it without enhanced PAN: whatever has any access can be read. */
static bool vma_allows(const vma_t *vma, enum mm_access access)
{
    if (access == MM_READ)
        return vma->prot != 0;
    return (vma->prot & (int) access) != 0;
}

static mm_fault_t fault_signal(int signal, int code)
{
    return (mm_fault_t){.signal = signal, .code = code};
}

/* A page that is there, but with fewer rights than its VMA gives. */
static void fault_reprotect(mm_t *mm, mm_cpu_t *cpu, const vma_t *vma,
                            uint64_t page)
{
    gather_t g;

    gather_begin(&g, mm, cpu);
    pt_protect(mm, &g, page, page + GUEST_PAGE_SIZE, vma->prot);
    gather_finish(&g);
}

/* Keep EL1 out of what this fault may change, also by growing a stack. */
static void fault_claim(mm_t *mm, const mm_cpu_t *cpu, uint64_t addr)
{
    uint64_t start, end;
    const vma_t *vma;

    materialise_reach(cpu, addr, &start, &end);
    fast_claim_touch(mm, start, end);
    vma = vma_find(mm, addr);
    if (vma && vma->start > addr && (vma->flags & VMA_GROWSDOWN))
        fast_claim_fixed(mm, addr & GUEST_PAGE_MASK, vma->start);
}

static mm_fault_t fault_locked(mm_t *mm, mm_cpu_t *cpu, uint64_t addr,
                               enum mm_access access)
{
    vma_t *vma;

    if (mm->fast)
        fault_claim(mm, cpu, addr);
    vma = vma_find_grow(mm, addr);
    if (!vma)
        return fault_signal(SIGSEGV, SEGV_MAPERR);
    if (!vma_allows(vma, access))
        return fault_signal(SIGSEGV, SEGV_ACCERR);
    if (materialise_fault(mm, cpu, vma, addr & GUEST_PAGE_MASK))
        return fault_signal(SIGKILL, 0); /* as the kernel's OOM killer */
    if (!page_allows(mm, addr, access)) {
        fault_reprotect(mm, cpu, vma, addr & GUEST_PAGE_MASK);
        if (!page_allows(mm, addr, access))
            return fault_signal(SIGSEGV, SEGV_ACCERR);
    }
    stats_add(faults_solved, 1);
    return fault_signal(0, 0);
}

mm_fault_t mm_handle_fault(mm_t *mm, mm_cpu_t *cpu, uint64_t addr,
                           enum mm_access access)
{
    mm_fault_t result;

    addr = untag(addr);
    if (addr >= mm->task_size)
        return fault_signal(SIGSEGV, SEGV_MAPERR);
    if (page_allows(mm, addr, access)) {
        stats_add(faults_spurious, 1);
        return fault_signal(0, 0);
    }
    mm_lock(mm);
    result = fault_locked(mm, cpu, addr, access);
    mm_unlock(mm);
    return result;
}

bool mm_any_above(mm_t *mm, uint64_t addr)
{
    bool any;

    mm_lock(mm);
    any = vma_find(mm, untag(addr)) != NULL;
    mm_unlock(mm);
    return any;
}
