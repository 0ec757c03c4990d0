#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 60
"""client { ephemeral = true }: a node that its servers have forgotten, or could not hear for too long, removes all it has and joins as a new one."""
import os
import sqlite3
import time

from lib import api, binary, case, cluster, state
from lib.cluster import job, processes_of, task_of

CAPABILITY = {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}
OVER = 13  # seconds: a TTL of 1 s, the grace of 10 s, a limit of 1 s, and one more
SLOW = "trap 'sleep 2; exit 0' INT; while :; do sleep 0.1; done"


def node_of(servers, client=""):
    return cluster.node_of(servers, client="ephemeral = true\n  ephemeral_limit = \"1s\"\n" + client)


def short(servers):
    servers.settings(ttl_s=1.0, ttl_jitter_s=0.0)


def running(servers, me, name="web", **more):
    alloc = servers.run_job(job(name, **more), me)[0]
    servers.wait_alloc(alloc, ["running"])
    task_of(alloc)
    return alloc


def with_volume(servers, me):
    """Runs a CSI plugin, and an alloc that writes to a volume. Returns the plugin's store and both allocs."""
    store = case.directory()
    os.chmod(store, 0o777)
    plugin = api.job("plugin", binary("csi-local"), ["-root", store], CSIPluginConfig={
        "ID": "local", "Type": "monolith", "MountDir": "/csi", "HealthTimeout": 300 * 10**9})["Job"]
    first = servers.run_job(plugin, me)[0]
    servers.wait_alloc(first, ["running"])
    case.until(lambda: ((servers.node(me)["CSINodePlugins"] or {}).get("local") or {}).get("Healthy"), 30, "a healthy plugin")
    servers.create_volume({"ID": "data", "PluginID": "local", "RequestedCapacityMin": 1 << 20, "RequestedCapabilities": [CAPABILITY]})
    writer = api.job("writer", "/bin/sh", ["-c", "while echo x >> /d/log; do sleep 0.2; done"], driver="exec", group={"Volumes": {"v": {
        "Name": "v", "Type": "csi", "Source": "data", **CAPABILITY}}}, VolumeMounts=[{"Volume": "v", "Destination": "/d"}])["Job"]
    second = servers.run_job(writer, me)[0]
    servers.wait_alloc(second, ["running"])
    return store, [first, second]


def mounts_of(node):
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return [line.split(" ")[4] for line in f if line.split(" ")[4].startswith(node.data + "/csi/")]


def rows(node):
    """Returns how many rows of allocs, runs and mounts there are."""
    return list(state.query(node, "SELECT (SELECT count(*) FROM alloc), (SELECT count(*) FROM run), (SELECT count(*) FROM mount)")[0])


def wait_renewed(servers, node, me, allocs):
    """Waits until the node is another one, of which nothing is left."""
    def other():
        return [n["ID"] for n in servers.nodes().values() if n["ID"] != me and n["Status"] == "ready"]
    new = case.until(other, 60, "another node")[0]
    case.until(lambda: rows(node) == [0, 0, 0], 60, "no row of what the old node had")
    node.wait_ready()
    case.equal((node.ask("/v1/agent/departure")["State"], node.ask("/v1/nodes?prefix=" + new)[0]["ID"]), ("running", new))
    case.equal([pid for alloc in allocs for pid in processes_of(alloc)], [], "processes")
    case.until(lambda: mounts_of(node) == [], 30, "no mount")
    case.equal([a for a in allocs if os.path.exists("%s/alloc/%s" % (node.data, a)) or os.path.exists("%s/logs/%s" % (node.data, a))], [])
    case.equal(node.ask("/v1/agent/leaks"), [], "leaks")
    return new


def set_heard(node, ago_s):
    """Lets the servers' patience have ended so long ago, in another boot. The agent does not run."""
    db = sqlite3.connect(node.data + "/state/state.db")
    text = "00000000-0000-4000-8000-000000000000 0 %d" % ((time.time() - ago_s) * 10**9)
    case.equal(db.execute("UPDATE meta SET value = ? WHERE key = 'nomad_heard'", (text,)).rowcount, 1)
    db.commit()
    db.close()


