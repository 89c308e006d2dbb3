/* SPDX-License-Identifier: Apache-2.0 */
/* SysV shared memory: attach, detach, what takes its place, removal. */
#include "mem.h"

#include <sys/ipc.h>
#include <sys/shm.h>

#define PAGES 4

static int segment(size_t size)
{
    int id = shmget(IPC_PRIVATE, size, IPC_CREAT | 0600);
    need(id >= 0, "shmget");
    return id;
}

static long attaches(int id)
{
    struct shmid_ds ds;
    return shmctl(id, IPC_STAT, &ds) == 0 ? (long) ds.shm_nattch : -1;
}

/* The C library's shmat does not tell an address from an error. */
static void *sys_shmat(int id, const void *addr, int flags)
{
    return (void *) syscall(SYS_shmat, id, addr, flags);
}

static long sys_shmdt(const void *addr)
{
    return syscall(SYS_shmdt, addr);
}

static void basics(void)
{
    int id = segment(PAGES * PAGE);
    char *p = sys_shmat(id, NULL, 0), *q = sys_shmat(id, NULL, SHM_RDONLY);
    ok(GOOD(p) && GOOD(q), "shm: attached twice");
    ok(all_bytes(p, 0, PAGES * PAGE), "shm: zero");
    p[PAGE] = 's';
    is(q[PAGE], 's', "shm: a store is seen in the other");
    is_str(access_of(q), "r-", "shm: the other is read-only");
    is(attaches(id), 2, "shm: attached count");
    is(sys_shmdt(p), 0, "shm: detach");
    is(attaches(id), 1, "shm: one less");
    is_str(access_of(p), "--", "shm: is gone");
    char *m = sys_mmap(p, PAGES * PAGE, RW, ANON | MAP_FIXED, -1, 0);
    ok(m == p && all_bytes(m, 0, PAGES * PAGE),
       "shm: memory in its place is zero");
    memset(m, 1, PAGES * PAGE);
    is(q[PAGE], 's', "shm: and not the segment");
    fails(sys_shmdt(p), EINVAL, "shm: detach of what is none");
    fails(sys_shmat(id, m, 0), EINVAL, "shm: attach over a mapping");
    is(sys_shmat(id, m, SHM_REMAP), m, "shm: attach over it with REMAP");
    is(m[PAGE], 's', "shm: shows the segment");
    is(shmctl(id, IPC_RMID, NULL), 0, "shm: remove");
    is(m[PAGE], 's', "shm: lives while attached");
    struct shmid_ds ds;
    ok(shmctl(id, IPC_STAT, &ds) == 0 && (ds.shm_perm.mode & SHM_DEST),
       "shm: is marked for destruction");
    ok(GOOD(p = sys_shmat(id, NULL, 0)) && p[PAGE] == 's',
       "shm: may be attached still");
    is(sys_shmdt(m), 0, "shm: detach");
    is(sys_shmdt(p), 0, "shm: detach another");
    is(sys_shmdt(q), 0, "shm: detach the last");
    fails(sys_shmat(id, NULL, 0), EINVAL, "shm: gone for good");
    fails(shmctl(id, IPC_STAT, &ds), EINVAL, "shm: and unknown");
}

static void addresses(void)
{
    int id = segment(PAGES * PAGE - 100);
    char *hole = map_hole(16 * PAGE);
    fails(sys_shmat(-1, hole, 0), EINVAL, "address: bad id");
    fails(sys_shmat(id, hole + 1, 0), EINVAL, "address: not on a page");
    is(sys_shmat(id, hole + 5 * PAGE - 1, SHM_RND), hole + 4 * PAGE,
       "address: rounded down");
    is_str(layout(hole, 16), "hole:4 rw-s:4 hole:8", "address: whole pages");
    fails(sys_shmat(id, hole + PAGE, 0), EINVAL, "address: overlap at the end");
    fails(sys_shmat(id, hole + 7 * PAGE, 0), EINVAL,
          "address: overlap at the start");
    is_str(layout(hole, 16), "hole:4 rw-s:4 hole:8",
           "address: and nothing changed");
    is(sys_shmat(id, hole + 8 * PAGE, 0), hole + 8 * PAGE,
       "address: beside it");
    is_str(layout(hole, 16), "hole:4 rw-s:4 rw-s:4 hole:4",
           "address: is another mapping");
    fails(sys_shmat(id, NULL, SHM_REMAP), EINVAL, "address: none with REMAP");
    fails(sys_shmat(id, (void *) 5, SHM_RND | SHM_REMAP), EINVAL,
          "address: rounded down to none with REMAP");
    fails(sys_shmat(id, (void *) (TOP - PAGE), 0), ENOMEM,
          "address: beyond user space");
    fails(sys_shmat(id, (void *) -PAGE, 0), EINVAL, "address: wraps around");
    fails(sys_shmdt(hole + 4 * PAGE + 1), EINVAL, "address: detach off a page");
    fails(sys_shmdt(hole + 5 * PAGE), EINVAL, "address: detach off the start");
    is(sys_shmat(id, hole + 6 * PAGE, SHM_REMAP), hole + 6 * PAGE,
       "address: over the halves of two");
    is_str(layout(hole, 16), "hole:4 rw-s:2 rw-s:4 rw-s:2 hole:4",
           "address: which keep the rest");
    is(attaches(id), 3, "address: three are left");
    is(sys_shmdt(hole + 6 * PAGE), 0, "address: detach the middle");
    is_str(layout(hole, 16), "hole:4 rw-s:2 hole:4 rw-s:2 hole:4",
           "address: the halves stay");
    is(sys_shmdt(hole + 8 * PAGE), 0, "address: an upper half by its start");
    is(sys_shmdt(hole + 4 * PAGE), 0, "address: a lower half");
    is(attaches(id), 0, "address: none is left");
    is(shmctl(id, IPC_RMID, NULL), 0, "address: remove");
}

