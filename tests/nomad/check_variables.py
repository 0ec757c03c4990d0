#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Variables of an agent that works alone, and of one with real servers, beside those of the servers themselves: the same requests get the
same statuses and answers, except for the differences that are listed here and in docs/supported.md; and the official command works at
agents' sockets. For `make check-nomad NOMAD=path`.

    tests/nomad/isolated.py tests/nomad/check_variables.py PATH [test_…]…"""
import contextlib
import http.client
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import api, case  # noqa: E402
from lib.cluster import node_of  # noqa: E402
from real import BINARY, Server, older_than, tcp_door  # noqa: E402

LOCKS = not older_than(1, 7)
V = {"Items": {"k": "v"}}


def lock(lock_id=None, **more):
    return dict({"Lock": {"ID": lock_id}} if lock_id else {}, **more)


# Method, path and body. "@a/b" stands for the index of that variable, or in a body for the id of its lock.
CASES = [
    ("PUT", "t/a", V), ("PUT", "t/a", {"Items": {}}), ("PUT", "t/a", {}), ("PUT", "t/a", b""), ("PUT", "t/a", b"{"), ("PUT", "t/a", b"[]"),
    ("PUT", "t/a", {"Items": {"k": 5}}), ("PUT", "t/a", {"Items": {"k": None}}), ("PUT", "t/a", {"Items": ["k"]}),
    ("PUT", "t/a", dict(V, Bogus=3)), ("PUT", "t/a", {"items": {"k": "v"}}), ("PUT", "t/a", {"Items": {"": "v", "e": ""}}),
    ("PUT", "t/a", dict(V, Path="other")), ("PUT", "t/a", dict(V, Namespace="dev")), ("PUT", "t/b?namespace=dev", V),
    ("PUT", "t/b?namespace=dev", dict(V, Namespace="default")), ("PUT", "t/b?namespace=*", V), ("PUT", "t/c", {"Items": {"k": "x" * 65535}}),
    ("PUT", "t/c", {"Items": {"kk": "x" * 65535}}), ("GET", "t/a", None), ("GET", "t/a?namespace=dev", None), ("GET", "t/a?namespace=*", None),
    ("GET", "t/nope", None), ("GET", "t/nope?namespace=none", None), ("GET", "/v1/vars", None), ("GET", "/v1/vars?prefix=t", None),
    ("GET", "/v1/vars?prefix=t&namespace=dev", None), ("GET", "/v1/vars?prefix=t&namespace=*", None), ("GET", "/v1/vars?namespace=none", None),
    ("GET", "/v1/vars?prefix=z", None), ("GET", "/v1/vars?namespace=*&per_page=2", None),
    ("GET", "/v1/vars?namespace=*&per_page=2&next_token=default.t/c", None), ("GET", "/v1/vars?per_page=x", None),
    ("GET", "/v1/vars?filter=VariableMetadata.Path==%22t/a%22", None), ("GET", "/v1/vars?filter=Items.k==%22v%22", None), ("PUT", "/v1/vars", {}),
    ("DELETE", "/v1/vars", None),
    *[("PUT", path, V) for path in (
        "nomad", "nomad/x", "nomad/jobs", "nomad/jobs/a/b/c/d", "nomad/job-templates", "nomad/job-templates/", "nomad/job-templates/x",
        "nomad/job-templates/x/y", "nomadic/x", "a.b", "a%20b", "a@b", "~_-9", "p%2Fq", "trail/", "a" * 128, "a" * 129, "a/" * 63 + "bb")],
    ("GET", "a/" * 63 + "bb", None),
    ("PUT", "t/d?cas=0", V), ("PUT", "t/d?cas=0", V), ("PUT", "t/d?cas=1", V), ("PUT", "t/d?cas=@t/d", {"Items": {"k": "w"}}),
    ("PUT", "t/d?cas=x", V), ("PUT", "t/d?cas=-1", V), ("PUT", "t/d?cas=", V), ("PUT", "t/none?cas=77", V),
    ("DELETE", "t/d?cas=1", None), ("DELETE", "t/d?cas=0", None), ("DELETE", "t/d?cas=@t/d", None), ("DELETE", "t/d?cas=0", None),
    ("DELETE", "t/d?cas=5", None), ("DELETE", "t/d", None), ("DELETE", "t/d?cas=x", None), ("DELETE", "t/d?namespace=none", None)]
LOCK_CASES = [
    ("PUT", "l/a?lock-acquire", {}), ("PUT", "l/a?lock-acquire", {}), ("GET", "l/a", None), ("GET", "/v1/vars?prefix=l", None), ("PUT", "l/a", V),
    ("PUT", "l/a", lock("@l/a", **V)), ("PUT", "l/a", {"Lock": {"ID": "@l/a", "TTL": "20s"}, **V}), ("PUT", "l/a", lock("wrong", **V)),
    ("PUT", "l/a?cas=1", lock("@l/a", **V)), ("DELETE", "l/a", None), ("DELETE", "l/a?cas=@l/a", None), ("PUT", "l/a?lock-renew", lock("@l/a")),
    ("PUT", "l/a?lock-release", lock("wrong")), ("PUT", "l/a?lock-release", {}), ("PUT", "l/a?lock-release", lock("@l/a", Items={})),
    ("PUT", "l/a?lock-release", lock("@l/a", **V)), ("PUT", "l/a?lock-release", lock("@l/a")), ("GET", "l/a", None),
    ("PUT", "l/b?lock-acquire", {"Lock": {"TTL": "10s", "LockDelay": "1m30s"}, **V}), ("PUT", "l/b?lock-acquire", {"Lock": {"ID": "@l/b", "TTL": "30s"}, **V}),
    ("PUT", "l/c?lock-acquire", {"Lock": {"TTL": 15000000000, "LockDelay": 0}}), ("PUT", "l/d?lock-acquire", {"Lock": {"TTL": "9s"}}),
    ("PUT", "l/d?lock-acquire", {"Lock": {"TTL": "25h"}}), ("PUT", "l/d?lock-acquire", {"Lock": {"TTL": "-15s"}}),
    ("PUT", "l/d?lock-acquire", {"Lock": {"LockDelay": "-15s"}}), ("PUT", "l/d?lock-acquire", {"Lock": {"TTL": "bogus"}}),
    ("PUT", "l.d?lock-acquire", {}), ("PUT", "l/d?lock-acquire&cas=1", {}), ("PUT", "l/d?lock-acquire&lock-release", {}),
    ("PUT", "l/d?lock-acquire=1", {}), ("PUT", "l/f", {"Lock": {"TTL": "15s"}, **V}), ("PUT", "l/none?lock-renew", lock("x")),
    ("PUT", "t/a?lock-renew", lock("x"))]
# Where an agent alone differs: both statuses, or None if only the answers differ.
DIFFER = [
    (("PUT", "n/a?namespace=none", V), (200, 400)),
    (("GET", "/v1/vars?filter=Path==%22t/a%22", None), (400, 200)),
    (("GET", "/v1/vars?namespace=*&reverse=true", None), None),
    (("DELETE", "/v1/namespace/dev", None), (500, 409))]
LOCKS_DIFFER = [
    (("PUT", "l/a?lock-renew", {}), (500, 400)),
    (("PUT", "l/a?lock-release", lock("x")), (500, 409)),
    (("PUT", "l/none?lock-release", lock("x")), (500, 404)),
    (("PUT", "l/a", lock("old", **V)), (200, 409)),
    (("PUT", "l/keep", V), None), (("PUT", "l/keep?lock-acquire", {}), None), (("GET", "l/keep", None), None)]
COUNTED = ("CreateIndex", "ModifyIndex", "CreateTime", "ModifyTime", "ID")


def plain(value):
    """Returns it without indexes, times and ids, and without what the servers' versions show differently when it is empty."""
    if isinstance(value, dict):
        return {k: "#" if k in COUNTED and v not in (0, "") else plain(v) for k, v in value.items() if not (k in ("Items", "Lock") and not v)}
    if isinstance(value, list):
        return [plain(v) for v in value]
    return value


