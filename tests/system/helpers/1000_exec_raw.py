# SPDX-License-Identifier: Apache-2.0
"""exec-helper and executor alone: raw_exec, output, exit codes, signals, limits."""
import ctypes
import errno
import os
import re
import resource
import signal
import struct
import subprocess
import time
import traceback
import uuid

from lib import build_dir, case, exe, helper, ipc, runs


def test_a_task_runs_and_its_exit_code_is_recorded():
    with runs.Runs() as r:
        run = r.start("sh", ["-c", "echo out; echo err >&2; exit 7"])
        record = r.ended(run)
        case.equal((record["state"], record["exit_code"], record["exit_signal"]), (exe.EXE_ENDED, 7, 0))
        case.equal((r.log(run), r.log(run, "stderr")), ("out\n", "err\n"))
        case.equal(r.list(), [run.name])
        case.equal(r.reap(run), False, "killed")
        case.equal(r.list(), [])
        case.equal(r.reap(run), False, "reap of a run that does not exist")


def test_the_signal_that_ended_a_task_is_recorded():
    with runs.Runs() as r:
        record = r.ended(r.start("sh", ["-c", "kill -USR1 $$"]))
        case.equal((record["exit_code"], record["exit_signal"]), (0, signal.SIGUSR1))


def test_a_tasks_oom_score_adj_is_the_requested_one():
    with runs.Runs() as r:
        for score in (0, 1, 1000):
            run = r.start("cat", ["/proc/self/oom_score_adj"], oom_score_adj=score)
            case.equal(r.ended(run)["exit_code"], 0)
            case.equal(r.log(run), "%d\n" % score, "oom_score_adj")


CLEAN = r"""
ls -l /proc/self/fd | sed 's/.*[0-9] \([0-9]* ->\)/fd \1/' | grep '^fd'
grep -E '^(Sig(Blk|Ign|Cgt)|Umask|NoNewPrivs|Seccomp|Cap)' /proc/self/status
echo "sid $(ps -o sid= -p $$ | tr -d ' ') pid $$"
echo "nice $(nice) oom $(cat /proc/self/oom_score_adj) nofile $(ulimit -Sn) of $(ulimit -Hn)"
pwd
env | sort
echo opened > /dev/stdout
"""


