#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 31
"""What is left of allocations that are over: how many are kept, which go when the disk is full, and when somebody asks."""
import contextlib
import os
import signal
import time

from lib import api, case, helper

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
    path = case.directory() + "/agent.hcl"
    with open(path, "w", encoding="ascii") as f:
        f.write(CONFIG % (server, kept, threshold, inodes))
    os.chmod(path, 0o600)
    return api.Node(args=["-config", path], data=data)


def end(node, name, times):
    """A job that is over, and again: its allocations, the oldest first."""
    for n in range(1, times + 1):
        node.register(api.job(name, "/bin/true", Env={"N": str(n)}, group=NO_MORE))
        case.until(lambda n=n: [a["ClientStatus"] for a in node.allocs(name)][-1:] == ["failed"] and
                   node.allocs(name)[-1]["JobVersion"] == n - 1, 60, "allocation %d to end" % n)
    return node.allocs(name)


def collect(node, method, path):
    """Its tasks have ended; its last hooks may still run."""
    case.until(lambda: node.request(method, path).status == 200, 60, "it to be eligible")


def has_directory(node, alloc):
    return os.path.exists("%s/alloc/%s" % (node.data, alloc["ID"]))


def test_the_oldest_beyond_the_limit_go():
    with started(kept=2) as node:
        end(node, "many", 6)
        # Two that are over, and the one that stands for its slot.
        case.until(lambda: [a["JobVersion"] for a in node.allocs("many")] == [3, 4, 5], 60, "the oldest to go")
        case.equal([has_directory(node, a) for a in node.allocs("many")], [True] * 3)
        node.purge("many")


def test_what_is_old_goes():
    """Allocations that have a successor, and the evaluations of which there is nothing more; what stands for a slot stays."""
    with started(server='  eval_gc_threshold = "1h"') as node:
        first, last = end(node, "old", 2)
        once = api.job("once", "/bin/true")
        once["Job"]["Type"] = "batch"
        node.register(once)
        done, = node.wait_allocs("once", [(0, "run", "complete")], 60)
        empty = node.register(api.job("empty", count=0))["EvalID"]
        node.wait_evaluation(empty)
        known = {first["EvalID"], last["EvalID"], done["EvalID"], empty}
        # Looked at many times meanwhile: none of it is an hour old.
        node.register(api.job("looks"))
        node.wait_running("looks")
        case.equal((known - {e["ID"] for e in node.ask("/v1/evaluations")}, len(node.allocs("old"))), (set(), 2))
        with open(node.args[node.args.index("-config") + 1], "w", encoding="ascii") as f:
            f.write(CONFIG % ('  eval_gc_threshold = "1ms"', 50, 100, 100))
        old = node.processes()["supervisor"]
        node.process.send_signal(signal.SIGHUP)
        node.wait_process("supervisor", other_than=old)
        node.wait_ready()
        case.until(lambda: [a["ID"] for a in node.allocs("old")] == [last["ID"]], 60, "the one with a successor to go")
        case.until(lambda: {e["ID"] for e in node.ask("/v1/evaluations")} & known == {last["EvalID"], done["EvalID"]}, 60,
                   "evaluations without an allocation to go")
        case.equal([a["ID"] for a in node.allocs("once")], [done["ID"]], "what is done stands for its slot")
        for name in ("old", "once", "empty", "looks"):
            node.purge(name)
        case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


def test_one_that_somebody_names():
    with started() as node:
        first, second = end(node, "named", 2)
        node.register(api.job("runs"))
        runs = node.wait_running("runs")[0]
        node.refused(409, NOT_ELIGIBLE, "GET", "/v1/client/allocation/%s/gc" % runs["ID"])
        node.refused(404, 'Unknown allocation "x"', "GET", "/v1/client/allocation/x/gc")
        collect(node, "GET", "/v1/client/allocation/%s/gc" % first["ID"])
        case.until(lambda: not has_directory(node, first), 60, "its directory to go")
        case.until(lambda: [a["ID"] for a in node.allocs("named")] == [second["ID"]], 60, "it to be forgotten")
        # The one that stands for the slot is known on, or it would be placed again.
        collect(node, "PUT", "/v1/client/allocation/%s/gc" % second["ID"])
        case.until(lambda: not has_directory(node, second), 60, "its directory to go")
        node.refused(409, NOT_ELIGIBLE, "PUT", "/v1/client/allocation/%s/gc" % second["ID"])
        case.equal([(a["ID"], a["ClientStatus"]) for a in node.allocs("named")], [(second["ID"], "failed")])
        node.register(api.job("named", "/bin/true", Env={"N": "3"}, group=NO_MORE))
        case.until(lambda: [a["ClientStatus"] for a in node.allocs("named") if a["JobVersion"] == 2] == ["failed"], 60,
                   "the third to end")
        third = node.allocs("named")[-1]
        case.equal(has_directory(node, third), True)
        case.until(lambda: node.request("PUT", "/v1/client/gc").status == 200 and not has_directory(node, third), 60,
                   "all that is over to go")
        case.equal(has_directory(node, runs), True, "one that runs")
        case.equal(node.allocs("runs")[0]["ClientStatus"], "running")
        for name in ("named", "runs"):
            node.purge(name)
        case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


