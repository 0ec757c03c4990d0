#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 1800
# takes: 190
"""As 3110, for the other rows: periodic launches, dispatched jobs, volumes, the node itself, and the rows of a node in a cluster."""
import base64
import datetime
import json
import os
import re
import time

from lib import case
from lib.crash_page import page
from lib.crash_sweep import check_reached
from lib.crash_walk import OF_3115, S, events, finish, kinds, starts, wait_status, walk
from lib import agent, api, binary, cluster, crash, nomad_server

ACL = "acl { enabled = true }\n"

# --- cycles: each returns its result ---

def launches(node):
    """A periodic job with a single time has one child, which runs once. If the registration was too late for that time, another is
    tried."""
    while True:
        at = datetime.datetime.fromtimestamp(int(time.time()) + 3, datetime.timezone.utc)
        made = crash.job("at", then="exit 0")
        made["Job"].update(Type="batch", Periodic={"Spec": at.strftime("%S %M %H %d %m * %Y")})
        node.register(made)
        if node.ask("/v1/job/at")["SubmitTime"] < at.timestamp() * S:
            break
        node.purge("at")
    child = "at/periodic-%d" % at.timestamp()
    case.until(lambda: node.ask("/v1/jobs", prefix="at/"), 60, "the launch")
    alloc = wait_status(node, child, "complete")[0]
    out = [[j["ID"] == child for j in node.ask("/v1/jobs", prefix="at/")], starts(node, alloc), events(node, alloc),
           node.ask("/v1/jobs", prefix="at")[0]["JobSummary"]["Children"]]
    finish(node, "at")
    return out


def dispatches(node):
    """Two dispatches with one token make one child, which has the payload."""
    then = 'cp "$NOMAD_TASK_DIR/in" "$NOMAD_ALLOC_DIR/data/payload"'
    made = crash.job("calc", then=then, driver="raw_exec", DispatchPayload={"File": "in"})
    made["Job"].update(Type="batch", ParameterizedJob={})
    node.register(made)
    path = "/v1/job/calc/dispatch?idempotency_token=" + os.urandom(8).hex()
    body = {"Payload": base64.b64encode(b"what is dispatched").decode()}
    child = node.do("PUT", path, body)["DispatchedJobID"]
    case.equal(node.do("PUT", path, body)["DispatchedJobID"], child, "the child of the second dispatch")
    alloc = wait_status(node, child, "complete")[0]
    out = [len(node.ask("/v1/jobs", prefix="calc/")), starts(node, alloc), events(node, alloc),
           crash.alloc_data(node, alloc["ID"], "payload")]
    finish(node, "calc")
    return out


def volume(node):
    """A volume is created, written by two jobs one after the other, and deleted."""
    wish = {"ID": "data", "Name": "data", "PluginID": "local", "RequestedCapacityMin": 1 << 20, "RequestedCapabilities": [
        {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}]}
    case.until(lambda: node.request("PUT", "/v1/volume/csi/data/create", {"Volumes": [wish]}).status in (200, 409), 60, "the volume to be created")
    found = []
    for name in ("writer", "reader"):
        node.register(crash.job(name, then="echo %s >> /d/who; cp /d/who $NOMAD_ALLOC_DIR/data/who; exec sleep 100000" % name,
                                driver="exec", group={"Volumes": {"v": {
                                    "Name": "v", "Type": "csi", "Source": "data", "AccessMode": "single-node-writer",
                                    "AttachmentMode": "file-system"}}}, VolumeMounts=[{"Volume": "v", "Destination": "/d"}]))
        alloc = node.wait_running(name, 1, 60)[0]
        case.until(lambda a=alloc: crash.alloc_data(node, a["ID"], "who"), 60, "the data of the job")
        found += [crash.alloc_data(node, alloc["ID"], "who"), starts(node, alloc), events(node, alloc)]
        node.purge(name, 60)
    case.until(lambda: node.request("DELETE", "/v1/volume/csi/data/delete").status in (200, 404), 60, "the volume to be deleted")
    return [found, node.ask("/v1/volumes", type="csi"), crash.unexplained(node)]


