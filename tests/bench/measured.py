# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks measure with: agents on file systems of their own, what they use, rows with budgets."""
import collections
import contextlib
import os
import re
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import agent, api, build_dir, case  # noqa: E402

N = int(os.environ.get("BENCH_ALLOCS", "1000"))
PROGRAMS = os.path.join(build_dir(), "tests")
CPUACCT = "/sys/fs/cgroup/cpuacct"
PAGE = os.sysconf("SC_PAGE_SIZE")
TICK = os.sysconf("SC_CLK_TCK")
CONFIG = """client {
  enabled = true
  cpu_total_compute = 100000000
  memory_total_mb = 100000000
  disk_free_mb = 100000000
  gc_max_allocs = 1000000
  %s
  chroot_env {
    "%s" = "/bench"
  }
}
plugin "raw_exec" {
  config { enabled = true }
}
%s
"""
missed = []  # what of the budgets


def row(what, value, unit, budget="", ok=None):
    if ok is False:
        missed.append(what)
    print("%-62s %9s %-8s %-20s %s" % (what, value, unit, budget, {None: "", True: "ok", False: "MISSED"}[ok]), flush=True)


# --- where ---

@contextlib.contextmanager
def fresh_directory(kind=os.environ.get("BENCH_FS", "ext4")):
    """A directory on a file system of its own, or a plain one if this machine mounts no image."""
    base = case.directory()
    image = base + ".img"
    make = "mkfs.ext4 -q -F %s && mount -o loop %s %s" % (image, image, base)
    with open(image, "wb") as f:
        f.truncate(6 << 30)
    made = subprocess.run("mount -t tmpfs none " + base if kind == "tmpfs" else make, shell=True, check=False,
                          stderr=subprocess.DEVNULL).returncode == 0
    os.chmod(base, 0o755)
    try:
        yield base
    finally:
        if made:
            subprocess.run(["umount", base], check=True)
        os.unlink(image)


class Bench(api.Node):
    """An agent whose CPU time, with all that it starts, is counted by a cgroup of the cpuacct controller."""

    def __init__(self, base, client="", more="", **node):
        """client: more of that block, more: other blocks of its configuration; node: of api.Node."""
        config = base + "/bench.hcl"
        with open(config, "w", encoding="ascii") as f:
            f.write(CONFIG % (client, PROGRAMS, more))
        os.chmod(config, 0o600)
        self.group = "%s/drover-bench-%d" % (CPUACCT, os.getpid())
        super().__init__(["-config", config], data=base + "/data", **node)

    def start(self, pass_fds=(), preexec_fn=None):
        began = time.monotonic()
        try:
            os.makedirs(self.group, exist_ok=True)
        except OSError:
            self.group = None
        super().start(pass_fds, self.enter_group)
        while True:  # the first answer, looked for without a pause that would be part of it
            try:
                assert self.get("/v1/agent/health")[0] == 200
                break
            except OSError:
                time.sleep(0.0002)
        self.start_ms = (time.monotonic() - began) * 1000
        return self

    def enter_group(self):
        if self.group:
            with open(self.group + "/tasks", "w", encoding="ascii") as f:
                f.write("0")

    def cpu_s(self):
        if not self.group:
            return 0
        with open(self.group + "/cpuacct.usage", encoding="ascii") as f:
            return int(f.read()) / 1e9

    def __exit__(self, kind, value, tb):
        if kind is not None:
            print(self.log()[-3000:], flush=True)  # of thousands of lines
        super().__exit__(None, value, tb)
        if self.group:
            os.rmdir(self.group)

    def parts(self):
        """{name: pid} of the agent's processes but for executors."""
        return {"launcher": self.pid, **{n: p for n, p in self.processes().items() if n != "executor"}}

    def executors(self):
        return [p for p in all_processes(self.pid) if (agent.arguments(p) or [""])[0].startswith("drover-executor")]

    def counts(self, job):
        summary = self.ask("/v1/job/%s/summary" % job)["Summary"]
        return {k: sum(g[k] for g in summary.values()) for k in ("Running", "Complete", "Failed")}

    def records(self):
        return len([n for n in os.listdir(self.data + "/run") if n.endswith(".rec")])


def all_processes(pid):
    """The descendants of pid."""
    parents = {}
    for name in os.listdir("/proc"):
        try:
            with open("/proc/%s/stat" % name, encoding="utf-8", errors="replace") as f:
                text = f.read()
            parents.setdefault(int(text[text.rindex(")") + 4:].split(" ", 1)[0]), []).append(int(name))
        except (OSError, ValueError):
            continue
    found, left = [], [pid]
    while left:
        made = parents.get(left.pop(), [])
        found += made
        left += made
    return found


def pss_mb(pid):
    with open("/proc/%d/smaps_rollup" % pid, encoding="ascii") as f:
        return int(re.search(r"^Pss:\s+(\d+)", f.read(), re.M).group(1)) / 1024


