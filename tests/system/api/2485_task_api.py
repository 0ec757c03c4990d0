#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 50
"""The socket by which a task reaches the API: who may use it and for what, and its life, of a task, of the agent and of its directory."""
import contextlib
import itertools
import json
import os
import shutil
import signal
import sqlite3
import stat
import threading
import time
import uuid

from lib import agent, api, case, task_api

SECRET = {"Items": {"key": "value of a variable"}}


def put(path):
    case.equal(node.request("PUT", "/v1/var/" + path, {"Path": path, **SECRET}).status, 200, path)


def answers(alloc, n):
    """Waits for n lines of task_api.CLIENT."""
    def found():
        lines = node.request_logs(alloc).body.decode().split("\n")[:-1]
        return len(lines) >= n and [json.loads(line) for line in lines[:n]]
    return case.until(found, case.LEAST_S, "%d answers" % n)


def test_a_task_of_each_driver_reaches_its_variable():
    for driver in ("exec", "raw_exec"):
        name = "own-" + driver.replace("_", "-")
        put("nomad/jobs/" + name)
        node.register(task_api.job(name, task_api.client_script("/v1/var/nomad/jobs/" + name, "/v1/var/nomad/jobs/other", "/v1/nodes"), driver))
        alloc = node.wait_running(name)[0]
        found = answers(alloc, 3)
        case.equal(([status for status, _ in found], json.loads(found[0][1])["Items"]), ([200, 403, 403], SECRET["Items"]), name)
        node.purge(name)


def test_the_address_and_the_mode():
    script = "echo $NOMAD_UNIX_ADDR; stat -c '%F %a %u' $NOMAD_SECRETS_DIR/api.sock; exec sleep 1000"
    for driver, user in (("exec", "nobody"), ("raw_exec", "root")):
        node.register(task_api.job("mode", script, driver))
        alloc = node.wait_running("mode")[0]
        said = case.until(lambda: node.request_logs(alloc).body.decode().split("\n")[:2][-1] and node.logs(alloc).decode().split("\n"), 20, "two lines")
        where = "/secrets" if driver == "exec" else "%s/alloc/%s/t/secrets" % (node.data, alloc["ID"])
        case.equal(said[:2], ["unix://%s/api.sock" % where, "socket 600 %d" % (65534 if user == "nobody" else 0)])
        node.purge("mode")


def test_a_task_without_an_identity_has_the_socket_and_not_its_address():
    node.register(api.job("plain", "/bin/sh", ["-c", "printenv NOMAD_UNIX_ADDR || echo none; exec sleep 1000"]))
    alloc = node.wait_running("plain")[0]
    node.wait_said(alloc, b"none\n")
    case.equal(task_api.Door(node, alloc).request("GET", "/v1/agent/health").status, 401)
    node.purge("plain")


def test_every_request_needs_a_valid_token():
    alloc, door, token = task_api.start(node, "first")
    _, other_door, other = task_api.start(node, "second")
    _, _, ended = task_api.start(node, "third")
    node.purge("third")
    case.equal((door.status("GET", "/v1/services", token=token), door.status("GET", "/v1/services", token=token, bearer=True)), (200, 200))
    for path in ("/v1/agent/health", "/v1/status/leader", "/v1/jobs", "/.well-known/jwks.json", "/none"):
        answer = door.request("GET", path)
        case.equal((answer.status, answer.text, answer.headers["Connection"]), (401, "Unauthorized", "close"), path)
    changed = token[:-20] + ("A" if token[-20] != "A" else "B") + token[-19:]
    for bad in ("garbage", str(uuid.uuid4()), "a.b.c", changed, ended, other, "x" * 9000):
        answer = door.request("GET", "/v1/agent/health", token=bad)
        case.equal((answer.status, answer.text), (403, "Forbidden"), bad[:40])
    case.equal((other_door.status("GET", "/v1/services", token=other), other_door.status("GET", "/v1/services", token=token)), (200, 403))
    case.equal(node.request("GET", "/v1/nodes").status, 200)
    node.purge("first"), node.purge("second")


def ask(connections, tokens):
    """Sends a request with each token on a connection of its own, then reads the answers. Returns their status codes."""
    for c, sent in zip(connections, tokens):
        c.request("GET", "/v1/agent/health", headers={"X-Nomad-Token": sent})
    answers_of = [c.getresponse() for c in connections]
    return [answer.read() and answer.status for answer in answers_of]


def accepted(door, n, token):
    """Returns n connections that the agent has accepted: each has had an answer."""
    made = [door.open() for _ in range(n)]
    case.equal(ask(made, [token] * n), [200] * n)
    return made


