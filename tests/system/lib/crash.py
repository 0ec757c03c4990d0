# SPDX-License-Identifier: Apache-2.0
"""For tests that kill processes: tasks that notice when they run twice, and checks that nothing is left.

    made = crash.job("web", count=3)
    crash.conflicts(node)                    # [] unless a task ever ran twice at a time
    crash.wait_nothing_left(node)
"""
import contextlib
import glob
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

from . import ROOT, agent, api, build_dir, case, exe

OTHER_BOOT = "01234567-89ab-cdef-0123-456789abcdef"

# In the order of their numbers, as common/crash.h defines them.
POINTS = []
with open(ROOT + "/common/crash_points.def", encoding="utf-8") as def_file:
    for kind, point in re.findall(r"^CRASH_(DEF|ROW)\((\w+),", def_file.read(), re.M):
        POINTS += [point] if kind == "DEF" else ["ROW_" + point, "ROW_" + point + "_COMMITTED"]
ROWS = [p for p in POINTS if p.startswith("ROW_")]
# Points of artifacts that are tested with archives, repositories and buckets, by 3145.
OF_TREES = ("FET_BEFORE_UNPACK", "FET_AFTER_ENTRY", "FET_AFTER_GIT_START", "FET_AFTER_SUMS", "FET_AFTER_LIST", "FET_AFTER_OBJECT", "FET_BEFORE_MARK",
            "FET_AFTER_MARK", "FILE_AFTER_COPY_ENTRY", "FILE_AFTER_MOVE_ENTRY")
# Points of calls to servers, which are tested by 3153.
OF_SERVERS = ("HB_BEFORE_CALL", "HB_BEFORE_ANSWER")

# One lock per alloc: a task that finds it taken records that. Every command that the task starts inherits it.
LOCKED = ('exec 9>>"$NOMAD_ALLOC_DIR/data/lock"; '
          'flock -n 9 || { echo "$$" >> "$NOMAD_ALLOC_DIR/data/conflict"; exit 99; }; '
          'echo "$$" >> "$NOMAD_ALLOC_DIR/data/starts"; ')
# Restarts soon, and more often than these tests kill.
RESTART = {"Attempts": 1000, "Interval": 10**12, "Delay": 10**7, "Mode": "fail"}


def use_build():
    """Makes the test run the build with crash points, and skips it if there is none."""
    build = os.path.join(build_dir(), "crash")
    if not os.path.exists(build + "/drover-supervisor"):
        case.skip("no build with crash points (make CRASH=1 BUILD=%s)" % build)
    points = "crash points:%s,\0" % ",".join(POINTS)
    for path in sorted(glob.glob(build + "/drover-*")):
        with open(path, "rb") as f:
            data = f.read()
        if b"DROVER_CRASH_PAGE" in data and points.encode() not in data:
            raise AssertionError("%s was built with other crash points than those in common/crash_points.def: make CRASH=1 BUILD=%s" % (path, build))
    os.environ["DROVER_BUILD"] = build


class Page:
    """The page with the armed point and the counters of passes."""

    def __init__(self):
        self.path = case.directory() + "/page"
        with open(self.path, "wb") as f:
            f.write(b"\0" * 4096)
        os.chmod(self.path, 0o666)
        with open(self.path, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), 4096)
        self.env = {"DROVER_CRASH_PAGE": self.path}

    def arm(self, point, skip=0, hold=False):
        """The process that reaches the point dies, after `skip` passes; or with hold, it waits there until the page is disarmed."""
        self.map[0:4] = struct.pack("<I", POINTS.index(point) + 1 | skip << 16 | hold << 31)

    def holds(self):
        """Returns whether a process waits at the point."""
        return struct.unpack("<I", self.map[0:4])[0] == 0xffff

    def disarm(self):
        self.map[0:4] = struct.pack("<I", 0)

    def armed(self):
        return struct.unpack("<I", self.map[0:4])[0] != 0

    def passed(self, point):
        at = 4 * (2 + POINTS.index(point))
        return struct.unpack("<I", self.map[at:at + 4])[0]


class Node(api.Node):
    """An agent whose processes may be killed at any time: requests are repeated, and the launcher is started again if it died."""

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
        """The answer to a purge may be lost with the supervisor; all that counts is that the job is removed."""
        answer = self.request("DELETE", "/v1/job/%s?purge=true" % name)
        case.equal(answer.status in (200, 404), True, answer.text)
        case.until(lambda: not [a for a in self.ask("/v1/allocations") if a["JobID"] == name], seconds,
                   "allocations of %s to be gone" % name)


def job(name, count=1, driver="raw_exec", then="exec sleep 100000", group=None, **more):
    """Returns a service job whose tasks record when they run twice at a time."""
    return api.job(name, "/bin/sh", ["-c", LOCKED + then], count, driver, {"RestartPolicy": RESTART, **(group or {})}, **more)


