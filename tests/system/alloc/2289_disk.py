#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An allocation is placed only if enough disk for its ephemeral_disk is free."""
import contextlib
import os

from lib import api, case, helper

SIZE_MB = 160
CONFIG = """
client {
  gc_disk_usage_threshold = 100
  gc_inode_usage_threshold = 100
  reserved { disk = 10 }
  %s
}
"""
LOGS = {"MaxFiles": 1, "MaxFileSizeMB": 1}


@contextlib.contextmanager
def started(more="", disk=True):
    """An agent whose data directory is on its own small disk."""
    base = case.directory()
    config = base + ".hcl"
    with open(config, "w", encoding="ascii") as f:
        f.write(CONFIG % more)
    os.chmod(config, 0o600)
    helper.mount("disk", base, "tmpfs", 0, "size=%dm,mode=755" % SIZE_MB)
    try:
        with api.Node(args=["-config", config], data=base + "/data", disk=disk) as node:
            yield node
            case.equal(node.ask("/v1/agent/leaks"), [], "leaks")
    finally:
        helper.umount(base, 2)  # MNT_DETACH: a process may still be emptying the trash
        os.unlink(config)


def job(name, size_mb, count=1, **more):
    return api.job(name, count=count, LogConfig=LOGS, group={"EphemeralDisk": {"SizeMB": size_mb}}, **more)


def disk_of(node):
    found = node.ask("/v1/node/" + node.ask("/v1/nodes")[0]["ID"])
    return found["NodeResources"]["Disk"]["DiskMB"], found["ReservedResources"]["Disk"]["DiskMB"]


def test_a_job_that_does_not_fit_waits_and_names_the_disk():
    with started() as node:
        there, reserved = disk_of(node)
        case.equal((0 < there <= SIZE_MB, reserved), (True, 10), "the node's disk: %d MB" % there)
        half = (there - reserved) // 2
        planned = node.do("POST", "/v1/job/big/plan", {**job("big", half, 3), "Diff": False})
        case.equal(planned["FailedTGAllocs"]["g"]["DimensionExhausted"], {"disk": 1}, "the reason in the plan")
        ev = node.wait_evaluation(node.register(job("big", half, 3))["EvalID"])
        case.equal((ev["FailedTGAllocs"]["g"]["DimensionExhausted"], ev["QueuedAllocations"]), ({"disk": 1}, {"g": 1}))
        case.equal(node.ask("/v1/job/big")["StatusDescription"], "group g: not enough disk")
        placed = node.wait_running("big", 2)
        shared = node.ask("/v1/allocation/" + placed[0]["ID"])["AllocatedResources"]["Shared"]
        case.equal(shared["DiskMB"], half)
        # Its disk is free when it has ended.
        node.do("PUT", "/v1/job/big/scale", {"Target": {"Group": "g"}, "Count": 1})
        node.register(job("next", half))
        node.wait_running("next")
        node.purge("big")
        node.purge("next")


def test_reserved_disk_is_not_given_to_allocations():
    with started("disk_free_mb = 50", disk=True) as node:
        case.equal(disk_of(node), (50, 10))
        node.wait_evaluation(node.register(job("much", 41))["EvalID"])
        case.equal(node.ask("/v1/job/much")["StatusDescription"], "group g: not enough disk")
        node.register(job("much", 40))
        node.wait_running("much")
        node.purge("much")


def test_what_an_allocation_has_written_counts_once():
    """Its ephemeral_disk is subtracted from the free space; bytes that it has written already are not subtracted again."""
    with started() as node:
        there = disk_of(node)[0]
        node.register(job("db", 100))
        alloc = node.wait_running("db")[0]
        with open("%s/alloc/%s/alloc/data/big" % (node.data, alloc["ID"]), "wb") as f:
            os.posix_fallocate(f.fileno(), 0, 90 << 20)
        before = node.wait_process("supervisor")
        node.kill("supervisor")
        node.wait_process("supervisor", other_than=before)
        node.wait_ready()
        case.equal(disk_of(node)[0], there, "the node's disk after a restart")
        node.register(job("db", 100, Env={"NEW": "1"}))
        case.until(lambda: [a["ID"] for a in node.wait_running("db")] != [alloc["ID"]], 60, "its next version")
        node.purge("db")


def test_disk_used_by_other_files_is_not_given_to_allocations():
    with started() as node:
        there = disk_of(node)[0]
        with open(node.data + "/../others", "wb") as f:
            os.posix_fallocate(f.fileno(), 0, 90 << 20)
        before = node.wait_process("supervisor")
        node.kill("supervisor")
        node.wait_process("supervisor", other_than=before)
        node.wait_ready()
        case.equal(disk_of(node)[0] <= there - 90, True, "the node's disk: %d MB, %d before" % (disk_of(node)[0], there))
        node.wait_evaluation(node.register(job("late", 80))["EvalID"])
        case.equal(node.ask("/v1/job/late")["StatusDescription"], "group g: not enough disk")
        node.purge("late")


case.run(globals())
