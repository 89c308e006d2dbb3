/* SPDX-License-Identifier: Apache-2.0 */
/* What several processes share: segments, semaphores, queues, terminals. */
#include "mem.h"

#include <mqueue.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

static int tick[2]; /* a byte from a child that has come so far */

static void say(void)
{
    need(write(tick[1], "t", 1) == 1, "write");
}

static void hear(void)
{
    char c;
    need(read(tick[0], &c, 1) == 1, "read");
}

static pid_t start(void (*fn)(void *), void *arg)
{
    pid_t pid = fork();
    need(pid >= 0, "fork");
    if (pid == 0) {
        fn(arg);
        _exit(0);
    }
    return pid;
}

static int end_of(pid_t pid)
{
    int status = -1;
    need(waitpid(pid, &status, 0) == pid, "waitpid");
    return status;
}

/* Until the process sleeps in a system call, as its stat says. */
static void wait_asleep(pid_t pid)
{
    char path[64], line[256], *p;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    for (;;) {
        int fd = open(path, O_RDONLY);
        ssize_t n = read(fd, line, sizeof line - 1);
        need(n > 0, "stat");
        close(fd);
        line[n] = 0;
        p = strrchr(line, ')');
        if (p && p[2] == 'S')
            return;
        sched_yield();
    }
}

static long attaches(int id)
{
    struct shmid_ds ds;
    return shmctl(id, IPC_STAT, &ds) == 0 ? (long) ds.shm_nattch : -1;
}

static void segment_child(void *at)
{
    char *p = at;
    p[1] = p[0] + 1;
    say();
    while (__atomic_load_n(&p[2], __ATOMIC_ACQUIRE) != 'g')
        sched_yield();
    if (shmdt(p) == 0 && access_of(p)[0] == '-')
        say();
    pause();
}

static void attach_child(void *id)
{
    char *p = shmat(*(int *) id, NULL, 0);
    p[4] = 'c';
    say();
    pause();
}

static void exec_child(void *at)
{
    (void) at;
    execl("/proc/self/exe", "self", "exec", NULL);
    _exit(9);
}

static void test_segment(void)
{
    int id = shmget(IPC_PRIVATE, 4 * PAGE, IPC_CREAT | 0600);
    char *p = shmat(id, NULL, 0), *gone = shmat(id, NULL, 0);
    need(GOOD(p) && GOOD(gone), "shmat");
    p[0] = 'a';
    pid_t pid = start(segment_child, p);
    hear();
    is(p[1], 'b', "segment: the child's store is seen");
    is(attaches(id), 4, "segment: the child counts");
    __atomic_store_n(&p[2], 'g', __ATOMIC_RELEASE);
    hear();
    is(attaches(id), 3, "segment: the child has detached one");
    kill(pid, SIGKILL);
    end_of(pid);
    is(attaches(id), 2, "segment: and ended");
    is(sys_madvise(gone, 4 * PAGE, MADV_DONTFORK), 0, "segment: not forked");
    pid = start(attach_child, &id);
    hear();
    is(attaches(id), 4, "segment: a child has one, and its own");
    is(p[4], 'c', "segment: which is the same memory");
    kill(pid, SIGKILL);
    end_of(pid);
    is(attaches(id), 2, "segment: those of the parent");
    pid = start(exec_child, NULL);
    hear();
    is(attaches(id), 2, "segment: none is left by exec");
    kill(pid, SIGKILL);
    end_of(pid);
    is(shmctl(id, IPC_RMID, NULL), 0, "segment: removed");
    pid = start(segment_child, p);
    p[2] = 0;
    hear();
    need(shmdt(p) == 0 && shmdt(gone) == 0, "shmdt");
    is(attaches(id), 1, "segment: the child alone");
    kill(pid, SIGKILL);
    end_of(pid);
    fails(shmctl(id, IPC_STAT, NULL), EINVAL, "segment: gone with it");
}

static int set;

static int sem(int num, int op, int flags)
{
    struct sembuf b = {num, op, flags};
    return semop(set, &b, 1) ? errno : 0;
}

static void undo_child(void *x)
{
    (void) x;
    sem(0, 5, SEM_UNDO);
    sem(1, 1, 0);
}

