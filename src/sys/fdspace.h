/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elfuse's own descriptors: just above the guest's soft RLIMIT_NOFILE and above
 * every descriptor that was inherited, so that the guest can neither be given
 * nor ask for one of their numbers. They move when the guest raises its limit.
 */
#ifndef ELFUSE_SYS_FDSPACE_H
#define ELFUSE_SYS_FDSPACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

struct proc;

/* How many numbers elfuse keeps for itself. */
#define FDSPACE_SIZE 1024

/* The lowest number that may be hidden: below it nothing is elfuse's. */
extern int fdspace_low;
bool fdspace_is_hidden(int fd);

/* EBADF check, kept short for every call's sake. */
static inline bool fd_hidden(uint64_t fd)
{
    return __builtin_expect((int32_t) fd >= fdspace_low, 0) &&
           fdspace_is_hidden((int32_t) fd);
}

/* The guest asks for this very number (dup3): if it is elfuse's, move that to
 * another one. 0, or -EMFILE when there is none. */
int fdspace_make_room(int fd);

/* In a fork child. */
void fdspace_after_fork(struct proc *proc);

/* Descriptors may be opened though the guest's limit is reached, and duplicated
 * to our numbers, until the limit is restored to what it was. */
void fdspace_lift(struct rlimit *old);
void fdspace_restore(const struct rlimit *old);

/*
 * For exec, with nobody else running: copies among our numbers, close-on-exec,
 * that nothing here remembers. fdspace_pair() returns a copy's number n where n
 * + 1 is free; fdspace_put() moves a descriptor to such a number. -errno.
 */
int fdspace_copy(int fd);
int fdspace_pair(int fd);
int fdspace_put(int fd, int number);

/* The range that hidden numbers are in: first, and one past the last. */
void fdspace_range(unsigned *first, unsigned *end);

/* As fdspace_hide(), for a descriptor whose number is kept in *owner: it is
 * updated now and whenever the descriptor moves. */
int fdspace_hide_owned(int *owner);

/* prlimit(RLIMIT_NOFILE) of the process itself. old may be NULL. */
int fdspace_set_limit(struct proc *proc, const struct rlimit *limit,
                      struct rlimit *old);

#endif
