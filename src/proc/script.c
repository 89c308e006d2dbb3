/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/script.h"

#include <errno.h>
#include <string.h>

#define NOWHERE SCRIPT_HEAD

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* First index in [from, last] that is not blank, or NOWHERE. */
static unsigned find_word(const char *head, unsigned from, unsigned last)
{
    for (; from <= last; from++)
        if (!is_blank(head[from]))
            return from;
    return NOWHERE;
}

/* First index in [from, last] where a word is seen to end, or NOWHERE. */
static unsigned find_word_end(const char *head, unsigned from, unsigned last)
{
    for (; from <= last; from++)
        if (is_blank(head[from]) || head[from] == '\0')
            return from;
    return NOWHERE;
}

/*
 * Index of the line's end: its newline, or the last byte we see. Without a
 * newline the name must be seen to end, lest a part of it be run; an argument
 * may be cut.
 */
static unsigned find_line_end(const char *head)
{
    unsigned last = SCRIPT_HEAD - 1;
    size_t text = strnlen(head, SCRIPT_HEAD);
    const char *newline = memchr(head, '\n', text);

    if (newline != NULL)
        return (unsigned) (newline - head);
    unsigned name = find_word(head, 2, last);
    if (name == NOWHERE || find_word_end(head, name, last) == NOWHERE)
        return NOWHERE;
    return last;
}

/* head[from, to) up to a NUL. */
static void copy_word(char word[SCRIPT_HEAD], const char *head, unsigned from,
                      unsigned to)
{
    size_t len = strnlen(head + from, to - from);

    memcpy(word, head + from, len);
    word[len] = '\0';
}

bool script_is(const char head[SCRIPT_HEAD])
{
    return head[0] == '#' && head[1] == '!';
}

int script_parse(const char head[SCRIPT_HEAD], script_line_t *line)
{
    if (!script_is(head))
        return -ENOEXEC;
    unsigned end = find_line_end(head);
    if (end == NOWHERE)
        return -ENOEXEC;
    while (is_blank(head[end - 1]))
        end--;
    unsigned name = find_word(head, 2, end);
    if (name == NOWHERE || name == end)
        return -ENOEXEC;

    unsigned name_end = find_word_end(head, name, end);
    unsigned argument = NOWHERE;
    if (name_end != NOWHERE && head[name_end] != '\0')
        argument = find_word(head, name_end, end);
    copy_word(line->name, head, name, name_end < end ? name_end : end);
    line->has_argument = argument != NOWHERE;
    line->argument[0] = '\0';
    if (line->has_argument)
        copy_word(line->argument, head, argument, end);
    return 0;
}
