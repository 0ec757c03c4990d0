# SPDX-License-Identifier: Apache-2.0
"""csi-helper alone, with correct plugins and with plugins that misbehave."""
import errno
import os
import signal
import socket
import struct
import threading
import time
import zlib

from lib import case, csi, helper
from lib.ipc import RequestError

PLACES = helper.Places()
HANGS_MS = 1200000  # longer than this test may take
BOMB_BYTES = 60 << 20


def start():
    return helper.Helper("csi-helper", PLACES)


def check_still_works(h):
    """Checks that the helper still works with a correct plugin."""
    with csi.bad() as plugin:
        case.equal(csi.open_channel(h, plugin, 999), True, "whether a correct plugin is ready afterwards")
        case.equal(csi.call(h, 999, "get_plugin_info")[2]["name"], "csi-bad.drover", "status of a call afterwards")
        h.ipc.call("CSI_PLUGIN_CLOSE_REQ", {"channel": 999})


def refused(code, h, name, fields, fds=()):
    e = case.raises(RequestError, h.ipc.call, name, fields, fds)
    case.equal(e.code, -code, e.text)
    return e.text


def test_it_has_no_privileges():
    with start() as h:
        with open("/proc/%d/status" % h.pid, encoding="ascii") as f:
            status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        uid = str(PLACES.uid["csi"])
        case.equal(status["Uid"].split(), [uid] * 4, "uid")
        case.equal(status["Gid"].split(), [uid] * 4, "gid")
        case.equal(status["Groups"].strip(), "", "groups")
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            case.equal(int(status[name], 16), 0, name)
        case.equal((status["NoNewPrivs"], status["Seccomp"]), ("1", "2"), "no_new_privs and filter")


def test_requests_and_answers_of_every_method_arrive():
    with csi.bad() as plugin, start() as h:
        case.equal(csi.open_channel(h, plugin, 1), True, "a probe without `ready` means ready")
        for method in csi.METHODS:
            status, message, answer = csi.call(h, 1, method, {"name": "v1"} if method == "create_volume" else {})
            case.equal((status, message), (0, ""), method)
            if answer is None:
                raise AssertionError(method + " was not called")
        case.equal(csi.call(h, 1, "node_get_info")[2]["node_id"], "bad-node", "node id")
        case.equal(csi.call(h, 1, "create_volume", {"name": "näme"})[2]["volume"]["volume_id"], "näme", "round trip")


def test_authority_is_localhost():
    # Servers in Node.js refuse a call without :authority, or with a path in it.
    ours, theirs = socket.socketpair()
    with start() as h, ours:
        h.ipc.send("CSI_PLUGIN_OPEN_REQ", {"channel": 1, "probe_timeout_ms": 60000}, [theirs.fileno()])
        theirs.close()
        ours.settimeout(case.LEAST_S)
        seen = b""
        while b"/csi.v1.Identity/Probe" not in seen:
            more = ours.recv(4096)
            assert more, "csi-helper closed the connection after sending %r" % seen
            seen += more
        case.contains(seen, b"\x09localhost", ":authority")


def test_a_status_of_the_plugin_is_passed_on_unchanged():
    with start() as h:
        for status in range(1, 17):
            with csi.bad("NodeStageVolume=status:%d" % status) as plugin:
                csi.open_channel(h, plugin, 1)
                case.equal(csi.call(h, 1, "node_stage_volume"), (status, "as commanded", None), "status")
                h.ipc.call("CSI_PLUGIN_CLOSE_REQ", {"channel": 1})


