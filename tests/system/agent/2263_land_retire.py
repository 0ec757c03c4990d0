#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An agent without servers lands and retires: by request and by signal, what is stopped and kept, and what its next start does."""
import fcntl
import json
import os
import re
import signal

from lib import agent, api, case, service
from lib.cluster import processes_of

CONFIG = 'client { max_kill_timeout = "60s" }\nplugin "raw_exec" { config { enabled = true } }\n'
UP = "touch $NOMAD_ALLOC_DIR/up; while :; do sleep 0.1; done"
SLOW = ["-c", "trap 'sleep 2; exit 0' INT; " + UP]
KEPT = ["-c", "echo kept >$NOMAD_ALLOC_DIR/data/f; touch $NOMAD_ALLOC_DIR/up; exec sleep 1000"]


def start(node, name, kind="service", args=("-c", UP), **more):
    """Returns the id of an alloc whose shell has begun."""
    made = api.job(name, "/bin/sh", list(args), KillTimeout=60 * 10**9, **more)
    made["Job"]["Type"] = kind
    if kind != "service":
        for member in ("ReschedulePolicy", "Update"):
            made["Job"]["TaskGroups"][0].pop(member)
    node.register(made)
    alloc = node.wait_running(name)[0]["ID"]
    case.until(lambda: os.path.exists("%s/alloc/%s/alloc/up" % (node.data, alloc)), 20, "the shell")
    return alloc


def state(node):
    return node.ask("/v1/agent/departure")["State"]


def described(node):
    """Returns what `node status` says about the node's status."""
    return re.findall(r"^Description +[=:]? *(\S+)$", node.drover("node", "status", "-self").out, re.M)


def restart(node):
    node.start()
    node.wait_ready()


def refused_start(node):
    """The agent refuses to start, with the code after which its unit is not started again. Returns its sentence."""
    before = len(node.log())
    node.start()
    case.equal(node.wait(), 78)
    return node.log()[before:]


def rejoin(node):
    node.drover("node", "rejoin", "-data-dir", node.data)
    restart(node)


def test_landing_keeps_data_and_the_next_start_comes_back():
    with service.Node(CONFIG) as node:
        alloc = start(node, "web", args=KEPT)
        me = node.ask("/v1/nodes")[0]["ID"]
        said = node.drover("node", "land", "-yes")
        case.contains(said.out, "The node has landed")
        case.equal((node.wait(), processes_of(alloc)), (0, []))
        case.contains(node.log(), "the node is landed: the agent ends")
        with open("%s/alloc/%s/alloc/data/f" % (node.data, alloc), encoding="ascii") as f:
            case.equal(f.read(), "kept\n")
        restart(node)
        case.equal(state(node), "running")
        case.equal(node.ask("/v1/nodes")[0]["ID"], me)
        case.equal(node.wait_running("web")[0]["ID"] != alloc, True, "whether another allocation runs")
        node.purge("web")


def test_after_landing_the_next_start_comes_back_also_if_its_first_supervisor_fails():
    with service.Node(CONFIG) as node:
        node.drover("node", "land", "-yes")
        case.equal(node.wait(), 0)
        with open(node.data + "/state/state.db", "r+b") as f:
            fcntl.lockf(f, fcntl.LOCK_EX, 512, 0x40000000)  # all bytes that SQLite locks
            node.start()
            case.until(lambda: re.search("launcher: warn: supervisor .* ended with exit code 1", node.log()), 20, "a supervisor that fails")
        node.wait_ready()
        case.equal(state(node), "running")


def test_landing_takes_nothing_new_and_lets_batch_jobs_finish():
    with service.Node(CONFIG) as node:
        start(node, "work", "batch", ["-c", "touch $NOMAD_ALLOC_DIR/up; until [ -e $NOMAD_ALLOC_DIR/go ]; do sleep 0.05; done"])
        alloc = node.allocs("work")[0]["ID"]
        answer = node.do("PUT", "/v1/agent/land", {"Deadline": 3600 * 10**9})
        case.equal((answer["State"], answer["Allocations"]), ("landing", 1))
        node.register(api.job("late"))
        case.equal(node.allocs("late"), [])
        case.equal(len(processes_of(alloc)) > 0, True, "whether the job still runs")
        with open("%s/alloc/%s/alloc/go" % (node.data, alloc), "w", encoding="ascii"):
            pass
        case.equal(node.wait(), 0)
        restart(node)
        case.equal([a["ClientStatus"] for a in node.allocs("work")], ["complete"])
        node.wait_running("late")
        node.purge("late")
        node.purge("work")


def test_a_deadline_stops_batch_jobs():
    with service.Node(CONFIG) as node:
        alloc = start(node, "work", "batch")
        node.do("PUT", "/v1/agent/land", {"Deadline": 10**9})
        case.equal((node.wait(), processes_of(alloc)), (0, []))
        restart(node)
        node.purge("work")


