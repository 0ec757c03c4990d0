# SPDX-License-Identifier: Apache-2.0
"""A program in the supervisor's place sends exec-helper requests that it must refuse."""
import glob
import os
import resource
import signal
import subprocess
import threading
import time
import uuid

from lib import build_dir, case, exe, helper, ipc, runs


def refused(r, text, spec=None, **fields):
    run, req = r.request(**fields)
    before = r.list()
    e = case.raises(ipc.RequestError, r.send, req, spec or exe.spec("true"))
    case.contains(str(e), text, str(fields))
    case.equal(r.list(), before, "runs after a refusal")
    return run


def fails(r, step, spec, **fields):
    run, req = r.request(**fields)
    r.send(req, spec)
    record = r.ended(run)
    case.equal((record["state"], record["step"]), (exe.EXE_FAILED, step), str(fields))
    r.reap(run)
    return record


def normal(r):
    case.equal(r.output("echo", ["well"]), "well\n")


def test_invalid_fields_are_refused():
    with runs.Runs() as r:
        refused(r, "the run's id is missing", run=bytes(16))
        run, req = r.request()
        case.contains(str(case.raises(ipc.RequestError, r.send, dict(req, alloc=bytes(16)), exe.spec("true"))), "alloc's id")
        for task in ("", ".", "..", "a/b", "/", "../../etc", "alloc", ".hidden", "x" * 129, "a b", "a\nb", "ä"):
            run, req = r.request()
            case.contains(str(case.raises(ipc.RequestError, r.send, dict(req, task=task), exe.spec("true"))), "task's name", task)
        for user in ("..", "-x", "a:b", "a/b", "a b", "x" * 128, "x" * 135, "4294967295", "99999999999"):
            e = case.raises(ipc.RequestError, r.start, "true", user=user)
            assert "is not a user name" in str(e) or "does not exist" in str(e), (user, str(e))
        for fields, text in (({"driver": "NONE"}, "a driver is missing"), ({"kill_signal": 0}, "kill signal"),
                             ({"kill_signal": 65}, "kill signal"), ({"log_max_files": 0}, "logs need"),
                             ({"log_max_files": 1001}, "logs need"), ({"log_max_bytes": 0}, "logs need"),
                             ({"csi_plugin": 1, "plugin": "../x"}, "plugin's name"),
                             ({"plugin": "x"}, "plugin's name"), ({"mounts": [{"kind": 0}]}, "of no kind"),
                             ({"mounts": [{"kind": 3}]}, "only for csi_plugin"),
                             ({"mounts": [{"kind": 1, "name": ""}]}, "is not configured"),
                             ({"mounts": [{"kind": 1, "name": "../../etc"}]}, "is not configured"),
                             ({"mounts": [{"kind": 2}]}, "volume's place")):
            refused(r, text, **fields)
        refused(r, "open the log directory", alloc=uuid.uuid4().bytes)
        normal(r)


def test_invalid_task_specs_are_refused():
    with runs.Runs() as r:
        good = exe.spec("true")
        for spec in (b"", b"x", good[:-1], good + b"\0", good + good, b"\0" * 4096, exe.spec_entry(2, "arg"),
                     good + exe.spec_entry(10, "x"), good + exe.spec_entry(8, "x") * 2, good + exe.spec_entry(9, "x"),
                     good + exe.spec_entry(3, "no-equals"), good + exe.spec_entry(3, "=x"),
                     good + exe.spec_entry(5, "relative"), good + exe.spec_entry(6, "name"), good + exe.spec_entry(7, "data"),
                     good + exe.spec_entry(6, "../../x") + exe.spec_entry(7, "d"), good + exe.spec_entry(6, ".new") + exe.spec_entry(7, "d"),
                     good + exe.spec_entry(1, b"a\0b"), good + b"\x02\0\0\0\xff\xff\xff\xff", good + exe.spec_entry(4, "dest"),
                     good + exe.spec_entry(2, "x") * 4096, good + exe.spec_entry(2, "x" * (32 << 20))):
            fails(r, exe.EXE_STEP_SPEC, spec)
        normal(r)


def test_invalid_descriptors_are_refused():
    with runs.Runs() as r:
        unsealed = os.memfd_create("x")
        os.write(unsealed, exe.spec("true"))
        directory = os.open("/etc", os.O_RDONLY)
        pipe = os.pipe()
        for fd in (unsealed, directory, pipe[0], os.open("/etc/passwd", os.O_RDONLY), os.open("/", os.O_PATH)):
            run, req = r.request()
            r.ipc.call("EXEC_TASK_START_REQ", runs.start_record(req), [fd])
            record = r.ended(run)
            case.equal((record["state"], record["step"]), (exe.EXE_FAILED, exe.EXE_STEP_SPEC))
            os.close(fd)
        os.close(pipe[1])
        normal(r)


