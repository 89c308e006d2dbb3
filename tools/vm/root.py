# SPDX-License-Identifier: Apache-2.0
"""Debian roots with real software, as read-only images for elfuse-vm --root.

Packages are fetched from bookworm and their files written as one stream into
a squashfs image, with the owners and modes that they have: nothing is
unpacked, no root rights are needed, no script of a package runs. What those
scripts would do and programs need, stands in LINKS and FILES below.
"""

import hashlib
import io
import os
import subprocess
import tarfile

import stock
from debian import Deb, Failure, last_words, open_deb

SUITE = "bookworm"
HOST_PACKAGES = {"mksquashfs": "squashfs-tools"}

SMALL = """base-files bash busybox-static coreutils dash diffutils findutils
    grep libc-bin mawk netbase perl-base procps python3 sed sqlite3
    util-linux""".split()
FULL = SMALL + """binutils gawk gcc git gzip libasan8 libc6-dev
    libpython3.11-testsuite lua5.4 make musl-tools nginx-light nodejs
    openjdk-17-jdk-headless perl postgresql-15 redis-server redis-tools
    stress-ng tar xz-utils""".split()
PROFILES = {"small": SMALL, "full": FULL}

# Depended on, and not used: a compiler for queries, which PostgreSQL does
# without; documentation.
UNWANTED = {"git-man", "libllvm14", "libz3-4"}
# Not needed to run, half of the size.
LEFT_OUT = ("usr/share/doc/", "usr/share/man/", "usr/share/info/",
            "usr/share/locale/", "usr/share/lintian/", "usr/share/bug/",
            "usr/share/i18n/", "usr/lib/jvm/java-17-openjdk-arm64/jmods/",
            "usr/lib/jvm/java-17-openjdk-arm64/lib/src.zip")

# Debian's merged /usr: what packages ship below these goes to /usr.
MERGED = {"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib"}
# Links that packages' scripts make, the first target that is there.
LINKS = {
    "etc/mtab": ["../proc/self/mounts"],
    "usr/bin/awk": ["mawk"],
    "usr/bin/c99": ["c99-gcc"],
    "usr/bin/cc": ["gcc"],
    "usr/bin/java": ["../lib/jvm/java-17-openjdk-arm64/bin/java"],
    "usr/bin/javac": ["../lib/jvm/java-17-openjdk-arm64/bin/javac"],
    "usr/bin/lua": ["lua5.4"],
    "usr/bin/nawk": ["gawk", "mawk"],
    "usr/bin/node": ["nodejs"],
    "usr/bin/pager": ["more"],
    "usr/bin/sh": ["dash"],
    "usr/bin/which": ["which.debianutils"],
    "usr/sbin/nologin": ["../bin/false"],
}
FOLDERS = {"dev": 0o755, "home/user": 0o755, "mnt": 0o755, "proc": 0o555,
           "root": 0o700, "run": 0o755, "sys": 0o555, "tmp": 0o1777,
           "var/log": 0o755, "var/tmp": 0o1777}
FILES = dict(stock.ETC, passwd=stock.ETC["passwd"] + """\
www-data:x:33:33:www-data:/var/www:/usr/sbin/nologin
user:x:1000:1000:user:/home/user:/bin/bash
postgres:x:101:101:postgres:/tmp:/bin/bash
""", group=stock.ETC["group"] + """\
www-data:x:33:
user:x:1000:
postgres:x:101:
""", shells="/bin/sh\n/bin/bash\n")
OWNERS = {"home/user": 1000}
WHEN = 1_000_000_000  # the time of the files made here


def merged(path):
    """A package's path, without its leading dot, in the merged layout."""
    path = os.path.normpath(path).lstrip("/")
    first, slash, rest = path.partition("/")
    return MERGED.get(first, first) + slash + rest


