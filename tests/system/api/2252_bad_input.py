#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Jobs with extreme values, requests at bad moments, and tasks that misbehave: each gives one error message and leaves nothing behind, and
a task beside them, which is checked after each, is not affected. Unknown signals and tasks: 2285; exec into an ended task: 2420; checks
with no or too much output: 2600; a full disk: 2280 and 2210."""
import json
import os
import signal
import uuid

from lib import agent, api, case, cluster, crash, exe, helper, stages
from lib.stages import task, wait_order

S = 10**9
MOST = 2**63 - 1


def beside():
    """Checks that the task beside the others was started once, was never restarted, and still writes."""
    alloc, = node.wait_running("beside")
    case.equal((alloc["ID"], cluster.events(node.ask("/v1/allocation/" + alloc["ID"]))), (witness, ["Received", "Task Setup", "Started"]))
    before = len(crash.alloc_data(node, witness, "ticks"))
    case.until(lambda: len(crash.alloc_data(node, witness, "ticks")) > before, 60, "the task beside it to keep writing")


def nothing_of(alloc):
    case.until(lambda: not cluster.processes_of(alloc["ID"]), 60, "its processes to end")
    case.equal(node.ask("/v1/agent/leaks"), [], "leaks")
    beside()


def get(alloc):
    return node.ask("/v1/allocation/" + alloc["ID"])


def wait_client(name, *states):
    return case.until(lambda: [a for a in node.allocs(name) if a["ClientStatus"] in states], 60, "%s to be %s" % (name, states))[-1]


def test_odd_values_in_the_environment():
    value = "one\ntwo\n\n\ttab 'x' \"y\" $HOME \\n é"
    node.register(api.job("lines", "/bin/sh", ["-c", 'printf %s "$ODD"; echo; echo end; exec sleep 1000'], Env={"ODD": value}))
    alloc = node.wait_running("lines")[0]
    node.wait_said(alloc, b"\nend\n")
    case.equal(node.logs(alloc).decode(), value + "\nend\n")
    node.purge("lines")
    made = api.job("lines")
    for where in ("Env", "Meta"):
        made["Job"]["TaskGroups"][0]["Tasks"][0][where] = {"ODD": "a\0b"}
        node.refused(400, "\\u0000", "POST", "/v1/jobs", made)
    case.equal(node.request("GET", "/v1/job/lines").status, 404)
    nothing_of(alloc)


def test_jobs_with_megabytes_of_values():
    made = api.job("large", Env={"A%d" % i: "x" * 1000 for i in range(10000)})
    case.equal(len(json.dumps(made)) > 10 * 1000 * 1000, True)
    node.refused(413, "the body is longer than 1048576 bytes", "POST", "/v1/jobs", made)
    case.equal(node.request("GET", "/v1/job/large").status, 404)
    # A value that fits into a request, but exceeds the kernel's limit for one string of an environment.
    node.register(api.job("large", Env={"A": "x" * 200000}))
    alloc = wait_client("large", "failed")
    said = [e["DisplayMessage"] for e in get(alloc)["TaskStates"]["t"]["Events"] if e["Type"] == "Driver Failure"]
    case.equal((len(said), "Argument list too long" in said[0]), (1, True), said)
    node.purge("large")
    nothing_of(alloc)


def test_resources_beyond_any_machine_are_refused():
    """The sum of such an amount and that of another job exceeds 64 bits."""
    for changes, group, dimension in (({"Resources": {"CPU": MOST, "MemoryMB": 20}}, {}, "cpu"),
                                      ({"Resources": {"CPU": 20, "MemoryMB": MOST}}, {}, "memory"),
                                      ({}, {"EphemeralDisk": {"SizeMB": MOST}}, "disk")):
        found = node.wait_evaluation(node.register(api.job("greedy", group=group, **changes))["EvalID"])
        case.equal(found["FailedTGAllocs"]["g"]["DimensionExhausted"], {dimension: 1}, dimension)
        case.equal(node.allocs("greedy"), [])
        node.purge("greedy")
    # In bytes this is 2**64 + 1 MiB: after an overflow the task would have a limit of 1 MiB.
    node.register(api.job("greedy", "/bin/sh", ["-c", "head -c 8M /dev/zero | tail -c 8M | wc -c; sleep 1000"],
                          Resources={"CPU": 20, "MemoryMB": 20, "MemoryMaxMB": (1 << 44) + 1}))
    node.wait_said(node.wait_running("greedy")[0], b"8388608")
    node.purge("greedy")
    beside()


def test_restarts_are_counted_in_an_endless_interval():
    """The interval is so long that its end exceeds the range of time stamps."""
    policy = {"Attempts": 1, "Interval": MOST, "Delay": 0, "Mode": "fail"}
    node.register(api.job("counts", "/bin/false", group={"RestartPolicy": policy}))
    alloc = wait_client("counts", "failed")
    said = [e["DisplayMessage"] for e in get(alloc)["TaskStates"]["t"]["Events"] if e["Type"] == "Not Restarting"]
    case.equal(said, ['Exceeded allowed attempts 1 in interval 2562047h47m16.854775807s and mode is "fail"'])
    node.purge("counts")
    nothing_of(alloc)


BOMB = """
i=0
while [ $i -lt 1500 ]; do
	setsid sh -c 'sleep 1000 & sleep 1000' &
	i=$((i + 1))
