#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Permissions of requests to a node with acl { enabled }: the servers resolve the tokens in servers' requests and at its own socket.
Advisories CVE-2023-1782 (no request without a resolved identity), CVE-2025-4922 (names match exactly)."""
import json
import os
import subprocess
import time

from lib import api, binary, case
from lib.cluster import job, node_of, servers as cluster
from lib.nomad_server import Refusal

NOBODY = "99999999-9999-4999-8999-999999999999"
ACL = 'acl {\n  enabled = true\n%s}\n'
POLICIES = {
    "reads": 'namespace "default" { policy = "read" }',
    "writes": 'namespace "default" { policy = "write" }',
    "files": 'namespace "default" { capabilities = ["read-fs"] }',
    "logs": 'namespace "default" { capabilities = ["read-logs"] }',
    "node-reads": 'node { policy = "read" }',
    "node-writes": 'node { policy = "write" }',
    "agent-reads": 'agent { policy = "read" }',
    "elsewhere": 'namespace "defaul" { policy = "write" }\nnamespace "default-*" { policy = "write" }',
    "denied": 'namespace "default" { policy = "deny" }\nnode { policy = "deny" }\nagent { policy = "deny" }',
}


def token(number):
    return "%08x-1111-4111-8111-111111111111" % number


TOKENS = {name: token(i) for i, name in enumerate(["boss"] + sorted(POLICIES) + ["by-role", "nothing", "expired", "both"])}


def fill(servers):
    for name, rules in POLICIES.items():
        servers.add_policy(name, rules)
        servers.add_token(TOKENS[name], "client", [name])
    servers.add_role("role", ["writes", "node-reads"])
    servers.add_token(TOKENS["by-role"], "client", [], roles=["role"])
    servers.add_token(TOKENS["nothing"], "client", ["there-is-none"])
    servers.add_token(TOKENS["both"], "client", ["writes", "denied"])
    servers.add_token(TOKENS["expired"], "management", [], expires=time.time() - 60)
    servers.add_token(TOKENS["boss"], "management")


def secret(name):
    return TOKENS.get(name, name)


def get(node, name, path):
    """Returns the status of a GET with that token ("": none)."""
    c = api.Connection(node, case.LEAST_S)
    try:
        c.request("GET", path, headers={"X-Nomad-Token": secret(name)} if name else {})
        answer = c.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    finally:
        c.close()


def rpc(name, method, **request):
    """ "ok" or the error of a server's request with that token."""
    try:
        servers.call_node(me, method, {"AuthToken": secret(name), **request})
        return "ok"
    except Refusal as e:
        return str(e)


def stream(name, method, **request):
    """ "ok" or (code, message) of a server's stream with that token."""
    found = servers.open_stream(me, method, {"AuthToken": secret(name), **request})
    try:
        frame = servers.read_stream(found, 1)["frames"][0]
        return (frame["Error"]["Code"], frame["Error"]["Message"]) if frame["Error"] else "ok"
    finally:
        servers.close_stream(found)


EVERYBODY = ["", NOBODY, *TOKENS]
STRANGERS = {"", NOBODY, "elsewhere", "denied", "nothing", "expired", "both"}


def denied(text):
    return any(t in str(text) for t in ("Permission denied", "ACL token not found", "ACL token expired"))


def test_requests_of_servers_are_checked_by_token():
    """Each request of servers that carries a token, with each kind of token."""
    of = {"AllocID": alloc}
    of_node = {"NodeID": me}
    writers = {"boss", "writes", "by-role"}
    for method, request, may in (
            ("FileSystem.List", {**of, "Path": "/"}, writers | {"files"}),
            ("FileSystem.Stat", {**of, "Path": "/"}, writers | {"files"}),
            ("Allocations.Stats", of, writers | {"reads"}),
            ("ClientStats.Stats", of_node, {"boss", "node-reads", "node-writes", "by-role"}),
            ("NodeMeta.Read", of_node, {"boss", "node-reads", "node-writes", "by-role"}),
            ("NodeMeta.Apply", {**of_node, "Meta": {}}, {"boss", "node-writes"}),
            ("Allocations.Signal", {**of, "Task": "t", "Signal": "SIGCONT"}, writers)):
        for name in EVERYBODY:
            found = rpc(name, method, **request)
            case.equal("ok" if found == "ok" else denied(found), "ok" if name in may else True,
                       "%s by %r: %s" % (method, name, found))


