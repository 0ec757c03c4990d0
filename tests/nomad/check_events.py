#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same jobs on drover and on a client of the servers' own program, side by side: the same events, exit codes and states.
In namespaces of its own: tests/nomad/isolated.py runs it, for `make check-nomad NOMAD=path`.

    tests/nomad/isolated.py tests/nomad/check_events.py PATH [test_…]…

What differs on purpose is in docs/differences.md, whose table this reads, and nothing else may."""
import glob
import os
import re
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import api, case  # noqa: E402
from lib.cluster import node_of  # noqa: E402
import client  # noqa: E402
import real  # noqa: E402
from real import S, Server  # noqa: E402

OURS, THEIRS = "ours", "theirs"
# What a shell needs: linking the whole machine takes the original client longer than all of this test.
CHROOT = ["/usr/bin/dash", "/usr/bin/sleep", "/etc/passwd", "/etc/group", *glob.glob("/lib/*-linux-gnu/libc.so.6"),
          *glob.glob("/lib*/ld-linux-*.so.*")]
ONCE = {"RestartPolicy": {"Attempts": 0, "Interval": 3600 * S, "Delay": S // 10, "Mode": "fail"}}
AGAIN = {"RestartPolicy": {"Attempts": 2, "Interval": 3600 * S, "Delay": S // 10, "Mode": "fail"}}
TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "differences.md")


def left_out():
    """The types of events that the original client of this version adds to a task that has ended, and drover does not."""
    with open(TABLE, encoding="utf-8") as f:
        rows = re.findall(r"^\| `([\w ]+)` \| after the task's end \| (?:(all)|before (\d+)\.(\d+)) \|", f.read(), re.M)
    return {kind for kind, always, major, minor in rows if always or real.older_than(int(major), int(minor))}


def task(name, script, driver="raw_exec", **more):
    return api.task(name, "/bin/sh", ["-c", script], driver, **more)


def hook(name, script, when, sidecar=False, **more):
    return task(name, script, Lifecycle={"Hook": when, "Sidecar": sidecar}, **more)


WAITS = "while :; do sleep 0.1; done"
# Of one task to another of its alloc. Who has seen it waits still: the other's client knows that it has started, too, by then.
TELL, WAIT = "echo on > $NOMAD_ALLOC_DIR/data/on", "while [ ! -e $NOMAD_ALLOC_DIR/data/on ]; do sleep 0.1; done; sleep 2"


def way(event):
    """How the task ended, None where the original client does not know: on a stop its executor may be gone before it answers."""
    lost = event["Type"] == "Terminated" and "error waiting on process: rpc error" in event["DisplayMessage"]
    return None if lost else (event["ExitCode"], event["Signal"])


def seen(alloc):
    """What is compared: the state of the alloc and of each task, and its events."""
    tasks = {}
    for name, state in (alloc["TaskStates"] or {}).items():
        tasks[name] = {"state": (state["State"], state["Failed"], state["Restarts"]),
                       "events": [(e["Type"], way(e), e["FailsTask"]) for e in state["Events"] or ()]}
    return {"status": (alloc["DesiredStatus"], alloc["ClientStatus"]), "tasks": tasks}


def details(alloc):
    return "\n".join("    %s: %s" % (name, [(e["Type"], e["DisplayMessage"]) for e in state["Events"] or ()])
                     for name, state in (alloc["TaskStates"] or {}).items())


def allocs(name):
    """{node: its alloc}, once both are there."""
    found = {n: server.allocs("%s-%s" % (name, n)) for n in (OURS, THEIRS)}
    return {n: server.ask("/v1/allocation/" + a[0]["ID"]) for n, a in found.items()} if all(found.values()) else None


def run(name, tasks, kind="batch", group=None):
    for node in (OURS, THEIRS):
        made = api.job("%s-%s" % (name, node), group={**ONCE, "Tasks": tasks, **(group or {})})
        server.run(made, Type=kind, Constraints=[{"LTarget": "${node.unique.name}", "RTarget": node, "Operand": "="}])


def until(name, condition, what):
    """Until both allocs are so: they."""
    def so():
        found = allocs(name)
        return found if found and all(condition(a) for a in found.values()) else None
    try:
        return case.until(so, 120, "both allocations of %s to %s" % (name, what))
    except AssertionError:
        for node, alloc in (allocs(name) or {}).items():
            print("  %s: %s\n%s" % (node, seen(alloc), details(alloc)))
        raise


def agreed(theirs, ours):
    """What the original said, without what drover leaves out on purpose, and with what it says of what the original lost."""
    for name, state in theirs["tasks"].items():
        events = state["events"]
        while len(events) > 1 and events[-1][0] in LEFT_OUT and events[-2][0] in ("Terminated", "Not Restarting"):
            met.add(events.pop()[0])
        known = ours["tasks"].get(name, {"events": []})["events"]
        if len(known) == len(events):
            state["events"] = [(k, how or known[i][1], fails) for i, (k, how, fails) in enumerate(events)]
    return theirs


def same(*names):
    """Both allocs of each job have come to an end, and it is the same."""
    wrong = []
    for name in names:
        until(name, lambda a: a["ClientStatus"] in ("complete", "failed") and
              all(t["State"] == "dead" for t in a["TaskStates"].values()), "end")

        def equal(job=name):
            ours, theirs = (seen(allocs(job)[n]) for n in (OURS, THEIRS))
            return ours == agreed(theirs, ours)
        try:
            # What a client says last may reach the servers late.
            case.until(equal, 30, name + " to have gone alike")
        except AssertionError as e:
            wrong += ["%s: %s" % (name, e)] + ["%s: %s\n%s" % (n, seen(a), details(a)) for n, a in allocs(name).items()]
        for node in (OURS, THEIRS):
            server.purge("%s-%s" % (name, node))
    if wrong:
        raise AssertionError("\n".join(wrong))


def running(alloc):
    return alloc["ClientStatus"] == "running"


def has(kind, name="t", count=1):
    return lambda a: [e["Type"] for e in ((a.get("TaskStates") or {}).get(name) or {"Events": []})["Events"]].count(kind) >= count


def wait_said(name):
    """Until both tasks have written that they are ready for what comes."""
    for alloc in until(name, running, "run").values():
        url = "http://127.0.0.1:%d/v1/client/fs/logs/%s?task=t&type=stdout&plain=true" % (server.ports[0], alloc["ID"])

        def said(at=url):
            try:
                with urllib.request.urlopen(at, timeout=60) as answer:
                    return b"on\n" in answer.read()
            except OSError:
                return False
        case.until(said, 60, "the task of %s to say something" % name)


def stop(name):
    for node in (OURS, THEIRS):
        server.request("DELETE", "/v1/job/%s-%s" % (name, node))


def test_success_and_failure():
    run("success", [task("t", "exit 0")])
    run("failure", [task("t", "exit 3")])
    run("restarts", [task("t", "exit 3")], group=AGAIN)
    run("signalled", [task("t", "kill -TERM $$")])
    run("nothing", [api.task("t", "/no/such/command")])
    same("success", "failure", "restarts", "signalled", "nothing")


def test_stops():
    run("stop", [task("t", "echo on; " + WAITS)], "service")
    run("stubborn", [task("t", "trap '' INT; echo on; " + WAITS, KillTimeout=S)], "service")
    run("term", [task("t", "trap 'exit 7' TERM; echo on; " + WAITS, KillSignal="SIGTERM")], "service")
    run("delayed", [task("t", "echo on; " + WAITS, ShutdownDelay=S)], "service")
    names = ("stop", "stubborn", "term", "delayed")
    for name in names:
        wait_said(name)
    for name in names:
        stop(name)
    same(*names)


def test_what_an_operator_asks():
    run("restarted", [task("t", WAITS)], "service")
    run("told", [task("t", "trap 'exit 9' USR1; echo on; " + WAITS)], "batch")
    wait_said("told")
    restarted, told = until("restarted", running, "run"), until("told", running, "run")
    for alloc in restarted.values():
        server.do("/v1/client/allocation/%s/restart" % alloc["ID"])
    for alloc in told.values():
        server.do("/v1/client/allocation/%s/signal" % alloc["ID"], {"Signal": "SIGUSR1", "Task": "t"})
    same("told")
    until("restarted", has("Started", count=2), "begin again")
    stop("restarted")
    same("restarted")


def test_all_tasks_begin_anew():
    run("anew", [hook("before", "exit 0", "prestart"), task("t", "echo on; " + WAITS), hook("after", "exit 0", "poststart"),
                 hook("end", "exit 0", "poststop")], "service")
    for alloc in until("anew", has("Terminated", "after"), "run what follows the start").values():
        server.do("/v1/client/allocation/%s/restart" % alloc["ID"], {"AllTasks": True})
    until("anew", has("Terminated", "after", 2), "run all of it again")
    stop("anew")
    same("anew")


def test_tasks_that_belong_together():
    run("leader", [task("t", WAIT + "; exit 0", Leader=True), task("other", TELL + "; " + WAITS)])
    run("sibling", [task("t", WAIT + "; exit 5"), task("other", TELL + "; " + WAITS)])
    run("hooks", [hook("before", "exit 0", "prestart"), hook("beside", WAITS, "prestart", True), task("t", WAIT + "; exit 0"),
                  hook("after", TELL + "; exit 0", "poststart"), hook("end", "exit 0", "poststop")])
    run("failed-before", [hook("before", "exit 4", "prestart"), task("t", WAITS), hook("end", "exit 0", "poststop")])
    run("killed-hooks", [task("t", "echo on; " + WAITS), hook("end", "exit 0", "poststop")], "service")
    wait_said("killed-hooks")
    stop("killed-hooks")
    same("leader", "sibling", "hooks", "failed-before", "killed-hooks")
    case.equal(met, LEFT_OUT, "what docs/differences.md says that the original adds")


def test_the_exec_driver():
    run("exec-success", [task("t", "exit 0", "exec")])
    run("exec-failure", [task("t", "exit 3", "exec")], group=AGAIN)
    run("oom", [task("t", "x=aaaaaaaaaaaaaaaa; while :; do x=$x$x; done", "exec")])
    run("exec-stop", [task("t", "trap 'exit 7' INT; echo on; " + WAITS, "exec")], "service")
    wait_said("exec-stop")
    stop("exec-stop")
    same("exec-success", "exec-failure", "oom", "exec-stop")


chroot = "chroot_env {\n%s\n}" % "\n".join('"%s" = "%s"' % (p, "/bin/sh" if p.endswith("dash") else p) for p in CHROOT)
# No node is lost while the machine has no time for its heartbeats.
BEATS = 'heartbeat_grace = "300s"\n  min_heartbeat_ttl = "10s"'
with Server(beats=BEATS) as server, node_of(server, name=OURS), client.Original(server, THEIRS, chroot):
    case.until(lambda: {n["Name"] for n in server.ask("/v1/nodes") if n["Status"] == "ready"} == {OURS, THEIRS}, 120, "two nodes")
    print("  servers and client: " + real.VERSION)
    LEFT_OUT, met = left_out(), set()
    case.run(globals())
