# SPDX-License-Identifier: Apache-2.0
"""tests/peers/nomad-server, the simulated servers: what their methods do, in each version, and their requests to a node.
tests/peers/nomad-server-compare checks the same with real servers."""
import time
import uuid

from lib import case, nomad_client, nomad_server
from lib.nomad_client import RpcError
import gopack

JOB = {"ID": "j", "Type": "service", "TaskGroups": [{"Name": "g", "Count": 2, "Tasks": [
    {"Name": "t", "Driver": "raw_exec", "Config": {"command": "/bin/sleep", "args": ["9"], "n": 3}, "Resources": {"CPU": 50}}],
    "Networks": [{"DynamicPorts": [{"Label": "http", "To": -1}]}]}]}
VERSIONS = ("1.6.10", "2.0.5")
NOBODY = "99999999-9999-4999-8999-999999999999"
S = 10 ** 9


def says(fn, *args, **kwargs):
    """Returns the text of the error that fn must get."""
    return str(case.raises(RpcError, fn, *args, **kwargs))


def job(**group):
    """Returns JOB with one alloc and more fields in its group."""
    return {**JOB, "TaskGroups": [{**JOB["TaskGroups"][0], "Count": 1, **group}]}


def update(c, alloc_id, status, **more):
    now = gopack.time_from_ns(time.time_ns())
    dead = status in ("complete", "failed")
    task = {"State": "dead" if dead else status, "StartedAt": now, "FinishedAt": now if dead else None,
            "Failed": status == "failed", "Events": [{"Type": "Started", "DisplayMessage": "Task started by client",
                                                      "Time": time.time_ns(), "Details": {}}]}
    return {"ID": alloc_id, "NodeID": c.id, "ClientStatus": status, "TaskStates": {"t": task}, "NetworkStatus": {}, **more}


# --- nodes ---

def test_a_node_becomes_ready():
    for version in VERSIONS:
        with nomad_server.Servers(version=version) as servers, nomad_client.Client(servers.address) as c:
            found = c.register(c.node(version))
            case.equal(10 * S <= found["HeartbeatTTL"] <= 20 * S, True, "TTL")
            case.equal(servers.node(c.id)["Status"], "initializing")
            signed = found["SignedIdentity"]
            case.equal(signed is not None, version == "2.0.5", "an identity from " + version)
            case.equal(c.heartbeat()["Index"] > 0, True, "whether the first heartbeat changes the index")
            case.equal(c.heartbeat()["Index"], 0, "index of the second heartbeat")
            case.equal(servers.wait_node()["ID"], c.id)
            case.equal([e["Message"] for e in servers.node(c.id)["Events"]], ["Node registered"])
            servers.set_eligibility(c.id, False)
            case.equal(c.heartbeat()["SchedulingEligibility"], "ineligible")
            c.register(c.node(version, Status="ready", Meta={"a": "b"}))
            node = servers.node(c.id)
            case.equal((node["SchedulingEligibility"], node["Meta"]), ("ineligible", {"a": "b"}), "eligibility, which is kept, and metadata, which are replaced")
            call = servers.wait_call("Node.Register", count=2)[-1]
            case.equal(call["args"]["Node"]["Meta"], {"a": "b"}, "metadata in the recorded call")


def test_identities_of_nodes_are_issued_and_renewed():
    with nomad_server.Servers() as servers, nomad_client.Client(servers.address) as c:
        c.token = c.register()["SignedIdentity"]
        case.equal(c.heartbeat()["SignedIdentity"], None, "identity while the first is fresh")
        renewed = c.heartbeat(ForceIdentityRenewal=True)["SignedIdentity"]
        case.equal(renewed not in (None, c.token), True, "whether it is renewed on request")
        c.token = renewed
        servers.settings(identity_ttl_s=10 ** 6)  # less than a third of its lifetime is left
        case.equal(c.heartbeat()["SignedIdentity"] is not None, True, "whether it is renewed before it expires")
        c.client_allocs()
        servers.purge_node(c.id)
        case.equal(says(c.heartbeat), "node not found")
        case.equal(c.client_allocs()["Allocs"], {}, "allocs of a purged node")
        servers.settings(introduction="strict")
        case.equal(c.register()["SignedIdentity"] is not None, True, "whether its identity is accepted as introduction")
        with nomad_client.Client(servers.address) as other:
            case.equal(says(other.register), "Permission denied")
            other.token = servers.intro_token("x")
            case.equal(says(other.register), "Permission denied")
            other.token = servers.intro_token()
            other.register()
            case.equal(other.heartbeat()["SignedIdentity"] is not None, True, "whether a node with only its secret gets an identity")


