# SPDX-License-Identifier: Apache-2.0
"""The parts of `make check`, in the order in which they run."""

from runner import lint
from runner import unit

PARTS = {
    "lint": lint,
    "unit": unit,
}


def describe():
    return "\n".join("  %-10s %s" % (name, module.__doc__.splitlines()[0])
                     for name, module in PARTS.items())
