#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The agent, or a part of it, is killed and started again: every task keeps running, and tasks that ended meanwhile have their results."""
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
    """Returns [(type, exit code, signal)] of the task's events of these types."""
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
    """Kills all processes except the executors at the same time."""
    pids = list(node.processes().values())
    os.kill(node.pid, signal.SIGSTOP)  # so that it does not restart the first killed processes
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


def wait_started_again(node, why):
    """Waits until each task of start_mixed() runs for the second time; the first ended for this reason. Returns the allocs' ids."""
    allocs = [a["ID"] for name, count in (("raw", 3), ("own", 2)) for a in node.wait_running(name, count)]
    for alloc in allocs:
        case.until(lambda: len(events(node, alloc, "Started")) == 2, 10, "the task to start again")
        said = [e["DisplayMessage"] for e in node.ask("/v1/allocation/" + alloc)["TaskStates"]["t"]["Events"]
                if e["Type"] == "Terminated"]
        case.contains(said[0], why)
    return allocs


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


def test_each_process_is_killed_and_every_task_keeps_running():
    with api.Node() as node:
        before = start_mixed(node)
        for name in HELPERS:
            killed = node.kill(name)
            node.wait_process(name, other_than=killed)
            still_well(node, before, name)
        for times in (1, 2, 3):
            killed = node.kill("supervisor")
            node.wait_process("supervisor", other_than=killed)
            case.until(lambda: followed(node) == times, 10, "its runs to be recovered")
            still_well(node, before, "supervisor")
        for times in (4, 5):
            pids = list(node.processes().values())
            node.process.kill()
            node.wait()
            wait_ended(pids)
            same_runs(node, before, "no launcher")
            node.start()
            node.wait_ready()
            case.until(lambda: followed(node) == times, 10, "its runs to be recovered")
            still_well(node, before, "launcher")
        kill_agent(node)
        node.start()
        node.wait_ready()
        case.until(lambda: followed(node) == 6, 10, "its runs to be recovered")
        still_well(node, before, "all of them")
        # The tasks are not only listed, the agent controls them: they stop on request.
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
    case.equal(len(crash.task_cgroups(node)) > 0, True, "whether their cgroups exist until they are reaped")
    end()
    for name, alloc in allocs.items():
        node.wait_allocs(name, [(0, "run", "failed")])
        case.equal(events(node, alloc, "Started", "Terminated"),
                   [("Started", 0, 0), ("Terminated", *ENDINGS[name][1])], name)
        node.purge(name)
    crash.wait_nothing_left(node)


def test_exit_codes_are_kept_while_no_agent_runs():
    with api.Node() as node:
        def start():
            node.start()
            node.wait_ready()
        for driver in ("raw_exec", "exec"):
            ends_meanwhile(node, driver, lambda: kill_agent(node), start)


def test_exit_codes_are_kept_while_no_supervisor_runs():
    with api.Node() as node:
        def begin():
            os.kill(node.pid, signal.SIGSTOP)
            node.kill("supervisor")

        def end():
            os.kill(node.pid, signal.SIGCONT)
            node.wait_ready()
        ends_meanwhile(node, "raw_exec", begin, end)


def test_a_stop_continues_when_the_supervisor_is_killed():
    # The task takes a second to end; the supervisor that stopped it is killed before.
    slow = "trap 'sleep 1; exit 7' INT; echo ready; while :; do sleep 0.05; done"
    with api.Node() as node:
        node.register(api.job("slow", "/bin/sh", ["-c", slow], KillTimeout=20 * 10**9))
        alloc = node.wait_running("slow")[0]["ID"]
        node.wait_said({"ID": alloc}, b"ready")
        node.do("DELETE", "/v1/job/slow")
        case.until(lambda: events(node, alloc, "Killing"), 5, "the stop to begin")
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
                case.until(lambda: len(events(node, a["ID"], "Started")) == 2, 10, "the task to start again")
                said = [e["DisplayMessage"] for e in node.ask("/v1/allocation/" + a["ID"])["TaskStates"]["t"]["Events"]
                        if e["Type"] == "Terminated"]
                case.equal(len(said), 1)
                case.contains(said[0], "its executor was lost")
        case.equal(crash.conflicts(node), [], "tasks that ran twice")
        stop_all(node)


def test_an_incomplete_record_is_not_used():
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


def test_a_process_with_the_pid_of_an_ended_task_is_left_alone():
    """The executors have ended, and another process has the pid of a task: the agent neither follows nor kills it."""
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
            wait_started_again(node, "its executor was lost")
            case.equal(crash.conflicts(node), [], "tasks that ran twice")
            stop_all(node)
            case.equal(stranger.poll(), None, "whether the process that has the pid now still runs")
    finally:
        stranger.kill()
        stranger.wait()


OTHER_BOOT = "01234567-89ab-cdef-0123-456789abcdef"


def test_runs_of_another_boot_are_not_recovered():
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
        # In this simulation the processes still exist: the agent must kill them and not recover them.
        case.until(lambda: not set(before) & set(crash.records(node)), 10, "the runs of the other boot to be reaped")
        wait_ended([r["task_pid"] for r in before.values()])
        for alloc in wait_started_again(node, "the machine was rebooted"):
            case.equal(len(events(node, alloc, "Restarting")), 1, "restarts by the restart policy")
        case.equal(crash.conflicts(node), [], "tasks that ran twice")
        stop_all(node)


def test_the_end_of_a_service_leaves_its_tasks_and_a_drain_stops_them():
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
        # An alloc has ended when its tasks have; their cgroups are removed after that.
        case.until(lambda: not (crash.task_cgroups(node) or crash.executors(node) or os.listdir(node.data + "/run")), 10,
                   "nothing of their runs to be left")
        case.equal(node.stop(), 0, "exit code")
        node.start()
        node.wait_ready()
        case.equal(node.ask("/v1/nodes")[0]["SchedulingEligibility"], "ineligible", "whether the node is still draining after a restart")
        stop_all(node)


case.run(globals())
