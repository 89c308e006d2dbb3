/* SPDX-License-Identifier: Apache-2.0 */
#include "proc/elf_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Linux reads no more of PT_GNU_PROPERTY. */
#define PROPERTY_MAX 1024U

int elf_file_read_at(int fd, void *to, size_t len, uint64_t offset)
{
    char *p = to;

    while (len > 0) {
        ssize_t n = pread(fd, p, len, (off_t) offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        p += n;
        offset += (uint64_t) n;
        len -= (size_t) n;
    }
    return 0;
}

static int cannot_read(int error, char *why)
{
    snprintf(why, ELF_WHY_MAX, "cannot read it: %s", strerror(-error));
    return error;
}

static int read_interp(elf_file_t *file, char *why)
{
    const elf_image_t *image = &file->image;
    int error = elf_file_read_at(file->fd, file->interp, image->interp_len,
                                 image->interp_off);

    if (error != 0)
        return cannot_read(error, why);
    if (file->interp[image->interp_len - 1] == '\0')
        return 0;
    snprintf(why, ELF_WHY_MAX,
             "bad ELF segment: the interpreter's name does not end");
    return -ENOEXEC;
}

/* No use in refusing a program for a note that it need not have. */
static void read_property(elf_file_t *file)
{
    elf_image_t *image = &file->image;
    char property[PROPERTY_MAX];
    size_t len =
        image->prop_len < sizeof(property) ? image->prop_len : sizeof(property);

    if (len > 0 &&
        elf_file_read_at(file->fd, property, len, image->prop_off) == 0)
        elf_parse_property(image, property, len);
}

int elf_file_read(elf_file_t *file, int fd, uint64_t task_size, char *why)
{
    char header[sizeof(Elf64_Ehdr)];
    struct stat st;

    memset(file, 0, sizeof(*file));
    file->fd = fd;
    if (fstat(fd, &st) != 0)
        return cannot_read(-errno, why);
    uint64_t size = (uint64_t) st.st_size;
    size_t len = size < sizeof(header) ? size : sizeof(header);
    int error = elf_file_read_at(fd, header, len, 0);
    if (error != 0)
        return cannot_read(error, why);
    error = elf_parse(header, len, size, &file->image, why);
    if (error != 0)
        return error;
    size_t bytes = file->image.phnum * sizeof(Elf64_Phdr);
    file->phdr = malloc(bytes);
    if (file->phdr == NULL)
        return cannot_read(-ENOMEM, why);
    error = elf_file_read_at(fd, file->phdr, bytes, file->image.phoff);
    if (error != 0)
        return cannot_read(error, why);
    error = elf_parse_segments(&file->image, file->phdr, size, task_size, why);
    if (file->image.interp_len > 0) {
        int bad_name = read_interp(file, why);
        if (bad_name != 0) {
            file->image.interp_len = 0;
            return bad_name;
        }
    }
    if (error == 0)
        read_property(file);
    return error;
}

void elf_file_free(elf_file_t *file)
{
    free(file->phdr);
    file->phdr = NULL;
}
