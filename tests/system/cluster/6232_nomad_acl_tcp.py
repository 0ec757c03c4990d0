#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 10
"""The API over TCP on a node of a cluster, where tokens decide: the servers say whether a token is valid, also for requests that they answer themselves."""
import http.client
import json

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


case.run(globals())
