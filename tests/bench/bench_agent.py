#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The whole agent against bare clone3+exec and the executor path alone, in one run. Ratios, and DESIGN 12's budgets."""
import glob
import json
import os
import re
import signal
import socket
import subprocess
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import agent, binary, build_dir, case  # noqa: E402

N = int(os.environ.get("BENCH_ALLOCS", "1000"))
TASK = os.path.join(build_dir(), "bench_task")
rows = []


def row(what, value, unit, budget="", ok=None):
    mark = "" if ok is None else ("ok" if ok else "MISSED")
    rows.append((what, value, unit, budget, mark))
    print("%-58s %10s %-9s %-22s %s" % (what, value, unit, budget, mark), flush=True)


class Api:
    """Just enough HTTP for the bench: one connection for each request."""

    def __init__(self, a):
        self.a = a

    def call(self, method, path, body=None):
        data = json.dumps(body).encode() if body is not None else b""
        with self.a.connect() as s:
            s.settimeout(60)
            s.sendall(("%s %s HTTP/1.1\r\nHost: d\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" %
                       (method, path, len(data))).encode() + data)
            answer = b""
            while True:
                part = s.recv(1 << 20)
                if not part:
                    break
                answer += part
        head, _, text = answer.partition(b"\r\n\r\n")
        status = int(head.split()[1])
        if b"chunked" in head.lower():
            text = dechunk(text)
        if status != 200:
            raise RuntimeError("%s %s: %d %s" % (method, path, status, text[:300]))
        return json.loads(text) if text.strip() else None

    def running(self, job):
        for stub in self.call("GET", "/v1/jobs?prefix=" + job):
            if stub["ID"] == job:
                return sum(g["Running"] for g in stub["JobSummary"]["Summary"].values())
        return 0


def dechunk(text):
    out = b""
    while text:
        size, _, text = text.partition(b"\r\n")
        size = int(size, 16)
        if not size:
            break
        out += text[:size]
        text = text[size + 2:]
    return out


def job(name, driver, count, stop_after_s=0):
    group = {"Name": "g", "Count": count, "RestartPolicy": {"Attempts": 0, "Mode": "fail"},
             "Tasks": [{"Name": "t", "Driver": driver, "Config": {"command": TASK if driver == "raw_exec" else "/usr/bin/sleep",
                                                                  "args": [] if driver == "raw_exec" else ["1000000"]},
                        "Resources": {"CPU": 1, "MemoryMB": 10}}]}
    if stop_after_s:
        group["StopAfterClientDisconnect"] = stop_after_s * 10**9
    return {"Job": {"ID": name, "Name": name, "Type": "service", "TaskGroups": [group]}}


def start(api, name, driver, count, **kw):
    """Seconds from the submit until all run."""
    began = time.monotonic()
    api.call("PUT", "/v1/jobs", job(name, driver, count, **kw))
    case.until(lambda: api.running(name) >= count, 120, "%d of %s running" % (count, name))
    return time.monotonic() - began


def pss(pid):
    with open("/proc/%d/smaps_rollup" % pid, encoding="ascii") as f:
        return int(re.search(r"^Pss:\s+(\d+)", f.read(), re.M).group(1)) / 1024


def executors(a):
    return [p for p in agent.children(a.pid) if (agent.arguments(p) or [""])[0].startswith("drover-executor")]


def agent_pss(a):
    return {"launcher": pss(a.pid), **{n: pss(p) for n, p in a.processes().items() if n != "executor"}}


def cpu_ticks(pids):
    total = 0
    for p in pids:
        try:
            with open("/proc/%d/stat" % p, encoding="utf-8", errors="replace") as f:
                fields = f.read().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        except OSError:
            pass
    return total


def records(a):
    return glob.glob(a.data + "/run/*.rec")


def lateness(a):
    """Milliseconds between deadline and stop, of each record that a lease ended."""
    found = []
    for path in records(a):
        with open(path, "rb") as f:
            data = f.read()
        flags, = struct.unpack_from("<I", data, 136)
        if flags & 2:
            found.append(struct.unpack_from("<Q", data, 184)[0] / 1e6)
    return found


def baselines():
    """{name: starts per second} of bench_exec: bare clone3+exec and the executor path alone, for both drivers."""
    out = subprocess.run([os.path.join(build_dir(), "bench_exec"), str(N)], capture_output=True, text=True, check=False).stdout
    print(out, end="", flush=True)
    return {m.group(1): float(m.group(2)) for m in re.finditer(r"^(\S+)\s+([\d.]+) starts/s", out, re.M)}


def config(directory):
    path = os.path.join(directory, "bench.hcl")
    with open(path, "w", encoding="ascii") as f:
        f.write('log_level = "warn"\nclient {\n enabled = true\n cpu_total_compute = 1000000\n memory_total_mb = 1000000\n}\n')
    os.chmod(path, 0o644)
    return path