def namespaces(node):
    """A namespace is made, has a job, and is deleted."""
    made = crash.job("in", then="exit 0")
    made["Job"].update(Type="batch", Namespace="made")
    case.until(lambda: node.request("PUT", "/v1/namespace", {"Name": "made", "Meta": {"k": "v"}}).status == 200, 60, "the namespace")
    case.until(lambda: node.request("PUT", "/v1/jobs", made).status == 200, 60, "the job")
    case.until(lambda: node.ask("/v1/job/in", namespace="made")["Status"] == "dead", 60, "the job to end")
    found = [node.ask("/v1/namespace/made")["Meta"], [j["ID"] for j in node.ask("/v1/jobs", namespace="made")]]
    case.until(lambda: node.request("DELETE", "/v1/namespace/made").status in (200, 404), 60, "the namespace to be deleted")
    case.until(lambda: node.ask("/v1/jobs", namespace="*") == [], 60, "its job to be forgotten")
    crash.wait_nothing_left(node, 60)
    return [found, [n["Name"] for n in node.ask("/v1/namespaces")], crash.unexplained(node)]


def tokens(node):
    """A job gets tokens from keys that were just rotated, which are public; then the replaced keys are removed."""
    def replaced():
        return [k["KeyID"] for k in node.ask("/v1/operator/keyring/keys") if k["State"] != "active"]
    case.until(lambda: node.request("PUT", "/v1/operator/keyring/rotate").status == 200, 60, "the keys to be rotated")
    made = crash.job("signed", then='echo $NOMAD_TOKEN $NOMAD_TOKEN_a > "$NOMAD_ALLOC_DIR/data/tokens"', driver="raw_exec",
                     Identity={"Env": True}, Identities=[{"Name": "a", "Env": True}])
    made["Job"].update(Type="batch")
    node.register(made)
    alloc = wait_status(node, "signed", "complete")[0]
    heads = [json.loads(base64.urlsafe_b64decode(t.split(".")[0] + "==")) for t in " ".join(crash.alloc_data(node, alloc["ID"], "tokens")).split()]
    public = {k["kid"]: k["alg"] for k in node.ask("/.well-known/jwks.json")["keys"]}
    found = [[public[h["kid"]] for h in heads], starts(node, alloc), events(node, alloc)]
    for key in replaced():
        case.until(lambda k=key: node.request("DELETE", "/v1/operator/keyring/key/" + k).status in (200, 404), 60, "the key to be removed")
    finish(node, "signed")
    return [found, replaced(), sorted(k["Algorithm"] for k in node.ask("/v1/operator/keyring/keys"))]


def variables(node):
    """Variables are written, changed under a lock, and deleted. The answer to a change may be lost: then the change is there, or it is not."""
    def value(path):
        answer = node.request("GET", "/v1/var/" + path)
        return answer.json if answer.status == 200 else {"ModifyIndex": 0}

    def write(path, text, query="", **more):
        """Writes until the text is there."""
        def so():
            node.request("PUT", "/v1/var/%s?%s" % (path, query or "cas=%d" % value(path)["ModifyIndex"]), dict({"Items": {"k": text}}, **more))
            return value(path).get("Items") == {"k": text}
        case.until(so, 60, "%s to be %s" % (path, text))
    out = []
    for path in ("a", "b/c"):
        write(path, "first")
        write(path, "second")
        out += [value(path)["Items"], value(path)["CreateIndex"] < value(path)["ModifyIndex"]]
    key = {"ID": "of the test", "TTL": "1h"}
    write("a", "locked", "lock-acquire", Lock=key)
    case.equal(node.request("PUT", "/v1/var/a", {"Items": {"k": "stolen"}}).status, 409, "a change by another")
    write("a", "held", "namespace=default", Lock={"ID": key["ID"]})
    out += [value("a")["Items"], value("a")["Lock"]["TTL"]]
    case.until(lambda: node.request("PUT", "/v1/var/a?lock-release", {"Lock": {"ID": key["ID"]}}).status in (200, 409), 60, "the release")
    out += [value("a")["Items"], "Lock" in value("a"), [v["Path"] for v in node.ask("/v1/vars")]]
    for path in ("a", "b/c"):
        case.until(lambda p=path: node.request("DELETE", "/v1/var/" + p).status == 204, 60, "the deletion")
    return out + [node.ask("/v1/vars")]


