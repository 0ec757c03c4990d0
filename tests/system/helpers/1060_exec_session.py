# SPDX-License-Identifier: Apache-2.0
"""exec-helper and executor alone: sessions inside a running task: commands with pipes or a terminal, and files."""
import errno
import fcntl
import glob
import os
import signal
import struct
import termios
import uuid

from lib import agent, build_dir, case, exe, ipc, runs

SECONDS = 20  # for operations that take milliseconds on an idle machine
EXEC = {"driver": "EXEC_DRIVER_EXEC"}


def check(value, what):
    if not value:
        raise AssertionError(what)


def sleeper(r, driver="RAW_EXEC", **fields):
    run = r.start("sleep", ["1000"], driver=driver, **fields)
    r.wait_state(run, exe.EXE_RUNNING, seconds=SECONDS)
    return run


def end(r, run):
    with r.connect(run) as c:
        c.send(exe.EXE_STOP, signal=signal.SIGKILL, timeout_ms=0)
        c.wait_exited()
    r.reap(run)


def results(session):
    """Returns stdout, stderr and the exit code."""
    out, err = session.read(1), session.read(2)
    return out.decode(), err.decode(), session.wait_exited()["exit_code"]


def test_a_command_has_pipes_and_an_exit_code():
    with runs.Runs() as r:
        run = sleeper(r)
        with r.session(run, "sh", ["-c", "read line; echo got $line; echo bad >&2; pwd; exit 7"]) as s:
            s.write(b"hello\n")
            case.equal(results(s), ("got hello\n%s/alloc/%s/web\n" % (r.places.data, run.alloc), "bad\n", 7))
        with r.session(run, "sh", ["-c", "kill -TERM $$"]) as s:
            case.equal(s.wait_exited()["exit_signal"], signal.SIGTERM)
        with r.session(run, "cat") as s:
            s.close_fd(0)
            case.equal(results(s), ("", "", 0), "cat without input")
        end(r, run)


INSIDE = r"""
for ns in mnt ipc pid net uts; do echo $ns $(readlink /proc/self/ns/$ns) $(readlink /proc/1/ns/$ns 2>/dev/null); done
grep -E '^(NoNewPrivs|Seccomp|CapBnd|CapAmb)' /proc/self/status
id -u; pwd; ls /; echo $MARK; echo parent $PPID
ls -l /proc/self/fd | grep -c ' -> '
"""


def test_a_session_has_the_namespaces_and_environment_of_its_task():
    """A script prints the same environment, ids and namespaces in a session as in the task itself."""
    with runs.Runs() as r:
        run = r.start("sh", ["-c", INSIDE + "exec sleep 1000"], driver="EXEC", env=["MARK=1"])
        r.wait_state(run, exe.EXE_RUNNING, seconds=SECONDS)
        case.until(lambda: "\n" in r.log(run).partition("parent")[2][3:], SECONDS, "the output of the task")
        task = r.log(run)
        with r.session(run, "sh", ["-c", INSIDE], env=["MARK=1"], **EXEC) as s:
            out, err, code = results(s)
        case.equal((err, code), ("", 0))
        # The session's parent is outside of the pid namespace; the task's parent is pid 1 inside.
        case.equal(out.replace("parent 0", "parent 1"), task)
        pid = r.record(run)["task_pid"]
        for ns in ("mnt", "ipc", "pid"):
            case.contains(out, "%s %s" % (ns, os.readlink("/proc/%d/ns/%s" % (pid, ns))))
        case.contains(out, "CapBnd:\t0000000020000420")
        case.contains(out, "NoNewPrivs:\t1\nSeccomp:\t2")
        # /proc/PID/cgroup of a session: below the run's own.
        with r.session(run, "sleep", ["1000"], **EXEC) as s:
            inside = case.until(lambda: session_pids(r, run), SECONDS, "the session")
            case.equal(len(inside), 1)
            for tree, path in r.places.cgroup_dirs().items():
                if tree not in ("v2", "cpuset"):  # the task has no reserved cores
                    case.until(lambda at=path: inside[0] in read_pids("%s/runs/%s/cgroup.procs" % (at, run.name)),
                               SECONDS, "the session in " + tree)
        end(r, run)


