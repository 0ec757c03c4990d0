#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests of an operator for the tasks of an allocation: restarts of one, of the running ones, of all; signals."""
import os
import signal
import subprocess
import time
import uuid

from lib import api, binary, case, crash, exe, stages
from lib.stages import events, let_go, order, task, wait_order


def start(name, tasks, **group):
    node.register(stages.job(name, tasks, **group))
    return case.until(lambda: node.allocs(name), 60, "an allocation")[0]


def get(alloc):
    return node.ask("/v1/allocation/" + alloc["ID"])


def wait_state(alloc, name, state, restarts=None, seconds=60):
    def so():
        found = get(alloc)["TaskStates"][name]
        return found["State"] == state and restarts in (None, found["Restarts"])
    case.until(so, seconds, "%s to be %s" % (name, state))


def drover(*words):
    return subprocess.run([binary("drover"), *words, "-address", "unix://" + node.socket_path], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=case.LEAST_S, check=False)


def path(alloc, verb):
    return "/v1/client/allocation/%s/%s" % (alloc["ID"], verb)


LATER = {"main begins", "late begins"}
RESTART = ["Restart Signaled", "Terminated", "Restarting", "Started"]


def test_one_task_or_all_running_tasks_are_restarted():
    alloc = start("some", [task("a"), task("b"), task("prestart", "prestart")])
    wait_order(node, alloc, ["prestart begins"])
    let_go(node, alloc, "prestart")
    wait_state(alloc, "a", "running")
    wait_state(alloc, "b", "running")
    case.until(lambda: len(order(node, alloc)) == 4, 60, "both to begin")
    done = drover("alloc", "restart", alloc["ID"][:8], "b")
    case.equal((done.returncode, done.stderr), (0, ""))
    wait_state(alloc, "b", "running", 1)
    case.until(lambda: order(node, alloc)[4:] == ["b is told", "b begins"], 60, "task b to begin again")
    found = get(alloc)
    case.equal(events(found, "b")[3:], RESTART)
    case.equal(next(e for e in found["TaskStates"]["b"]["Events"] if e["Type"] == "Restart Signaled")["DisplayMessage"],
               "User requested task to restart")
    case.equal(found["TaskStates"]["a"]["Restarts"], 0)
    # The policy allows no restarts (attempts = 0), but requested restarts do not count.
    case.equal(drover("alloc", "restart", alloc["ID"]).returncode, 0)
    for name, times in (("a", 1), ("b", 2)):
        wait_state(alloc, name, "running", times)
    case.equal(get(alloc)["TaskStates"]["prestart"]["Restarts"], 0, "starts of the ended task")
    node.purge("some")


def test_all_tasks_are_restarted_in_the_order_of_their_lifecycle():
    alloc = start("all", [task("after", "poststop"), task("late", "poststart"), task("main"), task("side", "prestart", True),
                          task("early", "prestart")])
    case.until(lambda: len(order(node, alloc)) == 2, 60, "prestart tasks to begin")
    let_go(node, alloc, "early")
    wait_order(node, alloc, ["early ends", "main begins", "late begins"], skip=2, any_of=LATER)
    let_go(node, alloc, "late")
    wait_state(alloc, "late", "dead")
    done = drover("alloc", "restart", "-all-tasks", alloc["ID"])
    case.equal((done.returncode, done.stderr), (0, ""))
    # The two running tasks are signalled; ended tasks wait for their end, then all start again.
    case.until(lambda: len(order(node, alloc)) == 10, 60, "prestart tasks to begin again")
    case.equal(sorted(order(node, alloc)[6:8]), ["main is told", "side is told"])
    case.equal(sorted(order(node, alloc)[8:]), ["early begins", "side begins"])
    case.equal(events(get(alloc), "main")[-3:], ["Restart Signaled", "Terminated", "Restarting"])
    let_go(node, alloc, "early")
    wait_order(node, alloc, ["early ends", "main begins", "late begins"], skip=10, any_of=LATER)
    let_go(node, alloc, "late")
    wait_state(alloc, "late", "dead", 1)
    states = get(alloc)["TaskStates"]
    case.equal({n: states[n]["Restarts"] for n in states}, {"after": 0, "late": 1, "main": 1, "side": 1, "early": 1})
    case.equal(states["early"]["Failed"], False)
    node.do("DELETE", "/v1/job/all")
    case.until(lambda: order(node, alloc)[-1] == "after begins", 60, "the poststop task")
    # The other tasks do not start again.
    node.refused(500, "restart of an alloc that should not run", "PUT", path(alloc, "restart"), {"AllTasks": True})
    let_go(node, alloc, "after")
    node.purge("all")


