# SPDX-License-Identifier: Apache-2.0
"""One run of QEMU: its command line, its ports, its console."""

import collections
import shutil
import socket
import subprocess
import threading

# Parts of the kernel that cost a boot a tenth of a second each and that no
# program here can miss: self-tests of key derivation, encrypted keys and
# jitter entropy, the certificates of modules.
SKIPPED = ("crypto_kdf108_init", "init_encrypted", "jent_mod_init",
           "load_system_certificate_list")
PORTS = ("ctl", "in", "out", "err")  # numbered from 1; see init.h


def quoted(path):
    """A path inside a QEMU option, where a comma would end it."""
    return path.replace(",", ",,")


def cpu_option(options):
    cpu = options.cpu
    if options.icount and "cntfrq=" not in cpu:
        # A tick of the counter is then one nanosecond, with icount shift=0
        # one instruction.
        cpu += ",cntfrq=1000000000"
    if cpu.split(",")[0] == "max" and "pauth=off" not in cpu and \
            "pauth-impdef" not in cpu:
        # Another algorithm for the same instructions, several times faster
        # to emulate than the architecture's own.
        cpu += ",pauth-impdef=on"
    return cpu


def qemu_command(options, kernel, initramfs, shares, port_fds):
    # The self-tests of the 6.12 kernels would run beside the program.
    append = ("console=ttyAMA0 quiet panic=-1 cryptomgr.notests "
              "initcall_blacklist=" + ",".join(SKIPPED))
    if options.append:
        append += " " + options.append
    command = ["qemu-system-aarch64", "-nodefaults", "-no-user-config",
               "-display", "none", "-monitor", "none", "-serial", "stdio",
               "-no-reboot",
               "-machine", "virt,virtualization=on,gic-version=3",
               "-cpu", cpu_option(options), "-smp", str(options.cpus),
               "-m", options.memory,
               "-kernel", kernel, "-initrd", initramfs, "-append", append,
               "-device", "virtio-serial-pci,max_ports=%d" % (len(PORTS) + 1)]
    for number, name in enumerate(PORTS, 1):
        command += ["-chardev", "socket,id=%s,fd=%d" % (name, port_fds[name]),
                    "-device", "virtserialport,nr=%d,chardev=%s,name=%s" %
                    (number, name, name)]
    for number, path in enumerate(shares):
        command += ["-fsdev", "local,id=share%d,path=%s,security_model=none,"
                    "multidevs=remap" % (number, quoted(path)),
                    "-device", "virtio-9p-pci,fsdev=share%d,mount_tag=vm%d" %
                    (number, number)]
    if options.root:
        with open(options.root, "rb") as image:
            form = "qcow2" if image.read(4) == b"QFI\xfb" else "raw"
        command += ["-drive", "if=none,id=root,read-only=on,format=%s,file=%s"
                    % (form, quoted(options.root)),
                    "-device", "virtio-blk-pci,drive=root"]
    if options.icount:
        command += ["-icount", "shift=0,sleep=off",
                    "-rtc", "base=2024-01-01T00:00:00,clock=vm"]
    return command + options.qemu_args


class Machine:
    """A running QEMU. `ports` are our ends of the virtio-serial ports."""

    def __init__(self, options, kernel, initramfs_fd, shares, echo):
        self.ports, theirs = {}, {}
        for name in PORTS:
            self.ports[name], theirs[name] = socket.socketpair()
        fds = {name: end.fileno() for name, end in theirs.items()}
        command = qemu_command(options, kernel, "/dev/fd/%d" % initramfs_fd,
                               shares, fds)
        if shutil.which("setpriv"):
            # QEMU must not outlive us, however we end.
            command = ["setpriv", "--pdeathsig", "KILL", "--"] + command
        self._process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True,
            pass_fds=[initramfs_fd] + list(fds.values()))
        for end in theirs.values():
            end.close()
        self._console = collections.deque(maxlen=200)
        self._reader = threading.Thread(target=self._read_console,
                                        args=(echo,), daemon=True)
        self._reader.start()

    def _read_console(self, echo):
        for line in self._process.stdout:
            text = line.decode(errors="replace").rstrip()
            self._console.append(text)
            if echo:
                echo(text)

    def console(self):
        """The last lines of the machine's console and of QEMU itself."""
        self._reader.join(timeout=1)
        return list(self._console)

    def kill(self):
        self._process.kill()
        self._process.wait()

    def wait(self):
        self._process.wait()
