#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 90
"""The listener alone: this test is its supervisor. What its clients may send, what the supervisor is asked, and limits for both."""
import http.client
import os
import resource
import select
import socket
import threading
import time

from lib import case, helper, ipc

CONNECTIONS = 512  # all
OF_ONE_ADDRESS = 100
HEALTH = b"GET /v1/agent/health HTTP/1.1\r\nHost: x\r\n\r\n"
BODY = b'{"client":{"message":"ok","ok":true}}'


class Listener:
    """.asked: the requests that came by links, in their order. While .held is set, links get no answer; while .mute is set, there are none."""

    def __init__(self):
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
        self.h = helper.Helper("listener", self.places, special=self.socket.fileno())
        self.h.ipc.send("LIS_SERVE_EV", {"links": 16})
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
        return s

    def get(self, path="/v1/agent/health", method="GET", headers=None, address="127.0.0.1"):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=case.LEAST_S, source_address=(address, 0))
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


def test_answers_are_built_anew():
    with Listener() as l:
        l.answer = l.make(BODY, more="Set-Cookie: a=b\r\nX-Nomad-Index: 7\r\n")
        status, text, r = l.get(headers={"Cookie": "c=d", "X-Forwarded-For": "1.2.3.4", "Authorization": "Bearer x"})
        case.equal((status, text), (200, BODY.decode()), "the answer")
        case.equal(sorted(name.lower() for name in r.headers), ["cache-control", "content-length", "content-type", "date",
                                                                "x-content-type-options"], "headers")
        case.equal(l.asked, ["GET /v1/agent/health HTTP/1.1\r\nHost: drover\r\nConnection: close\r\n\r\n"], "what the supervisor was asked")
        status, text, r = l.get(method="HEAD")
        case.equal((status, text, r.headers["Content-Length"]), (200, "", str(len(BODY))), "HEAD")
        l.answer = l.make(b"down", "500 Internal Server Error")
        case.equal(l.get("/v1/agent/health?deep=1&type=client")[:2], (500, "down"), "the answer of an unhealthy node")
        case.contains(l.asked[-1], "GET /v1/agent/health?deep=1&type=client HTTP/1.1\r\n")
        l.get("/v1/metrics?format=prometheus", headers={"Accept": "application/openmetrics-text; version=1.0.0, text/plain;q=0.1"})
        case.contains(l.asked[-1], "Accept: application/openmetrics-text; version=1.0.0\r\n")


def test_a_connection_serves_requests_one_after_the_other():
    with Listener() as l:
        text = l.exchange(HEALTH + HEALTH + HEALTH.replace(b"Host", b"Connection: close\r\nHost"))
        case.equal(text.count(b"HTTP/1.1 200 OK\r\n"), 3, "answers to requests that were sent at once")
        case.equal(text.count(b"Connection: close"), 1, "the last one")
        case.equal(l.exchange(b"GET /v1/agent/health HTTP/1.0\r\n\r\n").count(b"Connection: close"), 1, "HTTP/1.0")


