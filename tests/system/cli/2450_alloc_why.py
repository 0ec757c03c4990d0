#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""drover alloc why: the explanation for each way in which a task or an allocation ends, restarts or waits."""
import json
import os
import signal
import subprocess

from lib import agent, api, case, crash, helper
from lib.cluster import processes_of
from lib.fake_api import run_command


def drover(*words, code=0):
    r = run_command(words, env={"DROVER_ADDR": "unix://" + node.socket_path})
    case.equal(r.code, code, "drover %s: %s%s" % (" ".join(words), r.out, r.err))
    return r.out + r.err


def alloc_of(name, made, status):
    """Registers a job and returns its alloc when it has this status."""
    node.register(made)
    case.until(lambda: node.allocs(name)[-1]["ClientStatus"] == status, 20, "%s to be %s" % (name, status))
    return node.allocs(name)[-1]["ID"]


def why(alloc):
    found = node.ask("/v1/client/allocation/%s/why" % alloc)
    times = [c["Time"] for c in found["Causes"]]
    now = times.count(0)
    case.equal((times[:now], times[now:]), ([0] * now, sorted(times[now:], reverse=True)), "order: current causes, then the newest first")
    return found["Causes"]


def said(alloc, part, task="t"):
    """Returns the cause that contains this text. It may appear a moment after the status."""
    def look():
        return [c for c in why(alloc) if part in c["Text"] and c["Task"] == task]
    try:
        return case.until(look, 20, part)[0]
    except AssertionError as e:
        raise AssertionError("%s; it says %s" % (e, json.dumps(why(alloc), indent=1))) from None


def unsaid(alloc, *parts):
    for c in why(alloc):
        for part in parts:
            case.equal(part in c["Text"], False, "%r in %r" % (part, c["Text"]))


def test_the_exit_code_of_a_task():
    alloc = alloc_of("code", api.job("code", "/bin/sh", ["-c", "exit 3"]), "failed")
    said(alloc, "It ended by itself, with exit code 3.")
    said(alloc, "It is not restarted: Policy allows no restarts.")
    unsaid(alloc, "not known", "told to end")
    node.purge("code")


def test_restarts_of_more_than_ten_events():
    policy = {"RestartPolicy": {"Attempts": 5, "Interval": 3600 * 10**9, "Delay": 10**6, "Mode": "fail"}}
    alloc = alloc_of("again", api.job("again", "/bin/sh", ["-c", "exit 4"], group=policy), "failed")
    said(alloc, "Exceeded allowed attempts 5")
    texts = [c["Text"] for c in why(alloc)]
    case.equal(len([t for t in texts if "exit code 4" in t]), 6, "\n".join(texts))
    case.equal(len([t for t in texts if "its restart policy allows it" in t]), 5, "\n".join(texts))
    out = drover("alloc", "why", alloc)
    case.contains(out, "is failed, desired status run")
    case.contains(drover("alloc", "why", "-json", alloc), '"Causes"')
    node.purge("again")


def ended(alloc):
    """Returns the signal, the message and the sender in the event of the task's end."""
    ev = [e for e in node.ask("/v1/allocation/" + alloc)["TaskStates"]["t"]["Events"] if e["Type"] == "Terminated"][-1]
    return ev["Signal"], ev["Message"], ev["Details"].get("signal_sender")


def kill(alloc, signo):
    """Sends a signal to the task's first process from outside of drover. Its processes are found by their environment, which a process in
    the middle of execve() does not have."""
    os.kill(min(case.until(lambda: processes_of(alloc), 20, "the processes of the task")), signo)


def shoot(name, signo, driver="raw_exec", script="echo $$; exec sleep 1000"):
    """Runs a task, sends it a signal from outside of drover, and returns the alloc when it has ended."""
    alloc = alloc_of(name, api.job(name, "/bin/sh", ["-c", script], driver=driver), "running")
    node.wait_said({"ID": alloc}, b"\n")
    kill(alloc, signo)
    case.until(lambda: node.ask("/v1/allocation/" + alloc)["ClientStatus"] == "failed", 20, "the end of the alloc")
    return alloc


