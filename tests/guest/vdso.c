/* SPDX-License-Identifier: Apache-2.0 */
/* The vDSO, found and read as a C library would, and its clocks. */
#include "mem.h"

#include <elf.h>
#include <sys/auxv.h>
#include <sys/time.h>
#include <time.h>

typedef int (*gettime_t)(clockid_t, struct timespec *);
typedef int (*gettimeofday_t)(struct timeval *, struct timezone *);

static gettime_t v_gettime, v_getres;
static gettimeofday_t v_gettimeofday;

static const Elf64_Ehdr *eh;
static uintptr_t load;
static const Elf64_Sym *symtab;
static const char *strtab;
static const uint16_t *versym;
static const Elf64_Verdef *verdef;
static uint32_t symbols; /* how many there are */

/* The number of symbols by a DT_GNU_HASH table: the end of the last chain. */
static uint32_t gnu_count(const uint32_t *h)
{
    uint32_t buckets = h[0], first = h[1], last = 0;
    const uint32_t *bucket = h + 4 + 2UL * h[2], *chain = bucket + buckets;
    for (uint32_t i = 0; i < buckets; i++)
        if (bucket[i] > last)
            last = bucket[i];
    if (last < first)
        return first;
    while (!(chain[last - first] & 1))
        last++;
    return last + 1;
}

static void read_dynamic(const Elf64_Dyn *d)
{
    for (; d->d_tag != DT_NULL; d++) {
        uintptr_t p = load + d->d_un.d_ptr;
        if (d->d_tag == DT_SYMTAB)
            symtab = (const Elf64_Sym *) p;
        else if (d->d_tag == DT_STRTAB)
            strtab = (const char *) p;
        else if (d->d_tag == DT_VERSYM)
            versym = (const uint16_t *) p;
        else if (d->d_tag == DT_VERDEF)
            verdef = (const Elf64_Verdef *) p;
        else if (d->d_tag == DT_HASH)
            symbols = ((const uint32_t *) p)[1];
        else if (d->d_tag == DT_GNU_HASH && symbols == 0)
            symbols = gnu_count((const uint32_t *) p);
    }
}

static void test_elf(void)
{
    eh = (const Elf64_Ehdr *) getauxval(AT_SYSINFO_EHDR);
    need(eh, "AT_SYSINFO_EHDR");
    ok(memcmp(eh->e_ident, ELFMAG, SELFMAG) == 0, "ELF magic");
    is(eh->e_machine, EM_AARCH64, "machine");
    is(eh->e_type, ET_DYN, "type");
    const Elf64_Phdr *ph = (const void *) ((const char *) eh + eh->e_phoff);
    const Elf64_Dyn *dyn = NULL;
    bool loaded = false;
    for (int i = 0; i < eh->e_phnum; i++) {
        if (ph[i].p_type == PT_LOAD && !loaded) {
            load = (uintptr_t) eh + ph[i].p_offset - ph[i].p_vaddr;
            loaded = true;
        }
        if (ph[i].p_type == PT_DYNAMIC)
            dyn = (const void *) ((const char *) eh + ph[i].p_offset);
    }
    ok(loaded, "has a PT_LOAD");
    ok(dyn != NULL, "has a PT_DYNAMIC");
    need(loaded && dyn, "vDSO");
    read_dynamic(dyn);
    ok(symtab && strtab && symbols, "has symbols, strings and a hash table");
    ok(versym && verdef, "has versions");
    need(symtab && strtab && symbols && versym && verdef, "tables");
    static vma_t v;
    ok(vma_find(eh, &v) && v.start == (uintptr_t) eh, "is mapped in one piece");
    is_str(v.name, "[vdso]", "as [vdso]");
    is_str(v.perms, "r-xp", "read-execute");
    is_str(access_of((void *) v.start), "r-", "and not writable");
    ok(vma_named("[vvar]", &v), "there is a [vvar]");
    is_str(v.perms, "r--p", "read-only");
}

static bool version_is(int index, const char *name)
{
    const Elf64_Verdef *d = verdef;
    int want = versym[index] & 0x7fff;
    for (;;) {
        if (!(d->vd_flags & VER_FLG_BASE) && (d->vd_ndx & 0x7fff) == want) {
            const Elf64_Verdaux *aux =
                (const void *) ((const char *) d + d->vd_aux);
            return strcmp(strtab + aux->vda_name, name) == 0;
        }
        if (d->vd_next == 0)
            return false;
        d = (const void *) ((const char *) d + d->vd_next);
    }
}

