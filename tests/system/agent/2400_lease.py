# SPDX-License-Identifier: Apache-2.0
# timeout: 1200
# takes: 112
"""The lease in a whole agent: stop_after_client_disconnect takes effect, whichever process of the agent hangs or dies."""
import os
import signal
import struct
import time

from lib import agent, api, case, exe

S = 10 ** 9
# Much longer than a beat takes, even if it waits for a processor or a disk. How late a stop is is only printed; `make bench` compares it
# with the budget.
LIMIT = 12 * S
PAGE = struct.Struct("<Q40sQQ")


class Node(api.Node):
    moved = None  # where a test has moved the runtime directory

    @property
    def runtime(self):
        return self.data + "/rt"

    @property
    def socket_path(self):
        return (self.moved or self.runtime) + "/drover.sock"

    def last_beat(self):
        with open(self.runtime + "/lease", "rb") as f:
            return PAGE.unpack(f.read(PAGE.size))[3]

    def wait_beats(self, n=1):
        """Waits until that many more beats were answered."""
        for _ in range(n):
            before = self.last_beat()
            case.until(lambda: self.last_beat() > before, 10, "a beat")

    def record(self, run):
        return exe.read_record(self, run)

    def run_of(self, alloc):
        """Returns the run (32 digits) of the only task of an alloc."""
        def found():
            for name in os.listdir(self.data + "/run"):
                try:
                    record = self.record(name[:-4])
                except exe.Error:
                    continue  # still being written
                if record and record["alloc"].hex() == alloc["ID"].replace("-", "") and record["state"] == exe.EXE_RUNNING and \
                        agent.arguments(record["executor_pid"]):  # the previous run has a record too until it is reaped
                    return name[:-4]
            return None
        return case.until(found, 10, "the run of " + alloc["Name"])

    def start_job(self, name, limit=None, group=None, **more):
        """Returns its alloc and run. limit: in nanoseconds."""
        fields = dict(group or {})
        if limit is not None:
            fields["StopAfterClientDisconnect"] = limit
        self.register(api.job(name, group=fields, **more))
        alloc = self.wait_running(name)[0]
        return alloc, self.run_of(alloc)

    def events(self, alloc):
        states = self.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]
        return ["%s: %s" % (e["Type"], e["DisplayMessage"]) for e in states["Events"]]

    def processes_but_executors(self):
        # The launcher is the subreaper, so executors of earlier exec-helpers are its children too.
        return [self.pid] + [pid for name, pid in self.processes().items() if name != "executor"]

    def crash(self):
        """Kills all processes except the executors and their tasks."""
        pids = self.processes_but_executors()
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it has ended with the launcher
        self.wait()
        agent.wait_gone(pids)

    def again(self):
        self.start()
        self.wait_ready()

    def __exit__(self, kind, value, tb):
        if self.process.poll() is not None:  # a test failed between crash() and again(): start an agent that drains
            self.again()
        return super().__exit__(kind, value, tb)


def boottime():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def stop_process(node, name):
    """Stops a process with SIGSTOP and waits until it has stopped. Returns its pid and the time."""
    pid = node.kill(name, signal.SIGSTOP)

    def has_stopped():
        with open("/proc/%d/stat" % pid, encoding="ascii", errors="replace") as f:
            return f.read().rpartition(")")[2].split()[0] == "T"
    case.until(has_stopped, 10, name + " to stop")
    return pid, boottime()


def wait_stopped(node, run, what, limit=LIMIT):
    """Waits until the lease stops the run, prints how late, and returns its record. There must be no more beats, and no supervisor that
    would remove the record."""
    def ended():
        record = node.record(run)
        return record if record["state"] == exe.EXE_ENDED else None
    record = case.until(ended, 15, "the end of the task with a lease, " + what)
    check(record, node.last_beat(), what, limit)
    return record


