#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 27
"""The launcher: what it creates, which configurations and paths it refuses, which processes it restarts."""
import contextlib
import json
import os
import signal
import socket
import sqlite3
import struct
import subprocess
import threading
import time

from lib import agent, binary, build_dir, case, helper, service

LEASE = struct.Struct("<Q40sQQ")
LOCK_WAIT_S = 5  # how long a second agent waits for the end of the first


def refused(sentence, args=(), code=78, **kwargs):
    """Checks that the agent does not start and that its log contains this text."""
    with agent.Agent(args, **kwargs) as a:
        case.equal(a.wait(), code, "exit code")
        case.contains(a.log(), sentence)


def write(path, text, mode=0o644):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)
    return path


def modes(top, names):
    found = {}
    for name in names:
        st = os.stat(os.path.join(top, name))
        found[name] = "%04o" % (st.st_mode & 0o7777)
    return found


def test_a_start_creates_the_directories_and_cgroups_and_a_stop_removes_all_but_data():
    with agent.Agent() as a:
        a.wait_ready()
        case.equal(modes(a.data, (".", "lock", "instance", "state", "alloc", "logs", "run", "csi", "rt",
                                  "rt/drover.sock", "rt/lease", "rt/x")),
                   {".": "0711", "lock": "0600", "instance": "0644", "state": "0700", "alloc": "0711",
                    "logs": "2750", "run": "2750", "csi": "0711", "rt": "0755", "rt/drover.sock": "0600",
                    "rt/lease": "0644", "rt/x": "2750"})
        with open(a.data + "/instance", encoding="ascii") as f:
            instance = f.read().strip()
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            mount = [line.split() for line in f if " %s/alloc " % a.data in line]
        case.equal((len(mount), {"nosuid", "nodev"} - set(mount[0][5].split(",")), mount[0][6]), (1, set(), "-"), "whether the mount of alloc/ is private")
        cgroups = subprocess.run(["find", "/sys/fs/cgroup", "-maxdepth", "2", "-name", "drover-" + instance], check=True,
                                 stdout=subprocess.PIPE).stdout.decode()
        assert cgroups, "no cgroup is named after the instance"
        case.equal(a.stop(signal.SIGINT), 0, "exit code")
        case.equal(os.path.exists(a.data + "/rt"), False, "whether rt exists")
        case.equal(os.path.exists(a.data + "/state/state.db"), True, "whether state.db exists")
        with open("/proc/self/mounts", encoding="utf-8") as f:
            case.equal([line for line in f if a.data in line], [], "mounts")
        for line in cgroups.split():
            case.equal(os.path.exists(line), False, line)


def test_a_temporary_data_directory_is_removed_with_the_agent():
    before = set(os.listdir("/tmp"))
    log = case.directory() + "/log"
    with open(log, "wb") as f:
        p = subprocess.Popen([binary("launcher"), "-dev"], stdin=subprocess.DEVNULL, stdout=f, stderr=f,
                             start_new_session=True)
    try:
        made = case.until(lambda: [n for n in set(os.listdir("/tmp")) - before if n.startswith("drover-") and
                                   os.path.exists("/tmp/%s/rt/drover.sock" % n)], 10, "the data directory to exist")
        p.send_signal(signal.SIGINT)
        case.equal(p.wait(case.LEAST_S), 0, "exit code")
        for name in made:
            case.equal(os.path.exists("/tmp/" + name), False, name)
    finally:
        if p.poll() is None:
            p.kill()
            p.wait()


def test_each_process_has_only_its_descriptors_a_session_and_no_environment():
    with agent.Agent(env={"HOME": "/root", "LD_X": "1"}) as a:
        a.wait_ready()
        for name, pid in a.processes().items():
            case.equal(os.getsid(pid), pid, name + ": session")
            with open("/proc/%d/environ" % pid, "rb") as f:
                case.equal(f.read(), b"", name + ": environment")
            case.equal(os.readlink("/proc/%d/fd/0" % pid), "/dev/null", name + ": stdin")
            for fd in (1, 2):
                case.equal(os.readlink("/proc/%d/fd/%d" % (pid, fd)), a.log_path, "%s: %d" % (name, fd))
            held = agent.descriptors(pid)
            if name == "file-helper":
                case.until(lambda p=pid: a.data not in agent.descriptors(p), 10, "file-helper to have closed the data directory")
            else:
                case.equal(a.data in held, name in ("exec-helper", "mount-helper"), name + ": whether it has the data directory open")
            case.equal("/memfd:policy (deleted)" in held, name in ("exec-helper", "mount-helper"), name + ": policy")
            case.equal("/memfd:config (deleted)" in held, name not in ("exec-helper", "mount-helper", "check-helper", "job-parser", "template-renderer", "listener"),
                       name + ": config")


