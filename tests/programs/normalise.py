# SPDX-License-Identifier: Apache-2.0
"""What two runs of the same program on the same kernel may differ in."""

import re


def numbers(text):
    """Digits and the blanks that align them; counts that move by themselves."""
    return re.sub(rb"[ \t]*\d[\d.:,]*", b" N", text)


def counts(text):
    """Counts that move by themselves, with the unit that they have reached."""
    return re.sub(rb" N [KMG]iB", b" N UNIT", numbers(text))


def free(text):
    """Headings and rows of free."""
    return numbers(text)


def date(text):
    """The form of a date, with its time and day taken out."""
    return re.sub(rb"\d\d:\d\d:\d\d", b"TIME", re.sub(
        rb"^\w{3} \w{3} [ \d]\d", b"DAY", text))


def ps(text):
    """The heading, and whether ps sees itself and the first process."""
    lines = text.split(b"\n")
    names = [line.split()[-1] for line in lines[1:] if line.split()]
    return b"%s\nbusybox or ps: %r\ninit: %r\n" % (
        b" ".join(lines[0].split()),
        any(name in (b"busybox", b"ps") for name in names),
        any(line.split()[0] == b"1" for line in lines[1:] if line.split()))


def rate(text):
    """dd's seconds and bytes a second."""
    return re.sub(rb", .*", b"", text)


def http(text):
    return re.sub(rb"Date: .*", b"Date:", text)


def temporary(text):
    return re.sub(rb"tmp\.\w+", b"tmp.XXXXXX", text)


def deaths(text):
    """Without bash's own words on children that a signal has ended, which
    depend on when it looks."""
    return re.sub(rb"^(.*: line \d+: +\d+ .*|Terminated|Killed) *\n", b"",
                  text, flags=re.MULTILINE)


def addresses(text):
    return re.sub(rb"\b(?:0x)?[0-9a-f]{6,16}\b", b"ADDRESS", text)


def auxv(text):
    """LD_SHOW_AUXV: what a virtual CPU has may be less."""
    return addresses(re.sub(rb"(AT_HWCAP2?: +)\w+", rb"\1WORD", text))


def go(text):
    """Addresses in a report of the run-time system."""
    return re.sub(rb"0x[0-9a-f]+", b"ADDRESS", text)


def lines_sorted(text):
    return b"\n".join(sorted(text.split(b"\n")))


def head(text):
    return b"\n".join(text.split(b"\n")[:5])


NORMALISERS = {"numbers": numbers, "free": free, "date": date, "ps": ps,
               "rate": rate, "temporary": temporary, "counts": counts,
               "deaths": deaths, "go": go, "addresses": addresses, "auxv": auxv,
               "http": http, "sorted": lines_sorted, "head": head}
