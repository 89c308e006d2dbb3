/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a handler does to a call that waits: EINTR, or the call goes on. Each
 * call is interrupted again and again. The handler makes what it waits for come
 * true, so that a call that goes on ends with success: at the second time, or,
 * where EINTR is expected, so late that it has ended long before.
 */
#include "tap.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

static volatile sig_atomic_t count;
static int pipes[2], sockets[2], listener, event, epoll, queue, semaphore;
static int pty, tty, lock_fd;
static pid_t child;
static volatile uint32_t word;
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static char fifo[64], lock_name[64];
static const char *where;

/* --- What makes each call succeed, from the handler */

static void feed_pipe(void)
{
    need(write(pipes[1], "x", 1) == 1, "write");
}

static void drain_pipe(void)
{
    static char buf[65536];

    need(read(pipes[0], buf, sizeof buf) > 0, "read");
}

static void feed_socket(void)
{
    need(send(sockets[1], "x", 1, 0) == 1, "send");
}

static void connect_one(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
    need(fd >= 0, "socket");
    need(connect(fd, (struct sockaddr *) &address, sizeof address) == 0,
         "connect");
    close(fd);
}

static void feed_event(void)
{
    uint64_t one = 1;
    need(write(event, &one, 8) == 8, "write");
}

static void wake(void)
{
    word = 1;
    syscall(SYS_futex, &word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void feed_queue(void)
{
    struct {
        long type;
        char text[4];
    } msg = {1, "abc"};
    need(msgsnd(queue, &msg, 4, IPC_NOWAIT) == 0, "msgsnd");
}

static void raise_semaphore(void)
{
    struct sembuf op = {0, 1, IPC_NOWAIT};
    need(semop(semaphore, &op, 1) == 0, "semop");
}

static void feed_tty(void)
{
    need(write(pty, "x\n", 2) == 2, "write");
}

static void end_child(void)
{
    /* It may have been buried already, when the call has been interrupted. */
    need(kill(child, SIGKILL) == 0 || errno == ESRCH, "kill");
}

static void nothing(void)
{
}

static void (*help)(void);
static int help_at;

static void tick(int sig)
{
    int saved = errno;

    (void) sig;
    if (++count == help_at)
        help();
    errno = saved;
}

/* --- The calls. -1 with errno, or something else. */

static char byte;

static long do_read(void)
{
    return read(pipes[0], &byte, 1);
}

static long do_write(void)
{
    static char buf[65536];

    return write(pipes[1], buf, sizeof buf);
}

static long do_recv(void)
{
    return recv(sockets[0], &byte, 1, 0);
}

static long do_recvmsg(void)
{
    struct iovec iov = {&byte, 1};
    struct msghdr msg = {.msg_iov = &iov, .msg_iovlen = 1};

    return recvmsg(sockets[0], &msg, 0);
}

static long do_recv_timeout(void)
{
    struct timeval long_time = {1000, 0}, none = {0, 0};
    long ret;
    int error;

    need(setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &long_time,
                    sizeof long_time) == 0,
         "setsockopt");
    ret = recv(sockets[0], &byte, 1, 0);
    error = errno;
    setsockopt(sockets[0], SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
    errno = error;
    return ret;
}

static long do_accept(void)
{
    int fd = accept(listener, NULL, NULL);

    if (fd >= 0)
        close(fd);
    return fd;
}

static long do_poll(void)
{
    struct pollfd fd = {pipes[0], POLLIN, 0};

    return poll(&fd, 1, -1);
}

static long do_ppoll(void)
{
    struct pollfd fd = {pipes[0], POLLIN, 0};
    struct timespec ts = {1000, 0};
    sigset_t none;

    sigemptyset(&none);
    return ppoll(&fd, 1, &ts, &none);
}

static long do_select(void)
{
    fd_set set;

    FD_ZERO(&set);
    FD_SET(pipes[0], &set);
    return select(pipes[0] + 1, &set, NULL, NULL, NULL);
}

static long do_epoll(void)
{
    struct epoll_event ev;

    return epoll_wait(epoll, &ev, 1, -1);
}

static long do_epoll_pwait(void)
{
    struct epoll_event ev;
    sigset_t none;

    sigemptyset(&none);
    return epoll_pwait(epoll, &ev, 1, 1000000, &none);
}

static long do_eventfd(void)
{
    uint64_t value;

    return read(event, &value, 8);
}

static long do_futex(void)
{
    word = 0;
    return syscall(SYS_futex, &word, FUTEX_WAIT, 0, NULL, NULL, 0) &&
                   errno == EAGAIN
               ? 0
               : (errno == EINTR ? -1 : 0);
}

static long do_futex_timeout(void)
{
    struct timespec ts = {1000, 0};

    word = 0;
    return syscall(SYS_futex, &word, FUTEX_WAIT, 0, &ts, NULL, 0);
}

static long do_nanosleep(void)
{
    struct timespec ts = {1000, 0}, left = {0, 0};
    long ret = nanosleep(&ts, &left);
    int error = errno;

    if (ret == -1 && error == EINTR && (left.tv_sec < 900 || left.tv_sec > 999))
        tap_bail("what is left of the sleep");
    errno = error;
    return ret;
}

static long do_sleep_until(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    ts.tv_sec += 1000;
    errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL);
    return errno ? -1 : 0;
}

static long do_pause(void)
{
    return pause();
}

static void start_child(void)
{
    child = fork();
    need(child >= 0, "fork");
    if (child == 0)
        for (;;)
            pause();
}

/* After the call; keeps what it has returned. */
static long bury_child(long ret)
{
    int error = errno;

    kill(child, SIGKILL);
    while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
        ;
    errno = error;
    return ret;
}

static long do_wait(void)
{
    long ret = waitpid(child, NULL, 0);

    return ret < 0 ? bury_child(ret) : ret;
}

static long do_waitid(void)
{
    siginfo_t info;

    return bury_child(waitid(P_PID, (id_t) child, &info, WEXITED | WNOWAIT));
}

static long do_msgrcv(void)
{
    struct {
        long type;
        char text[4];
    } msg;

    return msgrcv(queue, &msg, 4, 0, 0);
}

static long do_semop(void)
{
    struct sembuf op = {0, -1, 0};

    return semop(semaphore, &op, 1);
}

static long do_sigtimedwait(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    return sigwaitinfo(&set, NULL);
}

static long do_tty(void)
{
    char line[8];

    return read(tty, line, sizeof line);
}

/* The lock is another process's, which gives it up by ending. */
static void hold_lock(bool flocked)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    int ready[2];

    need(pipe(ready) == 0, "pipe");
    child = fork();
    need(child >= 0, "fork");
    if (child == 0) {
        int fd = open(lock_name, O_RDWR);
        if (fd < 0 ||
            (flocked ? flock(fd, LOCK_EX) : fcntl(fd, F_SETLK, &lock)) != 0)
            _exit(1);
        if (write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    while (read(ready[0], &byte, 1) < 0)
        need(errno == EINTR, "read");
    close(ready[0]);
    close(ready[1]);
}

static long after_lock(long ret)
{
    int error;

    bury_child(ret);
    error = errno;
    flock(lock_fd, LOCK_UN);
    errno = error;
    return ret;
}

static long do_flock(void)
{
    return after_lock(flock(lock_fd, LOCK_EX));
}

static long do_setlkw(void)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};

    return after_lock(fcntl(lock_fd, F_SETLKW, &lock));
}

