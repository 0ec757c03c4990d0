#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 40
"""The stages of a group's tasks: lifecycle blocks, shutdown_delay, and kills of the supervisor in between."""
import os
import time

from lib import api, case, stages
from lib.stages import events, let_go, order, started, task, wait_order

S = 10**9
CLOCKS = S // 100  # tolerance: delays are measured by another clock than the times of events, which may be adjusted


def start(name, tasks, **group):
    """Registers the job and returns its alloc."""
    node.register(stages.job(name, tasks, **group))
    return case.until(lambda: node.allocs(name), 60, "an allocation")[0]


def get(alloc):
    return node.ask("/v1/allocation/" + alloc["ID"])


def wait_status(alloc, status, seconds=60):
    case.until(lambda: get(alloc)["ClientStatus"] == status, seconds, "the allocation to be " + status)
    return get(alloc)


def wait_state(alloc, name, state, seconds=60):
    case.until(lambda: (get(alloc)["TaskStates"].get(name) or {}).get("State") == state, seconds, "%s %s" % (name, state))


LATER = {"main begins", "poststart begins"}
ALL = [task("poststop", "poststop"), task("poststart", "poststart"), task("main"), task("side", "prestart", True),
       task("prestart", "prestart")]


def test_stages_follow_each_other():
    alloc = start("stages", ALL)
    case.until(lambda: sorted(order(node, alloc)) == ["prestart begins", "side begins"], 60, "prestart tasks to begin")
    wait_state(alloc, "side", "running")
    case.equal(events(get(alloc), "main"), ["Received"], "tasks of the main stage that have started")
    begun = order(node, alloc)
    let_go(node, alloc, "prestart")
    wait_order(node, alloc, begun + ["prestart ends", "main begins", "poststart begins"], any_of=LATER)
    let_go(node, alloc, "poststart")
    wait_state(alloc, "poststart", "dead")
    found = get(alloc)
    case.equal(found["TaskStates"]["poststart"]["Failed"], False)
    case.equal(started(found, "main") <= started(found, "poststart"), True, "the poststart tasks to begin")
    case.equal(events(get(alloc), "poststop"), ["Received"], "whether the poststop task has started")
    node.do("DELETE", "/v1/job/stages")
    wait_order(node, alloc, begun + ["prestart ends", "main begins", "poststart begins", "poststart ends", "main is told",
                                     "side is told", "poststop begins"], any_of=LATER)
    case.equal(get(alloc)["ClientStatus"], "running", "status while the poststop task runs")
    let_go(node, alloc, "poststop")
    found = wait_status(alloc, "complete")
    for name in ("main", "side"):
        case.equal(events(found, name)[-3:], ["Killing", "Terminated", "Killed"], name)
    case.equal(events(found, "poststop"), ["Received", "Task Setup", "Started", "Terminated"])
    case.equal([t["Failed"] for t in found["TaskStates"].values()], [False] * 5)
    node.purge("stages")


def test_a_poststart_sidecar_begins_after_the_main_task_and_ends_after_it():
    alloc = start("beside", [task("mate", "poststart", True), task("main"), task("poststop", "poststop")])
    begun = {"main begins", "mate begins"}
    wait_order(node, alloc, sorted(begun), any_of=begun)
    wait_state(alloc, "mate", "running")
    found = get(alloc)
    case.equal(started(found, "main") <= started(found, "mate"), True, "the poststart task to begin")
    node.do("DELETE", "/v1/job/beside")
    wait_order(node, alloc, sorted(begun) + ["main is told", "mate is told", "poststop begins"], any_of=begun)
    let_go(node, alloc, "poststop")
    found = wait_status(alloc, "complete")
    for name in ("main", "mate"):
        case.equal(events(found, name)[-3:], ["Killing", "Terminated", "Killed"], name)
    node.purge("beside")


def test_a_failed_prestart_task_leads_to_poststop():
    alloc = start("early", ALL)
    case.until(lambda: len(order(node, alloc)) == 2, 60, "prestart tasks to begin")
    begun = order(node, alloc)
    let_go(node, alloc, "prestart", 7)
    wait_order(node, alloc, begun + ["prestart ends", "side is told", "poststop begins"])
    let_go(node, alloc, "poststop")
    wait_state(alloc, "poststop", "dead")
    found = wait_status(alloc, "failed")
    case.equal(events(found, "main"), ["Received", "Sibling Task Failed", "Killing"])
    case.equal(events(found, "side")[-4:], ["Sibling Task Failed", "Killing", "Terminated", "Killed"])
    case.equal(events(found, "prestart")[-2:], ["Terminated", "Not Restarting"])
    node.purge("early")


