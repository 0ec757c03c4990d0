#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Addresses and ports of the node as configured: host networks, the range of dynamic ports, reserved ports."""
import os

from lib import agent, api, case

CONFIG = '''client {
  network_interface = "lo"
  min_dynamic_port  = 18200
  max_dynamic_port  = 18203
  reserved { reserved_ports = "18201, 18210-18219" }
  host_network "loop" {
    interface      = "lo"
    cidr           = "127.0.0.0/8"
    reserved_ports = "18230"
  }
  host_network "six" { cidr = "::1/128" }
  host_network "far" { cidr = "203.0.113.0/24" }
}
'''
HAS_SIX = os.path.exists("/proc/net/if_inet6") and "0" * 31 + "1" in open("/proc/net/if_inet6", encoding="ascii").read()


def static(label, value, **more):
    return {"Label": label, "Value": value, **more}


def job(name, ports=(), dynamic=(), services=(), command="/bin/sleep", args=("1000",)):
    return api.job(name, command, args, group={"Services": list(services), "Networks": [
        {"Mode": "host", "ReservedPorts": list(ports), "DynamicPorts": list(dynamic)}]})


def unplaced(made):
    return node.wait_evaluation(node.register(made)["EvalID"])["FailedTGAllocs"]["g"]


def exhausted(made):
    return unplaced(made)["DimensionExhausted"]


def collision(what):
    return {"network: reserved port collision " + what: 1}


def runs(made):
    node.register(made)
    alloc = node.wait_running(made["Job"]["ID"])[0]
    return {p["Label"]: p for p in node.ask("/v1/allocation/" + alloc["ID"])["AllocatedResources"]["Shared"]["Ports"]}, alloc


def test_the_node_lists_its_addresses_and_ports():
    me = node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])
    first = me["NodeResources"]["NodeNetworks"][0]
    found = {(a["Alias"], a["Address"]): a["ReservedPorts"] for a in first["Addresses"]}
    wanted = {("default", "127.0.0.1"): "", ("loop", "127.0.0.1"): "18230"}
    if HAS_SIX:
        wanted.update({("default", "::1"): "", ("six", "::1"): ""})
    case.equal((first["Device"], {k: v for k, v in found.items() if k in wanted}), ("lo", wanted))
    case.equal([a for n in me["NodeResources"]["NodeNetworks"] for a in n["Addresses"] or () if a["Alias"] == "far"], [])
    case.equal((me["NodeResources"]["MinDynamicPort"], me["NodeResources"]["MaxDynamicPort"]), (18200, 18203))
    case.equal(me["ReservedResources"]["Networks"]["ReservedHostPorts"], "18201, 18210-18219")
    case.equal(me["HostNetworks"]["loop"], {"Name": "loop", "Interface": "lo", "CIDR": "127.0.0.0/8", "ReservedPorts": "18230"})
    case.equal((me["NodeResources"]["Networks"][0]["IP"], me["Attributes"]["unique.network.ip-address"]), ("127.0.0.1",) * 2)


def test_reserved_ports_are_not_given_to_jobs():
    case.equal(exhausted(job("kept", [static("http", 18215)])), collision("http=18215 (the node's configuration reserves it)"))
    case.equal(exhausted(job("kept", [static("http", 18230, HostNetwork="loop")])),
               collision("http=18230 (the node's configuration reserves it)"))
    # The port is reserved only in that network.
    ports, _ = runs(job("kept", [static("http", 18230)]))
    case.equal((ports["http"]["HostIP"], ports["http"]["Value"]), ("127.0.0.1", 18230))
    node.purge("kept")


