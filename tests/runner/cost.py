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
# The same with mmap and munmap at EL1, most of the native figure; and for each
# case of bench/fastpath the most instructions of one call (mmap, munmap).
FAST = "env ELFUSE_MMAP_FASTPATH=1 /tmp/elfuse"
FAST_CASES = [
    ("recycled, 1 byte", "2000 bytes recycled", 0.55),
    ("recycled, every page", "500 pages recycled", 0.25),
    ("untouched", "2000 none recycled", 0.15),
]
FAST_CALLS = {
    "untouched-4K": (160, 220),
    "untouched-256K": (160, 220),
    "untouched-2M": (160, 220),
    "untouched-1G": (160, 600),
    "one-4K": (160, 270),
    "one-256K": (160, 600),
    "all-256K": (160, 700),
    "all-2M": (160, 400),
}
CALL = re.compile(rb"(\S+) mmap=(\d+) munmap=(\d+)")
COUNT = re.compile(rb"counter-ns/cycle=([\d.]+)")


def job(arguments):
    return machine.Job(arguments.replace(" ", "-"),
                       "target /tmp/cycle " + arguments, 600)


def count(result):
    found = COUNT.search(result.out)
    return float(found.group(1)) if found and result.status == 0 else None


def measure_fast():
    """(trouble, native results, elfuse's results) with the EL1 fast path."""
    jobs = [job(arguments) for _, arguments, _ in FAST_CASES]
    jobs.append(machine.Job("calls", "target /tmp/fastpath", 600))
    boot = machine.Boot(
        "cost-fast", jobs, ["--icount", "--cpus", "1", "--thp", "never"],
        setup="cp build/bench/cycle build/bench/fastpath /tmp", timeout=1800)
    trouble = boot.run([("native", None), ("fast", FAST)])
    return trouble, boot.results("native"), boot.results("fast")


def run_fast(report):
    trouble, native, fast = measure_fast()
    if trouble:
        report.failed("the machine", trouble)
    for title, arguments, limit in FAST_CASES:
        name = "%s, at EL1" % title
        results = [of(job(arguments).name) for of in (native, fast)]
        counts = [count(result) for result in results]
        if None in counts:
            report.failed(name, results[1].err.decode(errors="replace"))
            continue
        ratio = counts[1] / counts[0]
        text = "%.0f instructions, native %.0f: %.2f, at most %.2f" % (
            counts[1], counts[0], ratio, limit)
        (report.passed if ratio <= limit else report.failed)(name, text)
    calls = {found[0].decode(): (int(found[1]), int(found[2]))
             for found in CALL.findall(fast("calls").out)}
    for case, limits in FAST_CALLS.items():
        name = "calls at EL1, %s" % case
        got = calls.get(case)
        text = "mmap and munmap: %s, at most %s" % (got, limits)
        good = got and got[0] <= limits[0] and got[1] <= limits[1]
        (report.passed if good else report.failed)(name, text)


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
    run_fast(report)
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