static void protection(void)
{
    int id = segment(PAGES * PAGE);
    char *p = sys_shmat(id, NULL, SHM_RDONLY), *q = sys_shmat(id, NULL, 0);
    char *x = sys_shmat(id, NULL, SHM_EXEC);
    need(GOOD(p) && GOOD(q) && GOOD(x), "shmat");
    is_str(layout(p, 4), "r--s:4", "protection: read-only");
    is_str(layout(x, 4), "rwxs:4", "protection: with EXEC");
    fails(sys_mprotect(p, PAGE, RW), EACCES, "protection: stays so");
    is(sys_mprotect(p, PAGE, PROT_READ | PROT_EXEC), 0, "protection: exec");
    is(sys_mprotect(q + PAGE, PAGE, PROT_READ), 0, "protection: a page less");
    is_str(access_of(q + PAGE), "r-", "protection: as asked");
    is_str(layout(q, 4), "rw-s:1 r--s:1 rw-s:2", "protection: in three");
    is(attaches(id), 6, "protection: each counts");
    is(sys_mprotect(q + PAGE, PAGE, RW), 0, "protection: given back");
    is_str(layout(q, 4), "rw-s:1 rw-s:1 rw-s:2", "protection: not joined");
    static const unsigned code[] = {0x52800540, 0xd65f03c0}; /* return 42 */
    memcpy(x, code, sizeof code);
    __builtin___clear_cache(x, x + sizeof code);
    is(((int (*)(void)) x)(), 42, "protection: code runs");
    is(sys_shmdt(q), 0, "protection: detach all three");
    is_str(layout(q, 4), "hole:4", "protection: at once");
    is(attaches(id), 3, "protection: the others stay");
    sys_shmdt(p);
    sys_shmdt(x);
    shmctl(id, IPC_RMID, NULL);
}

/* shmdt of what munmap, mremap and mmap have left of it. */
static void pieces(void)
{
    int id = segment(8 * PAGE), other = segment(8 * PAGE);
    char *p = map_hole(32 * PAGE);
    need(sys_shmat(id, p, 0) == p, "shmat");
    memset(p, 'p', 8 * PAGE);
    is(sys_munmap(p + 2 * PAGE, PAGE), 0, "pieces: a hole");
    is(attaches(id), 2, "pieces: counts as two");
    is(sys_shmdt(p), 0, "pieces: detach");
    is_str(layout(p, 8), "hole:8", "pieces: both are gone");
    is(attaches(id), 0, "pieces: none is attached");

    need(sys_shmat(id, p, 0) == p, "shmat");
    is(p[2 * PAGE], 'p', "pieces: the unmapped page was kept");
    is(sys_munmap(p, PAGE), 0, "pieces: without the first page");
    is(sys_shmdt(p), 0, "pieces: detach by where it was attached");
    is_str(layout(p, 8), "hole:8", "pieces: is gone");
    fails(sys_shmdt(p), EINVAL, "pieces: once");

    need(sys_shmat(id, p, 0) == p, "shmat");
    is(sys_mmap(p + 2 * PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0), p + 2 * PAGE,
       "pieces: a page of memory inside");
    is(p[2 * PAGE], 0, "pieces: is zero");
    p[2 * PAGE] = 'm';
    is(sys_shmdt(p), 0, "pieces: detach around it");
    is_str(layout(p, 8), "hole:2 rw-p:1 hole:5", "pieces: it stays");
    is(p[2 * PAGE], 'm', "pieces: with its contents");
    sys_munmap(p, 8 * PAGE);

    need(sys_shmat(id, p, 0) == p, "shmat");
    char *far = p + 20 * PAGE;
    is(sys_mremap(p + 4 * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, far),
       far, "pieces: a page is moved away");
    is(*far, 'p', "pieces: with its contents");
    fails(sys_shmdt(far), EINVAL, "pieces: it is no attach of its own");
    is(sys_shmdt(p), 0, "pieces: detach the rest");
    is_str(layout(p, 24), "hole:20 rw-s:1 hole:3",
           "pieces: the moved one stays");
    is(attaches(id), 1, "pieces: and counts");
    is(sys_shmdt(far - 4 * PAGE), 0, "pieces: detach by its offset");
    is_str(layout(p, 24), "hole:24", "pieces: nothing is left");

    /* Another segment's page of the same offset in between. */
    need(sys_shmat(id, p, 0) == p, "shmat");
    need(sys_shmat(other, p + 16 * PAGE, 0) == p + 16 * PAGE, "shmat");
    is(sys_mremap(p + 18 * PAGE, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
                  p + 2 * PAGE),
       p + 2 * PAGE, "pieces: another segment's page inside");
    is(sys_shmdt(p), 0, "pieces: detach");
    is_str(layout(p, 8), "hole:2 rw-s:1 hole:5", "pieces: it stays");
    is(sys_shmdt(p), 0, "pieces: and is detached next");
    is(sys_shmdt(p + 16 * PAGE), 0, "pieces: the rest of it");
    is(attaches(id) + attaches(other), 0, "pieces: all gone");
    shmctl(id, IPC_RMID, NULL);
    shmctl(other, IPC_RMID, NULL);
}

