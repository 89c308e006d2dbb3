/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guest's memory: what the rest of elfuse may use of mm/. One mm_t per
 * guest process. mm/ never calls proc/ or sys/.
 *
 * Functions named after a system call return what the call returns: a value,
 * or a negative errno, with Linux's order of checks; addresses come straight
 * from the guest (tags are removed here where Linux removes them). They take
 * mm->lock themselves; callers hold no lock.
 */
#ifndef ELFUSE_MM_MM_H
#define ELFUSE_MM_MM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <sys/resource.h>

#include <bsd/sys/queue.h>

#include "abi/fast.h"
#include "abi/frame.h"
#include "hv/hv.h"
#include "mm/span.h"

typedef struct mm mm_t;

/*
 * What mm keeps for each guest thread. The vCPU is parked at a doorbell (or has
 * never run) whenever its host thread is inside mm/.
 */
typedef struct mm_cpu {
    vcpu_frame_t *frame;   /* NULL before the vCPU exists: nothing to
                              invalidate */
    uint64_t tlb_sequence; /* of the last request left in the frame */
    /*
     * Run the shim once so that the request in the frame is carried out now:
     * the vCPU rings again with FRAME_EXIT_TLB_DONE. Set by proc/run.c.
     */
    void (*run_shim)(struct mm_cpu *cpu);
    uint64_t tlb_seen; /* last sequence whose completion was noted */
    /* What this thread's last faults looked like; see materialise_fault(). */
    uint64_t fault_next;   /* a fault here continues a linear sweep */
    uint64_t fault_last;   /* page of the last one, or of the last one spared */
    uint64_t fault_stride; /* distance from the one before */
    uint32_t fault_pages;  /* what the last fault materialised */
    uint32_t fault_run;    /* faults in a row at that distance */
    span_slot_t span[SPAN_SLOTS];
    /* mmap and munmap at EL1 (mm/fast.h). */
    fast_control_t *fast; /* NULL: not for this one */
    bool no_fast; /* the thread may vanish at any time (a vfork child): set
                     before mm_cpu_init() */
    uint64_t fast_commits; /* fast_t.commits when its window was last moved */
    TAILQ_ENTRY(mm_cpu) entry; /* in mm's list */
} mm_cpu_t;

/* How many limits are the guest's, see mm_owns_rlimit(). */
#define MM_LIMITS 4

typedef struct mm_options {
    const struct rlimit *limits; /* MM_LIMITS: the guest's, from
                                    mm_get_limits() before an exec or from
                                    mm_take_limits(); NULL: elfuse's own */
    bool randomise;     /* address space layout, unless personality says no */
    unsigned task_bits; /* tests: user space of 2^task_bits bytes at most; 0:
                           what the host has room for */
} mm_options_t;

/*
 * Make the guest's address space: the host reservation, the page-table pool
 * (mapped into the VM), an empty VMA tree. shim_pool_ipa and the like are those
 * of abi/layout.h. On failure -errno, with a line in mm_error().
 */
int mm_create(hv_vm_t *vm, const hv_caps_t *caps, const mm_options_t *opt,
              mm_t **mm);
const char *mm_error(void);
/* From here on until mm_cpu_remove() mm knows the thread; any thread may call
 * it. `cpu` is all zero but for run_shim and no_fast. */
void mm_cpu_init(mm_t *mm, mm_cpu_t *cpu, vcpu_frame_t *frame);
/*
 * The end of a thread, called by itself. mm_cpu_park(): what the frame's
 * request owes is done, and the frame is not looked at again; spans that are
 * held stay. mm_cpu_remove(): there is no span left either.
 */
void mm_cpu_park(mm_t *mm, mm_cpu_t *cpu);
void mm_cpu_remove(mm_t *mm, mm_cpu_t *cpu);
/* The same for a thread that is no more: `self` does for it what is left, its
 * spans are void. */
void mm_cpu_bury(mm_t *mm, mm_cpu_t *dead, mm_cpu_t *self);

/*
 * Have mmap and munmap served at EL1. `shared` is all zero; EL1 finds the table
 * at IPA x at x + tables. Before the first mapping and the first mm_cpu_init().
 * -ENOMEM.
 */
int mm_fast_enable(mm_t *mm, fast_shared_t *shared, uint64_t tables);

