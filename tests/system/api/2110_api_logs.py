#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""GET /v1/client/fs/logs: offsets, frames, following."""
import base64
import json
import os

from lib import api, case

TEXT = "".join("line %03d\n" % i for i in range(200)).encode()


def frames(body):
    decoder, found, text = json.JSONDecoder(), [], body.decode()
    while text:
        frame, end = decoder.raw_decode(text)
        found.append(frame)
        text = text[end:]
    return found


def data_of(frame):
    return base64.b64decode(frame.get("Data", ""))


def follow(alloc, **query):
    """Returns a socket positioned after the header of the answer."""
    words = {"task": "t", "type": "stdout", "plain": "true", "follow": "true", **query}
    s = node.connect()
    s.settimeout(case.LEAST_S)
    s.sendall(("GET /v1/client/fs/logs/%s?%s HTTP/1.0\r\n\r\n" %
               (alloc["ID"], "&".join("%s=%s" % w for w in words.items()))).encode())
    head = b""
    while b"\r\n\r\n" not in head:
        head += s.recv(1)
    case.contains(head, b" 200 ")
    return s


def read_until(s, part):
    seen = b""
    while part not in seen:
        more = s.recv(65536)
        case.equal(more != b"", True, "the stream ended after %r" % seen)
        seen += more
    return seen


def test_plain_logs_start_at_the_offset():
    case.equal(node.logs(alloc), TEXT)
    case.equal(node.logs(alloc, offset=9), TEXT[9:])
    case.equal(node.logs(alloc, offset=10**6), b"")
    case.equal(node.logs(alloc, origin="end", offset=9), TEXT[-9:])
    case.equal(node.logs(alloc, origin="end", offset=10**6), TEXT)
    case.equal(node.logs(alloc, kind="stderr"), b"")


def test_logs_are_sent_as_frames():
    found = frames(node.logs(alloc, plain="false"))
    case.equal(b"".join(data_of(f) for f in found), TEXT)
    case.equal(found[-1]["Offset"], len(TEXT))
    case.equal(found[0]["File"], "alloc/logs/t.stdout.0")


def test_a_log_is_followed():
    with follow(alloc, origin="end", offset=0) as s:
        with open(fifo, "w", encoding="ascii") as f:
            f.write("more\n")
        read_until(s, b"more\n")


def test_followers_get_heartbeat_frames_without_output():
    with follow(alloc, origin="end", offset=0, plain="false") as s:
        case.contains(read_until(s, b"{}"), b"{}")


def test_a_follower_ends_with_the_allocation():
    with follow(alloc) as s:
        node.purge("talk")
        while s.recv(65536):
            pass


def test_invalid_requests_are_refused():
    node.register(api.job("talk", "/bin/sleep", ["1000"]))
    other = node.wait_running("talk")[0]
    path = "/v1/client/fs/logs/%s?" % other["ID"]
    for words, part in (("type=stdout", "must provide task name"), ("task=t", "must provide log type"),
                        ("task=t&type=all", "must provide log type"), ("task=x&type=stdout", 'unknown task name "x"'),
                        ("task=..%2Ft&type=stdout", "unknown task name"), ("task=t&type=stdout&origin=middle", "origin"),
                        ("task=t&type=stdout&follow=maybe", "boolean"), ("task=t&type=stdout&plain=x", "boolean"),
                        ("task=t&type=stdout&offset=-1", "offset"), ("task=t&type=stdout&offset=x", "offset")):
        node.refused(400, part, "GET", path + words)
    node.refused(400, "alloc id", "GET", "/v1/client/fs/logs/x?task=t&type=stdout")
    node.refused(404, "Unknown allocation", "GET", "/v1/client/fs/logs/%s?task=t&type=stdout" % alloc["ID"])


with api.Node() as node:
    fifo = case.directory() + "/fifo"
    os.mkfifo(fifo)
    script = "i=0; while [ $i -lt 200 ]; do printf 'line %%03d\\n' $i; i=$((i+1)); done; while cat %s; do :; done" % fifo
    node.register(api.job("talk", "/bin/sh", ["-c", script]))
    alloc = node.wait_running("talk")[0]
    case.until(lambda: len(node.logs(alloc)) == len(TEXT), 10, "output of the task")
    case.run(globals())
