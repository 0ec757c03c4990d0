#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How an agent joins and leaves servers: server_join with its retries, drain_on_shutdown."""
import signal
import socket
import time

from lib import agent, case, service
from lib.cluster import job, processes_of, servers as cluster

CONFIG = """name = "n1"
leave_on_interrupt = true
client {
  servers = [%s]
  disk_free_mb = 1000000
  drain_on_shutdown { %s }
}
plugin "raw_exec" { config { enabled = true } }
"""
JOIN = 'client { server_join { retry_join = ["%s"] %s } }\n'


def installed_node(servers, drain=""):
    return service.Node(CONFIG % (", ".join('"%s"' % a for a in servers.addresses), drain))


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def remove_allocs(node, servers, me, *allocs):
    """Has the restarted agent remove everything of these allocs."""
    node.start()
    node.wait_ready()
    for alloc in allocs:
        servers.stop_alloc(alloc)
        servers.wait_alloc(alloc, ["complete", "failed"])


def test_the_servers_drain_the_node_before_the_agent_ends():
    with cluster() as servers, installed_node(servers, 'deadline = "10m"') as node:
        me = servers.wait_node()["ID"]
        alloc = servers.run_job(job("web"), me)[0]
        servers.wait_alloc(alloc, ["running"])
        case.equal(node.stop(signal.SIGINT), 0)
        args = servers.wait_call("Node.UpdateDrain")[0]["args"]
        case.equal((args["NodeID"], args["DrainStrategy"]["Deadline"], args["DrainStrategy"]["IgnoreSystemJobs"], args["MarkEligible"], args["Meta"]),
                   (me, 600 * 10**9, False, False, {"message": "shutting down"}))
        case.equal(processes_of(alloc), [])
        # The servers have the last state of the alloc when the agent has ended.
        case.equal(servers.alloc(alloc)["ClientStatus"], "complete")
        case.equal(servers.node(me)["LastDrain"]["Status"], "complete")


def test_tasks_keep_running_if_the_servers_refuse_or_another_signal_comes():
    with cluster() as servers, installed_node(servers) as node:
        me = servers.wait_node()["ID"]
        alloc = servers.run_job(job("web"), me)[0]
        servers.wait_alloc(alloc, ["running"])
        servers.fault("error", "Node.UpdateDrain", text="Permission denied")
        case.equal(node.stop(signal.SIGINT), 0)
        case.contains(node.log(), "the servers do not drain this node: Permission denied")
        case.equal(len(processes_of(alloc)), 1)
        servers.clear()
        known = servers.last_call()
        node.start()
        node.wait_ready()
        case.equal(node.stop(signal.SIGTERM), 0)
        case.equal(len(processes_of(alloc)), 1)
        case.equal(servers.calls("Node.UpdateDrain", known), [])
        remove_allocs(node, servers, me, alloc)


def test_retry_max_ends_an_agent_that_reaches_no_server():
    with agent.Agent(agent.config_args(JOIN % ("127.0.0.1:%d" % free_port(), 'retry_max = 2 retry_interval = "1s"'))) as a:
        began = time.monotonic()
        case.equal(a.wait(), 78, "exit code")
        case.contains(a.log(), "no server was reached in 3 attempts, so the agent ends")
        case.equal(time.monotonic() - began >= 2, True, "whether it waited between the attempts")


def test_without_retry_max_the_agent_joins_whenever_a_server_comes():
    port = free_port()
    with agent.Agent(agent.config_args(JOIN % ("127.0.0.1:%d" % port, 'retry_interval = "1s"'))) as a:
        a.wait_log("no server can be reached")
        with cluster(listen=["127.0.0.1:%d" % port]) as servers:
            case.equal(servers.wait_node()["Status"], "ready")
            # Later losses do not count as attempts to join.
        a.wait_log("no server can be reached", times=2, seconds=60)
        case.equal(a.stop(), 0)


with service.Users():
    case.run(globals())
