# SPDX-License-Identifier: Apache-2.0
"""A websocket client over the control socket, for `alloc exec`."""
import base64
import hashlib
import json
import os
import struct
import urllib.parse

from . import case

TEXT, CLOSE, PING, PONG = 1, 8, 9, 10


class Refused(Exception):
    """An answer other than 101: .status and .text."""

    def __init__(self, status, text):
        super().__init__("%d: %s" % (status, text))
        self.status, self.text = status, text


class Closed(Exception):
    """.code and .reason of the close frame; 0 and "" at an end without one."""

    def __init__(self, code, reason):
        super().__init__("%d: %s" % (code, reason))
        self.code, self.reason = code, reason


def frame(op, data, mask=b"\x12\x34\x56\x78", fin=True):
    n = len(data)
    head = bytes([fin << 7 | op])
    if n < 126:
        head += bytes([bool(mask) << 7 | n])
    elif n < 65536:
        head += bytes([bool(mask) << 7 | 126]) + struct.pack(">H", n)
    else:
        head += bytes([bool(mask) << 7 | 127]) + struct.pack(">Q", n)
    if mask:
        whole = int.from_bytes(data, "big") ^ int.from_bytes((mask * (n // 4 + 1))[:n], "big")
        data = mask + whole.to_bytes(n, "big")
    return head + data


class Socket:
    def __init__(self, node, path, timeout=case.LEAST_S, headers=()):
        key = base64.b64encode(os.urandom(16)).decode()
        self.sock = node.connect()
        self.sock.settimeout(timeout)
        self.buffer = b""
        asked = {"Host": "localhost", "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
                 "Sec-WebSocket-Key": key, **dict(headers)}
        self.sock.sendall(("GET %s HTTP/1.1\r\n" % path + "".join("%s: %s\r\n" % h for h in asked.items()) + "\r\n").encode())
        while b"\r\n\r\n" not in self.buffer:
            self.more()
        head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
        lines = head.decode().split("\r\n")
        self.headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines[1:])}
        status = int(lines[0].split()[1])
        if status != 101:
            while len(self.buffer) < int(self.headers.get("content-length", 0)):
                self.more()
            self.close()
            raise Refused(status, self.buffer.decode())
        accept = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
        case.equal(self.headers["sec-websocket-accept"], base64.b64encode(accept).decode(), "Sec-WebSocket-Accept")

    def more(self):
        data = self.sock.recv(65536)
        if not data:
            raise Closed(0, "")
        self.buffer += data

    def take(self, n):
        while len(self.buffer) < n:
            self.more()
        data, self.buffer = self.buffer[:n], self.buffer[n:]
        return data

    def recv(self):
        """Returns opcode and data of one frame."""
        first, n = self.take(2)
        case.equal((first & 0xf0, n & 0x80), (0x80, 0), "a server's frame is whole and not masked")
        if n == 126:
            n = struct.unpack(">H", self.take(2))[0]
        elif n == 127:
            n = struct.unpack(">Q", self.take(8))[0]
        data = self.take(n)
        if first & 15 == CLOSE:
            raise Closed(struct.unpack(">H", data[:2])[0], data[2:].decode())
        return first & 15, data

    def send(self, op, data, **more):
        self.sock.sendall(frame(op, data, **more))

    def close(self):
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Exec(Socket):
    """A command inside a task, with Nomad's frames."""

    def __init__(self, node, alloc, command, task="t", tty=False, timeout=case.LEAST_S, headers=(), **query):
        words = {"task": task, "command": json.dumps(command), "tty": "true" if tty else "false", **query}
        super().__init__(node, "/v1/client/allocation/%s/exec?%s" % (alloc, urllib.parse.urlencode(words)), timeout, headers)

    @classmethod
    def of_action(cls, node, job, action, alloc, task="t", **query):
        """Runs an action of the job's task."""
        made = cls.__new__(cls)
        words = {"action": action, "allocID": alloc, "task": task, "tty": "false", **query}
        Socket.__init__(made, node, "/v1/job/%s/action?%s" % (urllib.parse.quote(job, ""), urllib.parse.urlencode(words)))
        return made

    def say(self, message):
        self.send(TEXT, json.dumps(message).encode())

    def type(self, data):
        self.say({"stdin": {"data": base64.b64encode(data).decode()}})

    def end_input(self):
        self.say({"stdin": {"close": True}})

    def heard(self):
        """Returns one message as a dict."""
        op, data = self.recv()
        case.equal(op, TEXT, "opcode")
        return json.loads(data)

    def wait(self, text, stream="stdout"):
        """Reads output until it contains text."""
        out = b""
        while text not in out:
            out += base64.b64decode(self.heard().get(stream, {}).get("data", ""))
        return out

    def end(self):
        """Returns stdout, stderr and the result, after which the server closes normally."""
        said, result = {"stdout": b"", "stderr": b""}, None
        while result is None:
            message = self.heard()
            for stream in said:
                said[stream] += base64.b64decode(message.get(stream, {}).get("data", ""))
            if message.get("exited"):
                result = message["result"]
        case.equal(case.raises(Closed, self.recv).code, 1000, "the close code")
        return said["stdout"], said["stderr"], result