/* Its other end is opened by a process that the handler makes. */
static void open_other_end(void)
{
    child = fork();
    need(child >= 0, "fork");
    if (child == 0)
        _exit(open(fifo, O_WRONLY) < 0);
}

static long do_open(void)
{
    int fd = open(fifo, O_RDONLY), error = errno;

    if (fd >= 0) {
        close(fd);
        while (waitpid(child, NULL, 0) < 0)
            ;
    }
    errno = error;
    return fd;
}

typedef struct trial {
    const char *name;
    long (*call)(void);
    void (*help)(void);
    bool restarts; /* with SA_RESTART */
} trial_t;

static const trial_t trials[] = {
    {"read of a pipe", do_read, feed_pipe, true},
    {"write to a full pipe", do_write, drain_pipe, true},
    {"recv", do_recv, feed_socket, true},
    {"recvmsg", do_recvmsg, feed_socket, true},
    {"recv with SO_RCVTIMEO", do_recv_timeout, feed_socket, false},
    {"accept", do_accept, connect_one, true},
    {"poll", do_poll, feed_pipe, false},
    {"ppoll", do_ppoll, feed_pipe, false},
    {"select", do_select, feed_pipe, false},
    {"epoll_wait", do_epoll, feed_pipe, false},
    {"epoll_pwait", do_epoll_pwait, feed_pipe, false},
    {"read of an eventfd", do_eventfd, feed_event, true},
    {"futex", do_futex, wake, true},
    {"futex with a timeout", do_futex_timeout, wake, false},
    {"nanosleep", do_nanosleep, nothing, false},
    {"clock_nanosleep", do_sleep_until, nothing, false},
    {"pause", do_pause, nothing, false},
    {"waitpid", do_wait, end_child, true},
    {"waitid", do_waitid, end_child, true},
    {"msgrcv", do_msgrcv, feed_queue, false},
    {"semop", do_semop, raise_semaphore, false},
    {"sigwaitinfo", do_sigtimedwait, nothing, false},
    {"read of a terminal", do_tty, feed_tty, true},
    {"flock", do_flock, end_child, true},
    {"F_SETLKW", do_setlkw, end_child, true},
    {"open of a FIFO", do_open, open_other_end, true},
};