def test_a_forgotten_node_keeps_nothing_and_joins_as_a_new_one():
    with cluster.servers() as servers, node_of(servers) as node:
        short(servers)
        me = servers.wait_node()["ID"]
        store, allocs = with_volume(servers, me)
        case.equal((len(mounts_of(node)) > 0, min(rows(node)) > 0), (True, True), "what there is before")
        servers.purge_node(me)
        new = wait_renewed(servers, node, me, allocs)
        case.equal(sorted(servers.nodes()), [new])
        case.contains(node.log(), "it removes all allocations and joins as a new node")
        found = [os.path.join(top, name) for top, _, names in os.walk(store) for name in names if name == "log"]
        case.equal(len(found), 1, "the file in the volume, which is the plugin's")
        running(servers, new, "again")


def test_a_node_that_stalled_goes_on_until_the_servers_are_back():
    with cluster.servers() as servers, node_of(servers) as node:
        short(servers)
        me = servers.wait_node()["ID"]
        alloc = running(servers, me)
        task = processes_of(alloc)
        case.until(lambda: len(servers.calls("Node.UpdateStatus")) >= 2, 30, "beats with the short TTL")
        servers.stop_server(0)
        time.sleep(OVER)
        case.equal((processes_of(alloc), node.ask("/v1/agent/departure")["State"]), (task, "running"))
        before = servers.last_call()
        servers.start_server(0)
        new = wait_renewed(servers, node, me, [alloc])
        case.equal([c["args"]["Node"]["ID"] for c in servers.calls("Node.Register", before)][:1], [new])
        case.equal([c["args"]["NodeID"] for c in servers.calls("Node.Deregister", before)], [me])


def test_a_short_stall_changes_nothing():
    with cluster.servers() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        alloc = running(servers, me)
        task = processes_of(alloc)
        servers.stop_server(0)
        node.wait_log("no server is reachable", 30)
        servers.start_server(0)
        before = len(servers.calls("Node.UpdateStatus"))
        case.until(lambda: len(servers.calls("Node.UpdateStatus")) > before, 60, "a beat")
        servers.wait_call("Node.EmitEvents", seconds=60)
        node.replace_supervisor()
        case.until(lambda: "rejoining the servers as a known node" in node.log(), 20, "the return")
        case.equal((processes_of(alloc), list(servers.nodes())), (task, [me]))
        said = [e["Message"] for e in servers.node(me)["Events"] if e["Subsystem"] == "Link"]
        case.equal([m.split(":")[0].split(" 127")[0] for m in said], ["No server is reachable", "The node uses server"])


def test_events_that_were_not_sent_before_the_end_are_sent_after_the_next_start():
    with cluster.servers() as servers, cluster.node_of(servers) as node:
        me = servers.wait_node()["ID"]
        node.do("PUT", "/v1/agent/land", {"Deadline": 0})
        case.equal(node.wait(), 0)
        node.start()
        node.wait_ready()
        case.until(lambda: [e["Message"] for e in servers.node(me)["Events"] if e["Subsystem"] == "Cluster"][-2:] ==
                   ["Node lands", "Node takes allocations again"], 30, "the events of the landing")


def test_an_agent_that_was_away_does_not_register_what_it_was():
    with cluster.servers() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        alloc = running(servers, me)
        node.kill_launcher()
        set_heard(node, 3600)
        before = servers.last_call()
        node.start()
        new = wait_renewed(servers, node, me, [alloc])
        case.equal({c["args"]["Node"]["ID"] for c in servers.calls("Node.Register", before)}, {new})
        node.kill_launcher()
        set_heard(node, -3600)  # not over
        node.start()
        node.wait_ready()
        case.equal(servers.wait_node()["ID"], new)


def test_a_renewal_goes_on_after_the_end_of_the_supervisor():
    with cluster.servers() as servers, node_of(servers) as node:
        short(servers)
        me = servers.wait_node()["ID"]
        alloc = running(servers, me, command="/bin/sh", args=["-c", SLOW], KillTimeout=20 * 10**9)
        servers.purge_node(me)
        node.wait_log("it removes all allocations and joins as a new node", 60)
        node.kill("supervisor")
        wait_renewed(servers, node, me, [alloc])


def test_a_node_that_lands_was_not_lost():
    with cluster.servers() as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        node.do("PUT", "/v1/agent/land", {})
        case.equal(node.wait(), 0)
        set_heard(node, 3600)
        node.start()
        node.wait_ready()
        case.until(lambda: node.ask("/v1/agent/departure")["State"] == "running", 30, "the return")
        case.equal(list(servers.nodes()), [me])


case.run(globals())