def test_a_landing_is_cancelled():
    with service.Node(CONFIG) as node:
        alloc = start(node, "work", "batch")
        web = start(node, "web")
        case.equal(node.drover("node", "events").out, "No events\n")
        node.do("PUT", "/v1/agent/land", {"Deadline": 0})
        case.until(lambda: not processes_of(web), 20, "the end of the service")
        case.equal(described(node), ["landing"])
        node.replace_supervisor()
        case.equal(described(node), ["landing"])
        said = node.drover("node", "land", "-cancel")
        case.contains(said.out, "takes allocations again")
        case.equal((state(node), described(node)), ("running", []))
        case.equal(node.wait_running("web")[0]["ID"] != web, True, "whether another allocation runs")
        case.equal(len(processes_of(alloc)) > 0, True, "whether the batch job still runs")
        case.equal([(e["Subsystem"], e["Message"]) for e in json.loads(node.drover("node", "events", "-json").out)],
                   [("Cluster", "Node lands"), ("Cluster", "Node takes allocations again")])
        case.contains(node.drover("node", "events").out, "Node takes allocations again")
        node.refused(400, "neither lands nor retires", "PUT", "/v1/agent/land", {"Cancel": True})
        node.refused(400, "Deadline must be a number", "PUT", "/v1/agent/land", {"Deadline": "1h"})
        node.purge("web")
        node.purge("work")


def test_retiring_removes_everything_and_the_directory_refuses_to_start():
    with service.Node(CONFIG) as node:
        alloc = start(node, "web", args=KEPT)
        me = node.ask("/v1/nodes")[0]["ID"]
        said = node.drover("node", "retire", "-yes", "-force")
        case.contains(said.out, "The node has retired")
        case.equal((node.wait(), processes_of(alloc)), (0, []))
        case.equal([n for n in os.listdir(node.data + "/alloc") if not n.startswith(".")], [])
        case.equal(os.listdir(node.data + "/alloc/.trash"), [])
        for _ in range(2):
            case.contains(refused_start(node), "this node was retired at")
        rejoin(node)
        case.equal(node.ask("/v1/nodes")[0]["ID"] != me, True, "whether the node is a new one")
        case.equal(state(node), "running")
        node.wait_running("web")
        node.purge("web")


def test_a_rejoin_counts_for_one_start():
    with service.Node(CONFIG) as node:
        case.equal(node.stop(), 0)
        rejoin(node)
        case.equal(node.drover("node", "rejoin", "-data-dir", node.data, code=1).err.count("runs"), 1)
        node.do("PUT", "/v1/agent/retire", {"Deadline": -1})
        case.equal(node.wait(), 0)
        case.contains(refused_start(node), "this node was retired at")


def test_signals_land_and_retire():
    with service.Node(CONFIG) as node:
        alloc = start(node, "web")
        node.process.send_signal(signal.SIGUSR1)
        case.equal((node.wait(), processes_of(alloc)), (0, []))
        case.contains(node.log(), "the node is landed")
        restart(node)
        alloc = node.wait_running("web")[0]["ID"]
        # As systemctl kill does, to each process of the unit.
        for pid in [*node.processes().values(), node.pid]:
            os.kill(pid, signal.SIGUSR2)
        case.equal((node.wait(), processes_of(alloc)), (0, []))
        case.contains(node.log(), "the node is retired")
        case.equal("was killed by signal" in node.log(), False, "whether a process died of the signal")
        case.contains(refused_start(node), "retired")
        rejoin(node)
        node.purge("web")


def test_it_goes_on_when_the_supervisor_or_the_launcher_is_killed():
    for path, result in (("land", "landed"), ("retire", "retired")):
        with service.Node(CONFIG) as node:
            alloc = start(node, "slow", args=SLOW)
            node.do("PUT", "/v1/agent/" + path, {"Deadline": 3600 * 10**9})
            node.wait_log("Sent interrupt")
            node.kill("supervisor")
            node.wait_log("ready: node", times=2)
            node.kill_launcher()
            node.start()
            case.equal((node.wait(), processes_of(alloc)), (0, []))
            case.contains(node.log(), "the node is %s: the agent ends" % result)
            (rejoin if result == "retired" else restart)(node)
            node.purge("slow")


def test_a_retirement_replaces_a_landing_and_not_the_other_way():
    with service.Node(CONFIG) as node:
        start(node, "work", "batch")
        node.do("PUT", "/v1/agent/land", {"Deadline": 0})
        case.equal(node.do("PUT", "/v1/agent/retire", {"Deadline": 0})["State"], "retiring")
        node.refused(400, "the node retires: cancel that first", "PUT", "/v1/agent/land", {})
        node.do("PUT", "/v1/agent/retire", {"Deadline": -1})
        case.equal(node.wait(), 0)
        case.contains(refused_start(node), "retired")
        rejoin(node)
        node.purge("work")


def test_dev_agents_land_too():
    with agent.Agent() as a:
        a.wait_ready()
        a.process.send_signal(signal.SIGUSR1)
        case.equal(a.wait(), 0)
        case.equal(bool(re.search("the node is landed", a.log())), True)


with service.Users():
    case.run(globals())