class Door:
    """Requests of one kind: to the servers, or to an agent."""

    def __init__(self, connect):
        self.connect = connect

    def request(self, method, path, body=None):
        c = self.connect()
        try:
            path = path if path.startswith("/v1/") else "/v1/var/" + path
            c.request(method, path, body if body is None or isinstance(body, bytes) else json.dumps(body).encode())
            answer = c.getresponse()
            return answer.status, answer.read().decode(), answer.headers["X-Nomad-NextToken"]
        finally:
            c.close()

    def variable(self, path):
        status, text, _ = self.request("GET", path)
        return json.loads(text) if status == 200 else {"ModifyIndex": 5}

    def answer(self, method, path, body):
        """Returns status, answer and the token of the next page; of an error only its status."""
        path = re.sub("@([a-z/]+)$", lambda m: str(self.variable(m.group(1))["ModifyIndex"]), path) if "=@" in path else path
        if isinstance(body, dict):
            body = json.loads(re.sub('"@([a-z/]+)"', lambda m: '"%s"' % self.variable(m.group(1)).get("Lock", {}).get("ID"), json.dumps(body)))
        status, text, token = self.request(method, path, body)
        return (status, plain(json.loads(text)) if text[:1] in "{[" and text else None, token)


def of_server():
    return Door(lambda: http.client.HTTPConnection(server.ip, server.ports[0], timeout=case.LEAST_S))


def of_node(node):
    return Door(lambda: api.Connection(node, case.LEAST_S))


