# SPDX-License-Identifier: Apache-2.0
"""a public binary made for 4 KiB pages, on kernels with 4 and 16 KiB pages

Natively it refuses a kernel with 16 KiB pages. Under elfuse it must index a site
there, with the same files as natively on a kernel with 4 KiB pages.
"""

import os

from runner import command
from runner import machine
from runner import programs

SECONDS = 300
KERNELS = ("6.1", "6.12-16k")
REFUSED = b"Unsupported system page size"


def boot(kernel, binary, site):
    line = programs.SCRIPTS + "scenario pagefind %s $TOP/%s" % (binary, site)
    return machine.Boot(
        "pagefind-" + kernel, [machine.Job("pagefind", line, SECONDS)],
        ["--emulate", "--kernel", kernel, "--share",
         os.path.dirname(binary)],
        timeout=2 * SECONDS + 60)


def refusal(native):
    """What is wrong with the native run on a kernel with large pages."""
    if REFUSED in native.err and b"status 0" not in native.out:
        return ""
    return "natively it was to refuse; instead: %s\n%s" % (
        native.describe(), native.err.decode(errors="replace"))


def run(report):
    names = ["pagefind-" + kernel for kernel in KERNELS]
    if not any(report.wanted(name) for name in names):
        return
    built = command.make("all")
    fetched = command.run(["tools/pagefind"], timeout=900, apart=True)
    if built.status or fetched.status:
        report.failed("building", built.out + fetched.err)
        return
    site = programs.module("website").make("build/check/site")
    reference = None
    for kernel, name in zip(KERNELS, names):
        here = boot(kernel, fetched.out.strip(), site)
        trouble = here.run([("native", None), ("elfuse", "/tmp/elfuse")])
        if trouble:
            report.failed(name, trouble)
            continue
        native = here.results("native")("pagefind")
        elfuse = here.results("elfuse")("pagefind")
        if kernel == KERNELS[0]:
            reference, text = native, ""
            if b"Indexed 200 pages" not in native.out:
                text = "natively: %s\n" % native.describe()
        else:
            text = refusal(native)
        if reference:
            text += programs.compare(reference, elfuse, bytes)
        if text:
            report.failed(name, text)
        else:
            report.passed(name, "%d files of the index compared" %
                          reference.tree.count(b"  ./site/pagefind/"))