def session_pids(r, run):
    """Returns the pids in all cgroups of the run's sessions."""
    return [pid for path in glob.glob("%s/session-*/cgroup.procs" % r.places.run_cgroup(run.name)) for pid in read_pids(path)]


def read_pids(path):
    try:
        with open(path, encoding="ascii") as f:
            return f.read().split()
    except OSError:
        return []


def test_a_terminal_has_a_size_and_sends_signals():
    with runs.Runs() as r:
        for driver in ("RAW_EXEC", "EXEC"):
            run = sleeper(r, driver)
            script = "trap 'stty size' WINCH; tty; ls -l $(tty); echo ready; while :; do sleep 0.1; done"
            with r.session(run, "sh", ["-c", script], tty=True, driver="EXEC_DRIVER_" + driver) as s:
                case.equal(len(s.fds), 1, "descriptors of a terminal")
                out = s.read(until=b"ready\r\n").decode()
                case.contains(out, "/dev/pts/")
                case.contains(out, "nobody" if driver == "EXEC" else "root")
                fcntl.ioctl(s.fds[0], termios.TIOCSWINSZ, struct.pack("HHHH", 33, 77, 0, 0))
                s.read(until=b"33 77\r\n")
                s.write(b"\x03")
                case.equal(s.wait_exited()["exit_signal"], signal.SIGINT, driver)
            end(r, run)


def test_a_terminal_is_opened_as_the_tasks_user():
    """With a volume at /dev the task chooses what ptmx is, even a link to a file that only root may open."""
    volume = case.directory()
    with open(volume + "/roots", "wb"):
        os.chmod(volume + "/roots", 0o600)
    os.chmod(volume, 0o755)
    with runs.Runs('client { host_volume "v" { path = "%s" } }' % volume) as r:
        run = sleeper(r, "EXEC", dests=["/dev"], mounts=[{"kind": "EXEC_MOUNT_HOST_VOLUME", "name": "v"}])
        for link, error in (("roots", errno.EACCES), ("gone", errno.ENOENT), ("/proc/self/fd/36", errno.ENOENT)):
            os.symlink(link, volume + "/ptmx")
            e = case.raises(exe.Error, r.session, run, "true", tty=True, **EXEC)
            case.contains(str(e), "'step': %d, 'error': %d," % (exe.EXE_STEP_TERMINAL, error), link)
            os.unlink(volume + "/ptmx")
        end(r, run)


def test_a_client_that_disconnects_ends_its_session():
    """Also processes that ignore the hang-up, or that have called setsid()."""
    with runs.Runs() as r:
        run = sleeper(r)
        for tty in (False, True):
            s = r.session(run, "sh", ["-c", "trap '' HUP; setsid sleep 1000 & echo up; wait"], tty=tty)
            s.read(0 if tty else 1, until=b"up")
            check(len(session_pids(r, run)) >= 2, "processes of the session")
            s.close()
            case.until(lambda: not session_pids(r, run), SECONDS, "the end of the session")
        case.equal(r.record(run)["state"], exe.EXE_RUNNING, "the task")
        end(r, run)


def test_background_processes_of_a_session_end_with_it():
    with runs.Runs() as r:
        run = sleeper(r)
        with r.session(run, "sh", ["-c", "setsid sleep 1000 & exit 3"]) as s:
            case.equal(results(s), ("", "", 3))
        end(r, run)


def test_a_session_ends_with_its_task():
    with runs.Runs() as r:
        for driver in ("RAW_EXEC", "EXEC"):
            run = sleeper(r, driver)
            with r.session(run, "sleep", ["1000"], driver="EXEC_DRIVER_" + driver) as s:
                end(r, run)
                case.equal(s.wait_exited()["exit_signal"], signal.SIGKILL)
            e = case.raises(ipc.RequestError, r.session, run, "true")
            case.equal(e.code, -errno.ENOENT, str(e))


def test_a_command_that_cannot_start_is_reported():
    with runs.Runs() as r:
        run = sleeper(r, "EXEC")
        for command, error in (("no-such-command", errno.ENOENT), ("/etc/passwd", errno.EACCES), ("/tmp", errno.EACCES)):
            e = case.raises(exe.Error, r.session, run, command, **EXEC)
            case.contains(str(e), "'step': %d, 'error': %d" % (exe.EXE_STEP_COMMAND, error))
        e = case.raises(exe.Error, r.session, run, None, **EXEC)
        case.contains(str(e), "'step': %d" % exe.EXE_STEP_SPEC)
        e = case.raises(ipc.RequestError, r.session, run, "true", user="root", **EXEC)
        case.equal(e.code, -errno.EPERM, str(e))
        end(r, run)


