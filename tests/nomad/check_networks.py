#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the same jobs with networks on drover and on a client of the servers' own program, both at one bridge, with the CNI plugins of Debian: compares
the variables of tasks, NetworkStatus and ports, the rules that are made, what a restart of the agent keeps, and what is left after the end.
CNI_PLUGINS=path/to/bridge names one of another set of plugins, whose CHECK both clients call. `make check-nomad NOMAD=path` runs it.

    tests/nomad/isolated.py tests/nomad/check_networks.py PATH [test_…]…"""
import contextlib
import ipaddress
import json
import os
import re
import sys
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import api, case, networks  # noqa: E402
from lib.cluster import node_of  # noqa: E402
import client  # noqa: E402
from real import Server, older_than  # noqa: E402

OURS, THEIRS = "ours", "theirs"
SUBNET, SUBNET6 = "172.26.64.0/20", "fd00:a110:c8::/120"
NEWER = bool(os.environ.get("CNI_PLUGINS"))
PLUGINS = os.path.dirname(os.environ.get("CNI_PLUGINS") or networks.PLUGINS + "/bridge")
SETTINGS = '''
  network_interface = "uplink"
  cni_path = "%s"
  bridge_network_subnet = "%s"
  %s
  host_network "second" {
    cidr = "198.19.0.0/24"
  }
  host_network "six" {
    cidr = "fd00:18::/64"
  }
''' % (PLUGINS, SUBNET, "" if older_than(1, 9) else 'bridge_network_subnet_ipv6 = "%s"' % SUBNET6)


def group(first, mode, script):
    ports = [{"Label": "static", "Value": first}, {"Label": "web-1", "Value": first + 1, "To": 80}, {"Label": "second", "Value": first + 2, "To": 81, "HostNetwork": "second"},
             {"Label": "six", "Value": first + 3, "To": 82, "HostNetwork": "six"}]
    return {"Networks": [{"Mode": mode, "ReservedPorts": ports, "DynamicPorts": [{"Label": "dyn"}, {"Label": "same", "To": -1}, {"Label": "to", "To": 8080}]}] if mode != "none"
            else [{"Mode": mode}], "Tasks": [api.task("t", "/bin/sh", ["-c", script], "raw_exec")], "Update": None}


class Pair:
    """Two allocs of one job, each on its node."""

    def __init__(self, name, mode, script="env -0; printf 'end=\\0'; exec sleep 1000"):
        self.name = name
        for number, node in enumerate((OURS, THEIRS)):
            server.run(api.job("%s-%s" % (name, node), group=group(18300 + 20 * number, mode, script)),
                       Constraints=[{"LTarget": "${node.unique.name}", "RTarget": node, "Operand": "="}])
        self.refresh()

    def refresh(self):
        self.allocs = {n: server.ask("/v1/allocation/" + server.wait("%s-%s" % (self.name, n), ["running"], 120)[0]["ID"]) for n in (OURS, THEIRS)}

    def words(self, node):
        """Returns what is the node's own in texts, and how it is written for a comparison."""
        alloc = self.allocs[node]
        status = alloc["NetworkStatus"] or {}
        words = {alloc["ID"]: "<alloc>", alloc["ID"][:8]: "<short>", alloc["JobID"]: "<job>", status.get("Address"): "<address>", status.get("AddressIPv6"): "<address6>"}
        words.update({str(p["Value"]): "<%s>" % p["Label"] for p in alloc["AllocatedResources"]["Shared"]["Ports"] or ()})
        return {k: v for k, v in words.items() if k}

    def plain(self, node, text):
        words = self.words(node)
        for word in sorted(words, key=len, reverse=True):
            text = text.replace(word, words[word])
        return text

    def env(self, node):
        alloc = self.allocs[node]
        url = "http://127.0.0.1:%d/v1/client/fs/logs/%s?task=t&type=stdout&plain=true" % (server.ports[0], alloc["ID"])

        def whole():
            with urllib.request.urlopen(url, timeout=60) as answer:
                text = answer.read().decode()
            return text if text.endswith("end=\0") else None
        env = dict(w.split("=", 1) for w in case.until(whole, 60, "the variables on " + node).split("\0") if w)
        return {k: self.plain(node, v) for k, v in env.items() if re.match(r"NOMAD_(IP|PORT|ADDR|HOST|ALLOC_(IP|PORT|ADDR|INTERFACE)|IPv)", k)}

    def rules(self, node):
        """Returns the rules of both families that are the alloc's, without names that are hashes."""
        found = []
        alloc = self.allocs[node]
        for tool in ("iptables-save", "ip6tables-save"):
            lines = [re.sub(r"^(:\S+ \S+) .*", r"\1", line) for line in networks.run(tool).splitlines()]
            mine = [w for w in self.words(node) if ":" in w or "." in w] + [alloc["ID"]]
            chains = {c for line in lines if any(w in line for w in mine) for c in re.findall(r"CNI-(?:DN-)?[0-9a-f]{20,}", line)}
            found += [tool[:4].rstrip("t") + " " + re.sub(r"CNI-(DN-)?[0-9a-f]{20,}", r"<\1chain>", self.plain(node, line)) for line in lines
                      if any(w in line for w in [*mine, *chains])]
        return sorted(found)

    def status(self, node):
        text = json.dumps(self.allocs[node]["NetworkStatus"], sort_keys=True)
        for net in (SUBNET, SUBNET6):  # each address is of its subnet
            for word in re.findall(r"[0-9a-f.:]{7,}", text):
                with contextlib.suppress(ValueError):
                    if ipaddress.ip_address(word) in ipaddress.ip_network(net):
                        text = text.replace('"%s"' % word, '"<of %s>"' % net)
        return text

    def ports(self, node):
        return self.plain(node, json.dumps(self.allocs[node]["AllocatedResources"]["Shared"]["Ports"]))

    def same(self):
        for what in (self.env, self.status, self.ports, self.rules):
            case.equal(what(OURS), what(THEIRS), "%s of %s, by drover and by the original client" % (what.__name__, self.name))

    def end(self):
        """Ends both, and checks that nothing is left."""
        own = {n: self.words(n) for n in self.allocs}
        for n in self.allocs:
            server.purge("%s-%s" % (self.name, n))

        theirs_left = set(networks.addresses()) - {w for of in own.values() for w in of} if NEWER else set()

        def left():
            texts = networks.run("iptables-save") + networks.run("ip6tables-save")
            spaces = os.listdir("/run/netns") if os.path.isdir("/run/netns") else []
            return [w for of in own.values() for w in of if w in texts and len(w) > 8] + sorted(set(networks.addresses()) - theirs_left) + \
                [name for name in networks.links("veth") if name not in LINKS] + networks.names(ours) + spaces
        try:
            case.until(lambda: not left(), 60, "the end of both networks")
        except AssertionError as e:
            raise AssertionError("%s: %s is left" % (e, left())) from None