/* At the end, for statistics: what EL1 has counted is added to them. */
void mm_fast_stats(mm_t *mm);

/* IPA of the level-0 table, for TTBR0. */
uint64_t mm_ttbr0(const mm_t *mm);
/* IPA and size in bytes of the page-table pool, for the shim's TTBR1 map. */
uint64_t mm_pool_ipa(const mm_t *mm);
uint64_t mm_pool_size(const mm_t *mm);

/* The first address past user space, a power of two. */
uint64_t mm_task_size(const mm_t *mm);

/* System calls. */
int64_t mm_mmap(mm_t *mm, mm_cpu_t *cpu, uint64_t addr, uint64_t len,
                uint64_t prot, uint64_t flags, int fd, uint64_t offset);
int64_t mm_munmap(mm_t *mm, mm_cpu_t *cpu, uint64_t addr, uint64_t len);
int64_t mm_mprotect(mm_t *mm, mm_cpu_t *cpu, uint64_t addr, uint64_t len,
                    uint64_t prot);
int64_t mm_mremap(mm_t *mm, mm_cpu_t *cpu, uint64_t addr, uint64_t old_len,
                  uint64_t new_len, uint64_t flags, uint64_t new_addr);
int64_t mm_madvise(mm_t *mm, mm_cpu_t *cpu, uint64_t addr, uint64_t len,
                   int advice);
int64_t mm_brk(mm_t *mm, mm_cpu_t *cpu, uint64_t addr);
int64_t mm_mincore(mm_t *mm, mm_cpu_t *cpu, uint64_t addr, uint64_t len,
                   uint64_t vec);
int64_t mm_msync(mm_t *mm, mm_cpu_t *cpu, uint64_t addr, uint64_t len,
                 int flags);
int64_t mm_mlock(mm_t *mm, mm_cpu_t *cpu, uint64_t addr, uint64_t len,
                 int flags); /* mlock2's flags; 0 is mlock */
int64_t mm_munlock(mm_t *mm, mm_cpu_t *cpu, uint64_t addr, uint64_t len);
int64_t mm_mlockall(mm_t *mm, mm_cpu_t *cpu, int flags);
int64_t mm_munlockall(mm_t *mm, mm_cpu_t *cpu);
int64_t mm_shmat(mm_t *mm, mm_cpu_t *cpu, int id, uint64_t addr, int flags);
int64_t mm_shmdt(mm_t *mm, mm_cpu_t *cpu, uint64_t addr);
/*
 * Linux counts an attach for each VMA of a segment, the host for each of its
 * own: how many more of segment `id` the guest has. (An mprotect of a part is
 * not seen by the host.)
 */
uint64_t mm_shm_attaches(mm_t *mm, int id);

/*
 * RLIMIT_AS, DATA, STACK and MEMLOCK are the guest's: mm accounts for them,
 * and elfuse's own are lifted as far as they can be (mm_create). True when
 * `resource` is one of these. The privilege check for raising a hard limit is
 * the caller's.
 */
bool mm_owns_rlimit(int resource);
void mm_get_rlimit(mm_t *mm, int resource, struct rlimit *limit);
/*
 * Lift elfuse's own limits, the first thing that it does: it may have been
 * started with a stack that is too small for it. `limit` is what they were. 0
 * or -errno.
 */
int mm_take_limits(struct rlimit limit[MM_LIMITS]);
/* All of them: AS, DATA, STACK, MEMLOCK. */
void mm_get_limits(mm_t *mm, struct rlimit limit[MM_LIMITS]);
void mm_set_rlimit(mm_t *mm, int resource, const struct rlimit *limit);

/* Faults taken by EL0. */
enum mm_access { MM_READ = 1, MM_WRITE = 2, MM_EXEC = 4 };
typedef struct mm_fault {
    int signal; /* 0: solved, run on; else SIGSEGV, SIGBUS */
    int code;   /* si_code: SEGV_MAPERR, SEGV_ACCERR, BUS_ADRERR ... */
} mm_fault_t;
/*
 * EL0's access to `addr` (as FAR, tag allowed) faulted. Materialises, grows a
 * stack, or says which signal. A fault on a page that is valid with sufficient
 * permissions is solved without touching it.
 */
