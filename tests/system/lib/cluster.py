# SPDX-License-Identifier: Apache-2.0
"""A whole agent as a node of tests/peers/nomad-server.

    with cluster.servers() as servers, cluster.node_of(servers) as node:
        me = servers.wait_node()["ID"]
        alloc = servers.run_job(cluster.job("web"), me)[0]
        servers.wait_alloc(alloc, ["running"])
"""
import os

from . import agent, api, case, nomad_server

CONFIG = """
region = "global"
name = "%s"
client {
  servers = [%s]
  %s
}
plugin "raw_exec" { config { enabled = true } }
"""


def servers(count=1, version="2.0.5", grace=15, **kwargs):
    """TTLs are short, so that tests that wait for a heartbeat are fast. grace: seconds without heartbeats until a node is down."""
    return nomad_server.Servers(count, version, args=("--ttl", "1", "--ttl-jitter", "0.5", "--grace", str(grace)), **kwargs)


def node_of(those, client="", name="n1", more="", kind=api.Node, **kwargs):
    """Returns an agent that is configured with these servers. client: more lines for that block, more: other blocks."""
    addresses = ", ".join('"%s"' % a for a in those.addresses)
    return kind(args=agent.config_args(CONFIG % (name, addresses, client) + more), **kwargs)


def job(name="j", command="/bin/sleep", args=("1000",), **more):
    return api.job(name, command, args, **more)["Job"]


def processes_of(alloc_id):
    """Returns the pids of that allocation's tasks. A process in the middle of execve() has no readable environment: task_of() waits for that."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/environ" % pid, "rb") as f:
                if b"NOMAD_ALLOC_ID=" + alloc_id.encode() in f.read().split(b"\0"):
                    found.append(int(pid))
        except OSError:
            pass
    return found


def task_of(alloc_id):
    """Returns [pid] when the allocation has exactly one running process."""
    return case.until(lambda: (found := processes_of(alloc_id)) and len(found) == 1 and found, 60, "one process of " + alloc_id)


def events(alloc, task="t"):
    return [e["Type"] for e in alloc["TaskStates"][task]["Events"]]


def displays(alloc, task="t"):
    return [e["DisplayMessage"] for e in alloc["TaskStates"][task]["Events"]]


def beaten(those, count=1):
    """Waits for that many heartbeats from now on."""
    those.wait_call("Node.UpdateStatus", those.last_call(), 30, count)
