# SPDX-License-Identifier: Apache-2.0
"""For the tests that kill: tasks that notice when they run twice, and what must be gone after the last one.

    made = crash.job("web", count=3)
    crash.conflicts(node)                    # [] unless a task ever ran twice at a time
    crash.wait_nothing_left(node)
"""
import contextlib
import http.client
import json
import mmap
import os
import re
import shutil
import signal
import sqlite3
import struct
import threading
import time

from . import ROOT, agent, api, case, exe

OTHER_BOOT = "01234567-89ab-cdef-0123-456789abcdef"

# In the order of their numbers, as common/crash.h makes them.
POINTS = []
with open(ROOT + "/common/crash_points.def", encoding="utf-8") as def_file:
    for kind, point in re.findall(r"^CRASH_(DEF|ROW)\((\w+),", def_file.read(), re.M):
        POINTS += [point] if kind == "DEF" else ["ROW_" + point, "ROW_" + point + "_COMMITTED"]
ROWS = [p for p in POINTS if p.startswith("ROW_")]

# One lock per alloc: whoever finds it taken says so. Everything the task runs afterwards holds it on.
LOCKED = ('exec 9>>"$NOMAD_ALLOC_DIR/data/lock"; '
          'flock -n 9 || { echo "$$" >> "$NOMAD_ALLOC_DIR/data/conflict"; exit 99; }; '
          'echo "$$" >> "$NOMAD_ALLOC_DIR/data/starts"; ')
# Restarted as often as these tests kill, soon.
RESTART = {"Attempts": 1000, "Interval": 10**12, "Delay": 10**7, "Mode": "fail"}


class Page:
    """The page by which a point is armed, and which counts how often each is passed."""

    def __init__(self):
        self.path = case.directory() + "/page"
        with open(self.path, "wb") as f:
            f.write(b"\0" * 4096)
        os.chmod(self.path, 0o666)
        with open(self.path, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), 4096)
        self.env = {"DROVER_CRASH_PAGE": self.path}

    def arm(self, point, skip=0, hold=False):
        """The process that passes it dies, after `skip` passes that are let go; or waits there until the page is disarmed."""
        self.map[0:4] = struct.pack("<I", POINTS.index(point) + 1 | skip << 16 | hold << 31)

    def holds(self):
        """Somebody waits at the point."""
        return struct.unpack("<I", self.map[0:4])[0] == 0xffff

    def disarm(self):
        self.map[0:4] = struct.pack("<I", 0)

    def armed(self):
        return struct.unpack("<I", self.map[0:4])[0] != 0

    def passed(self, point):
        at = 4 * (2 + POINTS.index(point))
        return struct.unpack("<I", self.map[at:at + 4])[0]


class Node(api.Node):
    """An agent that anybody may be killed of at any time: requests are repeated, and a launcher that died is started."""

    def __init__(self, *args, **kwargs):
        self.reviving = threading.Lock()
        super().__init__(*args, **kwargs)

    def revive(self):
        with self.reviving:
            if self.process.poll() is not None:
                self.start()

    def request(self, method, path, body=None, timeout=case.LEAST_S, patience=case.LEAST_S):
        end = time.monotonic() + patience
        while True:
            self.revive()
            try:
                answer = super().request(method, path, body, timeout)
                if answer.status < 500:
                    return answer
                why = answer.text
            except (OSError, http.client.HTTPException) as e:
                why = repr(e)
            if time.monotonic() > end:
                raise AssertionError("%s %s: %s" % (method, path, why))
            time.sleep(0.01)

    def purge(self, name, seconds=30):
        """The answer to a purge may have been lost with the supervisor: it is gone is what counts."""
        answer = self.request("DELETE", "/v1/job/%s?purge=true" % name)
        case.equal(answer.status in (200, 404), True, answer.text)
        case.until(lambda: not [a for a in self.ask("/v1/allocations") if a["JobID"] == name], seconds,
                   "allocations of %s to be gone" % name)


def job(name, count=1, driver="raw_exec", then="exec sleep 100000", group=None, **more):
    """A service whose tasks say when they run twice at a time."""
    return api.job(name, "/bin/sh", ["-c", LOCKED + then], count, driver, {"RestartPolicy": RESTART, **(group or {})}, **more)


def alloc_data(node, alloc_id, name):
    """The lines of a file in the alloc's shared directory."""
    try:
        with open("%s/alloc/%s/alloc/data/%s" % (node.data, alloc_id, name), encoding="utf-8") as f:
            return f.read().split()
    except FileNotFoundError:
        return []


def conflicts(node):
    """Allocs a task of which found itself running already."""
    return [a for a in os.listdir(node.data + "/alloc") if alloc_data(node, a, "conflict")]


