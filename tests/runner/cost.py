# SPDX-License-Identifier: Apache-2.0
"""cost of map, touch, unmap against the native kernel, in instructions

Counted by QEMU (-icount), not timed: all instructions of the machine, the
host's kernel included, over the same on the native kernel, which has the same
setting for huge pages.
"""

import re

from runner import command
from runner import machine

# Title, arguments of bench/cycle, most that elfuse may need of the native
# figure with huge pages never / on request. MEASURED: no limit, only shown.
MEASURED = None
CASES = [
    ("recycled, 1 byte", "2000 bytes recycled", 1.0, 1.0),
    ("recycled, every page", "500 pages recycled", 0.35, 0.35),
    ("fresh, 1 byte", "2000 bytes fresh", 1.7, 1.7),
    ("fresh, every page", "1000 pages fresh", 2.5, 1.2),
    ("untouched", "2000 none recycled", MEASURED, MEASURED),
    ("1 GiB, a byte every 2 MiB", "sweep2m 5", 2.5, 2.5),
]
COUNT = re.compile(rb"counter-ns/cycle=([\d.]+)")


def job(arguments):
    return machine.Job(arguments.replace(" ", "-"),
                       "target /tmp/cycle " + arguments, 600)


def count(result):
    found = COUNT.search(result.out)
    return float(found.group(1)) if found and result.status == 0 else None


def measure(setting):
    """(trouble, native results, elfuse's results) of one boot."""
    boot = machine.Boot(
        "cost-" + setting, [job(arguments) for _, arguments, _, _ in CASES],
        ["--icount", "--cpus", "1", "--thp", setting],
        setup="cp build/bench/cycle /tmp/cycle", timeout=1800)
    trouble = boot.run([("native", None), ("elfuse", "/tmp/elfuse")])
    return trouble, boot.results("native"), boot.results("elfuse")


def run(report):
    built = command.make("all", "guest-bench")
    if built.status != 0:
        report.failed("building", built.out)
        return
    for column, setting in enumerate(("never", "madvise")):
        trouble, native, elfuse = measure(setting)
        if trouble:
            report.failed("the machine", trouble)
        for case in CASES:
            title, arguments, limit = case[0], case[1], case[2 + column]
            name = "%s, huge pages %s" % (title, setting)
            results = [of(job(arguments).name) for of in (native, elfuse)]
            counts = [count(result) for result in results]
            if None in counts:
                report.failed(name, "native: %s; elfuse: %s\n%s" % (
                    results[0].describe(), results[1].describe(),
                    results[1].err.decode(errors="replace")))
                continue
            ratio = counts[1] / counts[0]
            text = "%.0f instructions, native %.0f: %.2f" % (
                counts[1], counts[0], ratio)
            if limit is MEASURED:
                report.note("      %s: %s" % (name, text))
            elif ratio <= limit:
                report.passed(name, "%s, at most %.2f" % (text, limit))
            else:
                report.failed(name, "%s, at most %.2f" % (text, limit))