def test_a_task_starts_with_default_signals_descriptors_and_environment():
    with runs.Runs() as r:
        run = r.start("sh", ["-c", CLEAN], env=["EXTRA=1", "HOME=/elsewhere"])
        case.equal(r.ended(run)["exit_code"], 0, r.log(run, "stderr"))
        out = r.log(run)
        fds = re.findall(r"^fd (\d+) ->", out, re.M)
        case.equal([fd for fd in fds if int(fd) > 2], ["3"], "descriptors of ls itself in\n" + out)
        for line in ("SigBlk:\t0000000000000000", "SigIgn:\t0000000000000000", "Umask:\t0022", "NoNewPrivs:\t0",
                     "Seccomp:\t0", "nice 0 oom 0 nofile %d of %d" % ((resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2), "opened"):
            case.contains(out, line + "\n")
        sid, pid = re.search(r"sid (\d+) pid (\d+)", out).groups()
        case.equal(sid, pid, "session")
        case.contains(out, "%s/alloc/%s/web\n" % (r.places.data, run.alloc))
        names = sorted(re.findall(r"^([A-Za-z_]+)=", out, re.M))
        case.equal([n for n in names if n not in ("_", "OLDPWD")],
                   ["EXTRA", "HOME", "LOGNAME", "PATH", "PWD", "SHELL", "USER"], "environment")
        case.contains(out, "HOME=/elsewhere\n")
        case.contains(out, "USER=root\n")


def test_a_user_is_looked_up_with_its_groups():
    with runs.Runs() as r:
        case.equal(r.output("sh", ["-c", "id -u; id -g; echo $HOME; grep CapEff /proc/self/status; echo x > /dev/stdout"],
                            user="daemon").split(), ["1", "1", "/usr/sbin", "CapEff:", "0000000000000000", "x"])
        alloc = r.make_alloc()
        case.equal(r.output("sh", ["-c", "id -u; id -g; id -G"], user="4711", alloc=alloc).split(),
                   ["4711", "65534", "65534", str(runs.group_of(alloc))])
        # A uid without a passwd entry does not get the group with the same number.
        users, groups = ({int(line.split(":")[2]) for line in open(f, encoding="utf-8")} for f in ("/etc/passwd", "/etc/group"))
        number = min(groups - users)
        case.equal(r.output("sh", ["-c", "id -u; id -g"], user=str(number)).split(), [str(number), "65534"])
        e = case.raises(ipc.RequestError, r.start, "true", user="no-such-user")
        case.contains(str(e), 'user "no-such-user" does not exist')
        case.equal(len(r.list()), 3, "runs")


def test_a_start_that_failed_hands_out_no_pidfd():
    """The child that could not exec has been reaped, so another process may have its pid now."""
    with runs.Runs() as r:
        freezer = r.places.cgroup_dirs()["v2"] + "/exec/cgroup.freeze"

        def freeze(word):
            with open(freezer, "w", encoding="ascii") as f:
                f.write(word)

        def connected():
            try:
                return exe.Connection(r.places, run.name, before_hello=lambda: freeze("0"))
            except (FileNotFoundError, ConnectionRefusedError):  # not bound yet, or does not listen yet
                return None

        r.output("true")  # lets exec-helper look up root now: later the child that does so would be frozen too
        run, req = r.request()
        spec = helper.memfd_sealed(exe.spec("no-such-command"))
        freeze("1")
        try:
            serial = r.ipc.send("EXEC_TASK_START_REQ", runs.start_record(req), [spec])
            c = case.until(connected, 10, "the run's socket")
        finally:
            freeze("0")
            os.close(spec)
        r.ipc.answer(serial)
        r.runs.append(run)
        case.equal((c.hello["state"], c.hello.fds), (exe.EXE_FAILED, []), "state and descriptors of HELLO")
        c.close()
        r.ended(run)


def test_commands_are_found_in_the_task_directory_first():
    with runs.Runs() as r:
        alloc = r.make_alloc()
        base = "%s/alloc/%s/web" % (r.places.data, uuid.UUID(bytes=alloc))
        for path, text in ((base + "/true", "task"), (base + "/local/true", "local")):
            with open(path, "w", encoding="ascii") as f:
                f.write("#!/bin/sh\necho %s\n" % text)
            os.chmod(path, 0o755)
        case.equal(r.output("true", alloc=alloc), "local\n")
        os.unlink(base + "/local/true")
        case.equal(r.output("true", alloc=alloc), "local\ntask\n", "the log of both runs")
        record = r.ended(r.start("no-such-command"))
        case.equal((record["state"], record["step"], record["error"]), (exe.EXE_FAILED, exe.EXE_STEP_COMMAND, 2))
        record = r.ended(r.start("/etc/passwd"))
        case.equal((record["step"], record["error"]), (exe.EXE_STEP_COMMAND, 13))
        record = r.ended(r.start("true", cwd="/no-such-directory"))
        case.equal((record["step"], record["error"]), (exe.EXE_STEP_CWD, 2))


def test_processes_that_a_task_leaves_behind_are_killed():
    with runs.Runs() as r:
        run = r.start("sh", ["-c", "setsid sleep 1000 & setsid sh -c 'sleep 1000 & sleep 1000' & sleep 0.1; exit 3"])
        case.equal(r.ended(run)["exit_code"], 3)
        with open(r.places.run_cgroup(run.name) + "/cgroup.events", encoding="ascii") as f:
            case.contains(f.read(), "populated 0")


def test_logs_rotate_and_keep_lines_whole():
    with runs.Runs() as r:
        run = r.start("sh", ["-c", "i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done"], log_max_files=3,
                      log_max_bytes=4096)
        r.ended(run)
        base = "%s/logs/%s" % (r.places.data, run.alloc)
        files = sorted(f for f in os.listdir(base) if f.startswith("web.stdout."))
        case.equal(len(files), 3, "files")
        case.equal(sorted(f for f in os.listdir(base) if f not in files), sorted(".%s.times" % f for f in files), "files of times")
        text = ""
        for name in sorted(files, key=lambda f: int(f.rsplit(".", 1)[1])):
            st = os.stat(os.path.join(base, name))
            assert 0 < st.st_size <= 4096, (name, st.st_size)
            case.equal((st.st_mode & 0o7777, st.st_uid, st.st_gid),
                       (0o644, r.places.uid["executor"], r.places.uid["drover"]), name)
            with open(os.path.join(base, name), encoding="ascii") as f:
                text += f.read()
                assert text.endswith("\n"), name
        numbers = [int(n) for n in re.findall(r"^line (\d+)$", text, re.M)]
        case.equal(numbers, list(range(numbers[0], 5000)), "lines")


STEALS = """
import os
r = os.open("/proc/self/fd/1", os.O_RDONLY | os.O_NONBLOCK)
for i in range(20000):
    os.write(1, b"x")
    try:
        os.read(r, 10)
    except BlockingIOError:
        pass
"""


def test_a_task_may_read_its_own_output():
    with runs.Runs() as r:
        for driver in ("RAW_EXEC", "EXEC"):
            record = r.ended(r.start("python3", ["-c", STEALS], driver=driver), seconds=30)
            case.equal((record["state"], record["exit_code"], record["exit_signal"], record["flags"]), (exe.EXE_ENDED, 0, 0, 0))


def test_a_second_run_of_a_task_appends_to_its_logs():
    with runs.Runs() as r:
        alloc = r.make_alloc()
        first = r.start("echo", ["one"], alloc=alloc)
        r.ended(first)
        second = r.start("echo", ["two"], alloc=alloc)
        r.ended(second)
        case.equal(r.log(second), "one\ntwo\n")


def test_a_task_name_of_the_greatest_length_is_accepted():
    with runs.Runs() as r:
        task = "n" * 128
        for driver in ("RAW_EXEC", "EXEC"):
            run = r.start("echo", ["one"], driver=driver, task=task)
            case.equal(r.ended(run)["exit_code"], 0)
            case.equal(r.log(run), "one\n")
        e = case.raises(ipc.RequestError, r.start, "true", task=task + "n", alloc=r.make_alloc())
        case.contains(str(e), "cannot be a task's name")


def test_a_task_without_logs_writes_no_log_files():
    with runs.Runs() as r:
        run = r.start("sh", ["-c", "w=$(readlink /proc/$$/fd/1); echo $w > local/where"], logs_disabled=True)
        case.equal(r.ended(run)["exit_code"], 0)
        case.equal(os.listdir("%s/logs/%s" % (r.places.data, run.alloc)), [])
        with open("%s/alloc/%s/web/local/where" % (r.places.data, run.alloc), encoding="ascii") as f:
            case.equal(f.read(), "/dev/null\n")


def test_secrets_belong_to_the_tasks_user():
    with runs.Runs() as r:
        out = r.output("sh", ["-c", "cat secrets/token; stat -c '%U %a' secrets/ secrets/token"], user="daemon",
                       secrets={"token": b"sesame\n"})
        case.equal(out, "sesame\ndaemon 700\ndaemon 600\n")


def test_files_in_its_secrets_do_not_stop_the_next_start_of_a_task():
    with runs.Runs() as r:
        alloc = r.make_alloc()
        for plant in ("mkdir -p secrets/.new/x", "rm secrets/token; mkdir -p secrets/token/x",
                      "rm secrets/token; ln -s /etc/passwd secrets/token", "rm secrets/token; mkfifo secrets/token",
                      "chmod 0 secrets/token; chmod 0500 secrets", "true"):
            record = r.ended(r.start("sh", ["-c", "cat secrets/token; " + plant], alloc=alloc, user="daemon",
                                     secrets={"token": b"sesame"}))
            case.equal((record["state"], record["step"], record["exit_code"]), (exe.EXE_ENDED, 0, 0), plant)
        case.equal(r.log(runs.Run(os.urandom(16), alloc, "web")), "sesame" * 6)
        with open("/etc/passwd", encoding="utf-8") as f:
            case.contains(f.read(), "root:")


def test_the_data_directory_is_used_by_its_descriptor_and_not_by_its_path():
    with runs.Runs() as r:
        r.helper.close()
        moved = r.places.data + ".moved"
        os.rename(r.places.data, moved)
        os.mkdir(r.places.data)
        try:
            r.helper = helper.Helper("exec-helper", r.places, data=moved)
        finally:
            os.rmdir(r.places.data)
            os.rename(moved, r.places.data)
        alloc = r.make_alloc()
        path = "%s/alloc/%s/web" % (r.places.data, uuid.UUID(bytes=alloc))
        with open(path + "/here", "w", encoding="ascii") as f:
            f.write("#!/bin/sh\necho $0; cat secrets/s")
        os.chmod(path + "/here", 0o755)
        case.equal(r.output("here", alloc=alloc, secrets={"s": b"sesame"}), path + "/here\nsesame")


def test_an_executor_sends_hello_state_and_exited():
    with runs.Runs() as r:
        run = r.start("sleep", ["1000"])
        with r.connect(run) as c:
            c.wait_state(exe.EXE_RUNNING)
            pid = c.hello["task_pid"]
            with open("/proc/%d/stat" % pid, encoding="ascii") as f:
                case.equal(c.hello["task_start_ticks"], int(f.read().rsplit(")", 1)[1].split()[19]))
            with open("/proc/self/fdinfo/%d" % c.pidfd, encoding="ascii") as f:
                case.contains(f.read(), "Pid:\t%d\n" % pid)
            with open("/proc/%d/status" % c.hello["executor_pid"], encoding="ascii") as f:
                status = f.read()
            uid = r.places.uid["executor"]
            for line in ("Uid:" + "\t%d" % uid * 4, "CapEff:\t0000000000000020", "CapPrm:\t0000000000000020",
                         "CapBnd:\t0000000000000020", "CapInh:\t0000000000000000", "CapAmb:\t0000000000000000",
                         "NoNewPrivs:\t1", "Seccomp:\t2"):
                case.contains(status, line + "\n")
            case.equal(os.readlink("/proc/%d/root" % c.hello["executor_pid"]),
                       "%s/logs/%s" % (r.places.data, run.alloc), "root of the executor")
            with open("/proc/%d/cgroup" % c.hello["executor_pid"], encoding="ascii") as f:
                case.contains(f.read(), "0::%s/exec\n" % r.places.cgroup)
            c.send(exe.EXE_SIGNAL, signal=signal.SIGUSR1)
            ended = c.wait_exited()
            case.equal((ended["exit_code"], ended["exit_signal"], ended["flags"]), (0, signal.SIGUSR1, exe.EXE_END_SENT))
        case.equal(r.ended(run)["exit_signal"], signal.SIGUSR1)
        # The same signal from a process other than the executor.
        run = r.start("sleep", ["1000"])
        with r.connect(run) as c:
            os.kill(c.wait_state(exe.EXE_RUNNING)["task_pid"], signal.SIGUSR1)
            ended = c.wait_exited()
            case.equal((ended["exit_signal"], ended["flags"]), (signal.SIGUSR1, exe.EXE_END_FOREIGN))


def test_two_supervisors_can_connect_but_no_other_user():
    with runs.Runs() as r:
        run = r.start("sleep", ["1000"])
        r.wait_state(run, exe.EXE_RUNNING)
        pid = os.fork()
        if pid == 0:  # a process of another user that could connect nevertheless
            os.chmod(r.places.runtime + "/x", 0o777)
            os.chmod("%s/x/%s.sock" % (r.places.runtime, run.name), 0o777)
            os.chmod(r.places.base, 0o755)
            os.setresuid(1, 1, 1)
            try:
                exe.Connection(r.places, run.name).close()
            except (exe.Error, ConnectionError):
                os._exit(0)
            os._exit(1)
        case.equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, "whether a process of another user got a HELLO")
        with r.connect(run) as one, r.connect(run) as two:
            one.send(exe.EXE_STOP, signal=15, timeout_ms=5000)
            case.equal(two.wait_state(exe.EXE_STOPPING)["run"], run.id)
            case.equal(one.wait_exited()["exit_signal"], 15)
            case.equal(two.wait_exited()["flags"], exe.EXE_END_STOP | exe.EXE_END_SENT)


