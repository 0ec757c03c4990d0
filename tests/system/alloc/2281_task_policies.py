#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What happens after a task ends or is stopped: restart policy, kill_signal and kill_timeout, and concurrent requests to stop and
restart."""
import subprocess

from lib import api, binary, case, crash, stages
from lib.cluster import processes_of
from lib.stages import events, let_go, order, task, wait_order

S = 10**9
# Ends only when let_go() releases it; records each kill signal.
DEAF = """
say() { echo "$1" >> $NOMAD_ALLOC_DIR/data/order; }
trap 'say told' INT
say begins
until [ -e $NOMAD_ALLOC_DIR/data/.go ]; do sleep 0.05; done
exit 5
"""


def policy(attempts, mode="fail", delay=S // 100, interval=3600 * S):
    return {"Attempts": attempts, "Interval": interval, "Delay": delay, "Mode": mode}


def start(name, tasks, kind="service", **group):
    node.register(stages.job(name, tasks, kind, **group))
    return case.until(lambda: node.allocs(name), 60, "an allocation")[0]


def get(alloc):
    return node.ask("/v1/allocation/" + alloc["ID"])


def task_events(alloc, name="t"):
    return get(alloc)["TaskStates"][name]["Events"] or []


def wait_status(alloc, status):
    case.until(lambda: get(alloc)["ClientStatus"] == status, 60, "the allocation to be " + status)
    return get(alloc)


def wait_state(alloc, name, state, restarts=0):
    def so():
        found = get(alloc)["TaskStates"][name]
        return (found["State"], found["Restarts"]) == (state, restarts)
    case.until(so, 60, "%s to be %s" % (name, state))


def drover(*words):
    return subprocess.run([binary("drover"), *words, "-address", "unix://" + node.socket_path], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=case.LEAST_S, check=False)


def restart(alloc, **body):
    return "PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], body


def test_a_service_restarts_after_success_and_a_batch_job_does_not():
    alloc = start("again", [task("main")], RestartPolicy=policy(1))
    wait_order(node, alloc, ["main begins"])
    let_go(node, alloc, "main")
    wait_order(node, alloc, ["main begins", "main ends", "main begins"])
    let_go(node, alloc, "main")
    found = wait_status(alloc, "failed")
    case.equal(events(found, "main"), ["Received", "Task Setup", "Started", "Terminated", "Restarting", "Started", "Terminated",
                                       "Not Restarting"])
    node.purge("again")
    for kind in ("batch", "sysbatch"):
        alloc = start(kind, [task("main")], kind, RestartPolicy=policy(1))
        wait_order(node, alloc, ["main begins"])
        let_go(node, alloc, "main", 1)
        wait_order(node, alloc, ["main begins", "main ends", "main begins"])
        let_go(node, alloc, "main")
        found = wait_status(alloc, "complete")
        case.equal(events(found, "main"), ["Received", "Task Setup", "Started", "Terminated", "Restarting", "Started", "Terminated"])
        node.purge(kind)


def test_a_task_with_its_own_restart_policy():
    """Fields that the task's restart block leaves out come from that of the group."""
    tasks = [task("own", RestartPolicy={"Attempts": 1}), task("groups")]
    alloc = start("own", tasks, RestartPolicy=policy(3))
    wait_order(node, alloc, ["own begins", "groups begins"], any_of={"own begins", "groups begins"})
    for n in (1, 2):
        let_go(node, alloc, "groups", 1)
        wait_state(alloc, "groups", "running", n)
    let_go(node, alloc, "own", 1)
    wait_state(alloc, "own", "running", 1)
    let_go(node, alloc, "own", 1)
    found = wait_status(alloc, "failed")
    last = found["TaskStates"]["own"]["Events"][-1]
    case.equal((last["Type"], last["DisplayMessage"]),
               ("Not Restarting", 'Exceeded allowed attempts 1 in interval 1h0m0s and mode is "fail"'))
    case.equal((found["TaskStates"]["own"]["Restarts"], found["TaskStates"]["own"]["Failed"]), (1, True))
    case.equal(found["TaskStates"]["groups"]["Failed"], False)
    node.purge("own")


