#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a task gets at its socket `api.sock`, on a node of drover, of an agent of drover that works alone, and of the servers' own client: the
same requests get the same statuses, and errors the same texts, except for the differences that are listed here. For `make check-nomad NOMAD=path`.

    tests/nomad/isolated.py tests/nomad/check_task_api.py PATH [test_…]…"""
import json
import os
import sys
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import agent, api, case, task_api  # noqa: E402
from lib.cluster import node_of  # noqa: E402
from alike import ACL, ALONE, CONFIG, Alone  # noqa: E402
from client import Original  # noqa: E402
from real import Server, older_than, sleeper  # noqa: E402

UNKNOWN = str(uuid.uuid4())
# Paths; @job, @alloc and @node stand for those of the task.
PATHS = [
    "/v1/var/nomad/jobs/@job", "/v1/var/nomad/jobs/@job/g/t", "/v1/var/nomad/jobs/@job/none", "/v1/var/nomad/jobs/other", "/v1/var/app", "/v1/vars", "/v1/vars?prefix=nomad",
    "/v1/services", "/v1/service/none", "/v1/jobs", "/v1/job/@job", "/v1/job/none", "/v1/job/@job/allocations", "/v1/allocations", "/v1/allocation/@alloc",
    "/v1/nodes", "/v1/node/@node", "/v1/namespaces", "/v1/namespace/default", "/v1/status/leader", "/v1/status/peers", "/v1/regions", "/v1/agent/self",
    "/v1/agent/health", "/v1/agent/members", "/v1/agent/servers", "/v1/client/stats", "/v1/client/allocation/@alloc/stats", "/v1/client/allocation/@alloc/checks",
    "/v1/client/fs/ls/@alloc?path=/", "/v1/client/fs/stat/@alloc?path=/", "/v1/event/stream?topic=Job", "/v1/event/stream?topic=Node", "/v1/evaluations",
    "/v1/deployments", "/v1/volumes?type=csi", "/v1/plugins?type=csi", "/v1/operator/scheduler/configuration", "/v1/acl/policies", "/v1/acl/tokens",
    "/v1/acl/token/self", "/v1/search", "/.well-known/jwks.json", "/.well-known/openid-configuration", "/v1/none", "/none"]
TOKENS = ("none", "empty", "unknown", "garbage", "dotted", "own", "boss")
# Paths where drover differs, and how.
DIFFER = {
    "/v1/none": "501 with a sentence instead of 404", "/none": "the same",
    "/v1/allocation/@alloc": "without the permission 404 instead of 500",
    "/v1/event/stream?topic=Job": "without the permission 403 instead of 200 with an error in the stream", "/v1/event/stream?topic=Node": "the same",
    "/v1/acl/token/self": "the servers' own answer for an identity, and without ACLs",
}
if older_than(1, 7):
    DIFFER.update({"/.well-known/jwks.json": "the servers have no such method, and the client no such path", "/.well-known/openid-configuration": "the same",
                   "/v1/acl/policies": "the error of the servers without a prefix"})

# Likewise for an agent that works alone. It has no servers, and answers garbage as any other wrong token.
NO_SERVERS = "501, for there are none"
ALONE_DIFFER = {**DIFFER, **{path: NO_SERVERS for path in ("/v1/status/leader", "/v1/status/peers", "/v1/agent/members", "/v1/operator/scheduler/configuration")}}
NO_ACLS = {path: "400, for there are none" for path in ("/v1/acl/policies", "/v1/acl/tokens")}
ALONE_SAME = [((500, "Server error authenticating request\n"), (403, "Forbidden"))]
if older_than(1, 7):
    # The keys, policies and events, as with later servers.
    ALONE_SAME += [((404, ""), (200, "dict")), ((500, "Permission denied"), (200, "")), ((500, "rpc error: acl token lookup failed: index error: UUID must be 36 characters"), (200, "list"))]
WHY = ": ACLs are disabled, so a task has no rights but those that each identity has; acl { enabled = true } in the configuration lets policies grant more"


class Task:
    """A task on one of the nodes, and its socket."""

    def __init__(self, server, name, job, data):
        made = task_api.job(job, "printenv NOMAD_TOKEN > $NOMAD_ALLOC_DIR/data/token; exec sleep 1000")
        made["Job"]["Constraints"] = [{"LTarget": "${node.unique.name}", "RTarget": name, "Operand": "="}]
        server.run(made)
        alloc = server.wait(job, ["running"])[0]
        self.names = {"job": job, "alloc": alloc["ID"], "node": alloc["NodeID"]}
        path = "%s/alloc/%s" % (data, alloc["ID"])

        def token():
            if not os.path.exists(path + "/alloc/data/token"):
                return None
            with open(path + "/alloc/data/token", encoding="ascii") as f:
                return f.read().strip()
        self.token = case.until(token, case.LEAST_S, "the token of " + job)
        self.door = task_api.Door.__new__(task_api.Door)
        self.door.path = path + "/t/secrets"

    def answer(self, token, path):
        """Returns the status, and the text of an error or the kind of the answer."""
        for name, value in self.names.items():
            path = path.replace("@" + name, value)
        c = self.door.open()
        try:
            c.request("GET", path, headers={} if token is None else {"X-Nomad-Token": token})
            answer = c.getresponse()
            text = "" if "/event/" in path and answer.status == 200 else answer.read().decode()
        finally:
            c.close()
        for name, value in self.names.items():
            text = text.replace(value, "@" + name)
        if answer.status >= 400 or not text:
            return answer.status, text
        try:
            return answer.status, kind(json.loads(text))
        except ValueError:
            return answer.status, text


def kind(value):
    """Lists and objects are compared by their type; those of variables as they are."""
    if isinstance(value, dict) and "Items" in value:
        return value["Items"]
    return type(value).__name__


def compare(one, other, bosses, differ=DIFFER, same_as=()):
    """bosses: a management token of each, or None: there are no ACLs. same_as: pairs of answers that count as the same."""
    tokens = {"none": None, "empty": "", "unknown": UNKNOWN, "garbage": "garbage", "dotted": "a.b.c"}
    found, same = [], 0
    for name in TOKENS:
        if name == "boss" and not bosses:
            continue
        for path in PATHS:
            each = {"own": (one.token, other.token), "boss": bosses}.get(name) or (tokens[name],) * 2
            a, b = [t.answer(token, path) for t, token in zip((one, other), each)]
            if b[0] == 429:  # drover limits requests without a valid token
                b = case.until(lambda: (lambda found: found[0] != 429 and found)(other.answer(each[1], path)), case.LEAST_S, "an answer other than 429")
            b = b[0], b[1].removesuffix(WHY) if isinstance(b[1], str) else b[1]
            if a == b or (a, b) in same_as:
                same += 1
            elif path not in differ or b[0] == 200:
                found.append("%s %s:\n  %s\n  %s" % (name, path, str(a)[:300], str(b)[:300]))
    print("    %d of %d answers are the same" % (same, same + len(found)))
    case.equal(len(found), 0, "answers that differ, the original client's first:\n" + "\n".join(found))


def put_variables(server, *jobs):
    for job in jobs:
        for path in ("nomad/jobs/" + job, "nomad/jobs/%s/g/t" % job):
            server.do("/v1/var/" + path, {"Path": path, "Items": {"k": "v"}})
    for path in ("nomad/jobs/other", "app"):
        server.do("/v1/var/" + path, {"Path": path, "Items": {"k": "v"}})


def permit(server, task):
    """Gives a job's identities a policy, and waits until it counts."""
    server.do("/v1/acl/policy/" + task.names["job"], {
        "Name": task.names["job"], "Rules": 'namespace "default" { policy = "read" }\nnode { policy = "read" }',
        "JobACL": {"Namespace": "default", "JobID": task.names["job"]}})
    case.until(lambda: task.answer(task.token, "/v1/client/stats")[0] == 200, 120, "the new policy")


