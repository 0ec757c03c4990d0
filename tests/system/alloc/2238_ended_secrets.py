# SPDX-License-Identifier: Apache-2.0
"""The secrets of a task are removed when it has ended for good, before its allocation is."""
import os
import uuid

from lib import api, case, helper, traces

MARK = uuid.uuid4().hex
TEMPLATE = [{"EmbeddedTmpl": MARK, "DestPath": "secrets/v"}]
HOUR = 3600 * 10**9


def task(name, script, driver="raw_exec", **more):
    return api.task(name, "/bin/sh", ["-c", "grep -q %s $NOMAD_SECRETS_DIR/v || exit 9; %s" % (MARK, script)], driver, Templates=TEMPLATE, **more)


def register(name, tasks, kind="batch", **group):
    made = api.job(name, group={"Tasks": tasks, **group})
    made["Job"]["Type"] = kind
    node.register(made)


def alloc_of(name):
    return case.until(lambda: node.allocs(name), 20, "an allocation")[0]["ID"]


def state(alloc, name):
    states = node.ask("/v1/allocation/" + alloc)["TaskStates"] or {}
    return states.get(name, {}).get("State")


def wait_state(alloc, name, wanted):
    case.until(lambda: state(alloc, name) == wanted, 20, "task %s to be %s" % (name, wanted))


def mounted(alloc, name):
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return any(line.split()[4] == "%s/alloc/%s/%s/secrets" % (node.data, alloc, name) for line in f)


def wait_removed(alloc, name):
    wait_state(alloc, name, "dead")
    case.until(lambda: not mounted(alloc, name), 20, "the secrets of %s to be removed" % name)
    case.equal(os.listdir("%s/alloc/%s/%s/secrets" % (node.data, alloc, name)), [], "what is below their mount")
    case.equal(traces.in_files("%s/alloc/%s/%s" % (node.data, alloc, name), [MARK.encode()]), [])


def check_no_leaks():
    case.equal((node.ask("/v1/agent/leaks"), [line for line in node.log().splitlines() if "found leftover" in line]), ([], []))


def test_each_task_loses_its_own():
    """A prestart task and a main task end one after the other; a poststop task has its own until it ends."""
    wait = "while [ ! -e $NOMAD_ALLOC_DIR/%s ]; do sleep 0.05; done"
    register("each", [task("before", "true", Lifecycle={"Hook": "prestart"}), task("main", wait % "main"),
                      task("after", wait % "after", Lifecycle={"Hook": "poststop"}), task("isolated", wait % "main", "exec")])
    alloc = alloc_of("each")
    wait_removed(alloc, "before")
    wait_state(alloc, "main", "running")
    case.equal((mounted(alloc, "main"), mounted(alloc, "after")), (True, False))
    case.write("%s/alloc/%s/alloc/main" % (node.data, alloc), "")
    wait_removed(alloc, "main")
    wait_removed(alloc, "isolated")
    wait_state(alloc, "after", "running")
    case.equal(mounted(alloc, "after"), True)
    case.write("%s/alloc/%s/alloc/after" % (node.data, alloc), "")
    wait_removed(alloc, "after")
    node.wait_allocs("each", [(0, "run", "complete")])
    check_no_leaks()
    for name in ("main", "isolated"):
        for words in (("alloc", "fs", alloc, name + "/secrets"), ("alloc", "fs", alloc, name + "/secrets/v")):
            case.contains(node.drover(*words, code=1).err, "Reading secret file prohibited: " + words[3])
    node.purge("each")


def test_they_stay_between_two_runs_and_not_when_no_other_comes():
    """The task waits for its restart when it is stopped. Without a program it has secrets, but never starts."""
    again = {"Attempts": 2, "Interval": 24 * HOUR, "Delay": HOUR, "Mode": "delay"}
    register("waits", [task("t", "exit 3")], "service", RestartPolicy=again)
    alloc = alloc_of("waits")
    case.until(lambda: [e for e in node.ask("/v1/allocation/" + alloc)["TaskStates"]["t"]["Events"] if e["Type"] == "Restarting"], 20, "the delay")
    case.equal((state(alloc, "t"), mounted(alloc, "t")), ("pending", True))
    node.do("DELETE", "/v1/job/waits")
    wait_removed(alloc, "t")
    register("none", [api.task("t", "/no/such/program", Templates=TEMPLATE)])
    alloc = alloc_of("none")
    wait_removed(alloc, "t")
    check_no_leaks()
    node.purge("waits")
    node.purge("none")


def test_a_task_that_starts_again_after_its_end_has_them_again():
    register("again", [task("before", "true", Lifecycle={"Hook": "prestart"}), task("main", "exec sleep 1000")], "service")
    alloc = node.wait_running("again")[0]["ID"]
    for n in range(1, 6):
        wait_removed(alloc, "before")
        node.do("POST", "/v1/client/allocation/%s/restart" % alloc, {"AllTasks": True})
        case.until(lambda n=n: node.ask("/v1/allocation/" + alloc)["TaskStates"]["before"]["Restarts"] == n, 20, "restart %d" % n)
        wait_state(alloc, "main", "running")
        case.equal([e["ExitCode"] for e in node.ask("/v1/allocation/" + alloc)["TaskStates"]["before"]["Events"] if e["Type"] == "Terminated"][-1], 0)
    node.purge("again")


def test_a_task_that_ends_while_the_agent_is_dead():
    register("dead", [task("t", "while [ ! -e $NOMAD_ALLOC_DIR/end ]; do sleep 0.05; done"), task("main", "exec sleep 1000")], "service")
    alloc = node.wait_running("dead")[0]["ID"]
    wait_state(alloc, "t", "running")
    node.kill_launcher()
    case.write("%s/alloc/%s/alloc/end" % (node.data, alloc), "")
    case.equal(mounted(alloc, "t"), True, "while nobody is there who may unmount them")
    node.start()
    node.wait_ready()
    wait_removed(alloc, "t")
    check_no_leaks()
    node.purge("dead")


def test_those_of_an_allocation_that_has_ended_are_a_leak_which_the_next_start_removes():
    """An earlier version left them mounted until the allocation was removed."""
    register("old", [task("t", "true")])
    alloc = alloc_of("old")
    node.wait_allocs("old", [(0, "run", "complete")])
    wait_removed(alloc, "t")
    helper.mount("tmpfs", "%s/alloc/%s/t/secrets" % (node.data, alloc), "tmpfs", 0)
    case.until(lambda: [(one["Kind"], one["Name"]) for one in node.ask("/v1/agent/leaks")] == [("secrets", alloc + "/t")], 10, "the leak")
    node.replace_supervisor()
    wait_removed(alloc, "t")
    case.until(lambda: node.ask("/v1/agent/leaks") == [], 20, "no leaks")
    node.purge("old")


with api.Node() as node:
    case.run(globals())
