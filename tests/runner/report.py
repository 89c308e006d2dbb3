# SPDX-License-Identifier: Apache-2.0
"""Counts results and prints them as they come."""

import sys

# What a failing test may print before the rest is left to its log.
MAX_LINES = 60


def indent(text, limit=MAX_LINES):
    lines = text.rstrip("\n").split("\n")
    shown = lines[:limit]
    if len(lines) > limit:
        shown.append("... %d more lines" % (len(lines) - limit))
    return "".join("    | %s\n" % line for line in shown)


class Report:
    def __init__(self, only=""):
        self.only = only
        self.part = ""
        self.passes = 0
        self.failures = []
        self.skips = []

    @staticmethod
    def write(text):
        sys.stdout.write(text)
        sys.stdout.flush()

    def section(self, name, title):
        self.part = name
        self.write("== %s: %s\n" % (name, title))

    def wanted(self, name):
        return self.only in name

    def note(self, text):
        self.write("  %s\n" % text)

    def quote(self, text):
        self.write(indent(text))

    def passed(self, name, remark=""):
        self.passes += 1
        self.write("  ok    %s%s\n" % (name, " (%s)" % remark if remark
                                       else ""))

    def failed(self, name, details=""):
        self.failures.append("%s: %s" % (self.part, name))
        self.write("  FAIL  %s\n" % name)
        if details:
            self.write(indent(details))

    def skipped(self, name, reason):
        self.skips.append("%s: %s (%s)" % (self.part, name, reason))
        self.write("  skip  %s: %s\n" % (name, reason))

    def summary(self, seconds):
        """Prints what failed, what was skipped and the totals; returns the
        exit status."""
        self.write("\n")
        for skip in self.skips:
            self.write("skipped  %s\n" % skip)
        for failure in self.failures:
            self.write("FAILED   %s\n" % failure)
        self.write("%d min %d s\n" % divmod(int(seconds), 60))
        self.write("%d passed, %d failed, %d skipped\n"
                   % (self.passes, len(self.failures), len(self.skips)))
        return 1 if self.failures or not self.passes else 0
