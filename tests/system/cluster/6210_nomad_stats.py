#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Requests of servers for the resource usage of a node and its allocs."""
from lib import case
from lib.cluster import job, node_of, servers as cluster
from lib.nomad_server import Refusal

NOBODY = "99999999-9999-4999-8999-999999999999"
MB = 1 << 20


def run(version):
    with cluster(version=version) as servers, node_of(servers):
        me = servers.wait_node()["ID"]
        burner = job("burn", "/usr/bin/python3", ["-c", "x = b'x' * (50 << 20)\nwhile True: pass"])
        burner["TaskGroups"][0]["Tasks"][0]["Resources"] = {"CPU": 100, "MemoryMB": 200}
        alloc = servers.run_job(burner, me)[0]
        servers.wait_alloc(alloc, ["running"])

        def stats(task=""):
            return servers.call_node(me, "Allocations.Stats", {"AllocID": alloc, "Task": task})["Stats"]

        def both():
            usage = stats()["Tasks"]["t"]["ResourceUsage"]
            return usage["CpuStats"]["Percent"] > 1 and usage["MemoryStats"]["RSS"] > 50 * MB
        case.until(both, 20, "the usage of a task that uses CPU and memory")
        case.equal(list(stats("t")["Tasks"]), ["t"])
        for body, text in (({"AllocID": NOBODY}, 'Unknown allocation "%s"' % NOBODY),
                           ({"AllocID": alloc, "Task": "x"}, 'has no task "x"')):
            case.contains(str(case.raises(Refusal, servers.call_node, me, "Allocations.Stats", body)), text)
        servers.stop_alloc(alloc)
        servers.wait_alloc(alloc, ["complete"])
        ended = stats()
        case.equal(ended["Tasks"], {}, "tasks of an alloc that has ended")
        usage = ended["ResourceUsage"]
        case.equal((usage["CpuStats"]["TotalTicks"], usage["MemoryStats"]["RSS"]), (0, 0), "usage of the ended alloc")
        host = servers.call_node(me, "ClientStats.Stats", {"NodeID": me})["HostStats"]
        case.equal(host["Memory"]["Total"] > host["Memory"]["Used"] > 0, True, "memory")
        case.equal(host["CPU"][0]["CPU"], "cpu0")
        facts = servers.call_node(me, "Agent.Host", {"NodeID": me})
        case.equal((facts["AgentID"], sorted(facts["HostData"])),
                   (me, ["Disk", "Environment", "Hosts", "Network", "OS", "ResolvConf"]))
        case.contains(facts["HostData"]["OS"], "Linux")


def test_usage_with_servers_of_1_6():
    run("1.6.10")


def test_usage_with_servers_of_2_0():
    run("2.0.5")


case.run(globals())
