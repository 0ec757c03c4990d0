# SPDX-License-Identifier: Apache-2.0
# The runner itself: a test that leaves something behind must fail, and the output must name what it left.
"""Each test creates one leak and checks that the runner finds it."""
import glob
import os
import re
import signal
import subprocess

from lib import ROOT, case, helper, leaks, runs


def leaks_since(before):
    return "\n".join(before.since())


def test_a_test_sees_only_its_own_processes_files_and_cgroups():
    case.equal(os.listdir("/dev/shm"), [], "/dev/shm")
    case.equal([d for d in os.listdir("/run")], [], "/run")
    case.equal(sorted(leaks.processes())[0], 1, "first process")
    for name, point in helper.cgroup_trees().items():
        with open(point + "/cgroup.procs", encoding="ascii") as f:
            case.equal(f.read(), "", "processes in the root of " + name)


def test_each_number_is_one_test():
    names = sorted(os.path.basename(p) for p in glob.glob(ROOT + "/tests/system/*/*.py") if re.match(r"\d{4}_", os.path.basename(p)))
    doubled = [b for a, b in zip(names, names[1:]) if a[:4] == b[:4]]
    assert len(names) > 100, names
    case.equal(doubled, [], "tests with a number that another test has")


def test_patterns_of_the_runner_match_names_with_and_without_the_folder():
    def listed(*patterns):
        return subprocess.run([ROOT + "/tests/run", "-l", *patterns], stdout=subprocess.PIPE, check=True, text=True).stdout.split()

    for pattern in ("system/tree/0000_runner", "system/tree/0000", "system/0000_runner", "system/0000", "0000_r"):
        case.equal(listed(pattern), ["system/tree/0000_runner"], pattern)
    case.equal({name.split("/")[1] for name in listed("system/tree/", "volumes/23")}, {"tree", "volumes"})


def test_a_process_that_is_left_is_found():
    before = leaks.Snapshot()
    p = subprocess.Popen(["/bin/sleep", "100"], start_new_session=True)
    try:
        case.contains(leaks_since(before), "leaked process: %d (sleep)" % p.pid)
    finally:
        p.kill()
        p.wait()
    case.equal(leaks_since(before), "")


def test_a_zombie_that_is_left_is_found():
    before = leaks.Snapshot()
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    case.contains(leaks_since(before), "leaked process: %d" % pid)
    os.waitpid(pid, 0)
    case.equal(leaks_since(before), "")


def test_a_mount_that_is_left_is_found():
    before = leaks.Snapshot()
    path = case.directory()
    helper.mount("planted", path, "tmpfs")
    try:
        case.contains(leaks_since(before), "leaked mount: %s (tmpfs from planted)" % path)
    finally:
        helper.umount(path)
    case.equal(leaks_since(before), "")


def test_a_cgroup_left_in_any_hierarchy_is_found():
    for name, point in helper.cgroup_trees().items():
        before = leaks.Snapshot()
        os.mkdir(point + "/planted")
        try:
            case.contains(leaks_since(before), "leaked cgroup: %s/planted" % point, name)
        finally:
            os.rmdir(point + "/planted")
        case.equal(leaks_since(before), "")


def test_a_file_that_is_left_is_found():
    before = leaks.Snapshot()
    for place in ("/run", "/tmp", "/dev/shm", "/var/tmp"):
        path = "%s/planted-%d" % (place, os.getpid())
        with open(path, "w", encoding="ascii"):
            pass
        try:
            case.contains(leaks_since(before), "leaked file: " + path)
        finally:
            os.unlink(path)
    case.equal(leaks_since(before), "")


def test_a_runner_that_is_killed_leaves_nothing():
    before = leaks.Snapshot()
    for signo in (signal.SIGKILL, signal.SIGTERM):
        runner = subprocess.Popen([ROOT + "/tests/run", "system/1020"], stdout=subprocess.DEVNULL)
        case.until(lambda: glob.glob(helper.cgroup_trees()["v2"] + "/dt-*/drover-*"), 20, "the test to have cgroups")
        runner.send_signal(signo)
        runner.wait()
        case.until(lambda: not glob.glob(helper.cgroup_trees()["v2"] + "/dt-*"), 20, "its cgroups to be removed")
        case.until(lambda: leaks_since(before) == "", 20, "all that it made to be removed: " + leaks_since(before))


STOPPED_WHILE_IT_CLEANS_UP = """
import argparse, importlib.machinery, importlib.util, os, signal, sys
loader = importlib.machinery.SourceFileLoader("runner", sys.argv[1])
runner = importlib.util.module_from_spec(importlib.util.spec_from_loader("runner", loader))
sys.dont_write_bytecode = True
loader.exec_module(runner)
signal.signal(signal.SIGTERM, runner.stop)
runner.cpu_s = lambda name: os.kill(os.getpid(), signal.SIGTERM)  # is called when the test has ended
try:
    runner.System(sys.argv[2]).run(os.path.dirname(sys.argv[2]), 1, argparse.Namespace(slower=1))
except runner.Stopped:
    print("stopped")
"""


def test_a_runner_that_is_stopped_while_it_cleans_up_leaves_nothing():
    script = case.directory() + "/1234_test.py"
    with open(script, "w", encoding="ascii") as f:
        f.write("pass\n")
    out = subprocess.run(["python3", "-c", STOPPED_WHILE_IT_CLEANS_UP, ROOT + "/tests/run", script], stdout=subprocess.PIPE, check=True, text=True).stdout
    case.contains(out, "stopped")
    for name, point in helper.cgroup_trees().items():
        case.equal(glob.glob("%s/%s" % (point, os.path.basename(os.path.dirname(script)))), [], "cgroups of " + name)


def test_a_helper_that_does_not_start_leaves_no_cgroup():
    def cgroups():
        return [path for tree in helper.cgroup_trees().values() for path in glob.glob(tree + "/drover-*")]

    before = cgroups()
    case.raises(Exception, runs.Runs, "this is no configuration {")
    case.equal(cgroups(), before)


case.run(globals())
