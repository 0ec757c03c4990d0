# SPDX-License-Identifier: Apache-2.0
"""file-helper under an attacker's control: which files it can reach, and which system calls it may make."""
import errno
import os
import signal
import stat
import struct

from lib import case, helper, mnt, takeover
from lib.helper import mount, umount

STAT, CHMOD, MKDIRAT, FCHMODAT, CHROOT, MOUNT, EXECVE, PTRACE, OPENAT2 = 262, 90, 258, 268, 161, 165, 59, 101, 437  # x86-64
AT_FDCWD = (1 << 64) - 100
NOFOLLOW = 0x100


class Process:
    """System calls of a running file-helper. Strings and structures are written to the unused end of its stack."""

    def __init__(self, pid):
        self.pid = pid
        with open("/proc/%d/maps" % pid, encoding="ascii") as f:
            self.base = int(next(line for line in f if "[stack]" in line).split("-")[0], 16)

    def put(self, data, at=0):
        with open("/proc/%d/mem" % self.pid, "r+b", buffering=0) as f:
            f.seek(self.base + at)
            f.write(data)
        return self.base + at

    def stat(self, fd, path, flags=NOFOLLOW):
        """Returns (device, inode) or -errno."""
        r = takeover.call(self.pid, STAT, fd, self.put(path.encode() + b"\0"), self.base + 2048, flags)
        if r is takeover.KILLED or r < 0:
            return r
        with open("/proc/%d/mem" % self.pid, "rb", buffering=0) as f:
            f.seek(self.base + 2048)
            return struct.unpack("<QQ", f.read(16))

    def open(self, fd, path, flags):
        how = self.put(struct.pack("<QQQ", flags, 0, 0), 1024)
        return takeover.call(self.pid, OPENAT2, fd, self.put(path.encode() + b"\0"), how, 24)

    def directories(self):
        """Returns {descriptor: (device, inode)} of its open directories."""
        found = {}
        for n in os.listdir("/proc/%d/fd" % self.pid):
            st = os.stat("/proc/%d/fd/%s" % (self.pid, n))
            if stat.S_ISDIR(st.st_mode):
                found[int(n)] = (st.st_dev, st.st_ino)
        return found


def identity(path):
    st = os.lstat(path)
    return st.st_dev, st.st_ino


def test_no_path_leads_out_of_its_directories():
    with mnt.files() as (places, h):
        alloc = os.urandom(16)
        h.ipc.call("FILE_ALLOC_DIR_MAKE_REQ", {"alloc": alloc, "tasks": ["web"]})
        p, roots = Process(h.pid), [identity(places.data + "/" + n) for n in ("alloc", "logs", "csi")]
        held = p.directories()
        case.equal(set(roots) <= set(held.values()), True, "whether its roots are among its open directories")
        below = [identity("%s/%s/.trash" % (places.data, n)) for n in ("alloc", "logs", "csi/sock")]
        case.equal(set(held.values()), {*roots, *below, identity(places.data + "/csi/sock")}, "directories")
        outside = ["state", "run", "lock", "instance", "rt", "etc", "proc", "usr"]
        for fd in [AT_FDCWD, *held]:
            for prefix in ("", "../", "../../", "../../../../../../../", "/", "/../"):
                for name in outside:
                    case.equal(p.stat(fd, prefix + name), -errno.ENOENT, "%s%s from %s" % (prefix, name, fd))
        for fd, own in held.items():
            if own in roots:
                case.equal(p.stat(fd, ".."), own, "the parent of a root")
        case.equal((p.stat(AT_FDCWD, "/"), p.stat(AT_FDCWD, ".")), (roots[0], roots[0]), "its own root and working directory")


def test_links_devices_and_mounts_in_an_alloc_cannot_be_opened():
    with mnt.files() as (places, h):
        alloc = os.urandom(16)
        h.ipc.call("FILE_ALLOC_DIR_MAKE_REQ", {"alloc": alloc, "tasks": ["web"]})
        p, local = Process(h.pid), "/%s/web/local/" % mnt.text(alloc)
        top = places.data + "/alloc" + local
        for name, target in (("abs", "/etc/passwd"), ("up", "../../../../state"), ("own", "m")):
            os.symlink(target, top + name)
        os.mkdir(top + "m")
        os.mknod(top + "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        under = identity(top + "m")
        mount("x", top + "m", "tmpfs")
        try:
            case.equal(identity(top + "m") == under, False, "whether the mount is another directory")
            for name in ("abs", "up", "own", "own/x"):
                case.equal(p.stat(AT_FDCWD, local + name, 0), -errno.ELOOP, name)
            case.equal(p.stat(AT_FDCWD, local + "m"), under, "below the mount")
            case.equal(p.open(AT_FDCWD, local + "null", os.O_RDONLY), -errno.EACCES, "a device")
        finally:
            umount(top + "m")


def test_a_forbidden_system_call_kills_it():
    with helper.Places() as places:
        for nr, args in ((CHMOD, (0, 0o4755)), (FCHMODAT, (AT_FDCWD, 0, 0o4755)), (MKDIRAT, (AT_FDCWD, 0, 0o2755)),
                         (MKDIRAT, (AT_FDCWD, 0, 0o4755)), (CHROOT, (0,)), (MOUNT, (0, 0, 0, 0, 0)), (EXECVE, (0, 0, 0)),
                         (PTRACE, (16, 1)), (takeover.SOCKET, (2, 1, 0)), (takeover.SOCKET, (1, 1, 0))):
            with helper.Helper("file-helper", places) as h:
                case.equal(takeover.call(h.pid, nr, *args), takeover.KILLED, "call %d" % nr)
                h.status = -signal.SIGSYS  # takeover.call() has reaped it
        with helper.Helper("file-helper", places) as h:
            p = Process(h.pid)
            case.equal(takeover.call(h.pid, MKDIRAT, AT_FDCWD, p.put(b"/made\0"), 0o755), 0, "mode of the directory")
            os.rmdir(places.data + "/alloc/made")


case.run(globals())
