/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/lookup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What confstr(_CS_PATH) gives on Linux. */
static const char default_path[] = "/bin:/usr/bin";

/* 0 when execve would at least begin with this file, else errno's value. */
static int executable(const char *file)
{
    struct stat st;

    if (stat(file, &st) != 0)
        return errno;
    if (!S_ISREG(st.st_mode))
        return EACCES;
    if (faccessat(AT_FDCWD, file, X_OK, AT_EACCESS) != 0)
        return errno;
    return 0;
}

/* As execvpe(): these say "not here", anything else ends the search. */
static bool search_goes_on(int error)
{
    return error == ENOENT || error == ENOTDIR || error == ESTALE ||
           error == ENODEV || error == ETIMEDOUT || error == ENAMETOOLONG;
}

static char *search(const char *name, const char *path)
{
    int result = ENOENT;

    for (;;) {
        const char *end = strchrnul(path, ':');
        int len = (int) (end - path);
        char *file;
        /* An empty element is the current directory. */
        if (asprintf(&file, "%.*s%s%s", len, path, len > 0 ? "/" : "", name) <
            0) {
            errno = ENOMEM;
            return NULL;
        }
        int error = executable(file);
        if (error == 0)
            return file;
        free(file);
        if (error == EACCES)
            result = EACCES;
        else if (!search_goes_on(error)) {
            errno = error;
            return NULL;
        }
        if (*end == '\0')
            break;
        path = end + 1;
    }
    errno = result;
    return NULL;
}

char *lookup_program(const char *name, const char *path)
{
    if (*name == '\0') {
        errno = ENOENT;
        return NULL;
    }
    if (strchr(name, '/') == NULL)
        return search(name, path != NULL ? path : default_path);
    int error = executable(name);
    if (error != 0) {
        errno = error;
        return NULL;
    }
    return strdup(name);
}
