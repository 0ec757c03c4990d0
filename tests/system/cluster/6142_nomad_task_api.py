#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 110
"""The sockets of tasks on a node of a cluster: the servers say whose token a request has; what they said is kept, and few questions are about
invalid tokens."""
import os
import time
import uuid

from lib import case, task_api
from lib.cluster import job, node_of, servers as cluster

ACL = "acl { enabled = true }\n"
BOSS = str(uuid.uuid4())
STATS = "/v1/client/stats"


def start(servers, node, name):
    """Returns the alloc, the socket of its task, and the task's token."""
    made = job(name, "/bin/sh", ["-c", "echo token $NOMAD_TOKEN; exec sleep 1000"], Identity={"Name": "default", "Env": True, "Audience": ["nomadproject.io"]})
    alloc = servers.run_job(made, servers.wait_node()["ID"])[0]
    servers.wait_alloc(alloc, ["running"])
    path = "%s/logs/%s/t.stdout.0" % (node.data, alloc)

    def said():
        if not os.path.exists(path):
            return None
        with open(path, encoding="utf-8") as f:
            lines = f.read().split("\n")
        return len(lines) > 1 and lines[0].split()[1]
    return alloc, task_api.Door(node, {"ID": alloc}), case.until(said, case.LEAST_S, "the token of " + name)


def lookups(servers, after):
    return len(servers.calls("ACL.WhoAmI", after))


def test_with_acl_identities_and_tokens():
    with cluster() as servers, node_of(servers, more=ACL) as node:
        servers.wait_node()
        servers.add_token(BOSS, "management")
        alloc, door, token = start(servers, node, "j")
        _, _, other = start(servers, node, "other")
        for path in (STATS, "/v1/agent/health", "/v1/jobs", "/none"):
            answer = door.request("GET", path)
            case.equal((answer.status, answer.text), (401, "Unauthorized"), path)
        for bad in (str(uuid.uuid4()), other, servers.node(servers.wait_node()["ID"])["SecretID"]):
            answer = door.request("GET", "/v1/agent/health", token=bad)
            case.equal((answer.status, answer.text), (403, "Forbidden"), bad[:40])
        # As with clients: the servers' error is about the token's form.
        answer = door.request("GET", "/v1/agent/health", token="garbage")
        case.equal((answer.status, answer.text), (500, "Server error authenticating request\n"))
        before = servers.last_call()
        for path, status in (("/v1/agent/health", 200), ("/v1/services", 200), ("/v1/vars", 200), (STATS, 403), ("/v1/agent/self", 403),
                             ("/v1/client/allocation/%s/stats" % alloc, 403), ("/v1/client/fs/ls/%s?path=/" % alloc, 403)):
            answer = door.request("GET", path, token=token, bearer=True)
            case.equal(answer.status, status, path + ": " + answer.text)
        case.equal(door.status("GET", "/v1/agent/health", token=BOSS), 200)
        case.equal(door.status("GET", STATS, token=BOSS), 200)
        # One look-up says who it is, and one of acl_token.c what that permits.
        case.equal(lookups(servers, before) <= 4, True, "%d look-ups" % lookups(servers, before))


def test_a_policy_of_the_job_counts():
    with cluster() as servers, node_of(servers, more=ACL) as node:
        servers.wait_node()
        servers.add_token(BOSS, "management")
        servers.add_policy("of-job", 'namespace "default" { capabilities = ["read-job"] }', job_id="j")
        alloc, door, token = start(servers, node, "j")
        case.equal([door.status("GET", path, token=token) for path in ("/v1/client/allocation/%s/stats" % alloc, STATS)], [200, 403])