def test_packets_that_break_the_protocol_end_exec_helper():
    with runs.Runs() as r:
        _, req = r.request()
        message = ipc.BY_NAME["EXEC_TASK_START_REQ"]
        body = ipc.encode(message.message, runs.start_record(req))
        fd = helper.memfd_sealed(exe.spec("true"))
        for raw, fds in ((body + b"\0", [fd]), (body, []), (body, [fd, fd]), (body[:-1], [fd]), (body + b"\0" * 40000, [fd])):
            r.ipc.send_raw(message.no, raw, fds)
            case.equal(r.helper.wait(), 1, "exec-helper's exit")
            r.restart()
            normal(r)
        os.close(fd)
        for name in ("FILE_ALLOC_DIR_MAKE_REQ", "EXEC_TASK_START_REP", "HB_BEAT_REQ"):
            r.ipc.send_raw(ipc.BY_NAME[name].no, b"")
            case.equal(r.helper.wait(), 1, "exec-helper's exit")
            r.restart()
        normal(r)


def test_disabled_drivers_and_denied_users():
    with runs.Runs("", dev=False) as r:
        refused(r, "driver raw_exec is not enabled")
        case.equal(r.output("echo", ["well"], driver="EXEC"), "well\n")
    config = 'plugin "raw_exec" { config { enabled = true  denied_host_uids = "0,1000-2000"  denied_host_gids = "38" } }'
    with runs.Runs(config, dev=False) as r:
        for user in ("", "root", "0", "1000", "1500", "2000"):
            refused(r, "is disallowed: uid", user=user)
        case.equal(r.output("id", ["-u"], user="2001"), "2001\n")
        refused(r, "is disallowed: gid 38 is denied", user="list")


def test_runs_of_other_instances_and_unknown_runs_are_refused():
    with runs.Runs() as r:
        case.raises(ipc.RequestError, r.ipc.call, "EXEC_RUN_REAP_REQ", {"run": bytes(16)})
        case.equal(r.ipc.call("EXEC_RUN_REAP_REQ", {"run": os.urandom(16)})["killed"], False)
        # The record of an ended run without a cgroup does not change when a start with its id is requested again.
        run, req = r.request()
        r.send(req, exe.spec("sh", ["-c", "exit 5"]))
        record = r.ended(run)
        for tree, path in r.places.cgroup_dirs().items():
            helper.remove_cgroup("%s/%s/%s" % (path, "tasks" if tree == "v2" else "runs", run.name))
        case.contains(str(case.raises(ipc.RequestError, r.send, req, exe.spec("true"))), "make the record")
        case.equal(r.record(run), record)
        case.equal(os.path.exists(r.places.run_cgroup(run.name)), False, "cgroups of a refused start")
        r.reap(run)
        # A link in place of a log directory or of the task's directory is not followed.
        for path, step in (("logs/%s", None), ("alloc/%s/web", exe.EXE_STEP_DIRS), ("alloc/%s/web/local", exe.EXE_STEP_DIRS)):
            alloc = r.make_alloc()
            at = "%s/%s" % (r.places.data, path % uuid.UUID(bytes=alloc))
            os.system("rm -rf %s" % at)
            os.symlink("/etc", at)
            if step is None:
                refused(r, "log directory", alloc=alloc)
            else:
                case.equal(fails(r, step, exe.spec("true"), alloc=alloc)["error"] in (20, 40), True)
        normal(r)


def lookups(r):
    """Returns the cgroups of children that look up users."""
    return glob.glob(r.places.cgroup_dirs()["v2"] + "/exec/lookup*")


def wait_swept(r, hanging=0):
    """Waits until only the cgroups of hanging look-ups are left. One that was busy when its look-up ended is removed by the next
    look-up."""
    def swept():
        if len(lookups(r)) > hanging:
            case.raises(ipc.RequestError, r.start, "true", user="nobody-has-this-name")
        return len(lookups(r)) == hanging
    case.until(swept, 10, "no more than %d look-ups to be left" % hanging)


def open_files(pid):
    return sorted(int(fd) for fd in os.listdir("/proc/%d/fd" % pid))