static void empty_pipe(void)
{
    char buf[4096];

    need(fcntl(pipes[0], F_SETFL, O_NONBLOCK) == 0, "fcntl");
    while (read(pipes[0], buf, sizeof buf) > 0)
        ;
    need(fcntl(pipes[0], F_SETFL, 0) == 0, "fcntl");
}

static void prepare(const trial_t *t)
{
    empty_pipe();
    if (t->call == do_write) {
        static char buf[65536];
        need(fcntl(pipes[1], F_SETFL, O_NONBLOCK) == 0, "fcntl");
        while (write(pipes[1], buf, sizeof buf) > 0)
            ;
        need(fcntl(pipes[1], F_SETFL, 0) == 0, "fcntl");
    }
    if (t->call == do_wait || t->call == do_waitid)
        start_child();
    if (t->call == do_flock || t->call == do_setlkw)
        hold_lock(t->call == do_flock);
    count = 0;
    help = t->help;
}

/* A tick may come before the call has begun, and does no harm: the next one
 * ends it, or it finds what it waits for. */
static void try_one(const trial_t *t, int flags)
{
    struct itimerval timer = {{0, 60000}, {0, 60000}}, off = {{0, 0}, {0, 0}};
    struct sigaction act = {.sa_handler = tick, .sa_flags = flags};
    bool goes_on = flags & SA_RESTART && t->restarts;
    char line[128];
    long ret;
    int error;

    prepare(t);
    help_at = goes_on ? 2 : 30;
    need(sigaction(SIGALRM, &act, NULL) == 0, "sigaction");
    need(setitimer(ITIMER_REAL, &timer, NULL) == 0, "setitimer");
    ret = t->call();
    error = errno;
    need(setitimer(ITIMER_REAL, &off, NULL) == 0, "setitimer");
    snprintf(line, sizeof line, "%s, %s: %s", t->name,
             flags ? "SA_RESTART" : "no flag", goes_on ? "goes on" : "EINTR");
    if (!ok(goes_on ? ret != -1 : ret == -1 && error == EINTR, line))
        tap_say("#   got %ld, errno %s, after %d signals", ret,
                tap_errname(ret == -1 ? error : 0), (int) count);
}

static void make_all(void)
{
    struct epoll_event ev = {.events = EPOLLIN};
    struct termios raw;

    where = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";
    need(pipe(pipes) == 0, "pipe");
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0, "socketpair");
    listener = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "elfuse-%d",
             (int) getpid());
    need(bind(listener, (struct sockaddr *) &address, sizeof address) == 0 &&
             listen(listener, 5) == 0,
         "listen");
    event = eventfd(0, 0);
    epoll = epoll_create1(0);
    ev.data.fd = pipes[0];
    need(event >= 0 && epoll >= 0 &&
             epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], &ev) == 0,
         "epoll");
    queue = msgget(IPC_PRIVATE, 0600);
    semaphore = semget(IPC_PRIVATE, 1, 0600);
    need(queue >= 0 && semaphore >= 0, "msgget, semget");
    need(openpty(&pty, &tty, NULL, NULL, NULL) == 0, "openpty");
    need(tcgetattr(tty, &raw) == 0, "tcgetattr");
    raw.c_lflag &= ~(tcflag_t) ECHO;
    need(tcsetattr(tty, TCSANOW, &raw) == 0, "tcsetattr");
    snprintf(fifo, sizeof fifo, "%s/fifo-%d", where, (int) getpid());
    snprintf(lock_name, sizeof lock_name, "%s/lock-%d", where, (int) getpid());
    need(mkfifo(fifo, 0600) == 0, "mkfifo");
    lock_fd = open(lock_name, O_RDWR | O_CREAT, 0600);
    need(lock_fd >= 0, "open");
}

int main(void)
{
    make_all();
    for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
        try_one(&trials[i], 0);
        try_one(&trials[i], SA_RESTART);
    }
    unlink(fifo);
    unlink(lock_name);
    msgctl(queue, IPC_RMID, NULL);
    semctl(semaphore, 0, IPC_RMID);
    return tap_done();
}
