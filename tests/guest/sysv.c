/* SPDX-License-Identifier: Apache-2.0 */
/* System V semaphores and messages, POSIX message queues. */
#include "mem.h"

#include <mqueue.h>
#include <poll.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <time.h>

static long sys_semctl(int id, int num, int cmd, void *arg)
{
    return syscall(SYS_semctl, id, num, cmd, arg);
}

static long sys_msgctl(int id, int cmd, void *arg)
{
    return syscall(SYS_msgctl, id, cmd, arg);
}

static long sem_op(int id, int num, int op, int flags)
{
    struct sembuf b = {num, op, flags};
    return semop(id, &b, 1);
}

static void test_sem(void)
{
    struct semid_ds ds;
    struct seminfo info;
    struct timespec zero = {0, 1000}, bad = {0, -1};
    unsigned short all[3] = {1, 2, 3}, got[3] = {0};
    int id = semget(IPC_PRIVATE, 3, IPC_CREAT | 0600);
    need(id >= 0, "semget");
    is(sys_semctl(id, 0, SETALL, all), 0, "sem: SETALL");
    ok(sys_semctl(id, 0, GETALL, got) == 0 && memcmp(all, got, 6) == 0,
       "sem: GETALL");
    is(sys_semctl(id, 1, GETVAL, NULL), 2, "sem: GETVAL");
    is(sys_semctl(id, 1, SETVAL, (void *) 7), 0, "sem: SETVAL");
    is(sys_semctl(id, 1, GETVAL, NULL), 7, "sem: is set");
    is(sys_semctl(id, 1, GETPID, NULL), getpid(), "sem: GETPID");
    is(sys_semctl(id, 1, GETNCNT, NULL), 0, "sem: GETNCNT");
    is(sys_semctl(id, 1, GETZCNT, NULL), 0, "sem: GETZCNT");
    fails(sys_semctl(id, 3, GETVAL, NULL), EINVAL, "sem: number too large");
    fails(sys_semctl(id, 0, SETVAL, (void *) 32768), ERANGE, "sem: value");
    fails(sys_semctl(id, 0, SETALL, BAD_PTR), EFAULT, "sem: SETALL of nowhere");
    fails(sys_semctl(id, 0, SETALL, NO_PAGE), EFAULT, "sem: SETALL of a hole");
    fails(sys_semctl(id, 0, GETALL, BAD_PTR), EFAULT, "sem: GETALL to nowhere");
    fails(sys_semctl(-1, 0, GETALL, BAD_PTR), EINVAL, "sem: GETALL of none");
    fails(sys_semctl(-1, 0, IPC_SET, BAD_PTR), EINVAL, "sem: SET of none");
    fails(sys_semctl(id, 0, IPC_SET, BAD_PTR), EFAULT, "sem: SET of nowhere");
    fails(sys_semctl(id, 0, IPC_STAT, BAD_PTR), EFAULT, "sem: STAT to nowhere");
    fails(sys_semctl(id, 0, 77, NULL), EINVAL, "sem: command");
    is(sem_op(id, 1, -7, 0), 0, "sem: taken");
    fails(sem_op(id, 1, -1, IPC_NOWAIT), EAGAIN, "sem: would block");
    struct sembuf down = {1, -1, 0};
    fails(semtimedop(id, &down, 1, &zero), EAGAIN, "sem: timeout");
    fails(semtimedop(id, &down, 1, &bad), EINVAL, "sem: bad timeout");
    fails(syscall(SYS_semtimedop, id, &down, 1, BAD_PTR), EFAULT,
          "sem: timeout of nowhere");
    fails(syscall(SYS_semtimedop, id, NO_PAGE, 1, NULL), EFAULT,
          "sem: operations of nowhere");
    fails(semop(id, &down, 0), EINVAL, "sem: no operation");
    fails(semop(id, NO_PAGE, 100000), E2BIG, "sem: too many");
    fails(sem_op(id, 3, 1, 0), EFBIG, "sem: no such number");
    fails(sem_op(id, 0, 32767, 0), ERANGE, "sem: beyond the maximum");
    is(sem_op(id, 0, 1, SEM_UNDO), 0, "sem: UNDO");
    is(sys_semctl(id, 0, GETVAL, NULL), 2, "sem: counts");
    struct sembuf two[2] = {{0, -2, 0}, {1, -1, IPC_NOWAIT}};
    fails(semop(id, two, 2), EAGAIN, "sem: all or none");
    is(sys_semctl(id, 0, GETVAL, NULL), 2, "sem: none");
    ok(sys_semctl(id, 0, IPC_STAT, &ds) == 0 && ds.sem_nsems == 3 &&
           ds.sem_otime != 0 && (ds.sem_perm.mode & 0777) == 0600,
       "sem: STAT");
    ds.sem_perm.mode = 0640;
    ok(sys_semctl(id, 0, IPC_SET, &ds) == 0 &&
           sys_semctl(id, 0, IPC_STAT, &ds) == 0 &&
           (ds.sem_perm.mode & 0777) == 0640,
       "sem: SET");
    long last = sys_semctl(0, 0, SEM_INFO, &info);
    ok(last >= 0 && info.semusz >= 1 && info.semmsl > 0, "sem: SEM_INFO");
    is(sys_semctl(0, 0, IPC_INFO, &info), last, "sem: INFO");
    bool found = false;
    for (int i = 0; i <= last; i++)
        found |= sys_semctl(i, 0, SEM_STAT, &ds) == id && ds.sem_nsems == 3;
    ok(found, "sem: SEM_STAT");
    found = false;
    for (int i = 0; i <= last; i++)
        found |= sys_semctl(i, 0, 20 /* SEM_STAT_ANY */, &ds) == id;
    ok(found, "sem: SEM_STAT_ANY");
    is(sys_semctl(id, 0, IPC_RMID, NULL), 0, "sem: RMID");
    fails(sem_op(id, 0, 1, 0), EINVAL, "sem: gone");
}

