#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# timeout: 600
# takes: 100
"""A probe names what is wrong with this node, and nothing else; meanwhile the agent answers, and afterwards nothing is left."""
import contextlib
import http.client
import os
import shutil
import signal
import subprocess
import threading
import time

from lib import api, build_dir, case, crash, helper, volumes
from lib.watch import Watch

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
    """What needs the process is not checked."""
    need = {"csi-helper": {"plugin/local/monolith"}, "mount-helper": {"volume/demo", "driver/exec", "driver/raw_exec"}}
    need["exec-helper"] = need["file-helper"] = {"driver/exec", "driver/raw_exec"}
    node.create("demo")
    node.register(volumes.job("web", "demo", "sleep 1000"))
    node.wait_running("web")
    for name in ("exec-helper", "heartbeat", "file-helper", "mount-helper", "csi-helper"):
        is_well()
        pid = node.kill(name, signal.SIGSTOP)
        try:
            with Watch(node):
                case.equal(sentence_of("helper/" + name, "hung"), "wait for its answer: not done after 10 seconds")
            case.equal({n for n, (s, _) in bad().items() if s == "unknown"}, need.get(name, set()), "what needs " + name)
        finally:
            os.kill(pid, signal.SIGCONT)
    is_well()
    node.purge("web")
    node.do("DELETE", "/v1/volume/csi/demo/delete")


def test_one_of_two_mounts_that_has_failed():
    """The file system of each has failed in turn, so that the good one is asked first or last."""
    if not os.path.exists("/dev/fuse"):
        case.skip("no FUSE here")
    node.create("both", "multi-node-multi-writer")
    for name in ("first", "second"):
        made = volumes.job(name, "both", "sleep 1000")
        made["Job"]["TaskGroups"][0]["Volumes"]["data"]["AccessMode"] = "multi-node-multi-writer"
        node.register(made)
        node.wait_running(name)
    paths = node.published("both")
    case.equal(len(paths), 2, paths)
    for path in paths:
        with Fuse(path) as fuse:
            fuse.process.kill()
            fuse.process.wait()
            case.contains(sentence_of("volume/both", "failed"), "stat the mounted file system: Transport endpoint is not connected")
        is_well()
    for name in ("first", "second"):
        node.purge(name)
    node.do("DELETE", "/v1/volume/csi/both/delete")


def test_the_command():
    case.contains(node.drover("probe").out, "driver/exec")
    with Full(node.data):
        case.contains(node.drover("probe", code=1).out, "is full: 0.0 MiB are free")
    is_well()
    case.equal("0.0 MiB" in node.drover("probe").out, False, "the last error, without -verbose")
    errors = node.drover("probe", "-verbose").out.partition("Last Errors")[2]
    case.equal([line.split()[0] for line in errors.splitlines() if "is full: 0.0 MiB are free" in line], ["disk"], errors)


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
        case.skip("no limit of processes here")
    for path in limits:
        case.write(path, "0")
    with Watch(node):
        found = bad()
    for path in limits:
        case.write(path, "max")
    found.pop("plugin/local/monolith", None)  # it may need a thread
    case.equal({(n, s) for n, (s, _) in found.items()}, {("driver/exec", "failed"), ("driver/raw_exec", "failed")}, found)
    case.contains(found["driver/exec"][1], ": Resource temporarily unavailable")  # in which step depends on the version of cgroups
    is_well()


def test_no_memory():
    """The cgroup of all tasks has less memory than a new process needs."""
    before = node
    with api.Node(["-config", top + "/other.hcl"]) as globals()["node"]:
        with open(node.data + "/instance", encoding="ascii") as f:
            parent = "/drover-" + f.read().strip()
        limits = [path for path in (tree + parent + name for tree in helper.cgroup_trees().values()
                                    for name in ("/tasks/memory.max", "/runs/memory.limit_in_bytes")) if os.path.exists(path)]
        if not limits:
            globals()["node"] = before
            case.skip("no limit of memory here")
        for path in limits:
            case.write(path, "16384")
        with Watch(node):
            found = bad()
        for _, sentence in found.values():  # in which step memory is exhausted depends on the kernel
            case.equal("Cannot allocate memory" in sentence or "killed before it could run the command" in sentence, True, sentence)
        case.equal({(n, s) for n, (s, _) in found.items()}, {("driver/exec", "failed"), ("driver/raw_exec", "failed")}, found)
        for path in limits:
            case.write(path, "max" if path.endswith("max") else "-1")
        is_well()
        case.equal(leftovers(), [])
    globals()["node"] = before


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
    with Full(node.data), Watch(node):
        case.contains(sentence_of("disk", "failed"), "is full: 0.0 MiB are free")
    is_well()