def test_the_sixteenth_session_is_refused_but_a_file_is_still_written():
    with runs.Runs() as r:
        run = sleeper(r)
        sessions = [r.session(run, "sleep", ["1000"]) for _ in range(15)]
        e = case.raises(ipc.RequestError, r.session, run, "true")
        case.contains(str(e), 'task "web" has 15 sessions already')
        case.equal(r.replace(run, {"token": b"new"}), 0)
        sessions.pop(7).close()
        case.until(lambda: try_session(r, run), SECONDS, "a session to be possible again")
        for s in sessions:
            s.close()
        end(r, run)


def try_session(r, run):
    try:
        with r.session(run, "true") as s:
            return s.wait_exited()["exit_code"] == 0
    except ipc.RequestError as e:
        case.contains(str(e), "sessions already")
        return False


def test_many_sessions_one_after_the_other_leave_nothing():
    with runs.Runs() as r:
        run = sleeper(r)
        for i in range(40):
            with r.session(run, "echo", [str(i)]) as s:
                case.equal(results(s), ("%d\n" % i, "", 0))
        check(len([d for d in os.listdir("%s/tasks/%s" % (r.places.cgroup_dirs()["v2"], run.name))
                       if d.startswith("session-")]) <= 15, "places")
        end(r, run)
        case.equal(r.list(), [])


# --- the task's process is proven before a session enters it ---

def test_a_session_is_refused_if_the_record_is_wrong():
    """exec-helper refuses a session if the record has a pid of another run or of no run, another start time, boot or alloc."""
    with runs.Runs() as r:
        run, other = sleeper(r), sleeper(r)
        path = "%s/run/%s.rec" % (r.places.data, run.name)
        with open(path, "rb") as f:
            whole = f.read()
        good, stranger = exe.parse_record(whole), r.record(other)
        self_ticks = int(open("/proc/self/stat", encoding="ascii").read().rpartition(")")[2].split()[19])
        for change in ({"task_pid": stranger["task_pid"], "task_start_ticks": stranger["task_start_ticks"]},
                       {"task_pid": os.getpid(), "task_start_ticks": self_ticks},
                       {"task_start_ticks": good["task_start_ticks"] + 1},
                       {"boot_id": str(uuid.uuid4())}, {"state": exe.EXE_SETTING_UP}, {"state": exe.EXE_ENDED},
                       {"alloc": os.urandom(16)}, {"run": os.urandom(16)}, {"sum": 1}):
            write_record(path, {**good, **change}, "sum" in change)
            e = case.raises(ipc.RequestError, r.session, run, "true")
            check(e.code in (-errno.ESRCH, -errno.EPERM, -errno.EBADMSG), "%r: %s" % (change, e))
        with open(path, "wb") as f:
            f.write(whole)
        with r.session(run, "true") as s:
            case.equal(s.wait_exited()["exit_code"], 0)
        end(r, run)
        end(r, other)


def write_record(path, fields, wrong_sum):
    data = exe.RECORD.pack(**{**fields, "boot_id": fields["boot_id"].encode()})[:-8]
    with open(path, "r+b") as f:
        f.write(data + struct.pack("<Q", 1 if wrong_sum else exe.fnv1a(data)))


