#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 31
"""Garbage collection of ended allocations: how many are kept, which are removed when the disk is full, and removal on request."""
import contextlib
import os
import signal
import time

from lib import agent, api, case, helper

CONFIG = """
plugin "raw_exec" { config { enabled = true } }
server {
%s
}
client {
  gc_interval = "200ms"
  gc_max_allocs = %d
  gc_disk_usage_threshold = %d
  gc_inode_usage_threshold = %d
}
"""
NO_MORE = {"ReschedulePolicy": {"Attempts": 0, "Unlimited": False}}
NOT_ELIGIBLE = "No such allocation on client, or allocation not eligible for GC"


def started(kept=50, threshold=100, data=None, server="", inodes=100):
    return api.Node(agent.config_args(CONFIG % (server, kept, threshold, inodes)), data=data)


def end(node, name, times):
    """Runs n versions of a job that ends. Returns its allocations, oldest first."""
    for n in range(1, times + 1):
        node.register(api.job(name, "/bin/true", Env={"N": str(n)}, group=NO_MORE))
        case.until(lambda n=n: [a["ClientStatus"] for a in node.allocs(name)][-1:] == ["failed"] and
                   node.allocs(name)[-1]["JobVersion"] == n - 1, 60, "allocation %d to end" % n)
    return node.allocs(name)


def collect(node, method, path):
    """Waits until the allocation can be collected: its tasks have ended, but its last hooks may still run."""
    case.until(lambda: node.request(method, path).status == 200, 60, "the allocation to be eligible for collection")


def has_directory(node, alloc):
    return os.path.exists("%s/alloc/%s" % (node.data, alloc["ID"]))


def test_the_oldest_beyond_the_limit_are_removed():
    with started(kept=2) as node:
        end(node, "many", 6)
        # Two ended ones are kept, and the newest, which represents its slot.
        case.until(lambda: [a["JobVersion"] for a in node.allocs("many")] == [3, 4, 5], 60, "the oldest to be removed")
        case.equal([has_directory(node, a) for a in node.allocs("many")], [True] * 3)
        node.purge("many")


def test_a_probe_counts_against_no_limit():
    """The node has as many allocations as it keeps: a probe starts its tasks all the same, and removes none for them."""
    with started(kept=2) as node:
        end(node, "many", 3)
        node.register(api.job("runs"))
        node.wait_running("runs")

        def kept():
            return sorted((a["ID"], a["ClientStatus"], has_directory(node, a)) for a in node.ask("/v1/allocations"))
        before = kept()
        case.equal(len(before), 4)
        for _ in range(3):
            answer = node.request("GET", "/v1/agent/health?deep=1")
            case.equal((answer.status, {n: c["state"] for n, c in answer.json["components"].items() if n.startswith("driver/")}),
                       (200, {"driver/exec": "ok", "driver/raw_exec": "ok"}), answer.text)
        case.equal(kept(), before, "allocations after probes")
        case.equal([e for e in node.log().splitlines() if "ended allocations" in e], [], "removals")
        for name in ("many", "runs"):
            node.purge(name)
    with started(kept=0) as node:
        node.register(api.job("runs"))
        node.wait_running("runs")
        case.equal(node.request("GET", "/v1/agent/health?deep=1").status, 200)
        case.equal([a["ClientStatus"] for a in node.ask("/v1/allocations")], ["running"])
        node.purge("runs")