def test_a_task_that_ignores_its_signal_is_killed_after_the_timeout():
    with runs.Runs() as r:
        run = r.start("sh", ["-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done"])
        case.until(lambda: r.log(run), 10, "the task to set its trap")
        with r.connect(run) as c:
            c.send(exe.EXE_STOP, signal=15, timeout_ms=300)
            ended = c.wait_exited()
        case.equal((ended["exit_signal"], ended["flags"]), (9, exe.EXE_END_STOP | exe.EXE_END_KILLED | exe.EXE_END_SENT))


def test_garbage_from_a_peer_closes_only_its_connection():
    with runs.Runs() as r:
        run = r.start("sleep", ["1000"])
        good = exe.HEAD.pack(1, exe.EXE_SIGNAL, 16) + b"\x0f\0\0\0\0\0\0\0"
        for bad in (b"", b"x", good[:-1], good + b"x", b"\0" * 256, exe.HEAD.pack(0, 4, 16) + b"\x0f" + b"\0" * 7,
                    exe.HEAD.pack(1, 99, 8), exe.HEAD.pack(1, exe.EXE_SIGNAL, 16) + b"\xff" * 8, b"\xff" * 300):
            with r.connect(run) as c:
                c.wait_state(exe.EXE_RUNNING)
                if not bad:
                    continue
                c.send_bytes(bad)
                while c.recv() is not None:
                    pass
        with r.connect(run) as c:
            case.equal(c.hello["state"], exe.EXE_RUNNING)
            c.send_bytes(good)
            case.equal(c.wait_exited()["exit_signal"], 15)


