/* SPDX-License-Identifier: Apache-2.0 */
/* poll, select and epoll: events, timeouts, bad pointers, bad descriptors. */
#include "mem.h"

#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

static int r, w; /* the two ends of an empty pipe */

static void drain(void)
{
    char c[64];
    while (read(r, c, sizeof c) > 0)
        ;
}

static void test_poll(void)
{
    struct pollfd p[3] = {{r, POLLIN, 0}, {w, POLLOUT, 0}, {-1, POLLIN, 7}};
    is(poll(p, 3, 0), 1, "poll: one is ready");
    ok(p[0].revents == 0 && p[1].revents == POLLOUT && p[2].revents == 0,
       "poll: the writing end");
    need(write(w, "x", 1) == 1, "write");
    is(poll(p, 2, -1), 2, "poll: both");
    is(p[0].revents, POLLIN, "poll: the reading end too");
    drain();
    p[1].fd = 999;
    is(poll(p, 2, 0), 1, "poll: a bad descriptor is an event");
    is(p[1].revents, POLLNVAL, "poll: POLLNVAL");
    is(poll(p, 1, 20), 0, "poll: a timeout");
    is(poll(NULL, 0, 10), 0, "poll: of nothing");
    fails(poll(BAD_PTR, 1, 0), EFAULT, "poll: nowhere");
    fails(poll(NO_PAGE, 1, 0), EFAULT, "poll: nowhere in user space");
    fails(poll(p, 100000000, 0), EINVAL, "poll: far too many");
    char *ro = map_rw(PAGE);
    memcpy(ro, p, sizeof p);
    need(sys_mprotect(ro, PAGE, PROT_READ) == 0, "mprotect");
    fails(poll((void *) ro, 1, 0), EFAULT, "poll: results to read-only");
    struct timespec ts = {0, 10000000};
    is(ppoll(p, 1, &ts, NULL), 0, "ppoll: a timeout");
    ts.tv_nsec = -1;
    fails(ppoll(p, 1, &ts, NULL), EINVAL, "ppoll: absurd time");
    fails(syscall(SYS_ppoll, p, 1, BAD_PTR, NULL, 8), EFAULT,
          "ppoll: time from nowhere");
    fails(syscall(SYS_ppoll, p, 1, NULL, &ts, 7), EINVAL, "ppoll: set's size");
    fails(syscall(SYS_ppoll, p, 1, NULL, BAD_PTR, 8), EFAULT,
          "ppoll: set from nowhere");
}

static void test_select(void)
{
    fd_set in, out;
    struct timeval tv = {0, 0};
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_SET(r, &in);
    FD_SET(w, &out);
    is(select(w + 1, &in, &out, NULL, &tv), 1, "select: one is ready");
    ok(!FD_ISSET(r, &in) && FD_ISSET(w, &out), "select: the writing end");
    FD_SET(r, &in);
    tv.tv_usec = 20000;
    is(select(r + 1, &in, NULL, NULL, &tv), 0, "select: a timeout");
    ok(!FD_ISSET(r, &in), "select: clears");
    FD_SET(50, &in);
    fails(select(51, &in, NULL, NULL, &tv), EBADF, "select: bad descriptor");
    fails(select(-1, NULL, NULL, NULL, &tv), EINVAL, "select: -1 of them");
    fails(select(10, BAD_PTR, NULL, NULL, &tv), EFAULT, "select: nowhere");
    is(select(0, NULL, NULL, NULL, &tv), 0, "select: of nothing");
    is(select(0, BAD_PTR, NULL, NULL, &tv), 0,
       "select: a bad pointer that is not needed");
    struct timespec ts = {0, -5};
    fails(syscall(SYS_pselect6, 0, NULL, NULL, NULL, &ts, NULL), EINVAL,
          "pselect: absurd time");
    fails(syscall(SYS_pselect6, 0, NULL, NULL, NULL, BAD_PTR, NULL), EFAULT,
          "pselect: time from nowhere");
    fails(syscall(SYS_pselect6, 0, NULL, NULL, NULL, NULL, BAD_PTR), EFAULT,
          "pselect: mask from nowhere");
    ts = (struct timespec){0, 20000000};
    need(syscall(SYS_pselect6, 0, NULL, NULL, NULL, &ts, NULL) == 0,
         "pselect6");
    ok(ts.tv_sec == 0 && ts.tv_nsec == 0, "pselect: tells the time left");
}