done
"""


def test_a_fork_bomb_leaves_no_process():
    """It gets as many processes as its limits permit. Whether these end it or not, no process outlives it. Its memory suffices for all of them: at that
    limit, 4,500 processes and the kernel that reads their program again and again can keep a machine busy for minutes."""
    node.register(api.job("bomb", "/bin/sh", ["-c", BOMB + "echo done; wait"], Resources={"CPU": 20, "MemoryMB": 2000}))
    alloc = wait_client("bomb", "running", "failed")
    case.until(lambda: get(alloc)["ClientStatus"] == "failed" or len(cluster.processes_of(alloc["ID"])) > 100, 60, "many processes of the task")
    beside()
    node.register(api.job("after"))
    node.wait_running("after")
    node.purge("after")
    node.purge("bomb")
    nothing_of(alloc)


def test_a_task_that_takes_all_memory():
    trees = helper.cgroup_trees()
    if "memory" not in trees and "memory" not in open(trees["v2"] + "/cgroup.controllers", encoding="ascii").read():
        case.skip("no memory controller")
    node.register(api.job("oom", "/usr/bin/tail", ["/dev/zero"]))
    alloc = wait_client("oom", "failed")
    sentence = [e["DisplayMessage"] for e in get(alloc)["TaskStates"]["t"]["Events"] if e["Type"] == "Terminated"]
    case.equal(sentence, ['Exit Code: 137, Signal: 9, Exit Message: "OOM Killed"'])
    node.purge("oom")
    nothing_of(alloc)


def test_a_task_that_fills_its_log():
    """Of 64 MiB of output the last two files of 1 MiB are kept."""
    script = "head -c 67108864 /dev/zero | tr '\\\\0' x; echo; echo the end; exec sleep 1000"
    node.register(api.job("talks", "/bin/sh", ["-c", script], LogConfig={"MaxFiles": 2, "MaxFileSizeMB": 1},
                          group={"EphemeralDisk": {"SizeMB": 100}}))
    alloc = node.wait_running("talks")[0]
    node.wait_said(alloc, b"\nthe end\n")
    top = "%s/logs/%s" % (node.data, alloc["ID"])
    sizes = {name: os.stat(top + "/" + name).st_size for name in os.listdir(top) if name.startswith("t.stdout.")}
    case.equal((len(sizes), all(size <= 1 << 20 for size in sizes.values())), (2, True), "files: %s" % sizes)
    case.equal(get(alloc)["ClientStatus"], "running")
    node.purge("talks")
    nothing_of(alloc)


def task_pid(alloc):
    return [r["task_pid"] for r in crash.records(node).values()
            if r and str(uuid.UUID(bytes=r["alloc"])) == alloc["ID"] and r["state"] == exe.EXE_RUNNING][0]


def stands_still(name):
    """Starts an alloc and stops its task with SIGSTOP, so that it does not end before it is continued. Returns the alloc and the task's
    pid."""
    node.register(stages.job(name, [task("main", KillTimeout=1000 * S)]))
    alloc = node.wait_running(name)[0]
    wait_order(node, alloc, ["main begins"])
    pid = task_pid(alloc)
    os.kill(pid, signal.SIGSTOP)
    return alloc, pid


def test_a_restart_of_a_task_that_is_being_killed_is_refused():
    alloc, pid = stands_still("killed")
    try:
        node.do("DELETE", "/v1/job/killed")
        for body in ({}, {"TaskName": "main"}, {"AllTasks": True}):
            node.refused(500, "restart of an alloc that should not run", "PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], body)
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_client("killed", "complete")
    case.equal(cluster.events(get(alloc), "main"), ["Received", "Task Setup", "Started", "Killing", "Terminated", "Killed"])
    case.equal(stages.order(node, alloc).count("main begins"), 1, "number of starts")
    node.purge("killed")
    nothing_of(alloc)


def test_a_stop_of_a_task_that_is_being_restarted_prevents_the_restart():
    for body in ({"TaskName": "main"}, {"AllTasks": True}):
        alloc, pid = stands_still("again")
        try:
            node.do("PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], body)
            node.refused(500, "Task not running", "PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], {"TaskName": "main"})
            node.do("DELETE", "/v1/job/again")
        finally:
            os.kill(pid, signal.SIGCONT)
        wait_client("again", "complete")
        found = cluster.events(get(alloc), "main")
        case.equal((found[:4], found[4:]), (["Received", "Task Setup", "Started", "Restart Signaled"], ["Killing", "Terminated", "Killed"]))
        case.equal(stages.order(node, alloc).count("main begins"), 1, "number of starts")
        node.purge("again")
        nothing_of(alloc)


def test_a_stop_during_prestart_prevents_the_main_task():
    """The prestart task does not end by itself; the main task after it never starts."""
    node.register(stages.job("begins", [task("main"), task("early", "prestart")]))
    alloc = node.wait_running("begins")[0]
    wait_order(node, alloc, ["early begins"])
    node.do("DELETE", "/v1/job/begins")
    found = get(wait_client("begins", "complete"))
    case.equal(cluster.events(found, "main"), ["Received", "Killing"])
    case.equal(stages.order(node, alloc), ["early begins", "early is told"])
    node.purge("begins")
    nothing_of(alloc)


def test_the_task_beside_them_is_not_affected():
    beside()
    node.purge("beside")
    crash.wait_nothing_left(node)


CONFIG = agent.config_args(
    'client {\n  max_kill_timeout = "1000s"\n}\nplugin "raw_exec" { config { enabled = true } }\n')

with api.Node(CONFIG) as node:
    node.register(api.job("beside", "/bin/sh", ["-c", "while :; do echo x >> $NOMAD_ALLOC_DIR/data/ticks; sleep 0.2; done"]))
    witness = node.wait_running("beside")[0]["ID"]
    case.run(globals())
