#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the whole agent, bare clone3+exec, and the executor path alone, in one run, each value with its budget.

BENCH_ALLOCS, BENCH_MOUNTS, BENCH_ROUNDS, BENCH_EXISTING, BENCH_PENDING, BENCH_LIVES and BENCH_CHECKS set the amount of work, BENCH_IDLE_S
the time for an idle agent; arguments name the parts to run, which are here and in the other files. Each agent's data directory is on a new
ext4, if the machine can mount one: ext4 examines every inode that was removed within the last minutes before it assigns one, so the cost of
a start would depend on earlier removals. """
import contextlib
import os
import re
import signal
import statistics
import struct
import subprocess
import sys
import time

from measured import (N, PROGRAMS, TICK, Bench, all_processes, alone_mb, fresh_directory, job, missed, poll, pss_mb, row,
                      settle, start, stop, ticks)
import bench_artifacts
import bench_checks
import bench_life
import bench_link
import bench_many
import bench_metrics
import bench_pending
import bench_probe
import bench_templates
from lib import api, binary, build_dir, case

MOUNTS = int(os.environ.get("BENCH_MOUNTS", "3000"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
FLAGS_AT, LATE_AT = 136, 184  # offsets of flags and lease_late_ns in struct exe_record (proto/run_record.h)
END_LEASE = 2


# --- the parts ---

def alone(base, what):
    """Runs bench_exec. Returns {name: number}."""
    settle()
    out = subprocess.run([PROGRAMS + "/bench_exec", "-n", str(N), "-d", base, "-o", what], stdout=subprocess.PIPE, text=True,
                         check=True, env={**os.environ, "DROVER_BUILD": build_dir()}).stdout
    return {m.group(1): float(m.group(2)) for m in re.finditer(r"^exec\.(\S+) ([\d.]+)", out, re.M)}


def bench_rates():
    """One round: the bare loop, the executor path and the agent, one after the other on file systems of the same age."""
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
        if used[0]:  # other load on this machine affects the rates, but CPU times much less; the bare loop uses one core, the agent all
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


def print_memory(node):
    pids = node.executors()
    each = statistics.mean(pss_mb(p) for p in pids)
    row("PSS per executor, %d running" % len(pids), "%.4f" % each, "MB", "<= 0.06", each <= 0.06)
    for name, pid in sorted(node.processes().items()):
        if name != "executor":
            row("  PSS of %s with %d running" % (name, len(pids)), "%.2f" % pss_mb(pid), "MB")


def bench_running():
    with fresh_directory() as base, Bench(base) as node:
        idle = sum(pss_mb(p) for p in node.processes().values())
        start(node, "before", "raw_exec")  # so that work that an agent does only once is not measured
        stop(node, "before")
        first, cpu = start(node, "first", "raw_exec")
        print_memory(node)
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
    said = node.log().count("recovered ")
    began = time.monotonic()
    node.kill("supervisor")
    poll(lambda: node.log().count("recovered ") > said, 60, "all runs recovered")
    took = time.monotonic() - began
    row("kill of the supervisor until %d are recovered" % len(pids), "%.2f" % took, "s", "<= 1", took <= 1)
    case.equal(sorted(node.executors()), sorted(pids), "executors to be recovered after the restart")


def lateness_ms(node):
    """Returns how late the stop was, from each record of a task that its lease has stopped."""
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
        time.sleep(33)
        before, began = (ticks(pids), node.cpu_s()), time.monotonic()
        time.sleep(121)  # after the first time the disk usage of each alloc is counted once in four rounds of 30 s
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
            parts = alone_mb(node.parts())
    took = statistics.median(times)
    row("agent start to control socket answering, median of 5", "%.0f" % took, "ms", "<= 50", took <= 50)
    whole = sum(parts.values())
    row("PSS of all agent processes, idle, no CSI", "%.1f" % whole, "MB", "<= 12", whole <= 12)
    for name, value in sorted(parts.items()):
        row("  " + name, "%.2f" % value, "MB")


def bench_idle():
    """An agent whose allocs run nothing: the part of the above that the source, state.db and the API use."""
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
    """Runs a job. Returns the microseconds from the alloc's arrival to the end of its hooks, when its task is prepared."""
    node.register(made)
    time.sleep(0.1)  # without requests meanwhile, which would be measured too
    alloc, = node.wait_running(name)
    times = {e["Type"]: e["Time"] for e in alloc["TaskStates"]["t"]["Events"]}
    node.purge(name)
    return (times["Task Setup"] - times["Received"]) / 1000


def bench_csi(tries=30):
    """With a disk, where two commits of each mount are synced, and without one."""
    for kind in ("ext4", "tmpfs"):
        bench_csi_on(kind, tries)


