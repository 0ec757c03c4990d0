#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The whole agent beside bare clone3+exec and the executor path alone, in one run, each figure with its budget.

BENCH_ALLOCS, BENCH_MOUNTS, BENCH_ROUNDS and BENCH_EXISTING change how much of each; arguments name the parts to run.
Data directories lie on an ext4 made for each agent, where the machine can mount one: ext4 looks at every inode that was
removed within the last minutes before it gives out another, so that a start would cost what was removed before it.
"""
import contextlib
import os
import re
import signal
import statistics
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import agent, api, binary, build_dir, case  # noqa: E402

N = int(os.environ.get("BENCH_ALLOCS", "1000"))
MOUNTS = int(os.environ.get("BENCH_MOUNTS", "3000"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
EXISTING = int(os.environ.get("BENCH_EXISTING", "10000"))
PROGRAMS = os.path.join(build_dir(), "tests")
CPUACCT = "/sys/fs/cgroup/cpuacct"
TICK = os.sysconf("SC_CLK_TCK")
FLAGS_AT, LATE_AT = 136, 184  # of flags and lease_late_ns in struct exe_record (proto/executor.h)
END_LEASE = 2
CONFIG = """client {
  enabled = true
  cpu_total_compute = 100000000
  memory_total_mb = 100000000
  disk_free_mb = 100000000
  chroot_env {
    "%s" = "/bench"
  }
}
plugin "raw_exec" {
  config { enabled = true }
}
"""
missed = 0


def row(what, value, unit, budget="", ok=None):
    global missed
    missed += ok is False
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

    def __init__(self, base, **more):
        config = base + "/bench.hcl"
        with open(config, "w", encoding="ascii") as f:
            f.write(CONFIG % PROGRAMS)
        os.chmod(config, 0o644)
        self.group = "%s/drover-bench-%d" % (CPUACCT, os.getpid())
        super().__init__(["-config", config], data=base + "/data", **more)

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

    def __exit__(self, *args):
        super().__exit__(*args)
        if self.group:
            os.rmdir(self.group)

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


def ticks(pids):
    total = 0
    for p in pids:
        with open("/proc/%d/stat" % p, encoding="utf-8", errors="replace") as f:
            total += sum(int(x) for x in f.read().rpartition(")")[2].split()[11:13])
    return total


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
            raise AssertionError("%s: not within %g s" % (what, seconds))
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


# --- the parts ---

def alone(base, what):
    """{name: number} of bench_exec."""
    settle()
    out = subprocess.run([PROGRAMS + "/bench_exec", "-n", str(N), "-d", base, "-o", what], stdout=subprocess.PIPE, text=True,
                         check=True, env={**os.environ, "DROVER_BUILD": build_dir()}).stdout
    return {m.group(1): float(m.group(2)) for m in re.finditer(r"^exec\.(\S+) ([\d.]+)", out, re.M)}


def bench_rates():
    """One round: the bare loop, the executor path, the agent, right after each other on file systems of the same age."""
    for driver, what in (("raw_exec", "raw-stay"), ("exec", "exec-stay")):
        rates, bare, path, cpu = [], [], [], []
        for _ in range(ROUNDS):
            with fresh_directory() as base:
                b = alone(base, "bare")
                p = alone(base, what)
            with fresh_directory() as base, Bench(base) as node:
                rate, used = start(node, "first", driver)
            rates.append(rate)
            bare.append(rate / b["bare.run_per_s"])
            path.append(rate / p[driver + ".start_per_s"])
            cpu.append((used, b.get("bare.run_cpu", 0), p.get(driver + ".start_cpu", 0)))
            print("  %s, a round of %d: bare %.0f, path %.0f, agent %.0f starts/s; CPU %.0f, %.0f, %.0f us; load %.1f" %
                  (driver, N, b["bare.run_per_s"], p[driver + ".start_per_s"], rate, cpu[-1][1], cpu[-1][2], used,
                   os.getloadavg()[0]), flush=True)
        rate, of_bare, of_path = (statistics.median(x) for x in (rates, bare, path))
        row("%s: starts per second, %d, median of %d" % (driver, N, ROUNDS), "%.0f" % rate, "/s", ">= 500 when idle", rate >= 500)
        row("%s: of bare clone3+exec" % driver, "%.0f" % (100 * of_bare), "%", ">= 25", of_bare >= 0.25)
        row("%s: of the executor path alone" % driver, "%.0f" % (100 * of_path), "%", ">= 50", of_path >= 0.5)
        row("%s: kernel memory of an executor and its task" % driver, "%.3f" % p[driver + ".executor_kernel"], "MB")
        used = [statistics.median(x) for x in zip(*cpu)]
        row("%s: CPU time per start; bare; executor path alone" % driver, "%.0f; %.0f; %.0f" % tuple(used), "us")
        if used[0]:  # others on this machine move the rates, and these much less; bare keeps one core busy, the agent all
            row("  that of bare and of the path, of the agent's", "%.0f; %.0f" % tuple(100 * u / used[0] for u in used[1:]), "%")


@contextlib.contextmanager
def host_mounts(base):
    place = base + "/mounts"
    os.makedirs(place, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", place], check=True)
    script = "".join("mkdir %s/%d; mount --bind %s/%d %s/%d\n" % ((place, i) * 3) for i in range(MOUNTS))
    try:
        subprocess.run(["sh", "-e"], input=script, text=True, check=True)
        yield
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def tell_memory(node):
    pids = node.executors()
    each = statistics.mean(pss_mb(p) for p in pids)
    row("PSS per executor, %d running" % len(pids), "%.4f" % each, "MB", "<= 0.06", each <= 0.06)
    for name, pid in sorted(node.processes().items()):
        if name != "executor":
            row("  PSS of %s with %d running" % (name, len(pids)), "%.2f" % pss_mb(pid), "MB")


def bench_running():
    with fresh_directory() as base, Bench(base) as node:
        idle = sum(pss_mb(p) for p in node.processes().values())
        start(node, "before", "raw_exec")  # what an agent does only once is not of the first measured ones
        stop(node, "before")
        first, cpu = start(node, "first", "raw_exec")
        tell_memory(node)
        grown = sum(pss_mb(p) for n, p in node.processes().items() if n != "executor") - idle
        pids = node.executors()
        each = grown / N + statistics.mean(pss_mb(p) for p in pids)
        row("PSS added per running task, all processes", "%.4f" % each, "MB", "<= 0.08", each <= 0.08)
        second, cpu2 = start(node, "second", "raw_exec")
        row("starts with %d running, of the first" % N, "%.0f" % (100 * second / first), "%", "80 to 120",
            0.8 * first <= second <= 1.2 * first)
        took = stop(node, "second")
        row("stop of %d, recorded and reaped" % N, "%.2f" % took, "s", "<= 1", took <= 1)
        with host_mounts(base):
            third, cpu3 = start(node, "third", "raw_exec")
        row("starts with %d running and %d host mounts, of the first" % (N, MOUNTS), "%.0f" % (100 * third / first), "%",
            "80 to 120", 0.8 * first <= third <= 1.2 * first)
        if cpu:
            worst = 100 * max(cpu2, cpu3) / cpu
            row("  by CPU time per start, of the first", "%.0f; %.0f" % (100 * cpu2 / cpu, 100 * cpu3 / cpu), "%", "<= 120", worst <= 120)
        stop(node, "third")
        bench_restart(node, pids)


def bench_restart(node, pids):
    said = node.log().count("are followed again")
    began = time.monotonic()
    node.kill("supervisor")
    poll(lambda: node.log().count("are followed again") > said, 60, "all runs followed")
    took = time.monotonic() - began
    row("kill of the supervisor until %d are followed again" % len(pids), "%.2f" % took, "s", "<= 1", took <= 1)
    case.equal(sorted(node.executors()), sorted(pids), "executors after the restart")


def lateness_ms(node):
    """Of each record that says that its lease ended."""
    found = []
    for name in os.listdir(node.data + "/run"):
        if not name.endswith(".rec"):
            continue
        with open(node.data + "/run/" + name, "rb") as f:
            data = f.read()
        if struct.unpack_from("<I", data, FLAGS_AT)[0] & END_LEASE:
            found.append(struct.unpack_from("<Q", data, LATE_AT)[0] / 1e6)
    return sorted(found)


def bench_lease():
    with fresh_directory() as base, Bench(base) as node:
        start(node, "idle", "raw_exec", StopAfterClientDisconnect=30 * 10**9)
        pids = all_processes(node.pid) + [node.pid]
        time.sleep(2)
        before, began = (ticks(pids), node.cpu_s()), time.monotonic()
        time.sleep(35)
        took = time.monotonic() - began
        used = ((node.cpu_s() - before[1]) if node.group else (ticks(pids) - before[0]) / TICK) / took * 100
        row("idle CPU with %d running, leases of 30 s" % N, "%.2f" % used, "% of 1", "<= 0.5", used <= 0.5)
        stop(node, "idle")
        start(node, "lease", "raw_exec", StopAfterClientDisconnect=5 * 10**9)
        supervisor = node.kill("supervisor", signal.SIGSTOP)
        try:
            time.sleep(6)
            poll(lambda: len(lateness_ms(node)) >= N, 30, "%d stops by their leases" % N)
            late = lateness_ms(node)
        finally:
            os.kill(supervisor, signal.SIGCONT)
        row("lease: stop after the limit, supervisor stopped, worst of %d" % N, "%.1f" % late[-1], "ms", "<= 50", late[-1] <= 50)
        row("lease: median", "%.1f" % late[len(late) // 2], "ms")


def bench_begin():
    times = []
    for _ in range(5):
        with fresh_directory() as base, Bench(base) as node:
            times.append(node.start_ms)
            if len(times) < 5:
                continue
            time.sleep(2)
            parts = {"launcher": pss_mb(node.pid), **{n: pss_mb(p) for n, p in node.processes().items()}}
    took = statistics.median(times)
    row("agent start to control socket answering, median of 5", "%.0f" % took, "ms", "<= 50", took <= 50)
    whole = sum(parts.values())
    row("PSS of all agent processes, idle, no CSI", "%.1f" % whole, "MB", "<= 12", whole <= 12)
    for name, value in sorted(parts.items()):
        row("  " + name, "%.2f" % value, "MB")


def bench_existing():
    """What a start, a list and a stop cost beside many allocs that have ended; on tmpfs, see above."""
    with fresh_directory("tmpfs") as base, Bench(base) as node:
        if not node.group:
            print("costs beside many allocs: not measured, this machine has no cpuacct controller")
            return
        count = min(N, 300)
        costs = []
        for existing, name in ((100, "few"), (EXISTING, "many")):
            node.register(job("old-" + name, "raw_exec", existing - sum(c[0] for c in costs), stay=False))
            poll(lambda n=name, e=existing: sum(node.counts("old-" + n)[k] for k in ("Complete", "Failed")) >=
                 e - sum(c[0] for c in costs) and node.records() == 0, 600, "%d allocs that have ended" % existing)
            _, cpu = start(node, "new-" + name, "raw_exec", count)
            spent = [node.cpu_s()]
            node.request("GET", "/v1/allocations")
            spent.append(node.cpu_s())
            stop(node, "new-" + name, count)
            spent.append(node.cpu_s())
            costs.append((existing, cpu, (spent[1] - spent[0]) / (existing + count) * 1e6, (spent[2] - spent[1]) / count * 1e6))
        few, many = costs
        for what, i in (("a start", 1), ("a list, per alloc", 2), ("a stop", 3)):
            grew = many[i] / max(1, few[i])
            row("CPU time of %s, with %d allocs; with %d" % (what, few[0], many[0]), "%.0f; %.0f" % (few[i], many[i]), "us", "constant",
                grew <= 1.5)


def bench_idle():
    """An agent whose allocs run nothing: what the source, state.db and the API take of the above."""
    with fresh_directory("tmpfs") as base, Bench(base, launcher=PROGRAMS + "/idle/drover-launcher") as node:
        supervisor = node.processes()["supervisor"]
        before = pss_mb(supervisor)
        rate, placed = start(node, "idle", "raw_exec")
        held = (pss_mb(supervisor) - before) / N
        cpu, began = node.cpu_s(), time.monotonic()
        node.do("DELETE", "/v1/job/idle")
        poll(lambda: node.counts("idle")["Running"] == 0, 300, "%d of idle stopped" % N)
        took, stopped = time.monotonic() - began, (node.cpu_s() - cpu) / N * 1e6
    row("allocs that run nothing: placed and told of per second, %d" % N, "%.0f" % rate, "/s")
    row("  stopped per second; CPU time of each start; stop", "%.0f; %.0f; %.0f" % (N / took, placed, stopped), "us")
    row("  memory of the supervisor for each", "%.4f" % held, "MB")


def setup_us(node, name, made):
    """Runs a job once: microseconds from the alloc's arrival to the end of its hooks, which is when its task is prepared."""
    node.register(made)
    time.sleep(0.1)  # nobody asks meanwhile: that would be measured too
    alloc, = node.wait_running(name)
    times = {e["Type"]: e["Time"] for e in alloc["TaskStates"]["t"]["Events"]}
    node.purge(name)
    return (times["Task Setup"] - times["Received"]) / 1000


