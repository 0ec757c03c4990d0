#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A CSI driver whose storage is in the network, in a cluster of real servers: two nodes and an original client share its volumes, and make it
see the same calls. In namespaces of its own: tests/nomad/isolated.py runs it, for `make check-csi-network NOMAD=path`. The driver is that of
s3_driver.py if CSI_S3 is set, and otherwise that of nfs_driver.py, whose calls check_csi_nfs.py compares.

    tests/nomad/isolated.py tests/nomad/check_csi_network_cluster.py PATH [test_…]…"""
import contextlib
import os
import re
import shutil
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import case  # noqa: E402
from lib.cluster import node_of, processes_of  # noqa: E402
import alike  # noqa: E402
import client  # noqa: E402
import real  # noqa: E402
import network_volumes  # noqa: E402
import nfs_driver  # noqa: E402
import s3_driver  # noqa: E402
from real import S, Server  # noqa: E402
from network_volumes import READS, WRITES  # noqa: E402

driver = s3_driver if os.environ.get("CSI_S3") else nfs_driver
OURS, THEIRS = ("n1", "n2"), "n3"
NODES = (*OURS, THEIRS)
CHROOT = "chroot_env {\n%s\n}" % "\n".join('"%s" = "%s"' % (p, "/bin/sh" if p.endswith("dash") else p) for p in (
    *alike.CHROOT, "/usr/bin/cat", "/usr/bin/dd"))


def on(*nodes):
    return {"LTarget": "${node.unique.name}", "RTarget": "^(%s)$" % "|".join(nodes), "Operand": "regexp"}


class Bed:
    """agents: {name: agent} of this project; original: the other client."""

    def __init__(self, server, storage, agents, original):
        self.server, self.storage, self.agents, self.original = server, storage, agents, original
        self.log = case.directory() + "/calls"

    def run_plugin(self, version="1"):
        """The original client tells a raw_exec task the paths of a container, unless the job has those of the host."""
        theirs = self.original.dir + "/data/client/csi/monolith/" + driver.PLUGIN
        update = {"MaxParallel": 2, "MinHealthyTime": S}
        for job, nodes, base in (("plugin", OURS, ""), ("plugin-" + THEIRS, [THEIRS], theirs)):
            self.server.run(self.storage.plugin(self.log, version, job, base, Update=update), Type="system", Constraints=[on(*nodes)])

    def wait_plugin(self, count=len(NODES)):
        def healthy():
            with contextlib.suppress(AssertionError):
                found = self.server.ask("/v1/plugin/csi/" + driver.PLUGIN)
                return (found["NodesHealthy"], found["ControllersHealthy"]) == (count, count)
            return False
        case.until(healthy, 90, "the plugin to be healthy on %d nodes" % count)

    def kill_drivers(self):
        """Kills the processes of the driver. Waits until each client has called the next one."""
        def calls():
            return [network_volumes.count_calls("%s.%s" % (self.log, node)) for node in NODES]
        for pid in self.storage.drivers():
            os.kill(pid, signal.SIGKILL)
        before = calls()
        case.until(lambda: all(b < now for b, now in zip(before, calls())), 120, "calls to new processes of the driver")
        self.wait_plugin()

    def create(self, name, **more):
        self.server.do("/v1/volume/csi/%s/create" % name, self.storage.volume(name, **more))

    def volume(self, name):
        return self.server.ask("/v1/volume/csi/" + name)

    def delete(self, name):
        self.server.request("DELETE", "/v1/volume/csi/%s/delete" % name)

    def run(self, name, volume, script, nodes=NODES, wanted=None, **more):
        """Registers a job of network_volumes.user() on these nodes, one alloc on each. Returns its running allocs."""
        self.server.run(network_volumes.user(name, volume, script, count=wanted or len(nodes), **more), Constraints=[
            on(*nodes), {"Operand": "distinct_hosts", "RTarget": "true"}])
        return self.wait_running(name, wanted or len(nodes))

    def wait_running(self, name, count):
        """Waits until only this many allocs of the job's newest version run."""
        version = self.server.ask("/v1/job/" + name)["Version"]

        def running():
            found = [a for a in self.server.allocs(name) if a["DesiredStatus"] == "run" and a["JobVersion"] == version]
            return found if len(found) == count and all(a["ClientStatus"] == "running" for a in found) else None
        try:
            return case.until(running, 150, "%d running allocations of %s" % (count, name))
        except AssertionError:
            for alloc in self.server.allocs(name):
                print("    %s: %s" % (alloc["NodeName"], self.events(alloc)))
            raise

    def events(self, alloc):
        states = self.server.ask("/v1/allocation/" + alloc["ID"])["TaskStates"] or {}
        return "; ".join(e["DisplayMessage"] for e in states.get("t", {}).get("Events") or ())

    def said(self, alloc):
        status, body = real.fetch("http://127.0.0.1:%d/v1/client/fs/logs/%s?task=t&type=stdout&plain=true" % (
            self.server.ports[0], alloc["ID"]))
        return body.decode().splitlines() if status == 200 else []

    def wait_data(self, alloc, *writers):
        wanted = {"data of " + w["ID"] for w in writers}
        case.until(lambda: wanted <= set(self.said(alloc)), 120, "the data of %d writers, on %s" % (len(writers), alloc["NodeName"]))

    def wait_unused(self, name):
        def unused():
            found = self.volume(name)
            return not found["WriteAllocs"] and not found["ReadAllocs"]
        case.until(unused, 150, "no claims of " + name)
        case.until(lambda: not network_volumes.fuse_mounts(), 60, "no mounts")

    def purge(self, *jobs):
        for job in jobs:
            self.server.request("DELETE", "/v1/job/" + job)
            case.until(lambda j=job: all(a["ClientStatus"] in ("complete", "failed", "lost") for a in self.server.allocs(j)), 120,
                       "the end of " + job)
            self.server.purge(job)

    def node(self, name):
        return "/v1/node/" + next(n["ID"] for n in self.server.ask("/v1/nodes") if n["Name"] == name)

    def drain(self, name):
        self.server.do(self.node(name) + "/drain", {"DrainSpec": {"Deadline": 300 * S, "IgnoreSystemJobs": True}})
        case.until(lambda: self.server.ask(self.node(name))["DrainStrategy"] is None, 150, "the end of the drain of " + name)

    def eligible(self, name):
        self.server.do(self.node(name) + "/eligibility", {"Eligibility": "eligible"})

    def end(self):
        self.purge("plugin", "plugin-" + THEIRS)
        for name, agent in self.agents.items():
            case.until(lambda a=agent: a.ask("/v1/agent/leaks") == [], 60, "no leaks on " + name)
            case.until(lambda a=agent: not network_volumes.left(a.data), 60, "an empty directory csi/ on " + name)
            case.equal([w for w in driver.SECRETS if w in agent.log()], [], "secrets in the log of " + name)