def test_a_disk_without_inodes():
    with Full(node.data, inodes=True), Watch(node):
        case.contains(sentence_of("disk", "failed"), "has no room for files: 0 inodes are free")
    is_well()


def test_a_database_that_cannot_be_written():
    # Its directory is another file system here.
    with Full(node.data + "/state"), Watch(node):
        case.contains(sentence_of("state", "failed"), "full")
    is_well()


class Fuse:
    """A file system that never answers statfs."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        self.process = subprocess.Popen([build_dir() + "/tests/fuse_hang", self.path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        case.equal(self.process.stdout.readline(), b"mounted\n", "fuse_hang")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        helper.umount(self.path, 2)


def test_a_host_volume_that_hangs():
    if not os.path.exists("/dev/fuse"):
        case.skip("no FUSE here")
    before = node
    with api.Node(agent_args) as globals()["node"]:
        with Fuse(hanging):
            with Watch(node):
                case.equal(sentence_of("host-volume/vol", "hung"), "its file system did not answer within 4 seconds")
            case.contains(sentence_of("host-volume/vol", "hung"), "it is asked again in")
            case.contains(probe()["components"]["host-volume/vol"]["last_error"], "did not answer within 4 seconds")
        case.until(lambda: leftovers() == [], 60, "the end of the task that hung")
    with Fuse(hanging):
        with api.Node(agent_args) as globals()["node"]:
            case.equal(sentence_of("host-volume/vol", "hung"), "its file system did not answer within 4 seconds")
            case.equal(node.stop(), 0, "the end of an agent with a task that hangs")
    with api.Node(agent_args, data=node.data) as globals()["node"]:
        case.until(lambda: leftovers() == [], 60, "the end of the task that hung")
    globals()["node"] = before


def run(*argv):
    subprocess.run(argv, check=True)


class Nfs:
    """An NFS server whose address disappears, as it does with its machine."""
    ADDRESS = "198.18.7.1"

    def __init__(self, path):
        self.path, self.dir = path, case.directory()

    def address(self, verb):
        run("ip", "address", verb, self.ADDRESS + "/32", "dev", "lo")

    def __enter__(self):
        run("ip", "link", "set", "lo", "up")
        self.address("add")
        helper.mount("nfsd", "/proc/fs/nfsd", "nfsd")
        case.write("/proc/fs/nfsd/nfsv4gracetime", "10")
        run("exportfs", "-o", "rw,no_root_squash,fsid=0,insecure", self.ADDRESS + ":" + self.dir)
        self.daemon = subprocess.Popen(["rpc.mountd", "--foreground", "--no-nfs-version", "3"], stdin=subprocess.DEVNULL)
        run("rpc.nfsd", "--no-nfs-version", "3", "--no-udp", "2")
        run("mount", "-n", "-t", "nfs4", "-o", "hard,timeo=20", self.ADDRESS + ":/", self.path)
        return self

    def __exit__(self, *_):
        helper.umount(self.path, 2)
        run("rpc.nfsd", "0")
        self.daemon.kill()
        self.daemon.wait()
        run("exportfs", "-u", self.ADDRESS + ":" + self.dir)
        helper.umount("/proc/fs/nfsd", 2)
        self.address("del")


def test_a_host_volume_of_nfs_that_hangs():
    if not shutil.which("rpc.nfsd") or subprocess.run(["modprobe", "-q", "nfsd"], check=False).returncode:
        case.skip("there is no NFS server")
    before = node
    with Nfs(hanging) as nfs, api.Node(agent_args) as globals()["node"]:
        is_well()
        nfs.address("del")
        try:
            with Watch(node):
                case.equal(sentence_of("host-volume/vol", "hung"), "its file system did not answer within 4 seconds")
        finally:
            nfs.address("add")
        is_well()
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
        with Watch(node):
            case.contains(sentence_of("host-volume/gone", "failed"), "no task can be started with it: ")
        case.equal(leftovers(), [])
    with api.Node(["-config", top + "/removed.hcl"], data=node.data) as globals()["node"]:
        case.contains(sentence_of("host-volume/gone", "failed"), "No such file or directory")
        case.equal(leftovers(), [])
    globals()["node"] = before


def test_as_many_host_volumes_as_there_may_be():
    """One task has at most 31 of them."""
    before, names = node, ["v%d" % i for i in range(64)]
    for name in names:
        os.mkdir("%s/%s" % (top, name))
    case.write(top + "/many.hcl", "client {\n  disk_free_mb = 1000000\n%s}\n" % "".join('  host_volume "%s" { path = "%s/%s" }\n' % (n, top, n) for n in names))
    os.chmod(top + "/many.hcl", 0o600)
    with api.Node(["-config", top + "/many.hcl"]) as globals()["node"]:
        result = probe()
        case.equal((bad(result), {n for n in result["components"] if n.startswith("host-volume/")}), ({}, {"host-volume/" + n for n in names}))
        for name in names:
            os.rmdir("%s/%s" % (top, name))
            os.mkdir("%s/%s" % (top, name))
        case.equal({n for n, (s, _) in bad().items() if s == "failed"}, {"host-volume/" + n for n in names})
        case.equal(leftovers(), [])
    globals()["node"] = before


def test_a_plugin_that_hangs():
    (pid,) = [r["task_pid"] for r in crash.records(node).values()]  # the plugin is the only task
    os.kill(pid, signal.SIGSTOP)
    try:
        with Watch(node):
            case.contains(sentence_of("plugin/local/monolith", "hung"), "wait for the plugin's answer")
    finally:
        os.kill(pid, signal.SIGCONT)
    is_well()


@contextlib.contextmanager
def hanging_volume(name):
    """The processes that serve its file system are stopped; if it has none on this machine, a file system that hangs is mounted over it."""
    pids = node.fuse_processes()
    if not pids and not os.path.exists("/dev/fuse"):
        case.skip("no FUSE here")
    with contextlib.nullcontext() if pids else Fuse(node.published(name)[0]):
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)


def test_a_volume_that_hangs():
    case.until(node.plugin_is_healthy, 60, "a healthy plugin")  # it hung in the test before
    node.create("demo")
    node.register(volumes.job("web", "demo", "sleep 1000"))
    node.wait_running("web")
    is_well()
    case.equal("volume/demo" in probe()["components"], True)
    with hanging_volume("demo"), Watch(node):
        case.contains(sentence_of("volume/demo", "hung"), "volume demo")
    node.purge("web")
    is_well()
    node.do("DELETE", "/v1/volume/csi/demo/delete")


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


def test_a_clock_that_jumps():
    if "DROVER_GUEST" not in os.environ:
        case.skip("this machine's clock is not the test's")
    before, offset = node, time.clock_gettime(time.CLOCK_REALTIME) - time.clock_gettime(time.CLOCK_BOOTTIME)

    def jump(seconds):
        time.clock_settime(time.CLOCK_REALTIME, offset + time.clock_gettime(time.CLOCK_BOOTTIME) + seconds)
    with api.Node(agent_args) as globals()["node"]:
        node.register(api.job("web", "/bin/sleep", ["1000"], driver="raw_exec"))
        node.wait_running("web")
        task = crash.records(node)
        try:
            for seconds, state, sentence in ((3600.5, "degraded", "clock was set forward by 3600 seconds"), (-3600, "degraded", "clock was set back by 7200 seconds"),
                                             (-10 * 365 * 86400, "failed", "the machine's date is wrong: it is before 2025")):
                jump(seconds)
                with Watch(node):
                    found = bad()
                case.equal(({name: s for name, (s, _) in found.items()}), {"clock": state}, found)
                case.contains(found["clock"][1], sentence)
        finally:
            jump(0)
        case.equal(crash.records(node), task, "the task")
        case.equal(probe()["components"]["clock"]["state"], "degraded", "the last jump")
        events = [e["Message"] for e in node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])["Events"] if e["Subsystem"] == "Clock"]
        steps = [e.partition("was set ")[2] for e in events if "was set " in e]
        case.equal([step.split()[0] for step in steps], ["forward", "back", "back", "forward"], events)
        case.equal(steps[:2], ["forward by 3600 seconds", "back by 7200 seconds"], events)
        case.equal(leftovers(), [])
    globals()["node"] = before


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