def flood(name):
    """Sends 30 invalid tokens at once. Returns whether some were refused without a look-up, before results of look-ups are forgotten."""
    _, door, token = task_api.start(node, name)
    _, neighbour, other = task_api.start(node, "beside-" + name)
    began = time.monotonic()
    crowd, own, beside = accepted(door, 30, token), accepted(door, 1, token), accepted(neighbour, 15, other)
    since = time.monotonic()
    seen = ask(crowd, [str(uuid.uuid4()) for _ in crowd])
    theirs = ask(own, [token]) + ask(beside, [str(uuid.uuid4()) for _ in beside]) + [neighbour.status("GET", "/v1/services", token=other)]
    most = 20 + 5 * (time.monotonic() - since + 1)
    case.equal((set(seen) <= {403, 429}, seen.count(403) <= most), (True, True), "%d were looked up, %d are allowed: %s" % (seen.count(403), most, seen))
    if 429 not in seen or time.monotonic() - began > 25:
        return False
    case.equal(theirs, [200] + [403] * 15 + [200], "the task's own token, and tokens of its neighbour")
    case.equal(door.status("GET", "/v1/services", token=token), 200, "on a new connection")
    case.until(lambda: door.status("GET", "/v1/services", token=str(uuid.uuid4())) == 403, case.LEAST_S, "an invalid token to be looked up again")
    for c in crowd + own + beside:
        c.close()
    return True


def test_failed_look_ups_are_limited_for_each_task():
    """The limit, of 20 at once and 5 per second, is the task's own: its valid token, and its neighbour's invalid ones, are answered meanwhile."""
    names = ("floods-%d" % i for i in itertools.count())
    case.until(lambda: flood(next(names)), case.LEAST_S, "a flood that is answered soon")
    for used in node.ask("/v1/jobs"):
        node.purge(used["ID"])


def test_a_flood_keeps_no_valid_token_out():
    """Also when its look-up, whose result counts for 30 s, is due again."""
    _, door, token = task_api.start(node, "flooded")
    own, = accepted(door, 1, token)
    ended, seen = threading.Event(), set()

    def send_invalid_ones():
        while not ended.is_set():
            seen.add(door.status("GET", "/v1/agent/health", token=str(uuid.uuid4())))
    flooding = [threading.Thread(target=send_invalid_ones) for _ in range(8)]
    for thread in flooding:
        thread.start()
    try:
        until = time.monotonic() + 32
        while time.monotonic() < until:
            case.equal(ask([own], [token]), [200], "the valid token")
            time.sleep(0.05)
    finally:
        ended.set()
        for thread in flooding:
            thread.join()
    case.equal(seen <= {403, 429}, True, str(seen))
    own.close()
    node.purge("flooded")


def test_no_body_is_read_before_the_token_is_known():
    """A request without a valid token is answered while its body is still to come; with one the body counts, in one piece or in several."""
    _, door, token = task_api.start(node, "bodies")
    head, body = b"PUT /v1/var/nomad/jobs/other HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n", json.dumps({"Path": "nomad/jobs/other", **SECRET}).encode()
    for header, status in ((b"", b"401"), (b"X-Nomad-Token: %s\r\n" % str(uuid.uuid4()).encode(), b"403")):
        with door.connect() as s:
            s.settimeout(case.LEAST_S)
            s.sendall(head % (header, 1 << 20))
            case.equal(s.recv(12), b"HTTP/1.1 " + status, "the answer to a head")
    for parts in ([body], [body[:5], body[5:]]):
        with door.connect() as s:
            s.settimeout(case.LEAST_S)
            s.sendall(head % (b"X-Nomad-Token: %s\r\nExpect: 100-continue\r\n" % token.encode(), len(body)))
            case.contains(s.recv(100).decode(), "HTTP/1.1 100 Continue")
            for part in parts:
                s.sendall(part)
            case.equal(s.recv(12), b"HTTP/1.1 403", "a variable of another job")
    node.purge("bodies")


