#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Drains: the order in which jobs are stopped, the deadline of batch jobs, and restarts of the agent during a drain."""
import signal
import subprocess
import time

from lib import api, binary, case, stages
from lib.stages import let_go, order, task, wait_order

S = 10**9
DEAF = "trap '' INT; echo here; until [ -e $NOMAD_ALLOC_DIR/data/go ]; do sleep 0.05; done"


def path():
    return "/v1/node/" + node.ask("/v1/nodes")[0]["ID"]


def strategy():
    return node.ask(path())["DrainStrategy"]


def drain(deadline, **more):
    node.do("PUT", path() + "/drain", {"DrainSpec": {"Deadline": deadline, **more}})


def take_back():
    node.do("PUT", path() + "/drain", {"DrainSpec": None, "MarkEligible": True})


def wait_drained():
    case.until(lambda: strategy() is None, 60, "the end of the drain")
    me = node.ask(path())
    case.equal((me["Drain"], me["SchedulingEligibility"]), (False, "ineligible"))


def get(alloc):
    return node.ask("/v1/allocation/" + alloc["ID"])


def wait_status(alloc, status):
    case.until(lambda: get(alloc)["ClientStatus"] == status, 60, "%s to be %s" % (alloc["JobID"], status))


def when(alloc, kind, name="main"):
    return next(e["Time"] for e in get(alloc)["TaskStates"][name]["Events"] if e["Type"] == kind)


def start(name, kind="service", made=None):
    made = made or stages.job(name, [task("main")], kind)
    if kind == "system":
        for key in ("ReschedulePolicy", "Update"):
            made["Job"]["TaskGroups"][0].pop(key, None)
    node.register(made)
    alloc = node.wait_running(name)[0]
    if made["Job"]["TaskGroups"][0]["Tasks"][0]["Name"] == "main":
        wait_order(node, alloc, ["main begins"])
    return alloc


def start_plugin():
    made = api.job("plugin", binary("csi-local"), ["-root", case.directory()], CSIPluginConfig={
        "ID": "p", "Type": "monolith", "MountDir": "/csi", "HealthTimeout": 300 * S})
    made["Job"]["Type"] = "system"
    return start("plugin", "system", made)


def start_deaf(name):
    """A job that ends when its file `go` exists."""
    alloc = start(name, made=api.job(name, "/bin/sh", ["-c", DEAF], KillTimeout=600 * S))
    node.wait_said(alloc, b"here")
    return alloc


def let_deaf_go(alloc):
    with open(stages.directory(node, alloc) + "/go", "w", encoding="ascii"):
        pass


def drover(*words):
    return subprocess.run([binary("drover"), *words, "-address", "unix://" + node.socket_path], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=case.LEAST_S, check=False)


def purge(*names):
    for name in names:
        node.purge(name)
    take_back()


def test_services_then_batch_then_system_then_plugins():
    """Without a deadline batch jobs run to their end, also if the supervisor is killed meanwhile."""
    web, plugin = start("web"), start_plugin()
    work, everywhere = start("work", "batch"), start("everywhere", "system")
    drain(0)
    wait_status(web, "complete")
    case.equal(get(web)["DesiredDescription"], "node is draining")
    found = strategy()
    case.equal((found["Deadline"], found["IgnoreSystemJobs"], found["StartedAt"] > "2"), (0, False, True))
    case.equal([(get(a)["DesiredStatus"], get(a)["ClientStatus"]) for a in (work, everywhere, plugin)], [("run", "running")] * 3)
    node.refused(400, "while it is draining", "PUT", path() + "/eligibility", {"Eligibility": "eligible"})
    before = node.kill("supervisor")
    node.wait_process("supervisor", before)
    node.wait_ready()
    case.equal(strategy(), found, "the drain after a kill")
    case.equal([(get(a)["DesiredStatus"], get(a)["ClientStatus"]) for a in (work, everywhere, plugin)], [("run", "running")] * 3)
    let_go(node, work, "main")
    wait_drained()
    case.equal([get(a)["ClientStatus"] for a in (work, everywhere, plugin)], ["complete"] * 3)
    case.equal((get(work)["DesiredStatus"], order(node, work)), ("run", ["main begins", "main ends"]))
    case.equal(when(work, "Terminated") <= when(everywhere, "Killing"), True, "whether system jobs end after batch jobs")
    case.equal(when(everywhere, "Terminated") <= when(plugin, "Killing", "t"), True, "whether plugins end last")
    purge("web", "work", "everywhere", "plugin")


