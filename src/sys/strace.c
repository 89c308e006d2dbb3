/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --strace. A line is written when the call has returned; arguments are read
 * from guest memory only where pages are already present, so that tracing
 * materialises nothing.
 */
#include "sys/strace.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "mm/pagetable.h"
#include "sys/call.h"
#include "sys/strace_flags.h"

#define LINE_MAX_BYTES 8192
#define STRING_SHOWN   32
#define RESULT_COLUMN  39

typedef struct line {
    thread_t *t;
    size_t len;
    char text[LINE_MAX_BYTES];
} line_t;

static int output = -1;

static void line_add(line_t *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void line_add(line_t *l, const char *format, ...)
{
    va_list args;
    int n;

    if (l->len >= sizeof l->text - 1)
        return;
    va_start(args, format);
    n = vsnprintf(l->text + l->len, sizeof l->text - l->len, format, args);
    va_end(args);
    if (n > 0)
        l->len += (size_t) n;
    if (l->len > sizeof l->text - 1)
        l->len = sizeof l->text - 1;
}

/* With more than one process or thread, whose line it is, as `strace -f` has
 * it. */
static void line_start(line_t *l, const thread_t *t)
{
    l->len = 0;
    if (t &&
        (t->proc->strace_pids ||
         atomic_load_explicit(&t->proc->nr_threads, memory_order_relaxed) > 1))
        line_add(l, "[pid %5d] ", t->tid);
}

int strace_output(void)
{
    return output;
}

void strace_set_output(int fd)
{
    output = fd;
    if (fd >= 0)
        fdspace_hide_owned(&output);
}

static void line_write(line_t *l)
{
    ssize_t n;

    if (output < 0) {
        output = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
        if (output < 0)
            return;
        fdspace_hide_owned(&output);
    }
    l->text[l->len < sizeof l->text - 1 ? l->len++ : l->len] = '\n';
    do
        n = write(output, l->text, l->len);
    while (n < 0 && errno == EINTR);
}

/* A prefix of guest memory that is present, up to len bytes. */
static size_t peek(thread_t *t, void *to, uint64_t from, size_t len)
{
    size_t done = 0;

    from &= 0x00ffffffffffffffUL;
    while (done < len) {
        uint64_t at = from + done;
        size_t n = GUEST_PAGE_SIZE - (at & ~GUEST_PAGE_MASK);
        unsigned char present = 0;

        n = n < len - done ? n : len - done;
        if (at >= mm_task_size(t->proc->mm))
            break;
        pt_present(t->proc->mm, at & GUEST_PAGE_MASK, 1, &present);
        if (!(present & 1) || get_bytes(t, (char *) to + done, at, n))
            break;
        done += n;
    }
    return done;
}

static void add_quoted(line_t *l, const uint8_t *s, size_t n)
{
    line_add(l, "\"");
    for (size_t i = 0; i < n; i++) {
        bool digit = i + 1 < n && s[i + 1] >= '0' && s[i + 1] <= '9';

        switch (s[i]) {
        case '\n':
            line_add(l, "\\n");
            break;
        case '\t':
            line_add(l, "\\t");
            break;
        case '\r':
            line_add(l, "\\r");
            break;
        case '\v':
            line_add(l, "\\v");
            break;
        case '\f':
            line_add(l, "\\f");
            break;
        case '"':
        case '\\':
            line_add(l, "\\%c", s[i]);
            break;
        default:
            if (s[i] >= 32 && s[i] < 127)
                line_add(l, "%c", s[i]);
            else
                line_add(l, digit ? "\\%03o" : "\\%o", s[i]);
        }
    }
    line_add(l, "\"");
}

static void add_pointer(line_t *l, uint64_t p)
{
    if (p)
        line_add(l, "0x%llx", (unsigned long long) p);
    else
        line_add(l, "NULL");
}

static void add_string(line_t *l, uint64_t p)
{
    uint8_t buf[PATH_MAX];
    size_t n, end;

    if (!p) {
        line_add(l, "NULL");
        return;
    }
    n = peek(l->t, buf, p, sizeof buf);
    end = strnlen((char *) buf, n);
    if (end == n && n < sizeof buf)
        add_pointer(l, p);
    else
        add_quoted(l, buf, end);
}

static void add_buffer(line_t *l, uint64_t p, uint64_t len)
{
    uint8_t buf[STRING_SHOWN];
    size_t want = len < sizeof buf ? len : sizeof buf;

    if (!p || peek(l->t, buf, p, want) < want) {
        add_pointer(l, p);
        return;
    }
    add_quoted(l, buf, want);
    if (len > want)
        line_add(l, "...");
}

static void add_iovec(line_t *l, uint64_t p, uint64_t count)
{
    guest_iovec_t iov[4];
    uint64_t n = count < 4 ? count : 4;

    if (!p || peek(l->t, iov, p, n * sizeof *iov) < n * sizeof *iov) {
        add_pointer(l, p);
        return;
    }
    line_add(l, "[");
    for (uint64_t i = 0; i < n; i++) {
        line_add(l, i ? ", {iov_base=" : "{iov_base=");
        add_buffer(l, iov[i].base, iov[i].len);
        line_add(l, ", iov_len=%llu}", (unsigned long long) iov[i].len);
    }
    line_add(l, count > n ? ", ...]" : "]");
}

static void add_stat(line_t *l, uint64_t p)
{
    struct stat st;
    static const char *const kinds[16] = {
        [1] = "S_IFIFO", [2] = "S_IFCHR",  [4] = "S_IFDIR",  [6] = "S_IFBLK",
        [8] = "S_IFREG", [10] = "S_IFLNK", [12] = "S_IFSOCK"};
    const char *kind;

    if (peek(l->t, &st, p, sizeof st) < sizeof st) {
        add_pointer(l, p);
        return;
    }
    kind = kinds[st.st_mode >> 12 & 15];
    line_add(l, "{st_mode=%s|%#o, ", kind ? kind : "0", st.st_mode & 07777);
    if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode))
        line_add(l, "st_rdev=makedev(%#x, %#x), ...}", major(st.st_rdev),
                 minor(st.st_rdev));
    else
        line_add(l, "st_size=%lld, ...}", (long long) st.st_size);
}

