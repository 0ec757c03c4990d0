#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 1200
# takes: 42
"""Objects without a row are printed by `drover leaks`, and removed or reported at the next start. drover itself leaves none."""
import os
import random
import socket
import uuid

from lib import case, crash, helper
from lib.fake_api import run_command

CYCLES = 200
MS_BIND = 4096


def command(node, code):
    r = run_command(["leaks"], env={"DROVER_ADDR": "unix://" + node.socket_path})
    case.equal(r.code, code, r.out + r.err)
    return r.out


def leaks(node):
    return sorted((one["Kind"], one["Name"]) for one in crash.leaks(node))


def parent(node, tree, below):
    for base in ("/sys/fs/cgroup/" + tree, "/sys/fs/cgroup"):
        path = "%s/drover-%s/%s" % (base, crash.instance(node), below)
        if os.path.isdir(path):
            return path
    return None


def plant(node):
    """Creates a leak of each kind. Returns {(kind, name): path}."""
    planted = {}
    for where in ("unified", "memory"):
        path = parent(node, where, "tasks" if where == "unified" else "runs")
        name = os.urandom(16).hex()
        if path:
            os.mkdir("%s/%s" % (path, name))
            planted["run", name] = "%s/%s" % (path, name)
    name = os.urandom(16).hex()
    planted["run", name] = path = "%s/run/%s.rec" % (node.data, name)
    with open(path, "wb") as f:
        f.write(b"\0" * 256)
    name = os.urandom(16).hex()
    planted["run", name] = path = "%s/rt/x/%s.sock" % (node.data, name)
    os.chdir(os.path.dirname(path))
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
        s.bind(os.path.basename(path))
    os.chdir("/")
    for kind, root in (("alloc-dir", "alloc"), ("logs", "logs"), ("csi-socket", "csi/sock")):
        name = str(uuid.uuid4())
        planted[kind, name] = path = "%s/%s/%s" % (node.data, root, name)
        os.makedirs(path + "/below")
    planted["csi-dir", "node/gone"] = "%s/csi/node/gone" % node.data
    os.makedirs("%s/csi/node/gone" % node.data)
    planted["csi-dir", "node/held/staging/vol/use"] = "%s/csi/node/held/staging/vol/use" % node.data
    os.makedirs("%s/csi/node/held/staging/vol/use" % node.data)
    return planted


def test_each_kind_of_leak_is_printed_and_removed_or_reported_at_the_next_start():
    with crash.Node() as node:
        node.register(crash.job("web"))
        node.wait_running("web")
        case.equal(command(node, 0), "no leaks\n")
        planted = plant(node)
        volume = "%s/csi/node/held/staging/vol/use" % node.data
        helper.mount(node.data + "/logs", volume, None, MS_BIND)
        try:
            mount = ("mount", volume[len(node.data) + 1:])
            case.equal(leaks(node), sorted([*planted, mount]))
            said = command(node, 1)
            for _, name in [*planted, mount]:
                case.contains(said, name)
            killed = node.kill("supervisor")
            node.wait_process("supervisor", other_than=killed)
            node.wait_ready()
            stay = {("csi-dir", "node/held/staging/vol/use"), mount}
            case.until(lambda: set(leaks(node)) == stay, 10, "the leaks that may be removed to be removed")
            for key, path in planted.items():
                case.equal(os.path.lexists(path), key in stay, "%s %s" % key)
            for _, name in [*planted, mount]:
                case.contains(node.log(), name)
        finally:
            helper.umount(volume)
        os.removedirs(volume)
        case.until(lambda: leaks(node) == [], 10, "no leaks")
        case.equal(len(node.wait_running("web")), 1, "objects that are not leaks")
        node.purge("web")
        crash.wait_nothing_left(node)


def test_two_hundred_cycles_leave_nothing():
    choice = random.Random(2)
    with crash.Node() as node:
        for i in range(CYCLES):
            victim = choice.choice(("supervisor", "exec-helper", "mount-helper", "file-helper", "heartbeat", "launcher"))
            node.register(crash.job("cycle", 1, ("raw_exec", "exec")[i % 2]))
            when = choice.randrange(3)
            if when == 0:
                strike(node, victim)
            node.wait_running("cycle", 1, 30)
            case.equal(crash.conflicts(node), [], "tasks that ran twice at a time")
            if when == 1:
                strike(node, victim)
            node.request("DELETE", "/v1/job/cycle?purge=true")
            if when == 2:
                strike(node, victim)
            case.until(lambda: not node.ask("/v1/allocations"), 30, "the end of the job")
        node.wait_ready()
        crash.wait_nothing_left(node)
        case.equal((crash.leaks(node), crash.unexplained(node)), ([], []), "leaks, and objects without a row")
        case.equal(command(node, 0), "no leaks\n")


def strike(node, victim):
    if victim == "launcher":
        node.process.kill()
        node.wait()
        node.revive()
        return
    try:
        node.kill(victim)
    except (KeyError, ProcessLookupError):
        pass  # it is being removed already


case.run(globals())
