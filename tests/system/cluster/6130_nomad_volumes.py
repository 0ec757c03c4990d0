#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 55
"""CSI volumes in a cluster: created by this node's plugin, claimed, mounted, released. And other requests of servers to a node."""
import os
import signal

from lib import api, binary, build_dir, case, cluster, crash, helper, nomad_server
from lib.cluster import events, job, processes_of

WRITE = "while echo $NOMAD_ALLOC_ID >> /d/log; do sleep 0.2; done"
CAPABILITY = {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}


def plugin(store):
    return api.job("plugin", binary("csi-local"), ["-root", store], CSIPluginConfig={
        "ID": "local", "Type": "monolith", "MountDir": "/csi", "HealthTimeout": 300 * 10**9})["Job"]


def writer(name, source="data"):
    return api.job(name, "/bin/sh", ["-c", WRITE], driver="exec", group={"Volumes": {"v": {
        "Name": "v", "Type": "csi", "Source": source, **CAPABILITY}}},
        VolumeMounts=[{"Volume": "v", "Destination": "/d"}])["Job"]


def create_volume(servers):
    servers.create_volume({"ID": "data", "PluginID": "local", "RequestedCapacityMin": 1 << 20, "RequestedCapabilities": [CAPABILITY]})


def with_plugin(servers, me, group=None):
    """Runs the plugin, and waits until the servers know that it is healthy. Returns its store. group: more fields of the job's group."""
    store = case.directory()
    os.chmod(store, 0o777)
    made = plugin(store)
    made["TaskGroups"][0].update(group or {})
    alloc = servers.run_job(made, me)[0]
    servers.wait_alloc(alloc, ["running"])

    def healthy():
        found = (servers.node(me)["CSINodePlugins"] or {}).get("local")
        return found and found["Healthy"]
    case.until(healthy, 30, "a healthy plugin")
    return store


def claims(servers, name="data"):
    return sorted(servers.volume(name)["WriteClaims"] or {})


def test_the_doctor_says_what_this_node_knows():
    with cluster.servers() as servers, cluster.node_of(servers) as node:
        me = servers.wait_node()["ID"]
        with_plugin(servers, me)
        create_volume(servers)
        alloc = servers.run_job(writer("one"), me)[0]
        servers.wait_alloc(alloc, ["running"])
        answer = node.ask("/v1/agent/volumes")
        (page,) = answer["Volumes"]
        case.equal((answer["ClaimsKnown"], page["ID"], page["Claims"], page["Problems"]), (False, "data", None, []))
        case.equal([(m["AllocationID"], m["Step"]) for m in page["Mounts"]], [(alloc, "published")])
        out = node.drover("volume", "doctor", "data").out
        for part in ("Claims, as the servers know them", alloc[:8], "Known to Plugin"):
            case.contains(out, part)
        (path,) = [p for p in mounts() if p.endswith(page["Mounts"][0]["TargetPath"])]
        helper.mount("other", path, "tmpfs")
        case.contains(node.drover("volume", "doctor", code=2).out, "unmount it by hand")
        helper.umount(path)
        servers.stop_alloc(alloc)
        servers.wait_alloc(alloc, ["complete"])
        # The servers may know the end of an alloc before its volume is unmounted.
        case.until(lambda: node.drover("volume", "doctor", "-fix").out == "No volumes\n", 30, "no mount")


