# SPDX-License-Identifier: Apache-2.0
"""A shell on a terminal: pty.py WORD..., the words start an interactive bash.
Types commands, Ctrl-C, Ctrl-Z, and prints what matters of the answers."""

import os
import pty
import re
import select
import sys
import time

PROMPT = "ready> "


class Terminal:
    def __init__(self, words):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ.update(PS1=PROMPT, TERM="dumb", HISTFILE="/dev/null")
            os.execvp(words[0], words)
        self.seen = ""

    def expect(self, text, seconds=60):
        """Waits until `text` comes; returns what came before it."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            ready = select.select([self.fd], [], [], end - time.monotonic())
            if not ready[0]:
                raise SystemExit("no %r in %r" % (text, self.seen))
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            if not data:
                raise SystemExit("ended; %r" % self.seen)
            self.seen += data.decode(errors="replace")
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, text):
        os.write(self.fd, text.encode())

    def command(self, line):
        self.type(line + "\n")
        self.expect(line)  # the echo
        print("%s -> %s" % (line, clean(self.expect(PROMPT))))


def clean(text):
    text = re.sub(r"\x1b\[\?2004[hl]", "", text)
    return " / ".join(line for line in text.replace("\r", "").split("\n")
                      if line)


def main():
    shell = Terminal(sys.argv[1:])
    shell.expect(PROMPT)
    shell.command("test -t 0 && echo a terminal")
    shell.command("stty size; stty -a | grep -c isig")
    shell.command("set -o | grep monitor")
    shell.type("cat\n")
    shell.expect("cat")
    shell.type("some text\n")
    shell.expect("some text\r\nsome text")
    shell.type("\x03")
    shell.expect(PROMPT)
    shell.command("echo $?")
    shell.type("sleep 1000\n")
    shell.expect("sleep 1000")
    time.sleep(1)  # until it is in the foreground
    shell.type("\x1a")
    print("Ctrl-Z: " + clean(shell.expect(PROMPT)).replace("^Z", ""))
    shell.command("jobs")
    shell.command("bg")
    shell.command("jobs")
    shell.type("fg\n")
    shell.expect("fg")
    shell.expect("sleep 1000")
    time.sleep(1)
    shell.type("\x03")
    shell.expect(PROMPT)
    shell.command("echo $?; jobs")
    shell.type("read x; echo \"<$x>\"\n")
    shell.expect("\"<$x>\"")
    shell.type("an answer\n")
    shell.expect("<an answer>")
    shell.expect(PROMPT)
    shell.type("exit 3\n")
    _, status = os.waitpid(shell.pid, 0)
    print("ended with", os.waitstatus_to_exitcode(status))


main()
