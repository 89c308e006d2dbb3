/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/self/maps, smaps and smaps_rollup in the kernel's own format, and the
 * Vm lines of /proc/self/status.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "mm/calls.h"
#include "mm/hostmaps.h"
#include "stats.h"

/* fs/proc/task_mmu.c: names begin at this column. */
#define NAME_COLUMN 72

/* What one line of maps shows: one VMA, or several that only differ in our
 * object where Linux would have merged them. */
typedef struct line {
    uint64_t start, end, offset;
    const vma_t *first;     /* protection, flags */
    const host_map_t *host; /* NULL: no file */
    const char *name;
} line_t;

typedef struct sizes { /* bytes */
    uint64_t rss, anonymous, file, shmem, clean, dirty, locked;
    uint64_t shared; /* part of dirty */
} sizes_t;

static const char *anonymous_name(const mm_t *mm, const vma_t *vma)
{
    if (vma->start <= mm->brk && vma->end >= mm->brk_start && mm->brk_start)
        return "[heap]";
    if (vma->start <= mm->image.start_stack &&
        vma->end >= mm->image.start_stack && mm->image.start_stack)
        return "[stack]";
    return vma->name ? vma->name : "";
}

/* Bytes of present private memory that a fork has left shared. */
static uint64_t shared_bytes(mm_t *mm, const line_t *l)
{
    size_t page = mm->caps.host_page;
    bool flag[HOST_SHARED_MAX];
    uint64_t v = l->start, n = 0;

    while ((v = pt_next_table(mm, v, l->end)) < l->end) {
        uint64_t block = v & ~(BLOCK_SIZE - 1);
        uint64_t stop = min_u64(block + BLOCK_SIZE, l->end);
        unsigned char present[BLOCK_PAGES];
        uint64_t first = v;

        host_shared_pages((uintptr_t) hostspace_ptr(mm, block),
                          (unsigned) (BLOCK_SIZE / page), page, flag);
        pt_present(mm, v, (stop - v) >> GUEST_PAGE_SHIFT, present);
        for (; v < stop; v += GUEST_PAGE_SIZE)
            n += present[(v - first) >> GUEST_PAGE_SHIFT] &&
                 flag[(v - block) / page];
    }
    return n << GUEST_PAGE_SHIFT;
}

static line_t line_of(const mm_t *mm, const host_maps_t *maps, const vma_t *vma)
{
    line_t l = {.start = vma->start, .end = vma->end, .first = vma};

    if (!vma->object) {
        l.name = anonymous_name(mm, vma);
    } else if (vma->object->special) {
        l.name = vma->object->special;
    } else {
        l.host = host_maps_find(maps, vma->object_host);
        l.offset = vma->offset;
        l.name = l.host ? l.host->path : "";
    }
    return l;
}

/* Linux merges mappings of one open file that continue each other. */
static bool line_continues(const line_t *a, const line_t *b)
{
    const vma_t *low = a->first, *high = b->first;

    return a->end == b->start && a->host && b->host &&
           low->prot == high->prot && low->flags == high->flags &&
           low->object->fd == high->object->fd && !low->object->attach &&
           !high->object->attach && !low->object->anonymous &&
           !high->object->anonymous &&
           a->offset + (a->end - a->start) == b->offset &&
           a->host->ino == b->host->ino && a->host->major == b->host->major &&
           a->host->minor == b->host->minor && strcmp(a->name, b->name) == 0;
}

/* The line that begins with vma; *next is the VMA after it. */
static line_t line_next(const mm_t *mm, const host_maps_t *maps, vma_t *vma,
                        vma_t **next)
{
    line_t l = line_of(mm, maps, vma);

    for (*next = vma_next(vma); *next; *next = vma_next(*next)) {
        line_t more = line_of(mm, maps, *next);
        if (!line_continues(&l, &more))
            break;
        l.end = more.end;
    }
    return l;
}

static void line_print(FILE *out, const line_t *l)
{
    const vma_t *vma = l->first;
    int n = fprintf(
        out, "%08lx-%08lx %c%c%c%c %08lx %02x:%02x %lu ", l->start, l->end,
        vma->prot & PROT_READ ? 'r' : '-', vma->prot & PROT_WRITE ? 'w' : '-',
        vma->prot & PROT_EXEC ? 'x' : '-', vma->flags & VMA_SHARED ? 's' : 'p',
        l->offset, l->host ? l->host->major : 0, l->host ? l->host->minor : 0,
        l->host ? l->host->ino : 0);

    if (*l->name)
        fprintf(out, "%*s %s", n < NAME_COLUMN ? NAME_COLUMN - n : 0, "",
                l->name);
    fputc('\n', out);
}