def test_what_servers_have_no_request_for_is_answered_by_a_sentence():
    with cluster.servers() as servers, cluster.node_of(servers) as node:
        me = servers.wait_node()["ID"]
        with_plugin(servers, me)
        create_volume(servers)
        path = "/v1/volume/csi/data"
        alloc = servers.run_job(writer("one"), me)[0]
        servers.wait_alloc(alloc, ["running"])
        for words, said in (
                (("modify", "data", "a=b"), "mutable parameters cannot be modified in a cluster: Nomad's servers have no such request"),
                (("group-snapshot", "create", "local", "g", "data"), "there are no group snapshots in a cluster"),
                (("group-snapshot", "list", "-plugin", "local"), "there are no group snapshots in a cluster"),
                (("group-snapshot", "status", "local", "g"), "there are no group snapshots in a cluster"),
                (("group-snapshot", "delete", "local", "g"), "there are no group snapshots in a cluster"),
                (("claims", "data"), "the servers have the claims and do not show their states"),
                (("claims",), "the servers have the claims and do not show their states")):
            answer = node.drover("volume", *words, code=1)
            case.equal((answer.out, answer.err.count("\n"), said in answer.err), ("", 1, True), answer.err)
        node.refused(501, "mutable parameters cannot be modified in a cluster", "PUT", path + "/modify", {"MutableParameters": {"a": "b"}})
        for method in ("GET", "PUT", "DELETE"):
            node.refused(501, "there are no group snapshots in a cluster", method, "/v1/volumes/group-snapshot?plugin_id=local", {})
        # The servers ignore `refresh`; this node asks its plugin each time.
        reported = [node.ask(path, refresh="true")["ThisNode"]["Reported"] for _ in range(2)]
        case.equal(0 < reported[0] < reported[1], True, "two reports: %s" % reported)
        node.refused(400, "invalid refresh value", "GET", path + "?refresh=perhaps")
        out = node.drover("volume", "doctor", "-fix", "data").out
        case.contains(out, "-fix leaves them to the servers: `drover volume detach data NODE` releases those of ended allocations")
        servers.stop_alloc(alloc)
        servers.wait_alloc(alloc, ["complete"])
        node.ask(path, refresh="true")


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return [line.split(" ")[4] for line in f]


def test_a_volume_is_created_claimed_mounted_and_released():
    for version in ("1.6.10", "2.0.5"):
        with cluster.servers(version=version) as servers, cluster.node_of(servers) as node:
            me = servers.wait_node()["ID"]
            store = with_plugin(servers, me)
            servers.create_volume({"ID": "data", "PluginID": "local", "RequestedCapacityMin": 1 << 20,
                                   "RequestedCapabilities": [CAPABILITY]})
            first = servers.run_job(writer("one"), me)[0]
            servers.wait_alloc(first, ["running"])
            case.equal(claims(servers), [first])
            log = "%s/volumes/%s/log" % (store, servers.volume("data")["ExternalID"])
            case.until(lambda: os.path.exists(log), 10, "the data of the task")
            case.until(lambda: any((e["Message"], e["Subsystem"], (e["Details"] or {}).get("success")) == ("Mount volume", "Storage", "true")
                                   for e in servers.node(me)["Events"]), 30, "the event of a mount")
            # The next alloc waits for its claim until the first has released its own.
            second = servers.run_job(writer("two"), me)[0]
            node.wait_log("volume max claims reached", 20)
            servers.stop_alloc(first)
            servers.wait_alloc(first, ["complete"])
            servers.wait_alloc(second, ["running"], 40)
            case.equal(claims(servers), [second])
            # After a restart the alloc is recovered without a server, and the volume is still mounted.
            pid, known = case.until(lambda a=second: processes_of(a), 60, "the processes of the alloc"), servers.last_call()
            os.kill(node.processes()["supervisor"], signal.SIGKILL)
            servers.wait_call("Node.Register", known)
            case.equal(min(processes_of(second)), min(pid), "the task")
            servers.stop_alloc(second)
            servers.wait_alloc(second, ["complete"])
            case.until(lambda: not claims(servers), 20, "the claim to be released")
            case.equal([p["Healthy"] for p in servers.node(me)["CSIControllerPlugins"].values()], [True], "the plugin")
            told = {"Message": "CSI plugin local became healthy", "Subsystem": "CSI", "Details": {"plugin": "local", "type": "monolith"}}
            case.until(lambda: any({k: e[k] for k in told} == told for e in servers.node(me)["Events"]), 60, "the node's event")
            servers.delete_volume("data")
            case.equal(os.listdir(store + "/meta"), [], "volumes that the plugin has")


def waiting(node, alloc, tries):
    """Waits until the alloc's claim was refused that often, so that its next try is far away."""
    node.wait_log("allocation %s: claim volume data: volume max claims reached; tried %d times, next try in " % (alloc[:8], tries), 120)