def test_which_calls_need_which_token():
    """Without ACLs version 1.6 requires no token, version 2.0 requires the node's own."""
    for version, strict in (("1.6.10", False), ("2.0.5", True)):
        with nomad_server.Servers(version=version) as servers, nomad_client.Client(servers.address) as c, \
                nomad_client.Client(servers.address) as other:
            other.register(other.node(version))
            c.token = c.secret
            if strict:
                c.token = c.secret
                case.equal(says(c.call, "Node.Register", c.write(Node=c.node(version)), "NodeRegisterRequest"),
                           "Permission denied")
            c.token = ""
            c.register(c.node(version))
            event = {"Message": "m", "Subsystem": "Driver", "Details": {}}
            calls = {
                "heartbeat": c.heartbeat, "list": c.client_allocs, "get": lambda: c.get_allocs([NOBODY]),
                "update": lambda: c.update_alloc(update(c, NOBODY, "running")),
                "event": lambda: c.call("Node.EmitEvents", c.write(NodeEvents={c.id: [event]}), "EmitNodeEventsRequest")}
            for token in ("", NOBODY, "garbage", other.secret):
                for name, fn in calls.items():
                    c.token = token
                    if strict and not (token == other.secret and name == "get"):
                        case.equal(says(fn), "Permission denied", "%s with %r" % (name, token))
                    else:
                        fn()
            c.token = c.secret
            for fn in calls.values():
                fn()
            servers.purge_node(c.id)
            case.equal(says(c.heartbeat), "Permission denied" if strict else "node not found")
            case.equal(says(c.update_alloc, update(c, NOBODY, "running")),
                       "Permission denied" if strict else "node %s not found" % c.id)
            if not strict:
                case.equal(c.client_allocs()["Allocs"], {}, "allocs of an unknown node")
            c.token = ""
            c.register(c.node(version))


def test_a_node_that_misses_its_heartbeat():
    with nomad_server.Servers() as servers, nomad_client.Client(servers.address) as c:
        c.register()
        c.heartbeat()
        lost = servers.run_job(job(), c.id)[0]
        servers.settings(ttl_s=0.3, ttl_jitter_s=0, grace_s=0.2)
        case.equal(c.heartbeat()["HeartbeatTTL"], int(0.3 * S))
        servers.wait_node("down", 10)
        case.equal(servers.alloc(lost)["ClientStatus"], "lost")
        case.contains(says(c.update_alloc, update(c, lost, "running")), "is not allowed to update allocs while in status down")
        servers.settings(ttl_s=600)
        c.heartbeat()
        case.equal(servers.node(c.id)["Status"], "ready", "status after a heartbeat of a node that is down")
        kept = servers.run_job(job(Disconnect={"LostAfter": 3600 * S}), c.id)[0]
        c.update_alloc(update(c, kept, "running"))
        servers.miss_heartbeat(c.id)
        case.equal(servers.node(c.id)["Status"], "disconnected", "status of a node with an alloc that may be disconnected")
        before = servers.alloc(kept)
        case.equal((before["ClientStatus"], before["AllocStates"][0]["Value"]), ("unknown", "unknown"))
        case.contains(says(c.update_alloc, update(c, kept, "running")), "while in status disconnected")
        for _ in range(2):
            c.heartbeat()
            case.equal(servers.node(c.id)["Status"], "initializing", "status until the allocs are updated")
        case.equal(c.client_allocs()["Allocs"][kept], before["AllocModifyIndex"], "index of the alloc in the node's list")
        c.update_alloc(update(c, kept, "running"))
        c.heartbeat()
        case.equal(servers.node(c.id)["Status"], "ready")


# --- allocs ---

