#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""corpus_script.py DIR: write the first inputs for `#!` lines into DIR."""
import os
import sys

LINES = (b"#!/bin/sh\n", b"#! /bin/sh -e \n", b"#!/usr/bin/env -S a b\n",
         b"#!/bin/sh", b"#!/bin/sh ", b"#!\n", b"#!", b"#!/bin/sh\0 x\n",
         b"#!/" + b"x" * 252 + b"\n", b"#!/" + b"x" * 300,
         b"#!/a " + b"b" * 300, b"#!" + b" " * 300)


def main():
    for number, line in enumerate(LINES):
        with open(os.path.join(sys.argv[1], "%02d" % number), "wb") as out:
            out.write(line)


if __name__ == "__main__":
    main()
