/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes on their way between a port and a program. */
#include "init.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

void pump_start(pump_t *pump, int from, int to)
{
    pump->from = from;
    pump->to = to;
    pump->moved = 0;
    pump->limit = UINT64_MAX;
    pump->head = pump->tail = 0;
}

void pump_cut(pump_t *pump)
{
    pump->moved -= pump->tail - pump->head;
    pump->head = pump->tail = 0;
    pump->from = pump->to = -1;
}

bool pump_done(const pump_t *pump)
{
    return pump->to < 0 || (pump->from < 0 && pump->head == pump->tail);
}

void pump_poll(const pump_t *pump, struct pollfd *entry)
{
    entry->revents = 0;
    if (pump_done(pump)) {
        entry->fd = -1;
    } else if (pump->head < pump->tail) {
        entry->fd = pump->to;
        entry->events = POLLOUT;
    } else {
        entry->fd = pump->from;
        entry->events = POLLIN;
    }
}

/* Takes in what is there, up to a buffer full: a port gives at most a page at
 * a time, and handing on single pages costs a wake-up each. */
static void pump_fill(pump_t *pump)
{
    pump->head = pump->tail = 0;
    while (pump->tail < sizeof pump->buffer) {
        uint64_t left = pump->limit - pump->moved;
        size_t want = sizeof pump->buffer - pump->tail;
        if (left < want)
            want = (size_t) left;
        ssize_t got =
            want ? read(pump->from, pump->buffer + pump->tail, want) : 0;
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && errno == EAGAIN)
            break;
        if (got <= 0) {
            /* A terminal whose last user has gone gives EIO. */
            pump->from = -1;
            break;
        }
        pump->moved += (uint64_t) got;
        pump->tail += (size_t) got;
    }
}

static void pump_flush(pump_t *pump)
{
    size_t count = pump->tail - pump->head;
    ssize_t done = write(pump->to, pump->buffer + pump->head, count);
    if (done >= 0)
        pump->head += (size_t) done;
    else if (errno != EAGAIN && errno != EINTR)
        pump_cut(pump); /* the reader has gone */
}

void pump_move(pump_t *pump)
{
    if (pump_done(pump))
        return;
    if (pump->head == pump->tail)
        pump_fill(pump);
    if (pump->head < pump->tail)
        pump_flush(pump);
}