def bench_csi_on(kind, tries):
    with fresh_directory(kind) as base, Bench(base) as node:
        node.register(api.job("plugin", binary("csi-local"), ["-root", base + "/store"], CSIPluginConfig={
            "ID": "local", "Type": "monolith", "MountDir": "/csi"}))
        plugin, = node.wait_running("plugin")
        case.until(lambda: [p["NodesHealthy"] for p in node.ask("/v1/plugins", type="csi")] == [1], 20, "the plugin to be healthy")
        mode = {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}
        node.do("PUT", "/v1/volume/csi/v/create", {"Volumes": [
            {"ID": "v", "Name": "v", "PluginID": "local", "RequestedCapabilities": [mode]}]})
        used = {"Volumes": {"v": {"Name": "v", "Type": "csi", "Source": "v", **mode}}}
        plain, mounted = [], []
        for _ in range(tries):
            time.sleep(0.1)
            plain.append(setup_us(node, "plain", job("plain", "exec", 1)))
            mounted.append(setup_us(node, "mounted", job("mounted", "exec", 1, **used)))
        whole = sum(alone_mb(node.parts()).values())
        row("PSS of all agent processes, idle, with one CSI plugin, %s" % kind, "%.1f" % whole, "MB", "<= 18", whole <= 18)
        said = node.logs(plugin, kind="stderr").decode()
    own = sum(statistics.median(int(t) for t in re.findall(call + r" took (\d+) us", said)) for call in
              ("NodeStageVolume", "NodePublishVolume"))
    share = (statistics.median(mounted) - statistics.median(plain) - own) / 1000
    row("our share of a CSI stage and publish, %s (plugin: %.2f ms)" % (kind, own / 1000), "%.2f" % share, "ms", "<= 2", share <= 2)


def bench_volumes(n=100, call_ms=50):
    """Many volumes at once, of a plugin that takes 50 ms for each call."""
    with fresh_directory() as base, Bench(base) as node:
        rules = ["%s=slow:%d" % (call, call_ms) for call in ("NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume")]
        script = 'exec %s "${CSI_ENDPOINT#unix://}" "$@"'.replace("${", "$${") % os.path.join(build_dir(), "tests", "csi_bad")
        node.register(api.job("plugin", "/bin/sh", ["-c", script, "csi_bad", "mounts=yes"] + rules, CSIPluginConfig={
            "ID": "bad", "Type": "monolith", "MountDir": "/csi"}))
        case.until(lambda: [p["NodesHealthy"] for p in node.ask("/v1/plugins", type="csi")] == [1], 20, "the plugin to be healthy")
        mode = {"AccessMode": "single-node-writer", "AttachmentMode": "file-system"}
        for i in range(n):
            node.do("PUT", "/v1/volume/csi/v%d/create" % i, {"Volumes": [
                {"ID": "v%d" % i, "Name": "v%d" % i, "PluginID": "bad", "RequestedCapabilities": [mode]}]})
        took = {}
        for name in ("plain", "mounted"):
            made = job(name, "exec", 1)
            group, = made["Job"]["TaskGroups"]
            made["Job"]["TaskGroups"] = [{**group, "Name": "g%d" % i, **({"Volumes": {"v": {
                "Name": "v", "Type": "csi", "Source": "v%d" % i, **mode}}} if name == "mounted" else {})} for i in range(n)]
            node.register(made)
            allocs = node.wait_running(name, n, seconds=120)
            times = [{e["Type"]: e["Time"] for e in node.ask("/v1/allocation/" + a["ID"])["TaskStates"]["t"]["Events"]} for a in allocs]
            took[name] = (max(t["Task Setup"] for t in times) - min(t["Received"] for t in times)) / 1e6
            node.purge(name)
        own, whole = 2 * call_ms, took["mounted"] - took["plain"]
        budget = 1.2 * own + 2 * n
        row("%d volumes staged and published at once (plugin: %d ms)" % (n, own), "%.0f" % whole, "ms", "<= %.0f" % budget, whole <= budget)


PARTS = {"begin": bench_begin, "rates": bench_rates, "running": bench_running, "lease": bench_lease,
         "idle": bench_idle, "csi": bench_csi, "volumes": bench_volumes, **bench_life.PARTS, **bench_many.PARTS, **bench_pending.PARTS, **bench_checks.PARTS, **bench_link.PARTS,
         **bench_metrics.PARTS, **bench_templates.PARTS, **bench_artifacts.PARTS, **bench_probe.PARTS}


def main():
    chosen = sys.argv[1:] or list(PARTS)
    unknown = [name for name in chosen if name not in PARTS]
    if unknown:
        print("bench: there is no part %s; there are: %s" % (", ".join(unknown), " ".join(PARTS)), file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that all that it made is removed, as after Ctrl-C
    print("machine: %d cores, kernel %s, load %.1f" % (os.cpu_count(), os.uname().release, os.getloadavg()[0]), flush=True)
    for name in chosen:
        PARTS[name]()
    print("%d budgets missed" % len(missed))
    return 0


sys.exit(main())