/* A set that may be written and not read. */
static void test_sem_access(void)
{
    unsigned short all[2] = {4, 5}, got[2] = {0};
    int id = semget(IPC_PRIVATE, 2, IPC_CREAT | 0200);
    need(id >= 0, "semget");
    need(setegid(12345) == 0 && seteuid(12345) == 0, "seteuid");
    long set = sys_semctl(id, 0, SETALL, all);
    int err = errno;
    need(seteuid(0) == 0 && setegid(0) == 0, "seteuid");
    errno = err;
    fails(set, EACCES, "access: not for others");
    struct semid_ds ds;
    need(sys_semctl(id, 0, IPC_STAT, &ds) == 0, "IPC_STAT");
    ds.sem_perm.mode = 0002;
    need(sys_semctl(id, 0, IPC_SET, &ds) == 0, "IPC_SET");
    need(setegid(12345) == 0 && seteuid(12345) == 0, "seteuid");
    set = sys_semctl(id, 0, SETALL, all);
    long get = sys_semctl(id, 0, GETALL, got);
    err = errno;
    need(seteuid(0) == 0 && setegid(0) == 0, "seteuid");
    is(set, 0, "access: written");
    errno = err;
    fails(get, EACCES, "access: not read");
    ok(sys_semctl(id, 0, GETALL, got) == 0 && got[1] == 5, "access: is there");
    sys_semctl(id, 0, IPC_RMID, NULL);
}

static struct {
    long type;
    char text[64];
} msg;