/* --- sizes --------------------------------------------------------------- */

static sizes_t line_sizes(mm_t *mm, const line_t *l)
{
    const vma_t *vma = l->first;
    sizes_t s = {0};

    s.rss = pt_count_present(mm, l->start, l->end) << GUEST_PAGE_SHIFT;
    if (!vma->object) {
        s.anonymous = s.rss;
        s.shared = shared_bytes(mm, l);
    } else if (vma->object->anonymous || vma->object->attach) {
        s.shmem = s.rss;
    } else {
        s.file = s.rss;
    }
    if (!vma->object || (vma->prot & PROT_WRITE))
        s.dirty = s.rss;
    else
        s.clean = s.rss;
    if (vma->flags & VMA_LOCKED)
        s.locked = s.rss;
    return s;
}

static void sizes_add(sizes_t *sum, const sizes_t *s)
{
    sum->rss += s->rss;
    sum->anonymous += s->anonymous;
    sum->file += s->file;
    sum->shmem += s->shmem;
    sum->clean += s->clean;
    sum->dirty += s->dirty;
    sum->locked += s->locked;
    sum->shared += s->shared;
}

static void size_print(FILE *out, const char *label, uint64_t bytes)
{
    fprintf(out, "%-16s%8lu kB\n", label, bytes >> 10);
}

/* __show_smap(). Pages count as private but for those shared since a fork: who
 * else maps a file's page is unknown. */
static void sizes_print(FILE *out, const sizes_t *s, bool rollup)
{
    size_print(out, "Rss:", s->rss);
    size_print(out, "Pss:", s->rss);
    size_print(out, "Pss_Dirty:", s->dirty);
    if (rollup) {
        size_print(out, "Pss_Anon:", s->anonymous);
        size_print(out, "Pss_File:", s->file);
        size_print(out, "Pss_Shmem:", s->shmem);
    }
    size_print(out, "Shared_Clean:", 0);
    size_print(out, "Shared_Dirty:", s->shared);
    size_print(out, "Private_Clean:", s->clean);
    size_print(out, "Private_Dirty:", s->dirty - s->shared);
    size_print(out, "Referenced:", s->rss);
    size_print(out, "Anonymous:", s->anonymous);
    size_print(out, "LazyFree:", 0);
    size_print(out, "AnonHugePages:", 0);
    size_print(out, "ShmemPmdMapped:", 0);
    size_print(out, "FilePmdMapped:", 0);
    size_print(out, "Shared_Hugetlb:", 0);
    size_print(out, "Private_Hugetlb:", 0);
    size_print(out, "Swap:", 0);
    size_print(out, "SwapPss:", 0);
    size_print(out, "Locked:", s->locked);
}

static bool huge_eligible(const vma_t *vma)
{
    uint64_t block = (vma->start + BLOCK_SIZE - 1) & ~(BLOCK_SIZE - 1);

    return (vma->flags & VMA_HUGEPAGE) && !vma->object &&
           block + BLOCK_SIZE <= vma->end;
}