def test_dynamic_ports_come_from_the_range_until_it_is_exhausted():
    ports, _ = runs(job("two", dynamic=[{"Label": "a"}, {"Label": "b"}]))
    found = {p["Value"] for p in ports.values()}
    case.equal((len(found), found <= {18200, 18202, 18203}), (2, True), found)
    lacks = job("more", dynamic=[{"Label": "c"}, {"Label": "d"}])
    case.equal(list(exhausted(lacks)), ["network: dynamic port selection failed: none of 18200 to 18203 is free at 127.0.0.1 for d"])
    node.purge("two")
    # A port is free now, and the waiting job gets it without another registration.
    case.equal(len(node.wait_running("more")), 1)
    # A static port may be in the dynamic range too.
    free = ({18200, 18202, 18203} - {p["Value"] for p in node.ask("/v1/allocation/" + node.allocs("more")[0]["ID"])[
        "AllocatedResources"]["Shared"]["Ports"]}).pop()
    runs(job("fixed", [static("x", free)]))
    case.equal(list(exhausted(job("none", dynamic=[{"Label": "e"}]))),
               ["network: dynamic port selection failed: none of 18200 to 18203 is free at 127.0.0.1 for e"])
    for name in ("none", "fixed", "more"):
        node.purge(name)


def test_a_job_with_few_ports_is_placed_before_a_blocked_one_with_many():
    for name, wants in (("two", "ab"), ("one", "c")):
        runs(job(name, dynamic=[{"Label": label} for label in wants]))
    for name, wants in (("more", "de"), ("fewer", "f")):
        case.equal(len(exhausted(job(name, dynamic=[{"Label": label} for label in wants]))), 1)
    node.purge("one")
    node.wait_running("fewer", seconds=60)
    case.equal(node.allocs("more"), [])
    for name in ("fewer", "two"):
        node.purge(name)
    node.wait_running("more", seconds=60)
    node.purge("more")


def test_unknown_host_networks_are_refused():
    for name in ("far", "nowhere"):
        found = unplaced(job("away", [static("http", 18240, HostNetwork=name)]))
        case.equal(found["ConstraintFiltered"], {'missing host network "%s" for port "http"' % name: 1})
    node.purge("away")


def test_a_port_of_a_host_network_has_its_address():
    if not HAS_SIX:
        case.skip("this machine has no ::1")
    words = ["-c", "env; echo; echo done; exec sleep 1000"]
    service = {"Name": "web", "PortLabel": "http", "Provider": "nomad"}
    ports, alloc = runs(job("six", [static("http", 18250, HostNetwork="six", To=80)], [{"Label": "any", "HostNetwork": "loop"}],
                            [service], "/bin/sh", words))
    case.equal([(p["HostIP"], p["Value"]) for p in (ports["http"], ports["any"])], [("::1", 18250), ("127.0.0.1", ports["any"]["Value"])])
    node.wait_said(alloc, b"\n\ndone\n")
    env = dict(line.split("=", 1) for line in node.logs(alloc).decode().splitlines() if line.startswith("NOMAD_"))
    any_port = str(ports["any"]["Value"])
    wanted = {"NOMAD_IP_http": "::1", "NOMAD_ADDR_http": "[::1]:18250", "NOMAD_PORT_http": "80", "NOMAD_HOST_PORT_http": "18250",
              "NOMAD_HOST_IP_http": "::1", "NOMAD_HOST_ADDR_http": "[::1]:18250", "NOMAD_ALLOC_PORT_http": "80",
              "NOMAD_IP_any": "127.0.0.1", "NOMAD_ADDR_any": "127.0.0.1:" + any_port, "NOMAD_PORT_any": any_port}
    case.equal({k: env.get(k) for k in wanted}, wanted)
    case.equal([(s["Address"], s["Port"]) for s in node.ask("/v1/service/web")], [("::1", 18250)])
    # The same port of another address is free.
    runs(job("four", [static("http", 18250)]))
    case.equal(exhausted(job("again", [static("http", 18250, HostNetwork="six")])), collision("http=18250 (six.g[0] has it)"))
    case.equal(exhausted(job("again", [static("http", 18250, HostNetwork="loop")])), collision("http=18250 (four.g[0] has it)"))
    # The same after a restart of the supervisor.
    node.kill("supervisor")
    node.wait_ready()
    case.equal(exhausted(job("again", [static("x", 18250, HostNetwork="six")])), collision("x=18250 (six.g[0] has it)"))
    node.do("PUT", "/v1/allocation/%s/stop" % alloc["ID"])
    node.purge("six")
    case.equal(node.wait_running("again")[0]["DesiredStatus"], "run")
    for name in ("again", "four"):
        node.purge(name)


