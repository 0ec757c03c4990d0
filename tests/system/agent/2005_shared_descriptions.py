# SPDX-License-Identifier: Apache-2.0
"""Open file descriptions that the agent's processes share: an attacker in one of them cannot use these to harm the others, or the next
agent."""
import ctypes
import errno
import fcntl
import os
import re
import signal
import socket
import stat

from lib import ROOT, agent, case, helper, takeover

KCMP, KCMP_FILE = 312, 0
with open(ROOT + "/common/proc_fd.h", encoding="utf-8") as header:
    FDS = {name: int(number) for name, number in re.findall(r"\b(FD_\w+) = (\d+)", header.read())}
FD_CONTROL_SOCKET, FD_LOG, FD_SUP_LOG = FDS["FD_SPECIAL"], FDS["FD_LOG"], FDS["FD_SUP_LOG"]
HELPERS = ("exec-helper", "mount-helper", "file-helper", "heartbeat")
PRCTL, PR_SET_PDEATHSIG = 157, 1  # x86-64
libc = ctypes.CDLL(None, use_errno=True)


def same_description(one, other):
    """Returns whether two descriptors, each (pid, fd), have the same open file description."""
    r = libc.syscall(KCMP, one[0], other[0], KCMP_FILE, ctypes.c_ulong(one[1]), ctypes.c_ulong(other[1]))
    if r < 0 and ctypes.get_errno() == errno.EBADF:  # closed after it was listed
        return False
    if r < 0:
        raise OSError(ctypes.get_errno(), "kcmp %s %s" % (one, other))
    return r == 0


def held(pid):
    """Returns {fd: target} of the descriptors through which a process could change shared state: flags, an offset, or the file itself."""
    found = {}
    for fd in os.listdir("/proc/%d/fd" % pid):
        path = "/proc/%d/fd/%s" % (pid, fd)
        try:
            name = os.readlink(path)
            with open("/proc/%d/fdinfo/%s" % (pid, fd), encoding="ascii") as f:
                flags = int(re.search(r"flags:\s*(\d+)", f.read()).group(1), 8)
            mode = os.stat(path).st_mode
        except FileNotFoundError:
            continue
        # Memfds are sealed, or have the log level, which readers map. Directories are excluded because root's helpers share the data
        # directory.
        if not flags & os.O_PATH and name != "/dev/null" and not name.startswith("/memfd:") and not stat.S_ISDIR(mode):
            found[int(fd)] = name
    return found


def has_dropped(pid):
    with open("/proc/%d/status" % pid, encoding="ascii") as f:
        return "NoNewPrivs:\t1" in f.read()


def all_ready(a):
    a.wait_ready()
    for name in HELPERS:
        pid = a.wait_process(name)
        if name != "exec-helper":  # it does not set no_new_privs, because raw_exec tasks would inherit it
            case.until(lambda pid=pid: has_dropped(pid), 10, "the drop of privileges of " + name)


def check_shared(a):
    """Checks that only two sockets are shared: the control socket, which each supervisor gets, and that of followers of the log."""
    all_ready(a)
    processes = dict(a.processes(), launcher=a.pid)
    fds = {name: held(pid) for name, pid in processes.items()}
    for name, pid in a.processes().items():
        for other, other_pid in processes.items():
            for fd, what in fds[name].items():
                if other != name and fd not in (FD_CONTROL_SOCKET, FD_LOG, FD_SUP_LOG):
                    same = [n for n in fds[other] if same_description((pid, fd), (other_pid, n))]
                    case.equal(same, [], "%s of %s (%d) in %s" % (what, name, fd, other))


def test_no_two_processes_share_the_log_the_lock_or_the_lease():
    with agent.Agent() as a:
        check_shared(a)
        for name, pid in a.processes().items():
            for path in (a.data + "/lock", a.data + "/rt/lease"):
                case.equal(path in agent.descriptors(pid), False, "%s: a descriptor of %s" % (name, path))
                with open("/proc/%d/maps" % pid, encoding="utf-8") as f:
                    case.equal(path in f.read(), name == "heartbeat" or (path.endswith("lock") and name in HELPERS + ("supervisor",)),
                               "%s: %s in its memory" % (name, path))


def test_no_two_processes_share_the_pipe_of_the_log():
    reader, writer = os.pipe()
    a = agent.Agent(start=False)
    with a:
        a.start(stderr=writer)
        check_shared(a)
        for pid in list(a.processes().values()) + [a.pid]:
            case.equal(same_description((pid, 2), (os.getpid(), writer)), False, "%d has this test's pipe" % pid)
        os.close(writer)
        case.contains(os.read(reader, 4096).decode(), "launcher: info:")
    os.close(reader)


