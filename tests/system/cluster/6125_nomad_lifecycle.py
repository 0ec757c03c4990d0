#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tasks of one group that end each other: leaders, sidecars, failing siblings; in allocations placed by servers."""
from lib import api, case, stages
from lib.cluster import node_of, servers as cluster
from lib.stages import events, let_go, task, wait_order

# They begin one after the other, but their lines are written in any order.
BEGINS = {name + " begins" for name in ("before", "check", "late", "leader", "main", "other", "side")}
KILLED = ["Killing", "Terminated", "Killed"]


def start(name, tasks):
    found = servers.run_job(stages.job(name, tasks, kind="batch")["Job"], me)[0]
    return servers.wait_alloc(found, ["running"])


def test_the_end_of_the_leader_stops_all_tasks():
    alloc = start("led", [task("other"), task("leader", Leader=True), task("side", "prestart", True), task("after", "poststop")])
    wait_order(node, alloc, ["side begins", "leader begins", "other begins"], any_of=BEGINS)
    let_go(node, alloc, "leader")
    wait_order(node, alloc, ["leader ends", "other is told", "side is told", "after begins"], skip=3)
    let_go(node, alloc, "after")
    found = servers.wait_alloc(alloc["ID"], ["complete"])
    for name in ("other", "side"):
        case.equal(events(found, name)[3:], ["Leader Task Dead"] + KILLED, name)
    case.equal(events(found, "leader")[3:], ["Terminated"])


def test_a_stop_stops_the_leader_first_and_sidecars_last():
    alloc = start("ordered", [task("other"), task("leader", Leader=True), task("side", "poststart", True)])
    wait_order(node, alloc, ["leader begins", "other begins", "side begins"], any_of=BEGINS)
    servers.stop_alloc(alloc["ID"])
    wait_order(node, alloc, ["leader is told", "other is told", "side is told"], skip=3)
    found = servers.wait_alloc(alloc["ID"], ["complete"])
    for name in ("leader", "other", "side"):
        case.equal(events(found, name)[3:], KILLED, name)


def test_sidecars_are_stopped_when_all_other_tasks_have_ended():
    alloc = start("alone", [task("main"), task("before", "prestart", True), task("late", "poststart", True)])
    wait_order(node, alloc, ["before begins", "main begins", "late begins"], any_of=BEGINS)
    let_go(node, alloc, "main")
    found = servers.wait_alloc(alloc["ID"], ["complete"])
    for name in ("before", "late"):
        case.equal(events(found, name)[3:], ["Main Tasks Dead"] + KILLED, name)


def test_a_sidecar_is_restarted_alone():
    job = stages.job("kept", [task("main"), task("side", "prestart", True)], kind="service", RestartPolicy={
        "Attempts": 3, "Interval": 300 * 10**9, "Delay": 10**7, "Mode": "fail"})["Job"]
    alloc = servers.wait_alloc(servers.run_job(job, me)[0], ["running"])
    wait_order(node, alloc, ["side begins", "main begins"], any_of=BEGINS)
    let_go(node, alloc, "side")
    wait_order(node, alloc, ["side ends", "side begins"], skip=2)
    servers.stop_alloc(alloc["ID"])
    found = servers.wait_alloc(alloc["ID"], ["complete"])
    case.equal((found["TaskStates"]["side"]["Restarts"], found["TaskStates"]["main"]["Restarts"]), (1, 0))


def test_a_failed_poststart_task_stops_the_others():
    alloc = start("late", [task("main"), task("check", "poststart")])
    wait_order(node, alloc, ["main begins", "check begins"], any_of=BEGINS)
    let_go(node, alloc, "check", 3)
    found = servers.wait_alloc(alloc["ID"], ["failed"])
    case.until(lambda: servers.alloc(alloc["ID"])["TaskStates"]["main"]["State"] == "dead", 60, "the main task to end")
    found = servers.alloc(alloc["ID"])
    case.equal(events(found, "main")[3:], ["Sibling Task Failed"] + KILLED)
    case.equal(next(e for e in found["TaskStates"]["main"]["Events"] if e["Type"] == "Sibling Task Failed")["DisplayMessage"],
               'Task\'s sibling "check" failed')


# Ends half a second after its signal, or at the next signal.
SLOW = "trap 'sleep 0.5; exit 0' INT; while :; do sleep 0.05; done"


def test_an_allocation_waits_for_its_previous_allocation():
    for field in ("PreviousAllocation", "PreemptedAllocations"):
        first = servers.run_job(stages.job("first", [api.task("t", "/bin/sh", ["-c", SLOW])])["Job"], me)[0]
        servers.wait_alloc(first, ["running"])
        servers.stop_alloc(first)
        value = first if field == "PreviousAllocation" else [first]
        second = servers.run_job(stages.job("second", [api.task("t", "/bin/sleep", ["1000"])])["Job"], me,
                                 fields={field: value})[0]
        begun = servers.wait_alloc(second, ["running"])
        ended = servers.wait_alloc(first, ["complete"])
        killed = next(e["Time"] for e in ended["TaskStates"]["t"]["Events"] if e["Type"] == "Terminated")
        case.equal(killed <= next(e["Time"] for e in begun["TaskStates"]["t"]["Events"] if e["Type"] == "Task Setup"), True,
                   field)
        servers.stop_alloc(second)
        servers.wait_alloc(second, ["complete"])


with cluster() as servers, node_of(servers) as node:
    me = servers.wait_node()["ID"]
    case.run(globals())
