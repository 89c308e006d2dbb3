# SPDX-License-Identifier: Apache-2.0
"""the runner itself: it must notice what is wrong

Negative controls: a checker that sees no difference would pass everything.
"""

from runner.guest import Run, faults
from runner.programs import compare, module
from runner.prove import Header, Proof
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


PYTHON = b"""\
test_one (test.test_x.T.test_one) ... ok
test_two (test.test_x.T.test_two)
What it is about. ... noise
more noise
ok
test_three (test.test_x.T.test_three) ... skipped 'no network'
test_four (test.test_x.T.test_four) ... FAIL

======================================================================
FAIL: test_four (test.test_x.T.test_four)
----------------------------------------------------------------------
Ran 4 tests in 0.1s
"""


def python_cases():
    tests = module("pythontests")
    yield "python: results", tests.results(PYTHON) == {
        "test.test_x.T.test_one": "ok", "test.test_x.T.test_two": "ok",
        "test.test_x.T.test_three": "skipped 'no network'",
        "test.test_x.T.test_four": "FAIL"}
    yield "python: same", not tests.compare(PYTHON, PYTHON)
    for name, old, new in (
            ("failure", b"test_one) ... ok", b"test_one) ... FAIL"),
            ("error", b"more noise\nok", b"more noise\nERROR"),
            ("skip", b"test_one) ... ok", b"test_one) ... skipped 'why'"),
            ("hang", b"more noise\nok\n", b"more noise\n")):
        yield "python: a new " + name, tests.compare(
            PYTHON, PYTHON.replace(old, new))
    yield "python: ended early", tests.compare(PYTHON, PYTHON[:60])
    yield "python: nothing was run", tests.compare(b"", b"")
    yield "python: better than the kernel", not tests.compare(
        PYTHON, PYTHON.replace(b"... FAIL", b"... ok"))


CONTRACT = "/*@ ensures x: \\result == 1;\n  @*/\n"
ONE = "static inline int one(void)\n{\n    return 1;\n}\n"
GOAL = "[wp] [%s] Goal typed_one_ensures_x%s\n"
COUNT = "[wp] Proved goals:    %d / 2\n"


def prove_cases():
    def header(text):
        return list(Header("one.h", text).trouble())

    def proof(text, status=0):
        return list(Proof(Fake(text, status=status)).trouble(["one"]))

    valid = GOAL % ("Qed", " : Valid")
    yield "prove: a contract", not header(CONTRACT + ONE)
    yield "prove: no contract", header(ONE)
    yield "prove: one contract for two", header(CONTRACT + ONE + ONE)
    yield "prove: assigns alone", header("/*@ assigns \\nothing; @*/\n" + ONE)
    yield "prove: a lemma", header("/*@ lemma x: 0 == 1; */\n" + CONTRACT +
                                   ONE)
    yield "prove: all proved", not proof(valid + COUNT % 2)
    yield "prove: one not proved", proof(valid + COUNT % 1)
    yield "prove: which one", proof(GOAL % ("Timeout", "") + COUNT % 1)[0] == \
        "not proved: one_ensures_x"
    yield "prove: a warning", proof(
        "[kernel:annot-error] f.h:1: Warning: x\n" + valid + COUNT % 2)
    yield "prove: no goals", proof(COUNT % 2)
    yield "prove: no count", proof(valid)
    yield "prove: status", proof(valid + COUNT % 2, 1)


def run(report):
    for cases in (tap_cases, guest_cases, program_cases, python_cases,
                  prove_cases):
        for name, good in cases():
            if not report.wanted(name):
                continue
            if good:
                report.passed(name)
            else:
                report.failed(name)
