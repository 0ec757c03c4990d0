# SPDX-License-Identifier: Apache-2.0
"""A simulated journald: the test is the receiver of /run/systemd/journal/socket, in its own mount namespace."""
import os
import select
import socket
import struct
import threading
import time

from . import case, helper

SOCKET = "/run/systemd/journal/socket"


def parse(data):
    """Returns the fields of one entry of the native protocol as {name: bytes}."""
    fields = {}
    while data:
        head, data = data.split(b"\n", 1)
        name, equals, value = head.partition(b"=")
        if not equals:
            size, = struct.unpack_from("<Q", data)
            value, data = data[8:8 + size], data[8 + size:]
            case.equal(data[:1], b"\n", "end of the field %r" % name)
            data = data[1:]
        fields[name.decode()] = value
    return fields


def stream(path):
    """Returns the environment of an agent whose stderr is this file, which is made if it is missing, so that it finds its log in the journal."""
    with open(path, "ab") as f:
        st = os.fstat(f.fileno())
    return {"JOURNAL_STREAM": "%d:%d" % (st.st_dev, st.st_ino)}


class Journal:
    """.entries are those received so far. While .stopped is set it receives nothing."""

    def __init__(self):
        helper.mount("run", "/run", "tmpfs")
        os.makedirs(os.path.dirname(SOCKET))
        self.entries, self.sock = [], None
        self.stopped, self.closing = threading.Event(), False
        self.lock = threading.Lock()
        self.listen()
        self.thread = threading.Thread(target=self._receive)
        self.thread.start()

    def listen(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        self.sock.bind(SOCKET)
        os.chmod(SOCKET, 0o666)
        self.sock.setblocking(False)

    def remove(self):
        """Removes the socket, as a machine without a journal."""
        with self.lock:
            self.sock.close()
            self.sock = None
            os.unlink(SOCKET)

    def _receive(self):
        while not self.closing:
            with self.lock:  # a select() that is still in progress would keep the closed socket alive
                if self.sock and not self.stopped.is_set():
                    select.select([self.sock], [], [], 0.01)
                    self._read()
            time.sleep(0.001)

    def read(self):
        """Reads what has arrived."""
        with self.lock:
            self._read()

    def _read(self):
        while self.sock:
            try:
                self.entries.append(parse(self.sock.recv(1 << 20)))
            except BlockingIOError:
                return

    def messages(self, of="stdout"):
        """Returns the lines of tasks."""
        self.read()
        return [e["MESSAGE"] for e in self.entries if e["DROVER_STREAM"] == of.encode()]

    def log(self):
        """Returns all entries as a text, with their fields."""
        self.read()
        return b"".join(b"%s=%s\n" % (name.encode(), value) for e in self.entries for name, value in e.items())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closing = True
        self.thread.join()
        if self.sock:
            self.sock.close()
        helper.umount("/run")
