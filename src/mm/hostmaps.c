/* SPDX-License-Identifier: Apache-2.0 */
#include "mm/hostmaps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int maps_add(host_maps_t *maps, const host_map_t *map, const char *path)
{
    host_map_t *slot;

    if (maps->nr == maps->room) {
        size_t room = maps->room ? maps->room * 2 : 64;
        slot = realloc(maps->map, room * sizeof(*slot));
        if (!slot)
            return -ENOMEM;
        maps->map = slot;
        maps->room = room;
    }
    slot = &maps->map[maps->nr];
    *slot = *map;
    slot->path = strdup(path);
    if (!slot->path)
        return -ENOMEM;
    maps->nr++;
    return 0;
}

/* One line: "start-end perms offset major:minor inode      path". */
static int maps_line(host_maps_t *maps, char *line, uint64_t from)
{
    host_map_t map = {0};
    char *path;
    int at = 0;

    if (sscanf(line, "%lx-%lx %*s %*x %x:%x %lu %n", &map.start, &map.end,
               &map.major, &map.minor, &map.ino, &at) < 5)
        return 0;
    if (map.start < from || !map.ino)
        return 0;
    path = line + at;
    path[strcspn(path, "\n")] = 0;
    return maps_add(maps, &map, path);
}

int host_proc_dir = -1;

/* /proc/self/maps, or another file of that folder. */
static int proc_self_open(const char *absolute)
{
    const char *name = absolute + strlen("/proc/");

    return host_proc_dir < 0
               ? open(absolute, O_RDONLY | O_CLOEXEC)
               : openat(host_proc_dir, name, O_RDONLY | O_CLOEXEC);
}

static FILE *maps_open(void)
{
    int fd = proc_self_open("/proc/self/maps");
    FILE *in = fd < 0 ? NULL : fdopen(fd, "r");

    if (!in && fd >= 0)
        close(fd);
    return in;
}

int host_maps_read(host_maps_t *maps, uint64_t from)
{
    FILE *in = maps_open();
    char *line = NULL;
    size_t room = 0;
    int err = 0;

    *maps = (host_maps_t){0};
    if (!in)
        return -errno;
    while (!err && getline(&line, &room, in) > 0)
        err = maps_line(maps, line, from);
    free(line);
    fclose(in);
    if (err)
        host_maps_free(maps);
    return err;
}

const host_map_t *host_maps_find(const host_maps_t *maps, uint64_t addr)
{
    size_t low = 0, high = maps->nr;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const host_map_t *map = &maps->map[middle];

        if (addr < map->start)
            high = middle;
        else if (addr >= map->end)
            low = middle + 1;
        else
            return map;
    }
    return NULL;
}

void host_maps_free(host_maps_t *maps)
{
    for (size_t i = 0; i < maps->nr; i++)
        free(maps->map[i].path);
    free(maps->map);
    *maps = (host_maps_t){0};
}

/* Documentation/admin-guide/mm/pagemap.rst */
#define PAGEMAP_PRESENT   (1UL << 63)
#define PAGEMAP_EXCLUSIVE (1UL << 56)

void host_shared_pages(uint64_t host, unsigned pages, size_t page, bool *flag)
{
    uint64_t entry[HOST_SHARED_MAX];
    int fd = proc_self_open("/proc/self/pagemap");
    size_t size = pages * sizeof(entry[0]), got = 0;

    if (fd >= 0) {
        ssize_t n = pread(fd, entry, size, (off_t) (host / page * 8));

        got = n > 0 ? (size_t) n / sizeof(entry[0]) : 0;
        close(fd);
    }
    for (unsigned i = 0; i < pages; i++)
        flag[i] = i < got && (entry[i] & PAGEMAP_PRESENT) &&
                  !(entry[i] & PAGEMAP_EXCLUSIVE);
}
