#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 32
"""The control socket as an HTTP server: requests that it refuses, and that no client blocks another."""
import os
import resource
import time

from lib import api, case

IDLE_S = 30  # after this time an idle connection is closed


def fds(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def answers_at_once(node, what):
    began = time.monotonic()
    case.equal(node.get("/v1/agent/health")[0], 200, what)
    took = time.monotonic() - began
    case.equal(took < IDLE_S, True, "%s: health took %.2f s, as long as until idle connections are closed" % (what, took))


def test_answers_have_their_headers_and_pretty_indents():
    answer = node.request("GET", "/v1/jobs")
    case.equal((answer.status, answer.body), (200, b"[]"))
    case.equal(answer.headers["Content-Type"], "application/json")
    case.equal(answer.headers["X-Content-Type-Options"], "nosniff")
    case.equal(int(answer.headers["X-Nomad-Index"]) >= 1, True, "index")
    case.equal(answer.headers["X-Nomad-KnownLeader"], "true")
    case.equal(answer.headers["X-Nomad-LastContact"], "0")
    case.contains(node.request("GET", "/v1/agent/health?pretty").text, "\n")
    case.equal("\n" in node.request("GET", "/v1/agent/health?pretty=0").text, False, "whether pretty=0 indents")


def test_unknown_paths_and_methods_are_refused():
    for path in ("/", "/v1", "/v1/", "/v1/job", "/v1/job/", "/v1/jobs/", "/v1/nothing", "/ui/"):
        node.refused(404, "resource not found", "GET", path)
    node.refused(404, "job not found", "GET", "/v1/job/a/b")  # an id may have slashes
    for method, path in (("DELETE", "/v1/jobs"), ("PUT", "/v1/nodes"), ("POST", "/v1/agent/health"), ("PATCH", "/v1/jobs")):
        node.refused(405, "Invalid method", method, path, {})
    node.refused(400, "NUL", "GET", "/v1/job/a%00b")
    node.refused(400, "percent", "GET", "/v1/job/%zz")
    node.refused(400, "percent", "GET", "/v1/jobs?prefix=%q")


def test_unknown_ids_are_404():
    for path, text in (("/v1/job/", "job not found"), ("/v1/allocation/", "alloc not found"),
                       ("/v1/evaluation/", "eval not found"), ("/v1/node/", "node not found"),
                       ("/v1/volume/csi/", "volume not found"), ("/v1/plugin/csi/", "plugin not found")):
        for bad in ("x", "..%2F..%2Fetc%2Fpasswd", "a" * 300, "%C3%28", "%0A", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"):
            node.refused(404, text, "GET", path + bad)


def test_invalid_bodies_are_refused():
    node.refused(413, "longer than", "POST", "/v1/jobs", b"x" * (2 << 20))
    node.refused(400, "no body", "POST", "/v1/jobs")
    node.refused(400, "line 1", "POST", "/v1/jobs", b'{"Job":')
    node.refused(400, "not JSON", "POST", "/v1/jobs", b"\xff\xfe")
    node.refused(400, "not JSON", "POST", "/v1/jobs", b'{"Job":' + b"[" * 5000)
    node.refused(400, "object Job", "POST", "/v1/jobs", b"[]")
    node.refused(400, "object Job", "POST", "/v1/jobs", b'{"Job":7}')
    case.equal(node.ask("/v1/jobs"), [], "jobs")


def test_garbage_closes_only_its_connection():
    held = []
    for data in (b"\r\n\r\n", b"GET\r\n\r\n", b"\x16\x03\x01" * 100, b"GET / HTTP/9.9\r\n\r\n", b"A" * 100000,
                 b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * 60000 + b"\r\n\r\n",
                 b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
                 b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"):
        s = node.connect()
        s.settimeout(case.LEAST_S)
        held.append(s)
        try:
            s.sendall(data)
        except OSError:
            pass  # the server has closed the connection already
        answers_at_once(node, repr(data[:20]))
    for s in held:  # connections with an incomplete request are closed after their timeout
        try:
            while s.recv(65536):
                pass
        except ConnectionResetError:
            pass
        s.close()


def test_incomplete_requests_block_no_other_client():
    held = []
    for part in (b"", b"GET /v1/jo", b"POST /v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"):
        for _ in range(20):
            s = node.connect()
            s.sendall(part)
            held.append(s)
    answers_at_once(node, "with 60 half-sent requests")
    for s in held:
        s.close()


def test_a_pipelined_connection_is_served_in_order():
    with node.connect() as s:
        s.settimeout(case.LEAST_S)
        s.sendall(b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/nothing HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        seen = b""
        while part := s.recv(65536):
            seen += part
        case.equal(seen.index(b" 200 ") < seen.index(b" 404 "), True, "order")


def test_a_client_that_does_not_read_blocks_no_other_client():
    node.register(api.job("loud", "/bin/sh", ["-c", "while :; do echo 0123456789012345678901234567890123456789; done"]))
    alloc = node.wait_running("loud")[0]
    case.until(lambda: len(node.logs(alloc)) > 1 << 20, 20, "a megabyte of logs to be written")
    before = fds(node.processes()["supervisor"])
    slow = []
    for _ in range(5):
        s = node.connect()
        s.sendall(("GET /v1/client/fs/logs/%s?task=t&type=stdout&follow=true HTTP/1.1\r\nHost: x\r\n\r\n" %
                   alloc["ID"]).encode())
        slow.append(s)
    answers_at_once(node, "with 5 readers that do not read")
    for s in slow:
        s.close()
    node.purge("loud")
    case.until(lambda: fds(node.processes()["supervisor"]) <= before, 10, "the readers' descriptors to be closed")


def test_a_follower_that_disconnects_is_noticed_without_new_data():
    node.register(api.job("quiet"))
    alloc = node.wait_running("quiet")[0]
    before = fds(node.processes()["supervisor"])
    followers = []

    def follow():
        s = node.connect()
        s.sendall(("GET /v1/client/fs/logs/%s?task=t&type=stdout&plain=true&follow=true HTTP/1.1\r\nHost: x\r\n\r\n" %
                   alloc["ID"]).encode())
        s.settimeout(case.LEAST_S)
        followers.append(s)
        return s.recv(65536)
    for _ in range(80):
        case.contains(follow(), b"200 OK")
    case.contains(follow(), b" 503 ")  # the other connections are reserved for short requests
    answers_at_once(node, "with 80 followers")
    case.equal(fds(node.processes()["supervisor"]) > 80, True, "number of descriptors with followers")
    for s in followers:
        s.close()
    case.until(lambda: fds(node.processes()["supervisor"]) <= before, 10, "the connections of the followers to be closed")
    node.purge("quiet")


def test_many_clients_at_once_are_all_answered():
    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, max(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    for _ in range(5):
        held = [node.connect() for _ in range(1300)]
        for s in held:
            s.close()
        answers_at_once(node, "after a crowd")
    held = [node.connect() for _ in range(1200)]
    answers_at_once(node, "with as many as are taken, of which the one that is silent for longest makes room")
    for s in held:
        s.close()


def test_stopping_with_open_requests():
    s = node.connect()
    s.sendall(b"GET /v1/jo")
    case.equal(node.stop(), 0, "exit code")
    s.close()


with api.Node() as node:
    case.run(globals())
