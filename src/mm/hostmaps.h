/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host's /proc/self/maps says of the object area: the current path,
 * device and inode of every object.
 */
#ifndef ELFUSE_MM_HOSTMAPS_H
#define ELFUSE_MM_HOSTMAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct host_map {
    uint64_t start, end;
    uint64_t ino;
    unsigned major, minor;
    char *path; /* as the kernel prints it, or "" */
} host_map_t;

typedef struct host_maps {
    host_map_t *map;
    size_t nr, room;
} host_maps_t;

/* A descriptor of the host's /proc, whatever the guest mounts or calls its
 * root; -1: none. Set before the guest runs (sys/procfs.c). */
extern int host_proc_dir;

/* Read those at or above `from`. -errno. Needs no lock. */
int host_maps_read(host_maps_t *maps, uint64_t from);
/* The one that contains addr, or NULL. */
const host_map_t *host_maps_find(const host_maps_t *maps, uint64_t addr);
void host_maps_free(host_maps_t *maps);

/*
 * Which host pages are shared with another process, copied by neither since a
 * fork: flag[i] says so of page i from host address `host` on (aligned to the
 * host page), of `page` bytes each. Without /proc, of none. Fills at most
 * HOST_SHARED_MAX.
 */
#define HOST_SHARED_MAX 512U
void host_shared_pages(uint64_t host, unsigned pages, size_t page, bool *flag);

#endif
