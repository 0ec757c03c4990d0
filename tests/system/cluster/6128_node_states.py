#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 140
"""The table of a node's states: what its servers see, what its probe finds and what it is told decide whether it works, ends or begins anew, each
for itself. A bad probe is an event of the node at the servers and changes no state of it there, a lost link changes no probe, and only landing and
retiring end an agent."""
import os
import signal
import time

from lib import api, case, cluster, helper
from lib.cluster import job, processes_of

HOLD = ["-c", "trap 'sleep 3; exit 0' INT TERM; while :; do sleep 0.1; done"]

# servers: "up", "lost" (none can be reached), "purged" (they have forgotten the node) before or "mid" (after) the order.
# found: of the servers the node's status, "other" (a node with another id) or "none"; the node's own state; whether the agent has ended with 0,
# and whether its task runs. The agent of a node that landed or retired tells no state.
TABLE = (
    # ephemeral servers  probe   order      servers   state      ends   task
    (False, "up",        "good", None,      "ready",  "running", False, True),
    (False, "up",        "bad",  None,      "ready",  "running", False, True),
    (True,  "up",        "bad",  None,      "ready",  "running", False, True),
    (False, "up",        "bad",  "land",    "ready",  None,      True,  False),
    (False, "up",        "bad",  "retire",  "none",   None,      True,  False),
    (True,  "up",        "bad",  "retire",  "none",   None,      True,  False),
    (False, "lost",      "good", None,      None,     "running", False, True),
    (False, "lost",      "bad",  None,      None,     "running", False, True),
    (True,  "lost",      "good", None,      None,     "running", False, True),
    (False, "lost mid",  "good", "land",    None,     None,      True,  False),
    (False, "lost mid",  "good", "retire",  None,     None,      True,  False),
    (False, "purged",    "good", None,      "ready",  "running", False, True),  # it registers again, and the servers still list its work
    (True,  "purged",    "good", None,      "other",  "running", False, False),
    (True,  "purged",    "bad",  None,      "other",  "running", False, False),
    (False, "purged mid", "good", "land",   None,     None,      True,  False),
    (True,  "purged mid", "good", "land",   None,     None,      True,  False),
    (True,  "purged mid", "good", "retire", None,     None,      True,  False),
)


def spoil(servers, node, me, what):
    if what == "lost":
        servers.stop_server(0)
        node.wait_log("no server is reachable", 30)
    elif what == "purged":
        servers.purge_node(me)


def tell(node, order):
    """Lets it land or retire, by a signal or by a request with a deadline."""
    if order == "land":
        os.kill(node.pid, signal.SIGUSR1)
    elif order == "retire":
        node.do("PUT", "/v1/agent/retire", {"Deadline": 10**9})


def look(servers, me):
    """Returns what the servers have of the node."""
    nodes = servers.nodes()
    if me in nodes:
        return nodes[me]["Status"]
    return "other" if any(n["Status"] == "ready" for n in nodes.values()) else "none"


def told(servers, node_id):
    """Returns (subsystem, message) of the events that the servers have of probes of this node."""
    return [(e["Subsystem"], e["Message"]) for e in servers.node(node_id)["Events"] or () if e["Subsystem"] in ("Health", "Disk")]


def probe_status(node):
    return node.request("GET", "/v1/agent/health?deep=1", timeout=120).status


def find_bad(servers, node):
    """Makes a probe that finds the volume bad. Returns the id with which the servers have the event of that."""
    case.equal(probe_status(node), 503)
    node_id = node.ask("/v1/nodes")[0]["ID"]
    if servers:
        wait_told(servers, node_id, [("Health", "host-volume/h has failed: ")])
    return node_id


def wait_told(servers, node_id, events):
    """Waits until the servers have exactly these events, each of whose messages begins so."""
    def same():
        found = told(servers, node_id)
        return len(found) == len(events) and all(f[0] == e[0] and f[1].startswith(e[1]) for f, e in zip(found, events))
    try:
        case.until(same, 60, "the events at the servers")
    except AssertionError as e:
        raise AssertionError("%s: %s, not %s" % (e, told(servers, node_id), events)) from None