static void test_msg_control(int id)
{
    struct msqid_ds ds;
    struct msginfo info;
    need(sys_msgctl(id, IPC_STAT, &ds) == 0, "IPC_STAT");
    ds.msg_qbytes = 100;
    ok(sys_msgctl(id, IPC_SET, &ds) == 0 &&
           sys_msgctl(id, IPC_STAT, &ds) == 0 && ds.msg_qbytes == 100,
       "msg: SET");
    fails(msgsnd(id, &msg, 64, IPC_NOWAIT) == 0
              ? msgsnd(id, &msg, 64, IPC_NOWAIT)
              : 0,
          EAGAIN, "msg: full");
    fails(sys_msgctl(-1, IPC_SET, BAD_PTR), EINVAL, "msg: SET of none");
    fails(sys_msgctl(id, IPC_SET, BAD_PTR), EFAULT, "msg: SET of nowhere");
    fails(sys_msgctl(id, IPC_STAT, BAD_PTR), EFAULT, "msg: STAT to nowhere");
    fails(sys_msgctl(id, 77, NULL), EINVAL, "msg: command");
    long last = sys_msgctl(0, MSG_INFO, &info);
    ok(last >= 0 && info.msgpool >= 1, "msg: MSG_INFO");
    is(sys_msgctl(0, IPC_INFO, &info), last, "msg: INFO");
    bool found = false;
    for (int i = 0; i <= last; i++)
        found |= sys_msgctl(i, MSG_STAT, &ds) == id && ds.msg_qbytes == 100;
    ok(found, "msg: MSG_STAT");
    is(sys_msgctl(id, IPC_RMID, NULL), 0, "msg: RMID");
    fails(msgsnd(id, &msg, 7, 0), EINVAL, "msg: gone");
}

static void test_msg(void)
{
    struct msqid_ds ds;
    int id = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    need(id >= 0, "msgget");
    for (int i = 1; i <= 3; i++) {
        msg.type = i;
        snprintf(msg.text, sizeof msg.text, "text %d", i);
        need(msgsnd(id, &msg, 7, 0) == 0, "msgsnd");
    }
    ok(sys_msgctl(id, IPC_STAT, &ds) == 0 && ds.msg_qnum == 3 &&
           ds.__msg_cbytes == 21 && ds.msg_lspid == getpid(),
       "msg: STAT");
    is(msgrcv(id, &msg, 64, 2, 0), 7, "msg: of a type");
    ok(msg.type == 2 && strcmp(msg.text, "text 2") == 0, "msg: that one");
    is(msgrcv(id, &msg, 64, 1, MSG_EXCEPT), 7, "msg: of another");
    is(msg.type, 3, "msg: not that one");
    fails(msgrcv(id, &msg, 3, 0, 0), E2BIG, "msg: too long");
    is(msgrcv(id, &msg, 3, 0, MSG_NOERROR), 3, "msg: cut off");
    fails(msgrcv(id, &msg, 64, 0, IPC_NOWAIT), ENOMSG, "msg: none");
    fails(msgrcv(-1, &msg, 64, 0, IPC_NOWAIT), EINVAL, "msg: of none");
    fails(syscall(SYS_msgrcv, id, &msg, -1L, 0, IPC_NOWAIT), EINVAL,
          "msg: negative size");
    msg.type = 0;
    fails(msgsnd(id, &msg, 7, 0), EINVAL, "msg: no type");
    msg.type = 1;
    fails(syscall(SYS_msgsnd, id, &msg, -1L, 0), EINVAL, "msg: size");
    fails(syscall(SYS_msgsnd, id, &msg, 1 << 20, 0), EINVAL,
          "msg: beyond the maximum");
    fails(syscall(SYS_msgsnd, id, BAD_PTR, 7, 0), EFAULT, "msg: of nowhere");
    fails(syscall(SYS_msgsnd, -1, BAD_PTR, 7, 0), EFAULT,
          "msg: of nowhere to none");
    /* The type on the last bytes of a page, the text beyond. */
    char *edge = map_hole(2 * PAGE);
    need(sys_mmap(edge, PAGE, RW, ANON | MAP_FIXED, -1, 0) == edge, "mmap");
    long one = 1, zero = 0;
    memcpy(edge + PAGE - 8, &one, 8);
    fails(syscall(SYS_msgsnd, id, edge + PAGE - 8, 7, 0), EFAULT,
          "msg: text of nowhere");
    is(syscall(SYS_msgsnd, id, edge + PAGE - 8, 0, 0), 0, "msg: no text");
    fails(syscall(SYS_msgsnd, id, edge + PAGE - 8, 1 << 20, 0), EINVAL,
          "msg: text of nowhere beyond the maximum");
    memcpy(edge + PAGE - 8, &zero, 8);
    fails(syscall(SYS_msgsnd, id, edge + PAGE - 8, 7, 0), EINVAL,
          "msg: text of nowhere without a type");
    is(msgrcv(id, &msg, 64, 0, 0), 0, "msg: received");
    msg.type = 1;
    need(msgsnd(id, &msg, 7, 0) == 0, "msgsnd");
    fails(syscall(SYS_msgrcv, id, edge + PAGE - 8, 64, 0, 0), EFAULT,
          "msg: received to nowhere");
    fails(msgrcv(id, &msg, 64, 0, IPC_NOWAIT), ENOMSG, "msg: is lost then");
    need(msgsnd(id, &msg, 7, 0) == 0, "msgsnd");
    fails(msgrcv(id, &msg, 64, 0, MSG_COPY), EINVAL, "msg: copy that waits");
    long copied = msgrcv(id, &msg, 64, 0, MSG_COPY | IPC_NOWAIT);
    ok(copied == 7 || errno == ENOSYS, "msg: copy");
    ok(sys_msgctl(id, IPC_STAT, &ds) == 0 && ds.msg_qnum == 1, "msg: stays");
    test_msg_control(id);
}

