#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the same jobs on drover and on a client of the servers' own program, and compares the environment of their tasks and the networks
that the nodes report. In namespaces of its own: tests/nomad/isolated.py runs it, for `make check-nomad NOMAD=path`.

    tests/nomad/isolated.py tests/nomad/check_environment.py PATH [test_…]…"""
import glob
import os
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import api, case  # noqa: E402
from lib.cluster import node_of  # noqa: E402
import client  # noqa: E402
import real  # noqa: E402
from real import Server  # noqa: E402

OURS, THEIRS = "ours", "theirs"
CHROOT = ["/usr/bin/env", "/etc/passwd", "/etc/group", *glob.glob("/lib/*-linux-gnu/libc.so.6"), *glob.glob("/lib*/ld-linux-*.so.*")]
NETWORKS = '''
  network_interface = "lo"
  meta {
    rack = "r1"
  }
  reserved {
    reserved_ports = "18301,18310-18312"
  }
  host_network "loop" {
    cidr           = "127.0.0.0/8"
    reserved_ports = "18320"
  }
'''
# Variables of each layer, with and without references.
ENV = {"PLAIN": "x y", "LINES": "a\nb", "REFERS": "${NOMAD_TASK_NAME} ${NOMAD_META_level} ${NOMAD_ADDR_my-port}", "UNKNOWN": "${nobody.knows} $${X}",
       "NODE": "${node.datacenter} ${node.region} ${node.class} ${meta.rack} ${attr.kernel.name}", "NOT_HERE": '${env["NOMAD_DC"]} ${1+1} %{x}',
       "NOMAD_DC": "mine"}
META = {"level": "job", "a-key.x": "j", "kernel": "${attr.kernel.name} ${NOMAD_GROUP_NAME} ${nobody.knows}", "6": "digit"}


# The parent cgroup, which belongs to the agent; and a variable that only 2.0 has for the task's own network.
OTHERS = ("NOMAD_PARENT_CGROUP", "NOMAD_IPv4_")


def task(name, driver, **more):
    return api.task(name, "/usr/bin/env", ["-0"], driver, **more)


def ports(first):
    """Returns the attributes that differ between the nodes, which are on one machine."""
    return [{"Mode": "host", "ReservedPorts": [{"Label": "my-port", "Value": first, "To": 80}, {"Label": "looped", "Value": first + 1,
                                                                                             "HostNetwork": "loop"}],
             "DynamicPorts": [{"Label": "same", "To": -1}, {"Label": "free"}]}]


def told(alloc, name):
    """Returns {variable: value}, with ids and paths of this alloc replaced by their kind."""
    text = read("/v1/client/fs/logs/%s?task=%s&type=stdout&plain=true" % (alloc["ID"], name)).decode()
    env = dict(w.split("=", 1) for w in text.split("\0") if w)
    words = {alloc["ID"]: "<alloc>", alloc["ID"][:8]: "<short>", alloc["JobID"]: "<job>"}
    for port in alloc["AllocatedResources"]["Shared"]["Ports"] or ():
        words[str(port["Value"])] = "<%s>" % port["Label"]
    for of_task in alloc["AllocatedResources"]["Tasks"].values():
        for network in of_task["Networks"] or ():
            words.update({str(p["Value"]): "<%s>" % p["Label"] for p in (network["ReservedPorts"] or []) + (network["DynamicPorts"] or [])})
    for dirname in ("NOMAD_ALLOC_DIR", "NOMAD_TASK_DIR", "NOMAD_SECRETS_DIR"):
        if env[dirname].count("/") > 1:
            env[dirname] = "<a path of the host>"
    for word in sorted(words, key=len, reverse=True):
        env = {k: v.replace(word, words[word]) for k, v in env.items()}
    if not env.get("NOMAD_CPU_CORES", "").strip():  # later clients write this with a blank
        env.pop("NOMAD_CPU_CORES", None)
    return {k: v for k, v in env.items() if k in ENV or (k.startswith("NOMAD_") and not k.startswith(OTHERS))}


def read(path):
    with urllib.request.urlopen("http://127.0.0.1:%d%s" % (server.ports[0], path), timeout=60) as answer:
        return answer.read()


def begin(name, group, **fields):
    for number, node in enumerate((OURS, THEIRS)):
        made = api.job("%s-%s" % (name, node), group={**group(18330 + 10 * number), "Update": None})
        server.run(made, Type="batch", Constraints=[{"LTarget": "${node.unique.name}", "RTarget": node, "Operand": "="}], **fields)


def ended(name, end):
    """Waits until both allocs have ended with this status. Returns {node: its alloc}."""
    found = {}
    for node in (OURS, THEIRS):
        alloc = server.wait("%s-%s" % (name, node), [end], 120)[0]
        found[node] = server.ask("/v1/allocation/" + alloc["ID"])
    return found


def run(name, group, **fields):
    begin(name, group, **fields)
    return ended(name, "complete")


def same(found, names):
    for name in names:
        ours, theirs = told(found[OURS], name), told(found[THEIRS], name)
        assert len(theirs) > 20, theirs
        odd = {k: (ours.get(k), theirs.get(k)) for k in sorted({*ours, *theirs}) if ours.get(k) != theirs.get(k)}
        case.equal(odd, {}, "the environment of task %s, by drover and by the original client" % name)
    for alloc in found.values():
        server.purge(alloc["JobID"])


def all_of(driver):
    same(run("all-" + driver.replace("_", "-"), lambda first: {"Networks": ports(first), "Meta": {"level": "group", "of-group": "g"}, "Tasks": [
        task("t", driver, Env=ENV, Meta={"level": "task", "own": ""}),
        task("u", driver, Resources={"CPU": 50, "MemoryMB": 20, "MemoryMaxMB": 30})]}, Meta=META, Name="by name"), "tu")


def test_the_environment_of_raw_exec():
    all_of("raw_exec")


def test_the_environment_of_exec():
    all_of("exec")


# Arguments that both evaluate to the same.
ARGS = ("${NOMAD_TASK_NAME}", "a${NOMAD_DC}b${NOMAD_DC}", '${env["NOMAD_DC"]}', "${ NOMAD_DC }", "${OWN}", "${attr.kernel.name}", "${meta.rack}",
        "${node.region}", "[${node.class}]", "${NOMAD_META_level}", "$${NOMAD_DC}", "%%{if}", "$HOME $1 100% $$ {x}", "x\\ny", 'a "b" c',
        "${upper(NOMAD_TASK_NAME)}", "${NOMAD_ALLOC_INDEX + 1}", "${env.OWN}", "${node.attr.kernel.name}", "${node.meta.rack}", "${1/3}", "${0.1 + 0.2}",
        '${NOMAD_ALLOC_INDEX == "0" ? "first" : nobody}', '%{for x in jsondecode(LIST) ~}  <${x}> %{endfor}', '${length(jsondecode(LIST))}',
        "${true}", "$${upper(X)} ${lower(NOMAD_DC)}", '${jsonencode({a = [OWN, 1, null]})}', '${attr["kernel"]["name"]}', '${substr("häuser", 1, 2)}',
        "a ${~ OWN ~} b", 8080, 0.1, 1e21, True, None, '${hasindex(jsondecode(LIST), 1)}${int(7 / 2)}${max(1, 5, 2)}${abs(-3)}${reverse("ab")}${strlen("ä")}',
        '${concat(["x"], jsondecode(LIST))[1]}${coalesce(null, "c")}${min("3", 2)}', "${null}")
REFUSED = ("${nobody}", "${unclosed", "${NOMAD_DC:-x}", "${NOMAD_DC#/}", "%{x", "${}", "${upper(nobody)}", "${attr.kernel}", '${format("%s", OWN)}',
           '${file("/etc/passwd")}', "${NOMAD_DC + 1}", "${[1]}", '${attr["kernel.name"]}', '${env["NOBODY"]}', "%{if true}x")


def test_the_arguments_of_a_task():
    found = run("args", lambda first: {"Tasks": [api.task("t", "/usr/bin/printf", ["[%s]", *ARGS], "raw_exec", Env={"OWN": "x y", "LIST": '["a", "b"]'})]}, Meta={"level": "v"})
    said = {n: read("/v1/client/fs/logs/%s?task=t&type=stdout&plain=true" % a["ID"]) for n, a in found.items()}
    case.equal(said[OURS], said[THEIRS], "arguments of the program")
    for alloc in found.values():
        server.purge(alloc["JobID"])
    for number, text in enumerate(REFUSED):
        begin("bad%d" % number, lambda first, t=text: {"Tasks": [api.task("t", "/usr/bin/echo", [t], "raw_exec")]})
    for number, text in enumerate(REFUSED):
        for node, alloc in ended("bad%d" % number, "failed").items():
            case.contains([e["Type"] for e in alloc["TaskStates"]["t"]["Events"]], "Failed Validation", "%s on %s" % (text, node))
            server.purge(alloc["JobID"])


def test_networks_of_tasks():
    def group(first):
        network = {"MBits": 1, "ReservedPorts": [{"Label": "my-port", "Value": first, "To": 80}], "DynamicPorts": [{"Label": "dyn"}]}
        return {"Tasks": [task("t", "raw_exec", Resources={"CPU": 20, "MemoryMB": 20, "Networks": [network]}), task("u", "raw_exec")]}
    same(run("old", group), "tu")


def test_the_networks_of_the_node():
    nodes = {n["Name"]: server.ask("/v1/node/" + n["ID"]) for n in server.ask("/v1/nodes")}

    def networks(node):
        return {(a["Alias"], a["Family"], a["Address"], a["ReservedPorts"]) for n in node["NodeResources"]["NodeNetworks"] or ()
                if n["Device"] == "lo" for a in n["Addresses"] or ()}
    for what in (networks, lambda n: n["HostNetworks"], lambda n: n["ReservedResources"]["Networks"],
                 lambda n: (n["NodeResources"]["MinDynamicPort"], n["NodeResources"]["MaxDynamicPort"]),
                 lambda n: n["Attributes"]["unique.network.ip-address"]):
        case.equal(what(nodes[OURS]), what(nodes[THEIRS]))
    # The servers assign no reserved port of the node.
    for number, port in enumerate(({"Value": 18311}, {"Value": 18320, "HostNetwork": "loop"})):
        name = "kept%d" % number
        server.run(api.job(name, group={"Networks": [{"Mode": "host", "ReservedPorts": [{"Label": "x", **port}]}]}))

        def refused(job=name):
            found = [e["FailedTGAllocs"] for e in server.ask("/v1/job/%s/evaluations" % job) if e.get("FailedTGAllocs")]
            return found and found[0]["g"]["DimensionExhausted"]
        found = case.until(refused, 60, "the servers to refuse the port")
        case.contains(" ".join(found), "reserved port collision x=%d" % port["Value"])
        case.equal(sum(found.values()), 2, "nodes")
        server.purge(name)


chroot = "chroot_env {\n%s\n}" % "\n".join('"%s" = "%s"' % (p, p) for p in CHROOT)
with Server() as server, node_of(server, NETWORKS, name=OURS), \
        client.Original(server, THEIRS, chroot + NETWORKS.replace('network_interface = "lo"', "")):
    case.until(lambda: {n["Name"] for n in server.ask("/v1/nodes") if n["Status"] == "ready"} == {OURS, THEIRS}, 120, "two nodes")
    case.run(globals())