def test_a_session_has_the_privileges_of_its_task_whatever_the_request_says():
    """A session in a task with the host's pid namespace got CAP_KILL if its request claimed a private one, and could kill any process."""
    config = 'plugin "exec" { config { allow_host_pid = true\n allow_host_ipc = true } }'
    with runs.Runs(config) as r:
        for modes in ({"pid_mode": "EXEC_NS_HOST"}, {"ipc_mode": "EXEC_NS_HOST"}):
            run = sleeper(r, "EXEC", **modes)
            with r.session(run, "sh", ["-c", "grep ^Cap /proc/self/status; kill -0 %d; echo $?" % r.helper.pid],
                           cap_add=1 << 0 | 1 << 5, **EXEC) as s:
                out = results(s)[0].split()
            case.equal([int(mask, 16) for mask in out[1:10:2]], [0] * 5, "capabilities of a session in a task with %s" % modes)
            case.equal(out[10], "1", "kill -0 of a process of root")
            with r.session(run, "/usr/bin/python3", ["-c", "import ctypes; l = ctypes.CDLL(None, use_errno=True)\n"
                                                     "l.ptrace(16, 1, 0, 0); print(ctypes.get_errno())"], **EXEC) as s:
                case.equal(results(s), ("1\n", "", 0), "ptrace")
            for wrong in ({"pid_mode": "EXEC_NS_HOST"}, {"ipc_mode": "EXEC_NS_HOST"}):
                e = case.raises(ipc.RequestError, r.session, run, "true", **EXEC, **wrong)
                case.equal(e.code, -errno.EINVAL, str(e))
            end(r, run)
        # A task of raw_exec gets no session of exec, also if its record is of an earlier version, which has no driver.
        run = sleeper(r)
        e = case.raises(ipc.RequestError, r.session, run, "true", **EXEC)
        case.contains(str(e), "the run is another driver's")
        write_record("%s/run/%s.rec" % (r.places.data, run.name), {**r.record(run), "driver": 0}, False)
        e = case.raises(exe.Error, r.session, run, "true", **EXEC)
        case.contains(str(e), "'step': %d, 'error': %d" % (exe.EXE_STEP_NAMESPACE, errno.EPERM))
        end(r, run)


def test_a_session_by_a_disabled_driver_is_refused():
    """A session by raw_exec would be an unconfined process of the host, whatever its task is."""
    with runs.Runs("", dev=False) as r:
        run = sleeper(r, "EXEC")
        for user in ("", "root", "nobody"):
            e = case.raises(ipc.RequestError, r.session, run, "true", driver="EXEC_DRIVER_RAW_EXEC", user=user)
            case.contains(str(e), "driver raw_exec is not enabled")
        end(r, run)


def test_requests_that_no_session_may_make_are_refused():
    with runs.Runs(config='plugin "exec" { config { enabled = false } }') as r:
        run = sleeper(r)
        e = case.raises(ipc.RequestError, r.session, run, "true", lease_ms=1)
        case.equal(e.code, -errno.EINVAL, str(e))
        e = case.raises(ipc.RequestError, lambda: r.session(run, "true", kind="NONE"))
        case.equal(e.code, -errno.EINVAL, str(e))
        end(r, run)


# --- files ---

def test_a_file_is_replaced_as_the_tasks_user():
    with runs.Runs() as r:
        for driver, user, uid in (("EXEC", "", 65534), ("RAW_EXEC", "daemon", 1), ("RAW_EXEC", "", 0)):
            run = r.start("sleep", ["1000"], driver=driver, user=user, secrets={"token": b"old"})
            r.wait_state(run, exe.EXE_RUNNING, seconds=SECONDS)
            directory = r.secrets(run) + "/"
            held = open(directory + "token", "rb")
            fields = {"driver": "EXEC_DRIVER_" + driver, "user": user}
            case.equal(r.replace(run, {"token": b"new\0", "other": b"x" * 100000}, **fields), 0)
            with open(directory + "token", "rb") as f, held:
                case.equal((f.read(), held.read()), (b"new\0", b"old"), "new and old contents")
            for name in ("token", "other"):
                st = os.stat(directory + name)
                case.equal((st.st_uid, oct(st.st_mode)), (uid, "0o100600"))
            # What the task has put at that path is replaced, and nothing is written through it.
            os.unlink(directory + "token")
            os.mkdir(directory + "token")
            open(directory + "token/inside", "wb").close()
            os.unlink(directory + "other")
            os.symlink("/etc/passwd", directory + "other")
            case.equal(r.replace(run, {"token": b"3", "other": b"4"}, **fields), 0)
            with open(directory + "token", "rb") as f, open(directory + "other", "rb") as g:
                case.equal((f.read(), g.read()), (b"3", b"4"))
            check(not os.path.islink(directory + "other"), "a link is there still")
            end(r, run)


