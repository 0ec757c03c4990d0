# SPDX-License-Identifier: Apache-2.0
"""The messages between supervisor and helpers, from proto/ipc_msgs.def, proto/ipc_records.def and proto/*.proto.

Messages are dicts: {"run": b"...", "task": "web", "mounts": [{...}], "driver": "EXEC_DRIVER_EXEC"}. Fields that are left out have their default.
Encoding is canonical, as the other side requires: fields in the order of their numbers, defaults left out. encode_field(), Channel.send_raw() and
Channel.send_bytes() make encodings that must be rejected. Records are in records.py.
"""
import array
import glob
import os
import re
import select
import socket
import struct
import time

from . import ROOT, case, records

SCALARS = {"bool", "bytes", "int32", "int64", "sint32", "sint64", "string", "uint32", "uint64"}
WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 0, 1, 2, 5


class Error(Exception):
    """An invalid packet or message."""


class RequestError(Exception):
    """IPC_ERROR_REP: code is a negative errno."""

    def __init__(self, code, text):
        super().__init__("%d: %s" % (code, text))
        self.code, self.text = code, text


class Field:
    def __init__(self, name, number, type_name, repeated, oneof):
        self.name, self.number, self.type_name, self.repeated, self.oneof = name, number, type_name, repeated, oneof
        self.kind = None  # name of a scalar type, "enum" or "message"; set after all files are read
        self.of = None  # the Enum (a dict) or the Message


class Message:
    def __init__(self, name):
        self.name, self.fields = name, []

    def field(self, name):
        for f in self.fields:
            if f.name == name:
                return f
        raise KeyError("%s has no field %s" % (self.name, name))


class Schema:
    """All messages and enums by their full name ("csi.v1.Volume") and by their last word."""

    def __init__(self, paths):
        self.messages, self.enums = {}, {}
        for path in paths:
            self._read(path)
        for m in list(self.messages.values()):
            for f in m.fields:
                self._resolve(m, f)

    def _read(self, path):
        with open(path, encoding="utf-8") as f:
            text = re.sub(r"//[^\n]*", "", f.read())
        words = re.findall(r'"[^"]*"|[\w.]+|[{}=;<>,\[\]]', text)
        stack, at = [], 0  # ("message"|"enum"|"oneof", object or name)
        package = ""

        def scope():
            return ".".join([package] * bool(package) + [s[2] for s in stack if s[0] != "oneof"])

        while at < len(words):
            word = words[at]
            if word in ("syntax", "import", "package", "option"):
                end = words.index(";", at)
                if word == "package":
                    package = words[at + 1]
                at = end + 1
            elif word in ("message", "enum", "oneof"):
                name = words[at + 1]
                full = (scope() + "." if scope() else "") + name
                thing = name
                if word == "message":
                    thing = self.messages[full] = Message(full)
                elif word == "enum":
                    thing = self.enums[full] = {}
                stack.append((word, thing, name))
                at += 3
            elif word == "}":
                stack.pop()
                at += 1
            elif word == ";":
                at += 1
            elif stack[-1][0] == "enum":
                stack[-1][1][word] = int(words[at + 2])
                at = words.index(";", at) + 1
            else:
                repeated = word == "repeated"
                at += repeated
                message = [s for s in stack if s[0] == "message"][-1][1]
                oneof = stack[-1][1] if stack[-1][0] == "oneof" else None
                message.fields.append(Field(words[at + 1], int(words[at + 3]), words[at], repeated, oneof))
                at = words.index(";", at) + 1

    def _resolve(self, message, field):
        if field.type_name in SCALARS:
            field.kind = field.type_name
            return
        parts = message.name.split(".")
        for n in range(len(parts), -1, -1):
            full = ".".join(parts[:n] + [field.type_name])
            if full in self.messages:
                field.kind, field.of = "message", self.messages[full]
                return
            if full in self.enums:
                field.kind, field.of = "enum", self.enums[full]
                return
        raise Error("%s.%s: type %s is unknown" % (message.name, field.name, field.type_name))

    def enum_value(self, name):
        for values in self.enums.values():
            if name in values:
                return values[name]
        raise KeyError(name)


SCHEMA = Schema(sorted(glob.glob(os.path.join(ROOT, "proto", "*.proto"))))


class Msg:
    """A message of ipc_msgs.def."""

    def __init__(self, name, no, sender, receiver, n_fds, message, max_bytes=None):
        self.name, self.no, self.sender, self.receiver, self.n_fds = name, int(no), sender, receiver, int(n_fds)
        self.message = records.SCHEMA.records.get(message) or SCHEMA.messages[message]
        self.max_bytes = int(max_bytes or self.message.size)