def test_all_processes_have_names_that_begin_with_drover():
    """The name that ps, top and killall show has at most 15 bytes."""
    with agent.Agent() as a:
        a.wait_ready()
        case.until(lambda: "file-helper" in a.processes(), 10, "the first use of file-helper")
        found = {}
        for name, pid in [("launcher", a.pid)] + list(a.processes().items()):
            with open("/proc/%d/comm" % pid, encoding="ascii") as f:
                found[name] = f.read().strip()
        case.equal(found, {name: ("drover-" + name)[:15] for name in found})
        assert {"launcher", "supervisor", "file-helper", "heartbeat"} <= set(found), found


def test_lines_in_the_foreground_have_a_time():
    with agent.Agent(["-config", write(case.directory() + "/a.hcl", 'log_level = "debug"\n')]) as a:
        a.wait_ready()
        lines = a.log().splitlines()
    case.equal([line for line in lines if not agent.LINE.match(line)], [], "lines")
    assert {"launcher", "supervisor"} <= {agent.LINE.match(line)[1] for line in lines}, lines


def test_csi_helper_is_not_started_before_it_is_needed():
    with agent.Agent() as a:
        a.wait_ready()
        for name in ("supervisor", "exec-helper", "mount-helper", "file-helper", "heartbeat"):
            a.wait_process(name)
        case.equal("csi-helper" in a.processes(), False, "whether csi-helper runs")


def test_only_a_killed_helper_is_restarted():
    with agent.Agent() as a:
        a.wait_ready()
        for name in ("exec-helper", "mount-helper", "file-helper", "heartbeat"):
            a.wait_process(name)
            before = a.processes()
            a.wait_process(name, other_than=a.kill(name))
            after = a.processes()
            for other in before:
                if other != name:
                    case.equal(after[other], before[other], other)
        case.equal(a.get("/v1/agent/health")[0], 200, "health")


def test_no_connection_is_refused_while_the_supervisor_is_restarted():
    refusals, accepted, ending = [], [0], threading.Event()

    def probe(a):
        while not ending.is_set():
            try:
                a.connect().close()
                accepted[0] += 1
            except OSError as e:
                refusals.append(e)
            time.sleep(0.002)

    with agent.Agent() as a:
        a.wait_ready()
        thread = threading.Thread(target=probe, args=(a,))
        thread.start()
        try:
            for _ in range(3):
                before = a.processes()
                killed = a.kill("supervisor")
                a.wait_process("supervisor", other_than=killed)
                for name in ("exec-helper", "mount-helper", "file-helper"):
                    a.wait_process(name, other_than=before.get(name, 0))
            case.until(lambda: refusals or accepted[0] > 10, 10, "more than ten connections")
        finally:
            ending.set()
            thread.join()
        case.equal(refusals, [], "refused connections")
        a.wait_ready()


def test_a_helper_that_does_not_end_is_killed_before_all_are_restarted():
    with agent.Agent() as a:
        a.wait_ready()
        stuck = a.wait_process("mount-helper")
        os.kill(stuck, signal.SIGSTOP)
        began = time.monotonic()
        a.wait_process("supervisor", other_than=a.kill("supervisor"))
        assert time.monotonic() - began > 0.9, "the stopped helper was killed in less than a second"
        case.contains(a.log(), "mount-helper (pid %d) did not end in time: killed" % stuck)
        a.wait_process("mount-helper", other_than=stuck)
        a.wait_ready()


def test_all_processes_end_when_the_launcher_is_killed():
    with agent.Agent() as a:
        a.wait_ready()
        a.kill_launcher()
        a.start()
        a.wait_ready()


def test_a_second_agent_on_the_same_data_directory_is_refused_with_the_pid():
    with agent.Agent() as a:
        a.wait_ready()
        began = time.monotonic()
        refused("another agent (pid %d) uses %s" % (a.pid, a.data), code=1, data=a.data)
        assert time.monotonic() - began >= LOCK_WAIT_S, "the second agent did not wait for the lock"
        case.equal(a.get("/v1/agent/health")[0], 200, "health")


