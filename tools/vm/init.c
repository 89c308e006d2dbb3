/* SPDX-License-Identifier: Apache-2.0 */
/* The first process of the emulated machine: does what the host says. */
#include "init.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void take_terminal_size(job_t *job, const char *text)
{
    unsigned rows = 0, cols = 0;
    if (sscanf(text, "%u %u", &rows, &cols) == 2) {
        job->rows = (unsigned short) rows;
        job->cols = (unsigned short) cols;
    }
}

/* A message that describes the next job; false if it is none. */
static bool describe_job(job_t *job, const char *message)
{
    const char *text = message + 1;
    int fd = atoi(text);
    bool standard = fd >= 0 && fd <= 2;
    switch (message[0]) {
    case 'U':
        job_reset(job);
        return true;
    case 'A':
        job_add_argument(job, text);
        return true;
    case 'E':
        job_add_environment(job, text);
        return true;
    case 'C':
        free(job->cwd);
        job->cwd = strdup(text);
        return true;
    case 'Z':
        job->closed[standard ? fd : 0] = standard;
        return true;
    case 'T':
        job->tty[standard ? fd : 0] = standard;
        return true;
    case 'W':
        take_terminal_size(job, text);
        return true;
    default:
        return false;
    }
}

/* A message about the machine as a whole; false if it is none. */
static bool set_up(const char *message)
{
    static int shares;
    const char *text = message + 1;
    switch (message[0]) {
    case 'R':
        boot_mount_root_image();
        return true;
    case 'S':
        boot_mount_share(shares++, text);
        return true;
    case 'H':
        boot_huge_pages(text);
        return true;
    case 'N':
        boot_set_clock(text);
        return true;
    case 'L':
        job_keep_input();
        return true;
    case 'M':
        ctl_send("R");
        return true;
    default:
        return false;
    }
}

int main(void)
{
    static job_t job;
    boot_mount_basics();
    boot_load_modules("base");
    ctl_open();
    boot_settings();
    for (;;) {
        const char *message = ctl_next(true);
        if (message[0] == 'Q')
            boot_power_off();
        if (message[0] == 'G') {
            if (job.argc == 0)
                die(0, "a job without a program");
            job_run(&job);
        } else if (!set_up(message) && !describe_job(&job, message) &&
                   !job_message(message)) {
            die(0, "unknown message '%c'", message[0]);
        }
    }
}
