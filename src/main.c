/* SPDX-License-Identifier: Apache-2.0 */
/* The command line: what to run, what can be said against it, and off. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/layout.h"
#include "proc/handover.h"
#include "proc/load.h"
#include "proc/lookup.h"
#include "proc/proc.h"
#include "proc/program.h"
#include "proc/sysroot.h"
#include "proc/title.h"
#include "sys/fdspace.h"
#include "sys/procfs_view.h"
#include "sys/strace.h"
#include "sys/sys.h"

/* As env(1): elfuse itself failed; found but cannot be run; not found. */
enum { STATUS_ELFUSE = 125, STATUS_CANNOT_RUN = 126, STATUS_NOT_FOUND = 127 };

typedef struct options {
    hv_options_t hv;
    const char *sysroot;
    bool strace, stats, verbose;
    int first; /* argv[first] is PROGRAM */
} options_t;

static const char help[] =
    "Usage: elfuse [OPTION]... [--] PROGRAM [ARG]...\n"
    "Run PROGRAM, an arm64 Linux program or script, in a virtual machine "
    "without\n"
    "a kernel in it. PROGRAM is looked up in PATH as a shell does.\n"
    "\n"
    "  --strace        print each system call on standard error\n"
    "  --stats         print counters on standard error when PROGRAM ends\n"
    "  --verbose       tell of unknown system calls and of a fatal fault\n"
    "  --sysroot DIR   DIR is the root that PROGRAM sees\n"
    "  --help          print this and exit\n"
    "  --version       print the version and exit\n"
    "\n"
    "For tests:\n"
    "  --ipa-bits N    use at most N (36 to 48) bits of guest physical "
    "address\n"
    "  --no-sve        do without SVE though the host has it\n"
    "  --no-pauth      do without pointer authentication likewise\n"
    "\n"
    "The exit status is PROGRAM's; when a signal ends PROGRAM, the same "
    "signal\n"
    "ends elfuse. Otherwise:\n"
    "  125  elfuse failed: bad option, no /dev/kvm, host too old\n"
    "  126  PROGRAM was found but cannot be run\n"
    "  127  PROGRAM was not found\n";

