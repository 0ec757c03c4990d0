#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares drover with the client of the servers' own program, in turn, with the same servers: `make bench-nomad NOMAD=path`.

    tests/nomad/bench_nomad.py PATH

BENCH_ALLOCS (100), BENCH_ROUNDS (3) and BENCH_IDLE_S (20) set the amount of work. Each round starts a new server and a new client with
raw_exec, in namespaces and cgroups that no other has used. Bytes are counted by the server's sockets, and indexes are those of its log;
both include jobs, evaluations and plans, which are the same for both clients. Memory and CPU time of the tasks themselves are not
counted."""
import concurrent.futures
import contextlib
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import api, build_dir, case  # noqa: E402
from lib.agent import arguments  # noqa: E402
from lib.cluster import processes_of  # noqa: E402
import client  # noqa: E402
import real  # noqa: E402

N = int(os.environ.get("BENCH_ALLOCS", "100"))
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
IDLE_S = float(os.environ.get("BENCH_IDLE_S", "20"))
SINGLE = 10
TASK = os.path.join(build_dir(), "tests", "bench_task")
CLIENT = """cpu_total_compute = 100000
  memory_total_mb = 100000
  gc_max_allocs = 100000"""
ROWS = (  # description, unit, format
    ("agent start to its API answering", "s", "%.3f"),
    ("PSS of all processes, idle, no allocs", "MB", "%.1f"),
    ("submit to running, one alloc, median", "s", "%.3f"),
    ("tasks per second, %d, submit to all running" % N, "/s", "%.1f"),
    ("CPU time of the client per start", "ms", "%.2f"),
    ("PSS of all processes with %d running" % N, "MB", "%.1f"),
    ("PSS added per running task", "MB", "%.3f"),
    ("idle CPU with %d running" % N, "% of 1", "%.2f"),
    ("bytes to and from the server, idle, %d running" % N, "/s", "%.0f"),
    ("kill -9 of the agent, start, all %d followed" % N, "s", "%.2f"),
    ("stop of %d until the server knows" % N, "s", "%.2f"),
    ("tasks with a template per second, %d" % N, "/s", "%.1f"),
    ("PSS added per running task with a template", "MB", "%.3f"),
    ("idle CPU with %d tasks with templates" % N, "% of 1", "%.2f"),
    ("bytes to and from the server, idle, %d with templates" % N, "/s", "%.0f"),
    ("a changed variable is in %d files after" % N, "s", "%.3f"),
    ("CPU time of the client for that, per file", "ms", "%.2f"),
    ("a life of one of %d allocs: bytes from the client" % N, "", "%.0f"),
    ("a life of one of %d allocs: bytes to the client" % N, "", "%.0f"),
    ("a life of one of %d allocs: growth of the raft index" % N, "", "%.2f"),
    ("a life of a lone alloc: growth of the raft index", "", "%.2f"),
)


class Drover(api.Node):
    """The agent, with the same methods as client.Original."""

    def __init__(self, server):
        path = case.directory() + "/agent.hcl"
        with open(path, "w", encoding="ascii") as f:
            f.write('client {\n  servers = ["%s"]\n  %s\n}\nplugin "raw_exec" { config { enabled = true } }\n' % (server.address, CLIENT))
        os.chmod(path, 0o600)
        super().__init__(["-config", path])

    def wait_ready(self, seconds=60):
        """Polls more often than a test does, because the time is a result."""
        return self

    def all(self):
        return [int(p) for p in os.listdir("/proc") if p.isdigit() and (arguments(int(p)) or [""])[0].startswith("drover-")]

    def directory_of(self, alloc):
        return "%s/alloc/%s" % (self.data, alloc)

    def end(self):
        self.stop(seconds=120)
        shutil.rmtree(self.base)


class Original(client.Original):
    def __init__(self, server):
        super().__init__(server, client=CLIENT)

    all = client.Original.processes

    def get(self, path, **_):
        return super().get(path)

    def kill_launcher(self):
        self.kill()

    def directory_of(self, alloc):
        return "%s/data/alloc/%s" % (self.dir, alloc)


CLIENTS = {"drover": Drover, "original": Original}


def poll(condition, seconds, what, pause=0.01):
    """Waits until the condition holds, with few polls, so that the CPU time is left to what is measured."""
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise AssertionError("%s: timed out after %g s" % (what, seconds))
        time.sleep(pause)


def pss_mb(pids):
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError), open("/proc/%d/smaps_rollup" % pid, encoding="ascii") as f:
            total += int(re.search(r"^Pss:\s+(\d+)", f.read(), re.M).group(1)) / 1024
    return total


def cpu_s(pids):
    """Returns the CPU time of their threads, without that of ended threads."""
    total = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            for thread in os.listdir("/proc/%d/task" % pid):
                with open("/proc/%d/task/%s/schedstat" % (pid, thread), encoding="ascii") as f:
                    total += int(f.read().split()[0]) / 1e9
    return total


def link_bytes(server):
    """Returns the bytes (from the client, to it) of the server's present connections."""
    said = subprocess.run(["ss", "-tinH", "sport = :%d" % server.ports[1]], stdout=subprocess.PIPE, check=True, text=True).stdout
    return [sum(int(n) for n in re.findall(word + r":(\d+)", said)) for word in ("bytes_received", "bytes_acked")]


