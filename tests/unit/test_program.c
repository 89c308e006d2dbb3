/* SPDX-License-Identifier: Apache-2.0 */
/* sources: src/proc/program.c src/proc/script.c src/proc/elf_file.c */
/* sources: src/proc/elf.c */
/* From a file and arguments to what is to be loaded, in a folder of its own. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "proc/elf.h"
#include "proc/program.h"
#include "sys/sys.h"

static char dir[] = "/tmp/elfuse-program-XXXXXX";

int procfs_reopen(int fd, int flags)
{
    char link[64];

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    int again = open(link, flags);
    return again < 0 ? -errno : again;
}

static void make_file(const char *name, const void *data, size_t len,
                      mode_t mode)
{
    int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), (ssize_t) len);
    assert_int_equal(fchmod(fd, mode), 0);
    assert_int_equal(close(fd), 0);
}

static void make_script(const char *name, const char *text)
{
    make_file(name, text, strlen(text), 0700);
}

/* An arm64 program, with an interpreter unless interp is NULL. */
static void make_elf(const char *name, const char *interp, unsigned machine)
{
    struct {
        Elf64_Ehdr header;
        Elf64_Phdr phdr[2];
        char interp[64];
    } file = {
        .header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1},
                   .e_type = ET_DYN,
                   .e_machine = (Elf64_Half) machine,
                   .e_version = 1,
                   .e_phoff = sizeof(Elf64_Ehdr),
                   .e_ehsize = sizeof(Elf64_Ehdr),
                   .e_phentsize = sizeof(Elf64_Phdr),
                   .e_phnum = interp != NULL ? 2 : 1},
        .phdr = {{.p_type = PT_LOAD,
                  .p_flags = PF_R | PF_X,
                  .p_filesz = sizeof(file),
                  .p_memsz = sizeof(file),
                  .p_align = 4096},
                 {.p_type = PT_INTERP,
                  .p_offset = offsetof(__typeof__(file), interp),
                  .p_filesz = interp != NULL ? strlen(interp) + 1 : 0}},
    };

    if (interp != NULL)
        memcpy(file.interp, interp, strlen(interp) + 1);
    make_file(name, &file, sizeof(file), 0700);
}

static int set_up(void **state)
{
    assert_non_null(mkdtemp(dir));
    assert_int_equal(chdir(dir), 0);
    make_elf("static", NULL, EM_AARCH64);
    make_elf("dynamic", "static", EM_AARCH64);
    assert_int_equal(mkdir("folder", 0700), 0);
    return 0;
}

static int tear_down(void **state)
{
    char command[64];

    assert_int_equal(chdir("/"), 0);
    snprintf(command, sizeof(command), "rm -rf %s", dir);
    return system(command);
}

static program_t program;

static int open_with(int dirfd, const char *path, int flags, char *const *argv)
{
    program_request_t request = {
        .dirfd = dirfd, .path = path, .flags = flags, .argv = argv};

    return program_open(&request, &program);
}

static int open_path(const char *path)
{
    char *argv[] = {(char *) "zero", (char *) "one", NULL};

    return open_with(AT_FDCWD, path, 0, argv);
}

/* The arguments, with "|" between them, must be these; closes the program. */
static void has_arguments(const char *want)
{
    char got[1024] = "";

    for (unsigned i = 0; i < program.argc; i++) {
        assert_non_null(program.argv[i]);
        snprintf(got + strlen(got), sizeof(got) - strlen(got), "%s%s",
                 i > 0 ? "|" : "", program.argv[i]);
    }
    assert_null(program.argv[program.argc]);
    assert_string_equal(got, want);
    program_close(&program);
}

static void opens(const char *path, const char *arguments)
{
    if (open_path(path) != 0)
        fail_msg("%s: %s", path, program.why);
    assert_string_equal(program.execfn, path);
    has_arguments(arguments);
}

