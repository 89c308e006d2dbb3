/* SPDX-License-Identifier: Apache-2.0 */
/* One program and its three streams. */
#include "init.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define GATHER_US 300

/* The streams of the program that runs; [0] is its standard input. */
static pump_t pumps[3];
static int ports[3] = {-1, -1, -1};
static int master = -1; /* of the program's terminal, or -1 */
static pid_t job_pid;
/* Where standard input ends, counted over all jobs; known once the host has
 * reached its end. */
static uint64_t input_limit = UINT64_MAX;
static bool keep_input;
static int kept_input = -1; /* memfd with all of it, once it has been read */

void job_reset(job_t *job)
{
    for (size_t i = 0; i < job->argc; i++)
        free(job->argv[i]);
    for (size_t i = 0; i < job->envc; i++)
        free(job->envp[i]);
    free(job->argv);
    free(job->envp);
    free(job->cwd);
    memset(job, 0, sizeof *job);
}

static void add_string(char ***list, size_t *count, const char *text)
{
    if (*count >= JOB_MAX_STRINGS)
        die(0, "more than %d arguments", JOB_MAX_STRINGS);
    char **grown = realloc(*list, (*count + 2) * sizeof *grown);
    char *copy = strdup(text);
    if (!grown || !copy)
        die(errno, "arguments");
    grown[(*count)++] = copy;
    grown[*count] = NULL;
    *list = grown;
}

void job_add_argument(job_t *job, const char *text)
{
    add_string(&job->argv, &job->argc, text);
}

void job_add_environment(job_t *job, const char *text)
{
    add_string(&job->envp, &job->envc, text);
}

static void set_window(int terminal, const char *rows_cols)
{
    unsigned rows = 0, cols = 0;
    if (sscanf(rows_cols, "%u %u", &rows, &cols) != 2)
        return;
    struct winsize size = {.ws_row = (unsigned short) rows,
                           .ws_col = (unsigned short) cols};
    ioctl(terminal, TIOCSWINSZ, &size);
}

bool job_message(const char *message)
{
    switch (message[0]) {
    case 'I':
        input_limit = strtoull(message + 1, NULL, 10);
        return true;
    case 'P': {
        int fd = atoi(message + 1);
        /* Closing our end of the pipe is what the program notices; bytes it
         * has written so far are lost, as in any broken pipe. */
        if (job_pid && (fd == 1 || fd == 2) && pumps[fd].from >= 0 &&
            pumps[fd].from != master) {
            close(pumps[fd].from);
            pump_cut(&pumps[fd]);
        }
        return true;
    }
    case 'K':
        if (job_pid)
            kill(-job_pid, atoi(message + 1));
        return true;
    case 'W':
        if (master >= 0)
            set_window(master, message + 1);
        return master >= 0;
    default:
        return false;
    }
}

void job_keep_input(void)
{
    keep_input = true;
}

/* Reads standard input to its end into memory. */
static void read_whole_input(void)
{
    ports[0] = port_open(PORT_IN);
    kept_input = memfd_create("input", MFD_CLOEXEC);
    if (kept_input < 0)
        die(errno, "memory for standard input");
    pump_start(&pumps[0], ports[0], kept_input);
    while (!pump_done(&pumps[0])) {
        for (const char *text; (text = ctl_next(false));)
            job_message(text);
        pumps[0].limit = input_limit;
        struct pollfd entries[2] = {{.fd = ctl_fd(), .events = POLLIN}};
        if (pumps[0].head == pumps[0].tail && pumps[0].moved < input_limit) {
            pump_poll(&pumps[0], &entries[1]);
            poll(entries, 2, -1);
        }
        pump_move(&pumps[0]);
    }
}

/* Looks `name` up as a shell does, and executes it. Returns errno. Unlike
 * execvp it never hands a file to the shell that is no program. */