def raft_index(server):
    return int(server.ask("/v1/agent/self")["stats"]["raft"]["last_log_index"])


def answers(agent, path="/v1/agent/self"):
    try:
        return agent.get(path)[0] == 200
    except OSError:
        return False


def job(name, count, stay):
    small = {"EphemeralDisk": {"SizeMB": 10}, "ReschedulePolicy": {"Attempts": 0, "Unlimited": False}}
    made = api.job(name, TASK, ["stay"] if stay else [], count, group=small, LogConfig={"MaxFiles": 1, "MaxFileSizeMB": 1},
                   Resources={"CPU": 10, "MemoryMB": 10})
    made["Job"]["Type"] = "service" if stay else "batch"
    return made


def run_templates(server):
    """Runs N tasks that have each a template with a variable. Each has a job of its own, so that no two have the same identity. Returns the seconds."""
    began = time.monotonic()
    for i in range(N):
        made = job("templates-%d" % i, 1, True)
        made["Job"]["TaskGroups"][0]["Tasks"][0]["Templates"] = [
            {"EmbeddedTmpl": "{{ with nomadVar \"nomad/jobs\" }}{{ .text }}{{ end }}\n", "DestPath": "local/value", "ChangeMode": "noop", "Splay": 0,
             "Wait": {"Min": 0, "Max": 0}}]
        server.run(made)
    poll(lambda: counts_of_templates(server, "Running") == N, 600, "%d with templates running" % N)
    return time.monotonic() - began


def counts_of_templates(server, state):
    return sum(group[state] for one in server.ask("/v1/jobs?prefix=templates-") for group in one["JobSummary"]["Summary"].values())


def stop_templates(server):
    for i in range(N):
        server.request("DELETE", "/v1/job/templates-%d" % i)
    poll(lambda: counts_of_templates(server, "Complete") == N, 600, "%d with templates stopped" % N)


def put(server, text):
    server.do("/v1/var/nomad/jobs", {"Path": "nomad/jobs", "Items": {"text": text}})


def show(files, text):
    for path in files:
        with open(path, encoding="utf-8") as f:
            if f.read() != text + "\n":
                return False
    return True


def counts(server, name, state):
    summary = server.ask("/v1/job/%s/summary" % name)["Summary"]
    return sum(group[state] for group in summary.values())


def run(server, name, count):
    """Returns the seconds from the registration until the server knows that the allocs run."""
    began = time.monotonic()
    server.run(job(name, count, True))
    poll(lambda: counts(server, name, "Running") == count, 600, "%d of %s running" % (count, name))
    return time.monotonic() - began


def stop(server, name, count):
    began = time.monotonic()
    server.request("DELETE", "/v1/job/" + name)
    poll(lambda: counts(server, name, "Complete") == count, 600, "%d of %s stopped" % (count, name))
    return time.monotonic() - began


def life(server):
    """Returns bytes from and to the client and indexes, per alloc, of a batch job from its registration to its end."""
    before = [*link_bytes(server), raft_index(server)]
    server.run(job("life", N, False))
    poll(lambda: counts(server, "life", "Complete") == N, 600, "%d to end" % N)
    time.sleep(3)  # for updates that arrive later
    return [(b - a) / N for a, b in zip(before, [*link_bytes(server), raft_index(server)], strict=True)]


