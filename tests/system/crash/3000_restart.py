#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent, or a part of it, ends and starts again: every task goes on, and what ended meanwhile is known."""
import os
import signal
import sqlite3
import struct
import subprocess

from lib import agent, api, case, crash, exe, service
from lib.fake_api import run_command

HELPERS = ("exec-helper", "mount-helper", "file-helper", "heartbeat")


def followed(node):
    return node.log().count("recovered ")


def events(node, alloc_id, *kinds):
    """[(type, exit code, signal)] of its task's events, those of these types."""
    found = node.ask("/v1/allocation/" + alloc_id)["TaskStates"]["t"]["Events"]
    return [(e["Type"], e["ExitCode"], e["Signal"]) for e in found if not kinds or e["Type"] in kinds]


def is_alive(pid):
    try:
        with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def wait_ended(pids):
    try:
        case.until(lambda: not any(is_alive(pid) for pid in pids), 15, "the end of %s" % pids)
    except AssertionError as e:
        raise AssertionError("%s: %s" % (e, [agent.arguments(pid) for pid in pids if is_alive(pid)])) from None


def kill_agent(node):
    """Everything but the executors, at once."""
    pids = list(node.processes().values())
    os.kill(node.pid, signal.SIGSTOP)  # or it would start again what is killed first
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    node.process.kill()
    node.wait()
    wait_ended(pids)


def same_runs(node, before, what):
    now = crash.records(node)
    for run, record in before.items():
        case.equal((run in now, is_alive(record["executor_pid"]), is_alive(record["task_pid"])), (True, True, True), what)
        case.equal(now[run]["task_pid"], record["task_pid"], what)
    case.equal(sorted(now), sorted(before), what + ": runs")


def start_mixed(node):
    node.register(crash.job("raw", 3))
    node.register(crash.job("own", 2, "exec"))
    node.wait_running("raw", 3)
    node.wait_running("own", 2)
    return case.until(lambda: (r := crash.records(node)) and all(x and x["state"] == exe.EXE_RUNNING for x in r.values()) and
                      len(r) == 5 and r, 10, "5 records")


def still_well(node, before, what):
    node.wait_running("raw", 3)
    node.wait_running("own", 2)
    same_runs(node, before, what)
    for a in node.allocs("raw") + node.allocs("own"):
        case.equal(events(node, a["ID"], "Started", "Terminated", "Restarting"), [("Started", 0, 0)], what)
    case.equal(crash.conflicts(node), [], what)


def stop_all(node):
    for name in ("raw", "own"):
        node.purge(name)
    crash.wait_nothing_left(node)


def test_each_process_is_killed_and_every_task_runs_on():
    with api.Node() as node:
        before = start_mixed(node)
        for name in HELPERS:
            killed = node.kill(name)
            node.wait_process(name, other_than=killed)
            still_well(node, before, name)
        for times in (1, 2, 3):
            killed = node.kill("supervisor")
            node.wait_process("supervisor", other_than=killed)
            case.until(lambda: followed(node) == times, 10, "its runs to be followed")
            still_well(node, before, "supervisor")
        for times in (4, 5):
            pids = list(node.processes().values())
            node.process.kill()
            node.wait()
            wait_ended(pids)
            same_runs(node, before, "no launcher")
            node.start()
            node.wait_ready()
            case.until(lambda: followed(node) == times, 10, "its runs to be followed")
            still_well(node, before, "launcher")
        kill_agent(node)
        node.start()
        node.wait_ready()
        case.until(lambda: followed(node) == 6, 10, "its runs to be followed")
        still_well(node, before, "all of them")
        # They are not only shown, they are held: they stop when they are told.
        stop_all(node)
        case.equal([r["task_pid"] for r in before.values() if is_alive(r["task_pid"])], [], "tasks after the stop")


ENDINGS = {"zero": ("exit 0", (0, 0)), "three": ("exit 3", (3, 0)), "kill": ("kill -9 $$", (137, 9)),
           "term": ("kill -15 $$", (143, 15))}