def test_a_released_volume_is_claimed_at_once():
    """Two allocs wait with one query at the servers, which release the volume themselves: the node's own release fails."""
    with cluster.servers() as servers, cluster.node_of(servers) as node:
        me = servers.wait_node()["ID"]
        with_plugin(servers, me)
        create_volume(servers)
        servers.fault("error", "CSIVolume.Unpublish", text="no")
        first = servers.run_job(writer("first"), me)[0]
        servers.wait_alloc(first, ["running"])
        allocs = [servers.run_job(writer(name), me)[0] for name in ("one", "two")]
        for alloc in allocs:
            waiting(node, alloc, 4)
            told = "csi_hook: claim volume data: volume max claims reached; tried 4 times, next try in "
            case.until(lambda a=alloc: told in str(servers.alloc(a)["TaskStates"]), 20, "the event")
        case.equal([c["args"]["MinQueryIndex"] for c in servers.calls("CSIVolume.Get")], [0], "answered queries")
        servers.stop_alloc(first)
        case.until(lambda: any(servers.alloc(a)["ClientStatus"] == "running" for a in allocs), 10, "one to run")
        case.equal(any(c["args"]["MinQueryIndex"] for c in servers.calls("CSIVolume.Get")), True, "a query that blocked")
        second, third = sorted(allocs, key=lambda a: servers.alloc(a)["ClientStatus"] != "running")
        servers.stop_alloc(second)
        servers.wait_alloc(third, ["running"], 10)
        servers.clear()


def test_a_volume_that_this_node_releases_is_claimed_at_once():
    """Servers with ACLs do not let a node read volumes, so the release itself wakes the claims that wait."""
    with cluster.servers() as servers, cluster.node_of(servers) as node:
        me = servers.wait_node()["ID"]
        with_plugin(servers, me)
        create_volume(servers)
        servers.fault("error", "CSIVolume.Get", text="Permission denied")
        first = servers.run_job(writer("one"), me)[0]
        servers.wait_alloc(first, ["running"])
        second = servers.run_job(writer("two"), me)[0]
        waiting(node, second, 4)
        servers.stop_alloc(first)
        servers.wait_alloc(second, ["running"], 5)
        servers.clear()


def test_after_a_power_cut_a_claim_waits_for_servers_but_its_plugin_does_not():
    again = {"RestartPolicy": {"Attempts": 100, "Interval": 3600 * 10**9, "Delay": 10**8, "Mode": "fail"}}
    with cluster.servers(grace=600) as servers, cluster.node_of(servers) as node:
        me = servers.wait_node()["ID"]
        store = with_plugin(servers, me, again)
        create_volume(servers)
        made = writer("one")
        made["TaskGroups"][0].update(again)
        alloc = servers.run_job(made, me)[0]
        servers.wait_alloc(alloc, ["running"])
        plugin_alloc, = (a for a in (p["ID"] for p in node.ask("/v1/allocations")) if a != alloc)
        servers.stop_server(0)
        crash.cut_power(node)
        os.unlink(node.data + "/rt/lease")  # neither the lease page nor mounts survive a boot
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            mounted = [line.split(" ")[4] for line in f]
        for point in reversed([m for m in mounted if m.startswith((node.data + "/", store + "/"))]):
            helper.umount(point, 2)
        node.start()
        case.until(lambda: processes_of(plugin_alloc), 60, "the plugin to run, which needs no server")
        case.equal(processes_of(alloc), [], "status of the writer without its claim")
        servers.start_server(0)
        case.until(lambda: processes_of(alloc), 60, "the writer to run")
        case.until(lambda: servers.alloc(alloc)["ClientStatus"] == "running", 60, "the servers to know that it runs")
        case.equal(claims(servers), [alloc])
        servers.stop_alloc(alloc)
        servers.wait_alloc(alloc, ["complete"])
        case.until(lambda: not claims(servers), 20, "the claim to be released")
        servers.delete_volume("data")


