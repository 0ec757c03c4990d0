#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CSI volumes through a whole agent, with contrib/csi-local as the plugin."""
import json
import os
import signal

from lib import api, binary, case
from lib.agent import arguments

WRITE = "cat /d/log; while echo $NOMAD_ALLOC_ID >> /d/log; do sleep 0.2; done"


def plugin():
    made = api.job("plugin", binary("csi-local"), ["-root", store], CSIPluginConfig={
        "ID": "local", "Type": "monolith", "MountDir": "/csi"})
    return made


def volume(name, **more):
    made = {"ID": name, "Name": name, "PluginID": "local", "RequestedCapacityMin": 1 << 20, "RequestedCapabilities": [
        {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}]}
    made.update(more)
    return {"Volumes": [made]}


def writer(name, source="data", **more):
    return api.job(name, "/bin/sh", ["-c", WRITE], driver="exec", group={"Volumes": {"v": {
        "Name": "v", "Type": "csi", "Source": source, "AccessMode": "single-node-writer",
        "AttachmentMode": "file-system"}}}, VolumeMounts=[{"Volume": "v", "Destination": "/d"}], **more)


def create(name):
    return node.do("PUT", "/v1/volume/csi/%s/create" % name, volume(name))["Volumes"][0]


def wait_written(name, alloc):
    """Waits until the alloc has written to the volume, which it does after it has started."""
    path = "%s/volumes/%s/log" % (store, node.ask("/v1/volume/csi/" + name)["ExternalID"])

    def written():
        if not os.path.exists(path):
            return False
        with open(path, encoding="ascii") as f:
            return alloc["ID"] in f.read()
    case.until(written, 10, "allocation %.8s to write to %s" % (alloc["ID"], name))


def stored():
    """Returns the number of volumes of the plugin."""
    return len(os.listdir(store + "/meta"))


def test_a_task_becomes_a_plugin():
    node.register(plugin())
    case.until(lambda: [p["NodesHealthy"] for p in node.ask("/v1/plugins", type="csi")] == [1], 20, "a healthy plugin")
    made = node.ask("/v1/plugin/csi/local")
    case.equal((made["ControllersHealthy"], len(made["Nodes"]), len(made["Allocations"])), (1, 1, 1))
    case.equal(node.ask("/v1/plugins"), [], "plugins of an unknown type")


def test_volumes_are_created_and_invalid_ones_are_refused():
    made = create("data")
    case.equal((made["Schedulable"], made["Capacity"] >= 1 << 20, bool(made["ExternalID"])), (True, True, True))
    case.equal(create("data")["ExternalID"], made["ExternalID"], "a repeated creation, as after a lost answer")
    for part, change in (("RequestedCapacityMin", {"RequestedCapacityMin": 1 << 19}), ("Name", {"Name": "other"}),
                         ("PluginID", {"PluginID": "none"}), ("Parameters", {"Parameters": {"a": "b"}}),
                         ("RequestedCapabilities[0].AccessMode", {"RequestedCapabilities": [
                             {"AccessMode": "multi-node-multi-writer", "AttachmentMode": "file-system"}]})):
        node.refused(409, "volume \"data\" exists already, with another " + part, "PUT", "/v1/volume/csi/data/create",
                     volume("data", **change))
    case.equal(stored(), 1, "volumes that the plugin has")
    for part, change in (("no plugin", {"PluginID": "none"}), ("not a name", {"PluginID": "../x"}),
                         ("capability", {"RequestedCapabilities": []}), ("capacity", {"RequestedCapacityMax": 1})):
        node.refused(400, part, "PUT", "/v1/volume/csi/bad/create", volume("bad", **change))
    for name in ("..", "a/b", "x" * 300, "a\u0000"):
        case.equal(node.request("PUT", "/v1/volume/csi/bad/create", volume(name)).status, 400, repr(name))
    node.refused(400, "does not match", "PUT", "/v1/volume/csi/bad/create", volume("good"))
    node.refused(400, "Volumes", "PUT", "/v1/volume/csi/bad/create", {})
    case.equal([v["ID"] for v in node.ask("/v1/volumes", type="csi")], ["data"])


def test_data_is_kept_for_the_next_alloc():
    node.register(writer("one"))
    first = node.wait_running("one")[0]
    case.until(lambda: node.ask("/v1/volume/csi/data")["WriteAllocs"] == {first["ID"]: None}, 5, "the claim of the alloc")
    wait_written("data", first)
    node.register(writer("one", Env={"CHANGED": "1"}))
    case.until(lambda: node.wait_running("one")[0]["ID"] != first["ID"], 20, "another alloc")
    second = node.wait_running("one")[0]
    case.until(lambda: first["ID"].encode() in node.logs(second), 10, "the data of the first alloc")
    wait_written("data", second)


def test_a_second_writer_waits_and_names_the_first():
    holder = node.wait_running("one")[0]["ID"]
    ev = node.wait_evaluation(node.register(writer("two"))["EvalID"])
    reason, = ev["FailedTGAllocs"]["g"]["ConstraintFiltered"]
    case.contains(reason, holder)
    case.equal(node.allocs("two"), [], "allocations of the second writer")
    node.refused(409, holder, "DELETE", "/v1/volume/csi/data/delete")
    node.purge("one")
    alloc = node.wait_running("two")[0]
    case.until(lambda: holder.encode() in node.logs(alloc), 10, "the data of the other job")