def test_the_origin_tells_the_plugins_statuses_from_other_ends_of_a_call():
    # In the words of gRPC the plugin would have no space after an answer that is too large, and be unavailable after any end of the connection.
    cases = (
        ("NodeStageVolume=status:4", csi.PLUGIN, csi.DEADLINE_EXCEEDED),
        ("NodeStageVolume=status:8", csi.PLUGIN, csi.RESOURCE_EXHAUSTED),
        ("NodeStageVolume=status:1", csi.PLUGIN, csi.CANCELLED),
        ("NodeStageVolume=status:14", csi.PLUGIN, csi.UNAVAILABLE),
        ("NodeStageVolume=long:20000", csi.PLUGIN, csi.INTERNAL),
        ("NodeStageVolume=long:200000", csi.PLUGIN, csi.INTERNAL),
        ("NodeStageVolume=long:300000", csi.TOO_LARGE, csi.INTERNAL),
        ("NodeStageVolume=huge:5000000", csi.TOO_LARGE, csi.INTERNAL),
        ("NodeStageVolume=garbage", csi.INVALID, csi.INTERNAL),
        ("NodeStageVolume=nothing", csi.INVALID, csi.INTERNAL),
        ("NodeStageVolume=drop", csi.LOST, csi.UNAVAILABLE),
        ("NodeStageVolume=die", csi.LOST, csi.UNAVAILABLE),
        ("NodeStageVolume=hang", csi.DEADLINE, csi.DEADLINE_EXCEEDED),
    )
    with start() as h:
        for rule, origin, status in cases:
            with csi.bad(rule) as plugin:
                csi.open_channel(h, plugin, 1)
                timeout_ms = 200 if "hang" in rule else HANGS_MS
                case.equal(csi.origin(h, 1, "node_stage_volume", timeout_ms=timeout_ms)[:2], (origin, status), rule)
                # gRPC gives up a connection with metadata that are too large.
                if origin not in (csi.LOST, csi.DEADLINE) and rule != "NodeStageVolume=long:300000":
                    case.equal(csi.origin(h, 1, "node_get_info")[:2], (csi.PLUGIN, csi.OK), "the next call after " + rule)
                h.ipc.call("CSI_PLUGIN_CLOSE_REQ", {"channel": 1})


def test_any_call_can_end_with_any_code():
    with csi.bad("NodeStageVolume=at:3:status:14", "NodeStageVolume=at:2:status:13") as plugin, start() as h:
        csi.open_channel(h, plugin, 1)
        case.equal([csi.origin(h, 1, "node_stage_volume")[1] for _ in range(4)], [csi.OK, csi.INTERNAL, csi.UNAVAILABLE, csi.OK], "status")


def test_an_unavailable_volume_disturbs_no_other_call():
    with csi.bad("NodeStageVolume=status:14", "NodePublishVolume=slow:1500") as plugin, start() as h:
        csi.open_channel(h, plugin, 1)
        slow = csi.send_call(h, 1, "node_publish_volume")
        for _ in range(20):
            case.equal(csi.origin(h, 1, "node_stage_volume"), (csi.PLUGIN, csi.UNAVAILABLE, "as commanded"), "the volume that is unavailable")
        reply = h.ipc.answer(slow)
        case.equal((reply["origin"], reply["grpc_status"]), (csi.PLUGIN, csi.OK), "the slow call beside it")


def test_a_long_text_is_cut_readably():
    with csi.bad("NodeStageVolume=long:20000") as plugin, start() as h:
        csi.open_channel(h, plugin, 1)
        message = csi.origin(h, 1, "node_stage_volume")[2]
        if not 1000 < len(message) < 1024 or set(message) != {"x"}:
            raise AssertionError("%d characters: %r" % (len(message), message))


def test_a_stream_that_the_plugin_resets_leaves_the_channel():
    with start() as h:
        csi.open_channel(h, Resetting(), 1)
        for _ in range(2):
            case.equal(csi.origin(h, 1, "node_stage_volume", {"volume_id": "v"})[0], csi.RESET, "origin")
        case.equal(csi.origin(h, 1, "probe")[:2], (csi.PLUGIN, csi.OK), "the next call")


def test_unavailable_is_not_retried_by_the_helper():
    with csi.bad("NodeStageVolume=once:14") as plugin, start() as h:
        csi.open_channel(h, plugin, 1)
        case.equal(csi.call(h, 1, "node_stage_volume")[0], csi.UNAVAILABLE, "first")
        case.equal(csi.call(h, 1, "node_stage_volume")[0], csi.OK, "second")


def test_a_deadline_is_kept():
    with csi.bad("NodeStageVolume=hang") as plugin, start() as h:
        csi.open_channel(h, plugin, 1)
        for timeout_ms in (1, 50, 400):
            began = time.monotonic()
            status, message, _ = csi.call(h, 1, "node_stage_volume", timeout_ms=timeout_ms)
            took = time.monotonic() - began
            case.equal((status, message), (csi.DEADLINE_EXCEEDED, "no answer within %d ms" % timeout_ms), "end")
            if took < timeout_ms / 1000 - 0.002:
                raise AssertionError("a deadline of %d ms ended after %.3f s" % (timeout_ms, took))
        check_still_works(h)


