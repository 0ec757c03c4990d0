# SPDX-License-Identifier: Apache-2.0
"""drover alloc logs: whole logs, the last lines, following, and interrupted connections."""
import contextlib
import threading

from lib import case
from lib.fake_api import FakeApi, alloc, answer, chunked, finish, read_until

A1 = "aaaa1111-0000-4000-8000-000000000001"


class Logs:
    """Two growing logs, served as the agent does with plain=true."""

    def __init__(self, api, tasks=("main",)):
        self.data = {"stdout": b"", "stderr": b""}
        self.grown, self.cut, self.ended = threading.Condition(), 0, False
        made = alloc(A1)
        made["AllocatedResources"]["Tasks"] = {t: {} for t in tasks}
        self.alloc = made
        api.json("GET", "/v1/allocation/" + A1, lambda request: self.alloc)
        api.json("GET", "/v1/allocations", [made])
        api.route("GET", "/v1/client/fs/logs/" + A1, self.serve)
        self.api, self.followers = api, 0

    def write(self, data, stream="stdout"):
        with self.grown:
            self.data[stream] += data
            self.grown.notify_all()

    def end(self):
        with self.grown:
            self.ended = True
            self.grown.notify_all()

    def cut_all(self):
        """Closes every connection in the middle of its answer."""
        with self.grown:
            self.cut += 1
            self.grown.notify_all()

    def serve(self, request, conn):
        q = request.query
        case.equal((q["plain"], q["type"] in self.data), ("true", True))
        whole, offset = self.data[q["type"]], int(q["offset"])
        at = max(0, len(whole) - offset) if q["origin"] == "end" else min(offset, len(whole))
        if q["follow"] != "true":
            return chunked([whole[at:][i:i + 1000] for i in range(0, len(whole[at:]), 1000)])
        conn.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        with self.grown:
            cut = self.cut
            self.followers += 1
            self.grown.notify_all()
            while not self.ended and cut == self.cut:
                piece = self.data[q["type"]][at:]
                if piece:
                    conn.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
                    at += len(piece)
                self.grown.wait(20)
            if cut == self.cut:
                piece = self.data[q["type"]][at:]
                conn.sendall((b"%x\r\n%s\r\n" % (len(piece), piece) if piece else b"") + b"0\r\n\r\n")
        return None

    def wait_followers(self, n):
        with self.grown:
            case.equal(self.grown.wait_for(lambda: self.followers >= n, case.LEAST_S), True, "%d followers" % n)


LINES = b"".join(b"line %d %s\n" % (i, b"x" * (i % 300)) for i in range(1000))


def last(n, data=LINES):
    return b"".join(data.splitlines(True)[-n:]).decode()


def test_whole_logs_byte_for_byte():
    with FakeApi() as api:
        logs = Logs(api)
        logs.data = {"stdout": bytes(range(128)) + LINES, "stderr": b"error\n"}
        case.equal(api.drover("alloc", "logs", "aaaa").out, logs.data["stdout"].decode())
        case.equal(api.drover("alloc", "logs", "-stdout", A1, "main").out, logs.data["stdout"].decode())
        case.equal(api.drover("alloc", "logs", "-stderr", A1).out, "error\n")
        r = api.drover("alloc", "logs", "-stderr", "-stdout", A1)
        case.equal((r.out.encode(), r.err), (logs.data["stdout"], "error\n"))
        logs.data["stdout"] = b""
        r = api.drover("alloc", "logs", A1)
        case.equal((r.code, r.out, r.err), (0, "", ""))


def test_exactly_the_requested_last_lines_are_printed():
    with FakeApi() as api:
        logs = Logs(api)
        logs.write(LINES)
        for n in (0, 1, 2, 10, 500, 999, 1000, 2000):
            case.equal(api.drover("alloc", "logs", "-n", str(n), A1).out, last(n) if n else "", n)
        api.requests.clear()
        case.equal(api.drover("alloc", "logs", "-tail", A1).out, last(10))
        case.equal(len(api.asked("GET", "/v1/client/fs/logs/" + A1)) <= 2, True, "whether it requests only the end of the log")
        case.equal(api.drover("alloc", "logs", "-c", "20", A1).out, LINES[-20:].decode())
        logs.write(b"no newline")
        case.equal(api.drover("alloc", "logs", "-n", "2", A1).out, last(2, LINES + b"no newline"))
        logs.data["stdout"] = b"\n" * 50
        case.equal(api.drover("alloc", "logs", "-n", "3", A1).out, "\n\n\n")
        logs.data["stdout"] = b"y" * 5000
        case.equal(api.drover("alloc", "logs", "-n", "1", A1).out, "y" * 5000)


def test_follow_prints_immediately_and_ends_with_the_log():
    with FakeApi() as api:
        logs = Logs(api)
        logs.write(b"one\n")
        process = api.start("alloc", "logs", "-f", A1)
        case.equal(read_until(process, b"one\n"), b"one\n")
        logs.write(b"two\n")
        case.equal(read_until(process, b"two\n"), b"two\n")
        logs.write(b"three\n")
        logs.end()
        r = finish(process)
        case.equal((r.code, r.out, r.err), (0, "three\n", ""))


@contextlib.contextmanager
def following():
    """A command that follows both streams, which are empty."""
    with FakeApi() as api:
        logs = Logs(api)
        process = api.start("alloc", "logs", "-f", A1)
        logs.wait_followers(2)
        yield api, logs, process