def bench_rates(a, api, base):
    for driver in ("raw_exec", "exec"):
        rate = N / start(api, "first-" + driver.replace("_", "-"), driver, N)
        bare, alone = base.get("bare_" + driver, 0), base.get("path_" + driver, 0)
        row("%s: tasks started per second, %d" % (driver, N), "%.0f" % rate, "/s", ">= 500", rate >= 500)
        if bare:
            row("%s: of bare clone3+exec" % driver, "%.0f" % (100 * rate / bare), "%", ">= 25 %", rate / bare >= 0.25)
        if alone:
            row("%s: of the executor path alone" % driver, "%.0f" % (100 * rate / alone), "%", ">= 50 %", rate / alone >= 0.5)
        if driver == "raw_exec":
            bench_running(a, api, rate)
        stop(a, api, "first-" + driver.replace("_", "-"))


def host_mounts(directory, n):
    os.makedirs(directory, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", directory], check=True)
    for i in range(n):
        os.mkdir("%s/%d" % (directory, i))
        subprocess.run(["mount", "--bind", "%s/%d" % (directory, i), "%s/%d" % (directory, i)], check=True)


def bench_running(a, api, first_rate):
    pids = executors(a)
    each = sum(pss(p) for p in pids) / max(1, len(pids))
    parts = agent_pss(a)
    row("PSS per executor, %d running" % len(pids), "%.3f" % each, "MB", "<= 0.06", each <= 0.06)
    for name, value in sorted(parts.items()):
        row("PSS of %s with %d running" % (name, len(pids)), "%.1f" % value, "MB")
    everything = list(a.processes().values()) + [a.pid] + pids
    before = cpu_ticks(everything)
    time.sleep(10)
    idle = (cpu_ticks(everything) - before) / os.sysconf("SC_CLK_TCK") / 10 * 100
    row("idle CPU with %d running" % len(pids), "%.2f" % idle, "% of 1", "<= 0.5 (leases)", idle <= 0.5)
    host_mounts(a.base + "/mounts", int(os.environ.get("BENCH_MOUNTS", "3000")))
    rate = N / start(api, "second", "raw_exec", N)
    row("raw_exec: with %d running and 3000 host mounts" % N, "%.0f" % rate, "/s", "+- 20 % of the first",
        abs(rate / first_rate - 1) <= 0.2)
    subprocess.run(["umount", "-l", a.base + "/mounts"], check=True)
    stop(a, api, "second")
    bench_restart(a)


def bench_restart(a):
    said = a.log().count("are followed again")
    began = time.monotonic()
    a.kill("supervisor")
    case.until(lambda: a.log().count("are followed again") > said, 60, "all runs followed")
    took = time.monotonic() - began
    row("restart of the supervisor until %d are followed" % N, "%.2f" % took, "s", "<= 1", took <= 1)


def stop(a, api, name):
    n = api.running(name)
    began = time.monotonic()
    api.call("DELETE", "/v1/job/%s?purge=true" % name)
    cgroups = [c for c in glob.glob("/sys/fs/cgroup/unified/drover-*/tasks") + glob.glob("/sys/fs/cgroup/drover-*/tasks")]
    before = len(executors(a)) - n
    case.until(lambda: len(executors(a)) <= before and len(records(a)) <= before, 120, "%d stopped" % n)
    took = time.monotonic() - began
    row("%s: %d stopped, recorded, cgroups removed" % (name, n), "%.2f" % took, "s", "<= 1 per 1000", took <= max(1, n / 1000))
    return cgroups


def bench_lease(a, api):
    start(api, "lease", "raw_exec", N, stop_after_s=5)
    supervisor = a.processes()["supervisor"]
    os.kill(supervisor, signal.SIGSTOP)
    try:
        case.until(lambda: len(lateness(a)) >= N, 30, "%d lease stops" % N)
        late = sorted(lateness(a))
    finally:
        os.kill(supervisor, signal.SIGCONT)
    row("lease: stop begins after the limit, worst of %d" % len(late), "%.1f" % late[-1], "ms", "<= 50", late[-1] <= 50)
    row("lease: median", "%.1f" % late[len(late) // 2], "ms")
    api.call("DELETE", "/v1/job/lease?purge=true")


def bench_begin(path):
    with agent.Agent(args=["-config", path]) as a:
        began = time.monotonic()
        a.wait_ready()
        row("agent start to control socket answering", "%.0f" % ((time.monotonic() - began) * 1000), "ms", "<= 50")
        time.sleep(2)
        parts = agent_pss(a)
        row("all agent processes, idle, no CSI", "%.1f" % sum(parts.values()), "MB", "<= 12", sum(parts.values()) <= 12)
        for name, value in sorted(parts.items()):
            row("  " + name, "%.1f" % value, "MB")


def main():
    directory = case.directory()
    path = config(directory)
    base = baselines()
    bench_begin(path)
    with agent.Agent(args=["-config", path]) as a:
        a.wait_ready()
        api = Api(a)
        bench_rates(a, api, base)
        bench_lease(a, api)
    missed = [r for r in rows if r[4] == "MISSED"]
    print("%d budgets missed" % len(missed))
    return 0


sys.exit(main())