def ends_meanwhile(node, driver, begin, end):
    for name, (how, _) in ENDINGS.items():
        wait = 'while [ ! -e "$NOMAD_ALLOC_DIR/data/go" ]; do sleep 0.02; done; '
        node.register(api.job(name, "/bin/sh", ["-c", wait + how], driver=driver))
    allocs = {name: node.wait_running(name)[0]["ID"] for name in ENDINGS}
    begin()
    for alloc in allocs.values():
        with open("%s/alloc/%s/alloc/data/go" % (node.data, alloc), "w", encoding="ascii"):
            pass
    case.until(lambda: not crash.executors(node), 10, "the end of all executors")
    case.equal(len(crash.task_cgroups(node)) > 0, True, "their cgroups are there until they are reaped")
    end()
    for name, alloc in allocs.items():
        node.wait_allocs(name, [(0, "run", "failed")])
        case.equal(events(node, alloc, "Started", "Terminated"),
                   [("Started", 0, 0), ("Terminated", *ENDINGS[name][1])], name)
        node.purge(name)
    crash.wait_nothing_left(node)


def test_an_exit_code_is_not_lost_when_nobody_was_there():
    with api.Node() as node:
        def start():
            node.start()
            node.wait_ready()
        for driver in ("raw_exec", "exec"):
            ends_meanwhile(node, driver, lambda: kill_agent(node), start)


def test_an_exit_code_is_not_lost_when_the_supervisor_was_away():
    with api.Node() as node:
        def begin():
            os.kill(node.pid, signal.SIGSTOP)
            node.kill("supervisor")

        def end():
            os.kill(node.pid, signal.SIGCONT)
            node.wait_ready()
        ends_meanwhile(node, "raw_exec", begin, end)


def test_a_stop_goes_on_where_it_was():
    # The task takes a second to end; the one who told it is gone by then.
    slow = "trap 'sleep 1; exit 7' INT; echo ready; while :; do sleep 0.05; done"
    with api.Node() as node:
        node.register(api.job("slow", "/bin/sh", ["-c", slow], KillTimeout=20 * 10**9))
        alloc = node.wait_running("slow")[0]["ID"]
        node.wait_said({"ID": alloc}, b"ready")
        node.do("DELETE", "/v1/job/slow")
        case.until(lambda: events(node, alloc, "Killing"), 5, "the stop")
        kill_agent(node)
        node.start()
        node.wait_ready()
        node.wait_allocs("slow", [(0, "stop", "complete")])
        case.equal(events(node, alloc), [("Received", 0, 0), ("Task Setup", 0, 0), ("Started", 0, 0), ("Killing", 0, 0),
                                         ("Terminated", 7, 0), ("Killed", 0, 0)])
        node.do("DELETE", "/v1/job/slow?purge=true")
        crash.wait_nothing_left(node)


def test_a_task_whose_executor_is_killed_is_killed_and_restarted():
    with api.Node() as node:
        before = start_mixed(node)
        for run, record in before.items():
            os.kill(record["executor_pid"], signal.SIGKILL)
        case.until(lambda: not set(before) & set(crash.records(node)), 10, "the lost runs to be reaped")
        wait_ended([r["task_pid"] for r in before.values()])
        for name, count in (("raw", 3), ("own", 2)):
            for a in node.wait_running(name, count):
                case.until(lambda: len(events(node, a["ID"], "Started")) == 2, 10, "the second start")
                said = [e["DisplayMessage"] for e in node.ask("/v1/allocation/" + a["ID"])["TaskStates"]["t"]["Events"]
                        if e["Type"] == "Terminated"]
                case.equal(len(said), 1)
                case.contains(said[0], "its executor was lost")
        case.equal(crash.conflicts(node), [], "tasks that ran twice")
        stop_all(node)


def test_a_torn_record_is_no_exit_code():
    with api.Node() as node:
        before = start_mixed(node)
        kill_agent(node)
        for run, record in before.items():
            os.kill(record["executor_pid"], signal.SIGKILL)
            with open("%s/run/%s.rec" % (node.data, run), "r+b") as f:
                f.seek(100)
                f.write(b"torn")
        node.start()
        node.wait_ready()
        case.until(lambda: not set(before) & set(crash.records(node)), 10, "the lost runs to be reaped")
        wait_ended([r["task_pid"] for r in before.values()])
        for name, count in (("raw", 3), ("own", 2)):
            for a in node.wait_running(name, count):
                said = [e["DisplayMessage"] for e in node.ask("/v1/allocation/" + a["ID"])["TaskStates"]["t"]["Events"]
                        if e["Type"] == "Terminated"]
                case.contains(said[0], "left no record")
        case.equal(crash.conflicts(node), [], "tasks that ran twice")
        stop_all(node)


