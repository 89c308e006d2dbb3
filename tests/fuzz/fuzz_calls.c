/* SPDX-License-Identifier: Apache-2.0 */
/* sources: src/sys/pass.c src/sys/path.c src/sys/table.c */
/* runs: 30000 */
/*
 * libFuzzer on the table of calls and the generic path: the input is a call
 * number, six arguments and guest memory. Whatever the host is asked must be
 * safe: each pointer is NULL, a bad pointer, or memory as large as the table
 * says, which the stand-in for the host reads and writes (under ASan).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "sys/call.h"
#include "sys/procfs_view.h"

#define BASE  0x10000UL
#define PAGE  0x1000UL
#define PAGES 8
#define HOLE  5
#define LOW   1024

/* Each page apart, so that ASan sees what runs past one. */
static uint8_t *page[PAGES];
static int spans;
static const sys_entry_t *current;
static uint64_t asked[SYS_ARGS];
static volatile uint8_t sink;

/* Owned calls are not followed. */
#define STUB(name)                                     \
    int64_t sys_##name(thread_t *t, const uint64_t *a) \
    {                                                  \
        return 0;                                      \
    }
OWNED_CALLS(STUB)

static uint8_t *host_of(uint64_t addr)
{
    uint64_t n = (addr - BASE) / PAGE;

    return addr < BASE || n >= PAGES || n == HOLE ? NULL
                                                  : page[n] + addr % PAGE;
}

int span_get(struct mm *mm, struct mm_cpu *cpu, uint64_t addr, size_t len,
             enum span_access access, struct iovec *iov, int max,
             span_set_t *set)
{
    CHECK(spans < SPAN_SLOTS);
    *set = (span_set_t){.slot = 1, .iov = iov};
    while (set->bytes < len && set->nr < max) {
        size_t n = PAGE - addr % PAGE;
        uint8_t *host = host_of(addr);

        if (!host)
            break;
        n = n < len - set->bytes ? n : len - set->bytes;
        iov[set->nr].iov_base = host;
        iov[set->nr++].iov_len = n;
        set->bytes += n;
        addr += n;
    }
    if (!set->bytes)
        return -EFAULT;
    spans++;
    return 0;
}

void span_put(struct mm_cpu *cpu, span_set_t *set)
{
    CHECK(set->slot == 1);
    set->slot = -1;
    spans--;
}

static int copy(uint64_t guest, uint8_t *own, size_t len, bool in)
{
    for (size_t i = 0; i < len; i++) {
        uint8_t *host = host_of(guest + i);

        if (!host)
            return -EFAULT;
        if (in)
            own[i] = *host;
        else
            *host = own[i];
    }
    return 0;
}

int copy_from_guest(struct mm *mm, struct mm_cpu *cpu, void *to, uint64_t from,
                    size_t len)
{
    return copy(from, to, len, true);
}

int copy_to_guest(struct mm *mm, struct mm_cpu *cpu, uint64_t to,
                  const void *from, size_t len)
{
    return copy(to, (uint8_t *) (uintptr_t) from, len, false);
}

ssize_t copy_string_from_guest(struct mm *mm, struct mm_cpu *cpu, char *to,
                               uint64_t from, size_t max)
{
    for (size_t i = 0; i < max; i++) {
        if (copy(from + i, (uint8_t *) to + i, 1, true))
            return -EFAULT;
        if (!to[i])
            return (ssize_t) i;
    }
    return -ENAMETOOLONG;
}

int fdspace_low = LOW;

bool fdspace_is_hidden(int fd)
{
    return fd >= LOW && fd < LOW + 16;
}

bool span_tags;

bool procfs_path_is_exe(thread_t *t, int dirfd, const char *path)
{
    return false;
}

bool procfs_path_is_hidden(thread_t *t, int dirfd, const char *path)
{
    return false;
}

_Noreturn void elfuse_panic(const char *format, ...)
{
    abort();
}

