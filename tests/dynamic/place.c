/* SPDX-License-Identifier: Apache-2.0 */
/* Where the kernel has put the program, its interpreter and the heap. */
#include "mem.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

extern const Elf64_Ehdr __ehdr_start;
extern void _start(void);
extern char end[];

static uint64_t alignment(void)
{
    const Elf64_Phdr *p =
        (const void *) ((const char *) &__ehdr_start + __ehdr_start.e_phoff);
    uint64_t most = PAGE;

    for (unsigned i = 0; i < __ehdr_start.e_phnum; i++)
        if (p[i].p_type == PT_LOAD && p[i].p_align > most)
            most = p[i].p_align;
    return most;
}

static void test_program(void)
{
    uintptr_t base = (uintptr_t) &__ehdr_start;

    is(getauxval(AT_PHDR), base + __ehdr_start.e_phoff, "AT_PHDR");
    is(getauxval(AT_PHNUM), __ehdr_start.e_phnum, "AT_PHNUM");
    is(getauxval(AT_ENTRY), (uintptr_t) _start, "AT_ENTRY is the program's");
    is(base % alignment(), 0, "it is aligned as its segments ask");
}

static void test_interpreter(void)
{
    static vma_t v;
    const Elf64_Ehdr *base = (const Elf64_Ehdr *) getauxval(AT_BASE);

    need(vma_find(base, &v), "the mapping at AT_BASE");
    ok(memcmp(base->e_ident, ELFMAG, SELFMAG) == 0 && base->e_type == ET_DYN,
       "AT_BASE is the interpreter");
    is(v.start, (uintptr_t) base, "from its first byte");
    is_str(v.perms, "r-xp", "mapped for execution");
    ok((uintptr_t) base > (uintptr_t) end, "it lies above the program");
    ok((uintptr_t) base < (uintptr_t) &v + TOP &&
           (void *) base < (void *) environ,
       "and below the stack");
}

static void test_heap(void)
{
    uintptr_t heap = (uintptr_t) sbrk(0);

    ok(heap >= (uintptr_t) end && heap - (uintptr_t) end < GIB + 2 * MIB,
       "the heap follows the program, within a gigabyte");
}

int main(void)
{
    test_program();
    if (getauxval(AT_BASE) != 0)
        test_interpreter();
    test_heap();
    return tap_done();
}
