# SPDX-License-Identifier: Apache-2.0
"""--both: the same program twice in one boot, and what differs."""

import filecmp
import os
import shutil
import sys
import tempfile

STREAMS = (("out", "standard output"), ("err", "standard error"))


def run_both(job, streams, save, say):
    """job(under_elfuse) runs the program and returns its exit status.
    Returns elfuse's."""
    folder = save or tempfile.mkdtemp(prefix="elfuse-vm-")
    try:
        os.makedirs(folder, exist_ok=True)
        statuses = {}
        for name in ("native", "elfuse"):
            statuses[name] = _capture(name, folder, job, streams)
            if not save:
                _show(name, folder, statuses[name])
        _compare(folder, statuses, say)
        return statuses["elfuse"]
    finally:
        if not save:
            shutil.rmtree(folder, ignore_errors=True)


def _capture(name, folder, job, streams):
    files = {}
    try:
        for stream, _ in STREAMS:
            path = os.path.join(folder, "%s.%s" % (name, stream))
            files[stream] = open(path, "wb")
            streams[stream].redirect(files[stream].fileno())
        status = job(name == "elfuse")
    finally:
        for stream, file in files.items():
            streams[stream].redirect(None)
            file.close()
    with open(os.path.join(folder, name + ".status"), "w") as out:
        out.write("%d\n" % status)
    return status


def _show(name, folder, status):
    for (stream, title), out in zip(STREAMS, (sys.stdout.buffer,
                                              sys.stderr.buffer)):
        path = os.path.join(folder, "%s.%s" % (name, stream))
        size = os.path.getsize(path)
        if stream == "err" and size == 0:
            continue
        out.write(b"==== %s: %s\n" % (name.encode(), title.encode()))
        with open(path, "rb") as data:
            shutil.copyfileobj(data, out)
            if size:
                data.seek(-1, os.SEEK_END)
                if data.read(1) != b"\n":
                    out.write(b"\n")
        out.flush()
    sys.stdout.write("==== %s: exit status %d\n" % (name, status))
    sys.stdout.flush()


def _compare(folder, statuses, say):
    differ = []
    for stream, title in STREAMS:
        first, second = (os.path.join(folder, "%s.%s" % (name, stream))
                         for name in ("native", "elfuse"))
        if not filecmp.cmp(first, second, shallow=False):
            differ.append(title)
    if statuses["native"] != statuses["elfuse"]:
        differ.append("exit status (%d, %d)" % (statuses["native"],
                                                 statuses["elfuse"]))
    say("native and elfuse: " +
        ("different " + ", ".join(differ) if differ else "identical"))