mm_fault_t mm_handle_fault(mm_t *mm, mm_cpu_t *cpu, uint64_t addr,
                           enum mm_access access);

/* Is there anything mapped at or above addr? What Linux's find_vma() says. */
bool mm_any_above(mm_t *mm, uint64_t addr);

/* The calling thread's vCPU is about to run EL0. */
void mm_enter_guest(mm_t *mm, mm_cpu_t *cpu);
/*
 * After every doorbell, before the exit is looked at: takes note of
 * what EL1 has done, of completed invalidations, and frees what waited for
 * them. Cheap when there is nothing to do (a few loads and compares).
 */
void mm_after_exit(mm_t *mm, mm_cpu_t *cpu);

/*
 * In a fork child, whose parent stood still with no lock held (mm/fork.c).
 * mm_fork_renew() comes first: only `cpu` is left, and the new VM is shown the
 * memory. When the vCPU can run, mm_fork_finish() does what fork does to VMAs.
 * -errno: the child cannot go on.
 */
int mm_fork_renew(mm_t *mm, mm_cpu_t *cpu);
int mm_fork_finish(mm_t *mm, mm_cpu_t *cpu);
/* The same child has new memory at `own`, which mm_map_special() was given: the
 * guest is to see that. */
int mm_fork_special(mm_t *mm, void *own, const char *name);

/* For the loader. */
/* Randomised or fixed choices made at mm_create, as Linux makes them. */
uint64_t mm_stack_top(const mm_t *mm);
uint64_t mm_elf_dyn_base(const mm_t *mm);
/*
 * Make the main stack VMA, PROT_READ|PROT_WRITE plus PROT_EXEC if exec, of
 * `size` bytes below mm_stack_top(), growing down; RLIMIT_STACK applies.
 */
int mm_make_stack(mm_t *mm, mm_cpu_t *cpu, uint64_t size, bool exec);
/* Tell where the image's brk begins (the end of its last segment); the heap
 * is randomised past it as Linux does. */
void mm_set_brk(mm_t *mm, uint64_t end);
/* What PR_GET/SET_MM and /proc/self/stat show. */
typedef struct mm_image {
    uint64_t start_code, end_code, start_data, end_data, start_stack;
    uint64_t arg_start, arg_end, env_start, env_end;
} mm_image_t;
mm_image_t *mm_image(mm_t *mm);
/*
 * prctl(PR_SET_MM, option, addr): the options that are one address each. The
 * privilege check is the caller's.
 */
int64_t mm_set_mm(mm_t *mm, int option, uint64_t addr);
/* PR_SET_MM_MAP: all of them, in the order of struct prctl_mm_map. */
#define MM_MAP_FIELDS 11
int64_t mm_check_mm_map(mm_t *mm, const uint64_t field[MM_MAP_FIELDS]);
int64_t mm_set_mm_map(mm_t *mm, const uint64_t field[MM_MAP_FIELDS]);
/* Host address of [start, end) when that is private anonymous memory, which it
 * stays until it is unmapped; else 0. */
uint64_t mm_host_of(mm_t *mm, uint64_t start, uint64_t end);
/* PR_SET_VMA_ANON_NAME; NULL: no name. */
int64_t mm_set_anon_name(mm_t *mm, uint64_t addr, uint64_t len,
                         const char *name);
/* PR_SET_MDWE: nothing becomes executable that was not, or is writable. */
void mm_deny_write_exec(mm_t *mm);
/*
 * Map `size` bytes of host memory at `host` (elfuse's own, page aligned to the
 * host page, living as long as the process) into the guest for ever: vDSO code
 * or vvar data, named `name` in maps; at `hint`
 * when that is free. Returns the address or -errno.
 */
int64_t mm_map_special(mm_t *mm, mm_cpu_t *cpu, uint64_t hint, void *host,
                       uint64_t size, uint64_t prot, const char *name);

/* /proc. All write text as the kernel would. */
int mm_print_maps(mm_t *mm, FILE *out);
int mm_print_smaps(mm_t *mm, FILE *out, bool rollup);
typedef struct mm_usage { /* pages of 4 KiB */
    uint64_t total_vm, peak_vm, data, stack, exec, locked, resident,
        shared_resident, page_tables;
} mm_usage_t;
void mm_usage(mm_t *mm, mm_usage_t *usage);

#endif