static void add_pair(line_t *l, uint64_t p, const char *first,
                     const char *second)
{
    int64_t v[2];

    if (!p || peek(l->t, v, p, sizeof v) < sizeof v) {
        add_pointer(l, p);
        return;
    }
    line_add(l, "{%s=%lld, %s=%lld}", first, (long long) v[0], second,
             (long long) v[1]);
}

static void add_rlimit(line_t *l, uint64_t p)
{
    uint64_t v[2];

    if (!p || peek(l->t, v, p, sizeof v) < sizeof v) {
        add_pointer(l, p);
        return;
    }
    for (int i = 0; i < 2; i++) {
        line_add(l, i ? ", rlim_max=" : "{rlim_cur=");
        if (v[i] == ~0UL)
            line_add(l, "RLIM64_INFINITY");
        else
            line_add(l, "%llu", (unsigned long long) v[i]);
    }
    line_add(l, "}");
}

void strace_signal_name(int sig, char *buf, size_t size)
{
    const char *name = sig > 0 && sig < 32 ? sigabbrev_np(sig) : NULL;

    if (name)
        snprintf(buf, size, "SIG%s", name);
    else if (sig >= 32 && sig <= 64)
        snprintf(buf, size, "SIGRT_%d", sig - 32);
    else
        snprintf(buf, size, "%d", sig);
}

static void add_signal(line_t *l, int sig)
{
    char name[24];

    strace_signal_name(sig, name, sizeof name);
    line_add(l, "%s", name);
}