@contextlib.contextmanager
def bed(beats=real.PATIENT):
    try:
        with driver.Storage() as storage, Server(beats=beats) as server, node_of(server, name=OURS[0]) as a, \
                node_of(server, name=OURS[1]) as b, client.Original(server, THEIRS, CHROOT) as c:
            case.until(lambda: {n["Name"] for n in server.ask("/v1/nodes") if n["Status"] == "ready"} == set(NODES), 120, "three nodes")
            made = Bed(server, storage, dict(zip(OURS, (a, b))), c)
            made.run_plugin()
            made.wait_plugin()
            yield made
    finally:
        shutil.rmtree("/run/mount", ignore_errors=True)  # mount(8), which the driver calls, writes its notes there


# --- the calls of both clients ---

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def plain(request, *names):
    """Removes from a request what differs from volume to volume and from agent to agent, and the original client's empty topology."""
    request = UUID.sub("<alloc>", request).replace(" accessibility_requirements:{}", "")
    request = re.sub(r'"/[^"]*/(staging|per-alloc)/[^"]*"', r'"<\1>"', request)
    for name in names:
        request = re.sub(r"\b%s\b" % name, "<volume>", request)
    return request


def node_calls(one, node, name):
    """Lets a node use a volume of its own in each way, with one alloc at a time. Returns the calls that its driver has seen."""
    one.create(name)
    for job, script, more in (("writer", WRITES, {}), ("reader", READS, {"readonly": True}),
                              ("options", WRITES, {"options": {"MountFlags": ["nodev", "noexec"]}})):
        alloc, = one.run(job, name, script, [node], **more)
        case.until(lambda a=alloc: one.said(a), 60, "the task on " + node)
        one.purge(job)
        one.wait_unused(name)
    one.delete(name)
    return [(m, plain(r, name)) for m, r in driver.calls(one.log, node) if m.startswith("Node")]


