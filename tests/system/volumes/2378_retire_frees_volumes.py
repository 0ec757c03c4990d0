#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A node that retires gives its volumes back before their plugin ends: nothing is published, staged or claimed, and the data stays."""
import glob

from lib import case, volumes


def mounts(node):
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return [line.split(" ")[4] for line in f if node.data + "/csi" in line.split(" ")[4]]


def test_a_retired_node_has_no_volume_and_no_claim():
    with volumes.Node() as node:
        node.start_plugin()
        node.create("demo")
        node.register(volumes.job("web", "demo", "test -e /data/f || echo kept >/data/f; sleep 1000"))
        node.wait_running("web")
        case.until(lambda: [p for p in glob.glob(node.store + "/**/f", recursive=True) if open(p, encoding="utf-8").read() == "kept\n"], 20, "the file")
        case.equal((len(node.published("demo")), len(mounts(node)) > 0), (1, True))
        case.contains(node.drover("node", "retire", "-yes", "-force").out, "The node has retired")
        case.equal((node.wait(), node.published("demo"), mounts(node), node.fuse_processes()), (0, [], [], []))
        node.drover("node", "rejoin", "-data-dir", node.data)
        node.start()
        node.wait_ready()
        case.until(node.plugin_is_healthy, 60, "the plugin of the new node")
        # The same job gets the volume of the node before: no claim is left that would keep it.
        alloc = node.wait_running("web", seconds=60)[0]
        volume = node.ask("/v1/volume/csi/demo")
        case.equal(([a["ID"] for a in volume["Allocations"]], len(volume["WriteAllocs"])), ([alloc["ID"]], 1))
        case.equal([open(p, encoding="utf-8").read() for p in glob.glob(node.store + "/**/f", recursive=True)], ["kept\n"])
        node.purge("web")


case.run(globals())
