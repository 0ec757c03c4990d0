#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 60
"""Clients of the control socket that send slowly, do not read, or ask for what takes long: what they cost is bounded, and others
are answered meanwhile."""
import json
import resource
import socket
import threading
import time
import urllib.parse

from lib import api, case

MIB = 1 << 20
CONNECTIONS = 1200  # the agent takes no more at a time
BOUND_KB = 192 * 1024  # 64 MiB of requests and answers, and the agent itself
HALF = b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % MIB + b" " * (MIB - 1)


def pss_kb():
    with open("/proc/%d/smaps_rollup" % node.processes()["supervisor"], encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))


class Crowd:
    """Connections that say something, each by itself and as fast as it is taken, and then read nothing."""

    def __init__(self, n, text):
        self.text, self.most_kb, self.ended = text, 0, False
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
                pass  # it was cut off

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
        return self.most_kb


def is_open(s):
    """Says one byte more."""
    s.setblocking(False)
    try:
        s.send(b"x")
        return s.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def test_half_sent_bodies_take_neither_memory_nor_others_turns():
    crowd = Crowd(CONNECTIONS, HALF)
    body = json.dumps(api.job("beside")).encode() + b" " * 500000
    try:
        case.until(lambda: node.request("POST", "/v1/jobs", body).status == 200, 60, "a job while they send")
        crowd.wait()
        case.until(lambda: node.request("POST", "/v1/jobs", body).status == 200, 60, "a job while they say nothing")
    finally:
        most = crowd.close()
    node.wait_running("beside")
    print("    %d half-sent bodies of 1 MiB: %d KB PSS at most" % (CONNECTIONS, most))
    case.equal(most < BOUND_KB, True, "%d KB" % most)
    node.purge("beside")


def send_many_bodies():
    """What each of a hundred is answered that come at the same time; "": it was cut off."""
    sockets = [node.connect() for _ in range(100)]
    answers = []
    for text in (HALF, b" "):
        for s in sockets:
            try:
                s.settimeout(case.LEAST_S)
                s.sendall(text)
            except OSError:
                pass  # it was cut off
    for s in sockets:
        try:
            answers.append(s.recv(65536).decode())
        except OSError:
            answers.append("")
        s.close()
    return answers


def test_what_finds_no_room_is_refused_with_a_sentence():
    """None of those that are there has waited long enough to be cut off for another."""
    seen = []

    def refused():
        seen[:] = send_many_bodies()
        return [a for a in seen if a.startswith("HTTP/1.1 503 ")]
    for a in case.until(refused, 60, "a refusal"):
        case.contains(a, "the requests and answers of all clients together take too much memory: try again in a moment")
    case.equal([a for a in seen if a.startswith("HTTP/1.1 400 ") and "not JSON" in a] != [], True, "those that found room")


def test_unread_answers_take_neither_memory_nor_others_turns():
    node.register(api.job("large", count=0, Meta={"m%d" % i: "x" * 60000 for i in range(16)}))
    case.equal(len(node.request("GET", "/v1/job/large").body) > 900000, True, "a large answer")
    crowd = Crowd(CONNECTIONS, b"GET /v1/job/large HTTP/1.1\r\nHost: x\r\n\r\n")
    crowd.wait()

    def whole():
        answer = node.request("GET", "/v1/job/large")
        return answer.status == 200 and answer.json["ID"] == "large"
    case.until(whole, 60, "a whole answer while the others do not read theirs")
    most = crowd.close()
    print("    %d unread answers of 1 MB: %d KB PSS at most" % (CONNECTIONS, most))
    case.equal(most < BOUND_KB, True, "%d KB" % most)
    node.purge("large")


def test_who_sends_for_too_long_is_cut_off():
    """A byte now and then keeps no connection open, in the first line, in a header or in the body. Who follows may."""
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
    case.until(all_cut, 60, "those that send a byte each moment to be cut off")
    node.register(api.job("news", count=0))
    case.until(lambda: b"news" in stream.readline(), 60, "news for the follower")
    follower.close()
    for s in slow:
        s.close()
    node.purge("news")


def test_filters_share_the_processor():
    """Many that take a second each are refused; one that takes nothing is not."""
    node.register(api.job("text", count=0, Meta={"m": "a" * 16000}))
    slow = "/v1/jobs?filter=" + urllib.parse.quote('TaskGroups.0.Tasks.0.Meta.m matches "a.*[bc]"')

    def refused():
        answer = node.request("GET", slow)
        case.equal(answer.status == 429 or "takes too long" in answer.text, True, answer.text)
        return answer.status == 429 and answer.text
    case.contains(case.until(refused, 60, "a refusal"), "the filters of all requests take too much CPU time: try again later")
    case.equal([j["ID"] for j in node.ask("/v1/jobs", filter='ID == "text"')], ["text"])
    node.purge("text")


def test_a_full_house_makes_room():
    """As many connections as are taken, and none of them asks for anything or ends."""
    held = [node.connect() for _ in range(CONNECTIONS)]
    for _ in range(3):
        case.equal(node.request("GET", "/v1/agent/health").status, 200)
    for s in held:
        s.close()


resource.setrlimit(resource.RLIMIT_NOFILE, (4096, max(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
with api.Node() as node:
    case.run(globals())
