# SPDX-License-Identifier: Apache-2.0
"""mount-helper and file-helper get each message with each field invalid, as from a supervisor that was taken over. Normal requests work
afterwards."""
import errno
import os

from lib import case, helper, mnt
from lib.ipc import TABLE, encode

BAD_NAMES = ("", ".", "..", ".hidden", "a/b", "/etc", "../x", "a b", "a\n", "ü", "x" * 129, "x" * 135, "%s", "a\\b")
GOOD_ID = bytes(range(1, 17))
HELPERS = {"mount-helper": "MOUNT_HELPER", "file-helper": "FILE_HELPER"}


def valid_request(name):
    """Returns a request that is valid in every field."""
    return {
        "MNT_ALLOC_RELEASE_REQ": {"alloc": GOOD_ID},
        "MNT_DISK_LIMIT_REQ": {"alloc": GOOD_ID},
        "MNT_PLUGIN_ROOT_MAKE_REQ": {"kind": "PLUGIN_NODE", "plugin": "p"},
        "MNT_PLUGIN_ROOT_REMOVE_REQ": {"kind": "PLUGIN_NODE", "plugin": "p"},
        "MNT_PLUGIN_CONNECT_REQ": {"alloc": GOOD_ID, "run": GOOD_ID},
        "MNT_VOLUME_PROVE_REQ": {"place": mnt.place()},
        "MNT_VOLUME_UNMOUNT_REQ": {"place": mnt.place()},
        "FILE_ALLOC_DIR_MAKE_REQ": {"alloc": GOOD_ID, "tasks": ["web"]},
        "FILE_ALLOC_DIR_REMOVE_REQ": {"alloc": GOOD_ID},
        "FILE_PLUGIN_DIR_MAKE_REQ": {"alloc": GOOD_ID, "kind": "PLUGIN_NODE", "plugin": "p"},
        "FILE_PLUGIN_DIR_REMOVE_REQ": {"alloc": GOOD_ID, "kind": "PLUGIN_NODE", "plugin": "p"},
        "FILE_VOLUME_DIR_MAKE_REQ": {"place": mnt.place()},
        "FILE_VOLUME_DIR_REMOVE_REQ": {"place": mnt.place()},
        "FILE_ROOT_LIST_REQ": {"root": "FILE_ROOT_ALLOC"},
        "FILE_DISK_STAT_REQ": {},
        "FILE_ALLOC_FS_REQ": {"alloc": GOOD_ID, "root": "FILE_ROOT_ALLOC", "path": "web", "op": "FILE_OP_OPEN"},
        "FILE_DISK_USAGE_REQ": {"allocs": [GOOD_ID]},
        "FILE_DISK_ASK_REQ": {},
        "FILE_ARTIFACT_PLACE_REQ": {"alloc": GOOD_ID, "staging": GOOD_ID, "max_bytes": 1, "max_files": 1, "task": "web", "dest": "web/local"},
        "FILE_ARTIFACT_DROP_REQ": {"staging": GOOD_ID},
    }[name]


def messages(receiver):
    return [m for m in TABLE if m.receiver == receiver]


def invalid_requests(receiver):
    """Yields (name, fields) for every field of every message with every value that must be refused. Values that do not fit a record, such
    as a kind beyond the last, are in broken()."""
    for m in messages(receiver):
        fields = valid_request(m.name)
        for field in ("alloc", "run"):
            # A plugin of the configuration has no alloc.
            if field in fields and (field, m.name) != ("alloc", "FILE_PLUGIN_DIR_MAKE_REQ"):
                yield m.name, {**fields, field: bytes(16)}
        if "allocs" in fields:
            yield m.name, {"allocs": []}
            yield m.name, {"allocs": [GOOD_ID, bytes(16)]}
        for bad in BAD_NAMES:
            if "tasks" in fields:
                yield m.name, {**fields, "tasks": ["web", bad]}
            if "task" in fields:
                yield m.name, {**fields, "task": bad}
            if "plugin" in fields and (bad or m.name != "FILE_PLUGIN_DIR_REMOVE_REQ"):
                yield m.name, {**fields, "plugin": bad}
            if "place" in fields:
                for field in ("plugin", "volume", "usage"):
                    yield m.name, {"place": {**fields["place"], field: bad}}
        if "kind" in fields:
            yield m.name, {**fields, "kind": 0}
        if "dest" in fields:
            for bad in ("", "/etc", "..", "web/../db", "web//local", "web/./local", "web/local/", "web/" + "x" * 300):
                yield m.name, {**fields, "dest": bad}
        if "tasks" in fields:
            yield m.name, {**fields, "tasks": []}
            yield m.name, {**fields, "tasks": ["alloc"]}
        if "place" in fields:
            yield m.name, {}
            yield m.name, {"place": {**fields["place"], "kind": 0}}
        if "root" in fields:
            yield m.name, {**fields, "root": 0}
        if "op" in fields:
            for root in ("FILE_ROOT_CSI_SOCK", "FILE_ROOT_CSI"):  # roots without files of tasks
                yield m.name, {**fields, "root": root}
            yield m.name, {**fields, "op": 0}