static int exec_in_path(char **argv, char **envp)
{
    const char *name = argv[0];
    if (strchr(name, '/')) {
        execve(name, argv, envp);
        return errno;
    }
    const char *path = "";
    for (char **entry = envp; *entry; entry++) {
        if (strncmp(*entry, "PATH=", 5) == 0)
            path = *entry + 5;
    }
    int result = ENOENT;
    while (*path && *name) {
        size_t length = strcspn(path, ":");
        char file[4096];
        int size =
            snprintf(file, sizeof file, "%.*s/%s", (int) length, path, name);
        if (size > 0 && (size_t) size < sizeof file) {
            execve(file, argv, envp);
            if (errno != ENOENT && errno != ENOTDIR)
                result = errno;
        }
        path += length + (path[length] == ':');
    }
    return result;
}

typedef struct {
    int fd[3];   /* the program's side */
    int mine[3]; /* our side */
    int slave;
} streams_t;

static void streams_open(const job_t *job, streams_t *s)
{
    s->slave = -1;
    for (int i = 0; i < 3; i++) {
        s->fd[i] = s->mine[i] = -1;
        if (job->closed[i])
            continue;
        if (job->tty[i]) {
            struct winsize size = {.ws_row = job->rows, .ws_col = job->cols};
            if (s->slave < 0 &&
                openpty(&master, &s->slave, NULL, NULL, &size) < 0)
                die(errno, "terminal");
            s->fd[i] = s->slave;
            s->mine[i] = master;
            continue;
        }
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) < 0)
            die(errno, "pipe");
        s->fd[i] = ends[i == 0 ? 0 : 1];
        s->mine[i] = ends[i == 0 ? 1 : 0];
    }
    for (int i = 0; i < 3; i++) {
        if (s->mine[i] >= 0)
            fcntl(s->mine[i], F_SETFL, O_NONBLOCK);
    }
    if (master >= 0) {
        fcntl(master, F_SETFD, FD_CLOEXEC);
        fcntl(s->slave, F_SETFD, FD_CLOEXEC);
    }
}

typedef struct {
    int err;
    char what[12];
} exec_failure_t;

static _Noreturn void run_child(const job_t *job, const streams_t *s,
                                int report)
{
    exec_failure_t failure = {0, "run"};
    setsid();
    if (s->slave >= 0)
        ioctl(s->slave, TIOCSCTTY, 0);
    /* Out of the way of 0 to 2 first. */
    report = fcntl(report, F_DUPFD_CLOEXEC, 10);
    int moved[3];
    for (int i = 0; i < 3; i++)
        moved[i] = s->fd[i] < 0 ? -1 : fcntl(s->fd[i], F_DUPFD_CLOEXEC, 10);
    for (int i = 0; i < 3; i++) {
        if (moved[i] < 0)
            close(i);
        else if (dup2(moved[i], i) < 0)
            _exit(125);
    }
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    if (job->cwd && chdir(job->cwd) < 0) {
        failure = (exec_failure_t){errno, "chdir"};
    } else {
        static char *empty[] = {NULL};
        failure.err = exec_in_path(job->argv, job->envp ? job->envp : empty);
    }
    ssize_t ignored = write(report, &failure, sizeof failure);
    (void) ignored;
    _exit(127);
}

/* Starts the program; returns false, having told the host, if it cannot. */
static bool start(const job_t *job, streams_t *s)
{
    int report[2];
    if (pipe2(report, O_CLOEXEC) < 0)
        die(errno, "pipe");
    job_pid = fork();
    if (job_pid < 0)
        die(errno, "fork");
    if (job_pid == 0)
        run_child(job, s, report[1]);
    close(report[1]);
    for (int i = 0; i < 3; i++) {
        if (s->fd[i] >= 0 && s->fd[i] != s->slave)
            close(s->fd[i]);
    }
    exec_failure_t failure;
    ssize_t got = read(report[0], &failure, sizeof failure);
    close(report[0]);
    if (got == (ssize_t) sizeof failure) {
        ctl_send("E%d %s", failure.err, failure.what);
        return false;
    }
    ctl_send("B");
    return true;
}

