#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the same containers on drover and on a client of the servers' own program with dockerd, and compares the addresses of their services and
what a terminal prints. In namespaces of its own: tests/nomad/isolated.py runs it, for `make check-nomad NOMAD=path`.

    tests/nomad/isolated.py tests/nomad/check_containers.py PATH [test_…]…"""
import contextlib
import json
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import api, case, engines, images, networks, web  # noqa: E402
from lib.cluster import node_of  # noqa: E402
import client  # noqa: E402
import real  # noqa: E402

OURS, THEIRS = "ours", "theirs"
PORTS = {OURS: 18080, THEIRS: 18090}
OPTIONS = 'plugin "docker" {\n  config {\n    %s\n  }\n}\n'
IMAGE = images.Image([images.tar(images.busybox("sh", "ip", "echo", "sleep", "tty", "stat", "test", "seq") + [
    images.directory("etc"), images.file("etc/passwd", b"root:x:0:0:root:/:/bin/sh\nweb:x:1000:1000:web:/:/bin/sh\n")])], {"Env": ["PATH=/bin"]})
# docs/differences.md, "Services and memory".
KNOWN = {"label without to": ("driver", 0), "in the machine's network": ("", 80)}


def container(name, script, services=(), **config):
    made = [{"Name": re.sub("[^a-z]", "-", n), "PortLabel": port, "AddressMode": mode, "Provider": "nomad"} for n, port, mode in services]
    return api.task(name, None, driver="docker", Services=made, User=config.pop("user", ""), Config={
        "image": images.name(registry, "a:1"), "command": "/bin/sh", "args": ["-c", script + "; echo end; exec sleep 1000"], **config})


def run(name, tasks):
    """Runs the tasks on both nodes. Returns {node: its alloc}."""
    found = {}
    for node in (OURS, THEIRS):
        made = networks.job(name + "-" + node, "host", ports=[{"Label": "web", "Value": PORTS[node], "To": 80}, {"Label": "free", "Value": PORTS[node] + 1}])
        made["Job"]["TaskGroups"][0]["Tasks"] = tasks
        server.run(made, Constraints=[{"LTarget": "${node.unique.name}", "RTarget": node, "Operand": "="}])
        found[node] = server.wait(made["Job"]["ID"], ["running"], 120)[0]
    return found


def stop(name, allocs):
    for node in allocs:
        server.request("DELETE", "/v1/job/%s-%s" % (name, node))
    case.until(lambda: all(server.ask("/v1/allocation/" + a["ID"])["ClientStatus"] == "complete" for a in allocs.values()), 60, "the end of " + name)


def logs(alloc, task, kind="stdout"):
    status, body = real.fetch("http://127.0.0.1:%d/v1/client/fs/logs/%s?task=%s&type=%s&plain=true" % (server.ports[0], alloc["ID"], task, kind))
    return body.decode() if status == 200 else ""


def said(alloc, task):
    return case.until(lambda: re.search(r"end\r?\n", text := logs(alloc, task)) and text, 60, "the output of " + task)


def test_addresses_of_services():
    wanted = [("label", "web", "driver"), ("number", "80", "driver"), ("no port", "", "driver"), ("auto", "web", "auto"), ("host", "web", "host"),
              ("label without to", "free", "driver")]
    tasks = [container("own", "ip -o -4 addr show dev eth0", wanted, ports=["web", "free"]),
             container("shared", "echo here", [("in the machine's network", "80", "driver")], network_mode="host")]
    allocs, seen = run("addresses", tasks), {}
    for node, alloc in allocs.items():
        inside = re.search(r"inet ([\d.]+)/", said(alloc, "own")).group(1)
        said(alloc, "shared")
        number = len(wanted) + (node == THEIRS)
        case.until(lambda a=alloc, n=number: len(server.ask("/v1/allocation/%s/services" % a["ID"])) == n, 60, "%d services on %s" % (number, node))
        seen[node] = {s["ServiceName"]: ("driver" if s["Address"] == inside else s["Address"], s["Port"] - PORTS[node] if s["Port"] > 1000 else s["Port"])
                      for s in server.ask("/v1/allocation/%s/services" % alloc["ID"])}
    for name, differs in KNOWN.items():
        case.equal(seen[THEIRS].pop(re.sub("[^a-z]", "-", name)), differs, name)
    case.equal(seen[OURS].pop("label-without-to"), ("driver", 1), "the port inside that is the one outside")
    case.equal({name: address for name, (address, _) in seen[THEIRS].items()}["label"], "driver", "an address of dockerd's network")
    # The nodes have different addresses on this machine.
    hosts = {node: seen[node]["host"][0] for node in seen}
    for node, found in seen.items():
        seen[node] = {name: ("host" if address == hosts[node] else address, port) for name, (address, port) in found.items()}
    case.equal(seen[OURS], seen[THEIRS], "addresses")
    stop("addresses", allocs)


def test_terminals():
    script = "tty; for i in 0 1 2; do test -t $i && echo $i; done; stat -c '%F %u:%g %a' /dev/pts/0 /dev/console; echo error >&2; echo $TERM; echo x >/dev/tty; seq 2000"
    tasks = [container("root", script, tty=True), container("user", script, tty=True, interactive=True, user="web"), container("init", script, tty=True, init=True),
             container("none", script.replace("echo x >/dev/tty; ", ""), interactive=True)]
    allocs = run("terminals", tasks)
    for task in ("root", "user", "init", "none"):
        texts = {node: (said(alloc, task), logs(alloc, task, "stderr")) for node, alloc in allocs.items()}
        case.equal(texts[OURS], texts[THEIRS], "what %s prints" % task)
    stop("terminals", allocs)


@contextlib.contextmanager
def dockerd():
    """The original client ends without its containers."""
    with engines.dockerd() as engine:
        try:
            yield engine
        finally:
            engine.ids = [c["Id"] for c in json.loads(engine.call("GET", "/containers/json?all=true"))]


if not shutil.which("dockerd") or not shutil.which("skopeo") or not os.path.exists("/bin/busybox"):
    print("skipped: no dockerd, skopeo or busybox-static")
    sys.exit(0)
networks.need()
with web.Server(images.registry({"a": {"1": IMAGE}})) as registry, dockerd() as docker, real.Server() as server, \
        node_of(server, name=OURS, more=OPTIONS % "enabled = true"), \
        client.Original(server, THEIRS, more=OPTIONS % ('endpoint = "unix://%s"' % docker.path)):
    case.until(lambda: {n["Name"] for n in server.ask("/v1/nodes?resources=true") if n["Status"] == "ready" and n["Drivers"]["docker"]["Healthy"]} == {OURS, THEIRS}, 120,
               "two nodes with docker")
    case.run(globals())
