/* SPDX-License-Identifier: Apache-2.0 */
/* /proc/self/maps, smaps and the sizes in status, stat and statm. */
#include "mem.h"

#include <stddef.h>

static char exe[4096];

static unsigned long status_kb(const char *key)
{
    unsigned long kb = -1UL;
    char *line;
    lines_open(&mem_lines, "/proc/self/status");
    while ((line = lines_next(&mem_lines)))
        if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':')
            kb = strtoul(line + strlen(key) + 1, NULL, 10);
    lines_close(&mem_lines);
    return kb;
}

/* The program sees what is its own and nothing of what runs it. */
static bool is_known(const vma_t *v, const char *mapped)
{
    static const char *const names[] = {"",       "[heap]",        "[stack]",
                                        "[vvar]", "[vvar_vclock]", "[vdso]"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(v->name, names[i]) == 0)
            return true;
    return strcmp(v->name, exe) == 0 || strcmp(v->name, mapped) == 0;
}

static void test_maps(void)
{
    static vma_t v;
    unsigned long last = 0, total = 0;
    bool order = true, known = true, format = true, aligned = true;
    int images = 0;
    char *line;
    char *mine = sys_mmap(NULL, 3 * PAGE, PROT_READ, ANON, -1, 0);
    need(GOOD(mine), "mmap");
    need(sbrk(PAGE) != (void *) -1, "sbrk");
    lines_open(&mem_lines, "/proc/self/maps");
    while ((line = lines_next(&mem_lines))) {
        bool parsed = vma_parse(line, &v);
        format &= parsed;
        if (!parsed)
            continue;
        order &= v.start >= last && v.end > v.start;
        aligned &= v.start % PAGE == 0 && v.end % PAGE == 0;
        format &= v.end < 1UL << 48;
        format &= strchr("r-", v.perms[0]) && strchr("w-", v.perms[1]) &&
                  strchr("x-", v.perms[2]) && strchr("ps", v.perms[3]);
        if (!is_known(&v, "")) {
            known = false;
            tap_say("#   unknown: %s", line);
        }
        images += strcmp(v.name, exe) == 0;
        last = v.end;
        total += v.end - v.start;
    }
    lines_close(&mem_lines);
    ok(format, "maps: every line is well formed");
    ok(order, "maps: ascending, nothing overlaps");
    ok(aligned, "maps: on page borders");
    ok(known, "maps: nothing that is not the program's");
    ok(images >= 2, "maps: the program's text and data by its path");
    is(total / KIB, status_kb("VmSize"), "maps: the sum is VmSize");
    is_str(layout(mine, 3), "r--p:3", "maps: an own mapping");
    static const char *const one[] = {"[heap]", "[stack]", "[vvar]", "[vdso]"};
    for (int i = 0; i < 4; i++)
        ok(vma_named(one[i], &v), one[i]);
}

/* maps read in pieces of any size is the same text. */
static void test_reading(void)
{
    static char whole[16384], parts[16384];
    int fd = open("/proc/self/maps", O_RDONLY), n = 0, m = 0, r;
    while ((r = read(fd, whole + n, sizeof whole - n)) > 0)
        n += r;
    ok(n > 300 && n < (int) sizeof whole, "maps: read to its end");
    is(lseek(fd, 0, SEEK_SET), 0, "maps: back to the start");
    while ((r = read(fd, parts + m, 7)) > 0)
        m += r;
    ok(n == m && memcmp(whole, parts, n) == 0, "maps: by seven bytes");
    is(pread(fd, parts, 50, 10), 50, "maps: pread");
    ok(memcmp(whole + 10, parts, 50) == 0, "maps: of the same text");
    struct stat st;
    ok(fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0,
       "maps: is a regular file of size 0");
    close(fd);
    static const char *const paths[] = {
        "/proc/thread-self/maps",       "/proc/./self/maps",
        "/proc/self/../self/maps",      "/proc//self//maps",
        "/proc/self/task/../maps",      "/../proc/self/maps",
        "/proc/self/cwd/proc/self/maps"};
    char name[96], id[96];
    need(chdir("/") == 0, "chdir");
    for (size_t i = 0; i < 9; i++) {
        const char *path = i < 7 ? paths[i] : id;
        if (i == 7)
            snprintf(id, sizeof id, "/proc/%d/maps", getpid());
        if (i == 8)
            snprintf(id, sizeof id, "/proc/self/task/%d/maps", getpid());
        fd = open(path, O_RDONLY);
        for (m = 0; (r = read(fd, parts + m, sizeof parts - m)) > 0;)
            m += r;
        snprintf(name, sizeof name, "maps: spelling %zu of 9", i + 1);
        ok(n == m && memcmp(whole, parts, n) == 0, name);
        close(fd);
    }
    int dir = open("/proc/self", O_RDONLY | O_DIRECTORY);
    fd = openat(dir, "maps", O_RDONLY);
    for (m = 0; (r = read(fd, parts + m, sizeof parts - m)) > 0;)
        m += r;
    ok(n == m && memcmp(whole, parts, n) == 0, "maps: by openat");
    close(fd), close(dir);
}

