#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 300
"""Several instances of one plugin on a node: a controller and a node task, an upgrade while a volume is in use, and two jobs."""
import os

from lib import api, binary, case, mnt, volumes


def register(job, kind="monolith", mode="monolith", root=None, **more):
    """Registers a job that is the plugin `local`, of this kind."""
    made = api.job(job, binary("csi-local"), ["-root", root or node.store, "-mode", mode], CSIPluginConfig={
        "ID": "local", "Type": kind, "MountDir": "/csi"}, **more)
    node.register(made)


def plugin():
    answer = node.request("GET", "/v1/plugin/csi/local")
    return answer.json if answer.status == 200 else None


def counts():
    p = plugin()
    return (p["ControllersHealthy"], p["ControllersExpected"], p["NodesHealthy"], p["NodesExpected"]) if p else (0, 0, 0, 0)


def shown(half):
    """Returns the allocs of the healthy instances that the node shows: at most one for each plugin."""
    return [info["AllocID"] for info in node.ask("/v1/node/" + me)[half].values() if info["Healthy"]]


def newest(job):
    """Returns the job's newest alloc; none between two versions."""
    return ([a["ID"] for a in node.allocs(job) if a["DesiredStatus"] == "run"] or [None])[-1]


def use(script="echo kept >> /data/x; sleep 1000"):
    node.register(volumes.job("user", "data", script))
    return node.wait_running("user", seconds=30)[0]["ID"]


def stop_user():
    node.purge("user")
    case.until(lambda: not node.published("data"), 30, "the volume to be unmounted")


def no_plugin():
    case.until(lambda: plugin() is None, 30, "the plugin to be removed")
    case.until(lambda: mnt.mounts_below(node.data + "/csi/monolith") == [], 20, "the plugin's root to be unmounted")
    case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


def test_a_controller_and_a_node_task_are_one_plugin():
    register("controller", "controller", "controller")
    case.until(lambda: counts() == (1, 1, 0, 0), 30, "the controller")
    register("node", "node", "node")
    case.until(lambda: counts() == (1, 1, 1, 1), 30, "both halves")
    case.equal((shown("CSIControllerPlugins"), shown("CSINodePlugins")), ([newest("controller")], [newest("node")]))
    node.create("data")
    use()
    case.contains(node.published("data")[0], "/csi/node/local/")
    node.purge("controller")
    case.until(lambda: counts() == (0, 0, 1, 1), 30, "the end of the controller")
    case.until(lambda: not os.path.exists(node.data + "/csi/controller/local"), 20, "the controller's root to be removed")
    case.equal(len(node.published("data")), 1, "mounts while the controller is away")
    stop_user()
    node.purge("node")
    no_plugin()


def test_an_upgrade_keeps_volumes_in_use():
    """The new version unmounts what the old one has mounted, and the directories that they share stay."""
    register("plugin")
    case.until(lambda: counts()[2] == 1, 30, "the plugin")
    old, user = newest("plugin"), use()
    register("plugin", Env={"VERSION": "2"})
    case.until(lambda: newest("plugin") != old and shown("CSINodePlugins") == [newest("plugin")], 60, "the new instance")
    case.until(lambda: [a["ClientStatus"] for a in node.allocs("plugin") if a["ID"] == old] == ["complete"], 30, "the old instance to end")
    case.equal((newest("user"), len(node.published("data"))), (user, 1))
    stop_user()
    node.purge("plugin")
    no_plugin()


def test_calls_go_to_the_newest_healthy_instance_of_two_jobs():
    """Each has its own store, so the store tells which one was called."""
    register("first")
    case.until(lambda: shown("CSINodePlugins") == [newest("first")], 30, "the first")
    other = case.directory()
    register("second", root=other)
    case.until(lambda: shown("CSINodePlugins") == [newest("second")], 30, "the second, which is newer")
    case.equal(counts()[2:], (1, 1), "nodes")
    node.create("new")
    case.equal(len(os.listdir(other + "/volumes")), 1, "volumes of the second")
    node.do("DELETE", "/v1/volume/csi/new/delete")
    node.purge("second")
    case.until(lambda: shown("CSINodePlugins") == [newest("first")], 30, "the first again")
    use()
    stop_user()
    node.do("DELETE", "/v1/volume/csi/data/delete")
    node.purge("first")
    no_plugin()


with volumes.Node() as node:
    me = node.ask("/v1/nodes")[0]["ID"]
    case.run(globals())
