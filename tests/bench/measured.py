# SPDX-License-Identifier: Apache-2.0
"""Shared code of the benchmarks: agents on their own file systems, their resource usage, rows with budgets."""
import collections
import contextlib
import ctypes
import os
import re
import signal
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
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)
missed = []  # results of the budgets


def row(what, value, unit, budget="", ok=None):
    if ok is False:
        missed.append(what)
    print("%-62s %9s %-8s %-20s %s" % (what, value, unit, budget, {None: "", True: "ok", False: "MISSED"}[ok]), flush=True)


# --- where ---

@contextlib.contextmanager
def fresh_directory(kind=os.environ.get("BENCH_FS", "ext4")):
    """A directory on its own file system, or a plain one if this machine cannot mount an image."""
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


# Removes the cgroup after the agent has left it, also when the benchmark was killed: then its end of the pipe is closed, too.
REMOVE = 'read -r nothing; for i in $(seq 600); do rmdir "$0" 2>/dev/null && exit 0; sleep 0.1; done; exit 1'


class Bench(api.Node):
    """An agent in a cgroup of the cpuacct controller, which counts its CPU time and that of all that it starts."""

    def __init__(self, base, client="", more="", **node):
        """client: more lines of the client block; more: other blocks of the configuration; node: arguments of api.Node."""
        config = base + "/bench.hcl"
        with open(config, "w", encoding="ascii") as f:
            f.write(CONFIG % (client, PROGRAMS, more))
        os.chmod(config, 0o600)
        self.group, self.remover = "%s/drover-bench-%d" % (CPUACCT, os.getpid()), None
        try:
            super().__init__(["-config", config], data=base + "/data", **node)
        except BaseException:  # the benchmark has no agent yet that it could end
            self.__exit__(*sys.exc_info())
            raise

    def start(self, pass_fds=(), preexec_fn=None):
        began = time.monotonic()
        try:
            os.makedirs(self.group, exist_ok=True)
        except OSError:
            self.group = None
        if self.group and not self.remover:
            self.remover = subprocess.Popen(["/bin/sh", "-c", REMOVE, self.group], stdin=subprocess.PIPE, start_new_session=True)
        super().start(pass_fds, self.enter_group)
        while True:  # the first answer, polled without pauses, which would add to the time
            try:
                assert self.get("/v1/agent/health")[0] == 200
                break
            except OSError:
                if self.process.poll() is not None:
                    raise AssertionError("the agent ended with %d" % self.process.returncode) from None
                time.sleep(0.0002)
        self.start_ms = (time.monotonic() - began) * 1000
        return self

    def enter_group(self):
        """Runs in the child, before it is the launcher: it ends with the benchmark, also when that is killed."""
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if self.group:
            with open(self.group + "/tasks", "w", encoding="ascii") as f:
                f.write("0")

    def cpu_s(self):
        if not self.group:
            return 0
        with open(self.group + "/cpuacct.usage", encoding="ascii") as f:
            return int(f.read()) / 1e9

    def __exit__(self, kind, value, tb):
        try:
            super().__exit__(None, value, tb)
        finally:
            if self.remover:
                self.remover.stdin.close()
                case.equal((self.remover.wait(), os.path.exists(self.group)), (0, False), "the end of " + self.group)
            if kind is not None:  # last, because nobody may read this any more
                print(self.log()[-3000:], flush=True)  # it has thousands of lines

    def parts(self):
        """Returns {name: pid} of the agent's processes except executors."""
        return {"launcher": self.pid, **{n: p for n, p in self.processes().items() if n != "executor"}}

    def executors(self):
        return [p for p in all_processes(self.pid) if (agent.arguments(p) or [""])[0].startswith("drover-executor")]

    def counts(self, job):
        summary = self.ask("/v1/job/%s/summary" % job)["Summary"]
        return {k: sum(g[k] for g in summary.values()) for k in ("Running", "Complete", "Failed")}

    def records(self):
        return len([n for n in os.listdir(self.data + "/run") if n.endswith(".rec")])


