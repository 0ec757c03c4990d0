# SPDX-License-Identifier: Apache-2.0
"""The fixed records of proto/ipc_records.def: as dicts in the form of ipc.py, and as bytes that are not valid records.

An id is 16 bytes, a set of numbers (REC_BITS) a list of them, an enum a number or a name of its values. Fields that are left out are zero. If the
elements of a list have one field, the value of that field may stand for an element.
"""
import os
import re
import struct

from . import ROOT

NUMBERS = {"U32": "<I", "I32": "<i", "U64": "<Q", "I64": "<q", "ENUM": "<I", "BOOL": "<B"}
ID_BYTES = 16


class Error(Exception):
    """Bytes that are not a valid record."""


class DoesNotFit(Exception):
    """A value that does not fit its field, so that no message can contain it."""


class Field:
    def __init__(self, schema, kind, words):
        self.kind, self.name = kind, words[-1]
        self.max = 1 if kind == "BOOL" else None  # the highest value; for a list the highest count
        self.values, self.record = {}, None
        if kind in ("TEXT", "ZERO", "BITS"):
            self.size = schema.number(words[0]) * (8 if kind == "BITS" else 1)
        elif kind == "ENUM":
            self.values, self.size = schema.enums[words[0]], 4
            self.max = max(self.values.values())
        elif kind == "RECORD":
            self.record, self.size = schema.records[words[0]], 0
        elif kind == "LIST":
            self.max, self.record, self.size = schema.number(words[0]), schema.records[words[1]], 4
        else:
            self.size = ID_BYTES if kind == "ID" else struct.calcsize(NUMBERS[kind])

    def encode(self, value):
        if self.kind == "RECORD":
            return self.record.encode(value or {})
        if self.kind == "LIST":
            values = [v if isinstance(v, dict) else {self.record.fields[0].name: v} for v in value or ()]
            return struct.pack("<I", len(values)) + b"".join(self.record.encode(v) for v in values)
        if value is None or self.kind == "ZERO" or (self.kind == "ID" and not value):
            return bytes(self.size)
        if self.kind == "ID":
            if len(value) != ID_BYTES:
                raise DoesNotFit("%s: %r is not an id" % (self.name, value))
            return bytes(value)
        if self.kind == "TEXT":
            text = value if isinstance(value, bytes) else value.encode()
            if len(text) >= self.size:
                raise DoesNotFit("%s: %d bytes" % (self.name, len(text)))
            return text + bytes(self.size - len(text))
        if self.kind == "BITS":
            return sum(1 << n for n in set(value)).to_bytes(self.size, "little")
        try:
            return struct.pack(NUMBERS[self.kind], self.values[value] if isinstance(value, str) else value)
        except struct.error:
            raise DoesNotFit("%s: %r" % (self.name, value)) from None

    def decode(self, data, at):
        """Returns (value, offset of the next field)."""
        end, raw = at + self.size, data[at:at + self.size]
        if len(raw) < self.size:
            raise Error("%s is truncated" % self.name)
        if self.kind == "RECORD":
            return self.record.decode_at(data, at)
        if self.kind == "LIST":
            value, n = [], struct.unpack("<I", raw)[0]
            for _ in range(n if n <= self.max else -1):
                one, end = self.record.decode_at(data, end)
                value.append(one)
            if n > self.max:
                raise Error("%s has %d elements" % (self.name, n))
            return value, end
        if self.kind == "ID":
            return bytes(raw), end
        if self.kind == "BITS":
            bits = int.from_bytes(raw, "little")
            return [n for n in range(self.size * 8) if bits >> n & 1], end
        if self.kind in ("TEXT", "ZERO"):
            text = bytes(raw).rstrip(b"\0")
            if b"\0" in text or len(text) >= self.size or (self.kind == "ZERO" and text):
                raise Error("%s is %r" % (self.name, text))
            return text.decode(), end
        value = struct.unpack(NUMBERS[self.kind], raw)[0]
        if self.max is not None and value > self.max:
            raise Error("%s is %d" % (self.name, value))
        return bool(value) if self.kind == "BOOL" else value, end