def test_streams_of_servers_are_checked_by_token():
    for method, request, may in (
            ("FileSystem.Stream", {"Path": "alloc/logs/t.stdout.0"}, {"boss", "writes", "files", "by-role"}),
            ("FileSystem.Logs", {"Task": "t", "LogType": "stdout"}, {"boss", "writes", "files", "logs", "by-role"})):
        for name in EVERYBODY:
            found = stream(name, method, AllocID=alloc, **request)
            if name in may:
                case.equal(found, "ok", "%s by %r" % (method, name))
            else:
                case.equal((found[0], denied(found[1])), (403, True), "%s by %r: %s" % (method, name, found))


def test_changes_are_refused_before_they_are_made():
    for name in sorted(STRANGERS) + ["reads", "files", "node-reads"]:
        for method, request in (("Allocations.Restart", {"AllocID": alloc}), ("Allocations.GarbageCollect", {"AllocID": alloc}),
                                ("Allocations.GarbageCollectAll", {"NodeID": me}),
                                ("Allocations.Signal", {"AllocID": alloc, "Signal": "SIGKILL"}),
                                ("NodeIdentity.Renew", {"NodeID": me}),
                                ("NodeMeta.Apply", {"NodeID": me, "Meta": {"evil": "1"}})):
            found = rpc(name, method, **request)
            case.equal(denied(found), True, "%s by %r: %s" % (method, name, found))
    case.equal("evil" in (servers.node(me)["Meta"] or {}), False, "metadata")
    case.equal(servers.alloc(alloc)["TaskStates"]["t"]["Restarts"], 0, "restarts")


def test_requests_at_the_socket_are_checked_by_token():
    files = {"boss", "writes", "files", "by-role"}
    on_node = {"boss", "node-reads", "node-writes", "by-role"}
    of_job = {"boss", "writes", "reads", "by-role"}
    for path, may in (
            ("/v1/client/fs/ls/%s?path=/" % alloc, files),
            ("/v1/client/fs/stat/%s?path=/" % alloc, files),
            ("/v1/client/fs/cat/%s?path=alloc/logs/t.stdout.0" % alloc, files),
            ("/v1/client/fs/readat/%s?path=alloc/logs/t.stdout.0&offset=0&limit=1" % alloc, files),
            ("/v1/client/fs/stream/%s?path=alloc/logs/t.stdout.0&follow=false" % alloc, files),
            ("/v1/client/fs/logs/%s?task=t&type=stdout&plain=true" % alloc, files | {"logs"}),
            ("/v1/client/allocation/%s/stats" % alloc, of_job),
            ("/v1/client/allocation/%s/events" % alloc, of_job),
            ("/v1/client/allocation/%s/why" % alloc, of_job),
            ("/v1/client/stats", on_node),
            ("/v1/agent/self", {"boss", "agent-reads"}),
            ("/v1/agent/servers", {"boss", "agent-reads"}),
            ("/v1/agent/leaks", {"boss", "agent-reads"}),
            ("/v1/agent/health", set(EVERYBODY))):
        for name in EVERYBODY:
            status, text = get(node, name, path)
            case.equal((status, status == 200 or denied(text)), (200 if name in may else 403, True),
                       "%s by %r: %s" % (path, name, text))


def test_a_token_shows_itself():
    """To its owner, as the only secret that the API of servers shows."""
    for name, kind in (("boss", "management"), ("reads", "client")):
        found = json.loads(get(node, name, "/v1/acl/token/self")[1])
        case.equal((found["Type"], found["SecretID"]), (kind, secret(name)))
    case.equal(get(node, NOBODY, "/v1/acl/token/self"), (404, "ACL token not found"))


def test_the_namespace_of_the_alloc_counts_and_not_that_of_the_request():
    """A token for another namespace gains nothing by naming that namespace in the request."""
    status, _ = get(node, "elsewhere", "/v1/client/fs/ls/%s?path=/&namespace=defaul" % alloc)
    case.equal(status, 403)
    case.equal(denied(rpc("elsewhere", "FileSystem.List", AllocID=alloc, Path="/", Namespace="defaul")), True)


def test_bearer_tokens_are_accepted():
    c = api.Connection(node, case.LEAST_S)
    c.request("GET", "/v1/client/stats", headers={"Authorization": "Bearer " + secret("node-reads")})
    case.equal(c.getresponse().status, 200)
    c.close()


def test_malformed_tokens_are_refused():
    for odd in ("x", "a.b.c", "-" * 36, "x" * 9000, "%s\t" % TOKENS["boss"], TOKENS["boss"].upper() + "0",
                TOKENS["boss"][:-1], servers.node(me)["SecretID"]):
        status, text = get(node, odd, "/v1/client/stats")
        case.equal(status, 403, "%r: %s" % (odd[:40], text))
        case.equal(rpc(odd, "ClientStats.Stats", NodeID=me) != "ok", True, repr(odd[:40]))


