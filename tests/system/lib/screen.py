# SPDX-License-Identifier: Apache-2.0
"""Runs the command on a terminal of a chosen width, and checks that its output fits.

    text = screen.run(["status"], 60, env={"DROVER_ADDR": ...})
    screen.check_fits(text, 60, plain)
"""
import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

from . import binary, case

CODES = re.compile(r"[^\n]*\r\x1b\[K|\x1b\[[0-9]*m")  # the first: a line of progress, which is erased


class Screen:
    """The output of a command on a terminal: .text without codes, .raw with them, .code."""

    def __init__(self, words, width, env=None, stdin=subprocess.DEVNULL):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
        attributes = termios.tcgetattr(slave)
        attributes[1] &= ~termios.OPOST  # so that newlines arrive as they were written
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        clean = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR", "DROVER_ADDR", "NOMAD_ADDR")}
        clean.update({"TERM": "xterm", "LC_ALL": "C.UTF-8"}, **(env or {}))
        process = subprocess.Popen([binary("drover"), *words], stdin=stdin, stdout=slave, stderr=slave, env=clean)
        os.close(slave)
        data = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # EIO: the last writer has closed the terminal
                break
            if not part:
                break
            data += part
        os.close(master)
        self.code, self.raw = process.wait(2 * case.LEAST_S), data.decode()
        self.text = CODES.sub("", self.raw)


def words(text):
    return sorted(re.findall(r"\S+", text))


def check_fits(screen, width, what):
    """Checks that no line is longer than the terminal, unless a word does not fit beside the name of a field either, or it is a command
    to be pasted."""
    for line in screen.text.splitlines():
        if len(line) > width and len(line.split(" ")[-1]) <= width - 24 and not line.startswith("  drover "):
            raise AssertionError("%s at %d columns: %d: %r\n%s" % (what, width, len(line), line, screen.text))
        case.equal(line, line.rstrip(), what)
