/* SPDX-License-Identifier: Apache-2.0 */
/* sources: src/proc/lookup.c */
/* PATH look-up in a folder of its own. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "proc/lookup.h"

static char dir[] = "/tmp/elfuse-lookup-XXXXXX";

static void make_file(const char *name, mode_t mode)
{
    int fd = open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(close(fd), 0);
}

static int set_up(void **state)
{
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chdir(dir), 0);
    assert_int_equal(mkdir("a", 0700), 0);
    assert_int_equal(mkdir("b", 0700), 0);
    assert_int_equal(mkdir("a/folder", 0700), 0);
    make_file("a/data", 0600);
    make_file("b/data", 0600);
    make_file("a/both", 0600);
    make_file("b/both", 0700);
    make_file("here", 0700);
    return 0;
}

static int tear_down(void **state)
{
    static const char *const files[] = {"a/data", "b/data", "a/both", "b/both",
                                        "here"};

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        assert_int_equal(unlink(files[i]), 0);
    assert_int_equal(rmdir("a/folder"), 0);
    assert_int_equal(rmdir("a"), 0);
    assert_int_equal(rmdir("b"), 0);
    assert_int_equal(chdir("/"), 0);
    return rmdir(dir);
}

static void found(const char *name, const char *path, const char *file)
{
    char *got = lookup_program(name, path);

    if (got == NULL)
        fail_msg("%s in %s: %s", name, path, strerror(errno));
    assert_string_equal(got, file);
    free(got);
}

static void not_found(const char *name, const char *path, int error)
{
    assert_null(lookup_program(name, path));
    assert_int_equal(errno, error);
}

static void test_path(void **state)
{
    found("both", "a:b", "b/both");
    found("both", "none:here:a/data:b", "b/both");
    found("here", ":a", "here");
    found("here", "a:", "here");
    found("here", "a::b", "here");
    found("here", "", "here");
    not_found("here", "a:b", ENOENT);
    not_found("data", "a:b", EACCES);
    not_found("data", "a:none", EACCES);
    not_found("folder", "a:b", EACCES);
    not_found("", "a:b", ENOENT);
    found("sh", NULL, "/bin/sh");
}

static void test_with_slash(void **state)
{
    found("b/both", "a", "b/both");
    found("./here", "", "./here");
    not_found("a/none", "a", ENOENT);
    not_found("a/both", "b", EACCES);
    not_found("a/folder", "b", EACCES);
    not_found("here/x", "b", ENOTDIR);
}

static void test_long_names(void **state)
{
    char name[600];

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    not_found(name, "a:b", ENOENT);
    found("both", "a:b", "b/both");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path),
        cmocka_unit_test(test_with_slash),
        cmocka_unit_test(test_long_names),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