def acl(node):
    """A policy, a role and a token are made, permit something, and are deleted; a repeated request of one that was answered changes nothing."""
    def until_done(method, path, body=None, done=(200,)):
        return case.until(lambda: (a := node.request(method, path, body)).status in done and a, 60, method + " " + path)

    def made(kind):
        return [x for x in node.ask("/v1/acl/" + kind) if x["Name"].startswith("walked")]
    until_done("PUT", "/v1/acl/policy/walked", {"Name": "walked", "Rules": 'node { policy = "read" }'})
    until_done("PUT", "/v1/acl/role", {"Name": "walked", "Policies": [{"Name": "walked"}]}, (200, 400))
    ids = {"AccessorID": "00000000-0000-4000-8000-000000000001", "SecretID": "00000000-0000-4000-8000-000000000002"}
    until_done("PUT", "/v1/acl/token", {**ids, "Name": "walked", "Type": "client", "Roles": [{"Name": "walked"}]})
    boss, node.token = node.token, ids["SecretID"]
    may = case.until(lambda: (a := node.request("GET", "/v1/nodes")).status == 200 and node.request("GET", "/v1/jobs").status, 60, "the token")
    node.token = boss
    found = [may, [p["Name"] for p in made("policies")], [[p["Name"] for p in r["Policies"]] for r in made("roles")],
             [[r["Name"] for r in t["Roles"]] for t in made("tokens")]]
    until_done("DELETE", "/v1/acl/token/" + ids["AccessorID"], None, (200, 400))
    for role in made("roles"):
        until_done("DELETE", "/v1/acl/role/" + role["ID"], None, (200, 404))
    until_done("DELETE", "/v1/acl/policy/walked")
    return [found, made("policies"), made("roles"), made("tokens")]


def bootstrap():
    """The first token is known to who asked for it, or root resets it; it is the only one that permits anything."""
    with crash.Node(env=page.env, args=agent.config_args(ACL)) as node:
        answer = case.until(lambda: (a := node.request("PUT", "/v1/acl/bootstrap")).status in (200, 400) and a, 60, "the first token")
        if answer.status == 400:
            with open(node.data + "/state/acl-bootstrap-reset", "w", encoding="utf-8") as f:
                f.write(re.search(r"reset index: (\d+)", answer.text).group(1))
            answer = case.until(lambda: (a := node.request("PUT", "/v1/acl/bootstrap")).status == 200 and a, 60, "another first token")
        node.token = answer.json["SecretID"]
        node.kill("supervisor")
        return case.until(lambda: (a := node.request("GET", "/v1/acl/token/self")).status == 200 and a.json["Name"], 60, "the token")


# --- tests ---

def test_children_are_launched_once():
    with crash.Node(env=page.env) as node:
        walk("launches", lambda: launches(node), kinds("LAUNCH"))
        walk("dispatches", lambda: dispatches(node), kinds("JOB", "EVAL"), 8)


def test_crashes_at_rows_of_namespaces():
    with crash.Node(env=page.env) as node:
        walk("namespaces", lambda: namespaces(node), kinds("NAMESPACE"))


def test_crashes_at_rows_of_signing_keys():
    with crash.Node(env=page.env) as node:
        walk("tokens", lambda: tokens(node), kinds("SIGNING_KEY"))


def test_crashes_at_rows_of_variables():
    with crash.Node(env=page.env) as node:
        walk("variables", lambda: variables(node), kinds("VARIABLE"))


