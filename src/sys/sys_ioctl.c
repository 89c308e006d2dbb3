/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ioctl: what the argument of a request is, from a table of requests. Nothing
 * is guessed from a number: the kernel would follow a pointer inside a
 * structure, or write past it, in elfuse's own address space. An unknown
 * request is ENOTTY.
 */
#include <linux/blkpg.h>
#include <linux/cdrom.h>
#include <linux/fd.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/hdreg.h>
#include <linux/if_tun.h>
#include <linux/kd.h>
#include <linux/loop.h>
#include <linux/nsfs.h>
#include <linux/random.h>
#include <linux/rtc.h>
#include <linux/serial.h>
#include <linux/sockios.h>
#include <linux/vt.h>
#include <linux/watchdog.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <net/route.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>

#undef BLOCK_SIZE /* of the first file systems; abi/layout.h has its own */
#include "sys/call.h"

enum { VALUE, IN, OUT, INOUT, REFUSED };

/* Kernel sizes, where libc's structure differs. */
#define KTERMIOS           36
#define KTERMIOS2          44
#define KTERMIO            18
#define IFREQ              40
#define LOOP_CONFIGURE_CMD 0x4C0A /* struct loop_config: since Linux 5.8 */

/* _IOR('T', 0x2A, struct termios2), which libc's headers do not have. */
#define TCGETS2_CMD       0x802C542AU
#define IOC_READ_TO_WRITE 0x40000000U /* from _IOR to _IOW */

typedef struct request {
    uint32_t cmd;
    uint8_t dir;
    uint16_t size;
} request_t;