def test_a_start_that_runs_out_of_descriptors_fails_and_leaves_nothing():
    with runs.Runs() as r:
        normal(r)
        for run in r.runs:
            r.reap(run)
        before = open_files(r.helper.pid)
        free = next(fd for fd in range(1024) if fd not in before)
        soft, hard = resource.prlimit(r.helper.pid, resource.RLIMIT_NOFILE)
        said, works = set(), False
        for limit in range(free + 1, free + 40):
            for user in ("", "daemon"):
                run, req = r.request(user=user)
                resource.prlimit(r.helper.pid, resource.RLIMIT_NOFILE, (limit, hard))
                try:
                    r.send(req, exe.spec("true"))
                    works = True
                except ipc.RequestError as e:
                    case.equal(works and user == "", False, "a start failed with more descriptors than another needed: %s" % e)
                    said.add(str(e))
                finally:
                    resource.prlimit(r.helper.pid, resource.RLIMIT_NOFILE, (soft, hard))
                case.until(lambda: open_files(r.helper.pid) == before, 5, "descriptors after a start with at most %d" % limit)
                if run.name in r.list():
                    case.equal(r.ended(run)["state"], exe.EXE_ENDED)
                    r.reap(run)
                case.equal(r.list(), [], "runs after a start with at most %d descriptors" % limit)
        wait_swept(r)
        print("    " + "\n    ".join(sorted(said)))
        case.equal([s for s in said if "Too many open files" not in s], [], "the errors")
        assert works and len(said) > 5, said
        normal(r)


def test_a_start_that_runs_out_of_pids_fails_and_leaves_nothing():
    with runs.Runs() as r:
        normal(r)
        dirs = r.places.cgroup_dirs()
        files = [f for f in (dirs.get("pids", "") + "/exec/pids.max", dirs["v2"] + "/exec/pids.max") if os.path.exists(f)]
        if not files:
            case.skip("no pids controller")
        for user in ("", "daemon"):
            with open(files[0], "w", encoding="ascii") as f:
                f.write("0")
            refused(r, "Resource temporarily unavailable", user=user)
            with open(files[0], "w", encoding="ascii") as f:
                f.write("max")
        case.equal(r.output("id", ["-u"], user="daemon"), "1\n")


def test_look_ups_that_hang_in_the_kernel_block_no_others():
    if not os.path.exists("/dev/fuse"):
        case.skip("no /dev/fuse")
    point, stuck = case.directory(), []
    with runs.Runs() as r:
        exec_cgroup = r.places.cgroup_dirs()["v2"] + "/exec"
        fuse = subprocess.Popen([build_dir() + "/tests/fuse_hang", point], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        case.equal(fuse.stdout.readline(), b"mounted\n", "fuse_hang")
        try:
            for i, user in enumerate(("daemon", "bin", "sys")):
                # Let its next child hang in the kernel, where no signal ends it.
                cgroup = "%s/lookup-%d" % (exec_cgroup, i)
                os.mkdir(cgroup)
                stuck.append(subprocess.Popen(["/bin/sh", "-c", "echo 0 >%s/cgroup.procs; exec stat -f %s" % (cgroup, point)],
                                              stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
                case.equal(fuse.stdout.readline(), b"statfs\n", "the request that hangs")
                # A look-up that waited for the one that hangs would never end.
                case.equal(r.output("id", ["-un"], user=user), user + "\n")
                wait_swept(r, i + 1)
        finally:
            fuse.kill()
            fuse.wait()
            helper.umount(point, 2)
            for p in stuck:
                p.wait()
        case.equal(r.output("id", ["-un"], user="man"), "man\n")
        wait_swept(r)


def test_a_look_up_that_hangs_is_killed_at_its_deadline():
    # The last test, because it moves this process into a new mount namespace.
    case.equal(helper.libc.unshare(0x00020000), 0, "unshare")
    helper.mount(None, "/", None, helper.MS_REC | helper.MS_PRIVATE)
    with runs.Runs() as r:
        normal(r)
        fifo = case.directory() + "/passwd"
        os.mkfifo(fifo)
        helper.mount(fifo, "/etc/passwd", None, 4096)
        began = time.monotonic()
        signals = [threading.Timer(0.2 * i, r.helper.kill, [signal.SIGTERM]) for i in range(1, 5)]
        for timer in signals:
            timer.start()
        refused(r, "took longer than 2000 ms", user="daemon")
        for timer in signals:
            timer.join()
        took = time.monotonic() - began
        assert 1.9 < took, took
        normal(r)  # the result for root is cached
        helper.umount("/etc/passwd")
        wait_swept(r)
        case.equal(r.output("id", ["-u"], user="daemon"), "1\n")


case.run(globals())
