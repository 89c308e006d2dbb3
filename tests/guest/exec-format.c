/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What exec refuses to run, and by which error: first lines of scripts, ELF
 * headers, interpreters, file systems. Every exec here fails, in this process.
 */
#include "mem.h"

#include <elf.h>
#include <sys/mount.h>

static char dir[] = "/tmp/exec-format-XXXXXX";

static long run(const char *name)
{
    static char *argv[] = {(char *) "zero", NULL};

    return execve(name, argv, argv + 1);
}

static void make(const char *name, const void *data, size_t len, mode_t mode)
{
    int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    need(fd >= 0 && write(fd, data, len) == (ssize_t) len, name);
    need(fchmod(fd, mode) == 0, "fchmod");
    close(fd);
}

static void make_text(const char *name, const char *text)
{
    make(name, text, strlen(text), 0755);
}

/* --- scripts */

static void script(const char *line, int error, const char *name)
{
    make_text("script", line);
    fails(run("./script"), error, name);
}

static void test_lines(void)
{
    char text[400];

    script("#!", EACCES, "nothing at all is the current directory");
    script("#! \t", EACCES, "and so are blanks without a newline");
    script("#!\n", ENOEXEC, "nothing but a newline");
    script("#! \t \n/bin/sh\n", ENOEXEC, "blanks and a newline");
    script("#/bin/sh\n", ENOEXEC, "no exclamation mark");
    script(" #!/bin/sh\n", ENOEXEC, "a blank before it");
    script("#!./none\n", ENOENT, "an interpreter that is not there");
    script("#!./none", ENOENT, "the same without a newline");
    script("#!.\n", EACCES, "a folder");
    script("#!./data\n", EACCES, "a file without permission");
    script("#!./text\n", ENOEXEC, "a text");
    script("#!./text/x\n", ENOTDIR, "something below a file");
    script("#!./script\n", ELOOP, "itself");
    script("#!./none\r\n", ENOENT, "a carriage return belongs to the name");
    make("script", "#!\0\n", 4, 0755);
    fails(run("./script"), EACCES, "a NUL ends the name: nothing again");

    memset(text, 'x', sizeof text);
    text[0] = '#';
    text[1] = '!';
    text[2] = '.';
    text[3] = '/';
    make("script", text, sizeof text, 0755);
    fails(run("./script"), ENOEXEC, "a name that may have been cut off");
    text[255] = '\n';
    make("script", text, sizeof text, 0755);
    fails(run("./script"), ENOENT, "one that has just room");
    text[255] = ' ';
    make("script", text, sizeof text, 0755);
    fails(run("./script"), ENOENT, "a blank ends it, too");
    text[255] = 'x';
    text[256] = '\n';
    make("script", text, sizeof text, 0755);
    fails(run("./script"), ENOEXEC, "the newline is too late");
    memset(text + 2, ' ', sizeof text - 2);
    make("script", text, sizeof text, 0755);
    fails(run("./script"), ENOEXEC, "blanks only, as far as can be seen");
}

/* --- ELF files */

typedef struct file {
    Elf64_Ehdr header;
    Elf64_Phdr phdr[2];
    char interp[64];
} file_t;

static file_t elf(const char *interp)
{
    file_t f = {
        .header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1},
                   .e_type = ET_DYN,
                   .e_machine = EM_AARCH64,
                   .e_version = 1,
                   .e_phoff = sizeof(Elf64_Ehdr),
                   .e_ehsize = sizeof(Elf64_Ehdr),
                   .e_phentsize = sizeof(Elf64_Phdr),
                   .e_phnum = 2},
        .phdr = {{.p_type = PT_INTERP,
                  .p_offset = offsetof(file_t, interp),
                  .p_filesz = strlen(interp) + 1},
                 {.p_type = PT_LOAD,
                  .p_flags = PF_R | PF_X,
                  .p_filesz = sizeof(file_t),
                  .p_memsz = sizeof(file_t),
                  .p_align = 0x10000}},
    };

    memcpy(f.interp, interp, strlen(interp) + 1);
    return f;
}

static void program(const file_t *f, int error, const char *name)
{
    make("program", f, sizeof *f, 0755);
    fails(run("./program"), error, name);
}

