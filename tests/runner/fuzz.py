# SPDX-License-Identifier: Apache-2.0
"""libFuzzer from a fixed seed, for a fixed number of inputs

tests/fuzz/fuzz_X.c, with a line "/* runs: N */" if the default is wrong for
it; the first inputs are what corpus_X.py writes and the files in corpus/X.
"""

import glob
import os
import re
import shutil
import sys

from runner import command

RUNS = 200_000
TIMEOUT = 600


def corpus(name):
    """Makes build/fuzz/corpus/NAME."""
    short = name[len("fuzz_"):]
    folder = "build/fuzz/corpus/" + short
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    script = "tests/fuzz/corpus_%s.py" % short
    if os.path.exists(script):
        made = command.run([sys.executable, "-B", script, folder])
        if made.status != 0:
            raise RuntimeError("%s: %s" % (script, made.out))
    for path in glob.glob("tests/fuzz/corpus/%s/*" % short):
        shutil.copy(path, folder)
    return folder


def run(report):
    paths = [p for p in sorted(glob.glob("tests/fuzz/fuzz_*.c"))
             if report.wanted(os.path.basename(p))]
    built = command.make("fuzz")
    if built.status != 0:
        report.failed("building", built.out)
    for path in paths:
        name = os.path.basename(path)[:-2]
        program = "build/fuzz/" + name
        if not os.path.exists(program):
            report.failed(name, "not built")
            continue
        with open(path, encoding="utf-8") as source:
            given = re.search(r"^/\* runs: (\d+) \*/", source.read(), re.M)
        runs = int(given.group(1)) if given else RUNS
        outcome = command.run(
            [program, "-runs=%d" % runs, "-seed=1", "-timeout=60",
             "-artifact_prefix=build/fuzz/%s-" % name, "-print_final_stats=0",
             "-verbosity=0", corpus(name)], TIMEOUT)
        if outcome.status == 0:
            report.passed(name, "%d inputs" % runs)
        else:
            report.failed(name, "%s\n%s" % (outcome.describe(),
                                            outcome.out[-4000:]))