def tasks(server, original, node):
    return Task(server, "original", "theirs", original.dir + "/data"), Task(server, "n1", "ours", node.data)


def wait_nodes(server):
    case.until(lambda: len([n for n in server.ask("/v1/nodes") if n["Status"] == "ready"]) == 2, 60, "two nodes")


def test_a_cluster_with_acls():
    with Server(more=ACL) as server:
        server.token = server.do("/v1/acl/bootstrap")["SecretID"]
        with Original(server, client="}\n" + ACL.rstrip("}\n")) as original, node_of(server, more=ACL) as node:
            wait_nodes(server)
            one, other = tasks(server, original, node)
            put_variables(server, "theirs", "ours")
            compare(one, other, (server.token,) * 2)
            permit(server, one)
            permit(server, other)
            compare(one, other, (server.token,) * 2)
            for job in ("theirs", "ours"):
                server.purge(job)


def test_a_cluster_without_acls():
    with Server() as server, Original(server) as original, node_of(server) as node:
        wait_nodes(server)
        one, other = tasks(server, original, node)
        put_variables(server, "theirs", "ours")
        compare(one, other, None)
        for job in ("theirs", "ours"):
            server.purge(job)


def test_agents_alone():
    """With ACLs, and without, where a task has only the rights of its identity, as with ACLs."""
    with Server(more=ACL) as server, api.Node(args=agent.config_args(CONFIG + ACL)) as closed, api.Node(args=agent.config_args(CONFIG)) as opened:
        server.token = server.do("/v1/acl/bootstrap")["SecretID"]
        closed.token = closed.do("POST", "/v1/acl/bootstrap")["SecretID"]
        with Original(server, client="}\n" + ACL.rstrip("}\n")) as original:
            server.wait_ready()
            one = Task(server, "original", "theirs", original.dir + "/data")
            put_variables(server, "theirs")
            others = [Task(Alone(node), ALONE, "mine", node.data) for node in (closed, opened)]
            for node in (closed, opened):
                put_variables(Alone(node), "mine")
            compare(one, others[1], None, {**ALONE_DIFFER, **NO_ACLS}, ALONE_SAME)
            compare(one, others[0], (server.token, closed.token), ALONE_DIFFER, ALONE_SAME)
            permit(server, one)
            permit(Alone(closed), others[0])
            compare(one, others[0], (server.token, closed.token), ALONE_DIFFER, ALONE_SAME)
            server.purge("theirs")


