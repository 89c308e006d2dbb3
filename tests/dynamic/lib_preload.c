/* SPDX-License-Identifier: Apache-2.0 */
/* For LD_PRELOAD: a call in front of the C library's own. */
#include <dlfcn.h>
#include <unistd.h>

pid_t getppid(void)
{
    pid_t (*next)(void) = (pid_t(*)(void)) dlsym(RTLD_NEXT, "getppid");

    return next != NULL && next() > 0 ? 4242 : -1;
}
