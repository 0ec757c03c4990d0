#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""API paths that only servers can answer, requested at the agent's own socket."""
import os
import threading
import time

from lib import api, case
from lib.cluster import job, node_of, processes_of, servers as cluster

NOBODY = "99999999-9999-4999-8999-999999999999"


def fds(node):
    return len(os.listdir("/proc/%d/fd" % node.processes()["supervisor"]))


def run(version):
    with cluster(version=version) as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        case.equal(node.ask("/v1/jobs"), [], "jobs before the first registration")
        found = node.register({"Job": {**job("web"), "Name": "web"}})
        case.equal(found["JobModifyIndex"] > 0, True, str(found))
        case.equal(servers.calls("Job.Register")[-1]["args"]["Job"]["TaskGroups"][0]["Tasks"][0]["KillTimeout"], 2 * 10**9)
        alloc = node.wait_running("web", 1, 30)[0]["ID"]
        case.equal([j["ID"] for j in node.ask("/v1/jobs")], ["web"])
        case.equal(node.ask("/v1/jobs", prefix="x") or [], [])
        shown = node.ask("/v1/job/web")
        case.equal((shown["ID"], shown["TaskGroups"][0]["Tasks"][0]["Config"]["command"]), ("web", "/bin/sleep"))
        shown = node.ask("/v1/allocation/" + alloc)
        case.equal((shown["NodeID"], shown["Job"]["ID"], shown["ClientStatus"]), (me, "web", "running"))
        case.contains(shown["TaskStates"]["t"]["StartedAt"], "T")
        case.equal((shown["TaskStates"]["t"]["FinishedAt"], "SecretID" in shown), (None, False), "fields of the answer")
        case.equal([n["ID"] for n in node.ask("/v1/nodes")], [me])
        case.equal("Attributes" in node.ask("/v1/nodes")[0] and node.ask("/v1/nodes")[0]["Attributes"] is not None, False)
        case.contains(node.ask("/v1/nodes", os="true")[0]["Attributes"], "os.name")
        shown = node.ask("/v1/node/" + me)
        case.equal((shown["ID"], "SecretID" in shown), (me, False), "the node, without its secret")
        case.equal(":" in node.ask("/v1/status/leader"), True, "the leader")
        case.equal(node.ask("/v1/agent/servers"), servers.addresses)
        case.equal({m["Addr"] for m in node.ask("/v1/agent/members")["Members"]}, {"127.0.0.1"})
        for path, text in (("/v1/job/none", "job not found"), ("/v1/allocation/" + NOBODY, "alloc not found")):
            node.refused(404, text, "GET", path)
        node.refused(400, "no Job", "PUT", "/v1/jobs", {"x": 1})
        # Paths that servers do not answer, with the messages of their own agents.
        node.refused(501, "Nomad Enterprise only endpoint", "GET", "/v1/quotas")
        node.refused(501, "Nomad Enterprise only endpoint", "PUT", "/v1/quota/usage/x", {})
        case.equal(node.do("PUT", "/v1/jobs/parse", {"JobHCL": 'job "x" {\n}'})["ID"], "x", "a job that the node itself parses")
        node.refused(400, "missing required Items", "PUT", "/v1/var/a/b", {"Path": "a/b"})
        node.refused(400, "cas: \"x\" is not a number", "DELETE", "/v1/var/a/b?cas=x")
        node.refused(400, "not valid base64", "PUT", "/v1/job/web/dispatch", {"Payload": "%"})
        node.refused(400, "not a duration", "PUT", "/v1/operator/autopilot/configuration", {"LastContactThreshold": "soon"})
        case.equal(node.ask("/v1/volumes"), [], "volumes without a type")
        found = [(v["Name"], v["NodeID"]) for v in node.ask("/v1/volumes?type=host&node_id=" + me)]
        case.equal(found, [] if version.startswith("1.6") else [("scratch", me)], "dynamic host volumes, which 1.6 does not have")
        node.refused(400, "detach requires node ID", "DELETE", "/v1/volume/csi/v/detach")
        node.refused(500, "no such volume", "DELETE", "/v1/volume/csi/v/detach?node=" + me)
        args = servers.calls("CSIVolume.Unpublish")[-1]["args"]
        case.equal((args["VolumeID"], args["Claim"]["NodeID"], args["Claim"]["Mode"]), ("v", me, 2))
        # A blocking query ends at the change that it waits for.
        first = node.request("GET", "/v1/job/web")
        index = int(first.headers["X-Nomad-Index"])
        case.equal((first.headers["X-Nomad-KnownLeader"], first.headers["X-Nomad-LastContact"]), ("true", "0"))
        later = []
        waiting = threading.Thread(target=lambda: later.append(
            node.request("GET", "/v1/job/web?index=%d&wait=500s" % index, timeout=400)))
        waiting.start()
        time.sleep(0.5)  # long enough that the query has usually begun, and that an answer without waiting would have arrived
        case.equal(later, [], "answers before the change")
        node.do("DELETE", "/v1/job/web")
        waiting.join(400)
        case.equal(int(later[0].headers["X-Nomad-Index"]) > index and later[0].json["Stop"], True, later[0].text)
        case.until(lambda: node.ask("/v1/allocation/" + alloc)["ClientStatus"] == "complete", 20, "the alloc to end")
        case.equal(processes_of(alloc), [], "processes")
        begun = time.monotonic()
        shown = node.request("GET", "/v1/jobs?index=1000000&wait=1s")
        case.equal((shown.status, 0.9 < time.monotonic() - begun), (200, True), "status of a query that reaches its timeout")
        node.refused(400, "Invalid index", "GET", "/v1/jobs?index=x")
        node.refused(400, "Invalid wait time", "GET", "/v1/jobs?index=1&wait=x")
        # Waiting clients that disconnect are removed. Earlier connections may not all be closed yet.
        before, leaving = fds(node), [node.connect() for _ in range(20)]
        for s in leaving:
            s.sendall(b"GET /v1/jobs?index=1000000&wait=10m HTTP/1.1\r\nHost: x\r\n\r\n")
        case.until(lambda: fds(node) >= before + 10, 20, "their connections to be accepted")
        for s in leaving:
            s.close()
        case.until(lambda: fds(node) <= before, 30, "their connections to be closed")