static const request_t requests[] = {
    {TCGETS, OUT, KTERMIOS},
    {TCSETS, IN, KTERMIOS},
    {TCSETSW, IN, KTERMIOS},
    {TCSETSF, IN, KTERMIOS},
    {TCGETA, OUT, KTERMIO},
    {TCSETA, IN, KTERMIO},
    {TCSETAW, IN, KTERMIO},
    {TCSETAF, IN, KTERMIO},
    {TCSBRK, VALUE, 0},
    {TCXONC, VALUE, 0},
    {TCFLSH, VALUE, 0},
    {TCSBRKP, VALUE, 0},
    {TIOCEXCL, VALUE, 0},
    {TIOCNXCL, VALUE, 0},
    {TIOCSCTTY, VALUE, 0},
    {TIOCGPGRP, OUT, 4},
    {TIOCSPGRP, IN, 4},
    {TIOCOUTQ, OUT, 4},
    {TIOCSTI, IN, 1},
    {TIOCGWINSZ, OUT, 8},
    {TIOCSWINSZ, IN, 8},
    {TIOCMGET, OUT, 4},
    {TIOCMBIS, IN, 4},
    {TIOCMBIC, IN, 4},
    {TIOCMSET, IN, 4},
    {TIOCGSOFTCAR, OUT, 4},
    {TIOCSSOFTCAR, IN, 4},
    {FIONREAD, OUT, 4},
    {TIOCCONS, VALUE, 0},
    {TIOCGSERIAL, OUT, sizeof(struct serial_struct)},
    {TIOCSSERIAL, IN, sizeof(struct serial_struct)},
    {TIOCPKT, IN, 4},
    {FIONBIO, IN, 4},
    {TIOCNOTTY, VALUE, 0},
    {TIOCSETD, IN, 4},
    {TIOCGETD, OUT, 4},
    {TIOCSBRK, VALUE, 0},
    {TIOCCBRK, VALUE, 0},
    {TIOCGSID, OUT, 4},
    {TIOCVHANGUP, VALUE, 0},
    {TIOCGPTPEER, VALUE, 0},
    {FIONCLEX, VALUE, 0},
    {FIOCLEX, VALUE, 0},
    {FIOASYNC, IN, 4},
    {FIOQSIZE, OUT, 8},
    {TIOCMIWAIT, VALUE, 0},
    {TIOCGICOUNT, OUT, 80},
    {FIBMAP, INOUT, 4},
    {FIGETBSZ, OUT, 4},
    {FIFREEZE, VALUE, 0},
    {FITHAW, VALUE, 0},
    /* FS_IOC_* say long in their number and take an int. */
    {FS_IOC_GETFLAGS, OUT, 4},
    {FS_IOC_SETFLAGS, IN, 4},
    {FS_IOC_GETVERSION, OUT, 4},
    {FS_IOC_SETVERSION, IN, 4},
    {FICLONE, VALUE, 0},
    {FICLONERANGE, IN, sizeof(struct file_clone_range)},
    {FIDEDUPERANGE, INOUT, sizeof(struct file_dedupe_range)},
    {FS_IOC_FIEMAP, INOUT, sizeof(struct fiemap)},
    {FITRIM, INOUT, sizeof(struct fstrim_range)},
    {FS_IOC_FSGETXATTR, OUT, sizeof(struct fsxattr)},
    {FS_IOC_FSSETXATTR, IN, sizeof(struct fsxattr)},
    {FS_IOC_GETFSLABEL, OUT, FSLABEL_MAX},
    {FS_IOC_SETFSLABEL, IN, FSLABEL_MAX},
    {TCGETS2_CMD, OUT, KTERMIOS2},
    {TCGETS2_CMD + 1 - IOC_READ_TO_WRITE, IN, KTERMIOS2},
    {TCGETS2_CMD + 2 - IOC_READ_TO_WRITE, IN, KTERMIOS2},
    {TCGETS2_CMD + 3 - IOC_READ_TO_WRITE, IN, KTERMIOS2},
    {TIOCGPTN, OUT, 4},
    {TIOCSPTLCK, IN, 4},
    {TIOCGDEV, OUT, 4},
    {TIOCSIG, VALUE, 0},
    {TIOCGPKT, OUT, 4},
    {TIOCGPTLCK, OUT, 4},
    {TIOCGEXCL, OUT, 4},
    {RTC_AIE_ON, VALUE, 0},
    {RTC_AIE_OFF, VALUE, 0},
    {RTC_UIE_ON, VALUE, 0},
    {RTC_UIE_OFF, VALUE, 0},
    {RTC_RD_TIME, OUT, sizeof(struct rtc_time)},
    {RTC_SET_TIME, IN, sizeof(struct rtc_time)},
    {RTC_ALM_READ, OUT, sizeof(struct rtc_time)},
    {RTC_ALM_SET, IN, sizeof(struct rtc_time)},
    {RTC_WKALM_RD, OUT, sizeof(struct rtc_wkalrm)},
    {RTC_WKALM_SET, IN, sizeof(struct rtc_wkalrm)},
    {WDIOC_GETSUPPORT, OUT, sizeof(struct watchdog_info)},
    {WDIOC_GETSTATUS, OUT, 4},
    {WDIOC_GETBOOTSTATUS, OUT, 4},
    {WDIOC_SETOPTIONS, IN, 4},
    {WDIOC_KEEPALIVE, VALUE, 0},
    {WDIOC_SETTIMEOUT, INOUT, 4},
    {WDIOC_GETTIMEOUT, OUT, 4},
    {NS_GET_USERNS, VALUE, 0},
    {NS_GET_PARENT, VALUE, 0},
    {NS_GET_NSTYPE, VALUE, 0},
    {NS_GET_OWNER_UID, OUT, 4},
    {TUNSETIFF, INOUT, IFREQ},
    {TUNSETPERSIST, VALUE, 0},
    {TUNSETOWNER, VALUE, 0},
    {TUNSETGROUP, VALUE, 0},
    {SIOCBRADDBR, IN, IFNAMSIZ},
    {SIOCBRDELBR, IN, IFNAMSIZ},
    {SIOCGIFBR, REFUSED, 0},
    {SIOCSIFBR, REFUSED, 0},
    {BLKROSET, IN, 4},
    {BLKROGET, OUT, 4},
    {BLKRRPART, VALUE, 0},
    {BLKGETSIZE, OUT, 8},
    {BLKFLSBUF, VALUE, 0},
    {BLKRASET, VALUE, 0},
    {BLKRAGET, OUT, 8},
    {BLKFRASET, VALUE, 0},
    {BLKFRAGET, OUT, 8},
    {BLKSECTGET, OUT, 2},
    {BLKSSZGET, OUT, 4},
    {BLKBSZGET, OUT, 4},
    {BLKBSZSET, IN, 4},
    {BLKGETSIZE64, OUT, 8},
    {BLKIOMIN, OUT, 4},
    {BLKIOOPT, OUT, 4},
    {BLKALIGNOFF, OUT, 4},
    {BLKPBSZGET, OUT, 4},
    {BLKDISCARDZEROES, OUT, 4},
    {BLKSECDISCARD, IN, 16},
    {BLKDISCARD, IN, 16},
    {BLKZEROOUT, IN, 16},
    {BLKROTATIONAL, OUT, 2},
    {BLKPG, REFUSED, 0},
    {HDIO_GETGEO, OUT, 16},
    {HDIO_GET_IDENTITY, OUT, 512},
    {LOOP_SET_FD, VALUE, 0},
    {LOOP_CLR_FD, VALUE, 0},
    {LOOP_SET_STATUS, IN, sizeof(struct loop_info)},
    {LOOP_GET_STATUS, OUT, sizeof(struct loop_info)},
    {LOOP_SET_STATUS64, IN, sizeof(struct loop_info64)},
    {LOOP_GET_STATUS64, OUT, sizeof(struct loop_info64)},
    {LOOP_CHANGE_FD, VALUE, 0},
    {LOOP_SET_CAPACITY, VALUE, 0},
    {LOOP_SET_DIRECT_IO, VALUE, 0},
    {LOOP_SET_BLOCK_SIZE, VALUE, 0},
    {LOOP_CONFIGURE_CMD, IN, 304},
    {LOOP_CTL_ADD, VALUE, 0},
    {LOOP_CTL_REMOVE, VALUE, 0},
    {LOOP_CTL_GET_FREE, VALUE, 0},
    {CDROMEJECT, VALUE, 0},
    {CDROMCLOSETRAY, VALUE, 0},
    {CDROM_LOCKDOOR, VALUE, 0},
    {CDROM_DRIVE_STATUS, VALUE, 0},
    {CDROM_GET_CAPABILITY, VALUE, 0},
    {RNDGETENTCNT, OUT, 4},
    {RNDADDTOENTCNT, IN, 4},
    {RNDZAPENTCNT, VALUE, 0},
    {RNDCLEARPOOL, VALUE, 0},
    {RNDADDENTROPY, REFUSED, 0}, /* served below */
    {KDGETLED, OUT, 1},
    {KDSETLED, VALUE, 0},
    {KDGKBTYPE, OUT, 1},
    {KDSETMODE, VALUE, 0},
    {KDGETMODE, OUT, 4},
    {KDGKBMODE, OUT, 4},
    {KDSKBMODE, VALUE, 0},
    {KIOCSOUND, VALUE, 0},
    {KDMKTONE, VALUE, 0},
    {VT_OPENQRY, OUT, 4},
    {VT_GETMODE, OUT, 8},
    {VT_SETMODE, IN, 8},
    {VT_GETSTATE, OUT, 6},
    {VT_RELDISP, VALUE, 0},
    {VT_ACTIVATE, VALUE, 0},
    {VT_WAITACTIVE, VALUE, 0},
    {VT_DISALLOCATE, VALUE, 0},
    {SIOCATMARK, OUT, 4},
    {SIOCGPGRP, OUT, 4},
    {SIOCSPGRP, IN, 4},
    {FIOSETOWN, IN, 4},
    {FIOGETOWN, OUT, 4},
    {0x8906 /* SIOCGSTAMP_OLD */, OUT, 16},
    {0x8907 /* SIOCGSTAMPNS_OLD */, OUT, 16},
    {SIOCADDRT, REFUSED, 0}, /* rt_dev is a pointer: served below */
    {SIOCDELRT, REFUSED, 0},
    {SIOCDARP, IN, sizeof(struct arpreq)},
    {SIOCGARP, INOUT, sizeof(struct arpreq)},
    {SIOCSARP, IN, sizeof(struct arpreq)},
    {SIOCADDDLCI, REFUSED, 0},
    {SIOCGIFMAP, INOUT, IFREQ},
    {SIOCSIFMAP, IN, IFREQ},
    {SIOCETHTOOL, REFUSED, 0},
    {SIOCWANDEV, REFUSED, 0},
};