def test_a_signal_of_an_unknown_sender():
    for driver in ("raw_exec", "exec"):
        alloc = shoot("shot", signal.SIGKILL, driver)
        case.contains(said(alloc, "It ended by SIGKILL.")["Text"], "the sender is not known")
        case.equal(ended(alloc), (9, "SIGKILL, which this agent did not send; the kernel counted no OOM kill", "not drover"))
        unsaid(alloc, "told to end", "out of memory", "request")
        node.purge("shot")
        alloc = shoot("termed", signal.SIGTERM, driver)
        case.contains(said(alloc, "It ended by SIGTERM.")["Text"], "the sender is not known")
        case.equal(ended(alloc), (15, "SIGTERM, which this agent did not send", "not drover"))
        node.purge("termed")


def test_a_signal_that_the_task_sent_to_itself():
    alloc = alloc_of("err", api.job("err", "/bin/sh", ["-c", "kill -SEGV $$"]), "failed")
    said(alloc, "It ended by SIGSEGV, which drover did not send: probably a fault of the program.")
    case.equal(ended(alloc), (11, "", "not drover"))
    node.purge("err")


def test_a_task_killed_by_its_filter():
    if os.uname().machine != "x86_64":
        return
    # mov eax, 1; int 0x80: exit(2) as a 32-bit program calls it.
    code = "import ctypes, mmap\nm = mmap.mmap(-1, 4096, prot=7)\nm.write(b'\\xb8\\1\\0\\0\\0\\xcd\\x80')\n" \
           "ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()"
    if subprocess.run(["/usr/bin/python3", "-c", code], check=False, stderr=subprocess.DEVNULL).returncode < 0:
        return  # this kernel does not support 32-bit programs and kills them itself
    alloc = alloc_of("old", api.job("old", "/usr/bin/python3", ["-c", code], driver="exec"), "failed")
    said(alloc, "It ended by SIGSYS: killed by a system call filter; driver exec kills 32-bit programs.")
    case.equal((ended(alloc)[0], ended(alloc)[2]), (signal.SIGSYS, "not drover"))
    node.purge("old")


def test_a_signal_that_a_user_requested():
    for name in ("SIGUSR1", "SIGKILL"):
        alloc = alloc_of("sent", api.job("sent"), "running")
        drover("alloc", "signal", "-s", name, alloc)
        case.contains(said(alloc, "It ended by %s, which was sent on request of uid 0 " % name)["Text"], " before.")
        case.equal(ended(alloc), (getattr(signal, name), name + ", sent on request", "drover, on request"))
        unsaid(alloc, "not known")
        node.purge("sent")


def test_a_requested_signal_followed_by_another_signal():
    alloc = alloc_of("asleep", api.job("asleep"), "running")
    pid = min(case.until(lambda: processes_of(alloc), 20, "the processes of the task"))

    def sleeps():
        with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as f:
            return f.read().rpartition(") ")[2].startswith("T")

    drover("alloc", "signal", "-s", "SIGSTOP", alloc)
    case.until(sleeps, 60, "the process to be stopped")
    drover("alloc", "signal", "-s", "SIGTERM", alloc)
    drover("alloc", "signal", "-s", "SIGCONT", alloc)
    said(alloc, "It ended by SIGTERM, which was sent on request of uid 0 ")
    node.purge("asleep")


