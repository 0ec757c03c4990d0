# SPDX-License-Identifier: Apache-2.0
"""A TCP or TLS connection that one thread reads and others write. OpenSSL does not allow both at once, so each step holds one
lock and none waits inside it."""
import select
import socket
import ssl
import struct
import threading


class Transport:
    """.stalled: nothing is read and what is written is dropped, as on a link that died without a FIN."""

    def __init__(self, sock):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setblocking(False)
        self.sock, self.lock = sock, threading.Lock()
        self.live = threading.Event()
        self.live.set()
        self.closed = False
        self.bytes_in = self.bytes_out = 0

    def stall(self):
        self.live.clear()

    def resume(self):
        self.live.set()

    @property
    def stalled(self):
        return not self.live.is_set()

    def _step(self, fn, *args):
        """fn's result, or None after waiting for the socket."""
        try:
            with self.lock:
                return fn(*args)
        except (BlockingIOError, ssl.SSLWantReadError):
            wanted = ([self.sock], []) if fn.__name__ == "recv" else ([], [self.sock])
        except ssl.SSLWantWriteError:
            wanted = ([], [self.sock])
        except ValueError as e:  # the descriptor was closed
            raise ConnectionError(str(e)) from e
        if self.closed:
            raise ConnectionError("closed")
        try:
            select.select(*wanted, [], 1.0)
        except ValueError as e:
            raise ConnectionError(str(e)) from e
        return None

    def recv(self, limit=65536):
        """Some bytes; b"" at the end."""
        while True:
            self.live.wait()
            if self.closed:
                return b""
            data = self._step(self.sock.recv, limit)
            if data is not None:
                self.bytes_in += len(data)
                return data

    def sendall(self, data):
        self.bytes_out += len(data)
        view = memoryview(data)
        while len(view) and not self.stalled:
            sent = self._step(self.sock.send, view)
            if sent:
                view = view[sent:]

    def close(self, reset=False):
        """reset: with RST instead of FIN, as when the machine's process is killed with unread data."""
        self.closed = True
        self.live.set()
        try:
            if reset:
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            else:
                self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        with self.lock:
            self.sock.close()