def test_a_cancelled_call_is_ended():
    with csi.bad("NodeStageVolume=hang") as plugin, start() as h:
        csi.open_channel(h, plugin, 1)
        kept, gone = [csi.send_call(h, 1, "node_stage_volume", timeout_ms=60000) for _ in range(2)]
        for call in (0, 9999, gone):
            h.ipc.send("CSI_CALL_CANCEL_EV", {"call": call})
        reply = h.ipc.recv(20)
        case.equal((reply.serial, reply["grpc_status"]), (gone, csi.CANCELLED), "status of the cancelled call")
        case.equal(csi.call(h, 1, "node_get_info")[0], csi.OK, "status of the next call")
        h.ipc.send("CSI_CALL_CANCEL_EV", {"call": kept})
        case.equal(h.ipc.recv(20).serial, kept)


def test_a_hanging_call_delays_no_other():
    with csi.bad("NodeStageVolume=hang") as one, csi.bad() as two, start() as h:
        csi.open_channel(h, one, 1)
        csi.open_channel(h, two, 2)
        hanging = [csi.send_call(h, 1, "node_stage_volume", timeout_ms=HANGS_MS) for _ in range(20)]
        for i in range(200):  # each with a much shorter deadline than those that hang
            case.equal(csi.call(h, 1 + i % 2, "node_get_info")[0], csi.OK, "status of a call beside those that hang")
        # Closing the channel ends them.
        case.equal(h.ipc.answer(h.ipc.send("CSI_PLUGIN_CLOSE_REQ", {"channel": 1})).name, "CSI_PLUGIN_CLOSE_REP", "close")
        ended = [h.ipc.recv() for _ in hanging]
        case.equal(sorted(p.serial for p in ended), hanging, "calls that ended")
        case.equal({p["grpc_status"] for p in ended}, {csi.CANCELLED}, "their status")
        case.equal(csi.call(h, 2, "node_get_info")[0], csi.OK, "the other channel")


def test_a_helper_that_was_stopped_beyond_a_deadline_continues():
    # As on an overloaded machine: calls whose deadlines passed meanwhile end with DEADLINE_EXCEEDED, and the plugin does not count as
    # hanging.
    with csi.bad("NodeStageVolume=hang") as plugin, start() as h:
        csi.open_channel(h, plugin, 1)
        hanging = [csi.send_call(h, 1, "node_stage_volume", timeout_ms=200) for _ in range(250)]
        h.kill(signal.SIGSTOP)
        time.sleep(2.5)
        h.kill(signal.SIGCONT)
        case.equal({h.ipc.recv()["grpc_status"] for _ in hanging}, {csi.DEADLINE_EXCEEDED}, "status")
        case.equal(csi.call(h, 1, "node_get_info")[0], csi.OK, "the next call")


def test_answers_may_arrive_in_any_order():
    with csi.bad("NodeStageVolume=slow:3000") as plugin, start() as h:
        csi.open_channel(h, plugin, 1)
        slow = csi.send_call(h, 1, "node_stage_volume")
        fast = csi.send_call(h, 1, "node_publish_volume")
        case.equal([h.ipc.recv().serial for _ in range(2)], [fast, slow], "the order of the answers")


def test_bad_connections_fail_the_open_with_an_error_message():
    cases = {
        "dead": (60000, errno.ECONNRESET, "UNAVAILABLE"),
        "silent": (300, errno.ETIMEDOUT, "no answer within 300 ms"),
        # Which gRPC status these have depends on the progress of the connection; each ends with an error message.
        "garbage": (300, None, "probe the plugin: "),
        "http1": (300, None, "probe the plugin: "),
        "goaway": (300, None, "probe the plugin: "),
    }
    with start() as h:
        for mode, (timeout_ms, code, text) in cases.items():
            with csi.bad("connection=" + mode) as plugin:
                e = case.raises(RequestError, csi.open_channel, h, plugin, 1, timeout_ms)
                print("    %-8s %d %s" % (mode, e.code, e.text))
                if code:
                    case.equal(e.code, -code, mode)
                case.contains(e.text, text, mode)
        check_still_works(h)


