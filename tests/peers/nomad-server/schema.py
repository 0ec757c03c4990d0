# SPDX-License-Identifier: Apache-2.0
"""The structs of structs.def: encoded as Go encodes them; decoding accepts and refuses what Go does.

A struct is a dict of Python values here, a time its RFC 3339 text, a nil slice, map or pointer None. unpack() also reports values that Go
accepts although they do harm: keys that no version has, nil elements, numbers that wrap."""
import os
import re

import gopack

INTS = {"int": 63, "i8": 7, "i32": 31, "i64": 63, "dur": 63}
UINTS = {"u8": 8, "u16": 16, "u32": 32, "u64": 64}
SCALARS = {"str": "", "bytes": None, "bool": False, "f64": 0.0, "f32": 0.0, "any": None, "time": gopack.ZERO_TIME}


class Refused(Exception):
    """Bytes that Go's decoder would not accept."""


class Field:
    def __init__(self, name, kind, since, until):
        self.name, self.kind, self.since, self.until = name, kind, since, until

    def exists(self, version):
        return (not self.since or version >= self.since) and (not self.until or version <= self.until)


class Struct:
    def __init__(self, name, omitempty):
        self.name, self.omitempty, self.fields = name, omitempty, {}

    def leaves_out(self, version):
        return self.omitempty is not None and version >= self.omitempty


def version_of(value):
    """Returns (1, 6, 10) for "1.6.10"."""
    return tuple(int(part) for part in value.split("-")[0].split("."))


