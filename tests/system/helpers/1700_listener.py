#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 90
"""The listener alone: this test is its supervisor. What its clients may send, what the supervisor is asked, and limits for both."""
import os
import resource
import socket
import threading
import time

from lib import case
from lib.listener import BODY, CONNECTIONS, HEALTH, OF_ONE_ADDRESS, Listener

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
    for name, fields in (("LIS_SERVE_EV", {"links": 16, "api_links": 0}), ("LIS_WANT_EV", {"link": 1})):
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