def frames(pid):
    """The numbers of the physical pages that it has mapped, but for those that never were in memory."""
    found = set()
    with open("/proc/%d/maps" % pid, encoding="utf-8", errors="replace") as maps, open("/proc/%d/pagemap" % pid, "rb", 0) as pages:
        for line in maps:
            first, last = (int(x, 16) // PAGE for x in line.split(" ", 1)[0].split("-"))
            if "[v" in line:  # the kernel's own
                continue
            pages.seek(first * 8)
            for entry in struct.unpack("<%dQ" % (last - first), pages.read((last - first) * 8)):
                if entry >> 63:
                    found.add(entry & ((1 << 55) - 1))
    return found


def alone_mb(pids):
    """{name: MB}: what PSS would be if nobody else on this machine had the same libraries mapped. pids: {name: pid}."""
    each = {name: frames(pid) for name, pid in pids.items()}
    shares = collections.Counter(frame for those in each.values() for frame in those)
    return {name: sum(1 / shares[f] for f in those) * PAGE / 2**20 for name, those in each.items()}


def ticks(pids):
    total = 0
    for p in pids:
        with open("/proc/%d/stat" % p, encoding="utf-8", errors="replace") as f:
            total += sum(int(x) for x in f.read().rpartition(")")[2].split()[11:13])
    return total


def task_files(pid, name):
    """The text of that file of each of its threads."""
    found = []
    with contextlib.suppress(OSError):
        for thread in os.listdir("/proc/%d/task" % pid):
            with contextlib.suppress(OSError), open("/proc/%d/task/%s/%s" % (pid, thread, name), encoding="utf-8", errors="replace") as f:
                found.append(f.read())
    return found


def cpu_us(pid):
    """Of its threads, not of those that have ended."""
    return sum(int(text.split()[0]) for text in task_files(pid, "schedstat")) / 1000


def switches(pid):
    """How often its threads were put on a processor again: each wakeup is one of them."""
    return sum(int(n) for text in task_files(pid, "status") for n in re.findall(r"ctxt_switches:\s+(\d+)", text))


def written_bytes(pid):
    """By its calls of write; packets and answers of sockets are not among them."""
    with open("/proc/%d/io" % pid, encoding="ascii") as f:
        return int(re.search(r"^wchar: (\d+)", f.read(), re.M).group(1))


def flushes(path):
    """How often the device below path was told to make durable what it has; None: it does not count them."""
    dev = os.stat(path).st_dev
    try:
        with open("/sys/dev/block/%d:%d/stat" % (os.major(dev), os.minor(dev)), encoding="ascii") as f:
            fields = f.read().split()
        return int(fields[15]) if len(fields) > 15 else None
    except OSError:
        return None


class Spent:
    """What the agent's processes use from its making to .end(): .cpu (us by process), .all_us with executors and tasks,
    .seconds, .bytes that the supervisor has written but for its log, .flushes of the device."""

    def __init__(self, node):
        self.node, self.pids = node, node.parts()
        self.before = self._now()

    def _now(self):
        node = self.node
        return (time.monotonic(), node.cpu_s() * 1e6, {n: cpu_us(p) for n, p in self.pids.items()},
                written_bytes(self.pids["supervisor"]) - os.path.getsize(node.log_path), flushes(node.data))

    def end(self):
        a, b = self.before, self._now()
        self.seconds, self.all_us, self.bytes = b[0] - a[0], b[1] - a[1], b[3] - a[3]
        self.cpu = {name: b[2][name] - a[2][name] for name in b[2]}
        self.agent_us = sum(self.cpu.values())
        self.flushes = None if b[4] is None else b[4] - a[4]
        return self


# --- jobs ---

def job(name, driver, count, stay=True, **group):
    command = (PROGRAMS if driver == "raw_exec" else "/bench") + "/bench_task"
    made = api.job(name, command, ["stay"] if stay else [], count, driver, group)
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Resources"] = {"CPU": 100, "MemoryMB": 64}
    return made


def poll(condition, seconds, what):
    """Looks 40 times a second: the machine's two cores are to do what is measured."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("%s: timed out after %g s" % (what, seconds))
        time.sleep(0.025)


def busy():
    """Of the processors' time since the machine began: what was used, and all."""
    with open("/proc/stat", encoding="ascii") as f:
        times = [int(x) for x in f.readline().split()[1:9]]
    return sum(times) - times[3] - times[4], sum(times)


def settle(seconds=10):
    """What was removed before is written, and nobody else is busy; on a machine that is never quiet it does not wait for ever."""
    os.sync()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        before = busy()
        time.sleep(0.5)
        used, whole = (b - a for a, b in zip(before, busy()))
        if used <= whole / 10:
            break


def start(node, name, driver, count=N, **group):
    """Starts per second from the submit until all run, and the CPU time of each, of all processes, in microseconds."""
    settle()
    cpu, began = node.cpu_s(), time.monotonic()
    node.register(job(name, driver, count, **group))
    poll(lambda: node.counts(name)["Running"] >= count, 300, "%d of %s running" % (count, name))
    return count / (time.monotonic() - began), (node.cpu_s() - cpu) / count * 1e6


def stop(node, name, count=N):
    """Seconds until all are stopped, recorded and reaped."""
    left = node.records() - count
    began = time.monotonic()
    node.do("DELETE", "/v1/job/%s" % name)
    poll(lambda: node.records() <= left, 120, "%d stopped" % count)
    return time.monotonic() - began