def test_what_cannot_be_removed_is_tried_again():
    """Somebody has mounted something in there: nothing is removed until that is gone, and then all of it is."""
    with started() as node:
        alloc, = end(node, "held", 1)
        path = "%s/alloc/%s/alloc/data" % (node.data, alloc["ID"])
        helper.mount("held", path, "tmpfs")
        try:
            collect(node, "PUT", "/v1/client/allocation/%s/gc" % alloc["ID"])
            node.wait_log("is still mounted; it is tried again in 30 s", 60)
            case.equal(os.path.isdir(path), True, "its directories")
            node.kill("supervisor")  # the next one does not forget it
            node.wait_log("is still mounted; it is tried again in 30 s", 60, times=2)
        finally:
            helper.umount(path)
        case.until(lambda: not has_directory(node, alloc), 120, "its directories to be gone")
        node.purge("held")
        case.equal(node.ask("/v1/agent/leaks"), [], "leaks")


@contextlib.contextmanager
def disk(options, **limits):
    """A node on a small disk of its own, with three allocations that are over and one that runs."""
    base = case.directory()
    helper.mount("disk", base, "tmpfs", 0, options + ",mode=755")
    try:
        with started(data=base + "/data", **limits) as node:
            allocs = end(node, "full", 3)
            node.register(api.job("runs"))
            runs = node.wait_running("runs")[0]
            yield node, allocs
            # The first does not help, the second does.
            case.until(lambda: not has_directory(node, allocs[0]) and not has_directory(node, allocs[1]), 60, "the oldest to go")
            node.wait_log("2 allocations that are over are removed", 60)
            case.equal(has_directory(node, runs), True, "one that runs")
            for name in ("full", "runs"):
                node.purge(name)
    finally:
        helper.umount(base, 2)  # MNT_DETACH: something may be at the trash still


def test_a_full_disk_takes_the_oldest_first():
    with disk("size=64m", threshold=50) as (node, allocs):
        with open("%s/alloc/%s/alloc/data/big" % (node.data, allocs[1]["ID"]), "wb") as f:
            os.posix_fallocate(f.fileno(), 0, 40 << 20)


def test_so_does_one_without_inodes():
    with disk("nr_inodes=4000", inodes=50) as (node, allocs):
        top = "%s/alloc/%s/alloc/data/" % (node.data, allocs[1]["ID"])
        with contextlib.suppress(FileNotFoundError):  # it goes as soon as there are too many
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
    """Nothing that is over is kept here. The successor waits until then."""
    with started(kept=0) as node:
        for n in range(5):
            name = "sticky-%d" % n
            node.register(sticky(name, "1"))
            first = node.wait_running(name)[0]
            write_own(node, first, name)
            node.register(sticky(name, "2"))
            case.until(lambda job=name: any(a["JobVersion"] == 1 and a["ClientStatus"] == "running" for a in node.allocs(job)), 60,
                       "its successor")
            case.equal(read_own(node, next(a for a in node.allocs(name) if a["JobVersion"] == 1)), name)
            case.until(lambda a=first: not has_directory(node, a), 60, "the first to be collected")
            node.purge(name)


def test_not_by_the_next_supervisor_either():
    """It was killed when it had asked for both, the move and the removal, and nothing had come of either."""
    with started(kept=0) as node:
        node.register(sticky("held", "1"))
        first = node.wait_running("held")[0]
        write_own(node, first, "kept")
        file_helper = node.processes()["file-helper"]
        os.kill(file_helper, signal.SIGSTOP)
        try:
            node.register(sticky("held", "2"))
            case.until(lambda: [a["ClientStatus"] for a in node.allocs("held")] == ["complete", "pending"], 60, "its successor")
            time.sleep(0.2)  # for what else it asks for
            node.wait_process("supervisor", node.kill("supervisor"))
        finally:
            with contextlib.suppress(ProcessLookupError):  # it ends with the supervisor
                os.kill(file_helper, signal.SIGCONT)
        node.wait_ready()
        second = node.wait_running("held")[0]
        case.equal((second["JobVersion"], read_own(node, second)), (1, "kept"))
        case.until(lambda: not has_directory(node, first), 60, "the first to be collected")
        node.purge("held")


case.run(globals())