def clear():
    door = of_server()
    for v in json.loads(door.request("GET", "/v1/vars?namespace=*")[1]):
        if LOCKS and v.get("Lock"):
            door.request("PUT", v["Path"] + "?lock-release&namespace=" + v["Namespace"], lock(v["Lock"]["ID"]))
        door.request("DELETE", "%s?namespace=%s" % (v["Path"], v["Namespace"]))
    case.equal(door.request("GET", "/v1/vars?namespace=*")[1], "[]")
    # A server that has just started has no key yet.
    case.until(lambda: door.request("PUT", "first", V)[0] == 200, 60, "a key of the servers")
    door.request("DELETE", "first")


def compare(cases, servers, other):
    """Returns what differs. Servers of 1.6 call a request that they refuse a failure of their own, and ignore a page size that is no number."""
    found = []
    for method, path, body in cases:
        a, b = servers.answer(method, path, body), other.answer(method, path, body)
        if not LOCKS and (a[0], b[0]) == (500, 400):
            continue
        if a != b:
            found.append("%s %s %s:\n  %s\n  %s" % (method, path[:90], str(body)[:90], str(a)[:300], str(b)[:300]))
    return found


def test_an_agent_alone_answers_as_the_servers():
    clear()
    with api.Node() as node:
        servers, alone = of_server(), of_node(node)
        for door in (servers, alone):
            case.equal(door.request("PUT", "/v1/namespace", {"Name": "dev"})[0], 200)
        cases = CASES + LOCK_CASES if LOCKS else [c for c in CASES if "per_page=x" not in c[1]]
        found = compare(cases, servers, alone)
        print("    %d of %d answers are the same" % (len(cases) - len(found), len(cases)))
        case.equal(found, [], "answers that differ:\n" + "\n".join(found))
        for (method, path, body), statuses in DIFFER + (LOCKS_DIFFER if LOCKS else []):
            a, b = servers.answer(method, path, body), alone.answer(method, path, body)
            case.equal((a[0], b[0]), statuses or (200, 200), "a known difference: %s %s: %s, %s" % (method, path, a, b))


def test_an_agent_with_servers_answers_as_they_do():
    with node_of(server) as node:
        server.wait_ready()
        # A page size that is no number is ignored by an agent with servers.
        direct, cases = [], [c for c in CASES + (LOCK_CASES if LOCKS else []) if "per_page=x" not in c[1]]
        for door in (of_server(), of_node(node)):
            clear()
            door.request("PUT", "/v1/namespace", {"Name": "dev"})
            direct.append([door.answer(*c) for c in cases])
            clear()
        found = ["%s:\n  %s\n  %s" % (str(c)[:120], str(a)[:300], str(b)[:300])
                 for c, a, b in zip(cases, *direct) if a != b]
        case.equal(found, [], "answers that differ:\n" + "\n".join(found))


def run(program, addresses, *words, code=0):
    """Runs a command with the address that is its own. Returns what it prints."""
    done = subprocess.run([program, "var", *words], env={"PATH": os.environ["PATH"], "NOMAD_ADDR": addresses[program]}, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=2 * case.LEAST_S, check=False)
    case.equal(done.returncode, code, "%s var %s: %s%s" % (program, " ".join(words), done.stdout, done.stderr))
    return done.stdout


def test_both_commands_work_at_both():
    clear()
    drover = os.path.join(os.environ["DROVER_BUILD"], "drover")
    with api.Node() as alone, node_of(server) as node, contextlib.ExitStack() as doors:
        server.wait_ready()
        for agent in (alone, node):
            socket, seen = "unix://" + agent.socket_path, []
            # The command of 1.6 knows no sockets.
            addresses = {drover: socket, BINARY: socket if LOCKS else doors.enter_context(tcp_door(agent))}
            for program in (BINARY, drover):
                run(program, addresses, "put", "-force", "app/db", "user=me", "password=p w")
                found = json.loads(run(program, addresses, "get", "app/db"))
                seen.append((plain(found), run(program, addresses, "get", "-item=password", "app/db"),
                             plain(json.loads(run(program, addresses, "list"))), run(program, addresses, "list", "-out=terse", "app/").split()))
                run(program, addresses, "put", "app/db", "user=other", code=1)
                run(program, addresses, "put", "-check-index=%d" % found["ModifyIndex"], "app/db", "user=other")
                text = case.write(alone.base + "/v.hcl", run(program, addresses, "get", "-out=hcl", "app/db"))
                for reader in (BINARY, drover):
                    run(reader, addresses, "put", "-force", "copy", "@" + text)
                    case.equal(json.loads(run(reader, addresses, "get", "copy"))["Items"], {"user": "other"})
                if LOCKS:
                    case.equal(run(program, addresses, "lock", "the/lock", "echo held"), "held\n")
                run(program, addresses, "purge", "-check-index=1", "app/db", code=1)
                for path in ("app/db", "copy", "the/lock"):
                    run(program, addresses, "purge", path)
                run(program, addresses, "get", "app/db", code=1)
                case.equal(json.loads(run(program, addresses, "list")), [])
            case.equal(seen[0], seen[1], "what the commands print")


with Server() as server:
    case.run(globals())
