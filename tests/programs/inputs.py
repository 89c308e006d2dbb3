# SPDX-License-Identifier: Apache-2.0
"""Makes the files that the rows of `list` work on: the same bytes, names,
modes and times on every machine."""

import bz2
import lzma
import os
import random
import shutil
import zipfile

# Bump it when anything here changes.
VERSION = "2"
WHEN = 1_000_000_000
HUNDRED_MB = 100_000_000
MILLION = 1_000_000

WORDS = ("page table entry block window fault touch map unmap host guest shim "
         "vector barrier slot span dirty clean zero lazy commit arena ring "
         "gate drain retire epoch gap tree node leaf root brk stack heap "
         "image file offset length limit error signal").split()


def sentence(rng, count):
    return " ".join(rng.choice(WORDS) for _ in range(count))


def text(rng, lines):
    return "".join(sentence(rng, rng.randint(3, 12)) + "\n"
                   for _ in range(lines))


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as out:
        out.write(data if isinstance(data, bytes) else data.encode())


def small(top, rng):
    """The folder that every row gets a copy of."""
    def put(name, data):
        write(os.path.join(top, name), data)

    put("words.txt", text(rng, 4000))
    put("other.txt", text(rng, 300))
    put("binary.bin", rng.randbytes(150_000))
    put("numbers.txt", "".join("%d\n" % rng.randint(-10**6, 10**6)
                               for _ in range(2000)))
    put("table.csv", "".join(
        "%d,%s,%.3f,%s\n" % (i, rng.choice(WORDS), rng.random() * 1000,
                             rng.choice(("red", "green", "blue")))
        for i in range(1500)))
    put("tabs.txt", "".join("\t".join(WORDS[i % 7:i % 7 + 5]) + "\n"
                            for i in range(200)))
    put("long.txt", sentence(rng, 2000) + "\n")
    put("empty", "")
    for folder in ("src", "src/mm", "src/sys/deep/deeper"):
        for i in range(4):
            put("%s/file%d.c" % (folder, i),
                "/* %s */\n" % sentence(rng, 6) + "".join(
                    "int %s_%d(int %s) { return %d; }\n"
                    % (rng.choice(WORDS), k, rng.choice(WORDS),
                       rng.randint(0, 999)) for k in range(40)))
    before = text(rng, 120).splitlines(True)
    after = list(before)
    for at in (3, 40, 41, 90):
        after[at] = "changed: " + after[at]
    del after[60:64]
    after.insert(20, "a line more\n")
    put("before.txt", "".join(before))
    put("after.txt", "".join(after))
    put("www/index.html", "<html><body>%s</body></html>\n"
        % sentence(rng, 50))
    put("www/data.bin", rng.randbytes(300_000))
    put("script.awk", "BEGIN { FS = \",\" }\n{ n[$4] += $3; c[$4]++ }\n"
        "END { for (k in n) printf \"%s %.3f %d\\n\", k, n[k], c[k] }\n")


def archives(top):
    """Formats that busybox reads but does not write."""
    with open(os.path.join(top, "words.txt"), "rb") as source:
        words = source.read()
    write(os.path.join(top, "words.xz"), lzma.compress(words))
    write(os.path.join(top, "words.lzma"),
          lzma.compress(words, format=lzma.FORMAT_ALONE))
    write(os.path.join(top, "words.bz2"), bz2.compress(words))
    with zipfile.ZipFile(os.path.join(top, "files.zip"), "w") as archive:
        for name in ("words.txt", "src/file0.c", "binary.bin"):
            info = zipfile.ZipInfo(name, (2001, 9, 9, 1, 46, 40))
            info.compress_type = zipfile.ZIP_DEFLATED
            info.external_attr = 0o644 << 16
            with open(os.path.join(top, name), "rb") as source:
                archive.writestr(info, source.read())


def settle(top):
    """Owners' rights and times that do not depend on who made the files."""
    for folder, _, files in os.walk(top, topdown=False):
        for name in files:
            path = os.path.join(folder, name)
            os.chmod(path, 0o644)
            os.utime(path, (WHEN, WHEN))
        os.chmod(folder, 0o755)
        os.utime(folder, (WHEN, WHEN))


def big(top, rng):
    """Read from outside the copies: a log of 100 MB, 1 M lines to sort."""
    events = [sentence(rng, 14) for _ in range(60)]
    with open(os.path.join(top, "big.txt"), "wb") as out:
        left, second = HUNDRED_MB, WHEN
        while left > 0:
            piece = "".join(
                "%d host program[%d]: %s\n"
                % (second + i // 7, 300 + i % 5, rng.choice(events))
                for i in range(10_000)).encode()[:left]
            out.write(piece)
            left -= len(piece)
            second += 1500
    with open(os.path.join(top, "lines.txt"), "w", encoding="ascii") as out:
        out.writelines("%08x %s\n" % (rng.getrandbits(32), rng.choice(WORDS))
                       for _ in range(MILLION))


def make(top):
    """Makes TOP/small and TOP/big unless they are there. Returns TOP."""
    stamp = os.path.join(top, "version")
    if os.path.exists(stamp):
        with open(stamp, encoding="ascii") as made:
            if made.read() == VERSION:
                return top
    shutil.rmtree(top, ignore_errors=True)
    rng = random.Random(1)
    small(os.path.join(top, "small"), rng)
    archives(os.path.join(top, "small"))
    settle(os.path.join(top, "small"))
    os.makedirs(os.path.join(top, "big"))
    big(os.path.join(top, "big"), rng)
    write(stamp, VERSION)
    return top
