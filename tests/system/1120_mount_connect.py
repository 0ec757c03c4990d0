# SPDX-License-Identifier: Apache-2.0
"""mount-helper alone: connecting to a plugin's socket, and what the child that connects may do."""
import ctypes
import errno
import os
import signal
import socket

from lib import case, helper, mnt

PLUGIN_UID = 4711


class Plugin:
    """A process with a listening csi.sock: of PLUGIN_UID, in the cgroup of a run."""

    def __init__(self, places, h, uid=PLUGIN_UID, cgroup=None, backlog=8, listen=True):
        self.alloc, self.run = os.urandom(16), os.urandom(16)
        h.ipc.call("MNT_PLUGIN_DIR_MAKE_REQ", {"alloc": self.alloc, "kind": "PLUGIN_NODE", "plugin": "p"})
        self.dir = places.data + "/csi/sock/" + mnt.text(self.alloc)
        os.chown(self.dir, uid, uid)  # as its executor does
        self.cgroup = cgroup or places.run_cgroup(self.run.hex())
        os.makedirs(self.cgroup, exist_ok=True)
        ready, told = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._serve(uid, backlog, listen, told)
            finally:
                os._exit(1)
        os.close(told)
        case.equal(os.read(ready, 1), b"1", "the plugin's start")
        os.close(ready)

    def _serve(self, uid, backlog, listen, told):
        with open(self.cgroup + "/cgroup.procs", "w", encoding="ascii") as f:
            f.write("0")
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        os.chdir(self.dir)
        s = socket.socket(socket.AF_UNIX)
        s.bind("csi.sock")
        if listen:
            s.listen(backlog)
        os.write(told, b"1")
        if backlog == 0 or not listen:
            signal.pause()
        while True:
            c, _ = s.accept()
            try:
                c.sendall(b"hello")
            except BrokenPipeError:
                pass  # a test that only wanted to be connected
            c.close()

    def connect(self, h, **fields):
        return h.ipc.call("MNT_PLUGIN_CONNECT_REQ", {"alloc": self.alloc, "run": self.run, **fields})

    def refused(self, h, code, part, **fields):
        mnt.refused(h, code, part, "MNT_PLUGIN_CONNECT_REQ", {"alloc": self.alloc, "run": self.run, **fields})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self.pid = 0


def test_a_connected_socket_comes_back():
    with mnt.started() as (places, h):
        for uid in (PLUGIN_UID, 0):
            with Plugin(places, h, uid) as plugin:
                for _ in range(3):
                    s = socket.socket(fileno=plugin.connect(h).take_fd())
                    s.setblocking(True)
                    case.equal(s.recv(100), b"hello", "what the plugin says")
                    s.close()


def test_a_listener_of_another_cgroup_is_refused():
    with mnt.started() as (places, h):
        other = places.run_cgroup(os.urandom(16).hex())
        with Plugin(places, h, cgroup=other) as plugin:
            plugin.refused(h, errno.EPERM, "csi.sock is not the plugin's: process %d listens" % plugin.pid)
        with Plugin(places, h, cgroup=places.run_cgroup("") + "x") as plugin:
            plugin.refused(h, errno.EPERM, "not the plugin's")
        with Plugin(places, h) as plugin:
            plugin.refused(h, errno.EPERM, "not the plugin's", run=os.urandom(16))
            plugin.connect(h).close()


def test_a_process_below_the_runs_cgroup_is_the_plugins():
    with mnt.started() as (places, h):
        with Plugin(places, h) as plugin:
            os.mkdir(plugin.cgroup + "/worker")
            with open(plugin.cgroup + "/worker/cgroup.procs", "w", encoding="ascii") as f:
                f.write(str(plugin.pid))
            plugin.connect(h).close()


def test_a_stale_socket_and_a_full_queue_are_told_at_once():
    with mnt.started() as (places, h):
        with Plugin(places, h, listen=False) as plugin:
            plugin.refused(h, errno.ECONNREFUSED, "stale: nobody listens")
        with Plugin(places, h, backlog=0) as plugin:
            plugin.connect(h).close()
            plugin.refused(h, errno.EAGAIN, "the queue of its csi.sock is full")


def test_what_stands_in_the_sockets_place():
    with mnt.started() as (places, h):
        with Plugin(places, h) as plugin:
            real = plugin.dir + "/real"
            os.rename(plugin.dir + "/csi.sock", real)
            plugin.refused(h, errno.ENOENT, "csi.sock: No such file")
            os.symlink("real", plugin.dir + "/csi.sock")
            plugin.refused(h, errno.ELOOP, "csi.sock")
            os.unlink(plugin.dir + "/csi.sock")
            os.mkdir(plugin.dir + "/csi.sock")
            plugin.refused(h, errno.ENOTSOCK, "csi.sock is no socket")
            os.rmdir(plugin.dir + "/csi.sock")
            os.mkfifo(plugin.dir + "/csi.sock")
            plugin.refused(h, errno.ENOTSOCK, "csi.sock is no socket")
            os.rename(real, plugin.dir + "/csi.sock")
            plugin.connect(h).close()
            os.rename(plugin.dir, plugin.dir + "x")
            os.symlink(plugin.dir + "x", plugin.dir)
            plugin.refused(h, errno.ELOOP, "open the plugin's csi/sock/")
            os.unlink(plugin.dir)
            plugin.refused(h, errno.ENOENT, "open the plugin's csi/sock/")


