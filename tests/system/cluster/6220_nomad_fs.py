#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests of servers for files and logs of allocs: lists, and frames until the reader disconnects."""
import base64
import json
import os

from lib import agent, case
from lib.cluster import job, node_of, servers as cluster
from lib.nomad_server import Refusal

NOBODY = "99999999-9999-4999-8999-999999999999"
SCRIPT = "echo one; echo two >&2; while [ ! -e local/go ]; do sleep 0.1; done; echo more; sleep 1000"
BIG = os.urandom(1 << 20)


class Stream:
    def __init__(self, method, **request):
        if "." not in method:
            request.setdefault("AllocID", alloc)
            method = "FileSystem." + method
        self.id = servers.open_stream(me, method, request)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        servers.close_stream(self.id)

    def more(self, count=1, seconds=10):
        found = servers.read_stream(self.id, count, seconds)
        case.equal(found["late"], False, "no frame in time after %s" % found["frames"])
        return found

    def whole(self):
        """Returns all payloads until the stream ends."""
        payloads, ended = [], False
        while not ended:
            found = self.more(500)
            payloads += [f["Payload"] for f in found["frames"]]
            case.equal([f["Error"] for f in found["frames"] if f["Error"]], [], "errors")
            ended = found["end"]
        return [p if isinstance(p, bytes) else (p or "").encode() for p in payloads]

    def next(self, fits=lambda frame: frame):
        """Returns the next JSON frame of that kind; frames before it are dropped."""
        while True:
            payload = self.more()["frames"][0]["Payload"]
            frame = json.loads(payload)
            if fits(frame):
                return frame

    def error(self):
        """Returns (code, text) of the only frame, after which the stream ends."""
        found = self.more(2)
        case.equal((len(found["frames"]), found["end"]), (1, True), "frames %s" % found["frames"])
        return found["frames"][0]["Error"]["Code"], found["frames"][0]["Error"]["Message"]


def text(frame):
    return base64.b64decode(frame.get("Data", ""))


def ask(method, **request):
    request.setdefault("AllocID", alloc)
    return servers.call_node(me, "FileSystem." + method, request)


def test_directories_are_listed_and_files_have_their_attributes():
    found = {f["Name"]: f for f in ask("List", Path="t/local")["Files"]}
    case.equal(found["big"]["Size"], len(BIG))
    case.equal((found["big"]["FileMode"], found["big"]["IsDir"]), ("-rw-r--r--", False))
    case.equal([f["Name"] for f in ask("List", Path="/")["Files"]], ["alloc", "t"])
    info = ask("Stat", Path="t/local/big")["Info"]
    case.equal((info["Name"], info["Size"], info["ContentType"]), ("big", len(BIG), "application/octet-stream"))
    case.equal(ask("Stat", Path="t")["Info"]["IsDir"], True)
    for body, part in (({"Path": "t/local/x"}, "t/local/x: no such file or directory"), ({"Path": "../x"}, "escapes"),
                       ({"Path": "t/private/x"}, "prohibited"), ({"AllocID": NOBODY}, "Unknown allocation"),
                       ({"AllocID": "x"}, "must provide a valid alloc id")):
        for method in ("List", "Stat"):
            case.contains(str(case.raises(Refusal, ask, method, **body)), part, method)


def test_a_whole_file_is_read():
    for plain in (True, False):
        with Stream("Stream", Path="t/local/big", PlainText=plain, Origin="start") as s:
            payloads = s.whole()
            data = b"".join(payloads if plain else [text(json.loads(p)) for p in payloads])
            case.equal(data == BIG, True, "%d bytes in %d frames" % (len(data), len(payloads)))
    with Stream("Stream", Path="t/local/big", PlainText=True, Origin="end", Offset=1000, Limit=10) as s:
        case.equal(b"".join(s.whole()), BIG[-1000:-990])


def test_a_file_is_followed():
    path = "%s/alloc/%s/t/local/grows" % (node.data, alloc)
    with open(path, "wb") as f:
        f.write(b"one")
    with Stream("Stream", Path="t/local/grows", Follow=True) as s:
        frame = s.next()
        case.equal((text(frame), frame["File"], frame["Offset"]), (b"one", "t/local/grows", 3))
        with open(path, "ab") as f:
            f.write(b"two")
        frame = s.next()
        case.equal((text(frame), frame["Offset"]), (b"two", 6))
        case.equal(s.next(lambda frame: True), {}, "whether the frame is a heartbeat")
        os.truncate(path, 0)
        with open(path, "ab") as f:
            f.write(b"3")
        frame = s.next()
        case.equal(frame["FileEvent"], "file truncated")
        if not text(frame):  # the file was seen between the two changes
            frame = s.next()
        case.equal(text(frame), b"3")
        os.unlink(path)
        case.equal(s.next()["FileEvent"], "file deleted")
        case.equal(s.more()["end"], True, "the end of the stream")


