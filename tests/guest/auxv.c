/* SPDX-License-Identifier: Apache-2.0 */
/* The auxiliary vector: each entry true, in memory as in /proc. */
#include "mem.h"

#include <asm/hwcap.h>
#include <elf.h>
#include <sys/auxv.h>

extern const Elf64_Ehdr __ehdr_start;
extern void _start(void);
extern char etext, edata, end;

static const Elf64_auxv_t *auxv_start(void)
{
    char **p = environ;
    while (*p)
        p++;
    return (const Elf64_auxv_t *) (p + 1);
}

static void test_proc(void)
{
    static char buf[4096];
    const Elf64_auxv_t *a = auxv_start();
    size_t n = 0;
    while (a[n].a_type != AT_NULL)
        n++;
    size_t len = (n + 1) * sizeof *a;
    int fd = open("/proc/self/auxv", O_RDONLY);
    need(fd >= 0, "open of /proc/self/auxv");
    ssize_t got = read(fd, buf, sizeof buf);
    close(fd);
    ok(got >= (ssize_t) len, "/proc/self/auxv is as long");
    ok(memcmp(buf, a, len) == 0, "and the same");
    ok(all_bytes(buf + len, 0, got - len), "with zero after it");
    bool once = true;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < i; k++)
            once &= a[i].a_type != a[k].a_type || a[i].a_type == AT_IGNORE;
    ok(once, "no type twice");
    bool same = true;
    for (size_t i = 0; i < n; i++)
        same &= getauxval(a[i].a_type) == a[i].a_un.a_val;
    ok(same, "getauxval agrees");
}

static void test_image(void)
{
    const Elf64_Ehdr *eh = &__ehdr_start;
    is(getauxval(AT_PHDR), (uintptr_t) eh + eh->e_phoff, "AT_PHDR");
    is(getauxval(AT_PHENT), sizeof(Elf64_Phdr), "AT_PHENT");
    is(getauxval(AT_PHNUM), eh->e_phnum, "AT_PHNUM");
    is(getauxval(AT_ENTRY), (uintptr_t) _start, "AT_ENTRY");
    is(getauxval(AT_BASE), 0, "AT_BASE");
    is(getauxval(AT_FLAGS), 0, "AT_FLAGS");
    is(getauxval(AT_PAGESZ), PAGE, "AT_PAGESZ");
    is(getauxval(AT_CLKTCK), sysconf(_SC_CLK_TCK), "AT_CLKTCK");
    is(getauxval(AT_SECURE), 0, "AT_SECURE");
    is(getauxval(AT_UID), getuid(), "AT_UID");
    is(getauxval(AT_EUID), geteuid(), "AT_EUID");
    is(getauxval(AT_GID), getgid(), "AT_GID");
    is(getauxval(AT_EGID), getegid(), "AT_EGID");
    unsigned long min = getauxval(AT_MINSIGSTKSZ);
    ok(min >= 4096 && min < MIB, "AT_MINSIGSTKSZ is plausible");
    const char *fn = (const char *) getauxval(AT_EXECFN);
    struct stat a, b;
    ok(stat(fn, &a) == 0 && stat("/proc/self/exe", &b) == 0 &&
           a.st_ino == b.st_ino && a.st_dev == b.st_dev,
       "AT_EXECFN names the program");
    Elf64_Ehdr *vdso = (Elf64_Ehdr *) getauxval(AT_SYSINFO_EHDR);
    ok(vdso && memcmp(vdso->e_ident, ELFMAG, SELFMAG) == 0,
       "AT_SYSINFO_EHDR points at an ELF header");
}

static void test_segments(void)
{
    static vma_t v;
    bool text = false, data = false;
    need(vma_find((void *) _start, &v), "the text's mapping");
    is_str(v.perms, "r-xp", "text is read-execute");
    ok((uintptr_t) &etext <= v.end, "all of it");
    need(vma_find(&edata - 1, &v), "the data's mapping");
    is_str(v.perms, "rw-p", "data is read-write");
    need(vma_find(&end - 1, &v), "the bss's mapping");
    is_str(v.perms, "rw-p", "bss is read-write");
    const Elf64_Phdr *ph = (const Elf64_Phdr *) getauxval(AT_PHDR);
    for (size_t i = 0; i < getauxval(AT_PHNUM); i++) {
        if (ph[i].p_type != PT_LOAD)
            continue;
        text |= (ph[i].p_flags & PF_X) && ph[i].p_vaddr <= (uintptr_t) _start;
        data |= (ph[i].p_flags & PF_W) && ph[i].p_memsz > ph[i].p_filesz;
    }
    ok(text && data, "the program headers can be read");
}