def check(end, last, what, limit=LIMIT):
    """Checks the end of a task by its lease. end: a record or EXITED; last: the last beat in the page."""
    print("    %-44s stopped %6.3f s after the last beat, %.2f ms late, gone at %.3f s" % (
        what, (limit + end["lease_late_ns"]) / S, end["lease_late_ns"] / 1e6, (end["ended_boot_ns"] - last) / S))
    case.equal(end["flags"] & exe.EXE_END_LEASE, exe.EXE_END_LEASE, "flags")
    case.equal((end["lease_limit_ms"], end["lease_last_ok_ns"]), (limit // 10**6, last), "limit and last beat")
    assert end["ended_boot_ns"] >= last + limit, "stopped before its deadline"


def goes_on(node, run, pid):
    record = node.record(run)
    case.equal((record["state"], record["task_pid"]), (exe.EXE_RUNNING, pid), "a task without a lease")
    case.equal(os.path.exists("/proc/%d" % pid), True, "whether its process exists")


def told(node, alloc):
    """Waits until the alloc is lost, with an event that names limit and last beat. Returns that event."""
    case.until(lambda: node.ask("/v1/allocation/" + alloc["ID"])["ClientStatus"] == "lost", 15, "the alloc to be lost")
    text = "\n".join(node.events(alloc))
    case.contains(text, "Killing: ", "events")
    case.contains(text, "stop_after_client_disconnect of 12s passed: the last answered heartbeat was ")
    return next(line for line in text.splitlines() if "stop_after_client_disconnect" in line)


def replaced(node, alloc):
    new = node.wait_running(alloc["JobID"])[0]
    case.equal(new["ID"] != alloc["ID"], True, "another alloc")
    case.equal(node.ask("/v1/allocation/" + new["ID"])["PreviousAllocation"], alloc["ID"])
    return new


def test_a_supervisor_that_hangs():
    with Node() as node:
        alloc, run = node.start_job("five", LIMIT)
        _, free = node.start_job("free")
        _, zero = node.start_job("zero", 0)
        _, late = node.start_job("new", group={"Disconnect": {"StopOnClientAfter": 3600 * S}})
        for name, limit in ((run, LIMIT // 10**6), (free, 0), (zero, 0), (late, 3600000)):
            with exe.Connection(node, name) as c:
                case.equal(c.hello["lease_ms"], limit, "limit in HELLO")
        pids = {name: node.record(name)["task_pid"] for name in (free, zero, late)}
        node.wait_beats()
        supervisor, since = stop_process(node, "supervisor")
        try:
            wait_stopped(node, run, "supervisor stopped")
            # A beat that was answered before may still arrive; its time is that of its request.
            assert node.last_beat() <= since, "a beat of a stopped supervisor"
            for name, pid in pids.items():
                goes_on(node, name, pid)
        finally:
            os.kill(supervisor, signal.SIGCONT)
        print("    event: " + told(node, alloc))
        replaced(node, alloc)
        for name, pid in pids.items():
            goes_on(node, name, pid)


def test_a_heartbeat_that_hangs():
    with Node() as node:
        alloc, run = node.start_job("five", LIMIT)
        _, free = node.start_job("free")
        pid = node.record(free)["task_pid"]
        node.wait_beats()
        heartbeat, _ = stop_process(node, "heartbeat")
        try:
            last = node.last_beat()
            with exe.Connection(node, run) as c:
                check(c.wait_exited(), last, "heartbeat stopped")
            told(node, alloc)
            # Its replacement waits for a beat, because the node is still disconnected.
            new = case.until(lambda: [a for a in node.allocs("five") if a["ID"] != alloc["ID"]], 10, "status of the replacement")[0]
            time.sleep(1)
            case.equal(node.ask("/v1/allocation/" + new["ID"])["ClientStatus"], "pending", "status of the replacement without a beat")
            goes_on(node, free, pid)
        finally:
            os.kill(heartbeat, signal.SIGCONT)
        case.equal(replaced(node, alloc)["ID"], new["ID"])


def test_a_heartbeat_that_was_stopped_continues():
    """As after a suspension of the machine: the kernel resumes poll() by restart_syscall(), which the filter must permit."""
    with Node() as node:
        node.wait_beats()
        heartbeat, _ = stop_process(node, "heartbeat")
        os.kill(heartbeat, signal.SIGCONT)
        node.wait_beats()
        case.equal(node.processes()["heartbeat"], heartbeat, "the same process")


def test_a_supervisor_that_is_always_killed_before_its_first_turn():
    with Node() as node:
        alloc, run = node.start_job("five", LIMIT)
        _, free = node.start_job("free")
        pid = node.record(free)["task_pid"]
        node.wait_beats()
        killed, last = 0, 0
        end = time.monotonic() + 2 * case.LEAST_S
        while (record := node.record(run)) and record["state"] == exe.EXE_RUNNING and time.monotonic() < end:
            if killed and node.last_beat() != last:  # the first beat, or one of a supervisor that reached it before this loop killed it
                killed, last = 0, node.last_beat()
            found = node.processes().get("supervisor")
            if found:
                try:
                    os.kill(found, signal.SIGKILL)
                    killed += 1
                except ProcessLookupError:
                    pass
            time.sleep(0.001)
        print("    %d supervisors killed after the last beat" % killed)
        assert killed >= 3, "the supervisor was restarted only %d times" % killed
        if record:  # else a supervisor started just at the end and removed the record
            case.equal(record["state"], exe.EXE_ENDED, "state of the run")
            check(record, last, "supervisor killed again and again")
        goes_on(node, free, pid)
        node.wait_ready()
        told(node, alloc)
        replaced(node, alloc)


def test_an_agent_of_which_only_the_executors_are_left():
    with Node() as node:
        alloc, run = node.start_job("five", LIMIT)
        _, free = node.start_job("free")
        pid = node.record(free)["task_pid"]
        node.wait_beats()
        node.crash()
        wait_stopped(node, run, "all dead but the executors")
        goes_on(node, free, pid)
        node.again()
        told(node, alloc)
        replaced(node, alloc)
        goes_on(node, free, pid)
        case.until(lambda: node.ask("/v1/agent/leaks") == [], 10, "no leaks")


def take_away(path):
    os.unlink(path)


def put_another(path):
    with open(path, "rb") as f, open(path + ".new", "wb") as to:
        to.write(f.read())
    os.rename(path + ".new", path)


def test_a_deleted_lease_file_stops_nothing():
    limit = 8 * S
    enough = limit // S + 2  # beats of one second each, longer than the limit: an executor that still read the old page would have stopped the task
    with Node() as node:
        page = node.runtime + "/lease"
        _, run = node.start_job("two", limit)
        pid = node.record(run)["task_pid"]
        node.wait_beats()

        def reads_todays():
            with exe.Connection(node, run) as c:
                found = os.stat(page)
                return (c.hello["lease_dev"], c.hello["lease_ino"]) == (found.st_dev, found.st_ino)

        for n, change in enumerate((take_away, put_another)):
            held = os.open(page, os.O_RDONLY)  # so that its inode is not reused
            change(page)
            node.wait_log("processes restart to make a new one; tasks continue", times=n + 1)
            case.until(lambda: os.path.exists(page) and node.last_beat() > 0, 10, "the new page to be renewed")
            os.close(held)
            node.wait_ready()
            case.until(reads_todays, 10, "the executor to use it")
            # A task that starts later has a valid lease too.
            _, later = node.start_job("later%d" % n, limit)
            node.wait_beats(enough)
            goes_on(node, run, pid)
            case.equal(node.record(later)["state"], exe.EXE_RUNNING, "state of a task that was started later")
            node.purge("later%d" % n)
        # Nor does a missing directory, where no page can be made: the old page stays in use, and new tasks wait.
        supervisor = node.processes()["supervisor"]
        os.rename(node.runtime, node.runtime + "-away")
        node.moved = node.runtime + "-away"
        node.wait_log("was removed: running tasks continue")
        node.register(api.job("late", group={"StopAfterClientDisconnect": limit}))
        time.sleep(3)
        case.equal([a["ClientStatus"] for a in node.allocs("late")], ["pending"], "state of a task without a page")
        goes_on(node, run, pid)
        os.rename(node.moved, node.runtime)
        node.moved = None
        node.wait_running("late")
        goes_on(node, run, pid)
        case.equal(node.processes()["supervisor"], supervisor, "whether the supervisor is the same process")
        # The same with a new agent.
        os.unlink(page)
        node.crash()
        node.again()
        node.wait_beats(enough)
        goes_on(node, run, pid)
        case.equal(reads_todays(), True, "whether the executor uses the current page")
        # The new page works like the first: without beats the task is stopped.
        node.crash()
        wait_stopped(node, run, "with the page that was handed over", limit)
        node.again()


def kill_all(node, runs):
    """Simulates a power failure: kills executors too, and the cgroups of raw_exec tasks, which would outlive their executors."""
    pids = [node.record(run)["executor_pid"] for run in runs] + [node.record(run)["task_pid"] for run in runs]
    node.crash()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    agent.wait_gone(pids)


def test_restored_allocs_run_only_within_their_lease():
    with Node() as node:
        restarts = {"RestartPolicy": {"Attempts": 5, "Interval": 600 * S, "Delay": S // 10, "Mode": "fail"}}
        alloc, run = node.start_job("five", LIMIT, restarts)
        hour, run2 = node.start_job("hour", 3600 * S, restarts)
        node.wait_beats()
        # Within the limit the task is started again, as its restart policy says.
        kill_all(node, [run, run2])
        node.again()
        run, run2 = node.run_of(alloc), node.run_of(hour)
        node.wait_beats()
        # After the limit it is not, and an event says so; the alloc is replaced after the next beat.
        kill_all(node, [run, run2])
        last = node.last_beat()
        case.until(lambda: boottime() > last + LIMIT + S, 20, "the limit to pass")
        node.again()
        case.until(lambda: node.ask("/v1/allocation/" + alloc["ID"])["ClientStatus"] == "lost", 15, "its alloc to be lost")
        text = "\n".join(node.events(alloc))
        print("    event: " + text.splitlines()[-1])
        case.contains(text, "stop_after_client_disconnect of 12s has passed without an answered heartbeat; the task is not started")
        new = replaced(node, alloc)
        # With a new page, as after a boot, all tasks with a lease wait for the first beat.
        kill_all(node, [node.run_of(new), node.run_of(hour)])
        os.unlink(node.runtime + "/lease")
        node.again()
        for alloc in (new, hour):
            node.run_of(alloc)


case.run(globals())