def test_a_silent_plain_stream_sends_empty_payloads():
    with Stream("Logs", Task="t", LogType="stderr", Follow=True, PlainText=True) as s:
        payloads = [f["Payload"] or b"" for f in s.more(3)["frames"]]
        case.equal([bytes(p) for p in payloads], [b"two\n", b"", b""])


def test_a_log_is_followed():
    with Stream("Logs", Task="t", LogType="stdout", Follow=True, Origin="start") as s:
        frame = s.next()
        case.equal((text(frame), frame["File"], frame["Offset"]), (b"one\n", "alloc/logs/t.stdout.0", 4))
        with open("%s/alloc/%s/t/local/go" % (node.data, alloc), "wb"):
            pass
        case.equal(text(s.next()), b"more\n")
    with Stream("Logs", Task="t", LogType="stdout", Origin="end", Offset=5, PlainText=True) as s:
        case.equal(b"".join(s.whole()), b"more\n")


def test_invalid_requests_are_refused():
    for code, part, method, request in (
            (400, "must provide a valid alloc id", "Stream", {"AllocID": ""}),
            (400, "must provide a file path", "Stream", {}),
            (400, "origin must be start", "Stream", {"Path": "t", "Origin": "middle"}),
            (400, 'file "t" is a directory', "Stream", {"Path": "t"}),
            (400, "no such file or directory", "Stream", {"Path": "t/x"}),
            (400, "escapes", "Stream", {"Path": "../.."}),
            (400, "prohibited", "Stream", {"Path": "t/secrets/x"}),
            (404, "Unknown allocation", "Stream", {"AllocID": NOBODY, "Path": "t"}),
            (404, "Unknown allocation", "Logs", {"AllocID": NOBODY, "Task": "t", "LogType": "stdout"}),
            (400, "must provide task name", "Logs", {}),
            (400, "must provide log type", "Logs", {"Task": "t"}),
            (400, 'unknown task name "x"', "Logs", {"Task": "x", "LogType": "stdout"}),
            (400, "origin must be start", "Logs", {"Task": "t", "LogType": "stdout", "Origin": "x"})):
        with Stream(method, **request) as s:
            found = s.error()
            case.equal(found[0], code, found[1])
            case.contains(found[1], part)


def test_the_agents_own_log_is_followed():
    with Stream("Agent.Monitor", LogLevel="debug") as s, Stream("Agent.Monitor", LogLevel="warn", PlainText=True) as plain:
        s.next(lambda frame: frame == {})  # a heartbeat for a waiting reader
        pid = node.kill("exec-helper")
        wanted = ("exec-helper (pid %d) was killed by signal 9" % pid).encode()
        seen = b""
        while wanted not in seen or b"[DEBUG]" not in seen:
            frame = s.next()
            case.equal((set(frame), frame["FileEvent"]), ({"Data", "FileEvent"}, "log"))
            seen += text(frame)
        seen = b""
        while wanted not in seen:
            seen += plain.more()["frames"][0]["Payload"] or b""
        case.equal(b"[DEBUG]" in seen or b"[INFO]" in seen, False, "lines below the requested level")
    with Stream("Agent.Monitor", LogLevel="loud") as s:
        case.equal(s.error(), (400, 'Unknown log level "loud": use error, warn, info or debug'))


def test_readers_that_disconnect_use_no_resources():
    """Also readers that never read a byte."""
    supervisor = node.wait_process("supervisor")

    def held():
        return len([path for path in agent.descriptors(supervisor) if path.endswith(("/t/local/big", "/t.stdout.0"))])
    case.until(lambda: held() == 0, 10, "earlier readers to be removed")
    streams = [Stream("Stream", Path="t/local/big", Follow=True) for _ in range(20)]
    streams += [Stream("Logs", Task="t", LogType="stdout", Follow=True) for _ in range(20)]
    case.until(lambda: held() == 40, 10, "the streams to be open")
    for s in streams:
        servers.close_stream(s.id)
    case.until(lambda: held() == 0, 10, "the streams to be closed")


with cluster() as servers, node_of(servers) as node:
    me = servers.wait_node()["ID"]
    alloc = servers.run_job(job("a", "/bin/sh", ["-c", 'cd "$NOMAD_TASK_DIR/.."; ' + SCRIPT]), me)[0]
    servers.wait_alloc(alloc, ["running"])
    with open("%s/alloc/%s/t/local/big" % (node.data, alloc), "wb") as f:
        f.write(BIG)
    for said in ("stdout", "stderr"):
        log = "%s/logs/%s/t.%s.0" % (node.data, alloc, said)  # which the first output creates
        case.until(lambda: os.path.exists(log) and os.path.getsize(log) == 4, 10, "the output of the task")
    case.run(globals())