def rows(node):
    """{table: rows} of those tables of state.db that follow what is on the machine. The supervisor alone may open the file,
    so a copy is read; one that was caught between two writes is an error of sqlite3."""
    to = case.directory()
    for name in ("state.db", "state.db-wal"):
        try:
            shutil.copy("%s/state/%s" % (node.data, name), to)
        except FileNotFoundError:
            pass
    db = sqlite3.connect(to + "/state.db")
    try:
        return {table: db.execute("SELECT count(*) FROM " + table).fetchone()[0] for table in ("run", "alloc", "mount")}
    finally:
        db.close()
        shutil.rmtree(to)


def records(node):
    """{run: record}, None for one that is not valid."""
    found = {}
    for name in os.listdir(node.data + "/run"):
        try:
            record = exe.read_record(node, name[:-4])
        except exe.Error:
            found[name[:-4]] = None
            continue
        if record:  # else it was reaped meanwhile
            found[name[:-4]] = record
    return found


def instance(node):
    with open(node.data + "/instance", encoding="ascii") as f:
        return f.read().strip()


def task_cgroups(node):
    """Every cgroup of a run, in all hierarchies."""
    found = []
    name = "drover-" + instance(node)
    for at, directories, _ in os.walk("/sys/fs/cgroup"):
        if os.path.basename(at) in ("tasks", "runs") and os.path.basename(os.path.dirname(at)) == name:
            found += [os.path.join(at, d) for d in directories]
    return found


def executors(node):
    """The pids of this agent's executors."""
    name = "drover-" + instance(node)
    for at, directories, _ in os.walk("/sys/fs/cgroup"):
        if os.path.basename(at) == name and os.path.exists(at + "/exec/cgroup.kill"):
            with open(at + "/exec/cgroup.procs", encoding="ascii") as f:
                return [int(line) for line in f]
    return []


def left(node):
    """What is there of any task, asked of nobody but the machine: []."""
    found = ["cgroup " + path for path in task_cgroups(node)]
    found += ["executor %d" % pid for pid in executors(node)]
    found += ["record " + name for name in os.listdir(node.data + "/run")]
    found += ["socket " + name for name in os.listdir(os.path.dirname(node.socket_path) + "/x")]
    for root in ("alloc", "logs", "csi/sock"):
        found += ["%s/%s" % (root, name) for name in os.listdir(os.path.join(node.data, root)) if name != ".trash"]
        if os.path.isdir(os.path.join(node.data, root, ".trash")):
            found += ["%s/.trash/%s" % (root, name) for name in os.listdir(os.path.join(node.data, root, ".trash"))]
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        points = [line.split(" ")[4] for line in f]
    found += ["mount " + p for p in points if p.startswith((node.data + "/csi/", node.data + "/alloc/"))]
    if not found:  # the dearest last
        try:
            found = ["%d rows in %s" % (n, table) for table, n in rows(node).items() if n]
        except sqlite3.DatabaseError as e:
            found = ["state.db: %s" % e]
    return found


def cut_power(node):
    """Everything ends at once, tasks and executors too; what was written says that it was another boot. What is mounted stays."""
    found = records(node)
    os.kill(node.pid, signal.SIGSTOP)  # or it would start again what is killed first
    pids = [node.pid, *node.processes().values(), *(r[k] for r in found.values() for k in ("executor_pid", "task_pid"))]
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):  # with its executor
            os.kill(pid, signal.SIGKILL)
    node.process.wait()
    agent.wait_gone(pids)
    db = sqlite3.connect(node.data + "/state/state.db")
    db.execute("UPDATE run SET boot_id = ?", (OTHER_BOOT,))
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
        db.execute("UPDATE mount SET json = replace(json, ?, ?)", (f.read().strip(), OTHER_BOOT))
    db.commit()
    db.close()
    for run, record in found.items():
        data = exe.RECORD.pack(**dict(record, boot_id=OTHER_BOOT.encode()))[:-8]
        with open("%s/run/%s.rec" % (node.data, run), "r+b") as f:
            f.write(data + struct.pack("<Q", exe.fnv1a(data)))


def wait_nothing_left(node, seconds=20):
    last = []

    def nothing():
        last[:] = left(node)
        return not last
    try:
        case.until(nothing, seconds, "nothing of a task to be left")
    except AssertionError as e:
        raise AssertionError("%s; left is %s" % (e, last)) from None


def unexplained(node):
    """What a supervisor found at its start without a row. Whatever dies, this is nothing: each row is committed before that
    which it explains is made, and deleted after it is gone."""
    return [line for line in node.log().splitlines() if "left from before" in line]


def leaks(node):
    """What `drover leaks` prints."""
    return json.loads(node.request("GET", "/v1/agent/leaks").body)