def test_a_start_is_idempotent_and_a_reap_kills():
    with runs.Runs() as r:
        run, req = r.request()
        spec = exe.spec("sleep", ["1000"])
        case.equal(r.send(req, spec)["existed"], False)
        case.equal(r.send(req, spec)["existed"], True)
        pid = r.wait_state(run, exe.EXE_RUNNING)["task_pid"]
        case.equal(r.reap(run), True, "killed")
        case.until(lambda: not os.path.exists("/proc/%d" % pid), 5, "the end of the task")
        case.until(lambda: r.list() == [], 5, "no run to be left")


def test_a_task_that_hangs_in_the_kernel_delays_no_other_request():
    if not os.path.exists("/dev/fuse"):
        case.skip("no /dev/fuse")
    with runs.Runs() as r:
        point = case.directory()
        fuse = subprocess.Popen([os.path.join(build_dir(), "tests", "fuse_hang"), point], stdout=subprocess.PIPE)
        try:
            case.equal(fuse.stdout.readline(), b"mounted\n", "fuse_hang")
            run = r.start("stat", ["-f", point])
            case.equal(fuse.stdout.readline(), b"statfs\n", "the request that hangs")
            took = []
            for _ in range(5):
                began = time.monotonic()
                e = case.raises(ipc.RequestError, r.reap_once, run)
                case.contains(str(e), "still has processes after it was killed")
                took.append(time.monotonic() - began)
            # If a reap waited for the stuck process, each of the five would take long.
            assert min(took) < 5, "reaps took %s" % took
            case.equal(r.output("echo", ["beside it"]), "beside it\n")
            case.contains(r.list(), run.name)
        finally:
            fuse.kill()
            fuse.wait()
            helper.umount(point, 2)
        case.equal(r.ended(run)["exit_signal"], signal.SIGKILL)
        r.reap(run)
        case.equal(run.name in r.list(), False, "whether the run still exists")