def test_old_allocations_and_evaluations_are_removed():
    """Allocations with a successor are removed, and evaluations without allocations; an allocation that represents a slot stays."""
    with started(server='  eval_gc_threshold = "1h"') as node:
        first, last = end(node, "old", 2)
        once = api.job("once", "/bin/true")
        once["Job"]["Type"] = "batch"
        node.register(once)
        done, = node.wait_allocs("once", [(0, "run", "complete")], 60)
        empty = node.register(api.job("empty", count=0))["EvalID"]
        node.wait_evaluation(empty)
        known = {first["EvalID"], last["EvalID"], done["EvalID"], empty}
        # They have been examined several times by now, but none is an hour old.
        node.register(api.job("looks"))
        node.wait_running("looks")
        case.equal((known - {e["ID"] for e in node.ask("/v1/evaluations")}, len(node.allocs("old"))), (set(), 2))
        with open(node.args[node.args.index("-config") + 1], "w", encoding="ascii") as f:
            f.write(CONFIG % ('  eval_gc_threshold = "1ms"', 50, 100, 100))
        old = node.processes()["supervisor"]
        node.process.send_signal(signal.SIGHUP)
        node.wait_process("supervisor", other_than=old)
        node.wait_ready()
        case.until(lambda: [a["ID"] for a in node.allocs("old")] == [last["ID"]], 60, "the one with a successor to be removed")
        case.until(lambda: {e["ID"] for e in node.ask("/v1/evaluations")} & known == {last["EvalID"], done["EvalID"]}, 60,
                   "evaluations without an allocation to be removed")
        case.equal([a["ID"] for a in node.allocs("once")], [done["ID"]], "the completed allocation, which represents its slot")
        for name in ("old", "once", "empty", "looks"):
            node.purge(name)
        case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


def test_an_allocation_is_removed_on_request():
    with started() as node:
        first, second = end(node, "named", 2)
        node.register(api.job("runs"))
        runs = node.wait_running("runs")[0]
        node.refused(409, NOT_ELIGIBLE, "GET", "/v1/client/allocation/%s/gc" % runs["ID"])
        node.refused(404, 'Unknown allocation "x"', "GET", "/v1/client/allocation/x/gc")
        collect(node, "GET", "/v1/client/allocation/%s/gc" % first["ID"])
        case.until(lambda: not has_directory(node, first), 60, "its directory to be removed")
        case.until(lambda: [a["ID"] for a in node.allocs("named")] == [second["ID"]], 60, "the allocation to be removed from the database")
        # An allocation that represents a slot is not removed from the database, or it would be placed again.
        collect(node, "PUT", "/v1/client/allocation/%s/gc" % second["ID"])
        case.until(lambda: not has_directory(node, second), 60, "its directory to be removed")
        node.refused(409, NOT_ELIGIBLE, "PUT", "/v1/client/allocation/%s/gc" % second["ID"])
        case.equal([(a["ID"], a["ClientStatus"]) for a in node.allocs("named")], [(second["ID"], "failed")])
        node.register(api.job("named", "/bin/true", Env={"N": "3"}, group=NO_MORE))
        case.until(lambda: [a["ClientStatus"] for a in node.allocs("named") if a["JobVersion"] == 2] == ["failed"], 60,
                   "the third to end")
        third = node.allocs("named")[-1]
        case.equal(has_directory(node, third), True)
        case.until(lambda: node.request("PUT", "/v1/client/gc").status == 200 and not has_directory(node, third), 60,
                   "all ended allocations to be removed")
        case.equal(has_directory(node, runs), True, "whether a running one still has its directory")
        case.equal(node.allocs("runs")[0]["ClientStatus"], "running")
        for name in ("named", "runs"):
            node.purge(name)
        case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


def test_a_removal_that_fails_is_tried_again():
    """A foreign mount inside: nothing is removed until it is unmounted, then everything is."""
    with started() as node:
        alloc, = end(node, "held", 1)
        path = "%s/alloc/%s/alloc/data" % (node.data, alloc["ID"])
        helper.mount("held", path, "tmpfs")
        try:
            collect(node, "PUT", "/v1/client/allocation/%s/gc" % alloc["ID"])
            node.wait_log("is still mounted; it is tried again in 30 s", 60)
            case.equal(os.path.isdir(path), True, "its directories")
            node.kill("supervisor")  # the next supervisor tries it too
            node.wait_log("is still mounted; it is tried again in 30 s", 60, times=2)
        finally:
            helper.umount(path)
        case.until(lambda: not has_directory(node, alloc), 120, "its directories to be removed")
        node.purge("held")
        case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