def test_an_alloc_from_its_placement_to_its_removal():
    for version in VERSIONS:
        with nomad_server.Servers(version=version) as servers, nomad_client.Client(servers.address) as c:
            c.register(c.node(version))
            c.heartbeat()
            index = c.client_allocs()["Index"]
            began = time.monotonic()
            case.equal(c.client_allocs(index, 0.3)["Index"], index, "allocs of a query without a change")
            case.equal(time.monotonic() - began >= 0.3, True, "whether the query blocked")
            ids = servers.run_job(JOB, c.id, deployment=str(uuid.uuid4()))
            listed = c.client_allocs(index, 10)
            case.equal(sorted(listed["Allocs"]), sorted(ids))
            got = c.get_allocs(ids, max(listed["Allocs"].values()) - 1)["Allocs"]
            one = {a["ID"]: a for a in got}[ids[1]]
            case.equal((one["Name"], one["DesiredStatus"], one["ClientStatus"], one["Job"]["TaskGroups"][0]["Tasks"][0]["Config"]),
                       ("j.g[1]", "run", "pending", {"command": "/bin/sleep", "args": ["9"], "n": 3.0}))
            case.equal([p["Value"] for a in got for p in a["AllocatedResources"]["Shared"]["Ports"]], [20000, 20001])
            case.equal(list(one["SignedIdentities"]), ["t"])
            c.update_alloc(update(c, ids[1], "running", DeploymentStatus={"Healthy": True, "Timestamp": None}))
            again = c.client_allocs(listed["Index"], 10)
            case.equal(again["Index"] > listed["Index"], True, "whether the node's own update ends the query")
            case.equal(again["Allocs"], listed["Allocs"], "index of the alloc, which the node need not fetch")
            case.equal(servers.wait_alloc(ids[1], ["running"], 5)["DeploymentStatus"]["Healthy"], True)
            servers.stop_alloc(ids[1], no_shutdown_delay=True)
            found = c.client_allocs(again["Index"], 10)
            stopped = c.get_allocs([ids[1]], found["Allocs"][ids[1]] - 1)["Allocs"][0]
            case.equal((stopped["DesiredStatus"], stopped["DesiredTransition"]["NoShutdownDelay"]), ("stop", True))
            c.update_alloc(update(c, ids[1], "complete"))
            servers.remove_alloc(ids[1])
            case.equal(list(c.client_allocs()["Allocs"]), ids[:1], "a collected alloc")
            both = c.get_allocs(ids)["Allocs"]
            case.equal(both and len(both), 1 if version == "2.0.5" else None, "two allocs of which one is collected")


def test_wrong_lists_of_allocs_as_faults():
    with nomad_server.Servers() as servers, nomad_client.Client(servers.address) as c:
        c.register()
        c.heartbeat()
        ids = servers.run_job(JOB, c.id)
        index = c.client_allocs()["Index"]
        servers.fault("empty", "Node.GetClientAllocs", times=1)
        found = c.client_allocs()
        case.equal((found["Allocs"], found["Index"] > index), ({}, True), "an empty list with a newer index")
        servers.fault("index", "Node.GetClientAllocs", by=-3, times=1)
        servers.stop_alloc(ids[0])
        found = c.client_allocs(index, 5)
        case.equal((found["Index"], len(found["Allocs"])), (index - 3, 2), "data with an older index")
        servers.fault("index", "Alloc.GetAllocs", index=1, times=1)
        case.equal(c.get_allocs(ids)["Index"], 1)
        servers.fault("pad", "Alloc.GetAllocs", bytes=300 * 1024, times=1)
        case.equal(len(c.get_allocs(ids)["Allocs"]), 2, "allocs in 300 KiB")
        big = {**JOB, "ID": "big", "Meta": {"m": "x" * 400000}}
        ids = servers.run_job(big, c.id)
        case.equal(len(c.get_allocs(ids)["Allocs"][1]["Job"]["Meta"]["m"]), 400000, "an alloc of 400 KB")