def all_processes(pid):
    """Returns the descendants of pid."""
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
    """Returns the numbers of the physical pages that the process has mapped."""
    found = set()
    with open("/proc/%d/maps" % pid, encoding="utf-8", errors="replace") as maps, open("/proc/%d/pagemap" % pid, "rb", 0) as pages:
        for line in maps:
            first, last = (int(x, 16) // PAGE for x in line.split(" ", 1)[0].split("-"))
            if "[v" in line:  # mappings of the kernel
                continue
            pages.seek(first * 8)
            for entry in struct.unpack("<%dQ" % (last - first), pages.read((last - first) * 8)):
                if entry >> 63:
                    found.add(entry & ((1 << 55) - 1))
    return found


def alone_mb(pids):
    """Returns {name: MB}: the PSS if no other process of this machine had the same libraries mapped. pids: {name: pid}."""
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
    """Returns the text of this file of each thread."""
    found = []
    with contextlib.suppress(OSError):
        for thread in os.listdir("/proc/%d/task" % pid):
            with contextlib.suppress(OSError), open("/proc/%d/task/%s/%s" % (pid, thread, name), encoding="utf-8", errors="replace") as f:
                found.append(f.read())
    return found


def cpu_us(pid):
    """Returns the CPU time of its threads, without ended ones."""
    return sum(int(text.split()[0]) for text in task_files(pid, "schedstat")) / 1000


def switches(pid):
    """Returns the number of context switches to its threads, which include all wakeups."""
    return sum(int(n) for text in task_files(pid, "status") for n in re.findall(r"ctxt_switches:\s+(\d+)", text))


def written_bytes(pid):
    """Returns the bytes that it has written with write(2), without packets and answers on sockets."""
    with open("/proc/%d/io" % pid, encoding="ascii") as f:
        return int(re.search(r"^wchar: (\d+)", f.read(), re.M).group(1))


def flushes(path):
    """Returns the number of flush requests to the device of path; None if it does not count them."""
    dev = os.stat(path).st_dev
    try:
        with open("/sys/dev/block/%d:%d/stat" % (os.major(dev), os.minor(dev)), encoding="ascii") as f:
            fields = f.read().split()
        return int(fields[15]) if len(fields) > 15 else None
    except OSError:
        return None


class Spent:
    """The usage of the agent's processes from its creation to .end(): .cpu (us by process), .all_us with executors and tasks, .seconds,
    .bytes (written by the supervisor, without its log), .flushes of the device."""

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
    """Waits until the condition holds, with 40 polls a second, so that the CPU time is left to what is measured."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("%s: timed out after %g s" % (what, seconds))
        time.sleep(0.025)


def busy():
    """Returns (used, total) CPU time since the machine was booted."""
    with open("/proc/stat", encoding="ascii") as f:
        times = [int(x) for x in f.readline().split()[1:9]]
    return sum(times) - times[3] - times[4], sum(times)


def settle(seconds=10):
    """Waits until earlier removals are written and other processes are idle, for a limited time."""
    os.sync()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        before = busy()
        time.sleep(0.5)
        used, whole = (b - a for a, b in zip(before, busy()))
        if used <= whole / 10:
            break


def start(node, name, driver, count=N, **group):
    """Returns the starts per second from the registration until all run, and the CPU time of each, of all processes, in microseconds."""
    settle()
    cpu, began = node.cpu_s(), time.monotonic()
    node.register(job(name, driver, count, **group))
    poll(lambda: node.counts(name)["Running"] >= count, 300, "%d of %s running" % (count, name))
    return count / (time.monotonic() - began), (node.cpu_s() - cpu) / count * 1e6


def stop(node, name, count=N):
    """Returns the seconds until all are stopped, recorded and reaped."""
    left = node.records() - count
    began = time.monotonic()
    node.do("DELETE", "/v1/job/%s" % name)
    poll(lambda: node.records() <= left, 120, "%d stopped" % count)
    return time.monotonic() - began


