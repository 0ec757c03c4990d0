# SPDX-License-Identifier: Apache-2.0
"""The same jobs on drover and on a client of the servers' own program, side by side: the same events, exit codes and states.
Only in namespaces of its own (isolated.py).

    with alike.pair() as both:
        both.run("success", [alike.task("t", "exit 0")])
        both.same("success")

What differs on purpose is in docs/differences.md, whose table this reads, and nothing else may."""
import contextlib
import glob
import os
import re
import urllib.request

import client
import real
from lib import api, case
from lib.cluster import node_of
from real import S, Server

OURS, THEIRS = "ours", "theirs"
# What a shell needs: linking the whole machine takes the original client longer than all of this test.
CHROOT = ["/usr/bin/dash", "/usr/bin/sleep", "/etc/passwd", "/etc/group", *glob.glob("/lib/*-linux-gnu/libc.so.6"),
          *glob.glob("/lib*/ld-linux-*.so.*")]
TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "differences.md")
WAITS = "while :; do sleep 0.1; done"


def restarts(attempts, mode="fail", interval=3600):
    """A group's policy."""
    return {"RestartPolicy": {"Attempts": attempts, "Interval": interval * S, "Delay": S // 10, "Mode": mode}}


def left_out():
    """The types of events that the original client of this version adds to a task that has ended, and drover does not."""
    with open(TABLE, encoding="utf-8") as f:
        rows = re.findall(r"^\| `([\w ]+)` \| after the task's end \| (?:(all)|before (\d+)\.(\d+)) \|", f.read(), re.M)
    return {kind for kind, always, major, minor in rows if always or real.older_than(int(major), int(minor))}


def task(name, script, driver="raw_exec", **more):
    return api.task(name, "/bin/sh", ["-c", script], driver, **more)


def hook(name, script, when, sidecar=False, **more):
    return task(name, script, Lifecycle={"Hook": when, "Sidecar": sidecar}, **more)


def way(event):
    """How the task ended, None where the original client does not know: on a stop its executor may be gone before it answers."""
    lost = event["Type"] == "Terminated" and "error waiting on process: rpc error" in event["DisplayMessage"]
    return None if lost else (event["ExitCode"], event["Signal"])


def events_of(state):
    """Of a task: what happened, how it ended, whether that fails it, and why it is restarted or not."""
    return [(e["Type"], way(e), e["FailsTask"], (e["Details"] or {}).get("restart_reason") if "Restarting" in e["Type"] else None)
            for e in state["Events"] or ()]


def seen(alloc):
    """What is compared: the state of the alloc and of each task, and its events."""
    return {"status": (alloc["DesiredStatus"], alloc["ClientStatus"], alloc["ClientDescription"]),
            "tasks": {name: {"state": (state["State"], state["Failed"], state["Restarts"]), "events": events_of(state)}
                      for name, state in (alloc["TaskStates"] or {}).items()}}


def details(alloc):
    return "\n".join("    %s: %s" % (name, [(e["Type"], e["DisplayMessage"]) for e in state["Events"] or ()])
                     for name, state in (alloc["TaskStates"] or {}).items())


def running(alloc):
    return alloc["ClientStatus"] == "running"


def has(kind, name="t", count=1):
    return lambda a: [e["Type"] for e in ((a.get("TaskStates") or {}).get(name) or {"Events": []})["Events"]].count(kind) >= count


class Pair:
    """Of a job NAME there are two, NAME-ours and NAME-theirs, each on the node of that name."""

    def __init__(self, server):
        self.server, self.left_out, self.met = server, left_out(), set()

    def run(self, name, tasks, kind="batch", group=None, job=None):
        for node in (OURS, THEIRS):
            made = api.job("%s-%s" % (name, node), group={**restarts(0), "Tasks": tasks, **(group or {})})
            self.server.run(made, Type=kind, Constraints=[{"LTarget": "${node.unique.name}", "RTarget": node, "Operand": "="}],
                            **(job or {}))

    def allocs(self, name):
        """{node: its first alloc}, once both are there."""
        found = {n: self.server.allocs("%s-%s" % (name, n)) for n in (OURS, THEIRS)}
        return {n: self.server.ask("/v1/allocation/" + a[0]["ID"]) for n, a in found.items()} if all(found.values()) else None

    def until(self, name, condition, what):
        """Until both allocs are so: they."""
        def so():
            found = self.allocs(name)
            return found if found and all(condition(a) for a in found.values()) else None
        try:
            return case.until(so, 120, "both allocations of %s to %s" % (name, what))
        except AssertionError:
            for node, alloc in (self.allocs(name) or {}).items():
                print("  %s: %s\n%s" % (node, seen(alloc), details(alloc)))
            raise

    def agreed(self, theirs, ours):
        """What the original said, without what drover leaves out on purpose, and with what it says of what the original lost."""
        for name, state in theirs["tasks"].items():
            events = state["events"]
            while len(events) > 1 and events[-1][0] in self.left_out and events[-2][0] in ("Terminated", "Not Restarting"):
                self.met.add(events.pop()[0])
            known = ours["tasks"].get(name, {"events": []})["events"]
            if len(known) == len(events):
                state["events"] = [(e[0], e[1] or known[i][1], *e[2:]) for i, e in enumerate(events)]
        return theirs

    def purge(self, *names):
        for name in names:
            for node in (OURS, THEIRS):
                self.server.purge("%s-%s" % (name, node))

    def same(self, *names):
        """Both allocs of each job have come to an end, and it is the same."""
        wrong = []
        for name in names:
            self.until(name, lambda a: a["ClientStatus"] in ("complete", "failed") and
                       all(t["State"] == "dead" for t in a["TaskStates"].values()), "end")

            def equal(job=name):
                ours, theirs = (seen(self.allocs(job)[n]) for n in (OURS, THEIRS))
                return ours == self.agreed(theirs, ours)
            try:
                # What a client says last may reach the servers late.
                case.until(equal, 30, name + " to have gone alike")
            except AssertionError as e:
                wrong += ["%s: %s" % (name, e)] + ["%s: %s\n%s" % (n, seen(a), details(a)) for n, a in self.allocs(name).items()]
            self.purge(name)
        if wrong:
            raise AssertionError("\n".join(wrong))

    def wait_said(self, name):
        """Until both tasks have written that they are ready for what comes."""
        for alloc in self.until(name, running, "run").values():
            url = "http://127.0.0.1:%d/v1/client/fs/logs/%s?task=t&type=stdout&plain=true" % (self.server.ports[0], alloc["ID"])

            def said(at=url):
                try:
                    with urllib.request.urlopen(at, timeout=60) as answer:
                        return b"on\n" in answer.read()
                except OSError:
                    return False
            case.until(said, 60, "the task of %s to say something" % name)

    def stop(self, name, query=""):
        for node in (OURS, THEIRS):
            self.server.request("DELETE", "/v1/job/%s-%s%s" % (name, node, query))


@contextlib.contextmanager
def pair():
    chroot = "chroot_env {\n%s\n}" % "\n".join('"%s" = "%s"' % (p, "/bin/sh" if p.endswith("dash") else p) for p in CHROOT)
    with Server() as server, node_of(server, name=OURS), client.Original(server, THEIRS, chroot):
        case.until(lambda: {n["Name"] for n in server.ask("/v1/nodes") if n["Status"] == "ready"} == {OURS, THEIRS}, 120, "two nodes")
        yield Pair(server)