def test_a_log_file_opened_without_append_has_every_line():
    """Each process has its own file offset, but none may overwrite lines of another."""
    a = agent.Agent(start=False)
    with a:
        log = os.open(a.log_path, os.O_WRONLY | os.O_CREAT, 0o644)  # opened without O_APPEND
        a.start(stderr=log)
        all_ready(a)
        for name in HELPERS:
            killed = a.kill(name)
            a.wait_log("%s (pid %d) was killed by signal 9" % (name, killed))
            a.wait_process(name, other_than=killed)
        case.equal([line for line in a.log().splitlines() if not agent.LINE.match(line)], [], "lines")
        os.close(log)


def test_a_supervisor_cannot_shut_down_the_control_socket():
    with agent.Agent() as a:
        a.wait_ready()
        for how in (2, 1, 0):
            case.equal(takeover.call(a.processes()["supervisor"], takeover.SHUTDOWN, FD_CONTROL_SOCKET, how), -errno.EPERM,
                       "shutdown(%d)" % how)
        a.wait_process("supervisor", other_than=a.kill("supervisor"))
        a.wait_ready()


def test_a_supervisor_with_a_blocking_log_socket_still_answers():
    """The launcher owns the socket, so flags that one supervisor sets remain for the next."""
    with agent.Agent() as a:
        a.wait_ready()
        case.equal(takeover.call(a.processes()["supervisor"], takeover.FCNTL, FD_SUP_LOG, fcntl.F_SETFL, 0), 0, "fcntl(F_SETFL)")
        a.wait_process("supervisor", other_than=a.kill("supervisor"))
        a.wait_ready()
        with a.connect() as follower:
            follower.sendall(b"GET /v1/agent/monitor HTTP/1.1\r\nHost: localhost\r\n\r\n")
            follower.settimeout(case.LEAST_S)
            case.contains(follower.recv(4096).decode(), "200 OK")
            a.wait_ready()


def test_a_control_socket_that_another_process_shut_down_is_replaced():
    """The accomplice, to which the supervisor passed the socket, has no filter. After the next start of the supervisor there is a new
    socket, which the accomplice does not have."""
    with agent.Agent() as a, socket.socket(socket.AF_UNIX) as accomplice:
        a.wait_ready()
        accomplice.bind("\0accomplice")
        accomplice.listen()
        takeover.pass_on(a.processes()["supervisor"], FD_CONTROL_SOCKET, "accomplice")
        with accomplice.accept()[0] as peer:
            fd = socket.recv_fds(peer, 1, 1)[1][0]
        with socket.socket(fileno=fd) as listener:
            listener.shutdown(socket.SHUT_RDWR)
            case.raises(ConnectionRefusedError, a.connect)
            a.wait_process("supervisor", other_than=a.kill("supervisor"))
            a.wait_ready()
        a.wait_log("the control socket was shut down: binding it again")


def test_a_process_that_does_not_end_blocks_no_other_agent():
    with agent.Agent() as a:
        for name in ("supervisor",) + HELPERS:
            all_ready(a)
            pids = list(a.processes().values())
            os.kill(a.processes()[name], signal.SIGSTOP)
            a.process.kill()
            a.wait()
            agent.wait_gone(pids, 10)
            a.start()
        all_ready(a)


def test_only_exec_helper_can_disable_its_parent_death_signal():
    with agent.Agent() as a:
        for name in ("mount-helper", "file-helper", "heartbeat", "supervisor"):
            all_ready(a)
            case.equal(takeover.call(a.processes()[name], PRCTL, PR_SET_PDEATHSIG, 0), takeover.KILLED, name)


def test_the_lock_is_held_until_the_last_process_has_ended_but_not_by_children():
    with helper.Places() as places:
        def is_free():
            fd = os.open(places.data + "/lock", os.O_RDONLY | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                return False
            finally:
                os.close(fd)

        fd = os.open(places.data + "/lock", os.O_RDONLY | os.O_CLOEXEC)
        fcntl.flock(fd, fcntl.LOCK_EX)
        h = helper.Helper("mount-helper", places, lock=fd)
        os.close(fd)
        try:
            case.equal(is_free(), False, "whether the lock is free while mount-helper runs")
            case.equal(os.readlink("/proc/%d/fd/5" % h.pid), "/dev/null", "target of the former descriptor of the lock")
        finally:
            h.kill()
            h.wait()
            h.close()
        case.equal(is_free(), True, "whether the lock is free after its end")


case.run(globals())
