/* SPDX-License-Identifier: Apache-2.0 */
/* SysV shared memory: attach, detach, what takes its place, removal. */
#include "mem.h"

#include <sys/ipc.h>
#include <sys/shm.h>

int main(void)
{
    probe_open();
    int id = shmget(IPC_PRIVATE, 4 * PAGE, IPC_CREAT | 0600);
    need(id >= 0, "shmget");
    char *p = shmat(id, NULL, 0), *q = shmat(id, NULL, SHM_RDONLY);
    ok(GOOD(p) && GOOD(q), "shm: attached twice");
    ok(all_bytes(p, 0, 4 * PAGE), "shm: zero");
    p[PAGE] = 's';
    is(q[PAGE], 's', "shm: a store is seen in the other");
    is_str(access_of(q), "r-", "shm: the other is read-only");
    struct shmid_ds ds;
    ok(shmctl(id, IPC_STAT, &ds) == 0 && ds.shm_nattch == 2,
       "shm: attached count");
    is(shmdt(p), 0, "shm: detach");
    is_str(access_of(p), "--", "shm: is gone");
    char *m = sys_mmap(p, 4 * PAGE, RW, ANON | MAP_FIXED, -1, 0);
    ok(m == p && all_bytes(m, 0, 4 * PAGE), "shm: memory in its place is zero");
    memset(m, 1, 4 * PAGE);
    is(q[PAGE], 's', "shm: and not the segment");
    fails(shmdt(p), EINVAL, "shm: detach of what is none");
    fails(shmat(id, m, 0), EINVAL, "shm: attach over a mapping");
    is(shmat(id, m, SHM_REMAP), m, "shm: attach over it with REMAP");
    is(m[PAGE], 's', "shm: shows the segment");
    is(shmctl(id, IPC_RMID, NULL), 0, "shm: remove");
    is(m[PAGE], 's', "shm: lives while attached");
    is(shmdt(m), 0, "shm: detach");
    is(shmdt(q), 0, "shm: detach the last");
    fails(shmat(id, NULL, 0), EINVAL, "shm: gone for good");
    return tap_done();
}
