# SPDX-License-Identifier: Apache-2.0
"""The cost of probes, and what a neighbour notices: a task that sleeps a millisecond at a time, and measures how late it wakes. How soon the agent
answers while a probe meets a fault."""
import contextlib
import os
import shutil
import signal
import statistics
import subprocess
import threading
import time

from measured import PROGRAMS, Bench, Spent, fresh_directory, job, pss_mb, row, settle
from lib import api, binary, case, crash, helper, loop, volumes

SECONDS = 20
# Each SECONDS it prints its lateness (median, 99th and 99.9th per cent) and its CPU time, in us.
NEIGHBOUR = """
import resource, time
while True:
    late, end, used = [], time.monotonic() + %d, resource.getrusage(resource.RUSAGE_SELF)
    while time.monotonic() < end:
        at = time.monotonic()
        time.sleep(0.001)
        late.append(time.monotonic() - at - 0.001)
    late.sort()
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime
    print(*("%%.0f" %% (1e6 * x) for x in (*(late[int(len(late) * part)] for part in (0.5, 0.99, 0.999)), cpu)), flush=True)
""" % SECONDS


def lateness(node, alloc, n):
    """Returns the medians of the last n lines that the neighbour has printed."""
    lines = case.until(lambda: (found := node.logs(alloc, "t").decode().splitlines()) and len(found) >= n and found, 300, "%d results" % n)
    return [statistics.median(x) for x in zip(*(map(float, line.split()) for line in lines[-n:]))]


def probe(node):
    answer = node.request("GET", "/v1/agent/health?deep=1")
    case.equal(answer.status, 200, answer.text)
    return answer.json["duration_ms"]


def bench_probe():
    with fresh_directory("tmpfs") as base, Bench(base) as node:
        made = job("neighbour", "raw_exec", 1)
        made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"] = {"command": "/usr/bin/python3", "args": ["-c", NEIGHBOUR]}
        node.register(made)
        alloc = node.wait_running("neighbour")[0]
        settle(3)
        probe(node)
        before = sum(pss_mb(p) for p in node.parts().values())
        quiet = lateness(node, alloc, 2)
        spent, took, done = Spent(node), [], len(node.logs(alloc, "t").decode().splitlines())
        began = time.monotonic()
        while len(node.logs(alloc, "t").decode().splitlines()) < done + 3:
            took.append(probe(node))
            time.sleep(0.1)
        spent.end()
        probed = lateness(node, alloc, 2)
        after = sum(pss_mb(p) for p in node.parts().values())
        cpu_ms = (spent.all_us - probed[3] * spent.seconds / SECONDS if spent.all_us else spent.agent_us) / len(took) / 1000
        grown = 1024 * (after - before)
        row("a probe takes, median of %d" % len(took), "%.0f" % statistics.median(took), "ms", "< 500", statistics.median(took) < 500)
        row("CPU time of a probe, all processes and its tasks", "%.1f" % cpu_ms, "ms", "< 50", cpu_ms < 50)
        row("PSS of the agent after %d probes, added" % len(took), "%.0f" % grown, "KiB", "< 1024", grown < 1024)
        for name, a, b, more in zip(("median", "99 %", "99.9 %"), quiet, probed, (100, 1000, 5000)):
            row("lateness of a neighbour, %s, beside probes" % name, "%.0f" % b, "us", "< %.0f alone + %d" % (a, more), b < a + more)
        row("CPU time of a neighbour in %d s, beside probes" % SECONDS, "%.0f" % (probed[3] / 1000), "ms",
            "< 1.2 * %.0f alone" % (quiet[3] / 1000), probed[3] < 1.2 * quiet[3])
        row("probes in a second meanwhile", "%.1f" % (len(took) / (time.monotonic() - began)), "/s")


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


@contextlib.contextmanager
def own_file_system(path):
    """Moves the directory of state.db to a file system that can be full alone."""
    status = os.stat(path)
    os.rename(path, path + ".old")
    os.mkdir(path)
    helper.mount("tmpfs", path, "tmpfs", 0, "size=8m,mode=0700,uid=%d,gid=%d" % (status.st_uid, status.st_gid))
    try:
        subprocess.run("cp -a %s.old/. %s && rm -r %s.old" % (path, path, path), shell=True, check=True)
        yield
    finally:
        helper.umount(path, 2)


@contextlib.contextmanager
def full(path):
    with open(path + "/ballast", "wb", buffering=0) as f, contextlib.suppress(OSError):
        while f.write(bytes(1 << 20)):
            pass
    try:
        yield
    finally:
        os.unlink(path + "/ballast")


