# SPDX-License-Identifier: Apache-2.0
"""One helper alone, started as the launcher starts it: the test is its supervisor.

    places = helper.Places()
    with helper.Helper("mount-helper", places) as h:
        h.ipc.call("MNT_ALLOC_RELEASE_REQ", {"alloc": os.urandom(16)})
"""
import contextlib
import ctypes
import errno
import fcntl
import os
import signal
import socket
import struct
import subprocess
import time

from . import binary, build_dir, case
from .ipc import Channel, Error

# enum proc_fd
FILES = 7  # enum config_file
FD_LINK, FD_CONFIG, FD_LOCK, FD_IPC, FD_SPECIAL, FD_SPECIAL2, FD_DATA = range(3, 10)

USERS = ("drover", "executor", "csi", "heartbeat", "check", "file", "parser", "fetcher", "renderer", "listener", "images")  # in the order of proc_args.agent_uids
F_ADD_SEALS = 1033
SEALS = 0x1 | 0x2 | 0x4 | 0x8  # SEAL, SHRINK, GROW, WRITE
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 1 << 14, 1 << 18

libc = ctypes.CDLL(None, use_errno=True)


def mount(source, target, fs_type=None, flags=0, data=None):
    """mount(2)."""
    text = [None if s is None else os.fsencode(s) for s in (source, target, fs_type)]
    if libc.mount(*text, ctypes.c_ulong(flags), None if data is None else data.encode()) < 0:
        raise OSError(ctypes.get_errno(), "mount " + target)


def umount(target, flags=0):
    if libc.umount2(os.fsencode(target), flags) < 0:
        raise OSError(ctypes.get_errno(), "umount " + target)


@contextlib.contextmanager
def hidden(path, text=""):
    """Covers a file with one that nobody can run. Yields a function that ends that."""
    cover, covered = case.directory() + "/cover", [path]
    case.write(cover, text)
    mount(cover, path, None, 4096)

    def uncover():
        while covered:
            umount(covered.pop())
    try:
        yield uncover
    finally:
        uncover()


def memfd_sealed(data, name="test"):
    """Returns a sealed memfd, which every descriptor for a helper must be. The caller closes it."""
    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, data) if data else None
    fcntl.fcntl(fd, F_ADD_SEALS, SEALS)
    return fd


def memfd_read(fd):
    """Returns the contents of a memfd that a helper sent, and closes it."""
    with os.fdopen(fd, "rb") as f:
        f.seek(0)
        return f.read()