def test_claims_survive_the_supervisor():
    holder = node.wait_running("two")[0]["ID"]
    node.kill("supervisor")
    node.wait_ready()
    case.equal(node.ask("/v1/volume/csi/data")["WriteAllocs"], {holder: None}, "claims")
    node.register(writer("three"))
    case.equal(node.ask("/v1/job/three")["Status"], "pending")
    case.until(lambda: [p["NodesHealthy"] for p in node.ask("/v1/plugins", type="csi")] == [1], 20, "the plugin to be healthy again")
    node.purge("two")
    node.wait_running("three")
    node.purge("three")


def test_claims_in_a_registration_are_ignored():
    """A registration with claims or with the modes that a claim sets is accepted, but the volume has no claim."""
    user = node.wait_running("plugin")[0]["ID"]
    claim = {"AllocationID": user, "Mode": 1, "State": 0, "AccessMode": "single-node-writer", "AttachmentMode": "file-system"}
    made = volume("forged", ExternalID="forged", WriteClaims={user: claim}, ReadClaims={user: claim}, PastClaims={user: claim},
                  AccessMode="multi-node-multi-writer", AttachmentMode="block-device", Allocations=[{"ID": user}],
                  PublishContext={"a": "b"})
    made["Volumes"][0]["ExternalID"] = create("forged")["ExternalID"]
    node.do("DELETE", "/v1/volume/csi/forged")
    node.do("PUT", "/v1/volumes", made)
    found = node.ask("/v1/volume/csi/forged")
    case.equal([found[k] for k in ("WriteAllocs", "ReadAllocs", "AccessMode", "AttachmentMode", "Allocations")], [{}, {}, "", "", []])
    node.do("DELETE", "/v1/volume/csi/forged/delete")


def test_each_alloc_of_a_group_has_its_own_volume():
    for name in ("many[0", "many[]", "many[01]", "many[-1]", "many[0]x", "[0]", "many[0][1]", "many[x]", ".many[0]"):
        node.refused(400, "volume id", "PUT", "/v1/volumes", volume(name, ExternalID="x"))
    create("many[0]")
    made = writer("many", "many", Env={"V": "1"})
    group, = made["Job"]["TaskGroups"]
    group["Count"] = 2
    node.refused(400, "use per_alloc", "POST", "/v1/jobs", made)
    group["Volumes"]["v"]["PerAlloc"] = True
    node.refused(400, 'volume "many[1]" does not exist', "POST", "/v1/jobs", made)
    create("many[1]")
    node.register(made)
    first = node.wait_running("many", 2)
    for a in first:
        index = a["Name"][a["Name"].index("["):]
        case.equal(node.ask("/v1/volume/csi/many" + index)["WriteAllocs"], {a["ID"]: None}, "claims of many" + index)
        wait_written("many" + index, a)
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Env"]["V"] = "2"
    node.register(made)
    case.until(lambda: not {a["ID"] for a in node.wait_running("many", 2)} & {a["ID"] for a in first}, 30, "allocs that were replaced")
    for before in first:
        after, = [a for a in node.wait_running("many", 2) if a["Name"] == before["Name"]]
        case.until(lambda: before["ID"].encode() in node.logs(after), 10, "the data of the previous alloc")
    node.purge("many")
    for index in "01":
        node.do("DELETE", "/v1/volume/csi/many%%5B%s%%5D/delete" % index)


def plugin_pid():
    """Returns the pid of the plugin: only its arguments contain the path of the store."""
    for name in os.listdir("/proc"):
        if name.isdigit() and arguments(int(name))[1:] == ["-root", store]:
            return int(name)
    raise AssertionError("no process has -root " + store)


def begin_and_kill(name):
    """Kills the supervisor while a creation hangs in the plugin, which continues afterwards."""
    pid = plugin_pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        creation = api.Connection(node, case.LEAST_S)
        creation.request("PUT", "/v1/volume/csi/%s/create" % name, json.dumps(volume(name)).encode())
        case.until(lambda: node.request("GET", "/v1/volume/csi/" + name).status == 200, 10, "the row of the volume")
        node.refused(409, "is being created", "PUT", "/v1/volume/csi/%s/create" % name, volume(name))
        node.refused(409, "is being created", "DELETE", "/v1/volume/csi/%s/delete" % name)
        node.kill("supervisor")
        node.wait_ready()
        creation.close()
    finally:
        os.kill(pid, signal.SIGCONT)
    case.until(lambda: [p["NodesHealthy"] for p in node.ask("/v1/plugins", type="csi")] == [1], 20, "the plugin to be healthy again")
    made = node.ask("/v1/volume/csi/" + name)
    case.equal((made["ExternalID"], made["Schedulable"]), ("", False), "the volume whose creation was not acknowledged")


def test_an_interrupted_creation_is_completed_or_undone():
    begin_and_kill("cut")
    case.equal(bool(create("cut")["ExternalID"]), True, "created again")
    begin_and_kill("back")
    node.do("DELETE", "/v1/volume/csi/back/delete")
    node.do("DELETE", "/v1/volume/csi/cut/delete")
    case.equal([v["ID"] for v in node.ask("/v1/volumes", type="csi")], ["data"])


def test_volumes_are_deleted():
    before = stored()
    node.do("DELETE", "/v1/volume/csi/data/delete")
    case.equal((before, stored()), (1, 0), "volumes in the plugin's store")
    node.refused(404, "volume not found", "GET", "/v1/volume/csi/data")
    node.refused(400, "does not exist", "POST", "/v1/jobs", writer("late"))


def test_no_leaks_are_left():
    node.purge("plugin")
    case.until(lambda: node.ask("/v1/plugins", type="csi") == [], 10, "the plugin to be removed")
    case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


store = case.directory() + "/store"
with api.Node() as node:
    case.run(globals())
