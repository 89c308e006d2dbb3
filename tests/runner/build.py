# SPDX-License-Identifier: Apache-2.0
"""elfuse by gcc and by clang, and the guest programs, without a warning"""

from runner import command

TARGETS = [
    ("gcc", ["all"]),
    ("clang", ["BUILD=build/clang", "COMPILER=clang", "all"]),
    ("guest programs", ["guest", "guest-bench"]),
]


def run(report):
    for name, arguments in TARGETS:
        if not report.wanted(name):
            continue
        outcome = command.make(*arguments)
        if outcome.status != 0 or "warning:" in outcome.out:
            errors = [line for line in outcome.out.split("\n")
                      if "error" in line or "warning:" in line or
                      "***" in line]
            report.failed(name, "\n".join(errors) or outcome.out)
        else:
            report.passed(name)
