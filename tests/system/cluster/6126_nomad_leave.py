#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How an agent joins and leaves servers: server_join with its retries, drain_on_shutdown, landing and retiring."""
import os
import re
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


# --- landing and retiring ---

def running(servers):
    """Returns the node's id and that of its running alloc."""
    me = servers.wait_node()["ID"]
    alloc = servers.run_job(job("web"), me)[0]
    servers.wait_alloc(alloc, ["running"])
    return me, alloc


def test_a_landed_node_is_drained_and_eligible_again_when_it_comes_back():
    with cluster() as servers, installed_node(servers) as node:
        me, alloc = running(servers)
        case.contains(node.drover("node", "land", "-yes").out, "has landed")
        case.equal((node.wait(), processes_of(alloc)), (0, []))
        case.equal((servers.alloc(alloc)["ClientStatus"], servers.node(me)["SchedulingEligibility"]), ("complete", "ineligible"))
        node.start()
        node.wait_ready()
        case.until(lambda: servers.node(me)["SchedulingEligibility"] == "eligible", 30, "the node to be eligible")
        case.until(lambda: node.ask("/v1/agent/departure")["State"] == "running", 30, "the node to know it")
        case.equal(servers.wait_node()["ID"], me)


def shown(node, me):
    """Returns what `node status` says: the row of the list (drain, eligibility, status), and lines of the page."""
    row = next(line.split() for line in node.drover("node", "status").out.splitlines() if line.startswith(me[:8]))
    page = node.drover("node", "status", "-self").out
    return row[-3:], {name: text for name, text in re.findall(r"^(Eligibility|Last Drain|Drain|Status|Description) +=? *(.*)$", page, re.M)}


def test_a_landing_node_is_shown_as_draining_until_it_comes_back():
    """By the servers as by the command: the node drains, because it lands; then it is ineligible until it is back, also while it is down."""
    with cluster() as servers, installed_node(servers) as node:
        me = servers.wait_node()["ID"]
        hold = job("hold", "/bin/sh", ["-c", "trap '' INT; touch $NOMAD_ALLOC_DIR/up; until [ -e $NOMAD_ALLOC_DIR/go ]; do sleep 0.05; done"],
                   KillTimeout=60 * 10**9)
        alloc = servers.run_job(hold, me)[0]
        servers.wait_alloc(alloc, ["running"])
        here = "%s/alloc/%s/alloc/" % (node.data, alloc)
        case.until(lambda: os.path.exists(here + "up"), 20, "the shell")
        ready = (["false", "eligible", "ready"], {"Status": "ready", "Drain": "false", "Eligibility": "eligible"})
        case.equal(shown(node, me), ready)

        def seen():
            found = servers.node(me)
            last = found["LastDrain"] or {}
            return found["Status"], found["SchedulingEligibility"], bool(found["DrainStrategy"]), last.get("Status"), last.get("Meta")
        node.do("PUT", "/v1/agent/land", {"Deadline": 3600 * 10**9})
        case.until(lambda: seen() == ("ready", "ineligible", True, "draining", {"message": "landing"}), 30, "the servers to drain the node")
        row, page = shown(node, me)
        last = page.pop("Last Drain")
        case.equal((row, page, last[:9], last[-9:]), (["true", "ineligible", "ready"], {"Status": "ready", "Drain": "true", "Eligibility": "ineligible"},
                                                      "draining ", ": landing"))
        with open(here + "go", "w", encoding="ascii"):
            pass
        case.equal(node.wait(), 0)
        case.equal(seen()[1:], ("ineligible", False, "complete", {"message": "landing"}))
        case.until(lambda: seen()[0] == "down", 60, "the servers to have the node as down")
        case.equal(seen()[1:], ("ineligible", False, "complete", {"message": "landing"}))
        node.start()
        node.wait_ready()
        case.until(lambda: node.ask("/v1/agent/departure")["State"] == "running" and seen()[:3] == ("ready", "eligible", False), 30, "the return")
        case.equal(shown(node, me), ready)


def test_a_node_that_was_ineligible_stays_so():
    with cluster() as servers, installed_node(servers) as node:
        me = servers.wait_node()["ID"]
        servers.set_eligibility(me, False)
        case.until(lambda: "the servers set the node to ineligible" in node.log(), 30, "the beat")
        node.do("PUT", "/v1/agent/land", {})
        case.equal(node.wait(), 0)
        node.start()
        node.wait_ready()
        case.until(lambda: node.ask("/v1/agent/departure")["State"] == "running", 30, "the return")
        case.equal(servers.node(me)["SchedulingEligibility"], "ineligible")