def idle(server, agent, pause=5):
    """Returns the CPU usage in percent of a core, and bytes per second."""
    poll(lambda: all((a["DeploymentStatus"] or {}).get("Healthy") for a in server.ask("/v1/allocations") if a["ClientStatus"] == "running"), 120,
         "all to be told healthy", 1)
    time.sleep(pause)
    pids = agent.all()
    began, used, moved = time.monotonic(), cpu_s(pids), sum(link_bytes(server))
    time.sleep(IDLE_S)
    took = time.monotonic() - began
    return 100 * (cpu_s(pids) - used) / took, (sum(link_bytes(server)) - moved) / took


def restart(server, agent):
    """Returns the seconds from the start of the next agent until its API reports the tasks of each alloc."""
    ids = [a["ID"] for a in server.allocs("many")]
    pids = {i: processes_of(i) for i in ids}
    agent.kill_launcher()
    began = time.monotonic()
    agent.start()
    def follow(alloc):
        poll(lambda: answers(agent, "/v1/client/allocation/%s/stats" % alloc), 120, "alloc %s to be followed" % alloc)
    with concurrent.futures.ThreadPoolExecutor(len(ids)) as pool:  # an answer may take as long as the interval between two samples
        list(pool.map(follow, ids))
    took = time.monotonic() - began
    case.equal({i: processes_of(i) for i in ids}, pids, "the tasks after the restart")
    return took


def templates(server, agent):
    """Returns the values of the rows about templates. Helpers of drover for renderings end within the pause."""
    put(server, "first")
    before = pss_mb(agent.all())
    found = [N / run_templates(server)]
    cpu, moved = idle(server, agent, 40)
    found += [(pss_mb(agent.all()) - before) / N, cpu, moved]
    files = [agent.directory_of(a["ID"]) + "/t/local/value" for a in server.ask("/v1/allocations") if a["JobID"].startswith("templates-")]
    assert len(files) == N and show(files, "first"), "every task has its file"
    spent, began = cpu_s(agent.all()), time.monotonic()
    put(server, "second")
    poll(lambda: show(files, "second"), 120, "the change to be in all files")
    found.append(time.monotonic() - began)
    time.sleep(2)
    found.append(1000 * (cpu_s(agent.all()) - spent) / N)
    stop_templates(server)
    return found


def measure(kind):
    """Returns the values of ROWS for one round."""
    with real.Server(beats="") as server:
        began = time.monotonic()
        agent = CLIENTS[kind](server)
        try:
            poll(lambda: answers(agent), 60, "the agent's API", 0.001)
            found = [time.monotonic() - began]
            server.wait_ready()
            time.sleep(5)
            unloaded = pss_mb(agent.all())
            found.append(unloaded)
            before = raft_index(server)
            times = []
            for i in range(SINGLE):
                times.append(run(server, "one%d" % i, 1))
                stop(server, "one%d" % i, 1)
            time.sleep(3)
            found.append(statistics.median(times))
            alone = (raft_index(server) - before) / SINGLE
            lived = [*life(server), alone]
            before, used = pss_mb(agent.all()), cpu_s(agent.all())
            took = run(server, "many", N)
            found += [N / took, 1000 * (cpu_s(agent.all()) - used) / N]
            cpu, moved = idle(server, agent)
            loaded = pss_mb(agent.all())
            found += [loaded, (loaded - before) / N, cpu, moved, restart(server, agent)]
            server.wait_ready()
            found.append(stop(server, "many", N))
            found += [*templates(server, agent), *lived]
        except BaseException:
            print(agent.log()[-3000:], flush=True)
            raise
        finally:
            agent.end()
    return found


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print("machine: %d cores, kernel %s; %d allocs, %d rounds" % (os.cpu_count(), os.uname().release, N, ROUNDS), flush=True)
    rounds = {kind: [] for kind in CLIENTS}
    for number in range(ROUNDS):
        for kind, found in rounds.items():
            found.append(measure(kind))
            print("  round %d, %s, load %.1f: %s" % (number + 1, kind, os.getloadavg()[0], "; ".join(
                form % value for value, (_, _, form) in zip(found[-1], ROWS, strict=True))), flush=True)
    print("%-52s %12s %12s %8s" % ("median of %d, servers %s" % (ROUNDS, real.VERSION), "drover", "original", "ratio"))
    for i, (what, unit, form) in enumerate(ROWS):
        ours, theirs = (statistics.median(r[i] for r in rounds[kind]) for kind in ("drover", "original"))
        ratio = "%.3f" % (ours / theirs) if theirs > 0 else "-"
        print("%-52s %12s %12s %8s %s" % (what, form % ours, form % theirs, ratio, unit))
    return 0


sys.exit(main())
