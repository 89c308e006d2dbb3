# SPDX-License-Identifier: Apache-2.0
"""No machine: on an arm64 host with KVM the program runs where it is."""

import errno
import os
import shutil
import subprocess
import tempfile

import both


def possible():
    return os.uname().machine == "aarch64" and os.path.exists("/dev/kvm")


class _Stream:
    """Where the program's output goes; see both.run_both()."""

    def __init__(self, descriptor):
        self.descriptor = descriptor

    def redirect(self, descriptor):
        self.descriptor = descriptor


class Direct:
    def __init__(self, options, say):
        self._options = options
        self._say = say
        self._streams = {"out": _Stream(1), "err": _Stream(2)}
        self._environment = dict(os.environ)
        for one in options.env:
            name, value = one.split("=", 1)
            self._environment[name] = value

    def _words(self, under_elfuse):
        options = self._options
        if under_elfuse:
            return ([options.elfuse] + options.elfuse_args.split() + ["--"] +
                    options.command)
        return options.command

    def _cannot_run(self, word, error):
        self._say("%s: %s" % (word, error.strerror))
        return 127 if error.errno == errno.ENOENT else 126

    def _job(self, under_elfuse, given=0):
        words = self._words(under_elfuse)
        try:
            process = subprocess.Popen(
                words, env=self._environment, stdin=given,
                stdout=self._streams["out"].descriptor,
                stderr=self._streams["err"].descriptor)
        except OSError as error:
            return self._cannot_run(words[0], error)
        try:
            status = process.wait(self._options.timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            self._say("timed out after %g s" % self._options.timeout)
            return 124
        return 128 - status if status < 0 else status

    def run(self):
        options = self._options
        if options.root:
            self._say("--root needs the emulated machine (--emulate)")
            return 125
        if options.both:
            with tempfile.TemporaryFile() as kept:
                if not os.isatty(0):
                    with open(0, "rb", closefd=False) as given:
                        shutil.copyfileobj(given, kept)

                def job(under_elfuse):
                    kept.seek(0)
                    return self._job(under_elfuse, kept)
                return both.run_both(job, self._streams, options.save,
                                     self._say)
        if options.timeout:
            return self._job(not options.native)
        words = self._words(not options.native)
        try:
            os.execvpe(words[0], words, self._environment)
        except OSError as error:
            return self._cannot_run(words[0], error)