def variables(version):
    """Requests for variables go to the servers with the client's token; the times of a lock are texts here and numbers there."""
    with cluster(version=version) as servers, node_of(servers) as node:
        servers.wait_node()

        def put(path, status=200, **body):
            answer = node.request("PUT", "/v1/var/" + path, body)
            case.equal(answer.status, status, answer.text)
            return answer.json if status in (200, 409) else answer.text
        made = put("a/b?namespace=default", Items={"k": "v", "empty": ""})
        case.equal((made["Items"], made["Path"], "Lock" in made), ({"k": "v", "empty": ""}, "a/b", False))
        case.equal(node.ask("/v1/var/a/b"), made)
        answer = node.request("GET", "/v1/vars?prefix=a")
        case.equal(answer.json, [{k: v for k, v in made.items() if k != "Items"}])
        case.equal(node.ask("/v1/vars?prefix=z"), [])
        node.refused(404, "variable not found", "GET", "/v1/var/none")
        case.equal(put("a/b?cas=0", 409, Items={"k": "w"}), made)
        case.equal(put("a/b?cas=%d" % made["ModifyIndex"], Items={"k": "w"})["Items"], {"k": "w"})
        case.equal(node.request("DELETE", "/v1/var/a/b?cas=1").status, 409)
        case.contains(put("a/b?lock-acquire&cas=1", 400), "cas cannot be combined")
        case.contains(put("a/b?lock-acquire&lock-renew", 400), "multiple lock operations")
        put("a/b?lock-acquire", 400, Lock={"TTL": "soon"})
        if version.startswith("1.6"):
            case.contains(put("a/b?lock-acquire", 500), "lock-acquire")
            put("a/b?lock-renew", 500, Lock={"ID": "x"})
        else:
            held = put("a/b?lock-acquire", Items={"k": "w"}, Lock={"TTL": "20s", "LockDelay": "1m30s"})
            key = held["Lock"]["ID"]
            case.equal(servers.calls("Variables.Apply")[-1]["args"]["Var"]["Lock"], {"ID": "", "TTL": 20 * 10**9, "LockDelay": 90 * 10**9})
            case.equal((held["Lock"], node.ask("/v1/vars")[0]["Lock"]), ({"ID": key, "TTL": "20s", "LockDelay": "1m30s"}, held["Lock"]))
            case.equal(put("a/b", 409, Items={"k": "x"}), {"Namespace": "default", "Path": "a/b", "CreateIndex": 0, "CreateTime": 0,
                                                           "ModifyIndex": 0, "ModifyTime": 0})
            case.equal(put("a/b?lock-renew", Lock={"ID": key})["Lock"], held["Lock"])
            node.refused(409, "locked variable", "PUT", "/v1/var/a/b?lock-renew", {"Lock": {"ID": "wrong"}})
            node.refused(404, "doesn't exist", "PUT", "/v1/var/none?lock-renew", {"Lock": {"ID": "x"}})
            case.equal("Lock" in put("a/b?lock-release", Lock={"ID": key}), False)
            # Servers delete the items of a variable that is locked without items; the command brings them back.
            put("a/b", Items={"k": "kept"})
            r = node.drover("var", "lock", "a/b", 'echo held; exit 3', code=3)
            case.equal((r.out, "Lock" in node.ask("/v1/var/a/b"), node.ask("/v1/var/a/b")["Items"]), ("held\n", False, {"k": "kept"}))
        node.drover("var", "put", "-force", "cli", "k=v")
        case.equal(node.drover("var", "get", "-item", "k", "cli").out, "v")
        case.contains(node.drover("var", "put", "cli", "k=w", code=1).err, "its index is")
        node.drover("var", "purge", "cli")
        case.equal([v["Path"] for v in node.ask("/v1/vars")], ["a/b"])
        case.equal(node.request("DELETE", "/v1/var/a/b").status, 204)
        node.request("GET", "/v1/var/a/b")
        case.equal({c["args"]["AuthToken"] for c in servers.calls("Variables.Apply")}, {""}, "tokens of requests without one")
        # Servers without ACLs ignore a token.
        node.drover("var", "get", "-token", "11111111-1111-4111-8111-111111111111", "a/b", code=1)
        case.equal(servers.calls("Variables.Read")[-1]["args"]["AuthToken"], "11111111-1111-4111-8111-111111111111", "the token of the last request")