def test_a_restart_continues_when_the_supervisor_is_killed():
    alloc = start("kept", [task("main"), task("early", "prestart")])
    wait_order(node, alloc, ["early begins"])
    let_go(node, alloc, "early")
    wait_state(alloc, "main", "running")
    wait_order(node, alloc, ["early begins", "early ends", "main begins"])
    node.do("PUT", path(alloc, "restart"), {"AllTasks": True})
    node.replace_supervisor()
    case.until(lambda: "early begins" in order(node, alloc)[3:], 60, "the prestart task to begin again")
    let_go(node, alloc, "early")
    wait_state(alloc, "main", "running", 1)
    case.until(lambda: order(node, alloc)[3:] == ["main is told", "early begins", "early ends", "main begins"], 60, "all tasks to have started again")
    node.purge("kept")


def test_no_task_starts_before_all_have_ended():
    """Neither by the supervisor that got the request, nor by the next. The main task is stopped with SIGSTOP, so that it does not end."""
    alloc = start("held", [task("main", KillTimeout=30 * 10**9), task("early", "prestart")])
    wait_order(node, alloc, ["early begins"])
    let_go(node, alloc, "early")
    wait_order(node, alloc, ["early begins", "early ends", "main begins"])
    wait_state(alloc, "main", "running")
    (pid,) = [r["task_pid"] for r in crash.records(node).values() if str(uuid.UUID(bytes=r["alloc"])) == alloc["ID"] and
              r["state"] == exe.EXE_RUNNING]
    os.kill(pid, signal.SIGSTOP)
    try:
        node.do("PUT", path(alloc, "restart"), {"AllTasks": True})
        node.replace_supervisor()
        node.wait_log("recovered 1 running task")
        time.sleep(0.5)
        case.equal(order(node, alloc)[3:], [], "tasks that began before the main task has ended")
    finally:
        os.kill(pid, signal.SIGCONT)
    case.until(lambda: "early begins" in order(node, alloc)[3:], 60, "the prestart task to begin again")
    let_go(node, alloc, "early")
    wait_order(node, alloc, ["main is told", "early begins", "early ends", "main begins"], skip=3)
    node.purge("held")


SIGNALS = """
for s in HUP USR1 USR2; do trap "echo $s >> $NOMAD_ALLOC_DIR/data/order" $s; done
echo ready >> $NOMAD_ALLOC_DIR/data/order
while :; do sleep 0.05; done
"""


def test_signals_are_sent_to_tasks():
    alloc = start("signals", [api.task("t", "/bin/sh", ["-c", SIGNALS]), task("early", "prestart")])
    wait_order(node, alloc, ["early begins"])
    node.refused(500, "Task not running", "PUT", path(alloc, "signal"), {"Task": "t", "Signal": "SIGHUP"})
    let_go(node, alloc, "early")
    wait_state(alloc, "t", "running")
    wait_order(node, alloc, ["early begins", "early ends", "ready"])
    # To all tasks: an ended task does not prevent the signal to the other.
    case.equal(drover("alloc", "signal", "-s", "HUP", alloc["ID"]).returncode, 0)
    wait_order(node, alloc, ["early begins", "early ends", "ready", "HUP"])
    case.equal(drover("alloc", "signal", "-s", "SIGUSR1", "-task", "t", alloc["ID"]).returncode, 0)
    wait_order(node, alloc, ["early begins", "early ends", "ready", "HUP", "USR1"])
    case.equal(events(get(alloc), "t")[3:], ["Signaling", "Signaling"])
    # Without the name of a signal it is SIGKILL, as with `nomad alloc signal`.
    case.equal(drover("alloc", "signal", alloc["ID"]).returncode, 0)
    wait_state(alloc, "t", "dead")
    case.equal(next(e for e in get(alloc)["TaskStates"]["t"]["Events"] if e["Type"] == "Terminated")["Signal"], 9)
    node.purge("signals")


