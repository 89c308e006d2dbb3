/* SPDX-License-Identifier: Apache-2.0 */
/* flags: -ltls_trad -ltls_desc -ltls_ie */
/* Thread-local variables, by each way that code finds them: local exec,
 * initial exec, general dynamic by __tls_get_addr and by descriptors; in
 * libraries from the start and in such that come later. */
#include "tap.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>

#define DECLARE(name)                \
    extern __thread int name##_data; \
    extern __thread int name##_zero; \
    int *name##_data_address(void);  \
    int name##_count(void);          \
    void *name##_aligned_address(void)
DECLARE(trad);
DECLARE(desc);
DECLARE(ie);

static __thread int mine = 5;
__thread int exported __attribute__((aligned(256))) = 6;

/* What dlopen found. */
static struct late {
    int *(*data_address)(void);
    int (*count)(void);
    void *(*aligned_address)(void);
} late_trad, late_desc;

static void find(struct late *late, const char *library, const char *prefix)
{
    char name[64];
    void *handle = dlopen(library, RTLD_NOW);

    need(handle != NULL, "dlopen");
    snprintf(name, sizeof name, "%s_data_address", prefix);
    late->data_address = (int *(*) (void) ) dlsym(handle, name);
    snprintf(name, sizeof name, "%s_count", prefix);
    late->count = (int (*)(void)) dlsym(handle, name);
    snprintf(name, sizeof name, "%s_aligned_address", prefix);
    late->aligned_address = (void *(*) (void) ) dlsym(handle, name);
    need(late->data_address && late->count && late->aligned_address, "dlsym");
}

static bool aligned(const void *p, uintptr_t to)
{
    return (uintptr_t) p % to == 0;
}

/* True when a thread that has not touched them sees the initial values. */
static bool fresh(void)
{
    return mine == 5 && exported == 6 && trad_data == 1234 &&
           desc_data == 1234 && ie_data == 1234 && trad_zero == 0 &&
           desc_zero == 0 && ie_zero == 0 &&
           *late_trad.data_address() == 1234 &&
           *late_desc.data_address() == 1234;
}

static bool change(void)
{
    bool counts = trad_count() == 100 && desc_count() == 100 &&
                  ie_count() == 100 && late_trad.count() == 100 &&
                  late_desc.count() == 100 && late_trad.count() == 101 &&
                  late_desc.count() == 101;
    mine = exported = 0;
    trad_data = desc_data = ie_data = 4321;
    *late_trad.data_address() = *late_desc.data_address() = 4321;
    return counts && trad_zero == 1 && desc_zero == 1 && ie_zero == 1;
}

static void *thread(void *arg)
{
    bool *good = arg;

    *good = fresh() && change() && !fresh();
    return &mine;
}

static void test_threads(void)
{
    bool good[4] = {false};
    bool apart = true;

    for (int i = 0; i < 4; i++) {
        pthread_t id;
        void *theirs;
        need(pthread_create(&id, NULL, thread, &good[i]) == 0,
             "pthread_create");
        need(pthread_join(id, &theirs) == 0, "pthread_join");
        apart &= theirs != &mine;
    }
    ok(good[0] && good[1] && good[2] && good[3],
       "each thread begins with the initial values");
    ok(apart, "and has variables of its own");
}

int main(void)
{
    find(&late_trad, "liblate_trad.so", "late_trad");
    find(&late_desc, "liblate_desc.so", "late_desc");
    ok(fresh(), "initial values");
    ok(change(), "values are kept");
    ok(!fresh(), "and are not the initial ones");
    is(mine, 0, "local exec");
    ok(trad_data_address() == &trad_data, "general dynamic: one address");
    ok(desc_data_address() == &desc_data, "descriptors: one address");
    ok(ie_data_address() == &ie_data, "initial exec: one address");
    ok(late_trad.data_address() == late_trad.data_address() &&
           late_desc.data_address() == late_desc.data_address(),
       "late libraries: one address");
    ok(aligned(&exported, 256) && aligned(trad_aligned_address(), 64) &&
           aligned(desc_aligned_address(), 64) &&
           aligned(ie_aligned_address(), 64) &&
           aligned(late_trad.aligned_address(), 64) &&
           aligned(late_desc.aligned_address(), 64),
       "alignment");
    test_threads();
    is(*late_desc.data_address(), 4321, "this thread's are as they were");
    return tap_done();
}
