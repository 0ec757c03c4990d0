#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A plugin's task that is stopped while its directories are being made leaves none of them behind."""
import os
import signal

from lib import api, binary, case, helper, mnt


def plugin():
    """Returns a plugin job whose main task starts when the file `go` exists."""
    made = api.job("plugin", binary("csi-local"), ["-root", base + "/store"], CSIPluginConfig={
        "ID": "local", "Type": "monolith", "MountDir": "/csi"})
    made["Job"]["TaskGroups"][0]["Tasks"].append(api.task(
        "before", "/bin/sh", ["-c", "until [ -e %s/go ]; do sleep 0.05; done" % base], Lifecycle={"Hook": "prestart"}))
    return made


def states():
    alloc, = node.allocs("plugin")
    return {name: s["State"] for name, s in (alloc["TaskStates"] or {}).items()}


def test_a_stop_during_the_preparation_leaves_no_mount():
    node.register(plugin())
    case.until(lambda: states().get("before") == "running", 20, "the prestart task to start")
    root = node.data + "/csi/monolith/local"
    pids = [node.processes()[name] for name in ("file-helper", "mount-helper")]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        with open(base + "/go", "w", encoding="ascii"):
            pass
        case.until(lambda: states()["before"] == "dead", 20, "the end of the prestart task")
        case.until(lambda: "Building Task Directory" in str(node.allocs("plugin")[0]["TaskStates"]["t"]), 10, "the preparation of the plugin's task")
        node.do("DELETE", "/v1/job/plugin")
        case.until(lambda: states()["t"] == "dead", 10, "the end of the plugin's task")
        os.kill(pids[0], signal.SIGCONT)
        case.until(lambda: os.path.exists(root), 10, "the plugin's root to be made")
        node.ask("/v1/nodes")  # the supervisor has received the answer of file-helper
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    case.until(lambda: not os.path.exists(root), 10, "the plugin's root to be removed")
    case.equal(mnt.mounts_below(node.data + "/csi"), [], "mounts")


def test_directories_of_a_plugin_whose_removal_is_lost_are_removed_at_the_next_start():
    node.purge("plugin")
    node.register(plugin())
    case.until(lambda: states().get("t") == "running", 20, "the plugin to run")
    (alloc,) = node.allocs("plugin")
    root, sock = node.data + "/csi/monolith/local", node.data + "/csi/sock/" + alloc["ID"]
    case.equal((os.path.exists(root), os.path.exists(sock)), (True, True), "directories while it runs")
    pids = [node.processes()[name] for name in ("file-helper", "mount-helper")]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    node.do("DELETE", "/v1/job/plugin")
    case.until(lambda: node.allocs("plugin")[0]["ClientStatus"] == "complete", 20, "the end of the alloc")
    node.kill("supervisor")
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    case.until(lambda: not os.path.exists(sock) and not os.path.exists(root), 20, "the directories to be removed")
    case.equal(os.path.exists(node.data + "/alloc/" + alloc["ID"]), True, "the alloc, which is kept")
    case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


def test_a_socket_directory_goes_although_the_root_must_stay():
    node.purge("plugin")
    node.register(plugin())
    case.until(lambda: states().get("t") == "running", 20, "the plugin to run")
    (alloc,) = node.allocs("plugin")
    root, sock = node.data + "/csi/monolith/local", node.data + "/csi/sock/" + alloc["ID"]
    os.makedirs(root + "/staging/kept/rw")  # of a volume that no row knows
    node.do("DELETE", "/v1/job/plugin")
    case.until(lambda: not os.path.exists(sock), 10, "the socket directory to be removed")
    found = {one["Kind"]: one["Name"] for one in node.ask("/v1/agent/leaks")}
    case.equal(found, {"mount": "csi/monolith/local", "csi-dir": "monolith/local/staging/kept/rw"}, "leaks")
    for path in ("/staging/kept/rw", "/staging/kept", "/staging"):
        os.rmdir(root + path)
    helper.umount(root)
    os.rmdir(root)
    case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


base = case.directory()
with api.Node() as node:
    case.run(globals())