def test_a_tasks_child_shares_no_memory_with_its_executor():
    """After it has dropped its privileges the child reads the task's settings and follows the task's paths. If it is compromised there, it
    must not be able to write memory of the executor."""
    if not os.path.exists("/dev/fuse"):
        case.skip("no /dev/fuse")
    kcmp, chdir = {"x86_64": (312, 80), "aarch64": (272, 49)}[os.uname().machine]
    kcmp_vm, libc = 1, ctypes.CDLL(None)
    if libc.syscall(kcmp, os.getpid(), os.getpid(), kcmp_vm, 0, 0) != 0:
        case.skip("no kcmp(2)")

    def read(path):
        with open(path, encoding="ascii") as f:
            return f.read()
    with runs.Runs() as r:
        point = case.directory()
        os.chmod(point, 0o755)
        fuse = subprocess.Popen([os.path.join(build_dir(), "tests", "fuse_hang"), point], stdout=subprocess.PIPE)
        try:
            case.equal(fuse.stdout.readline(), b"mounted\n", "fuse_hang")
            fuse.send_signal(signal.SIGSTOP)
            run = r.start("true", cwd=point + "/in", user="nobody")
            procs = r.places.run_cgroup(run.name) + "/cgroup.procs"
            child = "/proc/" + case.until(lambda: read(procs).split(), case.LEAST_S, "the task's child")[0]
            case.until(lambda: read(child + "/syscall").startswith("%d " % chdir), case.LEAST_S, "the child to hang in chdir")
            case.contains(read(child + "/status"), "\nUid:\t65534\t65534\t65534\t65534\n")
            executor = int(read(child + "/stat").split()[3])
            case.contains((1, 2), libc.syscall(kcmp, int(child[6:]), executor, kcmp_vm, 0, 0), "kcmp of the two address spaces")
        finally:
            fuse.kill()
            fuse.wait()
            helper.umount(point, 2)
        record = r.ended(run)
        case.equal((record["state"], record["step"]), (exe.EXE_FAILED, exe.EXE_STEP_CWD))


