#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What servers place on drover: which jobs that drover cannot run they place elsewhere by themselves, and which ones need a constraint on an
attribute of the node. In namespaces of its own: tests/nomad/isolated.py runs it, for `make check-nomad NOMAD=path`.

    tests/nomad/isolated.py tests/nomad/check_placement.py PATH [test_…]…"""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import case  # noqa: E402
from lib.cluster import node_of  # noqa: E402
import client  # noqa: E402
import real  # noqa: E402
from real import Server  # noqa: E402

OURS, THEIRS = "ours", "theirs"
# Only servers of 1.7 and later can be told of a Vault that they need not reach.
VAULT = "" if real.older_than(1, 7) else 'vault {\n enabled = true\n default_identity {\n aud = ["x"]\n ttl = "1h"\n }\n}\n'
BRIDGE = "${attr.plugins.cni.version.bridge} semver >= 0.4.0"
# Servers place these elsewhere by themselves, each with the reason that they give. Blocks of the group, and of the task.
FILTERED = {
    "a bridge": ({"Networks": [{"Mode": "bridge"}]}, {}, BRIDGE),
    "a network of CNI": ({"Networks": [{"Mode": "cni/x"}]}, {}, "missing network"),
    "a service of Consul": ({"Services": [{"Name": "s", "Provider": "consul"}]}, {}, "${attr.consul.version} semver >= 1."),
    "a device": ({}, {"Resources": {"CPU": 20, "MemoryMB": 20, "Devices": [{"Name": "nvidia/gpu", "Count": 1}]}}, "missing devices"),
    "a driver": ({}, {"Driver": "java", "Config": {"jar_path": "x"}}, "missing drivers"),
    "a host volume": ({"Volumes": {"v": {"Name": "v", "Type": "host", "Source": "v"}}}, {}, "missing compatible host volumes"),
}
if real.older_than(1, 9):
    del FILTERED["a bridge"]  # these servers ask for the network alone, which the node has
if VAULT:
    FILTERED["a token of Vault"] = ({}, {"Vault": {"Role": "r", "ChangeMode": "noop"}}, "${attr.vault.version} semver >= 0.6.1")
if not real.older_than(1, 11):
    FILTERED["a secret"] = ({}, {"Secrets": [{"Name": "s", "Provider": "mine", "Path": "p"}]}, "${attr.plugins.secrets.mine.version} is_set")
# Servers place these on any node: the attribute says that drover lacks them.
UNFILTERED = {
    "drover.propagation_mode": ({"Volumes": {"v": {"Name": "v", "Type": "host", "Source": "both"}}}, {
        "Driver": "exec", "VolumeMounts": [{"Volume": "v", "Destination": "/v", "PropagationMode": "host-to-task"}]}),
}


def job(name, node, of_group, of_task, *constraints):
    made = real.sleeper(name, group=dict(of_group))
    made["Job"]["TaskGroups"][0]["Tasks"][0].update(of_task)
    made["Job"]["Constraints"] = [{"LTarget": "${node.unique.name}", "RTarget": node, "Operand": "="}, *constraints]
    return made


def run(name, *args):
    server.run(job(name, *args))


def reasons(name):
    """Waits until the servers have found no node for the job. Returns why, for each node that they looked at."""
    def look():
        found = [e["FailedTGAllocs"]["g"] for e in server.ask("/v1/job/%s/evaluations" % name) if e.get("FailedTGAllocs")]
        return found and found[0]
    found = case.until(look, 60, "no node for " + name)
    case.equal(server.allocs(name), [], "allocations of " + name)
    server.purge(name)
    return " ".join({**(found["ConstraintFiltered"] or {}), **(found["DimensionExhausted"] or {})})


def test_servers_do_not_place_what_drover_says_that_it_lacks():
    for number, (what, (of_group, of_task, reason)) in enumerate(FILTERED.items()):
        name = "filtered%d" % number
        run(name, OURS, of_group, of_task)
        case.contains(reasons(name), reason, what)


def attributes(name):
    return [server.ask("/v1/node/" + n["ID"]) for n in server.ask("/v1/nodes") if n["Name"] == name][0]["Attributes"]


def test_attributes_of_the_machine_are_those_of_the_original_client():
    ours, theirs = attributes(OURS), attributes(THEIRS)
    names = ("arch", "cpu.arch", "cpu.numcores", "kernel.arch", "kernel.name", "kernel.version", "os.name", "os.version", "unique.hostname")
    case.equal({n: ours.get(n) for n in names if n in theirs}, {n: theirs[n] for n in names if n in theirs})


def test_an_attribute_of_drover_keeps_other_jobs_away():
    case.equal({k for k, v in attributes(OURS).items() if k.startswith("drover.") and v == "false"}, set(UNFILTERED), "attributes")
    for number, (name, (of_group, of_task)) in enumerate(UNFILTERED.items()):
        away = {"LTarget": "${attr.%s}" % name, "RTarget": "false", "Operand": "!="}
        # Without it, the job fails.
        run("wrong%d" % number, OURS, of_group, of_task)
        alloc = server.wait("wrong%d" % number, ["failed"])[0]
        events = " ".join(e["DisplayMessage"] for e in server.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"])
        case.contains(events, "drover does not support", name)
        server.purge("wrong%d" % number)
        run("away%d" % number, OURS, of_group, of_task, away)
        case.contains(reasons("away%d" % number), "${attr.%s} != false" % name)
        # The original client does not have the attribute, and would get the job.
        plan = server.do("/v1/job/there/plan", job("there", THEIRS, of_group, of_task, away))
        case.equal(plan["FailedTGAllocs"], None, "nodes without a place for the job with " + name)


def test_jobs_with_networks_are_placed_where_the_plugins_are():
    cni = case.directory()
    for plugin in ("bridge", "firewall", "host-local", "loopback", "portmap"):
        case.write(cni + "/" + plugin, "#!/bin/sh\n[ -n \"$CNI_COMMAND\" ] && exit 1\necho CNI %s plugin v1.4.0\n" % plugin)
        os.chmod(cni + "/" + plugin, 0o755)
    case.write(cni + "/x.conf", '{"cniVersion":"1.0.0","name":"x","type":"bridge"}')
    with node_of(server, 'cni_path = "%s"\n cni_config_dir = "%s"\n' % (cni, cni), name="plugged"):
        for mode in ("bridge", "cni/x"):
            name = mode.replace("/", "-")
            run(name, "plugged", {"Networks": [{"Mode": mode}]}, {})
            case.until(lambda job=name: server.allocs(job), 60, "an allocation of " + name)
            server.purge(name)


def test_a_node_pool_of_its_own_keeps_all_jobs_away_that_do_not_name_it():
    name = "pooled"
    with node_of(server, '  node_pool = "drovers"\n', name=name):
        case.until(lambda: [n for n in server.ask("/v1/nodes") if n["Name"] == name and n["Status"] == "ready"], 60, "the node")
        run("default", name, {}, {})
        # No node of the pool "default" has this name.
        case.contains(reasons("default"), "${node.unique.name} = pooled")
        made = real.sleeper("pool")
        server.run(made, NodePool="drovers")
        server.wait("pool", ["running"])
        server.purge("pool")


volume = case.directory()
with Server(more=VAULT) as server, node_of(server, 'cni_path = "/nowhere"\n host_volume "both" {\n path = "%s"\n}\n' % volume, name=OURS), \
        client.Original(server, THEIRS, 'host_volume "both" {\n path = "%s"\n}\n' % volume):
    case.until(lambda: {n["Name"] for n in server.ask("/v1/nodes") if n["Status"] == "ready"} == {OURS, THEIRS}, 120, "two nodes")
    case.run(globals())
