/* SPDX-License-Identifier: Apache-2.0 */
/* sources: src/proc/script.c */
/*
 * libFuzzer on `#!` lines: the input is the beginning of a file. What is found
 * must stand in it, in this order, and contain no blank where none may be.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "proc/script.h"

static void check_line(const char *head, const script_line_t *line)
{
    size_t name = strlen(line->name), argument = strlen(line->argument);
    const char *at = head + 2 + strspn(head + 2, " \t");

    CHECK(script_is(head));
    CHECK(2 + name + argument < SCRIPT_HEAD);
    CHECK(strcspn(line->name, " \t\n") == name);
    CHECK(memcmp(at, line->name, name) == 0);
    CHECK(line->has_argument || argument == 0);
    if (!line->has_argument)
        return;
    at += name;
    CHECK(*at == ' ' || *at == '\t');
    at += strspn(at, " \t");
    CHECK(memcmp(at, line->argument, argument) == 0);
    CHECK(memchr(line->argument, '\n', argument) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Exactly as long as what may be read, for ASan to watch. */
    char *head = calloc(1, SCRIPT_HEAD);
    char text[SCRIPT_HEAD + 1] = "";
    script_line_t line;

    CHECK(head != NULL);
    memcpy(head, data, size < SCRIPT_HEAD ? size : SCRIPT_HEAD);
    memcpy(text, head, SCRIPT_HEAD);
    if (script_parse(head, &line) == 0)
        check_line(text, &line);
    free(head);
    return 0;
}