/* Reaps what there is; true when the job's own process was among it. */
static bool reap(int *status)
{
    bool over = false;
    int one;
    pid_t pid;
    while ((pid = waitpid(-1, &one, WNOHANG)) > 0) {
        if (pid == job_pid) {
            *status = one;
            over = true;
        }
    }
    return over;
}

/* Ends everything the program left running, so that its streams end. */
static void end_the_rest(streams_t *s)
{
    kill(-1, SIGKILL);
    while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
        ;
    job_pid = 0;
    /* Held until now, so that a program that reopens its terminal finds it. */
    if (s->slave >= 0)
        close(s->slave);
    s->slave = -1;
}

static void connect_pumps(const streams_t *s)
{
    for (int i = 0; i < 3; i++) {
        if (ports[i] < 0)
            ports[i] = port_open((enum vm_port)(PORT_IN + i));
    }
    if (kept_input >= 0)
        lseek(kept_input, 0, SEEK_SET);
    pump_start(&pumps[0], kept_input >= 0 ? kept_input : ports[0], s->mine[0]);
    pump_start(&pumps[1], s->mine[1], ports[1]);
    /* One reader suffices for a terminal that is both. */
    bool same = master >= 0 && s->mine[1] == master && s->mine[2] == master;
    pump_start(&pumps[2], same ? -1 : s->mine[2], ports[2]);
}

/* Closing our end shows the program the end of its input. */
static void end_input(streams_t *s)
{
    if (kept_input < 0) {
        pumps[0].limit = input_limit;
        if (pumps[0].moved >= input_limit)
            pumps[0].from = -1;
    }
    if (pump_done(&pumps[0]) && s->mine[0] >= 0 && s->mine[0] != master) {
        close(s->mine[0]);
        s->mine[0] = pumps[0].from = pumps[0].to = -1;
    }
}

/* Passes bytes on until the program has ended and all it wrote has gone.
 * Returns its wait status. */
static int serve(streams_t *s, int child_signals)
{
    int status = 0;
    bool over = false;
    while (!over || !pump_done(&pumps[1]) || !pump_done(&pumps[2])) {
        /* First: some may have come in one read with the "G" that started
         * the program, and then nothing wakes poll() for them. */
        for (const char *text; (text = ctl_next(false));)
            job_message(text);
        end_input(s);
        struct pollfd entries[5] = {{.fd = child_signals, .events = POLLIN},
                                    {.fd = ctl_fd(), .events = POLLIN}};
        for (int i = 0; i < 3; i++)
            pump_poll(&pumps[i], &entries[2 + i]);
        poll(entries, 5, -1);
        for (int i = 0; i < 3; i++) {
            if (entries[2 + i].revents)
                pump_move(&pumps[i]);
        }
        /* A program that writes little at a time would wake us, and we the
         * host, for every piece: let some gather. */
        if (entries[3].revents || entries[4].revents)
            usleep(GATHER_US);
        struct signalfd_siginfo info;
        if (read(child_signals, &info, sizeof info) > 0 && !over &&
            reap(&status)) {
            over = true;
            end_the_rest(s);
        }
    }
    return status;
}

static void streams_close(streams_t *s)
{
    for (int i = 0; i < 3; i++) {
        int fd = s->mine[i];
        if (fd >= 0 && fd != master && (i == 0 || pumps[i].to >= 0))
            close(fd);
    }
    if (s->slave >= 0)
        close(s->slave);
    if (master >= 0)
        close(master);
    master = -1;
}

void job_run(job_t *job)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    int child_signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (child_signals < 0)
        die(errno, "signalfd");
    signal(SIGPIPE, SIG_IGN);
    if (keep_input && kept_input < 0)
        read_whole_input();
    streams_t s;
    streams_open(job, &s);
    connect_pumps(&s);
    if (start(job, &s)) {
        int status = serve(&s, child_signals);
        sync(); /* shared mappings of files in the shares */
        ctl_send("X%d %llu %llu", status, (unsigned long long) pumps[1].moved,
                 (unsigned long long) pumps[2].moved);
    }
    job_pid = 0;
    streams_close(&s);
    close(child_signals);
}