def test_requests_of_servers_to_controllers():
    with cluster.servers() as servers, cluster.node_of(servers) as node:
        me = servers.wait_node()["ID"]
        with_plugin(servers, me)
        script = 'exec %s "$${CSI_ENDPOINT#unix://}"' % os.path.join(build_dir(), "tests", "csi_bad")
        other = api.job("other", "/bin/sh", ["-c", script], CSIPluginConfig={
            "ID": "other", "Type": "monolith", "MountDir": "/csi"})["Job"]
        servers.wait_alloc(servers.run_job(other, me)[0], ["running"])
        case.until(lambda: "other" in (servers.node(me)["CSIControllerPlugins"] or {}), 30, "the other plugin to be healthy")
        info = servers.node(me)["CSIControllerPlugins"]
        case.equal([info[p]["ControllerInfo"]["SupportsExpand"] for p in ("local", "other")], [True, True])
        case.equal([info[p]["ControllerInfo"]["SupportsListSnapshots"] for p in ("local", "other")], [True, True])
        create_volume(servers)
        external = servers.volume("data")["ExternalID"]

        def ask(method, plugin, **request):
            return servers.call_node(me, method, {"ControllerNodeID": me, "PluginID": plugin, **request})
        # The modes of this capability are the numbers of the CSI specification.
        grown = {"ExternalVolumeID": external, "CapacityRange": {"RequiredBytes": 2 << 20, "LimitBytes": 0},
                 "VolumeCapability": {"AccessType": 2, "AccessMode": 1, "MountVolume": {"FSType": "", "MountFlags": ["noatime"]}}}
        for service in ("CSI.", "ClientCSI."):
            made = ask(service + "ControllerExpandVolume", "local", **grown)
            case.equal((made["CapacityBytes"], made.get("NodeExpansionRequired", False)), (2 << 20, False))
            made = ask(service + "ControllerListVolumes", "local", MaxEntries=10, StartingToken="")
            case.equal([(v["ExternalID"], v["CapacityBytes"]) for v in made["Entries"]], [(external, 2 << 20)], service)
        made = ask("CSI.ControllerListVolumes", "other", MaxEntries=10, StartingToken="")["Entries"][0]
        case.equal((made["PublishedExternalNodeIDs"], made["IsAbnormal"], made["Status"]), (["bad-node"], True, "it creaks"))
        made = ask("CSI.ControllerCreateSnapshot", "other", ExternalSourceVolumeID="v", Name="one")
        case.equal((made["ID"], made["ExternalSourceVolumeID"], made["SizeBytes"], made["CreateTime"], made["IsReady"]),
                   ("one", "v", 4096, 1700000000, True))
        first = ask("CSI.ControllerListSnapshots", "other", MaxEntries=1, StartingToken="")
        second = ask("CSI.ControllerListSnapshots", "other", MaxEntries=1, StartingToken=first["NextToken"])
        case.equal([s["ID"] for s in first["Entries"] + second["Entries"]], ["snap-1", "snap-2"])
        ask("CSI.ControllerDeleteSnapshot", "other", ID="one")
        # A mounted volume is expanded by the node part of its plugin.
        alloc = servers.run_job(writer("one"), me)[0]
        servers.wait_alloc(alloc, ["running"])
        request = {"PluginID": "local", "VolumeID": "data", "ExternalID": external,
                   "Capacity": {"RequiredBytes": 2 << 20, "LimitBytes": 0}, "Claim": {"AllocationID": alloc}}
        case.equal(servers.call_node(me, "CSI.NodeExpandVolume", request)["CapacityBytes"], 2 << 20, "the size on the node")
        for method, wanted, text in (
                ("CSI.NodeExpandVolume", {**request, "VolumeID": "none"}, "volume none is not mounted"),
                ("CSI.ControllerCreateSnapshot", {"PluginID": "local", "ControllerNodeID": me, "Name": "x",
                                                  "ExternalSourceVolumeID": "none"}, "rpc error: code = NotFound"),
                ("CSI.ControllerExpandVolume", {"PluginID": "local", "ControllerNodeID": me, "ExternalVolumeID": external,
                                                "CapacityRange": {"RequiredBytes": 0, "LimitBytes": 1}}, "cannot shrink"),
                ("CSI.ControllerListVolumes", {"PluginID": "none", "ControllerNodeID": me},
                 "CSI client error (retryable)"),
                ("CSI.ControllerDeleteVolume", {"PluginID": "local", "ControllerNodeID": me, "ExternalVolumeID": external},
                 "FailedPrecondition: volume data is mounted on this node for allocation " + alloc[:8])):
            refused = case.raises(nomad_server.Refusal, servers.call_node, me, method, wanted)
            case.contains(str(refused), text)
        servers.stop_alloc(alloc)
        servers.wait_alloc(alloc, ["complete"])
        case.until(lambda: not claims(servers), 20, "the claim to be released")
        servers.delete_volume("data")


def test_an_alloc_that_waits_for_a_claim_can_be_stopped():
    with cluster.servers() as servers, cluster.node_of(servers) as node:
        me = servers.wait_node()["ID"]
        with_plugin(servers, me)
        create_volume(servers)
        servers.fault("silent", "CSIVolume.Claim")
        alloc = servers.run_job(writer("one"), me)[0]
        node.wait_log("Received", 10, 2)
        servers.stop_alloc(alloc)
        servers.wait_alloc(alloc, ["complete"])
        servers.clear()