def test_a_requested_signal_that_was_handled_followed_by_a_foreign_one():
    """The requested signal is not the one that ended the task."""
    script = "trap 'echo got' HUP; echo on; while :; do sleep 0.05; done"
    alloc = alloc_of("two", api.job("two", "/bin/sh", ["-c", script]), "running")
    node.wait_said({"ID": alloc}, b"on\n")
    drover("alloc", "signal", "-s", "SIGHUP", alloc)
    node.wait_said({"ID": alloc}, b"got\n")
    kill(alloc, signal.SIGUSR2)
    said(alloc, "It ended by SIGUSR2. drover did not send that signal")
    case.equal(ended(alloc), (signal.SIGUSR2, "SIGUSR2, which this agent did not send", "not drover"))
    node.purge("two")


def test_a_foreign_kill_while_the_task_is_being_stopped():
    made = api.job("both", "/bin/sh", ["-c", "trap 'echo told' INT; echo on; while :; do sleep 0.05; done"], KillTimeout=600 * 10**9)
    alloc = alloc_of("both", made, "running")
    node.wait_said({"ID": alloc}, b"on\n")
    node.do("DELETE", "/v1/job/both")
    node.wait_said({"ID": alloc}, b"told\n")
    kill(alloc, signal.SIGKILL)
    said(alloc, "It ended by SIGKILL (which drover did not send) after it was told to stop.")
    case.equal(ended(alloc)[2], "not drover")
    node.purge("both")


EATER = "x = []\nwhile True:\n x.append(bytearray(1 << 20))\n"


def test_a_task_that_reached_its_memory_limit():
    alloc = alloc_of("eater", api.job("eater", "/usr/bin/python3", ["-c", EATER], Resources={"CPU": 20, "MemoryMB": 30}),
                     "failed")
    found = said(alloc, "The kernel OOM-killed a process in it")["Text"]
    case.contains(found, "(limit 30 MiB)")
    case.contains(found, "by SIGKILL")
    case.equal(ended(alloc), (9, "OOM Killed", "the kernel, out of memory"))
    unsaid(alloc, "not known")
    node.purge("eater")


def limit_of_all_tasks():
    """Returns the file with the memory limit of all tasks."""
    name = "drover-" + crash.instance(node)
    return next(path for path in ("/sys/fs/cgroup/memory/%s/runs/memory.limit_in_bytes" % name,
                                  "/sys/fs/cgroup/%s/tasks/memory.max" % name) if os.path.exists(path))


def test_a_task_killed_because_of_the_limit_of_a_parent_cgroup():
    """An OOM kill because of a parent cgroup, or of the machine, is not explained by the task's own limit, which was not reached."""
    limit = limit_of_all_tasks()
    with open(limit, encoding="ascii") as f:
        before = f.read().strip()
    with open(limit, "w", encoding="ascii") as f:
        f.write(str(60 << 20))
    try:
        alloc = alloc_of("crowded", api.job("crowded", "/usr/bin/python3", ["-c", EATER], Resources={"CPU": 20, "MemoryMB": 1000}),
                         "failed")
    finally:
        with open(limit, "w", encoding="ascii") as f:
            f.write(before)
    found = said(alloc, "The kernel OOM-killed a process in it")["Text"]
    case.contains(found, "because the machine or a parent cgroup was out of memory: its own limit of 1000 MiB was not reached. It ended by SIGKILL")
    case.equal(ended(alloc), (9, "OOM Killed: the machine or a parent cgroup was out of memory; its own limit was not reached",
                              "the kernel, out of memory"))
    node.purge("crowded")


def test_an_oom_kill_of_another_process_of_the_task():
    """The main process survives and ends by itself; under cgroup v2 it is killed too."""
    script = "/usr/bin/python3 -c '%s'; exit 7" % EATER
    alloc = alloc_of("parent", api.job("parent", "/bin/sh", ["-c", script], Resources={"CPU": 20, "MemoryMB": 30}), "failed")
    together = "memory" not in helper.cgroup_trees()
    case.contains(said(alloc, "The kernel OOM-killed a process in it")["Text"], "It ended by SIGKILL." if together else "It ended with exit code 7.")
    case.equal(ended(alloc), (9, "OOM Killed", "the kernel, out of memory") if together else
               (0, "the kernel OOM-killed another of its processes", None))
    node.purge("parent")