def test_a_restart_policy_that_changes():
    """The change is made in place, for the running task."""
    for n, attempts in enumerate((0, 2)):
        made = stages.job("changed", [task("main")], RestartPolicy=policy(attempts))
        node.wait_evaluation(node.register(made)["EvalID"])
        case.equal([a["JobVersion"] for a in node.allocs("changed")], [n])
        alloc = node.wait_running("changed")[0]
    wait_order(node, alloc, ["main begins"])
    let_go(node, alloc, "main", 1)
    wait_order(node, alloc, ["main begins", "main ends", "main begins"])
    node.purge("changed")


def test_a_poststop_task_has_a_restart_policy_too():
    alloc = start("after", [task("main"), task("after", "poststop")], RestartPolicy=policy(1))
    wait_order(node, alloc, ["main begins"])
    node.do("DELETE", "/v1/job/after")
    wait_order(node, alloc, ["main begins", "main is told", "after begins"])
    let_go(node, alloc, "after", 3)
    wait_order(node, alloc, ["main begins", "main is told", "after begins", "after ends", "after begins"])
    let_go(node, alloc, "after", 3)
    found = wait_status(alloc, "failed")
    case.equal(events(found, "after")[2:], ["Started", "Terminated", "Restarting", "Started", "Terminated", "Not Restarting"])
    node.purge("after")