class Record:
    def __init__(self, name, fields):
        self.name, self.fields = name, fields
        self.size = sum(f.size + (f.record.size * (f.max or 1) if f.record else 0) for f in fields)  # with the longest list

    def encode(self, values):
        unknown = set(values) - {f.name for f in self.fields}
        if unknown:
            raise KeyError("%s has no field %s" % (self.name, ", ".join(unknown)))
        return b"".join(f.encode(values.get(f.name)) for f in self.fields)

    def decode_at(self, data, at):
        values = {}
        for f in self.fields:
            values[f.name], at = f.decode(data, at)
        return values, at

    def decode(self, data):
        values, at = self.decode_at(data, 0)
        if at != len(data):
            raise Error("%s of %d bytes" % (self.name, len(data)))
        return values

    def sample(self):
        """Returns a value with every field set."""
        made = {"ID": b"0123456789abcdef", "TEXT": "a", "BITS": [1], "ZERO": None}
        return {f.name: f.record.sample() if f.kind == "RECORD" else [f.record.sample()] if f.kind == "LIST" else made.get(f.kind, 1)
                for f in self.fields}

    def places(self, values, at=0, path=""):
        """Yields (path, field, offset) for all fields at every depth, in the encoding of values."""
        for f in self.fields:
            yield path + f.name, f, at
            inside = [values[f.name]] if f.kind == "RECORD" else values[f.name] if f.kind == "LIST" else []
            start = at + f.size
            for i, one in enumerate(inside):
                yield from f.record.places(one, start, "%s%s%s." % (path, f.name, "[%d]" % i if f.kind == "LIST" else ""))
                start += len(f.record.encode(one))
            at += len(f.encode(values[f.name]))

    def broken(self):
        """Yields (description, bytes) of encodings with exactly one error."""
        values = self.sample()
        good = self.encode(values)
        yield "one byte more", good + b"\0"
        if good:
            yield "one byte less", good[:-1]
            yield "no bytes", b""
        for path, f, at in self.places(values):
            for what, raw in _broken(f):
                yield "%s %s" % (path, what), good[:at] + raw + good[at + f.size:]


def _broken(f):
    """Yields (description, bytes) of invalid encodings of this field."""
    if f.kind == "BOOL":
        yield from (("that is %d" % n, bytes([n])) for n in (2, 0x80, 0xFF))
    elif f.kind == "ENUM":
        yield from (("that is %d" % n, struct.pack("<I", n)) for n in (f.max + 1, 1 << 31, 0xFFFFFFFF))
    elif f.kind == "LIST":
        yield from (("that says it has %d elements" % n, struct.pack("<I", n)) for n in (0, 2, f.max, f.max + 1, 1 << 31, 0xFFFFFFFF))
    elif f.kind == "TEXT":
        yield "without a NUL", b"x" * f.size
        yield "with bytes after its NUL", b"a\0b" + bytes(f.size - 3)
        yield "with a last byte after its NUL", b"a" + bytes(f.size - 2) + b"b"
        yield "empty, with a byte after its NUL", b"\0a" + bytes(f.size - 2)
    elif f.kind == "ZERO":
        yield "that is not zero", b"\1" + bytes(f.size - 1)
        yield "whose last byte is not zero", bytes(f.size - 1) + b"\x80"


class Schema:
    def __init__(self, path):
        self.enums, self.records = {}, {}
        with open(path, encoding="utf-8") as f:
            text = re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)
        self.numbers = dict(re.findall(r"^#define (\w+)\s+(\d+)\s*$", text, re.M))
        for kind, body in re.findall(r"^IPC_(ENUM|RECORD)\(((?:[^()]|\([^()]*\))*)\)", text, re.M):
            name = re.match(r"\w+", body).group()
            if kind == "ENUM":
                self.enums[name] = {value: n for n, value in enumerate(re.findall(r"\w+", body)[1:])}
            else:
                fields = re.findall(r"REC_(\w+)\(([^()]*)\)", body)
                self.records[name] = Record(name, [Field(self, k, re.findall(r"\w+", words)) for k, words in fields])

    def number(self, word):
        return int(self.numbers.get(word, word))


SCHEMA = Schema(os.path.join(ROOT, "proto", "ipc_records.def"))
