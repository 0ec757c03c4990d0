#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""drover alloc why: for each way in which something ends, restarts or waits, the sentence that is true of it."""
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
    """The alloc of a job of this name, once it is so."""
    node.register(made)
    case.until(lambda: node.allocs(name)[-1]["ClientStatus"] == status, 20, "%s to be %s" % (name, status))
    return node.allocs(name)[-1]["ID"]


def why(alloc):
    found = node.ask("/v1/client/allocation/%s/why" % alloc)
    times = [c["Time"] for c in found["Causes"]]
    now = times.count(0)
    case.equal((times[:now], times[now:]), ([0] * now, sorted(times[now:], reverse=True)), "what is so now, then the newest first")
    return found["Causes"]


def said(alloc, part, task="t"):
    """The cause that says this. It may come a moment after the status that was waited for."""
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


def test_an_exit_code():
    alloc = alloc_of("code", api.job("code", "/bin/sh", ["-c", "exit 3"]), "failed")
    said(alloc, "It ended by itself, with exit code 3.")
    said(alloc, "It is not started again: Policy allows no restarts.")
    unsaid(alloc, "not known", "told to end")
    node.purge("code")


def test_restarts_beyond_ten_events():
    policy = {"RestartPolicy": {"Attempts": 5, "Interval": 3600 * 10**9, "Delay": 10**6, "Mode": "fail"}}
    alloc = alloc_of("again", api.job("again", "/bin/sh", ["-c", "exit 4"], group=policy), "failed")
    said(alloc, "Exceeded allowed attempts 5")
    texts = [c["Text"] for c in why(alloc)]
    case.equal(len([t for t in texts if "exit code 4" in t]), 6, "\n".join(texts))
    case.equal(len([t for t in texts if "its restart policy allows that" in t]), 5, "\n".join(texts))
    out = drover("alloc", "why", alloc)
    case.contains(out, "is failed, desired status run")
    case.contains(drover("alloc", "why", "-json", alloc), '"Causes"')
    node.purge("again")


def ended(alloc):
    """Of its task's end: the signal, what the event says beside it, and who the sender was."""
    ev = [e for e in node.ask("/v1/allocation/" + alloc)["TaskStates"]["t"]["Events"] if e["Type"] == "Terminated"][-1]
    return ev["Signal"], ev["Message"], ev["Details"].get("signal_sender")


def kill(alloc, signo):
    """From outside, the task's own process: the first of those that it has. One in the middle of execve() has no environment."""
    os.kill(min(case.until(lambda: processes_of(alloc), 20, "its processes")), signo)


def shoot(name, signo, driver="raw_exec", script="echo $$; exec sleep 1000"):
    """A signal from outside: the alloc, once it is over."""
    alloc = alloc_of(name, api.job(name, "/bin/sh", ["-c", script], driver=driver), "running")
    node.wait_said({"ID": alloc}, b"\n")
    kill(alloc, signo)
    case.until(lambda: node.ask("/v1/allocation/" + alloc)["ClientStatus"] == "failed", 20, "its end")
    return alloc


def test_a_signal_of_nobody_knows_whom():
    for driver in ("raw_exec", "exec"):
        alloc = shoot("shot", signal.SIGKILL, driver)
        case.contains(said(alloc, "It ended by SIGKILL.")["Text"], "who sent it is not known")
        case.equal(ended(alloc), (9, "SIGKILL by no stop of this agent, and the kernel counted no OOM kill", "not drover"))
        unsaid(alloc, "told to end", "want of memory:", "request")
        node.purge("shot")
        alloc = shoot("termed", signal.SIGTERM, driver)
        case.contains(said(alloc, "It ended by SIGTERM.")["Text"], "who sent it is not known")
        case.equal(ended(alloc), (15, "SIGTERM, which this agent did not send", "not drover"))
        node.purge("termed")


