# SPDX-License-Identifier: Apache-2.0
"""Starts runs through exec-helper alone: the test is supervisor, mount-helper and file-helper.

    with runs.Runs() as r:
        run = r.start("sh", ["-c", "echo hello"])
        r.ended(run)["exit_code"], r.log(run)
"""
import ctypes
import errno
import os
import stat
import time
import uuid

from . import case, exe, helper, ipc

SIGINT, SIGKILL, SIGTERM = 2, 9, 15


def group_of(alloc):
    """Returns the group of one alloc: proto/alloc_group.h."""
    return 0x70000000 + int.from_bytes(alloc[:4], "big") % 0x1000000


def old_group_of(alloc):
    """Returns the group that an earlier version gave to the alloc."""
    return 0x70000000 + int.from_bytes(alloc[:4], "big") % (0x7ffffffe - 0x70000000 + 1)


class Run:
    """One start. .id is 16 bytes, .name its 32 digits, .alloc the alloc's uuid."""

    def __init__(self, run_id, alloc, task):
        self.id, self.name, self.alloc, self.task = run_id, run_id.hex(), str(uuid.UUID(bytes=alloc)), task
        self.alloc_id = alloc


def start_record(req):
    """Converts the fields of Runs.request() to those of EXEC_TASK_START_REQ."""
    outside = ("mounts", "layers", "n_layers")
    return {"start": {k: v for k, v in req.items() if k not in outside}, "mounts": req.get("mounts", ()),
            **{k: v for k, v in req.items() if k in outside}}


class Runs:
    """An exec-helper with the directories that it needs."""

    def __init__(self, config="", dev=True, env=None):
        self.places = helper.Places(dev=dev)
        self.config, self.dev, self.env = config, dev, env
        self.runs = []
        try:
            self.helper = self._helper()
        except BaseException:  # no `with` block is active yet that would remove them
            self.places.remove()
            raise

    def _helper(self):
        return helper.Helper("exec-helper", self.places, self.config, self.dev, env=self.env)

    def restart(self):
        """Starts another exec-helper after the first has ended."""
        self.helper.close()
        self.helper = self._helper()

    @property
    def ipc(self):
        return self.helper.ipc

    def make_alloc(self, task="web", more=()):
        """Makes the directories of an alloc with these tasks. Returns the alloc's 16 bytes."""
        alloc = uuid.uuid4()
        d, uid = self.places.data, self.places.uid
        dirs = [("alloc/%s", 0o710, 0), ("alloc/%s/alloc", 0o1777, 0), ("alloc/%s/alloc/data", 0o777, 65534),
                ("alloc/%s/alloc/tmp", 0o777, 65534), ("alloc/%s/alloc/logs", 0o755, 0)]
        for name in (task, *more):
            top = "alloc/%s/" + name
            dirs += [(top, 0o755, 0), (top + "/local", 0o700, 0), (top + "/private", 0o700, 0), (top + "/tmp", 0o1777, 0),
                     (top + "/secrets", 0o700, 0)]
        for path, mode, owner in dirs:
            at = os.path.join(d, path % alloc)
            os.mkdir(at)
            os.chown(at, owner, group_of(alloc.bytes) if mode == 0o710 else owner)
            os.chmod(at, mode)
        at = "%s/logs/%s" % (d, alloc)
        os.mkdir(at)
        os.chown(at, uid["executor"], uid["drover"])
        os.chmod(at, 0o2755)
        return alloc.bytes

    def request(self, driver="RAW_EXEC", alloc=None, task="web", **fields):
        """Returns a Run and the fields of its request."""
        run = Run(os.urandom(16), alloc or self.make_alloc(task), task)
        req = {"run": run.id, "alloc": run.alloc_id, "task": task, "driver": "EXEC_DRIVER_" + driver,
               "log_max_files": 10, "log_max_bytes": 10 << 20, "kill_signal": SIGINT, "kill_timeout_ms": 5000}
        req.update(fields)
        return run, req

    def send(self, req, spec):
        fd = helper.memfd_sealed(spec)
        try:
            return self.ipc.call("EXEC_TASK_START_REQ", start_record(req), [fd])
        finally:
            os.close(fd)

    def start(self, command, args=(), driver="RAW_EXEC", alloc=None, task="web", env=(), cwd=None, secrets=(), dests=(),
              user_inside=None, options=(), **fields):
        """Starts a run and returns it."""
        if dests:
            fields["mounts"] = [dict(mount, dest=dest) for mount, dest in zip(fields["mounts"], dests)]
        run, req = self.request(driver, alloc, task, **fields)
        reply = self.send(req, exe.spec(command, args, env, cwd, secrets, user_inside, options))
        case.equal(reply["existed"], False, "existed")
        self.runs.append(run)
        return run

    def session(self, run, command, args=(), env=(), secrets=(), kind="COMMAND", tty=False, user_inside=None, options=(), **fields):
        """Starts a session inside a run that start() returned; fields are those of the run."""
        req = {"start": {**self.request(alloc=run.alloc_id, task=run.task)[1], "run": run.id, "tty": tty, **fields},
               "kind": "EXEC_SESSION_" + kind}
        fd = helper.memfd_sealed(exe.spec(command, args, env, secrets=secrets, user=user_inside, options=options))
        try:
            return exe.Session(self.ipc.call("EXEC_SESSION_START_REQ", req, [fd]).take_fd())
        finally:
            os.close(fd)

    def replace(self, run, secrets, **fields):
        """Returns the exit code of a session that puts files into the task's secrets."""
        with self.session(run, None, kind="FILE", secrets=secrets, **fields) as s:
            return s.wait_exited()["exit_code"]

    def secrets(self, run):
        """Returns the host path of the secrets of a running run."""
        of_exec = "/proc/%d/root/secrets" % self.record(run)["task_pid"]
        return of_exec if os.path.ismount(of_exec) else "%s/alloc/%s/%s/secrets" % (self.places.data, run.alloc, run.task)

    def record(self, run):
        return exe.read_record(self.places, run.name)

    def wait_state(self, run, *states, seconds=10):
        """Waits until the record has one of these states and returns it."""
        def look():
            record = self.record(run)
            return record if record and record["state"] in states else None
        return case.until(look, seconds, "state %s of a run" % [exe.STATES[s] for s in states])

    def ended(self, run, seconds=10):
        """Waits until the run has ended or failed and its executor is gone; returns the record."""
        record = self.wait_state(run, exe.EXE_ENDED, exe.EXE_FAILED, seconds=seconds)
        case.until(lambda: not self.answers(run), seconds, "end of the executor")
        return record

    def answers(self, run):
        """Returns whether an executor listens for this run."""
        try:
            exe.Connection(self.places, run.name).close()
        except (OSError, exe.Error):
            return False
        return True

    def connect(self, run):
        return exe.Connection(self.places, run.name)

    def log(self, run, stream="stdout"):
        """Returns all output of the task, from all its log files."""
        base = "%s/logs/%s" % (self.places.data, run.alloc)
        files = [f for f in os.listdir(base) if f.startswith("%s.%s." % (run.task, stream))]
        out = b""
        for f in sorted(files, key=lambda f: int(f.rsplit(".", 1)[1])):
            with open(os.path.join(base, f), "rb") as fd:
                out += fd.read()
        return out.decode(errors="replace")

    def output(self, command, args=(), **kwargs):
        """Runs a command to its end and returns its output. Fails if the command fails."""
        run = self.start(command, args, **kwargs)
        record = self.ended(run)
        text = self.log(run)
        if record["state"] != exe.EXE_ENDED or record["exit_code"] or record["exit_signal"]:
            raise AssertionError("%r ended with %r: %s%s" % (command, record, text, self.log(run, "stderr")))
        return text

    def reap(self, run):
        """Reaps as the supervisor does: repeats the request while processes are being killed."""
        end, killed = time.monotonic() + case.LEAST_S, False
        while True:
            try:
                return self.reap_once(run) or killed
            except ipc.RequestError as e:
                if e.code != -errno.EAGAIN or time.monotonic() > end:
                    raise
            killed = True
            time.sleep(0.02)

    def reap_once(self, run):
        return self.ipc.call("EXEC_RUN_REAP_REQ", {"run": run.id})["killed"]

    def list(self):
        """Returns the ids, as 32 digits each, of all runs that have a cgroup, a socket or a record."""
        names = set()
        for tree, path in self.places.cgroup_dirs().items():
            for below in ("tasks", "cores") if tree == "v2" else ("runs",):
                names.update(n for n in os.listdir(path + "/" + below) if len(n) == 32)
        names.update(n[:-5] for n in os.listdir(self.places.runtime + "/x"))
        names.update(n[:-4] for n in os.listdir(self.places.data + "/run"))
        return sorted(names)

    def __enter__(self):
        return self

    def __exit__(self, kind, *args):
        try:
            self.helper.__exit__(kind, *args)
        finally:
            helper.remove_cgroup(self.places.cgroup_dirs()["v2"])
            self.places.remove()