def test_invalid_updates_of_allocs_are_reported():
    with nomad_server.Servers(forgive=True) as servers, nomad_client.Client(servers.address) as c:
        c.register()
        c.heartbeat()
        alloc_id = servers.run_job(job(), c.id)[0]
        good = update(c, alloc_id, "running")
        c.update_alloc(good)
        case.equal(servers.violations(), [])
        event = good["TaskStates"]["t"]["Events"][0]

        def with_task(**more):
            return {**good, "TaskStates": {"t": {**good["TaskStates"]["t"], **more}}}
        for bad, text in (({**good, "ClientStatus": "happy"}, "ClientStatus 'happy'"),
                          (with_task(Events=[event] * 11), "11 events"), (with_task(State="x"), "task t is 'x'"),
                          ({**with_task(State="dead"), "ClientStatus": "complete"}, "no FinishedAt"),
                          (with_task(Events=[{**event, "DisplayMessage": ""}]), "without DisplayMessage"),
                          (with_task(Events=[None]), "nil where a struct"), ({**good, "TaskStates": {"t": None}}, "nil where")):
            c.update_alloc(bad)
            case.contains("\n".join(servers.violations(True)), text)
        for alloc, text in ((None, "must update at least one"), ({"NodeID": ""}, "missing node ID"),
                            ({"NodeID": NOBODY}, "node %s not found" % NOBODY)):
            case.contains(says(c.update_alloc, *([{**good, **alloc}] if alloc else [])), text)


def test_a_drain_of_the_node():
    with nomad_server.Servers() as servers, nomad_client.Client(servers.address) as c:
        c.register()
        c.heartbeat()
        alloc_id = servers.run_job(job(), c.id)[0]
        c.update_alloc(update(c, alloc_id, "running"))
        c.call("Node.UpdateDrain", c.write(NodeID=c.id, DrainStrategy={"Deadline": 60 * S}, Meta={"message": "m"}),
               "NodeUpdateDrainRequest")
        alloc = servers.alloc(alloc_id)
        case.equal((alloc["DesiredTransition"]["Migrate"], alloc["DesiredStatus"]), (True, "stop"))

        def node():
            return c.call("Node.GetNode", c.query(NodeID=c.id), "NodeSpecificRequest", "SingleNodeResponse")["Node"]
        case.equal(node()["DrainStrategy"]["Deadline"], 60 * S)
        c.update_alloc(update(c, alloc_id, "complete"))
        case.equal((node()["DrainStrategy"], node()["LastDrain"]["Status"]), (None, "complete"))
        case.equal(c.heartbeat()["SchedulingEligibility"], "ineligible")


def test_workload_identities_services_and_variables():
    with nomad_server.Servers() as servers, nomad_client.Client(servers.address) as c:
        c.register()
        one = {"Name": "vault", "Audience": ["a"], "TTL": 3600 * S}
        task = {**JOB["TaskGroups"][0]["Tasks"][0], "Identities": [one]}
        alloc_id = servers.run_job(job(Tasks=[task]), c.id)[0]
        wanted = {"AllocID": alloc_id, "IdentityName": "vault", "WorkloadIdentifier": "t"}

        def sign(**more):
            return c.call("Alloc.SignIdentities", c.query(Identities=[{**wanted, **more}]), "AllocIdentitiesRequest",
                          "AllocIdentitiesResponse")
        found = sign()["SignedIdentities"][0]
        case.equal(0 < gopack.time_to_ns(found["Expiration"]) - time.time_ns() <= 3600 * S, True, "the end of the alloc")
        case.equal(sign(IdentityName="x")["Rejections"][0]["Reason"], "identity not found")
        case.equal(sign(AllocID=NOBODY)["Rejections"][0]["Reason"], "allocation not found")
        service = {"ID": "_nomad-task-1", "ServiceName": "web", "Namespace": "default", "NodeID": c.id, "AllocID": alloc_id,
                   "Address": "127.0.0.1", "Port": 80, "Tags": ["a"]}
        c.call("ServiceRegistration.Upsert", c.write(Services=[service]), "ServiceUpsertRequest")
        case.equal([s["Port"] for s in servers.services()], [80])
        for namespace, error in (("x", "service registration not found"), ("default", None)):
            args = c.write(ID=service["ID"], Namespace=namespace)
            if error:
                case.equal(says(c.call, "ServiceRegistration.DeleteByID", args, "ServiceDeleteRequest"), error)
            else:
                c.call("ServiceRegistration.DeleteByID", args, "ServiceDeleteRequest")
        servers.put_variable("a/b", {"k": "v"})
        found = c.call("Variables.Read", c.query(Path="a/b", Namespace="default"), "VariablesReadRequest", "VariablesReadResponse")
        case.equal(found["Data"]["Items"], {"k": "v"})
        management = str(uuid.uuid4())
        servers.add_token(management, "management")
        servers.add_policy("p", 'namespace "default" { policy = "read" }')
        c.token = management
        who = c.call("ACL.WhoAmI", c.query(), "GenericRequest", "ACLWhoAmIResponse")["Identity"]
        case.equal(who["ACLToken"]["Type"], "management")
        found = c.call("ACL.GetPolicies", c.query(Names=["p"]), "ACLPolicySetRequest", "ACLPolicySetResponse")["Policies"]
        case.contains(found["p"]["Rules"], "namespace")
        c.token = NOBODY
        case.equal(says(c.call, "ACL.WhoAmI", c.query()), "Permission denied")