static void add_mask(line_t *l, uint64_t mask)
{
    bool inverted = __builtin_popcountll(mask) > 32, first = true;

    if (inverted)
        mask = ~mask;
    line_add(l, inverted ? "~[" : "[");
    for (int sig = 1; sig <= 64; sig++) {
        const char *name = sig < 32 ? sigabbrev_np(sig) : NULL;

        if (!(mask >> (sig - 1) & 1))
            continue;
        line_add(l, first ? "" : " ");
        if (name)
            line_add(l, "%s", name);
        else
            line_add(l, "RT_%d", sig - 32);
        first = false;
    }
    line_add(l, "]");
}

static void add_sigset(line_t *l, uint64_t p)
{
    uint64_t mask;

    if (!p || peek(l->t, &mask, p, sizeof mask) < sizeof mask)
        add_pointer(l, p);
    else
        add_mask(l, mask);
}

static void add_sigaction(line_t *l, uint64_t p)
{
    signal_action_t act;

    if (!p || peek(l->t, &act, p, sizeof act) < sizeof act) {
        add_pointer(l, p);
        return;
    }
    line_add(l, "{sa_handler=");
    if (act.handler < 2)
        line_add(l, act.handler ? "SIG_IGN" : "SIG_DFL");
    else
        line_add(l, "0x%llx", (unsigned long long) act.handler);
    line_add(l, ", sa_mask=");
    add_mask(l, act.mask);
    line_add(l, ", sa_flags=%#llx}", (unsigned long long) act.flags);
}

static void add_fdpair(line_t *l, uint64_t p)
{
    int v[2];

    if (!p || peek(l->t, v, p, sizeof v) < sizeof v)
        add_pointer(l, p);
    else
        line_add(l, "[%d, %d]", v[0], v[1]);
}

static void add_uname(line_t *l, uint64_t p)
{
    char v[2][65];

    if (!p || peek(l->t, v, p, sizeof v) < sizeof v) {
        add_pointer(l, p);
        return;
    }
    line_add(l, "{sysname=\"%.64s\", nodename=\"%.64s\", ...}", v[0], v[1]);
}

static void add_value(line_t *l, const arg_t *arg, uint64_t v)
{
    char flags[512];

    switch (arg->show) {
    case SHOW_HEX:
        line_add(l, v ? "%#llx" : "%llx", (unsigned long long) v);
        break;
    case SHOW_OCT:
        line_add(l, "%#o", (unsigned) v);
        break;
    case SHOW_UDEC:
        line_add(l, "%llu", (unsigned long long) v);
        break;
    case SHOW_AT:
        if ((int) v == AT_FDCWD)
            line_add(l, "AT_FDCWD");
        else
            line_add(l, "%d", (int) v);
        break;
    case SHOW_SIGNAL:
        add_signal(l, (int) v);
        break;
    default:
        if (strace_flags(arg->show, v, flags, sizeof flags))
            line_add(l, "%s", flags);
        else if ((int64_t) v == (int32_t) v || v >> 32 == 0)
            line_add(l, "%d", (int32_t) v);
        else
            line_add(l, "%lld", (long long) v);
    }
}

static void add_struct(line_t *l, const arg_t *arg, const uint64_t *a,
                       unsigned i)
{
    switch (arg->show) {
    case SHOW_TIMESPEC:
        add_pair(l, a[i], "tv_sec", "tv_nsec");
        break;
    case SHOW_TIMEVAL:
        add_pair(l, a[i], "tv_sec", "tv_usec");
        break;
    case SHOW_STAT:
        add_stat(l, a[i]);
        break;
    case SHOW_RLIM:
        add_rlimit(l, a[i]);
        break;
    case SHOW_IOVEC:
        add_iovec(l, a[i], a[i + 1]);
        break;
    case SHOW_SIGSET:
        add_sigset(l, a[i]);
        break;
    case SHOW_SIGACTION:
        add_sigaction(l, a[i]);
        break;
    case SHOW_FDPAIR:
        add_fdpair(l, a[i]);
        break;
    case SHOW_UNAME:
        add_uname(l, a[i]);
        break;
    default:
        add_pointer(l, a[i]);
    }
}

