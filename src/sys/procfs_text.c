/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of /proc/<own pid>/ that must tell of the guest, not of elfuse. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sys/call.h"
#include "sys/procfs_view.h"

typedef int text_fn_t(thread_t *t, int host_fd, FILE *out);

/* The kernel's own text, for the lines that are as true of the guest. */
static FILE *host_text(int host_fd)
{
    int fd = fcntl(host_fd, F_DUPFD_CLOEXEC, 0);
    FILE *in = fd < 0 ? NULL : fdopen(fd, "r");

    if (!in && fd >= 0)
        close(fd);
    return in;
}

static int text_maps(thread_t *t, int host_fd, FILE *out)
{
    return mm_print_maps(t->proc->mm, out);
}

static int text_smaps(thread_t *t, int host_fd, FILE *out)
{
    return mm_print_smaps(t->proc->mm, out, false);
}

static int text_rollup(thread_t *t, int host_fd, FILE *out)
{
    return mm_print_smaps(t->proc->mm, out, true);
}

static int text_auxv(thread_t *t, int host_fd, FILE *out)
{
    fwrite(t->proc->auxv, sizeof t->proc->auxv[0], t->proc->auxv_len, out);
    return 0;
}

/* More than exec takes, and than a program needs that moves them (PR_SET_MM).
 */
#define STRINGS_MAX (16UL << 20)

/* The guest's own memory, as the kernel reads a process's arguments. */
static void copy_range(thread_t *t, uint64_t start, uint64_t end, FILE *out)
{
    uint8_t buf[4096];

    if (end - start > STRINGS_MAX)
        end = start + STRINGS_MAX;
    while (start < end) {
        uint64_t n = 4096 - (start & 4095);

        n = n < end - start ? n : end - start;
        if (get_bytes(t, buf, start, n))
            return;
        fwrite(buf, 1, n, out);
        start += n;
    }
}

static int text_cmdline(thread_t *t, int host_fd, FILE *out)
{
    const mm_image_t *image = mm_image(t->proc->mm);

    copy_range(t, image->arg_start, image->arg_end, out);
    return 0;
}

static int text_environ(thread_t *t, int host_fd, FILE *out)
{
    const mm_image_t *image = mm_image(t->proc->mm);

    copy_range(t, image->env_start, image->env_end, out);
    return 0;
}

/* One line of status: the guest's value where it has one. */
static bool status_line(const mm_usage_t *u, const char *line, FILE *out)
{
    const struct {
        const char *name;
        uint64_t pages;
    } vm[] = {
        {"VmPeak", u->peak_vm > u->total_vm ? u->peak_vm : u->total_vm},
        {"VmSize", u->total_vm},
        {"VmLck", u->locked},
        {"VmPin", 0},
        {"VmHWM", u->resident},
        {"VmRSS", u->resident},
        {"RssAnon", u->resident - u->shared_resident},
        {"RssFile", u->shared_resident},
        {"RssShmem", 0},
        {"VmData", u->data},
        {"VmStk", u->stack},
        {"VmExe", u->exec},
        {"VmLib", 0},
        {"VmPTE", u->page_tables},
        {"VmSwap", 0},
    };

    for (size_t i = 0; i < sizeof vm / sizeof *vm; i++) {
        size_t n = strlen(vm[i].name);

        if (strncmp(line, vm[i].name, n) == 0 && line[n] == ':') {
            fprintf(out, "%s:\t%8llu kB\n", vm[i].name,
                    (unsigned long long) vm[i].pages * 4);
            return true;
        }
    }
    return false;
}

static unsigned nr_threads(const proc_t *proc)
{
    /* Relaxed: threads come and go at any time. */
    return atomic_load_explicit(&proc->nr_threads, memory_order_relaxed);
}

/* Lines on threads and signals: elfuse has more of both. *tid is whose file it
 * is, as an earlier line has said; another thread's mask is its host thread's,
 * to which the guest's is mirrored. */
static bool task_line(thread_t *t, const char *line, pid_t *tid, FILE *out)
{
    uint64_t ignored, caught;

    if (sscanf(line, "Pid: %d", tid) == 1)
        return false;
    if (strncmp(line, "FDSize:", 7) == 0)
        fputs("FDSize:\t64\n", out);
    else if (strncmp(line, "Threads:", 8) == 0)
        fprintf(out, "Threads:\t%u\n", nr_threads(t->proc));
    else if (strncmp(line, "SigBlk:", 7) == 0 && *tid == t->tid)
        fprintf(out, "SigBlk:\t%016llx\n", (unsigned long long) t->signal.mask);
    else if (strncmp(line, "SigIgn:", 7) == 0) {
        signal_dispositions(t->proc, &ignored, &caught);
        fprintf(out, "SigIgn:\t%016llx\n", (unsigned long long) ignored);
    } else if (strncmp(line, "SigCgt:", 7) == 0) {
        signal_dispositions(t->proc, &ignored, &caught);
        fprintf(out, "SigCgt:\t%016llx\n", (unsigned long long) caught);
    } else
        return false;
    return true;
}

static int text_status(thread_t *t, int host_fd, FILE *out)
{
    FILE *in = host_text(host_fd);
    char *line = NULL;
    size_t size = 0;
    mm_usage_t usage;
    pid_t tid = t->tid;

    if (!in)
        return -errno;
    mm_usage(t->proc->mm, &usage);
    while (getline(&line, &size, in) > 0) {
        if (!task_line(t, line, &tid, out) && !status_line(&usage, line, out))
            fputs(line, out);
    }
    free(line);
    fclose(in);
    return 0;
}