/* In the order of the kernel's bits. */
static void flags_print(FILE *out, const vma_t *vma)
{
    bool special = vma->flags & VMA_SPECIAL;
    bool pfnmap = special && !(vma->prot & PROT_EXEC);
    bool shared = vma->flags & VMA_SHARED;
    const struct {
        bool set;
        const char *name;
    } flag[] = {
        {vma->prot & PROT_READ, "rd"},
        {vma->prot & PROT_WRITE, "wr"},
        {vma->prot & PROT_EXEC, "ex"},
        {shared && (vma->max_prot & PROT_WRITE), "sh"},
        {vma->max_prot & PROT_READ, "mr"},
        {vma->max_prot & PROT_WRITE, "mw"},
        {vma->max_prot & PROT_EXEC, "me"},
        {shared, "ms"},
        {vma->flags & VMA_GROWSDOWN, "gd"},
        {pfnmap, "pf"},
        {vma->flags & VMA_LOCKED, "lo"},
        {vma->flags & VMA_SEQ_READ, "sr"},
        {vma->flags & VMA_RAND_READ, "rr"},
        {vma->flags & VMA_DONTFORK, "dc"},
        {special, "de"},
        {vma->flags & VMA_LOCKONFAULT, "lf"},
        {vma->flags & VMA_ACCOUNT, "ac"},
        {vma->flags & VMA_NORESERVE, "nr"},
        {vma->flags & VMA_WIPEONFORK, "wf"},
        {vma->flags & VMA_DONTDUMP, "dd"},
        {vma->flags & VMA_HUGEPAGE, "hg"},
        {vma->flags & VMA_NOHUGEPAGE, "nh"},
        {vma->flags & VMA_MERGEABLE, "mg"},
    };

    fputs("VmFlags: ", out);
    for (size_t i = 0; i < sizeof(flag) / sizeof(flag[0]); i++)
        if (flag[i].set)
            fprintf(out, "%s ", flag[i].name);
    fputc('\n', out);
}

static void smap_print(FILE *out, const line_t *l, const sizes_t *s)
{
    line_print(out, l);
    size_print(out, "Size:", l->end - l->start);
    size_print(out, "KernelPageSize:", GUEST_PAGE_SIZE);
    size_print(out, "MMUPageSize:", GUEST_PAGE_SIZE);
    sizes_print(out, s, false);
    fprintf(out, "THPeligible:    %d\n", huge_eligible(l->first));
    flags_print(out, l->first);
}

static void rollup_print(FILE *out, uint64_t start, uint64_t end,
                         const sizes_t *sum)
{
    int n = fprintf(out, "%08lx-%08lx ---p 00000000 00:00 0 ", start, end);

    fprintf(out, "%*s [rollup]\n", n < NAME_COLUMN ? NAME_COLUMN - n : 0, "");
    sizes_print(out, sum, true);
}

/* --- the files ----------------------------------------------------------- */

enum maps_kind { KIND_MAPS, KIND_SMAPS, KIND_ROLLUP };

static void print_all(mm_t *mm, FILE *out, const host_maps_t *maps,
                      enum maps_kind kind)
{
    vma_t *vma = vma_first(mm), *next;
    uint64_t start = vma ? vma->start : 0, end = 0;
    sizes_t sum = {0};

    for (; vma; vma = next) {
        line_t l = line_next(mm, maps, vma, &next);
        sizes_t s = {0};

        if (kind != KIND_MAPS)
            s = line_sizes(mm, &l);
        sizes_add(&sum, &s);
        end = l.end;
        if (kind == KIND_MAPS)
            line_print(out, &l);
        else if (kind == KIND_SMAPS)
            smap_print(out, &l, &s);
    }
    if (kind == KIND_ROLLUP)
        rollup_print(out, start, end, &sum);
}

static int print_locked(mm_t *mm, FILE *out, enum maps_kind kind)
{
    host_maps_t maps;
    int err;

    mm_lock(mm);
    err = host_maps_read(&maps, (uint64_t) hostspace_ptr(mm, mm->task_size));
    if (!err) {
        print_all(mm, out, &maps, kind);
        host_maps_free(&maps);
    }
    mm_unlock(mm);
    if (!err && ferror(out))
        err = -EIO;
    return err;
}

int mm_print_maps(mm_t *mm, FILE *out)
{
    return print_locked(mm, out, KIND_MAPS);
}

int mm_print_smaps(mm_t *mm, FILE *out, bool rollup)
{
    return print_locked(mm, out, rollup ? KIND_ROLLUP : KIND_SMAPS);
}

void mm_usage(mm_t *mm, mm_usage_t *usage)
{
    uint64_t shared = 0, total = 0, tables;

    mm_lock(mm);
    *usage = mm->usage;
    for (vma_t *vma = vma_first(mm); vma; vma = vma_next(vma)) {
        uint64_t n = pt_count_present(mm, vma->start, vma->end);
        total += n;
        if (vma->object)
            shared += n;
    }
    mm_unlock(mm);
    tables =
        atomic_load_explicit(&stats.tables_allocated, memory_order_relaxed) -
        atomic_load_explicit(&stats.tables_freed, memory_order_relaxed);
    usage->resident = total;
    usage->shared_resident = shared;
    usage->page_tables = tables;
}
