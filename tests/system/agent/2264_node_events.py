#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 65
"""Events of the node: what they tell of, that they survive a restart, and that something that flaps does not fill the list."""
import json
import os

from lib import agent, api, case, helper


def events(node, subsystem=None):
    found = json.loads(node.drover("node", "events", "-json").out) or []
    return [e for e in sorted(found, key=lambda e: e["Timestamp"]) if subsystem in (None, e["Subsystem"])]


def messages(node, subsystem=None):
    return [e["Message"] for e in events(node, subsystem)]


def flap(node, times):
    """Lands and comes back, which are two events."""
    made = api.job("slow")  # a batch job, for whose end the landing waits
    made["Job"]["Type"] = "batch"
    for member in ("ReschedulePolicy", "Update"):
        made["Job"]["TaskGroups"][0].pop(member)
    node.register(made)
    node.wait_running("slow")
    for _ in range(times):
        node.do("PUT", "/v1/agent/land", {"Deadline": 0})
        node.do("PUT", "/v1/agent/land", {"Cancel": True})


def test_they_survive_restarts():
    with api.Node() as node:
        node.do("PUT", "/v1/agent/land", {"Deadline": 10**12})
        case.equal(node.wait(), 0)
        node.start()
        node.wait_ready()
        wanted = ["Node lands", "Node takes allocations again"]
        case.until(lambda: messages(node) == wanted, 20, "both events")
        before = events(node)
        node.replace_supervisor()
        case.equal(events(node), before)
        node.kill_launcher()
        node.start()
        node.wait_ready()
        case.equal(events(node), before)


def test_what_flaps_is_limited():
    with api.Node() as node:
        flap(node, 8)
        found = events(node, "Cluster")
        case.equal([e["Message"] for e in found], ["Node lands", "Node takes allocations again"] * 5)
        case.equal([e.get("Details") or {} for e in found], [{}] * 10)
        last = case.until(lambda: (e := events(node, "Cluster")[-1]) != found[-1] and e, 90, "the last of those that were left out")
        case.equal((last["Message"], last["Details"]), ("Node takes allocations again", {"events_left_out": "5"}))
        node.purge("slow")


def test_a_full_disk():
    top = case.directory() + "/small"
    os.mkdir(top)
    helper.mount("none", top, "tmpfs", 0, "size=24m")
    try:
        with api.Node(agent.config_args('client { gc_interval = "1s" gc_disk_usage_threshold = 60 }\n' + api.DISK), data=top + "/data") as node:
            with open(top + "/ballast", "wb") as f:
                f.write(b"x" * (16 << 20))
            case.until(lambda: messages(node, "Disk"), 30, "the event")
            case.contains(messages(node, "Disk")[0], "% full, ")
            os.unlink(top + "/ballast")
            case.until(lambda: [": there is room again" in m for m in messages(node, "Disk")] == [False, True], 30, "the end")
    finally:
        helper.umount(top)


case.run(globals())