def test_jobs_registered_by_users():
    with nomad_server.Servers() as servers, nomad_client.Client(servers.address) as c:
        c.register()
        c.heartbeat()

        def ask(method, takes="JobSpecificRequest", **args):
            return c.call(method, c.query(Namespace="default", **args), takes)

        def change(method, takes, **args):
            return c.call(method, c.write(Namespace="default", **args), takes)
        change("Job.Register", "JobRegisterRequest", Job={**JOB, "Namespace": "default"})
        ids = sorted(c.client_allocs()["Allocs"])
        case.equal(sorted(a["ID"] for a in ask("Job.Allocations", JobID="j")["Allocations"]), ids)
        case.equal(sorted(servers.alloc(i)["Name"] for i in ids), ["j.g[0]", "j.g[1]"])
        for alloc_id in ids:
            c.update_alloc(update(c, alloc_id, "running"))
        found = ask("Job.List", "JobListRequest")["Jobs"]
        case.equal([(j["ID"], j["Status"], j["JobSummary"]["Summary"]["g"]["Running"]) for j in found], [("j", "running", 2)])
        case.equal([n["ID"] for n in ask("Node.List", "NodeListRequest")["Nodes"]], [c.id])
        change("Job.Deregister", "JobDeregisterRequest", JobID="j", Purge=True)
        case.equal({servers.alloc(i)["DesiredStatus"] for i in ids}, {"stop"})
        case.equal(ask("Job.GetJob", JobID="j")["Job"], None)
        case.equal(servers.collect(), [], "an alloc that runs and is not collected")
        for alloc_id in ids:
            c.update_alloc(update(c, alloc_id, "complete"))
        case.equal(sorted(servers.collect()), ids)


# --- requests to a node ---

def test_calls_to_a_node():
    with nomad_server.Servers(2) as servers, nomad_client.Client(servers.address) as c:
        e = case.raises(nomad_server.Refusal, servers.call_node, c.id, "Allocations.Stats", {})
        case.equal(str(e), "No path to node")
        c.register()
        c.handlers["Allocations.Signal"] = lambda body: {"Index": 7}
        case.equal(servers.call_node(c.id, "Allocations.Signal", {"AllocID": "a", "Signal": "SIGHUP"})["Index"], 7)
        method, body = c.asked.get(timeout=case.LEAST_S)
        case.equal((method, body["Signal"], body["Region"], body["AllowStale"]), ("Allocations.Signal", "SIGHUP", "global", True))
        e = case.raises(nomad_server.Refusal, servers.call_node, c.id, "Allocations.Restart", {"AllocID": "a"})
        case.equal((e.kind, str(e)), ("RpcError", "rpc: can't find method Allocations.Restart"))
        # Requests use the newest connection that has made a call; when it is closed, the older one.
        with nomad_client.Client(servers.addresses[1], node_id=c.id, secret=c.secret) as newer:
            newer.token = c.secret
            newer.heartbeat()
            newer.handlers["Allocations.Signal"] = lambda body: {"Index": 8}
            case.equal(servers.call_node(c.id, "Allocations.Signal", {})["Index"], 8)
        case.until(lambda: len(servers.connections()) == 1, 5, "the end of the newer connection")
        case.equal(servers.call_node(c.id, "Allocations.Signal", {})["Index"], 7, "answer by the older connection")


