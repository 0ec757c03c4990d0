# SPDX-License-Identifier: Apache-2.0
"""Runs the same jobs on drover and on a client of the servers' own program, and compares events, exit codes and states.
Only in namespaces of its own (isolated.py).

    with alike.pair() as both:
        both.run("success", [alike.task("t", "exit 0")])
        both.same("success")

With alone=True a third agent, which works alone, runs the same jobs.

Intended differences are in the table of docs/differences.md, which this reads; any other difference is an error."""
import contextlib
import glob
import os
import re
import urllib.request

import client
import real
from lib import agent, api, case
from lib.cluster import node_of
from real import S, Server

OURS, THEIRS, ALONE = "ours", "theirs", "alone"
# Only what a shell needs: the original client takes longer to link the whole machine than all of this test.
CHROOT = ["/usr/bin/dash", "/usr/bin/sleep", "/etc/passwd", "/etc/group", *glob.glob("/lib/*-linux-gnu/libc.so.6"),
          *glob.glob("/lib*/ld-linux-*.so.*")]
TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "differences.md")
CONFIG = 'name = "%s"\nclient {\n  network_interface = "lo"\n}\nplugin "raw_exec" {\n  config {\n    enabled = true\n  }\n}\n' % ALONE
ACL = "acl {\n  enabled = true\n}\n"
WAITS = "while :; do sleep 0.1; done"


