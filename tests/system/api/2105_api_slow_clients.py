#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 60
"""Clients of the control socket that send slowly, do not read, or make expensive requests: their cost is bounded, and others are answered
meanwhile."""
import json
import os
import resource
import threading
import time
import urllib.parse

from lib import api, case, pour
from lib.watch import Watch, in_memory

MIB = 1 << 20
CONNECTIONS = 1200  # the agent's limit
BOUND_KB = 192 * 1024  # 64 MiB for requests and answers, plus the agent itself
HALF = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % MIB + b" " * (MIB - 1)


def pss_kb():
    with open("/proc/%d/smaps_rollup" % node.processes()["supervisor"], encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))


class Crowd:
    """Connections that each send this text as fast as it is accepted, and then do not read. Until close() no single call may hold the supervisor's
    loop."""

    def __init__(self, n, text):
        self.text, self.most_kb, self.ended = text, 0, False
        self.loop = Watch(node)
        self.loop.__enter__()
        self.held = [node.connect() for _ in range(n)]
        self.threads = [threading.Thread(target=self.send, args=(self.held[i::8],)) for i in range(8)]
        for t in self.threads:
            t.start()
        self.watcher = threading.Thread(target=self.watch)
        self.watcher.start()

    def send(self, sockets):
        for s in sockets:
            try:
                s.settimeout(case.LEAST_S)
                s.sendall(self.text)
            except OSError:
                pass  # the connection was closed

    def watch(self):
        while not self.ended:
            self.most_kb = max(self.most_kb, pss_kb())
            time.sleep(0.1)

    def wait(self):
        for t in self.threads:
            t.join()

    def close(self):
        self.ended = True
        self.watcher.join()
        for s in self.held:
            s.close()
        self.loop.__exit__(None)
        return self.most_kb


def is_open(s):
    """Sends one more byte. Returns whether the connection is open."""
    s.setblocking(False)
    try:
        s.send(b"x")
        return s.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def test_incomplete_bodies_neither_fill_memory_nor_delay_others():
    crowd = Crowd(CONNECTIONS, HALF)
    body = json.dumps(api.job("beside")).encode() + b" " * 500000
    try:
        case.until(lambda: node.request("POST", "/v1/jobs", body).status == 200, 60, "a job while they send")
        crowd.wait()
        case.until(lambda: node.request("POST", "/v1/jobs", body).status == 200, 60, "a job while they are silent")
    finally:
        most = crowd.close()
    node.wait_running("beside")
    print("    %d half-sent bodies of 1 MiB: %d KB PSS at most" % (CONNECTIONS, most))
    case.equal(most < BOUND_KB, True, "%d KB" % most)
    node.purge("beside")


def test_bodies_of_a_gibibyte_fill_no_memory():
    """A part is read, so that the client gets the answer."""
    for chunked in (False, True):
        node.request("GET", "/v1/jobs")
        with pour.Peak(node.processes()["supervisor"]) as peak, node.connect() as s:
            sent, answer = pour.pour(s, "POST /v1/jobs", chunked=chunked)
        print("    %s: %d KiB sent, %d KiB more memory, %r" % ("chunked" if chunked else "with a length", sent >> 10, peak.kb, answer))
        case.equal((sent < 96 << 20, peak.kb < 8192, answer == "" or answer[9] == "4"), (True, True, True), repr(answer))
        case.equal(node.request("GET", "/v1/jobs").status, 200, "afterwards")


def send_many_bodies():
    """Sends a hundred requests at the same time. Returns their answers; "" if the connection was closed."""
    sockets = [node.connect() for _ in range(100)]
    answers = []
    for text in (HALF, b" "):
        for s in sockets:
            try:
                s.settimeout(case.LEAST_S)
                s.sendall(text)
            except OSError:
                pass  # the connection was closed
    for s in sockets:
        try:
            answers.append(s.recv(65536).decode())
        except OSError:
            answers.append("")
        s.close()
    return answers


