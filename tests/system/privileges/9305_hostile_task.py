#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 60
"""A hostile task at its socket `api.sock`: it gets nothing beyond its identity, and the sockets of other tasks and of operators answer meanwhile."""
import json
import os
import socket
import threading
import time
import uuid

from lib import agent, api, case, task_api

MIB = 1 << 20
GET = b"GET %s HTTP/1.1\r\nHost: x\r\n"
# The limits of the agent, for all tasks and for one.
ALL_MAX, ONE_MAX, STREAMS_MAX = 400, 32, 8


def start(name, **more):
    node.register(task_api.job(name, **more))
    alloc = node.wait_running(name)[0]
    return alloc, task_api.Door(node, alloc), task_api.token_of(node, alloc)


def supervisor():
    return node.processes()["supervisor"]


def pss_mib():
    with open("/proc/%d/smaps_rollup" % supervisor(), encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Pss:")) // 1024


def connections():
    """Returns how many sockets the supervisor has."""
    return sum(target.startswith("socket:") for target in agent.descriptors(supervisor()))


class Attack:
    """Calls fn(i) in threads until it is closed, and expects no exception but those of sockets. .seen: what it returned, counted."""

    def __init__(self, fn, threads=8):
        self.fn, self.seen, self.ended, self.failed, self.lock = fn, {}, False, [], threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(threads)]
        for t in self.threads:
            t.start()

    def run(self, i):
        while not self.ended:
            try:
                result = self.fn(i)
            except (OSError, EOFError, ConnectionError, task_api.http.client.HTTPException):
                result = "closed"
            except Exception as e:  # pylint: disable=broad-except
                self.failed.append(e)
                return
            with self.lock:
                self.seen[result] = self.seen.get(result, 0) + 1

    def __enter__(self):
        case.until(lambda: self.seen or self.failed, case.LEAST_S, "the attack")
        return self

    def __exit__(self, *_):
        self.ended = True
        for t in self.threads:
            t.join()
        case.equal(self.failed, [], "errors of the attack")


def check_others(rounds=20):
    """The other task and operators are answered."""
    for _ in range(rounds):
        case.equal(friend.status("GET", "/v1/var/nomad/jobs/friend", token=friend_token), 200)
        case.equal(node.request("GET", "/v1/nodes").status, 200)
        time.sleep(0.05)
    case.equal((supervisor(), pss_mib() < 64), (first_pid, True), "the supervisor, with %d MiB" % pss_mib())


def wait_forgotten():
    """The hostile task is answered again."""
    case.until(lambda: door.status("GET", "/v1/services", token=token) == 200, case.LEAST_S, "an answer for the hostile task")


def test_floods_without_a_valid_token():
    def nothing(i):
        return door.status("GET", "/v1/jobs")

    def garbage(i):
        return door.status("GET", "/v1/jobs", token=os.urandom(64).hex() if i % 2 else str(uuid.uuid4()))

    def signed(i):
        return door.status("GET", "/v1/jobs", token=token[:-20] + os.urandom(10).hex())

    for attack, allowed in ((nothing, {401}), (garbage, {403}), (signed, {403})):
        before = time.monotonic()
        with Attack(attack) as a:
            check_others()
        case.equal(set(a.seen) - allowed - {429, "closed"}, set(), "answers to %s: %s" % (attack.__name__, a.seen))
        # 20 at once and 5 per second; requests that were already accepted get 429.
        most = 20 + 5 * (time.monotonic() - before + 1)
        case.equal(sum(a.seen.get(status, 0) for status in (401, 403)) <= most, True, "%s, %d are allowed" % (a.seen, most))
    wait_forgotten()


def test_a_valid_token_is_accepted_among_invalid_ones_of_the_same_connection():
    c = door.open()
    case.equal([answered(c, token), answered(c, "garbage"), answered(c, token)], [200, 403, 200])
    c.close()


def answered(c, secret):
    c.request("GET", "/v1/services", headers={"X-Nomad-Token": secret})
    answer = c.getresponse()
    answer.read()
    return answer.status


