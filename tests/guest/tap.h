/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TAP output for the guest tests.
 *
 * A test runs natively and under elfuse and the two outputs must be equal, so
 * names hold no addresses, times or ids; diagnostics, which may, are printed
 * only when a check fails. Each line is one write(2) from a static buffer: no
 * malloc, which would move the break and the mappings under test.
 */
#ifndef TAP_H
#define TAP_H

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int tap_count;
static int tap_failures;

__attribute__((format(printf, 1, 2))) static inline void
tap_say(const char *fmt, ...)
{
    static char line[1024];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(line, sizeof line - 1, fmt, ap);
    va_end(ap);
    if (n > (int) sizeof line - 2)
        n = sizeof line - 2;
    line[n++] = '\n';
    for (int done = 0; done < n;) {
        ssize_t w = write(STDOUT_FILENO, line + done, n - done);
        if (w <= 0)
            _exit(98);
        done += w;
    }
}

/* One check. Keeps errno. */
static inline bool tap_ok(bool pass, const char *name)
{
    int saved = errno;
    tap_count++;
    if (!pass)
        tap_failures++;
    tap_say("%sok %d - %s", pass ? "" : "not ", tap_count, name);
    errno = saved;
    return pass;
}

static inline const char *tap_errname(int err)
{
    const char *name = err ? strerrorname_np(err) : "0";
    return name ? name : "?";
}

static inline bool tap_is(long got, long want, const char *name)
{
    int saved = errno;
    if (tap_ok(got == want, name))
        return true;
    tap_say("#   got %ld (0x%lx, errno %s), want %ld (0x%lx)", got, got,
            tap_errname(saved), want, want);
    return false;
}

static inline bool tap_is_str(const char *got, const char *want,
                              const char *name)
{
    if (tap_ok(strcmp(got, want) == 0, name))
        return true;
    tap_say("#   got  \"%s\"", got);
    tap_say("#   want \"%s\"", want);
    return false;
}

/* The call must have returned -1 with errno `want`. */
static inline bool tap_fails(long got, int want, const char *name)
{
    int saved = errno;
    if (tap_ok(got == -1 && saved == want, name))
        return true;
    if (got == -1)
        tap_say("#   got %s, want %s", tap_errname(saved), tap_errname(want));
    else
        tap_say("#   got %ld (0x%lx), want %s", got, got, tap_errname(want));
    return false;
}

/* The call must have returned -1 with one of the errnos in a 0-ended list. */
static inline bool tap_fails_any(long got, const int *want, const char *name)
{
    int saved = errno;
    bool pass = false;
    for (int i = 0; want[i]; i++)
        pass |= got == -1 && saved == want[i];
    if (!tap_ok(pass, name))
        tap_say("#   got %ld, errno %s", got, tap_errname(saved));
    return pass;
}

/* The call must not have returned -1. */
static inline bool tap_works(long got, const char *name)
{
    int saved = errno;
    if (!tap_ok(got != -1, name))
        tap_say("#   failed with %s", tap_errname(saved));
    errno = saved;
    return got != -1;
}

static inline void tap_skip(const char *name, const char *reason)
{
    tap_count++;
    tap_say("ok %d - %s # SKIP %s", tap_count, name, reason);
}

/* A step without which the test has no meaning. */
__attribute__((noreturn)) static inline void tap_bail(const char *what)
{
    tap_say("Bail out! %s: %s", what, tap_errname(errno));
    _exit(99);
}

/* The last statement of main(). */
static inline int tap_done(void)
{
    tap_say("1..%d", tap_count);
    return tap_failures ? 1 : 0;
}

/* Each check names itself; the casts let pointers and integers be compared. */
#define ok(cond, name)          tap_ok((cond), (name))
#define is(got, want, name)     tap_is((long) (got), (long) (want), (name))
#define is_str(got, want, name) tap_is_str((got), (want), (name))
#define fails(call, err, name)  tap_fails((long) (call), (err), (name))
#define works(call, name)       tap_works((long) (call), (name))
#define fails_any(call, name, ...) \
    tap_fails_any((long) (call), (const int[]){__VA_ARGS__, 0}, (name))
#define need(cond, what)    \
    do {                    \
        if (!(cond))        \
            tap_bail(what); \
    } while (0)

#endif
