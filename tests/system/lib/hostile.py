# SPDX-License-Identifier: Apache-2.0
"""Makes packets that break the protocol from the table and the .proto files, so that no message has to be listed by hand."""
from . import ipc, records

NUMBER, TEXT, BLOB = ("bool", "enum", "int32", "int64", "sint32", "sint64", "uint32", "uint64"), "string", "bytes"
NARROW = ("bool", "enum", "int32", "uint32", "sint32")  # types that cannot have a value of more than 32 bits


def sample(message, depth=0):
    """Returns a message with every field set to a valid value; of a oneof, the first member."""
    fields, oneofs = {}, set()
    for f in message.fields:
        if f.oneof and f.oneof in oneofs:
            continue
        oneofs.add(f.oneof)
        if f.kind == "message":
            value = sample(f.of, depth + 1)
        elif f.kind == TEXT:
            value = "a"
        elif f.kind == BLOB:
            value = b"0123456789abcdef"
        else:
            value = 1
        fields[f.name] = [value] if f.repeated else value
    return fields


def alternatives(message):
    """Yields a sample for each member of its oneofs."""
    for chosen in [f for f in message.fields if f.oneof]:
        fields = {name: v for name, v in sample(message).items() if not message.field(name).oneof}
        yield dict(fields, **{chosen.name: sample(chosen.of)})


def join(parts):
    return b"".join(part for _, part in parts)


def split(message, fields):
    """Returns [(field, its bytes)] in the order of their numbers; a repeated field has one part per value."""
    parts = []
    for f in sorted(message.fields, key=lambda f: f.number):
        if f.name in fields:
            found = ipc.encode_parts(f, fields[f.name]) if f.repeated else [ipc.encode_field(f, fields[f.name])]
            parts.extend((f, part) for part in found)
    return parts


def _wrap(f, body):
    return ipc.tag(f.number, ipc.WIRE_BYTES) + ipc.varint(len(body)) + body


def _field(f, part):
    """Yields (description, bytes) of encodings of this field that are not canonical."""
    key = ipc.tag(f.number, ipc.WIRE_BYTES if f.kind in ("message", TEXT, BLOB) else ipc.WIRE_VARINT)
    if not f.repeated:
        yield f.name + " doubled", part + part
    if f.kind == "message":
        yield f.name + " as a number", ipc.tag(f.number, ipc.WIRE_VARINT) + b"\1"
        return
    if f.kind in (TEXT, BLOB):
        yield f.name + " as a number", ipc.tag(f.number, ipc.WIRE_VARINT) + b"\1"
        yield f.name + " with a length beyond the end", key + b"\xff\xff\xff\xff\x0f"
        yield f.name + " with a length in too many bytes", key + b"\x81\x00a"
        if not f.repeated and not f.oneof:
            yield f.name + " empty but there", key + b"\0"
        if f.kind == TEXT:
            yield f.name + " with a NUL", _wrap(f, b"a\0b")
        return
    if f.repeated:  # packed
        yield f.name + " with a number in too many bytes", _wrap(f, b"\x81\x00")
        yield f.name + " with a number without an end", _wrap(f, b"\xff" * 10)
        yield f.name + " empty but there", _wrap(f, b"")
        yield f.name + " not packed", key + b"\1"
        yield f.name + " as 64 fixed bits", ipc.tag(f.number, ipc.WIRE_64) + b"\1" + b"\0" * 7
        return
    yield f.name + " as bytes", _wrap(f, b"a")
    yield f.name + " as 64 fixed bits", ipc.tag(f.number, ipc.WIRE_64) + b"\1" + b"\0" * 7
    yield f.name + " in too many bytes", key + b"\x81\x00"
    yield f.name + " without an end", key + b"\xff" * 10
    if not f.oneof:
        yield f.name + " zero but there", key + b"\0"
    if f.kind in NARROW:
        yield f.name + " with 33 bits", key + ipc.varint(1 << 32 | 1)
    if f.kind == "bool":
        yield f.name + " that is two", key + b"\2"


def bodies(message, fields=None, path=""):
    """Yields (description, body) for every field at every depth."""
    fields = sample(message) if fields is None else fields
    parts = split(message, fields)
    for number in (max([f.number for f in message.fields], default=0) + 1, 536870911):
        yield path + "an unknown field %d" % number, join(parts) + ipc.tag(number, ipc.WIRE_VARINT) + b"\1"
    if len(parts) > 1 and parts[0][0] is not parts[-1][0]:
        yield path + "fields in another order", join(parts[::-1])
    for i, (f, part) in enumerate(parts):
        before, after = join(parts[:i]), join(parts[i + 1:])
        for what, other in _field(f, part):
            yield path + what, before + other + after
        if f.kind == "message":
            value = fields[f.name][0] if f.repeated else fields[f.name]
            for what, body in bodies(f.of, value, path + f.name + "."):
                yield what, before + _wrap(f, body) + after
    if parts:
        yield path + "cut", join(parts)[:-1]
    yield path + "no message at all", b"\xff" * 40


def packets(m):
    """Yields (description, body, number of descriptors, zero) for one Msg of the table: each must end the connection."""
    if isinstance(m.message, records.Record):
        good, others = m.message.encode(m.message.sample()), m.message.broken()
        yield "more bytes than allowed", good + b"x" * m.max_bytes + b"x", m.n_fds, 0
    else:
        good, others = join(split(m.message, sample(m.message))), (b for b in bodies(m.message) if len(b[1]) <= m.max_bytes)
        yield "more bytes than allowed", good + ipc.tag(60, ipc.WIRE_BYTES) + ipc.varint(m.max_bytes) + b"x" * m.max_bytes, m.n_fds, 0
    for what, body in others:
        yield what, body, m.n_fds, 0
    yield "a descriptor too many", good, m.n_fds + 1, 0
    yield "many descriptors", good, m.n_fds + 20, 0
    if m.n_fds:
        yield "no descriptor", good, 0, 0
    yield "a head with a bit that must be zero", good, m.n_fds, 1


def strangers(receiver):
    """Yields (description, number) of messages that this helper must not receive."""
    for m in ipc.TABLE:
        if m.receiver not in (receiver, "HELPER"):
            yield m.name, m.no
    for no in (0, 4, 9, 29, 59, 79, 111, 4096, 65535):
        yield "message %d" % no, no
