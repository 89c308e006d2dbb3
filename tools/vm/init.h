/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first process of the emulated machine.
 *
 * It is linked statically into the initramfs. The host side (the Python files
 * in this folder) talks to it over four virtio-serial ports; the comment
 * below is the whole protocol.
 */
#ifndef VM_INIT_H
#define VM_INIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Port numbers are those given to QEMU (virtserialport,nr=N). PORT_IN,
 * PORT_OUT and PORT_ERR carry the bytes of the job's standard streams and
 * nothing else. PORT_CTL carries messages, each a string ended by a NUL byte
 * whose first character is its kind.
 *
 * Host to machine:
 *   S<path>    9p share with tag vm<n>, n counting from 0, mounted at path
 *   R          a root image is on /dev/vda
 *   H<word>    transparent huge pages: always, madvise, never
 *   N<ns>      set the clock to this CLOCK_REALTIME
 *   L          standard input is kept whole and given to every job anew
 *   M          everything of the above has been said: mount, answer "R"
 *   U          forget the last job; the letters up to G describe the next
 *   A<arg>     next argument
 *   E<n=v>     environment
 *   C<dir>     directory
 *   Z<fd>      descriptor 0, 1 or 2 is closed in the program
 *   T<fd>      descriptor is a terminal
 *   W<rows> <cols>   size of the terminal (also while a job runs)
 *   G          start the job
 *   Q          no more jobs: power off
 * at any time:
 *   I<n>       standard input ends after n bytes in all
 *   P<fd>      nobody reads descriptor fd any more
 *   K<sig>     send the signal to the job's process group
 *
 * Machine to host:
 *   R                 ready for jobs
 *   B                 the program runs (exec succeeded)
 *   E<errno> <what>   it cannot be started
 *   X<wait status> <bytes on out> <bytes on err>    the job is over
 *   F<text>           the machine could not be set up, or init failed
 */
enum vm_port { PORT_CTL = 1, PORT_IN, PORT_OUT, PORT_ERR };

/* boot.c: the steps of setting up the machine; each calls die() on failure. */
void boot_mount_basics(void);
void boot_load_modules(const char *list);
void boot_settings(void);
void boot_mount_root_image(void);
void boot_mount_share(int index, const char *path);
void boot_huge_pages(const char *word);
void boot_set_clock(const char *nanoseconds);
_Noreturn void boot_power_off(void);

/* ctl.c: ports and messages. */

/* Waits for the port, opens it non-blocking and close-on-exec. */
int port_open(enum vm_port nr);
void ctl_open(void);
int ctl_fd(void);
/* Sends one message; blocks until the host's side has it. */
void ctl_send(const char *format, ...) __attribute__((format(printf, 1, 2)));
/*
 * Next complete message, or NULL if `wait` is false and there is none yet.
 * Valid until the next call. Powers off when the host has gone.
 */
char *ctl_next(bool wait);
/* Reports the failure to the host (with errno's text when err is not 0), and
 * powers off. */
_Noreturn void die(int err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* pump.c: bytes on their way between a port and a program. */
typedef struct {
    int from, to;      /* both non-blocking; -1 when done with */
    uint64_t moved;    /* bytes read from `from` so far */
    uint64_t limit;    /* end of file is after so many */
    size_t head, tail; /* waiting bytes are buffer[head..tail) */
    char buffer[65536];
} pump_t;

void pump_start(pump_t *pump, int from, int to);
bool pump_done(const pump_t *pump);
/* No more bytes: what was taken in and not passed on counts as not moved, since
 * whoever counts at the other end waits for as many. */
void pump_cut(pump_t *pump);
/* Fills in the one poll entry the pump waits for (fd -1 if none). */
struct pollfd;
void pump_poll(const pump_t *pump, struct pollfd *entry);
/*
 * Moves what can be moved without blocking. At the end of file it sets `from`
 * to -1; when the reader has gone `to` as well. It closes neither.
 */
void pump_move(pump_t *pump);

/* job.c: one program and its three streams. */
#define JOB_MAX_STRINGS 65536
typedef struct {
    char **argv; /* always NULL-terminated */
    size_t argc;
    char **envp; /* always NULL-terminated */
    size_t envc;
    char *cwd;
    bool closed[3];
    bool tty[3];
    unsigned short rows, cols;
} job_t;

void job_reset(job_t *job);
void job_add_argument(job_t *job, const char *text);
void job_add_environment(job_t *job, const char *text);
/* From now on every job gets all of standard input. */
void job_keep_input(void);
/* Messages that may come at any time; returns false if it is none of them. */
bool job_message(const char *message);
/* Runs the job to its end and reports it to the host. */
void job_run(job_t *job);

#endif