static void refused(const char *path, int error, const char *phrase)
{
    assert_int_equal(open_path(path), -error);
    if (strstr(program.why, phrase) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", program.why, phrase);
    assert_int_equal(program.fd, -1);
    assert_int_equal(program.interp_fd, -1);
}

static bool is_file(int fd, const char *name)
{
    struct stat a, b;

    return fstat(fd, &a) == 0 && stat(name, &b) == 0 && a.st_ino == b.st_ino;
}

static void test_elf(void **state)
{
    char *none[] = {NULL};

    assert_int_equal(open_path("static"), 0);
    assert_true(is_file(program.fd, "static"));
    assert_int_equal(program.interp_fd, -1);
    assert_int_equal(fcntl(program.fd, F_GETFD), FD_CLOEXEC);
    has_arguments("zero|one");
    assert_int_equal(open_path("./dynamic"), 0);
    assert_true(is_file(program.fd, "dynamic"));
    assert_true(is_file(program.interp_fd, "static"));
    assert_string_equal(program.execfn, "./dynamic");
    has_arguments("zero|one");
    assert_int_equal(open_with(AT_FDCWD, "static", 0, none), 0);
    has_arguments("");
}

static void test_files(void **state)
{
    make_file("data", "x", 1, 0600);
    assert_int_equal(mkfifo("fifo", 0700), 0);
    assert_int_equal(symlink("static", "link"), 0);
    assert_int_equal(symlink("loop", "loop"), 0);
    refused("none", ENOENT, "No such file");
    refused("", ENOENT, "No such file");
    refused("static/x", ENOTDIR, "Not a directory");
    refused("folder", EACCES, "denied");
    refused("fifo", EACCES, "denied");
    refused("data", EACCES, "denied");
    refused("/dev/null", EACCES, "denied");
    refused("loop", ELOOP, "symbolic links");
    opens("link", "zero|one");
    char *argv[] = {NULL};
    assert_int_equal(open_with(AT_FDCWD, "link", AT_SYMLINK_NOFOLLOW, argv),
                     -ELOOP);
    make_script("text", "echo\n");
    refused("text", ENOEXEC, "not an ELF file");
    make_script("empty", "");
    refused("empty", ENOEXEC, "empty");
    make_elf("x86", NULL, EM_X86_64);
    refused("x86", ENOEXEC, "x86-64");
}

static void test_busy(void **state)
{
    int fd = open("static", O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    refused("static", ETXTBSY, "busy");
    refused("dynamic", ETXTBSY, "interpreter");
    assert_int_equal(close(fd), 0);
    opens("dynamic", "zero|one");
}

static void test_interpreters(void **state)
{
    make_elf("d-none", "/none/ld.so", EM_AARCH64);
    refused("d-none", ENOENT, "/none/ld.so");
    make_elf("d-folder", "folder", EM_AARCH64);
    refused("d-folder", EACCES, "interpreter folder");
    make_elf("d-empty", "", EM_AARCH64);
    refused("d-empty", ENOEXEC, "no name");
    make_script("short", "x");
    make_elf("d-short", "short", EM_AARCH64);
    refused("d-short", EIO, "short");
    char text[100];
    memset(text, 'x', sizeof(text));
    make_file("long", text, sizeof(text), 0700);
    make_elf("d-long", "long", EM_AARCH64);
    refused("d-long", ELIBBAD, "not an ELF file");
    make_elf("d-x86", "x86", EM_AARCH64);
    make_elf("x86", NULL, EM_X86_64);
    refused("d-x86", ELIBBAD, "x86-64");
    /* An interpreter's interpreter is not looked at. */
    make_elf("d-d", "d-none", EM_AARCH64);
    opens("d-d", "zero|one");
}

static void test_scripts(void **state)
{
    make_script("s1", "#!static\n");
    opens("s1", "static|s1|one");
    make_script("s2", "#! ./s1  a b \n");
    opens("s2", "static|./s1|a b|s2|one");
    assert_int_equal(open_path("./s2"), 0);
    assert_true(is_file(program.fd, "static"));
    assert_string_equal(program.execfn, "./s2");
    program_close(&program);
    make_script("s-dynamic", "#!dynamic");
    assert_int_equal(open_path("s-dynamic"), 0);
    assert_true(is_file(program.fd, "dynamic"));
    assert_true(is_file(program.interp_fd, "static"));
    has_arguments("dynamic|s-dynamic|one");
    char *none[] = {NULL};
    assert_int_equal(open_with(AT_FDCWD, "s1", 0, none), 0);
    has_arguments("static|s1");
}

static void test_bad_scripts(void **state)
{
    make_script("s-none", "#!/none/sh\n");
    refused("s-none", ENOENT, "/none/sh");
    make_script("s-windows", "#!/bin/sh\r\n");
    refused("s-windows", ENOENT, "CR LF");
    make_script("s-folder", "#!folder x\n");
    refused("s-folder", EACCES, "folder");
    make_script("s-text", "#!text\n");
    refused("s-text", ENOEXEC, "not an ELF file");
    make_script("s-nothing", "#!\n");
    refused("s-nothing", ENOEXEC, "first line");
    /* No name at all is the current directory. */
    make_script("s-short", "#!");
    refused("s-short", EACCES, "denied");
    make_script("s-self", "#!s-self\n");
    refused("s-self", ELOOP, "scripts");
}

static void test_nesting(void **state)
{
    char name[16] = "static", text[32];

    for (int i = 1; i <= 6; i++) {
        snprintf(text, sizeof(text), "#!%s -%d\n", name, i);
        snprintf(name, sizeof(name), "n%d", i);
        make_script(name, text);
    }
    opens("n5", "static|-1|n1|-2|n2|-3|n3|-4|n4|-5|n5|one");
    refused("n6", ELOOP, "symbolic links");
}

static void test_by_descriptor(void **state)
{
    char *argv[] = {(char *) "zero", NULL};
    char name[32];
    int fd = open("s1", O_RDONLY | O_CLOEXEC);
    int path = open("static", O_PATH | O_CLOEXEC);
    int here = open(".", O_RDONLY | O_DIRECTORY);

    assert_true(fd >= 0 && path >= 0 && here >= 0);
    assert_int_equal(open_with(fd, "", 0, argv), -ENOENT);
    /* Closed by exec: the interpreter could not find the script. */
    assert_int_equal(open_with(fd, "", AT_EMPTY_PATH, argv), -ENOENT);
    assert_int_equal(fcntl(fd, F_SETFD, 0), 0);
    assert_int_equal(open_with(fd, "", AT_EMPTY_PATH, argv), 0);
    snprintf(name, sizeof(name), "/dev/fd/%d", fd);
    assert_string_equal(program.execfn, name);
    assert_string_equal(program.argv[1], name);
    program_close(&program);

    assert_int_equal(open_with(path, "", AT_EMPTY_PATH, argv), 0);
    assert_true(is_file(program.fd, "static"));
    has_arguments("zero");
    assert_int_equal(open_with(here, "s1", AT_EMPTY_PATH, argv), 0);
    snprintf(name, sizeof(name), "/dev/fd/%d/s1", here);
    assert_string_equal(program.execfn, name);
    program_close(&program);
    assert_int_equal(open_with(here, "", AT_EMPTY_PATH, argv), -EACCES);
    assert_int_equal(open_with(AT_FDCWD, "", AT_EMPTY_PATH, argv), -EACCES);
    assert_int_equal(open_with(-1, "", AT_EMPTY_PATH, argv), -EBADF);
    assert_int_equal(open_with(fd, "x", 0, argv), -ENOTDIR);

    program_request_t request = {.dirfd = path,
                                 .path = "",
                                 .flags = AT_EMPTY_PATH,
                                 .execfn = "/proc/self/exe",
                                 .argv = argv};
    assert_int_equal(program_open(&request, &program), 0);
    assert_string_equal(program.execfn, "/proc/self/exe");
    program_close(&program);
    close(fd);
    close(path);
    close(here);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elf),     cmocka_unit_test(test_files),
        cmocka_unit_test(test_busy),    cmocka_unit_test(test_interpreters),
        cmocka_unit_test(test_scripts), cmocka_unit_test(test_bad_scripts),
        cmocka_unit_test(test_nesting), cmocka_unit_test(test_by_descriptor),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
