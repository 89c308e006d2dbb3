/* SPDX-License-Identifier: Apache-2.0 */
/* sources: src/proc/script.c */
/* `#!` lines. Each expectation was seen of a kernel: tests/cli has them too. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proc/script.h"

/* The head of a file with these bytes. */
static int parse(const char *text, size_t len, script_line_t *line)
{
    char *head = calloc(1, SCRIPT_HEAD);

    assert_non_null(head);
    memcpy(head, text, len < SCRIPT_HEAD ? len : SCRIPT_HEAD);
    int error = script_parse(head, line);
    free(head);
    return error;
}

static void gives_bytes(const char *text, size_t len, const char *name,
                        const char *argument)
{
    script_line_t line;

    assert_int_equal(parse(text, len, &line), 0);
    assert_string_equal(line.name, name);
    assert_int_equal(line.has_argument, argument != NULL);
    assert_string_equal(line.argument, argument != NULL ? argument : "");
}

static void gives(const char *text, const char *name, const char *argument)
{
    gives_bytes(text, strlen(text), name, argument);
}

static void refused(const char *text)
{
    script_line_t line;

    assert_int_equal(parse(text, strlen(text), &line), -ENOEXEC);
}

static void test_plain(void **state)
{
    gives("#!/bin/sh\necho\n", "/bin/sh", NULL);
    gives("#! /bin/sh\n", "/bin/sh", NULL);
    gives("#!\t \t/bin/sh \t \n", "/bin/sh", NULL);
    gives("#!sh\n", "sh", NULL);
    gives("#!/bin/sh\r\n", "/bin/sh\r", NULL);
}

static void test_argument(void **state)
{
    gives("#!/bin/sh -e\n", "/bin/sh", "-e");
    gives("#!/bin/sh  -e  -x \t\n", "/bin/sh", "-e  -x");
    gives("#!/usr/bin/env -S a b\tc\n", "/usr/bin/env", "-S a b\tc");
}

static void test_no_newline(void **state)
{
    gives("#!/bin/sh", "/bin/sh", NULL);
    gives("#!/bin/sh -e", "/bin/sh", "-e");
    /* Blanks at the end of the file: an argument, an empty one. */
    gives("#!/bin/sh ", "/bin/sh", "");
    gives("#!/bin/sh -e ", "/bin/sh", "-e ");
}

static void test_nul(void **state)
{
    gives_bytes("#!/bin/sh\0x y\n", 14, "/bin/sh", NULL);
    gives_bytes("#!/bin/sh a\0b\n", 14, "/bin/sh", "a");
    gives("#!", "", NULL);
    gives("#! ", "", NULL);
}

static void test_nothing(void **state)
{
    refused("");
    refused("#");
    refused("# !/bin/sh\n");
    refused("#!\n");
    refused("#! \t \n/bin/sh\n");
}

/* Let text begin so; what follows stays. */
static void start(char *text, const char *with)
{
    while (*with != '\0')
        *text++ = *with++;
}

static void test_long(void **state)
{
    char text[SCRIPT_HEAD + 100], name[SCRIPT_HEAD];

    /* 252 bytes of name and the newline are the 255th byte. */
    memset(text, 'x', sizeof(text));
    start(text, "#!/");
    text[SCRIPT_HEAD - 1] = '\n';
    memcpy(name, text + 2, SCRIPT_HEAD - 3);
    name[SCRIPT_HEAD - 3] = '\0';
    gives_bytes(text, sizeof(text), name, NULL);
    /* The name fills all we see: perhaps it goes on. */
    script_line_t line;
    text[SCRIPT_HEAD - 1] = 'x';
    text[SCRIPT_HEAD] = '\n';
    assert_int_equal(parse(text, sizeof(text), &line), -ENOEXEC);
    /* A blank as the last byte ends it. */
    text[SCRIPT_HEAD - 1] = ' ';
    gives_bytes(text, sizeof(text), name, NULL);
    /* An argument may be cut, the last byte is lost. */
    start(text, "#!/a ");
    memset(text + 5, 'b', sizeof(text) - 5);
    memset(name, 'b', SCRIPT_HEAD - 6);
    name[SCRIPT_HEAD - 6] = '\0';
    gives_bytes(text, sizeof(text), "/a", name);
    /* Nothing but blanks. */
    memset(text + 2, ' ', sizeof(text) - 2);
    assert_int_equal(parse(text, sizeof(text), &line), -ENOEXEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),      cmocka_unit_test(test_argument),
        cmocka_unit_test(test_no_newline), cmocka_unit_test(test_nul),
        cmocka_unit_test(test_nothing),    cmocka_unit_test(test_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
