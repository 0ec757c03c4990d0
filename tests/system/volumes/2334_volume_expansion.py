#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A volume that is expanded takes its new size everywhere it is mounted, although its plugin fails in between, is asked one by one, and the agent
is killed; one that is not mounted takes it when it is mounted."""
import json
import os
import signal

from lib import api, case, told, volumes

MODE = "multi-node-multi-writer"


def wish(name, size, plugin="p"):
    made = told.volume(name, plugin, MODE, RequestedCapacityMin=size)
    del made["Volumes"][0]["ExternalID"]
    return made


def create(name, size, plugin="p"):
    return node.do("PUT", "/v1/volume/csi/%s/create" % name, wish(name, size, plugin))["Volumes"][0]


def user(name, volume):
    made = volumes.job(name, volume, "sleep 1000")
    made["Job"]["TaskGroups"][0]["Volumes"]["data"]["AccessMode"] = MODE
    node.register(made)
    return node.wait_running(name)[0]["ID"]


def paths(volume):
    """Returns where the plugin was asked to expand the volume, in order."""
    return [c[2] for c in plugin.calls("NodeExpandVolume") if c[1] == volume]


def due(volume):
    return node.ask("/v1/volume/csi/" + volume).get("NodeExpansion", 0)


def test_a_failure_at_one_of_three_mounts_is_repeated():
    create("v", 1 << 20)
    allocs = sorted(user("user%d" % i, "v") for i in range(3))
    plugin.tell("NodeExpandVolume", "once 13 the disk is on fire")
    answer = node.request("PUT", "/v1/volume/csi/v/create", wish("v", 3 << 20))
    case.equal((answer.status, "the disk is on fire" in answer.text, "is tried again" in answer.text), (500, True, True), answer.text)
    case.equal(sorted(p.split("/")[-3] for p in paths("v")), allocs, "mounts that were asked")
    case.contains(node.ask("/v1/volume/csi/v")["NodeExpansionError"], "the disk is on fire")
    # The request again asks them all again, and does not ask the controller.
    case.equal(create("v", 3 << 20)["Capacity"], 3 << 20)
    case.equal((len(paths("v")), len(plugin.calls("ControllerExpandVolume")), due("v")), (6, 1, 0))
    case.equal("NodeExpansionError" in node.ask("/v1/volume/csi/v"), False)
    case.equal(create("v", 3 << 20)["Capacity"], 3 << 20)
    case.equal(len(paths("v")), 6, "calls after all took the size")


def test_what_failed_is_repeated_without_a_request_and_after_a_kill():
    plugin.tell("NodeExpandVolume", "13 the disk is on fire")
    node.refused(500, "the disk is on fire", "PUT", "/v1/volume/csi/v/create", wish("v", 4 << 20))
    node.replace_supervisor()
    case.equal(due("v"), 4 << 20)
    plugin.untell("NodeExpandVolume")
    case.until(lambda: due("v") == 0, 60, "the mounts to take the size")
    for i in range(3):
        node.purge("user%d" % i)


def test_a_volume_that_is_not_mounted_is_expanded_when_it_is():
    before = len(paths("v"))
    create("v", 5 << 20)
    case.equal((len(paths("v")), due("v")), (before, 5 << 20))
    alloc = user("later", "v")
    case.equal([p.split("/")[-3] for p in paths("v")[before:]], [alloc])
    case.until(lambda: due("v") == 0, 10, "the row")
    node.purge("later")


def test_a_size_that_is_requested_during_a_mount_with_an_earlier_one_stays_due():
    create("w", 1 << 20)
    create("w", 2 << 20)
    plugin.tell("NodePublishVolume", "10 still busy")
    made = volumes.job("of-w", "w", "sleep 1000")
    made["Job"]["TaskGroups"][0]["Volumes"]["data"]["AccessMode"] = MODE
    node.register(made)
    case.until(lambda: [c for c in plugin.calls("NodePublishVolume") if c[1] == "w"], 20, "a mount")
    create("w", 3 << 20)
    case.equal((len(paths("w")), due("w")), (0, 3 << 20))
    plugin.untell("NodePublishVolume")
    node.wait_running("of-w")
    case.until(lambda: due("w") == 0, 60, "the mount to take the size")
    case.equal(len(paths("w")), 2, "calls: for the size at the mount's beginning, and for the last one")
    node.purge("of-w")
    node.do("DELETE", "/v1/volume/csi/w/delete")


def test_a_size_waits_for_the_other_calls_of_the_volume():
    user("first", "v")
    plugin.tell("NodePublishVolume.hang", "")
    made = volumes.job("second", "v", "sleep 1000")
    made["Job"]["TaskGroups"][0]["Volumes"]["data"]["AccessMode"] = MODE
    node.register(made)
    case.until(lambda: len([c for c in plugin.calls("NodePublishVolume") if c[1] == "v"]) >= 6, 20, "a publication that hangs")
    before = len(paths("v"))
    connection = api.Connection(node, case.LEAST_S)
    connection.request("PUT", "/v1/volume/csi/v/create", json.dumps(wish("v", 6 << 20)).encode())
    case.until(lambda: len([c for c in plugin.calls("ControllerExpandVolume") if c[1] == "v"]) == 4, 20, "the controller's call")
    case.equal(len(paths("v")), before, "calls beside one that has not ended")
    plugin.untell("NodePublishVolume.hang")
    node.do("DELETE", "/v1/job/second?purge=true")
    answer = connection.getresponse()
    case.equal(answer.status, 200, answer.read())
    case.equal(len(paths("v")), before + 1)
    connection.close()
    node.purge("first")
    case.until(lambda: node.request("GET", "/v1/job/second").status == 404, 60, "the second user to be removed")


def test_an_allocation_whose_claim_is_older_than_an_expansion_goes_on():
    """Its directory is made late, so it asks for its volume while that is being expanded."""
    create("x", 1 << 20)
    plugin.tell("ControllerExpandVolume", "10 still busy")
    file_helper = node.processes()["file-helper"]
    os.kill(file_helper, signal.SIGSTOP)
    try:
        made = volumes.job("of-x", "x", "sleep 1000")
        made["Job"]["TaskGroups"][0]["Volumes"]["data"]["AccessMode"] = MODE
        node.register(made)
        case.until(lambda: node.ask("/v1/volume/csi/x/claims"), 20, "the claim")
        connection = api.Connection(node, case.LEAST_S)
        connection.request("PUT", "/v1/volume/csi/x/create", json.dumps(wish("x", 2 << 20)).encode())
        case.until(lambda: [c for c in plugin.calls("ControllerExpandVolume") if c[1] == "x"], 20, "the controller's call")
    finally:
        os.kill(file_helper, signal.SIGCONT)
    node.wait_running("of-x")
    case.equal(len(node.allocs("of-x")), 1, "allocations")
    plugin.untell("ControllerExpandVolume")
    case.equal(connection.getresponse().status, 200)
    connection.close()
    case.until(lambda: due("x") == 0, 60, "the mount to take the size")
    node.purge("of-x")
    node.do("DELETE", "/v1/volume/csi/x/delete")


def test_a_plugin_whose_node_alone_expands():
    other = told.Plugin(node, "n", node_caps=(told.NODE_EXPAND,))
    create("w", 1 << 20, "n")
    user("of-w", "w")
    create("w", 2 << 20, "n")
    case.equal((len(other.calls("NodeExpandVolume")), other.calls("ControllerExpandVolume"), due("w")), (1, [], 0))
    node.purge("of-w")
    node.do("DELETE", "/v1/volume/csi/w/delete")
    other.purge()
    other = told.Plugin(node, "none")
    create("w", 1 << 20, "none")
    node.refused(409, "does not expand volumes", "PUT", "/v1/volume/csi/w/create", wish("w", 2 << 20, "none"))
    node.do("DELETE", "/v1/volume/csi/w/delete")
    other.purge()


def test_a_node_without_the_capability_is_not_asked_when_the_volume_is_mounted():
    other = told.Plugin(node, "half", controller=(told.CREATE_DELETE, told.EXPAND))
    create("w", 1 << 20, "half")
    create("w", 2 << 20, "half")
    user("of-w", "w")
    case.until(lambda: "no capability EXPAND_VOLUME" in node.ask("/v1/volume/csi/w").get("NodeExpansionError", ""), 20, "the reason")
    case.equal((other.calls("NodeExpandVolume"), due("w")), ([], 2 << 20))
    node.purge("of-w")
    node.do("DELETE", "/v1/volume/csi/w/delete")
    other.purge()


def test_a_plugin_whose_controller_does_not_run_is_not_taken_for_one_without():
    caps = {"controller": (told.CREATE_DELETE, told.EXPAND), "node_caps": (told.NODE_EXPAND,)}
    told.Plugin(node, "x", **caps)
    create("w", 1 << 20, "x")
    told.Plugin(node, "x", kind="node", **caps)
    case.until(lambda: [(p["ControllersHealthy"], p["NodesHealthy"]) for p in node.ask("/v1/plugins", type="csi") if p["ID"] == "x"] == [(0, 1)],
               30, "the node half alone")
    node.refused(500, 'the controller of plugin "x" does not run', "PUT", "/v1/volume/csi/w/create", wish("w", 2 << 20, "x"))
    case.equal((node.ask("/v1/volume/csi/w")["Capacity"], due("w")), (1 << 20, 0))
    other = told.Plugin(node, "x", **caps)
    case.until(lambda: node.ask("/v1/plugin/csi/x")["ControllersHealthy"] == 1, 30, "both halves")
    create("w", 2 << 20, "x")
    case.equal((len(other.calls("ControllerExpandVolume")), due("w")), (1, 2 << 20))
    node.do("DELETE", "/v1/volume/csi/w/delete")
    other.purge()


def test_a_registration_expands_too():
    made = told.volume("v", "p", MODE, RequestedCapacityMin=7 << 20)
    case.equal(node.do("PUT", "/v1/volume/csi/v", made)["Volumes"][0]["Capacity"], 7 << 20)


def test_no_leaks_are_left():
    node.do("DELETE", "/v1/volume/csi/v/delete")
    plugin.purge()
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 20, "no leaks")


with api.Node() as node:
    plugin = told.Plugin(node, "p", controller=(told.CREATE_DELETE, told.EXPAND), node_caps=(told.NODE_EXPAND,))
    case.run(globals())