class _Statx(ctypes.Structure):
    _fields_ = [("mask", ctypes.c_uint32), ("blksize", ctypes.c_uint32), ("attributes", ctypes.c_uint64),
                ("nlink", ctypes.c_uint32), ("uid", ctypes.c_uint32), ("gid", ctypes.c_uint32), ("mode", ctypes.c_uint16),
                ("pad0", ctypes.c_uint16), ("ino", ctypes.c_uint64), ("size", ctypes.c_uint64), ("blocks", ctypes.c_uint64),
                ("attributes_mask", ctypes.c_uint64), ("times", ctypes.c_int64 * 8), ("rdev", ctypes.c_uint32 * 2),
                ("dev_major", ctypes.c_uint32), ("dev_minor", ctypes.c_uint32), ("mnt_id", ctypes.c_uint64),
                ("spare", ctypes.c_uint64 * 13)]


def mount_proof(path):
    """Returns the MountProof of the mount at path, as mount-helper takes it after publish."""
    st, fs = _Statx(), (ctypes.c_int64 * 15)()
    if helper.libc.statx(-100, os.fsencode(path), 0x100, 0x100 | 0x800 | 0x1000 | 0x4000, ctypes.byref(st)) < 0 or \
            helper.libc.statfs(os.fsencode(path), fs) < 0:
        raise OSError(ctypes.get_errno(), path)
    btime = st.times[2:4] if st.mask & 0x800 else (0, 0)
    return {"mnt_id": st.mnt_id, "mnt_id_unique": bool(st.mask & 0x4000), "dev_major": st.dev_major,
            "dev_minor": st.dev_minor, "ino": st.ino, "btime_sec": btime[0], "btime_nsec": btime[1] & 0xFFFFFFFF,
            "fs_type": fs[0], "fs_id": fs[7] & (1 << 64) - 1, "fs_flags": fs[10],
            **({"is_block": True, "rdev_major": st.rdev[0], "rdev_minor": st.rdev[1]} if stat.S_ISBLK(st.mode) else {})}