def test_the_child_has_no_more_than_the_owners_rights():
    with mnt.started() as (places, h):
        with Plugin(places, h) as plugin:
            os.chown(plugin.dir + "/csi.sock", 0, 0)
            os.chmod(plugin.dir + "/csi.sock", 0o600)
            plugin.refused(h, errno.EACCES, "connect to the plugin's csi.sock")
            os.chown(plugin.dir + "/csi.sock", PLUGIN_UID, PLUGIN_UID)
            plugin.connect(h).close()
        with Plugin(places, h, 0) as plugin:  # root without capabilities
            os.chown(plugin.dir + "/csi.sock", PLUGIN_UID, PLUGIN_UID)
            plugin.refused(h, errno.EACCES, "connect to the plugin's csi.sock")


def test_a_directory_of_the_agents_own_users_is_refused():
    with mnt.started() as (places, h):
        with Plugin(places, h) as plugin:
            for name in helper.USERS:
                os.chown(plugin.dir, places.uid[name], PLUGIN_UID)
                plugin.refused(h, errno.EPERM, "belongs to a user of drover's own")
            for name in ("drover", "executor"):
                os.chown(plugin.dir, PLUGIN_UID, places.uid[name])
                plugin.refused(h, errno.EPERM, "belongs to a user of drover's own")


# --- the child, stopped at its connect(2) ---

PTRACE_CONT, PTRACE_PEEKUSER, PTRACE_SYSCALL, PTRACE_DETACH = 7, 3, 24, 17
PTRACE_SEIZE, PTRACE_INTERRUPT = 0x4206, 0x4207
OPTIONS = 1 | 2  # TRACESYSGOOD, TRACEFORK
ORIG_RAX, SYS_CONNECT = 15 * 8, 42


def ptrace(request, pid, addr=0, data=0):
    helper.libc.ptrace.restype = ctypes.c_long
    r = helper.libc.ptrace(request, pid, ctypes.c_void_p(addr), ctypes.c_void_p(data))
    if r < 0 and request != PTRACE_PEEKUSER:
        raise OSError(ctypes.get_errno(), "ptrace %d" % request)
    return r


def status_at_connect(helper_pid):
    """Lets the seized helper run until a child of it is in connect(2); that one's /proc/PID/status as a dict. Detaches from both."""
    child = None
    while True:
        pid, status = os.waitpid(-1, 0x40000000)  # __WALL
        if not os.WIFSTOPPED(status):
            raise AssertionError("process %d ended" % pid)
        signo = os.WSTOPSIG(status)
        if pid != helper_pid and child is None:
            child = pid
        if pid == child and signo == signal.SIGTRAP | 0x80 and ptrace(PTRACE_PEEKUSER, pid, ORIG_RAX) == SYS_CONNECT:
            with open("/proc/%d/status" % pid, encoding="ascii") as f:
                found = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
            found["fds"] = sorted(int(n) for n in os.listdir("/proc/%d/fd" % pid))
            ptrace(PTRACE_DETACH, pid)
            ptrace(PTRACE_INTERRUPT, helper_pid)
            while os.waitpid(helper_pid, 0x40000000)[0] != helper_pid:
                pass
            ptrace(PTRACE_DETACH, helper_pid)
            return found
        event = signo == signal.SIGTRAP | 0x80 or status >> 16
        ptrace(PTRACE_SYSCALL if pid == child else PTRACE_CONT, pid, 0, 0 if event else signo)


def test_the_connecting_child_holds_nothing():
    with mnt.started() as (places, h):
        with Plugin(places, h) as plugin:
            ptrace(PTRACE_SEIZE, h.pid, 0, OPTIONS)
            serial = h.ipc.send("MNT_PLUGIN_CONNECT_REQ", {"alloc": plugin.alloc, "run": plugin.run})
            found = status_at_connect(h.pid)
            h.ipc.answer(serial).close()
            case.equal(found["Uid"].split(), [str(PLUGIN_UID)] * 4, "uids")
            case.equal(found["Gid"].split(), [str(PLUGIN_UID)] * 4, "gids")
            case.equal(found["Groups"].split(), [], "groups")
            for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
                case.equal(int(found[name], 16), 0, name)
            case.equal((found["NoNewPrivs"], found["Seccomp"]), ("1", "2"), "NoNewPrivs, Seccomp")
            case.equal(found["fds"], [0, 1, 2, 3, 4, 5], "descriptors: log, the socket's path, the way back, the new socket")


def test_a_child_that_is_stopped_delays_nobody_and_has_its_deadline():
    with mnt.started() as (places, h):
        with Plugin(places, h) as plugin:
            case.until(lambda: not mnt.children(h.pid), 10, "the child that empties the trash at the start to end")
            ptrace(PTRACE_SEIZE, h.pid, 0, OPTIONS)
            serial = h.ipc.send("MNT_PLUGIN_CONNECT_REQ", {"alloc": plugin.alloc, "run": plugin.run})
            pid, _ = os.waitpid(h.pid, 0x40000000)
            child = case.until(lambda: mnt.children(h.pid), 5, "a child")[0]
            case.equal(os.waitpid(child, 0x40000000)[0], child, "the stop of the child")
            ptrace(PTRACE_DETACH, pid)
            other = h.ipc.send("MNT_ALLOC_DIR_MAKE_REQ", {"alloc": os.urandom(16), "tasks": ["web"]})
            answers = {a.serial: a for a in (h.ipc.recv() for _ in range(2))}
            case.equal(answers[other].name, "MNT_ALLOC_DIR_MAKE_REP", "the answer to another")
            case.equal((answers[serial].name, -answers[serial]["code"]), ("IPC_ERROR_REP", errno.ETIMEDOUT), "its own answer")
            case.until(lambda: os.waitpid(child, 0x40000000 | os.WNOHANG)[0], 5, "end of the child by SIGKILL")
        case.until(lambda: not mnt.children(h.pid), 5, "the helper reaps")


case.run(globals())