def test_tokens_of_others():
    tried = [friend_token, ended_token, service_token()]
    with Attack(lambda i: door.status("GET", "/v1/var/nomad/jobs/friend", token=tried[i % len(tried)]), threads=3) as a:
        check_others(5)
    case.equal(set(a.seen) - {403, 429, "closed"}, set(), a.seen)
    wait_forgotten()
    for path in ("/v1/var/nomad/jobs/friend", "/v1/jobs", "/v1/agent/self", "/v1/operator/keyring/keys", "/v1/var/nomad/jobs/hostile/../friend",
                 "/v1/var/nomad%2fjobs%2ffriend", "/v1/var/nomad/jobs/friend?namespace=*", "/v1/vars?prefix=nomad/jobs/friend"):
        answer = door.request("GET", path, token=token)
        case.equal((answer.status in (400, 403, 404) or answer.json == [], "secret" in answer.text), (True, False), path + ": " + answer.text)


def service_token():
    """A token that is signed and says another task."""
    return ".".join([friend_token.split(".")[0], token.split(".")[1], friend_token.split(".")[2]])


# Paths that answer everybody in the same way. Paths of lists answer everybody, too, but their lists have only the objects that the token may read.
OPEN = {"/v1/agent/health", "/v1/regions", "/.well-known/jwks.json"}


def check_paths(at, other, hostile, secret):
    """Sends each request of the API, about the job of the alloc `other`, except for the stream of events, whose answer does not end."""
    me, found, sent = at.do("GET", "/v1/agent/self")["stats"]["client"]["node_id"], [], 0
    for methods in (("GET",), ("PUT", "DELETE", "ANY")):
        for method, path in task_api.requests(methods, other["ID"], me, "friend"):
            if path == "/v1/event/stream":
                continue
            sent += 1
            answer = case.until(lambda m=method, p=path: (lambda a: a.status != 429 and a)(hostile.request(m, p, None if m == "GET" else {}, token=secret)),
                                case.LEAST_S, "an answer other than 429")
            if answer.status < 400 and (method != "GET" or path not in OPEN and answer.json != []):
                found.append("%s %s: %d %s" % (method, path, answer.status, answer.text[:200]))
            if "secret" in answer.text:
                found.append("%s %s has a secret" % (method, path))
    case.equal((sent > 100, found), (True, []), "what it reads and changes")


def test_all_paths():
    check_paths(node, friend_alloc, door, token)
    check_others(1)


def test_all_paths_with_acl():
    with api.Node(agent.config_args("acl { enabled = true }\n")) as other:
        other.token = other.do("POST", "/v1/acl/bootstrap")["SecretID"]
        other.do("PUT", "/v1/var/nomad/jobs/friend", {"Path": "nomad/jobs/friend", "Items": {"k": "secret"}})
        theirs, _, _ = task_api.start(other, "friend")
        _, hostile, secret = task_api.start(other, "hostile")
        check_paths(other, theirs, hostile, secret)


def test_many_connections():
    held = []
    blocked = threading.Event()

    def connect():
        for _ in range(ONE_MAX + 72):  # 64 wait in the queue
            s = door.connect()  # waits when the queue of the socket is full
            s.settimeout(1)
            held.append(s)
        blocked.set()
    before = connections()
    threads = [threading.Thread(target=connect, daemon=True)]
    threads[0].start()
    case.until(lambda: len(held) >= ONE_MAX, case.LEAST_S, "connections")
    check_others()
    case.equal(connections() - before <= ONE_MAX + 4, True, "%d connections" % (connections() - before))
    # They are closed after a while, because they request nothing.
    case.until(blocked.is_set, 5 * case.LEAST_S, "connections to be closed")
    for s in held:
        s.close()
    wait_forgotten()


def test_slow_and_large_requests():
    def headers(i):
        with door.connect() as s:
            s.settimeout(5)
            s.sendall(GET % b"/v1/jobs" + b"".join(b"X-%d: %s\r\n" % (n, b"x" * 1000) for n in range(200)) + b"\r\n")
            return s.recv(12)

    def slow(i):
        with door.connect() as s:
            s.settimeout(5)
            for part in (b"GET /v1/jobs HT", b"TP/1.1\r\n", b"Host: x\r\n"):
                s.sendall(part)
                time.sleep(0.2)
            return "slow"

    def bodies(i):
        with door.connect() as s:
            s.settimeout(5)
            s.sendall(b"PUT /v1/jobs HTTP/1.1\r\nHost: x\r\nX-Nomad-Token: %s\r\nContent-Length: %d\r\n\r\n" % (token.encode(), MIB) + b" " * (MIB - 1))
            time.sleep(1)
            return "body"

    def unread(i):
        with door.connect() as s:
            s.settimeout(5)
            for _ in range(200):
                s.sendall(GET % b"/v1/services" + b"X-Nomad-Token: %s\r\n\r\n" % token.encode())
            time.sleep(1)
            return "unread"

    def uris(i):
        with door.connect() as s:
            s.settimeout(5)
            s.sendall(b"GET /" + b"x" * 30000 + b" HTTP/1.1\r\nHost: x\r\n\r\n")
            return s.recv(12)

    def garbage(i):
        with door.connect() as s:
            s.settimeout(5)
            s.sendall(os.urandom(5000) + b"\r\n\r\n")
            return s.recv(12)

    for attack in (headers, slow, bodies, unread, uris, garbage):
        with Attack(attack, threads=ONE_MAX) as a:
            check_others()
        case.equal([seen for seen in a.seen if isinstance(seen, bytes) and b" 200" in seen], [], attack.__name__)
    wait_forgotten()


