# SPDX-License-Identifier: Apache-2.0
"""CSI plugins as processes, and calls to them through csi-helper.

    with csi.bad("Probe=hang") as plugin, helper.Helper("csi-helper", places) as h:
        csi.open_channel(h, plugin, 1)
"""
import fcntl
import os
import signal
import socket
import subprocess

from . import binary, build_dir, case, ipc

OK, CANCELLED, INVALID_ARGUMENT, DEADLINE_EXCEEDED, NOT_FOUND, ALREADY_EXISTS = 0, 1, 3, 4, 5, 6
RESOURCE_EXHAUSTED, FAILED_PRECONDITION, ABORTED, OUT_OF_RANGE, UNIMPLEMENTED, INTERNAL, UNAVAILABLE = 8, 9, 10, 11, 12, 13, 14

INLINE_BYTES = 61440  # CSI_INLINE_BYTES_MAX

# CsiCallRep.Origin
PLUGIN, TOO_LARGE, INVALID, LOST, RESET, DEADLINE, CALL_CANCELLED = range(7)

METHODS = ("probe", "get_plugin_info", "get_plugin_capabilities", "node_get_info", "node_get_capabilities",
           "controller_get_capabilities", "node_stage_volume", "node_unstage_volume", "node_publish_volume",
           "node_unpublish_volume", "create_volume", "delete_volume", "controller_expand_volume", "list_volumes",
           "create_snapshot", "delete_snapshot", "list_snapshots", "node_expand_volume", "get_capacity", "controller_get_volume",
           "controller_modify_volume", "node_get_volume_stats", "group_controller_get_capabilities", "create_volume_group_snapshot",
           "delete_volume_group_snapshot", "get_volume_group_snapshot")


class Plugin:
    """A running plugin. .socket is its path."""

    def __init__(self, argv, path, log, user=None, **options):
        self.socket = path
        if os.path.exists(path):
            os.unlink(path)
        with open(log, "ab") as out:
            self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, **options)
        self.log_path = log
        try:
            case.until(lambda: self._listens() or self.process.poll() is not None, 20, "the plugin's socket")
            if self.process.poll() is not None:
                raise AssertionError("the plugin ended: " + self.log())
        except BaseException:
            self.stop()
            raise

    def _listens(self):
        if not os.path.exists(self.socket):
            return False
        with open("/proc/net/unix", encoding="utf-8") as f:
            # The flag 00010000 is __SO_ACCEPTCON: the socket listens.
            return any(line.split()[3] == "00010000" and line.split()[-1] == self.socket for line in f)

    def log(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def connect(self):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.connect(self.socket)
        except BaseException:
            sock.close()
            raise
        return sock

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.kill()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()


def bad(*rules):
    """Starts csi_bad with these rules: "NodeStageVolume=hang", "connection=dead"."""
    base = case.directory()
    return Plugin([os.path.join(build_dir(), "tests", "csi_bad"), base + "/csi.sock"] + list(rules), base + "/csi.sock",
                  base + "/log")


def calls(path, method):
    """Returns the requests of this method that csi_bad logged to the file (requests=FILE)."""
    with open(path, encoding="ascii") as f:
        found = [line.rstrip("\n").split(" ", 1) for line in f if line.endswith("\n")]
    return [ipc.decode("csi.v1.%sRequest" % method, bytes.fromhex(data)) for name, data in found if name == method]


def entries(found):
    """Returns the dict of a map<string, string>. AssertionError if a key is there twice."""
    made = {e["key"]: e["value"] for e in found}
    case.equal(len(made), len(found), "entries with the same key")
    return made


def local(base, node_id="node-1", wrap=(), flags=(), socket_name="csi.sock"):
    """Starts drover-csi-local with its volumes and its socket below base."""
    path = base + "/" + socket_name
    argv = list(wrap) + [binary("csi-local"), "-root", base + "/volumes", "-endpoint", "unix://" + path, "-node-id", node_id]
    return Plugin(argv + list(flags), path, base + "/plugin.log")


def send_open(h, plugin, channel, timeout_ms=60000):
    """Sends CSI_PLUGIN_OPEN_REQ with a new connection. Returns the serial."""
    with plugin.connect() as sock:
        return h.ipc.send("CSI_PLUGIN_OPEN_REQ", {"channel": channel, "probe_timeout_ms": timeout_ms}, [sock.fileno()])


def open_channel(h, plugin, channel, timeout_ms=60000):
    """Opens a channel. Returns whether the plugin is ready; RequestError if it did not answer the probe."""
    return h.ipc.answer(send_open(h, plugin, channel, timeout_ms))["ready"]


def send_call(h, channel, method, request=None, timeout_ms=60000):
    """Sends CSI_CALL_REQ, or CSI_CALL_BIG_REQ if it is too large for a packet. Returns the serial."""
    fields = {"channel": channel, "timeout_ms": timeout_ms, method: request or {}}
    body = ipc.encode("CsiCallReq", fields)
    if len(body) <= INLINE_BYTES:
        return h.ipc.send("CSI_CALL_REQ", fields)
    fd = os.memfd_create("CsiCallReq", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.truncate(fd, len(body))
        os.pwrite(fd, body, 0)
        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
        return h.ipc.send("CSI_CALL_BIG_REQ", {"timeout_ms": timeout_ms}, [fd])
    finally:
        os.close(fd)


def reply(h, serial, timeout_s):
    """Returns the fields of a call's end, also of one in a memfd."""
    packet = h.ipc.answer(serial, timeout_s)
    if packet.name != "CSI_CALL_BIG_REP":
        return packet.fields
    with os.fdopen(packet.take_fd(), "rb") as f:
        f.seek(0)
        return ipc.decode("CsiCallRep", f.read())


def origin(h, channel, method, request=None, timeout_ms=60000):
    """Makes one call. Returns (origin, status, message)."""
    end = reply(h, send_call(h, channel, method, request, timeout_ms), timeout_ms / 1000 + 30)
    return end["origin"], end["grpc_status"], end["grpc_message"]


def call(h, channel, method, request=None, timeout_ms=60000):
    """Makes one call. Returns (status, message, answer)."""
    end = reply(h, send_call(h, channel, method, request, timeout_ms), timeout_ms / 1000 + 30)
    return end["grpc_status"], end["grpc_message"], end[method]