def test_follow_ends_with_the_allocation_and_loses_nothing():
    with following() as (api, logs, process):
        logs.write(b"one\n")
        read_until(process, b"one\n")
        # A restart of the task does not end the command.
        logs.alloc["ClientStatus"] = "pending"
        seen = len(api.asked("GET", "/v1/allocation/" + A1))
        case.until(lambda: len(api.asked("GET", "/v1/allocation/" + A1)) >= seen + 2, 10, "the command to check the allocation again")
        case.equal(process.poll(), None)
        # As with an executor: the output is in the log before the end of the task is reported.
        logs.write(b"last\n")
        logs.write(b"words\n", "stderr")
        logs.alloc["ClientStatus"] = "failed"
        r = finish(process)
        case.equal((r.code, r.out, r.err), (0, "last\n", "words\n"))


def test_follow_without_a_stream_flag_prints_both_streams():
    with following() as (api, logs, process):
        logs.write(b"out\n")
        logs.write(b"err\n", "stderr")
        read_until(process, b"out\n")
        logs.end()
        r = finish(process)
        case.equal((r.code, r.err), (0, "err\n"))


def test_follow_starts_with_the_last_lines():
    for n in (0, 3, 999, 2000):
        with FakeApi() as api:
            logs = Logs(api)
            logs.write(LINES)
            process = api.start("alloc", "logs", "-f", "-stdout", "-n", str(n), A1)
            logs.wait_followers(1)
            logs.write(b"new\n")
            seen = read_until(process, b"new\n")
            case.equal(seen.decode(), (last(n) if n else "") + "new\n", n)
            logs.end()
            case.equal(finish(process).code, 0)


def test_an_interrupted_connection_loses_and_repeats_nothing():
    with FakeApi() as api:
        logs = Logs(api)
        logs.write(b"one\n")
        process = api.start("alloc", "logs", "-f", "-stdout", A1)
        read_until(process, b"one\n")
        for i in range(3):
            logs.cut_all()
            logs.write(b"more %d\n" % i)
            case.equal(read_until(process, b"more %d\n" % i), b"more %d\n" % i)
        # The agent is stopped for a while: nothing listens.
        api.close()
        logs.cut_all()
        logs.write(b"while away\n")
        api.listen()
        case.equal(read_until(process, b"away\n"), b"while away\n")
        logs.end()
        r = finish(process)
        case.equal((r.code, r.out, r.err), (0, "", ""))


def test_an_interruption_after_the_last_lines_continues_at_the_same_offset():
    """If the command read the whole log to find the last lines, it knows its offset. Otherwise it warns that lines may be missing."""
    for lines, exact in ((LINES[:LINES.index(b"line 20 ")], True), (LINES, False)):
        with FakeApi() as api:
            logs = Logs(api)
            logs.write(lines)
            process = api.start("alloc", "logs", "-f", "-stdout", "-n", "30" if exact else "3", A1)
            logs.wait_followers(1)
            logs.write(b"before\n")
            read_until(process, b"before\n")
            logs.cut_all()
            logs.wait_followers(2)
            logs.write(b"after\n")
            case.equal(read_until(process, b"after\n"), b"after\n")
            logs.end()
            r = finish(process)
            case.equal((r.code, r.out, "lines may be missing" in r.err), (0, "", not exact))
    with FakeApi() as api:
        logs = Logs(api)
        logs.write(b"1\n2\n3\n4\n")
        process = api.start("alloc", "logs", "-f", "-stdout", "-n", "2", A1)
        case.equal(read_until(process, b"4\n"), b"3\n4\n")
        logs.cut_all()
        logs.write(b"5\n")
        case.equal(read_until(process, b"5\n"), b"5\n")
        logs.end()
        case.equal(finish(process).out, "")


def test_the_task_must_be_named_if_there_are_several():
    with FakeApi() as api:
        logs = Logs(api, ("web", "side"))
        logs.write(b"x\n")
        r = api.drover("alloc", "logs", A1)
        case.equal(r.code, 1)
        case.contains(r.err, "has 2 tasks; name one of them: web side")
        for words in (["-task", "web", A1], [A1, "web"], [A1, "-task=web"], ["-task", "web", A1, "web"]):
            case.equal(api.drover("alloc", "logs", *words).out, "x\n")
            case.equal(api.requests[-1].query["task"], "web")
        case.contains(api.drover("alloc", "logs", "-task", "web", A1, "side").err, "two different tasks are named")


def test_errors_are_printed_on_stderr():
    with FakeApi() as api:
        Logs(api)
        for status, text in ((404, 'task "main" not started yet. No logs available'), (400, 'unknown task name "main"'),
                             (500, "disk on fire")):
            api.text("GET", "/v1/client/fs/logs/" + A1, status, text)
            for words in ([], ["-f"], ["-tail"], ["-f", "-tail"]):
                r = api.drover("alloc", "logs", *words, A1)
                case.equal((r.code, r.out, r.err), (1, "", "drover: " + text + "\n"), words)
        api.raw("GET", "/v1/client/fs/logs/" + A1, answer(200, b"abc")[:-1])
        r = api.drover("alloc", "logs", A1)
        case.equal((r.code, r.out), (1, "ab"))
        case.contains(r.err, "cut off")


case.run(globals())
