#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An allocation is placed only if its node can reach the volume and the plugin takes one more volume there."""
from lib import api, case, told, volumes


def put(name, **more):
    node.do("PUT", "/v1/volume/csi/" + name, told.volume(name, "p", **more))


def segments(**pairs):
    return {"Segments": pairs}


def blocked(name, volume, part):
    """Registers a user of the volume, which is not placed for this reason."""
    node.register(volumes.job(name, volume, "sleep 1000"))
    case.equal(node.allocs(name), [])
    found = [e for e in node.ask("/v1/job/%s/evaluations" % name) if e["Status"] == "blocked"]
    case.equal(len(found), 1, "blocked evaluations")
    case.contains(str(found[0]["FailedTGAllocs"]), part)


def test_a_volume_of_another_topology_is_not_placed():
    put("far", Topologies=[segments(zone="b"), segments(zone="a", rack="2")])
    blocked("one", "far", "CSI volume far can be reached from zone=b and other topologies, and for plugin p this node has ")
    # A volume that was registered without its topologies has the required ones.
    put("asked", RequestedTopologies={"Required": [segments(zone="c")]})
    case.equal(node.ask("/v1/volume/csi/asked")["Topologies"], [segments(zone="c")])
    blocked("two", "asked", "CSI volume asked can be reached from zone=c")
    put("near", Topologies=[segments(zone="b"), segments(zone="a")])
    node.register(volumes.job("near", "near", "sleep 1000"))
    node.wait_running("near")
    for name in ("one", "two"):
        node.purge(name)


def test_a_plugin_takes_only_so_many_volumes():
    for name in ("second", "third"):
        put(name)
    node.register(volumes.job("second", "second", "sleep 1000"))
    node.wait_running("second")
    blocked("third", "third", "CSI plugin p has the maximum number of volumes on this node (2)")
    node.purge("second")
    node.wait_running("third")
    for name in ("near", "third"):
        node.purge(name)


def test_a_plugin_that_has_nothing_left_gets_no_further_volume_for_a_while():
    plugin.tell("NodeStageVolume", "8 the disks are full")
    node.register(volumes.job("first", "second", "sleep 1000"))
    case.until(lambda: "the disks are full" in str([a["TaskStates"] for a in node.allocs("first")]), 30, "the first to fail")
    reason = "CSI plugin p has nothing left for another volume on this node; placements wait 30 s before it is tried again: NodeStageVolume"
    blocked("waits", "third", reason)
    case.contains(node.drover("job", "status", "waits").out, "CSI plugin p has nothing left for another volume on this node")
    plugin.untell("NodeStageVolume")
    node.purge("first")
    # It is tried again without a request.
    node.wait_running("waits", seconds=90)
    node.purge("waits")


def test_no_leaks_are_left():
    for name in ("far", "asked", "near", "second", "third"):
        node.do("DELETE", "/v1/volume/csi/" + name)
    plugin.purge()
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 20, "no leaks")


with api.Node() as node:
    plugin = told.Plugin(node, "p", node_caps=(told.NODE_STAGE,), segments="zone=a\nrack=1", max="2")
    case.run(globals())
