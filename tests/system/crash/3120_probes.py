#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 900
# takes: 60
"""Probes of a node with a host volume and a mounted CSI volume, while processes die at each point that a probe passes: the next probe is good, and nothing is left. PROBES=N makes N of them."""
import http.client
import os

from lib import case
from lib.crash_page import page
from lib.crash_walk import OF_3120
from lib import agent, api, binary, crash, volumes

NOT_OF_PROBES = ("HB_BEFORE_BEAT", "HB_AFTER_BEAT")  # heartbeat passes them at its own times
PROBES = int(os.environ.get("PROBES", "0"))


def probe(node):
    """One probe, which a kill may cut short."""
    try:
        api.Node.request(node, "GET", "/v1/agent/health?deep=1")
    except (OSError, http.client.HTTPException):
        pass


def is_well(node):
    answer = api.Node.request(node, "GET", "/v1/agent/health?deep=1")
    return answer.status == 200 and {c["state"] for c in answer.json["components"].values()} == {"ok"}


def left(node):
    allocs = {a["ID"] for a in node.ask("/v1/allocations")}
    return node.ask("/v1/agent/leaks") + [name for place in ("/alloc", "/logs") for name in os.listdir(node.data + place)
                                          if name[0] != "." and name not in allocs]


def begin_volumes(node):
    """Starts a CSI plugin and mounts one of its volumes. Returns the components of volumes."""
    node.register(api.job("plugin", binary("csi-local"), ["-root", case.directory()], group={"RestartPolicy": crash.RESTART},
                          CSIPluginConfig={"ID": "local", "Type": "monolith", "MountDir": "/csi"}))
    case.until(lambda: [p["NodesHealthy"] for p in node.ask("/v1/plugins", type="csi")] == [1], 30, "the plugin to be healthy")
    node.do("PUT", "/v1/volume/csi/data/create", {"Volumes": [{
        "ID": "data", "Name": "data", "PluginID": "local", "RequestedCapacityMin": 1 << 20,
        "RequestedCapabilities": [{"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}]}]})
    user = volumes.job("user", "data", "sleep 100000")
    user["Job"]["TaskGroups"][0]["RestartPolicy"] = crash.RESTART
    node.register(user)
    node.wait_running("user")
    return {"host-volume/kept", "plugin/local/monolith", "volume/data"}


def end_volumes(node):
    node.purge("user")
    case.until(lambda: node.request("DELETE", "/v1/volume/csi/data/delete").status in (200, 404), 60, "the volume to be deleted")
    node.purge("plugin")
    crash.wait_nothing_left(node)


def wait_well(node):
    def so():
        node.revive()
        try:
            return is_well(node)
        except (OSError, http.client.HTTPException):
            return False
    case.until(so, 60, "a good probe")


def plan(passes):
    """Returns (point, passes to skip): each point once, or as many as are wanted, evenly."""
    points = [p for p in crash.POINTS if passes.get(p)]
    if not PROBES:
        return [(p, passes[p] // 2) for p in points]
    return [(p, i % passes[p]) for i in range(PROBES // len(points) + 1) for p in points]


def test_nothing_is_left():
    died, rounds = set(), 0
    config = 'client {\n  host_volume "kept" { path = "%s" }\n}\n' % case.directory()
    with crash.Node(agent.config_args(config), env=page.env) as node:
        with_volumes = begin_volumes(node)
        wait_well(node)
        case.equal(with_volumes - set(node.request("GET", "/v1/agent/health?deep=1").json["components"]), set(), "components that are not probed")
        before = {p: page.passed(p) for p in crash.POINTS}
        case.equal(is_well(node), True)
        passes = {p: page.passed(p) - before[p] for p in crash.POINTS if p not in NOT_OF_PROBES}
        for point, skip in plan(passes):
            page.arm(point, skip)
            for _ in range(3):  # what happens between two messages differs from probe to probe
                probe(node)
                if not page.armed():
                    died.add(point)
                    break
            page.disarm()
            wait_well(node)
            case.until(lambda: left(node) == [], 60, "%s after %d passes: the end of what is left: %s" % (point, skip, left(node)))
            rounds += 1
        end_volumes(node)
    print("    %d rounds, %d points" % (rounds, len(died)))
    case.equal([p for p in OF_3120 if p not in died], [], "rows at which nobody died")
    case.equal([p for p in crash.POINTS if passes.get(p) and p not in died], [], "points that probes pass, at which nobody died")
    case.equal([p for p in ("EXEC_AFTER_CGROUP", "FILE_AFTER_ALLOC_DIR", "EXE_AFTER_EXEC") if p in crash.POINTS and p not in died], [], "points at which nobody died")


case.run(globals())