def check(row):
    ephemeral, source, probe, order, seen, state, ends, runs = row
    volume = case.directory() + "/volume"
    os.mkdir(volume)
    client = 'host_volume "h" { path = "%s" }\n%s' % (volume, "ephemeral = true\n" if ephemeral else "")
    if order == "land":  # the servers may be lost before they have heard of it
        client += 'drain_on_shutdown {\n  deadline = "10s"\n}\n'
    with cluster.servers() as servers, cluster.node_of(servers, client=client) as node:
        servers.settings(ttl_s=1.0, ttl_jitter_s=0.0)
        me = servers.wait_node()["ID"]
        alloc = servers.run_job(job("web", "/bin/sh", HOLD, KillTimeout=20 * 10**9), me)[0]
        servers.wait_alloc(alloc, ["running"])
        task = min(case.until(lambda: processes_of(alloc), 20, "the task"))
        if probe == "bad":
            os.rmdir(volume)
        when = source.partition(" ")
        if not when[2]:
            spoil(servers, node, me, when[0])
        if probe == "bad" and order:  # its agent ends
            find_bad(servers, node)
        tell(node, order)
        if when[2]:
            node.wait_log("it takes no new allocations", 30)
            spoil(servers, node, me, when[0])
        if ends:
            case.equal(node.wait(60), 0, "exit code")
        if seen:
            case.until(lambda: look(servers, me) == seen, 60, "the servers to have the node as %s" % seen)
        if not runs:
            case.until(lambda: processes_of(alloc) == [], 60, "the end of the task")
        if not ends:
            node.wait_ready()
            case.until(lambda: node.ask("/v1/agent/departure")["State"] == state, 60, "state %s" % state)
            if probe == "bad":
                me = find_bad(servers if source != "lost" else None, node)
            else:
                case.equal(probe_status(node), 200)
        if runs:
            case.equal(task in processes_of(alloc), True, "whether the task runs")
        if source == "lost":
            servers.start_server(0)
            case.until(lambda: look(servers, me) == "ready", 60, "the node to be back")
            case.equal(task in processes_of(alloc), True, "whether the task runs when the servers are back")
        if probe == "bad" and not ends:
            wait_told(servers, me, [("Health", "host-volume/h has failed: ")])
            case.equal(servers.nodes()[me]["Status"], "ready", "the node at the servers")
        elif not ends:
            case.equal(told(servers, node.ask("/v1/nodes")[0]["ID"]), [], "events of good probes")


def test_every_row():
    for row in TABLE:
        began = time.monotonic()
        try:
            check(row)
            print("    %s: %.1f s" % (row[:4], time.monotonic() - began))
        except AssertionError as e:
            raise AssertionError("%s: %s" % (row[:4], e)) from None


def test_a_full_disk_is_an_event_at_the_servers():
    """Both versions have it while the disk is full, and the one of its end, and keep the node ready."""
    for version in ("2.0.5", "1.6.10"):
        data = case.directory() + "/data"
        os.mkdir(data)
        helper.mount("tmpfs", data, "tmpfs", 0, "size=128m,mode=0711")
        try:
            with cluster.servers(version=version) as servers, cluster.node_of(servers, data=data) as node:
                me, ballast, disk = servers.wait_node()["ID"], node.data + "/ballast", os.statvfs(node.data)
                with open(ballast, "wb") as f:
                    os.posix_fallocate(f.fileno(), 0, disk.f_bavail * disk.f_frsize - (8 << 20))
                case.equal(probe_status(node), 503)
                wait_told(servers, me, [("Disk", "disk has failed: ")])
                case.equal([(s, m) for s, m in told(servers, me) if "is full: " not in m], [], "messages without the reason")
                case.equal(servers.node(me)["Status"], "ready", "the node at the servers while its disk is full")
                os.unlink(ballast)
                case.until(lambda: probe_status(node) == 200, 60, "a good probe")
                wait_told(servers, me, [("Disk", "disk has failed: "), ("Disk", "disk works again")])
                case.equal(servers.node(me)["Status"], "ready", "the node at the servers")
        finally:
            helper.umount(data, 2)


case.run(globals())