static uintptr_t lookup(const char *name)
{
    for (uint32_t i = 0; i < symbols; i++)
        if (ELF64_ST_TYPE(symtab[i].st_info) <= STT_FUNC &&
            symtab[i].st_shndx != SHN_UNDEF &&
            strcmp(strtab + symtab[i].st_name, name) == 0 &&
            version_is(i, "LINUX_2.6.39"))
            return load + symtab[i].st_value;
    return 0;
}

static void test_symbols(void)
{
    v_gettime = (gettime_t) lookup("__kernel_clock_gettime");
    v_getres = (gettime_t) lookup("__kernel_clock_getres");
    v_gettimeofday = (gettimeofday_t) lookup("__kernel_gettimeofday");
    ok(v_gettime != NULL, "__kernel_clock_gettime, LINUX_2.6.39");
    ok(v_getres != NULL, "__kernel_clock_getres, LINUX_2.6.39");
    ok(v_gettimeofday != NULL, "__kernel_gettimeofday, LINUX_2.6.39");
    uintptr_t ret = lookup("__kernel_rt_sigreturn");
    ok(ret != 0, "__kernel_rt_sigreturn, LINUX_2.6.39");
    need(v_gettime && v_getres && v_gettimeofday && ret, "symbols");
    const uint32_t *code = (const uint32_t *) ret;
    ok(code[0] == 0xd2801168 && code[1] == 0xd4000001,
       "__kernel_rt_sigreturn is mov x8, #139; svc #0");
}

static int64_t ns_of(const struct timespec *t)
{
    return t->tv_sec * 1000000000LL + t->tv_nsec;
}

static int64_t by_vdso(clockid_t id)
{
    struct timespec t;
    need(v_gettime(id, &t) == 0, "vDSO clock_gettime");
    need(t.tv_nsec >= 0 && t.tv_nsec < 1000000000, "nanoseconds in range");
    return ns_of(&t);
}

static int64_t by_call(clockid_t id)
{
    struct timespec t;
    need(syscall(SYS_clock_gettime, id, &t) == 0, "clock_gettime");
    return ns_of(&t);
}

static void test_clocks(void)
{
    static const struct {
        clockid_t id;
        const char *name;
    } clocks[] = {
        {CLOCK_REALTIME, "REALTIME"},
        {CLOCK_MONOTONIC, "MONOTONIC"},
        {CLOCK_PROCESS_CPUTIME_ID, "PROCESS_CPUTIME"},
        {CLOCK_THREAD_CPUTIME_ID, "THREAD_CPUTIME"},
        {CLOCK_MONOTONIC_RAW, "MONOTONIC_RAW"},
        {CLOCK_REALTIME_COARSE, "REALTIME_COARSE"},
        {CLOCK_MONOTONIC_COARSE, "MONOTONIC_COARSE"},
        {CLOCK_BOOTTIME, "BOOTTIME"},
        {CLOCK_TAI, "TAI"},
    };
    char name[80];
    for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
        int64_t last = by_call(clocks[i].id);
        int back = 0;
        for (int k = 0; k < 2000; k++) {
            int64_t v = by_vdso(clocks[i].id);
            back += v < last;
            last = by_call(clocks[i].id);
            back += last < v;
        }
        snprintf(name, sizeof name, "%s: never back, 2000 times in turn",
                 clocks[i].name);
        is(back, 0, name);
        last = by_vdso(clocks[i].id);
        for (int k = 0; k < 3000; k++) {
            int64_t v = by_vdso(clocks[i].id);
            back += v < last;
            last = v;
        }
        snprintf(name, sizeof name, "%s: never back by itself", clocks[i].name);
        is(back, 0, name);
        struct timespec a = {9, 9}, b = {8, 8};
        snprintf(name, sizeof name, "%s: resolution agrees", clocks[i].name);
        ok(v_getres(clocks[i].id, &a) == 0 &&
               syscall(SYS_clock_getres, clocks[i].id, &b) == 0 &&
               a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec,
           name);
    }
}