/* A processor feature in AT_HWCAP must really be there. */
static void test_hwcap(void)
{
    unsigned long cap = getauxval(AT_HWCAP);
    ok(cap & HWCAP_FP, "HWCAP: fp");
    ok(cap & HWCAP_ASIMD, "HWCAP: asimd");
    unsigned long isar0 = 0, v = 1;
    if (cap & HWCAP_CPUID)
        __asm__("mrs %0, id_aa64isar0_el1" : "=r"(isar0));
    ok(true, "HWCAP: cpuid, if told, can be used");
    bool lse = (isar0 >> 20 & 15) >= 2;
    ok(!(cap & HWCAP_CPUID) || lse == !!(cap & HWCAP_ATOMICS),
       "HWCAP: atomics agree with the register");
    bool aes = (isar0 >> 4 & 15) >= 1;
    ok(!(cap & HWCAP_CPUID) || aes == !!(cap & HWCAP_AES),
       "HWCAP: aes agrees with the register");
    if (cap & HWCAP_ATOMICS)
        __asm__ volatile(".arch_extension lse\n\tldadd %1, %1, [%0]" ::"r"(&v),
                         "r"(1UL)
                         : "memory");
    else
        v++;
    is(v, 2, "HWCAP: atomics, if told, work");
    if (cap & HWCAP_CRC32)
        __asm__ volatile(".arch_extension crc\n\tcrc32b w0, w0, w0" ::: "x0");
    ok(true, "HWCAP: crc32, if told, works");
    if (cap & HWCAP_SVE)
        __asm__ volatile(".arch_extension sve\n\tcntb x0" ::: "x0");
    ok(true, "HWCAP: sve, if told, works");
    if (cap & HWCAP_PACA)
        __asm__ volatile("hint #25\n\thint #29" ::: "x30");
    ok(true, "HWCAP: paca, if told, works");
    if (cap & HWCAP_DCPOP)
        __asm__ volatile("sys #3, c7, c12, #1, %0" ::"r"(&v) : "memory");
    ok(true, "HWCAP: dcpop, if told, works");
}

/* What every arm64 Linux program may do at EL0. */
static void test_registers(void)
{
    unsigned long ctr, dczid, freq, a, b;
    __asm__ volatile("mrs %0, ctr_el0" : "=r"(ctr));
    ok((ctr & 15) >= 2 && (ctr >> 16 & 15) >= 2, "CTR_EL0 can be read");
    __asm__ volatile("mrs %0, dczid_el0" : "=r"(dczid));
    static char block[4096] __attribute__((aligned(2048)));
    size_t len = 4UL << (dczid & 15);
    memset(block, 1, sizeof block);
    if (dczid & 16)
        memset(block, 0, len);
    else
        __asm__ volatile("dc zva, %0" ::"r"(block) : "memory");
    ok(all_bytes(block, 0, len) && block[len] == 1, "DC ZVA zeroes a block");
    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(freq));
    ok(freq >= 1000000, "CNTFRQ_EL0 can be read");
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(a));
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(b));
    ok(b >= a, "CNTVCT_EL0 does not go back");
    __asm__ volatile(
        "dc cvau, %0\n\tdsb ish\n\tic ivau, %0\n\tdsb ish\n\tisb" ::"r"(block)
        : "memory");
    __asm__ volatile("dc civac, %0\n\tdc cvac, %0" ::"r"(block) : "memory");
    ok(true, "cache maintenance at EL0");
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(a));
    ok(a != 0, "TPIDR_EL0 is set up");
    __asm__ volatile("mrs %0, fpcr" : "=r"(a));
    is(a, 0, "FPCR is zero");
    __asm__ volatile("yield\n\twfe\n\tsevl\n\twfe" ::: "memory");
    ok(true, "YIELD and WFE come back");
}

int main(void)
{
    test_proc();
    test_image();
    test_segments();
    test_hwcap();
    test_registers();
    return tap_done();
}
