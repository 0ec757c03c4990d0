#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A node whose disk is full lands and retires all the same, with the space that it keeps for that, and has it again after its next start."""
import os
import signal

from lib import api, case, helper
from lib.cluster import processes_of


def fill(path):
    """Writes until no byte is free."""
    with open(path, "wb", buffering=0) as f:
        size = 1 << 20
        while size > 0:
            try:
                f.write(b"x" * size)
            except OSError:
                size //= 2


def reserve():
    return os.path.getsize(node.data + "/state/reserve")


def begin():
    """Starts the agent with some allocations, and fills its disk until nothing can be changed any more. Returns the ids."""
    node.start()
    node.wait_ready()
    case.equal(reserve(), 4 << 20, "space that is kept")
    node.register(api.job("web", count=20))
    allocs = [a["ID"] for a in node.wait_running("web", 20)]
    fill(node.data + "/ballast")
    case.until(lambda: node.request("POST", "/v1/jobs", api.job("late")).status == 507, 20, "a change to be refused")
    return allocs


def check_end(allocs):
    case.equal(node.wait(), 0, "the agent's end")
    case.equal([p for a in allocs for p in processes_of(a)], [], "processes of tasks")
    case.equal(reserve() < 4 << 20, True, "space was used")
    os.unlink(node.data + "/ballast")


def test_landing():
    allocs = begin()
    me = node.ask("/v1/nodes")[0]["ID"]
    case.equal(node.do("PUT", "/v1/agent/land", {"Deadline": 0})["State"], "landing")
    check_end(allocs)
    node.start()
    node.wait_ready()
    case.equal((node.ask("/v1/agent/departure")["State"], node.ask("/v1/nodes")[0]["ID"], reserve()), ("running", me, 4 << 20))
    case.equal({a["ID"]: a["ClientStatus"] for a in node.allocs("web") if a["ID"] in allocs}, {a: "complete" for a in allocs})
    node.purge("web")
    node.stop()


def test_retiring_by_a_signal():
    allocs = begin()
    node.process.send_signal(signal.SIGUSR2)
    check_end(allocs)
    node.start()
    case.equal(node.wait(), 78, "a start of a node that is retired")


top = case.directory() + "/small"
os.mkdir(top)
helper.mount("none", top, "tmpfs", 0, "size=40m")
try:
    with api.Node(data=top + "/data") as node:
        node.stop()
        case.run(globals())
finally:
    helper.umount(top)