static void wait_child(void *num)
{
    _exit(sem((int) (long) num, -1, 0));
}

static void nothing(int sig)
{
    (void) sig;
}

static void signal_child(void *x)
{
    struct sigaction sa = {.sa_handler = nothing, .sa_flags = SA_RESTART};
    (void) x;
    sigaction(SIGUSR1, &sa, NULL);
    say();
    _exit(sem(2, -1, 0));
}

static void test_sem(void)
{
    set = semget(IPC_PRIVATE, 3, IPC_CREAT | 0600);
    need(set >= 0, "semget");
    pid_t pid = start(undo_child, NULL);
    is(end_of(pid), 0, "sem: a child has ended");
    is(semctl(set, 0, GETVAL), 0, "sem: undone");
    is(semctl(set, 1, GETVAL), 1, "sem: not undone");
    is(semctl(set, 1, GETPID), pid, "sem: its doing");
    pid = start(wait_child, (void *) 2);
    wait_asleep(pid);
    is(semctl(set, 2, GETNCNT), 1, "sem: one waits");
    is(sem(2, 1, 0), 0, "sem: given");
    is(end_of(pid), 0, "sem: is awake");
    pid = start(signal_child, NULL);
    hear();
    wait_asleep(pid);
    kill(pid, SIGUSR1);
    is(WEXITSTATUS(end_of(pid)), EINTR, "sem: a signal ends the wait");
    pid = start(wait_child, (void *) 2);
    wait_asleep(pid);
    is(semctl(set, 0, IPC_RMID), 0, "sem: removed");
    is(WEXITSTATUS(end_of(pid)), EIDRM, "sem: the waiter is told");
}

static void receiver(void *id)
{
    struct {
        long type;
        char text[32];
    } m;
    ssize_t n = msgrcv(*(int *) id, &m, sizeof m.text, 7, 0);
    _exit(n < 0 ? errno : n);
}

static void test_msg(void)
{
    struct {
        long type;
        char text[32];
    } m = {7, "text"};
    int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    pid_t pid = start(receiver, &id);
    wait_asleep(pid);
    is(msgsnd(id, &m, 4, 0), 0, "msg: sent to a waiter");
    is(WEXITSTATUS(end_of(pid)), 4, "msg: has it");
    pid = start(receiver, &id);
    wait_asleep(pid);
    is(msgctl(id, IPC_RMID, NULL), 0, "msg: removed");
    is(WEXITSTATUS(end_of(pid)), EIDRM, "msg: the waiter is told");
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int notified;

static void on_event(union sigval v)
{
    pthread_mutex_lock(&mutex);
    notified = v.sival_int;
    pthread_cond_signal(&cond);
    pthread_mutex_unlock(&mutex);
}

static int wait_event(void)
{
    pthread_mutex_lock(&mutex);
    while (!notified)
        pthread_cond_wait(&cond, &mutex);
    int got = notified;
    notified = 0;
    pthread_mutex_unlock(&mutex);
    return got;
}

/* SIGEV_THREAD, as the C library makes it. */
static void test_events(void)
{
    struct sigevent ev = {.sigev_notify = SIGEV_THREAD,
                          .sigev_notify_function = on_event};
    struct itimerspec in = {.it_value = {0, 1000000}};
    timer_t timer;
    ev.sigev_value.sival_int = 11;
    is(timer_create(CLOCK_MONOTONIC, &ev, &timer), 0, "events: timer");
    is(timer_settime(timer, 0, &in, NULL), 0, "events: armed");
    is(wait_event(), 11, "events: a thread was told");
    is(timer_delete(timer), 0, "events: deleted");
    struct mq_attr attr = {.mq_maxmsg = 2, .mq_msgsize = 8};
    mq_unlink("/guest-events");
    mqd_t q = mq_open("/guest-events", O_RDWR | O_CREAT, 0600, &attr);
    if (q == (mqd_t) -1) {
        tap_skip("events: queue", "no POSIX message queues in this kernel");
        return;
    }
    ev.sigev_value.sival_int = 22;
    is(mq_notify(q, &ev), 0, "events: queue");
    is(mq_send(q, "m", 1, 0), 0, "events: sent");
    is(wait_event(), 22, "events: a thread was told");
    mq_close(q);
    mq_unlink("/guest-events");
}

static void mapper(void *fd)
{
    char *p = sys_mmap(NULL, PAGE, RW, MAP_SHARED, *(int *) fd, 0);
    p[0] = 'm';
    say();
    pause();
}

static void test_seal(void)
{
    int fd = memfd_create("shared", MFD_ALLOW_SEALING);
    need(fd >= 0 && ftruncate(fd, PAGE) == 0, "memfd_create");
    pid_t pid = start(mapper, &fd);
    hear();
    is(file_byte(fd, 0), 'm', "seal: a child's mapping");
    fails(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), EBUSY, "seal: is in the way");
    kill(pid, SIGKILL);
    end_of(pid);
    is(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), 0, "seal: until it ends");
    close(fd);
}

