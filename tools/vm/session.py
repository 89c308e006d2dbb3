# SPDX-License-Identifier: Apache-2.0
"""The talk with init (its side and the protocol are in init.h), and the
bytes of the standard streams."""

import os
import threading
import time

from stock import Failure


class Stream(threading.Thread):
    """Copies one of the program's output streams to a descriptor of ours."""

    def __init__(self, port, descriptor, broken):
        super().__init__(daemon=True)
        self._port = port
        self._descriptor = descriptor
        self._broken = broken
        self._moved = 0
        self._expected = 0
        self._changed = threading.Condition()
        self.start()

    def redirect(self, descriptor):
        """None throws the bytes away."""
        self._descriptor = descriptor

    def run(self):
        while True:
            data = self._port.recv(1 << 18)
            if not data:
                break
            self._write(data)
            with self._changed:
                self._moved += len(data)
                self._changed.notify_all()
        with self._changed:
            self._moved = float("inf")
            self._changed.notify_all()

    def _write(self, data):
        view = memoryview(data)
        while view and self._descriptor is not None:
            try:
                view = view[os.write(self._descriptor, view):]
            except BlockingIOError:
                time.sleep(0.01)  # the caller made the descriptor so
            except OSError as error:
                self._descriptor = None
                self._broken(error)

    def wait_for(self, count):
        """Waits until `count` bytes more than the last time are through."""
        self._expected += count
        with self._changed:
            self._changed.wait_for(lambda: self._moved >= self._expected)


class Session:
    def __init__(self, machine):
        self._machine = machine
        self._ctl = machine.ports["ctl"]
        self._lock = threading.Lock()
        self._pending = b""
        self.started = False

    def send(self, *messages):
        data = b"".join(os.fsencode(text) + b"\0" for text in messages)
        try:
            with self._lock:
                self._ctl.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            pass  # receive() finds out and says so

    def receive(self):
        """Next message from init; Failure when the machine has ended."""
        while b"\0" not in self._pending:
            try:
                data = self._ctl.recv(65536)
            except ConnectionResetError:
                data = b""
            if not data:
                raise Failure(self._why_it_ended())
            self._pending += data
        message, self._pending = self._pending.split(b"\0", 1)
        text = message.decode(errors="replace")
        if text.startswith("F"):
            raise Failure("in the machine: " + text[1:])
        return text

    def _why_it_ended(self):
        lines = [line for line in self._machine.console() if line]
        telling = [line for line in lines if "Kernel panic" in line or
                   line.startswith("qemu-system")]
        return ("the machine ended before the program did" +
                (": " + (telling or lines)[-1] if lines else
                 " and said nothing"))

    def feed_input(self, descriptor):
        """Passes standard input on, in the background."""
        threading.Thread(target=self._feed, args=(descriptor,),
                         daemon=True).start()

    def _feed(self, descriptor):
        port, count = self._machine.ports["in"], 0
        while descriptor is not None:
            try:
                data = os.read(descriptor, 1 << 18)
            except BlockingIOError:
                time.sleep(0.01)
                continue
            except OSError:
                break
            if not data:
                break
            try:
                port.sendall(data)
            except OSError:
                return
            count += len(data)
        self.send("I%d" % count)
