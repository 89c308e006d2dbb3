/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/elf.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "abi/layout.h"

#define PAGE_OFFSET(x) ((x) & (GUEST_PAGE_SIZE - 1))
#define PAGE_DOWN(x)   ((x) &GUEST_PAGE_MASK)
#define PAGE_UP(x)     (((x) + GUEST_PAGE_SIZE - 1) & GUEST_PAGE_MASK)

/* Says why and gives the error, so that a check is one statement. */
__attribute__((format(printf, 2, 3))) static int refuse(char *why,
                                                        const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, ELF_WHY_MAX, format, args);
    va_end(args);
    return -ENOEXEC;
}

const char *elf_machine_name(unsigned machine)
{
    static const struct {
        unsigned machine;
        const char *name;
    } names[] = {
        {EM_AARCH64, "AArch64"},
        {EM_X86_64, "x86-64"},
        {EM_386, "i386"},
        {EM_ARM, "32-bit Arm"},
        {EM_RISCV, "RISC-V"},
        {EM_PPC64, "64-bit PowerPC"},
        {EM_PPC, "PowerPC"},
        {EM_S390, "S/390"},
        {EM_MIPS, "MIPS"},
        {EM_SPARC, "SPARC"},
        {EM_SPARCV9, "SPARC V9"},
        {EM_68K, "m68k"},
        {EM_IA_64, "Itanium"},
        {EM_PARISC, "PA-RISC"},
        {EM_SH, "SuperH"},
        {EM_BPF, "BPF"},
        {EM_LOONGARCH, "LoongArch"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].machine == machine)
            return names[i].name;
    return NULL;
}

/* e_machine in the file's own byte order: a wrong architecture is named even
 * when the file is big-endian. */
static unsigned header_machine(const unsigned char *ident)
{
    const unsigned char *m = ident + offsetof(Elf64_Ehdr, e_machine);
    if (ident[EI_DATA] == ELFDATA2MSB)
        return (unsigned) m[0] << 8 | m[1];
    return (unsigned) m[1] << 8 | m[0];
}

/* Class, byte order and machine: what says whose program this is. */
static int check_target(const unsigned char *ident, char *why)
{
    unsigned machine = header_machine(ident);
    const char *name = elf_machine_name(machine);

    if (machine != EM_AARCH64) {
        if (name != NULL)
            return refuse(why, "wrong architecture: it is for %s, not AArch64",
                          name);
        return refuse(why,
                      "wrong architecture: it is for ELF machine %u, "
                      "not AArch64",
                      machine);
    }
    if (ident[EI_CLASS] == ELFCLASS32)
        return refuse(why, "it is a 32-bit (ILP32) program; "
                           "only 64-bit ones can run");
    if (ident[EI_CLASS] != ELFCLASS64)
        return refuse(why, "bad ELF header: class %u", ident[EI_CLASS]);
    if (ident[EI_DATA] == ELFDATA2MSB)
        return refuse(why, "it is big-endian; only little-endian programs "
                           "can run");
    if (ident[EI_DATA] != ELFDATA2LSB)
        return refuse(why, "bad ELF header: byte order %u", ident[EI_DATA]);
    return 0;
}

int elf_parse(const void *buf, size_t len, uint64_t file_size,
              elf_image_t *image, char *why)
{
    const unsigned char *ident = buf;
    Elf64_Ehdr header;

    memset(image, 0, sizeof(*image));
    if (len == 0)
        return refuse(why, "the file is empty");
    if (len >= 2 && memcmp(ident, "#!", 2) == 0)
        return refuse(why, "it is a script");
    if (len < SELFMAG || memcmp(ident, ELFMAG, SELFMAG) != 0)
        return refuse(why, "not an ELF file");
    if (len < offsetof(Elf64_Ehdr, e_version))
        return refuse(why, "truncated: the ELF header ends early");
    int error = check_target(ident, why);
    if (error != 0)
        return error;
    if (len < sizeof(header))
        return refuse(why, "truncated: the ELF header ends early");
    memcpy(&header, buf, sizeof(header));

    if (header.e_type != ET_EXEC && header.e_type != ET_DYN)
        return refuse(why,
                      "ELF type %u: neither an executable nor a "
                      "position-independent one",
                      header.e_type);
    if (header.e_phentsize != sizeof(Elf64_Phdr))
        return refuse(why,
                      "bad ELF header: program headers of %u bytes, "
                      "not %zu",
                      header.e_phentsize, sizeof(Elf64_Phdr));
    uint64_t size = (uint64_t) header.e_phnum * sizeof(Elf64_Phdr);
    if (size == 0)
        return refuse(why, "bad ELF header: no program headers");
    if (size > ELF_PHDRS_MAX)
        return refuse(why, "bad ELF header: %u program headers are too many",
                      header.e_phnum);
    if (header.e_phoff > file_size || size > file_size - header.e_phoff)
        return refuse(why,
                      "truncated: its program headers end beyond the "
                      "file's %llu bytes",
                      (unsigned long long) file_size);
    image->pie = header.e_type == ET_DYN;
    image->entry = header.e_entry;
    image->phoff = header.e_phoff;
    image->phnum = header.e_phnum;
    return 0;
}

