#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""After many objects are removed, the supervisor gives back its memory and the space of state.db and its log; garbage collection removes
evaluations too."""
import os
import sqlite3

from lib import api, case

JOBS, COUNT = 4, 125
KB = 1024


def anonymous_kb():
    """Returns the memory of the supervisor that is not files."""
    with open("/proc/%d/status" % node.processes()["supervisor"], encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("RssAnon:"))


def state_size():
    return sum(os.path.getsize(node.data + "/state/" + name) for name in ("state.db", "state.db-wal"))


def run_many(jobs=JOBS, count=COUNT):
    """Runs batch jobs to their end."""
    for i in range(jobs):
        made = api.job("many-%d" % i, "/bin/true", [], count, Resources={"CPU": 1, "MemoryMB": 10}, LogConfig={"MaxFiles": 1, "MaxFileSizeMB": 1},
                       group={"EphemeralDisk": {"SizeMB": 10}})
        made["Job"]["Type"] = "batch"
        node.register(made)
    case.until(lambda: len([a for a in node.ask("/v1/allocations") if a["ClientStatus"] == "complete"]) == jobs * count, 240, "all to end")


def test_memory_and_disk_are_given_back_after_a_purge():
    before = anonymous_kb()
    run_many()
    most, size = anonymous_kb(), state_size()
    case.equal((size > 2 << 20, most - before > 2 * KB), (True, True), "%d B, %d KB after %d KB" % (size, most, before))
    for i in range(JOBS):
        node.do("DELETE", "/v1/job/many-%d?purge=true" % i)
    case.until(lambda: not node.ask("/v1/allocations"), 60, "the allocations to be gone")
    case.until(lambda: state_size() < 512 * KB, 60, "state.db to be truncated")
    case.until(lambda: anonymous_kb() - before < (most - before) / 2, 60, "the memory to be freed")


def test_garbage_collection_removes_evaluations_at_once():
    case.equal(len(node.ask("/v1/evaluations")) >= JOBS, True)
    node.do("PUT", "/v1/system/gc")
    case.equal(node.ask("/v1/evaluations"), [])
    run_many(20, 1)
    node.register(api.job("stays"))
    kept = node.wait_running("stays")[0]["EvalID"]
    node.do("PUT", "/v1/system/gc")
    case.until(lambda: [e["ID"] for e in node.ask("/v1/evaluations")] == [kept], 60, "the evaluations of purged jobs to be gone")
    case.equal([j["ID"] for j in node.ask("/v1/jobs")], ["stays"])


def test_a_database_of_an_earlier_version_is_made_shrinkable():
    node.purge("stays")
    path = node.data + "/state/state.db"
    os.kill(node.pid, 9)
    case.equal(node.process.wait(30), -9)
    case.until(lambda: not node.processes(), 30, "the processes to end")
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA auto_vacuum = NONE")
        db.execute("VACUUM")
        case.equal(db.execute("PRAGMA auto_vacuum").fetchone()[0], 0)
    db.close()
    node.start()
    node.wait_ready()
    run_many(2)
    node.do("PUT", "/v1/system/gc")
    case.until(lambda: state_size() < 512 * KB, 60, "state.db to be truncated")


with api.Node() as node:
    case.run(globals())