def test_without_acl_a_task_has_only_what_each_identity_may():
    alloc, door, token = task_api.start(node, "rights", group={"Services": [{"Name": "found", "Provider": "nomad"}]})
    put("nomad/jobs/rights"), put("nomad/jobs/rights/g/t"), put("nomad/jobs/other")
    for path, status in (("/v1/var/nomad/jobs/rights", 200), ("/v1/var/nomad/jobs/rights/g/t", 200), ("/v1/var/nomad/jobs/other", 403), ("/v1/services", 200),
                         ("/v1/service/found", 200), ("/v1/jobs", 403), ("/v1/job/rights", 403), ("/v1/nodes", 403), ("/v1/node/" + node.ask("/v1/nodes")[0]["ID"], 403),
                         ("/v1/allocation/" + alloc["ID"], 403), ("/v1/client/fs/ls/%s?path=/" % alloc["ID"], 403), ("/v1/agent/self", 403),
                         ("/v1/agent/health", 200), ("/v1/client/stats", 403), ("/v1/acl/policies", 400), ("/v1/namespaces", 200),
                         ("/v1/operator/keyring/keys", 403)):
        answer = door.request("GET", path, token=token)
        case.equal(answer.status, status, path + ": " + answer.text)
    case.equal([v["Path"] for v in door.request("GET", "/v1/vars", token=token).json], ["nomad/jobs/rights", "nomad/jobs/rights/g/t"])
    case.equal(door.request("GET", "/v1/namespaces", token=token).json, [])
    for method, path, body in (("PUT", "/v1/jobs", api.job("mine")), ("DELETE", "/v1/job/rights", None), ("PUT", "/v1/var/nomad/jobs/rights", SECRET),
                               ("DELETE", "/v1/var/nomad/jobs/rights", None), ("PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], {}),
                               ("PUT", "/v1/allocation/%s/stop" % alloc["ID"], {}), ("PUT", "/v1/client/gc", None)):
        answer = door.request(method, path, body, token=token)
        case.equal((answer.status, "ACLs are disabled" in answer.text or "/v1/var" in path), (403, True), path + ": " + answer.text)
    case.equal(len(node.allocs("rights")), 1)
    node.purge("rights")


def test_a_blocking_query_and_a_stream():
    put("nomad/jobs/follows")
    _, door, token = task_api.start(node, "follows")
    first = door.request("GET", "/v1/var/nomad/jobs/follows", token=token)
    got = []
    query = threading.Thread(target=lambda: got.append(door.request("GET", "/v1/var/nomad/jobs/follows?wait=60s&index=%s" % first.headers["X-Nomad-Index"], token=token)))
    query.start()
    case.equal(node.request("PUT", "/v1/var/nomad/jobs/follows", {"Items": {"key": "new"}}).status, 200)
    query.join()
    case.equal(got[0].json["Items"], {"key": "new"})
    c = door.open()
    c.request("GET", "/v1/event/stream?topic=Service", headers={"X-Nomad-Token": token})
    case.equal(c.getresponse().status in (200, 403), True)
    c.close()
    node.purge("follows")


def test_clients_wait_while_there_is_no_agent():
    put("nomad/jobs/waits")
    alloc, door, token = task_api.start(node, "waits")
    case.equal(door.status("GET", "/v1/services", token=token), 200)
    node.kill_launcher()
    sockets = [door.connect() for _ in range(20)]
    for s in sockets:
        s.sendall(b"GET /v1/var/nomad/jobs/waits HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Nomad-Token: %s\r\n\r\n" % token.encode())
    node.start()
    node.wait_ready()
    for s in sockets:
        s.settimeout(case.LEAST_S)
        text = b""
        while part := s.recv(65536):
            text += part
        case.contains(text.decode(), "value of a variable")
        s.close()
    case.equal([a["ID"] for a in node.allocs("waits")], [alloc["ID"]])
    for _ in range(3):
        before = node.kill("supervisor")
        case.equal(door.status("GET", "/v1/services", token=token), 200)
        node.wait_process("supervisor", before)
    node.wait_ready()
    node.purge("waits")


def test_many_clients_connect_at_once_while_the_supervisor_is_stopped():
    """Without waiting, as Go's programs connect. Then each is answered, although a task has no more than 32 connections."""
    _, door, token = task_api.start(node, "crowd")
    supervisor = node.wait_process("supervisor")
    os.kill(supervisor, signal.SIGSTOP)
    try:
        sockets = [door.connect(wait=False) for _ in range(200)]
    finally:
        os.kill(supervisor, signal.SIGCONT)
    for s in sockets:
        s.settimeout(case.LEAST_S)
        s.sendall(b"GET /v1/agent/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-Nomad-Token: %s\r\n\r\n" % token.encode())
    for s in sockets:
        case.equal(s.recv(12), b"HTTP/1.1 200")
        s.close()
    case.equal(node.wait_process("supervisor"), supervisor, "supervisor")
    node.purge("crowd")


def test_a_restarted_task_has_a_new_socket():
    for driver in ("raw_exec", "exec"):
        put("nomad/jobs/again")
        script = task_api.client_script("/v1/var/nomad/jobs/again", then="rm $NOMAD_SECRETS_DIR/api.sock; mkdir $NOMAD_SECRETS_DIR/api.sock; exec sleep 1000")
        node.register(task_api.job("again", script, driver))
        alloc = node.wait_running("again")[0]
        answers(alloc, 1)
        node.do("PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], {})
        case.equal([status for status, _ in answers(alloc, 2)], [200, 200])
        node.purge("again")


def test_a_path_that_is_too_long():
    """The path of a socket may have 107 bytes."""
    put("nomad/jobs/deep")
    made = task_api.job("deep", "echo $NOMAD_UNIX_ADDR; " + task_api.client_script("/v1/var/nomad/jobs/deep"))
    name = made["Job"]["TaskGroups"][0]["Tasks"][0]["Name"] = "t" * 80
    node.register(made)
    alloc = node.wait_running("deep")[0]
    node.wait_said(alloc, b"value of a variable", name)
    case.equal(node.logs(alloc, name).split(b"\n")[0], b"unix:///proc/self/cwd/secrets/api.sock")
    case.equal(stat.S_ISSOCK(os.stat("%s/alloc/%s/%s/secrets/api.sock" % (node.data, alloc["ID"], name)).st_mode), True)
    node.purge("deep")


def test_a_path_that_is_too_long_with_a_work_dir():
    """The task starts in another directory, so its client goes to the task's own, as the documents say."""
    put("nomad/jobs/deep")
    made = task_api.job("deep", 'cd "$NOMAD_TASK_DIR/.."; ' + task_api.client_script("/v1/var/nomad/jobs/deep"))
    task = made["Job"]["TaskGroups"][0]["Tasks"][0]
    task["Name"], task["Config"]["work_dir"] = "t" * 80, "/"
    node.register(made)
    node.wait_said(node.wait_running("deep")[0], b"value of a variable", task["Name"])
    node.purge("deep")


def test_with_acl_policies_count_and_tokens_are_accepted():
    with api.Node(args=agent.config_args("acl { enabled = true }\n")) as other:
        other.token = other.do("POST", "/v1/acl/bootstrap")["SecretID"]
        alloc, door, token = task_api.start(other, "policy")
        case.equal((door.status("GET", "/v1/jobs", token=token), door.status("GET", "/v1/agent/health")), (403, 401))
        other.do("POST", "/v1/acl/policy/reads", {"Name": "reads", "Rules": 'namespace "default" { policy = "read" }', "JobACL": {"Namespace": "default", "JobID": "policy"}})
        case.equal([j["ID"] for j in door.request("GET", "/v1/jobs", token=token).json], ["policy"])
        case.equal((door.status("GET", "/v1/nodes", token=token), door.status("GET", "/v1/nodes", token=other.token)), (403, 200))
        client = other.do("POST", "/v1/acl/token", {"Name": "c", "Type": "client", "Policies": ["reads"]})
        case.equal((door.status("GET", "/v1/jobs", token=client["SecretID"]), door.status("GET", "/v1/nodes", token=client["SecretID"])), (200, 403))
        other.do("DELETE", "/v1/acl/token/" + client["AccessorID"])
        case.equal(door.status("GET", "/v1/jobs", token=client["SecretID"]), 403)
        other.purge("policy")


def test_the_token_of_a_task_leaves_the_database_when_it_ends():
    def rows():
        copy = case.directory()
        for name in ("state.db", "state.db-wal"):
            shutil.copy(node.data + "/state/" + name, copy)
        with contextlib.closing(sqlite3.connect(copy + "/state.db")) as db:
            return db.execute("SELECT json, client, tokens FROM alloc WHERE id = ?", (uuid.UUID(alloc["ID"]).bytes,)).fetchall()
    alloc, _, token = task_api.start(node, "forgets")
    case.equal([(bool(row[2]), token in str(row)) for row in rows()], [(True, False)], "the token is there, encrypted")
    node.do("DELETE", "/v1/job/forgets")
    case.until(lambda: [row[2] for row in rows()] in ([None], [b""]), case.LEAST_S, "a row without the token")
    node.purge("forgets")


def test_a_task_cannot_become_an_operator():
    """PUT /v1/acl/bootstrap needs no permission, and this agent's ACLs are enabled while a job runs."""
    with api.Node() as other:
        _, door, token = task_api.start(other, "hostile")
        other.kill_launcher()
        other.args += agent.config_args("acl { enabled = true }\n")
        other.start()
        other.wait_ready()
        case.until(lambda: door.status("GET", "/v1/services", token=token) != 401, case.LEAST_S, "an answer at the task's socket")
        answer = door.request("PUT", "/v1/acl/bootstrap", token=token)
        case.equal((answer.status, answer.text), (403, "Permission denied: this is not for tasks: use the control socket"))
        other.token = other.do("POST", "/v1/acl/bootstrap")["SecretID"]
        case.equal(door.status("PUT", "/v1/acl/bootstrap", token=other.token), 403)
        other.purge("hostile")


with api.Node() as node:
    case.run(globals())
