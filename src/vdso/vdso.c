/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vDSO: clocks read at EL0 from the page that the host keeps true
 * (abi/vvar.h). Whatever the page does not serve goes to the system call, whose
 * first use also sets the page going.
 */
#include <stddef.h>
#include <stdint.h>

#include "abi/vvar.h"

/* As in the kernel's uapi; <time.h> is not for freestanding code. */
typedef struct kernel_timespec {
    int64_t tv_sec;
    int64_t tv_nsec;
} kernel_timespec_t;

typedef struct kernel_timeval {
    int64_t tv_sec;
    int64_t tv_usec;
} kernel_timeval_t;

enum { NR_clock_gettime = 113, NR_clock_getres = 114, NR_gettimeofday = 169 };

int __kernel_clock_gettime(int clock, kernel_timespec_t *ts);
int __kernel_clock_getres(int clock, kernel_timespec_t *ts);
int __kernel_gettimeofday(kernel_timeval_t *tv, void *tz);

/* Replaced by the loader, hence volatile: the compiler must not know it. */
__attribute__((section(".vvar_ptr"), visibility("hidden")))
const volatile uint64_t vdso_vvar = VDSO_VVAR_MAGIC;

static inline int64_t call2(int64_t nr, int64_t arg0, void *arg1)
{
    register int64_t x8 __asm__("x8") = nr;
    register int64_t x0 __asm__("x0") = arg0;
    register void *x1 __asm__("x1") = arg1;
    __asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1) : "memory");
    return x0;
}

/* Its own function, since a call of an exported one would go through a PLT. */
static inline int clock_gettime(int clock, kernel_timespec_t *ts)
{
    int line = vvar_line(clock);
    int64_t sec;
    uint64_t nsec;

    if (line < 0 ||
        !vvar_read((const vvar_page_t *) vdso_vvar, line, &sec, &nsec))
        return (int) call2(NR_clock_gettime, clock, ts);
    ts->tv_sec = sec;
    ts->tv_nsec = (int64_t) nsec;
    return 0;
}

int __kernel_clock_gettime(int clock, kernel_timespec_t *ts)
{
    return clock_gettime(clock, ts);
}

int __kernel_clock_getres(int clock, kernel_timespec_t *ts)
{
    if (vvar_line(clock) < 0)
        return (int) call2(NR_clock_getres, clock, ts);
    if (ts != NULL) {
        ts->tv_sec = 0;
        ts->tv_nsec = 1;
    }
    return 0;
}

int __kernel_gettimeofday(kernel_timeval_t *tv, void *tz)
{
    if (tv != NULL) {
        kernel_timespec_t ts = {0, 0};
        int error = clock_gettime(0, &ts);
        if (error != 0)
            return error;
        tv->tv_sec = ts.tv_sec;
        tv->tv_usec = ts.tv_nsec / 1000;
    }
    if (tz != NULL)
        return (int) call2(NR_gettimeofday, 0, tz);
    return 0;
}
