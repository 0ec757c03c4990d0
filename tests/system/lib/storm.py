# SPDX-License-Identifier: Apache-2.0
"""Random sequences of work with CSI volumes while plugins misbehave and processes are killed: lanes (lib/storm_lane.py) run the sequences
of lib/storm_plan.py side by side in one agent.

    with storm.Storm(first=1, count=100, lanes=8) as s:
        s.run()
"""
import collections
import contextlib
import http.client
import os
import queue
import shutil
import signal
import sqlite3
import tempfile
import threading
import time
import uuid

from . import agent, api, case, crash, helper, loop, storm_plan
from .storm_lane import Lane

MS_BIND = 4096
GAP_S = 1.5       # between kills of one process: it must do some work, and the launcher waits before it restarts what ends at once
REST = 2          # between kills of any, the agent works at least this many times as long as it needed to use a plugin after the last kill
REST_MAX_S = 10   # a plugin whose rules kill it may never be healthy
FAILURES_MAX = 5  # then no further sequence begins


class Storm:
    def __init__(self, first, count, lanes):
        self.dir = case.directory()
        self.report, self.under = self.dir + "/report", self.dir + "/under"
        os.mkdir(self.report)
        os.chmod(self.report, 0o777)
        os.mkdir(self.under)
        config = agent.config_args('client {\n  disk_free_mb = 1000000\n  host_volume "report" { path = "%s" }\n}\n' % self.report)
        self.node = crash.Node(config, disk=True)
        self.kinds = len(storm_plan.KINDS)
        self.seeds, has_loops = [queue.SimpleQueue() for _ in range(self.kinds)], loop.usable()
        for seed in range(first, first + count):
            if has_loops or not storm_plan.KINDS[seed % self.kinds].devices:
                self.seeds[seed % self.kinds].put(seed)
        numbers = [n for n in range(max(lanes, self.kinds)) if not self.seeds[n % self.kinds].empty()]
        self.disks = contextlib.ExitStack()
        self.lock, self.killing = threading.Lock(), threading.Lock()
        self.kills, self.last_kill, self.rests_until, self.failures = collections.Counter(), {}, 0, []
        self.notes, self.happened, self.ending = {}, collections.deque(maxlen=400), False
        self.count, self.began = sum(seeds.qsize() for seeds in self.seeds), time.monotonic()
        self.lanes = [Lane(self, number) for number in numbers]

    def __enter__(self):
        self.node.__enter__()
        # Shows what is below the mounts.
        helper.mount(self.node.data, self.under, None, MS_BIND)
        return self

    def __exit__(self, kind, *rest):
        helper.umount(self.under, 2)
        with self.disks:
            return self.node.__exit__(None, *rest) if kind is SystemExit else self.node.__exit__(kind, *rest)

    # --- what lanes ask for ---

    def disk(self):
        """Returns a block device that exists until the end."""
        return self.disks.enter_context(loop.Loop()).path

    def kill(self, process, is_well):
        """Kills a process of the agent, unless one was killed a moment ago. The agent may then work until is_well() and some time more."""
        with self.killing:
            now = time.monotonic()
            if now < max(self.rests_until, self.last_kill.get(process, 0) + GAP_S) or not self.kill_now(process):
                return
            self.rests_until = now + REST_MAX_S * REST
        self.rest(process, now, is_well)

    def kill_now(self, process):
        if process == "launcher":
            with self.node.reviving:
                self.node.kill_launcher()
                self.node.start()
            return True
        pid = self.node.processes().get(process)  # csi-helper and others run only while they are used
        with contextlib.suppress(ProcessLookupError):
            if pid:
                os.kill(pid, signal.SIGKILL)
        return bool(pid)

    def rest(self, killed, since, is_well):
        """Counts a kill, and decides when the next may be."""
        self.tell("kill " + killed, killed)
        self.last_kill[killed] = time.monotonic()
        while time.monotonic() < since + REST_MAX_S and not is_well():
            time.sleep(0.1)
        now = time.monotonic()
        self.rests_until = now + REST * (now - since)

    def kill_executor(self, allocs):
        ids = {a["ID"] for a in allocs}
        with self.killing:
            for record in crash.records(self.node).values():
                if record and record["executor_pid"] and str(uuid.UUID(bytes=record["alloc"])) in ids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(record["executor_pid"], signal.SIGKILL)
                    self.tell("kill executor", "executor")
                    return

    def kill_tasks(self, what, is_one):
        """Kills the processes with such arguments."""
        pids = [int(p) for p in os.listdir("/proc") if p.isdigit() and is_one(agent.arguments(int(p)))]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            self.tell("kill plugin " + what, "plugin")

    def reboot(self, is_well):
        """All processes end at once, mounts are lost, and the records are of another boot."""
        with self.killing:
            began = time.monotonic()
            if began < max(self.rests_until, self.last_kill.get("reboot", 0) + 4 * GAP_S):
                return
            with self.node.reviving:
                crash.cut_power(self.node)
                with open("/proc/self/mountinfo", encoding="utf-8") as f:
                    points = [p for p in (line.split(" ")[4] for line in f) if p.startswith(self.node.data + "/")]
                for point in reversed(points):
                    helper.umount(point, 2)
                self.node.start()
            self.rests_until = time.monotonic() + REST_MAX_S * REST
        self.rest("reboot", began, is_well)

    def ask_once(self, method, path, body, seconds=10):
        """A request whose failure does not matter."""
        with contextlib.suppress(OSError, http.client.HTTPException):
            api.Node.request(self.node, method, path, body, seconds)

    def mount_rows(self):
        """Returns the rows of mounts, from a copy of the database: only the supervisor may open it. A copy that was made between two writes may
        have anything in it."""
        for _ in range(100):
            to = tempfile.mkdtemp(dir=self.dir)
            try:
                for name in ("state.db", "state.db-wal"):
                    shutil.copy("%s/state/%s" % (self.node.data, name), to)
                with contextlib.closing(sqlite3.connect(to + "/state.db")) as db:
                    rows = [row[0] for row in db.execute("SELECT json FROM mount")]
                if all(isinstance(row, str) for row in rows):
                    return rows
                error = ValueError("rows that are no texts")
            except (OSError, UnicodeDecodeError, sqlite3.Error) as e:
                error = e
            finally:
                shutil.rmtree(to)
        raise error

    def strangers(self, kind, plugin):
        """Returns files with contents on the root file system below the plugin's directories."""
        found = []
        for at, _, names in os.walk("%s/csi/%s/%s" % (self.under, kind, plugin)):
            for name in names:
                with contextlib.suppress(FileNotFoundError):
                    if os.lstat(os.path.join(at, name)).st_size:
                        found.append("written beside the volume: " + os.path.join(at, name))
        return found

    # --- the account ---

    def tell(self, text, counted):
        self.kills[counted] += 1
        self.happened.append((time.monotonic(), text))

    def begin(self, plan):
        self.notes[plan.seed] = [(time.monotonic(), "begin", os.path.getsize(self.node.log_path))]

    def note(self, seed, text):
        self.notes[seed].append((time.monotonic(), text))

    def fail(self, lane, plan, why):
        """Prints all that is known about a failed sequence."""
        began, _, log_at = self.notes[plan.seed][0]
        with open(self.node.log_path, encoding="utf-8", errors="replace") as f:
            f.seek(log_at)
            words = ["s%d-" % plan.seed, lane.plugin + " ", lane.plugin + "/", *(i[:8] for i in lane.ids)]
            log = [line for line in f.read().splitlines() if any(w in line for w in words) or "drover is ready" in line]
        calls = open(lane.log, encoding="utf-8").read() if os.path.exists(lane.log) else ""
        with self.lock:
            self.failures.append(plan.seed)
            print("--- sequence %d of plugin %s failed while %s: %s" % (plan.seed, lane.plugin, lane.doing, why))
            print("    replay: make csi-storm SEED=%d COUNT=1" % plan.seed)
            print("    plan: %s%s" % (plan.steps, ", patient" * plan.patient))
            for at, text in sorted([n[:2] for n in self.notes[plan.seed]] + [h for h in self.happened if h[0] >= began]):
                print("    %8.3f %s" % (at - began, text))
            print("    allocations: %s" % ", ".join(sorted(lane.ids)))
            print("    calls:\n      %s" % "\n      ".join(calls.splitlines()[-60:]))
            print("    log:\n      %s" % "\n      ".join(log[-120:]), flush=True)
            self.ending = self.ending or len(self.failures) >= FAILURES_MAX

    def progress(self):
        done, spent = sum(lane.done for lane in self.lanes), time.monotonic() - self.began
        slow = max(self.lanes, key=lambda lane: time.monotonic() - lane.since if lane.is_alive() else 0)
        print("    %5d s: %d of %d sequences, %d kills, %d failures; longest: %s, %s for %.0f s" % (
            spent, done, self.count, sum(self.kills.values()), len(self.failures), slow.name, slow.doing, time.monotonic() - slow.since),
            flush=True)

    def run(self, every_s=10):
        """Runs all sequences. Returns the seeds of those that failed."""
        for lane in self.lanes:
            lane.since = time.monotonic()
            lane.start()
        last = time.monotonic()
        while any(lane.is_alive() for lane in self.lanes):
            time.sleep(0.1)
            if time.monotonic() - last >= every_s:
                last = time.monotonic()
                self.progress()
        self.progress()
        for lane in self.lanes:
            if lane.error:
                raise AssertionError("%s: %s" % (lane.name, lane.error))
        self.summary()
        return self.failures

    def summary(self):
        codes = sum((lane.codes for lane in self.lanes), collections.Counter())
        by_call = collections.defaultdict(list)
        for (method, rule), n in sorted(codes.items()):
            by_call[method].append("%s %d" % (rule, n))
        print("    kills: %s" % ", ".join("%s %d" % k for k in sorted(self.kills.items())))
        for method, found in by_call.items():
            print("    %s: %s" % (method, ", ".join(found)))

    def end(self):
        """Stops the plugins, and checks that nothing at all is left."""
        for lane in self.lanes:
            for kind in lane.types:
                self.node.purge(lane.plugin_job(kind), 60)
        crash.wait_nothing_left(self.node, 60)
        case.equal((crash.leaks(self.node), crash.unexplained(self.node)), ([], []), "leaks, and objects without a row")
        shutil.rmtree(self.report)