def test_a_flood_of_invalid_tokens_asks_few_questions():
    with cluster() as servers, node_of(servers, more=ACL) as node:
        servers.wait_node()
        servers.add_token(BOSS, "management")
        _, door, token = start(servers, node, "j")
        before, began, seen = servers.last_call(), time.monotonic(), []
        while len(seen) < 100:
            seen.append(door.status("GET", "/v1/jobs", token=str(uuid.uuid4())))
        most = 20 + 5 * (time.monotonic() - began + 1)
        case.equal((set(seen) <= {403, 429}, lookups(servers, before) <= most), (True, True), "%d look-ups, %d are allowed: %s" % (
            lookups(servers, before), most, set(seen)))
        # The same token again and again is asked about once in 5 s.
        case.until(lambda: door.status("GET", "/v1/agent/health", token=token) == 200, case.LEAST_S, "its own token to be accepted again")
        before, began = servers.last_call(), time.monotonic()
        for _ in range(10):
            door.status("GET", "/v1/jobs", token="the same")
        case.equal(lookups(servers, before) <= 1 + (time.monotonic() - began) / 5, True, "look-ups of one token")


def test_requests_with_the_same_token_share_a_look_up():
    """More of them at once than refusals are allowed."""
    with cluster() as servers, node_of(servers, more=ACL) as node:
        servers.wait_node()
        servers.add_token(BOSS, "management")
        _, door, token = start(servers, node, "j")
        for sent, expected in ((token, {200}), (str(uuid.uuid4()), {403, 429})):
            before = servers.last_call()
            servers.fault("delay", "ACL.WhoAmI", seconds=2, times=1)
            those = [door.open() for _ in range(30)]
            for c in those:
                c.request("GET", "/v1/agent/health", headers={"X-Nomad-Token": sent})
            found = {c.getresponse().status for c in those}
            for c in those:
                c.close()
            case.equal((found, len(servers.calls("ACL.WhoAmI", before))), (expected, 1), "answers and look-ups")


def test_without_servers_their_last_word_counts():
    """Also when it is older than the 30 s for which a valid token is not asked about again."""
    with cluster() as servers, node_of(servers, more=ACL) as node:
        servers.wait_node()
        servers.add_token(BOSS, "management")
        _, door, token = start(servers, node, "j")
        case.equal((door.status("GET", "/v1/agent/health", token=token), door.status("GET", "/v1/agent/health", token="bad")), (200, 500))
        deleted = str(uuid.uuid4())
        servers.add_token(deleted, "client")
        case.equal(door.status("GET", "/v1/agent/health", token=deleted), 200)
        servers.delete_token(deleted)
        case.until(lambda: door.status("GET", "/v1/agent/health", token=deleted) == 403, 90, "the deleted token to be refused")
        # The result of the task's own token is older than that of the deleted token was: it is asked about again, without an answer.
        servers.stop_server(0)
        case.until(lambda: node.request("GET", "/v1/jobs").status == 503, case.LEAST_S, "the node to notice that the server is stopped")
        answer = door.request("GET", "/v1/agent/health", token=str(uuid.uuid4()))
        case.equal((answer.status, answer.text), (500, "Server error authenticating request\n"))
        case.equal([door.status("GET", path, token=token) for path in ("/v1/agent/health", "/v1/services")], [200, 503])
        case.equal(door.status("GET", "/v1/agent/health", token=deleted), 403)


def test_servers_without_acl_permit_everything():
    with cluster() as servers, node_of(servers) as node:
        servers.wait_node()
        alloc, door, token = start(servers, node, "j")
        case.equal(door.request("GET", STATS).status, 401)
        for path in (STATS, "/v1/nodes", "/v1/agent/self", "/v1/client/allocation/%s/stats" % alloc):
            answer = door.request("GET", path, token=token)
            case.equal(answer.status, 200, path + ": " + answer.text)
        case.equal(door.status("GET", STATS, token="anything"), 200)


def test_a_node_without_acl_checks_tasks_all_the_same():
    """If the servers have ACLs: otherwise each task would have full access to this node."""
    with cluster() as servers, node_of(servers) as node:
        servers.wait_node()
        servers.add_token(BOSS, "management")
        alloc, door, token = start(servers, node, "j")
        case.equal(node.request("GET", STATS).status, 200)
        for path, status in (("/v1/agent/health", 200), (STATS, 403), ("/v1/agent/self", 403), ("/v1/client/allocation/%s/stats" % alloc, 403)):
            case.equal((door.status("GET", path, token=token), door.status("GET", path, token=BOSS)), (status, 200), path)


case.run(globals())
