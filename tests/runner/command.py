# SPDX-License-Identifier: Apache-2.0
"""Runs commands, two at a time at most: the machine may have two cores."""

import concurrent.futures
import os
import signal
import subprocess

JOBS = 2


class Outcome:
    """status is the exit status, minus the signal, or None after a timeout;
    out is standard output (and error, unless `apart`)."""

    def __init__(self, status, out, err=""):
        self.status, self.out, self.err = status, out, err

    def describe(self):
        if self.status is None:
            return "timed out"
        if self.status < 0:
            return "killed by signal %d" % -self.status
        return "exit status %d" % self.status


def run(arguments, timeout=600, env=None, apart=False, stdin=None):
    process = subprocess.Popen(
        arguments, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if apart else subprocess.STDOUT,
        stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
        env={**os.environ, **(env or {})}, start_new_session=True)
    status = None
    try:
        out, err = process.communicate(stdin, timeout=timeout)
        status = process.returncode
    except subprocess.TimeoutExpired:
        # Its own session: the children go with it.
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
    except KeyboardInterrupt:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return Outcome(status, out.decode(errors="replace"),
                   (err or b"").decode(errors="replace"))


def run_all(jobs):
    """jobs: (key, arguments) pairs. Yields (key, Outcome) in order."""
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        running = [(key, pool.submit(run, arguments))
                   for key, arguments in jobs]
        for key, future in running:
            yield key, future.result()


def make(*arguments, timeout=900):
    """A make of its own: flags and job server of an outer one are not its
    business."""
    env = {"MAKEFLAGS": "", "MFLAGS": "", "MAKELEVEL": ""}
    return run(["make", "-k", "-j%d" % JOBS, *arguments], timeout, env)
