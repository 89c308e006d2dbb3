# SPDX-License-Identifier: Apache-2.0
"""clang-format, clang-tidy, cppcheck, shellcheck and pyflakes

Zero findings. A suppression stands in the source, with its reason.
"""

import os
import re
import shutil

from runner import command

ARM = ["--target=aarch64-linux-gnu"] if os.uname().machine != "aarch64" else []
COMMON = ["-std=gnu11", "-D_GNU_SOURCE", "-Isrc", "-Wall", "-Wextra",
          "-Wno-unused-parameter"]
# What the code of a folder is compiled for; the first that matches.
FLAGS = [
    ("src/shim/", ARM + ["-ffreestanding", "-mgeneral-regs-only"]),
    ("src/vdso/", ARM + ["-ffreestanding", "-fPIC"]),
    ("src/", ARM + ["-DELFUSE_VERSION=\"\""]),
    ("tests/unit/", ["-Itests/unit", "-DELFUSE_VERSION=\"\""]),
    ("tests/fuzz/", ["-DELFUSE_VERSION=\"\""]),
    # Bad pointers and odd arguments are what these are about.
    ("tests/guest/", ARM + ["-Wno-nonnull"]),
    ("tests/dynamic/", ARM + ["-Wno-nonnull", "-Itests/guest",
                              "-Itests/dynamic", "-DNAME=name",
                              "-DLINKED=0"]),
    ("", ARM),
]
FORMATTER = ("clang-format-14", "clang-format")


def sources():
    """Files under version control, or about to be; in a copy without git, all
    but what was built."""
    listed = command.run(["git", "ls-files", "-co", "--exclude-standard"]) \
        if shutil.which("git") else None
    if listed and listed.status == 0:
        return sorted(p for p in set(listed.out.split("\n"))
                      if os.path.isfile(p))
    found = []
    for folder, folders, names in os.walk("."):
        folders[:] = [f for f in folders
                      if os.path.join(folder, f) not in ("./build", "./.git")]
        found += [os.path.join(folder, name)[2:] for name in names]
    return sorted(found)


def of_type(paths, suffixes, interpreter):
    """By the name, or by the first line of a file without a suffix."""
    for path in paths:
        if path.endswith(suffixes):
            yield path
        elif "." not in os.path.basename(path):
            with open(path, "rb") as source:
                if re.match(interpreter, source.readline()):
                    yield path


def flags_of(path):
    for prefix, flags in FLAGS:
        if path.startswith(prefix):
            return COMMON + flags
    return COMMON


def each(report, tool, paths, arguments):
    """One run of a tool a file; one test for all of them."""
    paths = [path for path in paths if report.wanted(path)]
    if not paths:
        return
    if not shutil.which(tool):
        report.skipped(tool, "not installed")
        return
    bad = 0
    jobs = ((path, arguments(path)) for path in paths)
    for path, outcome in command.run_all(jobs):
        if outcome.status != 0:
            bad += 1
            report.failed("%s %s" % (tool, path), outcome.out)
    if not bad:
        report.passed(tool, "%d files" % len(paths))


def clang_format(report, paths):
    tool = next((t for t in FORMATTER if shutil.which(t)), FORMATTER[0])
    if tool == "clang-format":
        version = command.run([tool, "--version"]).out
        if " 14." not in version:
            report.skipped("clang-format", "the layout is that of version "
                           "14; here is " + version.strip())
            return
    each(report, tool, paths, lambda path: [
        tool, "--dry-run", "-Werror", "--ferror-limit=4", path])


# What cppcheck 2.10 gets wrong in more than one place:
#   ctuuninitvar: a pointer to a structure of which other members are set
#   comparePointers: begin and end of an image, which the linker defines
#   preprocessorErrorDirective: it expands the macros of the call table wrongly
CPPCHECK_FALSE = ["ctuuninitvar", "comparePointers",
                  "preprocessorErrorDirective:src/sys/table.c"]
# Macros of libbsd's and the C library's headers, which it does not read.
CPPCHECK_MACROS = ["_Noreturn=__attribute__((noreturn))", "__aarch64__=1",
                   "_GNU_SOURCE=1", "RB_GENERATE_INTERNAL(a,b,c,d,e)=",
                   "LIST_FOREACH(v,h,f)=for(v=first(h);v;v=next(v))"]


def cppcheck(report, paths):
    options = ["-q", "--std=c11", "--platform=unix64", "--inline-suppr",
               "--enable=warning,performance,portability",
               "--error-exitcode=1", "--suppress=missingIncludeSystem",
               "-Isrc", "-Itests/unit"]
    options += ["--suppress=" + name for name in CPPCHECK_FALSE]
    options += ["-D" + macro for macro in CPPCHECK_MACROS]
    each(report, "cppcheck", paths,
         lambda path: ["cppcheck"] + options + [path])


def run(report):
    paths = sources()
    code = [p for p in paths if p.endswith((".c", ".h"))]
    units = [p for p in code if p.endswith(".c")]
    clang_format(report, code)
    each(report, "shellcheck", of_type(
        paths, (".sh",), rb"#!.*\b(ba)?sh\b"),
        lambda path: ["shellcheck", path])
    each(report, "pyflakes3", of_type(
        paths, (".py",), rb"#!.*\bpython3\b"),
        lambda path: ["pyflakes3", path])
    cppcheck(report, units)
    each(report, "clang-tidy", units, lambda path: [
        "clang-tidy", "--quiet", path, "--"] + flags_of(path))