def test_a_second_agent_starts_when_the_first_ends_in_time():
    with agent.Agent() as a:
        a.wait_ready()
        began = time.monotonic()
        with agent.Agent(data=a.data) as b:
            case.until(lambda: a.data + "/lock" in agent.descriptors(b.pid), 5, "the second to wait for the lock")
            case.equal(a.stop(), 0, "exit code of the first")
            if time.monotonic() - began < LOCK_WAIT_S:  # else it stopped waiting before the first had ended, which is correct
                b.wait_ready()


def test_a_configuration_that_others_can_write_is_refused():
    base = case.directory()
    path = write(base + "/a.hcl", 'region = "here"\n')
    for mode in (0o664, 0o646):
        os.chmod(path, mode)
        refused("%s can be written by others than root (owner 0, mode %04o)" % (path, mode), ["-config", path])
    os.chmod(path, 0o644)
    os.chown(path, 65534, 65534)
    refused("belongs to nobody, or to a user", ["-config", path])
    os.chown(path, 0, 0)
    os.chmod(base, 0o777)
    refused("%s can be written by others" % base, ["-config", base])
    os.chmod(base, 0o755)
    os.mkfifo(base + "/pipe.hcl")
    refused("pipe.hcl is neither", ["-config", base + "/pipe.hcl"])
    refused("configuration: open %s/none.hcl: No such file" % base, ["-config", base + "/none.hcl"])


def test_an_error_in_the_configuration_names_file_line_and_column():
    path = write(case.directory() + "/bad.hcl", 'region = "a"\nclient {\n  meta = = 3\n}\n')
    refused(path + ":3:10: expected a value", ["-config", path])
    write(path, 'log_level = "loud"\nclient {\n  servers = 1\n}\n')
    refused('log_level = "loud"', ["-config", path])  # the line of the first error
    refused(path + ":3:13: servers: expected a list of strings, found a number", ["-config", path])
    refused("the configuration has 2 errors", ["-config", path])


def test_host_modes_as_default_must_be_allowed():
    """Also if the two settings are in different files, in any order."""
    base = case.directory()
    for mode, other in (("pid", "ipc"), ("ipc", "pid")):
        path = write(base + "/%s.hcl" % mode, 'plugin "exec" {\n config {\n default_%s_mode = "host"\n } }\n' % mode)
        allows = write(base + "/%s-allow.hcl" % other, 'plugin "exec" {\n config {\n allow_host_%s = true\n } }\n' % other)
        refused('default_%s_mode is "host", which needs allow_host_%s = true' % (mode, mode), ["-config", path, "-config", allows])


def test_files_of_a_directory_are_read_in_order_and_unknown_words_are_named():
    base = case.directory()
    write(base + "/10.hcl", 'log_level = "debug"\nnonsense_here = 1\n')
    write(base + "/20.hcl", 'log_level = "warn"\n')
    write(base + "/30.txt", "this is = = not read\n")
    with agent.Agent(["-config", base]) as a:
        a.wait_ready()
        case.contains(a.log(), "nonsense_here")
        case.contains(" ".join(agent.arguments(a.processes()["supervisor"])), "--log-level=warn")


def test_a_configuration_file_named_through_a_link_is_masked_at_its_real_path():
    base = case.directory()
    os.mkdir(base + "/real")
    os.symlink("real", base + "/link")
    write(base + "/real/a.hcl", "")
    for name in ("link/a.hcl", base + "/link"):
        with agent.Agent(["-config", name], wrap=["/bin/sh", "-c", 'cd "$0" && exec "$@"', base]) as a:
            a.wait_ready()
            with open("/proc/%d/fd/4" % a.wait_process("exec-helper"), "rb") as f:  # FD_CONFIG: the policy
                case.equal((base + "/real/a.hcl").encode() in f.read(), True, "whether it is masked if it is named " + name)


