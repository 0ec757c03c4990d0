#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 600
# takes: 60
"""A probe names what is wrong with this node, and nothing else; meanwhile the agent answers, and afterwards nothing is left."""
import http.client
import os
import signal
import subprocess
import threading
import time

from lib import api, build_dir, case, crash, helper, volumes

BASE = {"disk", "clock", "state", "helper/exec-helper", "helper/mount-helper", "helper/file-helper", "helper/heartbeat", "driver/raw_exec", "driver/exec"}


def probe():
    answer = node.request("GET", "/v1/agent/health?deep=1")
    case.equal(answer.status, 200 if answer.json["client"]["ok"] else 503)
    return answer.json


def bad(result=None):
    """Returns {component: (state, sentence)} of a probe, for all that are not ok."""
    return {name: (c["state"], c.get("message")) for name, c in (result or probe())["components"].items() if c["state"] != "ok"}


def is_well():
    case.until(lambda: not bad(), 60, "a good probe")


def sentence_of(name, state):
    """Returns the sentence of the only component that is failed or hung. Those that depend on it are unknown."""
    result = probe()
    found = bad(result)
    case.equal({n for n, (s, _) in found.items() if s != "unknown"}, {name}, found)
    case.equal(found[name][0], state, found)
    case.equal(result["client"]["message"], name + ": " + found[name][1])
    return found[name][1]


def leftovers():
    """Returns leaks, besides the file system of state.db, and directories without an alloc."""
    allocs = {a["ID"] for a in node.ask("/v1/allocations")}
    return ([leak for leak in node.ask("/v1/agent/leaks") if leak["Name"] != "state"] +
            [name for place in ("/alloc", "/logs") for name in os.listdir(node.data + place) if name[0] != "." and name not in allocs])


class Watch:
    """Asks the agent all the time; .slowest is the longest answer in seconds."""

    def __enter__(self):
        self.slowest, self.on = 0, True
        self.thread = threading.Thread(target=self.ask)
        self.thread.start()
        return self

    def ask(self):
        while self.on:
            began = time.monotonic()
            node.request("GET", "/v1/agent/self")
            self.slowest = max(self.slowest, time.monotonic() - began)
            time.sleep(0.01)

    def __exit__(self, *_):
        self.on = False
        self.thread.join()


def test_a_healthy_node():
    result = probe()
    case.equal(set(result["components"]), BASE)
    case.equal((bad(result), result["client"], result["servers"]), ({}, {"ok": True, "state": "ok", "message": "ok"}, {"source": "local", "state": "ok"}))
    case.equal(leftovers(), [])
    since = result["components"]["disk"]["since"]
    case.equal(probe()["components"]["disk"]["since"], since, "since when it is ok")
    case.equal(node.request("GET", "/v1/agent/health?deep=maybe").status, 400)