class Schema:
    """The structs of one server version; all(…) below makes the shared table."""

    def __init__(self, path=os.path.join(os.path.dirname(os.path.abspath(__file__)), "structs.def")):
        self.structs = {}
        with open(path, encoding="utf-8") as f:
            self._parse(f)
        for one in self.structs.values():
            for field in one.fields.values():
                self._known(re.sub(r"\*|\[\]|map\[str\]", "", field.kind), one.name + "." + field.name)

    def _known(self, kind, where):
        if kind not in self.structs and kind not in INTS and kind not in UINTS and kind not in SCALARS:
            raise ValueError("structs.def: %s has the unknown type %s" % (where, kind))

    def _parse(self, lines):
        now = None
        for line in lines:
            words = line.split("#")[0].split()
            if not words:
                continue
            if words[0] == "struct":
                omitempty = None
                if len(words) > 2:
                    omitempty = version_of(words[2].partition(">=")[2] or "0")
                now = self.structs[words[1]] = Struct(words[1], omitempty)
                continue
            since = until = None
            while words[-1][:2] in (">=", "<="):
                mark = words.pop()
                if mark[0] == ">":
                    since = version_of(mark[2:])
                else:
                    until = version_of(mark[2:]) + (999,)
            if words[0][0] == "+":
                now.fields.update(self.structs[words[0][1:]].fields)
                continue
            for name in words[:-1]:
                now.fields[name] = Field(name, words[-1], since, until)

    # --- zero values ---

    def zero(self, kind):
        """Returns the zero value of a type; that of a struct has all its keys."""
        if kind[0] == "*" or kind[:2] == "[]" or kind[:4] == "map[":
            return None
        if kind in SCALARS:
            return SCALARS[kind]
        if kind in INTS or kind in UINTS:
            return 0
        return {f.name: self.zero(f.kind) for f in self.structs[kind].fields.values()}

    # --- encoding ---

    def pack(self, kind, value, version):
        """Returns the bytes that a server of this version sends. KeyError for a key that the struct does not have, which is an error of the
        test."""
        return gopack.pack(self.tree(kind, value, version))

    def tree(self, kind, value, version):
        """Returns the same as values for gopack.pack()."""
        if kind[0] == "*":
            return None if value is None else self.tree(kind[1:], value, version)
        if kind[:2] == "[]":
            return None if value is None else [self.tree(kind[2:], v, version) for v in value]
        if kind[:8] == "map[str]":
            return None if value is None else {k: self.tree(kind[8:], v, version) for k, v in value.items()}
        if kind == "time":
            return gopack.time_pack(value)
        if kind in UINTS:
            return gopack.U(value or 0)
        if kind in INTS:
            return int(value or 0)
        if kind in ("f64", "f32"):
            return float(value or 0)
        if kind in SCALARS:
            return SCALARS[kind] if value is None else value
        return self._struct_tree(self.structs[kind], value or {}, version)

    def _struct_tree(self, one, value, version):
        for key in value:
            if key not in one.fields:
                raise KeyError("%s has no field %s" % (one.name, key))
        found = {}
        for name in sorted(one.fields):
            field = one.fields[name]
            if not field.exists(version):
                continue
            element = value.get(name, self.zero(field.kind))
            if one.leaves_out(version) and self.is_zero(field.kind, element):
                continue
            found[name] = self.tree(field.kind, element, version)
        return found

    def is_zero(self, kind, value):
        if value is None or value in ("", 0, [], {}, b""):
            return True
        if kind == "time":
            return value == gopack.ZERO_TIME
        if kind in self.structs:
            fields = self.structs[kind].fields
            return all(self.is_zero(fields[k].kind, v) for k, v in value.items())
        return False

    # --- decoding ---

    def unpack(self, kind, value, harm=None, where=""):
        """Converts a value from msgpack. Refused names the place where Go stops; harm, if a list, gets the reported violations."""
        harm = [] if harm is None else harm
        if kind[0] == "*":
            return None if value is None else self.unpack(kind[1:], value, harm, where)
        if kind[:2] == "[]":
            return self._unpack_list(kind[2:], value, harm, where)
        if kind[:8] == "map[str]":
            return self._unpack_map(kind[8:], value, harm, where)
        if value is None:
            return self.zero(kind)
        if kind in INTS or kind in UINTS:
            return self._unpack_int(kind, value, harm, where)
        if kind in SCALARS:
            return self._unpack_scalar(kind, value, where)
        return self._unpack_struct(self.structs[kind], value, harm, where)

    def _unpack_list(self, kind, value, harm, where):
        if value is None:
            return None
        if isinstance(value, bytes) and kind != "u8":
            raise Refused("%s: raw bytes for a list" % where)
        if not isinstance(value, (list, bytes)):
            raise Refused("%s: %s for a list" % (where, type(value).__name__))
        return [self._element(kind, v, harm, "%s[%d]" % (where, i)) for i, v in enumerate(value)]

    def _unpack_map(self, kind, value, harm, where):
        if value is None:
            return None
        if not isinstance(value, dict):
            raise Refused("%s: %s for a map" % (where, type(value).__name__))
        found = {}
        for key, element in value.items():
            if not isinstance(key, bytes):
                raise Refused("%s: a key that is %s" % (where, type(key).__name__))
            name = gopack.text(key)
            found[name] = self._element(kind, element, harm, "%s[%s]" % (where, name))
        return found

    def _element(self, kind, value, harm, where):
        if value is None and kind[0] == "*" and kind[1:] in self.structs:
            harm.append("%s: nil where a struct is expected" % where)
        return self.unpack(kind, value, harm, where)

    def _unpack_int(self, kind, value, harm, where):
        if isinstance(value, bool) or not isinstance(value, int):
            raise Refused("%s: cannot decode an integer from %s" % (where, type(value).__name__))
        if kind in UINTS:
            if value < 0:
                raise Refused("%s: assigning negative signed value to unsigned" % where)
            if value >> UINTS[kind]:
                raise Refused("%s: overflow" % where)
            return value
        if value >= 1 << 63 and INTS[kind] == 63:
            harm.append("%s: %d wraps to a negative number" % (where, value))
            return value - (1 << 64)
        if not -(1 << INTS[kind]) <= value < 1 << INTS[kind]:
            raise Refused("%s: overflow" % where)
        return value

    def _unpack_scalar(self, kind, value, where):
        if kind == "any":
            return gopack.natural(value)
        if kind == "bool":
            if isinstance(value, bool) or value in (0, 1) and isinstance(value, int):
                return bool(value)
            raise Refused("%s: cannot decode bool from %r" % (where, value))
        if kind in ("f64", "f32"):
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise Refused("%s: cannot decode float from %s" % (where, type(value).__name__))
            return float(value)
        if isinstance(value, list) and all(isinstance(v, int) and 0 <= v < 256 for v in value):
            value = bytes(value)
        if not isinstance(value, bytes):
            raise Refused("%s: cannot decode %s from %s" % (where, kind, type(value).__name__))
        if kind == "bytes":
            return value
        if kind == "str":
            return gopack.text(value)
        try:
            return gopack.time_unpack(value)
        except ValueError as e:
            raise Refused("%s: %s" % (where, e)) from e

    def _unpack_struct(self, one, value, harm, where):
        if value == []:
            return self.zero(one.name)
        if not isinstance(value, dict):
            raise Refused("%s: %s for a struct" % (where or one.name, type(value).__name__))
        found = self.zero(one.name)
        for key, element in value.items():
            if not isinstance(key, bytes):
                raise Refused("%s: a key that is %s" % (where, type(key).__name__))
            field = one.fields.get(gopack.text(key))
            if field is None:
                harm.append("%s: no server knows the key %r" % (where or one.name, gopack.text(key)))
                continue
            found[field.name] = self.unpack(field.kind, element, harm, (where + "." if where else "") + field.name)
        return found


_shared = None


def shared():
    """Returns the table of this process."""
    global _shared
    if _shared is None:
        _shared = Schema()
    return _shared