def config_record(which, text="", dev=True):
    """Returns the raw record ("config" or "policy") of this configuration."""
    args = [os.path.join(build_dir(), "tests", "mk_config"), which] + ["-dev"] * dev
    r = subprocess.run(args, input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if r.returncode:
        raise Error("mk_config: " + r.stderr.decode())
    return r.stdout


def cgroup_trees():
    """Returns {name: mount point} of the hierarchies in use: v2 ("v2") and, of v1, memory, cpu, pids, cpuset."""
    trees = {}
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        for line in f:
            before, after = line.rstrip("\n").split(" - ")
            point, kind = before.split(" ")[4], after.split(" ")[0]
            options = after.split(" ")[2].split(",")
            if kind == "cgroup2":
                trees.setdefault("v2", point)
            elif kind == "cgroup":
                for name in ("memory", "cpu", "pids", "cpuset"):
                    if name in options:
                        trees.setdefault(name, point)
    return trees


def remove_cgroup(path):
    """Kills all processes in a v2 cgroup and removes it with everything below it. In a v1 hierarchy it only removes."""
    if not os.path.isdir(path):
        return
    if os.path.exists(path + "/cgroup.kill"):
        with open(path + "/cgroup.kill", "w", encoding="ascii") as f:
            f.write("1")
    end = time.monotonic() + case.LEAST_S
    for at, _, _ in os.walk(path, topdown=False):
        while True:
            try:
                os.rmdir(at)
                break
            except FileNotFoundError:
                break  # its own process has removed it meanwhile
            except OSError as e:
                if e.errno != errno.EBUSY or time.monotonic() > end:
                    raise
                time.sleep(0.005)


class Places:
    """The data directory, runtime directory and cgroups of one instance, made as the launcher makes them. uids: {name of USERS: uid}."""

    def __init__(self, base=None, dev=True, uids=None):
        self.base = base or case.directory()
        self.instance = os.urandom(4).hex()
        self.dev = dev
        self.data, self.runtime = self.base + "/data", self.base + "/data/rt"
        self.cgroup = "/drover-" + self.instance
        first = 61184 + len(USERS) * (int(self.instance, 16) % (4000 // len(USERS)))  # below nobody, 65534
        self.uid = uids or {name: first + i for i, name in enumerate(USERS)}
        drover = self.uid["drover"]
        for path, mode, uid, gid in (
                ("", 0o711, 0, 0),
                ("state", 0o700, drover, drover),
                ("alloc", 0o711, 0, 0),
                ("alloc/.fetch", 0o700, self.uid["fetcher"], self.uid["file"]),
                ("logs", 0o2750, 0, drover),
                ("run", 0o2750, 0, drover),
                ("csi", 0o711, 0, 0),
                ("csi/sock", 0o711, 0, 0),
                ("csi/node", 0o711, 0, 0),
                ("csi/controller", 0o711, 0, 0),
                ("csi/monolith", 0o711, 0, 0),
                ("images", 0o711, 0, 0),
                ("images/layers", 0o700, 0, 0),
                ("rt", 0o755, 0, 0),
                ("rt/x", 0o2750, 0, drover),
                ("rt/netns", 0o740, 0, drover)):
            self._directory(os.path.join(self.data, path), mode, uid, gid)
        self._file("lock", b"", 0o600)
        self._file("instance", self.instance.encode() + b"\n", 0o644)
        self.make_lease()
        self._make_cgroups()

    def _directory(self, path, mode, uid, gid):
        os.mkdir(path)
        os.chown(path, uid, gid)
        os.chmod(path, mode)

    def _file(self, name, data, mode):
        fd = os.open(os.path.join(self.data, name), os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        os.write(fd, data)
        os.close(fd)

    def make_lease(self, started=None, last_ok=0):
        """Writes a new <rt>/lease: struct lease_page."""
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
            boot_id = f.read().strip().encode()
        if started is None:
            started = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        page = struct.pack("<Q40sQQ", 0x657361656C766472, boot_id, started, last_ok)
        with open(self.runtime + "/lease.new", "wb") as f:
            f.write(page.ljust(4096, b"\0"))
        os.chmod(self.runtime + "/lease.new", 0o644)
        os.rename(self.runtime + "/lease.new", self.runtime + "/lease")

    def cgroup_dirs(self):
        """Returns {hierarchy: this instance's parent directory in it}."""
        return {name: point + self.cgroup for name, point in cgroup_trees().items()}

    def run_cgroup(self, run):
        """Returns the v2 cgroup of a run (32 hex digits)."""
        return self.cgroup_dirs()["v2"] + "/tasks/" + run

    def _make_cgroups(self):
        for name, path in self.cgroup_dirs().items():
            for at in (path, path + "/exec", path + ("/tasks" if name == "v2" else "/runs")):
                if name == "v2":
                    self._enable(os.path.dirname(at))
                os.mkdir(at, 0o755)
            if name == "cpuset":
                with open(path + "/runs/cgroup.clone_children", "w", encoding="ascii") as f:
                    f.write("1")
            if name == "v2":
                self._enable(path + "/tasks")
                os.mkdir(path + "/cores", 0o755)
                self._enable(path + "/cores")

    def _enable(self, path):
        for controller in ("memory", "cpu", "pids", "cpuset"):
            try:
                with open(path + "/cgroup.subtree_control", "w", encoding="ascii") as f:
                    f.write("+" + controller)
            except OSError:
                pass  # the controller is in v1, or does not exist

    def remove(self):
        """Kills all processes in the cgroups, and removes mounts, cgroups and directories."""
        for path in self.cgroup_dirs().values():
            remove_cgroup(path)
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            points = [line.split(" ")[4] for line in f]
        for point in reversed(points):
            if point.startswith(self.data + "/"):
                umount(point, 2)  # MNT_DETACH
        subprocess.run(["rm", "-rf", "--one-file-system", self.data], check=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()


IMAGE_DIRECTORIES = {"image-fetcher": "images/blobs", "image-unpacker": "images"}


class Helper:
    """A running helper. .ipc is its Channel, .pid its pid, .log() its log so far."""

    users = {"csi-helper": "csi", "heartbeat": "heartbeat", "check-helper": "check", "file-helper": "file", "job-parser": "parser", "fetcher": "fetcher",
             "template-renderer": "renderer", "listener": "listener", "image-fetcher": "images", "image-unpacker": "images", "supervisor": "drover"}

    def __init__(self, name, places, config="", dev=True, args=(), env=None, hello=True, data=None,
                 tls=(), lock=-1, special=-1):
        self.name, self.places, self.status, self.special = name, places, None, special
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.link, their_link = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ipc = Channel(ours)
        self.log_file = open(os.path.join(places.base, name + ".log"), "ab")
        which = "config" if name in self.users else "policy"
        config_fd = memfd_sealed(config_record(which, config, dev), which)
        opened = [config_fd, their_link.detach(), theirs.detach()]
        try:
            data_fd = self._open(opened, data or places.data, os.O_RDONLY | os.O_DIRECTORY)
            files = [self._open(opened, path, os.O_RDONLY) for path in tls]
            more = []
            if name in ("exec-helper", "mount-helper", "file-helper"):
                more.append(data_fd)
            elif name in IMAGE_DIRECTORIES:
                more.append(self._image_directory(opened, name))
            if lock < 0 and name not in ("csi-helper", "check-helper", "job-parser", "fetcher", "template-renderer", "listener", "image-fetcher", "image-unpacker"):
                lock = self._open(opened, "/proc/self/fd/%d/lock" % data_fd, os.O_RDONLY)
            self._start(config_fd, opened[1], opened[2], lock, more, files, opened, args, env)
        finally:
            for fd in opened:
                os.close(fd)
        if hello:
            self.hello = self.say_hello()

    def _image_directory(self, opened, name):
        """Opens what the launcher hands on. image-unpacker runs here without the user namespace that the launcher makes for it."""
        for path in ("images", "images/blobs", "images/layers"):
            os.makedirs(self.places.data + "/" + path, exist_ok=True)
        os.chown(self.places.data + "/images/blobs", self.places.uid["images"], 0)
        return self._open(opened, self.places.data + "/" + IMAGE_DIRECTORIES[name], os.O_RDONLY | os.O_DIRECTORY)

    def _open(self, opened, path, flags):
        opened.append(os.open(path, flags | os.O_CLOEXEC))
        return opened[-1]

    def _start(self, config_fd, link_fd, ipc_fd, lock, more, files, opened, args, env):
        null = self._open(opened, "/dev/null", os.O_RDWR)
        lock = null if lock < 0 else lock
        special = special2 = null
        if self.name == "exec-helper":
            special = self._open(opened, binary("executor"), os.O_PATH)
            special2 = self._open(opened, binary("exec-helper"), os.O_PATH)
        elif self.name == "heartbeat":
            special = self._open(opened, self.places.runtime + "/lease", os.O_RDWR)
        elif self.special >= 0:
            special = self.special
        fds = [null, self.log_file.fileno(), self.log_file.fileno(), link_fd, config_fd, lock, ipc_fd, special, special2]
        fds += more + [null] * (3 - len(more))
        if self.name in ("heartbeat", "listener"):
            fds += [null, null] + files + [null] * (FILES - len(files))  # first FD_LOG and FD_LOG_LEVEL
        argv = self._argv() + list(args)
        path = binary(self.name)
        if not os.access(path, os.X_OK):
            raise Error(path + " does not exist: build it first")
        self.pid = os.fork()
        if self.pid == 0:
            try:
                self._become(path, fds, argv, env or {})
            finally:
                os._exit(127)
        self.pidfd = os.pidfd_open(self.pid)

    def _become(self, path, fds, argv, env):
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 100) for fd in fds]
        for i, fd in enumerate(high):
            os.dup2(fd, i)
        os.closerange(len(fds), 100 + 4 * len(fds))
        os.setsid()
        os.umask(0o022)
        for signo in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
            signal.signal(signo, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        os.execve(path, argv, env)

    def _argv(self):
        p = self.places
        argv = ["drover-" + self.name, "--instance=" + p.instance, "--data-dir=" + p.data, "--runtime-dir=" + p.runtime,
                "--cgroup=" + p.cgroup, "--log-level=debug", "--generation=1"]
        if self.name in self.users:
            uid = p.uid[self.users[self.name]]
            argv += ["--uid=%d" % uid, "--gid=%d" % uid]
        argv += ["--drover-gid=%d" % p.uid["drover"], "--executor-uid=%d" % p.uid["executor"],
                 "--executor-gid=%d" % p.uid["executor"]]
        argv += ["--agent-uid-%d=%d" % (i, p.uid[name]) for i, name in enumerate(USERS)]
        return argv + ["--dev"] * p.dev

    def say_hello(self):
        """Sends IPC_HELLO with the helper's own build id, which is in its binary."""
        return self.ipc.call("IPC_HELLO_REQ", {"build": build_id(self.name)}).fields

    def log(self):
        with open(self.log_file.name, encoding="utf-8", errors="replace") as f:
            return f.read()

    def kill(self, signo=signal.SIGKILL):
        signal.pidfd_send_signal(self.pidfd, signo)

    def wait(self, seconds=10):
        """Waits for its end. Returns the exit status as of os.waitstatus_to_exitcode(): negative for a signal."""
        def ended():
            if self.status is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.status = os.waitstatus_to_exitcode(status)
            return self.status is not None
        case.until(ended, seconds, "end of %s (pid %d)" % (self.name, self.pid))
        return self.status

    def stop(self, seconds=10):
        """Closes its sockets, as the end of the supervisor does: the helper must end by itself. Returns its exit status."""
        self.ipc.close()
        self.link.close()
        try:
            return self.wait(seconds)
        except AssertionError:
            self.kill()
            self.wait()
            raise
        finally:
            self.close()

    def close(self):
        if self.status is None:
            self.kill()
            self.wait()
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1
            self.log_file.close()
            self.ipc.close()
            self.link.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind is not None:
            print("--- log of %s ---\n%s---" % (self.name, self.log()), flush=True)
            self.close()
        elif self.pidfd >= 0:
            self.stop()


def build_id(name):
    """Returns the build id that is compiled into a binary."""
    r = subprocess.run([os.path.join(build_dir(), "tests", "mk_config"), "build"], stdout=subprocess.PIPE, check=True)
    return r.stdout.decode().strip()
