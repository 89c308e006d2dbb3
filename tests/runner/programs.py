# SPDX-License-Identifier: Apache-2.0
"""busybox applets on real files, natively and under elfuse: same bytes

tests/programs/list has a row a test; tests/programs/inputs.py makes the files.
"""

import difflib
import importlib.util
import os
import re

from runner import command
from runner import machine

FOLDER = "tests/programs"
SECONDS = 120
SLOW_SECONDS = 400  # the rows on the large files
ROW = re.compile(r"^([\w.-]+)(?:~(\w+))?\s+(?:(\d+)s\s+)?(\S.*)$")
# What the scripts of `short` and `long` find.
SCRIPTS = "real=$TOP/tests/programs/real; . $real/lib.sh; "
PARTS = (("standard output", "out"), ("standard error", "err"),
         ("files left behind", "tree"))


def module(name):
    spec = importlib.util.spec_from_file_location(
        name, os.path.join(FOLDER, name + ".py"))
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def rows(report, name, before="", folder=FOLDER):
    """(job, comparison's name or None) of each row of a list that is wanted.
    `before` stands before each line."""
    path = os.path.join(folder, name)
    with open(path, encoding="utf-8") as source:
        for number, line in enumerate(source, 1):
            if line.startswith("#") or not line.strip():
                continue
            row = ROW.match(line)
            if not row:
                raise RuntimeError("%s:%d: not a row" % (path, number))
            title, comparison, seconds, shell = row.groups()
            if not seconds:
                seconds = SLOW_SECONDS if "/tmp/big" in shell else SECONDS
            if report.wanted(title):
                yield (machine.Job(title, before + shell, int(seconds)),
                       comparison)


def difference(title, first, second):
    if first == second:
        return ""
    a, b = (data.decode(errors="backslashreplace").splitlines()
            for data in (first, second))
    lines = list(difflib.unified_diff(a, b, "native", "elfuse", "", "", 1, ""))
    shown = "\n".join(line[:200] for line in lines[:30])
    return "%s differs:\n%s\n" % (title, shown or "(only in bytes that do not "
                                                  "show as text)")


def compare(native, elfuse, clean):
    text = ""
    if native.timed_out or elfuse.timed_out or \
            native.status != elfuse.status or native.status is None:
        text += "native: %s; elfuse: %s\n" % (native.describe(),
                                              elfuse.describe())
    for title, part in PARTS:
        text += difference(title, clean(getattr(native, part)),
                           clean(getattr(elfuse, part)))
    return text


def judge(report, job, native, elfuse, normaliser):
    clean = module("normalise").NORMALISERS[normaliser] if normaliser \
        else bytes
    text = compare(native, elfuse, clean)
    if text:
        report.failed(job.name, "%s\n%s" % (job.line, text))
    else:
        report.passed(job.name)


def run_list(report, boot, wanted, second):
    trouble = boot.run([("native", None), second])
    if trouble:
        report.failed("the machine", trouble)
    native, elfuse = boot.results("native"), boot.results(second[0])
    for job, normaliser in wanted:
        judge(report, job, native(job.name), elfuse(job.name), normaliser)


def run(report, second=("elfuse", "/tmp/elfuse")):
    wanted = list(rows(report, "list"))
    if not wanted:
        report.skipped("programs", "no row matches")
        return
    inputs = module("inputs").make("build/check/inputs")
    built = command.make("all")
    if built.status != 0:
        report.failed("building", built.out)
        return
    big = any("/tmp/big" in job.line for job, _ in wanted)
    run_list(report, machine.Boot(
        "programs", [job for job, _ in wanted], template="/tmp/inputs",
        setup="cp -a %s/small /tmp/inputs\n%s" % (
            inputs, "cp -r %s/big /tmp/big" % inputs if big else ""),
        timeout=1800), wanted, second)