def normal_request(h):
    alloc = os.urandom(16)
    if h.name == "file-helper":
        h.ipc.call("FILE_ALLOC_DIR_MAKE_REQ", {"alloc": alloc, "tasks": ["web"]})
        h.ipc.call("FILE_ALLOC_DIR_REMOVE_REQ", {"alloc": alloc})
    else:
        h.ipc.call("MNT_ALLOC_RELEASE_REQ", {"alloc": alloc})


def tree(places):
    """Returns every path of the data directory except the trash."""
    return sorted(os.path.join(at, n) for at, d, f in os.walk(places.data) for n in d + f if ".trash" not in at + n)


def test_each_message_with_each_field_invalid_is_refused():
    for name_of, receiver in HELPERS.items():
        with helper.Places() as places, helper.Helper(name_of, places) as h:
            os.mkdir(places.data + "/csi/node/p")
            before, n = tree(places), 0
            for name, fields in invalid_requests(receiver):
                mnt.refused(h, errno.EINVAL, "", name, fields)
                n += 1
            case.equal(n > 40, True, "number of requests: %d" % n)
            case.equal(tree(places), before, "paths of the data directory")
            normal_request(h)


def test_the_bytes_of_an_id_are_never_used_as_a_path():
    with mnt.files() as (places, h):
        for alloc in (b"../../../../etc/", b"a\0b" * 5 + b"c", b"\xff" * 16):
            h.ipc.call("FILE_ALLOC_DIR_MAKE_REQ", {"alloc": alloc, "tasks": ["web"]})
            case.equal(sorted(os.listdir(places.data + "/logs")), [".trash", mnt.text(alloc)], "logs")
            h.ipc.call("FILE_ALLOC_DIR_REMOVE_REQ", {"alloc": alloc})


def broken(m):
    """Yields (description, body, number of descriptors) for one message: packets that must end the connection. Those with one broken field
    are in 9200."""
    body = encode(m.message, valid_request(m.name))
    yield "one byte more", body + b"\0", 0
    if body:
        yield "one byte less", body[:-1], 0
    yield "a descriptor too many", body, 1
    yield "more bytes than allowed", body + b"x" * m.max_bytes + b"x", 0


def expect_cut_off(name, places, no, body, n_fds, what, zero=0):
    with helper.Helper(name, places) as h:
        fds = [os.open("/etc", os.O_RDONLY) for _ in range(n_fds)]
        h.ipc.send_raw(no, body, fds, zero=zero)
        for fd in fds:
            os.close(fd)
        case.equal(h.ipc.is_closed(), True, what + ": closed")
        case.equal(h.wait(), 1, what + ": exit code")
        h.close()


def test_a_packet_that_breaks_the_protocol_ends_the_helper():
    for name, receiver in HELPERS.items():
        with helper.Places() as places:
            with helper.Helper(name, places):
                before = tree(places)
            for m in messages(receiver):
                for what, body, n_fds in broken(m):
                    expect_cut_off(name, places, m.no, body, n_fds, m.name + " with " + what)
            expect_cut_off(name, places, messages(receiver)[0].no, b"", 0, "a head with a bit that must be zero", zero=1)
            case.equal(tree(places), before, "paths of the data directory")
            with helper.Helper(name, places) as h:
                normal_request(h)


def test_messages_that_are_not_for_it_end_the_helper():
    for name, receiver in HELPERS.items():
        with helper.Places() as places:
            for m in TABLE:
                if m.receiver not in (receiver, "HELPER"):
                    expect_cut_off(name, places, m.no, b"", m.n_fds, m.name)
            for no in (0, 4, 29, 103, 126, 65535):
                expect_cut_off(name, places, no, b"", 0, "message %d" % no)


def test_links_that_root_made_in_the_roots_are_not_followed():
    """Only root can write there; the helper must not follow links nevertheless."""
    with mnt.both() as (places, m, f):
        victim = case.directory()
        alloc = os.urandom(16)
        os.symlink(victim, places.data + "/csi/node/evil")
        os.symlink(victim, places.data + "/csi/sock/" + mnt.text(alloc))
        fields = {"alloc": alloc, "kind": "PLUGIN_NODE", "plugin": "good"}
        mnt.refused(f, errno.ELOOP, "make csi/sock", "FILE_PLUGIN_DIR_MAKE_REQ", fields)
        fields = {"alloc": os.urandom(16), "kind": "PLUGIN_NODE", "plugin": "evil"}
        mnt.refused(f, errno.ELOOP, "make csi/node/evil", "FILE_PLUGIN_DIR_MAKE_REQ", fields)
        for name in ("MNT_PLUGIN_ROOT_MAKE_REQ", "MNT_PLUGIN_ROOT_REMOVE_REQ"):
            mnt.refused(m, errno.ELOOP, "open csi/node/evil", name, {"kind": "PLUGIN_NODE", "plugin": "evil"})
        for h, name in ((f, "FILE_VOLUME_DIR_MAKE_REQ"), (m, "MNT_VOLUME_PROVE_REQ"), (m, "MNT_VOLUME_UNMOUNT_REQ"), (f, "FILE_VOLUME_DIR_REMOVE_REQ")):
            mnt.refused(h, errno.ELOOP, "open csi/node/evil", name, {"place": mnt.place(plugin="evil")})
        case.equal(os.listdir(victim), [], "the victim")
        os.unlink(places.data + "/csi/node/evil")
        normal_request(m)
        normal_request(f)


case.run(globals())