static long sys_mq_open(const char *name, int flags, mode_t mode, void *attr)
{
    return syscall(SYS_mq_open, name, flags, mode, attr);
}

static void test_mq_signal(int q)
{
    char buf[64];
    struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
    ev.sigev_value.sival_int = 77;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    sigprocmask(SIG_BLOCK, &set, NULL);
    is(syscall(SYS_mq_notify, q, &ev), 0, "mq: notify by a signal");
    fails(syscall(SYS_mq_notify, q, &ev), EBUSY, "mq: one only");
    is(syscall(SYS_mq_timedsend, q, "x", 1, 1, NULL), 0, "mq: sent");
    siginfo_t si;
    is(sigwaitinfo(&set, &si), SIGUSR2, "mq: the signal");
    ok(si.si_code == SI_MESGQ && si.si_value.sival_int == 77 &&
           si.si_pid == getpid(),
       "mq: what it says");
    need(syscall(SYS_mq_timedreceive, q, buf, 64, NULL, NULL) == 1, "receive");
    ev.sigev_notify = SIGEV_NONE;
    is(syscall(SYS_mq_notify, q, &ev), 0, "mq: notify by nothing");
    is(syscall(SYS_mq_notify, q, NULL), 0, "mq: no more");
    ev.sigev_notify = SIGEV_SIGNAL;
    ev.sigev_signo = 65;
    fails(syscall(SYS_mq_notify, q, &ev), EINVAL, "mq: bad signal");
    ev.sigev_notify = 9;
    fails(syscall(SYS_mq_notify, q, &ev), EINVAL, "mq: bad way");
    fails(syscall(SYS_mq_notify, q, BAD_PTR), EFAULT, "mq: event of nowhere");
    fails(syscall(SYS_mq_notify, 999, BAD_PTR), EFAULT,
          "mq: event of nowhere for none");
}

/* SIGEV_THREAD: 32 bytes to a netlink socket, the last one says why. */
static void test_mq_cookie(int q)
{
    struct sigevent ev = {.sigev_notify = SIGEV_THREAD};
    char buf[64];
    int s = socket(AF_NETLINK, SOCK_RAW, 0);
    need(s >= 0, "netlink socket");
    char cookie[32] = "a cookie of thirty-one letters";
    ev.sigev_signo = s;
    ev.sigev_value.sival_ptr = cookie;
    is(syscall(SYS_mq_notify, q, &ev), 0, "mq: notify by a cookie");
    is(syscall(SYS_mq_timedsend, q, "x", 1, 1, NULL), 0, "mq: sent");
    char answer[32];
    is(recv(s, answer, sizeof answer, 0), 32, "mq: the cookie");
    ok(memcmp(answer, cookie, 31) == 0 && answer[31] == 1, "mq: came back");
    need(syscall(SYS_mq_timedreceive, q, buf, 64, NULL, NULL) == 1, "receive");
    need(syscall(SYS_mq_notify, q, &ev) == 0, "mq_notify");
    is(syscall(SYS_mq_notify, q, NULL), 0, "mq: no more");
    is(recv(s, answer, sizeof answer, 0), 32, "mq: the cookie of removal");
    is(answer[31], 2, "mq: says so");
    ev.sigev_value.sival_ptr = BAD_PTR;
    fails(syscall(SYS_mq_notify, q, &ev), EFAULT, "mq: cookie of nowhere");
    ev.sigev_value.sival_ptr = cookie;
    ev.sigev_signo = 999;
    fails(syscall(SYS_mq_notify, q, &ev), EBADF, "mq: cookie to none");
    close(s);
}

