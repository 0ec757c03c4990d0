# SPDX-License-Identifier: Apache-2.0
"""Shared code of the tests of mount-helper and file-helper."""
import contextlib
import os
import select
import subprocess
import uuid

from . import build_dir, case, helper
from .ipc import RequestError


@contextlib.contextmanager
def started(**kwargs):
    """Yields (places, helper) with a mount-helper that runs alone."""
    with helper.Places() as places, helper.Helper("mount-helper", places, **kwargs) as h:
        yield places, h


@contextlib.contextmanager
def files(**kwargs):
    """Yields (places, helper) with a file-helper that runs alone."""
    with helper.Places() as places, helper.Helper("file-helper", places, **kwargs) as h:
        yield places, h


@contextlib.contextmanager
def both(places=None):
    """Yields (places, mount-helper, file-helper)."""
    with places or helper.Places() as p, helper.Helper("mount-helper", p) as m, helper.Helper("file-helper", p) as f:
        yield p, m, f


def text(alloc):
    """Returns an id in the form of paths."""
    return str(uuid.UUID(bytes=alloc))


def place(plugin="p", volume="v", usage="rw", alloc=b"", kind="PLUGIN_NODE"):
    return {"kind": kind, "plugin": plugin, "volume": volume, "usage": usage, "alloc": alloc}


def leaf(places, plugin="p", volume="v", usage="rw", alloc=b"", kind="node"):
    """Returns the host path of a volume's directory."""
    between = "per-alloc/" + text(alloc) if alloc else "staging"
    return "%s/csi/%s/%s/%s/%s/%s" % (places.data, kind, plugin, between, volume, usage)


def refused(h, code, part, name, fields):
    """Checks that the request is answered by this errno and a sentence that contains part."""
    e = case.raises(RequestError, h.ipc.call, name, fields)
    case.equal(-e.code, code, "%s: %s" % (name, e.text))
    case.contains(e.text, part, name)


def names(h, root):
    """Returns the names that file-helper lists for a root, sorted."""
    packet = h.ipc.call("FILE_ROOT_LIST_REQ", {"root": root})
    found = helper.memfd_read(packet.take_fd()).split(b"\0")
    case.equal(found.pop(), b"", "end of the list")
    case.equal(len(found), packet["count"], "count")
    return sorted(n.decode() for n in found)


def mounts_below(path):
    """Returns [(target, peer group or 0)] from mountinfo."""
    found = []
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        for line in f:
            words = line.split(" - ")[0].split(" ")
            if words[4].startswith(path):
                shared = [w[7:] for w in words[6:] if w.startswith("shared:")]
                found.append((words[4], int(shared[0]) if shared else 0))
    return found


def mode(path):
    """Returns (type and mode, uid, gid) without following a link."""
    st = os.lstat(path)
    return oct(st.st_mode), st.st_uid, st.st_gid


def children(pid):
    """Returns the pids of its children."""
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as f:
            return [int(p) for p in f.read().split()]
    except OSError:
        return []


class Hang:
    """Runs tests/peers/fuse_hang on a path."""

    def __init__(self, path, *args):
        self.path = path
        if not os.path.exists("/dev/fuse"):
            case.skip("no /dev/fuse")
        program = os.path.join(build_dir(), "tests", "fuse_hang")
        self.process = subprocess.Popen([program, path, *args], stdout=subprocess.PIPE)
        self.expect(b"mounted\n")

    def expect(self, line):
        case.equal(bool(select.select([self.process.stdout], [], [], case.LEAST_S)[0]), True, "a line of fuse_hang")
        case.equal(self.process.stdout.readline(), line, "fuse_hang")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        if mounts_below(self.path):
            helper.umount(self.path, 2)


def in_plugin_namespace(fn):
    """Runs fn in a child with a mount namespace of its own, whose mounts are peers of the host's shared mounts, as in a plugin."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            case.equal(helper.libc.unshare(0x20000), 0, "unshare")  # CLONE_NEWNS
            fn()
            code = 0
        finally:
            os._exit(code)
    case.equal(os.waitpid(pid, 0)[1], 0, "the plugin's end")


def make_plugin(m, f, alloc, plugin="p", kind="PLUGIN_NODE"):
    """Makes the directories of a plugin as the supervisor does."""
    f.ipc.call("FILE_PLUGIN_DIR_MAKE_REQ", {"alloc": alloc, "kind": kind, "plugin": plugin})
    m.ipc.call("MNT_PLUGIN_ROOT_MAKE_REQ", {"kind": kind, "plugin": plugin})


def make_volume(f, **fields):
    f.ipc.call("FILE_VOLUME_DIR_MAKE_REQ", {"place": place(**fields)})


def remove_volume(f, **fields):
    f.ipc.call("FILE_VOLUME_DIR_REMOVE_REQ", {"place": place(**fields)})