def test_crashes_at_rows_of_acls():
    walk("bootstrap", bootstrap, kinds("ACL_BOOTSTRAP"), others=0)
    with crash.Node(env=page.env, args=agent.config_args(ACL)) as node:
        node.token = node.do("PUT", "/v1/acl/bootstrap")["SecretID"]
        walk("acl", lambda: acl(node), kinds("ACL_POLICY", "ACL_ROLE", "ACL_TOKEN"))


def test_crashes_at_rows_of_volumes():
    store = case.directory()
    with crash.Node(env=page.env) as node:
        node.register(api.job("plugin", binary("csi-local"), ["-root", store], group={"RestartPolicy": crash.RESTART},
                              CSIPluginConfig={"ID": "local", "Type": "monolith", "MountDir": "/csi"}))
        case.until(lambda: [p["NodesHealthy"] for p in node.ask("/v1/plugins", type="csi")] == [1], 60, "the plugin to be healthy")
        walk("volume", lambda: volume(node), kinds("VOLUME", "MOUNT"), 12)
        finish(node, "plugin")


def test_crashes_at_the_first_start_of_a_node():
    def first():
        with crash.Node(env=page.env, disk=True) as node:
            found = node.ask("/v1/nodes")[0]
            node.kill("supervisor")
            again = node.ask("/v1/nodes")[0]
            return [found["ID"] == again["ID"], found["Status"], crash.unexplained(node)]
    walk("first start", first, kinds("NODE", "DISK", "INDEX"))


def test_crashes_at_rows_of_a_node_in_a_cluster():
    with cluster.servers() as servers, cluster.node_of(servers, kind=crash.Node, env=page.env) as node:
        me = servers.wait_node()["ID"]
        service = {"Name": "web", "PortLabel": "8080", "Provider": "nomad", "Checks": [], "Tags": []}

        def cycle():
            """Changes metadata, and runs and stops an alloc with a service and a token."""
            text = os.urandom(8).hex()

            def told():
                """Repeats a request whose answer was lost."""
                try:
                    servers.call_node(me, "NodeMeta.Apply", {"NodeID": me, "Meta": {"text": text}})
                except nomad_server.Refusal:
                    pass
                return (servers.node(me)["Meta"] or {}).get("text") == text
            case.until(told, 60, "the metadata")
            made = crash.job("far", then='wc -l < "$NOMAD_SECRETS_DIR/nomad_far.jwt" > "$NOMAD_ALLOC_DIR/data/token"; exec sleep 100000',
                             group={"Services": [service]}, Identities=[{"Name": "far", "Audience": ["far"], "File": True}])
            alloc = servers.run_job(made["Job"], me)[0]
            found = servers.wait_alloc(alloc, ["running"], 60)
            case.until(lambda: [s["AllocID"] for s in servers.services()] == [alloc] and
                       crash.alloc_data(node, alloc, "token"), 60, "its service and token")
            token = crash.alloc_data(node, alloc, "token")
            n = starts(node, {"ID": alloc})
            servers.stop_alloc(alloc)
            found = servers.wait_alloc(alloc, ["complete"], 60)
            case.until(lambda: servers.services() == [], 60, "its service to be removed")
            servers.remove_alloc(alloc)
            crash.wait_nothing_left(node, 60)
            return [n, token, cluster.events(found), crash.unexplained(node), servers.node(me)["Status"]]
        walk("servers", cycle, kinds("NODE_META", "NOMAD_JOB", "SERVICE"), 3)


def test_crashes_while_a_node_joins_a_cluster():
    def joins():
        """The node registers once as a new node, and keeps its identity from then on."""
        with cluster.servers() as servers, cluster.node_of(servers, kind=crash.Node, env=page.env) as node:
            me = servers.wait_node("ready", 60)["ID"]
            known = servers.last_call()
            node.kill("supervisor")
            servers.wait_call("Node.Register", known, 60)
            return [list(servers.nodes()) == [me], node.ask("/v1/agent/self")["stats"]["client"]["node_id"] == me]
    walk("joins", joins, kinds("NOMAD_NODE"))


def test_each_row_was_reached():
    check_reached(OF_3115)


case.run(globals())
