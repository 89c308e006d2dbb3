# SPDX-License-Identifier: Apache-2.0
"""What the machine is made of: kernels, busybox and our init, fetched and
built once into a cache folder, and the initramfs made from them.

Every part is a folder or file whose name holds a key of all that went into
it. It is made under a temporary name and renamed, so that a reader never
sees half of one; a lock keeps two runs from making the same thing twice.
"""

import contextlib
import fcntl
import hashlib
import io
import lzma
import os
import re
import shutil
import tempfile

from debian import KEYRING, Debian, Failure, open_deb, run

HERE = os.path.dirname(os.path.abspath(__file__))
KERNELS = {
    # name: pattern of the package's name
    "6.1": r"linux-image-6\.1\.[^-]*-\d+-arm64",
    "6.12": r"linux-image-6\.12\.[^-]*-arm64",
    "6.12-16k": r"linux-image-6\.12\.[^-]*-arm64-16k",
}
BUSYBOX_SUITE = "bookworm"
# What init loads, and in "root" what it loads for a root image; each with
# what it depends on. A name the kernel has built in is passed over.
MODULES = {
    "base": ("virtio_pci", "virtio_console", "9pnet_virtio", "9p"),
    "root": ("crc32c_generic", "virtio_blk", "squashfs", "erofs", "ext4",
             "overlay"),
}
# Raise when the layout of what is kept in the cache changes.
CACHE_VERSION = 1

HOST_PACKAGES = {
    "qemu-system-aarch64": "qemu-system-arm",
    "apt-get": "apt",
    "dpkg-deb": "dpkg",
}


def cache_folder():
    return os.environ.get("ELFUSE_VM_CACHE", os.path.join(
        os.path.dirname(os.path.dirname(HERE)), "build", "vm"))


def cross_compiler():
    for name in (os.environ.get("ELFUSE_VM_CC"), "aarch64-linux-gnu-gcc"):
        if name and shutil.which(name):
            return name
    if os.uname().machine == "aarch64" and shutil.which("gcc"):
        return "gcc"
    return None


def missing_for_machine():
    """Packages of the build machine that a run needs and that are not there."""
    missing = missing_programs(HOST_PACKAGES)
    if not os.path.exists(KEYRING):
        missing.append("debian-archive-keyring")
    if not cross_compiler():
        missing += ["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"]
    return missing


def missing_programs(packages):
    """packages: a dictionary from a program to what it comes with."""
    return [package for program, package in packages.items()
            if not shutil.which(program)]


def install(missing, say):
    """Installs packages from the build machine's own archive."""
    if not missing:
        return
    command = ["apt-get", "install", "-y", "--no-install-recommends"] + missing
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise Failure("missing on this machine; run: sudo " +
                      " ".join(command))
    say("installing " + " ".join(missing))
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    try:
        run(command, env=environment)
    except Failure:
        run(["apt-get", "update"], env=environment)
        run(command, env=environment)