def _read_table():
    with open(os.path.join(ROOT, "proto", "ipc_msgs.def"), encoding="utf-8") as f:
        text = f.read()
    prefixes = {macro: (prefix, to) for macro, prefix, to in re.findall(r"^#define (\w+)_CALL\(.*\) IPC_CALL\(NAME, (\w+), call, no, (\w+),",
                                                                        text, re.M)}
    table = []
    for macro, row in re.findall(r"^(\w+)\((\w+,.*)\)$", text, re.M):
        words = [word.strip() for word in row.split(",")]
        if macro == "IPC_RECORD_MSG":
            name, no, sender, receiver, n_fds, _, record = words
            table.append(Msg(name, no, sender, receiver, n_fds, record))
        elif macro == "IPC_PB_MSG":
            name, no, sender, receiver, max_bytes, n_fds, message, _ = words
            table.append(Msg(name, no, sender, receiver, n_fds, message, max_bytes))
        elif macro == "PB_CALL":
            name, _, _, message, no, to, req_bytes, req_fds, rep_bytes, rep_fds = words[:10]
            table += [Msg(name + "_REQ", no, "SUPERVISOR", to, req_fds, message + "Req", req_bytes),
                      Msg(name + "_REP", int(no) + 1, to, "SUPERVISOR", rep_fds, message + "Rep", rep_bytes)]
        else:
            name, call, no, req_fds, rep_fds = words[:5]
            prefix, to = prefixes[macro[:-len("_CALL")]]
            table += [Msg(name + "_REQ", no, "SUPERVISOR", to, req_fds, "%s_%s_req" % (prefix, call)),
                      Msg(name + "_REP", int(no) + 1, to, "SUPERVISOR", rep_fds, "%s_%s_rep" % (prefix, call))]
    return table


TABLE = _read_table()
BY_NAME = {m.name: m for m in TABLE}
BY_NO = {m.no: m for m in TABLE}


# --- encoding ---

def varint(n):
    out = bytearray()
    n &= (1 << 64) - 1
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def tag(number, wire):
    return varint(number << 3 | wire)


def _number(field, value):
    if field.kind == "enum" and isinstance(value, str):
        return field.of[value]
    if field.kind in ("sint32", "sint64"):
        return (value << 1) ^ (value >> 63)
    return int(value)


def encode_field(field, value):
    """Returns one field with its tag, whatever the value: also a default, which a canonical encoding leaves out."""
    if field.kind == "message":
        body = encode(field.of, value)
    elif field.kind == "bytes":
        body = bytes(value)
    elif field.kind == "string":
        body = value if isinstance(value, bytes) else value.encode()
    else:
        return tag(field.number, WIRE_VARINT) + varint(_number(field, value))
    return tag(field.number, WIRE_BYTES) + varint(len(body)) + body


def encode_parts(field, values):
    """Returns a repeated field: numbers are packed into one, other values are encoded separately."""
    if field.kind in ("message", "string", "bytes") or not values:
        return [encode_field(field, v) for v in values]
    body = b"".join(varint(_number(field, v)) for v in values)
    return [tag(field.number, WIRE_BYTES) + varint(len(body)) + body]


def _is_default(field, value):
    if value is None:
        return True
    if field.kind == "message" or field.oneof:
        return False
    if field.kind in ("bytes", "string"):
        return len(value) == 0
    return _number(field, value) == 0


def encode(message, fields):
    """Returns the canonical bytes. message: a Record, a Message or its name."""
    if isinstance(message, records.Record):
        return message.encode(fields)
    if isinstance(message, str):
        message = SCHEMA.messages[message]
    for name in fields:
        message.field(name)
    out = b""
    for f in sorted(message.fields, key=lambda f: f.number):
        if f.name not in fields:
            continue
        value = fields[f.name]
        if f.repeated:
            out += b"".join(encode_parts(f, value))
        elif not _is_default(f, value):
            out += encode_field(f, value)
    return out


# --- decoding ---

def _take_varint(data, at):
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise Error("a number is truncated")
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 0x80:
            return value, at


def _value(field, wire, raw):
    if (wire == WIRE_BYTES) != (field.kind in ("message", "bytes", "string")):
        raise Error("field %s has wire type %d" % (field.name, wire))
    if field.kind == "message":
        return decode(field.of, raw)
    if field.kind == "string":
        return raw.decode()
    if field.kind == "bytes":
        return bytes(raw)
    if field.kind == "bool":
        return bool(raw)
    if field.kind in ("sint32", "sint64"):
        return (raw >> 1) ^ -(raw & 1)
    if field.kind in ("int32", "int64") and raw >> 63:
        return raw - (1 << 64)
    return raw


