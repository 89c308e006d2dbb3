/* SPDX-License-Identifier: Apache-2.0 */
/* For dlopen: counts how often it was set up, says so when it goes. */
#include "say.h"

int late_value(void);
int late_caller(int (*function)(void));
extern int late_data[4];

int late_data[4] = {1, 2, 3, 4};
static int *const relocated = &late_data[2];

__attribute__((constructor)) static void init(void)
{
    late_data[0] += 10;
}

__attribute__((destructor)) static void fini(void)
{
    say("# late: destructor\n");
}

int late_value(void)
{
    return *relocated + late_data[0];
}

int late_caller(int (*function)(void))
{
    return function() + 1;
}