def test_a_signal_of_its_own():
    alloc = alloc_of("err", api.job("err", "/bin/sh", ["-c", "kill -SEGV $$"]), "failed")
    said(alloc, "It ended by SIGSEGV, as programs do by a fault of their own; drover sent it no such signal.")
    case.equal(ended(alloc), (11, "", "not drover"))
    node.purge("err")


def test_a_signal_of_the_filter():
    if os.uname().machine != "x86_64":
        return
    # mov eax, 1; int 0x80: exit(2) as programs of 32 bits call it.
    code = "import ctypes, mmap\nm = mmap.mmap(-1, 4096, prot=7)\nm.write(b'\\xb8\\1\\0\\0\\0\\xcd\\x80')\n" \
           "ctypes.CFUNCTYPE(None)(ctypes.addressof(ctypes.c_char.from_buffer(m)))()"
    if subprocess.run(["/usr/bin/python3", "-c", code], check=False, stderr=subprocess.DEVNULL).returncode < 0:
        return  # this kernel was built or started without them, and they end by its own signal
    alloc = alloc_of("old", api.job("old", "/usr/bin/python3", ["-c", code], driver="exec"), "failed")
    said(alloc, "It ended by SIGSYS: ended by a filter of system calls, as driver exec ends programs of 32 bits.")
    case.equal((ended(alloc)[0], ended(alloc)[2]), (signal.SIGSYS, "not drover"))
    node.purge("old")


def test_a_signal_on_request():
    for name in ("SIGUSR1", "SIGKILL"):
        alloc = alloc_of("sent", api.job("sent"), "running")
        drover("alloc", "signal", "-s", name, alloc)
        case.contains(said(alloc, "It ended by %s, which it had been sent on request of uid 0, " % name)["Text"], " before.")
        case.equal(ended(alloc), (getattr(signal, name), name + ", sent on request", "drover, on request"))
        unsaid(alloc, "not known")
        node.purge("sent")


def test_a_signal_on_request_that_was_not_the_last_one():
    alloc = alloc_of("asleep", api.job("asleep"), "running")
    pid = min(case.until(lambda: processes_of(alloc), 20, "its processes"))

    def sleeps():
        with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as f:
            return f.read().rpartition(") ")[2].startswith("T")

    drover("alloc", "signal", "-s", "SIGSTOP", alloc)
    case.until(sleeps, 60, "it to be stopped")
    drover("alloc", "signal", "-s", "SIGTERM", alloc)
    drover("alloc", "signal", "-s", "SIGCONT", alloc)
    said(alloc, "It ended by SIGTERM, which it had been sent on request of uid 0, ")
    node.purge("asleep")


def test_a_signal_that_was_handled_and_then_one_of_somebody_else():
    """What was asked for is not what ended it."""
    script = "trap 'echo got' HUP; echo on; while :; do sleep 0.05; done"
    alloc = alloc_of("two", api.job("two", "/bin/sh", ["-c", script]), "running")
    node.wait_said({"ID": alloc}, b"on\n")
    drover("alloc", "signal", "-s", "SIGHUP", alloc)
    node.wait_said({"ID": alloc}, b"got\n")
    kill(alloc, signal.SIGUSR2)
    said(alloc, "It ended by SIGUSR2. Nobody asked drover for that")
    case.equal(ended(alloc), (signal.SIGUSR2, "SIGUSR2, which this agent did not send", "not drover"))
    node.purge("two")


def test_a_kill_from_outside_while_it_is_told_to_end():
    made = api.job("both", "/bin/sh", ["-c", "trap 'echo told' INT; echo on; while :; do sleep 0.05; done"], KillTimeout=600 * 10**9)
    alloc = alloc_of("both", made, "running")
    node.wait_said({"ID": alloc}, b"on\n")
    node.do("DELETE", "/v1/job/both")
    node.wait_said({"ID": alloc}, b"told\n")
    kill(alloc, signal.SIGKILL)
    said(alloc, "It ended by SIGKILL (which drover did not send) after it was told to end.")
    case.equal(ended(alloc)[2], "not drover")
    node.purge("both")