class Tree:
    """The root as it is written, each path once."""

    def __init__(self, out):
        self._tar = tarfile.open(fileobj=out, mode="w|",
                                 format=tarfile.GNU_FORMAT)
        self._seen = {"."}

    def _info(self, path, kind, mode):
        info = tarfile.TarInfo(path)
        info.type, info.mode, info.mtime = kind, mode, WHEN
        info.uid = info.gid = OWNERS.get(path, 0)
        return info

    def _parents(self, path):
        parent = os.path.dirname(path)
        if parent and parent not in self._seen:
            self.folder(parent, 0o755)

    def folder(self, path, mode):
        if path not in self._seen:
            self._parents(path)
            self._seen.add(path)
            self._tar.addfile(self._info(path, tarfile.DIRTYPE, mode))

    def link(self, path, target):
        if path not in self._seen:
            self._parents(path)
            self._seen.add(path)
            info = self._info(path, tarfile.SYMTYPE, 0o777)
            info.linkname = target
            self._tar.addfile(info)

    def file(self, path, data):
        if path not in self._seen:
            self._parents(path)
            self._seen.add(path)
            info = self._info(path, tarfile.REGTYPE, 0o644)
            info.size = len(data)
            self._tar.addfile(info, io.BytesIO(data))

    def add(self, member, archive):
        """A member of a package."""
        path = merged(member.name)
        if path in self._seen or (path + "/").startswith(LEFT_OUT):
            return
        self._parents(path)
        self._seen.add(path)
        member.name = path
        if member.islnk():
            member.linkname = merged(member.linkname)
        self._tar.addfile(member, archive.extractfile(member)
                          if member.isfile() else None)

    def has(self, path):
        return path in self._seen

    def end(self):
        self._tar.close()


def fill(tree, debs, say):
    for path, target in MERGED.items():
        tree.link(path, target)
    for path, mode in FOLDERS.items():
        tree.folder(path, mode)
    for name, text in FILES.items():
        tree.file("etc/" + name, text.encode())
    for number, deb in enumerate(debs, 1):
        with open_deb(deb) as archive:
            for member in archive:
                tree.add(member, archive)
        say("unpacked", number, len(debs))
    for path, targets in LINKS.items():
        folder = os.path.dirname(path)
        for target in targets:
            there = os.path.normpath(os.path.join(folder, target))
            if tree.has(there) or there.startswith("proc/"):
                tree.link(path, target)
                break


def squash(image, write):
    """write(binary stream) fills the image with a tar archive."""
    command = ["mksquashfs", "-", image, "-tar", "-comp", "lz4",
               "-mkfs-time", str(WHEN), "-all-time", str(WHEN),
               "-root-mode", "0755", "-no-progress", "-quiet"]
    with subprocess.Popen(command, stdin=subprocess.PIPE,
                          stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE) as process:
        try:
            write(process.stdin)
            process.stdin.close()
        except BrokenPipeError:
            pass  # its own words say why
        words = process.stderr.read().decode(errors="replace")
    if process.returncode:
        raise Failure("mksquashfs failed: " + last_words(words))


class Roots:
    def __init__(self, folder, say, progress):
        """progress(what, done, of all) is called as the work goes on."""
        self._stock = stock.Stock(folder, say)
        self._progress = progress

    def _packages(self, profile):
        """The list of a profile's packages, which is made once: later
        versions are asked for by removing the cache."""
        debian = self._stock.debian
        key = hashlib.sha256(" ".join(PROFILES[profile]).encode())

        def make(folder):
            debian.update()
            with open(os.path.join(folder, "packages"), "w") as out:
                for deb in debian.resolve(SUITE, PROFILES[profile]):
                    if deb.name not in UNWANTED:
                        out.write("%s %d %s\n" % (deb.file, deb.size,
                                                  deb.digest))
        name = "packages-%s-%s" % (profile, key.hexdigest()[:16])
        return os.path.join(self._stock.made(name, make), "packages")

    def image(self, profile):
        """Path of the image, made if it is not there."""
        path = self._packages(profile)
        with open(path, encoding="ascii") as names:
            text = names.read()
        debs = [Deb(file, int(size), digest) for file, size, digest in
                (line.split() for line in text.splitlines())]
        key = hashlib.sha256(text.encode())
        key.update(stock.read_file(os.path.abspath(__file__)))

        def make(folder):
            size = sum(deb.size for deb in debs) >> 20
            archives = self._stock.debian.fetch(debs, lambda done:
                                                self._progress(
                                                    "fetched MB", done >> 20,
                                                    size))
            squash(os.path.join(folder, "image"), lambda out: self._write(
                out, [os.path.join(archives, deb.file) for deb in debs]))

        name = "root-%s-%s" % (profile, key.hexdigest()[:16])
        return os.path.join(self._stock.made(name, make), "image")

    def _write(self, out, debs):
        tree = Tree(out)
        fill(tree, debs, self._progress)
        tree.end()
