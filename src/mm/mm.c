/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's address space as a whole: made here, locked here.
 */
#include "mm/mm.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>

#include "mm/account.h"
#include "mm/fast.h"
#include "mm/internal.h"
#include "mm/tablepool.h"
#include "proc/proc.h" /* elfuse_panic only */
#include "stats.h"

static _Thread_local char error_text[160];

const char *mm_error(void)
{
    return error_text;
}

static int fail(int error, const char *what)
{
    snprintf(error_text, sizeof(error_text), "%s: %s", what, strerror(-error));
    return error;
}

/* Layout, as Linux's arch_pick_mmap_layout and its callers choose it, for a
 * user space of mm->task_size. */
#define MMAP_RND_BITS   18 /* arm64's default */
#define STACK_RND_PAGES 0x3ffffUL
#define STACK_GUARD_GAP (256UL << GUEST_PAGE_SHIFT)
#define STACK_GAP_MIN   (128UL << 20)

static uint64_t random_pages(const mm_t *mm, uint64_t mask)
{
    uint64_t random = 0;

    if (!mm->randomise ||
        getrandom(&random, sizeof(random), 0) != (ssize_t) sizeof(random))
        return 0;
    return (random & mask) << GUEST_PAGE_SHIFT;
}

static void pick_layout(mm_t *mm)
{
    uint64_t random = random_pages(mm, (1UL << MMAP_RND_BITS) - 1);
    uint64_t gap = mm->limit_stack.rlim_cur, pad = STACK_GUARD_GAP;
    uint64_t gap_max = mm->task_size / 6 * 5;

    if (mm->randomise)
        pad += STACK_RND_PAGES << GUEST_PAGE_SHIFT;
    if (gap + pad > gap)
        gap += pad;
    if (gap < STACK_GAP_MIN)
        gap = STACK_GAP_MIN;
    if (gap > gap_max)
        gap = gap_max;
    mm->stack_top = mm->task_size - random_pages(mm, STACK_RND_PAGES);
    mm->mmap_base = (mm->task_size - gap - random) & GUEST_PAGE_MASK;
    mm->elf_dyn_base = (mm->task_size / 3 * 2 + random) & GUEST_PAGE_MASK;
}

/*
 * The limit becomes the guest's, for account.c to keep; elfuse itself, with its
 * reservation and its stack, takes what it may have: everything with privilege,
 * else up to the hard limit. Over an exec elfuse keeps what it took, and `told`
 * is the guest's.
 */
static int take_limit(int resource, const struct rlimit *told,
                      struct rlimit *limit)
{
    struct rlimit own = {RLIM_INFINITY, RLIM_INFINITY}, now;

    if (getrlimit(resource, &now))
        return -errno;
    *limit = told ? *told : now;
    if (setrlimit(resource, &own) == 0)
        return 0;
    own.rlim_cur = own.rlim_max = now.rlim_max;
    return setrlimit(resource, &own) ? -errno : 0;
}

static const int limit_resource[MM_LIMITS] = {RLIMIT_AS, RLIMIT_DATA,
                                              RLIMIT_STACK, RLIMIT_MEMLOCK};

static int take_limits(mm_t *mm, const struct rlimit *told)
{
    struct rlimit *limit[MM_LIMITS] = {&mm->limit_as, &mm->limit_data,
                                       &mm->limit_stack, &mm->limit_memlock};
    int error = 0;

    for (int i = 0; i < MM_LIMITS && !error; i++)
        error = take_limit(limit_resource[i], told ? &told[i] : NULL, limit[i]);
    return error;
}

int mm_take_limits(struct rlimit limit[MM_LIMITS])
{
    int error = 0;

    for (int i = 0; i < MM_LIMITS && !error; i++)
        error = take_limit(limit_resource[i], NULL, &limit[i]);
    return error;
}

void mm_get_limits(mm_t *mm, struct rlimit limit[MM_LIMITS])
{
    for (int i = 0; i < MM_LIMITS; i++)
        mm_get_rlimit(mm, limit_resource[i], &limit[i]);
}

/* The parts that hold state. Nothing is torn down on failure: the process is
 * about to end. */
static int make_parts(mm_t *mm, unsigned task_bits)
{
    int error;

    mm->space = hostspace_create(mm->caps.host_page, task_bits, &mm->task_size);
    if (!mm->space)
        return fail(-ENOMEM, "cannot reserve the guest's address space");
    mm->windows = windows_create(mm->caps.ipa_bits, mm->caps.max_slots,
                                 (uintptr_t) mm->space->base, mm->space->size);
    mm->dirty = dirty_map_create(mm->task_size >> BLOCK_SHIFT);
    mm->revoking = revoking_create();
    if (!mm->windows || !mm->dirty || !mm->revoking)
        return fail(-ENOMEM, "cannot make the memory tables");
    error = table_pool_create(mm);
    if (error)
        return fail(error, "cannot make the page-table pool");
    return 0;
}

/* A vfork child that is killed under the lock leaves it taken, by its parent's
 * thread as it looks: that shall notice. */
void mm_lock_init(mm_t *mm)
{
    pthread_mutexattr_t attr;

    pthread_mutexattr_init(&attr);
    pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&mm->lock, &attr);
    pthread_mutexattr_destroy(&attr);
}