def test_a_bridge_with_ports():
    pair = Pair("ports", "bridge")
    case.equal(len(pair.env(THEIRS)) > 20, True, "variables")
    case.equal(len(pair.rules(THEIRS)) > 10, True, "rules")
    pair.same()
    pair.end()


def test_a_network_without_anything():
    """Clients of 2.0 cannot make one."""
    for n in (OURS, THEIRS):
        server.run(api.job("alone-" + n, group=group(18300, "none", "exec sleep 1000")), Constraints=[{"LTarget": "${node.unique.name}", "RTarget": n, "Operand": "="}])
    server.wait("alone-" + OURS, ["running"], 60)
    alloc = case.until(lambda: [a for a in server.allocs("alone-" + THEIRS) if a["ClientStatus"] in ("running", "failed")], 60, "an end of the original client's")[0]
    if alloc["ClientStatus"] == "failed":
        case.contains(json.dumps(alloc["TaskStates"]), "network already configured but not found")
    case.equal(networks.addresses(), [])
    for n in (OURS, THEIRS):
        server.purge("alone-" + n)
    case.until(lambda: networks.names(ours) == [], 60, "the end of the network")


def test_the_original_client_lets_all_in():
    """As docs/networks.md says: drover makes no rule in the administrator's chain, and the original client one for its bridge."""
    case.equal(ADMIN, [], "rules before the original client has started")
    pair = Pair("open", "bridge")
    case.equal(networks.rules("-A NOMAD-ADMIN"), ["-A NOMAD-ADMIN -d %s -o nomad -j ACCEPT" % SUBNET])
    pair.end()


def restart():
    ours.replace_supervisor()
    theirs.kill()
    theirs.start()
    case.until(lambda: theirs.get("/v1/agent/self")[0] == 200, 60, "the original client to start again")


def test_a_restart_of_the_agent_keeps_the_network():
    pair = Pair("kept", "bridge")
    before = {n: (pair.status(n), pair.rules(n), pair.allocs[n]["NetworkStatus"]) for n in pair.allocs}
    restart()
    pair.refresh()
    case.equal({n: (pair.status(n), pair.rules(n), pair.allocs[n]["NetworkStatus"]) for n in pair.allocs}, before)
    pair.same()
    pair.end()


def test_a_network_that_was_broken_while_the_agent_was_away():
    """drover reports it, and the tasks run on. The original client calls CHECK only with plugins since 1.3.0, and then its allocation fails."""
    pair = Pair("broken", "bridge")
    networks.run("iptables", "-w", "-D", "CNI-FORWARD", "1")  # to the administrator's chain: the plugin firewall misses it
    restart()

    def told():
        found = {n: server.ask("/v1/allocation/" + a["ID"]) for n, a in pair.allocs.items()}
        is_told = "failed its check" in json.dumps(found[OURS]["TaskStates"])
        return found if is_told and found[THEIRS]["ClientStatus"] == ("failed" if NEWER else "running") else None
    found = case.until(told, 60, "an event about the check")
    case.equal(found[OURS]["ClientStatus"], "running")
    if NEWER:
        case.contains(json.dumps(found[THEIRS]["TaskStates"]), "duplicate allocation is not allowed")
        del pair.allocs[THEIRS]  # it leaves rules and its address
        server.purge("broken-" + THEIRS)
    pair.end()


networks.need()
networks.run("ip", "link", "add", "second", "type", "veth", "peer", "name", "second2")
networks.run("ip", "addr", "add", "198.19.0.1/24", "dev", "second")
networks.run("ip", "addr", "add", "fd00:18::1/64", "dev", "uplink", "nodad")
for link in ("second", "second2"):
    networks.run("ip", "link", "set", link, "up")
LINKS = networks.links("veth")
client.CONFIG = client.CONFIG.replace('network_interface = "lo"', "")
with Server() as server, node_of(server, SETTINGS, name=OURS) as ours:
    server.wait_ready()
    server.run(api.job("first", group=group(18390, "bridge", "exec sleep 1000")))
    server.wait("first", ["running"], 60)
    ADMIN = networks.rules("-A NOMAD-ADMIN")
    server.purge("first")
    with client.Original(server, THEIRS, SETTINGS) as theirs:
        case.until(lambda: {n["Name"] for n in server.ask("/v1/nodes") if n["Status"] == "ready"} == {OURS, THEIRS}, 120, "two nodes")
        case.run(globals())
