#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A plugin's task that is stopped while its directories are being made leaves none of them behind."""
import os
import signal

from lib import api, binary, case, mnt


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


base = case.directory()
with api.Node() as node:
    case.run(globals())