def test_callers_share_a_probe():
    results = []
    threads = [threading.Thread(target=lambda: results.append(probe())) for _ in range(50)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    case.equal(len({r["components"]["driver/exec"]["checked"] for r in results}) < 10, True, "probes for 50 callers")


def test_a_process_that_is_stopped():
    for name in ("exec-helper", "heartbeat", "file-helper", "mount-helper"):
        is_well()
        pid = node.kill(name, signal.SIGSTOP)
        try:
            with Watch():
                case.equal(sentence_of("helper/" + name, "hung"), "wait for its answer: not done after 10 seconds")
        finally:
            os.kill(pid, signal.SIGCONT)
    is_well()


def test_the_command():
    case.contains(node.drover("probe").out, "driver/exec")
    with Full(node.data):
        case.contains(node.drover("probe", code=1).out, "is full: 0.0 MiB are free")
    is_well()


def test_a_killed_process_is_none():
    for name in ("exec-helper", "heartbeat", "file-helper", "mount-helper"):
        node.kill(name)
        is_well()


def test_no_room_for_processes():
    with open(node.data + "/instance", encoding="ascii") as f:
        parent = "/drover-" + f.read().strip()
    limits = [path for path in (tree + parent + below + "/pids.max" for tree in helper.cgroup_trees().values() for below in ("/tasks", "/runs"))
              if os.path.exists(path)]
    if not limits:
        return
    for path in limits:
        case.write(path, "0")
    found = bad()
    for path in limits:
        case.write(path, "max")
    found.pop("plugin/local/monolith", None)  # it may need a thread
    case.equal({(n, s) for n, (s, _) in found.items()}, {("driver/exec", "failed"), ("driver/raw_exec", "failed")}, found)
    case.equal(found["driver/exec"][1], "read the output of its task: the task cannot start a process: Resource temporarily unavailable")
    is_well()


class Full:
    """Fills the file system of a directory."""

    def __init__(self, path, inodes=False):
        self.path, self.inodes = path + "/ballast", inodes

    def __enter__(self):
        if self.inodes:
            os.mkdir(self.path)
            for i in range(1 << 20):
                try:
                    case.write("%s/%d" % (self.path, i), "")
                except OSError:
                    break
            return
        with open(self.path, "wb", buffering=0) as f:
            size = 1 << 20
            while size:
                try:
                    f.write(bytes(size))
                except OSError:
                    size //= 2

    def __exit__(self, *_):
        subprocess.run(["rm", "-r", self.path], check=True)


def test_a_full_disk():
    with Full(node.data), Watch():
        case.contains(sentence_of("disk", "failed"), "is full: 0.0 MiB are free")
    is_well()


def test_a_disk_without_inodes():
    with Full(node.data, inodes=True), Watch():
        case.contains(sentence_of("disk", "failed"), "has no room for files: 0 inodes are free")
    is_well()


def test_a_database_that_cannot_be_written():
    # Its directory is another file system here.
    with Full(node.data + "/state"), Watch():
        case.contains(sentence_of("state", "failed"), "full")
    is_well()


class Fuse:
    """A file system that never answers statfs."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        self.process = subprocess.Popen([build_dir() + "/tests/fuse_hang", self.path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        case.equal(self.process.stdout.readline(), b"mounted\n", "fuse_hang")

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        helper.umount(self.path, 2)


def test_a_host_volume_that_hangs():
    if not os.path.exists("/dev/fuse"):
        return
    before = node
    with api.Node(agent_args) as globals()["node"]:
        with Fuse(hanging):
            with Watch():
                case.equal(sentence_of("host-volume/vol", "hung"), "its file system did not answer within 4 seconds")
            case.contains(sentence_of("host-volume/vol", "hung"), "it is asked again in")
        case.until(lambda: leftovers() == [], 60, "the end of the task that hung")
    with Fuse(hanging):
        with api.Node(agent_args) as globals()["node"]:
            case.equal(sentence_of("host-volume/vol", "hung"), "its file system did not answer within 4 seconds")
            case.equal(node.stop(), 0, "the end of an agent with a task that hangs")
    with api.Node(agent_args, data=node.data) as globals()["node"]:
        case.until(lambda: leftovers() == [], 60, "the end of the task that hung")
    globals()["node"] = before


def test_a_host_volume_that_is_removed():
    """Its directory is removed before the agent starts, or while it runs; the driver can start tasks all the same."""
    before, path = node, top + "/removed"
    case.write(top + "/removed.hcl", 'client {\n  disk_free_mb = 1000000\n  host_volume "gone" { path = "%s" }\n  host_volume "kept" { path = "%s" }\n}\n' %
               (path, hanging))
    os.chmod(top + "/removed.hcl", 0o600)
    os.mkdir(path)
    with api.Node(["-config", top + "/removed.hcl"]) as globals()["node"]:
        case.equal(bad(), {}, "a probe before the removal")
        os.rmdir(path)
        with Watch():
            case.contains(sentence_of("host-volume/gone", "failed"), "no task can be started with it: ")
        case.equal(leftovers(), [])
    with api.Node(["-config", top + "/removed.hcl"], data=node.data) as globals()["node"]:
        case.contains(sentence_of("host-volume/gone", "failed"), "No such file or directory")
        case.equal(leftovers(), [])
    globals()["node"] = before


def test_a_plugin_that_hangs():
    (pid,) = [r["task_pid"] for r in crash.records(node).values()]  # the plugin is the only task
    os.kill(pid, signal.SIGSTOP)
    try:
        with Watch():
            case.contains(sentence_of("plugin/local/monolith", "hung"), "wait for the plugin's answer")
    finally:
        os.kill(pid, signal.SIGCONT)
    is_well()


def test_a_volume_that_hangs():
    node.create("demo")
    node.register(volumes.job("web", "demo", "sleep 1000"))
    node.wait_running("web")
    is_well()
    case.equal("volume/demo" in probe()["components"], True)
    pids = node.fuse_processes()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    if pids:
        with Watch():
            case.contains(sentence_of("volume/demo", "hung"), "volume demo")
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    node.purge("web")
    is_well()


def ask_and_be_cut():
    try:
        node.request("GET", "/v1/agent/health?deep=1")
    except (OSError, http.client.HTTPException):
        pass


def test_probes_at_an_interval():
    before = node
    case.write(top + "/often.hcl", 'client {\n  disk_free_mb = 1000000\n}\nhealth {\n  interval = "1s"\n}\n')
    with api.Node(["-config", top + "/often.hcl"]) as globals()["node"]:
        def told():
            events = node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])["Events"] or []
            return [e["Message"] for e in events if e["Subsystem"] == "Health"]
        pid = node.kill("heartbeat", signal.SIGSTOP)
        case.until(lambda: told() == ["helper/heartbeat hangs: wait for its answer: not done after 10 seconds"], 60, "the event of a probe")
        os.kill(pid, signal.SIGCONT)
        case.until(lambda: told()[1:] == ["helper/heartbeat works again"], 60, "the event of another probe")
    globals()["node"] = before


def test_a_probe_is_removed_after_a_restart():
    for _ in range(5):
        asking = threading.Thread(target=ask_and_be_cut)
        asking.start()
        time.sleep(0.05)
        node.replace_supervisor()
        asking.join()
    case.until(lambda: leftovers() == [], 30, "no leftovers")
    is_well()


top = case.directory()
hanging = top + "/hanging"
os.mkdir(hanging)
agent_args = ["-config", top + "/other.hcl"]
case.write(top + "/other.hcl", 'client {\n  disk_free_mb = 1000000\n  host_volume "vol" { path = "%s" }\n}\n' % hanging)
data = top + "/data"
os.mkdir(data)
helper.mount("tmpfs", data, "tmpfs", 0, "size=256m,nr_inodes=4096,mode=0711")
with api.Node(data=data):
    pass
# state.db gets a file system of its own, which can be full alone.
os.rename(data + "/state", data + "/old")
status = os.stat(data + "/old")
os.mkdir(data + "/state")
helper.mount("tmpfs", data + "/state", "tmpfs", 0, "size=8m,mode=0700,uid=%d,gid=%d" % (status.st_uid, status.st_gid))
subprocess.run("cp -a %s/old/. %s/state && rm -r %s/old" % (data, data, data), shell=True, check=True)
try:
    with volumes.Node(client="disk_free_mb = 1000000", data=data) as node:
        node.start_plugin()
        BASE |= {"helper/csi-helper", "plugin/local/monolith", "host-volume/csi-local"}
        case.run(globals())
finally:
    helper.umount(data + "/state", 2)
    helper.umount(data, 2)