static void test_smaps(void)
{
    static vma_t v, m;
    static lines_t maps;
    unsigned long sum = 0, size = 0;
    bool same = true, sizes = true;
    long heads = 0;
    char *line, *other;
    lines_open(&maps, "/proc/self/maps");
    lines_open(&mem_lines, "/proc/self/smaps");
    while ((line = lines_next(&mem_lines))) {
        if (vma_parse(line, &v) && strchr(line, '-')) {
            heads++;
            other = lines_next(&maps);
            same &= other && vma_parse(other, &m) && v.start == m.start &&
                    v.end == m.end && strcmp(v.perms, m.perms) == 0 &&
                    strcmp(v.name, m.name) == 0;
        } else if (sscanf(line, "Size: %lu kB", &size) == 1) {
            sizes &= size == (v.end - v.start) / KIB;
            sum += size;
        }
    }
    lines_close(&mem_lines);
    lines_close(&maps);
    ok(heads > 5 && same, "smaps: the same mappings as maps");
    ok(sizes, "smaps: Size is the mapping's");
    is(sum, status_kb("VmSize"), "smaps: the sum is VmSize");
}

static void test_sizes(void)
{
    unsigned long size = status_kb("VmSize"), data = status_kb("VmData");
    char *p = map_rw(3 * MIB);
    is(status_kb("VmSize"), size + 3072, "VmSize: 3 MiB more");
    is(status_kb("VmData"), data + 3072, "VmData: 3 MiB more");
    ok(status_kb("VmPeak") >= size + 3072, "VmPeak is at least that");
    is(mlock(p, MIB), 0, "mlock of 1 MiB");
    is(status_kb("VmLck"), 1024, "VmLck: 1 MiB");
    sys_munmap(p, 3 * MIB);
    is(status_kb("VmSize"), size, "VmSize: as before");
    is(status_kb("VmLck"), 0, "VmLck: nothing");
    char *s = sys_mmap(NULL, MIB, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    is(status_kb("VmData"), data, "VmData: shared memory does not count");
    sys_munmap(s, MIB);
    static vma_t v;
    need(vma_named("[stack]", &v), "[stack]");
    is(status_kb("VmStk"), (v.end - v.start) / KIB, "VmStk is the stack");

    char *line;
    lines_open(&mem_lines, "/proc/self/statm");
    line = lines_next(&mem_lines);
    need(line, "statm");
    is(strtoul(line, NULL, 10) * 4, size, "statm: the size in pages");
    lines_close(&mem_lines);
    lines_open(&mem_lines, "/proc/self/stat");
    line = lines_next(&mem_lines);
    need(line && (line = strrchr(line, ')')), "stat");
    for (int i = 2; i < 23; i++)
        line = strchr(line + 1, ' ');
    is(strtoul(line, NULL, 10) / KIB, size, "stat: the size in bytes");
    lines_close(&mem_lines);
}

int main(void)
{
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    need(n > 0, "readlink");
    probe_open();
    test_maps();
    test_reading();
    test_smaps();
    test_sizes();
    return tap_done();
}