def test_a_stop_during_prestart_skips_the_main_task():
    alloc = start("halfway", ALL)
    case.until(lambda: len(order(node, alloc)) == 2, 60, "prestart tasks to begin")
    wait_state(alloc, "side", "running")
    wait_state(alloc, "prestart", "running")
    begun = order(node, alloc)
    node.do("DELETE", "/v1/job/halfway")
    wait_order(node, alloc, begun + ["prestart is told", "side is told", "poststop begins"])
    let_go(node, alloc, "poststop")
    found = wait_status(alloc, "complete")
    case.equal(events(found, "main"), ["Received", "Killing"])
    node.purge("halfway")


def test_a_task_whose_prestart_task_restarts_waits_for_it():
    alloc = start("again", [task("main"), task("prestart", "prestart")],
                  RestartPolicy={"Attempts": 3, "Interval": 300 * S, "Delay": 10**7, "Mode": "fail"})
    wait_order(node, alloc, ["prestart begins"])
    let_go(node, alloc, "prestart", 1)
    wait_order(node, alloc, ["prestart begins", "prestart ends", "prestart begins"])
    let_go(node, alloc, "prestart")
    wait_order(node, alloc, ["prestart begins", "prestart ends"] * 2 + ["main begins"])
    let_go(node, alloc, "main", 1)
    wait_order(node, alloc, ["prestart begins", "prestart ends"] * 2 + ["main begins", "main ends", "main begins"])
    wait_state(alloc, "main", "running")
    states = get(alloc)["TaskStates"]
    case.equal([states[n]["Restarts"] for n in ("prestart", "main")], [1, 1], "restarts")
    node.purge("again")


def test_a_task_keeps_running_for_its_shutdown_delay():
    alloc = start("slow", [task("main", ShutdownDelay=S)])
    wait_order(node, alloc, ["main begins"])
    wait_state(alloc, "main", "running")
    node.do("DELETE", "/v1/job/slow")
    found = wait_status(alloc, "complete")
    case.equal(events(found, "main")[-4:], ["Killing", "Waiting for shutdown delay", "Terminated", "Killed"])
    made = {e["Type"]: e for e in found["TaskStates"]["main"]["Events"]}
    case.equal(made["Waiting for shutdown delay"]["DisplayMessage"],
               "Waiting for shutdown_delay of 1s before killing the task.")
    case.equal(made["Terminated"]["Time"] - made["Killing"]["Time"] >= S - CLOCKS, True, "whether it kept running for the delay")
    node.purge("slow")


def test_a_task_that_ends_during_its_shutdown_delay_is_not_killed():
    alloc = start("soon", [task("main", ShutdownDelay=1000 * S)])
    wait_order(node, alloc, ["main begins"])
    wait_state(alloc, "main", "running")
    node.do("DELETE", "/v1/job/soon")
    case.until(lambda: "Waiting for shutdown delay" in events(get(alloc), "main"), 60, "the delay to begin")
    case.equal(get(alloc)["TaskStates"]["main"]["State"], "running", "state of the task during the delay")
    let_go(node, alloc, "main", 1)
    found = wait_status(alloc, "complete")
    case.equal(events(found, "main")[-4:], ["Killing", "Waiting for shutdown delay", "Terminated", "Killed"])
    node.purge("soon")