def test_sighup_reloads_the_configuration_unless_it_is_invalid():
    path = write(case.directory() + "/a.hcl", 'log_level = "info"\n')
    with agent.Agent(["-config", path]) as a:
        a.wait_ready()
        a.wait_process("exec-helper")
        before = a.processes()
        write(path, "log_level = = \n")
        os.kill(a.pid, signal.SIGHUP)
        a.wait_log("the agent keeps its current configuration")
        case.equal(a.processes()["supervisor"], before["supervisor"], "supervisor")
        write(path, 'log_level = "debug"\n')
        os.kill(a.pid, signal.SIGHUP)
        pid = a.wait_process("supervisor", other_than=before["supervisor"])
        case.contains(" ".join(agent.arguments(pid)), "--log-level=debug")
        a.wait_process("exec-helper", other_than=before["exec-helper"])
        a.wait_ready()


def test_unusable_data_directories_are_refused():
    base = case.directory()
    refused("bytes too long", data=base + "/" + "x" * 60)
    refused("must not contain blanks", data=base + "/a b")
    os.mkdir(base + "/open")
    os.chmod(base + "/open", 0o777)
    refused("open can be written by others than root", data=base + "/open")
    write(base + "/file", "")
    refused("%s/file" % base, data=base + "/file")


def untouched(victim):
    """Checks that the directory is as victim_in() made it."""
    case.equal(modes(victim, (".", "rt", "rt/keep")), {".": "0750", "rt": "0700", "rt/keep": "0600"}, victim)


def victim_in(base):  # a directory of root with files in it
    victim = base + "/victim"
    os.mkdir(victim, 0o750)
    os.mkdir(victim + "/rt", 0o700)
    write(victim + "/rt/keep", "mine", 0o600)
    return victim


def test_a_path_that_others_than_root_can_change_is_refused():
    """As with `drover agent -dev -data-dir /tmp/d` when another user has made a link /tmp/d."""
    base = case.directory()
    victim = victim_in(base)
    os.mkdir(base + "/empty", 0o750)
    os.mkdir(base + "/shared")
    os.chmod(base + "/shared", 0o1777)
    os.mkdir(base + "/theirs")
    for target in ("victim", "empty"):
        os.symlink(base + "/" + target, base + "/shared/" + target)
        os.lchown(base + "/shared/" + target, 1000, 1000)
        os.symlink(base + "/" + target, base + "/shared/roots-" + target)
        os.symlink("../" + target, base + "/theirs/" + target)
        os.symlink(base + "/shared/" + target, base + "/to-" + target)
    os.mkdir(base + "/theirs/mine")
    os.chown(base + "/theirs", 65534, 65534)
    for path, sentence in (("/shared/empty", "shared/empty is a link that others than root can change"),
                           ("/shared/victim", "shared/victim is a link that others than root can change"),
                           ("/to-empty", "shared/empty is a link that others than root can change"),
                           ("/shared/roots-empty", "shared/roots-empty is a link that others than root can change"),
                           ("/theirs/empty", "theirs belongs to nobody, or to a user"),
                           ("/theirs/mine", "theirs belongs to nobody, or to a user"),
                           ("/shared", "shared can be written by others than root (owner 0, mode 1777)")):
        refused(sentence, data=base + path)
        case.equal(modes(base, ("empty", "theirs/mine")), {"empty": "0750", "theirs/mine": "0755"}, path)
        case.equal(os.listdir(base + "/empty") + os.listdir(base + "/theirs/mine"), [], path)
    untouched(victim)
    for path, sentence in (("/theirs/empty", "theirs belongs to nobody"), ("/shared/empty", "that others than root can change")):
        refused(sentence, ["-socket", base + path + "/s.sock"])
        refused(sentence, ["-config", base + path])
        case.equal(os.listdir(base + "/empty"), [], path)


def test_a_directory_with_other_files_is_refused_as_data_directory():
    victim = victim_in(case.directory())
    refused("%s contains rt but no file \"instance\"" % victim, data=victim)
    untouched(victim)
    case.equal(os.listdir(victim), ["rt"])


def test_a_data_directory_in_tmp_or_behind_a_link_of_root_is_accepted():
    base = case.directory()
    os.mkdir(base + "/shared")
    os.chmod(base + "/shared", 0o1777)
    os.mkdir(base + "/shared/d.random", 0o700)
    os.symlink("shared/../shared/d.random/data", base + "/link")
    for data in (base + "/shared/d.random", base + "/link"):
        with agent.Agent(data=data) as a:
            a.wait_ready()
            case.equal(modes(data, (".",)), {".": "0711"})
            case.equal(a.stop(), 0, "exit code")