def test_a_stop_names_its_origin():
    alloc = alloc_of("stopped", api.job("stopped"), "running")
    drover("alloc", "stop", "-detach", alloc)
    said(alloc, "It was stopped: alloc was stopped by an operator", "")
    said(alloc, "It ended by SIGINT after it was told to stop.")
    case.equal(ended(alloc), (2, "", "drover, to stop it"))
    said(alloc, "replaces it.", "")
    unsaid(alloc, "not known")
    other = node.wait_running("stopped")[0]["ID"]
    node.do("DELETE", "/v1/job/stopped")
    said(other, "It was stopped: alloc not needed: its job was stopped.", "")
    node.purge("stopped")


def test_a_task_that_ignores_its_kill_signal():
    made = api.job("deaf", "/bin/sh", ["-c", "trap '' INT; echo deaf; while :; do sleep 0.1; done"], KillTimeout=10**8)
    alloc = alloc_of("deaf", made, "running")
    node.wait_said({"ID": alloc}, b"deaf")
    node.do("DELETE", "/v1/job/deaf")
    said(alloc, "It was killed, because it did not end within its kill_timeout")
    case.equal(ended(alloc), (9, "", "drover, to stop it"))
    node.purge("deaf")


def test_a_restart_that_a_user_requested():
    alloc = alloc_of("anew", api.job("anew"), "running")
    drover("alloc", "restart", alloc)
    said(alloc, "A restart was requested: User requested running tasks to restart.")
    said(alloc, "after it was told to stop.")
    unsaid(alloc, "not known")
    node.purge("anew")


def test_a_task_stopped_because_its_sibling_failed():
    made = api.job("pair", "/bin/sh", ["-c", "exit 1"])
    made["Job"]["TaskGroups"][0]["Tasks"].append(api.task("other", "/bin/sleep", ["1000"]))
    alloc = alloc_of("pair", made, "failed")
    said(alloc, 'Another task of its allocation failed: Task\'s sibling "t" failed.', "other")
    unsaid(alloc, "not known")
    node.purge("pair")


def test_a_task_that_cannot_start():
    alloc = alloc_of("none", api.job("none", "/no/such/program"), "failed")
    said(alloc, "It could not be started: ")
    unsaid(alloc, "not known")
    node.purge("none")


def test_tasks_that_wait_for_a_delay_or_for_other_tasks():
    policy = {"RestartPolicy": {"Attempts": 2, "Interval": 86400 * 10**9, "Delay": 3600 * 10**9, "Mode": "fail"}}
    alloc = alloc_of("later", api.job("later", "/bin/false", [], group=policy), "pending")
    said(alloc, "It waits for the delay before its restart.")
    said(alloc, "It ended by itself, with exit code 1.")
    node.purge("later")
    made = api.job("order", "/bin/sleep", ["1000"])
    made["Job"]["TaskGroups"][0]["Tasks"].append(api.task("before", "/bin/sleep", ["1000"],
                                                          Lifecycle={"Hook": "prestart", "Sidecar": False}))
    node.register(made)
    alloc = node.allocs("order")[0]["ID"]
    case.equal(said(alloc, "It waits for tasks that have to start or end before it.")["Time"], 0)
    node.purge("order")


def test_a_task_that_runs_undisturbed():
    alloc = alloc_of("well", api.job("well"), "running")
    case.until(lambda: [c["Text"] for c in why(alloc)] == ["It runs. Nothing has stopped or restarted it."], 20, "the cause that nothing has happened")
    node.refused(404, "Unknown allocation", "GET", "/v1/client/allocation/%s/why" % ("9" * 8 + "-9999" * 3 + "-" + "9" * 12))
    case.contains(drover("alloc", "why", "there-is-none", code=1), "no allocation, evaluation or job")
    node.purge("well")