static void moves(void)
{
    int id = segment(2 * PAGE);
    char *p = map_hole(16 * PAGE), *q;
    need(sys_shmat(id, p, 0) == p, "shmat");
    p[0] = 'a';
    p[PAGE] = 'b';
    is(sys_mremap(p, 0, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p + 8 * PAGE),
       p + 8 * PAGE, "moves: a second mapping of it");
    q = p + 8 * PAGE;
    q[1] = 'c';
    ok(q[PAGE] == 'b' && p[1] == 'c', "moves: the same memory");
    is(attaches(id), 2, "moves: counts");
    is(sys_mremap(p, 2 * PAGE, 4 * PAGE, 0, NULL), p, "moves: grown");
    ok(p[0] == 'a' && p[PAGE] == 'b', "moves: as before");
    is_str(access_of(p + 2 * PAGE), "--", "moves: nothing beyond the segment");
    is(attaches(id), 2, "moves: counts the same");
    is(sys_mremap(p, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
                  p + 11 * PAGE),
       p + 11 * PAGE, "moves: to another place");
    fails(sys_shmdt(p), EINVAL, "moves: not where it was");
    is(sys_shmdt(p + 11 * PAGE), 0, "moves: detach where it is");
    is(sys_madvise(q, PAGE, MADV_REMOVE), 0, "moves: a page removed");
    ok(q[0] == 0 && q[PAGE] == 'b', "moves: is zero, the other stays");
    is(sys_madvise(q, 2 * PAGE, MADV_DONTNEED), 0, "moves: not needed");
    is(q[PAGE], 'b', "moves: contents are the segment's");
    is(sys_shmdt(q), 0, "moves: detach");
    is(attaches(id), 0, "moves: none left");
    shmctl(id, IPC_RMID, NULL);
}