def test_bad_probes_fail_the_open():
    with start() as h:
        for rule, code, text in (("Probe=hang", errno.ETIMEDOUT, "no answer within 200 ms"),
                                 ("Probe=status:9", errno.EIO, "FAILED_PRECONDITION: as commanded"),
                                 ("Probe=status:12", errno.EIO, "UNIMPLEMENTED"),
                                 ("Probe=once:14", errno.ECONNRESET, "UNAVAILABLE: as commanded"),
                                 ("Probe=garbage", errno.EPROTO, "not a valid message"),
                                 ("Probe=die", errno.ECONNRESET, "UNAVAILABLE")):
            with csi.bad(rule) as plugin:
                e = case.raises(RequestError, csi.open_channel, h, plugin, 1, 200 if rule == "Probe=hang" else 60000)
                case.equal(e.code, -code, rule + ": " + e.text)
                case.contains(e.text, text, rule)
                refused(errno.ECONNRESET, h, "CSI_CALL_REQ", {"channel": 1, "timeout_ms": 100, "probe": {}})
        check_still_works(h)


def test_a_plugin_that_is_not_ready_keeps_its_channel():
    with csi.bad("Probe=huge:0") as plugin, start() as h:  # `ready {}` is a BoolValue of false
        case.equal(csi.open_channel(h, plugin, 1), False, "ready")
        case.equal(csi.call(h, 1, "get_plugin_info")[0], csi.OK, "status of a call")


def test_unusable_answers_give_an_error_message():
    cases = (
        ("GetPluginInfo=garbage", "get_plugin_info", csi.INTERNAL, "not a valid message"),
        ("GetPluginInfo=nothing", "get_plugin_info", csi.INTERNAL, "it is empty"),
        ("GetPluginInfo=nul", "get_plugin_info", csi.INTERNAL, "field name of GetPluginInfoResponse is not valid text"),
        ("GetPluginInfo=latin1", "get_plugin_info", csi.INTERNAL, "is not valid text"),
        ("GetPluginInfo=twice", "get_plugin_info", csi.INTERNAL, "has the field name twice"),
        ("GetPluginInfo=huge:4194299", "get_plugin_info", csi.INTERNAL, "4194304 are allowed"),
        ("GetPluginInfo=huge:5000000", "get_plugin_info", csi.INTERNAL, "its answer is larger than 4096 KiB"),
        ("NodeGetCapabilities=many:1000000", "node_get_capabilities", csi.INTERNAL, "too large"),
    )
    with start() as h:
        for rule, method, status, text in cases:
            with csi.bad(rule) as plugin:
                csi.open_channel(h, plugin, 1)
                found = csi.call(h, 1, method)
                case.equal((found[0], found[2]), (status, None), rule + ": " + found[1])
                case.contains(found[1], text, rule)
                case.equal(csi.call(h, 1, "node_get_info")[0], csi.OK, "the next call after " + rule)
                h.ipc.call("CSI_PLUGIN_CLOSE_REQ", {"channel": 1})


def test_large_requests_and_answers_arrive():
    odd = [{"key": "", "value": "no key"}, {"key": "empty", "value": ""}, {"key": "\U0010ffff \u00e4", "value": "\n\t\x01 \U0001f600"},
           {"key": "large", "value": "x" * 65536}]
    with csi.bad() as plugin, start() as h:
        csi.open_channel(h, plugin, 1)
        for n in (64, 100, 1000, 10000):
            entries = odd + [{"key": "key-%d" % i, "value": "value %d" % i} for i in range(n)]
            status, message, answer = csi.call(h, 1, "create_volume", {"name": "v", "parameters": entries})
            case.equal((status, message), (csi.OK, ""), "%d entries" % n)
            case.equal(answer["volume"]["volume_context"], entries, "%d entries" % n)
    for rule, method, field, n in (("GetPluginInfo=huge:4000000", "get_plugin_info", "name", 4000000),
                                   ("NodeGetCapabilities=many:4000", "node_get_capabilities", "capabilities", 4000)):
        with csi.bad(rule) as plugin, start() as h:
            csi.open_channel(h, plugin, 1)
            case.equal(len(csi.call(h, 1, method)[2][field]), n, rule)