def test_more_than_ten_events_are_kept():
    alloc = start("long", [task("main")])
    wait_state(alloc, "main", "running")
    for n in range(1, 6):
        node.do("PUT", path(alloc, "restart"), {"TaskName": "main"})
        wait_state(alloc, "main", "running", n)
    wanted = ["Received", "Task Setup", "Started"] + RESTART * 5
    found = node.ask("/v1/client/allocation/%s/events" % alloc["ID"])["main"]
    case.equal([e["Type"] for e in found], wanted)
    case.equal(sorted(e["Time"] for e in found), [e["Time"] for e in found], "events, oldest first")
    case.equal(events(get(alloc), "main"), wanted[-10:], "the last ten events, as Nomad shows them")
    node.replace_supervisor()
    case.equal([e["Type"] for e in node.ask("/v1/client/allocation/%s/events" % alloc["ID"])["main"]], wanted)
    case.equal(drover("alloc", "status", "-verbose", alloc["ID"]).stdout.count("Restart Signaled"), 5)
    case.equal(drover("alloc", "status", alloc["ID"]).stdout.count("Restart Signaled"), 2)
    node.refused(404, "alloc not found", "GET", "/v1/client/allocation/x/events")
    node.purge("long")


def test_invalid_requests_are_refused():
    alloc = start("bad", [task("main")])
    wait_state(alloc, "main", "running")
    for status, part, verb, body in (
            (500, "task name cannot be set when restarting all tasks", "restart", {"TaskName": "main", "AllTasks": True}),
            (404, "Could not find task runner for task: x", "restart", {"TaskName": "x"}),
            (400, "AllTasks", "restart", {"AllTasks": "yes"}), (400, "TaskName", "restart", {"TaskName": 3}),
            (500, 'unknown signal "SIGX"', "signal", {"Signal": "SIGX"}), (400, "the strings Task and Signal", "signal", {"Signal": 9}),
            (404, "Task not found", "signal", {"Signal": "HUP", "Task": "x"}), (400, "no body", "signal", None)):
        node.refused(status, part, "PUT", path(alloc, verb), body)
    node.refused(404, "Unknown allocation", "PUT", "/v1/client/allocation/x/restart", {})
    done = drover("alloc", "restart", "-task", "a", alloc["ID"], "main")
    case.equal(done.returncode, 1)
    case.contains(done.stderr, "two different tasks are named")
    # An empty argument, as from an unset variable of a script, must not mean SIGKILL.
    done = drover("alloc", "signal", "-s", "", alloc["ID"])
    case.equal((done.returncode, "-s needs the name of a signal" in done.stderr), (1, True), done.stderr)
    case.equal(get(alloc)["TaskStates"]["main"]["State"], "running")
    case.equal(get(alloc)["TaskStates"]["main"]["Restarts"], 0)
    # Without a body: the running tasks, as with an empty body.
    node.do("PUT", path(alloc, "restart"))
    wait_state(alloc, "main", "running", 1)
    node.do("DELETE", "/v1/job/bad")
    node.wait_allocs("bad", [(0, "stop", "complete")])
    node.refused(500, "restart of an alloc that should not run", "PUT", path(alloc, "restart"), {})
    node.refused(500, "Task not running", "PUT", path(alloc, "signal"), {"Signal": "HUP"})
    node.purge("bad")


def test_no_leaks_are_left():
    case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


with api.Node() as node:
    case.run(globals())
