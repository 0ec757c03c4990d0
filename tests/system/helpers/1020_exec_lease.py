# SPDX-License-Identifier: Apache-2.0
# takes: 37
"""exec-helper and executor alone: the lease."""
import os
import signal
import struct
import time

from lib import case, exe, runs

S = 1000000000
LIMIT = 5  # seconds; long enough that a busy machine does not delay a beat beyond it
LAST_OK = 8 + 40 + 8  # its offset in struct lease_page


def now():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


def beat(r, at=None):
    """Renews the lease, as heartbeat does."""
    at = now() if at is None else at
    with open(r.places.runtime + "/lease", "r+b", buffering=0) as f:
        os.pwrite(f.fileno(), struct.pack("<Q", at), LAST_OK)
    return at


def check_lease(record, limit_ms, last_ok):
    case.equal(record["flags"] & exe.EXE_END_LEASE, exe.EXE_END_LEASE, "flags")
    case.equal((record["lease_limit_ms"], record["lease_last_ok_ns"]), (limit_ms, last_ok))
    # How late it ended depends on the machine; `make bench` compares that with the budget.
    assert record["ended_boot_ns"] >= last_ok + limit_ms * 1000000, "ended before its deadline"


def wait_beating(r, condition, what):
    """Renews the lease until condition() is true. Returns the time of the last beat."""
    last = []

    def look():
        last[:] = [beat(r)]
        return condition()
    case.until(look, 20, what)
    return last[0]


def beat_for(r, run, limit, seconds):
    """Renews the lease for so long; the task must keep running. Returns the time of the last beat, or None if the machine was so slow that
    too much time passed between two beats, so that the lease expired correctly."""
    end, last = now() + seconds * S, beat(r)
    while last < end:
        time.sleep(0.05)
        state = r.record(run)["state"]
        before, last = last, beat(r)
        if last - before > limit * S * 0.9:
            return None
        case.contains((exe.EXE_SETTING_UP, exe.EXE_RUNNING), state, "state of the task")
    return last


def test_a_task_is_stopped_when_no_beat_arrives():
    with runs.Runs() as r:
        last = beat(r)
        run = r.start("sleep", ["1000"], lease_ms=700)
        other = r.start("sleep", ["1000"])
        record = r.ended(run)
        check_lease(record, 700, last)
        case.equal(record["exit_signal"], signal.SIGINT)
        case.equal(r.record(other)["state"], exe.EXE_RUNNING, "a task without a lease")
        r.reap(other)


def test_beats_keep_a_task_running():
    with runs.Runs() as r:
        beat(r)
        last = None
        while last is None:
            run = r.start("sleep", ["1000"], lease_ms=1000)
            last = beat_for(r, run, 1, 3)
            record = r.ended(run)
        check_lease(record, 1000, last)


def test_a_lease_is_enforced_without_exec_helper_and_kills_a_task_that_ignores_signals():
    with runs.Runs() as r:
        beat(r)
        run = r.start("sh", ["-c", "trap '' INT; echo deaf; while :; do sleep 0.05; done"], lease_ms=LIMIT * 1000,
                      kill_timeout_ms=300)
        last = wait_beating(r, lambda: "deaf" in r.log(run), "the shell's trap")
        r.helper.kill()
        record = r.ended(run)
        check_lease(record, LIMIT * 1000, last)
        case.equal((record["exit_signal"], record["flags"]), (9, exe.EXE_END_LEASE | exe.EXE_END_KILLED | exe.EXE_END_SENT))
        r.restart()


def test_without_any_beat_the_lease_ends_a_grace_after_the_page_was_made():
    with runs.Runs() as r:
        started = now() - 50 * S + S
        r.places.make_lease(started=started)
        run = r.start("sleep", ["1000"], lease_ms=100)
        record = r.ended(run)
        case.equal(record["lease_last_ok_ns"], 0)
        case.equal(record["flags"] & exe.EXE_END_LEASE, exe.EXE_END_LEASE, "flags")
        assert record["ended_boot_ns"] >= started + 50 * S, "ended before its deadline"


def test_the_first_beat_replaces_the_grace_by_the_limit():
    with runs.Runs() as r:
        r.places.make_lease(started=now())
        run = r.start("sleep", ["1000"], lease_ms=700)
        r.wait_state(run, exe.EXE_RUNNING)
        time.sleep(0.2)
        last = beat(r)  # only once: the grace of 50 s is only for the time before the first beat
        check_lease(r.ended(run), 700, last)


def test_a_beat_from_the_future_counts_as_one_of_now():
    with runs.Runs() as r:
        at = beat(r, now() + 1000 * S)
        record = r.ended(r.start("sleep", ["1000"], lease_ms=400))
        assert record["ended_boot_ns"] < at, "whether it waited until the time in the page"


def has_page(r, run, page):
    with r.connect(run) as c:
        return (c.hello["lease_dev"], c.hello["lease_ino"]) == (page.st_dev, page.st_ino)


def test_an_executor_switches_to_a_new_lease_page():
    with runs.Runs() as r:
        beat(r)
        run = r.start("sleep", ["1000"], lease_ms=LIMIT * 1000)
        with r.connect(run) as c:
            c.wait_state(exe.EXE_RUNNING)
            old = os.stat(r.places.runtime + "/lease")
            case.equal((c.hello["lease_dev"], c.hello["lease_ino"], c.hello["lease_ms"]), (old.st_dev, old.st_ino, LIMIT * 1000))
            r.places.make_lease(last_ok=now())
            fd = os.open(r.places.runtime + "/lease", os.O_RDONLY)
            c.send(exe.EXE_LEASE, [fd], limit_ms=LIMIT * 1000)
            os.close(fd)
            page = os.stat(r.places.runtime + "/lease")
            wait_beating(r, lambda: has_page(r, run, page), "the new page in HELLO")
            last = beat_for(r, run, LIMIT, LIMIT + 1)
        record = r.ended(run)
        if last:
            check_lease(record, LIMIT * 1000, last)


def test_a_lease_can_be_removed_and_added_while_a_task_runs():
    with runs.Runs() as r:
        beat(r)
        run = r.start("sleep", ["1000"], lease_ms=LIMIT * 1000)
        with r.connect(run) as c:
            c.wait_state(exe.EXE_RUNNING)
            c.send(exe.EXE_LEASE, limit_ms=0)
            time.sleep(LIMIT + 1)  # long enough for a wrong stop to happen
            case.equal(r.record(run)["state"], exe.EXE_RUNNING)
        run2 = r.start("sleep", ["1000"])
        with r.connect(run2) as c:
            c.wait_state(exe.EXE_RUNNING)
            last = beat(r)
            fd = os.open(r.places.runtime + "/lease", os.O_RDONLY)
            c.send(exe.EXE_LEASE, [fd], limit_ms=400)
            os.close(fd)
        check_lease(r.ended(run2), 400, last)
        r.reap(run)


def test_two_hundred_tasks_are_stopped_when_their_lease_ends():
    with runs.Runs() as r:
        beat(r)
        alloc = r.make_alloc()
        many = []
        for _ in range(200):
            many.append(r.start("sleep", ["1000"], alloc=alloc, lease_ms=LIMIT * 1000, logs_disabled=True))
            beat(r)
        for run in many:
            last = wait_beating(r, lambda: r.record(run)["state"] == exe.EXE_RUNNING, "a run")
        late = [r.ended(run, seconds=60)["lease_late_ns"] for run in many]
        print("    latest of 200: %.2f ms" % (max(late) / 1e6))
        for run in many:
            check_lease(r.record(run), LIMIT * 1000, last)


case.run(globals())
