#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A lease that ends with the local source: the alloc fails with the reason and is replaced once the node beats again."""
import os
import signal

from lib import api, case


def processes_of(alloc):
    """The pids of that allocation's tasks."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as f:
                if b"NOMAD_ALLOC_ID=" + alloc["ID"].encode() in f.read().split(b"\0"):
                    found.append(int(pid))
        except OSError:
            pass
    return found


def ended(alloc):
    return any("stop_after_client_disconnect" in e["Details"] for e in alloc["TaskStates"]["t"]["Events"])


def test_a_stopped_supervisor_costs_only_allocs_with_a_lease():
    made = api.job("leased", group={"StopAfterClientDisconnect": 2 * 10**9})
    node.register(made)
    node.register(api.job("free"))
    old, free = node.wait_running("leased")[0], node.wait_running("free")[0]
    pid = node.processes()["supervisor"]
    os.kill(pid, signal.SIGSTOP)
    try:
        case.equal(len(processes_of(old)), 1, "the task's processes")
        case.until(lambda: not processes_of(old), 10, "the task to be stopped")
    finally:
        os.kill(pid, signal.SIGCONT)
    first, second = node.wait_allocs("leased", [(0, "stop", "failed"), (0, "run", "running")])
    case.equal((first["ID"], first["NextAllocation"]), (old["ID"], second["ID"]))
    case.equal((ended(first), ended(second)), (True, False), "the event")
    case.equal(node.evaluation(second["EvalID"])["TriggeredBy"], "alloc-failure")
    case.equal(node.wait_running("free")[0]["ID"], free["ID"], "the one without a lease")
    node.purge("leased")
    node.purge("free")


def test_a_limit_of_zero_is_none():
    node.register(api.job("zero", group={"StopAfterClientDisconnect": 0}))
    node.wait_running("zero")
    node.purge("zero")


with api.Node() as node:
    case.run(globals())
