/* SPDX-License-Identifier: Apache-2.0 */
/* sources: src/sys/table.c */
/* The table of calls agrees with itself and with the kernel's numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define __ARCH_WANT_NEW_STAT
#define __ARCH_WANT_SYS_CLONE3
#include <asm-generic/unistd.h>

#include "sys/table.h"

#define STUB(name)                                          \
    int64_t sys_##name(struct thread *t, const uint64_t *a) \
    {                                                       \
        return 0;                                           \
    }
OWNED_CALLS(STUB)

/* The highest number of the kernels that are tested on (6.12). */
#define LAST 462

static void all_numbers_are_there(void **state)
{
    for (unsigned nr = 0; nr <= LAST; nr++) {
        bool gap = (nr > 243 && nr < 260) || (nr > 294 && nr < 424);

        /* 244 to 259 are for architectures, 295 to 402 x86's; then come the
         * 64-bit times of 32-bit machines. */
        if (gap || nr == 415)
            assert_null(sys_table[nr].name);
        else if (!sys_table[nr].name)
            fail_msg("call %u is missing", nr);
    }
}

static void arguments_are_sound(void **state)
{
    for (unsigned nr = 0; nr < SYS_MAX; nr++) {
        const sys_entry_t *e = &sys_table[nr];
        unsigned paths = 0;
        bool ended = false;

        for (unsigned i = 0; i < SYS_ARGS; i++) {
            const arg_t *arg = &e->arg[i];

            if (arg->kind == ARG_NONE) {
                ended = true;
                continue;
            }
            if (ended)
                fail_msg("%s: hole before argument %u", e->name, i);
            paths += arg->kind == ARG_PATH || arg->kind == ARG_STR;
            if (arg->ref == NO_REF)
                continue;
            if (arg->ref >= SYS_ARGS)
                fail_msg("%s: argument %u refers to %u", e->name, i, arg->ref);
            if (e->arg[arg->ref].kind !=
                (arg->kind == ARG_PATH ? ARG_FD : ARG_INT))
                fail_msg("%s: argument %u refers to the wrong kind", e->name,
                         i);
        }
        /* What pass.c has room for. */
        assert_true(paths <= 3);
    }
}

static void guest_addresses_are_owned(void **state)
{
    for (unsigned nr = 0; nr < SYS_MAX; nr++) {
        const sys_entry_t *e = &sys_table[nr];

        for (unsigned i = 0; i < SYS_ARGS; i++)
            if (e->arg[i].kind >= ARG_GUEST && !e->fn)
                fail_msg("%s would pass a guest address on", e->name);
    }
}

static void numbers_are_the_kernels(void **state)
{
#define SAME(name_) assert_string_equal(sys_table[__NR_##name_].name, #name_)
    SAME(getcwd);
    SAME(ioctl);
    SAME(openat);
    SAME(read);
    SAME(pselect6);
    SAME(readlinkat);
    SAME(newfstatat);
    SAME(futex);
    SAME(clock_gettime);
    SAME(sched_yield);
    SAME(rt_sigaction);
    SAME(uname);
    SAME(prctl);
    SAME(gettid);
    SAME(semop);
    SAME(socket);
    SAME(recvmsg);
    SAME(brk);
    SAME(mmap);
    SAME(madvise);
    SAME(recvmmsg);
    SAME(wait4);
    SAME(prlimit64);
    SAME(kcmp);
    SAME(getrandom);
    SAME(statx);
    SAME(rseq);
    SAME(pidfd_send_signal);
    SAME(io_uring_setup);
    SAME(clone3);
    SAME(openat2);
    SAME(faccessat2);
    SAME(futex_waitv);
#undef SAME
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_numbers_are_there),
        cmocka_unit_test(arguments_are_sound),
        cmocka_unit_test(guest_addresses_are_owned),
        cmocka_unit_test(numbers_are_the_kernels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