def test_limits_are_set_and_an_oom_kill_is_reported():
    with runs.Runs() as r:
        trees = helper.cgroup_trees()
        if "memory" not in trees and not os.path.exists(r.places.run_cgroup("") + "/memory.max"):
            case.skip("no memory controller")
        run = r.start("tail", ["/dev/zero"], memory_bytes=32 << 20, cpu_shares=300)
        record = r.ended(run, seconds=30)
        case.equal(bool(record["flags"] & exe.EXE_END_OOM), True, "OOM flag")
        run = r.start("sleep", ["1000"], memory_bytes=32 << 20, cpu_shares=300)
        r.wait_state(run, exe.EXE_RUNNING)
        if "memory" in trees:
            d = r.places.cgroup_dirs()
            with open("%s/runs/%s/memory.limit_in_bytes" % (d["memory"], run.name), encoding="ascii") as f:
                case.equal(int(f.read()), 32 << 20)
            with open("%s/runs/%s/cpu.shares" % (d["cpu"], run.name), encoding="ascii") as f:
                case.equal(int(f.read()), 300)
        case.equal(bool(r.record(run)["flags"] & exe.EXE_END_OOM), False)
        r.reap(run)


FORKS = """import os, time
while not os.path.exists("local/go"):
    time.sleep(0.01)
n = 0
try:
    while n < 200:
        if os.fork() == 0:
            time.sleep(1000)
        n += 1
    print("all")
except OSError as e:
    print(e.errno, n < 20)
"""