EATER = "x = []\nwhile True:\n x.append(bytearray(1 << 20))\n"


def test_memory():
    alloc = alloc_of("eater", api.job("eater", "/usr/bin/python3", ["-c", EATER], Resources={"CPU": 20, "MemoryMB": 30}),
                     "failed")
    found = said(alloc, "for want of memory")["Text"]
    case.contains(found, "under a limit of 30 MiB")
    case.contains(found, "by SIGKILL")
    case.equal(ended(alloc), (9, "OOM Killed", "the kernel, for want of memory"))
    unsaid(alloc, "not known")
    node.purge("eater")


def limit_of_all_tasks():
    """The file that holds it."""
    name = "drover-" + crash.instance(node)
    return next(path for path in ("/sys/fs/cgroup/memory/%s/runs/memory.limit_in_bytes" % name,
                                  "/sys/fs/cgroup/%s/tasks/memory.max" % name) if os.path.exists(path))


def test_memory_of_more_than_the_task():
    """Of a cgroup above, as of the machine: its own limit, which is far away, is not blamed."""
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
    found = said(alloc, "for want of memory")["Text"]
    case.contains(found, "of the machine, or of a cgroup above its own: its own limit of 1000 MiB was not reached. It ended by SIGKILL")
    case.equal(ended(alloc), (9, "OOM Killed: the machine, or a cgroup above its own, was out of memory; its own limit was not reached",
                              "the kernel, for want of memory"))
    node.purge("crowded")


def test_memory_of_another_of_its_processes():
    """It lives on, and ends as it likes; under cgroup v2 it is ended too."""
    script = "/usr/bin/python3 -c '%s'; exit 7" % EATER
    alloc = alloc_of("parent", api.job("parent", "/bin/sh", ["-c", script], Resources={"CPU": 20, "MemoryMB": 30}), "failed")
    together = "memory" not in helper.cgroup_trees()
    case.contains(said(alloc, "for want of memory")["Text"], "It ended by SIGKILL." if together else "It ended with exit code 7.")
    case.equal(ended(alloc), (9, "OOM Killed", "the kernel, for want of memory") if together else
               (0, "the kernel OOM killed another of its processes", None))
    node.purge("parent")


def test_who_stopped_it():
    alloc = alloc_of("stopped", api.job("stopped"), "running")
    drover("alloc", "stop", "-detach", alloc)
    said(alloc, "It was to end: alloc was stopped by an operator", "")
    said(alloc, "It ended by SIGINT after it was told to end.")
    case.equal(ended(alloc), (2, "", "drover, to stop it"))
    said(alloc, "was placed in its stead", "")
    unsaid(alloc, "not known")
    other = node.wait_running("stopped")[0]["ID"]
    node.do("DELETE", "/v1/job/stopped")
    said(other, "It was to end: alloc not needed: its job was stopped.", "")
    node.purge("stopped")


def test_a_task_that_does_not_end():
    made = api.job("deaf", "/bin/sh", ["-c", "trap '' INT; echo deaf; while :; do sleep 0.1; done"], KillTimeout=10**8)
    alloc = alloc_of("deaf", made, "running")
    node.wait_said({"ID": alloc}, b"deaf")
    node.do("DELETE", "/v1/job/deaf")
    said(alloc, "It was killed: it had not ended within its kill_timeout")
    case.equal(ended(alloc), (9, "", "drover, to stop it"))
    node.purge("deaf")


def test_a_restart_on_request():
    alloc = alloc_of("anew", api.job("anew"), "running")
    drover("alloc", "restart", alloc)
    said(alloc, "It was told to start anew: User requested running tasks to restart.")
    said(alloc, "after it was told to end.")
    unsaid(alloc, "not known")
    node.purge("anew")


def test_siblings_and_a_leader():
    made = api.job("pair", "/bin/sh", ["-c", "exit 1"])
    made["Job"]["TaskGroups"][0]["Tasks"].append(api.task("other", "/bin/sleep", ["1000"]))
    alloc = alloc_of("pair", made, "failed")
    said(alloc, 'Another of its allocation failed: Task\'s sibling "t" failed.', "other")
    unsaid(alloc, "not known")
    node.purge("pair")


