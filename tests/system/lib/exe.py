# SPDX-License-Identifier: Apache-2.0
"""The executor's protocol and the record of a run: proto/executor.h and run_record.h in Python."""
import array
import errno
import os
import re
import select
import socket
import struct
import time

from . import ROOT, case
from .ipc import Error


def _enums():
    """All enum constants of executor.h, exe_step.h and task_spec.h: EXE_HELLO, EXE_RUNNING, EXE_STEP_MOUNT, SPEC_COMMAND …"""
    values = {}
    for name in ("executor.h", "exe_step.h", "task_spec.h"):
        with open(os.path.join(ROOT, "proto", name), encoding="utf-8") as f:
            values.update({k: int(v) for k, v in re.findall(r"^\t((?:EXE|SPEC)_\w+) = (\d+),", f.read(), re.M)})
    return values


globals().update(_enums())
STATES = {v: k[4:].lower() for k, v in _enums().items()
          if k in ("EXE_SETTING_UP", "EXE_RUNNING", "EXE_STOPPING", "EXE_ENDED", "EXE_FAILED")}

VERSION, MSG_MAX = 2, 256
HEAD = struct.Struct("<HHI")


class Layout:
    """A struct of fixed size after its head: names and their formats."""

    def __init__(self, *fields):
        self.names = [name for name, _ in fields]
        self.struct = struct.Struct("<" + "".join(form for _, form in fields))

    def unpack(self, data):
        return dict(zip(self.names, self.struct.unpack_from(data)))

    def pack(self, **values):
        return self.struct.pack(*(values[name] for name in self.names))


HELLO = Layout(("run", "16s"), ("state", "I"), ("step", "I"), ("error", "i"), ("detail", "I"), ("executor_pid", "I"),
               ("task_pid", "I"), ("task_start_ticks", "Q"), ("started_boot_ns", "Q"), ("started_real_ns", "Q"),
               ("lease_dev", "Q"), ("lease_ino", "Q"), ("lease_ms", "Q"), ("kill_signal", "I"), ("zero", "I"),
               ("kill_timeout_ms", "Q"))
EXITED = Layout(("run", "16s"), ("flags", "I"), ("exit_code", "i"), ("exit_signal", "i"), ("zero", "I"),
                ("ended_boot_ns", "Q"), ("ended_real_ns", "Q"), ("lease_limit_ms", "Q"), ("lease_last_ok_ns", "Q"),
                ("lease_late_ns", "Q"))
SIGNAL = Layout(("signal", "I"), ("zero", "I"))
STOP = Layout(("signal", "I"), ("zero", "I"), ("timeout_ms", "Q"))
LEASE = Layout(("limit_ms", "Q"), ("kill_signal", "I"), ("zero", "I"), ("kill_timeout_ms", "Q"))
RECORD = Layout(("magic", "Q"), ("version", "I"), ("size", "I"), ("run", "16s"), ("alloc", "16s"), ("boot_id", "40s"),
                ("state", "I"), ("step", "I"), ("error", "i"), ("detail", "I"), ("executor_pid", "I"), ("task_pid", "I"),
                ("task_start_ticks", "Q"), ("started_boot_ns", "Q"), ("started_real_ns", "Q"), ("flags", "I"),
                ("exit_code", "i"), ("exit_signal", "i"), ("driver", "I"), ("ended_boot_ns", "Q"), ("ended_real_ns", "Q"),
                ("lease_limit_ms", "Q"), ("lease_last_ok_ns", "Q"), ("lease_late_ns", "Q"), ("id_range", "I"), ("pad", "52s"), ("sum", "Q"))
RECORD_MAGIC, RECORD_SIZE = 0x6365722D72657672, 256

BODIES = {1: HELLO, 2: HELLO, 3: EXITED, 4: SIGNAL, 5: STOP, 6: LEASE, 7: Layout()}


def fnv1a(data):
    h = 0xCBF29CE484222325
    for b in data:
        h = ((h ^ b) * 0x100000001B3) & ((1 << 64) - 1)
    return h


def parse_record(data):
    """Returns the fields of a record; Error unless it is valid."""
    if len(data) != RECORD_SIZE:
        raise Error("a record of %d bytes" % len(data))
    r = RECORD.unpack(data)
    if r["magic"] != RECORD_MAGIC or r["size"] != RECORD_SIZE or r["sum"] != fnv1a(data[:-8]):
        raise Error("a record with wrong magic, size or sum")
    r["boot_id"] = r["boot_id"].rstrip(b"\0").decode()
    return r


TORN_S = 1.0  # the writer of a record may be interrupted in the middle of it


def read_record(places, run):
    """Returns the record of a run (32 hex digits), or None if there is none. A record that is being written is read again; Error if it stays
    invalid."""
    end = time.monotonic() + TORN_S
    while True:
        try:
            with open("%s/run/%s.rec" % (places.data, run), "rb") as f:
                return parse_record(f.read())
        except FileNotFoundError:
            return None
        except Error:
            if time.monotonic() >= end:
                raise
            time.sleep(0.002)