static void test_mq(void)
{
    struct mq_attr attr = {.mq_maxmsg = 4, .mq_msgsize = 32}, got;
    struct timespec past = {1, 0}, bad = {0, 2000000000};
    char buf[64];
    unsigned prio;
    syscall(SYS_mq_unlink, "guest-test");
    fails(sys_mq_open("guest-test", O_RDWR, 0, NULL), ENOENT, "mq: none");
    int q = sys_mq_open("guest-test", O_RDWR | O_CREAT | O_EXCL, 0600, &attr);
    if (q == -1 && errno == ENOSYS) {
        tap_skip("mq", "no POSIX message queues in this kernel");
        return;
    }
    ok(q >= 0, "mq: made");
    fails(sys_mq_open("guest-test", O_RDWR | O_CREAT | O_EXCL, 0600, &attr),
          EEXIST, "mq: once");
    fails(sys_mq_open("a/b", O_RDWR | O_CREAT, 0600, NULL), EACCES,
          "mq: no directories");
    fails(sys_mq_open(BAD_PTR, O_RDWR, 0, NULL), EFAULT, "mq: name");
    fails(sys_mq_open("guest-test", O_RDWR | O_CREAT, 0600, BAD_PTR), EFAULT,
          "mq: attributes of nowhere");
    ok(syscall(SYS_mq_getsetattr, q, NULL, &got) == 0 && got.mq_maxmsg == 4 &&
           got.mq_msgsize == 32 && got.mq_curmsgs == 0,
       "mq: attributes");
    is(syscall(SYS_mq_timedsend, q, "low", 3, 1, NULL), 0, "mq: sent");
    is(syscall(SYS_mq_timedsend, q, "high", 4, 9, NULL), 0, "mq: sent");
    fails(syscall(SYS_mq_timedsend, q, buf, 33, 1, NULL), EMSGSIZE,
          "mq: too long");
    fails(syscall(SYS_mq_timedsend, q, buf, 3, 40000, NULL), EINVAL,
          "mq: priority");
    fails(syscall(SYS_mq_timedsend, q, BAD_PTR, 3, 1, NULL), EFAULT,
          "mq: of nowhere");
    fails(syscall(SYS_mq_timedreceive, q, buf, 31, NULL, NULL), EMSGSIZE,
          "mq: buffer too small");
    is(syscall(SYS_mq_timedreceive, q, buf, 64, &prio, NULL), 4,
       "mq: received");
    ok(memcmp(buf, "high", 4) == 0 && prio == 9, "mq: the most urgent");
    fails(syscall(SYS_mq_timedreceive, q, buf, 64, BAD_PTR, NULL), EFAULT,
          "mq: priority to nowhere");
    fails(syscall(SYS_mq_timedreceive, q, buf, 64, &prio, &past), ETIMEDOUT,
          "mq: timeout");
    fails(syscall(SYS_mq_timedreceive, q, buf, 64, &prio, &bad), EINVAL,
          "mq: bad timeout");
    struct pollfd p = {.fd = q, .events = POLLIN | POLLOUT};
    ok(poll(&p, 1, 0) == 1 && p.revents == POLLOUT, "mq: poll");
    test_mq_signal(q);
    test_mq_cookie(q);
    is(syscall(SYS_mq_unlink, "guest-test"), 0, "mq: unlinked");
    fails(syscall(SYS_mq_unlink, "guest-test"), ENOENT, "mq: once");
    is(close(q), 0, "mq: closed");
}

int main(void)
{
    test_sem();
    test_sem_access();
    test_msg();
    test_mq();
    return tap_done();
}
