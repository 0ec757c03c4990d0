#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A task that hangs in the kernel, where SIGKILL has no effect: nothing else waits for it, and it is reaped when it no longer hangs."""
import os
import subprocess

from lib import api, build_dir, case, crash, helper


def start_stuck(node, point):
    fuse = subprocess.Popen([build_dir() + "/tests/fuse_hang", point], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    case.equal(fuse.stdout.readline(), b"mounted\n", "fuse_hang")
    node.register(api.job("stuck", "/usr/bin/stat", ["-f", point], KillTimeout=10**8))
    case.equal(fuse.stdout.readline(), b"statfs\n", "the request that hangs")
    return fuse


def runs(node):
    return len([n for n in os.listdir(node.data + "/run") if n.endswith(".rec")])


def test_other_starts_do_not_wait_for_it():
    if not os.path.exists("/dev/fuse"):
        case.skip("no /dev/fuse")
    point = case.directory()
    fuse = None
    with api.Node() as node:
        try:
            fuse = start_stuck(node, point)
            node.do("DELETE", "/v1/job/stuck")
            node.wait_log("still has processes after it was killed", 40)
            node.check_starts(5)
            case.until(lambda: runs(node) == 1, 10, "the other runs to be reaped")
        finally:
            if fuse:
                fuse.kill()
                fuse.wait()
            helper.umount(point, 2)
        case.until(lambda: runs(node) == 0, 20, "the end of the stuck run")


def test_a_stuck_run_without_a_row_is_a_leak_and_delays_no_drain():
    if not os.path.exists("/dev/fuse"):
        case.skip("no /dev/fuse")
    point, run = case.directory(), os.urandom(16).hex()
    with crash.Node() as node:
        fuse = subprocess.Popen([build_dir() + "/tests/fuse_hang", point], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        case.equal(fuse.stdout.readline(), b"mounted\n", "fuse_hang")
        parents = {name: "%s/drover-%s" % (path, crash.instance(node)) for name, path in helper.cgroup_trees().items()}
        cgroup = "%s/tasks/%s" % (parents["v2"], run)
        # A new agent searches for leftovers once. The query makes sure that this is over before the run is created, because the helpers
        # answer in order.
        case.equal(crash.leaks(node), [], "leaks before")
        os.mkdir(cgroup)
        stuck = subprocess.Popen(["/bin/sh", "-ec", "echo 0 >%s/cgroup.procs; exec stat -f %s" % (cgroup, point)],
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            case.equal(fuse.stdout.readline(), b"statfs\n", "the request that hangs")
            killed = node.kill("supervisor")
            node.wait_process("supervisor", other_than=killed)
            node.wait_log("still has processes after it was killed", 20)
            case.equal([(one["Kind"], one["Name"]) for one in crash.leaks(node)], [("run", run)], "leaks")
            node.stop()
            case.equal("send the signal again to stop waiting" in node.log(), True, "exit code after the drain")
        finally:
            fuse.kill()
            fuse.wait()
            helper.umount(point, 2)
            stuck.wait()
            node.wait()
            for parent in parents.values():
                helper.remove_cgroup(parent)


def test_a_run_that_is_left_in_any_hierarchy_is_reported():
    with crash.Node() as node:
        parents = {name: "%s/drover-%s" % (path, crash.instance(node)) for name, path in helper.cgroup_trees().items()}
        places = [p + "/runs/" for name, p in parents.items() if name != "v2"] + [parents["v2"] + "/tasks/", parents["v2"] + "/cores/"]
        for place in filter(os.path.isdir, places):
            run = os.urandom(16).hex()
            os.mkdir(place + run)
            case.equal([(one["Kind"], one["Name"]) for one in crash.leaks(node)], [("run", run)], place)
            os.rmdir(place + run)


case.run(globals())