def sources(version):
    """Servers have the values of variables encoded, as Nomad's agents send them."""
    with cluster(version=version) as servers, node_of(servers) as node:
        servers.wait_node()
        values = {"text": "50% of a+b é", "plain": "x"}
        sent = {"Source": "job {}\n", "Format": "hcl2", "VariableFlags": values, "Variables": "a = 1\n"}
        answer = node.register({"Job": job("web"), "Submission": sent, "EvalPriority": 70, "PreserveCounts": True, "PreserveResources": version > "1.10"})
        args = servers.calls("Job.Register")[-1]["args"]
        case.equal(args["Submission"]["VariableFlags"], {"text": "50%25%20of%20a%2Bb%20%C3%A9", "plain": "x"})
        case.equal((args["EvalPriority"], args["PreserveCounts"], args.get("PreserveResources", False)), (70, True, version > "1.10"))
        shown = node.ask("/v1/job/web/submission", version=0)
        case.equal(shown, {**sent, "Namespace": "default", "JobID": "web", "Version": 0, "JobModifyIndex": answer["JobModifyIndex"]})
        node.refused(404, "job source not found", "GET", "/v1/job/web/submission?version=1")
        node.refused(404, "job source not found", "GET", "/v1/job/none/submission?version=0")
        for query in ("", "?version=x", "?version=-1"):
            node.refused(400, "Unable to parse job submission version parameter", "GET", "/v1/job/web/submission" + query)
        node.refused(400, "Eval priority must be between 1 and 100", "PUT", "/v1/jobs", {"Job": job("web"), "EvalPriority": 101})
        node.refused(400, "Eval priority must be between 1 and 100", "DELETE", "/v1/job/web?eval_priority=101")
        node.do("DELETE", "/v1/job/web?eval_priority=80&no_shutdown_delay=true")
        args = servers.calls("Job.Deregister")[-1]["args"]
        case.equal((args["EvalPriority"], args["NoShutdownDelay"]), (80, True))