/* One PT_LOAD, before any of its numbers is used. */
static int check_load(const Elf64_Phdr *p, unsigned nr, uint64_t file_size,
                      uint64_t task_size, char *why)
{
    if (p->p_filesz > p->p_memsz)
        return refuse(why,
                      "bad ELF segment %u: more bytes in the file than "
                      "in memory",
                      nr);
    if (p->p_vaddr >= task_size || p->p_memsz > task_size ||
        p->p_memsz > task_size - p->p_vaddr)
        return refuse(why,
                      "bad ELF segment %u: address 0x%llx, size 0x%llx "
                      "is outside user space",
                      nr, (unsigned long long) p->p_vaddr,
                      (unsigned long long) p->p_memsz);
    if (p->p_filesz == 0)
        return 0;
    if (p->p_offset > file_size || p->p_filesz > file_size - p->p_offset)
        return refuse(why,
                      "truncated: segment %u ends beyond the file's %llu "
                      "bytes",
                      nr, (unsigned long long) file_size);
    if (PAGE_OFFSET(p->p_offset) != PAGE_OFFSET(p->p_vaddr))
        return refuse(why,
                      "bad ELF segment %u: offset 0x%llx and address "
                      "0x%llx differ within the page",
                      nr, (unsigned long long) p->p_offset,
                      (unsigned long long) p->p_vaddr);
    return 0;
}

static uint64_t max_u64(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* What Linux keeps of each PT_LOAD (binfmt_elf's start_code and friends). */
static void note_load(elf_image_t *image, const Elf64_Phdr *p)
{
    uint64_t file_end = p->p_vaddr + p->p_filesz;
    uint64_t mem_end = p->p_vaddr + p->p_memsz;
    uint64_t phoff = image->phoff;

    if (PAGE_DOWN(p->p_vaddr) < image->start)
        image->start = PAGE_DOWN(p->p_vaddr);
    image->end = max_u64(image->end, PAGE_UP(mem_end));
    image->brk = max_u64(image->brk, mem_end);
    /* maximum_alignment(): a p_align that is no power of two is passed over. */
    if (p->p_align != 0 && (p->p_align & (p->p_align - 1)) == 0)
        image->align = max_u64(image->align, p->p_align);
    if (phoff >= p->p_offset && phoff - p->p_offset < p->p_filesz)
        image->phdr_addr = phoff - p->p_offset + p->p_vaddr;
    if ((p->p_flags & PF_X) != 0) {
        if (p->p_vaddr < image->start_code)
            image->start_code = p->p_vaddr;
        image->end_code = max_u64(image->end_code, file_end);
    }
    image->start_data = max_u64(image->start_data, p->p_vaddr);
    image->end_data = max_u64(image->end_data, file_end);
}

/* Linux looks for the interpreter before anything else; the first one counts.
 */
static int parse_interp(elf_image_t *image, const Elf64_Phdr *phdr,
                        uint64_t file_size, char *why)
{
    unsigned i = 0;

    while (i < image->phnum && phdr[i].p_type != PT_INTERP)
        i++;
    if (i == image->phnum)
        return 0;
    const Elf64_Phdr *p = &phdr[i];
    if (p->p_filesz < 2 || p->p_filesz > ELF_INTERP_MAX ||
        p->p_offset > file_size || p->p_filesz > file_size - p->p_offset)
        return refuse(why,
                      "bad ELF segment %u: no name of an interpreter in it", i);
    image->interp_off = p->p_offset;
    image->interp_len = p->p_filesz;
    return 0;
}

int elf_parse_segments(elf_image_t *image, const Elf64_Phdr *phdr,
                       uint64_t file_size, uint64_t task_size, char *why)
{
    unsigned loads = 0;
    int error = parse_interp(image, phdr, file_size, why);

    if (error != 0)
        return error;
    image->phdr = phdr;
    image->start = image->start_code = UINT64_MAX;
    image->align = GUEST_PAGE_SIZE;
    for (unsigned i = 0; i < image->phnum; i++) {
        const Elf64_Phdr *p = &phdr[i];
        switch (p->p_type) {
        case PT_LOAD:
            error = check_load(p, i, file_size, task_size, why);
            if (error != 0)
                return error;
            note_load(image, p);
            loads++;
            break;
        case PT_GNU_STACK:
            image->stack =
                (p->p_flags & PF_X) != 0 ? ELF_STACK_EXEC : ELF_STACK_NOEXEC;
            break;
        case PT_GNU_PROPERTY:
            image->prop_off = p->p_offset;
            image->prop_len = p->p_filesz;
            break;
        default:
            break;
        }
    }
    if (loads == 0 || image->start >= image->end)
        return refuse(why, "no loadable segment in it");
    if (image->align > ELF_ALIGN_MAX)
        image->align = ELF_ALIGN_MAX;
    if (!image->pie && image->entry >= task_size)
        return refuse(why, "bad ELF header: entry 0x%llx is outside user space",
                      (unsigned long long) image->entry);
    return 0;
}

/* Field of a note, which need not be aligned. */
static uint32_t read_u32(const unsigned char *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof(v));
    return v;
}

void elf_parse_property(elf_image_t *image, const void *buf, size_t len)
{
    const unsigned char *note = buf;

    /* Linux looks at the first note only: name size 4, "GNU", type 5. */
    if (len < 16 || read_u32(note) != 4 ||
        read_u32(note + 8) != NT_GNU_PROPERTY_TYPE_0 ||
        memcmp(note + 12, "GNU", 4) != 0)
        return;
    size_t left = len - 16;
    if (read_u32(note + 4) < left)
        left = read_u32(note + 4);
    note += 16;
    while (left >= 8) {
        size_t size = read_u32(note + 4);
        if (size > left - 8)
            return;
        if (read_u32(note) == GNU_PROPERTY_AARCH64_FEATURE_1_AND && size == 4)
            image->bti =
                (read_u32(note + 8) & GNU_PROPERTY_AARCH64_FEATURE_1_BTI) != 0;
        size_t step = 8 + ((size + 7) & ~(size_t) 7);
        if (step > left)
            return;
        note += step;
        left -= step;
    }
}
