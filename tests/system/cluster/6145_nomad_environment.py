#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Environment variables for resources that servers have assigned: cores, no memory limit beyond the granted one, and ports of task networks
as in old jobs."""
import http.server
import threading

from lib import case
from lib.cluster import displays, job, node_of, servers as cluster


def run(version):
    with cluster(version=version) as servers, node_of(servers) as node:
        me = servers.wait_node()["ID"]
        network = {"Mode": "host", "MBits": 10, "ReservedPorts": [{"Label": "my-port", "Value": 18095, "To": 80}],
                   "DynamicPorts": [{"Label": "dyn"}]}
        words = {"Name": "first", "Driver": "raw_exec", "Config": {"command": "/usr/bin/env", "args": ["-0"]}}
        tasks = [{**words, "Resources": {"CPU": 20, "MemoryMB": 20, "MemoryMaxMB": 40, "Networks": [network]}},
                 {**words, "Name": "second", "Resources": {"CPU": 0, "Cores": 1, "MemoryMB": 20}}]
        made = job("old", group={"Tasks": tasks, "Networks": [{"Mode": "host", "DynamicPorts": [{"Label": "shared", "To": -1}]}]})
        made["Type"] = "batch"
        alloc = servers.wait_alloc(servers.run_job(made, me)[0], ["complete"])
        env = {}
        for name in ("first", "second"):
            text = node.logs({"ID": alloc["ID"]}, name).decode()
            env[name] = {k: v for k, v in (w.split("=", 1) for w in text.split("\0") if w)
                         if k.startswith(("NOMAD_IP_", "NOMAD_PORT_", "NOMAD_ADDR_", "NOMAD_HOST_", "NOMAD_ALLOC_PORT_", "NOMAD_CPU_", "NOMAD_MEMORY_"))}
        given = alloc["AllocatedResources"]
        shared = str(given["Shared"]["Ports"][0]["Value"])
        dyn = str(given["Tasks"]["first"]["Networks"][0]["DynamicPorts"][0]["Value"])
        both = {"NOMAD_IP_shared": "127.0.0.1", "NOMAD_ADDR_shared": "127.0.0.1:" + shared, "NOMAD_PORT_shared": shared,
                "NOMAD_HOST_PORT_shared": shared, "NOMAD_HOST_IP_shared": "127.0.0.1", "NOMAD_ALLOC_PORT_shared": shared,
                "NOMAD_HOST_ADDR_shared": "127.0.0.1:" + shared}
        # Its own ports by their labels, without mapping; those of another task under that task's name.
        own, others = {}, {}
        for label, value in (("my_port", "18095"), ("dyn", dyn)):
            own.update({"NOMAD_IP_" + label: "127.0.0.1", "NOMAD_ADDR_" + label: "127.0.0.1:" + value, "NOMAD_PORT_" + label: value,
                        "NOMAD_HOST_PORT_" + label: value})
            others.update({"NOMAD_IP_first_" + label: "127.0.0.1", "NOMAD_ADDR_first_" + label: "127.0.0.1:" + value,
                           "NOMAD_PORT_first_" + label: value})
        case.equal(env["first"], {**both, **own, "NOMAD_CPU_LIMIT": "20", "NOMAD_MEMORY_LIMIT": "20"})
        case.equal(env["second"], {**both, **others, "NOMAD_CPU_LIMIT": "1000", "NOMAD_CPU_CORES": "0", "NOMAD_MEMORY_LIMIT": "20"})


def test_unsupported_network_modes_are_refused():
    """A job that requests no network must not get that of the host."""
    with cluster() as servers, node_of(servers):
        me = servers.wait_node()["ID"]
        for where, mode, part in (("group", "weird", 'network mode "weird" is unknown'), ("group", "cni/no/name", 'network mode "cni/no/name" is unknown'),
                                  ("group", "cni/x", "has no CNI network"), ("task", "none", 'cannot have mode "none"'),
                                  ("task", "bridge", 'cannot have mode "bridge"')):
            network = [{"Mode": mode}]
            made = job("%s-%s" % (where, mode.replace("/", "-")), driver="exec", group={"Networks": network} if where == "group" else None)
            if where == "task":
                made["TaskGroups"][0]["Tasks"][0]["Resources"]["Networks"] = network
            found = servers.wait_alloc(servers.run_job(made, me)[0], ["failed"])
            case.contains(displays(found)[-1], part)
            case.equal(found["TaskStates"]["t"]["StartedAt"] in (None, "0001-01-01T00:00:00Z"), True, "whether the task started")


class Refuses(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(500)
        self.end_headers()

    def log_message(self, *_):
        pass


def test_the_check_type_http_is_accepted_in_any_case():
    """Servers accept any case; such a check must not be made as a TCP check."""
    with cluster() as servers, node_of(servers), http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refuses) as refuses:
        threading.Thread(target=refuses.serve_forever, daemon=True).start()
        me = servers.wait_node()["ID"]
        check = {"Name": "c", "Type": "HTTP", "Path": "/", "Interval": 10**9, "Timeout": 20 * 10**9}
        alloc = servers.run_job(job("loud", group={"Services": [{"Name": "s", "PortLabel": str(refuses.server_address[1]), "Provider": "nomad",
                                                                 "Address": "127.0.0.1", "Tags": [], "Checks": [check]}]}), me)[0]
        servers.wait_alloc(alloc, ["running"])

        def found():
            results = servers.call_node(me, "Allocations.Checks", {"AllocID": alloc})["Results"] or {}
            return [(r["Status"], r["StatusCode"]) for r in results.values() if r["Status"] != "pending"]
        case.equal(case.until(found, 60, "the first request of the check"), [("failure", 500)])
        refuses.shutdown()


def test_environment_with_servers_of_1_6():
    run("1.6.10")


def test_environment_with_servers_of_2_0():
    run("2.0.5")


case.run(globals())
