# SPDX-License-Identifier: Apache-2.0
"""Results of Python's own tests, out of the output of `python -m test -v`.

Some fail on a real kernel in the machine as well (no network, root's rights),
so what counts is whether a test that is passed natively is passed."""

import re

# "test_x (test.test_y.Class.test_x)" or "setUpClass (...)", a docstring's
# first line perhaps, then " ... " and, after whatever the test printed, the
# word.
START = re.compile(r"^(\w+) \((test\.[\w.]+)\)", re.MULTILINE)
END = re.compile(r"(?:^|\.\.\. )(ok|FAIL|ERROR|skipped\b.*|expected failure|"
                 r"unexpected success)$", re.MULTILINE)
SUMMARY = re.compile(r"^=+\n(?:FAIL|ERROR):|^-+\nRan \d+ tests? in ",
                     re.MULTILINE)


def results(text):
    """From a test's full name to its result, "no result" without one."""
    text = SUMMARY.split(text.decode(errors="replace").replace("\r", ""))[0]
    found = {}
    starts = list(START.finditer(text))
    for start, following in zip(starts, starts[1:] + [None]):
        piece = text[start.end():following.start() if following else None]
        ends = END.findall(piece)
        found[start.group(2)] = ends[-1] if ends else "no result"
    return found


def plain(result):
    return "skipped" if result.startswith("skipped") else result


def compare(native, elfuse):
    """What elfuse did not pass and the kernel did; '' if there is none."""
    first, second = results(native), results(elfuse)
    if not first:
        return "no test was run natively\n"
    text = ""
    for name, result in first.items():
        other = second.get(name, "not run")
        if plain(result) in ("ok", "expected failure") and \
                plain(other) != plain(result):
            text += "%s: natively %s, under elfuse %s\n" % (
                name, plain(result), other)
    return text


def remark(native):
    counts = {}
    for result in results(native).values():
        counts[plain(result)] = counts.get(plain(result), 0) + 1
    return ", ".join("%d %s" % (count, result)
                     for result, count in sorted(counts.items()))