@contextlib.contextmanager
def hung(path):
    """Mounts a file system that never answers."""
    with subprocess.Popen([PROGRAMS + "/fuse_hang", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE) as process:
        case.equal(process.stdout.readline(), b"mounted\n", "fuse_hang")
        try:
            yield
        finally:
            process.kill()
            helper.umount(path, 2)


def answers(node, component):
    """Returns how long other clients waited for their answers during a probe that finds this component bad: the longest wait, and the median."""
    found, waits = [], []
    asking = threading.Thread(target=lambda: found.append(node.request("GET", "/v1/agent/health?deep=1", timeout=120).json))
    asking.start()
    while asking.is_alive():
        began = time.monotonic()
        node.get("/v1/agent/self")
        waits.append(1000 * (time.monotonic() - began))
        time.sleep(0.005)
    asking.join()
    state = found[0]["components"][component]["state"]
    case.equal(state in ("failed", "hung"), True, "%s is %s" % (component, state))
    return max(waits), statistics.median(waits)


@contextlib.contextmanager
def without_inodes(path):
    os.mkdir(path + "/names")
    with contextlib.suppress(OSError):
        for i in range(1 << 20):
            case.write("%s/names/%d" % (path, i), "")
    try:
        yield
    finally:
        shutil.rmtree(path + "/names")


@contextlib.contextmanager
def limited(node, files, value):
    """Sets a limit on the cgroups of all tasks together, in that of the files that exist."""
    with open(node.data + "/instance", encoding="ascii") as f:
        parent = "/drover-" + f.read().strip()
    limits = [path for path in (tree + parent + name for tree in helper.cgroup_trees().values() for name in files) if os.path.exists(path)]
    for path in limits:
        case.write(path, value)
    try:
        yield
    finally:
        for path in limits:
            case.write(path, "-1" if path.endswith("limit_in_bytes") else "max")


def without_pids(node):
    """No task can start a process."""
    return limited(node, ("/tasks/pids.max", "/runs/pids.max"), "0")


def without_memory(node):
    """The tasks together have less memory than a new process needs."""
    return limited(node, ("/tasks/memory.max", "/runs/memory.limit_in_bytes"), "16384")


def without_cgroups(node):
    """No task gets a cgroup."""
    return limited(node, ("/tasks/cgroup.max.descendants",), "0")


@contextlib.contextmanager
def hanging_volume(node, name):
    """The processes that serve its file system are stopped; without any, a file system that never answers is mounted over it."""
    with contextlib.ExitStack() as stack:
        pids = volumes.Node.fuse_processes(node)
        for pid in pids:
            stack.enter_context(stopped(pid))
        if not pids:
            stack.enter_context(hung(volumes.Node.published(node, name)[0]))
        yield


@contextlib.contextmanager
def disk_in_memory():
    """An ext4 whose writes do not wait for those of other programs to this machine's disk."""
    top = case.directory()
    image, path = top + "/image", top + "/disk"
    helper.mount("tmpfs", top, "tmpfs", 0, "mode=0755")
    try:
        with open(image, "wb") as f:
            f.truncate(256 << 20)
        os.mkdir(path)
        subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True)
        subprocess.run(["mount", "-o", "loop", image, path], check=True)
        os.chmod(path, 0o755)
        try:
            yield path
        finally:
            case.until(lambda: subprocess.run(["umount", path], stderr=subprocess.DEVNULL, check=False).returncode == 0, 60, "the disk to be unmounted")
    finally:
        helper.umount(top, 2)


@contextlib.contextmanager
def only_readable(base):
    """As a disk after an error: the kernel stops writing to it."""
    subprocess.run(["mount", "-n", "-o", "remount,abort", base], check=True)
    yield


@contextlib.contextmanager
def frozen(base):
    subprocess.run(["fsfreeze", "--freeze", base], check=True)
    try:
        yield
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", base], check=True)


def measure(node, what, component, fault):
    with fault:
        longest, median = answers(node, component)
    row("longest wait for an answer while " + what, "%.1f" % longest, "ms", "< 50", longest < 50)
    row("its median", "%.2f" % median, "ms")


def bench_faults():
    volume = case.directory()
    client = 'host_volume "vol" { path = "%s" }' % volume
    with fresh_directory("tmpfs") as base, Bench(base, client=client) as node:
        settle(3)
        subprocess.run(["mount", "-o", "remount,size=64m,nr_inodes=4096", base], check=True)
        node.register(api.job("plugin", binary("csi-local"), ["-root", base + "/store"], CSIPluginConfig={
            "ID": "local", "Type": "monolith", "MountDir": "/csi"}))
        node.wait_running("plugin")
        case.until(lambda: [p["NodesHealthy"] for p in node.ask("/v1/plugins", type="csi")] == [1], 20, "the plugin to be healthy")
        volumes.Node.create(node, "demo")
        user = volumes.job("user", "demo", "")
        user["Job"]["TaskGroups"][0]["Tasks"][0]["Config"] = job("user", "exec", 1)["Job"]["TaskGroups"][0]["Tasks"][0]["Config"]
        (plugin,) = [r["task_pid"] for r in crash.records(node).values()]
        node.register(user)
        node.wait_running("user")
        helpers = [("%s is stopped" % name, "helper/" + name, stopped(node.processes()[name])) for name in ("exec-helper", "mount-helper", "file-helper")]
        for what, component, fault in (*helpers,
                                       ("the disk is full", "disk", full(base)), ("the disk has no inodes", "disk", without_inodes(base)),
                                       ("no process can be started", "driver/raw_exec", without_pids(node)),
                                       ("no task gets a cgroup", "driver/raw_exec", without_cgroups(node)),
                                       ("a CSI volume hangs", "volume/demo", hanging_volume(node, "demo")),
                                       ("a host volume hangs", "host-volume/vol", hung(volume)),
                                       ("a plugin hangs", "plugin/local/monolith", stopped(plugin))):
            measure(node, what, component, fault)
            case.until(lambda: node.request("GET", "/v1/agent/health?deep=1", timeout=120).status == 200, 60, "a good probe")
            settle(1)
        node.purge("user")
    with fresh_directory("tmpfs") as base:
        with Bench(base) as node:
            settle(3)
            measure(node, "tasks have no memory", "driver/raw_exec", without_memory(node))
            state = node.data + "/state"
        with own_file_system(state), Bench(base) as node:
            settle(3)
            measure(node, "state.db cannot be written", "state", full(state))
    if not loop.usable():
        print("  there are no loop devices: not measured while the disk hangs or can only be read")
        return
    with disk_in_memory() as base, Bench(base) as node:
        settle(3)
        measure(node, "the disk hangs", "disk", frozen(base))
        measure(node, "the disk can only be read", "disk", only_readable(base))


PARTS = {"probe": bench_probe, "faults": bench_faults}
