/* SPDX-License-Identifier: Apache-2.0 */
/* What a program is told of itself; the interpreter of scripts. */
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char exe[4096] = "", comm[64] = "";
    FILE *in = fopen("/proc/self/comm", "r");

    if (in == NULL || fgets(comm, sizeof comm, in) == NULL)
        return 1;
    fclose(in);
    if (readlink("/proc/self/exe", exe, sizeof exe - 1) < 0)
        return 1;
    printf("exe %s, comm %s", strrchr(exe, '/') + 1, comm);
    printf("execfn %s\n", (const char *) getauxval(AT_EXECFN));
    for (int i = 0; i < argc; i++)
        printf("argv[%d] \"%s\"\n", i, argv[i]);
    return argc;
}
