#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commands about the agent, its servers and the stream of events, alone and in a cluster with simulated servers."""
import json
import os
import subprocess
import threading

from lib import api, binary, case
from lib.cluster import node_of, servers as cluster
from lib.fake_api import FakeApi, run_command


def drover(node, *words, code=0):
    r = run_command(words, env={"DROVER_ADDR": "unix://" + node.socket_path})
    case.equal(r.code, code, "drover %s: %s%s" % (" ".join(words), r.out, r.err))
    return r.out + r.err


def test_facts_about_the_agent():
    with api.Node() as node:
        out = drover(node, "agent-info")
        case.contains(out, "node_id              = " + node.ask("/v1/nodes")[0]["ID"])
        case.contains(out, "exec-helper")
        parts = [line for line in out.splitlines() if line and "=" not in line]
        case.equal(parts, ["client", "processes", "runtime"])
        names = [line.split()[0] for line in out.split("runtime\n")[1].splitlines()]
        case.equal(names, sorted(names))
        case.equal(json.loads(drover(node, "agent-info", "-json"))["stats"].keys(), {"client", "processes", "runtime"})
        case.equal(drover(node, "node", "config", "-servers"), "No servers: this agent works alone\n")
        case.contains(drover(node, "node", "config", "-update-servers", "10.0.0.1:4647", code=1), "in the configuration and reload")
        case.contains(drover(node, "node", "config", code=1), "usage: drover node config")
        case.contains(drover(node, "server", "members", code=1), "works alone")
        case.contains(drover(node, "client-config", "-servers"), "No servers")


def test_servers_of_a_cluster():
    with cluster() as servers, node_of(servers) as node:
        servers.wait_node()
        case.equal(drover(node, "node", "config", "-servers").split(), servers.addresses)
        case.contains(drover(node, "node", "config", "-update-servers", "x:1", code=1), "in the configuration and reload")
        out = drover(node, "server", "members")
        case.equal((out.splitlines()[0].split()[:3], len(out.splitlines())), (["Name", "Address", "Port"], 2))
        case.contains(out, "alive")
        case.equal(drover(node, "server-members"), out)
        case.contains(drover(node, "server", "members", "-verbose"), "Tags")


def test_the_leader_of_each_region_is_marked():
    def member(name, address, region):
        return {"Name": name, "Addr": address, "Port": 4648, "Status": "alive", "ProtocolCur": 2,
                "Tags": {"region": region, "port": "4647", "dc": "dc1", "build": "2.0.5", "raft_vsn": "3"}}
    with FakeApi() as fake:
        fake.json("GET", "/v1/agent/members", {"Members": [member("a", "10.0.0.1", "x"), member("b", "10.0.0.2", "x"), member("c", "::1", "y")]})
        fake.json("GET", "/v1/status/leader", lambda r: {"x": "10.0.0.2:4647", "y": "[::1]:4647"}[r.query["region"]])
        out = fake.drover("server", "members").out
        case.equal([line.split()[4] for line in out.splitlines()], ["Leader", "false", "true", "true"])
        case.equal(len(fake.asked("GET", "/v1/status/leader")), 2)
        fake.text("GET", "/v1/status/leader", 500, "no path to region")
        case.equal([line.split()[4] for line in fake.drover("server", "members").out.splitlines()[1:]], ["false"] * 3)


def test_an_instance_of_a_service_is_removed():
    with api.Node() as node:
        node.do("PUT", "/v1/namespaces", {"Name": "prod"})
        made = api.job("web", group={"Services": [{"Name": "web", "Provider": "nomad"}]})
        made["Job"]["Namespace"] = "prod"
        node.do("POST", "/v1/jobs?namespace=prod", made)
        found = case.until(lambda: node.ask("/v1/service/web", namespace="prod"), 20, "the service")
        case.contains(drover(node, "service", "info", "-verbose", "web"), found[0]["ID"])
        case.contains(drover(node, "service", "delete", "web", "none", code=1), "drover service info -verbose")
        drover(node, "service", "delete", "web", found[0]["ID"])
        case.equal(node.request("GET", "/v1/service/web?namespace=prod").json, [])


class Follower:
    """Runs drover event stream and collects its lines."""

    def __init__(self, node, *words):
        self.lines = []
        self.process = subprocess.Popen([binary("drover"), "event", "stream", *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        env={**os.environ, "DROVER_ADDR": "unix://" + node.socket_path})
        self.thread = threading.Thread(target=self._read, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.decode())

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.thread.join()
        self.process.stdout.close()

    def wait(self, *parts):
        return case.until(lambda: [line for line in self.lines if all(p in line for p in parts)], 30, "an event with %s" % (parts,))


def test_events_are_followed():
    with api.Node() as node:
        with Follower(node) as every, Follower(node, "-topic", "Job:web") as jobs, Follower(node, "-json", "-topic", "Allocation") as allocs:
            node.register(api.job("web"))
            node.register(api.job("other", count=0))
            alloc = node.wait_running("web")[0]["ID"]
            every.wait("Job", "web")
            every.wait("Evaluation", "web", "job-register")
            every.wait("Allocation", alloc[:8] + "  web.g[0]", "running")
            jobs.wait("Job", "web")
            found = json.loads(allocs.wait(alloc, "running")[-1])
            case.equal(found["Events"][0]["Payload"]["Allocation"]["ID"], alloc)
            case.equal([line for line in jobs.lines if "web" not in line], [])
            every.wait("other")
        index = node.ask("/v1/job/other")["ModifyIndex"]
        with Follower(node, "-index", str(index), "-topic", "Job") as later:
            later.wait("other")
            case.equal([line for line in later.lines if int(line.split()[0]) < index], [])
        with Follower(node) as last:
            last.wait("other")
            node.kill("supervisor")
            case.until(lambda: last.process.poll() == 1, 30, "the follower to end")
            last.wait("drover: the agent has exited")
        case.contains(drover(node, "event", "stream", "-topic", "a:b:c", code=1), "topic")


case.run(globals())