def test_what_cannot_start():
    alloc = alloc_of("none", api.job("none", "/no/such/program"), "failed")
    said(alloc, "It could not be started: ")
    unsaid(alloc, "not known")
    node.purge("none")


def test_what_waits():
    policy = {"RestartPolicy": {"Attempts": 2, "Interval": 86400 * 10**9, "Delay": 3600 * 10**9, "Mode": "fail"}}
    alloc = alloc_of("later", api.job("later", "/bin/false", [], group=policy), "pending")
    said(alloc, "It waits for the delay before its next start.")
    said(alloc, "It ended by itself, with exit code 1.")
    node.purge("later")
    made = api.job("order", "/bin/sleep", ["1000"])
    made["Job"]["TaskGroups"][0]["Tasks"].append(api.task("before", "/bin/sleep", ["1000"],
                                                          Lifecycle={"Hook": "prestart", "Sidecar": False}))
    node.register(made)
    alloc = node.allocs("order")[0]["ID"]
    case.equal(said(alloc, "It waits for tasks that come before it.")["Time"], 0)
    node.purge("order")


def test_nothing_has_happened():
    alloc = alloc_of("well", api.job("well"), "running")
    case.until(lambda: [c["Text"] for c in why(alloc)] == ["It runs. Nothing has stopped or restarted it."], 20, "nothing")
    node.refused(404, "Unknown allocation", "GET", "/v1/client/allocation/%s/why" % ("9" * 8 + "-9999" * 3 + "-" + "9" * 12))
    case.contains(drover("alloc", "why", "there-is-none", code=1), "no allocation, evaluation or job")
    node.purge("well")


def test_a_check_that_fails():
    made = api.job("checked", group={
        "Networks": [{"DynamicPorts": [{"Label": "http"}]}],
        "Services": [{"Name": "web", "Provider": "nomad", "PortLabel": "http", "Checks": [
            {"Name": "alive", "Type": "tcp", "Interval": 10**9, "Timeout": 10**9}]}]})
    alloc = alloc_of("checked", made, "running")
    case.contains(said(alloc, 'Check "alive" of service "web" fails: ', "")["Text"], "refused")
    node.purge("checked")


def test_a_lease():
    made = api.job("leased", "/bin/sh", ["-c", "echo $$; exec sleep 1000"], group={"StopAfterClientDisconnect": 10**10})
    alloc = alloc_of("leased", made, "running")
    task = int(case.until(lambda: node.logs({"ID": alloc}).strip(), 20, "its pid"))
    pid = node.processes()["supervisor"]
    os.kill(pid, signal.SIGSTOP)
    try:
        agent.wait_gone([task], 30)
    finally:
        os.kill(pid, signal.SIGCONT)
    found = said(alloc, "It was told to end: stop_after_client_disconnect of 10s passed: the last answered heartbeat was ")
    case.contains(found["Text"], "after the limit")
    said(alloc, "after it was told to end.")
    unsaid(alloc, "not known")
    node.purge("leased")


def test_no_place():
    """By the name of the job, by the evaluation, by the evaluation that it left behind."""
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


def test_after_a_restart_of_the_agent():
    """What happened while nobody was there, and what cannot be known of it."""
    alloc = alloc_of("lost", api.job("lost", "/bin/sh", ["-c", "echo $$; exec sleep 1000"]), "running")
    pid = int(case.until(lambda: node.logs({"ID": alloc}).strip(), 20, "its pid"))
    with open("/proc/%d/stat" % pid, encoding="utf-8") as f:
        executor = int(f.read().rpartition(")")[2].split()[1])
    os.kill(executor, signal.SIGKILL)
    said(alloc, "It ended. How is not known: its executor was lost")
    node.purge("lost")


with api.Node() as node:
    case.run(globals())