def test_streams_of_a_node():
    with nomad_server.Servers() as servers, nomad_client.Client(servers.address) as c:
        c.register()
        seen = []

        def logs(request, _reader):
            for part in ("a", "b"):
                yield {"Error": None, "Payload": request["Task"] + part}
            yield {"Error": {"Message": "gone", "Code": 404}, "Payload": None}

        def execute(_request, reader):
            for _ in range(2):
                seen.append(gopack.natural(reader.next()))
                yield {"Error": None, "Payload": "x" * 400000}
        c.handlers.update({"FileSystem.Logs": logs, "Allocations.Exec": execute})
        stream = servers.open_stream(c.id, "FileSystem.Logs", {"AllocID": "a", "Task": "t", "LogType": "stdout", "Follow": True})
        found = servers.read_stream(stream, 10)
        case.equal([f["Payload"] for f in found["frames"]], [b"ta", b"tb", None])
        case.equal((found["frames"][2]["Error"], found["end"]), ({"Message": "gone", "Code": 404}, True))
        servers.close_stream(stream)
        stream = servers.open_stream(c.id, "Allocations.Exec", {"AllocID": "a", "Task": "t", "Cmd": ["x"]})
        for i in range(2):
            servers.send_stream(stream, {"Stdin": {"Data": "line %d" % i}})
            case.equal(len(servers.read_stream(stream)["frames"][0]["Payload"]), 400000, "a frame larger than a window")
        case.equal([s["Stdin"]["Data"] for s in seen], ["line 0", "line 1"])
        servers.close_stream(stream)
        e = case.raises(nomad_server.Refusal, servers.open_stream, c.id, "FileSystem.Stream", {})
        case.contains(str(e), "Unknown rpc method")


def test_volumes_are_claimed_and_released():
    with nomad_server.Servers() as servers, nomad_client.Client(servers.address) as c:
        plugin = {"PluginID": "p", "Healthy": True, "RequiresControllerPlugin": True, "Provider": "x"}
        asked = []

        def answers(name, **found):
            def fn(body):
                asked.append(name)
                case.equal(body["PluginID"], "p", name)
                return found
            c.handlers["CSI." + name] = fn
        answers("ControllerCreateVolume", ExternalVolumeID="ext", CapacityBytes=5, VolumeContext={"a": "b"})
        answers("ControllerAttachVolume", PublishContext={"dev": "sda"})
        for name in ("ControllerDetachVolume", "NodeDetachVolume", "ControllerDeleteVolume"):
            answers(name)
        c.register(c.node(Status="ready", CSIControllerPlugins={"p": {**plugin, "ControllerInfo": {}}},
                          CSINodePlugins={"p": {**plugin, "NodeInfo": {"ID": "n1", "MaxVolumes": 9}}}))
        servers.create_volume({"ID": "v", "PluginID": "p", "Secrets": {"s": "t"}})
        ids = servers.run_job(JOB, c.id)

        def claim(alloc_id, **more):
            return c.call("CSIVolume.Claim", c.write(VolumeID="v", AllocationID=alloc_id, NodeID=c.id, Claim=1,
                                                     AccessMode="single-node-writer", AttachmentMode="file-system",
                                                     Namespace="default", **more),
                          "CSIVolumeClaimRequest", "CSIVolumeClaimResponse")
        found = claim(ids[0])
        case.equal((found["PublishContext"], found["Volume"]["ExternalID"], found["Volume"]["Context"]),
                   ({"dev": "sda"}, "ext", {"a": "b"}))
        claim(ids[0])
        case.equal(says(claim, ids[1]), "volume max claims reached")
        c.call("CSIVolume.Unpublish", c.write(VolumeID="v", Namespace="default", Claim={
            "AllocationID": ids[0], "NodeID": c.id, "Mode": 1, "State": 4}), "CSIVolumeUnpublishRequest")
        claim(ids[1])
        case.equal(asked, ["ControllerCreateVolume"] + ["ControllerAttachVolume"] * 2 +
                   ["NodeDetachVolume", "ControllerDetachVolume", "ControllerAttachVolume"])
        case.contains(str(case.raises(nomad_server.Refusal, servers.delete_volume, "v")), "in use")
        del asked[:]
        c.heartbeat()
        c.update_alloc(update(c, ids[1], "complete"))  # the volume watcher releases it
        case.until(lambda: not servers.volume("v")["WriteClaims"], 10, "the claim to be released")
        case.equal(asked, ["NodeDetachVolume", "ControllerDetachVolume"])
        servers.delete_volume("v")
        case.equal(servers.volume("v"), None)

        def refuse(_body):
            raise RpcError("no room")
        c.handlers["CSI.ControllerCreateVolume"] = refuse
        case.equal(str(case.raises(nomad_server.Refusal, servers.create_volume, {"ID": "w", "PluginID": "p"})), "no room")


case.run(globals())
