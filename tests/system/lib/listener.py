# SPDX-License-Identifier: Apache-2.0
"""The listener alone: the test is its supervisor.

    with Listener() as l:
        status, text, answer = l.get("/v1/agent/health")
"""
import http.client
import select
import socket
import threading
import time

from . import case, helper

CONNECTIONS = 512  # all
OF_ONE_ADDRESS = 100
HEALTH = b"GET /v1/agent/health HTTP/1.1\r\nHost: x\r\n\r\n"
BODY = b'{"client":{"message":"ok","ok":true}}'


class Listener:
    """.asked: the requests that came by links, in their order. While .held is set, links get no answer; while .mute is set, there are none."""

    def __init__(self, config="", files=(), context=None):
        self.config, self.files, self.context = config, files, context
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.listen(4096)
        self.socket.setblocking(False)
        self.port = self.socket.getsockname()[1]
        self.places = helper.Places()
        self.asked, self.answer, self.held, self.mute, self.links = [], self.make(BODY), threading.Event(), False, []
        self.start()

    def start(self):
        self.h = helper.Helper("listener", self.places, special=self.socket.fileno(), config=self.config, tls=self.files)
        self.h.ipc.send("LIS_SERVE_EV", {"links": 16, "api_links": 20})
        self.ended = False
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    @staticmethod
    def make(body, status="200 OK", more=""):
        return b"HTTP/1.1 %s\r\nContent-Type: application/json\r\n%sContent-Length: %d\r\n\r\n" % (status.encode(), more.encode(), len(body)) + body

    def serve(self):
        while not self.ended:
            if not select.select([self.h.ipc.sock], [], [], 0.05)[0]:
                continue
            packet = self.h.ipc.recv()
            if packet is None:
                return
            if not self.mute:
                ours, theirs = socket.socketpair()
                self.h.ipc.send("LIS_LINK_EV", {"link": packet["link"]}, fds=[theirs.fileno()])
                theirs.close()
                t = threading.Thread(target=self.serve_link, args=(ours,))
                t.start()
                self.links.append(t)

    def serve_link(self, link):
        with link:
            text = b""
            while not text.endswith(b"\r\n\r\n"):
                more = link.recv(65536)
                if not more:
                    return
                text += more
            self.asked.append(text.decode())
            while self.held.is_set() and not self.ended:
                time.sleep(0.01)
            try:
                link.sendall(self.answer)
            except OSError:
                pass  # the listener has given up

    def connect(self, address="127.0.0.1"):
        s = socket.socket()
        s.settimeout(case.LEAST_S)
        s.bind((address, 0))
        s.connect(("127.0.0.1", self.port))
        return self.context.wrap_socket(s, server_hostname="localhost") if self.context else s

    def get(self, path="/v1/agent/health", method="GET", headers=None, address="127.0.0.1"):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=case.LEAST_S)
        c.sock = self.connect(address)
        try:
            c.request(method, path, headers=headers or {})
            r = c.getresponse()
            return r.status, r.read().decode(), r
        finally:
            c.close()

    def exchange(self, text):
        """Sends the text and returns everything that comes until the listener closes."""
        with self.connect() as s:
            s.sendall(text)
            found = b""
            while True:
                try:
                    more = s.recv(65536)
                except ConnectionResetError:
                    return found
                if not more:
                    return found
                found += more

    def pss_kb(self):
        with open("/proc/%d/smaps_rollup" % self.h.pid, encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))

    def stop(self):
        self.ended = True
        self.thread.join()
        case.equal(self.h.stop(), 0, "exit code")
        for t in self.links:
            t.join()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.socket.close()
        self.places.remove()
