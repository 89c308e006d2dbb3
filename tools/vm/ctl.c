/* SPDX-License-Identifier: Apache-2.0 */
/* The virtio-serial ports and the messages on the control port. */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The longest single argument Linux passes to exec is 128 KiB. */
#define MESSAGE_MAX (256 * 1024)

static int ctl = -1;
static char incoming[MESSAGE_MAX];
static size_t incoming_start, incoming_end;

int port_open(enum vm_port nr)
{
    char path[32];
    snprintf(path, sizeof path, "/dev/vport0p%d", (int) nr);
    /* The driver learns of ports, and of the host's end being open, by
     * messages from the device: give it time (30 s in all). */
    const struct timespec pause = {0, 1000000};
    int fd = -1;
    for (int tries = 0; tries < 30000; tries++) {
        if (fd < 0)
            fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0) {
            struct pollfd entry = {.fd = fd, .events = POLLIN | POLLOUT};
            if (poll(&entry, 1, 0) >= 0 && !(entry.revents & POLLHUP))
                return fd;
        }
        nanosleep(&pause, NULL);
    }
    die(0, "port %d did not appear", (int) nr);
}

void ctl_open(void)
{
    ctl = port_open(PORT_CTL);
}

int ctl_fd(void)
{
    return ctl;
}

static void ctl_write(const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t done = write(ctl, bytes, count);
        if (done > 0) {
            bytes += done;
            count -= (size_t) done;
        } else if (errno == EAGAIN) {
            struct pollfd entry = {.fd = ctl, .events = POLLOUT};
            poll(&entry, 1, -1);
            if (entry.revents & POLLHUP)
                boot_power_off();
        } else if (errno != EINTR) {
            boot_power_off();
        }
    }
}

void ctl_send(const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    ctl_write(text, strlen(text) + 1);
}

void die(int err, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    const char *colon = err ? ": " : "", *why = err ? strerror(err) : "";
    /* The console too: the port may be what failed. */
    fprintf(stderr, "init: %s%s%s\n", text, colon, why);
    if (ctl >= 0)
        ctl_send("F%s%s%s", text, colon, why);
    boot_power_off();
}

char *ctl_next(bool wait)
{
    for (;;) {
        char *start = incoming + incoming_start;
        size_t have = incoming_end - incoming_start;
        char *end = memchr(start, 0, have);
        if (end) {
            incoming_start += (size_t) (end - start) + 1;
            return start;
        }
        memmove(incoming, start, have);
        incoming_start = 0;
        incoming_end = have;
        if (have == sizeof incoming)
            die(0, "a message of more than %d bytes", MESSAGE_MAX);
        ssize_t got = read(ctl, incoming + have, sizeof incoming - have);
        if (got > 0) {
            incoming_end += (size_t) got;
        } else if (got == 0) {
            boot_power_off(); /* the host's end is closed */
        } else if (errno == EAGAIN) {
            if (!wait)
                return NULL;
            struct pollfd entry = {.fd = ctl, .events = POLLIN};
            poll(&entry, 1, -1);
        } else if (errno != EINTR) {
            die(errno, "control port");
        }
    }
}