def _default(field):
    if field.repeated:
        return []
    if field.kind == "message" or field.oneof:
        return None
    return {"string": "", "bytes": b"", "bool": False}.get(field.kind, 0)


def decode(message, data):
    """Returns a dict with every field of the message; Error for an unknown field. Enums are numbers."""
    if isinstance(message, records.Record):
        return message.decode(data)
    if isinstance(message, str):
        message = SCHEMA.messages[message]
    fields = {f.name: _default(f) for f in message.fields}
    numbers = {f.number: f for f in message.fields}
    at = 0
    while at < len(data):
        key, at = _take_varint(data, at)
        field, wire = numbers.get(key >> 3), key & 7
        if field is None:
            raise Error("%s has no field %d" % (message.name, key >> 3))
        if wire == WIRE_VARINT:
            raw, at = _take_varint(data, at)
        elif wire == WIRE_BYTES:
            n, at = _take_varint(data, at)
            if at + n > len(data):
                raise Error("field %s is truncated" % field.name)
            raw, at = data[at:at + n], at + n
        else:
            raise Error("field %s has wire type %d" % (field.name, wire))
        value = _value(field, wire, raw)
        if field.repeated:
            fields[field.name].append(value)
        else:
            fields[field.name] = value
    return fields


# --- packets ---

class Packet:
    """A received packet. The receiver must close fds; close() does."""

    def __init__(self, msg, serial, fields, fds):
        self.msg, self.name, self.serial, self.fields, self.fds = msg, msg.name, serial, fields, fds

    def __getitem__(self, name):
        return self.fields[name]

    def take_fd(self):
        return self.fds.pop(0)

    def close(self):
        for fd in self.fds:
            os.close(fd)
        self.fds = []


class Channel:
    """One end of a SOCK_SEQPACKET pair."""

    def __init__(self, sock):
        self.sock, self.serial = sock, 0

    def close(self):
        self.sock.close()

    def send_bytes(self, data, fds=()):
        """Sends any bytes with any descriptors."""
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.sock.sendmsg([data], rights)

    def send_raw(self, no, body, fds=(), serial=1, zero=0):
        """Sends a head with this message number, and any body."""
        self.send_bytes(struct.pack("<HHI", no, zero, serial) + body, fds)

    def send(self, name, fields=None, fds=(), serial=None):
        """Sends a well-formed message. Returns its serial number."""
        if serial is None:
            self.serial += 1
            serial = self.serial
        msg = BY_NAME[name]
        self.send_raw(msg.no, encode(msg.message, fields or {}), fds, serial)
        return serial

    def recv(self, timeout=case.LEAST_S):
        """Returns a Packet, or None at end of file; Error on a timeout."""
        if not select.select([self.sock], [], [], timeout)[0]:
            raise Error("nothing came within %.1f s" % timeout)
        try:
            data, rights, flags, _ = self.sock.recvmsg(65536, socket.CMSG_SPACE(16 * 4), socket.MSG_CMSG_CLOEXEC)
        except ConnectionResetError:
            return None
        fds = array.array("i")
        for level, kind, raw in rights:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(raw[:len(raw) - len(raw) % fds.itemsize])
        if not data:
            return None
        no, zero, serial = struct.unpack_from("<HHI", data)
        if no not in BY_NO or zero:
            raise Error("a packet with head %r" % data[:8].hex())
        msg = BY_NO[no]
        if len(fds) != msg.n_fds or len(data) - 8 > msg.max_bytes:
            raise Error("%s came with %d descriptors and %d bytes" % (msg.name, len(fds), len(data) - 8))
        return Packet(msg, serial, decode(msg.message, data[8:]), list(fds))

    def answer(self, serial, timeout=case.LEAST_S):
        """Returns the reply to a request, a Packet; RequestError for an IPC_ERROR_REP; Error at end of file."""
        packet = self.recv(case.patience(timeout))
        if packet is None:
            raise Error("the helper closed the connection")
        if packet.serial != serial:
            raise Error("%s came with serial %d, not %d" % (packet.name, packet.serial, serial))
        if packet.name == "IPC_ERROR_REP":
            raise RequestError(packet["code"], packet["text"])
        return packet

    def call(self, name, fields=None, fds=(), timeout=case.LEAST_S):
        """Sends a request and returns its reply."""
        serial = self.send(name, fields, fds)
        packet = self.answer(serial, timeout)
        if packet.name != name[:-3] + "REP":
            raise Error("%s was answered by %s" % (name, packet.name))
        return packet

    def is_closed(self, timeout=case.LEAST_S):
        """Returns whether the other end closes within that time. Packets that arrive before are dropped."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            try:
                packet = self.recv(max(0.01, end - time.monotonic()))
            except Error:
                continue
            if packet is None:
                return True
            packet.close()
        return False