def test_a_refused_claim_fails_the_alloc():
    with cluster.servers() as servers, cluster.node_of(servers):
        me = servers.wait_node()["ID"]
        alloc = servers.run_job(writer("one", "none"), me)[0]
        found = servers.wait_alloc(alloc, ["failed"])
        case.contains(found["TaskStates"]["t"]["Events"][-1]["DisplayMessage"],
                      "claiming volumes: could not claim volume none: volume not found: none")


def test_requests_of_servers_to_allocs():
    with cluster.servers() as servers, cluster.node_of(servers) as node:
        me = servers.wait_node()["ID"]
        alloc = servers.run_job(job(command="/bin/sh", args=["-c", "trap 'exit 7' USR1; while :; do sleep 0.1; done"],
                                    group={"RestartPolicy": {"Attempts": 5, "Interval": 10**12, "Delay": 10**7,
                                                             "Mode": "fail"}}), me)[0]
        servers.wait_alloc(alloc, ["running"])
        pid = case.until(lambda: processes_of(alloc), 60, "the processes of the alloc")
        servers.call_node(me, "Allocations.Restart", {"AllocID": alloc, "TaskName": ""})
        case.until(lambda: min(processes_of(alloc), default=0) not in (0, min(pid)), 10, "another process to run")
        case.until(lambda: events(servers.alloc(alloc)).count("Started") == 2, 10, "the event of the restart")
        case.contains(events(servers.alloc(alloc)), "Restart Signaled")
        servers.call_node(me, "Allocations.Signal", {"AllocID": alloc, "Task": "t", "Signal": "SIGUSR1"})
        case.until(lambda: "Signaling" in events(servers.alloc(alloc)), 10, "the event of the signal")
        for method, request, text in (
                ("Allocations.Signal", {"AllocID": alloc, "Task": "none", "Signal": "SIGUSR1"}, "Task not found"),
                ("Allocations.Signal", {"AllocID": alloc, "Task": "t", "Signal": "SIGNOPE"}, "unknown signal"),
                ("Allocations.Restart", {"AllocID": "none"}, 'Unknown allocation "none"'),
                ("Allocations.GarbageCollect", {"AllocID": alloc}, "not eligible for GC"),
                ("Allocations.Nope", {}, "rpc: can't find method Allocations.Nope")):
            refused = case.raises(nomad_server.Refusal, servers.call_node, me, method, request)
            case.contains(str(refused), text)
        servers.stop_alloc(alloc)
        servers.wait_alloc(alloc, ["complete"])
        directory = node.data + "/alloc/" + alloc
        case.equal(os.path.exists(directory), True, "whether the directory of an ended alloc exists")
        servers.call_node(me, "Allocations.GarbageCollect", {"AllocID": alloc})
        case.until(lambda: not os.path.exists(directory), 10, "the directory to be removed")
        again = servers.run_job(job("k"), me)[0]
        servers.wait_alloc(again, ["running"])
        case.equal(os.path.exists(directory), False, "a collected alloc that the servers still list")


def test_requests_of_servers_for_metadata_and_a_new_identity():
    with cluster.servers() as servers, cluster.node_of(servers, client='meta { rack = "a" }') as node:
        me = servers.wait_node()["ID"]
        found = servers.call_node(me, "NodeMeta.Apply", {"NodeID": me, "Meta": {"rack": None, "disk": "ssd"}})
        case.equal((found["Meta"], found["Dynamic"], found["Static"]),
                   ({"disk": "ssd"}, {"rack": None, "disk": "ssd"}, {"rack": "a"}))
        case.until(lambda: servers.node(me)["Meta"] == {"disk": "ssd"}, 20, "the metadata to reach the servers")
        refused = case.raises(nomad_server.Refusal, servers.call_node, me, "NodeMeta.Apply", {"Meta": {"a b": "c"}})
        case.contains(str(refused), "invalid metadata key")
        known = servers.last_call()
        os.kill(node.processes()["supervisor"], signal.SIGKILL)
        servers.wait_call("Node.Register", known)
        case.equal(servers.call_node(me, "NodeMeta.Read", {"NodeID": me})["Meta"], {"disk": "ssd"}, "metadata after a restart")
        claims_of = servers.call_node(me, "NodeIdentity.Get", {"NodeID": me})["Claims"]
        case.equal(claims_of["nomad_node_id"], me)
        known = servers.last_call()
        servers.call_node(me, "NodeIdentity.Renew", {"NodeID": me})
        case.until(lambda: any(c["args"]["ForceIdentityRenewal"] for c in servers.calls("Node.UpdateStatus", known)), 20,
                   "a beat that requests another identity")


case.run(globals())
