# SPDX-License-Identifier: Apache-2.0
"""A /dev of the test's own, in its mount namespace, with nodes of its choice."""
import contextlib
import os
import stat

from . import case, helper

NULL, ZERO = os.makedev(1, 3), os.makedev(1, 5)
USUAL = {"null": NULL, "zero": ZERO, "full": os.makedev(1, 7), "random": os.makedev(1, 8), "urandom": os.makedev(1, 9), "tty": os.makedev(5, 0)}
PARTS = ("pts", "shm")
MS_BIND, MS_MOVE, MNT_DETACH = 4096, 8192, 2


def node(path, device, mode=0o666, kind=stat.S_IFCHR):
    """Makes a node; the path is below /dev."""
    at = "/dev/" + path
    os.makedirs(os.path.dirname(at), exist_ok=True)
    os.mknod(at, kind | 0o600, device)
    os.chmod(at, mode)


@contextlib.contextmanager
def own():
    """Replaces /dev by a new one with the usual nodes."""
    at = case.directory()
    helper.mount("tmpfs", at, "tmpfs", helper.MS_NOSUID, "mode=0755")
    for part in PARTS:
        os.mkdir("%s/%s" % (at, part))
        helper.mount("/dev/" + part, "%s/%s" % (at, part), flags=MS_BIND)
    os.symlink("/proc/self/fd", at + "/fd")
    os.symlink("pts/ptmx", at + "/ptmx")
    helper.mount(at, "/dev", flags=MS_MOVE)
    try:
        for name, device in USUAL.items():
            node(name, device)
        yield
    finally:
        helper.umount("/dev", MNT_DETACH)