def test_the_anonymous_policy_applies_without_a_token():
    """The last test, because the policy is cached for a while."""
    servers.add_policy("anonymous", 'node { policy = "read" }')
    with node_of(servers, more=ACL % '  token_ttl = "100ms"\n') as other:
        case.until(lambda: get(other, "", "/v1/client/stats")[0] == 200, 30, "anonymous requests to be permitted")
        case.equal(get(other, "", "/v1/agent/self")[0], 403)


def test_a_workload_identity_has_the_permissions_of_its_job():
    servers.add_policy("of-job", 'namespace "default" { capabilities = ["read-logs"] }', job_id="j")
    jwt = servers.workload_token(alloc, "t")
    case.equal(stream(jwt, "FileSystem.Logs", AllocID=alloc, Task="t", LogType="stdout"), "ok")
    case.equal(denied(rpc(jwt, "FileSystem.List", AllocID=alloc, Path="/")), True)


def test_resolved_tokens_and_policies_are_cached():
    # With a token and a policy that were never resolved before: cached answers are resolved again after half a minute.
    name = token(200)
    servers.add_policy("fresh", 'node { policy = "read" }')
    servers.add_token(name, "client", ["fresh"])
    began = time.monotonic()
    get(node, name, "/v1/client/stats")
    before = servers.last_call()
    for _ in range(10):
        case.equal(get(node, name, "/v1/client/stats")[0], 200)
        case.equal(rpc(name, "ClientStats.Stats", NodeID=me), "ok")
    lookups = [c["method"] for c in servers.calls(after=before) if c["method"].startswith("ACL.")]
    case.equal(lookups == [] or time.monotonic() - began > 20, True, "look-ups: %s" % lookups)


def test_changed_tokens_and_unreachable_servers():
    with cluster() as those, node_of(those, more=ACL % '  token_ttl = "100ms"\n') as n:
        this = those.wait_node()["ID"]
        fill(those)
        those.add_token(token(100), "client", ["reads"])
        case.equal(get(n, token(100), "/v1/client/stats")[0], 403)
        those.add_token(token(100), "client", ["node-reads"])
        case.until(lambda: get(n, token(100), "/v1/client/stats")[0] == 200, 20, "the new policy to take effect")
        those.delete_token(token(100))
        case.until(lambda: get(n, token(100), "/v1/client/stats")[0] == 403, 20, "the deleted token to be refused")
        case.equal(get(n, "node-reads", "/v1/client/stats")[0], 200)
        one = those.run_job(job("j"), this)[0]
        those.wait_alloc(one, ["running"])
        for name in ("reads", "boss", "agent-reads"):
            case.equal(get(n, name, "/v1/client/allocation/%s/stats" % one)[0], 403 if name == "agent-reads" else 200, name)
        case.equal(get(n, "by-role", "/v1/client/stats")[0], 200)
        those.stop_server(0)
        case.until(lambda: get(n, "boss", "/v1/jobs")[0] == 503, 30, "the node to notice that the server is stopped")
        # Resolved tokens stay valid; a token that was never resolved cannot be checked.
        for name, path, status in (
                ("node-reads", "/v1/client/stats", 200), ("node-reads", "/v1/nodes", 200),
                ("reads", "/v1/client/stats", 403), ("reads", "/v1/allocations", 200),
                ("reads", "/v1/allocations?namespace=*", 403), ("boss", "/v1/allocations?namespace=*", 200),
                ("reads", "/v1/allocation/" + one, 200), ("agent-reads", "/v1/allocation/" + one, 403),
                ("reads", "/v1/node/%s/allocations" % this, 403),
                ("agent-reads", "/v1/agent/self", 200), ("files", "/v1/client/stats", 503),
                ("", "/v1/client/stats", 503)):
            found, text = get(n, name, path)
            case.equal(found, status, "%s by %r without servers: %s" % (path, name, text))
        # A token that may read the node sees the allocs of the namespaces whose jobs it may read.
        for name, shown in (("node-reads", []), ("by-role", [one]), ("boss", [one])):
            status, text = get(n, name, "/v1/node/%s/allocations" % this)
            case.equal((status, [a["ID"] for a in json.loads(text)] if status == 200 else text), (200, shown), name)
        case.contains(get(n, "files", "/v1/client/stats")[1], "the token cannot be checked")


def test_the_command_sends_its_token():
    for variable, name, code in (("DROVER_TOKEN", "", 1), ("DROVER_TOKEN", "reads", 1), ("DROVER_TOKEN", "files", 0),
                                 ("NOMAD_TOKEN", "files", 0), ("DROVER_TOKEN", "x\r\nHost: x", 1)):
        env = {"PATH": os.environ["PATH"], "DROVER_ADDR": "unix://" + node.socket_path, variable: secret(name)}
        done = subprocess.run([binary("drover"), "alloc", "fs", alloc, "alloc/logs"], env=env, capture_output=True,
                              timeout=case.LEAST_S, check=False)
        case.equal(done.returncode, code, "%r: %s" % (name, done.stderr))


