# SPDX-License-Identifier: Apache-2.0
"""yamux over a Transport, for both roles: a reading thread per session, streams with windows, pings, go-away. A violation that ends a
session of the reference implementation ends this one too; .failure has the reason."""
import collections
import queue
import struct
import threading
import time

DATA, WINDOW, PING, GO_AWAY = range(4)
SYN, ACK, FIN, RST = 1, 2, 4, 8
INITIAL_WINDOW = 262144
BACKLOG = 256
HEADER = struct.Struct(">BBHII")


class Closed(Exception):
    """The session has ended."""


class Reset(Exception):
    """The stream was reset by the other side, or the session has ended."""


def frame(kind, flags, stream, length, payload=b""):
    return HEADER.pack(0, kind, flags, stream, length) + payload


class Stream:
    """read() and write() block; close() sends FIN, after which reading is still possible."""

    def __init__(self, session, number, opened_here):
        self.session, self.number, self.opened_here = session, number, opened_here
        self.data = collections.deque()
        self.held = 0  # bytes in data
        self.receive_window = self.send_window = INITIAL_WINDOW
        self.changed = threading.Condition(session.lock)
        self.acked = not opened_here
        self.ended_there = self.ended_here = self.was_reset = False

    # --- reading ---

    def read(self, limit=65536, timeout=None):
        """Returns some bytes; b"" after the other side's FIN; Reset; TimeoutError."""
        end = None if timeout is None else time.monotonic() + timeout
        with self.changed:
            while not self.data:
                if self.was_reset or self.session.closed:
                    raise Reset("stream %d is gone: %s" % (self.number, self.session.failure or "reset"))
                if self.ended_there:
                    return b""
                left = None if end is None else end - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError("nothing to read on stream %d" % self.number)
                self.changed.wait(left)
            part = self.data.popleft()
            if len(part) > limit:
                self.data.appendleft(part[limit:])
                part = part[:limit]
            self.held -= len(part)
        self._credit()
        return part

    def _credit(self):
        """Sends a window update when at least half of the window is free, as the reference does."""
        with self.session.lock:
            delta = INITIAL_WINDOW - self.held - self.receive_window
            if delta < INITIAL_WINDOW // 2 or self.session.withholds_window:
                return
            self.receive_window += delta
        self.session.send(frame(WINDOW, 0, self.number, delta))

    # --- writing ---

    def write(self, data, chunk=4096, timeout=60):
        """Sends all of data, split as a server splits it. Waits for window."""
        view = memoryview(bytes(data))
        end = time.monotonic() + timeout
        while len(view):
            with self.changed:
                while not self.send_window and not self.was_reset and not self.session.closed and not self.ended_here:
                    left = end - time.monotonic()
                    if left <= 0:
                        raise TimeoutError("no window on stream %d" % self.number)
                    self.changed.wait(left)
                if self.was_reset or self.session.closed or self.ended_here:
                    raise Reset("stream %d takes no more data" % self.number)
                n = min(len(view), self.send_window, chunk)
                self.send_window -= n
            self.session.send(frame(DATA, 0, self.number, n, bytes(view[:n])))
            view = view[n:]

    def close(self):
        """Sends FIN, once."""
        with self.changed:
            if self.ended_here or self.was_reset or self.session.closed:
                return
            self.ended_here = True
            self.changed.notify_all()
            self._forget_if_done()
        self.session.send(frame(WINDOW, FIN, self.number, 0), quiet=True)

    def reset(self):
        with self.changed:
            self.was_reset = True
            self.session.streams.pop(self.number, None)
            self.changed.notify_all()
        self.session.send(frame(WINDOW, RST, self.number, 0), quiet=True)

    def _forget_if_done(self):
        if self.ended_here and self.ended_there:
            self.session.streams.pop(self.number, None)

    # --- received frames, under the session's lock ---

    def on_flags(self, flags):
        if flags & ACK:
            self.acked = True
        if flags & FIN:
            if self.ended_there:
                raise Closed("a second FIN on stream %d" % self.number)
            self.ended_there = True
            self._forget_if_done()
        if flags & RST:
            self.was_reset = True
            self.session.streams.pop(self.number, None)
            self.session.resets.append(self.number)
        self.changed.notify_all()

    def on_data(self, payload):
        if len(payload) > self.receive_window:
            raise Closed("receive window of stream %d exceeded: %d bytes, %d left" %
                         (self.number, len(payload), self.receive_window))
        self.receive_window -= len(payload)
        self.data.append(payload)
        self.held += len(payload)
        self.changed.notify_all()