def without_repeats(calls_made):
    """Removes unmounts that the original client repeats: on its own, and when the servers ask for it."""
    found, unmounts = [], set()
    for call in calls_made:
        if call[0] in ("NodeStageVolume", "NodePublishVolume"):
            unmounts.clear()
        elif call in unmounts:
            continue
        else:
            unmounts.add(call)
        found.append(call)
    return found


def controller_calls(one):
    """Returns {node: the kinds of calls that its driver has seen}; the servers choose the node of each."""
    for i in range(12):
        name = "ctrl-%d" % i
        one.create(name)
        made = one.volume(name)
        one.server.request("DELETE", "/v1/volume/csi/" + name)
        one.server.do("/v1/volume/csi/" + name, one.storage.volume(name, ExternalID=made["ExternalID"], Context=made["Context"]))
        one.delete(name)
    names = ["ctrl-%d" % i for i in range(12)]
    return {node: sorted({(m, plain(r, *names)) for m, r in driver.calls(one.log, node) if not m.startswith("Node")})
            for node in NODES}


def test_both_clients_make_the_driver_see_the_same_calls():
    if driver is nfs_driver:
        case.skip("check_csi_nfs.py compares its calls")
    with bed() as one:
        found = controller_calls(one)
        for node in NODES:
            case.equal({m for m, _ in found[node]} <= {"CreateVolume", "DeleteVolume", "ValidateVolumeCapabilities"}, True, node)
        wrong = []
        for node in OURS:
            for method in ("CreateVolume", "DeleteVolume", "ValidateVolumeCapabilities"):
                ours, theirs = ([r for m, r in found[n] if m == method] for n in (node, THEIRS))
                if ours and theirs and ours != theirs:
                    wrong.append("%s\n  ours   %s\n  theirs %s" % (method, ours, theirs))
        ours, theirs = (node_calls(one, node, "v-" + node) for node in (OURS[0], THEIRS))
        theirs = without_repeats(theirs)
        print("    %s" % [m for m, _ in ours], flush=True)
        if [m for m, _ in ours] != [m for m, _ in theirs]:
            wrong.append("the calls of nodes\n  ours   %s\n  theirs %s" % ([m for m, _ in ours], [m for m, _ in theirs]))
        for a, b in zip(ours, theirs):
            if a != b:
                wrong.append("%s\n  ours   %s\n  theirs %s %s" % (*a, *b))
        one.end()
        case.equal(wrong, [], "\n".join(wrong))


# --- volumes that nodes share ---

def test_nodes_of_both_kinds_share_a_volume():
    with bed() as one:
        one.create("data")
        writers = one.run("writer", "data", WRITES)
        readers = one.run("reader", "data", READS, readonly=True)
        for alloc in (*writers, *readers):
            one.wait_data(alloc, *writers)
        for reader in readers:
            if reader["NodeName"] in OURS:
                case.equal(one.said(reader)[0], "read-only")
        made = one.volume("data")
        case.equal((len(made["WriteAllocs"]), len(made["ReadAllocs"])), (3, 3))
        more = one.run("writer", "data", WRITES, Env={"CHANGED": "1"})
        case.equal({a["ID"] for a in more} & {a["ID"] for a in writers}, set())
        for reader in readers:
            one.wait_data(reader, *writers, *more)
        for name in OURS:
            one.agents[name].kill("supervisor")
        extra = one.run("extra", "data", WRITES)
        for alloc in (*readers, *extra):
            one.wait_data(alloc, *extra)
        one.purge("writer", "reader", "extra")
        one.wait_unused("data")
        one.delete("data")
        one.end()