static bool lookup(uint32_t cmd, request_t *out)
{
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        if (requests[i].cmd == cmd) {
            *out = requests[i];
            return true;
        }
    }
    return false;
}

/* The socket layer's 0x89xx requests on an interface: a struct ifreq. */
static bool is_ifreq(uint32_t cmd)
{
    return (cmd >= SIOCGIFNAME && cmd <= SIOCSIFTXQLEN && cmd != SIOCGIFCONF) ||
           (cmd >= SIOCGMIIPHY && cmd <= SIOCSMIIREG) || cmd == SIOCBRADDIF ||
           cmd == SIOCBRDELIF;
}

/* Bytes of the array at the end of a structure, from its count, which is in
 * the host's copy of the head: the guest cannot change it any more. */
static size_t tail_size(uint32_t cmd, const uint8_t *head)
{
    uint32_t count;
    uint16_t count16;

    if (cmd == FS_IOC_FIEMAP) {
        memcpy(&count, head + offsetof(struct fiemap, fm_extent_count),
               sizeof count);
        return (size_t) count * sizeof(struct fiemap_extent);
    }
    if (cmd == FIDEDUPERANGE) {
        memcpy(&count16, head + offsetof(struct file_dedupe_range, dest_count),
               sizeof count16);
        return (size_t) count16 * sizeof(struct file_dedupe_range_info);
    }
    return 0;
}