static void use(uint64_t pointer, size_t n, bool write)
{
    uint8_t *p = (uint8_t *) (uintptr_t) pointer;

    if (!pointer || pointer == bad_pointer(BASE, 1) || pointer >> 48)
        return;
    for (size_t i = 0; i < n; i++) {
        /* Both ends will do. */
        if (i == 1024 && n > 2048)
            i = n - 1024;
        sink = p[i];
        if (write)
            p[i] = (uint8_t) (sink + 1);
    }
}

/* The kernel, as far as it touches memory. */
static void use_arg(const arg_t *arg, const uint64_t *a, unsigned i)
{
    uint64_t n = arg->ref < SYS_ARGS ? a[arg->ref] : 0;

    switch (arg->kind) {
    case ARG_FD:
        CHECK(!fdspace_is_hidden((int) a[i]));
        break;
    case ARG_PATH:
    case ARG_STR:
        if (a[i] && a[i] != bad_pointer(BASE, 1) && !(a[i] >> 48))
            CHECK(strlen((char *) (uintptr_t) a[i]) < PATH_MAX);
        break;
    case ARG_IN:
        use(a[i], arg->size, false);
        break;
    case ARG_OUT:
    case ARG_INOUT:
        use(a[i], arg->size, true);
        break;
    case ARG_IN_BUF:
        use(a[i], n <= arg->size ? n : 1, false);
        break;
    case ARG_OUT_BUF:
        CHECK(n <= arg->size);
        use(a[i], n, true);
        break;
    case ARG_OUT_VAR:
        use(a[i], n <= arg->size ? n : 1, true);
        break;
    case ARG_IN_ARR:
    case ARG_OUT_ARR:
        if ((uint32_t) n <= 1U << 20)
            use(a[i], (size_t) (uint32_t) n * arg->size,
                arg->kind == ARG_OUT_ARR);
        break;
    case ARG_IN_SIZED:
        use(a[i], 4, false);
        break;
    default:
        CHECK(a[i] == asked[i] || arg->kind == ARG_INT);
    }
}

int64_t host_call(uint64_t nr, uint64_t a0, uint64_t a1, uint64_t a2,
                  uint64_t a3, uint64_t a4, uint64_t a5)
{
    const uint64_t a[SYS_ARGS] = {a0, a1, a2, a3, a4, a5};

    for (unsigned i = 0; i < SYS_ARGS; i++)
        use_arg(&current->arg[i], a, i);
    /* Sometimes an error, sometimes as much as was asked for. */
    return a5 % 3 ? (int64_t) (a1 % 5000) : -(int64_t) (a0 % 40);
}

/* Most random numbers should be near something. */
static uint64_t shape(uint64_t v)
{
    switch (v % 4) {
    case 0:
        return BASE + (v >> 2) % ((PAGES + 1) * PAGE);
    case 1:
        return (v >> 2) % 5000;
    case 2:
        return BASE + ((v >> 2) % (PAGES + 1)) * PAGE - (v >> 8) % 64;
    default:
        return v;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static proc_t proc;
    static thread_t thread = {.proc = &proc};
    uint16_t nr;

    if (size < sizeof nr + sizeof asked)
        return 0;
    memcpy(&nr, data, sizeof nr);
    memcpy(asked, data + sizeof nr, sizeof asked);
    data += sizeof nr + sizeof asked;
    size -= sizeof nr + sizeof asked;
    for (int i = 0; i < PAGES; i++) {
        if (!page[i])
            page[i] = malloc(PAGE);
        CHECK(page[i]);
        memset(page[i], 0, PAGE);
        if (size)
            memcpy(page[i] + PAGE - (size < 64 ? size : 64), data,
                   size < 64 ? size : 64);
    }
    for (unsigned i = 0; i < SYS_ARGS; i++)
        asked[i] = shape(asked[i]);
    current = &sys_table[nr % SYS_MAX];
    if (!current->name || current->fn)
        return 0;
    sys_pass(&thread, nr % SYS_MAX, current, asked);
    CHECK(spans == 0);
    return 0;
}
