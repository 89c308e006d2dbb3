# SPDX-License-Identifier: Apache-2.0
"""Packages of Debian's arm64 archive, without root and without touching the
machine's own sources."""

import contextlib
import os
import re
import subprocess
import tarfile
import time
import urllib.parse

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
SUITES = ("bookworm", "trixie")
HOURS = 6  # a list of that age still names packages the archive holds


class Failure(Exception):
    """The tool itself cannot go on; the text is one line for the user."""


def last_words(text):
    words = text.strip().splitlines()
    return words[-1] if words else "no output"


def run(command, **options):
    """Runs a command quietly; Failure with its last words if it fails."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          **options)
    text = done.stdout.decode(errors="replace")
    if done.returncode:
        raise Failure("%s failed: %s" % (os.path.basename(command[0]),
                                         last_words(text)))
    return text


@contextlib.contextmanager
def open_deb(deb):
    """The files of a package, as a tar stream."""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", deb],
                          stdout=subprocess.PIPE) as tar:
        with tarfile.open(fileobj=tar.stdout, mode="r|") as archive:
            yield archive
            # Whatever is left, so that dpkg-deb can end.
        while tar.stdout.read(1 << 20):
            pass
    if tar.returncode:
        raise Failure("%s is damaged" % os.path.basename(deb))


class Deb:
    """A package of the archive: its file's name, size and SHA-256."""

    def __init__(self, file, size, digest):
        # name_version_architecture.deb; a version's ":" is written %3a.
        self.file = file
        self.name, self.version, _ = urllib.parse.unquote(
            self.file).split("_")
        self.size, self.digest = size, digest


class Debian:
    """apt on a configuration of its own, in FOLDER/apt."""

    def __init__(self, folder, say):
        self.folder = os.path.join(folder, "apt")
        self.say = say

    def _environment(self):
        for part in ("lists/partial", "archives/partial"):
            os.makedirs(os.path.join(self.folder, part), exist_ok=True)
        mirror = os.environ.get("ELFUSE_VM_MIRROR",
                                "http://deb.debian.org/debian")
        with open(os.path.join(self.folder, "sources.list"), "w") as out:
            for suite in SUITES:
                out.write("deb [signed-by=%s] %s %s main\n" %
                          (KEYRING, mirror, suite))
        with open(os.path.join(self.folder, "apt.conf"), "w") as out:
            out.write('''\
Dir::State "{0}"; Dir::State::Lists "{0}/lists"; Dir::State::status "/dev/null";
Dir::Cache "{0}"; Dir::Cache::Archives "{0}/archives";
Dir::Etc::SourceList "{0}/sources.list"; Dir::Etc::SourceParts "/dev/null";
Dir::Etc::Preferences "/dev/null"; Dir::Etc::PreferencesParts "/dev/null";
APT::Architecture "arm64"; APT::Architectures {{ "arm64"; }};
APT::Install-Recommends "false"; APT::Sandbox::User "";
Acquire::Languages "none"; Acquire::Retries "3";
'''.format(self.folder))
        return dict(os.environ, LC_ALL="C",
                    APT_CONFIG=os.path.join(self.folder, "apt.conf"))

    def _apt(self, *arguments, cwd=None):
        return run(arguments, env=self._environment(), cwd=cwd)

    def update(self):
        stamp = os.path.join(self.folder, "updated")
        if not os.path.exists(stamp) or \
                time.time() - os.path.getmtime(stamp) > HOURS * 3600:
            self.say("reading Debian's list of arm64 packages")
            self._apt("apt-get", "-q", "update")
            with open(stamp, "w"):
                pass

    def download(self, package, folder):
        """One package's file, in a folder that has no other."""
        self.say("downloading " + package)
        self._apt("apt-get", "-q", "download", package, cwd=folder)
        debs = [name for name in os.listdir(folder) if name.endswith(".deb")]
        if len(debs) != 1:
            raise Failure("apt-get download %s brought no package" % package)
        return os.path.join(folder, debs[0])

    def newest(self, prefix, pattern):
        names = self._apt("apt-cache", "pkgnames", prefix).split()
        found = [name for name in names if re.fullmatch(pattern, name)]
        if not found:
            raise Failure("the archive has no package " + pattern)
        return max(found, key=lambda name:
                   [int(n) for n in re.findall(r"\d+", name)])

    # Many packages with all that they depend on

    @staticmethod
    def _install(suite, *rest):
        return ["apt-get", "-q", "-y", "-t", suite, *rest]

    def resolve(self, suite, packages):
        """The packages and what they depend on, as a sorted list of Deb."""
        text = self._apt(*self._install(suite, "-o", "Acquire::ForceHash=SHA256",
                                        "--print-uris", "install",
                                        *packages))
        found = re.findall(r"^'\S+' (\S+) (\d+) SHA256:(\w+)$", text,
                           re.MULTILINE)
        if not found:
            raise Failure("apt-get names no packages: " + last_words(text))
        return sorted((Deb(file, int(size), digest)
                       for file, size, digest in found),
                      key=lambda deb: deb.name)

    def fetch(self, debs, progress):
        """Brings the files, checked against the archive's signed list; what
        an earlier run brought is kept. progress(bytes) is called at times.
        Returns the folder they are in."""
        # Not apt's own folder, whose files --print-uris leaves out.
        folder = os.path.join(self.folder, "debs")
        os.makedirs(folder, exist_ok=True)
        missing = {deb.file: deb for deb in debs
                   if not self._complete(folder, deb)}
        if missing:
            command = ["apt-get", "-q", "download"] + [
                "%s=%s" % (deb.name, deb.version)
                for deb in missing.values()]
            with subprocess.Popen(
                    command, cwd=folder, env=self._environment(),
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT, text=True,
                    errors="replace") as process:
                text = ""
                for line in process.stdout:
                    text += line
                    progress(sum(deb.size for deb in debs
                                 if self._complete(folder, deb)))
            if process.returncode:
                raise Failure("apt-get failed: " + last_words(text))
        for deb in debs:
            if not self._complete(folder, deb):
                raise Failure("apt-get did not bring " + deb.file)
        return folder

    @staticmethod
    def _complete(folder, deb):
        path = os.path.join(folder, deb.file)
        return os.path.exists(path) and os.path.getsize(path) == deb.size
