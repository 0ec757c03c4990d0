# SPDX-License-Identifier: Apache-2.0
"""exec-helper and executor are killed at each of their crash points: all that is left is found, killed and removed."""
import mmap
import os
import re
import signal
import struct
import threading

from lib import ROOT, case, crash, exe, helper, ipc, runs

crash.use_build()
with open(ROOT + "/common/crash_points.def", encoding="utf-8") as def_file:
    POINTS = re.findall(r"^CRASH_DEF\((\w+),", def_file.read(), re.M)


class Page:
    """The page that arms a point and counts the hits."""

    def __init__(self):
        self.path = case.directory() + "/page"
        with open(self.path, "wb") as f:
            f.write(b"\0" * 4096)
        with open(self.path, "r+b") as f:
            self.map = mmap.mmap(f.fileno(), 4096)
        self.env = {"DROVER_CRASH_PAGE": self.path}

    def arm(self, point, hold=False):
        """The process that reaches the point dies there; or with hold, it waits until the page is disarmed."""
        self.map[0:4] = struct.pack("<I", POINTS.index(point) + 1 | hold << 31)

    def holds(self):
        return struct.unpack("<I", self.map[0:4])[0] == 0xffff

    def disarm(self):
        self.map[0:4] = struct.pack("<I", 0)

    def armed(self):
        return struct.unpack("<I", self.map[0:4])[0] != 0

    def hits(self, point):
        at = 4 * (2 + POINTS.index(point))
        return struct.unpack("<I", self.map[at:at + 4])[0]


def reap_and_check_nothing_left(r, run):
    """Reaps a run whose executor has ended, as the supervisor does, and checks that nothing is left. Returns its record."""
    case.until(lambda: not r.answers(run), 10, "the end of the run's executor")
    record = r.record(run)
    r.reap(run)
    case.equal(r.list(), [], "runs")
    case.equal(os.listdir(r.places.data + "/run") + os.listdir(r.places.runtime + "/x"), [], "records and sockets")
    for name, path in r.places.cgroup_dirs().items():
        below = [d for d in os.scandir(path + ("/tasks" if name == "v2" else "/runs")) if d.is_dir()]
        case.equal(below, [], "cgroups in " + name)
    return record


def executors(r):
    with open(r.places.cgroup_dirs()["v2"] + "/exec/cgroup.procs", encoding="ascii") as f:
        return [int(line) for line in f]


def crash_in_helper(r, page, point):
    run, req = r.request()
    page.arm(point)
    if point.startswith("EXEC_REAP"):
        r.send(req, exe.spec("true"))
        case.until(lambda: not r.answers(run), 10, "the end of the task")
        case.raises((ipc.Error, OSError), r.reap, run)
    elif point == "EXEC_AFTER_REPLY":
        r.send(req, exe.spec("sleep", ["1000"]))
    else:
        case.raises((ipc.Error, OSError), r.send, req, exe.spec("sleep", ["1000"]))
    case.equal(r.helper.wait(), 137, "exec-helper's exit")
    r.restart()
    if point in ("EXEC_AFTER_CLONE", "EXEC_AFTER_REPLY"):  # the run continues without its exec-helper
        record = r.wait_state(run, exe.EXE_RUNNING)
        case.equal(r.send(req, exe.spec("sleep", ["1000"]))["existed"], True, point)
        with r.connect(run) as c:
            case.equal(c.hello["task_pid"], record["task_pid"])
            c.send(exe.EXE_STOP, signal=signal.SIGTERM, timeout_ms=5000)
            c.wait_exited()
        case.equal(reap_and_check_nothing_left(r, run)["exit_signal"], signal.SIGTERM)
        return
    reap_and_check_nothing_left(r, run)
    case.equal(r.send(req, exe.spec("true"))["existed"], False, "the same run again")
    r.ended(run)
    reap_and_check_nothing_left(r, run)


def crash_in_executor(r, page, point, driver):
    page.arm(point)
    stays = point not in ("EXE_BEFORE_EXIT_RECORD", "EXE_AFTER_EXIT_RECORD")
    run = r.start("sleep" if stays else "true", ["1000"] if stays else [], driver=driver, secrets={"token": b"x"})
    case.until(lambda: not page.armed(), 10, point)
    if point.startswith("EXE_TASK") or point == "EXE_AFTER_TASK_CLONE":  # only the child died, so the executor reports a failed start
        record = r.ended(run)
        case.equal((record["state"], record["error"]), (exe.EXE_FAILED, 10), point)
        reap_and_check_nothing_left(r, run)
        return
    case.until(lambda: executors(r) == [], 10, "end of the executor")
    if driver == "EXEC":
        events = r.places.run_cgroup(run.name) + "/cgroup.events"
        case.until(lambda: "populated 0" in open(events, encoding="ascii").read(), 10, "whether the task has ended with its pid 1")
    record = reap_and_check_nothing_left(r, run)
    if point == "EXE_AFTER_EXIT_RECORD":
        case.equal((record["state"], record["exit_code"]), (exe.EXE_ENDED, 0), point)
    else:
        assert record["state"] in (exe.EXE_SETTING_UP, exe.EXE_RUNNING), point


def normal_run(r):
    run = r.start("echo", ["well"])
    case.equal(r.ended(run)["exit_code"], 0)
    case.equal(r.log(run), "well\n")
    reap_and_check_nothing_left(r, run)


