# SPDX-License-Identifier: Apache-2.0
"""The process of drover-tasks.service by itself, with sockets that the test made.

    with holder.Holder() as h:
        h.process.terminate()
"""
import os
import pwd
import signal
import socket
import subprocess

from . import binary, case, helper

SOCKETS = "/run/drover/x"
IDS = (64900, 64900)  # of user drover if the machine does not have it


def cgroup_leaves():
    """Returns the cgroups that it may have created."""
    with open("/proc/self/cgroup", encoding="ascii") as f:
        own = next(line.rstrip("\n")[3:] for line in f if line.startswith("0::"))
    return ["/sys/fs/cgroup%s%s/hold" % (tree, own) for tree in ("", "/unified")]


class Holder:
    """.process, .ids: (uid, gid) of drover, .log(). Ready when entered."""

    def __init__(self, *args):
        self.args = args
        self.base = case.directory()
        self.passwd = self.process = None
        try:
            user = pwd.getpwnam("drover")
            self.ids = (user.pw_uid, user.pw_gid)
        except KeyError:
            self.ids = IDS
            self.passwd = self.base + "/passwd"
            with open("/etc/passwd", encoding="utf-8") as old, open(self.passwd, "w", encoding="utf-8") as new:
                new.write(old.read() + "drover:x:%d:%d::/nonexistent:/usr/sbin/nologin\n" % IDS)
            helper.mount(self.passwd, "/etc/passwd", None, 4096)  # MS_BIND

    def __enter__(self):
        name = "drover-test-" + os.urandom(8).hex()  # abstract, because drover may not search this test's directory
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify, open(self.base + "/log", "wb") as log:
                notify.bind("\0" + name)
                notify.settimeout(case.LEAST_S)
                self.process = subprocess.Popen([binary("holder"), *self.args], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                env={"NOTIFY_SOCKET": "@" + name})
                case.equal(notify.recv(64), b"READY=1", "what it says")
        except BaseException:
            self.__exit__()
            raise
        return self

    def log(self):
        with open(self.base + "/log", encoding="utf-8") as f:
            return f.read()

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        if self.process:
            self.process.wait()
        if self.passwd:
            helper.umount("/etc/passwd")
        for path in cgroup_leaves():
            if os.path.isdir(path):
                os.rmdir(path)
