# SPDX-License-Identifier: Apache-2.0
"""the emulated machine itself, by tests/tools/test-elfuse-vm.sh"""

from runner import command
from runner import unit

TIMEOUT = 1200


def run(report):
    if report.wanted("elfuse-vm"):
        unit.judge(report, "elfuse-vm", command.run(
            ["tests/tools/test-elfuse-vm.sh"], TIMEOUT))
