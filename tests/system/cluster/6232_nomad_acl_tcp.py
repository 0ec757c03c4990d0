#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 10
"""The API over TCP on a node of a cluster, where tokens decide: the servers say whether a token is valid, also for requests that they answer themselves."""
import concurrent.futures
import http.client
import json
import os
import socket
import time
import uuid

from lib import api, case
from lib.cluster import job, node_of, servers as cluster

PORT = 4646
TCP = 'ports {\n  http = %d\n}\naddresses {\n  http = "127.0.0.1"\n}\nacl {\n  enabled = true\n}\n' % PORT
BOSS, INVALID = "00000001-1111-4111-8111-111111111111", "99999999-9999-4999-8999-999999999999"
REQUESTS = (("GET", "/v1/jobs"), ("GET", "/v1/client/stats"), ("GET", "/v1/agent/self"), ("PUT", "/v1/system/gc"), ("POST", "/v1/jobs"), ("DELETE", "/v1/job/web"),
            ("PUT", "/v1/acl/bootstrap"), ("PUT", "/v1/client/gc"), ("GET", "/v1/no/such/path"))


def ask(method, path, token=None, body=None):
    c = http.client.HTTPConnection("127.0.0.1", PORT, timeout=case.LEAST_S)
    try:
        c.request(method, path, json.dumps(body) if body else None, {"X-Nomad-Token": token} if token else {})
        return api.Answer(c.getresponse())
    finally:
        c.close()


def refused(method, path, token):
    answer = ask(method, path, token, {"Job": job("web")} if path == "/v1/jobs" and method == "POST" else None)
    case.equal(answer.status in (401, 403), True, "%s %s with %s: %d %s" % (method, path, token, answer.status, answer.text))


def test_tokens_of_the_servers():
    with cluster() as servers, node_of(servers, more=TCP):
        servers.add_token(BOSS, "management")
        # Even if the servers let anonymous requests do everything.
        servers.add_policy("anonymous", 'namespace "*" { policy = "write" } node { policy = "write" } agent { policy = "write" }')
        servers.wait_node()
        for token in (None, INVALID, "anonymous"):
            for method, path in REQUESTS:
                refused(method, path, token)
        case.equal(ask("GET", "/v1/agent/health").status, 200, "what is open")
        for path in ("/v1/jobs", "/v1/client/stats", "/v1/agent/self"):
            answer = ask("GET", path, BOSS)
            case.equal(answer.status, 200, "%s: %s" % (path, answer.text))


def test_servers_without_acls_vouch_for_nobody():
    """Such servers permit everything to everyone: a made-up token must not open the node."""
    with cluster() as servers, node_of(servers, more=TCP):
        servers.wait_node()
        for token in (None, INVALID, BOSS):
            for method, path in REQUESTS:
                refused(method, path, token)


def lookups(servers, after):
    return len(servers.calls("ACL.WhoAmI", after))


def test_what_the_servers_said_of_a_token_is_kept():
    with cluster() as servers, node_of(servers, more=TCP):
        servers.add_token(BOSS, "management")
        servers.wait_node()
        for token, status in ((BOSS, 200), (INVALID, 403)):
            before, began = servers.last_call(), time.monotonic()
            with concurrent.futures.ThreadPoolExecutor(40) as threads:  # requests with the same token share a look-up
                seen = list(threads.map(lambda _, token=token: ask("GET", "/v1/agent/self", token).status, range(40)))
            case.equal(set(seen), {status}, "answers")
            case.equal(lookups(servers, before) <= 2 + (time.monotonic() - began) / 5, True, "%d look-ups" % lookups(servers, before))


def test_a_flood_of_invalid_tokens_asks_few_questions():
    with cluster() as servers, node_of(servers, more=TCP):
        servers.add_token(BOSS, "management")
        servers.wait_node()
        case.equal(ask("GET", "/v1/agent/self", BOSS).status, 200, "before")
        before, began = servers.last_call(), time.monotonic()
        seen = [ask("GET", "/v1/jobs", str(uuid.uuid4())).status for _ in range(100)]
        most = 20 + 5 * (time.monotonic() - began + 1)
        case.equal((set(seen) <= {403, 429}, lookups(servers, before) <= most), (True, True), "%d look-ups, %d are allowed: %s" % (
            lookups(servers, before), most, set(seen)))
        case.equal(ask("GET", "/v1/agent/self", BOSS).status, 200, "a known token, of the same address")


def test_a_client_that_leaves_ends_its_request():
    """Its token is being looked up, at a server that does not answer."""
    with cluster() as servers, node_of(servers, more=TCP) as node:
        servers.add_token(BOSS, "management")
        servers.wait_node()
        case.equal(ask("GET", "/v1/agent/health").status, 200, "before")
        silent = servers.fault("silent", "ACL.WhoAmI")
        pid, held = node.processes()["supervisor"], []

        def count():
            return len(os.listdir("/proc/%d/fd" % pid))
        before = count()
        for _ in range(10):
            held.append(socket.create_connection(("127.0.0.1", PORT)))
            held[-1].sendall(b"GET /v1/jobs HTTP/1.1\r\nHost: x\r\nX-Nomad-Token: %s\r\n\r\n" % str(uuid.uuid4()).encode())
        case.until(lambda: count() >= before + 10, case.LEAST_S, "the requests to come")
        for s in held:
            s.close()
        case.until(lambda: count() < before + 5, 5, "the requests to end")
        servers.clear(silent)


case.run(globals())
