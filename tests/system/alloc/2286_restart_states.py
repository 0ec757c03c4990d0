#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A restart of all tasks of an allocation, whatever their states: all start again in order, and none waits forever."""
import contextlib
import os
import signal
import time
import uuid

from lib import api, binary, case, crash, exe, stages
from lib.stages import events, let_go, order, task, wait_order

S = 10**9
AGAIN = {"RestartPolicy": {"Attempts": 1000, "Interval": 10**12, "Delay": S // 100, "Mode": "fail"}}


def start(name, tasks, **group):
    node.register(stages.job(name, tasks, **group))
    return case.until(lambda: node.allocs(name), 60, "an allocation")[0]


def get(alloc):
    return node.ask("/v1/allocation/" + alloc["ID"])


def restart_all(alloc):
    node.do("PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], {"AllTasks": True})


def halt(pid):
    """Stops a process with SIGSTOP until the end of the block, or until it is killed."""
    def go_on():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    os.kill(pid, signal.SIGSTOP)
    stack = contextlib.ExitStack()
    stack.callback(go_on)
    return stack


def begins_to_start(alloc, name):
    case.until(lambda: "Task Setup" in events(get(alloc), name), 60, "the start of %s to begin" % name)


def begun(name, main):
    """Starts an allocation whose main task begins when `early` is released."""
    side = task("side", "prestart", True, KillTimeout=30 * S)  # so that it can be stopped with SIGSTOP for that long
    alloc = start(name, [main, side, task("early", "prestart")], **AGAIN)
    case.until(lambda: sorted(order(node, alloc)) == ["early begins", "side begins"], 60, "prestart tasks to begin")
    return alloc


def begins_anew(alloc):
    case.until(lambda: [order(node, alloc).count(name + " begins") for name in ("early", "side")] == [2, 2], 60,
               "prestart tasks to begin again")
    let_go(node, alloc, "early")
    case.until(lambda: get(alloc)["TaskStates"]["main"]["State"] == "running", 60, "the main task to run")


def the_one_that_runs(alloc):
    """Waits until exactly one task of the allocation runs. Returns its pid."""
    def find():
        pids = [r["task_pid"] for r in crash.records(node).values() if r and str(uuid.UUID(bytes=r["alloc"])) == alloc["ID"] and
                r["state"] == exe.EXE_RUNNING]
        return len(pids) == 1 and pids[0]
    return case.until(find, 60, "exactly one task to run")


def test_a_restart_while_the_directories_of_a_plugin_are_made():
    """The plugin's task started although its gate was closed, which kept all gates closed forever."""
    plugin = api.task("main", binary("csi-local"), ["-root", case.directory()], CSIPluginConfig={
        "ID": "late", "Type": "monolith", "MountDir": "/csi", "HealthTimeout": 300 * S})
    alloc = begun("prepares", plugin)
    prepared = "%s/csi/sock/%s" % (node.data, alloc["ID"])
    with halt(node.processes()["mount-helper"]) as mount_helper:
        let_go(node, alloc, "early")
        begins_to_start(alloc, "main")
        with halt(the_one_that_runs(alloc)):
            restart_all(alloc)
            mount_helper.close()
            case.until(lambda: os.path.exists(prepared), 60, "the plugin's directory")
            time.sleep(0.5)
            case.equal(events(get(alloc), "main"), ["Received", "Task Setup"], "events of the plugin's task while another task has not ended")
    begins_anew(alloc)
    case.until(lambda: node.request("GET", "/v1/plugin/csi/late").status == 200, 60, "the plugin to answer")
    node.purge("prepares")


def test_a_restart_while_a_task_starts():
    alloc = begun("starts", task("main"))
    with halt(node.processes()["exec-helper"]):
        let_go(node, alloc, "early")
        begins_to_start(alloc, "main")
        restart_all(alloc)
    begins_anew(alloc)
    last = lambda: "".join(order(node, alloc)).rpartition("early ends")[2]  # noqa: E731
    case.until(lambda: "main begins" in last(), 60, "the main task to begin after the prestart tasks")
    node.purge("starts")


def test_a_restart_while_prestart_and_poststart_tasks_run():
    alloc = start("stages", [task("main"), task("late", "poststart"), task("early", "prestart")], **AGAIN)
    wait_order(node, alloc, ["early begins"])
    restart_all(alloc)
    wait_order(node, alloc, ["early is told", "early begins"], skip=1)
    let_go(node, alloc, "early")
    wait_order(node, alloc, ["early ends", "late begins", "main begins"], skip=3, any_of={"late begins", "main begins"})
    restart_all(alloc)
    told = {"late is told", "main is told"}
    wait_order(node, alloc, [*told, "early begins"], skip=6, any_of=told)
    let_go(node, alloc, "early")
    wait_order(node, alloc, ["early ends", "late begins", "main begins"], skip=9, any_of={"late begins", "main begins"})
    let_go(node, alloc, "late")
    case.until(lambda: get(alloc)["TaskStates"]["late"]["State"] == "dead", 60, "the poststart task to end")
    case.equal([get(alloc)["TaskStates"][name]["Restarts"] for name in ("early", "late", "main")], [2, 1, 1])
    node.purge("stages")


def test_a_restart_while_a_task_waits_for_its_restart():
    """The task keeps waiting for its delay, and starts with its stage or later."""
    slow = {**AGAIN["RestartPolicy"], "Attempts": 10, "Delay": 2 * S}
    alloc = start("waits", [task("main"), task("other", RestartPolicy=slow), task("early", "prestart")], **AGAIN)
    both = {"main begins", "other begins"}
    wait_order(node, alloc, ["early begins"])
    let_go(node, alloc, "early")
    wait_order(node, alloc, ["early ends", *both], skip=1, any_of=both)
    let_go(node, alloc, "other", 1)
    case.until(lambda: "Restarting" in events(get(alloc), "other"), 60, "the task to wait for its restart")
    restart_all(alloc)
    case.until(lambda: "early begins" in order(node, alloc)[1:], 60, "the prestart task to begin again")
    let_go(node, alloc, "early")
    case.until(lambda: order(node, alloc).count("main begins") == 2 and order(node, alloc).count("other begins") >= 2, 60, "both tasks to begin again")
    node.purge("waits")


def test_a_restart_while_a_poststop_task_runs():
    """The other tasks have ended: only the poststop task starts again, and the allocation ends after it."""
    alloc = start("ends", [task("main"), task("after", "poststop")], kind="batch")
    wait_order(node, alloc, ["main begins"])
    let_go(node, alloc, "main")
    wait_order(node, alloc, ["main ends", "after begins"], skip=1)
    restart_all(alloc)
    wait_order(node, alloc, ["after is told", "after begins"], skip=3)
    let_go(node, alloc, "after")
    node.wait_allocs("ends", [(0, "run", "complete")])
    node.purge("ends")


def test_no_leaks_are_left():
    case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


with api.Node() as node:
    case.run(globals())