@contextlib.contextmanager
def disk(options, **limits):
    """A node on its own small disk, with three ended allocations and a running one."""
    base = case.directory()
    helper.mount("disk", base, "tmpfs", 0, options + ",mode=755")
    try:
        with started(data=base + "/data", **limits) as node:
            allocs = end(node, "full", 3)
            node.register(api.job("runs"))
            runs = node.wait_running("runs")[0]
            yield node, allocs
            # Removing the first does not free enough, removing the second does.
            case.until(lambda: not has_directory(node, allocs[0]) and not has_directory(node, allocs[1]), 60, "the oldest to be removed")
            node.wait_log("removing 2 ended allocations", 60)
            case.equal(has_directory(node, runs), True, "whether a running one still has its directory")
            for name in ("full", "runs"):
                node.purge(name)
    finally:
        helper.umount(base, 2)  # MNT_DETACH: a process may still be emptying the trash


def test_a_full_disk_removes_the_oldest_first():
    with disk("size=64m", threshold=50) as (node, allocs):
        with open("%s/alloc/%s/alloc/data/big" % (node.data, allocs[1]["ID"]), "wb") as f:
            os.posix_fallocate(f.fileno(), 0, 40 << 20)


def test_a_disk_without_free_inodes_removes_the_oldest_first():
    with disk("nr_inodes=4000", inodes=50) as (node, allocs):
        top = "%s/alloc/%s/alloc/data/" % (node.data, allocs[1]["ID"])
        with contextlib.suppress(FileNotFoundError):  # it is removed as soon as there are too many
            for n in range(3000):
                open(top + str(n), "w", encoding="ascii").close()


def write_own(node, alloc, text):
    with open("%s/alloc/%s/t/local/own" % (node.data, alloc["ID"]), "w", encoding="ascii") as f:
        f.write(text)


def read_own(node, alloc):
    try:
        with open("%s/alloc/%s/t/local/own" % (node.data, alloc["ID"]), encoding="ascii") as f:
            return f.read()
    except FileNotFoundError:
        return None


def sticky(name, version):
    return api.job(name, Env={"N": version}, group={"EphemeralDisk": {"Sticky": True, "SizeMB": 150}})


def test_a_sticky_disk_is_not_collected_before_its_successor_has_it():
    """No ended allocation is kept here. The successor waits until it has the data."""
    with started(kept=0) as node:
        for n in range(5):
            name = "sticky-%d" % n
            node.register(sticky(name, "1"))
            first = node.wait_running(name)[0]
            write_own(node, first, name)
            node.register(sticky(name, "2"))
            case.until(lambda job=name: any(a["JobVersion"] == 1 and a["ClientStatus"] == "running" for a in node.allocs(job)), 60,
                       "its successor to run")
            case.equal(read_own(node, next(a for a in node.allocs(name) if a["JobVersion"] == 1)), name)
            case.until(lambda a=first: not has_directory(node, a), 60, "the first to be removed")
            node.purge(name)


def test_a_sticky_disk_is_not_collected_by_the_next_supervisor_either():
    """The supervisor is killed after it has requested the move and the removal, before either is done."""
    with started(kept=0) as node:
        node.register(sticky("held", "1"))
        first = node.wait_running("held")[0]
        write_own(node, first, "kept")
        file_helper = node.processes()["file-helper"]
        os.kill(file_helper, signal.SIGSTOP)
        try:
            node.register(sticky("held", "2"))
            case.until(lambda: [a["ClientStatus"] for a in node.allocs("held")] == ["complete", "pending"], 60, "its successor to run")
            time.sleep(0.2)  # time for its other requests
            node.wait_process("supervisor", node.kill("supervisor"))
        finally:
            with contextlib.suppress(ProcessLookupError):  # it ends with the supervisor
                os.kill(file_helper, signal.SIGCONT)
        node.wait_ready()
        second = node.wait_running("held")[0]
        case.equal((second["JobVersion"], read_own(node, second)), (1, "kept"))
        case.until(lambda: not has_directory(node, first), 60, "the first to be removed")
        node.purge("held")


case.run(globals())
