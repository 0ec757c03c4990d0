#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares who reaches whom with containers of dockerd and of drover: published ports from the host, from another machine, from another container and
from inside, what of the host and beyond a container reaches, and with which addresses. The same image and the same ports, twice: with the defaults, and
with hairpin and IPv6 configured. Each difference must be a row of the table "Ports of containers" in docs/differences.md, and each row a difference.

    tests/nomad/isolated.py tests/engines/check_ports.py [-v]
"""
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import agent, api, build_dir, case, engines, images, networks, web  # noqa: E402
import table  # noqa: E402

REACH = os.path.join(build_dir(), "tests", "reach")
HOST, SECOND, OTHER = "198.18.0.1", "198.19.0.1", "198.18.0.2"  # the host's two addresses, another machine
HOST6, OTHER6 = "fd00:18::1", "fd00:18::2"
# label: (address of the host, port, port inside); 81 inside is not published
PORTS = {"web": (HOST, 18080, 80), "plain": (HOST, 18081, 18081), "second": (SECOND, 18082, 80), "six": (HOST6, 18083, 80), "dynamic": (HOST, 0, 80)}
LISTEN = ["80", "81", "18081"]
SETTINGS = """
client {
  host_network "second" {
    cidr = "198.19.0.0/24"
  }
  host_network "six" {
    cidr = "fd00:18::/64"
  }
  %s
}
plugin "docker" {
  config { }
}
"""


def start(words, prefix=()):
    """Starts reach, and returns it when it listens and all its attempts are over."""
    process = subprocess.Popen([*prefix, REACH, *words], stdout=subprocess.PIPE)
    found = []
    for line in process.stdout:
        if line == b"end\n":
            break
        found.append(line.decode())
    return process, "".join(found)


def attempts(words, prefix=()):
    process, text = start(["--", *words], prefix)
    process.wait()
    return text


@contextlib.contextmanager
def machines():
    """The host has a second network, and a neighbour that is a machine of its own, which routes the addresses of containers to the host."""
    networks.run("ip", "link", "add", "second", "type", "veth", "peer", "name", "second2")
    networks.run("ip", "addr", "add", SECOND + "/24", "dev", "second")
    networks.run("ip", "addr", "add", HOST6 + "/64", "dev", "uplink", "nodad")
    for name in ("second", "second2"):
        networks.run("ip", "link", "set", name, "up")
    networks.run("ip", "netns", "add", "other")
    networks.run("ip", "link", "set", "uplink2", "netns", "other")
    inside = ["ip", "netns", "exec", "other"]
    for words in (("addr", "add", OTHER + "/24", "dev", "uplink2"), ("addr", "add", OTHER6 + "/64", "dev", "uplink2", "nodad"), ("link", "set", "uplink2", "up"),
                  ("link", "set", "lo", "up"), ("route", "add", "default", "via", HOST), ("-6", "route", "add", "default", "via", HOST6)):
        networks.run(*inside, "ip", *words)
    servers = [start(["9000"])[0], start(["9000"], inside)[0]]
    try:
        yield inside
    finally:
        for process in servers:
            process.kill()
            process.wait()
        networks.run("ip", "netns", "del", "other")
        for name in ("second", *networks.links("bridge")):
            networks.run("ip", "link", "del", name)


def pairs(own, own6, dynamic, six):
    """Returns {name: (address, port)} of what may be reached from outside of a container."""
    ports = {label: (ip, port or dynamic) for label, (ip, port, _) in PORTS.items() if six or label != "six"}
    at = {"published port": ports["web"], "published port, the same inside": ports["plain"], "port of the second network": ports["second"],
          "dynamic port": ports["dynamic"], "published port at the second address": (SECOND, 18080),
          "port of the second network at the first address": (HOST, 18082), "port inside at the host's address": (HOST, 80),
          "container's address, published port": (own, 80), "container's address, other port": (own, 81)}
    if six:
        at.update({"IPv6 published port": ports["six"], "IPv6 container's address, published port": (own6, 80),
                   "IPv6 container's address, other port": (own6, 81), "IPv4 port at the IPv6 address": (HOST6, 18080)})
    return at


def words_of(where, at, protocols=("tcp", "udp")):
    return [w for name, (address, port) in at.items() for protocol in protocols for w in ("%s: %s, %s" % (where, name, protocol), protocol, address, str(port))]


def beyond(gateway, gateway6, six):
    """Returns what of the host and beyond a container may reach."""
    at = {"the host's listener": (HOST, 9000), "the host's listener at the bridge": (gateway, 9000), "another machine": (OTHER, 9000), "a loopback listener of its own": ("127.0.0.1", 81)}
    if six:
        at.update({"IPv6 the host's listener": (HOST6, 9000), "IPv6 the host's listener at the bridge": (gateway6, 9000), "IPv6 another machine": (OTHER6, 9000)})
    return at


def collect(six, inside, engine):
    """engine.serve() starts a container with all ports, and returns its addresses, those of its bridge, and its dynamic port; engine.probe(words)
    starts another one, which makes attempts; engine.own(words) makes attempts in the first."""
    own, own6, gateway, gateway6, dynamic = engine.serve()
    at = pairs(own, own6, dynamic, six)
    text = attempts(words_of("host", {**at, "published port at loopback": ("127.0.0.1", 18080), "IPv6 published port at loopback": ("::1", 18080)}))
    text += attempts(words_of("another machine", at), inside)
    other_text, other, other6 = engine.probe([*words_of("another container", at), *words_of("container", beyond(gateway, gateway6, six))])
    text += other_text
    at = {k: v for k, v in at.items() if "address" not in k}
    text += engine.own(words_of("itself", {**at, "its own address": (own, 80), "its loopback address": ("127.0.0.1", 80)}))
    names = {HOST: "the host", SECOND: "the host's second address", OTHER: "the other machine", HOST6: "the host", OTHER6: "the other machine", own: "the container",
             own6: "the container", gateway: "the bridge", gateway6: "the bridge", other: "the other container", other6: "the other container", "127.0.0.1": "loopback", "::1": "loopback"}
    facts = {}
    for line in text.splitlines():
        name, _, value = line.partition("|")
        if name != "end":
            facts[("hairpin and IPv6: " if six else "") + name] = "seen as " + names[value] if value in names else value
    case.equal([v for v in facts.values() if re.search(r"\d", v)], [], "addresses without a name")
    return facts


class Docker:
    def __init__(self, engine, six):
        self.engine, self.six = engine, six
        self.labels = [label for label in PORTS if six or label != "six"]

    def one(self, words, ports=None):
        self.engine.command = ["/reach", *LISTEN, "--", *words]
        host = {"PortBindings": ports or {}}
        self.engine.one("bridge", host, ExposedPorts={p: {} for p in host["PortBindings"]})
        text = case.until(lambda: "end\n" in self.engine.output() and self.engine.output(), 240, "the attempts of a container")
        return text, json.loads(self.engine.call("GET", "/containers/%s/json" % self.engine.ids[-1]))["NetworkSettings"]

    def serve(self):
        ports = {}
        for label in self.labels:
            ip, port, inside = PORTS[label]
            for protocol in ("tcp", "udp"):
                ports.setdefault("%d/%s" % (inside, protocol), []).append({"HostIp": ip, "HostPort": str(port or 18084)})
        _, found = self.one([], ports)
        self.first = self.engine.ids[-1]
        return found["IPAddress"], found["GlobalIPv6Address"], found["Gateway"], found["IPv6Gateway"], 18084

    def probe(self, words):
        text, found = self.one(words)
        return text, found["IPAddress"], found["GlobalIPv6Address"]

    def own(self, words):
        pid = json.loads(self.engine.call("GET", "/containers/%s/json" % self.first))["State"]["Pid"]
        return attempts(words, ["nsenter", "--net=/proc/%d/ns/net" % pid])


class Drover:
    def __init__(self, node, name, six):
        self.node, self.name, self.six = node, name, six

    def one(self, name, words, ports=(), dynamic=()):
        made = networks.job(name, "bridge", ports=list(ports), dynamic=list(dynamic), driver="docker")
        made["Job"]["TaskGroups"][0]["Tasks"][0].update(Config={"image": self.name, "entrypoint": ["/reach"], "args": [*LISTEN, "--", *words]}, Resources={"CPU": 10, "MemoryMB": 64})
        self.node.register(made)
        alloc = self.node.wait_running(name, seconds=60)[0]
        case.until(lambda: self.node.logs(alloc).endswith(b"end\n"), 240, "the attempts of a container")
        return self.node.logs(alloc).decode(), self.node.ask("/v1/allocation/" + alloc["ID"])

    def serve(self):
        networks_of = {"second": "second", "six": "six"}
        ports = [{"Label": label, "Value": port, "To": inside, "HostNetwork": networks_of.get(label, "default")}
                 for label, (_, port, inside) in PORTS.items() if port and (self.six or label != "six")]
        _, alloc = self.one("serve", [], ports, [{"Label": "dynamic", "To": 80}])
        self.first = alloc["ID"]
        status = alloc["NetworkStatus"]
        found = {p["Label"]: p["Value"] for p in alloc["AllocatedResources"]["Shared"]["Ports"]}
        return status["Address"], status.get("AddressIPv6", ""), "172.26.64.1", "fd00:a110:c8::1", found["dynamic"]

    def probe(self, words):
        text, alloc = self.one("probe", words)
        return text, alloc["NetworkStatus"]["Address"], alloc["NetworkStatus"].get("AddressIPv6", "")

    def own(self, words):
        return attempts(words, ["nsenter", "--net=%s/rt/netns/%s" % (self.node.data, self.first)])


def clean():
    """The next engine finds nothing that this one has set."""
    for tool in ("iptables", "ip6tables"):
        for of in ("filter", "nat"):
            subprocess.run("%s -w -t %s -F; %s -w -t %s -X" % (tool, of, tool, of), shell=True, check=True)
        networks.run(tool, "-w", "-P", "FORWARD", "ACCEPT")
    for name in ("net/ipv4/ip_forward", "net/ipv6/conf/all/forwarding"):
        case.write("/proc/sys/" + name, "0")
    for name in networks.links("bridge"):
        networks.run("ip", "link", "del", name)


def main():
    if not shutil.which("dockerd") or not shutil.which("skopeo"):
        sys.exit("check-containers needs docker.io and skopeo")
    networks.need()
    with open(REACH, "rb") as f:
        image = images.Image([images.tar([images.file("reach", f.read(), mode=0o755)])], {})
    cases = {}
    with web.Server(images.registry({"a": {"1": image}})) as server, machines() as inside:
        name = images.name(server, "a:1")
        for six in (False, True):
            more = {"userland_proxy": False, "ipv6": True, "fixed_cidr_v6": "fd00:a110:c9::/120", "experimental": True, "ip6tables": True} if six else {}
            with engines.dockerd(**more) as engine:
                engine.prepare(name)
                docker = collect(six, inside, Docker(engine, six))
            clean()
            settings = 'bridge_network_hairpin_mode = true\n  bridge_network_subnet_ipv6 = "fd00:a110:c8::/120"' if six else ""
            with api.Node(agent.config_args(SETTINGS % settings)) as node:
                ours = collect(six, inside, Drover(node, name, six))
                for job in ("serve", "probe"):
                    node.purge(job)
            clean()
            cases["with hairpin and IPv6" if six else "with the defaults"] = {"dockerd": docker, "drover": ours}
    sys.exit(table.report("Ports of containers", cases))


main()
