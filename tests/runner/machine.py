# SPDX-License-Identifier: Apache-2.0
"""One boot of the emulated machine that runs a list of jobs natively and
under elfuse; see batch.sh for the machine's side."""

import os
import shutil

from runner import command

VM = os.environ.get("ELFUSE_VM", "tools/elfuse-vm")
# elfuse-vm's own exit status for a machine that could not be had.
VM_FAILED = 125


class Job:
    def __init__(self, name, line, seconds=60):
        self.name, self.line, self.seconds = name, line, seconds


class Result:
    """Bytes of out, err and tree; the exit status, None without a result."""

    def __init__(self, folder, name):
        def read(kind):
            try:
                with open(os.path.join(folder, name + kind), "rb") as data:
                    return data.read()
            except FileNotFoundError:
                return b""
        self.out, self.err = read(".out"), read(".err")
        self.tree = read(".tree")
        status = read(".status").strip()
        self.status = int(status) if status else None
        self.seconds = int(read(".seconds").strip() or 0)
        self.timed_out = os.path.exists(
            os.path.join(folder, name + ".timeout"))

    def describe(self):
        if self.timed_out:
            return "timed out"
        if self.status is None:
            return "no result (the machine ended before it)"
        if self.status > 128:
            return "died of signal %d" % (self.status - 128)
        return "exit status %d" % self.status


class Boot:
    """name is that of the folder under build/check for the results."""

    def __init__(self, name, jobs, vm_options=(), template="-", setup="",
                 timeout=900):
        self.folder = os.path.join("build/check", name)
        self.jobs, self.vm_options = jobs, list(vm_options)
        self.template, self.setup, self.timeout = template, setup, timeout
        self.log, self.no_download = "", False

    def run(self, modes):
        """modes: (label, launcher or None for native) pairs, or with a third
        member, the names of the jobs if not all. Returns an error text, '' if
        the machine ran to its end."""
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        for label, _, *names in modes:
            with open(os.path.join(self.folder, "jobs-" + label), "w",
                      encoding="utf-8") as out:
                for job in self.jobs:
                    if not names or job.name in names[0]:
                        out.write("%s\t%d\t%s\n" % (
                            job.name, job.seconds, job.line))
        with open(os.path.join(self.folder, "main.sh"), "w",
                  encoding="utf-8") as out:
            out.write(self._script(modes))
        outcome = command.run(
            [VM, "--native", "--timeout", str(self.timeout)] +
            self.vm_options + ["--", "busybox", "sh",
                               os.path.join(self.folder, "main.sh")],
            timeout=self.timeout + 30)
        self.log = outcome.out
        self.no_download = outcome.status == VM_FAILED and \
            ("apt-get" in outcome.out or "archive has no" in outcome.out)
        if outcome.status == 0:
            return ""
        return "%s: %s\n%s" % (VM, outcome.describe(), outcome.out)

    def _script(self, modes):
        lines = ["set -e", "here=$(pwd)", "export TOP=$here", self.setup,
                 "cp build/elfuse /tmp/elfuse 2>/dev/null || :"]
        for label, launcher, *_ in modes:
            lines.append("sh tests/runner/batch.sh %s %s/jobs-%s $here/%s/%s "
                         "%s %s" % (
                             "elfuse" if launcher else "native", self.folder,
                             label, self.folder, label, self.template,
                             launcher or ""))
        return "\n".join(lines) + "\n"

    def last_line(self):
        return self.log.strip().split("\n")[-1]

    def results(self, label):
        """What a mode left: a function from a job's name."""
        return lambda name: Result(os.path.join(self.folder, label), name)
