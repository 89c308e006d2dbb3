# SPDX-License-Identifier: Apache-2.0
"""unit tests on this machine, under ASan + UBSan and, if threaded, TSan

mk/unit.mk builds them; each point of their TAP output is a test.
"""

import glob
import os
import re

from runner import command
from runner.tap import Tap

SANITIZERS = {
    "asan": {"ASAN_OPTIONS": "detect_leaks=1:abort_on_error=1:"
                             "detect_stack_use_after_return=1",
             "UBSAN_OPTIONS": "print_stacktrace=1"},
    "tsan": {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"},
}
TIMEOUT = 120


def programs():
    """(name, sanitizer) of every unit test."""
    for path in sorted(glob.glob("tests/unit/test_*.c")):
        name = os.path.basename(path)[:-2]
        yield name, "asan"
        with open(path, encoding="utf-8") as source:
            if re.search(r"^/\* threaded \*/", source.read(), re.M):
                yield name, "tsan"


def judge(report, label, outcome):
    tap = Tap(outcome.out)
    for point in tap.passes:
        report.passes += 1
    for point, reason in tap.skips:
        report.skipped("%s: %s" % (label, point), reason)
    for point in tap.failures:
        report.failed("%s: %s" % (label, point))
    trouble = ""
    if outcome.status != 0 and not tap.failures:
        trouble = outcome.describe()
    elif tap.problem:
        trouble = tap.problem
    if trouble:
        report.failed("%s: %s" % (label, trouble))
    if trouble or tap.failures:
        report.note("output of %s:" % label)
        report.quote(outcome.out)
    else:
        report.note("ok    %s: %d points" % (label, len(tap.passes)))


def run(report):
    wanted = [(name, sanitizer) for name, sanitizer in programs()
              if report.wanted("%s/%s" % (sanitizer, name))]
    if not wanted:
        report.skipped("unit tests", "none match")
        return
    built = command.make(*["build/unit/%s/%s" % (sanitizer, name)
                           for name, sanitizer in wanted])
    broken = set(re.findall(r"Target '(\S+)' not remade", built.out))
    broken |= set(re.findall(r"\*\*\* \[\S+: (\S+)\] Error", built.out))
    if built.status != 0:
        report.failed("building the unit tests", built.out)
    for name, sanitizer in wanted:
        path = "build/unit/%s/%s" % (sanitizer, name)
        if path in broken or not os.path.exists(path):
            continue
        env = {"CMOCKA_MESSAGE_OUTPUT": "TAP", **SANITIZERS[sanitizer]}
        judge(report, "%s/%s" % (sanitizer, name),
              command.run([path], TIMEOUT, env))