def test_a_task_has_ports_in_its_resources():
    made = job("old", [static("of_group", 18240)], command="/bin/sh", args=["-c", "env; echo; echo done; sleep 1000"])
    task = made["Job"]["TaskGroups"][0]["Tasks"][0]
    task["Resources"]["Networks"] = [{"ReservedPorts": [static("admin", 18241)], "DynamicPorts": [{"Label": "http"}]}]
    task["Services"] = [{"Name": "of-task", "PortLabel": "http", "Provider": "nomad"}]
    node.register(made)
    alloc = node.wait_running("old")[0]
    net, = node.ask("/v1/allocation/" + alloc["ID"])["AllocatedResources"]["Tasks"]["t"]["Networks"]
    port = net["DynamicPorts"][0]["Value"]
    case.equal((net["IP"], 18200 <= port <= 18203), ("127.0.0.1", True), "the port of the task: %s" % net)
    node.wait_said(alloc, b"\n\ndone\n")
    found = dict(line.split("=", 1) for line in node.logs(alloc).decode().splitlines() if line.startswith("NOMAD_"))
    wanted = {"NOMAD_PORT_http": str(port), "NOMAD_ADDR_http": "127.0.0.1:%d" % port, "NOMAD_IP_admin": "127.0.0.1",
              "NOMAD_HOST_PORT_admin": "18241", "NOMAD_PORT_of_group": "18240"}
    case.equal({k: found.get(k) for k in wanted}, wanted)
    case.equal([(i["Address"], i["Port"]) for i in node.ask("/v1/service/of-task")], [("127.0.0.1", port)])
    case.equal(exhausted(job("other", [static("a", 18241)])), collision("a=18241 (old.g[0] has it)"))
    node.purge("old")
    node.wait_running("other")
    node.purge("other")
    made = job("bad")
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Resources"]["Networks"] = [{"ReservedPorts": [static("a", 0)]}]
    node.refused(400, "0 is not a port number", "POST", "/v1/jobs", made)


def test_a_group_has_several_networks():
    made = job("several", [static("a", 18242)])
    made["Job"]["TaskGroups"][0]["Networks"].append({"Mode": "host", "ReservedPorts": [static("b", 18243)], "DynamicPorts": [{"Label": "c"}]})
    case.equal({k: p["Value"] for k, p in runs(made)[0].items() if k != "c"}, {"a": 18242, "b": 18243})
    node.purge("several")
    made["Job"]["TaskGroups"][0]["Networks"][1]["DynamicPorts"][0]["Label"] = "a"
    node.refused(400, 'two ports have the label "a"', "POST", "/v1/jobs", made)


def test_two_host_networks_with_one_address_share_its_ports():
    found = exhausted(job("twice", [static("a", 18260), static("b", 18260, HostNetwork="loop")]))
    case.equal(found, collision("b=18260 (the same group has it twice)"))
    node.purge("twice")
    # Unless the job ignores the collision explicitly.
    first, _ = runs(job("shared", [static("a", 18260, IgnoreCollision=True), static("b", 18260, HostNetwork="loop", IgnoreCollision=True)]))
    case.equal([p["Value"] for p in first.values()], [18260, 18260])
    runs(job("shares", [static("a", 18260, IgnoreCollision=True)]))
    for name in ("shares", "shared"):
        node.purge(name)


with api.Node(agent.config_args(CONFIG)) as node:
    case.run(globals())
