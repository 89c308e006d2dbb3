/* SPDX-License-Identifier: Apache-2.0 */
/* What every fuzz target has: what must hold, and its entry. */
#ifndef ELFUSE_TESTS_FUZZ_H
#define ELFUSE_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                        \
    do {                                                        \
        if (!(condition)) {                                     \
            fprintf(stderr, "does not hold: %s\n", #condition); \
            abort();                                            \
        }                                                       \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
