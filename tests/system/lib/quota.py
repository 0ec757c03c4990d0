# SPDX-License-Identifier: Apache-2.0
"""File systems with project quota, and queries of their limits."""
import contextlib
import ctypes
import fcntl
import os
import shutil
import struct
import subprocess

from . import case, helper

SIZE_MB = 400  # sparse; 300 is the minimum of xfs
GET_XATTR, SET_XATTR = 0x801C581F, 0x401C5820  # FS_IOC_FSGETXATTR, FS_IOC_FSSETXATTR
INHERIT = 0x200  # FS_XFLAG_PROJINHERIT
QUOTACTL_FD = 443
GET, SET = 0x80000702, 0x80000802  # QCMD(Q_GETQUOTA, PRJQUOTA), QCMD(Q_SETQUOTA, PRJQUOTA)
DQBLK = struct.Struct("=8QI4x")
XATTR = struct.Struct("=5I8x")
MAKE = {"ext4": ["mke2fs", "-q", "-F", "-t", "ext4", "-b", "4096", "-O", "project,quota", "-E", "quotatype=prjquota"],
        "xfs": ["mkfs.xfs", "-q", "-f"]}


@contextlib.contextmanager
def file_system(kind):
    """Mounts a new file system of this kind and returns its path."""
    if not shutil.which(MAKE[kind][0]):
        case.skip("there is no %s here" % MAKE[kind][0])
    image, top = case.directory() + "/image", case.directory()
    with open(image, "wb") as f:
        f.truncate(SIZE_MB << 20)
    subprocess.run([*MAKE[kind], image], check=True, stdout=subprocess.DEVNULL)
    device = subprocess.run(["losetup", "-f", "--show", image], check=True, stdout=subprocess.PIPE).stdout.decode().strip()
    try:
        helper.mount(device, top, kind, 0, "prjquota")
    except OSError as e:
        case.skip("no %s with project quota can be mounted here: %s" % (kind, os.strerror(e.errno)))
    finally:
        subprocess.run(["losetup", "-d", device], check=True)  # when it is unmounted
    os.chmod(top, 0o755)
    try:
        yield top
    finally:
        helper.umount(top, 2)  # MNT_DETACH: a process may still be emptying the trash
        os.unlink(image)


def project(path):
    """Returns (project id, whether files made below inherit it)."""
    fd = os.open(path, os.O_RDONLY)
    try:
        flags, _, _, found, _ = XATTR.unpack(fcntl.ioctl(fd, GET_XATTR, bytes(XATTR.size)))
    finally:
        os.close(fd)
    return found, bool(flags & INHERIT)


def set_project(path, number):
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.ioctl(fd, SET_XATTR, XATTR.pack(INHERIT if number else 0, 0, 0, number, 0))
    finally:
        os.close(fd)


def _call(path, command, number, block):
    fd = os.open(path, os.O_RDONLY)
    try:
        failed = helper.libc.syscall(QUOTACTL_FD, fd, ctypes.c_uint(command), ctypes.c_uint(number), block) < 0
    finally:
        os.close(fd)
    return ctypes.get_errno() if failed else 0


def usage(path, number):
    """Returns (bytes, limit in bytes) of a project of path's file system."""
    block = ctypes.create_string_buffer(DQBLK.size)
    e = _call(path, GET, number, block)
    case.contains((0, 2), e, "errno of Q_GETQUOTA")  # ENOENT: the project is unknown to xfs
    hard, _, space = DQBLK.unpack(block.raw)[:3]
    return (0, 0) if e else (space, hard * 1024)


def set_limit(path, number, kib):
    e = _call(path, SET, number, ctypes.create_string_buffer(DQBLK.pack(kib, 0, 0, 0, 0, 0, 0, 0, 1), DQBLK.size))
    case.equal(e, 0, "errno of Q_SETQUOTA")
