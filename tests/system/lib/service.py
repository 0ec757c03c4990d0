# SPDX-License-Identifier: Apache-2.0
"""An agent as installed: without -dev, with the shipped policy, its users in /etc/passwd, and /run/drover.

    with service.Users(), service.Node('client { … }') as node:
        node.register(api.job("web", driver="exec"))
"""
import os
import re
import shutil

from . import ROOT, api, case, crash, helper

MS_BIND = 4096
FIRST_ID = 64900
with open(ROOT + "/contrib/systemd/sysusers.conf", encoding="ascii") as _f:
    AGENT = re.findall(r"^u (\S+)", _f.read(), re.M)


def without_agent(text):
    """Returns the lines of a passwd or group file without those of an agent that is installed on this machine."""
    return [line for line in text.splitlines() if line.split(":")[0] not in AGENT]


class Users:
    """Adds the agent's users and some more, in this mount namespace only.

    more: (name, uid, gid, [names of other groups]); a gid without a group gets a group with the user's name."""

    def __init__(self, more=()):
        self.people = [(name, FIRST_ID + i, FIRST_ID + i, []) for i, name in enumerate(AGENT)] + list(more)
        self.mounted = []

    def _groups(self, text):
        """Returns /etc/group with the new groups and members."""
        lines = without_agent(text)
        known = {line.split(":")[2] for line in lines}
        lines += ["%s:x:%d:" % (name, gid) for name, _, gid, _ in self.people if str(gid) not in known]
        for name, _, _, groups in self.people:
            for i, line in enumerate(lines):
                if line.split(":")[0] in groups:
                    lines[i] += ("" if line.endswith(":") else ",") + name
        return "\n".join(lines) + "\n"

    def __enter__(self):
        base = case.directory()
        with open("/etc/passwd", encoding="utf-8") as f:
            passwd = "".join(line + "\n" for line in without_agent(f.read()))
        passwd += "".join("%s:x:%d:%d::/nonexistent:/usr/sbin/nologin\n" % p[:3] for p in self.people)
        with open("/etc/group", encoding="utf-8") as f:
            group = self._groups(f.read())
        for name, text in (("passwd", passwd), ("group", group)):
            with open(base + "/" + name, "w", encoding="utf-8") as f:
                f.write(text)
            helper.mount(base + "/" + name, "/etc/" + name, None, MS_BIND)
            self.mounted.append("/etc/" + name)
        return self

    def __exit__(self, *_):
        for path in self.mounted:
            helper.umount(path)


def remove(node):
    """Removes what a stopped service leaves for its next start: cgroups, mounts, the runtime directory."""
    for tree in os.listdir("/sys/fs/cgroup"):
        helper.remove_cgroup("/sys/fs/cgroup/%s/drover-%s" % (tree, crash.instance(node)))
    helper.remove_cgroup("/sys/fs/cgroup/drover-" + crash.instance(node))
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        points = [line.split(" ")[4] for line in f]
    for point in reversed(points):
        if point.startswith(node.data + "/"):
            helper.umount(point)
    shutil.rmtree(node.runtime_dir, ignore_errors=True)


class Node(api.Node):
    """config: the agent's whole configuration; only a large enough disk, and runtime_dir if it is given, are added."""

    def __init__(self, config="", runtime_dir=None):
        if runtime_dir:
            self.runtime_dir = runtime_dir
            config += 'runtime_dir = "%s"\n' % runtime_dir
        path = case.directory() + "/agent.hcl"
        with open(path, "w", encoding="utf-8", opener=lambda p, flags: os.open(p, flags, 0o600)) as f:
            f.write(config)
        super().__init__(["-config", path], dev=False)

    def __exit__(self, kind, value, tb):
        try:
            return super().__exit__(kind, value, tb)
        finally:
            remove(self)
