/* SPDX-License-Identifier: Apache-2.0 */
/* Thread-local variables of a library; mk/dynamic.mk makes it several times,
 * with NAME and with each way to find them. */
#include <stddef.h>

#define JOIN2(a, b) a##b
#define JOIN(a, b)  JOIN2(a, b)

__thread int JOIN(NAME, _data) = 1234;
__thread int JOIN(NAME, _zero);
__thread char JOIN(NAME, _aligned)[64] __attribute__((aligned(64)));
static __thread int local = 99;

int *JOIN(NAME, _data_address)(void);
int JOIN(NAME, _count)(void);
void *JOIN(NAME, _aligned_address)(void);

int *JOIN(NAME, _data_address)(void)
{
    return &JOIN(NAME, _data);
}

int JOIN(NAME, _count)(void)
{
    JOIN(NAME, _zero)++;
    return ++local;
}

void *JOIN(NAME, _aligned_address)(void)
{
    return JOIN(NAME, _aligned);
}