def test_a_stop_with_no_shutdown_delay_skips_the_delays():
    tasks = [task("main", ShutdownDelay=1000 * S)]
    alloc = start("hurry", tasks, ShutdownDelay=1000 * S)
    wait_state(alloc, "main", "running")
    node.do("DELETE", "/v1/job/hurry?no_shutdown_delay=true")
    found = wait_status(alloc, "complete")
    case.equal(events(found, "main")[-4:], ["Killing", "Skipping shutdown delay", "Terminated", "Killed"])
    node.purge("hurry")
    # A stop while a delay has begun already: first that of the group, during which no task is signalled, then that of the task.
    alloc = start("hurry", tasks)
    wait_state(alloc, "main", "running")
    node.do("DELETE", "/v1/job/hurry")
    case.until(lambda: "Waiting for shutdown delay" in events(get(alloc), "main"), 60, "the delay to begin")
    node.do("PUT", "/v1/allocation/%s/stop?no_shutdown_delay=true" % alloc["ID"])
    found = wait_status(alloc, "complete")
    case.equal(events(found, "main")[-4:], ["Killing", "Waiting for shutdown delay", "Terminated", "Killed"])
    node.purge("hurry")
    alloc = start("hurry", tasks, ShutdownDelay=1000 * S)
    wait_state(alloc, "main", "running")
    node.do("DELETE", "/v1/job/hurry")
    case.until(lambda: node.allocs("hurry")[0]["DesiredStatus"] == "stop", 60, "the stop to be recorded")
    case.equal("Killing" in events(get(alloc), "main"), False, "tasks signalled during the group's delay")
    node.do("PUT", "/v1/allocation/%s/stop?no_shutdown_delay=true" % alloc["ID"])
    wait_status(alloc, "complete")
    node.purge("hurry")


def test_a_group_keeps_running_for_its_shutdown_delay():
    alloc = start("group", [task("main")], ShutdownDelay=S)
    wait_state(alloc, "main", "running")
    wanted = time.time_ns()
    node.do("DELETE", "/v1/job/group")
    found = wait_status(alloc, "complete")
    killing = next(e for e in found["TaskStates"]["main"]["Events"] if e["Type"] == "Killing")
    case.equal(killing["Time"] - wanted >= S - CLOCKS, True, "whether it was signalled after the delay")
    node.purge("group")


def test_a_shutdown_delay_continues_when_the_supervisor_is_killed():
    alloc = start("crash", [task("main", ShutdownDelay=2 * S), task("poststop", "poststop")], ShutdownDelay=2 * S)
    wait_order(node, alloc, ["main begins"])
    wait_state(alloc, "main", "running")
    node.do("DELETE", "/v1/job/crash")
    node.replace_supervisor()
    case.until(lambda: "Waiting for shutdown delay" in events(get(alloc), "main"), 60, "the second delay")
    node.replace_supervisor()
    wait_order(node, alloc, ["main begins", "main is told", "poststop begins"])
    node.replace_supervisor()
    let_go(node, alloc, "poststop")
    found = wait_status(alloc, "complete")
    case.equal(events(found, "main")[-4:], ["Killing", "Waiting for shutdown delay", "Terminated", "Killed"])
    case.equal(events(found, "main").count("Killing"), 1)
    case.equal(events(found, "poststop"), ["Received", "Task Setup", "Started", "Terminated"])
    node.purge("crash")


def test_an_endless_shutdown_delay_can_be_skipped():
    """The largest delay of 64 bits: its end exceeds the range of time stamps."""
    delay = {"ShutdownDelay": 2**63 - 1}
    for tasks, group, said in (([task("main")], delay, "It is stopping: it keeps running during the shutdown_delay of its group."),
                               ([task("main", **delay)], {}, "It is stopping: it keeps running during its shutdown_delay.")):
        alloc = start("ever", tasks, **group)
        wait_order(node, alloc, ["main begins"])
        wait_state(alloc, "main", "running")
        node.do("DELETE", "/v1/job/ever")
        why = "/v1/client/allocation/%s/why" % alloc["ID"]
        case.until(lambda: said in [c["Text"] for c in node.ask(why)["Causes"]], 60, said)
        node.replace_supervisor()
        case.until(lambda: said in [c["Text"] for c in node.ask(why)["Causes"]], 60, said + " after a restart")
        node.do("PUT", "/v1/allocation/%s/stop?no_shutdown_delay=true" % alloc["ID"])
        wait_status(alloc, "complete")
        case.equal(order(node, alloc), ["main begins", "main is told"])
        node.purge("ever")