static void add_arg(line_t *l, const sys_entry_t *entry, const uint64_t *a,
                    unsigned i, int64_t ret)
{
    const arg_t *arg = &entry->arg[i];

    switch (arg->kind) {
    case ARG_INT:
    case ARG_FD:
        add_value(l, arg, a[i]);
        break;
    case ARG_PATH:
    case ARG_STR:
        add_string(l, a[i]);
        break;
    case ARG_GUEST_IN:
        add_buffer(l, a[i], a[arg->ref]);
        break;
    case ARG_GUEST_OUT:
    case ARG_OUT_BUF:
        if (ret >= 0)
            add_buffer(l, a[i], (uint64_t) ret);
        else
            add_pointer(l, a[i]);
        break;
    default:
        add_struct(l, arg, a, i);
    }
}

static void line_begin(line_t *l, thread_t *t, unsigned nr,
                       const sys_entry_t *entry, const uint64_t *a, int64_t ret)
{
    l->t = t;
    line_start(l, t);
    if (!entry->name) {
        line_add(l, "syscall_%#x(", nr);
        for (unsigned i = 0; i < SYS_ARGS; i++)
            line_add(l, i ? ", %#llx" : "%#llx", (unsigned long long) a[i]);
    } else {
        line_add(l, "%s(", entry->name);
        for (unsigned i = 0; i < SYS_ARGS && entry->arg[i].kind; i++) {
            if (i)
                line_add(l, ", ");
            add_arg(l, entry, a, i, ret);
        }
    }
    line_add(l, ")");
    while (l->len < RESULT_COLUMN)
        line_add(l, " ");
}

/* Calls that do not come back are shown on their way in. */
void strace_enter(thread_t *t, unsigned nr, const sys_entry_t *entry,
                  const uint64_t *a)
{
    line_t l;

    if (entry->fn != sys_exit && entry->fn != sys_exit_group &&
        entry->fn != sys_rt_sigreturn)
        return;
    line_begin(&l, t, nr, entry, a, 0);
    line_add(&l, " = ?");
    line_write(&l);
}

static bool returns_address(const sys_entry_t *entry)
{
    return entry->fn == sys_mmap || entry->fn == sys_brk ||
           entry->fn == sys_mremap;
}

void strace_exit(thread_t *t, unsigned nr, const sys_entry_t *entry,
                 const uint64_t *a, int64_t ret)
{
    line_t l;

    if (ret == CALL_DONE)
        return;
    line_begin(&l, t, nr, entry, a, ret);
    if (ret == CALL_RESTART) {
        line_add(&l, " = ? ERESTARTSYS (To be restarted if SA_RESTART is set)");
    } else if (ret < 0 && ret >= -4095) {
        const char *name = strerrorname_np((int) -ret);

        line_add(&l, " = -1 %s (%s)", name ? name : "?", strerror((int) -ret));
    } else if (returns_address(entry)) {
        line_add(&l, " = %#llx", (unsigned long long) ret);
    } else {
        line_add(&l, " = %lld", (long long) ret);
    }
    line_write(&l);
}

void strace_executed(thread_t *t)
{
    unsigned nr = (uint32_t) t->frame->x[8];

    if (t->proc->strace)
        strace_exit(t, nr, &sys_table[nr], t->frame->x, 0);
}

void strace_line(const char *format, ...)
{
    line_t l;
    va_list args;

    line_start(&l, thread_self);
    va_start(args, format);
    vsnprintf(l.text + l.len, sizeof l.text - l.len, format, args);
    va_end(args);
    l.len = strlen(l.text);
    line_write(&l);
}

void strace_exited(const proc_t *proc, int status)
{
    if (proc->strace)
        strace_line("+++ exited with %d +++", status);
}

void strace_killed(const proc_t *proc, int signal)
{
    char name[24];

    if (!proc->strace)
        return;
    strace_signal_name(signal, name, sizeof name);
    strace_line("+++ killed by %s +++", name);
}
