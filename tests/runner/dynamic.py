# SPDX-License-Identifier: Apache-2.0
"""dynamic programs and scripts, natively and under elfuse, in one boot

tests/dynamic/list has a row a test, mk/dynamic.mk makes the programs. glibc is
the compiler's own, musl Debian's.
"""

import os
import sys

from runner import command
from runner import machine
from runner import programs
from runner.tap import Tap

FOLDER = "tests/dynamic"
MUSL_PACKAGES = ("musl", "musl-dev")
MUSL_SUITE = "bookworm"

BEFORE = "D=/tmp/dynamic; ld=/lib/ld-linux-aarch64.so.1; glibc=/tmp/glibc; " \
    "musl=/tmp/musl; export LD_LIBRARY_PATH=$D; rooted() { " \
    "unset LD_LIBRARY_PATH; if [ $mode = native ]; then chroot \"$@\"; " \
    "else /tmp/elfuse --sysroot \"$@\"; fi; }; "

# A machine that has a C library of its own uses that.
SETUP = r"""
cp -r build/dynamic /tmp/dynamic
if [ ! -e /lib/ld-linux-aarch64.so.1 ]; then
    mkdir -p /lib/aarch64-linux-gnu
    cp build/dynamic/lib/* /lib/aarch64-linux-gnu
    ln -s aarch64-linux-gnu/ld-linux-aarch64.so.1 /lib/
fi
mkdir -p /tmp/glibc/lib/aarch64-linux-gnu /tmp/musl/lib
cp build/dynamic/lib/* build/dynamic/*.so /tmp/glibc/lib/aarch64-linux-gnu
cp build/dynamic/lib/ld-linux-aarch64.so.1 /tmp/glibc/lib
cp build/dynamic/musl/*.so* /tmp/musl/lib
for root in /tmp/glibc /tmp/musl; do
    mkdir -p $root/bin $root/proc $root/dev $root/tmp
    mount -o bind /proc $root/proc
    mount -o bind /dev $root/dev
    printf '#!/bin/show of a script\n' >$root/bin/script
    chmod +x $root/bin/script
done
for name in order tls modules show; do
    cp build/dynamic/$name /tmp/glibc/bin
    cp build/dynamic/musl/$name /tmp/musl/bin 2>/dev/null || :
done
"""


def musl():
    """A folder with Debian's packages of musl unpacked."""
    sys.path.insert(0, "tools/vm")
    import stock
    store = stock.Stock(stock.cache_folder(), lambda text: None)

    def make(folder):
        store.debian.update()
        for package in MUSL_PACKAGES:
            deb = store.debian.download("%s/%s" % (package, MUSL_SUITE),
                                        folder)
            stock.run(["dpkg-deb", "-x", deb, folder])
            os.unlink(deb)
    return store.made("musl-%s-v1" % MUSL_SUITE, make)


def judge(report, job, native, elfuse, comparison):
    clean = programs.module("normalise").NORMALISERS[comparison] \
        if comparison else bytes
    text = programs.compare(native, elfuse, clean)
    for title, result in (("natively", native), ("under elfuse", elfuse)):
        tap = Tap(result.out.decode(errors="replace"))
        text += "".join("%s: not ok: %s\n" % (title, point)
                        for point in tap.failures)
    if text:
        report.failed(job.name, "%s\n%s" % (job.line[len(BEFORE):], text))
    else:
        report.passed(job.name)


def run(report):
    wanted = list(programs.rows(report, "list", BEFORE, FOLDER))
    if not wanted:
        return
    built = command.make("all", "dynamic", "dynamic-musl", "MUSL=" + musl())
    if built.status != 0 or "warning:" in built.out:
        report.failed("building", built.out)
        return
    boot = machine.Boot("dynamic", [job for job, _ in wanted], setup=SETUP,
                        timeout=1800)
    trouble = boot.run([("native", None), ("elfuse", "/tmp/elfuse")])
    if trouble:
        report.failed("the machine", trouble)
    native, elfuse = boot.results("native"), boot.results("elfuse")
    for job, comparison in wanted:
        judge(report, job, native(job.name), elfuse(job.name), comparison)
