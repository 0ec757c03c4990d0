# SPDX-License-Identifier: Apache-2.0
"""mount-helper alone: connecting to a plugin's socket."""
import errno
import os
import signal
import socket

from lib import case, mnt

PLUGIN_UID = 4711


class Plugin:
    """A process with a listening csi.sock: of PLUGIN_UID, in the cgroup of a run."""

    def __init__(self, places, h, uid=PLUGIN_UID, cgroup=None, backlog=8, listen=True):
        self.alloc, self.run = os.urandom(16), os.urandom(16)
        self.dir = places.data + "/csi/sock/" + mnt.text(self.alloc)
        os.mkdir(self.dir, 0o700)
        os.chown(self.dir, uid, uid)  # as the plugin's executor does
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
                pass  # a test that only needed the connection
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


def test_a_connected_socket_is_returned():
    with mnt.started() as (places, h):
        for uid in (PLUGIN_UID, 0):
            with Plugin(places, h, uid) as plugin:
                for _ in range(3):
                    s = socket.socket(fileno=plugin.connect(h).take_fd())
                    s.setblocking(True)
                    case.equal(s.recv(100), b"hello", "data from the plugin")
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


def test_a_listener_below_the_runs_cgroup_is_accepted():
    with mnt.started() as (places, h):
        with Plugin(places, h) as plugin:
            os.mkdir(plugin.cgroup + "/worker")
            with open(plugin.cgroup + "/worker/cgroup.procs", "w", encoding="ascii") as f:
                f.write(str(plugin.pid))
            plugin.connect(h).close()


def test_a_stale_socket_and_a_full_queue_are_reported_at_once():
    with mnt.started() as (places, h):
        with Plugin(places, h, listen=False) as plugin:
            plugin.refused(h, errno.ECONNREFUSED, "stale: nobody listens")
        with Plugin(places, h, backlog=0) as plugin:
            plugin.connect(h).close()
            plugin.refused(h, errno.EAGAIN, "the queue of its csi.sock is full")


def test_other_files_in_place_of_the_socket_are_refused():
    with mnt.started() as (places, h):
        with Plugin(places, h) as plugin:
            real = plugin.dir + "/real"
            os.rename(plugin.dir + "/csi.sock", real)
            plugin.refused(h, errno.ENOENT, "csi.sock: No such file")
            os.symlink("real", plugin.dir + "/csi.sock")
            plugin.refused(h, errno.ELOOP, "csi.sock")
            os.unlink(plugin.dir + "/csi.sock")
            os.mkdir(plugin.dir + "/csi.sock")
            plugin.refused(h, errno.ENOTSOCK, "csi.sock is not a socket")
            os.rmdir(plugin.dir + "/csi.sock")
            os.mkfifo(plugin.dir + "/csi.sock")
            plugin.refused(h, errno.ENOTSOCK, "csi.sock is not a socket")
            os.rename(real, plugin.dir + "/csi.sock")
            plugin.connect(h).close()
            os.rename(plugin.dir, plugin.dir + "x")
            os.symlink(plugin.dir + "x", plugin.dir)
            plugin.refused(h, errno.ELOOP, "open the plugin's csi/sock/")
            os.unlink(plugin.dir)
            plugin.refused(h, errno.ENOENT, "open the plugin's csi/sock/")


def test_a_plugin_without_an_alloc_must_be_in_the_configuration():
    with mnt.started() as (_, h):
        mnt.refused(h, errno.EPERM, 'the configuration has no csi_plugin "other"', "MNT_PLUGIN_CONNECT_REQ", {"plugin": "other"})


def test_a_link_to_the_socket_of_another_process_is_refused():
    """csi.sock is a link to a socket that the plugin's user may not open, and whose listener is not a process of the run."""
    with mnt.started() as (places, h):
        private = places.data + "/csi/private"
        os.mkdir(private, 0o700)
        with socket.socket(socket.AF_UNIX) as s, Plugin(places, h) as plugin:
            s.bind(private + "/sock")
            os.chmod(private + "/sock", 0)
            s.listen()
            os.rename(plugin.dir + "/csi.sock", plugin.dir + "/real")
            os.link(private + "/sock", plugin.dir + "/csi.sock")
            plugin.refused(h, errno.EPERM, "csi.sock is not the plugin's: process %d listens" % os.getpid())
            s.setblocking(True)
            with s.accept()[0] as c:
                case.equal(c.recv(1), b"", "data that the listener gets before the connection closes")
            os.rename(plugin.dir + "/real", plugin.dir + "/csi.sock")
            plugin.connect(h).close()


def test_sockets_of_other_kinds_are_refused():
    with mnt.started() as (places, h):
        for kind in (socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
            with Plugin(places, h) as plugin, socket.socket(socket.AF_UNIX, kind) as s:
                os.unlink(plugin.dir + "/csi.sock")
                os.chdir(plugin.dir)
                s.bind("csi.sock")
                os.chdir("/")
                plugin.refused(h, errno.EPROTOTYPE, "connect to the plugin's csi.sock")


def stop_all_of(uid, ready):
    """Starts a process of this user that sends SIGSTOP to all other processes of the user again and again. Returns its pid."""
    pid = os.fork()
    if pid == 0:
        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)
        os.write(ready, b"1")
        while True:
            try:
                os.kill(-1, signal.SIGSTOP)  # kill(-1) excludes the caller
            except OSError:
                pass
    return pid


def test_a_plugin_that_stops_all_processes_of_its_user_delays_no_request():
    """An earlier helper connected as the plugin's user: each request lost a child to this, and after sixteen the helper refused all."""
    with mnt.started() as (places, h):
        told, ready = os.pipe()
        with Plugin(places, h, backlog=100) as plugin:
            stoppers = [stop_all_of(PLUGIN_UID, ready)]
            case.equal(os.read(told, 1), b"1", "the start of the process that sends SIGSTOP")
            try:
                serials = [h.ipc.send("MNT_PLUGIN_CONNECT_REQ", {"alloc": plugin.alloc, "run": plugin.run}) for _ in range(60)]
                answers = [h.ipc.recv() for _ in serials]
            finally:
                for pid in stoppers:
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
            for a in answers:
                case.equal(a.name, "MNT_PLUGIN_CONNECT_REP", "an answer: %s" % a.fields)
                a.close()
            case.equal(mnt.children(h.pid), [], "children of the helper")
        with Plugin(places, h) as plugin:
            plugin.connect(h).close()


case.run(globals())
