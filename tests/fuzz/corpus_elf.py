#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""corpus_elf.py DIR: write the ELF decoder's first inputs into DIR.

Small files, each with one thing of its own; the fuzzer takes it from there.
"""
import os
import struct
import sys

EXEC, DYN = 2, 3
LOAD, INTERP, PROPERTY, STACK = 1, 3, 0x6474E553, 0x6474E551
R, RX, RW = 4, 5, 6


def header(phnum, kind=EXEC, machine=183, elf_class=2, data=1, phoff=64,
           phentsize=56):
    return struct.pack("<4sBBBB8xHHIQQQIHHHHHH", b"\x7fELF", elf_class, data, 1,
                       0, kind, machine, 1, 0x400180, phoff, 0, 0, 64,
                       phentsize, phnum, 64, 0, 0)


def phdr(kind, flags, offset, address, filesz, memsz, align):
    return struct.pack("<IIQQQQQQ", kind, flags, offset, address, address,
                       filesz, memsz, align)


def inputs():
    text = phdr(LOAD, RX, 0, 0x400000, 0x200, 0x200, 0x10000)
    data = phdr(LOAD, RW, 0x200, 0x410200, 0x40, 0x3000, 0x10000)
    stack = phdr(STACK, RW, 0, 0, 0, 0, 16)
    note = struct.pack("<III4sIIII", 4, 16, 5, b"GNU\0", 0xC0000000, 4, 1, 0)
    whole = header(3) + text + data + stack
    yield "static", whole.ljust(0x240, b"\0")
    yield "pie", header(2, DYN) + text + data.ljust(0x200, b"\0")
    yield "unsorted", (header(3) + data + text + text).ljust(0x240, b"\0")
    interp = phdr(INTERP, R, 0x120, 0, 28, 28, 1)
    yield "dynamic", ((header(2, DYN) + text + interp).ljust(0x120, b"\0") +
                      b"/lib/ld-linux-aarch64.so.1\0\0").ljust(0x200, b"\0")
    prop = phdr(PROPERTY, R, 0x120, 0, len(note), len(note), 8)
    yield "property", ((header(2) + text + prop).ljust(0x120, b"\0") +
                       note).ljust(0x200, b"\0")
    yield "x86", header(1, machine=62) + text
    yield "ilp32", header(1, elf_class=1) + text
    yield "big-endian", header(1, machine=183 << 8, data=2) + text
    yield "no-phdrs", header(0)
    yield "many-phdrs", header(65535)
    yield "far-phdrs", header(1, phoff=(1 << 64) - 8) + text
    yield "odd-phentsize", header(1, phentsize=32) + text
    yield "huge", header(1) + phdr(LOAD, RX, 0, 0x400000, 0, (1 << 64) - 1, 0)
    yield "script", b"#!/bin/sh\nexit 0\n"
    yield "short", b"\x7fELF"
    yield "empty", b""


def main():
    directory = sys.argv[1]
    os.makedirs(directory, exist_ok=True)
    for name, content in inputs():
        with open(os.path.join(directory, name), "wb") as out:
            out.write(content)


if __name__ == "__main__":
    main()
