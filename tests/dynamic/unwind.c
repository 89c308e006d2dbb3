/* SPDX-License-Identifier: Apache-2.0 */
/* flags: -rdynamic -fno-optimize-sibling-calls */
/* Walking the stack, with libgcc_s, which the C library opens for it; and
 * cleanups on the way out of a thread. */
#include "tap.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>

int first(void);
int second(void);
int third(void);

static void *frames[32];
static int depth;

__attribute__((noinline)) int third(void)
{
    depth = backtrace(frames, 32);
    return depth + 1;
}

__attribute__((noinline)) int second(void)
{
    return third() + 1;
}

__attribute__((noinline)) int first(void)
{
    return second() + 1;
}

static int cleaned;

static void clean(void *arg)
{
    cleaned += *(int *) arg;
}

static void *thread(void *arg)
{
    int five = 5;

    pthread_cleanup_push(clean, &five);
    pthread_exit(arg);
    pthread_cleanup_pop(0);
    return NULL;
}

static const char *name_of(void *address)
{
    Dl_info info;
    return dladdr(address, &info) && info.dli_sname ? info.dli_sname : "?";
}

int main(void)
{
    pthread_t id;
    void *result = NULL;

    first();
    ok(depth >= 5, "backtrace finds the frames");
    is_str(name_of(frames[0]), "third", "the function itself");
    is_str(name_of(frames[1]), "second", "its caller");
    is_str(name_of(frames[2]), "first", "and that one's");
    is_str(name_of(frames[3]), "main", "up to main");
    need(pthread_create(&id, NULL, thread, frames) == 0, "pthread_create");
    need(pthread_join(id, &result) == 0, "pthread_join");
    ok(result == frames, "pthread_exit gives its value");
    is(cleaned, 5, "and runs the cleanups, by unwinding");
    return tap_done();
}
