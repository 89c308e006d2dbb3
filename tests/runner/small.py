# SPDX-License-Identifier: Apache-2.0
"""shells, Python, Perl and SQLite of a small Debian root, in one boot

tests/programs/short has the rows; outputs, statuses and files left behind must
be the same bytes natively and under elfuse.
"""

from runner import command
from runner import machine
from runner import programs
from runner import software


def run(report):
    wanted = list(programs.rows(report, "short", programs.SCRIPTS))
    if not wanted:
        return
    built = command.make("all")
    if built.status != 0:
        report.failed("building", built.out)
        return
    image = software.sysroot(report, "small")
    if image:
        programs.run_list(report, machine.Boot(
            "small", [job for job, _ in wanted],
            ["--emulate", "--root", image], timeout=1200), wanted,
            software.second_mode())
