/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many more threads than a virtual machine has CPUs: one after the other, and
 * eight at a time. With an argument so many, with a second one it waits for a
 * byte on standard input after each part.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "tap.h"

#define TOGETHER 8

static int in_a_row = 1200;

static _Atomic long ran;

static void *run(void *arg)
{
    int *word = arg;

    (*word)++;
    atomic_fetch_add(&ran, 1);
    return arg;
}

static bool start(pthread_t *thread, int *word)
{
    int error = pthread_create(thread, NULL, run, word);

    if (!error)
        return true;
    tap_say("# pthread_create: %s after %ld", tap_errname(error), (long) ran);
    return false;
}

static bool finish(pthread_t thread, const int *word)
{
    void *result = NULL;

    return pthread_join(thread, &result) == 0 && result == word;
}

static void one_by_one(void)
{
    pthread_t thread;
    int word = 0;
    bool good = true;

    for (int i = 0; i < in_a_row && good; i++)
        good = start(&thread, &word) && finish(thread, &word) && word == i + 1;
    ok(good, "threads are made and joined one by one");
}

static void together(void)
{
    pthread_t thread[TOGETHER];
    int word[TOGETHER] = {0};
    bool good = true;

    for (int i = 0; i < in_a_row && good; i += TOGETHER) {
        for (int j = 0; j < TOGETHER && good; j++)
            good = start(&thread[j], &word[j]);
        for (int j = 0; j < TOGETHER && good; j++)
            good = finish(thread[j], &word[j]);
    }
    ok(good, "as many, eight at a time");
}

static void pause_for(int argc)
{
    char byte;

    if (argc > 2)
        need(read(STDIN_FILENO, &byte, 1) == 1, "read");
}

int main(int argc, char **argv)
{
    if (argc > 1)
        in_a_row = atoi(argv[1]) & -TOGETHER;
    one_by_one();
    pause_for(argc);
    together();
    pause_for(argc);
    is(ran, 2 * in_a_row, "each ran once");
    return tap_done();
}
