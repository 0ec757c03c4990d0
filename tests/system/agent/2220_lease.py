#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 23
"""A lease that ends in an agent with the embedded server: the alloc is lost, with the reason, and is replaced when the node beats again."""
import os
import signal

from lib import api, case, crash, exe, stages

S = 10**9
LIMIT_S = 10  # much longer than a beat takes, even if it waits for a processor or a disk


def processes_of(alloc):
    """Returns the pids of that allocation's tasks."""
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


def check_kill_timeout(alloc):
    """Checks in its record that the task was not given the kill_timeout of 25 s that its first version had."""
    def found():
        return [r for r in crash.records(node).values() if r and r["alloc"].hex() == alloc["ID"].replace("-", "") and
                r["state"] == exe.EXE_ENDED]
    (record,) = case.until(found, 10, "the record of an end")
    stopped = record["lease_last_ok_ns"] + LIMIT_S * S + record["lease_late_ns"]
    case.equal(record["ended_boot_ns"] - stopped < 24 * S, True, "whether it ended soon after the stop (after %d ns)" % (record["ended_boot_ns"] - stopped))


def test_a_stopped_supervisor_loses_only_allocs_with_a_lease():
    """With both names of the setting."""
    limits = {"leased": {"StopAfterClientDisconnect": LIMIT_S * S}, "newer": {"Disconnect": {"StopOnClientAfter": LIMIT_S * S}}}
    for name, group in limits.items():
        node.register(api.job(name, group=group))
    node.register(api.job("free"))
    old, free = {name: node.wait_running(name)[0] for name in limits}, node.wait_running("free")[0]
    pid = node.processes()["supervisor"]
    os.kill(pid, signal.SIGSTOP)
    try:
        for name, alloc in old.items():
            case.until(lambda a=alloc: len(processes_of(a)) == 1, 10, "one process of " + name)  # its execve() may not be complete yet
        for name, alloc in old.items():
            case.until(lambda a=alloc: not processes_of(a), 10, name + " to be stopped")
    finally:
        os.kill(pid, signal.SIGCONT)
    for name, alloc in old.items():
        first, second = node.wait_allocs(name, [(0, "stop", "lost"), (0, "run", "running")])
        case.equal((first["ID"], first["NextAllocation"]), (alloc["ID"], second["ID"]))
        case.equal((ended(first), ended(second)), (True, False), "the event")
        case.equal(node.evaluation(second["EvalID"])["TriggeredBy"], "alloc-failure")
    case.equal(node.wait_running("free")[0]["ID"], free["ID"], "the alloc without a lease")
    for name in (*limits, "free"):
        node.purge(name)


def lost(alloc):
    """Returns the states of the alloc, and whether each has a time."""
    return [(c["Field"], c["Value"], c["Time"] > "2000") for c in alloc["AllocStates"] or []]


def test_an_alloc_ended_by_its_lease_is_lost_and_replaced_without_delay():
    """Also if the alloc was to be stopped. It happens once, and not to an alloc that had failed before."""
    hour = {"Attempts": 1, "Interval": 24 * 3600 * S, "Delay": 3600 * S, "DelayFunction": "constant", "Unlimited": False}
    slow = "until [ -e $NOMAD_ALLOC_DIR/data/.go ]; do sleep 0.05; done; exit 1"
    tasks = {"lost": [api.task(n, "/bin/sleep", ["1000"]) for n in "ab"], "stopped": [api.task("a", "/bin/sleep", ["1000"])],
             "failed": [api.task("fails", "/bin/sh", ["-c", slow]), api.task("waits", "/bin/sleep", ["1000"], ShutdownDelay=1000 * S)]}
    delays = {"stopped": 1000 * S}
    for name, of in tasks.items():
        node.register(stages.job(name, of, ReschedulePolicy=hour, StopAfterClientDisconnect=LIMIT_S * S,
                                 ShutdownDelay=delays.get(name, 0)))
    allocs = {name: node.wait_running(name)[0] for name in tasks}
    for name, alloc in allocs.items():
        case.until(lambda n=name, a=alloc: len(node.ask("/v1/allocation/" + a["ID"])["TaskStates"]) == len(tasks[n]) and all(
            s["State"] == "running" for s in node.ask("/v1/allocation/" + a["ID"])["TaskStates"].values()), 60, name + " to run")
    stages.let_go(node, allocs["failed"], "")
    node.do("DELETE", "/v1/job/stopped")
    node.wait_allocs("failed", [(0, "run", "failed")], 60)
    node.wait_allocs("stopped", [(0, "stop", "running")], 60)
    pid = node.processes()["supervisor"]
    os.kill(pid, signal.SIGSTOP)
    try:
        for name, alloc in allocs.items():
            case.until(lambda a=alloc: not processes_of(a), 60, name + " to be stopped")
    finally:
        os.kill(pid, signal.SIGCONT)
    for again in (False, True):
        first, second = node.wait_allocs("lost", [(0, "stop", "lost"), (0, "run", "running")], 60)
        case.equal((lost(node.ask("/v1/allocation/" + first["ID"])), first["DesiredDescription"]),
                   ([(0, "lost", True)], "alloc is lost since its lease has ended"))
        case.equal(lost(node.ask("/v1/allocation/" + second["ID"])), [])
        stopped, = node.wait_allocs("stopped", [(0, "stop", "lost")], 60)
        case.equal(lost(node.ask("/v1/allocation/" + stopped["ID"])), [(0, "lost", True)])
        case.equal([a["ID"] for a in node.allocs("failed")], [allocs["failed"]["ID"]], "only the failed alloc, since its reschedule policy delays a replacement")
        failed = node.ask("/v1/allocation/" + allocs["failed"]["ID"])
        case.equal((failed["ClientStatus"], lost(failed)), ("failed", []), "status and states of the alloc that had failed before")
        case.equal(node.ask("/v1/job/lost/summary")["Summary"]["g"]["Lost"], 1)
        found = node.ask("/v1/job/lost/evaluations")
        case.equal([(e["Status"], e["WaitUntil"]) for e in found if e["Status"] != "complete" or e["WaitUntil"]], [],
                   "evaluations that are blocked or wait")
        if not again:
            node.wait_process("supervisor", other_than=node.kill("supervisor"))
            node.wait_ready()
    for name in tasks:
        node.purge(name)


