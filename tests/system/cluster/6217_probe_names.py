#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 30
"""A probe of a node whose servers have names: what it says about resolvers that do not work, and about nothing else."""
import os
import socket
import struct
import threading

from lib import case, cluster, helper

NAME = "servers.test"
MS_BIND = 4096


class Resolver:
    """The machine's name server, at 127.0.0.1:53. .says chooses what it answers."""

    def __init__(self):
        conf = case.directory() + "/resolv.conf"
        with open(conf, "w", encoding="ascii") as f:
            f.write("nameserver 127.0.0.1\n")
        os.chmod(os.path.dirname(conf), 0o755)
        helper.mount(conf, "/etc/resolv.conf", None, MS_BIND)
        self.says = "address"
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        helper.umount("/etc/resolv.conf")

    def serve(self):
        while True:
            query, client = self.socket.recvfrom(4096)
            answer = self.answer(query)
            if answer:
                self.socket.sendto(answer, client)

    def answer(self, query):
        end = query.index(b"\0", 12) + 5
        question, kind = query[12:end], struct.unpack(">H", query[end - 4:end - 2])[0]

        def reply(code, n=0, data=b""):
            return query[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, n, 0, 0) + question + data
        if self.says == "address" and kind == 1:
            return reply(0, 1, b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 0, 4) + bytes([127, 0, 0, 1]))
        return {"address": reply(0), "none": reply(3), "failure": reply(2), "silence": None,
                "garbage": reply(0, 3, b"\xff" * 9)}[self.says]


class Named:
    """The servers by name."""

    def __init__(self, those):
        self.addresses = [a.replace("127.0.0.1", NAME) for a in those.addresses]


def probe(status):
    answer = node.request("GET", "/v1/agent/health?deep=1", timeout=120)
    case.equal(answer.status, status, answer.text)
    found = {name: (c["state"], c.get("message")) for name, c in answer.json["components"].items() if c["state"] != "ok" or name == "dns"}
    case.equal(set(found), {"dns"}, "components that are not well")
    return found["dns"]


def test_names_that_are_found():
    node.wait_ready()
    case.equal(probe(200), ("ok", None))


def test_a_name_without_an_address():
    resolver.says = "none"
    case.equal(probe(200), ("degraded", "there is no address for the server %s" % NAME))


def test_a_resolver_that_fails():
    resolver.says = "failure"
    case.equal(probe(200), ("degraded", "look up the server %s: Temporary failure in name resolution" % NAME))


def test_a_resolver_that_answers_garbage():
    """The C library takes an answer that it cannot read for one without an address."""
    resolver.says = "garbage"
    case.equal(probe(200), ("degraded", "there is no address for the server %s" % NAME))


def test_a_resolver_that_does_not_answer():
    """The agent and its node work meanwhile, and the look-up does not delay the next probe for ever."""
    resolver.says = "silence"
    case.equal(probe(200), ("degraded", "look up the server %s: not done after 7 seconds" % NAME))
    case.equal(node.request("GET", "/v1/agent/health").status, 200)
    resolver.says = "address"
    case.until(lambda: probe(200)[0] == "ok", 60, "a good probe")
    case.equal(probe(200), ("ok", None))


def test_servers_that_do_not_answer_are_no_failure():
    servers.stop()
    case.until(lambda: node.request("GET", "/v1/agent/health?deep=1").json["servers"]["state"] == "stalled", 60, "the servers to be lost")
    case.equal(probe(200), ("ok", None))


with Resolver() as resolver, cluster.servers() as servers, cluster.node_of(Named(servers)) as node:
    case.run(globals())