/* More than any sensible program asks for at once. */
#define TAIL_MAX (16UL << 20)

/* Descriptors inside a structure. */
static bool names_hidden(uint32_t cmd, const uint8_t *head)
{
    int32_t fd;

    if (cmd != LOOP_CONFIGURE_CMD && cmd != FICLONERANGE)
        return false;
    memcpy(&fd, head, sizeof fd);
    return fd_hidden((uint64_t) fd);
}

static int64_t ioctl_struct(thread_t *t, const uint64_t *a, const request_t *r)
{
    uint8_t head[512] __attribute__((aligned(16))) = {0}, *buf = head;
    uint32_t cmd = (uint32_t) a[1];
    size_t size = r->size, tail;
    int64_t ret;

    /* Also for output: what the kernel leaves alone stays as it was. */
    if (get_bytes(t, head, a[2], size))
        return blocking_call(t, SYS_ioctl, a[0], cmd, bad_pointer(a[2], size),
                             0, 0, 0);
    if (names_hidden(cmd, head))
        return -EBADF;
    tail = tail_size(cmd, head);
    if (tail > TAIL_MAX)
        return -EINVAL;
    if (tail) {
        buf = malloc(size + tail);
        if (!buf)
            return -ENOMEM;
        memcpy(buf, head, size);
        if (get_bytes(t, buf + size, a[2] + size, tail)) {
            free(buf);
            return -EFAULT;
        }
        size += tail;
    }
    ret = blocking_call(t, SYS_ioctl, a[0], cmd, P(buf), 0, 0, 0);
    if (r->dir != IN && ret >= 0 && put_bytes(t, a[2], buf, size))
        ret = -EFAULT;
    if (buf != head)
        free(buf);
    return ret;
}