def test_a_lease_stop_uses_the_current_kill_signal_and_kill_timeout():
    """kill_signal and kill_timeout are changed in place. The executor must know the new values, because it stops the task alone."""
    lease = {"StopAfterClientDisconnect": LIMIT_S * S}
    says = "trap 'echo INT >> {0}' INT; trap 'echo USR1 >> {0}; exit 7' USR1; echo ready; while :; do sleep 0.05; done".format(
        "$NOMAD_ALLOC_DIR/data/got")
    deaf = "trap '' INT; echo ready; while :; do sleep 0.05; done"
    kinds = {"signal": (says, {"KillTimeout": 25 * S}, {"KillTimeout": 25 * S, "KillSignal": "SIGUSR1"}),
             "timeout": (deaf, {"KillTimeout": 25 * S}, {"KillTimeout": S})}
    allocs = {}
    for name, (script, first, then) in kinds.items():
        node.register(api.job(name, "/bin/sh", ["-c", script], group=lease, **first))
        allocs[name] = node.wait_running(name)[0]
        node.wait_said(allocs[name], b"ready")
        node.wait_evaluation(node.register(api.job(name, "/bin/sh", ["-c", script], group=lease, **then))["EvalID"])
        case.equal([(a["ID"], a["JobVersion"]) for a in node.allocs(name)], [(allocs[name]["ID"], 1)], "changed in place")
    # A restarted supervisor does not send them again; the executor keeps them.
    node.kill("supervisor")
    node.wait_ready()
    for name, alloc in allocs.items():
        case.equal(len(processes_of(alloc)) > 0, True, name + ": whether the task runs")
    pid = node.processes()["supervisor"]
    os.kill(pid, signal.SIGSTOP)
    try:
        for name, alloc in allocs.items():
            case.until(lambda: not processes_of(alloc), 12, name + ": the task to be stopped")
            check_kill_timeout(alloc)
    finally:
        os.kill(pid, signal.SIGCONT)
    with open("%s/alloc/%s/alloc/data/got" % (node.data, allocs["signal"]["ID"]), encoding="ascii") as f:
        case.equal(f.read(), "USR1\n", "signals that the task got")
    for name, signo in (("signal", 0), ("timeout", 9)):
        old = node.wait_allocs(name, [(0, "stop", "lost"), (0, "run", "running")])[0]
        case.equal(ended(old), True, "the event of " + name)
        end = next(e for e in old["TaskStates"]["t"]["Events"] if e["Type"] == "Terminated")
        case.equal((end["ExitCode"], end["Signal"]), (7, 0) if name == "signal" else (137, signo), name)
        node.purge(name)


def test_a_limit_of_zero_means_no_lease():
    node.register(api.job("zero", group={"StopAfterClientDisconnect": 0}))
    node.wait_running("zero")
    node.purge("zero")


with api.Node() as node:
    case.run(globals())