def pids_max(r, run):
    """Returns the path of the run's pids.max."""
    dirs = r.places.cgroup_dirs()
    return "%s/runs/%s/pids.max" % (dirs["pids"], run.name) if "pids" in dirs else r.places.run_cgroup(run.name) + "/pids.max"


def test_a_fork_bomb_is_stopped_by_its_own_limit():
    with runs.Runs() as r:
        if "pids" not in helper.cgroup_trees() and not os.path.exists(r.places.run_cgroup("") + "/pids.max"):
            case.skip("no pids controller")
        with open("/proc/sys/kernel/pid_max", encoding="ascii") as pids, open("/proc/sys/kernel/threads-max", encoding="ascii") as threads:
            share = min(int(pids.read()), int(threads.read())) * 15 // 100
        for most, said in ((20, "11 True\n"), (share, "all\n")):  # EAGAIN
            alloc = r.make_alloc()
            run = r.start("python3", ["-c", FORKS], alloc=alloc)
            path = pids_max(r, run)
            with open(path, encoding="ascii") as f:
                case.equal(int(f.read()), share, "the default limit")
            with open(path, "w", encoding="ascii") as f:
                f.write(str(most))
            open("%s/alloc/%s/web/local/go" % (r.places.data, run.alloc), "w", encoding="ascii").close()
            r.ended(run)
            case.equal(r.log(run), said, "with a limit of %d" % most)


def test_exec_helper_has_the_privileges_that_privsep_says():
    with runs.Runs() as r:
        with open("/proc/%d/status" % r.helper.pid, encoding="ascii") as f:
            status = f.read()
        with open("/proc/self/status", encoding="ascii") as f:
            bounding = re.search(r"^CapBnd:\t(\w+)$", f.read(), re.M).group(1)
        for line in ("Uid:\t0\t0\t0\t0", "CapEff:\t0000000000200000", "CapPrm:\t0000000000200000",
                     "CapInh:\t0000000000000000", "CapAmb:\t0000000000000000", "CapBnd:\t" + bounding, "NoNewPrivs:\t0",
                     "Seccomp:\t0"):
            case.contains(status, line + "\n")


def deny_keyctl():
    """Makes keyctl(2) fail with ENOSYS in this process and its children, as in a kernel without keys."""
    nr = {"x86_64": 250, "aarch64": 219}[os.uname().machine]
    code = b"".join(struct.pack("<HBBI", *insn) for insn in (
        (0x20, 0, 0, 0), (0x15, 0, 1, nr), (6, 0, 0, 0x50000 | errno.ENOSYS), (6, 0, 0, 0x7FFF0000)))
    insns = ctypes.create_string_buffer(code)
    prog = struct.pack("<HxxxxxxQ", len(code) // 8, ctypes.addressof(insns))
    case.equal(helper.libc.prctl(22, 2, prog), 0, "prctl(PR_SET_SECCOMP)")


def test_a_kernel_without_keys_runs_tasks():
    # Last, because the forked child makes directories with the numbers that this process would use next.
    pid = os.fork()
    if pid == 0:
        try:
            deny_keyctl()
            with runs.Runs() as r:
                for driver in ("RAW_EXEC", "EXEC"):
                    case.equal(r.output("echo", ["well"], driver=driver, user="daemon"), "well\n")
            os._exit(0)
        except BaseException:
            traceback.print_exc()
        os._exit(1)
    case.equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, "exit code of the tests under the filter")


case.run(globals())
