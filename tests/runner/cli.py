# SPDX-License-Identifier: Apache-2.0
"""elfuse's command line: options, errors and exit statuses

tests/cli/cli.sh runs in the machine; each point is a test.
"""

from runner import command
from runner import machine
from runner.tap import Tap


def run(report):
    built = command.make("all")
    if built.status != 0:
        report.failed("building", built.out)
        return
    boot = machine.Boot("cli", [machine.Job(
        "cli", "sh $TOP/tests/cli/cli.sh /tmp/elfuse", 600)])
    trouble = boot.run([("native", None)])
    result = boot.results("native")("cli")
    output = result.out.decode(errors="replace")
    tap = Tap(output)
    for point in tap.passes:
        report.passed(point)
    for point, reason in tap.skips:
        report.skipped(point, reason)
    for point in tap.failures:
        report.failed(point)
    if result.status != 0 and not tap.failures:
        trouble += result.describe()
    if trouble or tap.problem:
        report.failed("cli.sh", trouble + tap.problem)
    if trouble or tap.problem or tap.failures:
        report.quote("".join(
            line + "\n" for line in output.split("\n")
            if not line.startswith("ok ")) +
            result.err.decode(errors="replace"))