def test_exec_helper_is_killed_at_each_crash_point():
    page = Page()
    with runs.Runs(env=page.env) as r:
        for point in [p for p in POINTS if p.startswith("EXEC_")]:
            crash_in_helper(r, page, point)
            normal_run(r)
            print("    %-28s %d hits" % (point, page.hits(point)))


def test_executor_is_killed_at_each_crash_point():
    page = Page()
    with runs.Runs(env=page.env) as r:
        for driver in ("RAW_EXEC", "EXEC"):
            for point in [p for p in POINTS if p.startswith("EXE_") and not p.startswith("EXE_CONTAINER")]:  # these: 3147
                crash_in_executor(r, page, point, driver)
                normal_run(r)
                print("    %-28s %-8s %d hits" % (point, driver, page.hits(point)))


def test_what_a_killed_writer_leaves_is_replaced_by_the_next_one():
    """In a session and in a start; the task has put a directory where a file of the writer is."""
    page = Page()
    with runs.Runs(env=page.env) as r:
        for driver, path in ((d, p) for d in ("RAW_EXEC", "EXEC") for p in ("secrets/token", "local/token")):
            more = {"driver": "EXEC_DRIVER_" + driver}
            run = r.start("sleep", ["1000"], driver=driver, secrets={"600 -1 -1 " + path: b"old"})
            r.wait_state(run, exe.EXE_RUNNING)
            there = r.secrets(run) if path.startswith("secrets") else "%s/alloc/%s/web/local" % (r.places.data, run.alloc)
            page.arm("EXE_TASK_BEFORE_RENAME")
            case.raises(exe.Error, r.replace, run, {"600 -1 -1 " + path: b"lost"}, **more)
            case.equal(page.armed(), False, "the point")
            left = [name for name in os.listdir(there) if name not in ("token", "api.sock")]
            case.equal(len(left) <= 1, True, left)
            case.equal(r.replace(run, {"600 -1 -1 " + path: b"new"}, **more), 0)
            case.equal(sorted(set(os.listdir(there)) - {"api.sock"}), ["token"], "files after the next write")
            for name in left:
                os.makedirs("%s/%s/below" % (there, name))
            case.equal(r.replace(run, {"600 -1 -1 " + path: b"newer"}, **more), 0)
            with open(there + "/token", "rb") as f:
                case.equal(f.read(), b"newer")
            with r.connect(run) as c:
                c.send(exe.EXE_STOP, signal=signal.SIGKILL, timeout_ms=0)
                c.wait_exited()
            reap_and_check_nothing_left(r, run)


def test_two_writers_of_one_file_at_the_same_time():
    """As after a restart of the supervisor: a session that the last one began waits before its rename, while one of the next writes the file."""
    page = Page()

    def write_later():
        try:
            case.until(page.holds, 20, "the earlier writer")
            codes.append(r.replace(run, {"600 -1 -1 " + path: b"later"}, **more))
        finally:
            page.disarm()

    with runs.Runs(env=page.env) as r:
        for driver, path in ((d, p) for d in ("RAW_EXEC", "EXEC") for p in ("secrets/token", "local/token")):
            more, codes = {"driver": "EXEC_DRIVER_" + driver}, []
            run = r.start("sleep", ["1000"], driver=driver, secrets={"600 -1 -1 " + path: b"old"})
            r.wait_state(run, exe.EXE_RUNNING)
            there = r.secrets(run) if path.startswith("secrets") else "%s/alloc/%s/web/local" % (r.places.data, run.alloc)
            page.arm("EXE_TASK_BEFORE_RENAME", hold=True)
            later = threading.Thread(target=write_later)
            later.start()
            try:
                codes.append(r.replace(run, {"640 -1 -1 " + path: b"earlier"}, **more))
            finally:
                later.join()
            case.equal(codes, [0, 0], "exit codes")
            with open(there + "/token", "rb") as f:
                case.equal((f.read(), sorted(set(os.listdir(there)) - {"api.sock"})), (b"later", ["token"]))
            with r.connect(run) as c:
                c.send(exe.EXE_STOP, signal=signal.SIGKILL, timeout_ms=0)
                c.wait_exited()
            reap_and_check_nothing_left(r, run)


def test_exec_helper_is_killed_at_random_while_tasks_start():
    with runs.Runs() as r:
        started = []
        for i in range(30):
            for _ in range(3):
                run, req = r.request(driver="EXEC" if i % 2 else "RAW_EXEC")
                r.ipc.send("EXEC_TASK_START_REQ", runs.start_record(req), [fd := helper.memfd_sealed(exe.spec("sleep", ["1000"]))])
                os.close(fd)
                started.append(run)
            if i % 3 == 0:
                r.helper.kill()
                r.helper.wait()
                r.restart()
            else:
                for pid in executors(r)[i % 4::4]:
                    try:
                        os.kill(pid, signal.SIGKILL)
                    except ProcessLookupError:
                        pass  # exec-helper was killed before it reaped this run
        r.helper.stop()
        r.helper = r._helper()
        known = set(r.list())
        for run in started:
            if run.name in known:
                r.reap(run)
        case.until(lambda: executors(r) == [], 10, "the end of the executors")
        case.equal(r.list(), [])
        normal_run(r)


case.run(globals())