def test_a_pid_that_somebody_else_has_by_now():
    """The executors are gone, and what was the pid of a task is that of a process of nobody's: it is neither followed nor ended."""
    stranger = subprocess.Popen(["/bin/sleep", "1000"])
    try:
        with api.Node() as node:
            before = start_mixed(node)
            kill_agent(node)
            for run, record in before.items():
                os.kill(record["executor_pid"], signal.SIGKILL)
                data = exe.RECORD.pack(**dict(record, boot_id=record["boot_id"].encode(), task_pid=stranger.pid))[:-8]
                with open("%s/run/%s.rec" % (node.data, run), "r+b") as f:
                    f.write(data + struct.pack("<Q", exe.fnv1a(data)))
            node.start()
            node.wait_ready()
            case.until(lambda: not set(before) & set(crash.records(node)), 10, "the lost runs to be reaped")
            wait_ended([r["task_pid"] for r in before.values()])
            for name, count in (("raw", 3), ("own", 2)):
                for a in node.wait_running(name, count):
                    case.until(lambda: len(events(node, a["ID"], "Started")) == 2, 10, "the second start")
                    said = [e["DisplayMessage"] for e in node.ask("/v1/allocation/" + a["ID"])["TaskStates"]["t"]["Events"]
                            if e["Type"] == "Terminated"]
                    case.contains(said[0], "its executor was lost")
            case.equal(crash.conflicts(node), [], "tasks that ran twice")
            stop_all(node)
            case.equal(stranger.poll(), None, "the process that has the pid now")
    finally:
        stranger.kill()
        stranger.wait()


OTHER_BOOT = "01234567-89ab-cdef-0123-456789abcdef"


def test_another_boot_is_told_apart():
    with api.Node() as node:
        before = start_mixed(node)
        kill_agent(node)
        db = sqlite3.connect(node.data + "/state/state.db")
        db.execute("UPDATE run SET boot_id = ?", (OTHER_BOOT,))
        db.commit()
        db.close()
        for run, record in before.items():
            record = dict(record, boot_id=OTHER_BOOT.encode())
            data = exe.RECORD.pack(**record)[:-8]
            with open("%s/run/%s.rec" % (node.data, run), "r+b") as f:
                f.write(data + struct.pack("<Q", exe.fnv1a(data)))
        node.start()
        node.wait_ready()
        # Its processes are there in truth, so it must end them rather than take them for its own.
        case.until(lambda: not set(before) & set(crash.records(node)), 10, "the runs of the other boot to be reaped")
        wait_ended([r["task_pid"] for r in before.values()])
        for name, count in (("raw", 3), ("own", 2)):
            for a in node.wait_running(name, count):
                case.until(lambda: len(events(node, a["ID"], "Started")) == 2, 10, "the second start")
                said = [e["DisplayMessage"] for e in node.ask("/v1/allocation/" + a["ID"])["TaskStates"]["t"]["Events"]
                        if e["Type"] == "Terminated"]
                case.contains(said[0], "the machine was rebooted")
                case.equal(len(events(node, a["ID"], "Restarting")), 1, "by the policy")
        case.equal(crash.conflicts(node), [], "tasks that ran twice")
        stop_all(node)


def test_a_service_that_is_ended_leaves_its_tasks_and_a_drain_does_not():
    with service.Users(), service.Node('plugin "raw_exec" { config { enabled = true } }\n') as node:
        before = start_mixed(node)
        for signo in (signal.SIGTERM, signal.SIGINT):
            case.equal(node.stop(signo), 0, "exit code")
            same_runs(node, before, "after the end of the service")
            node.start()
            node.wait_ready()
            still_well(node, before, "after its start")
        drained = run_command(["node", "drain", "-yes", "-self"], env={"DROVER_ADDR": "unix://" + node.socket_path})
        case.equal(drained.code, 0, drained.out + drained.err)
        case.equal([r["task_pid"] for r in before.values() if is_alive(r["task_pid"])], [], "tasks after the drain")
        # An alloc is over when its tasks are; what they ran in is removed after that.
        case.until(lambda: not (crash.task_cgroups(node) or crash.executors(node) or os.listdir(node.data + "/run")), 10,
                   "nothing of their runs to be left")
        case.equal(node.stop(), 0, "exit code")
        node.start()
        node.wait_ready()
        case.equal(node.ask("/v1/nodes")[0]["SchedulingEligibility"], "ineligible", "the drain outlives the agent")
        stop_all(node)


case.run(globals())