/* One write, so that the line stays whole among a program's output. */
__attribute__((format(printf, 2, 3))) _Noreturn static void
die(int status, const char *format, ...)
{
    char text[PATH_MAX + 512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    dprintf(STDERR_FILENO, "elfuse: %s\n", text);
    exit(status);
}

/* Print and exit; a full disk behind stdout is an error. */
_Noreturn static void print_and_exit(const char *text)
{
    if (fputs(text, stdout) == EOF || fflush(stdout) == EOF)
        die(STATUS_ELFUSE, "cannot write: %s", strerror(errno));
    exit(0);
}

static unsigned parse_ipa_bits(const char *text)
{
    char *end;

    errno = 0;
    unsigned long bits = strtoul(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || bits < IPA_BITS_MIN ||
        bits > IPA_BITS_MAX)
        die(STATUS_ELFUSE, "--ipa-bits: '%s' is not a number from %u to %u",
            text, IPA_BITS_MIN, IPA_BITS_MAX);
    return (unsigned) bits;
}

enum {
    OPT_HELP = 256,
    OPT_VERSION,
    OPT_STRACE,
    OPT_STATS,
    OPT_VERBOSE,
    OPT_SYSROOT,
    OPT_IPA_BITS,
    OPT_NO_SVE,
    OPT_NO_PAUTH,
};

static const struct option long_options[] = {
    {"help", no_argument, NULL, OPT_HELP},
    {"version", no_argument, NULL, OPT_VERSION},
    {"strace", no_argument, NULL, OPT_STRACE},
    {"stats", no_argument, NULL, OPT_STATS},
    {"verbose", no_argument, NULL, OPT_VERBOSE},
    {"sysroot", required_argument, NULL, OPT_SYSROOT},
    {"ipa-bits", required_argument, NULL, OPT_IPA_BITS},
    {"no-sve", no_argument, NULL, OPT_NO_SVE},
    {"no-pauth", no_argument, NULL, OPT_NO_PAUTH},
    {NULL, 0, NULL, 0},
};

static void apply_option(options_t *opt, int c, char **argv)
{
    switch (c) {
    case OPT_HELP:
        print_and_exit(help);
    case OPT_VERSION:
        print_and_exit("elfuse " ELFUSE_VERSION "\n");
    case OPT_STRACE:
        opt->strace = true;
        break;
    case OPT_STATS:
        opt->stats = true;
        break;
    case OPT_VERBOSE:
        opt->verbose = true;
        break;
    case OPT_SYSROOT:
        opt->sysroot = optarg;
        break;
    case OPT_IPA_BITS:
        opt->hv.ipa_bits = parse_ipa_bits(optarg);
        break;
    case OPT_NO_SVE:
        opt->hv.no_sve = true;
        break;
    case OPT_NO_PAUTH:
        opt->hv.no_pauth = true;
        break;
    case ':':
        die(STATUS_ELFUSE, "option %s needs an argument", argv[optind - 1]);
    default:
        if (optopt > 0 && optopt < OPT_HELP)
            die(STATUS_ELFUSE, "bad option -%c (see elfuse --help)", optopt);
        die(STATUS_ELFUSE, "bad option %s (see elfuse --help)",
            argv[optind - 1]);
    }
}

static void parse_options(options_t *opt, int argc, char **argv)
{
    int c;

    opterr = 0;
    while ((c = getopt_long(argc, argv, "+:", long_options, NULL)) != -1)
        apply_option(opt, c, argv);
    if (optind >= argc)
        die(STATUS_ELFUSE, "no program given (see elfuse --help)");
    opt->first = optind;
}

/* Before everything else: paths mean the guest's files from here on. */
static void enter_sysroot(const options_t *opt)
{
    char why[SYSROOT_WHY_MAX];

    if (opt->sysroot != NULL && sysroot_enter(opt->sysroot, why) != 0)
        die(STATUS_ELFUSE, "--sysroot %s: %s", opt->sysroot, why);
}

/* The absolute path of an open file, as /proc/self/exe shows it. */
static char *path_of(int fd, const char *fallback)
{
    char link[64], path[PATH_MAX];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(link, path, sizeof(path) - 1);
    if (len > 0) {
        path[len] = '\0';
        return strdup(path);
    }
    /* Without /proc. */
    char *real = realpath(fallback, NULL);
    return real != NULL ? real : strdup(fallback);
}

/* After lookup_program has set errno. */
_Noreturn static void die_not_found(const char *name)
{
    int error = errno;
    bool is_path = strchr(name, '/') != NULL;
    bool missing = error == ENOENT || error == ENOTDIR;
    const char *hint = "";
    struct stat st;

    if (*name != '\0' && stat(name, &st) == 0) {
        if (!is_path && missing)
            hint = "; to run the one in this folder, put ./ before the name";
        else if (is_path && error == EACCES && S_ISDIR(st.st_mode))
            hint = ": it is a folder";
        else if (is_path && error == EACCES && (st.st_mode & 0111) == 0)
            hint = ": it is not executable (chmod +x makes it so)";
    }
    die(missing ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN, "%s: %s%s", name,
        error == ENOENT && !is_path ? "not found in PATH" : strerror(error),
        hint);
}

/* Find the program, open it and see whether it can be run at all: its faults
 * come before those of the machine. */
static void open_program(proc_t *proc, program_t *program, const char *name)
{
    char *file = lookup_program(name, getenv("PATH"));

    if (file == NULL)
        die_not_found(name);
    program_request_t request = {
        .dirfd = AT_FDCWD, .path = file, .argv = proc->argv};
    int error = program_open(&request, program);
    if (error != 0)
        die(error == -ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN,
            "cannot run %s: %s", file, program->why);
    free(file);
    proc->argv = program->argv;
    proc->execfn = program->execfn;
    proc->exe = path_of(program->fd, program->execfn);
    if (proc->exe == NULL)
        die(STATUS_ELFUSE, "%s", strerror(ENOMEM));
}

/* Keep the program's file for /proc/self/exe, out of the program's reach. */
static void keep_exe(proc_t *proc, int fd)
{
    proc->exe_fd = fdspace_hide(fd);
    if (proc->exe_fd < 0)
        die(STATUS_ELFUSE, "cannot keep a descriptor: %s",
            strerror(-proc->exe_fd));
}

/*
 * As exec does: the name of the file, cut to 15 characters. For a file that was
 * executed by descriptor that is the descriptor's number, on newer kernels the
 * file's own name; what the kernel has made of our own exec tells.
 */
static void set_comm(proc_t *proc, bool by_descriptor)
{
    const char *name = proc->execfn, *slash;
    size_t len;

    prctl(PR_GET_NAME, proc->comm);
    if (by_descriptor && !isdigit((unsigned char) proc->comm[0]))
        name = proc->exe;
    slash = strrchr(name, '/');
    snprintf(proc->comm, sizeof(proc->comm), "%s",
             slash != NULL ? slash + 1 : name);
    len = strcspn(proc->comm, " ");
    if (name == proc->exe &&
        strncmp(proc->comm + len, " (deleted)", strlen(proc->comm + len)) == 0)
        proc->comm[len] = '\0';
    prctl(PR_SET_NAME, proc->comm);
}

static void create_machine(proc_t *proc, const struct rlimit *limits,
                           thread_t **thread)
{
    mm_options_t mm = {.randomise = load_randomises(), .limits = limits};

    if (proc_vm_create(proc, &proc->hv_options, &mm) != 0 ||
        thread_create(proc, thread) != 0)
        die(STATUS_ELFUSE, "%s", proc_vm_error());
}

/* elfuse's own file, while it can be named: for exec, which then needs no name
 * and no right to look at it. */
static void open_self(proc_t *proc)
{
    proc->self_fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    if (proc->self_fd < 0)
        proc->self_fd =
            open((const char *) getauxval(AT_EXECFN), O_PATH | O_CLOEXEC);
}

/* As the command line says. */
static void begin(proc_t *proc, program_t *program, int argc, char **argv)
{
    options_t opt = {.first = 0};

    parse_options(&opt, argc, argv);
    proc->argv = argv + opt.first;
    proc->hv_options = opt.hv;
    proc->strace = opt.strace;
    proc->show_stats = opt.stats;
    proc->verbose = opt.verbose;
    open_self(proc);
    enter_sysroot(&opt);
    fdspace_init(proc);
    if (proc->self_fd >= 0 && fdspace_hide_owned(&proc->self_fd) < 0)
        die(STATUS_ELFUSE, "cannot keep a descriptor");
    open_program(proc, program, proc->argv[0]);
    keep_exe(proc, program->fd);
}

/* As the image said that this one has replaced. */
static void go_on(proc_t *proc, program_t *program, const handover_t *handover,
                  char **argv)
{
    const handover_t *h = handover;
    char exe[PATH_MAX];

    fdspace_resume(proc, h->fds_low);
    fdspace_keep(h->self_fd);
    fdspace_keep(h->hv.kvm_fd);
    fdspace_keep(h->proc_dir);
    fdspace_keep(h->program_fd);
    fdspace_keep(h->interp_fd);
    fdspace_keep(h->trace_fd);
    procfs_init(h->proc_dir);
    strace_set_output(h->trace_fd);
    proc->argv = argv;
    proc->execfn = (char *) h->execfn;
    proc->hv_options = h->hv;
    proc->strace = h->strace;
    proc->strace_pids = h->strace_pids;
    proc->show_stats = h->show_stats;
    proc->verbose = h->verbose;
    proc->self_fd = h->self_fd;
    proc->exe_fd = h->program_fd;
    if (fdspace_hide_owned(&proc->self_fd) < 0)
        die(STATUS_ELFUSE, "cannot keep a descriptor");
    proc->exe = strdup(procfs_fd_name(proc->exe_fd, exe) ? exe : h->execfn);
    if (proc->exe == NULL)
        die(STATUS_ELFUSE, "%s", strerror(ENOMEM));
    program->fd = h->program_fd;
    program->interp_fd = h->interp_fd;
}

int main(int argc, char **argv)
{
    static proc_t proc;
    static program_t program; /* its strings stay in use */
    static signal_actions_t actions;
    static handover_t handover;
    static struct rlimit limits[MM_LIMITS]; /* the guest's */
    struct rlimit limit;
    thread_t *thread;
    load_result_t start;
    bool resumed;

    if (mm_take_limits(limits) != 0)
        die(STATUS_ELFUSE, "cannot read the resource limits: %s",
            strerror(errno));
    resumed = handover_read(&handover);
    proc.envp = environ;
    proc.pid = getpid();
    signal_actions_init(&actions);
    proc.signals = &actions;
    if (resumed)
        go_on(&proc, &program, &handover, argv);
    else
        begin(&proc, &program, argc, argv);
    program.fd = proc.exe_fd;
    /* Linux executes programs whatever the limit of descriptors is. */
    fdspace_lift(&limit);
    create_machine(&proc, resumed ? handover.limit : limits, &thread);
    if (proc_load(&proc, &thread->cpu, &program, &start) != 0)
        die(STATUS_CANNOT_RUN, "cannot run %s: %s", proc.execfn, proc_error());
    if (program.interp_fd >= 0)
        close(program.interp_fd);
    set_comm(&proc, resumed && handover.by_descriptor);
    proc_show_strings(&proc, true);
    fdspace_restore(&limit);
    thread_set_start(thread, start.entry, start.sp);
    signal_thread_init(thread, NULL, false);
    if (resumed)
        thread->signal.mask = handover.mask;
    signal_actions_start(&proc);
    signal_thread_start(thread);
    thread_run(thread);
}