def bench_csi(tries=30):
    """On a disk, where two commits of each mount are synced, and without one."""
    for kind in ("ext4", "tmpfs"):
        bench_csi_on(kind, tries)


def bench_csi_on(kind, tries):
    with fresh_directory(kind) as base, Bench(base) as node:
        node.register(api.job("plugin", binary("csi-local"), ["-root", base + "/store"], CSIPluginConfig={
            "ID": "local", "Type": "monolith", "MountDir": "/csi"}))
        plugin, = node.wait_running("plugin")
        case.until(lambda: [p["NodesHealthy"] for p in node.ask("/v1/plugins", type="csi")] == [1], 20, "a healthy plugin")
        mode = {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}
        node.do("PUT", "/v1/volume/csi/v/create", {"Volumes": [
            {"ID": "v", "Name": "v", "PluginID": "local", "RequestedCapabilities": [mode]}]})
        used = {"Volumes": {"v": {"Name": "v", "Type": "csi", "Source": "v", **mode}}}
        plain, mounted = [], []
        for _ in range(tries):
            time.sleep(0.1)
            plain.append(setup_us(node, "plain", job("plain", "exec", 1)))
            mounted.append(setup_us(node, "mounted", job("mounted", "exec", 1, **used)))
        whole = sum(pss_mb(p) for n, p in node.processes().items() if n != "executor") + pss_mb(node.pid)
        row("PSS of all agent processes, idle, with one CSI plugin, %s" % kind, "%.1f" % whole, "MB", "<= 18", whole <= 18)
        said = node.logs(plugin, kind="stderr").decode()
    own = sum(statistics.median(int(t) for t in re.findall(call + r" took (\d+) us", said)) for call in
              ("NodeStageVolume", "NodePublishVolume"))
    share = (statistics.median(mounted) - statistics.median(plain) - own) / 1000
    row("our share of a CSI stage and publish, %s (plugin: %.2f ms)" % (kind, own / 1000), "%.2f" % share, "ms", "<= 2", share <= 2)


PARTS = {"begin": bench_begin, "rates": bench_rates, "running": bench_running, "lease": bench_lease,
         "existing": bench_existing, "idle": bench_idle, "csi": bench_csi}


def main():
    chosen = sys.argv[1:] or list(PARTS)
    unknown = [name for name in chosen if name not in PARTS]
    if unknown:
        print("bench: there is no part %s; there are: %s" % (", ".join(unknown), " ".join(PARTS)), file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what it made goes, as after Ctrl-C
    print("machine: %d cores, kernel %s, load %.1f" % (os.cpu_count(), os.uname().release, os.getloadavg()[0]), flush=True)
    for name in chosen:
        PARTS[name]()
    print("%d budgets missed" % missed)
    return 0


sys.exit(main())