def test_unknown_fields_are_dropped_and_empty_answers_are_accepted():
    with csi.bad("GetPluginInfo=unknown", "NodeGetInfo=none", "CreateVolume=none") as plugin, start() as h:
        csi.open_channel(h, plugin, 1)
        case.equal(csi.call(h, 1, "get_plugin_info")[2]["name"], "csi-bad.drover", "the known fields")
        case.equal(csi.call(h, 1, "node_get_info")[2]["node_id"], "", "an empty answer")
        case.equal(csi.call(h, 1, "create_volume", {"name": "v"})[2]["volume"], None, "no volume in it")


def test_messages_are_made_printable_and_cut():
    with csi.bad("DeleteVolume=noise:13") as plugin, start() as h:
        csi.open_channel(h, plugin, 1)
        status, message, _ = csi.call(h, 1, "delete_volume")
        case.equal(status, csi.INTERNAL, "status")
        if not 900 < len(message.encode()) < 1024 or not message.isprintable():
            raise AssertionError("%d bytes: %r" % (len(message.encode()), message))


def test_a_plugin_that_dies_is_unavailable_and_a_new_descriptor_works():
    with csi.bad("NodePublishVolume=die", "NodeStageVolume=hang") as plugin, start() as h:
        csi.open_channel(h, plugin, 1)
        hanging = csi.send_call(h, 1, "node_stage_volume", timeout_ms=HANGS_MS)
        dying = csi.send_call(h, 1, "node_publish_volume", timeout_ms=HANGS_MS)
        ended = [h.ipc.recv() for _ in range(2)]
        case.equal(sorted(p.serial for p in ended), [hanging, dying], "serials of the calls that ended")
        case.equal({p["grpc_status"] for p in ended}, {csi.UNAVAILABLE}, "their status")
        case.equal(csi.call(h, 1, "node_get_info")[0], csi.UNAVAILABLE, "status of another call in the dead channel")
        h.ipc.call("CSI_PLUGIN_CLOSE_REQ", {"channel": 1})
        with csi.bad() as again:
            case.equal(csi.open_channel(h, again, 1), True, "status of a call in the same channel with a new descriptor")


def test_limits_and_wrong_requests():
    with csi.bad("NodeStageVolume=hang") as plugin, start() as h:
        csi.open_channel(h, plugin, 1)
        with plugin.connect() as sock:
            fds = [sock.fileno()]
            refused(errno.EEXIST, h, "CSI_PLUGIN_OPEN_REQ", {"channel": 1, "probe_timeout_ms": 100}, fds)
            refused(errno.EINVAL, h, "CSI_PLUGIN_OPEN_REQ", {"channel": 0, "probe_timeout_ms": 100}, fds)
            refused(errno.EINVAL, h, "CSI_PLUGIN_OPEN_REQ", {"channel": 2, "probe_timeout_ms": 0}, fds)
        null = os.open("/dev/null", os.O_RDWR)
        case.raises(RequestError, h.ipc.call, "CSI_PLUGIN_OPEN_REQ", {"channel": 2, "probe_timeout_ms": 100}, [null])
        os.close(null)
        refused(errno.ENOENT, h, "CSI_PLUGIN_CLOSE_REQ", {"channel": 2})
        refused(errno.ECONNRESET, h, "CSI_CALL_REQ", {"channel": 2, "timeout_ms": 100, "probe": {}})
        refused(errno.EINVAL, h, "CSI_CALL_REQ", {"channel": 1, "timeout_ms": 0, "probe": {}})
        refused(errno.EINVAL, h, "CSI_CALL_REQ", {"channel": 1, "timeout_ms": 100})
        for _ in range(256):
            csi.send_call(h, 1, "node_stage_volume", timeout_ms=HANGS_MS)
        case.contains(refused(errno.EBUSY, h, "CSI_CALL_REQ", {"channel": 1, "timeout_ms": 100, "probe": {}}), "256")
        h.ipc.call("CSI_PLUGIN_CLOSE_REQ", {"channel": 1})
        for _ in range(256):
            case.equal(h.ipc.recv()["grpc_status"], csi.CANCELLED, "each of them ends")
        for channel in range(1, 65):
            csi.open_channel(h, plugin, channel)
        with plugin.connect() as sock:
            refused(errno.EBUSY, h, "CSI_PLUGIN_OPEN_REQ", {"channel": 65, "probe_timeout_ms": 100}, [sock.fileno()])


