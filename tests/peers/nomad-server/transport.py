# SPDX-License-Identifier: Apache-2.0
"""A TCP or TLS connection that one thread reads and others write. OpenSSL does not support both at the same time, so each step holds a
lock, and no step waits while it holds the lock."""
import select
import socket
import ssl
import struct
import threading


class Transport:
    """.stalled: nothing is read, and written data is dropped, as on a link that fails without a FIN."""

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
        """Returns the result of fn, or None after waiting for the socket."""
        try:
            with self.lock:
                return fn(*args)
        except (BlockingIOError, ssl.SSLWantReadError):
            wanted = ([self.sock], []) if fn.__name__ == "recv" else ([], [self.sock])
        except ssl.SSLWantWriteError:
            wanted = ([], [self.sock])
        except ValueError as e:  # the descriptor was closed by another thread
            raise ConnectionError(str(e)) from e
        if self.closed:
            raise ConnectionError("closed")
        try:
            select.select(*wanted, [], 1.0)
        except ValueError as e:
            raise ConnectionError(str(e)) from e
        return None

    def recv(self, limit=65536):
        """Returns some bytes; b"" at the end."""
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
        """reset: with RST instead of FIN, as when a process with unread data is killed."""
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