def test_restrictions_of_the_data_directorys_mount_are_logged_once():
    base = case.directory()
    for flags, sentence in ((helper.MS_NOEXEC, "is mounted noexec: tasks cannot run"), (helper.MS_NODEV, "is mounted nodev: device nodes"),
                            (helper.MS_RDONLY, "is on a file system that is mounted read-only")):
        helper.mount("data", base, "tmpfs", flags, "mode=0711")
        try:
            if flags == helper.MS_RDONLY:
                refused("data directory %s %s" % (base, sentence), data=base)
                continue
            with agent.Agent(data=base) as a:
                a.wait_ready()
                case.equal(a.log().count(sentence), 1, sentence)
                case.equal(a.stop(), 0, "exit code")
                case.equal(os.path.ismount(base), True, "the mount of the data directory after the agent's end")
        finally:
            helper.umount(base)


def read_lease(a):
    with open(a.data + "/rt/lease", "rb") as f:
        data = f.read()
        return os.fstat(f.fileno()).st_ino, len(data), LEASE.unpack(data[:LEASE.size])


def test_the_lease_page_is_kept_unless_it_is_of_another_boot():
    with agent.Agent() as a:
        a.wait_ready()
        case.until(lambda: read_lease(a)[2][3] != 0, 10, "the first beat")
        inode, size, first = read_lease(a)
        case.equal(size, 4096, "size")
        a.kill_launcher()
        a.start()
        a.wait_ready()
        again = read_lease(a)
        case.equal(again[0], inode, "inode after kill -9 of the launcher")
        case.equal(again[2][:3], first[:3], "magic, boot id, started")
        assert again[2][3] >= first[3], "last_ok has decreased"
        a.kill_launcher()
        with open(a.data + "/rt/lease", "r+b") as f:
            f.write(LEASE.pack(first[0], b"01234567-89ab-cdef-0123-456789abcdef", 1, 2))
        a.start()
        a.wait_ready()
        case.equal(read_lease(a)[2][:2], first[:2], "the page after one of another boot")
        assert read_lease(a)[2][2] > first[2], "`started` was not renewed"
        a.kill_launcher()
        os.truncate(a.data + "/rt/lease", 40)
        a.start()
        a.wait_ready()
        case.equal(read_lease(a)[1], 4096, "size of the page after a truncated one")


def test_a_start_that_fails_is_tried_again():
    """Also after a reload, when no failure has been before: then it is tried again at once."""
    with agent.Agent() as a:
        a.wait_ready()
        lease = a.data + "/rt/lease"
        os.unlink(lease)
        os.mkdir(lease)
        old = a.processes()["supervisor"]
        os.kill(a.pid, signal.SIGHUP)
        case.until(lambda: "supervisor" not in a.processes(), 20, "the end of the supervisor")
        os.rmdir(lease)
        a.wait_process("supervisor", old, 20)


def test_a_stale_control_socket_is_replaced_but_a_live_one_is_not():
    base = case.directory()
    path = base + "/s.sock"
    other = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    other.bind(path)
    other.listen()
    refused("another agent listens on " + path, ["-socket", path], code=1)
    other.close()
    with agent.Agent(["-socket", path]) as a:
        a.wait_ready()
        case.equal(a.stop(), 0, "exit code")
    case.equal(os.path.exists(path), False, "whether the socket exists")
    write(path, "mine")
    refused("exists and is not a socket", ["-socket", path])
    case.equal(os.path.getsize(path), 4, "the file")


def test_a_socket_passed_by_systemd_is_used():
    path = case.directory() + "/l.sock"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(path)
    listener.listen()

    # LISTEN_PID must be the launcher's pid, so a shell sets it before it executes the launcher.
    a = agent.Agent(["-socket", path], start=False, env={"LISTEN_FDS": "1"},
                    wrap=["/bin/sh", "-c", 'export LISTEN_PID=$$; exec "$@"', "sh"])
    with a:
        keep = os.dup(3) if os.path.exists("/proc/self/fd/3") else -1
        try:
            os.dup2(listener.fileno(), 3, inheritable=True)
            a.start(pass_fds=(3,))
        finally:
            if keep >= 0:
                os.dup2(keep, 3, inheritable=False)
                os.close(keep)
            else:
                os.close(3)
        listener.close()
        a.wait_ready()
        case.equal(os.path.exists(a.data + "/rt/drover.sock"), False, "whether the agent made its own socket")
        for pid in [a.pid] + list(a.processes().values()):
            with open("/proc/%d/environ" % pid, "rb") as f:
                environment = f.read()
            case.equal(pid != a.pid and b"LISTEN_" in environment, False, "whether LISTEN_ variables are in the environment of %d" % pid)


