/* SPDX-License-Identifier: Apache-2.0 */
/* Which error comes first when several arguments are wrong. */
#include "mem.h"

#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#define KERNEL ((void *) 0xffff000000000000UL)
#define HUGE   0x7fffffffffffffffUL

static int file, opath, pipes[2], sock;
static char *none;

static void test_read_write(void)
{
    char buf[16];
    struct iovec two[2] = {{buf, 1}, {KERNEL, 1}}, minus = {buf, -1UL};

    fails(syscall(SYS_read, -1, none, HUGE), EBADF, "read: descriptor first");
    fails(syscall(SYS_read, file, buf, -1UL), EFAULT, "read: -1 bytes");
    fails(syscall(SYS_read, file, buf, HUGE), EFAULT, "read: half of all");
    fails(syscall(SYS_pread64, sock, none, HUGE, 0L), ESPIPE,
          "pread64: no position in a socket");
    fails(syscall(SYS_pread64, file, none, 1L << 21, -1L), EINVAL,
          "pread64: position first");
    is(syscall(SYS_pread64, file, none, 1L << 21, 100L), 0,
       "pread64: at the end no buffer is needed");
    fails(syscall(SYS_write, -1, none, 1L << 21), EBADF,
          "write: descriptor first");
    fails(syscall(SYS_readv, file, two, 2), EFAULT,
          "readv: one kernel address spoils it");
    is(lseek(file, 0, SEEK_CUR), 0, "readv: nothing was read");
    fails(syscall(SYS_writev, opath, &minus, 1), EBADF, "writev: O_PATH first");
    fails(syscall(SYS_writev, file, &minus, 1), EINVAL, "writev: -1 bytes");
    fails(syscall(SYS_readv, file, none, 1025), EINVAL, "readv: 1025");
    is(syscall(SYS_readv, file, none, 1UL << 48), 0,
       "readv: the count has 32 bits");
    fails(syscall(SYS_preadv, sock, none, 5000, 0, 0), ESPIPE,
          "preadv: no position in a socket");
    fails(syscall(SYS_preadv, -1, none, 1, -1L, 0), EINVAL,
          "preadv: position before all");
}

static void test_sockets(void)
{
    char buf[16] = "";
    struct sockaddr addr = {AF_UNIX, ""};

    fails(syscall(SYS_sendto, -1, KERNEL, 1, 0, 0, 0), EFAULT,
          "sendto: kernel address before all");
    fails(syscall(SYS_sendto, -1, buf, 1, 0, &addr, 1000), EBADF,
          "sendto: descriptor before address");
    fails(syscall(SYS_sendto, file, buf, 1, 0, &addr, 1000), ENOTSOCK,
          "sendto: file before address");
    fails(syscall(SYS_sendto, sock, buf, 1, 0, &addr, 1000), EINVAL,
          "sendto: long address");
    fails(syscall(SYS_sendto, sock, buf, 1, 0, none, 16), EFAULT,
          "sendto: no address there");
    fails(syscall(SYS_sendmsg, -1, none, 0), EBADF, "sendmsg: descriptor");
    fails(syscall(SYS_recvmsg, file, none, 0), ENOTSOCK, "recvmsg: file");
    fails(syscall(SYS_sendmmsg, -1, none, 0, 0), EBADF, "sendmmsg: of none");
    fails(syscall(SYS_recvmmsg, file, none, 5, 0, 0), ENOTSOCK,
          "recvmmsg: file");
}

static void test_paths(void)
{
    fails(syscall(SYS_newfstatat, AT_FDCWD, none, none, 0x12345678), EINVAL,
          "newfstatat: flags first");
    fails(syscall(SYS_statx, AT_FDCWD, none, 0, 1U << 31, none), EINVAL,
          "statx: mask first");
    fails(syscall(SYS_openat, AT_FDCWD, none, O_RDONLY), EFAULT,
          "openat: no path there");
    fails(syscall(SYS_msgsnd, -1, KERNEL, -1UL, 0), EFAULT,
          "msgsnd: type first");
}

/* A length that wraps around: source and target overlap all the same. */
static void test_remap(void)
{
    char *p = map_rw(4 * PAGE);

    p[0] = 'a';
    fails(
        sys_mremap(p, -PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p + PAGE),
        EINVAL, "mremap: old length wraps");
    is(p[0], 'a', "mremap: source unchanged");
    fails(sys_mremap(p, -2 * PAGE, PAGE, 0, NULL), EINVAL,
          "mremap: shrink of a length that wraps");
    fails(sys_mremap(p, PAGE, -PAGE, MREMAP_MAYMOVE, NULL), ENOMEM,
          "mremap: growth beyond all");
    is(p[0], 'a', "mremap: still unchanged");
    sys_munmap(p, 4 * PAGE);
}

int main(void)
{
    char name[] = "/tmp/order-XXXXXX";
    int pair[2];

    file = mkstemp(name);
    need(file >= 0 && write(file, "text", 4) == 4, "a file");
    lseek(file, 0, SEEK_SET);
    opath = open(name, O_PATH);
    unlink(name);
    need(opath >= 0 && pipe(pipes) == 0, "descriptors");
    need(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0, "sockets");
    sock = pair[0];
    none = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    need(none != MAP_FAILED, "a page of nothing");
    test_read_write();
    test_sockets();
    test_paths();
    test_remap();
    return tap_done();
}