def test_a_restart_because_a_check_failed():
    made = api.job("checked", group={
        "Networks": [{"DynamicPorts": [{"Label": "http"}]}],
        "Services": [{"Name": "web", "Provider": "nomad", "PortLabel": "http", "Checks": [
            {"Name": "alive", "Type": "tcp", "Interval": 10**9, "Timeout": 10**9}]}]})
    alloc = alloc_of("checked", made, "running")
    case.contains(said(alloc, 'Check "alive" of service "web" fails: ', "")["Text"], "refused")
    node.purge("checked")


def test_a_task_stopped_by_its_lease():
    made = api.job("leased", "/bin/sh", ["-c", "echo $$; exec sleep 1000"], group={"StopAfterClientDisconnect": 10**10})
    alloc = alloc_of("leased", made, "running")
    task = int(case.until(lambda: node.logs({"ID": alloc}).strip(), 20, "the pid of the task"))
    pid = node.processes()["supervisor"]
    os.kill(pid, signal.SIGSTOP)
    try:
        agent.wait_gone([task], 30)
    finally:
        os.kill(pid, signal.SIGCONT)
    found = said(alloc, "It was told to stop: stop_after_client_disconnect of 10s passed: the last answered heartbeat was ")
    case.contains(found["Text"], "after the limit")
    said(alloc, "after it was told to stop.")
    unsaid(alloc, "not known")
    node.purge("leased")


def test_a_job_that_cannot_be_placed():
    """Asked by the name of the job, by its evaluation and by its blocked evaluation."""
    cpu = node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])["NodeResources"]["Cpu"]["CpuShares"]
    evaluation = node.register(api.job("big", count=2, Resources={"CPU": cpu * 2 // 3, "MemoryMB": 20}))["EvalID"]
    node.wait_running("big")
    for word in ("big", evaluation, evaluation[:8]):
        out = drover("alloc", "why", word)
        case.contains(out, 'Group "g" has no place for 1 of its allocations.')
        case.contains(out, "Not enough resources: cpu (1 node(s)).")
    found = json.loads(drover("alloc", "why", "-json", evaluation))
    case.equal((found["ID"], len(found["Causes"]), found["Causes"][0]["Time"]), (evaluation, 1, 0))
    node.purge("big")
    far = api.job("far")
    far["Job"]["Constraints"] = [{"LTarget": "${attr.kernel.name}", "RTarget": "plan9", "Operand": "="}]
    node.register(far)
    case.contains(drover("alloc", "why", "far"), "Excluded by: ${attr.kernel.name} = plan9")
    node.purge("far")
    node.register(api.job("placed"))
    node.wait_running("placed")
    case.contains(drover("alloc", "why", "placed"), "It runs. Nothing has stopped or restarted it.")
    node.purge("placed")


def test_events_from_before_and_during_a_restart_of_the_agent():
    """What happened while no agent ran, as far as it can be known."""
    alloc = alloc_of("lost", api.job("lost", "/bin/sh", ["-c", "echo $$; exec sleep 1000"]), "running")
    pid = int(case.until(lambda: node.logs({"ID": alloc}).strip(), 20, "the pid of the task"))
    with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
        executor = int(f.read().rpartition(")")[2].split()[1])
    os.kill(executor, signal.SIGKILL)
    said(alloc, "It ended, but it is not known how: its executor was lost")
    node.purge("lost")


def test_a_running_alloc_while_a_new_supervisor_takes_it_over():
    """Its hooks run again, but its task has run all the time."""
    alloc = alloc_of("kept", api.job("kept"), "running")
    for _ in range(5):
        node.kill("supervisor")
        for _ in range(100):
            unsaid(alloc, "before its tasks start", "being prepared", "being started", "waits for")
    case.until(lambda: [c["Text"] for c in why(alloc)] == ["It runs. Nothing has stopped or restarted it."], 20, "the normal answer")
    node.purge("kept")


with api.Node() as node:
    case.run(globals())