def test_delays_of_a_restart_policy():
    """A random part of at most a quarter is added to a delay. After the attempts of an interval the task waits for the rest of the
    interval."""
    delay, interval = S // 50, 10 * S
    node.register(api.job("delays", "/bin/sh", ["-c", "exit 3"], group={"RestartPolicy": policy(1, "delay", delay, interval)}))
    alloc = case.until(lambda: node.allocs("delays"), 60, "an allocation")[0]

    def waited():
        found = task_events(alloc)
        at = [i for i, e in enumerate(found) if e["RestartReason"].startswith("Exceeded allowed attempts")]
        return at and [e["Type"] for e in found[at[0]:at[0] + 2]] == ["Restarting", "Started"] and found
    found = case.until(waited, 120, "the task to begin again after the rest of an interval")
    within = [e for e in found if e["RestartReason"] == "Restart within policy"]
    case.equal([delay <= e["StartDelay"] <= delay * 5 // 4 for e in within], [True] * len(within), "delays between 1 and 1.25 times the configured one")
    case.equal([e["DisplayMessage"] for e in within if "Task restarting in " != e["DisplayMessage"][:19]], [])
    at = next(i for i, e in enumerate(found) if e["RestartReason"].startswith("Exceeded"))
    case.equal(found[at]["DisplayMessage"][:63], "Exceeded allowed attempts, applying a delay - Task restarting i")
    case.equal(0 < found[at]["StartDelay"] <= interval, True, "the rest of the interval")
    # The clock of events may be adjusted slightly meanwhile.
    case.equal(found[at + 1]["Time"] - found[at]["Time"] > found[at]["StartDelay"] * 9 // 10, True, "whether the restart happened after the delay")
    node.purge("delays")


def test_kill_signal_and_kill_timeout():
    term = "trap 'exit 7' TERM; trap 'exit 8' INT; echo on; while :; do sleep 0.05; done"
    deaf = "trap '' INT; echo on; while :; do sleep 0.05; done"
    for name, script, more, end in (("told", term, {"KillSignal": "SIGTERM", "KillTimeout": 1000 * S}, (7, 0)),
                                    ("usual", term, {"KillTimeout": 1000 * S}, (8, 0)),
                                    ("killed", deaf, {"KillTimeout": S}, (137, 9))):
        alloc = start(name, [api.task("t", "/bin/sh", ["-c", script], **more)])
        wait_state(alloc, "t", "running")
        node.wait_said(alloc, b"on\n")
        node.do("DELETE", "/v1/job/" + name)
        wait_status(alloc, "complete")
        found = task_events(alloc)
        case.equal([e["Type"] for e in found[-3:]], ["Killing", "Terminated", "Killed"], name)
        case.equal((found[-2]["ExitCode"], found[-2]["Signal"]), end, name)
        case.equal(found[-3]["DisplayMessage"],
                   "Sent interrupt. Waiting %s before force killing" % ("1s" if name == "killed" else "30s"), name)
        node.purge(name)


def test_a_restart_skips_the_shutdown_delay_of_the_task():
    """This is the task's shutdown_delay. That of the group applies to restarts of several tasks: 2600."""
    one = {"TaskName": "main"}
    for group_delay, bodies in ((0, ({}, one, {"AllTasks": True})), (1000 * S, (one, one))):
        alloc = start("hurry", [task("main", ShutdownDelay=1000 * S)], ShutdownDelay=group_delay)
        wait_state(alloc, "main", "running")
        wait_order(node, alloc, ["main begins"])
        for n, body in enumerate(bodies, 1):
            node.do(*restart(alloc, **body))
            wait_state(alloc, "main", "running", n)
            wait_order(node, alloc, ["main begins"] + ["main is told", "main begins"] * n)
        node.do("DELETE", "/v1/job/hurry?no_shutdown_delay=true")
        node.purge("hurry")


def test_a_stop_during_a_restart():
    alloc = start("first-restart", [api.task("t", "/bin/sh", ["-c", DEAF], KillTimeout=1000 * S)], RestartPolicy=policy(9))
    wait_state(alloc, "t", "running")
    wait_order(node, alloc, ["begins"])
    node.do(*restart(alloc))
    wait_order(node, alloc, ["begins", "told"])
    node.refused(500, "Task not running", *restart(alloc, TaskName="t"))
    node.do("DELETE", "/v1/job/first-restart")
    case.until(lambda: task_events(alloc)[-1]["Type"] == "Killing", 60, "the stop")
    let_go(node, alloc, "")
    found = wait_status(alloc, "complete")
    case.equal(events(found, "t")[3:], ["Restart Signaled", "Killing", "Terminated", "Killed"])
    case.equal(order(node, alloc).count("begins"), 1)
    node.purge("first-restart")


def test_a_restart_during_a_stop():
    alloc = start("first-stop", [api.task("t", "/bin/sh", ["-c", DEAF], KillTimeout=1000 * S)], RestartPolicy=policy(9))
    wait_state(alloc, "t", "running")
    wait_order(node, alloc, ["begins"])
    node.do("DELETE", "/v1/job/first-stop")
    wait_order(node, alloc, ["begins", "told"])
    for body in ({}, {"TaskName": "t"}, {"AllTasks": True}):
        node.refused(500, "restart of an alloc that should not run", *restart(alloc, **body))
    let_go(node, alloc, "")
    found = wait_status(alloc, "complete")
    case.equal(events(found, "t")[3:], ["Killing", "Terminated", "Killed"])
    case.equal(order(node, alloc), ["begins", "told"])
    node.purge("first-stop")


def test_a_stop_during_the_delay_of_a_restart():
    alloc = start("waits", [task("main"), task("after", "poststop")], RestartPolicy=policy(1, delay=3600 * S))
    wait_order(node, alloc, ["main begins"])
    let_go(node, alloc, "main", 1)
    wait_state(alloc, "main", "pending", 1)
    node.do("DELETE", "/v1/job/waits")
    wait_order(node, alloc, ["main begins", "main ends", "after begins"])
    let_go(node, alloc, "after")
    found = wait_status(alloc, "complete")
    case.equal(events(found, "main")[3:], ["Terminated", "Restarting", "Killing"])
    node.purge("waits")


def test_a_restart_of_a_task_that_does_not_run_is_refused():
    alloc = start("over", [task("main"), task("early", "prestart"), task("last", "poststop")])
    wait_order(node, alloc, ["early begins"])
    for name in ("main", "last"):
        done = drover("alloc", "restart", "-task", name, alloc["ID"])
        case.equal((done.returncode, "Task not running" in done.stderr), (1, True), done.stderr)
    let_go(node, alloc, "early")
    wait_state(alloc, "early", "dead")
    wait_state(alloc, "main", "running")
    done = drover("alloc", "restart", "-task", "early", alloc["ID"])
    case.equal((done.returncode, "Task not running" in done.stderr), (1, True), done.stderr)
    case.equal({n: s["Restarts"] for n, s in get(alloc)["TaskStates"].items()}, {"main": 0, "early": 0, "last": 0})
    node.do("DELETE", "/v1/job/over")
    case.until(lambda: order(node, alloc)[-1] == "last begins", 60, "the poststop task")
    done = drover("alloc", "restart", "-task", "last", alloc["ID"])
    case.equal((done.returncode, "restart of an alloc that should not run" in done.stderr), (1, True), done.stderr)
    let_go(node, alloc, "last")
    node.purge("over")


def test_a_refused_restart_does_not_prevent_the_next_start():
    """The refused restart had closed the gates of the stages, and they were not opened again."""
    alloc = start("next", [task("main")], RestartPolicy=policy(1, delay=5 * S))
    wait_order(node, alloc, ["main begins"])
    let_go(node, alloc, "main", 1)
    case.until(lambda: get(alloc)["TaskStates"]["main"]["Restarts"] == 1, 60, "the restart to be due")
    done = drover("alloc", "restart", "-all-tasks", alloc["ID"])
    # If the delay of 5 s was over already, the restart is not refused.
    case.equal(done.returncode == 0 or "Task not running" in done.stderr, True, done.stderr)
    case.until(lambda: order(node, alloc)[2:3] == ["main begins"], 60, "its next start")
    node.purge("next")


def test_ended_tasks_are_restarted_also_after_a_restart_of_the_agent():
    alloc = start("kept", [task("main"), task("early", "prestart"), task("late", "poststart")])
    wait_order(node, alloc, ["early begins"])
    let_go(node, alloc, "early")
    later = {"main begins", "late begins"}
    wait_order(node, alloc, ["early begins", "early ends", "main begins", "late begins"], any_of=later)
    wait_state(alloc, "main", "running")
    let_go(node, alloc, "late")
    wait_state(alloc, "late", "dead")
    node.replace_supervisor()
    node.do(*restart(alloc, AllTasks=True))
    wait_order(node, alloc, ["main is told", "early begins"], skip=5)
    wait_state(alloc, "early", "running", 1)
    case.equal(get(alloc)["TaskStates"]["early"]["FinishedAt"], None, "FinishedAt of a task that runs again")
    let_go(node, alloc, "early")
    wait_order(node, alloc, ["main is told", "early begins", "early ends", "main begins", "late begins"], skip=5, any_of=later)
    node.purge("kept")


def test_a_restart_of_the_poststop_task_does_not_repeat_a_completed_batch_task():
    alloc = start("done", [task("main"), task("after", "poststop")], "batch")
    wait_order(node, alloc, ["main begins"])
    let_go(node, alloc, "main")
    wait_order(node, alloc, ["main begins", "main ends", "after begins"])
    wait_state(alloc, "after", "running")
    node.do(*restart(alloc, AllTasks=True))
    wait_order(node, alloc, ["main begins", "main ends", "after begins", "after is told", "after begins"])
    wait_state(alloc, "after", "running", 1)
    let_go(node, alloc, "after")
    found = wait_status(alloc, "complete")
    case.equal(events(found, "main"), ["Received", "Task Setup", "Started", "Terminated"])
    case.equal(order(node, alloc).count("main begins"), 1)
    node.purge("done")


def test_background_processes_of_a_task_end_with_it():
    """The background processes of a task are killed when the task ends by itself."""
    script = "for i in 1 2 3; do setsid sh -c 'sleep 1000 & exec sleep 1000' & done; echo on; exit 0"
    for driver in ("raw_exec", "exec"):
        alloc = start(driver, [api.task("t", "/bin/sh", ["-c", script], driver)], "batch")
        found = wait_status(alloc, "complete")
        case.equal(events(found, "t")[3:], ["Terminated"])
        case.until(lambda a=alloc: not processes_of(a["ID"]), 60, "its processes to end")
        run = alloc["ID"].replace("-", "")
        case.until(lambda r=run: r not in {x and x["alloc"].hex() for x in crash.records(node).values()}, 60, "its run to be reaped")
        node.purge(driver)


def test_no_leaks_are_left():
    case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


with api.Node() as node:
    case.run(globals())