def test_sources_at_servers_of_1_6():
    sources("1.6.10")


def test_sources_at_servers_of_2_0():
    sources("2.0.5")


def test_api_paths_with_servers_of_1_6():
    run("1.6.10")


def test_api_paths_with_servers_of_2_0():
    run("2.0.5")


def test_the_token_of_the_client_is_forwarded():
    with cluster() as servers, node_of(servers) as node:
        servers.wait_node()
        for header, value in (("X-Nomad-Token", NOBODY), ("Authorization", "Bearer " + NOBODY)):
            c = api.Connection(node, case.LEAST_S)
            c.request("GET", "/v1/job/none", headers={header: value})
            c.getresponse().read()
            c.close()
            case.equal(servers.calls("Job.GetJob")[-1]["args"]["AuthToken"], NOBODY, header)
        node.request("GET", "/v1/job/none?namespace=other&region=far&stale")
        args = servers.calls("Job.GetJob")[-1]["args"]
        case.equal((args["Namespace"], args["AllowStale"], args["AuthToken"]), ("other", True, ""))


def test_versions_and_their_tags_are_asked_of_the_servers():
    with cluster(version="2.0") as servers, node_of(servers) as node:
        servers.wait_node()
        node.register({"Job": {**job("web"), "Name": "web"}})
        found = node.do("PUT", "/v1/job/web/versions/gold/tag", {"Version": 0, "Description": "good"})
        case.equal((found["Name"], found["Description"]), ("gold", "good"))
        case.equal(node.ask("/v1/job/web/versions")["Versions"][0]["VersionTag"]["Name"], "gold")
        args = servers.calls("Job.TagVersion")[-1]["args"]
        case.equal((args["JobID"], args["Name"], args["Tag"]["Name"], args["Version"]), ("web", "gold", "gold", 0))
        node.ask("/v1/job/web/versions", diffs="true", diff_version="3", diff_tag="gold")
        args = servers.calls("Job.GetJobVersions")[-1]["args"]
        case.equal((args["Diffs"], args["DiffVersion"], args["DiffTagName"]), (True, 3, "gold"))
        node.do("DELETE", "/v1/job/web/versions/gold/tag")
        case.equal(servers.calls("Job.TagVersion")[-1]["args"]["Tag"], None)
        case.equal(node.ask("/v1/job/web/versions")["Versions"][0]["VersionTag"], None)
        node.refused(400, "diff_version", "GET", "/v1/job/web/versions?diff_version=x")


def test_variables_of_servers_1_6():
    variables("1.6.10")


def test_variables_of_servers_2_0():
    variables("2.0.5")


def test_without_a_server_objects_of_this_node_are_shown():
    with cluster() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        alloc = servers.run_job(job(), me)[0]
        servers.wait_alloc(alloc, ["running"])
        servers.stop_server(0)
        case.until(lambda: node.request("GET", "/v1/jobs").status == 503, 30, "the node to notice that the server is stopped")
        case.equal([n["ID"] for n in node.ask("/v1/nodes")], [me])
        case.equal([a["ID"] for a in node.ask("/v1/allocations")], [alloc])
        case.equal(node.ask("/v1/allocation/" + alloc)["ClientStatus"], "running")
        case.equal(list(node.ask("/v1/client/allocation/%s/stats" % alloc)["Tasks"]), ["t"])
        case.equal(node.ask("/v1/client/stats")["Memory"]["Total"] > 0, True)
        node.refused(503, "No servers", "GET", "/v1/job/j")


case.run(globals())
