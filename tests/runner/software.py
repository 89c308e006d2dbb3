# SPDX-License-Identifier: Apache-2.0
"""real software of a full Debian root, a boot a scenario

tests/programs/long has the scenarios. Each is run natively and under elfuse in
the same boot and from the same root; ELFUSE_CHECK_AGAINST=native runs it
natively twice instead, which shows what a comparison is worth.
"""

import os

from runner import command
from runner import machine
from runner import programs

MEMORY = "4G"
GO_PROGRAM = "build/programs/go"


def second_mode():
    if os.environ.get("ELFUSE_CHECK_AGAINST") == "native":
        return "again", None
    return "elfuse", "/tmp/elfuse"


def sysroot(report, profile):
    """The image's path, or None and a failure."""
    made = command.run(["tools/sysroot", profile], timeout=1800, apart=True)
    if made.status == 0:
        return made.out.strip()
    report.failed("sysroot " + profile, made.err)
    return None


def judge(report, job, native, elfuse, comparison):
    if comparison == "python":
        tests = programs.module("pythontests")
        text = tests.compare(native.out, elfuse.out)
        remark = "%s; " % tests.remark(native.out)
        if native.timed_out:
            text += "native: timed out\n"
    else:
        clean = programs.module("normalise").NORMALISERS[comparison] \
            if comparison else bytes
        text, remark = programs.compare(native, elfuse, clean), ""
    if text:
        report.failed(job.name, "%s\n%s" % (job.line, text))
    else:
        report.passed(job.name, "%snatively %d s, under elfuse %d s" % (
            remark, native.seconds, elfuse.seconds))


def build(report, wanted):
    """False if something that is needed cannot be built."""
    targets = ["all"]
    if any(GO_PROGRAM in job.line for job, _ in wanted):
        targets.append(GO_PROGRAM)
    built = command.make(*targets)
    if built.status != 0:
        report.failed("building", built.out)
    return built.status == 0


def run(report):
    wanted = list(programs.rows(report, "long", programs.SCRIPTS))
    if not wanted or not build(report, wanted):
        return
    image = sysroot(report, "full")
    if not image:
        return
    second = second_mode()
    for job, comparison in wanted:
        boot = machine.Boot("software/" + job.name, [job],
                            ["--emulate", "--root", image, "--memory",
                             MEMORY],
                            timeout=2 * job.seconds + 120)
        trouble = boot.run([("native", None), second])
        if trouble:
            report.failed(job.name + "/the machine", trouble)
        else:
            judge(report, job, boot.results("native")(job.name),
                  boot.results(second[0])(job.name), comparison)