def test_a_file_is_written_into_the_tasks_local_directory():
    """At the start and later; links that the task made there are not followed."""
    with runs.Runs() as r:
        outside = r.places.data + "/outside"
        for driver, user, uid in (("EXEC", "", 65534), ("RAW_EXEC", "daemon", 1), ("RAW_EXEC", "", 0)):
            alloc = r.make_alloc()
            path = "%s/alloc/%s/web/local/token" % (r.places.data, uuid.UUID(bytes=alloc))
            fields = {"driver": "EXEC_DRIVER_" + driver, "user": user}
            for step in ("absent", "link", "directory"):
                if step == "link":
                    os.unlink(path)
                    os.symlink(outside, path)
                elif step == "directory":
                    os.unlink(path)
                    os.makedirs(path + "/x")
                run = r.start("sleep", ["1000"], driver=driver, user=user, alloc=alloc, secrets={"local/token": b"old"})
                r.wait_state(run, exe.EXE_RUNNING, seconds=SECONDS)
                for contents in (b"old", b"new"):
                    with open(path, "rb") as f:
                        case.equal(f.read(), contents)
                    st = os.lstat(path)
                    case.equal((st.st_uid, oct(st.st_mode)), (uid, "0o100600"), step)
                    if contents == b"old":
                        case.equal(r.replace(run, {"local/token": b"new"}, **fields), 0)
                end(r, run)
        case.equal(os.path.exists(outside), False, "a file outside")
        run = sleeper(r)
        for name in ("local/../x", "local/", "../local/x", "local//x"):
            case.raises(exe.Error, r.replace, run, {name: b"x"})
        end(r, run)


def test_a_file_is_not_written_where_the_tasks_user_may_not_write():
    """Neither at the start nor later: the file is written with the privileges of the task's user."""
    with runs.Runs() as r:
        for driver, user in (("EXEC", ""), ("RAW_EXEC", "daemon")):
            alloc = r.make_alloc()
            directory = "%s/alloc/%s/web/local/roots" % (r.places.data, uuid.UUID(bytes=alloc))
            os.mkdir(directory, 0o755)
            record = r.ended(r.start("true", driver=driver, user=user, alloc=alloc, secrets={"local/roots/token": b"x"}))
            case.equal((record["step"], record["error"]), (exe.EXE_STEP_SECRETS, errno.EACCES), driver)
            case.equal(os.listdir(directory), [], driver)


def test_a_file_that_cannot_be_written_is_reported():
    with runs.Runs() as r:
        run = r.start("sleep", ["1000"], driver="EXEC")
        r.wait_state(run, exe.EXE_RUNNING, seconds=SECONDS)
        os.chmod(r.secrets(run), 0o500)
        e = case.raises(exe.Error, r.replace, run, {"token": b"x"}, **EXEC)
        case.contains(str(e), "'step': %d, 'error': %d" % (exe.EXE_STEP_SECRETS, errno.EACCES))
        end(r, run)


def test_a_session_has_no_other_descriptors_or_privileges():
    with runs.Runs() as r:
        run = sleeper(r)
        with r.session(run, os.path.join(build_dir(), "drover-executor"), ["--describe"]) as s:
            case.contains(results(s)[0], "executor")
        with r.session(run, "sh", ["-c", "ls -l /proc/self/fd | grep -- '->' | wc -l; cut -d' ' -f6 /proc/self/stat; echo $$"]) as s:
            lines = results(s)[0].split()
            case.equal(lines[0], "4", "descriptors of ls: 0, 1, 2 and the directory that it lists")
            case.equal(lines[1], lines[2], "its own session")
        with r.session(run, "cat") as s:
            # The executors of the task and of the session, after those of earlier sessions have ended.
            executors = case.until(lambda: len(found := agent.children(r.helper.pid)) == 2 and found, SECONDS, "two executors")
            for pid in executors:
                with open("/proc/%s/status" % pid, encoding="ascii") as f:
                    status = f.read()
                case.contains(status, "Uid:" + 4 * ("\t%d" % r.places.uid["executor"]) + "\n")
                case.contains(status, "CapPrm:\t0000000000000020")
                case.contains(status, "Seccomp:\t2")
                case.equal(os.readlink("/proc/%s/root" % pid).rsplit("/", 2)[1], "logs")
            s.close_fd(0)
            case.equal(s.wait_exited()["exit_code"], 0)
        end(r, run)


case.run(globals())