def test_stages_continue_when_the_supervisor_is_killed():
    alloc = start("stages", ALL)
    case.until(lambda: len(order(node, alloc)) == 2, 60, "prestart tasks to begin")
    begun = order(node, alloc)
    node.replace_supervisor()
    let_go(node, alloc, "prestart")
    wait_order(node, alloc, begun + ["prestart ends", "main begins", "poststart begins"], any_of=LATER)
    node.replace_supervisor()
    let_go(node, alloc, "poststart")
    wait_state(alloc, "poststart", "dead")
    node.do("DELETE", "/v1/job/stages")
    node.replace_supervisor()
    wait_order(node, alloc, begun + ["prestart ends", "main begins", "poststart begins", "poststart ends", "main is told",
                                     "side is told", "poststop begins"], any_of=LATER)
    let_go(node, alloc, "poststop")
    wait_status(alloc, "complete")
    node.purge("stages")


def test_a_sticky_disk_is_given_to_the_next_allocation():
    for sticky in (True, False):
        disk = {"Sticky": sticky, "SizeMB": 100}
        alloc = start("disk", [task("main")], EphemeralDisk=disk)
        wait_order(node, alloc, ["main begins"])
        wait_state(alloc, "main", "running")
        with open("%s/alloc/%s/main/local/own" % (node.data, alloc["ID"]), "w", encoding="ascii") as f:
            f.write("kept")
        node.register(stages.job("disk", [task("main", Env={"NEW": "1"})], EphemeralDisk=disk))
        case.until(lambda: len(node.allocs("disk")) == 2, 60, "the replacement")
        successor = node.allocs("disk")[1]
        wait_state(successor, "main", "running")
        before = ["main begins", "main is told"] if sticky else []
        wait_order(node, successor, before + ["main begins"])
        case.equal(os.path.exists("%s/alloc/%s/main/local/own" % (node.data, successor["ID"])), sticky, "a file in local")
        node.purge("disk")


def test_an_allocation_that_exceeds_its_disk_fails():
    good = start("thrifty", [task("main", ShutdownDelay=1000 * S)], EphemeralDisk={"SizeMB": 150})
    alloc = start("greedy", [task("main", ShutdownDelay=1000 * S), task("after", "poststop")],
                  EphemeralDisk={"SizeMB": 100}, ShutdownDelay=1000 * S)
    for made, name in ((good, "main"), (alloc, "main")):
        wait_order(node, made, ["main begins"])
        wait_state(made, name, "running")
        with open("%s/alloc/%s/main/local/big" % (node.data, made["ID"]), "wb") as f:
            os.posix_fallocate(f.fileno(), 0, 110 << 20)
    # A shutdown_delay of the task or its group that has begun is cut short, too.
    late = [start("late", [task("main", ShutdownDelay=1000 * S)], EphemeralDisk={"SizeMB": 100}),
            start("later", [task("main")], EphemeralDisk={"SizeMB": 100}, ShutdownDelay=1000 * S)]
    for made, name in zip(late, ("late", "later")):
        wait_order(node, made, ["main begins"])
        wait_state(made, "main", "running")
        node.do("DELETE", "/v1/job/" + name)
    case.until(lambda: "Waiting for shutdown delay" in events(get(late[0]), "main"), 60, "the delay to begin")
    for made in late:
        with open("%s/alloc/%s/main/local/big" % (node.data, made["ID"]), "wb") as f:
            os.posix_fallocate(f.fileno(), 0, 110 << 20)
    # Disk usage is checked every 30 s.
    wait_order(node, alloc, ["main begins", "main is told", "after begins"], seconds=120)
    for made in late:
        wait_order(node, made, ["main begins", "main is told"], seconds=120)
    let_go(node, alloc, "after")
    wait_state(alloc, "after", "dead")
    found = wait_status(alloc, "failed")
    case.equal(events(found, "main")[-5:], ["Disk Resources Exceeded", "Killing", "Skipping shutdown delay", "Terminated",
                                            "Killed"])
    event = next(e for e in found["TaskStates"]["main"]["Events"] if e["Type"] == "Disk Resources Exceeded")
    case.contains(event["DisplayMessage"], "its ephemeral_disk has 100 MiB")
    case.equal((event["Details"]["disk_limit"], found["TaskStates"]["main"]["Failed"]), (str(100 << 20), True))
    case.equal(get(good)["ClientStatus"], "running", "status of an alloc below its limit")
    node.do("DELETE", "/v1/job/thrifty?no_shutdown_delay=true")
    for name in ("thrifty", "greedy", "late", "later"):
        node.purge(name)


def test_no_leaks_are_left():
    case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


with api.Node() as node:
    case.run(globals())
