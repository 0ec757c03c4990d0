#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests clusters of real servers: several nodes, upgrades of servers, interrupted links, killed processes, and a CSI driver other than
csi-local. In namespaces of its own: tests/nomad/isolated.py runs it, for `make check-nomad NOMAD=path`.

    tests/nomad/isolated.py tests/nomad/check_clusters.py PATH [test_…]…

NOMAD_NEXT=path is the program that the servers are upgraded to. CSI_DRIVER is a command line for sh, where $CSI_ENDPOINT is the socket and
$CSI_STATE a directory of the driver's own."""
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import api, binary, case  # noqa: E402
from lib.cluster import events, node_of, processes_of  # noqa: E402
from lib.helper import libc  # noqa: E402
import client  # noqa: E402
import real  # noqa: E402
from real import S, Server, sleeper  # noqa: E402

CLONE_NEWNET = 0x40000000
HERE, THERE = "10.99.0.1", "10.99.0.2"
LEASE_S = 8
CAPABILITY = {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}
AGAIN = {"Attempts": 100, "Interval": 3600 * S, "Delay": S // 10, "Mode": "fail"}


# --- nodes ---

def named(one):
    """Returns {name: node} of the ready nodes."""
    return {n["Name"]: n for n in one.ask("/v1/nodes") if n["Status"] == "ready"}


def wait_named(one, *names):
    case.until(lambda: set(names) <= set(named(one)), 60, "ready nodes: " + " ".join(names))
    return named(one)


def on(*names):
    """Restricts a job to this node."""
    return [{"LTarget": "${node.unique.name}", "RTarget": "^(%s)$" % "|".join(names), "Operand": "regexp"}]


def where(one, job):
    """Returns the node of the job's only running alloc; None if there are none or several."""
    found = [a for a in one.allocs(job) if a["ClientStatus"] == "running" and a["DesiredStatus"] == "run"]
    return found[0]["NodeName"] if len(found) == 1 else None


def wait_on(one, job, *names):
    """Waits until the job runs on one of these nodes. Returns it."""
    case.until(lambda: where(one, job) in names, 90, "%s to run on %s" % (job, " or ".join(names)))
    return where(one, job)


def stopped(one, job):
    """Checks that only the expected tasks run."""
    return all(not processes_of(a["ID"]) for a in one.allocs(job) if a["DesiredStatus"] != "run" or a["ClientStatus"] != "running")


def purge(one, *jobs):
    for job in jobs:
        one.purge(job)
        case.until(lambda j=job: all(a["ClientStatus"] in ("complete", "failed", "lost") for a in one.allocs(j)), 60,
                   "the end of " + job)


def drain(one, node):
    one.do("/v1/node/%s/drain" % node["ID"], {"DrainSpec": {"Deadline": 60 * S}})
    case.until(lambda: one.ask("/v1/node/" + node["ID"])["DrainStrategy"] is None, 90, "the end of the drain of " + node["Name"])


def held(one, name):
    """Runs a task on node n1. Returns its allocation when the process is there."""
    one.run(sleeper(name), Constraints=on("n1"))
    alloc = one.wait(name, ["running"], 60)[0]["ID"]
    case.until(lambda: processes_of(alloc), 20, "its process")
    return alloc


def test_a_node_lands_and_comes_back_and_retires():
    with Server() as one, node_of(one, name="n1") as node:
        me = wait_named(one, "n1")["n1"]["ID"]
        alloc = held(one, "web")
        node.do("PUT", "/v1/agent/land", {"Deadline": 30 * S})
        case.equal((node.wait(90), processes_of(alloc)), (0, []))
        found = one.ask("/v1/node/" + me)
        case.equal((found["SchedulingEligibility"], found["DrainStrategy"], found["LastDrain"]["Status"], found["LastDrain"]["Meta"]),
                   ("ineligible", None, "complete", {"message": "landing"}))
        case.equal([a["ClientStatus"] for a in one.allocs("web") if a["ID"] == alloc], ["complete"])
        node.start()
        node.wait_ready()
        case.until(lambda: one.ask("/v1/node/" + me)["SchedulingEligibility"] == "eligible", 60, "the node to be eligible")
        again = one.wait("web", ["complete", "running"], 90)[1]["ID"]
        case.until(lambda: processes_of(again), 20, "the process of its successor")
        case.equal(list(named(one)), ["n1"])
        node.do("PUT", "/v1/agent/retire", {"Deadline": 30 * S})
        case.equal((node.wait(120), processes_of(again)), (0, []))
        case.contains(node.log(), "the servers have forgotten the node")
        case.equal([n["ID"] for n in one.ask("/v1/nodes")], [])
        node.start()
        case.equal(node.wait(), 78, "the exit code of a retired node")
        one.purge("web")


def test_an_ephemeral_node_that_was_purged_joins_as_another():
    with Server() as one, node_of(one, name="n1", client="ephemeral = true") as node:
        me = wait_named(one, "n1")["n1"]["ID"]
        alloc = held(one, "web")
        one.do("/v1/node/%s/purge" % me, {})
        new = case.until(lambda: [n["ID"] for n in one.ask("/v1/nodes") if n["ID"] != me and n["Status"] == "ready"], 90, "another node")
        case.until(lambda: processes_of(alloc) == [] and not os.path.exists(node.data + "/alloc/" + alloc), 60, "nothing of the old allocation")
        case.until(lambda: where(one, "web") == "n1", 120, "the job to run on the new node")
        case.equal((len(new), [a["NodeID"] for a in one.allocs("web") if a["ClientStatus"] == "running"]), (1, new))
        node.wait_ready()
        case.equal(node.ask("/v1/agent/leaks"), [])
        purge(one, "web")


@contextlib.contextmanager
def three_nodes(beats=real.PATIENT):
    with Server(beats=beats) as one, node_of(one, name="n1") as a, node_of(one, name="n2") as b, client.Original(one, "n3"):
        wait_named(one, "n1", "n2", "n3")
        yield one, {"n1": a, "n2": b}


def test_two_nodes_and_an_original_client_side_by_side():
    with three_nodes() as (one, _):
        apart = [{"Operand": "distinct_hosts", "RTarget": "true"}]
        one.run(sleeper("spread", count=3), Constraints=apart)
        found = one.wait("spread", ["running"] * 3, 60)
        case.equal(sorted(a["NodeName"] for a in found), ["n1", "n2", "n3"])
        one.run(sleeper("all"), Type="system")
        found = one.wait("all", ["running"] * 3, 60)
        case.equal(sorted(a["NodeName"] for a in found), ["n1", "n2", "n3"])
        one.run(api.job("once", "/bin/sh", ["-c", "exit 0"]), Type="sysbatch")
        one.wait("once", ["complete"] * 3, 60)
        purge(one, "spread", "all", "once")
        for pair in (("n1", "n2"), ("n1", "n3")):
            move_by_failure(one, pair)
            move_by_drain(one, pair)


def move_by_failure(one, pair):
    """The task fails on the node that a file names: it is rescheduled to the other node and back."""
    bad = case.directory() + "/bad"
    script = 'while ! grep -qx "$HERE" %s; do sleep 0.1; done; exit 1' % bad

    def fail_on(name):
        with open(bad + ".new", "w", encoding="ascii") as f:
            f.write(name + "\n")
        os.chmod(bad + ".new", 0o644)
        os.rename(bad + ".new", bad)
    fail_on("none")
    name = "moved-" + "-".join(pair)
    policy = {"Unlimited": True, "Delay": 5 * S, "DelayFunction": "constant"}
    one.run(api.job(name, "/bin/sh", ["-c", script], Env={"HERE": "${node.unique.name}"}, group={"ReschedulePolicy": policy}),
            Constraints=on(*pair))
    first = wait_on(one, name, *pair)
    other, = set(pair) - {first}
    fail_on(first)
    wait_on(one, name, other)
    fail_on(other)
    wait_on(one, name, first)
    case.equal({a["ClientStatus"] for a in one.allocs(name)}, {"failed", "running"})
    purge(one, name)


def move_by_drain(one, pair):
    name = "drained-" + "-".join(pair)
    one.run(sleeper(name), Constraints=on(*pair))
    first = wait_on(one, name, *pair)
    other, = set(pair) - {first}
    nodes = named(one)
    for left, entered in ((first, other), (other, first)):
        drain(one, nodes[left])
        wait_on(one, name, entered)
        case.until(lambda: stopped(one, name), 30, "the task on %s to end" % left)
        one.do("/v1/node/%s/eligibility" % nodes[left]["ID"], {"Eligibility": "eligible"})
    case.equal(sorted(a["ClientStatus"] for a in one.allocs(name)), ["complete", "complete", "running"])
    purge(one, name)


def test_allocs_of_a_silent_node_are_replaced_and_stopped_when_it_is_back():
    with three_nodes(real.STRICT) as (one, agents):
        for other in ("n2", "n3"):
            one.run(sleeper("held"), Constraints=on("n1", other))
            one.run(sleeper("only"), Constraints=on("n1"))
            if wait_on(one, "held", "n1", other) != "n1":
                nodes = named(one)
                drain(one, nodes[other])
                wait_on(one, "held", "n1")
                one.do("/v1/node/%s/eligibility" % nodes[other]["ID"], {"Eligibility": "eligible"})
            wait_on(one, "only", "n1")
            heartbeat = agents["n1"].kill("heartbeat", signal.SIGSTOP)
            try:
                wait_on(one, "held", other)
            finally:
                os.kill(heartbeat, signal.SIGCONT)
            wait_named(one, "n1")
            case.until(lambda: stopped(one, "held"), 60, "the task that was replaced to stop")
            wait_on(one, "only", "n1")
            case.until(lambda: stopped(one, "only"), 60, "the task that was lost to stop")
            purge(one, "held", "only")


# --- upgrades ---

def identity(one, node):
    """Returns the subject of the node's identity."""
    try:
        return one.ask("/v1/client/identity?node_id=" + node)["Claims"]["nomad_node_id"]
    except AssertionError:
        return None  # the node has none yet


def test_servers_are_upgraded_while_a_node_runs():
    following = os.environ.get("NOMAD_NEXT")
    if not following:
        case.skip("NOMAD_NEXT=path/to/nomad, the program for the upgrade, is not set")
    print("    from %s to %s" % (real.VERSION, real.version_of(following)), flush=True)
    with Server() as one, node_of(one) as node:
        me = one.wait_ready()
        drivers = ("raw_exec", "exec")
        for driver in drivers:
            one.run(sleeper("kept-" + driver, driver, count=2))
            one.wait("kept-" + driver, ["running"] * 2)
        allocs = {a["ID"]: processes_of(a["ID"]) for d in drivers for a in one.allocs("kept-" + d)}
        one.stop()
        one.binary = following
        one.start()
        case.equal(one.wait_ready(), me)
        for driver in drivers:
            one.run(sleeper("new-" + driver, driver))
            one.wait("new-" + driver, ["running"], 60)
        for alloc, pids in allocs.items():
            case.equal(processes_of(alloc), pids, "the task of " + alloc)
            case.equal(one.ask("/v1/allocation/" + alloc)["ClientStatus"], "running")
        if not real.older_than(1, 11, real.version_of(following)):
            case.until(lambda: identity(one, me) == me, 60, "an identity for the node that was registered without one")
        alloc = one.allocs("kept-raw_exec")[0]["ID"]
        one.do("/v1/allocation/%s/stop" % alloc)
        one.wait("kept-raw_exec", ["complete", "running", "running"] if one.allocs("kept-raw_exec")[0]["ID"] == alloc else
                 ["running", "complete", "running"], 60)
        node.kill("supervisor")
        one.run(sleeper("last"))
        one.wait("last", ["running"], 60)
        purge(one, "last", *("%s-%s" % (kind, d) for kind in ("kept", "new") for d in drivers))


def test_servers_that_come_back_without_their_data():
    """They know neither the node nor its allocs, and their index starts from the beginning: the node registers again, its old allocs are
    stopped after the second list, and new ones run."""
    for killed in (False, True):
        with Server() as one, node_of(one) as node:
            me = one.wait_ready()
            for turn in range(60):
                one.do("/v1/node/%s/eligibility" % me, {"Eligibility": "eligible" if turn % 2 else "ineligible"})
            one.run(sleeper("old"))
            old = one.wait("old", ["running"])[0]["ID"]
            one.stop()
            node.wait_log("no server is reachable: ", 30)
            if killed:
                node.kill("supervisor")
            shutil.rmtree(one.dir + "/data")
            one.start()
            one.run(sleeper("everywhere"), Type="system")  # placed at the registration of the node
            case.equal(one.wait_ready(), me)
            one.run(sleeper("new"))
            for job in ("new", "everywhere"):
                one.wait(job, ["running"], 60)
            case.until(lambda a=old: not processes_of(a), 60, "the unknown alloc to end")
            case.contains(node.log().split("removed, because the servers do not list it any more")[0], "asking again after the next heartbeat")
            purge(one, "new", "everywhere")


# --- links ---

def ip(*words):
    subprocess.run(["ip", *words], check=True)


@contextlib.contextmanager
def far_away():
    """Makes a network namespace with a veth link. Yields the words before a command that runs there."""
    with subprocess.Popen(["unshare", "-n", "sleep", "100000"]) as holder:
        try:
            mine = os.stat("/proc/self/ns/net").st_ino
            case.until(lambda: os.stat("/proc/%d/ns/net" % holder.pid).st_ino != mine, 20, "the namespace")
            there = ["nsenter", "-n", "-t", str(holder.pid), "--"]
            ip("link", "add", "near", "type", "veth", "peer", "name", "far")
            try:
                ip("link", "set", "far", "netns", str(holder.pid))
                ip("addr", "add", HERE + "/24", "dev", "near")
                ip("link", "set", "near", "up")
                for words in (("addr", "add", THERE + "/24", "dev", "far"), ("link", "set", "far", "up"), ("link", "set", "lo", "up")):
                    subprocess.run([*there, "ip", *words], check=True)
                yield there
            finally:
                ip("link", "del", "near")
        finally:
            holder.kill()


def kinds_of_silence(there, node):
    """Yields (name, function that causes the fault, function that ends it)."""
    def commands(*words):
        return [lambda w=w: subprocess.run(w, check=True) for w in words]

    def lose(target, wrap=()):
        return commands(*([*wrap, "ip", "route", word, "blackhole", target + "/32"] for word in ("add", "del")))
    yield "cut", *commands(*(["ip", "link", "set", "near", word] for word in ("down", "up")))
    yield "deaf", *lose(THERE)  # packets from the server are lost
    yield "mute", *lose(HERE, there)  # packets from the node are lost
    yield "hung", *(lambda s=s: node.kill("supervisor", s) for s in (signal.SIGSTOP, signal.SIGCONT))


def lease(seconds):
    """Returns the fields of a group."""
    return {"StopAfterClientDisconnect": seconds * S} if real.older_than(1, 8) else {"Disconnect": {"StopOnClientAfter": seconds * S}}


def patience():
    return {"MaxClientDisconnect": 3600 * S} if real.older_than(1, 8) else {"Disconnect": {"LostAfter": 3600 * S}}


def test_a_link_that_is_cut_or_half_open_and_a_supervisor_that_hangs():
    with far_away() as there, Server(ip=HERE, beats=real.STRICT) as one, node_of(one, wrap=there) as node:
        one.wait_ready()
        again = {"ReschedulePolicy": {"Unlimited": True, "Delay": 5 * S, "DelayFunction": "constant"}}
        one.run(sleeper("stays", group=patience()))
        alloc = one.wait("stays", ["running"])[0]["ID"]
        pids = processes_of(alloc)
        for name, bring, end in kinds_of_silence(there, node):
            leased = "leased-" + name
            one.run(sleeper(leased, group={**lease(LEASE_S), **again}))
            wait_on(one, leased, "n1")
            first = one.allocs(leased)[0]["ID"]
            bring()
            try:
                case.until(lambda a=first: not processes_of(a), LEASE_S + 60, "the lease to end: " + name)
                case.equal(processes_of(alloc), pids, "processes of the task without a lease")
                one.wait_ready("disconnected")
            finally:
                end()
            one.wait_ready()
            case.until(lambda: one.ask("/v1/allocation/" + alloc)["ClientStatus"] == "running", 60, "the alloc to be running again")
            case.equal(processes_of(alloc), pids, "processes of the task without a lease")
            wait_on(one, leased, "n1")
            print("    %s: the lease ended %s late" % (name, lateness(one, first)), flush=True)
            case.equal(len(one.allocs("stays")), 1)
            case.equal(node.log().count("recovered ") <= 1, True, "processes that were not killed")
            purge(one, leased)
        purge(one, "stays")


def lateness(one, alloc):
    """Returns how late the stop was, from the event of the task."""
    def look():
        said = " ".join(e["DisplayMessage"] + str(e["Details"]) for e in one.ask("/v1/allocation/" + alloc)["TaskStates"]["t"]["Events"])
        return re.search(r"the stop began (\S+) after the limit", said)
    return case.until(look, 30, "the event of the lease").group(1)


# --- kills ---

def with_plugin(one, command, args, env=None):
    one.run(api.job("plugin", command, args, Env=env or {}, CSIPluginConfig={"ID": "p", "Type": "monolith", "MountDir": "/csi"},
                    group={"RestartPolicy": AGAIN}))
    one.wait("plugin", ["running"])

    def healthy():
        try:
            return one.ask("/v1/plugin/csi/p")["NodesHealthy"] == 1
        except AssertionError:
            return False
    case.until(healthy, 60, "the plugin to be healthy")


def create_volume(one, name, **fields):
    one.do("/v1/volume/csi/%s/create" % name, {"Volumes": [{
        "ID": name, "Name": name, "PluginID": "p", "RequestedCapacityMin": 1 << 20, "RequestedCapabilities": [CAPABILITY],
        **fields}]})


def writer(name, source, driver="exec"):
    script = "while echo $NOMAD_ALLOC_ID >> %s/log; do sleep 0.2; done" % ("/d" if driver == "exec" else "$NOMAD_TASK_DIR/../d")
    return api.job(name, "/bin/sh", ["-c", script], driver=driver, VolumeMounts=[{"Volume": "v", "Destination": "/d"}], group={
        "RestartPolicy": AGAIN, "Volumes": {"v": {"Name": "v", "Type": "csi", "Source": source, **CAPABILITY}}})


class Kept:
    """Returns what must be the same after each kill."""

    def __init__(self, one, jobs):
        self.one, self.jobs, self.now = one, jobs, None
        self.now = self.look()

    def look(self):
        return {job: {a["ID"]: (a["ClientStatus"], a["DesiredStatus"], self.first(a["ID"])) for a in self.one.allocs(job)}
                for job in self.jobs}

    @staticmethod
    def first(alloc):
        """Waits until it is the same again, because children of a shell start and end."""
        return min(processes_of(alloc), default=0)

    def check(self, what):
        case.equal(self.look(), self.now, "running processes after the kill of " + what)


def test_each_process_is_killed_while_allocs_run():
    store = case.directory()
    os.chmod(store, 0o777)
    with Server() as one, node_of(one) as node:
        one.wait_ready()
        with_plugin(one, binary("csi-local"), ["-root", store])
        create_volume(one, "data")
        one.run(writer("writer", "data"))
        for driver in ("raw_exec", "exec"):
            one.run(sleeper("many-" + driver, driver, count=5, group={"RestartPolicy": AGAIN}))
        jobs = {"plugin": 1, "writer": 1, "many-raw_exec": 5, "many-exec": 5}
        for job, count in jobs.items():
            one.wait(job, ["running"] * count)
        kept = Kept(one, jobs)
        for name in ("supervisor", "mount-helper", "file-helper", "exec-helper", "csi-helper", "heartbeat", "launcher"):
            if name == "launcher":
                node.kill_launcher()
                node.start()
                node.wait_ready()
            else:
                old = node.kill(name)
                if name != "csi-helper":  # started on demand
                    node.wait_process(name, old, 60)
            one.run(sleeper("after-" + name))
            one.wait("after-" + name, ["running"], 90)
            one.wait_ready()
            kept.check("the kill of " + name)
            purge(one, "after-" + name)
        purge(one, "writer")
        case.until(lambda: not one.ask("/v1/volume/csi/data")["WriteAllocs"], 60, "the claim to be released")
        one.request("DELETE", "/v1/volume/csi/data/delete")
        purge(one, "many-raw_exec", "many-exec", "plugin")


def test_kills_while_allocs_start_and_stop():
    with Server() as one, node_of(one) as node:
        one.wait_ready()
        for name in ("supervisor", "mount-helper", "file-helper", "exec-helper", "heartbeat"):
            job = "begun-" + name
            one.run(sleeper(job, count=20, group={"RestartPolicy": AGAIN}))
            case.until(lambda j=job: any(processes_of(a["ID"]) for a in one.allocs(j)), 60, "the first task to run")
            node.kill(name)
            found = one.wait(job, ["running"] * 20, 120)
            case.equal([len(processes_of(a["ID"])) for a in found], [1] * 20, "tasks of each alloc")
            one.purge(job)
            case.until(lambda: any(not processes_of(a["ID"]) for a in found), 60, "the first task to end")
            if name in node.processes():
                node.kill(name)
            case.until(lambda: not any(processes_of(a["ID"]) for a in found), 120, "the end of all tasks")


def test_the_volume_of_a_silent_node_is_released_when_it_is_back():
    store = case.directory()
    os.chmod(store, 0o777)
    with Server(beats=real.STRICT) as one, node_of(one) as node:
        one.wait_ready()
        with_plugin(one, binary("csi-local"), ["-root", store])
        create_volume(one, "data")
        one.run(writer("writer", "data"))
        first = one.wait("writer", ["running"])[0]["ID"]
        heartbeat = node.kill("heartbeat", signal.SIGSTOP)
        try:
            one.wait_ready("down")
            one.wait("writer", ["lost"], 60)
        finally:
            os.kill(heartbeat, signal.SIGCONT)
        one.wait_ready()
        case.until(lambda: not processes_of(first), 60, "the lost writer to end")
        wait_on(one, "writer", "n1")
        second = one.allocs("writer")[-1]["ID"]
        case.equal(list(one.ask("/v1/volume/csi/data")["WriteAllocs"]), [second])
        with open("%s/volumes/%s/log" % (store, one.ask("/v1/volume/csi/data")["ExternalID"]), encoding="ascii") as f:
            wrote = list(dict.fromkeys(f.read().split()))
        case.equal(wrote, [first, second], "the writers, one after the other")
        purge(one, "writer")
        case.until(lambda: not one.ask("/v1/volume/csi/data")["WriteAllocs"], 60, "the claim to be released")
        one.request("DELETE", "/v1/volume/csi/data/delete")
        purge(one, "plugin")


# --- another CSI driver ---

@contextlib.contextmanager
def other_driver():
    """A server and a node with the driver that the environment names. Yields both."""
    command = os.environ.get("CSI_DRIVER")
    if not command:
        case.skip("CSI_DRIVER, the command line of a driver, is not set")
    state = case.directory()
    with Server() as one, node_of(one) as node:
        one.wait_ready()
        # The directories that it makes must be writable for all, because the task is not root.
        with_plugin(one, "/bin/sh", ["-c", "umask 0; exec " + command], {"CSI_STATE": state})
        yield one, node
    shutil.rmtree("/run/mount", ignore_errors=True)  # mount(8), which drivers call, writes its notes there


def test_another_csi_driver():
    with other_driver() as (one, node):
        create_volume(one, "data")
        made = one.ask("/v1/volume/csi/data")
        print("    %s %s, volume %s" % (made["Provider"], made["ProviderVersion"], made["ExternalID"]), flush=True)
        first = life_of_volume(one, node, "data", [])
        # After it was deregistered, it is registered again by the driver's name for it.
        one.request("DELETE", "/v1/volume/csi/data")
        one.do("/v1/volume/csi/again", {"Volumes": [{"ID": "again", "Name": "again", "PluginID": "p", "ExternalID": made["ExternalID"],
                                                     "RequestedCapabilities": [CAPABILITY], "Context": made.get("Context") or {}}]})
        life_of_volume(one, node, "again", first)
        one.request("DELETE", "/v1/volume/csi/again/delete")
        create_volume(one, "data")
        case.equal(life_of_volume(one, node, "data", []) != [], True)
        one.request("DELETE", "/v1/volume/csi/data/delete")
        purge(one, "plugin")


def test_sizes_lists_and_snapshots_of_another_csi_driver():
    with other_driver() as (one, node):
        create_volume(one, "data")
        known = life_of_volume(one, node, "data", [])
        made = one.ask("/v1/volume/csi/data")
        listed = one.ask("/v1/volumes/external?plugin_id=p")["Volumes"]
        case.equal([v["ExternalID"] for v in listed], [made["ExternalID"]])
        create_volume(one, "data", RequestedCapacityMin=4 << 20)
        case.equal(one.ask("/v1/volume/csi/data")["Capacity"] >= 4 << 20, True, "the volume that has grown")
        taken, = one.do("/v1/volumes/snapshot", {"Snapshots": [{"SourceVolumeID": "data", "Name": "then"}]})["Snapshots"]
        case.equal(taken["ExternalSourceVolumeID"], made["ExternalID"])
        kept = one.ask("/v1/volumes/snapshot?plugin_id=p")["Snapshots"]
        case.equal([k["ID"] for k in kept], [taken["ID"]])
        later = life_of_volume(one, node, "data", known)
        create_volume(one, "old", SnapshotID=taken["ID"], RequestedCapacityMin=4 << 20)
        life_of_volume(one, node, "old", known)
        create_volume(one, "copy", CloneID=made["ExternalID"], RequestedCapacityMin=4 << 20)
        life_of_volume(one, node, "copy", later)
        one.request("DELETE", "/v1/volumes/snapshot?plugin_id=p&snapshot_id=" + taken["ID"])
        case.equal(one.ask("/v1/volumes/snapshot?plugin_id=p")["Snapshots"] or [], [])
        for name in ("data", "old", "copy"):
            one.request("DELETE", "/v1/volume/csi/%s/delete" % name)
        case.equal(one.ask("/v1/volumes/external?plugin_id=p")["Volumes"] or [], [])
        purge(one, "plugin")


def written(node, alloc):
    """Returns the allocs in the volume's log, in order."""
    answer = node.request("GET", "/v1/client/fs/logs/%s?task=t&type=stdout&plain=true" % alloc)
    return list(dict.fromkeys(answer.text.split()))


def life_of_volume(one, node, name, known):
    """Claims and writes the volume, replaces the writer after a kill of the supervisor, and releases it. known: the earlier writers.
    Returns all writers."""
    job = writer("w-" + name, name)
    task = job["Job"]["TaskGroups"][0]["Tasks"][0]
    task["Config"]["args"] = ["-c", "echo $NOMAD_ALLOC_ID >> /d/log; cat /d/log; exec sleep 1000"]
    job["Job"]["TaskGroups"][0]["Update"] = {"MaxParallel": 1, "HealthCheck": "task_states", "MinHealthyTime": S}
    one.run(job)
    first = one.wait("w-" + name, ["running"], 90)[0]["ID"]
    case.until(lambda: written(node, first) == [*known, first], 30, "writers in the volume's log")
    case.equal(list(one.ask("/v1/volume/csi/" + name)["WriteAllocs"]), [first])
    pids = processes_of(first)
    node.kill("supervisor")
    node.wait_ready()
    task["Env"] = {"CHANGED": "1"}
    case.equal(processes_of(first), pids, "processes after the kill of the supervisor")
    one.run(job)
    second = one.wait("w-" + name, ["complete", "running"], 120)[1]["ID"]
    case.until(lambda: written(node, second) == [*known, first, second], 30, "the data of the first writer, for the second")
    case.contains(" ".join(events(one.ask("/v1/allocation/" + second))), "Started")
    purge(one, "w-" + name)
    case.until(lambda: not one.ask("/v1/volume/csi/" + name)["WriteAllocs"], 90, "the claim to be released")
    case.until(lambda: not [line for line in mounts() if "/csi/" in line and "/per-alloc/" in line], 60, "the volume to be unmounted")
    return [*known, first, second]


def mounts():
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return f.readlines()


if libc.unshare(CLONE_NEWNET) < 0:  # its own ports and veth links
    sys.exit("no network namespace")
ip("link", "set", "lo", "up")
case.run(globals())
