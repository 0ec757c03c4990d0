#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Containers beside dockerd and podman, of one image, on one machine, in one run. Each of them starts BENCH_CONTAINERS containers (default 40) of a
shell that waits, with the machine's network and with a bridge network each; images are there before. What is not installed is left out.

Memory is PSS, of all that runs beside the containers' own processes: daemons, shims, executors. CPU is theirs, too."""
import os
import shutil
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import agent, api, case, engines, images, networks, web  # noqa: E402
from measured import TICK, all_processes, pss_mb, row, settle, ticks  # noqa: E402

COUNT = int(os.environ.get("BENCH_CONTAINERS", "40"))
IDLE_S = 10
SCRIPT = ["/bin/sh", "-c", "trap 'exit 0' TERM; sleep 100000 & wait"]
AIM_RATE, AIM_MEMORY = 50, 100  # times that of dockerd


def image():
    entries = [images.directory("etc"), images.file("etc/passwd", b"root:x:0:0:root:/:/bin/sh\n")]
    return images.Image([images.tar(images.busybox("sh", "sleep") + entries)], {"Env": ["PATH=/bin"]})


class Drover:
    name = "drover"

    def __init__(self, server):
        self.server, self.jobs = server, []

    def __enter__(self):
        text = 'plugin "docker" { config { } }\nclient {\n  cpu_total_compute = 10000000\n  memory_total_mb = 10000000\n  disk_free_mb = 10000000\n}\n'
        self.node = api.Node(agent.config_args(text))
        self.node.__enter__()
        return self

    def __exit__(self, *_):
        self.node.__exit__(None, None, None)

    def prepare(self, name):
        self.image = name
        self.run("host", 1)
        self.remove()

    def run(self, network, count):
        name = "job%d" % len(self.jobs)
        made = api.job(name, driver="docker", count=count)
        made["Job"]["TaskGroups"][0]["Tasks"][0].update(Config={"image": self.image, "entrypoint": SCRIPT[:1], "args": SCRIPT[1:], "network_mode": network},
                                                        Resources={"CPU": 10, "MemoryMB": 64})
        self.jobs.append(name)
        self.node.register(made)
        self.node.wait_running(name, count, seconds=600)

    def stop(self):
        for name in self.jobs:
            self.node.do("DELETE", "/v1/job/" + name)
        case.until(lambda: not [a for a in self.node.ask("/v1/allocations") if a["ClientStatus"] in ("running", "pending")], 600, "the stop of all")

    def remove(self):
        for name in self.jobs:
            self.node.purge(name, seconds=600)
        self.jobs.clear()

    def all(self):
        return [self.node.pid, *all_processes(self.node.pid)]

    def restart(self):
        self.node.replace_supervisor()
        for name in self.jobs:
            self.node.wait_running(name, COUNT)


def everything():
    """Returns the pids of all processes of this process id namespace."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in (1, os.getpid())]


def is_inside(pid):
    return (agent.arguments(pid) or [""])[:1] in (SCRIPT[:1], ["sleep"])


def cost(engine):
    """Returns the memory and the pids of what runs beside the containers' own processes."""
    pids = [p for p in (engine.all() if engine.name == "drover" else everything()) if not is_inside(p)]
    return sum(pss_mb(p) for p in pids), pids


def measure(engine, reference):
    """Prints the rows of one engine. Returns its figures."""
    found = {}
    settle(2)
    idle, pids = cost(engine)
    before = ticks(pids)
    time.sleep(IDLE_S)
    row("%s: memory without containers" % engine.name, "%.1f" % idle, "MB")
    row("%s: CPU without containers" % engine.name, "%.2f" % (100 * (ticks(pids) - before) / TICK / IDLE_S), "%")
    for network in ("host", "bridge"):
        began = time.monotonic()
        engine.run(network, 1)
        row("%s: from submit to running, network %s" % (engine.name, network), "%.0f" % (1000 * (time.monotonic() - began)), "ms")
        engine.remove()
        began = time.monotonic()
        engine.run(network, COUNT)
        rate = found["rate " + network] = COUNT / (time.monotonic() - began)
        row("%s: containers started, network %s" % (engine.name, network), "%.1f" % rate, "/s", "%.1f times" % (rate / reference["rate " + network]) if reference else "")
        if network == "host":
            settle(2)
            now, pids = cost(engine)
            each = found["memory"] = max(now - idle, 0.001) / COUNT
            row("%s: memory for each container" % engine.name, "%.3f" % each, "MB", "1/%.0f" % (reference["memory"] / each) if reference else "")
            before = ticks(pids)
            time.sleep(IDLE_S)
            row("%s: CPU with %d idle containers" % (engine.name, COUNT), "%.2f" % (100 * (ticks(pids) - before) / TICK / IDLE_S), "%")
            began = time.monotonic()
            engine.restart()
            row("%s: restart, until it knows its containers" % engine.name, "%.0f" % (1000 * (time.monotonic() - began)), "ms")
        began = time.monotonic()
        engine.stop()
        row("%s: stop of %d, network %s" % (engine.name, COUNT, network), "%.0f" % (1000 * (time.monotonic() - began)), "ms")
        engine.remove()
    return found


def main():
    if not shutil.which("skopeo") or not os.path.exists("/bin/busybox"):
        sys.exit("bench-containers needs skopeo and busybox-static")
    networks.need()
    print("machine: %d cores, kernel %s, load %.1f; %d containers" % (os.cpu_count(), os.uname().release, os.getloadavg()[0], COUNT), flush=True)
    reference = None
    with web.Server(images.registry({"a": {"1": image()}})) as server:
        for program, make in (("dockerd", engines.dockerd), ("podman", engines.podman), (None, lambda: Drover(server))):
            if program and not shutil.which(program):
                print("%s is not installed" % program)
                continue
            with make() as engine:
                engine.command = SCRIPT
                engine.prepare(images.name(server, "a:1"))
                found = measure(engine, reference)
            reference = reference or found
        print("aim: %d times the rate of dockerd, 1/%d of its memory for each" % (AIM_RATE, AIM_MEMORY), flush=True)


main()
