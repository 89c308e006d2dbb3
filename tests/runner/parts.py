# SPDX-License-Identifier: Apache-2.0
"""The parts of `make check`, in the order in which they run."""

from runner import build, cli, cost, dynamic, fuzz, guest, lint, pagefind, \
    programs, prove, selftest, small, software, unit, vm

PARTS = {
    "selftest": selftest,
    "lint": lint,
    "build": build,
    "unit": unit,
    "fuzz": fuzz,
    "vm": vm,
    "cli": cli,
    "guest": guest,
    "dynamic": dynamic,
    "cost": cost,
    "programs": programs,
    "small": small,
    "pagefind": pagefind,
    "software": software,
    "prove": prove,
}
# Take long, or a gigabyte of provers: run only when they are named.
LONG = ("small", "pagefind", "software", "prove")


def usual():
    return [name for name in PARTS if name not in LONG]


def describe():
    return "\n".join("  %-10s %s" % (name, module.__doc__.splitlines()[0])
                     for name, module in PARTS.items())
