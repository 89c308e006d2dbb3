/* SPDX-License-Identifier: Apache-2.0 */
/* --strace: signals that are delivered, as strace shows them. */
#include <signal.h>
#include <stdio.h>

#include "sys/strace.h"
#include "sys/sys.h"

typedef struct code_name {
    int signo; /* 0: any */
    int code;
    const char *name;
} code_name_t;

#define CODE(signo, code)  \
    {                      \
        signo, code, #code \
    }

static const code_name_t codes[] = {
    CODE(0, SI_USER),           CODE(0, SI_KERNEL),
    CODE(0, SI_QUEUE),          CODE(0, SI_TIMER),
    CODE(0, SI_MESGQ),          CODE(0, SI_ASYNCIO),
    CODE(0, SI_SIGIO),          CODE(0, SI_TKILL),
    CODE(SIGSEGV, SEGV_MAPERR), CODE(SIGSEGV, SEGV_ACCERR),
    CODE(SIGBUS, BUS_ADRALN),   CODE(SIGBUS, BUS_ADRERR),
    CODE(SIGBUS, BUS_OBJERR),   CODE(SIGILL, ILL_ILLOPC),
    CODE(SIGILL, ILL_ILLOPN),   CODE(SIGTRAP, TRAP_BRKPT),
    CODE(SIGFPE, FPE_FLTDIV),   CODE(SIGFPE, FPE_FLTOVF),
    CODE(SIGFPE, FPE_FLTUND),   CODE(SIGFPE, FPE_FLTRES),
    CODE(SIGFPE, FPE_FLTINV),   CODE(SIGFPE, FPE_FLTUNK),
    CODE(SIGCHLD, CLD_EXITED),  CODE(SIGCHLD, CLD_KILLED),
    CODE(SIGCHLD, CLD_DUMPED),  CODE(SIGCHLD, CLD_TRAPPED),
    CODE(SIGCHLD, CLD_STOPPED), CODE(SIGCHLD, CLD_CONTINUED),
};

static const char *code_name(const siginfo_t *info, char *buf, size_t size)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].code == info->si_code &&
            (codes[i].signo == 0 || codes[i].signo == info->si_signo))
            return codes[i].name;
    snprintf(buf, size, "%d", info->si_code);
    return buf;
}

/* The fields that the code says are there. */
static void fields(const siginfo_t *info, char *buf, size_t size)
{
    unsigned pid = (unsigned) info->si_pid, uid = (unsigned) info->si_uid;
    int code = info->si_code;

    *buf = '\0';
    if (code == SI_KERNEL)
        return;
    if (code == SI_TIMER)
        snprintf(buf, size, ", si_timerid=%#x, si_overrun=%d, si_int=%d",
                 (unsigned) info->si_timerid, info->si_overrun, info->si_int);
    else if (code == SI_QUEUE || code == SI_MESGQ)
        snprintf(buf, size, ", si_pid=%u, si_uid=%u, si_int=%d, si_ptr=%p", pid,
                 uid, info->si_int, info->si_ptr);
    else if (code <= 0)
        snprintf(buf, size, ", si_pid=%u, si_uid=%u", pid, uid);
    else if (info->si_signo == SIGCHLD)
        snprintf(buf, size, ", si_pid=%u, si_uid=%u, si_status=%d", pid, uid,
                 info->si_status);
    else if (!info->si_addr)
        snprintf(buf, size, ", si_addr=NULL");
    else
        snprintf(buf, size, ", si_addr=%p", info->si_addr);
}

void strace_signal(const proc_t *proc, const siginfo_t *info)
{
    char name[24], code[16], rest[128];

    if (!proc->strace)
        return;
    strace_signal_name(info->si_signo, name, sizeof name);
    fields(info, rest, sizeof rest);
    strace_line("--- %s {si_signo=%s, si_code=%s%s} ---", name, name,
                code_name(info, code, sizeof code), rest);
}