def test_requests_beyond_the_memory_limit_are_refused_with_the_reason():
    """No existing connection is old enough to be closed in favor of a new one."""
    seen = []

    def refused():
        seen[:] = send_many_bodies()
        return [a for a in seen if a.startswith("HTTP/1.1 503 ")]
    for a in case.until(refused, 60, "a request to be refused"):
        case.contains(a, "the requests and answers of all clients together take too much memory: try again in a moment")
    case.equal([a for a in seen if a.startswith("HTTP/1.1 400 ") and "not JSON" in a] != [], True, "whether other requests were accepted")


def test_unread_answers_neither_fill_memory_nor_delay_others():
    node.register(api.job("large", count=0, Meta={"m%d" % i: "x" * 60000 for i in range(16)}))
    case.equal(len(node.request("GET", "/v1/job/large").body) > 900000, True, "whether the answer is large")
    crowd = Crowd(CONNECTIONS, b"GET /v1/job/large HTTP/1.1\r\nHost: x\r\n\r\n")
    crowd.wait()

    def whole():
        answer = node.request("GET", "/v1/job/large")
        return answer.status == 200 and answer.json["ID"] == "large"
    case.until(whole, 60, "a complete answer while others do not read theirs")
    most = crowd.close()
    print("    %d unread answers of 1 MB: %d KB PSS at most" % (CONNECTIONS, most))
    case.equal(most < BOUND_KB, True, "%d KB" % most)
    node.purge("large")


def test_clients_that_send_too_slowly_are_disconnected():
    """One byte now and then does not keep a connection open, whether in the request line, a header or the body. Followers may stay."""
    follower = api.Connection(node, case.LEAST_S)
    follower.request("GET", "/v1/event/stream?topic=Job:news")
    stream = follower.getresponse()
    case.equal(stream.status, 200)
    slow = [node.connect() for _ in range(3)]
    for s, text in zip(slow, (b"G", b"GET /v1/jobs HTTP/1.1\r\nX: y", HALF[:1000])):
        s.sendall(text)

    def all_cut():
        time.sleep(0.5)
        return not [s for s in slow if is_open(s)]
    case.until(all_cut, 60, "the connections that send single bytes to be closed")
    node.register(api.job("news", count=0))
    case.until(lambda: b"news" in stream.readline(), 60, "an event for the follower")
    follower.close()
    for s in slow:
        s.close()
    node.purge("news")


def cpu_s():
    with open("/proc/%d/stat" % node.processes()["supervisor"], encoding="ascii") as f:
        return sum(int(n) for n in f.read().rpartition(")")[2].split()[11:13]) / os.sysconf("SC_CLK_TCK")


def test_filters_of_all_requests_have_a_limit_of_cpu_time():
    """Many filters that take a second each are refused; a cheap one is not."""
    node.register(api.job("text", count=0, Meta={"m": "a" * 16000}))
    slow = "/v1/jobs?filter=" + urllib.parse.quote('TaskGroups.0.Tasks.0.Meta.m matches "a.*[bc]"')
    began, used, asked = time.monotonic(), cpu_s(), 0

    def is_below_limit():
        """On a machine under load the supervisor may get less CPU time than the limit: a quarter of the elapsed time, and 2 s."""
        return asked > 2 and cpu_s() - used < (time.monotonic() - began) / 4 + 2

    def refused():
        nonlocal asked
        asked += 1
        answer = node.request("GET", slow)
        case.equal(answer.status == 429 or "takes too long" in answer.text, True, answer.text)
        return answer.text if answer.status == 429 else is_below_limit()
    text = case.until(refused, 60, "a request to be refused")
    if text is not True:
        case.contains(text, "the filters of all requests take too much CPU time: try again later")
    case.equal([j["ID"] for j in node.ask("/v1/jobs", filter='ID == "text"')], ["text"])
    node.purge("text")


def test_idle_connections_are_closed_when_all_are_in_use():
    """All connections are taken by clients that neither send a request nor disconnect."""
    held = [node.connect() for _ in range(CONNECTIONS)]
    for _ in range(3):
        case.equal(node.request("GET", "/v1/agent/health").status, 200)
    for s in held:
        s.close()


resource.setrlimit(resource.RLIMIT_NOFILE, (4096, max(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
with in_memory() as data, api.Node(data=data) as node:
    case.run(globals())
