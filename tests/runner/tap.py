# SPDX-License-Identifier: Apache-2.0
"""Reads the Test Anything Protocol."""

import re

POINT = re.compile(r"^(not )?ok\b\s*(\d+)?\s*(?:-\s*)?(.*)$")
PLAN = re.compile(r"^1\.\.(\d+)\s*(?:#\s*skip\S*\s*(.*))?$", re.I)
SKIP = re.compile(r"^(.*?)\s*#\s*skip\S*\s*(.*)$", re.I)
TODO = re.compile(r"#\s*todo\b", re.I)


class Tap:
    """passes, failures: names of points; skips: (name, reason) pairs;
    problem: why the output is not a complete TAP document, or ''."""

    def __init__(self, text):
        self.passes, self.failures, self.skips = [], [], []
        self.planned, self.problem = None, ""
        for line in text.splitlines():
            self._line(line)
        self._judge()

    def _line(self, line):
        plan = PLAN.match(line)
        if plan:
            self.planned = int(plan.group(1))
            if self.planned == 0 and plan.group(2):
                self.skips.append(("all of it", plan.group(2)))
            return
        if line.startswith("Bail out!"):
            self.problem = line
            return
        point = POINT.match(line)
        if not point:
            return
        name = point.group(3) or "point %s" % point.group(2)
        skip = SKIP.match(name)
        if point.group(1) or TODO.search(name):
            self.failures.append(name)
        elif skip:
            self.skips.append((skip.group(1), skip.group(2)))
        else:
            self.passes.append(name)

    def count(self):
        return len(self.passes) + len(self.failures) + len(self.skips)

    def _judge(self):
        if self.problem:
            return
        if self.planned is None:
            self.problem = "no TAP plan"
        elif self.planned and self.count() != self.planned:
            self.problem = "%d points planned, %d seen" % (
                self.planned, self.count())
        elif not self.planned and not self.skips:
            self.problem = "an empty plan without a reason"
        elif any(not reason for _, reason in self.skips):
            self.problem = "a skip without a reason"
