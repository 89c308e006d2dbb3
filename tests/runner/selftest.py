# SPDX-License-Identifier: Apache-2.0
"""the runner itself: it must notice what is wrong

Negative controls: a checker that sees no difference would pass everything.
"""

from runner.guest import Run, faults
from runner.programs import compare
from runner.tap import Tap


class Fake:
    def __init__(self, out=b"", err=b"", tree=b"", status=0,
                 timed_out=False):
        self.out, self.err, self.tree = out, err, tree
        self.status, self.timed_out = status, timed_out

    def describe(self):
        return "status %s" % self.status


GOOD = b"ok 1 - one\nok 2 - two # SKIP not on this kernel\n1..2\n"


def tap_cases():
    yield "TAP: complete", not Tap(GOOD.decode()).problem
    yield "TAP: a failed point", Tap("not ok 1 - x\n1..1\n").failures == ["x"]
    yield "TAP: no plan", Tap("ok 1\n").problem
    yield "TAP: a point missing", Tap("1..2\nok 1\n").problem
    yield "TAP: nothing at all", Tap("").problem
    yield "TAP: empty plan", Tap("1..0\n").problem
    yield "TAP: skip without a reason", Tap("1..1\nok 1 - a # SKIP\n").problem
    yield "TAP: bail out", Tap("1..1\nok 1\nBail out! x\n").problem
    yield "TAP: todo is no pass", Tap("1..1\nok 1 # TODO x\n").failures


def guest_cases():
    tap, death = Run("p", [], 0, True), Run("die", ["x"], 139, False)
    yield "guest: good", not faults(tap, Fake(GOOD))
    yield "guest: right death", not faults(death, Fake(status=139))
    yield "guest: other death", faults(death, Fake(status=134))
    yield "guest: no death", faults(death, Fake(status=0))
    yield "guest: status in spite of TAP", faults(tap, Fake(GOOD, status=1))
    yield "guest: time out", faults(tap, Fake(GOOD, timed_out=True))
    yield "guest: no result", faults(tap, Fake(status=None))
    yield "guest: no output", faults(tap, Fake())


def program_cases():
    same = Fake(b"a\n", b"b\n", b"c\n", 3)
    yield "programs: same", not compare(same, same, bytes)
    for name, other in (
            ("output", Fake(b"a \n", b"b\n", b"c\n", 3)),
            ("bytes that are no text", Fake(b"a\n\xff", b"b\n", b"c\n", 3)),
            ("line ends", Fake(b"a\r\n", b"b\n", b"c\n", 3)),
            ("errors", Fake(b"a\n", b"", b"c\n", 3)),
            ("files", Fake(b"a\n", b"b\n", b"d\n", 3)),
            ("status", Fake(b"a\n", b"b\n", b"c\n", 0)),
            ("no result", Fake(b"a\n", b"b\n", b"c\n", None))):
        yield "programs: other " + name, compare(same, other, bytes)
    nothing = Fake(status=None)
    yield "programs: neither ran", compare(nothing, nothing, bytes)


def run(report):
    for cases in (tap_cases, guest_cases, program_cases):
        for name, good in cases():
            if not report.wanted(name):
                continue
            if good:
                report.passed(name)
            else:
                report.failed(name)
