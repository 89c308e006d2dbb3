/* SPDX-License-Identifier: Apache-2.0 */
/* flags: -rdynamic */
/* dlopen, dlclose, dladdr, dl_iterate_phdr, and the vDSO among the modules. */
#include "mem.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <time.h>

int in_program(void);

int in_program(void)
{
    return 41;
}

static const char *last_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static void test_open(void)
{
    void *handle = dlopen("liblate.so", RTLD_LAZY | RTLD_LOCAL);
    need(handle != NULL, "dlopen");
    int (*value)(void) = (int (*)(void)) dlsym(handle, "late_value");
    int (*caller)(int (*)(void)) =
        (int (*)(int (*)(void))) dlsym(handle, "late_caller");
    need(value && caller, "dlsym");
    is(value(), 14, "its constructor ran, its pointers are relocated");
    is(caller(in_program), 42, "it calls back");
    ok(dlsym(RTLD_DEFAULT, "late_value") == NULL, "its names are local");
    void *again = dlopen("liblate.so", RTLD_NOW);
    ok(again == handle, "opened once more it is the same");
    is(value(), 14, "and its constructor ran once");
    is(dlclose(again), 0, "closed once");
    is(value(), 14, "it is still there");
    is(dlclose(handle), 0, "closed");
    ok(!can_read((void *) value), "it is gone");
    handle = dlopen("liblate.so", RTLD_NOW);
    need(handle != NULL, "dlopen");
    int *data = dlsym(handle, "late_data");
    need(data != NULL, "dlsym of data");
    is(data[0], 11, "back again, with fresh data");
    is(dlclose(handle), 0, "closed again");
}

/* Many times: memory and mappings come back. */
static void test_often(void)
{
    bool good = true;
    for (int i = 0; i < 50; i++) {
        void *handle = dlopen("liblate.so", RTLD_NOW);
        int (*value)(void) =
            handle ? (int (*)(void)) dlsym(handle, "late_value") : NULL;
        good &= value && value() == 14 && dlclose(handle) == 0;
    }
    ok(good, "fifty times");
}

/* The program refers to it then, so that it is there for ever. */
static void test_global(void)
{
    void *handle = dlopen("liblate.so", RTLD_NOW | RTLD_GLOBAL);
    need(handle != NULL, "dlopen");
    int (*value)(void) = (int (*)(void)) dlsym(RTLD_DEFAULT, "late_value");
    ok(value != NULL, "its names are global");
    is(dlclose(handle), 0, "closed");
    is(value ? value() : 0, 14, "it stays: it was found for the program");
}

static void test_errors(void)
{
    ok(dlopen("libnowhere.so", RTLD_NOW) == NULL,
       "a library that is not there");
    ok(strstr(dlerror(), "libnowhere.so: cannot open") != NULL, "its error");
    ok(dlerror() == NULL, "is told once");
    ok(dlopen("libundefined.so", RTLD_NOW) == NULL,
       "a library with a name that nobody has");
    ok(strstr(dlerror(), "undefined symbol: nowhere") != NULL, "its error");
    ok(dlopen("/proc/self/status", RTLD_NOW) == NULL, "a text");
    ok(strstr(dlerror(), "invalid ELF header") != NULL ||
           strstr(dlerror(), "file too short") != NULL,
       "its error");
}

static void test_dladdr(void)
{
    Dl_info info;
    ok(dladdr((void *) in_program, &info) != 0, "dladdr of a function here");
    is_str(info.dli_sname, "in_program", "its name");
    ok(info.dli_saddr == (void *) in_program, "its address");
    ok(dladdr(dlsym(RTLD_DEFAULT, "getppid"), &info) != 0,
       "dladdr of one of the C library");
    is_str(last_name(info.dli_fname), "libc.so.6", "and where it is");
    ok(memcmp(info.dli_fbase, ELFMAG, SELFMAG) == 0, "its base is an ELF file");
    int local;
    ok(dladdr(&local, &info) == 0, "dladdr of the stack");
}

static int note(struct dl_phdr_info *info, size_t size, void *arg)
{
    int *seen = arg;
    const char *name = last_name(info->dlpi_name);
    (void) size;
    if (*name == '\0')
        seen[0] += info->dlpi_phdr == (void *) getauxval(AT_PHDR);
    seen[1] += strcmp(name, "libc.so.6") == 0;
    seen[2] +=
        strcmp(name, "ld-linux-aarch64.so.1") == 0 &&
        (getauxval(AT_BASE) == 0 || info->dlpi_addr == getauxval(AT_BASE));
    seen[3] += strcmp(name, "linux-vdso.so.1") == 0 &&
               info->dlpi_addr == getauxval(AT_SYSINFO_EHDR);
    return 0;
}

static void test_iterate(void)
{
    int seen[4] = {0};
    is(dl_iterate_phdr(note, seen), 0, "dl_iterate_phdr");
    is(seen[1], 1, "the C library is there once");
    is(seen[2], 1, "the dynamic linker is there, at AT_BASE if it has one");
    is(seen[3], 1, "the vDSO is there, at AT_SYSINFO_EHDR");
    /* Run by hand, the linker has the kernel's AT_PHDR. */
    if (getauxval(AT_BASE) != 0)
        is(seen[0], 1, "the program is there, at AT_PHDR");
}

static void test_vdso(void)
{
    void *handle = dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD);
    ok(handle != NULL, "the vDSO can be opened by its name");
    if (!handle)
        return;
    int (*get)(clockid_t, struct timespec *) =
        (int (*)(clockid_t, struct timespec *)) dlvsym(
            handle, "__kernel_clock_gettime", "LINUX_2.6.39");
    struct timespec a, b, c;
    need(get != NULL, "dlvsym");
    need(clock_gettime(CLOCK_MONOTONIC, &a) == 0, "clock_gettime");
    is(get(CLOCK_MONOTONIC, &b), 0, "its clock_gettime works");
    need(clock_gettime(CLOCK_MONOTONIC, &c) == 0, "clock_gettime");
    long ab = (b.tv_sec - a.tv_sec) * 1000000000L + b.tv_nsec - a.tv_nsec;
    long bc = (c.tv_sec - b.tv_sec) * 1000000000L + c.tv_nsec - b.tv_nsec;
    ok(ab >= 0 && bc >= 0, "and agrees with the C library's");
}

static void test_namespaces(void)
{
    void *handle = dlmopen(LM_ID_NEWLM, "liblate.so", RTLD_NOW);
    ok(handle != NULL, "dlmopen: a namespace with a C library of its own");
    if (!handle)
        return;
    int (*value)(void) = (int (*)(void)) dlsym(handle, "late_value");
    ok(value && value() == 14, "and its library works");
    is(dlclose(handle), 0, "closed");
}

int main(void)
{
    test_open();
    test_often();
    test_global();
    test_errors();
    test_dladdr();
    test_iterate();
    test_vdso();
    test_namespaces();
    return tap_done();
}