class Session:
    """client: opens streams with odd numbers. keepalive_s: 0 sends no pings. on_close(session) is called once."""

    def __init__(self, transport, client, keepalive_s=30.0, ping_timeout_s=10.0, on_close=None):
        self.transport, self.client = transport, client
        self.keepalive_s, self.ping_timeout_s, self.on_close = keepalive_s, ping_timeout_s, on_close
        self.lock, self.write_lock = threading.RLock(), threading.Lock()
        self.streams, self.accepted = {}, queue.Queue()
        self.next_number = 1 if client else 2
        self.closed, self.failure, self.went_away = False, None, None
        self.pings, self.ping_count = {}, 0
        self.resets = []  # streams that the other side reset
        self.broken = False  # the other side violated the protocol
        self.forgiven = False  # this side violates the protocol on purpose, so the other side is not to blame for the end
        self.ended = threading.Event()
        self.pings_seen = 0
        # Misbehavior: no window updates, unanswered pings, unacknowledged streams.
        self.withholds_window = self.ignores_pings = self.ignores_syns = False
        self.threads = [threading.Thread(target=self._read_all, daemon=True)]
        if keepalive_s:
            self.threads.append(threading.Thread(target=self._keep_alive, daemon=True))

    def start(self):
        for thread in self.threads:
            thread.start()
        return self

    def send(self, data, quiet=False):
        """Sends one or more complete frames."""
        try:
            with self.write_lock:
                self.transport.sendall(data)
        except (OSError, ConnectionError) as e:
            self.close("cannot write: %s" % e)
            if not quiet:
                raise Reset(str(e)) from e

    def open(self):
        """Opens a stream: sends SYN without waiting for the ACK."""
        with self.lock:
            if self.closed or self.went_away is not None:
                raise Closed(self.failure or "the other side went away")
            stream = self.streams[self.next_number] = Stream(self, self.next_number, True)
            self.next_number += 2
        self.send(frame(WINDOW, SYN, stream.number, 0))
        return stream

    def accept(self, timeout=None):
        """Returns the next stream that the other side opened; None when the session ends."""
        try:
            stream = self.accepted.get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError("no stream was opened") from None
        if stream is not None:
            self.send(frame(WINDOW, ACK, stream.number, 0), quiet=True)
        return stream

    def ping(self, timeout=10.0):
        """Sends a ping. Returns the round trip in seconds; TimeoutError."""
        answered = threading.Event()
        with self.lock:
            opaque, self.ping_count = self.ping_count, self.ping_count + 1
            self.pings[opaque] = answered
        began = time.monotonic()
        self.send(frame(PING, SYN, 0, opaque))
        if not answered.wait(timeout) or self.closed:
            raise TimeoutError("ping %d was not answered" % opaque)
        return time.monotonic() - began

    def go_away(self, code=0):
        self.send(frame(GO_AWAY, 0, 0, code), quiet=True)

    def close(self, failure=None, reset=False):
        """Closes the TCP connection without a go-away, as Session.Close() of the reference."""
        with self.lock:
            if self.closed:
                return
            self.closed, self.failure = True, failure
            for stream in self.streams.values():
                stream.changed.notify_all()
            for answered in self.pings.values():
                answered.set()
        self.ended.set()
        self.accepted.put(None)
        self.transport.close(reset)
        if self.on_close:
            self.on_close(self)

    # --- the reading thread ---

    def _read_all(self):
        buffered = b""

        def exactly(n):
            nonlocal buffered
            parts, have = [buffered], len(buffered)
            while have < n:
                data = self.transport.recv()
                if not data:
                    raise EOFError
                parts.append(data)
                have += len(data)
            whole = b"".join(parts)
            buffered = whole[n:]
            return whole[:n]

        try:
            while True:
                version, kind, flags, number, length = HEADER.unpack(exactly(12))
                if version != 0:
                    raise Closed("a frame of version %d" % version)
                if kind == DATA:
                    self._on_stream(number, flags, length, None if length > INITIAL_WINDOW else exactly(length))
                elif kind == WINDOW:
                    self._on_stream(number, flags, length, None, window=True)
                elif kind == PING:
                    self._on_ping(flags, length)
                elif kind == GO_AWAY:
                    self._on_go_away(length)
                else:
                    raise Closed("a frame of type %d" % kind)
        except EOFError:
            self.close()
        except (OSError, ConnectionError) as e:
            self.close(None if self.closed else "cannot read: %s" % e)
        except Closed as e:
            self.broken = True
            self.go_away(1)
            self.close(str(e))

    def _on_stream(self, number, flags, length, payload, window=False):
        with self.lock:
            if flags & SYN:
                stream = self._on_syn(number)
            else:
                stream = self.streams.get(number)
            if stream is None:
                return  # discarded: a frame for a closed stream is harmless
            if window:
                stream.on_flags(flags)
                stream.send_window += length
                return
            if payload is None:
                raise Closed("receive window of stream %d exceeded: %d bytes" % (number, length))
            if payload:
                stream.on_data(payload)
            stream.on_flags(flags)

    def _on_syn(self, number):
        if number in self.streams:
            raise Closed("a second SYN on stream %d" % number)
        if number == 0:
            raise Closed("a SYN on stream 0")
        if self.ignores_syns:
            return None
        if self.accepted.qsize() >= BACKLOG:
            self.send(frame(WINDOW, RST, number, 0), quiet=True)
            return None
        stream = self.streams[number] = Stream(self, number, False)
        self.accepted.put(stream)
        return stream

    def _on_ping(self, flags, opaque):
        if flags & SYN:
            self.pings_seen += 1
            if not self.ignores_pings:
                self.send(frame(PING, ACK, 0, opaque), quiet=True)
            return
        with self.lock:
            answered = self.pings.pop(opaque, None)
        if answered:
            answered.set()

    def _on_go_away(self, code):
        with self.lock:
            self.went_away = code
        if code:
            raise Closed("the other side went away with code %d" % code)

    def _keep_alive(self):
        while not self.ended.wait(self.keepalive_s):
            try:
                self.ping(self.ping_timeout_s)
            except TimeoutError:
                self.close("a ping was not answered within %g s" % self.ping_timeout_s)
            except (Reset, Closed):
                return
