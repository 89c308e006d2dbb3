# SPDX-License-Identifier: Apache-2.0
"""src/proved: every goal of every contract, and broken variants rejected

Frama-C WP with run-time-error goals, unsigned overflow among them, and smoke
tests (a contract that contradicts itself would prove anything). Then each
line of tests/prove/mutants makes a broken variant of a function, in a copy of
its header: its contract must have a goal that is not proved, and the unit test
must fail. Needs what `tools/install-deps prove` installs.
"""

import glob
import os
import re
import shutil

from runner import command

WORK = "build/prove"
MUTANTS = "tests/prove/mutants"
UNIT_TEST = "tests/unit/test_proved.c"
STRICT = ["gcc", "-std=c11", "-pedantic-errors", "-ffreestanding", "-Wall",
          "-Wextra", "-Wconversion", "-Werror", "-fsyntax-only", "-Isrc"]
# Seconds for a goal; the slowest that holds takes about one.
GOAL_TIMEOUT = 5
# What would have the provers believe something that is not proved.
ADMITTED = re.compile(r"\b(axiom\w*|lemma|admit|global invariant)\b")
COMMENT = re.compile(r"/\*.*?\*/", re.S)
FUNCTION = re.compile(r"^static inline [\w ]+?\**(\w+)\(.*?^}\n", re.M | re.S)


def read(path):
    with open(path, encoding="utf-8") as source:
        return source.read()


class Header:
    def __init__(self, path, text):
        self.path, self.text = path, text
        self.name = os.path.basename(path)
        self.code = {match[1]: match[0]
                     for match in FUNCTION.finditer(self.text)}

    def trouble(self):
        """What the count of proved goals would not show."""
        for match in ADMITTED.finditer(self.text):
            yield "%s: not proved but admitted" % match[0]
        if len(self.code) != self.text.count("static inline"):
            yield "functions are not laid out as expected"
        for function, code in self.code.items():
            before = self.text[:self.text.index(code)]
            contract = before[before.rfind("/*@"):]
            if not contract.endswith("@*/\n") or "ensures" not in contract:
                yield "%s has no contract" % function


class Proof:
    """What Frama-C said about some functions of a header."""

    def __init__(self, outcome):
        self.out = outcome.out
        count = re.search(r"Proved goals: +(\d+) / (\d+)", self.out)
        self.ran = outcome.status == 0 and count is not None
        self.proved, self.goals = map(int, count.groups()) if self.ran \
            else (0, 0)
        self.failures = re.findall(
            r"\[wp\] \[(?!Passed|Qed|Z3|CVC4)\S+\] (?:Goal|Smoke-test) "
            r"typed_(\S+)", self.out)
        self.warnings = re.findall(r"^\[[\w:-]+\] .*Warning.*", self.out,
                                   re.M)

    def trouble(self, functions):
        if not self.ran:
            yield self.out
            return
        yield from self.warnings
        for goal in self.failures:
            yield "not proved: " + goal
        if self.proved != self.goals:
            yield "%d of %d goals" % (self.proved, self.goals)
        for function in functions:
            if not re.search(r"typed_%s_ensures" % function, self.out):
                yield "no goal of " + function


def frama_c(folder, name, functions, smoke):
    """A header that is in `folder` goes before that of src."""
    path = os.path.join(folder, name.replace(".h", ".c"))
    with open(path, "w", encoding="utf-8") as source:
        source.write('#include "proved/%s"\n' % name)
    return ["frama-c", "-cpp-extra-args=-I%s -Isrc" % folder, "-wp", "-wp-rte",
            "-warn-unsigned-overflow", "-wp-fct", ",".join(functions),
            "-wp-prover", "z3,cvc4", "-wp-timeout", str(GOAL_TIMEOUT),
            "-wp-par", "1", *(["-wp-smoke-tests"] if smoke else []), path]


def prove(report, headers):
    jobs = [(header, frama_c(WORK, header.name, header.code, True))
            for header in headers if report.wanted(header.name)]
    for header, outcome in command.run_all(jobs):
        proof = Proof(outcome)
        trouble = [*header.trouble(), *proof.trouble(header.code)]
        if trouble:
            report.failed(header.name, "\n".join(trouble))
        else:
            report.passed(header.name, "%d functions, %d goals" %
                          (len(header.code), proof.goals))


class Mutant:
    def __init__(self, headers, number, line):
        self.line = line
        parts = re.fullmatch(r"(\w+): (.+) => (.+)", line)
        if not parts:
            raise RuntimeError("%s: not understood: %s" % (MUTANTS, line))
        self.function, old, new = parts.groups()
        header = next((h for h in headers if self.function in h.code), None)
        code = header.code[self.function] if header else ""
        # Annotations stay as they are.
        bare = COMMENT.sub(lambda match: " " * len(match[0]), code)
        if bare.count(old) != 1:
            raise RuntimeError("%s: not once in the code: %s" %
                               (MUTANTS, line))
        at = bare.index(old)
        broken = code[:at] + new + code[at + len(old):]
        self.header = header.name
        self.folder = os.path.join(WORK, "mutant-%d" % number)
        os.makedirs(os.path.join(self.folder, "proved"))
        with open(os.path.join(self.folder, "proved", self.header), "w",
                  encoding="utf-8") as copy:
            copy.write(header.text.replace(code, broken))

    def test(self):
        program = os.path.join(self.folder, "test")
        return ["sh", "-c", 'gcc -g -std=gnu11 -I"$1" -Isrc -o "$2" "$3" '
                "-lcmocka || exit 99; timeout 10 $2", "sh", self.folder,
                program, UNIT_TEST]


def mutants(headers):
    return [Mutant(headers, number, line)
            for number, line in enumerate(read(MUTANTS).splitlines(), 1)
            if line and not line.startswith("#")]


def reject(report, headers):
    every = mutants(headers)
    lacking = {f for h in headers for f in h.code} - \
        {mutant.function for mutant in every}
    if lacking:
        report.failed("functions without a broken variant",
                      "\n".join(sorted(lacking)))
    every = [mutant for mutant in every if report.wanted(mutant.line)]
    tests = dict(command.run_all((m, m.test()) for m in every))
    for mutant, outcome in command.run_all(
            (m, frama_c(m.folder, m.header, [m.function], False))
            for m in every):
        proof = Proof(outcome)
        if not proof.ran or tests[mutant].status in (None, 99):
            report.failed(mutant.line, tests[mutant].out + proof.out)
        elif proof.proved == proof.goals:
            report.failed(mutant.line, "its contract holds")
        elif tests[mutant].status == 0:
            report.failed(mutant.line, UNIT_TEST + " does not notice it")
        else:
            report.passed(mutant.line, ", ".join(
                goal.removeprefix(mutant.function + "_")
                for goal in proof.failures[:2]))


def run(report):
    shutil.rmtree(WORK, ignore_errors=True)
    os.makedirs(WORK)
    # Not the user's own: it may know other provers.
    os.environ["WHY3CONFIG"] = os.path.abspath(WORK + "/why3.conf")
    detected = command.run(["why3", "config", "detect"])
    if not os.path.exists(os.environ["WHY3CONFIG"]):
        report.failed("finding the provers", detected.out)
        return
    headers = [Header(path, read(path))
               for path in sorted(glob.glob("src/proved/*.h"))]
    for header, outcome in command.run_all(
            (h, STRICT + ["-include", h.path, "-xc", "/dev/null"])
            for h in headers):
        if outcome.status != 0:
            report.failed("%s as plain C11" % header.name, outcome.out)
    prove(report, headers)
    reject(report, headers)