def test_queries_and_streams_that_wait():
    """They are permitted by its identity, and have limits of their own."""
    index = door.request("GET", "/v1/services", token=token).headers["X-Nomad-Index"]
    held = []
    for n in range(ONE_MAX):
        s = door.connect()
        path = "/v1/services?wait=300s&index=%s" % index if n >= 2 * STREAMS_MAX else "/v1/event/stream?topic=Service"
        s.sendall(GET % path.encode() + b"X-Nomad-Token: %s\r\n\r\n" % token.encode())
        held.append(s)
    check_others()
    statuses = []
    for s in held[:2 * STREAMS_MAX]:
        s.settimeout(case.LEAST_S)
        statuses.append(s.recv(4096).split(b" ")[1])
    case.equal(set(statuses) <= {b"200", b"503", b"403"} and statuses.count(b"200") <= STREAMS_MAX, True, statuses)
    for s in held:
        s.close()
    wait_forgotten()


def test_all_tasks_together_leave_connections_to_operators_and_to_each_other():
    crowd = [start("crowd-%d" % n) for n in range(16)]
    held, threads = [], []
    for _, other, _ in crowd:
        def connect(other=other):
            for _ in range(ONE_MAX):
                held.append(other.connect())
        threads.append(threading.Thread(target=connect))
        threads[-1].start()
    for t in threads:
        t.join()
    check_others()
    case.equal(connections() <= ALL_MAX + 200, True, "%d connections" % connections())
    late = start("late")
    case.equal(late[1].status("GET", "/v1/services", token=late[2]), 200)
    for s in held:
        s.close()
    for name in ["crowd-%d" % n for n in range(16)] + ["late"]:
        node.purge(name)


def test_an_ended_task_has_no_access():
    _, other, secret = start("ends")
    c = other.open()
    case.equal(answered(c, secret), 200)
    stream = other.connect()
    stream.sendall(GET % b"/v1/services" + b"\r\n")
    node.purge("ends")
    try:
        case.equal(answered(c, secret), 403)
    except (OSError, task_api.http.client.HTTPException):
        pass  # the connection was closed
    c.close()
    stream.close()


def test_a_flood_of_a_task_in_python():
    """The same from inside, by a task that has only its socket and its token."""
    script = """
import http.client, json, os, socket, collections
seen = collections.Counter()
for n in range(300):
    for path in ("/v1/jobs", "/v1/var/nomad/jobs/friend", "/v1/nodes", "/v1/agent/self", "/v1/client/stats"):
        c = http.client.HTTPConnection("x", timeout=60)
        c.sock = socket.socket(socket.AF_UNIX)
        c.sock.connect(os.environ["NOMAD_UNIX_ADDR"][7:])
        c.request("GET", path, headers={"X-Nomad-Token": os.environ["NOMAD_TOKEN"]})
        seen[c.getresponse().status] += 1
print("seen", json.dumps(seen), flush=True)
"""
    node.register(task_api.job("inside", "python3 -c \"$FLOOD\"; exec sleep 1000", driver="exec", Env={"FLOOD": script}))
    alloc = node.wait_running("inside")[0]
    check_others()
    case.until(lambda: b"seen" in node.logs(alloc), case.LEAST_S, "the flood to end")
    case.equal(json.loads(node.logs(alloc).decode().split("seen ")[1]), {"403": 1500})
    node.purge("inside")


with api.Node() as node:
    node.request("PUT", "/v1/var/nomad/jobs/friend", {"Items": {"k": "secret"}})
    friend_alloc, friend, friend_token = start("friend")
    _, door, token = start("hostile")
    _, _, ended_token = start("ended")
    node.purge("ended")
    first_pid = supervisor()
    case.run(globals())
