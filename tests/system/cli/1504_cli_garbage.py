# SPDX-License-Identifier: Apache-2.0
"""drover with an agent that answers garbage, slowly, endlessly, or not at all: it prints one error message, exits with 1 and does not
hang."""
import json
import os
import random
import re
import time

from lib import case
from lib.fake_api import NODE, FakeApi, answer, chunked

GARBAGE = (
    (b"hello\r\n\r\n", "not HTTP"), (b"HTTP/2 200\r\n\r\n", "not HTTP"), (b"HTTP/1.1 99999 X\r\n\r\n", "no status"),
    (b"HTTP/1.1 2x0 X\r\n\r\n", "no status"), (b"\x16\x03\x01\x02\x00\r\n", "not HTTP"), (b"\0" * 100 + b"\n", "NUL"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", "Content-Length"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n", "Content-Length"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n[]", "Content-Length"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "Transfer-Encoding"),
    (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n", "header"), (b"HTTP/1.1 200 OK\r\n: x\r\n\r\n", "header"),
    (b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 5000 + b"\r\n", "too many headers"),
    (b"HTTP/1.1 200 OK\r\nA: " + b"b" * 100000, "too long"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "chunk"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n", "chunk"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n", "chunk"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]x\r\n", "longer"),
    (answer(200, b"<html>"), "not JSON"), (answer(200, b"[1,"), "not JSON"), (answer(200, b"\xff\xfe"), "not JSON"),
    (answer(200, b"[" * 100000), "not JSON"),
)
WELL = (
    answer(200, b"[]"), chunked([b"[", b"]"]), b"HTTP/1.0 200 OK\n\n[]", b"HTTP/1.1 200 OK\r\n\r\n[]",
    b"HTTP/1.1 100 Continue\r\n\r\n" + answer(200, b"[]"), b"HTTP/1.1 200\r\ncontent-LENGTH:   2  \r\n\r\n[] and more",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n2;ext=1\r\n[]\r\n0\r\nTrailer: x\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n[]", answer(200, b""),
    answer(200, b"[]") + b"x",
)


def test_garbage_gives_one_error_message():
    with FakeApi() as api:
        for data, part in GARBAGE:
            api.raw("GET", "/v1/jobs", data)
            r = api.drover("job", "status")
            case.equal((r.code, r.out), (1, ""), data[:60])
            case.contains(r.err, part, data[:60])
            case.equal(r.err.count("\n"), 1, r.err)


def test_all_valid_forms_of_an_http_answer_are_read():
    with FakeApi() as api:
        for data in WELL:
            api.raw("GET", "/v1/jobs", data)
            r = api.drover("job", "status")
            case.equal((r.code, r.out, r.err), (0, "No jobs\n", ""), data)

            def byte_by_byte(request, conn, data=data):
                for i in range(len(data)):
                    conn.sendall(data[i:i + 1])
            api.route("GET", "/v1/jobs", byte_by_byte)
            case.equal(api.drover("job", "status").out, "No jobs\n", data)


def test_json_of_unexpected_types_prints_an_empty_page():
    shapes = (5, None, "x", True, [], {}, [[]], [None], [5], {"ID": []}, [{"ID": {"a": 1}, "Status": 5, "SubmitTime": "soon"}],
              [{"ID": "x", "TaskStates": [], "Events": 7, "DrainStrategy": 1, "Drivers": {"x": 0}}],
              {"TaskGroups": {"x": 1}, "TaskStates": {"t": 5, "u": {"Events": [5, {"Time": "x"}]}}, "CreateTime": -2**63},
              {"WriteAllocs": [1], "ReadAllocs": {"x": 1}, "Allocations": [1, "x"], "Capacity": -2**63},
              {"NodeResources": {"Memory": {"MemoryMB": 2**63 - 1}}, "StatusUpdatedAt": 2**62, "Events": [{"Timestamp": 9}]},
              {"check": {"Timestamp": 2**62}, "Snapshots": [{"CreateTime": 2**62}], "Uptime": 2**62, "Memory": {"Total": 1e300},
               "TaskGroups": [{"Count": 2**62}] * 2, "SubmitTime": "9999-12-31T23:59:59Z", "CurrentReaders": 2**62,
               "CurrentWriters": 2**62, "FailedTGAllocs": {"g": {"CoalescedFailures": 2**63 - 1}}})
    pages = (["job", "status"], ["job", "status", "web"], ["alloc", "status"], ["alloc", "status", NODE], ["node", "status"],
             ["node", "status", NODE], ["volume", "status"], ["plugin", "status"], ["leaks"], ["status"],
             ["volume", "status", "web"], ["plugin", "status", "web"], ["alloc", "logs", NODE], ["job", "stop", "web"],
             ["alloc", "stop", "-detach", NODE], ["alloc", "checks", NODE], ["alloc", "why", NODE], ["alloc", "why", "web"],
             ["node", "status", "-stats", NODE], ["volume", "snapshot", "list"], ["eval", "status", NODE])
    with FakeApi() as api:
        for shape in shapes:
            body = answer(200, json.dumps(shape).encode())
            for method in ("GET", "DELETE", "PUT"):
                api.route(method, "/v1/.*", lambda request, conn, body=body: body)
            for path in ("jobs", "volumes", "plugins"):
                api.json("GET", "/v1/" + path, [{"ID": "web"}, shape])
            for words in pages:
                r = api.drover(*words)
                case.equal((r.code in (0, 1, 2), "runtime error" in r.err), (True, False), "%r %r: %r" % (words, shape, r.err))


EVIL = "a\x1b]0;x\x07\x9b31m\x7f\nb"
NO_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def evil(depth=0):
    """Returns an answer that fits many commands; every string in it, also the keys, contains terminal escapes."""
    texts = {k: EVIL for k in (
        "Name", "Status", "StatusDescription", "ClientStatus", "ClientDescription", "DesiredStatus", "DesiredDescription", "Type",
        "NodeName", "TaskGroup", "Namespace", "Version", "Provider", "PluginID", "ExternalID", "SchedulingEligibility", "Datacenter",
        "NodePool", "NodeClass", "DisplayMessage", "Message", "Output", "Check", "Service", "ServiceName", "Old", "New", "Error",
        "Warnings", "TriggeredBy", "Description", "Kind", "What", "Path", "Why", "JobID", "State", "AccessMode")}
    if depth > 1:
        return texts
    inner = evil(depth + 1)
    return {**texts, "ID": NODE, "EvalID": NODE, "NodeID": NODE, "AllocID": NODE, "Priority": 1, "TaskStates": {EVIL: {**inner, "Events": [inner]}},
            "TaskGroups": [inner], "Tasks": [inner], "Fields": [inner], "Objects": [inner], "Diff": {**inner, "ID": EVIL, "Type": "Edited"} if depth < 2 else None,
            "Updates": {EVIL: 1}, "Annotations": {"DesiredTGUpdates": {EVIL: {"Place": 1}}}, "Tags": [EVIL], "Services": [inner],
            "FailedTGAllocs": {EVIL: {"ConstraintFiltered": {EVIL: 1}, "DimensionExhausted": {EVIL: 1}}}, "Causes": [inner], "causes": [inner],
            "Drivers": {EVIL: {"Detected": True, "HealthDescription": EVIL}}, "Attributes": {EVIL: EVIL}, "Meta": {EVIL: EVIL},
            "Events": [inner], "JobSummary": {"Summary": {EVIL: {"Running": 1}}}, "Summary": {EVIL: {"Running": 1}},
            "WriteAllocs": {NODE: None}, "Allocations": [inner], "Nodes": {EVIL: inner}, "Controllers": {EVIL: inner},
            "stats": {"processes": {EVIL: EVIL}}, "config": {"Version": {"Version": EVIL}}, "Volumes": [inner], "Snapshots": [inner]}


def test_no_command_prints_terminal_escapes_from_an_answer():
    """Names and messages come from jobs, plugins and services, not from the user who reads them."""
    pages = (["job", "status"], ["job", "status", "a"], ["alloc", "status"], ["alloc", "status", NODE], ["node", "status"],
             ["node", "status", NODE], ["node", "status", "-self", "-verbose"], ["volume", "status"], ["volume", "status", "a"],
             ["plugin", "status"], ["plugin", "status", "a"], ["leaks"], ["status"], ["status", "-verbose"], ["eval", "status", NODE],
             ["eval", "list"], ["alloc", "why", NODE], ["alloc", "checks", NODE], ["alloc", "fs", NODE], ["service", "list"],
             ["service", "info", "a"], ["deployment", "list"], ["deployment", "status", NODE], ["job", "plan", "-"], ["job", "validate", "-"],
             ["job", "run", "-detach", "-"], ["job", "history", "a"], ["alloc", "logs", NODE], ["alloc", "exec", NODE, "sh"],
             ["alloc", "status", "6"], ["volume", "snapshot", "list"], ["node", "meta", "read"], ["alloc", "restart", NODE, "none"])
    one = evil()
    with FakeApi() as api:
        for body in (one, [one, one], {"Error": EVIL, "Message": EVIL}):
            whole = answer(200, json.dumps(body).encode())
            for method in ("GET", "PUT", "POST", "DELETE"):
                api.route(method, "/v1/.*", lambda request, conn, whole=whole: whole)
            for path in ("jobs", "volumes", "plugins", "allocations", "nodes"):
                api.json("GET", "/v1/" + path, [one, {**one, "ID": "6" + NODE[1:]}])
            for words in pages:
                r = api.drover(*words, stdin=b'{"Job": {"ID": "a"}}')
                found = NO_CONTROL.search(r.out + r.err)
                case.equal(found, None, "%r: %r" % (words, r.out + r.err))
        api.route("GET", "/v1/.*", lambda request, conn: answer(500, EVIL.encode(), "text/plain"))
        for words in pages:
            r = api.drover(*words, stdin=b'{"Job": {"ID": "a"}}')
            case.equal(NO_CONTROL.search(r.out + r.err), None, "%r: %r" % (words, r.out + r.err))


def test_truncated_answers_are_errors():
    whole = answer(200, b"[1, 2, 3]")
    with FakeApi() as api:
        for n in (0, 1, 20, len(whole) - 1):
            api.raw("GET", "/v1/jobs", whole[:n])
            r = api.drover("job", "status")
            case.equal((r.code, r.out), (1, ""))
            case.contains(r.err, "without an answer" if n == 0 else "cut off")


def test_slow_and_silent_agents_are_abandoned_at_the_timeout():
    def silent(request, conn):
        conn.recv(1)

    def drip(request, conn):
        conn.sendall(b"HTTP/1.1 200 OK\r\n\r\n[")
        while True:
            conn.sendall(b" ")
            time.sleep(0.01)

    with FakeApi() as api:
        for fn in (silent, drip):
            api.route("GET", "/v1/jobs", fn)
            began = time.monotonic()
            r = api.drover("job", "status", "-timeout", "300ms")
            case.equal((r.code, r.out), (1, ""))
            case.contains(r.err, "in time")
            case.equal(0.25 < time.monotonic() - began, True)


def test_an_endless_answer_is_refused_at_a_size_limit():
    piece = b"x" * (1 << 20)

    def endless(request, conn):
        conn.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            conn.sendall(piece)

    with FakeApi() as api:
        api.route("GET", "/v1/jobs", endless)
        r = api.drover("job", "status")
        case.equal((r.code, r.out), (1, ""))
        case.contains(r.err, "larger than")


def test_answers_with_random_changes_neither_crash_nor_hang():
    """Valid answers with changed bytes may give any result except a hang or death by a signal."""
    seed = int(os.environ.get("DROVER_SEED", "1"))
    rng = random.Random(seed)
    print("    seed %d" % seed)
    with FakeApi() as api:
        for _ in range(60):
            data = bytearray(rng.choice(WELL[:6] + (answer(200, b'[{"ID": "web", "Status": "running"}]'),)))
            for _ in range(rng.randrange(1, 6)):
                at = rng.randrange(len(data))
                data[at:at + rng.randrange(3)] = bytes(rng.randrange(256) for _ in range(rng.randrange(3)))
            api.raw("GET", "/v1/jobs", bytes(data))
            r = api.drover("job", "status", "-timeout", "30s")
            case.equal(r.code in (0, 1), True, bytes(data))
            case.equal(bool(r.code), bool(r.err), bytes(data))


case.run(globals())