def test_the_deadline_stops_batch_jobs():
    work, everywhere = start("work", "batch"), start("everywhere", "system")
    drain(1000 * S)
    found = strategy()
    case.equal(get(work)["DesiredStatus"], "run")
    # A new deadline does not start a new drain.
    drain(S)
    now = strategy()
    case.equal((now or found)["StartedAt"], found["StartedAt"])
    wait_drained()
    case.equal([order(node, a) for a in (work, everywhere)], [["main begins", "main is told"]] * 2)
    case.equal(get(work)["DesiredDescription"], "node is draining")
    purge("work", "everywhere")


def test_force_stops_all_at_once():
    work, everywhere = start("work", "batch"), start("everywhere", "system")
    done = drover("node", "drain", "-force", "-ignore-system", "-yes")
    case.equal((done.returncode, done.stderr), (0, ""))
    case.equal([get(a)["ClientStatus"] for a in (work, everywhere)], ["complete", "running"])
    wait_drained()
    done = drover("node", "drain", "-monitor")
    case.equal((done.returncode, "is not draining" in done.stdout), (0, True), done.stderr)
    drain(-1)
    wait_drained()
    wait_status(everywhere, "complete")
    purge("work", "everywhere")


def test_a_deadline_that_passes_without_the_agent():
    """Also a drain whose deadline has not passed when the agent is back: a follower sees its end."""
    work = start("work", "batch")
    drain(S)
    node.kill_launcher()
    time.sleep(1.5)  # the deadline passes, however slow the machine is
    node.start()
    node.wait_ready()
    wait_drained()
    case.equal(order(node, work), ["main begins", "main is told"])
    take_back()
    work = next(a for a in node.wait_running("work"))
    wait_order(node, work, ["main begins"])
    drain(1000 * S, IgnoreSystemJobs=True)
    found = strategy()
    node.kill_launcher()
    node.start()
    node.wait_ready()
    case.equal((strategy(), found["IgnoreSystemJobs"]), (found, True))
    follower = subprocess.Popen([binary("drover"), "node", "drain", "-monitor", "-address", "unix://" + node.socket_path],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    let_go(node, work, "main")
    said, _ = follower.communicate(timeout=case.LEAST_S)
    case.equal((follower.returncode, "drain" in said), (0, True), said)
    wait_drained()
    purge("work")


def test_invalid_drains_are_refused_and_the_longest_is_accepted():
    for spec in ({"Deadline": "soon"}, {"Deadline": []}, {"IgnoreSystemJobs": 7}, 7):
        node.refused(400, "DrainSpec", "PUT", path() + "/drain", {"DrainSpec": spec})
    case.equal(strategy(), None)
    # The longest deadline of 64 bits.
    alloc = start("work", "batch")
    drain(2**63 - 1)
    case.equal(strategy()["Deadline"], 2**63 - 1)
    case.equal(get(alloc)["DesiredStatus"], "run")
    take_back()
    case.equal((strategy(), get(alloc)["ClientStatus"]), (None, "running"))
    node.purge("work")


def test_a_drain_and_the_end_of_the_agent_in_either_order():
    """In either order of the two requests the agent ends when no task runs any more."""
    alloc = start_deaf("first")
    drain(1000 * S)
    case.until(lambda: get(alloc)["DesiredStatus"] == "stop", 60, "the drain to begin")
    node.process.send_signal(signal.SIGTERM)
    node.wait_log("stopping all allocations: the agent was told to end")
    case.equal(node.process.poll(), None, "exit code while it waits for its task")
    let_deaf_go(alloc)
    case.equal(node.wait(), 0)
    node.start()
    node.wait_ready()
    wait_drained()
    purge("first")
    alloc = start_deaf("second")
    node.process.send_signal(signal.SIGTERM)
    node.wait_log("stopping all allocations: the agent was told to end", times=2)
    drain(1000 * S)
    let_deaf_go(alloc)
    case.equal(node.wait(), 0)
    node.start()
    node.wait_ready()
    wait_drained()
    purge("second")


def test_no_leaks_are_left():
    case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


with api.Node() as node:
    case.run(globals())