def alloc_data(node, alloc_id, name):
    """Returns the lines of a file in the alloc's shared directory."""
    try:
        with open("%s/alloc/%s/alloc/data/%s" % (node.data, alloc_id, name), encoding="utf-8") as f:
            return f.read().split()
    except FileNotFoundError:
        return []


def conflicts(node):
    """Returns the allocs in which a task found that it was running already."""
    return [a for a in os.listdir(node.data + "/alloc") if alloc_data(node, a, "conflict")]


def rows(node):
    """Returns {table: rows} for the tables of state.db that describe objects on the machine. Only the supervisor may open the file, so a copy is
    read; if it was copied between two writes, sqlite3 raises an error."""
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
    """Returns {run: record}, None for a record that is not valid."""
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
    """Returns the cgroups of all runs, in all hierarchies."""
    found = []
    name = "drover-" + instance(node)
    for at, directories, _ in os.walk("/sys/fs/cgroup"):
        if os.path.basename(at) in ("tasks", "runs") and os.path.basename(os.path.dirname(at)) == name:
            found += [os.path.join(at, d) for d in directories]
    return found


def executors(node):
    """Returns the pids of this agent's executors."""
    name = "drover-" + instance(node)
    for at, directories, _ in os.walk("/sys/fs/cgroup"):
        if os.path.basename(at) == name and os.path.exists(at + "/exec/cgroup.kill"):
            with open(at + "/exec/cgroup.procs", encoding="ascii") as f:
                return [int(line) for line in f]
    return []


def left(node):
    """Returns everything on the machine that belongs to a task, without asking the agent; [] if there is nothing."""
    found = ["cgroup " + path for path in task_cgroups(node)]
    found += ["executor %d" % pid for pid in executors(node)]
    found += ["record " + name for name in os.listdir(node.data + "/run")]
    found += ["socket " + name for name in os.listdir(os.path.dirname(node.socket_path) + "/x")]
    for root in ("alloc", "logs", "csi/sock"):
        found += ["%s/%s" % (root, name) for name in os.listdir(os.path.join(node.data, root)) if name not in (".trash", ".fetch")]
        for own in (".trash", ".fetch"):
            if os.path.isdir(os.path.join(node.data, root, own)):
                found += ["%s/%s/%s" % (root, own, name) for name in os.listdir(os.path.join(node.data, root, own))]
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        points = [line.split(" ")[4] for line in f]
    found += ["mount " + p for p in points if p.startswith((node.data + "/csi/", node.data + "/alloc/"))]
    if not found:  # the expensive check last
        try:
            found = ["%d rows in %s" % (n, table) for table, n in rows(node).items() if n]
        except sqlite3.DatabaseError as e:
            found = ["state.db: %s" % e]
    return found


def secrets(node):
    """Returns the mounts of tasks' secrets."""
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        return [line.split()[4] for line in f if "/secrets " in line and line.split()[4].startswith(node.data)]


def holders(node, texts):
    """Returns the files below the data directory, which has the runtime directory too, in which one of the texts is."""
    found = []
    for at, _, names in os.walk(node.data):
        for name in names:
            try:
                with open(os.path.join(at, name), "rb") as f:
                    data = f.read()
            except OSError:  # a socket, or removed meanwhile
                continue
            found += [os.path.join(at, name)] if any(text.encode() in data for text in texts) else []
    return found


def cut_power(node):
    """Simulates a reboot: everything ends at once, tasks and executors too, and the records say that it was another boot. Mounts stay."""
    def kill_all(pids):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # it ended with its executor
                os.kill(pid, signal.SIGKILL)

    os.kill(node.pid, signal.SIGSTOP)  # so that it does not restart what is killed first
    pids = [*node.processes().values(), node.pid]
    kill_all(pids)
    # An executor that has not started its task yet has a record with the pid 0, or none.
    tasks = [r[k] for r in records(node).values() if r for k in ("executor_pid", "task_pid") if r[k]] + executors(node)
    kill_all(tasks)
    for path in task_cgroups(node):
        with contextlib.suppress(FileNotFoundError), open(path + "/cgroup.procs", encoding="ascii") as f:
            tasks += [int(line) for line in f]
    kill_all(tasks)
    pids += tasks
    node.process.wait()
    agent.wait_gone(pids)
    db = sqlite3.connect(node.data + "/state/state.db")
    db.execute("UPDATE run SET boot_id = ?", (OTHER_BOOT,))
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
        db.execute("UPDATE mount SET json = replace(json, ?, ?)", (f.read().strip(), OTHER_BOOT))
    db.commit()
    db.close()
    for run, record in records(node).items():
        if not record:
            continue
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
    """Returns log lines about objects without a row that a supervisor found at its start. There must be none after any crash: each row is
    committed before its object is made, and deleted after it is removed."""
    return [line for line in node.log().splitlines() if "found leftover" in line]


def leaks(node):
    """Returns what `drover leaks` prints."""
    return json.loads(node.request("GET", "/v1/agent/leaks").body)