def spec(command, args=(), env=(), cwd=None, secrets=(), user=None, options=()):
    """Returns the task spec: bytes for the sealed memfd. env: {name: value} or ["NAME=value"]; secrets: {name: bytes}; a name may also be
    all of "MODE UID GID PATH"."""
    if isinstance(env, dict):
        env = ["%s=%s" % pair for pair in env.items()]
    entries = [(1, command)] * (command is not None) + [(2, a) for a in args] + [(3, e) for e in env]
    entries += [(5, cwd)] if cwd is not None else []
    entries += [(8, user)] * (user is not None) + [(9, x) for x in options]
    for name, data in dict(secrets).items():
        path = name if name.startswith("local/") else "secrets/" + name
        entries += [(6, name if " " in name else "600 -1 -1 " + path), (7, data)]
    return b"".join(spec_entry(tag, text) for tag, text in entries)


def spec_entry(tag, text):
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<II", tag, len(data)) + data + b"\0" * (((len(data) + 4) & ~3) - len(data))


class Message:
    def __init__(self, kind, fields, fds):
        self.kind, self.fields, self.fds = kind, fields, fds

    def __getitem__(self, name):
        return self.fields[name]


class Connection:
    """A connection to the executor of a run. .hello is its first message; .pidfd is the task's, or -1; .api is its socket `api.sock`, once a message
    after HELLO was received, or -1. before_hello is called while the connection waits in the executor's queue."""
    api = -1

    def __init__(self, places, run, before_hello=None):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        directory = os.open(places.runtime + "/x", os.O_PATH | os.O_DIRECTORY)
        try:
            self.sock.connect("/proc/self/fd/%d/%s.sock" % (directory, run))
        except OSError:
            self.sock.close()
            raise
        finally:
            os.close(directory)
        if before_hello:
            before_hello()
        self.greet()
        self.pidfd = self.hello.fds[0] if self.hello.fds else -1
        # A connection that is closed before it is read loses what was sent on it.
        if self.hello["state"] == 2:
            self.api, = self.recv_any().fds

    def greet(self):
        self.hello = self.recv()
        if self.hello is None or self.hello.kind != 1:
            raise Error("the executor did not begin with HELLO: %r" % (self.hello and self.hello.fields))

    def send(self, kind, fds=(), version=VERSION, **values):
        """send(EXE_STOP, signal=15, timeout_ms=5000)"""
        unsaid = {"zero": 0, "kill_signal": 0, "kill_timeout_ms": 0}
        body = BODIES[kind].pack(**{**unsaid, **values})
        self.send_bytes(HEAD.pack(version, kind, HEAD.size + len(body)) + body, fds)

    def send_bytes(self, data, fds=()):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.sock.sendmsg([data], rights)

    def recv(self):
        """Returns a Message, or None at end of file."""
        message = self.recv_any()
        if message is None or message.kind != 7:
            return message
        self.api, = message.fds
        return self.recv_any()

    def recv_any(self):
        if not select.select([self.sock], [], [], case.LEAST_S)[0]:
            raise Error("nothing came from the executor within %g s" % case.LEAST_S)
        try:
            data, rights, _, _ = self.sock.recvmsg(MSG_MAX + 1, socket.CMSG_SPACE(16), socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            return None
        fds = array.array("i")
        for _, _, raw in rights:
            fds.frombytes(raw[:len(raw) - len(raw) % fds.itemsize])
        if not data:
            return None
        version, kind, size = HEAD.unpack_from(data)
        if version != VERSION or size != len(data) or kind not in BODIES:
            raise Error("a message with head %s" % data[:8].hex())
        return Message(kind, BODIES[kind].unpack(data[8:]), list(fds))

    def wait_state(self, state):
        """Reads STATE messages until that state. Returns the message with it (or HELLO)."""
        message = self.hello
        while message["state"] != state:
            message = self.recv()
            if message is None or message.kind == 3:
                raise Error("the executor ended before state %d" % state)
        return message

    def wait_exited(self):
        """Reads up to EXITED and end of file. Returns the fields of EXITED."""
        while True:
            message = self.recv()
            if message is None:
                raise Error("the executor closed without EXITED")
            if message.kind == 3:
                case.until(lambda: self.recv() is None, 10, "end of the executor's connection")
                return message.fields

    def close(self):
        self.sock.close()
        for fd in (self.pidfd, self.api):
            if fd >= 0:
                os.close(fd)
        self.pidfd = self.api = -1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Session(Connection):
    """A connection to a session's executor. .fds are the pty, or stdin, stdout and stderr; a session for files has none."""

    def __init__(self, fd):  # pylint: disable=super-init-not-called
        self.sock, self.pidfd = socket.socket(fileno=fd), -1
        self.sock.setblocking(True)
        self.greet()
        self.fds = self.hello.fds

    def write(self, data, n=0, seconds=case.LEAST_S):
        """Writes all of data, as fast as it is accepted."""
        while data:
            if not select.select([], [self.fds[n]], [], seconds)[1]:
                raise Error("nothing was accepted within %.1f s" % seconds)
            data = data[os.write(self.fds[n], data):]

    def read(self, n=0, until=None, seconds=case.LEAST_S):
        """Reads up to the end, or until the output contains `until`. Returns the output."""
        out = b""
        while until is None or until not in out:
            if not select.select([self.fds[n]], [], [], seconds)[0]:
                raise Error("nothing more within %.1f s than %r" % (seconds, out))
            try:
                more = os.read(self.fds[n], 65536)
            except OSError as e:
                if e.errno != errno.EIO:  # EIO: the other end of the pty is closed
                    raise
                more = b""
            if not more:
                return out
            out += more
        return out

    def close_fd(self, n):
        os.close(self.fds[n])
        self.fds[n] = -1

    def close(self):
        super().close()
        for fd in self.fds:
            if fd >= 0:
                os.close(fd)
        self.fds = []