static void test_bad(void)
{
    struct timespec t = {5, 5};
    static const clockid_t bad[] = {10, 12, 15, 16, 99, -1, -1000000};
    char name[64];
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(name, sizeof name, "clock %d: EINVAL by vDSO", bad[i]);
        is(v_gettime(bad[i], &t), -EINVAL, name);
        snprintf(name, sizeof name, "clock %d: EINVAL by call", bad[i]);
        fails(syscall(SYS_clock_gettime, bad[i], &t), EINVAL, name);
        snprintf(name, sizeof name, "clock %d: no resolution", bad[i]);
        is(v_getres(bad[i], &t), -EINVAL, name);
    }
    ok(t.tv_sec == 5 && t.tv_nsec == 5, "nothing was written");
    is(v_getres(CLOCK_MONOTONIC, NULL), 0, "getres to nowhere");
    fails(syscall(SYS_clock_gettime, CLOCK_MONOTONIC, BAD_PTR), EFAULT,
          "clock_gettime to a bad pointer");
    is(v_gettime(CLOCK_PROCESS_CPUTIME_ID, BAD_PTR), -EFAULT,
       "vDSO to a bad pointer, by way of the call");
}

static void test_gettimeofday(void)
{
    struct timeval tv, sv;
    struct timezone tz = {77, 77};
    int back = 0;
    for (int i = 0; i < 2000; i++) {
        need(v_gettimeofday(&tv, NULL) == 0, "vDSO gettimeofday");
        need(syscall(SYS_gettimeofday, &sv, NULL) == 0, "gettimeofday");
        back += sv.tv_sec < tv.tv_sec ||
                (sv.tv_sec == tv.tv_sec && sv.tv_usec < tv.tv_usec);
        need(tv.tv_usec >= 0 && tv.tv_usec < 1000000, "microseconds in range");
    }
    is(back, 0, "gettimeofday: never back, 2000 times in turn");
    is(v_gettimeofday(&tv, &tz), 0, "gettimeofday with a time zone");
    ok(tz.tz_minuteswest != 77 && tz.tz_dsttime != 77, "has written it");
    is(v_gettimeofday(NULL, &tz), 0, "gettimeofday of the time zone alone");
    is(v_gettimeofday(NULL, NULL), 0, "gettimeofday of nothing");
    struct timespec ts;
    need(v_gettime(CLOCK_REALTIME, &ts) == 0, "clock_gettime");
    ok(ts.tv_sec - tv.tv_sec < 60 && ts.tv_sec >= tv.tv_sec,
       "gettimeofday and clock_gettime tell the same time");
}

/* Waits up to a second of CLOCK_MONOTONIC for the vDSO's real time to be
 * within 100 s of `want`. */
static bool shows(clockid_t id, int64_t want)
{
    int64_t from = by_call(CLOCK_MONOTONIC);
    do {
        int64_t off = by_vdso(id) - want;
        if (off > -100000000000LL && off < 100000000000LL)
            return true;
    } while (by_call(CLOCK_MONOTONIC) - from < 1000000000LL);
    return false;
}

static int set_to(int64_t ns)
{
    struct timespec t = {ns / 1000000000, ns % 1000000000};
    return syscall(SYS_clock_settime, CLOCK_REALTIME, &t);
}

static void test_step(void)
{
    const int64_t step = 5000 * 1000000000LL;
    int64_t real = by_call(CLOCK_REALTIME), mono = by_call(CLOCK_MONOTONIC);
    int64_t tai = by_call(CLOCK_TAI);
    bool set = set_to(real + step) == 0;
    ok(set, "clock_settime 5000 s ahead");
    ok(shows(CLOCK_REALTIME, real + step), "the vDSO follows in a second");
    ok(shows(CLOCK_REALTIME_COARSE, real + step), "its coarse clock too");
    ok(shows(CLOCK_TAI, tai + step), "and TAI");
    ok(by_vdso(CLOCK_MONOTONIC) - mono < step, "MONOTONIC has not stepped");
    real += by_call(CLOCK_MONOTONIC) - mono;
    ok(set_to(real) == 0, "clock_settime back");
    ok(shows(CLOCK_REALTIME, real), "the vDSO follows in a second");
    fails(set_to(-1000000000LL), EINVAL, "clock_settime to before 1970");
    struct timespec t = {0, 0};
    fails(syscall(SYS_clock_settime, CLOCK_MONOTONIC, &t), EINVAL,
          "clock_settime of MONOTONIC");
    fails(syscall(SYS_clock_settime, CLOCK_REALTIME, BAD_PTR), EFAULT,
          "clock_settime from a bad pointer");
}

int main(void)
{
    probe_open();
    test_elf();
    test_symbols();
    test_clocks();
    test_bad();
    test_gettimeofday();
    test_step();
    return tap_done();
}