def test_a_retired_node_is_forgotten_and_joins_as_another():
    with cluster() as servers, installed_node(servers) as node:
        me, alloc = running(servers)
        case.contains(node.drover("node", "retire", "-yes").out, "has retired")
        case.equal((node.wait(), processes_of(alloc)), (0, []))
        case.equal((servers.nodes(), servers.alloc(alloc)["ClientStatus"]), ({}, "complete"))
        case.contains(node.log(), "the servers have forgotten the node")
        node.start()
        case.equal(node.wait(), 78)
        node.drover("node", "rejoin", "-data-dir", node.data)
        node.start()
        node.wait_ready()
        case.equal(servers.wait_node()["ID"] != me, True, "whether the node is a new one")
        node.wait_log("removed, because it is of the node that this one was before", 30)


def test_only_a_permitted_token_has_the_servers_forget_the_node():
    with cluster() as servers, installed_node(servers) as node:
        me = servers.wait_node()["ID"]
        servers.fault("error", "Node.Deregister", text="Permission denied")
        node.do("PUT", "/v1/agent/retire", {"Deadline": 10**10}, headers={"X-Nomad-Token": "11111111-2222-3333-4444-555555555555"})
        case.equal(node.wait(), 0)
        case.equal(servers.wait_call("Node.Deregister")[0]["args"]["AuthToken"], "11111111-2222-3333-4444-555555555555")
        case.contains(node.log(), "the servers do not forget the node now: Permission denied: they do it after their node_gc_threshold")
        case.equal(list(servers.nodes()), [me])


def test_an_unreachable_server_delays_a_retirement_until_its_deadline():
    with cluster() as servers, installed_node(servers) as node:
        _, alloc = running(servers)
        servers.stop_server(0)
        node.wait_log("no server is reachable", 30)
        began = time.monotonic()
        node.do("PUT", "/v1/agent/retire", {"Deadline": 2 * 10**9})
        case.equal(node.wait(60), 0)
        print("    it took %.1f s" % (time.monotonic() - began))
        case.equal(processes_of(alloc), [])
        case.contains(node.log(), "the servers do not forget the node now: no server has answered")
        servers.start_server(0)


def test_a_retiring_node_that_is_purged_goes_on_and_does_not_register_again():
    with cluster() as servers, installed_node(servers) as node:
        me = servers.wait_node()["ID"]
        alloc = servers.run_job(job("slow", "/bin/sh", ["-c", "trap 'sleep 3; exit 0' INT; while :; do sleep 0.1; done"], KillTimeout=60 * 10**9), me)[0]
        servers.wait_alloc(alloc, ["running"])
        node.do("PUT", "/v1/agent/retire", {"Deadline": 3600 * 10**9})
        node.wait_log("Sent interrupt", 20)
        servers.purge_node(me)
        case.equal((node.wait(60), processes_of(alloc), servers.nodes()), (0, [], {}))
        case.contains(node.log(), "the node is retired")


def test_a_stalled_node_lands_by_itself_and_is_a_known_node_when_it_comes_back():
    with cluster() as servers, installed_node(servers) as node:
        me, alloc = running(servers)
        servers.stop_server(0)
        node.wait_log("no server is reachable", 30)
        node.process.send_signal(signal.SIGUSR1)
        case.equal((node.wait(60), processes_of(alloc)), (0, []))
        case.contains(node.log(), "it stops its allocations itself")
        # Meanwhile the servers forget it.
        servers.purge_node(me)
        servers.start_server(0)
        node.start()
        node.wait_ready()
        case.equal(servers.wait_node()["ID"], me)
        case.until(lambda: node.ask("/v1/agent/departure")["State"] == "running", 30, "the return")
        case.equal([e["Message"] for e in servers.node(me)["Events"] or ()].count("Node registered"), 1)


def test_a_stalled_node_does_not_end():
    with cluster() as servers, installed_node(servers) as node:
        me, alloc = running(servers)
        servers.stop_server(0)
        node.wait_log("no server is reachable", 30)
        servers.purge_node(me)
        servers.start_server(0)
        case.equal(servers.wait_node()["ID"], me)
        case.equal(node.process.poll(), None, "exit code")
        case.equal(node.ask("/v1/agent/departure")["State"], "running")
        remove_allocs_here(servers, node, alloc)


def remove_allocs_here(servers, node, alloc):
    servers.stop_alloc(alloc)
    case.until(lambda: not processes_of(alloc), 60, "the end of the task")


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