static int master;

static void on_terminal(void *slave)
{
    int s = *(int *) slave;
    /* What a shell starts in the background ignores it. */
    need(signal(SIGINT, SIG_DFL) != SIG_ERR, "SIGINT");
    close(master);
    need(setsid() == getpid(), "setsid");
    need(ioctl(s, TIOCSCTTY, 0) == 0, "TIOCSCTTY");
    say();
    pause();
}

static void on_winch(int sig)
{
    (void) sig;
    if (write(tick[1], "t", 1) != 1)
        _exit(97);
}

static void winch_child(void *slave)
{
    signal(SIGWINCH, on_winch);
    on_terminal(slave);
}

static void test_terminal(void)
{
    unsigned n, zero = 0;
    char name[64];
    int status;
    master = open("/dev/ptmx", O_RDWR | O_NOCTTY);
    need(master >= 0 && ioctl(master, TIOCSPTLCK, &zero) == 0 &&
             ioctl(master, TIOCGPTN, &n) == 0,
         "ptmx");
    snprintf(name, sizeof name, "/dev/pts/%u", n);
    int s = open(name, O_RDWR | O_NOCTTY);
    need(s >= 0, name);
    pid_t pid = start(on_terminal, &s);
    hear();
    pid_t group = -1;
    ok(ioctl(master, TIOCGPGRP, &group) == 0 && group == pid,
       "terminal: the child's");
    is(write(master, "\003", 1), 1, "terminal: an interrupt typed");
    status = end_of(pid);
    ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT,
       "terminal: ends the child");
    pid = start(winch_child, &s);
    hear();
    struct winsize w = {.ws_row = 5, .ws_col = 6};
    is(ioctl(master, TIOCSWINSZ, &w), 0, "terminal: another size");
    hear();
    ok(true, "terminal: the child is told");
    kill(pid, SIGKILL);
    end_of(pid);
    close(s);
    pid = fork();
    if (pid == 0) {
        s = open(name, O_RDWR | O_NOCTTY);
        on_terminal(&s);
    }
    hear();
    close(master);
    status = end_of(pid);
    ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGHUP, "terminal: hung up");
}

static void orphan_maker(void *death)
{
    pid_t self = getpid();
    if (fork() == 0) {
        if (death)
            prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        if (getppid() != self)
            _exit(0);
        say();
        pause();
        _exit(1);
    }
    hear();
}

static void test_orphans(void)
{
    int status;
    is(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0, "orphans: come to us");
    end_of(start(orphan_maker, (void *) 1));
    pid_t pid = wait(&status);
    ok(pid > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL,
       "orphans: one dies with its parent");
    struct ucred cred;
    socklen_t len = sizeof cred;
    int pair[2];
    need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "socketpair");
    ok(getsockopt(pair[0], SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 &&
           cred.pid == getpid(),
       "orphans: who made the pair");
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "exec") == 0) {
        need(write(6, "t", 1) == 1, "write after exec");
        pause();
        return 1;
    }
    need(pipe(tick) == 0, "pipe");
    need(dup2(tick[1], 6) == 6, "dup2");
    probe_open();
    test_segment();
    test_sem();
    test_msg();
    test_seal();
    test_terminal();
    test_events();
    test_orphans();
    return tap_done();
}