static void test_headers(void)
{
    file_t f = elf("./none");

    program(&f, ENOENT, "a program whose interpreter is not there");
    f.header.e_ident[0] = 'x';
    program(&f, ENOEXEC, "not an ELF file");
    f = elf("./none");
    f.header.e_machine = EM_X86_64;
    program(&f, ENOEXEC, "another machine");
    f = elf("./none");
    f.header.e_type = ET_REL;
    program(&f, ENOEXEC, "an object file");
    f.header.e_type = ET_CORE;
    program(&f, ENOEXEC, "a core file");
    f = elf("./none");
    f.header.e_phentsize = 32;
    program(&f, ENOEXEC, "program headers of another size");
    f = elf("./none");
    f.header.e_phnum = 0;
    program(&f, ENOEXEC, "no program headers");
    f.header.e_phnum = 2000;
    program(&f, ENOEXEC, "too many");
    f = elf("./none");
    f.header.e_phoff = sizeof f;
    program(&f, ENOEXEC, "program headers beyond the end of the file");
}

static void test_interpreter_names(void)
{
    file_t f = elf("./none");

    f.phdr[0].p_filesz = 1;
    program(&f, ENOEXEC, "an interpreter's name of one byte");
    f.phdr[0].p_filesz = PATH_MAX + 1;
    program(&f, ENOEXEC, "and of too many");
    f = elf("./none");
    f.phdr[0].p_filesz = 4;
    program(&f, ENOEXEC, "a name that does not end");
    f = elf("./none");
    f.interp[0] = '\0';
    program(&f, EACCES, "an empty name is the current directory");
    f = elf("./none");
    f.phdr[1] = f.phdr[0];
    f.phdr[1].p_filesz = 1;
    program(&f, ENOENT, "of two the first one counts");
}

static void interpreter(const char *name, int error, const char *what)
{
    file_t f = elf(name);

    program(&f, error, what);
}

static void test_interpreters(void)
{
    char text[100];
    file_t f = elf("./none");
    int fd;

    interpreter(".", EACCES, "the interpreter is a folder");
    interpreter("./data", EACCES, "it has no permission");
    interpreter("./text/x", ENOTDIR, "it is below a file");
    make("short", "\177ELF", 4, 0755);
    interpreter("./short", EIO, "it is shorter than a header");
    memset(text, 'x', sizeof text);
    make("long", text, sizeof text, 0755);
    interpreter("./long", ELIBBAD, "it is a text");
    make_text("script", "#!/bin/sh\n# and enough besides for the length of a "
                        "header of an ELF file\n");
    interpreter("./script", ELIBBAD, "it is a script");
    f.header.e_machine = EM_386;
    make("other", &f, sizeof f, 0755);
    interpreter("./other", ELIBBAD, "it is for another machine");
    f = elf("./none");
    f.header.e_phnum = 0;
    make("other", &f, sizeof f, 0755);
    interpreter("./other", ELIBBAD, "it has no program headers");
    fd = open("text", O_RDWR);
    need(fd >= 0, "open");
    interpreter("./text", ETXTBSY, "it is open for writing");
    script("#!./text\n", ETXTBSY, "and a script's");
    close(fd);
}

/* --- file systems */

static void test_noexec(void)
{
    file_t f = elf("./none");

    need(mkdir("mount", 0755) == 0, "mkdir");
    need(mount("none", "mount", "tmpfs", MS_NOEXEC, "size=64k") == 0, "mount");
    make("mount/program", &f, sizeof f, 0755);
    make_text("mount/script", "#!./none\n");
    fails(run("./mount/program"), EACCES, "noexec: a program");
    fails(run("./mount/script"), EACCES, "noexec: a script");
    script("#!./mount/program\n", EACCES,
           "noexec: the interpreter of a script");
    interpreter("./mount/program", EACCES, "noexec: that of a program");
    need(umount("mount") == 0, "umount");
    need(rmdir("mount") == 0, "rmdir");
}

int main(void)
{
    static const char *const names[] = {"script", "program", "data", "text",
                                        "short",  "long",    "other"};

    need(mkdtemp(dir) && chdir(dir) == 0, "mkdtemp");
    make("data", "x", 1, 0644);
    make_text("text", "text\n");
    test_lines();
    test_headers();
    test_interpreter_names();
    test_interpreters();
    test_noexec();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(names[i]);
    need(chdir("/") == 0 && rmdir(dir) == 0, "rmdir");
    return tap_done();
}