def restarts(attempts, mode="fail", interval=3600):
    """Returns a restart policy of a group."""
    return {"RestartPolicy": {"Attempts": attempts, "Interval": interval * S, "Delay": S // 10, "Mode": mode}}


def left_out():
    """Returns the types of events that the original client of this version adds to an ended task, and drover does not."""
    with open(TABLE, encoding="utf-8") as f:
        rows = re.findall(r"^\| `([\w ]+)` \| after the task's end \| (?:(all)|before (\d+)\.(\d+)) \|", f.read(), re.M)
    return {kind for kind, always, major, minor in rows if always or real.older_than(int(major), int(minor))}


def task(name, script, driver="raw_exec", **more):
    return api.task(name, "/bin/sh", ["-c", script], driver, **more)


def hook(name, script, when, sidecar=False, **more):
    return task(name, script, Lifecycle={"Hook": when, "Sidecar": sidecar}, **more)


def way(event):
    """Returns how the task ended; None if the original client does not know, because at a stop its executor may end before it answers."""
    lost = event["Type"] == "Terminated" and "error waiting on process: rpc error" in event["DisplayMessage"]
    return None if lost else (event["ExitCode"], event["Signal"])


def events_of(state):
    """Returns the events of a task: what happened, how it ended, whether it failed, and why it is restarted or not."""
    return [(e["Type"], way(e), e["FailsTask"], (e["Details"] or {}).get("restart_reason") if "Restarting" in e["Type"] else None)
            for e in state["Events"] or ()]


def seen(alloc):
    """Returns the values to compare: the state of the alloc and of each task, and its events."""
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


class Alone(Server):
    """The requests of a server, to an agent that works alone."""

    def __init__(self, node):  # pylint: disable=super-init-not-called
        self.node = node

    def request(self, method, path, body=None, headers=None):
        return self.node.do(method, path, body, headers)


class Pair:
    """Each job NAME is registered for each node, as NAME-ours and NAME-theirs, and runs on the node of that name."""

    def __init__(self, server, alone=None):
        self.server, self.left_out, self.met = server, left_out(), set()
        self.servers = {OURS: server, THEIRS: server, **({ALONE: Alone(alone)} if alone else {})}
        self.nodes = tuple(self.servers)

    def run(self, name, tasks, kind="batch", group=None, job=None):
        for node in self.nodes:
            made = api.job("%s-%s" % (name, node), group={**restarts(0), "Tasks": tasks, **(group or {})})
            self.run_on(node, made, Type=kind, **(job or {}))

    def run_on(self, node, made, **fields):
        self.servers[node].run(made, Constraints=[{"LTarget": "${node.unique.name}", "RTarget": node, "Operand": "="}], **fields)

    def apart(self):
        """Returns the nodes that do not share a server: one of the cluster, and the one that works alone."""
        return [n for n in self.nodes if n != OURS]

    def run_apart(self, make):
        """Registers the job that make() returns once in the cluster, and alone."""
        for node in self.apart():
            self.run_on(node, make())

    def do_apart(self, path, body):
        for node in self.apart():
            self.servers[node].do(path, body)

    def allocs(self, name):
        """Returns {node: its first alloc}, or None if a node has none yet."""
        found = {n: self.servers[n].allocs("%s-%s" % (name, n)) for n in self.nodes}
        return {n: self.servers[n].ask("/v1/allocation/" + a[0]["ID"]) for n, a in found.items()} if all(found.values()) else None

    def put(self, name, node, **items):
        """Changes the variable of a job that both nodes have."""
        path = "nomad/jobs/%s-%s" % (name, node)
        self.servers[node].do("/v1/var/" + path, {"Path": path, "Items": items})

    def said(self, alloc, name="t"):
        """Returns what a task has written."""
        path = "/v1/client/fs/logs/%s?task=%s&type=stdout&plain=true" % (alloc["ID"], name)
        if alloc["JobID"].endswith("-" + ALONE):
            answer = self.servers[ALONE].node.request("GET", path)
            return answer.text if answer.status == 200 else ""
        asked = urllib.request.Request("http://127.0.0.1:%d%s" % (self.server.ports[0], path), headers={"X-Nomad-Token": self.server.token or ""})
        try:
            with urllib.request.urlopen(asked, timeout=60) as answer:
                return answer.read().decode()
        except OSError:
            return ""

    def until(self, name, condition, what):
        """Waits until the allocs of all nodes satisfy the condition. Returns them."""
        def so():
            found = self.allocs(name)
            return found if found and all(condition(a) for a in found.values()) else None
        try:
            return case.until(so, 120, "the allocations of %s to %s" % (name, what))
        except AssertionError:
            for node, alloc in (self.allocs(name) or {}).items():
                print("  %s: %s\n%s" % (node, seen(alloc), details(alloc)))
            raise

    def agreed(self, theirs, ours):
        """Returns the values of the original client, without those that drover leaves out on purpose, and with drover's where the original
        has lost one."""
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
            for node in self.nodes:
                self.servers[node].purge("%s-%s" % (name, node))

    def same(self, *names):
        """Checks that both allocs of each job end, in the same way."""
        wrong = []
        for name in names:
            self.until(name, lambda a: a["ClientStatus"] in ("complete", "failed") and
                       all(t["State"] == "dead" for t in a["TaskStates"].values()), "end")

            def equal(job=name):
                ours, theirs = (seen(self.allocs(job)[n]) for n in (OURS, THEIRS))
                return ours == self.agreed(theirs, ours)
            try:
                # The last update of a client may reach the servers late.
                case.until(equal, 30, name + " to be the same on both nodes")
            except AssertionError as e:
                wrong += ["%s: %s" % (name, e)] + ["%s: %s\n%s" % (n, seen(a), details(a)) for n, a in self.allocs(name).items()]
            self.purge(name)
        if wrong:
            raise AssertionError("\n".join(wrong))

    def wait_said(self, name):
        """Waits until both tasks have written that they are ready."""
        for alloc in self.until(name, running, "run").values():
            case.until(lambda a=alloc: "on\n" in self.said(a), 60, "the task of %s to write that it is ready" % name)

    def stop(self, name, query=""):
        for node in self.nodes:
            self.servers[node].request("DELETE", "/v1/job/%s-%s%s" % (name, node, query))


@contextlib.contextmanager
def pair(env=None, alone=False, acl=False):
    """env: variables of the original client. acl: servers and agents have ACLs, and the requests have their first tokens."""
    more = ACL if acl else ""
    chroot = "chroot_env {\n%s\n}" % "\n".join('"%s" = "%s"' % (p, "/bin/sh" if p.endswith("dash") else p) for p in CHROOT)
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(Server(more=more))
        if acl:
            server.token = server.do("/v1/acl/bootstrap")["SecretID"]
        stack.enter_context(node_of(server, name=OURS, more=more))
        stack.enter_context(client.Original(server, THEIRS, chroot, env=env, more=more))
        node = stack.enter_context(api.Node(args=agent.config_args(CONFIG + more))) if alone else None
        if acl and alone:
            node.token = node.do("POST", "/v1/acl/bootstrap")["SecretID"]
        case.until(lambda: {n["Name"] for n in server.ask("/v1/nodes") if n["Status"] == "ready"} == {OURS, THEIRS}, 120, "two nodes")
        yield Pair(server, node)