static int text_statm(thread_t *t, int host_fd, FILE *out)
{
    mm_usage_t u;

    mm_usage(t->proc->mm, &u);
    fprintf(out, "%llu %llu %llu %llu 0 %llu 0\n",
            (unsigned long long) u.total_vm, (unsigned long long) u.resident,
            (unsigned long long) u.shared_resident, (unsigned long long) u.exec,
            (unsigned long long) u.data + u.stack);
    return 0;
}

/* The fields of stat, counted as proc(5) does, that are the guest's. */
static bool stat_field(thread_t *t, const mm_usage_t *u, int field,
                       unsigned long long *value)
{
    const mm_image_t *image = mm_image(t->proc->mm);
    uint64_t ignored, caught;
    struct rlimit rss;

    switch (field) {
    case 20: /* threads */
        *value = nr_threads(t->proc);
        return true;
    case 23:
        *value = u->total_vm * 4096;
        return true;
    case 24:
        *value = u->resident;
        return true;
    case 25:
        getrlimit(RLIMIT_RSS, &rss);
        *value = rss.rlim_cur;
        return true;
    case 26:
        *value = image->start_code;
        return true;
    case 27:
        *value = image->end_code;
        return true;
    case 28:
        *value = image->start_stack;
        return true;
    case 29: /* the kernel shows no stack pointer of a live process */
    case 30:
    case 35:
        *value = 0;
        return true;
    case 33: /* of the first 31 signals, as 34 */
    case 34:
        signal_dispositions(t->proc, &ignored, &caught);
        *value = (field == 33 ? ignored : caught) & 0x7fffffff;
        return true;
    case 45:
        *value = image->start_data;
        return true;
    case 46:
        *value = image->end_data;
        return true;
    case 47:
        *value = (unsigned long long) mm_brk(t->proc->mm, &t->cpu, 0);
        return true;
    case 48:
        *value = image->arg_start;
        return true;
    case 49:
        *value = image->arg_end;
        return true;
    case 50:
        *value = image->env_start;
        return true;
    case 51:
        *value = image->env_end;
        return true;
    default:
        return false;
    }
}

static int text_stat(thread_t *t, int host_fd, FILE *out)
{
    FILE *in = host_text(host_fd);
    char line[4096], *p, *save = NULL;
    mm_usage_t usage;
    int field = 3;

    if (!in)
        return -errno;
    if (!fgets(line, sizeof line, in) || !(p = strrchr(line, ')'))) {
        fclose(in);
        return -EIO;
    }
    fclose(in);
    mm_usage(t->proc->mm, &usage);
    p[1] = '\0';
    fputs(line, out);
    for (p = strtok_r(p + 2, " \n", &save); p;
         p = strtok_r(NULL, " \n", &save), field++) {
        unsigned long long value;

        if (stat_field(t, &usage, field, &value))
            fprintf(out, " %llu", value);
        else
            fprintf(out, " %s", p);
    }
    fputc('\n', out);
    return 0;
}

static void limit_value(FILE *out, rlim_t value)
{
    if (value == RLIM_INFINITY)
        fprintf(out, "%-20s ", "unlimited");
    else
        fprintf(out, "%-20llu ", (unsigned long long) value);
}

static int text_limits(thread_t *t, int host_fd, FILE *out)
{
    static const struct {
        const char *name;
        int resource;
        const char *unit;
    } own[] = {{"Max data size", RLIMIT_DATA, "bytes"},
               {"Max stack size", RLIMIT_STACK, "bytes"},
               {"Max open files", RLIMIT_NOFILE, "files"},
               {"Max locked memory", RLIMIT_MEMLOCK, "bytes"},
               {"Max address space", RLIMIT_AS, "bytes"}};
    FILE *in = host_text(host_fd);
    char line[256];

    if (!in)
        return -errno;
    while (fgets(line, sizeof line, in)) {
        struct rlimit limit;
        size_t i;

        for (i = 0; i < sizeof own / sizeof *own; i++)
            if (strncmp(line, own[i].name, strlen(own[i].name)) == 0)
                break;
        if (i == sizeof own / sizeof *own) {
            fputs(line, out);
            continue;
        }
        if (own[i].resource == RLIMIT_NOFILE)
            fdspace_set_limit(t->proc, NULL, &limit);
        else
            mm_get_rlimit(t->proc->mm, own[i].resource, &limit);
        fprintf(out, "%-25s ", own[i].name);
        limit_value(out, limit.rlim_cur);
        limit_value(out, limit.rlim_max);
        fprintf(out, "%-10s\n", own[i].unit);
    }
    fclose(in);
    return 0;
}

static const struct {
    const char *name;
    text_fn_t *write;
} texts[] = {
    {"maps", text_maps},     {"smaps", text_smaps},
    {"auxv", text_auxv},     {"smaps_rollup", text_rollup},
    {"stat", text_stat},     {"cmdline", text_cmdline},
    {"statm", text_statm},   {"environ", text_environ},
    {"status", text_status}, {"limits", text_limits},
};

bool procfs_has_text(const char *tail)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(tail, texts[i].name) == 0)
            return true;
    return false;
}

int procfs_write_text(thread_t *t, const char *tail, int host_fd, FILE *out)
{
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (strcmp(tail, texts[i].name) == 0)
            return texts[i].write(t, host_fd, out);
    return -ENOENT;
}