bool mm_host_denies_exec(void)
{
    return prctl(66 /* PR_GET_MDWE */, 0, 0, 0, 0) > 0;
}

int mm_create(hv_vm_t *vm, const hv_caps_t *caps, const mm_options_t *opt,
              mm_t **out)
{
    mm_t *mm = calloc(1, sizeof(*mm));
    int error;

    if (!mm)
        return fail(-ENOMEM, "cannot make the address space");
    mm_lock_init(mm);
    mm->vm = vm;
    mm->caps = *caps;
    mm->randomise = opt->randomise;
    mm->deny_write_exec = mm_host_denies_exec();
    RB_INIT(&mm->vmas);
    TAILQ_INIT(&mm->cpus);
    error = take_limits(mm, opt->limits);
    if (error) {
        free(mm);
        return fail(error, "cannot read the resource limits");
    }
    error = make_parts(mm, opt->task_bits);
    if (error)
        return error;
    pick_layout(mm);
    account_init(mm);
    *out = mm;
    return 0;
}

void mm_cpu_init(mm_t *mm, mm_cpu_t *cpu, vcpu_frame_t *frame)
{
    mm_lock(mm);
    cpu->frame = frame;
    cpu->tlb_sequence = cpu->tlb_seen = frame ? frame->tlb.sequence : 0;
    TAILQ_INSERT_TAIL(&mm->cpus, cpu, entry);
    if (mm->fast)
        fast_cpu_init(mm, cpu);
    mm_unlock(mm);
}

void mm_cpu_park(mm_t *mm, mm_cpu_t *cpu)
{
    mm_lock(mm);
    gather_end_cpu(mm, cpu);
    if (mm->fast)
        fast_cpu_end(mm, cpu);
    cpu->frame = NULL;
    mm_unlock(mm);
}

void mm_cpu_remove(mm_t *mm, mm_cpu_t *cpu)
{
    for (int i = 0; i < SPAN_SLOTS; i++)
        if (atomic_load_explicit(&cpu->span[i].end, memory_order_relaxed))
            elfuse_panic("mm: a thread ends with a span of %#lx",
                         atomic_load_explicit(&cpu->span[i].start,
                                              memory_order_relaxed));
    mm_lock(mm);
    TAILQ_REMOVE(&mm->cpus, cpu, entry);
    mm_unlock(mm);
}

void mm_cpu_bury(mm_t *mm, mm_cpu_t *dead, mm_cpu_t *self)
{
    mm_lock(mm);
    gather_bury_cpu(mm, dead, self);
    for (int i = 0; i < SPAN_SLOTS; i++)
        atomic_store_explicit(&dead->span[i].end, 0, memory_order_relaxed);
    TAILQ_REMOVE(&mm->cpus, dead, entry);
    mm_unlock(mm);
}

void mm_lock(mm_t *mm)
{
    int error = pthread_mutex_lock(&mm->lock);

    if (error)
        elfuse_panic("mm: cannot take the memory lock: %s", strerror(error));
    if (mm->fast)
        fast_drain(mm);
}

void mm_unlock(mm_t *mm)
{
    int error;

    if (mm->fast) {
        fast_update_off(mm);
        fast_release(mm);
    }
    error = pthread_mutex_unlock(&mm->lock);
    if (error)
        elfuse_panic("mm: cannot release the memory lock: %s", strerror(error));
}

int mm_fast_enable(mm_t *mm, fast_shared_t *shared, uint64_t tables)
{
    shared->tables = tables;
    shared->root = mm_ttbr0(mm);
    return fast_create(mm, shared);
}

void mm_enter_guest(mm_t *mm, mm_cpu_t *cpu)
{
    if (mm->fast)
        fast_enter_guest(mm, cpu);
}

/* The memory that EL1 has retired may be too much to keep, and may be granted
 * again. */
static void reuse_retired(mm_t *mm, mm_cpu_t *cpu)
{
    gather_t g;

    gather_begin(&g, mm, cpu);
    pt_trim(mm, &g);
    gather_finish(&g);
    fast_rewind(mm, cpu);
}

void mm_after_exit(mm_t *mm, mm_cpu_t *cpu)
{
    bool records = mm->fast && fast_pending(mm, cpu);

    /* Nothing done at EL1, nothing asked for since the last look, and nothing
     * held by a span. */
    if (records || revoking_pending(mm)) {
        mm_lock(mm);
        cpu->tlb_seen = cpu->tlb_sequence;
        revoking_collect(mm, cpu);
        if (records)
            reuse_retired(mm, cpu);
        mm_unlock(mm);
    }
    if (mm->fast)
        fast_leave_guest(mm, cpu);
}

uint64_t mm_ttbr0(const mm_t *mm)
{
    return mm->pool->ipa;
}

uint64_t mm_pool_ipa(const mm_t *mm)
{
    return mm->pool->ipa;
}

uint64_t mm_pool_size(const mm_t *mm)
{
    return mm->pool->size;
}

uint64_t mm_task_size(const mm_t *mm)
{
    return mm->task_size;
}

uint64_t mm_stack_top(const mm_t *mm)
{
    return mm->stack_top;
}

uint64_t mm_elf_dyn_base(const mm_t *mm)
{
    return mm->elf_dyn_base;
}

mm_image_t *mm_image(mm_t *mm)
{
    return &mm->image;
}