def test_a_writer_moves_between_nodes():
    """By drains, and from a node that is lost and comes back."""
    with bed(real.STRICT) as one:
        one.create("data")
        seen = []
        for nodes in (("n1", "n2"), ("n1", THEIRS)):
            alloc, = one.run("writer", "data", WRITES, nodes, wanted=1)
            for _ in range(2):
                seen.append(alloc)
                one.wait_data(alloc, *seen)
                left = alloc["NodeName"]
                one.drain(left)
                alloc, = one.wait_running("writer", 1)
                case.equal(alloc["NodeName"] != left, True, "another node than " + left)
                one.wait_data(alloc, *seen, alloc)
                one.eligible(left)
            seen.append(alloc)
            one.purge("writer")
            one.wait_unused("data")
        first, = one.run("writer", "data", WRITES, ["n1"], wanted=1)
        one.wait_data(first, *seen, first)
        one.run("writer", "data", WRITES, ["n1", "n2"], wanted=1)
        first, = one.wait_running("writer", 1)
        lost = first["NodeName"]
        heartbeat = one.agents[lost].kill("heartbeat", signal.SIGSTOP)
        try:
            case.until(lambda: one.server.ask(one.node(lost))["Status"] == "down", 90, lost + " to be down")
            case.until(lambda: one.server.ask("/v1/allocation/" + first["ID"])["DesiredStatus"] != "run", 90, "the writer to be given up")
            second, = one.wait_running("writer", 1)
            case.equal(second["NodeName"] != lost, True)
            one.wait_data(second, *seen, first, second)
        finally:
            os.kill(heartbeat, signal.SIGCONT)
        case.until(lambda: one.server.ask(one.node(lost))["Status"] == "ready", 90, lost + " to be ready")
        case.until(lambda: not processes_of(first["ID"]), 90, "the lost writer to end")
        case.until(lambda: not [m for m in network_volumes.fuse_mounts() if first["ID"] in m], 90, "the lost writer's mount to go")
        one.wait_data(second, *seen, first, second)
        one.wait_plugin()
        one.purge("writer")
        one.wait_unused("data")
        one.delete("data")
        one.end()


def test_the_driver_ends_and_is_upgraded_while_volumes_are_in_use():
    with bed() as one:
        one.create("data")
        writers = one.run("writer", "data", WRITES)
        for alloc in writers:
            one.wait_data(alloc, *writers)
        seen = [(w, len(one.said(w))) for w in writers if w["NodeName"] in OURS]  # the original client leaves what has ended mounted
        tasks = [processes_of(w["ID"])[:1] for w, _ in seen]
        one.kill_drivers()  # the original client leaves mounted what it is to unmount meanwhile
        if not driver.MOUNTS_END:
            case.equal([processes_of(w["ID"])[:1] for w, _ in seen], tasks, "processes of tasks")
        for alloc, lines in seen if driver.MOUNTS_END else ():
            case.until(lambda a=alloc: "was mounted again after it was lost" in one.events(a), 120, "the task to be told")
            case.until(lambda a=alloc, n=lines: {"data of " + w["ID"] for w in writers} <= set(one.said(a)[n:]), 120, "the data after it")
        one.purge("writer")
        one.wait_unused("data")
        writers = one.run("writer", "data", WRITES)
        for alloc in writers:
            one.wait_data(alloc, *writers)
        one.run_plugin("2")
        case.until(lambda: [a["JobVersion"] for job in ("plugin", "plugin-" + THEIRS) for a in one.server.allocs(job)
                            if a["ClientStatus"] == "running"] == [1] * len(NODES), 120, "the new version of the driver on each node")
        one.wait_plugin()
        one.purge("writer")
        one.wait_unused("data")
        one.delete("data")
        one.end()


driver.need()
case.run(globals())
