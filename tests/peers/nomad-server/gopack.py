# SPDX-License-Identifier: Apache-2.0
"""msgpack as the servers write it (Go's codec in its old profile): raw strings, signed and unsigned integers are different, times are 15
raw bytes. Writing is implemented here, because msgpack.Packer has no signed positive numbers; reading uses msgpack."""
import datetime
import re
import struct

import msgpack

UNIX_AT = 62135596800  # seconds from the year 1 to 1970
ZERO_TIME = "0001-01-01T00:00:00Z"
UTC = -1  # the zone "offset" of UTC itself
MAX_BYTES = 256 << 20


class U(int):
    """A Go unsigned number: its bytes differ from those of a signed one from 128 on."""


class Raw(bytes):
    """Bytes that are already msgpack."""


class Malformed(Exception):
    """Received bytes that are not msgpack."""


# --- numbers, strings, containers ---

def _signed(n):
    if 0 <= n < 128 or -32 <= n < 0:
        return struct.pack(">b", n)
    for marker, form, bits in ((0xd0, ">b", 7), (0xd1, ">h", 15), (0xd2, ">i", 31), (0xd3, ">q", 63)):
        if -(1 << bits) <= n < 1 << bits:
            return bytes([marker]) + struct.pack(form, n)
    raise OverflowError("%d is no 64 bit number" % n)


def _unsigned(n):
    if n < 128:
        return bytes([n])
    for marker, form, bits in ((0xcc, ">B", 8), (0xcd, ">H", 16), (0xce, ">I", 32), (0xcf, ">Q", 64)):
        if n < 1 << bits:
            return bytes([marker]) + struct.pack(form, n)
    raise OverflowError("%d is no 64 bit number" % n)


def _sized(n, fixed, limit, markers):
    if n < limit:
        return bytes([fixed | n])
    if n < 1 << 16:
        return bytes([markers[0]]) + struct.pack(">H", n)
    return bytes([markers[1]]) + struct.pack(">I", n)


def raw_head(n):
    return _sized(n, 0xa0, 32, (0xda, 0xdb))


def array_head(n):
    return _sized(n, 0x90, 16, (0xdc, 0xdd))


def map_head(n):
    return _sized(n, 0x80, 16, (0xde, 0xdf))


def pack(value):
    """Returns the bytes of a value by its Python type; dicts keep their order. U() makes an unsigned number."""
    out = []
    _pack(value, out)
    return b"".join(out)


def _pack(value, out):
    if value is None:
        out.append(b"\xc0")
    elif isinstance(value, bool):
        out.append(b"\xc3" if value else b"\xc2")
    elif isinstance(value, U):
        out.append(_unsigned(value))
    elif isinstance(value, int):
        out.append(_signed(value))
    elif isinstance(value, float):
        out.append(b"\xcb" + struct.pack(">d", value))
    elif isinstance(value, Raw):
        out.append(bytes(value))
    elif isinstance(value, (str, bytes)):
        data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else bytes(value)
        out.append(raw_head(len(data)) + data)
    elif isinstance(value, dict):
        out.append(map_head(len(value)))
        for key, element in value.items():
            _pack(key, out)
            _pack(element, out)
    elif isinstance(value, (list, tuple)):
        out.append(array_head(len(value)))
        for element in value:
            _pack(element, out)
    else:
        raise TypeError("%r has no msgpack form" % (value,))


def text(data):
    """Returns a raw string as text; bytes that are not UTF-8 are kept as surrogates."""
    return data.decode("utf-8", "surrogateescape")


def natural(value):
    """Returns a value that was unpacked without a schema, with its strings as text."""
    if isinstance(value, bytes):
        return text(value)
    if isinstance(value, list):
        return [natural(v) for v in value]
    if isinstance(value, dict):
        return {natural(k): natural(v) for k, v in value.items()}
    return value


class Reader:
    """Reads one msgpack object after the other from read(), which returns some bytes, or b"" at the end."""

    def __init__(self, read):
        self.read = read
        self.unpacker = msgpack.Unpacker(raw=True, strict_map_key=False, max_buffer_size=MAX_BYTES)

    def next(self):
        """Returns the next object; EOFError at a clean end or in the middle; Malformed."""
        while True:
            try:
                return next(self.unpacker)
            except StopIteration:
                pass
            except (ValueError, msgpack.exceptions.UnpackException, TypeError) as e:
                raise Malformed("%s: %s" % (type(e).__name__, e)) from e
            data = self.read()
            if not data:
                raise EOFError("end of the stream")
            self.unpacker.feed(data)


def unpack(data):
    """Returns the only object in data."""
    return msgpack.unpackb(data, raw=True, strict_map_key=False)


def unpack_first(data):
    """Returns the first object in data."""
    return Reader(iter((data, b"")).__next__).next()


# --- times: RFC 3339 text here, as in Go's JSON; 15 bytes on the wire ---

def time_from_ns(ns, zone="Z"):
    """Returns the text of a unix time in ns."""
    seconds, rest = divmod(ns, 10 ** 9)
    at = datetime.datetime(1970, 1, 1) + datetime.timedelta(seconds=seconds)
    fraction = (".%09d" % rest).rstrip("0") if rest else ""
    return at.isoformat(timespec="seconds") + fraction + zone


def time_to_ns(value):
    """Returns the unix time in ns of a text."""
    seconds, nanos, _ = _time_parts(value)
    return (seconds - UNIX_AT) * 10 ** 9 + nanos


def _time_parts(value):
    found = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)", value)
    if not found:
        raise ValueError("%r is no time" % value)
    at = datetime.datetime.fromisoformat(found.group(1))
    zone = found.group(3)
    minutes = UTC
    if zone != "Z":
        minutes = (int(zone[1:3]) * 60 + int(zone[4:])) * (-1 if zone[0] == "-" else 1)
        at -= datetime.timedelta(minutes=minutes)
    since = at - datetime.datetime(1, 1, 1)
    return since.days * 86400 + since.seconds, int((found.group(2) or "0").ljust(9, "0")), minutes


def time_pack(value):
    """Returns the 15 bytes of a text; "" and None are the zero time."""
    seconds, nanos, minutes = _time_parts(value or ZERO_TIME)
    return struct.pack(">Bqih", 1, seconds, nanos, minutes)


def time_unpack(data):
    """Returns the text of 15 bytes. ValueError with Go's message."""
    if not data:
        raise ValueError("Time.UnmarshalBinary: no data")
    if data[0] != 1:
        raise ValueError("Time.UnmarshalBinary: unsupported version")
    if len(data) != 15:
        raise ValueError("Time.UnmarshalBinary: invalid length")
    _, seconds, nanos, minutes = struct.unpack(">Bqih", data)
    zone = "Z"
    local = seconds - UNIX_AT
    if minutes != UTC:
        zone = "%s%02d:%02d" % ("-" if minutes < 0 else "+", abs(minutes) // 60, abs(minutes) % 60)
        local += minutes * 60
    return time_from_ns(local * 10 ** 9 + nanos, zone)