static void control(void)
{
    struct shmid_ds ds, old;
    struct shminfo info;
    struct shm_info used;
    key_t key = 0x51a7e;
    shmctl(shmget(key, 0, 0), IPC_RMID, NULL);
    fails(shmget(key, PAGE, 0), ENOENT, "control: no such key");
    int id = shmget(key, 3 * PAGE + 7, IPC_CREAT | IPC_EXCL | 0640);
    ok(id >= 0, "control: made");
    fails(shmget(key, PAGE, IPC_CREAT | IPC_EXCL), EEXIST, "control: exists");
    is(shmget(key, PAGE, 0), id, "control: found");
    fails(shmget(key, 4 * PAGE, 0), EINVAL, "control: too small");
    fails(shmget(IPC_PRIVATE, 0, IPC_CREAT), EINVAL, "control: no size");
    ok(shmctl(id, IPC_STAT, &old) == 0 && old.shm_segsz == 3 * PAGE + 7 &&
           old.shm_perm.__key == key && (old.shm_perm.mode & 0777) == 0640 &&
           old.shm_cpid == getpid() && old.shm_lpid == 0 &&
           old.shm_atime == 0 && old.shm_ctime != 0,
       "control: STAT");
    char *p = sys_shmat(id, NULL, 0);
    ok(shmctl(id, IPC_STAT, &ds) == 0 && ds.shm_lpid == getpid() &&
           ds.shm_atime != 0,
       "control: who attached last");
    char name[32];
    static vma_t v;
    snprintf(name, sizeof name, "/SYSV%08x (deleted)", key);
    ok(vma_find(p, &v) && strcmp(v.name, name) == 0, "control: name in maps");
    is(v.inode, id, "control: inode in maps");
    is(v.offset, 0, "control: offset in maps");
    ds.shm_perm.mode = 0600;
    ok(shmctl(id, IPC_SET, &ds) == 0 && shmctl(id, IPC_STAT, &ds) == 0 &&
           (ds.shm_perm.mode & 0777) == 0600,
       "control: SET");
    int last = shmctl(0, IPC_INFO, (struct shmid_ds *) &info);
    ok(last >= 0 && info.shmmin == 1 && info.shmmni > 0, "control: INFO");
    ok(shmctl(0, SHM_INFO, (struct shmid_ds *) &used) == last &&
           used.used_ids >= 1,
       "control: SHM_INFO");
    bool found = false;
    for (int i = 0; i <= last; i++)
        found |= shmctl(i, SHM_STAT, &ds) == id && ds.shm_nattch == 1 &&
                 ds.shm_perm.__key == key;
    ok(found, "control: SHM_STAT");
    is(shmctl(id, SHM_LOCK, NULL), 0, "control: LOCK");
    ok(shmctl(id, IPC_STAT, &ds) == 0 && (ds.shm_perm.mode & SHM_LOCKED),
       "control: is locked");
    is(shmctl(id, SHM_UNLOCK, NULL), 0, "control: UNLOCK");
    fails(syscall(SYS_shmctl, id, IPC_STAT, BAD_PTR), EFAULT,
          "control: STAT to nowhere");
    fails(syscall(SYS_shmctl, id, IPC_SET, NO_PAGE), EFAULT,
          "control: SET from nowhere");
    fails(syscall(SYS_shmctl, -1, IPC_SET, NO_PAGE), EINVAL,
          "control: SET of none");
    fails(syscall(SYS_shmctl, -1, IPC_STAT, NO_PAGE), EINVAL,
          "control: STAT of none");
    fails(syscall(SYS_shmctl, id, 99, NO_PAGE), EINVAL, "control: command");
    fails(shmget(IPC_PRIVATE, BLOCK, IPC_CREAT | SHM_HUGETLB), ENOMEM,
          "control: no huge pages");
    is(shmctl(id, IPC_RMID, NULL), 0, "control: removed");
    fails(shmget(key, PAGE, 0), ENOENT, "control: the key is free");
    ok(vma_find(p, &v) && strcmp(v.name, name) == 0, "control: name is kept");
    is(sys_shmdt(p), 0, "control: detach");
}

/* Locked memory, limits, and system calls on it. */
static void use(void)
{
    int id = segment(16 * PAGE);
    char *p;
    need(mlockall(MCL_FUTURE) == 0, "mlockall");
    p = sys_shmat(id, NULL, 0);
    munlockall();
    is_str(present(p, 4), "1111", "use: locked from the start");
    is(sys_shmdt(p), 0, "use: detach");
    p = sys_shmat(id, NULL, 0);
    need(GOOD(p), "shmat");
    int fd = file_make(16 * PAGE);
    is(pread(fd, p, 16 * PAGE, 0), 16 * PAGE, "use: read into it");
    ok(p[0] == 'A' && p[15 * PAGE] == 'P', "use: is there");
    is(pwrite(fd, p + PAGE, PAGE, 0), PAGE, "use: written from it");
    is(file_byte(fd, 0), 'B', "use: is in the file");
    for (int i = 0; i < 200; i++) {
        char *q = sys_shmat(id, NULL, 0);
        if (q == MAP_FAILED || q[PAGE] != 'B' || sys_shmdt(q) != 0 ||
            sys_mmap(q, 16 * PAGE, RW, ANON | MAP_FIXED, -1, 0) != q ||
            !all_bytes(q, 0, 16 * PAGE) || !memset(q, 'x', 16 * PAGE) ||
            sys_munmap(q, 16 * PAGE) != 0) {
            tap_say("# round %d", i);
            break;
        }
    }
    ok(p[0] == 'A' && p[PAGE] == 'B' && p[15 * PAGE] == 'P',
       "use: 200 times memory in the place of an attach");
    is(attaches(id), 1, "use: one is left");
    limit_set(RLIMIT_AS, 1);
    fails(sys_shmat(id, NULL, 0), ENOMEM, "use: address space is limited");
    is(attaches(id), 1, "use: nothing is attached then");
    limit_set(RLIMIT_AS, RLIM_INFINITY);
    close(fd);
    sys_shmdt(p);
    shmctl(id, IPC_RMID, NULL);
}

int main(void)
{
    probe_open();
    basics();
    addresses();
    protection();
    pieces();
    moves();
    control();
    use();
    return tap_done();
}