def test_without_acl_in_the_configuration_servers_alone_check():
    """As every client does: then only the servers check permissions."""
    with cluster() as those, node_of(those) as n:
        this = those.wait_node()["ID"]
        fill(those)
        case.equal(get(n, "", "/v1/client/stats")[0], 200)
        those.call_node(this, "ClientStats.Stats", {"NodeID": this, "AuthToken": NOBODY})
        case.equal([c["method"] for c in those.calls() if c["method"].startswith("ACL.")], [], "number of token look-ups")


def test_the_audit_log_names_tokens_that_only_servers_check():
    with cluster() as those, node_of(those, more="audit { enabled = true }\n") as n:
        those.wait_node()
        fill(those)
        for name in ("boss", "reads", NOBODY, ""):
            get(n, name, "/v1/nodes")
        with open(n.data + "/audit/audit.log", encoding="utf-8") as f:
            text = f.read()
        found = [p["auth"] for p in (json.loads(line)["payload"] for line in text.splitlines())
                 if p["request"]["endpoint"] == "/v1/nodes" and p["stage"] == "OperationComplete"]
        case.equal([(a.get("accessor_id"), a.get("type")) for a in found],
                   [(secret("boss")[::-1], "management"), (secret("reads")[::-1], "client"), (None, None), ("anonymous", "client")])
        case.equal([secret(name) in text for name in ("boss", "reads", NOBODY)], [False] * 3, "tokens in the log")


def audited(n):
    """Returns (method, accessor, alloc, namespace) of the entries of servers' calls."""
    with open(n.data + "/audit/audit.log", encoding="utf-8") as f:
        text = f.read()
    case.equal([name for name, t in TOKENS.items() if t in text], [], "tokens in the log")
    found = [json.loads(line)["payload"] for line in text.splitlines()]
    case.equal({p["stage"] for p in found if p["request"]["operation"] == "RPC"} - {"OperationReceived"}, set())
    return [(p["request"]["endpoint"], p["auth"].get("accessor_id"), p["request"]["peer"].get("alloc_id"), p["request"]["namespace"]["id"])
            for p in found if p["request"]["operation"] == "RPC"]


def test_calls_of_servers_that_change_something_are_audited():
    with cluster() as those, node_of(those, more="audit { enabled = true }\n" + ACL % "") as n:
        this = those.wait_node()["ID"]
        fill(those)
        given = those.run_job(job("j", "/bin/sh", ["-c", "exec sleep 1000"]), this)[0]
        those.wait_alloc(given, ["running"])
        for name in ("writes", "boss", "reads"):
            for method, request in (("Allocations.Signal", {"AllocID": given, "Task": "t", "Signal": "SIGCONT"}), ("Allocations.Stats", {"AllocID": given}),
                                    ("NodeMeta.Apply", {"NodeID": this, "Meta": {}})):
                try:
                    those.call_node(this, method, {"AuthToken": secret(name), **request})
                except Refusal as e:
                    case.equal(denied(str(e)), True, str(e))
        made = [("Allocations.Signal", secret("writes")[::-1], given, "default"), ("Allocations.Signal", secret("boss")[::-1], given, "default"),
                ("NodeMeta.Apply", secret("boss")[::-1], None, "default")]
        case.equal(audited(n), made)
        # Without an entry nothing is changed.
        os.unlink(n.data + "/audit/audit.log")
        os.mkfifo(n.data + "/audit/audit.log")
        try:
            those.call_node(this, "NodeMeta.Apply", {"NodeID": this, "Meta": {"late": "1"}, "AuthToken": secret("boss")})
            raise AssertionError("a change without an entry")
        except Refusal as e:
            case.contains(str(e), "the audit log of the node cannot be written")
        case.equal("late" in (those.node(this)["Meta"] or {}), False, "metadata")


with cluster() as servers, node_of(servers, more=ACL % "") as node:
    me = servers.wait_node()["ID"]
    fill(servers)
    alloc = servers.run_job(job("j", "/bin/sh", ["-c", "echo hello; exec sleep 1000"]), me)[0]
    servers.wait_alloc(alloc, ["running"])
    case.until(lambda: "hello" in get(node, "boss", "/v1/client/fs/logs/%s?task=t&type=stdout&plain=true" % alloc)[1], 20,
               "the output of the task")
    case.run(globals())