class Frames:
    """A plugin that writes its HTTP/2 frames itself. Each call is answered by answer()."""

    def connect(self):
        ours, theirs = socket.socketpair()
        threading.Thread(target=self.serve, args=(ours,), daemon=True).start()
        return theirs

    @staticmethod
    def frame(kind, flags, stream, payload):
        return struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, flags, stream) + payload

    @staticmethod
    def field(name, value):
        """Returns a literal header field without indexing."""
        return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value

    def serve(self, sock):
        with sock, sock.makefile("rb") as read:
            read.read(len("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"))
            sock.sendall(self.frame(4, 0, 0, b""))  # SETTINGS
            while len(head := read.read(9)) == 9:
                size, kind, flags, stream = int.from_bytes(head[:3], "big"), *struct.unpack(">BBI", head[3:])
                payload = read.read(size)
                if kind == 4 and not flags & 1:
                    sock.sendall(self.frame(4, 1, 0, b""))
                elif kind == 6 and not flags & 1:
                    sock.sendall(self.frame(6, 1, 0, payload))
                elif kind == 0 and flags & 1:
                    self.answer(sock, stream, payload)

    def send_message(self, sock, stream, message, *fields):
        """Sends HEADERS, DATA, and HEADERS that end the stream."""
        sock.sendall(self.frame(1, 4, stream, b"\x88" + self.field(b"content-type", b"application/grpc") + b"".join(fields)))
        for at in range(0, len(message), 16384):
            sock.sendall(self.frame(0, 0, stream, message[at:at + 16384]))
        sock.sendall(self.frame(1, 5, stream, self.field(b"grpc-status", b"0")))


class Bomb(Frames):
    """A plugin whose answers are gzip messages that inflate to `size` bytes."""

    def __init__(self, size):
        made = zlib.compressobj(9, wbits=31)
        packed = made.compress(b"\0" * size) + made.flush()
        self.message = b"\1" + struct.pack(">I", len(packed)) + packed

    def answer(self, sock, stream, _):
        self.send_message(sock, stream, self.message, self.field(b"grpc-encoding", b"gzip"))


class Resetting(Frames):
    """A plugin that answers a probe, whose request is empty except for its length, and resets the other streams."""

    def answer(self, sock, stream, payload):
        if payload == bytes(5):
            self.send_message(sock, stream, bytes(5))
        else:
            sock.sendall(self.frame(3, 0, stream, struct.pack(">I", 2)))  # INTERNAL_ERROR


def peak_kb(h):
    with open("/proc/%d/status" % h.pid, encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))


def test_a_compressed_answer_is_refused_without_inflating_it():
    with start() as h:
        check_still_works(h)
        before = peak_kb(h)
        # 60 KB are sent, which the connection's first window takes.
        case.raises(RequestError, csi.open_channel, h, Bomb(BOMB_BYTES), 1)
        grown = peak_kb(h) - before
        case.equal(grown < BOMB_BYTES // 1024 // 4, True, "an answer of %d bytes increased the memory by %d KB" % (BOMB_BYTES, grown))
        check_still_works(h)


def test_closed_channels_leave_no_descriptors():
    with start() as h:
        check_still_works(h)
        before = len(os.listdir("/proc/%d/fd" % h.pid))
        for rule in ("Probe=ok", "Probe=hang", "connection=dead", "connection=garbage"):
            with csi.bad(rule) as plugin:
                for _ in range(10):
                    try:
                        csi.open_channel(h, plugin, 1, 50)
                        h.ipc.call("CSI_PLUGIN_CLOSE_REQ", {"channel": 1})
                    except RequestError:
                        pass
        case.until(lambda: len(os.listdir("/proc/%d/fd" % h.pid)) <= before, 5, "open descriptors after the channels were closed")


def test_it_ends_when_the_launcher_or_the_supervisor_does():
    for which in ("link", "ipc"):
        with csi.bad("NodeStageVolume=hang") as plugin:
            h = start()
            csi.open_channel(h, plugin, 1)
            csi.send_call(h, 1, "node_stage_volume", timeout_ms=HANGS_MS)
            getattr(h, which).close()
            case.equal(h.wait(), 0, "exit status after the end of the " + which)
            h.close()


def test_a_broken_protocol_ends_it():
    h = start()
    h.ipc.send_raw(64, b"\xff\xff")
    case.equal(h.wait(5), 1, "exit status")
    case.contains(h.log(), "does not decode", "its log")
    h.close()


try:
    case.run(globals())
finally:
    PLACES.remove()