class Stock:
    def __init__(self, folder, say):
        self.folder = folder
        self.debian = Debian(folder, say)
        os.makedirs(folder, exist_ok=True)

    @contextlib.contextmanager
    def _locked(self):
        with open(os.path.join(self.folder, "lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def made(self, name, make):
        """Path of the cached folder; make(temporary folder) fills it."""
        path = os.path.join(self.folder, name)
        if os.path.exists(path):
            return path
        with self._locked():
            if not os.path.exists(path):
                scratch = tempfile.mkdtemp(prefix="tmp-", dir=self.folder)
                try:
                    make(scratch)
                    os.chmod(scratch, 0o755)
                    os.rename(scratch, path)
                finally:
                    shutil.rmtree(scratch, ignore_errors=True)
        return path

    # Parts

    def kernel(self, name):
        """Folder with Image, version and modules/*.ko."""
        def make(folder):
            self.debian.update()
            package = self.debian.newest("linux-image-", KERNELS[name])
            deb = self.debian.download(package, folder)
            os.mkdir(os.path.join(folder, "modules"))
            wanted = self._wanted_files(deb)
            with open_deb(deb) as archive:
                for member in archive:
                    target = wanted(member.name)
                    if target and member.isfile():
                        data = archive.extractfile(member).read()
                        if member.name.endswith(".xz"):
                            data = lzma.decompress(data)
                        with open(os.path.join(folder, target), "wb") as out:
                            out.write(data)
            os.unlink(deb)
            with open(os.path.join(folder, "version"), "w") as out:
                out.write(package + "\n")

        return self.made("kernel-%s-v%d" % (name, CACHE_VERSION), make)

    def _wanted_files(self, deb):
        """Maps a member of the kernel package to its name in the cache."""
        files, depends = {}, {}
        pattern = re.compile(r".*/lib/modules/[^/]+/kernel/.*/([^/]+)\.ko"
                             r"(?:\.xz)?")
        with open_deb(deb) as archive:
            for member in archive:
                match = pattern.fullmatch(member.name)
                if not match or not re.search(
                        r"/(virtio|9p|netfs|fscache|squashfs|erofs|ext4|jbd2"
                        r"|overlayfs|crypto|lib|fs|char|block)/",
                        member.name):
                    continue
                data = archive.extractfile(member).read()
                if member.name.endswith(".xz"):
                    data = lzma.decompress(data)
                name = match.group(1).replace("-", "_")
                files[name] = member.name
                found = re.search(rb"\0depends=([^\0]*)\0", data)
                depends[name] = [
                    one.replace("-", "_") for one in
                    (found.group(1).decode() if found else "").split(",")
                    if one]
        needed = set()
        queue = [name for names in MODULES.values() for name in names]
        while queue:
            name = queue.pop()
            if name in files and name not in needed:
                needed.add(name)
                queue += depends[name]
        targets = {files[name]: "modules/%s.ko" % name for name in needed}

        def target(path):
            if re.fullmatch(r"\./boot/vmlinuz-.*", path):
                return "Image"
            return targets.get(path)
        return target

    def busybox(self):
        def make(folder):
            self.debian.update()
            deb = self.debian.download("busybox-static/" + BUSYBOX_SUITE, folder)
            with open_deb(deb) as archive:
                for member in archive:
                    if member.name.endswith("bin/busybox"):
                        with open(os.path.join(folder, "busybox"), "wb") as f:
                            f.write(archive.extractfile(member).read())
            os.unlink(deb)
        return os.path.join(self.made("busybox-v%d" % CACHE_VERSION, make),
                            "busybox")

    def init(self):
        sources = sorted(os.path.join(HERE, name) for name in os.listdir(HERE)
                         if name.endswith((".c", ".h")))
        compiler = cross_compiler()
        command = [compiler, "-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall",
                   "-Wextra", "-static"]
        key = hashlib.sha256(" ".join(command).encode())
        for path in sources:
            with open(path, "rb") as source:
                key.update(source.read())

        def make(folder):
            run(command + ["-o", os.path.join(folder, "init")] +
                [path for path in sources if path.endswith(".c")])
        return os.path.join(
            self.made("init-" + key.hexdigest()[:16], make), "init")

    def initramfs(self, kernel):
        """Path of an archive without elfuse; see with_elfuse()."""
        kernel_folder, busybox, init = (self.kernel(kernel), self.busybox(),
                                        self.init())
        key = hashlib.sha256()
        for path in (init, busybox, os.path.join(kernel_folder, "version"),
                     os.path.abspath(__file__)):
            with open(path, "rb") as part:
                key.update(part.read())

        def make(folder):
            with open(os.path.join(folder, "cpio"), "wb") as out:
                fill_initramfs(Archive(out), kernel_folder, busybox, init)
        name = "initramfs-%s-%s" % (kernel, key.hexdigest()[:16])
        return os.path.join(self.made(name, make), "cpio")


class Archive:
    """Writes a cpio archive of the form the kernel unpacks ("newc")."""

    def __init__(self, out):
        self._out = out
        self._inode = 0

    def _entry(self, name, mode, data=b"", device=(0, 0)):
        self._inode += 1
        raw = name.encode() + b"\0"
        fields = (self._inode, mode, 0, 0, 1, 0, len(data), 0, 0,
                  device[0], device[1], len(raw), 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + raw
        self._out.write(head + b"\0" * (-len(head) % 4))
        self._out.write(data)
        self._out.write(b"\0" * (-len(data) % 4))

    def folder(self, name, mode=0o755):
        self._entry(name, 0o040000 | mode)

    def file(self, name, data, mode=0o644):
        self._entry(name, 0o100000 | mode, data)

    def link(self, name, target):
        self._entry(name, 0o120777, target.encode())

    def device(self, name, major, minor):
        self._entry(name, 0o020600, device=(major, minor))

    def end(self):
        self._entry("TRAILER!!!", 0)


ETC = {
    "passwd": "root:x:0:0:root:/root:/bin/sh\n"
              "daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
              "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "group": "root:x:0:\ndaemon:x:1:\ntty:x:5:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1\tlocalhost vm\n::1\tlocalhost\n",
    "hostname": "vm\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "shells": "/bin/sh\n",
    "profile": "",
}


def read_file(path):
    with open(path, "rb") as source:
        return source.read()


def applets(busybox):
    """Names of busybox's applets: a table of strings in the program, sorted
    and ended by an empty one. `busybox --list` says the same, but needs an
    arm64 machine."""
    start = busybox.find(b"\0[\0[[\0") + 1
    end = busybox.find(b"\0\0", start)
    names = busybox[start:end].decode().split("\0")
    if start == 0 or len(names) < 100 or "sh" not in names:
        raise Failure("busybox's table of applets was not found")
    return names


def load_order(folder, names):
    """File names of the modules, dependencies first."""
    order = []

    def add(name):
        path = os.path.join(folder, name + ".ko")
        if name + ".ko" in order or not os.path.exists(path):
            return
        found = re.search(rb"\0depends=([^\0]*)\0", read_file(path))
        for one in (found.group(1).decode() if found else "").split(","):
            if one:
                add(one.replace("-", "_"))
        order.append(name + ".ko")
    for name in names:
        add(name)
    return order


def fill_initramfs(archive, kernel_folder, busybox, init):
    for name in ("bin", "dev", "etc", "home", "lib", "lib/modules",
                 "lib/modules/vm", "mnt", "proc", "root", "run", "sys", "usr",
                 "usr/lib", "usr/local", "usr/local/bin", "usr/sbin",
                 "usr/share", "var", "var/tmp"):
        archive.folder(name)
    archive.folder("tmp", 0o1777)
    archive.device("dev/console", 5, 1)
    for name in ("sbin", "usr/bin"):
        archive.link(name, "/bin")
    program = read_file(busybox)
    archive.file("bin/busybox", program, 0o755)
    for name in applets(program):
        if name != "busybox":
            archive.link("bin/" + name, "busybox")
    archive.file("init", read_file(init), 0o755)
    for name, text in ETC.items():
        archive.file("etc/" + name, text.encode())
    modules = os.path.join(kernel_folder, "modules")
    for name in sorted(os.listdir(modules)):
        archive.file("lib/modules/vm/" + name,
                     read_file(os.path.join(modules, name)))
    for group, names in MODULES.items():
        text = "".join(name + "\n" for name in load_order(modules, names))
        archive.file("lib/modules/vm/" + group, text.encode())
    archive.end()


def with_elfuse(initramfs, elfuse):
    """An open memory file: the initramfs and a second archive with elfuse."""
    whole = os.memfd_create("initramfs")
    with open(whole, "wb", closefd=False) as out:
        out.write(read_file(initramfs))
        if elfuse:
            buffer = io.BytesIO()
            archive = Archive(buffer)
            archive.file("usr/local/bin/elfuse", read_file(elfuse), 0o755)
            archive.end()
            out.write(buffer.getvalue())
    return whole
