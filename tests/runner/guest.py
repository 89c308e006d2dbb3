# SPDX-License-Identifier: Apache-2.0
"""guest programs on a real kernel and under elfuse, in one boot

A test is one run of a program of tests/guest in one configuration: TAP and
status must be right in both places and the outputs the same bytes.
tests/guest/EXPECT has runs with arguments and runs that end in another way.
"""

import glob
import os

from runner import command
from runner import machine
from runner.programs import difference
from runner.tap import Tap

ELFUSE = "/tmp/elfuse"
SECONDS = 400
MAX = "max,pauth=off,sve=off,sme=off"

# What the shorter runs keep: what the kernel's pages and the processor matter
# to. Programs, or programs with their arguments.
SHORT = ("auxv", "brk", "faults", "file-io", "file-map", "file-map-kinds",
         "lazy-edge", "lazy-io", "lazy-reuse", "madvise", "mmap-exec",
         "mmap-flags", "mprotect", "mremap", "munmap", "proc-maps",
         "proc-self", "signal", "signal-fault", "signal-frame", "signal-regs",
         "stack", "vdso", "die.read_null", "die.write_text",
         "die.beyond_file", "die.exec_data", "die.undefined",
         "die.stack_overflow", "die.exit_3")


def everything(_):
    return True


def one_death_of_a_kind(name):
    """Every program, but of the many deaths those of SHORT only."""
    return name in SHORT or not name.startswith("die.")


def shorter(name):
    return name in SHORT


# A run of elfuse by its label: its options, and which tests.
ALL = [("elfuse", "", everything)]
MOST = [("elfuse", "", one_death_of_a_kind)]
FEW = [("elfuse", "", shorter)]

# Name, elfuse-vm's options, runs. A kernel with other pages than ours is no
# reference: there the first boot's native run is.
CONFIGURATIONS = [
    ("6.1-max", [], ALL + [("36bit", "--ipa-bits 36", one_death_of_a_kind)]),
    ("6.1-a72", ["--cpu", "cortex-a72"], MOST),
    ("6.12-16k", ["--kernel", "6.12-16k"], FEW),
    ("6.1-pauth", ["--cpu", MAX.replace("pauth=off", "pauth=on")], FEW),
    ("6.1-sve", ["--cpu", MAX.replace("sve=off", "sve=on")], FEW),
]
NO_REFERENCE = ("6.12-16k",)
# Kernels of another release, which the archive may drop.
OPTIONAL = ("6.12-16k",)

# Programs for calls that elfuse does not serve yet (ENOSYS), and why.
LATER = {}

# What rests on the host's page size, where that is not the program's 4 KiB: the
# end of a file, and what has been copied on write, go by the host's pages.
COARSE = {"die.beyond_file": "the host's page reaches past the end of the file",
          "file-map": "file ends and private copies go by the host's pages",
          "madvise": "the end of a file goes by the host's pages"}


class Run:
    def __init__(self, program, arguments, status, tap):
        self.program, self.arguments = program, arguments
        self.status, self.tap = status, tap
        self.name = ".".join([program] + arguments).replace("/", "_")

    def job(self):
        return machine.Job(self.name, " ".join(
            ["export ELFUSE_UNDER_TEST=$mode; target",
             "/tmp/guest/" + self.program] + self.arguments),
            SECONDS)


def runs():
    """Those of EXPECT, and each program without a line there, once."""
    found, named = [], set()
    with open("tests/guest/EXPECT", encoding="utf-8") as source:
        for line in source:
            words = line.split("#")[0].split()
            if words:
                named.add(words[1])
                found.append(Run(words[1], words[2:], int(words[0]), False))
    for path in sorted(glob.glob("tests/guest/*.c")):
        program = os.path.basename(path)[:-2]
        if program not in named:
            found.append(Run(program, [], 0, True))
    return found


def faults(run, result):
    """What is wrong with one result on its own, '' if nothing."""
    if result.timed_out or result.status != run.status:
        return "%s, not %d" % (result.describe(), run.status)
    if run.tap:
        tap = Tap(result.out.decode(errors="replace"))
        if tap.failures:
            return "not ok: " + "; ".join(tap.failures)
        return tap.problem
    return ""


def judge(report, name, run, native, elfuse):
    text = ""
    for title, result in (("natively", native), ("under elfuse", elfuse)):
        fault = result and faults(run, result)
        if fault:
            text += "%s: %s\n" % (title, fault)
    if native:
        text += difference("standard output", native.out, elfuse.out)
        text += difference("standard error", native.err, elfuse.err)
        text += difference("files left behind", native.tree, elfuse.tree)
    elif text:
        text += elfuse.out.decode(errors="replace")
    if text:
        report.failed(name, text)
        return
    skips = Tap(elfuse.out.decode(errors="replace")).skips if run.tap else []
    report.passed(name, "; ".join("skipped %s: %s" % skip for skip in skips))


def boot(report, configuration, wanted, reference):
    """Runs one configuration. Returns what its native runs left."""
    name, options, modes = configuration
    here = machine.Boot(
        "guest-" + name, [run.job() for run in wanted], options,
        setup="mkdir /tmp/guest\ncp build/guest/* /tmp/guest/", timeout=1800)
    chosen = {label: [run for run in wanted if filter_of(run.name)]
              for label, _, filter_of in modes}
    launched = [(label, "%s %s" % (ELFUSE, args),
                 {run.name for run in chosen[label]})
                for label, args, _ in modes]
    if name not in NO_REFERENCE:
        launched.insert(0, ("native", None, {
            run.name for runs_of in chosen.values() for run in runs_of}))
    trouble = here.run(launched)
    if trouble and here.no_download and name in OPTIONAL:
        report.skipped(name, "no such machine here: " + here.last_line())
        return reference
    if trouble:
        report.failed(name + "/the machine", trouble)
    if name not in NO_REFERENCE:
        reference = here.results("native")
    for label, _, _ in modes:
        elfuse = here.results(label)
        title = name if label == "elfuse" else "%s-%s" % (name, label)
        for run in chosen[label]:
            reason = LATER.get(run.program) or (
                name in NO_REFERENCE and COARSE.get(run.name))
            if reason:
                report.skipped("%s/%s" % (title, run.name), reason)
                continue
            judge(report, "%s/%s" % (title, run.name), run,
                  reference and reference(run.name), elfuse(run.name))
    return reference


def run(report):
    built = command.make("all", "guest")
    if built.status != 0:
        report.failed("building", built.out)
        return
    reference = None
    for configuration in CONFIGURATIONS:
        wanted = [run for run in runs() if report.wanted(
            "%s/%s" % (configuration[0], run.name))]
        if wanted:
            reference = boot(report, configuration, wanted, reference)