/* struct ifconf { int len; char *buf; } */
static int64_t ioctl_ifconf(thread_t *t, const uint64_t *a)
{
    struct {
        int32_t len, pad;
        uint64_t buf;
    } conf, host;
    uint8_t *buf = NULL;
    int64_t ret;

    if (get_struct(t, &conf, a[2]))
        return -EFAULT;
    host = conf;
    if (conf.buf) {
        if (conf.len < 0)
            return -EINVAL;
        host.len = conf.len < 1 << 20 ? conf.len : 1 << 20;
        buf = malloc((size_t) host.len + 1);
        if (!buf)
            return -ENOMEM;
        host.buf = P(buf);
    }
    ret = blocking_call(t, SYS_ioctl, a[0], SIOCGIFCONF, P(&host), 0, 0, 0);
    if (ret >= 0) {
        if (buf && put_bytes(t, conf.buf, buf, (size_t) host.len))
            ret = -EFAULT;
        conf.len = host.len;
        if (put_struct(t, a[2], &conf))
            ret = -EFAULT;
    }
    free(buf);
    return ret;
}

static int64_t ioctl_route(thread_t *t, const uint64_t *a)
{
    struct rtentry rt;
    char name[IFNAMSIZ] = "";

    if (get_struct(t, &rt, a[2]))
        return -EFAULT;
    if (rt.rt_dev) {
        ssize_t n = copy_string_from_guest(t->proc->mm, &t->cpu, name,
                                           P(rt.rt_dev), sizeof name - 1);
        if (n == -EFAULT)
            return -EFAULT;
        rt.rt_dev = name;
    }
    return blocking_call(t, SYS_ioctl, a[0], a[1], P(&rt), 0, 0, 0);
}

static int64_t ioctl_entropy(thread_t *t, const uint64_t *a)
{
    struct {
        int32_t bits, size;
        uint8_t data[4096];
    } pool;

    if (get_bytes(t, &pool, a[2], 8))
        return -EFAULT;
    if (pool.size < 0 || (size_t) pool.size > sizeof pool.data)
        return -EINVAL;
    if (get_bytes(t, pool.data, a[2] + 8, (size_t) pool.size))
        return -EFAULT;
    return blocking_call(t, SYS_ioctl, a[0], a[1], P(&pool), 0, 0, 0);
}

int64_t sys_ioctl(thread_t *t, const uint64_t *a)
{
    uint32_t cmd = (uint32_t) a[1];
    request_t r;

    if (fd_hidden(a[0]))
        return -EBADF;
    switch (cmd) {
    case SIOCGIFCONF:
        return ioctl_ifconf(t, a);
    case SIOCADDRT:
    case SIOCDELRT:
        return ioctl_route(t, a);
    case RNDADDENTROPY:
        return ioctl_entropy(t, a);
    case LOOP_SET_FD:
    case LOOP_CHANGE_FD:
    case FICLONE:
        if (fd_hidden(a[2]))
            return -EBADF;
        break;
    default:
        break;
    }
    if (!lookup(cmd, &r)) {
        r = (request_t){cmd, REFUSED, 0};
        if (is_ifreq(cmd))
            r = (request_t){cmd, INOUT, IFREQ};
    }
    if (r.dir == VALUE)
        return blocking_call(t, SYS_ioctl, a[0], cmd, a[2], 0, 0, 0);
    if (r.dir != REFUSED)
        return ioctl_struct(t, a, &r);
    /* A closed descriptor is EBADF whatever the request. */
    if (host_call(SYS_fcntl, a[0], 1 /* F_GETFD */, 0, 0, 0, 0) == -EBADF)
        return -EBADF;
    if (t->proc->verbose)
        fprintf(stderr, "elfuse: ioctl %#x is not supported\n", cmd);
    return -ENOTTY;
}
