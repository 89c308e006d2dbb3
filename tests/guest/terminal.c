/* SPDX-License-Identifier: Apache-2.0 */
/* Pseudo terminals and their ioctls. */
#include "mem.h"

#include <asm/termbits.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>

#ifndef TIOCGPTPEER
#define TIOCGPTPEER 0x5441
#endif

struct winsize_t {
    unsigned short row, col, x, y;
};

static void test_pair(int m, int s)
{
    char buf[64];
    unsigned n = 99, zero = 0;
    is(ioctl(m, TIOCGPTN, &n), 0, "pair: number");
    ok(n < 1000, "pair: small");
    int lock = 9;
    ok(ioctl(m, TIOCGPTLCK, &lock) == 0 && lock == 0, "pair: unlocked");
    is(ioctl(m, TIOCSPTLCK, &zero), 0, "pair: unlock again");
    is(write(s, "out\n", 4), 4, "pair: written");
    is(read(m, buf, sizeof buf), 5, "pair: read, with a return");
    ok(memcmp(buf, "out\r\n", 5) == 0, "pair: is it");
    is(write(m, "in\n", 3), 3, "pair: typed");
    is(read(s, buf, sizeof buf), 3, "pair: a line");
    is(read(m, buf, sizeof buf), 4, "pair: its echo");
    int queued = -1;
    need(write(m, "more\n", 5) == 5, "write");
    /* It comes by way of a work queue. */
    struct pollfd in = {.fd = s, .events = POLLIN};
    need(poll(&in, 1, -1) == 1, "poll");
    ok(ioctl(s, FIONREAD, &queued) == 0 && queued == 5, "pair: FIONREAD");
    is(ioctl(s, TCFLSH, TCIOFLUSH), 0, "pair: flushed");
    ok(ioctl(s, FIONREAD, &queued) == 0 && queued == 0, "pair: nothing left");
    ok(isatty(s) && isatty(m), "pair: terminals");
}

static void test_size(int m, int s)
{
    struct winsize_t w = {24, 80, 1, 2}, got = {0};
    is(ioctl(m, TIOCSWINSZ, &w), 0, "size: set");
    ok(ioctl(s, TIOCGWINSZ, &got) == 0 && memcmp(&w, &got, sizeof w) == 0,
       "size: got");
    fails(ioctl(s, TIOCGWINSZ, BAD_PTR), EFAULT, "size: to nowhere");
    fails(ioctl(s, TIOCSWINSZ, NO_PAGE), EFAULT, "size: of nowhere");
    fails(ioctl(probe_pipe[0], TIOCGWINSZ, &got), ENOTTY, "size: of a pipe");
    fails(ioctl(999, TIOCGWINSZ, &got), EBADF, "size: of none");
}

static void test_termios(int m, int s)
{
    struct termios t;
    struct termios2 t2;
    char buf[16];
    is(ioctl(s, TCGETS, &t), 0, "termios: got");
    ok((t.c_lflag & (ICANON | ECHO)) == (ICANON | ECHO), "termios: cooked");
    t.c_lflag &= ~(ICANON | ECHO | ISIG);
    t.c_cc[VMIN] = 1;
    t.c_cc[VTIME] = 0;
    is(ioctl(s, TCSETSW, &t), 0, "termios: raw");
    need(write(m, "k", 1) == 1, "write");
    is(read(s, buf, sizeof buf), 1, "termios: a key");
    is(ioctl(s, TCGETS2, &t2), 0, "termios: the newer one");
    t2.c_cflag = (t2.c_cflag & ~CBAUD) | BOTHER;
    t2.c_ospeed = t2.c_ispeed = 123456;
    is(ioctl(s, TCSETS2, &t2), 0, "termios: any speed");
    memset(&t2, 0, sizeof t2);
    ok(ioctl(s, TCGETS2, &t2) == 0 && t2.c_ospeed == 123456, "termios: is set");
    is(ioctl(s, TCSETSF, &t), 0, "termios: flushed");
    is(ioctl(s, TCSBRK, 1), 0, "termios: drained");
    int disc = -1;
    ok(ioctl(s, TIOCGETD, &disc) == 0 && disc == 0, "termios: discipline");
    disc = 12345;
    fails(ioctl(s, TIOCSETD, &disc), EINVAL, "termios: no discipline");
    int pkt = 1;
    is(ioctl(m, TIOCPKT, &pkt), 0, "termios: packets");
    pkt = 0;
    ok(ioctl(m, TIOCGPKT, &pkt) == 0 && pkt == 1, "termios: are on");
    pkt = 0;
    is(ioctl(m, TIOCPKT, &pkt), 0, "termios: off");
    fails(ioctl(s, TCGETS, BAD_PTR), EFAULT, "termios: to nowhere");
    fails(ioctl(s, TCSETS, NO_PAGE), EFAULT, "termios: of nowhere");
    fails(ioctl(s, 0x5499, 0), ENOTTY, "termios: no such request");
}

