# SPDX-License-Identifier: Apache-2.0
"""heartbeat alone with its link to servers: the test is its supervisor, and a node.

    with hb_link.Link(places, servers.addresses) as h:
        h.register()
        h.call("Status.Leader", {"Region": "global"})
        h.wait(lambda: h.done, 5, "a heartbeat that a server accepted")
"""
import os
import time
import uuid

from . import case, helper, nomad_client
from .helper import memfd_read, memfd_sealed
import gopack
import schema

INLINE_MAX = 56000
WINDOW = 256 * 1024


class CallError(Exception):
    """A call without an answer: .code is a negative errno, or None if the error is the server's."""

    def __init__(self, code, text):
        super().__init__("%s: %s" % (code, text))
        self.code, self.text = code, text


def configuration(addresses, tls=(), verify=True):
    text = "client { servers = [%s] }\n" % ", ".join('"%s"' % a for a in addresses)
    if tls:
        text += 'tls {\n rpc = true\n verify_server_hostname = %s\n' % str(verify).lower()
        text += ' ca_file = "%s"\n cert_file = "%s"\n key_file = "%s"\n}\n' % tuple(tls)
    return text


class Link(helper.Helper):
    node = nomad_client.Client.node
    query = nomad_client.Client.query
    write = nomad_client.Client.write

    def __init__(self, places, addresses, tls=(), verify=True):
        self.id, self.secret, self.region, self.token = str(uuid.uuid4()), str(uuid.uuid4()), "global", ""
        self.registered = False
        self.answers, self.done, self.servers, self.streams = {}, [], [], {}
        self.methods, self.opened, self.alive = {}, [], True
        super().__init__("heartbeat", places, configuration(addresses, tls, verify), tls=tls, hello=False)

    # --- the loop ---

    def pump(self, timeout):
        """Handles one packet if it comes in time."""
        try:
            packet = self.ipc.recv(timeout)
        except helper.Error as e:
            if "nothing came" in str(e):
                return
            raise
        if packet is None:
            self.alive = False
            raise AssertionError("heartbeat has ended")
        name, serial = packet.name, packet.serial
        if name == "HB_BEAT_REQ":
            self.beat(packet["cycle"])
        elif name in ("HB_CALL_REP", "HB_CALL_BIG_REP", "IPC_ERROR_REP"):
            self.answers[serial] = packet
        elif name == "HB_SERVER_EV":
            self.servers.append(packet.fields)
        elif name in ("HB_BEAT_DONE_EV", "HB_BEAT_DONE_BIG_EV"):
            self.done.append(packet.fields)
            packet.close()
        else:
            self.on_stream(name, packet)

    def wait(self, condition=10, seconds=None, what=None):  # pylint: disable=arguments-differ
        """Waits until condition(). If the first argument is a number, waits for the end of the process, as the base class does."""
        if not callable(condition):
            return super().wait(condition)
        seconds = case.patience(seconds)
        end = time.monotonic() + seconds
        while True:
            value = condition()
            if value:
                return value
            left = end - time.monotonic()
            if left <= 0:
                raise AssertionError("%s: timed out after %g s" % (what, seconds))
            self.pump(min(left, 0.05))

    def wait_exit(self):
        """Returns its exit status when it ends by itself."""
        return super().wait()

    @property
    def server(self):
        return self.servers[-1]["server"] if self.servers else ""

    def wait_server(self, address=None, seconds=10):
        return self.wait(lambda: self.server and address in (None, self.server), seconds, "server %s" % address)

    # --- heartbeats and calls ---

    def beat(self, cycle):
        body = b""
        if self.registered:
            body = schema.shared().pack("NodeUpdateStatusRequest", self.write(NodeID=self.id, Status="ready"), (99,))
        self.ipc.send("HB_BEAT_REP", {"cycle": cycle, "body": body})

    def start(self, method, args, takes=None, deadline_s=60, repeat=False):
        """Starts a call. Returns its serial number."""
        body = schema.shared().pack(takes, args, (99,)) if takes else gopack.pack(args)
        fields = {"method": method, "deadline_ms": int(deadline_s * 1000), "repeat": repeat}
        if len(body) <= INLINE_MAX:
            return self.ipc.send("HB_CALL_REQ", {"body": body, **fields})
        fd = memfd_sealed(body)
        try:
            return self.ipc.send("HB_CALL_BIG_REQ", fields, [fd])
        finally:
            os.close(fd)

    def finish(self, serial, seconds=30):
        """Returns the answer's body. CallError."""
        packet = self.wait(lambda: self.answers.pop(serial, None), seconds, "the answer to call %d" % serial)
        if packet.name == "IPC_ERROR_REP":
            raise CallError(packet["code"], packet["text"])
        if packet["error"]:
            raise CallError(None, packet["error"])
        return memfd_read(packet.take_fd()) if packet.name == "HB_CALL_BIG_REP" else packet["body"]

    def call(self, method, args, takes=None, deadline_s=60, repeat=False):
        body = self.finish(self.start(method, args, takes, deadline_s, repeat), deadline_s + 30)
        return gopack.natural(gopack.unpack(body))

    def cancel(self, serial):
        self.ipc.send("HB_CALL_CANCEL_EV", {"call": serial})

    def register(self, version="2.0.5"):
        found = self.call("Node.Register", self.write(Node=self.node(version)), "NodeRegisterRequest")
        self.token, self.registered = self.secret, True
        return found

    def lease(self):
        """Returns the CLOCK_BOOTTIME of the lease's last renewal."""
        with open(self.places.runtime + "/lease", "rb") as f:
            return int.from_bytes(f.read(64)[56:64], "little") / 1e9

    # --- streams opened by the supervisor ---

    def ask(self, method, args, takes, seconds=60):
        """Opens a stream of that method with its argument. As the streams below, but its objects do not include an argument."""
        number = 1 << 63 | len(self.streams) + 1
        s = self.streams[number] = {"method": method, "streaming": True, "asked": True, "data": b"", "objects": [], "room": WINDOW,
                                    "ended": False, "gone": False, "error": "", "number": number}
        self.ipc.send("HB_STREAM_ASK_EV", {"stream": number, "method": method})
        self.write_stream(s, schema.shared().pack(takes, args, (99,)))
        return s

    # --- streams opened by servers ---

    def on_stream(self, name, packet):
        number = packet["stream"]
        if name == "HB_STREAM_OPEN_EV":
            s = self.streams[number] = {"method": packet["method"], "streaming": packet["streaming"], "data": b"",
                                        "objects": [], "room": WINDOW, "ended": False, "gone": False, "number": number}
            self.opened.append(s)
            if s["streaming"]:
                known = s["method"] in self.methods
                error = "" if known else 'Unknown rpc method: "%s"' % s["method"]
                self.ipc.send("HB_STREAM_ACCEPT_EV", {"stream": number, "error": error})
                if not known:
                    self.ipc.send("HB_STREAM_CLOSE_EV", {"stream": number})
            return
        s = self.streams[number]
        if name == "HB_STREAM_DATA_EV":
            s["data"] += packet["data"]
            self.ipc.send("HB_STREAM_READ_EV", {"stream": number, "bytes": len(packet["data"])})
            if packet["last"]:
                s["objects"].append(gopack.natural(gopack.unpack(s["data"])))
                s["data"] = b""
                self.on_object(s)
        elif name == "HB_STREAM_END_EV":
            s["ended"], s["error"] = True, packet["error"]
            s["gone"] = s["gone"] or packet["gone"]
        elif name == "HB_STREAM_ROOM_EV":
            s["room"] += packet["bytes"]

    def on_object(self, s):
        if s.get("asked"):
            return
        if s["streaming"]:
            if len(s["objects"]) == 1:
                self.methods[s["method"]](s)
            return
        method = self.methods.get(s["method"])
        answer = method(s["objects"][0]) if method else "rpc: can't find method " + s["method"]
        if answer is not None:
            self.answer(s, answer)

    def answer(self, s, answer):
        """A string is an error."""
        error = answer if isinstance(answer, str) else ""
        self.ipc.send("HB_STREAM_ACCEPT_EV", {"stream": s["number"], "error": error})
        if not error:
            self.write_stream(s, gopack.pack(answer))
        self.close_stream(s)

    def write_stream(self, s, data):
        """Sends as much as the window allows, and waits for more window."""
        while data:
            self.wait(lambda: s["room"] > 0 or s["gone"], 20, "window in stream %d" % s["number"])
            if s["gone"]:
                return
            part, data = data[:min(32768, s["room"])], data[min(32768, s["room"]):]
            s["room"] -= len(part)
            self.ipc.send("HB_STREAM_WRITE_EV", {"stream": s["number"], "data": part})

    def close_stream(self, s):
        self.ipc.send("HB_STREAM_CLOSE_EV", {"stream": s["number"]})