def test_a_second_signal_ends_an_agent_whose_supervisor_hangs():
    with agent.Agent() as a:
        a.wait_ready()
        os.kill(a.processes()["supervisor"], signal.SIGSTOP)
        a.process.send_signal(signal.SIGINT)
        a.wait_log("draining")
        case.equal(a.process.poll(), None, "exit code after the first signal")
        case.equal(a.stop(signal.SIGINT), 0, "exit code after the second")
        case.equal(os.path.exists(a.data + "/rt"), False, "whether rt exists")


def test_a_supervisor_that_cannot_start_ends_the_agent():
    with agent.Agent() as a:
        a.wait_ready()
        case.equal(a.stop(), 0, "exit code")
        db = sqlite3.connect(a.data + "/state/state.db")
        version = db.execute("PRAGMA user_version").fetchone()[0]
        assert version > 0, "state.db has no schema version"
        db.execute("PRAGMA user_version = %d" % (version + 1000))
        db.commit()
        db.close()
        size = os.path.getsize(a.data + "/state/state.db")
        a.start()
        case.equal(a.wait(), 78, "exit code with a newer state.db")
        case.equal(os.path.getsize(a.data + "/state/state.db"), size, "size of the newer state.db")


@contextlib.contextmanager
def passwd(lines):
    """Replaces the agent's users in /etc/passwd by these lines."""
    path = case.directory() + "/passwd"
    with open("/etc/passwd", encoding="utf-8") as f:
        write(path, "".join([*(line + "\n" for line in service.without_agent(f.read())), *lines]))
    helper.mount(path, "/etc/passwd", None, 4096)  # MS_BIND
    try:
        yield
    finally:
        helper.umount("/etc/passwd")


def test_without_its_users_the_agent_explains_how_to_create_them():
    with passwd(()):
        refused("systemd-sysusers", dev=False)


def test_users_with_the_same_id_are_refused():
    wrong = (("users drover-exec (64901:64901) and drover-csi (64901:64902) must differ", {"drover-csi": (64901, 64902)}),
             ("users drover (64900:64900) and drover-heartbeat (64903:64900) must differ", {"drover-heartbeat": (64903, 64900)}),
             ("user drover-exec has the ids 0:64901", {"drover-exec": (0, 64901)}),
             ("user drover has the ids 64900:0", {"drover": (64900, 0)}),
             ("user drover-csi has the ids 65534:65534", {"drover-csi": (65534, 65534)}))
    for sentence, ids in wrong:
        lines = ["%s:x:%d:%d::/nonexistent:/usr/sbin/nologin\n" % (name, *ids.get(name, (64900 + i, 64900 + i)))
                 for i, name in enumerate(service.AGENT)]
        with passwd(lines):
            refused(sentence, dev=False)


def test_many_sighups_delay_neither_the_kill_of_a_hung_supervisor_nor_sigterm():
    with agent.Agent() as a:
        a.wait_ready()
        ending = threading.Event()

        def storm():
            while not ending.is_set():
                a.process.send_signal(signal.SIGHUP)

        hung = a.processes()["supervisor"]
        os.kill(hung, signal.SIGSTOP)
        thread = threading.Thread(target=storm)
        thread.start()
        try:
            a.wait_log("supervisor (pid %d) did not end in time: killed" % hung, 15)
            case.equal(a.stop(signal.SIGINT), 0, "exit code")
        finally:
            ending.set()
            thread.join()


def test_an_agent_in_a_chroot_runs_no_exec_tasks():
    """An executor that joined a mount namespace would leave the chroot."""
    root = case.directory()
    helper.mount("/", root, None, 4096 | helper.MS_REC)
    try:
        with agent.Agent(wrap=["chroot", root]) as a:
            a.wait_log("no exec tasks: the agent runs in a chroot")
            a.wait_ready()
            helper_pid = a.wait_process("exec-helper")
            case.equal(os.readlink("/proc/%d/root" % helper_pid), root)
    finally:
        helper.umount(root, 2)