static void test_epoll(void)
{
    struct epoll_event ev = {EPOLLIN, {.u64 = 0x1234567890}}, got[4];
    int e = epoll_create1(EPOLL_CLOEXEC);
    ok(e >= 0, "epoll");
    fails(epoll_create1(7), EINVAL, "epoll: unknown flag");
    fails(epoll_create(0), EINVAL, "epoll: of size 0");
    is(epoll_ctl(e, EPOLL_CTL_ADD, r, &ev), 0, "epoll: add");
    fails(epoll_ctl(e, EPOLL_CTL_ADD, r, &ev), EEXIST, "epoll: add again");
    is(epoll_wait(e, got, 4, 0), 0, "epoll: nothing");
    is(epoll_wait(e, got, 4, 20), 0, "epoll: a timeout");
    need(write(w, "x", 1) == 1, "write");
    is(epoll_wait(e, got, 4, -1), 1, "epoll: an event");
    ok(got[0].events == EPOLLIN && got[0].data.u64 == 0x1234567890,
       "epoll: with its data");
    is(epoll_wait(e, got, 4, 0), 1, "epoll: level-triggered");
    ev.events = EPOLLIN | EPOLLET;
    is(epoll_ctl(e, EPOLL_CTL_MOD, r, &ev), 0, "epoll: edge-triggered");
    is(epoll_wait(e, got, 4, 0), 1, "epoll: once");
    is(epoll_wait(e, got, 4, 0), 0, "epoll: not twice");
    drain();
    fails(epoll_ctl(e, 99, r, &ev), EINVAL, "epoll: unknown operation");
    fails(epoll_ctl(e, EPOLL_CTL_MOD, w, &ev), ENOENT, "epoll: not in it");
    fails(epoll_ctl(e, EPOLL_CTL_ADD, 999, &ev), EBADF, "epoll: bad one");
    fails(epoll_ctl(999, EPOLL_CTL_ADD, r, &ev), EBADF, "epoll: itself bad");
    fails(epoll_ctl(e, EPOLL_CTL_ADD, e, &ev), EINVAL, "epoll: in itself");
    fails(epoll_ctl(r, EPOLL_CTL_ADD, w, &ev), EINVAL, "epoll: is none");
    int fd = file_make(1);
    fails(epoll_ctl(e, EPOLL_CTL_ADD, fd, &ev), EPERM, "epoll: of a file");
    close(fd);
    fails(epoll_ctl(e, EPOLL_CTL_ADD, w, BAD_PTR), EFAULT, "epoll: nowhere");
    is(epoll_ctl(e, EPOLL_CTL_DEL, r, BAD_PTR), 0,
       "epoll: delete needs no event");
    fails(epoll_wait(e, got, 0, 0), EINVAL, "epoll: no room");
    fails(epoll_wait(e, got, -1, 0), EINVAL, "epoll: -1 room");
    fails(epoll_wait(e, BAD_PTR, 4, 0), EFAULT, "epoll: to nowhere");
    fails(epoll_wait(r, got, 4, 0), EINVAL, "epoll: wait on a pipe");
    ev.events = EPOLLOUT;
    need(epoll_ctl(e, EPOLL_CTL_ADD, w, &ev) == 0, "epoll_ctl");
    fails(epoll_wait(e, NO_PAGE, 4, 0), EFAULT, "epoll: event to nowhere");
    is(epoll_wait(e, got, 4, 0), 1, "epoll: it is not lost");
    struct timespec ts = {0, 10000000};
    is(epoll_ctl(e, EPOLL_CTL_DEL, w, NULL), 0, "epoll: delete");
    is(syscall(SYS_epoll_pwait2, e, got, 4, &ts, NULL, 8), 0,
       "epoll_pwait2: a timeout");
    sigset_t set;
    sigemptyset(&set);
    is(epoll_pwait(e, got, 4, 0, &set), 0, "epoll_pwait");
    close(e);
}

int main(void)
{
    int p[2];
    need(pipe2(p, O_NONBLOCK) == 0, "pipe2");
    r = p[0], w = p[1];
    test_poll();
    test_select();
    test_epoll();
    return tap_done();
}
