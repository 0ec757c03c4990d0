#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 12
"""A CSI plugin that is stopped together with the users of its volumes runs until they are unmounted."""
from lib import case, volumes


def user(name, volume):
    return volumes.job(name, volume, "trap '' INT TERM; echo ready; while :; do sleep 0.1; done", KillTimeout=3 * 10**9)


def start(name, volume):
    node.register(user(name, volume))
    alloc, = node.wait_running(name)
    case.until(lambda: b"ready" in node.logs(alloc), 20, "the task to ignore its signal")


def test_it_unmounts_the_volumes_of_an_allocation_that_ends():
    node.create("data")
    start("user", "data")
    plugin, = node.wait_running("csi-local")
    node.do("DELETE", "/v1/job/user")
    node.do("DELETE", "/v1/job/csi-local")
    case.until(lambda: "keeps running until the volumes" in str(node.ask("/v1/client/allocation/%s/why" % plugin["ID"])), 10, "the reason")
    case.until(lambda: not node.published("data"), 30, "the volume to be unmounted")
    case.until(lambda: node.ask("/v1/allocation/" + plugin["ID"])["ClientStatus"] == "complete", 30, "the plugin to end")
    case.equal(node.ask("/v1/volume/csi/data")["WriteAllocs"] or {}, {}, "claims")
    case.equal("is not started again" in node.log(), False, "a call was cut off")
    node.purge("user")


def test_it_does_not_wait_for_users_that_go_on():
    node.start_plugin()
    start("other", "data")
    node.do("DELETE", "/v1/job/csi-local")
    alloc = [a for a in node.allocs("csi-local") if a["ClientStatus"] != "complete"]
    for a in alloc:
        case.until(lambda i=a["ID"]: node.ask("/v1/allocation/" + i)["ClientStatus"] == "complete", 30, "the plugin to end")
    case.equal(len(node.published("data")), 1, "mounts")
    node.start_plugin()
    node.purge("other")


def test_no_leaks_are_left():
    node.do("DELETE", "/v1/volume/csi/data/delete")
    node.purge("csi-local")
    case.equal(node.ask("/v1/agent/leaks"), [])


with volumes.Node() as node:
    node.start_plugin()
    case.run(globals())