/* A session of its own, which the terminal controls. */
static void test_control(int m, int s)
{
    int group = -1, sid = -1;
    char c = '!', buf[4];
    if (setsid() < 0 && getsid(0) != getpid()) {
        /* The leader of a group cannot start a session. */
        tap_skip("control", "no session of its own");
        return;
    }
    is(ioctl(s, TIOCSCTTY, 1), 0, "control: taken");
    ok(ioctl(s, TIOCGSID, &sid) == 0 && sid == getpid(), "control: session");
    ok(ioctl(s, TIOCGPGRP, &group) == 0 && group == getpgrp(),
       "control: foreground");
    is(ioctl(s, TIOCSPGRP, &group), 0, "control: stays so");
    group = 0x3fffffff;
    fails(ioctl(s, TIOCSPGRP, &group), ESRCH, "control: no such group");
    int tty = open("/dev/tty", O_RDWR | O_CLOEXEC);
    ok(tty >= 0, "control: /dev/tty");
    long sti = ioctl(tty, TIOCSTI, &c);
    /* dev.tty.legacy_tiocsti may be off. */
    ok(sti == 0 || errno == EIO, "control: TIOCSTI");
    if (sti == 0)
        ok(read(s, buf, sizeof buf) == 1 && buf[0] == '!', "control: typed");
    else
        ok(true, "control: typed");
    close(tty);
    signal(SIGHUP, SIG_IGN);
    is(ioctl(s, TIOCNOTTY), 0, "control: given up");
    fails(open("/dev/tty", O_RDWR), ENXIO, "control: none");
    is(fcntl(m, F_GETFL) & O_ACCMODE, O_RDWR, "control: the other side");
}

int main(void)
{
    int m = open("/dev/ptmx", O_RDWR | O_NOCTTY), zero = 0;
    char name[64];
    unsigned n;
    probe_open();
    need(m >= 0, "/dev/ptmx");
    need(ioctl(m, TIOCGPTN, &n) == 0, "TIOCGPTN");
    snprintf(name, sizeof name, "/dev/pts/%u", n);
    fails(open(name, O_RDWR | O_NOCTTY), EIO, "open: locked");
    need(ioctl(m, TIOCSPTLCK, &zero) == 0, "TIOCSPTLCK");
    int s = open(name, O_RDWR | O_NOCTTY);
    ok(s >= 0, "open: unlocked");
    int peer = ioctl(m, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
    ok(peer >= 0 && fcntl(peer, F_GETFD) == FD_CLOEXEC, "open: the peer");
    char link[64] = "", path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", peer);
    need(readlink(path, link, sizeof link - 1) > 0, "readlink");
    is_str(link, name, "open: is it");
    close(peer);
    test_pair(m, s);
    test_size(m, s);
    test_termios(m, s);
    test_control(m, s);
    close(s);
    char buf[64];
    while (read(m, buf, sizeof buf) > 0)
        ;
    is(errno, EIO, "close: hung up");
    return tap_done();
}