def test_requests_that_could_be_understood_in_two_ways_are_refused():
    smuggled = b"GET /v1/metrics HTTP/1.1\r\nHost: y\r\n\r\n"
    bad = {
        400: (b"GET http://x/v1/metrics HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc", b"GET /v1/metrics HTTP/1.1\nHost: x\n\n",
              b"GET /v1/metrics HTTP/1.1\r\n\r\n", b"GET /v1/metrics HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
              b"GET /v1/metrics HTTP/1.1\r\nHost: x\r\n X: y\r\n\r\n", b"GET /v1/metrics HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n",
              b"GET /v1/metrics\0 HTTP/1.1\r\nHost: x\r\n\r\n", b"GET /v1/metrics?x=1 HTTP/1.0\r\n\r\n",
              b"GET /v1/metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
              b"GET /v1/metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nContent-Length: 38\r\n\r\n" + smuggled),
        404: (b"GET /v1/jobs HTTP/1.0\r\n\r\n", b"GET /v1/agent/health/../../jobs HTTP/1.0\r\n\r\n", b"GET /v1/agent%2fhealth HTTP/1.0\r\n\r\n"),
        405: (b"POST /v1/agent/health HTTP/1.1\r\nHost: x\r\n\r\n", b"DELETE /v1/agent/health HTTP/1.1\r\n", b"CONNECT x:1 HTTP/1.1\r\n"),
        413: (b"GET /v1/metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 38\r\n\r\n" + smuggled,
              b"GET /v1/metrics HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled,
              b"GET /v1/metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741824\r\n\r\n" + b"x" * 100000),
        414: (b"GET /" + b"x" * 2000 + b" HTTP/1.1\r\n\r\n",),
        417: (b"GET /v1/metrics HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n",),
        431: (b"GET /v1/metrics HTTP/1.1\r\n" + b"A: b\r\n" * 65 + b"\r\n", b"GET /v1/metrics HTTP/1.1\r\nA: " + b"x" * 10000),
        505: (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET /v1/metrics HTTP/3.0\r\n\r\n"),
    }
    with Listener() as l:
        for status, texts in bad.items():
            for text in texts:
                found = l.exchange(text)
                case.equal((found.count(b"Date: "), found[:12]), (1, b"HTTP/1.1 %d" % status), repr(text[:80]))
                case.equal(b"Connection: close\r\n" in found, True, "whether it says that it closes: %r" % text[:80])
        case.equal(l.asked, [], "what the supervisor was asked")
        h2c = b"GET /v1/agent/health HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings, close\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n"
        case.equal(l.exchange(h2c)[:15], b"HTTP/1.1 200 OK", "an upgrade is ignored")


def test_clients_that_ask_the_same_share_one_question():
    with Listener() as l:
        l.held.set()
        sockets = [l.connect() for _ in range(OF_ONE_ADDRESS)]
        for s in sockets:
            s.sendall(HEALTH)
        case.until(lambda: len(l.asked) == 1, 10, "the question")
        # Another question waits until the line is free, and one of another kind does not.
        threads = [threading.Thread(target=l.get, args=(path,), kwargs={"address": "127.0.0.2"}) for path in ("/v1/agent/health?type=client", "/v1/metrics")]
        for t in threads:
            t.start()
        case.until(lambda: len(l.asked) == 2, 10, "the question of another kind")
        case.contains(l.asked[1], "/v1/metrics")
        l.held.clear()
        for s in sockets:
            case.contains(s.recv(65536), b" 200 OK")
            s.close()
        for t in threads:
            t.join()
        case.equal(len(l.asked), 3, "questions")


def test_a_supervisor_that_does_not_answer():
    with Listener() as l:
        l.mute = True
        status, text, _ = l.get()
        case.equal((status, text), (503, "the agent did not answer within 10 seconds\n"), "without a link")
        # The link that was wanted comes late: it serves the next client.
        l.mute = False
        l.h.ipc.send("LIS_LINK_EV", {"link": 4711}, fds=[l.socket.fileno()])
        ours, theirs = socket.socketpair()
        l.h.ipc.send("LIS_LINK_EV", {"link": 1}, fds=[theirs.fileno()])
        theirs.close()
        case.equal(ours.recv(1), b"", "the late link has no client, and is closed")
        ours.close()
        case.equal(l.get()[0], 200, "afterwards")
        l.held.set()
        case.equal(l.get()[:2], (503, "the agent did not answer within 10 seconds\n"), "without an answer")
        l.held.clear()
        case.equal(l.get()[0], 200, "afterwards")
        ready = l.make(BODY)
        for bad, status in ((b"", 503), (b"HTTP/1.1 200 OK\r\n\r\n", 502), (ready.replace(b"200", b"20"), 502), (ready + b"x", 502),
                            (ready.replace(b"application/json", b"a\0b"), 502), (b"x" * 5000, 502),
                            (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", 502)):
            l.answer = bad
            case.equal(l.get()[0], status, repr(bad[:60]))
        l.answer = ready
        case.equal(l.get()[0], 200, "afterwards")


def test_connections_of_one_address_and_of_all_have_a_limit():
    with Listener() as l:
        empty_kb = l.pss_kb()
        held = [l.connect("127.0.0.%d" % (2 + i // OF_ONE_ADDRESS)) for i in range(OF_ONE_ADDRESS)]
        for s in held:
            s.sendall(HEALTH)
            case.contains(s.recv(65536), b" 200 OK")
        with l.connect("127.0.0.2") as s:
            case.equal(s.recv(1), b"", "one more of that address")
        # 10,000 connections of a hundred addresses, each with a part of a request: other clients are served meanwhile.
        resource.setrlimit(resource.RLIMIT_NOFILE, (12000, max(12000, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
        most = 0
        for i in range(10000):
            s = l.connect("127.0.1.%d" % (1 + i % 100))
            try:
                s.sendall(b"GET /v1/agent/health HTTP/1.1\r\nX: " + b"y" * 8000)
            except OSError:
                pass  # it was closed to make room
            held.append(s)
            if i % 500 == 0:
                case.equal(l.get(address="127.0.2.1")[0], 200, "another client, beside %d" % i)
                most = max(most, l.pss_kb())
        print("    10,000 connections: %d KB PSS at most, %d KB before" % (most, empty_kb))
        case.equal(most < empty_kb + 16 * 1024, True, "%d KB" % most)
        case.equal(len(os.listdir("/proc/%d/fd" % l.h.pid)) <= CONNECTIONS + 20, True, "descriptors")
        for s in held:
            s.close()
        case.until(lambda: len(os.listdir("/proc/%d/fd" % l.h.pid)) < 30, 10, "the connections to be closed")
        case.equal(l.get()[0], 200, "afterwards")


def test_slow_clients_are_disconnected():
    """One byte now and then keeps no connection open, neither of a request nor of an answer that is read."""
    with Listener() as l:
        l.answer = l.make(b"x" * (32 << 20))
        before = len(os.listdir("/proc/%d/fd" % l.h.pid))
        silent, slow, reader = l.connect(), l.connect(), l.connect()
        reader.sendall(HEALTH)

        def ended(s, byte):
            try:
                s.setblocking(False)
                if byte:
                    s.send(byte)
                return s.recv(1) == b""
            except BlockingIOError:
                return False
            except OSError:
                return True
        for what, s, byte in (("silent", silent, b""), ("slow", slow, b"G")):
            case.until(lambda s=s, byte=byte: ended(s, byte), 40, "the end of the connection that is " + what)
        # The kernel keeps what was written already, so the client sees the end later.
        case.until(lambda: len(os.listdir("/proc/%d/fd" % l.h.pid)) == before, 40, "the end of the connection whose client reads nothing")
        for s in (silent, slow, reader):
            s.close()


def test_messages_that_break_the_protocol_end_it():
    for name, fields in (("LIS_SERVE_EV", {"links": 16}), ("LIS_WANT_EV", {"link": 1})):
        with Listener() as l:
            l.ended = True
            l.thread.join()
            l.h.ipc.send(name, fields)
            case.equal(l.h.wait(), 1, "exit code after " + name)
            l.h.stop = lambda: 0
            l.h.close()


def test_requests_wait_while_the_listener_restarts():
    with Listener() as l:
        l.h.kill()
        l.h.wait()
        l.thread.join()
        with l.connect() as s:
            s.sendall(HEALTH)
            l.start()
            case.contains(s.recv(65536), b" 200 OK", "the answer of its successor")


case.run(globals())