# Requests that the identity of a task is not permitted to make, as (method, path, body).
FORBIDDEN = [
    ("GET", "/v1/var/nomad/jobs/victim", None), ("GET", "/v1/var/app?namespace=hidden", None), ("PUT", "/v1/var/nomad/jobs/@job", {"Items": {"k": "changed"}}),
    ("PUT", "/v1/var/nomad/jobs/victim", {"Items": {"k": "changed"}}), ("DELETE", "/v1/var/nomad/jobs/victim", None),
    ("PUT", "/v1/acl/policy/mine", {"Name": "mine", "Rules": 'namespace "*" { policy = "write" }'}), ("DELETE", "/v1/acl/policy/mine", None),
    ("PUT", "/v1/acl/token", {"Name": "mine", "Type": "management"}), ("PUT", "/v1/namespace/mine", {"Name": "mine"}), ("DELETE", "/v1/job/victim", None),
    ("PUT", "/v1/job/victim/evaluate", {"JobID": "victim"}), ("PUT", "/v1/node/@node/eligibility", {"NodeID": "@node", "Eligibility": "ineligible"}),
    ("PUT", "/v1/node/@node/purge", {}), ("PUT", "/v1/allocation/@alloc/stop", {}), ("PUT", "/v1/client/allocation/@alloc/restart", {}), ("PUT", "/v1/system/gc", {})]


def test_a_hostile_task():
    """With its own token, and with forged ones, it changes nothing and reads nothing of others, as at the original client."""
    with Server(more=ACL) as server:
        server.token = server.do("/v1/acl/bootstrap")["SecretID"]
        with Original(server, client="}\n" + ACL.rstrip("}\n")) as original, node_of(server, more=ACL) as node:
            wait_nodes(server)
            both, found = tasks(server, original, node), []
            server.do("/v1/namespace/hidden", {"Name": "hidden"})
            server.do("/v1/var/app?namespace=hidden", {"Path": "app", "Items": {"k": "v"}})
            put_variables(server, "theirs", "ours", "victim")
            server.run(sleeper("victim"))
            server.wait("victim", ["running"])
            for method, path, body in FORBIDDEN:
                # A request whose token is refused is answered before its body is read.
                for which in ("own", "changed", "spliced"):
                    each = [send(task, method, path, body if which == "own" else None, forged(which, task.token, other.token)) for task, other in zip(both, reversed(both))]
                    if each[0] != each[1] or each[0] < 400:
                        found.append("%s %s %s: %s" % (which, method, path, each))
            case.equal(found, [], "statuses, the original client's first")
            case.equal(both[1].answer(both[0].token, "/v1/agent/health"), (403, "Forbidden"), "a stolen token, which the original client accepts")
            for path in ("nomad/jobs/victim", "nomad/jobs/ours", "nomad/jobs/theirs"):
                case.equal(server.ask("/v1/var/" + path)["Items"], {"k": "v"}, path)
            case.equal({n["SchedulingEligibility"] for n in server.ask("/v1/nodes")}, {"eligible"})
            for job in ("theirs", "ours", "victim"):
                server.wait(job, ["running"])
                server.purge(job)


def forged(which, token, other):
    """Returns the task's own token, or one with its head and claims, and no valid signature."""
    head, claims, signature = token.split(".")
    return {"own": token, "changed": ".".join([head, claims, "A" * len(signature)]), "spliced": ".".join([head, claims, other.split(".")[2]])}[which]


def send(task, method, path, body, token):
    """Returns the status; drover's 429 is tried again."""
    text = None if body is None else json.dumps(body)
    for name, value in task.names.items():
        path, text = path.replace("@" + name, value), text and text.replace("@" + name, value)

    def status():
        found = task.door.status(method, path, text and text.encode(), token)
        return found != 429 and found
    return case.until(status, case.LEAST_S, "an answer other than 429")


case.run(globals())