def test_a_data_directory_that_the_supervisor_cannot_reach_is_refused():
    closed = case.directory()
    os.chmod(closed, 0o700)
    with agent.Agent(data=closed + "/data") as a:
        case.equal(a.wait(), 78, "exit code")
        case.contains(a.log(), "it may not search %s; permit it (chmod o+x)" % closed)
        case.equal(a.log().count("error:"), 1, a.log())


def test_an_agent_whose_log_has_no_reader_ends_normally():
    """As with `drover agent -dev | head -1` and Ctrl-C: the agent still drains and leaves nothing behind."""
    reader, writer = os.pipe()
    a = agent.Agent(start=False)
    a.start(stderr=writer)
    os.close(writer)
    case.contains(os.read(reader, 4096).decode(), "info:")
    os.close(reader)
    a.wait_ready()
    case.equal(a.stop(signal.SIGINT), 0, "exit code")
    case.equal(os.path.exists(a.data + "/rt"), False, "the runtime directory")


def tls_config(base, **files):
    paths = {name: files.get(name) or write("%s/%s.pem" % (base, name), "this is %s\n" % name, 0o600)
             for name in ("ca_file", "cert_file", "key_file")}
    return "tls {\n  rpc = true\n%s}\n" % "".join('  %s = "%s"\n' % one for one in paths.items())


def test_heartbeat_receives_the_tls_files_as_memfds():
    base = case.directory()
    path = write(base + "/a.hcl", tls_config(base))
    with agent.Agent(["-config", path]) as a:
        a.wait_ready()
        pid = a.wait_process("heartbeat")
        for fd, name in enumerate(("ca_file", "cert_file", "key_file"), 14):
            case.contains(os.readlink("/proc/%d/fd/%d" % (pid, fd)), "/memfd:")
            with open("/proc/%d/fd/%d" % (pid, fd), encoding="ascii") as f:
                case.equal(f.read(), "this is %s\n" % name, name)
        for other in a.processes().values():
            case.equal([link for link in agent.descriptors(other) if base in link and a.base not in link], [], "files of the configuration held open")
    os.chmod(base + "/key_file.pem", 0o620)
    refused("key_file.pem can be written by others than root", ["-config", path])
    write(path, tls_config(base, cert_file=base + "/none"))
    refused("configuration: open %s/none: No such file" % base, ["-config", path])
    write(path, "tls { rpc = true }\n")
    refused("tls.rpc is on, but tls.ca_file is not set", ["-config", path])


def test_a_reload_that_hangs_in_reading_a_key_does_not_disturb_the_agent():
    if not os.path.exists("/dev/fuse"):
        case.skip("no /dev/fuse")
    base, point = case.directory(), case.directory()
    path = write(base + "/a.hcl", tls_config(base))
    fuse = subprocess.Popen([build_dir() + "/tests/fuse_hang", point], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    case.equal(fuse.stdout.readline(), b"mounted\n", "fuse_hang")
    fuse.send_signal(signal.SIGSTOP)
    try:
        with agent.Agent(["-config", path]) as a:
            a.wait_ready()
            a.wait_process("heartbeat")
            before = a.processes()["supervisor"]
            write(path, tls_config(base, key_file=point + "/key.pem"))
            os.kill(a.pid, signal.SIGHUP)
            a.wait_log("the agent keeps its current configuration", 20)
            case.equal(a.processes()["supervisor"], before, "supervisor")
            killed = a.kill("heartbeat")
            a.wait_process("heartbeat", other_than=killed)
    finally:
        fuse.kill()
        fuse.wait()
        helper.umount(point, 2)


def test_a_v1_cgroup_that_becomes_empty_later_is_removed_too():
    """When a cgroup of v2 is empty, that of a v1 controller may not be empty yet. The test simulates this with a process in the v1
    cgroup."""
    pids = helper.cgroup_trees().get("pids")
    if not pids:
        case.skip("no cgroup v1")
    with agent.Agent() as a:
        a.wait_ready()
        with open(a.data + "/instance", encoding="ascii") as f:
            tree = "%s/drover-%s" % (pids, f.read().strip())
        # The process ends well within the time for which the launcher waits.
        with subprocess.Popen(["sleep", "1"]) as late:
            with open(tree + "/tasks", "w", encoding="ascii") as f:
                f.write(str(late.pid))
            case.equal(a.stop(), 0, "exit code")
        case.equal(os.path.exists(tree), False, "its cgroup")


case.run(globals())
